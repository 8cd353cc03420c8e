//! The books of a discipline with children: the backlog below it, and what was sent and dropped.

use base::Instant;

use crate::discipline::{Backlog, Discipline, Statistics};
use crate::packet::{Id, Pool, Reason};

/// The backlog of all children together, and the statistics of the discipline itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Account {
    pub(crate) backlog: Backlog,
    pub(crate) statistics: Statistics,
}

impl Account {
    /// Gives a packet to a child; returns whether the child took it.
    pub(crate) fn enqueue(
        &mut self,
        child: &mut dyn Discipline,
        pool: &mut Pool,
        id: Id,
        now: Instant,
    ) -> bool {
        let before = self.come(child, pool, id);
        let taken = child.enqueue(pool, id, now);
        self.count_lost(before, child.backlog());
        taken
    }

    /// Gives a packet back to a child.
    pub(crate) fn restore(
        &mut self,
        child: &mut dyn Discipline,
        pool: &mut Pool,
        id: Id,
        now: Instant,
    ) -> bool {
        let before = self.come(child, pool, id);
        let taken = child.restore(pool, id, now);
        self.count_lost(before, child.backlog());
        taken
    }

    /// Takes a packet out of a child. It counts as waiting until [`Account::send`].
    pub(crate) fn dequeue(
        &mut self,
        child: &mut dyn Discipline,
        pool: &mut Pool,
        now: Instant,
    ) -> Option<Id> {
        let mut before = child.backlog();
        let id = child.dequeue(pool, now);
        if let Some(id) = id {
            before.remove(pool.length(id));
        }
        self.count_lost(before, child.backlog());
        id
    }

    /// A packet leaves.
    pub(crate) fn send(&mut self, length: u32) {
        self.backlog.remove(length);
        self.statistics.count_sent(length);
    }

    /// Discards a packet that belongs to no class.
    pub(crate) fn discard(&mut self, pool: &mut Pool, id: Id) {
        self.statistics.dropped += 1;
        pool.discard(id, Reason::Unclassified);
    }

    /// Counts a packet in; returns the backlog that the child has if it keeps everything.
    fn come(&mut self, child: &dyn Discipline, pool: &Pool, id: Id) -> Backlog {
        let length = pool.length(id);
        self.backlog.add(length);
        let mut expected = child.backlog();
        expected.add(length);
        expected
    }

    fn count_lost(&mut self, expected: Backlog, is: Backlog) {
        let packets = expected.packets - is.packets;
        self.statistics.dropped += u64::from(packets);
        self.backlog.packets -= packets;
        self.backlog.bytes -= expected.bytes - is.bytes;
    }
}
