//! A host and a flow, as the tables store them.

use super::heaviest::{Heaviest, Weighed};
use super::turns::{Linked, NONE, Turns};
use crate::codel::control::{Control, Waiting};
use crate::packet::{Chain, Id, Pool};

/// The key of a host: the hash of its address under two secrets, or the entry shared by hosts beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostKey {
    One(u64, u64),
    Rest,
}

impl HostKey {
    pub(super) fn hash(self) -> u64 {
        match self {
            HostKey::One(first, _) => first,
            HostKey::Rest => 0,
        }
    }
}

/// A flow's packets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    chain: Chain,
    bytes: u64,
}

impl Line {
    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool, id: Id, length: u32) {
        self.bytes += u64::from(length);
        self.chain.push(pool, id);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// Bytes on the line of its packets.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Waiting for Line {
    #[inline]
    fn pop(&mut self, pool: &Pool) -> Option<Id> {
        let id = self.chain.pop(pool)?;
        self.bytes -= u64::from(pool.length(id));
        Some(id)
    }

    #[inline]
    fn bytes_behind(&self) -> u64 {
        self.bytes
    }
}

/// A flow that has packets, or had some a moment ago: one cache line. With thousands of flows, a packet's cost is mostly
/// that of the lines it reads.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Flow {
    pub(super) hash: u64,
    pub(super) line: Line,
    pub(super) deficit: i64,
    pub(super) control: Control,
    pub(super) host: u32,
    /// The next flow in its ring.
    pub(super) next: u32,
    bound: u64,
}

const _: () = assert!(size_of::<Flow>() == 64);

impl Flow {
    /// An empty flow of a host, in no ring.
    pub(super) fn new(hash: u64, host: u32) -> Self {
        Self {
            hash,
            line: Line::default(),
            deficit: 0,
            control: Control::default(),
            host,
            next: NONE,
            bound: 0,
        }
    }
}

/// A host that has flows.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) key: HostKey,
    pub(super) hash: u64,
    pub(super) turns: Turns,
    pub(super) deficit: i64,
    pub(super) bytes: u64,
    pub(super) next: u32,
    bound: u64,
    /// The flow that further flows of the host share. A flow in it stays there while it exists, so that none of its
    /// packets overtakes another.
    pub(super) shared: u32,
    /// Its flows by size, including idle ones.
    pub(super) flows: Heaviest,
    /// Whether it is in a ring.
    pub(super) has_turns: bool,
}

impl Host {
    pub(super) fn new(key: HostKey) -> Self {
        Self {
            key,
            hash: key.hash(),
            turns: Turns::default(),
            deficit: 0,
            bytes: 0,
            next: NONE,
            bound: 0,
            shared: NONE,
            flows: Heaviest::default(),
            has_turns: false,
        }
    }
}

impl Linked for Flow {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Linked for Host {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Weighed for Flow {
    #[inline]
    fn size(&self) -> u64 {
        self.line.bytes
    }

    #[inline]
    fn bound(&mut self) -> &mut u64 {
        &mut self.bound
    }
}

impl Weighed for Host {
    #[inline]
    fn size(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn bound(&mut self) -> &mut u64 {
        &mut self.bound
    }
}
