//! What every queue discipline can do.

use core::fmt::Debug;

use base::Instant;
use wire::flow::Keys;

use crate::classify::{Bands, Filter, Hash, Map};
use crate::packet::{Id, Pool};

pub use crate::packet::Backlog;

/// What a queue has done, under the names of `tc -s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Octets of the packets that left it ("Sent ... bytes").
    pub sent_bytes: u64,
    /// Packets that left it ("... pkt").
    pub sent_packets: u64,
    /// Packets it or a queue below it discarded ("dropped").
    pub dropped: u64,
    /// Times that a packet had to wait for its rate ("overlimits").
    pub overlimits: u64,
    /// Packets marked instead of discarded ("ecn_mark").
    pub ecn_mark: u64,
}

impl Statistics {
    /// Counts a packet of `length` octets that leaves.
    #[inline]
    pub fn count_sent(&mut self, length: u32) {
        self.sent_packets += 1;
        self.sent_bytes += u64::from(length);
    }
}

/// What `tc -s class show` shows of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its handle: "1:10".
    pub name: String,
    /// Its parent class's handle; `None` right below the discipline.
    pub parent: Option<String>,
    /// Its options as text: "prio 1 rate 2Mbit ceil 3Mbit".
    pub options: String,
    /// What went through it.
    pub statistics: Statistics,
    /// What waits in it and below it.
    pub backlog: Backlog,
    /// Numbers of its own, by tc's names: `("borrowed", 7)`; token levels are octets.
    pub details: Vec<(&'static str, i64)>,
}

/// Chooses the class of a packet.
pub trait Classify: Debug + Send {
    /// The class as tc names it: in its lower 16 bits the number behind the colon, the major number above. `None` when
    /// nothing is said of such packets.
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
/// A discipline that discards a packet, be it the new one or another, hands it to [`Pool::discard`]. A parent learns
/// what its child lost from the child's [`Discipline::backlog`], before and after.
pub trait Discipline: Debug + Send {
    /// Its name as `tc` has it: `fq_codel`.
    fn kind(&self) -> &'static str;

    /// Takes a packet, or discards it; says whether this packet was taken.
    fn enqueue(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool;

    /// Gives the packet that leaves next, if one may leave now. The caller is to [`Pool::take`] it.
    fn dequeue(&mut self, pool: &mut Pool, now: Instant) -> Option<Id>;

    /// When [`Discipline::dequeue`] is worth calling: `None` when it is empty, `now` or earlier when a packet may leave
    /// at once, later when all that waits is held back by a rate.
    fn next_time(&self, now: Instant) -> Option<Instant>;

    /// What waits in it and below it.
    fn backlog(&self) -> Backlog;

    /// What it has done.
    fn statistics(&self) -> Statistics;

    /// Appends all that waits to `into` and forgets it, without counting it as sent or dropped: the tree changes, and
    /// who changes it puts them back, by [`Pool::sequence`].
    fn drain(&mut self, pool: &mut Pool, into: &mut Vec<Id>);

    /// Takes back a packet that [`Discipline::drain`] gave, the oldest first: as [`Discipline::enqueue`], but no limit
    /// discards it or another. A discipline that has a limit overrides this.
    fn restore(&mut self, pool: &mut Pool, id: Id, now: Instant) -> bool {
        self.enqueue(pool, id, now)
    }

    /// What its token buckets hold at `now`, for who takes its place: a class's number, and the octets of its rate and
    /// of its ceiling, negative when it owes.
    fn levels(&self, _now: Instant) -> Vec<(u16, i64, i64)> {
        Vec::new()
    }

    /// The classes it has, those without a discipline of their own too.
    fn classes(&self) -> Vec<Class> {
        Vec::new()
    }

    /// The disciplines right below it, with their class's name ("1:10") where it has classes.
    fn children(&self) -> Vec<(String, &dyn Discipline)> {
        Vec::new()
    }

    /// Numbers of its own that `tc -s` shows for its kind, by tc's names: `("new_flow_count", 7)`.
    fn details(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
