//! The flows of a point, each in one direction, and which flow at the other point is the same.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::pending::{List, NONE};
use crate::clock::Way;
use crate::packet::FlowKey;
use crate::track::Track;

/// Flows of a point that are kept at most. Idle flows leave first.
const FLOWS_MAX: usize = 1 << 20;

/// Flows with which idle ones are first looked for.
const SWEEP_MIN: usize = 1 << 16;

/// Recent matched packets of a flow that copies are recognised by.
const RECENT: usize = 8;

/// Whether the path keeps a field of a flow's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kept {
    #[default]
    Unknown,
    Yes,
    No,
}

impl Kept {
    /// Notes whether the field of a matched packet was the same.
    pub(super) fn note(&mut self, same: bool) {
        if *self == Kept::Unknown || !same {
            *self = if same { Kept::Yes } else { Kept::No };
        }
    }
}

/// Packets that left before their flow's counterpart was known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Early {
    pub(super) number: u64,
    pub(super) time: i64,
    pub(super) length: u32,
}

/// Packets by ranges of data: their starts and slots, at both points.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    pub(super) sets: [BTreeSet<(u64, u32)>; 2],
    pub(super) longest: [u32; 2],
    /// A sequence number and its value without wrapping.
    pub(super) reference: (u32, u64),
}

/// A flow at one point.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) key: FlowKey,
    pub(super) is_used: bool,
    /// The same flow at the other point.
    pub(super) mate: Option<u32>,
    /// The other direction at this point.
    pub(super) reverse: Option<u32>,
    /// This point's sequence numbers less A's.
    pub(super) shift: u32,
    pub(super) waiting: List,
    /// Latest packet, by the point's clock.
    pub(super) last_time: i64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Packets whose prints were kept.
    pub(super) printed: u32,
    /// Packets that left without counterpart before one was known.
    pub(super) early: Vec<Early>,
    pub(super) left_early: u64,
    /// A counterpart that needs a second print.
    pub(super) proposal: Option<(u32, u32, u64)>,
    pub(super) track: Track,
    recent: [(u64, i64); RECENT],
    next_recent: u8,
    /// Packets that look like an earlier one.
    alike: u64,
    /// Packets that such a packet looks like.
    repeated: u64,
    last_alike: u64,
    // The rest is of both points' flow, and kept in A's.
    pub(super) way: Option<Way>,
    pub(super) stamps: Kept,
    pub(super) ids: Kept,
    /// Difference of the last matched packet's times.
    pub(super) difference: Option<i64>,
    pub(super) pairs: u64,
    /// Highest numbers of matched packets, to find reordering.
    pub(super) highest: [u64; 2],
    pub(super) ranges: Option<Box<Ranges>>,
}

impl Flow {
    /// Notes a matched transmission.
    #[inline]
    pub(super) fn remember(&mut self, full: u64, time: i64) {
        self.recent[usize::from(self.next_recent)] = (full, time);
        self.next_recent = (self.next_recent + 1) % RECENT as u8;
    }

    /// Whether that transmission was matched within `span`.
    pub(super) fn is_recent(&self, full: u64, time: i64, span: i64) -> bool {
        let same = |recent: &(u64, i64)| {
            recent.0 == full && time.saturating_sub(recent.1).saturating_abs() <= span
        };
        self.recent.iter().any(same)
    }

    /// Notes a packet that looks like an earlier one, by its hash of everything.
    #[cold]
    pub(super) fn note_alike(&mut self, full: u64) {
        self.alike += 1;
        self.repeated += u64::from(self.last_alike != full);
        self.last_alike = full;
    }

    /// Whether most packets come twice, so that the capture and not the sender repeats them.
    pub(super) fn comes_twice(&self) -> bool {
        2 * self.repeated > self.packets.saturating_sub(self.alike)
    }
}

/// All flows of a point.
pub(super) struct Flows {
    list: Vec<Flow>,
    table: HashTable<u32>,
    free: Vec<u32>,
    hasher: foldhash::fast::FixedState,
    last: u32,
    sweep_at: usize,
    /// Flows that there were.
    pub(super) total: u64,
}

impl Flows {
    pub(super) fn new(seed: u64) -> Flows {
        Flows {
            list: Vec::new(),
            table: HashTable::new(),
            free: Vec::new(),
            hasher: foldhash::fast::FixedState::with_seed(seed),
            last: NONE,
            sweep_at: SWEEP_MIN,
            total: 0,
        }
    }

    /// The flow with that key, a new one if there is none; `None` if there is no room.
    #[inline]
    pub(super) fn find_or_add(&mut self, key: &FlowKey) -> Option<u32> {
        if let Some(last) = self.list.get(self.last as usize)
            && last.key == *key
            && last.is_used
        {
            return Some(self.last);
        }
        let hash = self.hasher.hash_one(key);
        let list = &self.list;
        let found = self.table.find(hash, |&at| list[at as usize].key == *key);
        self.last = match found {
            Some(&at) => at,
            None => self.add(key, hash)?,
        };
        Some(self.last)
    }

    pub(super) fn find(&self, key: &FlowKey) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        let found = self
            .table
            .find(hash, |&at| self.list[at as usize].key == *key);
        found.copied()
    }

    #[cold]
    fn add(&mut self, key: &FlowKey, hash: u64) -> Option<u32> {
        if self.free.is_empty() && self.list.len() >= FLOWS_MAX {
            return None;
        }
        let reverse = self.find(&key.reversed());
        let flow = Flow {
            key: *key,
            is_used: true,
            reverse,
            ..Flow::default()
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.list[at as usize] = flow;
                at
            }
            None => {
                self.list.push(flow);
                (self.list.len() - 1) as u32
            }
        };
        if let Some(reverse) = reverse {
            self.list[reverse as usize].reverse = Some(at);
        }
        let (list, hasher) = (&self.list, &self.hasher);
        self.table
            .insert_unique(hash, at, |&at| hasher.hash_one(list[at as usize].key));
        self.total += 1;
        Some(at)
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> &Flow {
        &self.list[at as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: u32) -> &mut Flow {
        &mut self.list[at as usize]
    }

    /// Whether idle flows should be looked for.
    pub(super) fn is_crowded(&self) -> bool {
        self.table.len() >= self.sweep_at
    }

    /// Idle flows have been looked for.
    pub(super) fn swept(&mut self) {
        self.sweep_at = (2 * self.table.len()).clamp(SWEEP_MIN, FLOWS_MAX);
    }

    /// The flows in use.
    pub(super) fn used(&self) -> impl Iterator<Item = (u32, &Flow)> {
        let flows = self.list.iter().enumerate();
        flows
            .filter(|(_, flow)| flow.is_used)
            .map(|(at, flow)| (at as u32, flow))
    }

    /// Removes a flow without waiting packets.
    pub(super) fn remove(&mut self, at: u32) {
        let flow = std::mem::take(&mut self.list[at as usize]);
        let hash = self.hasher.hash_one(flow.key);
        if let Ok(entry) = self.table.find_entry(hash, |&other| other == at) {
            entry.remove();
        }
        if let Some(reverse) = flow.reverse {
            self.list[reverse as usize].reverse = None;
        }
        self.free.push(at);
    }
}
