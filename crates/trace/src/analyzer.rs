//! Finds each packet's connection, and keeps as many connections as memory allows.
//!
//! A connection is *hot* while packets arrive for it: its statistics are in memory as they are. A connection without
//! packets for a while is *frozen* into about 300 bytes, and thawed without loss when its next packet arrives; this
//! only affects speed. Hot connections have a table of their own, small enough for the processor's caches.
//!
//! A connection *finishes*, and leaves the analyser, in one of three cases: its time-out has passed, another connection
//! takes its addresses and ports, or memory runs out. All rules depend only on the packets, so that the parts of a
//! capture that is analysed in pieces agree.

mod another;
mod recent;

use crate::connection::Connection;
use crate::details::Details;
use crate::frozen::shelf::{Shelf, Ticket};
use crate::frozen::{Head, Room};
use crate::key::FlowKey;
use crate::segment::Segment;
use crate::verdict::{Nobody, Observer, Verdict};
use another::begins_another;
use hashbrown::HashTable;
use std::collections::VecDeque;
use wire::packet::Layer;

/// Limits and time-outs.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Seed of the hashes of flows: the same on all machines that share a capture, otherwise an
    /// unpredictable number.
    pub seed: u64,
    /// A connection that is idle for longer than this, in nanoseconds, finishes, and its addresses and ports are free.
    pub idle: i64,
    /// The same for a closed connection.
    pub idle_closed: i64,
    /// The largest number of hot connections.
    pub hot: usize,
    /// Memory for connections, in bytes. Beyond it, the least recently used connections finish early.
    pub memory: u64,
    /// Divide the senders' time into causes: [`Connection::why`].
    pub why: bool,
    /// Note what else the packets show: [`Connection::details`].
    pub details: bool,
    /// Width of the columns over time in [`Connection::details`], in nanoseconds; 0 for none.
    pub interval: i64,
    /// Note which connections have packets: [`Analyzer::recent`].
    pub recent: bool,
}

/// Two hours: the default interval of keep-alives (RFC 9293 3.8.4), so that a live connection would have sent one.
pub const IDLE: i64 = 7_200_000_000_000;

/// Half an hour.
pub const IDLE_CLOSED: i64 = 1_800_000_000_000;

impl Default for Config {
    fn default() -> Config {
        Config {
            seed: 0,
            idle: IDLE,
            idle_closed: IDLE_CLOSED,
            hot: 16_384,
            memory: 2 << 30,
            why: false,
            details: false,
            interval: 0,
            recent: false,
        }
    }
}

/// How often memory limits took effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Open connections finished early because memory ran out. Their later packets count as other connections.
    pub finished_early: u64,
    /// The same for closed connections, which leave first. Few of them have later packets.
    pub closed_early: u64,
    /// How often segments in flight were forgotten because memory ran out: their retransmissions are counted, but not
    /// timed. The number of forgotten segments is in [`crate::segments::Segments::forgotten`].
    pub flights_cut: u64,
}

/// A connection that has finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Number of its first packet. Connections are ordered by it.
    pub first_packet: u64,
    /// The frozen connection: see [`Connection::thaw`].
    pub octets: Box<[u8]>,
}

/// Where a connection is.
#[derive(Debug, Clone, Copy)]
enum Place {
    Hot(u32),
    Frozen(Ticket),
    /// There is no connection.
    Free,
}

/// The part of a connection that stays in memory while it is frozen. It is small.
#[derive(Debug)]
struct Slot {
    hash: u64,
    /// Number of its first packet.
    first_packet: u64,
    place: Place,
    /// How often the slot has been given to another connection.
    generation: u32,
}

#[derive(Debug, Default)]
struct Hot {
    connection: Connection,
    hash: u64,
    /// `NONE` when there is no connection here.
    slot: u32,
    /// It had a packet since the hand passed.
    touched: bool,
    /// It has closed.
    closed: bool,
    /// It is in the list of connections that are closed and fully acknowledged.
    quiet: bool,
    /// It is in the list of connections with packets of late.
    recent: bool,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// When to look at a connection again.
#[derive(Debug, Clone, Copy)]
struct Due {
    clock: i64,
    slot: u32,
    generation: u32,
}

/// The analyser.
#[derive(Debug)]
pub struct Analyzer {
    config: Config,
    /// Places of hot connections.
    warm: HashTable<u32>,
    /// Slots of frozen ones.
    cold: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    hot: Vec<Hot>,
    /// Hot places that are free.
    spare: Vec<u32>,
    /// Hot connections that are closed and fully acknowledged, the oldest first: their places and slots.
    quiet: VecDeque<(u32, u32)>,
    /// Slots of the connections with packets since [`Analyzer::recent`] was called, and of those that it kept. A slot may
    /// be there several times.
    recent: Vec<u32>,
    /// The hand of the clock algorithm that chooses a hot connection to freeze.
    hand: usize,
    /// Connections to check when the idle time-out may have passed, and when that of closed connections may have.
    open: VecDeque<Due>,
    closed: VecDeque<Due>,
    finished: Vec<Finished>,
    shelf: Shelf,
    /// Segments in flight beyond what a hot connection has room for.
    many: u64,
    connections: u64,
    file: u32,
    limits: Limits,
    /// See [`Analyzer::hold`].
    held_at: Option<i64>,
    scratch: Room,
    /// Nobody reads or writes it: to make a new one for each packet would take time.
    unwanted: Verdict,
}

/// Closed and fully acknowledged connections that stay hot for copies of their last packets. They are few, so that they
/// are frozen, and their places reused, while both are in the processor's caches.
const LINGER: usize = 16;

/// Entries of finished connections that the queues may have beyond two for each connection in memory.
const STALE: usize = 1024;

/// FIN or RST.
const FIN_RST: u16 = 5;

/// Bytes of a hot connection, its lists included.
const HOT_SIZE: u64 = core::mem::size_of::<Hot>() as u64 + 1024;

/// Bytes of a slot, and of its entry in a table.
const SLOT_SIZE: u64 = core::mem::size_of::<Slot>() as u64 + 8;

impl Analyzer {
    /// An analyser without connections.
    #[must_use]
    pub fn new(config: Config) -> Analyzer {
        // With little memory, fewer connections are hot.
        let room = (config.memory / 4 / HOT_SIZE).max(64);
        let hot = config.hot.min(usize::try_from(room).unwrap_or(usize::MAX));
        Analyzer {
            config: Config { hot, ..config },
            warm: HashTable::new(),
            cold: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            hot: Vec::new(),
            spare: Vec::new(),
            quiet: VecDeque::new(),
            recent: Vec::new(),
            hand: 0,
            open: VecDeque::new(),
            closed: VecDeque::new(),
            finished: Vec::new(),
            shelf: Shelf::default(),
            many: 0,
            connections: 0,
            file: 0,
            limits: Limits::default(),
            held_at: None,
            scratch: Room::default(),
            unwanted: Verdict::default(),
        }
    }

    /// The following packets are from this file, counted from 0.
    pub fn set_file(&mut self, file: u32) {
        self.file = file;
    }

    /// Number of connections so far, including finished ones.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Time-outs count until this time of the capture's clock: packets after it come in another order. `None` lets them
    /// count until each packet.
    pub(crate) fn hold(&mut self, clock: Option<i64>) {
        self.held_at = clock;
    }

    /// Number of hot connections.
    pub(crate) fn hot(&self) -> usize {
        self.warm.len()
    }

    /// Number of connections in memory.
    #[must_use]
    pub fn held(&self) -> usize {
        self.warm.len() + self.cold.len()
    }

    /// Bytes of the connections in memory, as the limit counts them.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.shelf.bytes()
            + self.hot.len() as u64 * HOT_SIZE
            + self.slots.len() as u64 * SLOT_SIZE
            + (self.open.len() + self.closed.len()) as u64 * core::mem::size_of::<Due>() as u64
            + self.many * core::mem::size_of::<crate::segments::Sent>() as u64
    }

    /// How often memory limits took effect.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Analyses a packet. `layers` are its encapsulations. `observer` sees the result.
    #[inline]
    pub fn packet<O: Observer>(&mut self, segment: &Segment, layers: &[Layer], observer: &mut O) {
        let hash = segment.key.hash(self.config.seed);
        self.packet_hashed(hash, segment, layers, observer);
    }

    /// Reads the connections of packets with these hashes together, so that the processor
    /// waits for memory once and not once per packet. This pays off if many connections are in
    /// memory. The returned number has no meaning; the caller must use it, or the compiler would
    /// optimise the reads away.
    #[must_use]
    pub fn touch(&self, hashes: impl Iterator<Item = u64>) -> u64 {
        let mut sum = 0u64;
        let (mut places, mut count) = ([0; 64], 0);
        // Comparing keys would wait for memory each time. Without it, about one read in a hundred is of another
        // connection.
        for hash in hashes.take(places.len()) {
            if let Some(&at) = self.warm.find(hash, |_| true) {
                sum = sum.wrapping_add(self.hot[at as usize].connection.touch());
                places[count] = at;
                count += 1;
            }
            // A hot connection that closes soon is entered here.
            if let Some(&slot) = self.cold.find(hash, |_| true) {
                sum = sum.wrapping_add(u64::from(slot));
            }
        }
        for &at in &places[..count] {
            let hot = &self.hot[at as usize];
            sum = sum.wrapping_add(hot.connection.touch_lists());
            let slot = self.slots.get(hot.slot as usize);
            sum = sum.wrapping_add(slot.map_or(0, |slot| u64::from(slot.generation)));
        }
        sum
    }

    /// Like [`Analyzer::packet`], if the hash of the packet's key with the configuration's seed is known.
    #[inline]
    pub fn packet_hashed<O: Observer>(
        &mut self,
        hash: u64,
        segment: &Segment,
        layers: &[Layer],
        observer: &mut O,
    ) {
        let hot = &self.hot;
        let found = self
            .warm
            .find(hash, |&at| hot[at as usize].connection.key == segment.key)
            .copied();
        self.packet_of(found, hash, segment, || layers, observer);
    }

    /// Like [`Analyzer::packet_hashed`], for packets sorted by flow: `last` is the place of the packet before. `layers`
    /// is called for the first packet of an end. Returns the place of this packet.
    #[inline]
    pub(crate) fn packet_after<'l>(
        &mut self,
        last: Option<u32>,
        hash: u64,
        segment: &Segment,
        layers: impl FnOnce() -> &'l [Layer],
    ) -> u32 {
        let hot = &self.hot;
        let is = |at: u32| hot[at as usize].connection.key == segment.key;
        let found = last
            .filter(|&at| is(at) && hot[at as usize].slot != NONE)
            .or_else(|| self.warm.find(hash, |&at| is(at)).copied());
        self.packet_of(found, hash, segment, layers, &mut Nobody)
    }

    /// A packet of the hot connection at `found`, or of one that is not hot. Returns its place.
    #[inline(always)]
    fn packet_of<'l, O: Observer>(
        &mut self,
        found: Option<u32>,
        hash: u64,
        segment: &Segment,
        layers: impl FnOnce() -> &'l [Layer],
        observer: &mut O,
    ) -> u32 {
        let at = match found {
            Some(at) if !self.is_another(at, segment) => at,
            _ => self.slow(found, hash, segment),
        };
        let hot = &mut self.hot[at as usize];
        hot.touched = true;
        if self.config.recent && !core::mem::replace(&mut hot.recent, true) {
            self.recent.push(hot.slot);
        }
        let closed = hot.closed;
        let connection = &mut hot.connection;
        let mut many = connection.a.segments.many() + connection.b.segments.many();
        let mut details = 0;
        let layers = match connection.has_sent(segment) {
            true => &[],
            false => layers(),
        };
        if O::WANTED || connection.details.is_some() {
            let mut verdict = Verdict::default();
            connection.receive::<true>(segment, layers, &mut verdict);
            many += connection.details_size();
            connection.detail(segment, &verdict, observer.payload());
            details = connection.details_size();
            observer.observe(connection, segment, &verdict);
        } else {
            connection.receive::<false>(segment, layers, &mut self.unwanted);
        }
        let now = connection.a.segments.many() + connection.b.segments.many() + details;
        if now != many {
            self.count_many(at, many, now);
        }
        if closed || segment.flags & FIN_RST != 0 {
            self.close(at, segment.clock);
        }
        at
    }

    /// Whether the packet starts another connection between the same ends.
    #[inline]
    fn is_another(&self, at: u32, segment: &Segment) -> bool {
        let connection = &self.hot[at as usize].connection;
        let idle = segment.now().saturating_sub(connection.last_clock);
        if idle > self.config.idle_closed {
            return idle > self.config.idle || connection.is_closed();
        }
        segment.syn() && begins_another(connection, segment)
    }

    /// A packet whose connection is not hot, or is not `found`. Returns the connection's place.
    #[inline(never)]
    fn slow(&mut self, found: Option<u32>, hash: u64, segment: &Segment) -> u32 {
        if let Some(at) = found.or_else(|| self.thaw(hash, &segment.key)) {
            if !self.is_another(at, segment) {
                return at;
            }
            self.end(self.hot[at as usize].slot);
        }
        self.reclaim(self.held_at.unwrap_or(segment.clock));
        if self.open.len() + self.closed.len() > 3 * self.held() + STALE
            || self.recent.len() > 3 * self.held() + STALE
        {
            self.forget_stale();
        }
        let at = self.room();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                hash: 0,
                first_packet: 0,
                place: Place::Free,
                generation: 0,
            });
            (self.slots.len() - 1) as u32
        });
        let entry = &mut self.slots[slot as usize];
        entry.hash = hash;
        entry.first_packet = segment.number;
        self.open.push_back(Due {
            clock: segment.clock.saturating_add(self.config.idle),
            slot,
            generation: entry.generation,
        });
        self.connections += 1;
        let connection = &mut self.hot[at as usize].connection;
        connection.reset();
        connection.first_packet = segment.number;
        connection.file = self.file;
        connection.key = segment.key;
        connection.a_is_low = segment.from_low;
        connection.first_time = segment.time;
        connection.last_time = segment.time;
        connection.last_clock = segment.now();
        match self.config.why {
            // A list that was there keeps its room.
            true => _ = connection.why.get_or_insert_default(),
            false => connection.why = None,
        }
        if self.config.details || self.config.interval > 0 {
            let details = Details::new(self.config.details, self.config.interval);
            connection.details = Some(Box::new(details));
        }
        self.place(slot, at);
        at
    }

    /// Makes the frozen connection with that key hot. Returns its place.
    fn thaw(&mut self, hash: u64, key: &FlowKey) -> Option<u32> {
        let (slots, shelf) = (&self.slots, &self.shelf);
        let is = |slot: &Slot| {
            slot.hash == hash
                && matches!(slot.place, Place::Frozen(ticket) if Head::of(shelf.get(ticket)).key == *key)
        };
        let entry = self
            .cold
            .find_entry(hash, |&slot| is(&slots[slot as usize]))
            .ok()?;
        let (slot, _) = entry.remove();
        let at = self.room();
        let Place::Frozen(ticket) = self.slots[slot as usize].place else {
            return None;
        };
        let connection = &mut self.hot[at as usize].connection;
        connection
            .thaw(self.shelf.get(ticket))
            .expect("what was frozen here thaws");
        self.shelf.remove(ticket);
        let many = connection.many();
        self.many += many as u64;
        self.place(slot, at);
        Some(at)
    }

    /// Assigns the new or thawed connection at `at` to a slot.
    fn place(&mut self, slot: u32, at: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.place = Place::Hot(at);
        let hash = entry.hash;
        let hot = &mut self.hot[at as usize];
        hot.hash = hash;
        hot.slot = slot;
        hot.closed = hot.connection.is_closed();
        hot.quiet = false;
        let hot = &self.hot;
        self.warm
            .insert_unique(hash, at, |&at| hot[at as usize].hash);
    }

    /// A free hot place; if there is none, another connection is frozen.
    fn room(&mut self) -> u32 {
        if let Some(at) = self.spare.pop() {
            return at;
        }
        while self.quiet.len() > LINGER
            && let Some((at, slot)) = self.quiet.pop_front()
        {
            if self.hot[at as usize].slot == slot {
                self.freeze(at);
                return at;
            }
        }
        if self.hot.len() < self.config.hot.max(1) {
            self.hot.push(Hot::default());
            return (self.hot.len() - 1) as u32;
        }
        loop {
            self.hand = (self.hand + 1) % self.hot.len();
            let hot = &mut self.hot[self.hand];
            if !core::mem::take(&mut hot.touched) {
                break;
            }
        }
        let at = self.hand as u32;
        self.freeze(at);
        at
    }

    /// Freezes the hot connection at `at` and frees its place.
    fn freeze(&mut self, at: u32) {
        let slot = self.shelve(at);
        let slots = &self.slots;
        self.cold
            .insert_unique(slots[slot as usize].hash, slot, |&slot| {
                slots[slot as usize].hash
            });
    }

    /// Freezes the hot connection at `at`, and leaves it to the caller to enter its slot in the table. Returns the slot.
    fn shelve(&mut self, at: u32) -> u32 {
        let slot = self.take(at);
        let ticket = self.shelf.put(self.scratch.octets());
        self.slots[slot as usize].place = Place::Frozen(ticket);
        slot
    }

    /// Removes the connection at `at` from its place. Returns its slot; `scratch` has its bytes.
    fn take(&mut self, at: u32) -> u32 {
        let hot = &mut self.hot[at as usize];
        if let Ok(entry) = self.warm.find_entry(hot.hash, |&other| other == at) {
            entry.remove();
        }
        let connection = &mut hot.connection;
        let many = connection.many();
        self.many -= many as u64;
        connection.freeze_in(&mut self.scratch);
        (hot.touched, hot.recent) = (false, false);
        core::mem::replace(&mut hot.slot, NONE)
    }

    /// A connection has finished.
    fn end(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        let octets = match core::mem::replace(&mut entry.place, Place::Free) {
            Place::Hot(at) => {
                self.spare.push(at);
                self.take(at);
                self.scratch.octets().into()
            }
            Place::Frozen(ticket) => {
                if let Ok(entry) = self.cold.find_entry(entry.hash, |&other| other == slot) {
                    entry.remove();
                }
                let octets = self.shelf.get(ticket).into();
                self.shelf.remove(ticket);
                octets
            }
            Place::Free => return,
        };
        let entry = &mut self.slots[slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(slot);
        self.finished.push(Finished {
            first_packet: entry.first_packet,
            octets,
        });
    }

    /// Finishes connections whose time-out has passed, and the least recently used connections if memory is short.
    fn reclaim(&mut self, clock: i64) {
        while let Some(due) = self.closed.front().copied()
            && due.clock < clock
        {
            self.closed.pop_front();
            self.look(due, clock, true);
        }
        while let Some(due) = self.open.front().copied()
            && due.clock < clock
        {
            self.open.pop_front();
            self.look(due, clock, false);
        }
        if self.memory() > self.config.memory {
            self.shed();
        }
    }

    /// Finishes a connection whose time-out has passed, or notes when to check again.
    fn look(&mut self, due: Due, clock: i64, closed: bool) {
        let entry = &self.slots[due.slot as usize];
        if entry.generation != due.generation {
            return;
        }
        let last = match entry.place {
            Place::Hot(at) => self.hot[at as usize].connection.last_clock,
            Place::Frozen(ticket) => Head::of(self.shelf.get(ticket)).last_clock,
            Place::Free => return,
        };
        let limit = if closed {
            self.config.idle_closed
        } else {
            self.config.idle
        };
        if clock.saturating_sub(last) > limit {
            self.end(due.slot);
            return;
        }
        let queue = if closed {
            &mut self.closed
        } else {
            &mut self.open
        };
        queue.push_back(Due {
            clock: last.saturating_add(limit),
            ..due
        });
    }

    /// A packet with FIN or RST, or any packet of a closed connection.
    #[inline(never)]
    fn close(&mut self, at: u32, clock: i64) {
        let hot = &mut self.hot[at as usize];
        if !hot.closed && hot.connection.is_closed() {
            hot.closed = true;
            self.closed.push_back(Due {
                clock: clock.saturating_add(self.config.idle_closed),
                slot: hot.slot,
                generation: self.slots[hot.slot as usize].generation,
            });
        }
        if hot.closed && !hot.quiet && hot.connection.is_quiet() {
            hot.quiet = true;
            self.quiet.push_back((at, hot.slot));
        }
    }

    /// Removes the queues' entries of connections that have finished.
    #[cold]
    fn forget_stale(&mut self) {
        let slots = &self.slots;
        let current = |due: &Due| slots[due.slot as usize].generation == due.generation;
        self.open.retain(current);
        self.closed.retain(current);
        self.recent
            .retain(|&slot| !matches!(slots[slot as usize].place, Place::Free));
        self.recent.sort_unstable();
        self.recent.dedup();
    }

    /// Memory is short: finishes the connections that closed first, then the oldest of those that are open.
    #[cold]
    fn shed(&mut self) {
        let target = self.config.memory - self.config.memory / 16;
        while self.memory() > target
            && let Some(due) = self.closed.pop_front()
        {
            if self.slots[due.slot as usize].generation == due.generation {
                self.end(due.slot);
                self.limits.closed_early += 1;
            }
        }
        // Two rounds: a connection with packets since the last round is spared once.
        let mut rounds = 2 * self.open.len();
        while self.memory() > target && rounds > 0 {
            rounds -= 1;
            let Some(due) = self.open.pop_front() else {
                break;
            };
            let entry = &self.slots[due.slot as usize];
            if entry.generation != due.generation {
                continue;
            }
            if let Place::Hot(at) = entry.place
                && core::mem::take(&mut self.hot[at as usize].touched)
            {
                self.open.push_back(due);
                continue;
            }
            self.end(due.slot);
            self.limits.finished_early += 1;
        }
    }

    /// The number of segments in flight has changed.
    #[cold]
    fn count_many(&mut self, at: u32, before: usize, now: usize) {
        self.many = self.many + now as u64 - before as u64;
        let size = core::mem::size_of::<crate::segments::Sent>() as u64;
        if self.many * size > self.config.memory / 2 {
            self.limits.flights_cut += 1;
            let connection = &mut self.hot[at as usize].connection;
            let before = connection.many();
            connection.a.segments.forget();
            connection.b.segments.forget();
            if let Some(details) = &mut connection.details {
                details.forget();
            }
            // Forgotten segments may leave gaps.
            self.many = self.many - before as u64 + connection.many() as u64;
        }
    }

    /// The connections that have finished since this was last called.
    pub fn take_finished(&mut self) -> Vec<Finished> {
        core::mem::take(&mut self.finished)
    }

    /// Whether connections have finished since then.
    #[must_use]
    pub fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Finishes all connections, at the end of the capture.
    pub fn finish(&mut self) {
        self.finished.reserve_exact(self.held());
        (self.warm, self.cold) = (HashTable::new(), HashTable::new());
        for slot in 0..self.slots.len() as u32 {
            self.end(slot);
        }
        self.restart();
    }

    /// Like [`Analyzer::finish`], for many connections: returns them where they are frozen, with the number of the first
    /// packet of each.
    pub(crate) fn finish_shelved(&mut self) -> (impl Iterator<Item = (u64, Ticket)>, Shelf) {
        (self.warm, self.cold) = (HashTable::new(), HashTable::new());
        (self.open, self.closed) = (VecDeque::new(), VecDeque::new());
        for at in 0..self.hot.len() as u32 {
            if self.hot[at as usize].slot != NONE {
                self.shelve(at);
            }
        }
        let slots = core::mem::take(&mut self.slots).into_iter();
        let shelved = slots.filter_map(|slot| match slot.place {
            Place::Frozen(ticket) => Some((slot.first_packet, ticket)),
            Place::Hot(_) | Place::Free => None,
        });
        let shelf = core::mem::take(&mut self.shelf);
        self.restart();
        (shelved, shelf)
    }

    /// Makes it an analyser without connections, which keeps its counts.
    fn restart(&mut self) {
        let finished = core::mem::take(&mut self.finished);
        *self = Analyzer {
            finished,
            connections: self.connections,
            file: self.file,
            limits: self.limits,
            ..Analyzer::new(self.config)
        };
    }
}
