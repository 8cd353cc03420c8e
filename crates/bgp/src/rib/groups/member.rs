//! What the groups know of each peer: its place in the group of each family, and what it is still to be sent.

use wire::bgp::{FAMILIES, FamilyId};

use super::queue::Cursor;
use crate::rib::dirty::{Dirty, Item};

/// What a member is still to be sent apart from the group's queue.
#[derive(Debug, Default)]
pub(crate) struct Resend {
    /// The slots that it is to be sent.
    pub(crate) dirty: Dirty,
    /// Slots that were taken out of `dirty`. Those from `at` on are not sent yet.
    pub(crate) window: Vec<Item>,
    pub(crate) at: usize,
    /// For a member that started with no routes: the slots that it was sent. Other members may know of any slot.
    pub(crate) sent: Option<Dirty>,
    /// Whether it is an enhanced refresh, whose end is marked (RFC 7313).
    pub(crate) is_marked: bool,
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

    pub(crate) fn set_group(&mut self, group: u32) {
        self.group = group + 1;
    }
}

/// A peer as the groups see it.
#[derive(Debug, Default)]
struct Peer {
    is_open: bool,
    /// Whether it waits in the queue of peers that have something to be sent.
    is_ready: bool,
    members: [Member; FAMILIES],
}

/// All peers by number.
#[derive(Debug, Default)]
pub(crate) struct Members {
    list: Vec<Option<Box<Peer>>>,
}

impl Members {
    /// Adds a peer, which is not in a group yet.
    pub(crate) fn open(&mut self, peer: u32) {
        let at = peer as usize;
        if self.list.len() <= at {
            self.list.resize_with(at + 1, || None);
        }
        self.list[at].get_or_insert_default().is_open = true;
    }

    /// Removes a peer that is not in a group any more.
    pub(crate) fn close(&mut self, peer: u32) {
        if let Some(place) = self.list.get_mut(peer as usize) {
            match place {
                // A peer that is in the ready queue stays, so that it is not queued twice if it is back before its
                // turn.
                Some(peer) if peer.is_ready => peer.is_open = false,
                _ => *place = None,
            }
        }
    }

    #[inline]
    fn peer(&mut self, peer: u32) -> Option<&mut Peer> {
        self.list.get_mut(peer as usize)?.as_deref_mut()
    }

    /// A peer's place in its group of a family.
    #[inline]
    pub(crate) fn get(&self, peer: u32, family: FamilyId) -> Option<&Member> {
        let peer = self.list.get(peer as usize)?.as_deref()?;
        Some(&peer.members[family.index()])
    }

    /// A peer's place in its group of a family.
    #[inline]
    pub(crate) fn get_mut(&mut self, peer: u32, family: FamilyId) -> Option<&mut Member> {
        Some(&mut self.peer(peer)?.members[family.index()])
    }

    /// The peers that have a session.
    pub(crate) fn open_peers(&self) -> impl Iterator<Item = u32> {
        let peers = (0..).zip(&self.list);
        peers.filter_map(|(number, peer)| peer.as_ref()?.is_open.then_some(number))
    }

    /// Marks a peer that has something to be sent. Returns whether it was not marked before: then the caller queues it.
    pub(crate) fn set_ready(&mut self, peer: u32) -> bool {
        self.peer(peer)
            .is_some_and(|peer| !std::mem::replace(&mut peer.is_ready, true))
    }

    /// Clears the mark of a peer. Returns whether the peer has a session.
    pub(crate) fn take_ready(&mut self, peer: u32) -> bool {
        let Some(state) = self.peer(peer) else {
            return false;
        };
        state.is_ready = false;
        let is_open = state.is_open;
        if !is_open {
            self.list[peer as usize] = None;
        }
        is_open
    }

    pub(crate) fn memory(&self) -> usize {
        self.list.capacity() * 8 + self.list.iter().flatten().count() * size_of::<Peer>()
    }
}
