//! What stays of dynamic peers that are gone: those that sent a malformed UPDATE can be looked at until the host is a
//! peer again, or until as many others are gone.

use core::net::IpAddr;

use base::Instant;

use super::Speaker;
use super::views::NeighborView;
use crate::fsm::State;
use crate::peer::{Peer, PeerId, Waits};

/// The most peers that stay. Each has at most 4 KiB of a malformed UPDATE.
const PAST_MAX: usize = 64;
/// The number of no peer.
const NOBODY: PeerId = PeerId(u32::MAX);

impl Speaker {
    /// A dynamic peer that is gone: the last one with this address, if it sent a malformed UPDATE.
    #[must_use]
    pub fn past_neighbor(&self, remote: IpAddr, now: Instant) -> Option<NeighborView> {
        let past = self.past.iter().find(|past| past.remote == remote)?;
        Some(self.view(NOBODY, past, now))
    }

    /// Stores a dynamic peer that is gone.
    pub(super) fn remember(&mut self, mut peer: Peer) {
        if peer.malformed.is_none() {
            return;
        }
        peer.state = State::Idle;
        peer.waits = Waits::Nothing;
        self.past.retain(|past| past.remote != peer.remote);
        if self.past.len() >= PAST_MAX {
            self.past.pop_front();
        }
        self.past.push_back(peer);
    }

    /// Gives a dynamic peer what is stored of the last one with its address.
    pub(super) fn recall(&mut self, peer: &mut Peer) {
        let mut all = self.past.iter();
        let Some(at) = all.position(|past| past.remote == peer.remote) else {
            return;
        };
        if let Some(past) = self.past.remove(at) {
            peer.counts.malformed = past.counts.malformed;
            peer.malformed = past.malformed;
            peer.last_end = past.last_end;
        }
    }
}
