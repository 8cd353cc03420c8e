//! A connection's graphs: which files it has, and what a packet draws in each.

use super::Options;
use super::ends::{Outstanding, Passed, RoundTrips, Sizes, Throughput};
use super::line::Line;
use super::pen::{Pen, Token};
use super::plot::{Head, Plot, Pool, Sink};
use super::sequence::{self, LastAck};
use super::timeline;
use crate::connection::Connection;
use crate::direction::Direction;
use crate::segment::Segment;
use crate::text::{Names, letters};
use crate::verdict::Verdict;

/// What drawing takes.
pub(super) struct Drawing<'a, S> {
    pub(super) options: &'a Options,
    pub(super) names: &'a dyn Names,
    pub(super) pool: &'a mut Pool<S>,
    pub(super) pen: &'a mut Pen,
    /// What sequence numbers of all time lines count from.
    pub(super) bases: &'a mut [u32; 2],
}

/// One end's graphs: of the data it sends.
#[derive(Debug)]
struct Side {
    /// Its first sequence number that is not 0; 0 before it.
    base: u32,
    /// The last acknowledgement number it sent, or the other end's SYN; 0 before either.
    ack: u32,
    /// End of its last window, of any ACK.
    window_end: u32,
    /// The window of its last packet that was no reset.
    window: u32,
    said: LastAck,
    sequence: Option<Box<Plot>>,
    rtt: Option<Box<RoundTrips>>,
    throughput: Option<Box<Throughput>>,
    outstanding: Option<Box<Outstanding>>,
    sizes: Option<Box<Sizes>>,
}

/// A connection's graphs.
#[derive(Debug)]
pub(super) struct Pair {
    /// Letters of both ends, by the number of the pair.
    letters: u64,
    complete: bool,
    a: Side,
    b: Side,
    time_line: Option<Plot>,
    /// What its time line's sequence numbers count from, if not from all connections' alike.
    bases: [u32; 2],
}

/// Nanoseconds as microseconds, to the nearest.
const fn micros(nanoseconds: i64) -> i64 {
    nanoseconds.saturating_add(500).div_euclid(1000)
}

/// A graph's file name, its title, and its y axis.
struct Kind {
    file: &'static str,
    title: &'static str,
    y: &'static str,
}

const SEQUENCE: Kind = Kind {
    file: "_tsg.xpl",
    title: "time sequence graph",
    y: "sequence number",
};
const RTT: Kind = Kind {
    file: "_rtt.xpl",
    title: "rtt samples",
    y: "rtt (ms)",
};
const THROUGHPUT: Kind = Kind {
    file: "_tput.xpl",
    title: "throughput",
    y: "thruput (bytes/sec)",
};
const OUTSTANDING: Kind = Kind {
    file: "_owin.xpl",
    title: "outstanding data",
    y: "Outstanding Data (bytes)",
};
const SIZES: Kind = Kind {
    file: "_ssize.xpl",
    title: "segment size graph",
    y: "segment size (bytes)",
};
const TIME_LINE: Kind = Kind {
    file: "_tline.xpl",
    title: "time line graph",
    y: "relative time",
};

impl<S: Sink> Drawing<'_, S> {
    /// A file for one direction of a connection, beginning at `now`. `x` names its axis, unless times are relative.
    fn file(
        &mut self,
        connection: &Connection,
        letters_of: u64,
        from_a: bool,
        kind: &Kind,
        now: i64,
    ) -> Plot {
        let options = self.options;
        let is = |other: &Kind| kind.file == other.file;
        let time_line = is(&TIME_LINE);
        let numbers = is(&SEQUENCE);
        // Throughput and round trips are as old as tcptrace itself, and do not name relative time.
        let old = is(&RTT) || is(&THROUGHPUT);
        let (mut from, mut to) = letters(letters_of);
        let (mut near, mut far) = (connection.a_end(), connection.b_end());
        if !from_a {
            core::mem::swap(&mut from, &mut to);
            core::mem::swap(&mut near, &mut far);
        }
        let between = if time_line { "_" } else { "2" };
        let name = format!("{}{from}{between}{to}{}", options.prefix, kind.file);
        let mut title = String::with_capacity(128);
        if !options.title_prefix.is_empty() {
            title.push_str(&options.title_prefix);
            title.push(' ');
        }
        for (end, after) in [(near, "_==>_"), (far, "")] {
            // Writing to a string does not fail, and what a resolver fails to name stays unnamed.
            let _ = self.names.host(end.0, &mut title);
            title.push(':');
            let _ = self.names.port(end.1, &mut title);
            title.push_str(after);
        }
        title.push_str(" (");
        title.push_str(kind.title);
        title.push(')');
        let head = Head {
            axes: match (
                time_line,
                options.zero_time,
                numbers && !options.zero_sequence,
            ) {
                (true, _, _) => "unsigned dtime",
                (false, true, true) => "dtime double",
                (false, true, false) => "dtime signed",
                (false, false, true) => "timeval double",
                (false, false, false) => "timeval signed",
            },
            title: options.title.then_some(&*title),
            x: match (time_line, options.zero_time && !old) {
                (true, _) => "segments",
                (false, true) => "relative time",
                (false, false) => "time",
            },
            y: if numbers && options.zero_sequence {
                "sequence offset"
            } else {
                kind.y
            },
        };
        let zero = if time_line || options.zero_time {
            now
        } else {
            0
        };
        Plot::new(self.pool, &name, &head, zero)
    }
}

impl Side {
    fn new<S: Sink>(
        drawing: &mut Drawing<'_, S>,
        connection: &Connection,
        segment: &Segment,
        letters: u64,
        from_a: bool,
    ) -> Side {
        let graphs = drawing.options.graphs;
        let begins = !drawing.options.complete_only || segment.syn();
        let now = micros(segment.time);
        let mut file = |kind| drawing.file(connection, letters, from_a, kind, now);
        Side {
            base: 0,
            ack: 0,
            window_end: 0,
            window: 0,
            said: LastAck::none(),
            sequence: (graphs.sequence && begins).then(|| Box::new(file(&SEQUENCE))),
            rtt: None,
            throughput: None,
            outstanding: (graphs.outstanding && begins)
                .then(|| Box::new(Outstanding::new(file(&OUTSTANDING)))),
            sizes: graphs.sizes.then(|| {
                Box::new(Sizes {
                    plot: file(&SIZES),
                    each: Line::default(),
                    mean: Line::default(),
                })
            }),
        }
    }

    fn plots(&mut self) -> impl Iterator<Item = &mut Plot> {
        [
            self.sequence.as_deref_mut(),
            self.rtt.as_deref_mut().map(|graph| &mut graph.plot),
            self.throughput.as_deref_mut().map(|graph| &mut graph.plot),
            self.outstanding.as_deref_mut().map(|graph| &mut graph.plot),
            self.sizes.as_deref_mut().map(|graph| &mut graph.plot),
        ]
        .into_iter()
        .flatten()
    }

    fn into_plots(self) -> impl Iterator<Item = Plot> {
        [
            self.sequence.map(|plot| *plot),
            self.rtt.map(|graph| graph.plot),
            self.throughput.map(|graph| graph.plot),
            self.outstanding.map(|graph| graph.plot),
            self.sizes.map(|graph| graph.plot),
        ]
        .into_iter()
        .flatten()
    }
}

impl Pair {
    pub(super) fn new<S: Sink>(
        drawing: &mut Drawing<'_, S>,
        connection: &Connection,
        segment: &Segment,
        letters: u64,
    ) -> Pair {
        let mut pair = Pair {
            letters,
            complete: false,
            a: Side::new(drawing, connection, segment, letters, true),
            b: Side::new(drawing, connection, segment, letters, false),
            time_line: None,
            bases: [0; 2],
        };
        let begins = !drawing.options.complete_only || segment.syn();
        if drawing.options.graphs.time_line && begins {
            let now = micros(segment.time);
            let mut plot = drawing.file(connection, letters, true, &TIME_LINE, now);
            timeline::begin(drawing.pen, &plot, now);
            plot.draw(drawing.pool, drawing.pen);
            pair.time_line = Some(plot);
        }
        pair
    }

    /// Empties its buffers.
    pub(super) fn flush<S: Sink>(&mut self, pool: &mut Pool<S>) {
        for plot in self
            .a
            .plots()
            .chain(self.b.plots())
            .chain(&mut self.time_line)
        {
            plot.flush(pool);
        }
    }

    /// Ends its files; unless it is complete, they are discarded if that was asked for.
    pub(super) fn close<S: Sink>(self, pool: &mut Pool<S>, complete_only: bool) {
        let wanted = self.complete || !complete_only;
        for plot in self
            .a
            .into_plots()
            .chain(self.b.into_plots())
            .chain(self.time_line)
        {
            plot.close(pool, wanted);
        }
    }

    /// Draws a packet.
    #[inline]
    pub(super) fn observe<S: Sink>(
        &mut self,
        drawing: &mut Drawing<'_, S>,
        connection: &Connection,
        segment: &Segment,
        verdict: &Verdict,
    ) {
        if segment.flags & 3 != 0 {
            self.complete = connection.is_complete();
        }
        let letters = self.letters;
        let packet = Packet::new(connection, segment, verdict);
        let (this, other) = if verdict.from_a {
            (&mut self.a, &mut self.b)
        } else {
            (&mut self.b, &mut self.a)
        };
        let graphs = drawing.options.graphs;
        if graphs.throughput {
            packet.throughput(drawing, this, letters);
        }
        if let Some(sizes) = &mut this.sizes
            && segment.payload > 0
        {
            let mean = packet.sender.data_bytes / packet.sender.data_packets.max(1);
            sizes.sample(drawing.pen, packet.now, segment.payload, mean);
            sizes.plot.draw(drawing.pool, drawing.pen);
        }
        if segment.syn() {
            other.ack = segment.sequence;
            other
                .said
                .other_began(segment.sequence, based(drawing, this.base));
        }
        if this.base == 0 && segment.sequence != 0 {
            this.base = segment.sequence;
            if drawing.options.zero_sequence {
                other.said.rebase(this.base);
            }
        }
        if graphs.rtt && verdict.sample.is_some() {
            packet.round_trip(drawing, other, letters);
        }
        packet.sequence(drawing, this, other);
        if let Some(plot) = &mut self.time_line {
            packet.time_line(drawing, plot, &mut self.bases, this.base);
        }
        if segment.ack() {
            this.window_end = segment.acknowledgment.wrapping_add(verdict.window);
            if segment.rst() {
                this.said.moved(this.window_end, based(drawing, other.base));
            }
        }
        if segment.rst() {
            return;
        }
        this.window = verdict.window;
        if segment.ack() {
            this.ack = segment.acknowledgment;
        }
        if graphs.outstanding && !segment.syn() && !packet.again && !verdict.out_of_order {
            packet.outstanding(drawing, this, other);
        }
    }
}

/// What sequence numbers on a graph count from, where a direction's first is `base`.
fn based<S>(drawing: &Drawing<'_, S>, base: u32) -> u32 {
    if drawing.options.zero_sequence {
        base
    } else {
        0
    }
}

/// A packet to be drawn.
struct Packet<'a> {
    connection: &'a Connection,
    sender: &'a Direction,
    segment: &'a Segment,
    verdict: &'a Verdict,
    /// Something in it was sent before, as the graph shows it.
    again: bool,
    /// Microseconds.
    now: i64,
}

impl<'a> Packet<'a> {
    #[inline]
    fn new(connection: &'a Connection, segment: &'a Segment, verdict: &'a Verdict) -> Packet<'a> {
        let sends = segment.payload > 0 || segment.flags & 3 != 0;
        Packet {
            connection,
            sender: if verdict.from_a {
                &connection.a
            } else {
                &connection.b
            },
            segment,
            verdict,
            again: verdict.retransmitted > 0
                || (sends && (verdict.hardware_duplicate || verdict.keep_alive)),
            now: micros(segment.time),
        }
    }

    fn throughput<S: Sink>(&self, drawing: &mut Drawing<'_, S>, this: &mut Side, letters: u64) {
        let octets = self.segment.payload;
        let Some(graph) = &mut this.throughput else {
            let from_a = self.verdict.from_a;
            let plot = drawing.file(self.connection, letters, from_a, &THROUGHPUT, self.now);
            this.throughput = Some(Box::new(Throughput::new(plot, self.now, octets)));
            return;
        };
        let passed = Passed {
            now: self.now,
            octets,
            began: micros(self.connection.first_time),
            total: self.sender.data_bytes,
        };
        let options = drawing.options;
        graph.pass(
            drawing.pen,
            &passed,
            u64::from(options.interval),
            options.instant,
        );
        graph.plot.draw(drawing.pool, drawing.pen);
    }

    /// The packet measured a round trip of what the other end sent.
    fn round_trip<S: Sink>(&self, drawing: &mut Drawing<'_, S>, other: &mut Side, letters: u64) {
        let Some(sample) = self.verdict.sample else {
            return;
        };
        let graph = match &mut other.rtt {
            Some(graph) => graph,
            None => {
                let from_a = !self.verdict.from_a;
                let plot = drawing.file(self.connection, letters, from_a, &RTT, self.now);
                drawing.pen.colour(&Token::word("red"));
                let line = Line::default();
                other.rtt.insert(Box::new(RoundTrips { plot, line }))
            }
        };
        graph.sample(drawing.pen, self.now, micros(sample.time));
        graph.plot.draw(drawing.pool, drawing.pen);
    }

    #[inline]
    fn sequence<S: Sink>(&self, drawing: &mut Drawing<'_, S>, this: &mut Side, other: &mut Side) {
        let (segment, verdict) = (self.segment, self.verdict);
        let look = sequence::Look {
            segment,
            again: self.again,
            out_of_order: verdict.out_of_order,
            probe: verdict.probe,
            copy: verdict.hardware_duplicate,
            ack: verdict.ack,
            window: verdict.window,
            time: self.now,
            first_time: micros(self.connection.first_time),
        };
        if let Some(plot) = &mut this.sequence {
            let base = based(drawing, this.base);
            sequence::sent(drawing.pen, plot, drawing.options, &look, base);
            plot.draw(drawing.pool, drawing.pen);
        }
        let base = based(drawing, other.base);
        let Some(plot) = &mut other.sequence else {
            return;
        };
        if segment.rst() {
            let at = if segment.ack() {
                segment.acknowledgment
            } else {
                this.ack
            };
            sequence::reset(drawing.pen, plot, self.now, at.wrapping_sub(base));
        } else if segment.ack() {
            let said = &mut this.said;
            sequence::acknowledged(drawing.pen, plot, drawing.options, &look, said, base);
        }
        plot.draw(drawing.pool, drawing.pen);
    }

    fn time_line<S: Sink>(
        &self,
        drawing: &mut Drawing<'_, S>,
        plot: &mut Plot,
        own: &mut [u32; 2],
        first: u32,
    ) {
        let bases = if drawing.options.own_time_line {
            own
        } else {
            &mut *drawing.bases
        };
        let (this, other) = if self.verdict.from_a { (0, 1) } else { (1, 0) };
        // The handshake is shown with its numbers as sent; the reply already counts from here.
        let shown = bases[this];
        if shown == 0 && !self.segment.syn() {
            bases[this] = first;
        }
        let look = timeline::Look {
            segment: self.segment,
            from_a: self.verdict.from_a,
            time: self.now,
            first_time: micros(self.connection.first_time),
            round_trip: micros(self.sender.rtt_last),
            window: self.verdict.window,
            again: self.again,
            copy: self.verdict.hardware_duplicate,
            bases: (shown, bases[other]),
        };
        timeline::draw(drawing.pen, plot, &look);
        plot.draw(drawing.pool, drawing.pen);
    }

    fn outstanding<S: Sink>(&self, drawing: &mut Drawing<'_, S>, this: &mut Side, other: &Side) {
        let Some(graph) = &mut this.outstanding else {
            return;
        };
        let segment = self.segment;
        let octets = if other.ack == 0 {
            i64::from(segment.payload)
        } else {
            let above = segment.end().wrapping_sub(other.ack).wrapping_add(1);
            i64::from(above as i32)
        };
        let window = drawing.options.window_line.then_some(other.window);
        let began = micros(self.connection.first_time);
        graph.sample(drawing.pen, self.now, octets, window, began);
        graph.plot.draw(drawing.pool, drawing.pen);
    }
}
