//! What operators do: start, stop, reset, refresh; peers that come and go with a new configuration.

use base::Instant;
use wire::bgp::{Families, Family, Refresh, RouteRefresh};

use super::Speaker;
use crate::config::{PeerConfig, SpeakerConfig};
use crate::end::CloseReason;
use crate::event::Event;
use crate::fsm::{self, State};
use crate::peer::{Origin, Peer, PeerId};
use crate::table::{ConnId, Flags};

/// What a new configuration changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reload {
    /// Peers that are new.
    pub added: u32,
    /// Peers that are gone.
    pub removed: u32,
    /// Peers whose sessions end, because what they agreed on has changed.
    pub replaced: u32,
    /// Peers that noticed nothing.
    pub kept: u32,
}

impl Speaker {
    /// Starts a peer that was stopped, is held back, or was not enabled.
    pub fn start_peer(&mut self, peer: PeerId, now: Instant) {
        self.latest = now;
        let Some(found) = self.peers.get_mut(peer.0) else {
            return;
        };
        found.doublings = 0;
        found.held = None;
        if found.main.is_none() && found.state == State::Idle {
            self.begin(peer.0, now);
        }
    }

    /// Stops a peer, and says why to its operator (RFC 9003). It stays in Idle.
    pub fn stop_peer(&mut self, peer: PeerId, text: &str, now: Instant) {
        self.latest = now;
        let Some(found) = self.peers.get_mut(peer.0) else {
            return;
        };
        found.is_started = false;
        self.end_all(peer.0, &CloseReason::Shutdown(text.into()), now);
    }

    /// Ends a peer's session, and starts it again.
    pub fn reset_peer(&mut self, peer: PeerId, text: &str, now: Instant) {
        self.latest = now;
        let Some(found) = self.peers.get_mut(peer.0).filter(|peer| peer.is_started) else {
            return;
        };
        let is_dynamic = matches!(found.origin, Origin::Dynamic(_));
        found.is_started = false;
        self.end_all(peer.0, &CloseReason::Reset(text.into()), now);
        if !is_dynamic {
            self.begin(peer.0, now);
        }
    }

    /// Stops everything, with a text for the peers' operators.
    pub fn stop(&mut self, text: &str, now: Instant) {
        let peers: Vec<u32> = self.peers.iter().map(|(index, _)| index).collect();
        for index in peers {
            self.stop_peer(PeerId(index), text, now);
        }
    }

    /// Ends both connections of a peer with one reason, by ManualStop.
    fn end_all(&mut self, index: u32, why: &CloseReason, now: Instant) {
        let event = fsm::Event::ManualStop;
        if let Some(second) = self.peers.get(index).and_then(|peer| peer.second) {
            self.run(index, Some(second), event, why.clone(), now);
        }
        let main = self.peers.get(index).and_then(|peer| peer.main);
        self.run(index, main, event, why.clone(), now);
        if let Some(peer) = self.peers.get_mut(index) {
            peer.waits = crate::peer::Waits::Nothing;
        }
    }

    /// Asks a peer for its routes again (RFC 2918). Says whether it was asked: it is Established and understands that.
    pub fn refresh_in(&mut self, peer: PeerId, families: Families, now: Instant) -> bool {
        self.latest = now;
        let Some((conn, agreed)) = self.session_of(peer) else {
            return false;
        };
        if !agreed.refresh {
            return false;
        }
        let wanted = families.and(agreed.families);
        let Some(found) = self.conns.get_mut(conn) else {
            return false;
        };
        for family in wanted.iter() {
            let message = RouteRefresh {
                family: family.into(),
                refresh: Refresh::Request,
            };
            message.emit(&mut found.output);
            if let Some(peer) = self.peers.get_mut(peer.0) {
                peer.counts.refreshes_out = peer.counts.refreshes_out.wrapping_add(1);
            }
        }
        self.want(conn, Flags::CONTROL);
        true
    }

    /// Sends a peer all our routes again. Says whether it is Established.
    pub fn refresh_out(&mut self, peer: PeerId, families: Families, now: Instant) -> bool {
        self.latest = now;
        let Some((_, agreed)) = self.session_of(peer) else {
            return false;
        };
        let wanted: Vec<Family> = families.and(agreed.families).iter().collect();
        for family in wanted {
            self.refresh_routes(peer.0, family, now);
        }
        true
    }

    fn session_of(&self, peer: PeerId) -> Option<(ConnId, &crate::negotiate::Agreed)> {
        let main = self.peers.get(peer.0)?.main?;
        let conn = self.conns.get(main)?;
        let agreed = conn.agreed.as_deref()?;
        (conn.state == State::Established).then_some((main, agreed))
    }

    /// Adds a peer, and starts it if it is enabled. `None` where the address has one already.
    pub fn add_peer(&mut self, config: PeerConfig, now: Instant) -> Option<PeerId> {
        self.latest = now;
        let enabled = config.settings.enabled;
        let index = self.insert_peer(config, now)?;
        if enabled {
            self.begin(index, now);
        }
        Some(PeerId(index))
    }

    /// Takes a peer out: its session ends, its routes go.
    pub fn remove_peer(&mut self, peer: PeerId, now: Instant) {
        self.remove(peer.0, &CloseReason::Deconfigured, now);
    }

    fn remove(&mut self, index: u32, why: &CloseReason, now: Instant) {
        self.latest = now;
        let Some(found) = self.peers.get_mut(index) else {
            return;
        };
        found.is_started = false;
        self.end_all(index, why, now);
        self.drop_stale(index, now);
        // A dynamic one has been forgotten with its connection.
        if self.peers.get(index).is_some() {
            self.forget(index);
        }
    }

    /// Takes a new configuration over. Sessions whose peers did not change go on; of those that did, they end.
    pub fn reload(&mut self, config: SpeakerConfig, now: Instant) -> Reload {
        let mut reload = Reload::default();
        let is_other = self.asn != config.asn || self.router_id != config.router_id;
        self.asn = config.asn;
        self.router_id = config.router_id;
        self.limits = config.limits;
        let olds: Vec<u32> = self.peers.iter().map(|(index, _)| index).collect();
        for index in olds {
            let Some(peer) = self.peers.get(index) else {
                continue;
            };
            let Peer { remote, origin, .. } = *peer;
            let news = config.peers.iter().find(|new| new.remote == remote);
            match (news, origin) {
                (Some(new), Origin::Configured) if peer.is_as(new) && !is_other => {
                    reload.kept += 1;
                    let name = new.name.clone();
                    if let Some(peer) = self.peers.get_mut(index) {
                        peer.name = name;
                    }
                }
                (Some(_), Origin::Configured | Origin::Dynamic(_)) => {
                    reload.replaced += 1;
                    self.remove(index, &CloseReason::ConfigurationChanged, now);
                }
                (None, Origin::Configured) => {
                    reload.removed += 1;
                    self.remove(index, &CloseReason::Deconfigured, now);
                }
                (None, Origin::Dynamic(at)) => {
                    let old = self
                        .networks
                        .get(at as usize)
                        .map(|network| &network.config);
                    let stays = old.is_some_and(|old| {
                        let same = |new: &crate::config::DynamicConfig| {
                            new.prefix == old.prefix
                                && new.remote_asn == old.remote_asn
                                && new.settings == old.settings
                        };
                        config.dynamic.iter().any(same)
                    });
                    if stays && !is_other {
                        reload.kept += 1;
                    } else {
                        reload.removed += 1;
                        self.remove(index, &CloseReason::Deconfigured, now);
                    }
                }
            }
        }
        self.renumber_networks(config.dynamic);
        for new in config.peers {
            if self.peers.find(new.remote).is_none() {
                reload.added += 1;
                self.add_peer(new, now);
            }
        }
        reload.added -= reload.replaced.min(reload.added);
        reload
    }

    /// Puts new networks in place of the old ones; dynamic peers that stay are counted where they belong now.
    fn renumber_networks(&mut self, configs: Vec<crate::config::DynamicConfig>) {
        let olds: Vec<_> = self
            .networks
            .iter()
            .map(|network| network.config.prefix)
            .collect();
        self.set_networks(configs);
        let indices: Vec<u32> = self.peers.iter().map(|(index, _)| index).collect();
        for index in indices {
            let Some(peer) = self.peers.get_mut(index) else {
                continue;
            };
            let Origin::Dynamic(at) = &mut peer.origin else {
                continue;
            };
            let prefix = olds.get(*at as usize);
            let place = self
                .networks
                .iter()
                .position(|network| Some(&network.config.prefix) == prefix);
            if let Some(place) = place {
                *at = place as u32;
                self.networks[place].peers += 1;
            }
        }
    }

    /// Puts a peer into the table. `None` where the address has one already.
    pub(super) fn insert_peer(&mut self, config: PeerConfig, now: Instant) -> Option<u32> {
        if self.peers.find(config.remote).is_some() {
            return None;
        }
        Some(
            self.peers
                .insert(Peer::new(config, Origin::Configured, now)),
        )
    }

    /// ManualStart.
    pub(super) fn begin(&mut self, index: u32, now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.is_started = true;
        peer.waits = crate::peer::Waits::Nothing;
        let event = if peer.is_passive() {
            fsm::Event::ManualStartPassive
        } else {
            fsm::Event::ManualStart
        };
        self.run(index, None, event, CloseReason::Closed, now);
    }

    /// Takes a peer without connections out of the table.
    pub(super) fn forget(&mut self, index: u32) {
        let Some(peer) = self.peers.remove(index) else {
            return;
        };
        if let Origin::Dynamic(at) = peer.origin {
            if let Some(network) = self.networks.get_mut(at as usize) {
                network.peers = network.peers.saturating_sub(1);
            }
            self.events.push_back(Event::Forgotten {
                peer: PeerId(index),
                remote: peer.remote,
            });
        }
    }
}
