//! The observer: finds each packet's connection and keeps within the limits of memory.

use super::Options;
use super::pair::{Drawing, Pair};
use super::places::{NOWHERE, Places};
use super::plot::{Pool, Studio};
use crate::connection::Connection;
use crate::segment::Segment;
use crate::text::{Names, Numeric};
use crate::verdict::{Observer, Verdict};

/// Counts of graphs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Connections drawn.
    pub connections: u64,
    /// Connections not drawn because there were too many at a time.
    pub left_out: u64,
    /// How often buffers were emptied early because they took too much memory.
    pub buffers_emptied: u64,
}

/// Draws connections.
pub struct Plots<S> {
    options: Options,
    names: Box<dyn Names + Send>,
    pool: Pool<S>,
    pairs: Vec<Option<Box<Pair>>>,
    free: Vec<u32>,
    places: Places,
    /// Connections seen, and pairs of letters given.
    connections: u64,
    letters: u64,
    /// What sequence numbers of time lines count from, one for each direction.
    bases: [u32; 2],
    /// Where buffers were emptied last.
    hand: usize,
    summary: Summary,
}

impl<S: Studio> Plots<S> {
    /// Draws with `studio`, with addresses and port numbers in the titles.
    #[must_use]
    pub fn new(options: Options, studio: S) -> Plots<S> {
        Plots {
            options,
            names: Box::new(Numeric),
            pool: Pool { studio, held: 0 },
            pairs: Vec::new(),
            free: Vec::new(),
            places: Places::new(),
            connections: 0,
            letters: 0,
            bases: [0; 2],
            hand: 0,
            summary: Summary::default(),
        }
    }

    /// Sets the names in later titles.
    pub fn set_names(&mut self, names: Box<dyn Names + Send>) {
        self.names = names;
    }

    /// A UDP flow that is reported too takes the next pair of letters.
    pub fn skip_letters(&mut self) {
        self.letters += 1;
    }

    /// Completes the files of the finished connection whose first packet has this number, and frees its memory.
    pub fn close(&mut self, first_packet: u64) {
        let Some(place) = self.places.remove(first_packet) else {
            return;
        };
        if let Some(pair) = self.pairs.get_mut(place as usize).and_then(Option::take) {
            pair.close(&mut self.pool, self.options.complete_only);
            self.free.push(place);
        }
    }

    /// Completes all files.
    pub fn finish(mut self) -> (S, Summary) {
        for pair in self.pairs.iter_mut().filter_map(Option::take) {
            pair.close(&mut self.pool, self.options.complete_only);
        }
        (self.pool.studio, self.summary)
    }

    /// A connection's first packet.
    #[inline(never)]
    fn begin(&mut self, connection: &Connection, segment: &Segment) -> u32 {
        let place = self.begun(connection, segment);
        self.places.insert(connection.first_packet, place);
        place
    }

    fn begun(&mut self, connection: &Connection, segment: &Segment) -> u32 {
        self.connections += 1;
        self.letters += 1;
        let (number, letters) = match connection.number {
            0 => (self.connections, self.letters),
            number => (number, number),
        };
        if !self.options.wants(number) {
            return NOWHERE;
        }
        if self.pairs.len() - self.free.len() >= self.options.connections_max {
            self.summary.left_out += 1;
            return NOWHERE;
        }
        self.summary.connections += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.pairs.push(None);
            (self.pairs.len() - 1) as u32
        });
        let mut drawing = Drawing {
            options: &self.options,
            names: &*self.names,
            pool: &mut self.pool,
            bases: &mut self.bases,
        };
        let pair = Pair::new(&mut drawing, connection, segment, letters);
        self.pairs[place as usize] = Some(Box::new(pair));
        place
    }

    /// Buffers take too much memory: empties some.
    #[cold]
    fn relieve(&mut self) {
        self.summary.buffers_emptied += 1;
        for _ in 0..self.pairs.len() {
            if self.pool.held <= self.options.buffers_max / 2 {
                break;
            }
            self.hand = (self.hand + 1) % self.pairs.len();
            if let Some(pair) = &mut self.pairs[self.hand] {
                pair.flush(&mut self.pool);
            }
        }
    }
}

impl<S: Studio> Observer for Plots<S> {
    #[inline]
    fn observe(&mut self, connection: &Connection, segment: &Segment, verdict: &Verdict) {
        let place = match self.places.get(connection.first_packet) {
            Some(place) => place,
            None => self.begin(connection, segment),
        };
        let Some(Some(pair)) = self.pairs.get_mut(place as usize) else {
            return;
        };
        let mut drawing = Drawing {
            options: &self.options,
            names: &*self.names,
            pool: &mut self.pool,
            bases: &mut self.bases,
        };
        pair.observe(&mut drawing, connection, segment, verdict);
        if self.pool.held > self.options.buffers_max {
            self.relieve();
        }
    }
}
