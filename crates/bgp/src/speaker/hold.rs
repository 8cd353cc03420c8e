//! Dynamic peers that are held back after their session: in Idle, so that their connections are refused.
//!
//! Without this a dynamic peer is forgotten with its session, and the same host is a new peer at once. Held peers do
//! not use the places of their network, so that they keep no other host out; they have a limit of their own. Beyond
//! that limit, a held peer keeps its place in its network, so the table of peers is limited in any case.
//!
//! Implements parts of RFC 4271, sections 6.7 and 8.1.2.

use base::Instant;

use super::Speaker;
use crate::peer::{Origin, Peer};

impl Speaker {
    /// Holds a dynamic peer back from the end of its session until it is [released](Self::release). Configured peers
    /// stay in the table in any case.
    pub(super) fn hold(&mut self, index: u32) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        let Origin::Dynamic(at) = peer.origin else {
            return;
        };
        peer.is_held = true;
        if !peer.is_held_apart && self.held < self.limits.held_peers_max {
            peer.is_held_apart = true;
            self.held += 1;
            if let Some(network) = self.networks.get_mut(at as usize) {
                network.peers = network.peers.saturating_sub(1);
            }
        }
    }

    /// Ends the hold of a peer without a connection: it may connect again. It is forgotten, unless it has stale routes.
    pub(super) fn release(&mut self, index: u32, now: Instant) {
        let Some(peer) = self.peers.get(index) else {
            return;
        };
        if peer.stale.is_none() {
            return self.forget(index);
        }
        self.begin(index, now);
    }

    /// Counts a held peer as one of its network again.
    pub(super) fn end_hold(&mut self, index: u32) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.is_held = false;
        if core::mem::take(&mut peer.is_held_apart) {
            self.held -= 1;
            if let Origin::Dynamic(at) = peer.origin
                && let Some(network) = self.networks.get_mut(at as usize)
            {
                network.peers += 1;
            }
        }
    }

    /// Gives back the place that a removed dynamic peer had.
    pub(super) fn give_place_back(&mut self, peer: &Peer) {
        if peer.is_held_apart {
            self.held -= 1;
        } else if let Origin::Dynamic(at) = peer.origin
            && let Some(network) = self.networks.get_mut(at as usize)
        {
            network.peers = network.peers.saturating_sub(1);
        }
    }
}
