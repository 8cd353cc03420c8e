//! TCP connections of a mapping beyond its first one, and remote addresses that a mapping has sent to.
//!
//! RFC 7857 section 2 follows the state of each connection, while a mapping serves all connections of an inside endpoint
//! (endpoint-independent mapping). Nearly every mapping of TCP has one connection, because a client takes a new port for
//! each; that one is in the mapping itself. The others are here, by mapping and remote endpoint. With address-dependent
//! filtering, remote addresses are here too, with port 0 and without a timer: they stay as long as the mapping.

use crate::pool::NONE;
use crate::table::{Table, hash};
use crate::tcp::State;
use crate::wheel::Wheel;

/// A connection, or a remote address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Session {
    pub(crate) mapping: u32,
    pub(crate) remote: u32,
    pub(crate) port: u16,
    /// `Closed` for a remote address.
    pub(crate) state: State,
    pub(crate) last: u32,
    /// The mapping's next one; the next free place, if this one is free.
    pub(crate) next: u32,
    before: u32,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Sessions {
    records: Vec<Session>,
    free: u32,
    len: u32,
    max: u32,
    table: Table,
    pub(crate) timers: Wheel,
    seed: [u64; 2],
}

impl Sessions {
    pub(crate) fn new(max: u32, seed: [u64; 2]) -> Self {
        Self {
            records: Vec::with_capacity(max as usize),
            free: NONE,
            len: 0,
            max,
            table: Table::new(max as usize),
            timers: Wheel::new(max as usize),
            seed,
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    fn hash(&self, mapping: u32, remote: u32, port: u16) -> u32 {
        hash(
            self.seed,
            u64::from(mapping),
            u64::from(remote) << 16 | u64::from(port),
        )
    }

    #[inline]
    pub(crate) fn find(&self, mapping: u32, remote: u32, port: u16) -> Option<u32> {
        self.table.find(self.hash(mapping, remote, port), |at| {
            let one = &self.records[at as usize];
            one.mapping == mapping && one.remote == remote && one.port == port
        })
    }

    pub(crate) fn get(&self, at: u32) -> &Session {
        &self.records[at as usize]
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> &mut Session {
        &mut self.records[at as usize]
    }

    /// Adds one at the head of the mapping's list, whose head is `first`; `None` if the table is full. The caller sets the
    /// head to the result.
    pub(crate) fn insert(
        &mut self,
        mapping: u32,
        first: u32,
        (remote, port): (u32, u16),
        state: State,
        last: u32,
    ) -> Option<u32> {
        if self.len == self.max {
            return None;
        }
        let one = Session {
            mapping,
            remote,
            port,
            state,
            last,
            next: first,
            before: NONE,
        };
        let at = match self.free {
            NONE => {
                self.records.push(one);
                self.records.len() as u32 - 1
            }
            at => {
                self.free = core::mem::replace(&mut self.records[at as usize], one).next;
                at
            }
        };
        if first != NONE {
            self.records[first as usize].before = at;
        }
        self.table.insert(self.hash(mapping, remote, port), at);
        self.len += 1;
        Some(at)
    }

    /// Removes one. Returns the mapping's new head, if it was the head.
    pub(crate) fn remove(&mut self, at: u32) -> Option<u32> {
        let one = self.records[at as usize];
        self.table
            .remove(self.hash(one.mapping, one.remote, one.port), at);
        self.timers.disarm(at);
        if one.next != NONE {
            self.records[one.next as usize].before = one.before;
        }
        if one.before != NONE {
            self.records[one.before as usize].next = one.next;
        }
        self.records[at as usize].next = self.free;
        self.records[at as usize].mapping = NONE;
        self.free = at;
        self.len -= 1;
        (one.before == NONE).then_some(one.next)
    }

    /// The sessions of a mapping, from its head.
    pub(crate) fn list(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let one = (first != NONE).then_some(first);
        core::iter::successors(one, |&at| {
            let next = self.records[at as usize].next;
            (next != NONE).then_some(next)
        })
    }
}
