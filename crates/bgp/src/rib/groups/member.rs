//! Each peer's state in the groups: its place in the group of each family, and what is still to be sent to it.

use wire::bgp::{FAMILIES, FamilyId};

use super::queue::Cursor;
use crate::rib::dirty::{Dirty, Item};
use crate::rib::number::NONE;

/// What a member is still to be sent apart from the group's queue.
#[derive(Debug, Default)]
pub(crate) struct Resend {
    /// The slots that it is to be sent.
    pub(crate) dirty: Dirty,
    /// Slots that were taken out of `dirty`. Those from `at` on are not sent yet.
    pub(crate) window: Vec<Item>,
    pub(crate) at: usize,
    /// The slots that the member was sent, if they are known: from the start of a session or a refresh on. Only such
    /// slots are withdrawn. A member that fell behind may know of any slot.
    pub(crate) sent: Option<Dirty>,
    /// Whether it is an enhanced refresh, whose end is marked (RFC 7313).
    pub(crate) is_marked: bool,
}

impl Resend {
    /// Whether the member is still to be sent a slot that the group has not advertised any more. Items of the window
    /// that name a path are out of date then: the slot is in `dirty` again, or nobody waits for it.
    pub(crate) fn refers_to(&self, slot: u32) -> bool {
        let withdrawal = Item { path: NONE, slot };
        self.dirty.contains(slot) || self.window[self.at..].binary_search(&withdrawal).is_ok()
    }
}

/// A peer's place in its group of one family.
#[derive(Debug, Default)]
pub(crate) struct Member {
    /// The group's number plus one, or 0.
    group: u32,
    /// How many of the group's routes came from this peer, and so are not sent to it.
    pub(crate) own: u32,
    /// Its position in the group's queue, unless it has a `resend`.
    pub(crate) cursor: Cursor,
    pub(crate) resend: Option<Box<Resend>>,
    /// Whether End-of-RIB is still to be sent after the first dump.
    pub(crate) owes_end: bool,
    /// Whether a refresh waits until the queue is read.
    pub(crate) wants_refresh: bool,
    /// Whether the end of a refresh is to be marked after the queue is read.
    pub(crate) owes_refresh_end: bool,
}

impl Member {
    pub(crate) fn of(group: u32) -> Self {
        Member {
            group: group + 1,
            ..Member::default()
        }
    }

    #[inline]
    pub(crate) fn group(&self) -> Option<u32> {
        self.group.checked_sub(1)
    }

    /// Whether something is to be sent after the queue is read.
    pub(crate) fn owes_anything(&self) -> bool {
        self.owes_end || self.owes_refresh_end || self.wants_refresh
    }

    pub(crate) fn set_group(&mut self, group: u32) {
        self.group = group + 1;
    }
}

/// Whether a peer has a session, and waits to be served.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    is_open: bool,
    /// Whether it is queued to be served.
    is_ready: bool,
}

/// All peers by number.
#[derive(Debug, Default)]
pub(crate) struct Members {
    members: Vec<[Member; FAMILIES]>,
    states: Vec<State>,
}

impl Members {
    /// Adds a peer, which is not in a group yet.
    pub(crate) fn open(&mut self, peer: u32) {
        let len = peer as usize + 1;
        if self.members.len() < len {
            // By a quarter rather than double: with thousands of ribs in one process that would mostly be unused.
            let more = (len - self.members.len()).max(self.members.len() / 4);
            if self.members.capacity() < len {
                self.members.reserve_exact(more);
                self.states.reserve_exact(more);
            }
            self.members.resize_with(len, Default::default);
            self.states.resize_with(len, State::default);
        }
        self.states[peer as usize].is_open = true;
    }

    /// Removes a peer that is not in a group any more. If it waits to be served, it keeps its turn, so that it does
    /// not get a second one if it is back before.
    pub(crate) fn close(&mut self, peer: u32) {
        if let Some(state) = self.states.get_mut(peer as usize) {
            state.is_open = false;
        }
    }

    /// A peer's place in its group of a family.
    #[inline]
    pub(crate) fn get(&self, peer: u32, family: FamilyId) -> Option<&Member> {
        Some(&self.members.get(peer as usize)?[family.index()])
    }

    /// A peer's place in its group of a family.
    #[inline]
    pub(crate) fn get_mut(&mut self, peer: u32, family: FamilyId) -> Option<&mut Member> {
        Some(&mut self.members.get_mut(peer as usize)?[family.index()])
    }

    /// The peers that have a session.
    pub(crate) fn open_peers(&self) -> impl Iterator<Item = u32> {
        let states = (0..).zip(&self.states);
        states.filter_map(|(number, state)| state.is_open.then_some(number))
    }

    /// Marks a peer that has something to be sent. Returns whether it was not marked before: then the caller queues
    /// it.
    pub(crate) fn set_ready(&mut self, peer: u32) -> bool {
        let state = self.states.get_mut(peer as usize);
        state.is_some_and(|state| !std::mem::replace(&mut state.is_ready, true))
    }

    /// Clears the mark of a peer. Returns whether the peer has a session.
    pub(crate) fn take_ready(&mut self, peer: u32) -> bool {
        let state = self.states.get_mut(peer as usize);
        state.is_some_and(|state| {
            state.is_ready = false;
            state.is_open
        })
    }

    pub(crate) fn memory(&self) -> usize {
        let members = self.members.capacity() * size_of::<[Member; FAMILIES]>();
        members + self.states.capacity() * size_of::<State>()
    }
}
