//! The lanes of a joiner, found by the addresses of their flows.

use super::lane::Lane;
use super::packet::{Addresses, Flow};

/// The most lanes: one bit each.
pub(super) const LANES_MAX: usize = 64;
/// Chains of lanes, by a hash of the addresses.
const CHAINS: usize = 128;
/// The end of a chain.
const NONE: u8 = u8::MAX;

/// Lanes, each free or with the packet of one flow.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// A bit for each lane that has a packet.
    used: u64,
    /// The first lane of each chain, and the next lane after each lane.
    heads: [u8; CHAINS],
    next: [u8; LANES_MAX],
    /// The lane that was given up last when all were in use.
    victim: usize,
}

impl Lanes {
    pub(super) fn new(count: usize) -> Self {
        let count = count.clamp(1, LANES_MAX);
        Self {
            lanes: (0..count).map(|_| Lane::new()).collect(),
            used: 0,
            heads: [NONE; CHAINS],
            next: [NONE; LANES_MAX],
            victim: 0,
        }
    }

    pub(super) fn at(&mut self, lane: usize) -> &mut Lane {
        &mut self.lanes[lane]
    }

    /// The lane of a flow.
    #[inline]
    pub(super) fn find(&self, flow: &Flow) -> Option<usize> {
        self.in_chain(flow.addresses.hash(), |lane| lane.flow() == flow)
    }

    /// A lane of a flow between these addresses.
    #[inline]
    pub(super) fn find_between(&self, addresses: Addresses) -> Option<usize> {
        self.in_chain(addresses.hash(), |lane| lane.flow().addresses == addresses)
    }

    #[inline]
    fn in_chain(&self, hash: u64, is_meant: impl Fn(&Lane) -> bool) -> Option<usize> {
        let mut at = self.heads[chain(hash)];
        while at != NONE {
            if is_meant(&self.lanes[usize::from(at)]) {
                return Some(at.into());
            }
            at = self.next[usize::from(at)];
        }
        None
    }

    /// The lane for a new flow: a free one, or else the one that had its turn longest ago, still with its packet.
    pub(super) fn choose(&mut self) -> usize {
        let free = (!self.used).trailing_zeros() as usize;
        if free < self.lanes.len() {
            return free;
        }
        self.victim = (self.victim + 1) % self.lanes.len();
        self.victim
    }

    pub(super) fn is_used(&self, lane: usize) -> bool {
        self.used >> lane & 1 == 1
    }

    /// Marks a lane as used, by the flow that it has now.
    #[inline]
    pub(super) fn enter(&mut self, lane: usize) {
        let head = &mut self.heads[chain(self.lanes[lane].flow().addresses.hash())];
        self.next[lane] = *head;
        *head = lane as u8;
        self.used |= 1 << lane;
    }

    /// Frees a lane.
    pub(super) fn leave(&mut self, lane: usize) {
        let after = self.next[lane];
        let head = &mut self.heads[chain(self.lanes[lane].flow().addresses.hash())];
        if usize::from(*head) == lane {
            *head = after;
        } else {
            let mut at = usize::from(*head);
            while usize::from(self.next[at]) != lane {
                at = self.next[at].into();
            }
            self.next[at] = after;
        }
        self.used &= !(1 << lane);
    }

    /// Frees all lanes, and calls `emit` with each that was used.
    pub(super) fn drain(&mut self, mut emit: impl FnMut(&mut Lane)) {
        let mut used = std::mem::take(&mut self.used);
        while used != 0 {
            let lane = &mut self.lanes[used.trailing_zeros() as usize];
            used &= used - 1;
            self.heads[chain(lane.flow().addresses.hash())] = NONE;
            emit(lane);
        }
    }
}

/// The chain of a hash, from its upper bits: those depend on all bits of the addresses.
#[inline]
fn chain(hash: u64) -> usize {
    (hash >> (64 - CHAINS.trailing_zeros())) as usize
}
