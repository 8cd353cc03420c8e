//! The operator's verbs: start, stop, reset and refresh peers, and apply a new configuration.
//!
//! Implements parts of RFC 4271, section 8.1.2.

use core::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base::Instant;
use hashbrown::HashMap;
use wire::bgp::{Families, FamilyId, Refresh, RouteRefresh};

use super::Speaker;
use crate::config::{DynamicConfig, PeerConfig, PeerSettings, SpeakerConfig};
use crate::end::CloseReason;
use crate::event::Event;
use crate::fsm::{self, State};
use crate::peer::{Origin, Peer, PeerId, Waits};
use crate::policy::Policy;
use crate::table::{ConnId, Flags};

/// What a new configuration changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reload {
    /// Settings of the speaker itself that are new: `asn`, `router_id`, `cluster_id`.
    pub own: Vec<&'static str>,
    /// Peers that were added.
    pub added: u32,
    /// Peers that were removed.
    pub removed: u32,
    /// Peers whose sessions end because what they negotiated has changed.
    pub replaced: u32,
    /// Peers whose sessions continue.
    pub kept: u32,
}

/// What a new configuration means for a peer.
enum Fate {
    /// Its session continues, under these settings.
    Stays(Arc<PeerSettings>),
    /// It is still configured, but a negotiated setting differs.
    Changes,
    Goes,
}

impl Speaker {
    /// Starts a peer that was stopped, is held in Idle, or was not enabled.
    pub fn start_peer(&mut self, peer: PeerId, now: Instant) {
        self.latest = now;
        let Some(found) = self.peers.get_mut(peer.0) else {
            return;
        };
        found.doublings = 0;
        found.held = None;
        if found.main.is_some() || found.state != State::Idle {
            return;
        }
        if found.is_held {
            self.release(peer.0, now);
        } else {
            self.begin(peer.0, now);
        }
    }

    /// Stops a peer, with a text for its operator (RFC 9003). The peer stays in Idle until it is started. That holds for
    /// a dynamic peer too: [`start_peer`](Self::start_peer) forgets it, and its host may connect again.
    pub fn stop_peer(&mut self, peer: PeerId, text: &str, now: Instant) {
        self.latest = now;
        let Some(found) = self.peers.get_mut(peer.0) else {
            return;
        };
        found.is_started = false;
        found.held = None;
        self.hold(peer.0);
        self.end_all(peer.0, &CloseReason::Shutdown(text.into()), now);
        self.drop_stale(peer.0);
    }

    /// Ends a peer's session and starts it again.
    pub fn reset_peer(&mut self, peer: PeerId, text: &str, now: Instant) {
        self.latest = now;
        let Some(found) = self.peers.get_mut(peer.0).filter(|peer| peer.is_started) else {
            return;
        };
        found.is_started = false;
        self.end_all(peer.0, &CloseReason::Reset(text.into()), now);
        // A dynamic peer was forgotten together with its connection, unless it has stale routes or was held back.
        match self.peers.get(peer.0).map(|found| found.origin) {
            Some(Origin::Configured) => self.begin(peer.0, now),
            Some(Origin::Dynamic(_)) => self.release(peer.0, now),
            None => {}
        }
    }

    /// Stops every peer, with a text for their operators.
    pub fn stop(&mut self, text: &str, now: Instant) {
        let peers: Vec<u32> = self.peers.iter().map(|(index, _)| index).collect();
        for index in peers {
            self.stop_peer(PeerId(index), text, now);
        }
    }

    /// Ends both connections of a peer by ManualStop, with one reason.
    fn end_all(&mut self, index: u32, why: &CloseReason, now: Instant) {
        let event = fsm::Event::ManualStop;
        if let Some(second) = self.peers.get(index).and_then(|peer| peer.second) {
            self.run(index, Some(second), event, why.clone(), now);
        }
        let main = self.peers.get(index).and_then(|peer| peer.main);
        self.run(index, main, event, why.clone(), now);
        if let Some(peer) = self.peers.get_mut(index) {
            peer.waits = Waits::Nothing;
        }
    }

    /// Asks a peer for its routes again (RFC 2918). Returns whether the request is sent: the peer has to be Established
    /// and to support it.
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

    /// Sends a peer all our routes again. Returns whether it is Established.
    pub fn refresh_out(&mut self, peer: PeerId, families: Families, now: Instant) -> bool {
        self.latest = now;
        let Some((_, agreed)) = self.session_of(peer) else {
            return false;
        };
        let wanted: Vec<FamilyId> = families.and(agreed.families).iter().collect();
        for family in wanted {
            self.refresh_routes(peer.0, family);
        }
        true
    }

    pub(super) fn session_of(&self, peer: PeerId) -> Option<(ConnId, &crate::negotiate::Agreed)> {
        let main = self.peers.get(peer.0)?.main?;
        let conn = self.conns.get(main)?;
        let agreed = conn.agreed.as_deref()?;
        (conn.state == State::Established).then_some((main, agreed))
    }

    /// Adds a peer, and starts it if it is enabled. Returns `None` if the address has a peer already.
    pub fn add_peer(&mut self, config: PeerConfig, now: Instant) -> Option<PeerId> {
        self.latest = now;
        let enabled = config.settings.enabled;
        let index = self.insert_peer(config, now)?;
        if enabled {
            self.begin(index, now);
        }
        Some(PeerId(index))
    }

    /// Removes a peer: its session ends, and its routes are removed.
    fn remove(&mut self, index: u32, why: &CloseReason, now: Instant) {
        self.latest = now;
        let Some(found) = self.peers.get_mut(index) else {
            return;
        };
        found.is_started = false;
        self.end_all(index, why, now);
        self.drop_stale(index);
        // A dynamic peer was forgotten together with its connection.
        if self.peers.get(index).is_some() {
            self.forget(index);
        }
    }

    /// Applies a new configuration. Sessions continue if nothing changed that they negotiated. New policies apply at
    /// once, and stored routes are judged again in slices.
    ///
    /// A new AS number or BGP Identifier starts every session again, a new cluster identifier those of internal peers.
    pub fn reload(&mut self, config: SpeakerConfig, now: Instant) -> Reload {
        let mut reload = Reload {
            own: self.set_identity(&config),
            ..Reload::default()
        };
        let is_other = |key| reload.own.contains(&key);
        let ends_all = is_other("asn") || is_other("router_id");
        let ends_internal = is_other("cluster_id");
        self.limits = config.limits;
        let mut policies = Vec::new();
        let olds: Vec<u32> = self.peers.iter().map(|(index, _)| index).collect();
        let news = config.peers.iter().map(|new| (new.remote, new));
        let news: HashMap<IpAddr, &PeerConfig> = news.collect();
        for index in olds {
            match self.fate(index, &news, &config.dynamic) {
                Fate::Stays(settings)
                    if !(ends_all || ends_internal && self.is_internal(index)) =>
                {
                    reload.kept += 1;
                    self.resettle(index, settings, &mut policies);
                }
                Fate::Stays(_) | Fate::Changes => {
                    reload.replaced += 1;
                    self.remove(index, &CloseReason::ConfigurationChanged, now);
                }
                Fate::Goes => {
                    reload.removed += 1;
                    self.remove(index, &CloseReason::Deconfigured, now);
                }
            }
        }
        drop(news);
        let cluster_id = config.cluster_id.map(Ipv4Addr::to_bits);
        self.rib
            .set_identity(config.asn, config.router_id.to_bits(), cluster_id);
        self.renumber_networks(config.dynamic);
        let mut begun = 0;
        for new in config.peers {
            if let Some(known) = self.peers.find(new.remote) {
                if let Some(peer) = self.peers.get_mut(known) {
                    peer.name = new.name;
                }
            } else {
                begun += 1;
                self.add_peer(new, now);
            }
        }
        reload.added = begun - reload.replaced.min(begun);
        self.rib.set_policies(policies, config.roas);
        self.has_work = true;
        reload
    }

    /// Takes over our AS and identifiers. Returns the names of those that are new.
    fn set_identity(&mut self, config: &SpeakerConfig) -> Vec<&'static str> {
        let is_new = [
            ("asn", self.asn != config.asn),
            ("router_id", self.router_id != config.router_id),
            ("cluster_id", self.cluster_id != config.cluster_id),
        ];
        self.asn = config.asn;
        self.router_id = config.router_id;
        self.cluster_id = config.cluster_id;
        let new = is_new.into_iter().filter(|(_, is_new)| *is_new);
        new.map(|(key, _)| key).collect()
    }

    /// Whether a peer has a session and is in our AS.
    fn is_internal(&self, index: u32) -> bool {
        let session = self.session_of(PeerId(index));
        session.is_some_and(|(_, agreed)| agreed.is_internal())
    }

    /// What a new configuration means for a peer.
    fn fate(
        &self,
        index: u32,
        peers: &HashMap<IpAddr, &PeerConfig>,
        dynamic: &[DynamicConfig],
    ) -> Fate {
        let Some(peer) = self.peers.get(index) else {
            return Fate::Goes;
        };
        let new = peers.get(&peer.remote).copied();
        match (new, peer.origin) {
            (Some(new), Origin::Configured) if peer.goes_on_under(new) => {
                Fate::Stays(new.settings.clone())
            }
            (Some(_), Origin::Configured | Origin::Dynamic(_)) => Fate::Changes,
            (None, Origin::Configured) => Fate::Goes,
            (None, Origin::Dynamic(at)) => {
                let Some(old) = self.networks.get(at as usize) else {
                    return Fate::Goes;
                };
                let same = |new: &&DynamicConfig| {
                    new.prefix == old.config.prefix && new.remote_asn == old.config.remote_asn
                };
                match dynamic.iter().find(same) {
                    Some(new) if peer.is_alike(&new.settings) => Fate::Stays(new.settings.clone()),
                    Some(_) => Fate::Changes,
                    None => Fate::Goes,
                }
            }
        }
    }

    /// Applies settings under which a session continues.
    fn resettle(
        &mut self,
        index: u32,
        settings: Arc<PeerSettings>,
        policies: &mut Vec<(PeerId, Arc<Policy>, Arc<Policy>)>,
    ) {
        if let Some((main, agreed)) = self.session_of(PeerId(index))
            && let Some(peer) = self.peers.get(index)
        {
            let local = self.conns.get(main).and_then(|conn| conn.local);
            let traits = agreed.traits(&settings, peer.remote, local.map(|local| local.ip()));
            policies.push((PeerId(index), traits.import, traits.export));
        }
        if let Some(peer) = self.peers.get_mut(index) {
            peer.settings = settings;
        }
    }

    /// Replaces the networks of dynamic peers. Dynamic peers that stay are counted in their new network.
    fn renumber_networks(&mut self, configs: Vec<DynamicConfig>) {
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
                self.networks[place].peers += u32::from(!peer.is_held_apart);
            }
        }
    }

    /// Adds a peer to the table. Returns `None` if the address has a peer already.
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
        self.end_hold(index);
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.is_started = true;
        peer.waits = Waits::Nothing;
        let event = if peer.is_passive() {
            fsm::Event::ManualStartPassive
        } else {
            fsm::Event::ManualStart
        };
        self.run(index, None, event, CloseReason::Closed, now);
    }

    /// Removes a peer without connections from the table.
    pub(super) fn forget(&mut self, index: u32) {
        let Some(peer) = self.peers.remove(index) else {
            return;
        };
        if let Origin::Dynamic(_) = peer.origin {
            self.give_place_back(&peer);
            self.events.push_back(Event::Forgotten {
                peer: PeerId(index),
                remote: peer.remote,
            });
            self.remember(peer);
        }
    }
}
