//! The traits of queue disciplines and classifiers, and the counters that they show.

use core::fmt::Debug;

use base::Instant;
use wire::flow::Keys;

use crate::classify::{Bands, Filter, Hash, Map};
use crate::packet::{Id, Pool};

pub use crate::packet::Backlog;

/// Counters of a queue, under the names of `tc -s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Bytes of the packets sent ("Sent ... bytes").
    pub sent_bytes: u64,
    /// Packets sent ("... pkt").
    pub sent_packets: u64,
    /// Packets that it or a queue below it discarded ("dropped").
    pub dropped: u64,
    /// Times that a packet had to wait for its rate ("overlimits").
    pub overlimits: u64,
    /// Packets marked instead of discarded ("ecn_mark").
    pub ecn_mark: u64,
}

impl Statistics {
    /// Counts a packet of `length` bytes as sent.
    #[inline]
    pub fn count_sent(&mut self, length: u32) {
        self.sent_packets += 1;
        self.sent_bytes += u64::from(length);
    }
}

/// One class as `tc -s class show` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its handle: "1:10".
    pub name: String,
    /// Its parent class's handle; `None` right below the discipline.
    pub parent: Option<String>,
    /// Its options as tc prints them: "prio 1 rate 2Mbit ceil 3Mbit".
    pub options: String,
    /// Counters of its packets.
    pub statistics: Statistics,
    /// The backlog in it and below it.
    pub backlog: Backlog,
    /// Counters of its kind, by tc's names: `("borrowed", 7)`; token levels are in bytes.
    pub details: Vec<(&'static str, i64)>,
}

/// Chooses the class of a packet.
pub trait Classify: Debug + Send {
    /// The class as tc numbers it: the minor number in the lower 16 bits, the major number above. `None` if the
    /// classifier has no class for such packets.
    fn class(&self, keys: &Keys) -> Option<u32>;
}

impl Classify for Filter {
    fn class(&self, keys: &Keys) -> Option<u32> {
        Filter::class(self, keys)
    }
}

impl Classify for Map {
    fn class(&self, keys: &Keys) -> Option<u32> {
        Some(Map::class(self, keys))
    }
}

impl Classify for Hash {
    fn class(&self, keys: &Keys) -> Option<u32> {
        Some(Hash::class(self, keys))
    }
}

impl Classify for Bands {
    /// Band 0 is class 1, as in tc's `prio`.
    fn class(&self, keys: &Keys) -> Option<u32> {
        Some(1 + u32::from(self.band(keys.traffic_class)))
    }
}

/// A queue discipline: one queue, or a tree of them.
///
/// A discipline that discards a packet, the new one or another, hands it to [`Pool::discard`]. A parent compares the
/// child's [`Discipline::backlog`] before and after a call to learn how many packets the child dropped.
pub trait Discipline: Debug + Send {
    /// Its name, as in `tc`: `fq_codel`.
    fn kind(&self) -> &'static str;

    /// Takes a packet or discards it; returns whether it took this packet.
    fn enqueue(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool;

    /// Returns the packet that leaves next, if one may leave now. The caller must [`Pool::take`] it.
    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id>;

    /// When to call [`Discipline::dequeue`]. `None` if it is empty; `now` or earlier if a packet may leave at once;
    /// later if a rate holds all packets back.
    fn next_time(&self, now: Instant) -> Option<Instant>;

    /// The backlog in it and below it.
    fn backlog(&self) -> Backlog;

    /// Its counters.
    fn statistics(&self) -> Statistics;

    /// Appends all its packets to `into` and forgets them, without counting them as sent or dropped.
    /// [`Tree::change`](crate::tree::Tree::change) uses this and puts them back in the order of [`Pool::sequence`].
    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>);

    /// Takes back a packet that [`Discipline::drain`] returned, oldest first. It works as [`Discipline::enqueue`],
    /// but no limit discards a packet. A discipline with a limit overrides this.
    fn restore(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        self.enqueue(pool, id, now)
    }

    /// The levels of its token buckets at `now`, for its successor: the class's number, then the bytes of its rate
    /// bucket and of its ceiling bucket. Negative levels are debts.
    fn levels(&self, _now: Instant) -> Vec<(u16, i64, i64)> {
        Vec::new()
    }

    /// Its classes, including those without a discipline of their own.
    fn classes(&self) -> Vec<Class> {
        Vec::new()
    }

    /// The disciplines right below it, each with its class's name ("1:10") if it has classes.
    fn children(&self) -> Vec<(String, &dyn Discipline)> {
        Vec::new()
    }

    /// Counters of its kind, by the names of `tc -s`: `("new_flow_count", 7)`.
    fn details(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
