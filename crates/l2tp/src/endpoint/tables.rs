//! Look-ups and links: tunnels by id and by request, sessions by id, a peer's
//! tunnels and a tunnel's sessions as lists.
//!
//! Implements parts of RFC 3931, section 5.4.3.

use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};

use base::slab::Key;
use base::{Instant, Route};
use wire::l2tp::Version;

use super::Endpoint;
use crate::config::ConfigIds;
use crate::discard::Discard;
use crate::ids::{self, NarrowIds};
use crate::pool::NIL;
use crate::session::{Role, Session};
use crate::tunnel::{Ending, Tunnel, TunnelState};

/// How many free ids of one space are tried for a peer.
const NARROW_ID_TRIES: usize = 64;

impl Endpoint {
    pub(super) fn tunnel_at(&self, index: u32) -> &Tunnel {
        self.tunnels
            .at(index)
            .expect("an index inside the endpoint names a tunnel")
    }

    pub(super) fn tunnel_at_mut(&mut self, index: u32) -> &mut Tunnel {
        self.tunnels
            .at_mut(index)
            .expect("an index inside the endpoint names a tunnel")
    }

    pub(super) fn session_at(&self, index: u32) -> &Session {
        self.sessions
            .at(index)
            .expect("an index inside the endpoint names a session")
    }

    pub(super) fn session_at_mut(&mut self, index: u32) -> &mut Session {
        self.sessions
            .at_mut(index)
            .expect("an index inside the endpoint names a session")
    }

    /// Makes a tunnel's record with its own id; `None` if no id is free.
    pub(super) fn add_tunnel(
        &mut self,
        route: Route,
        version: Version,
        now: Instant,
    ) -> Option<u32> {
        if self.tunnels.len() >= ids::MAX_TUNNELS as usize {
            return None;
        }
        let keys = self.keys.number();
        let key = self
            .tunnels
            .insert_with(|key| Tunnel::new(key, route, version, keys, now));
        let id = match version {
            Version::V3 => Some(ids::wide_id(key.index, &mut self.random)),
            Version::V2 => self.take_narrow_id(key.index, route.peer).map(u32::from),
        };
        let Some(id) = id else {
            self.tunnels.remove(key);
            return None;
        };
        self.tunnel_at_mut(key.index).local_id = id;
        self.ordered.add_tunnel(key.index, version);
        self.link_peer(key.index);
        self.tally.live += 1;
        self.counters.tunnels_opened += 1;
        Some(key.index)
    }

    /// A 16-bit id that no other tunnel with this peer has.
    fn take_narrow_id(&mut self, index: u32, peer: SocketAddr) -> Option<u16> {
        for attempt in 0..=self.config.limits.tunnels as usize / 65_535 {
            if attempt == self.narrow_ids.len() {
                self.narrow_ids.push(NarrowIds::new(&mut self.random));
            }
            // If the peer has many ids of the other spaces, some tries fail.
            for _ in 0..NARROW_ID_TRIES {
                let Some(id) = self.narrow_ids[attempt].take(index) else {
                    break;
                };
                if !self.has_narrow_id(attempt, id, peer.ip()) {
                    return Some(id);
                }
                self.narrow_ids[attempt].release(id);
            }
        }
        None
    }

    /// Assigns an id to the tunnel at `index` that it had before. No tunnel with its peer has it.
    pub(super) fn claim_narrow_id(&mut self, id: u16, index: u32) {
        for ids in &mut self.narrow_ids {
            if ids.claim(id, index) {
                return;
            }
        }
        let mut ids = NarrowIds::new(&mut self.random);
        ids.claim(id, index);
        self.narrow_ids.push(ids);
    }

    /// Whether a tunnel with this peer has the id in another space than `space`.
    pub(super) fn has_narrow_id(&self, space: usize, id: u16, peer: IpAddr) -> bool {
        let spaces = self.narrow_ids.iter().enumerate();
        let mut holders = spaces
            .filter(|&(i, _)| i != space)
            .filter_map(|(_, ids)| ids.get(id));
        holders.any(|at| self.tunnel_at(at).route.peer.ip() == peer)
    }

    /// Removes a tunnel's record. Its sessions and its peer were removed before.
    pub(super) fn remove_tunnel(&mut self, index: u32) {
        self.remove_request(index);
        match self.tunnel_at(index).ending {
            Ending::No => {}
            Ending::StopSent => self.stop_ends(index),
            Ending::Held => self.tally.held -= 1,
        }
        let Self {
            tunnels,
            timers,
            pool,
            narrow_ids,
            ..
        } = self;
        let tunnel = tunnels.at_mut(index).expect("the tunnel is there");
        if let Some((timer, _)) = tunnel.timer.take() {
            base::timer::TimerStore::cancel(timers, timer);
        }
        tunnel.reliable.clear(pool);
        let (key, id, socket) = (tunnel.key, tunnel.local_id, tunnel.route.socket);
        if tunnel.version == Version::V2 {
            let id = id as u16;
            if let Some(ids) = narrow_ids.iter_mut().find(|ids| ids.get(id) == Some(index)) {
                ids.release(id);
            }
        }
        self.tunnels.remove(key);
        self.ordered.remove_tunnel(key.index);
        let tunnel = crate::TunnelKey(key);
        self.events
            .push_back(crate::Event::TunnelGone { tunnel, socket });
    }

    /// The tunnel that a control message with this id is for.
    pub(super) fn tunnel_for(
        &self,
        version: Version,
        id: u32,
        from: SocketAddr,
    ) -> Result<u32, Discard> {
        let mut why = Discard::UnknownTunnel;
        let mut matches = |index: u32| {
            let tunnel = self
                .tunnels
                .at(index)
                .filter(|t| t.local_id == id && t.version == version);
            let Some(tunnel) = tunnel else { return false };
            // Until the peer has answered, it may answer from another port
            // (RFC 2661 8.1).
            let moved =
                tunnel.state == TunnelState::WaitCtlReply && tunnel.route.peer.ip() == from.ip();
            let same = tunnel.route.peer == from || moved;
            if !same {
                why = Discard::WrongSource;
            }
            same
        };
        let found = match version {
            Version::V3 => Some(ids::wide_index(id)).filter(|&index| matches(index)),
            Version::V2 => {
                let mut candidates = self.narrow_ids.iter().filter_map(|ids| ids.get(id as u16));
                candidates.find(|&index| matches(index))
            }
        };
        found.ok_or(why)
    }

    fn request_hash(&self, peer: SocketAddr, remote_id: u32, version: Version) -> u64 {
        self.hasher.hash_one((peer, remote_id, version as u8))
    }

    /// The tunnel whose peer assigned `remote_id`.
    pub(super) fn find_request(
        &self,
        peer: SocketAddr,
        remote_id: u32,
        version: Version,
    ) -> Option<u32> {
        let hash = self.request_hash(peer, remote_id, version);
        let same = |&index: &u32| {
            let t = self.tunnel_at(index);
            t.remote_id == remote_id && t.route.peer == peer && t.version == version
        };
        self.requests.find(hash, same).copied()
    }

    pub(super) fn insert_request(&mut self, index: u32) {
        let tunnel = self.tunnel_at_mut(index);
        tunnel.in_requests = true;
        let (peer, id, version) = (tunnel.route.peer, tunnel.remote_id, tunnel.version);
        let hash = self.request_hash(peer, id, version);
        let Self {
            requests,
            tunnels,
            hasher,
            ..
        } = self;
        requests.insert_unique(hash, index, |&index| {
            let t = tunnels.at(index).expect("the table names only tunnels");
            hasher.hash_one((t.route.peer, t.remote_id, t.version as u8))
        });
    }

    pub(super) fn remove_request(&mut self, index: u32) {
        let tunnel = self.tunnel_at_mut(index);
        if !core::mem::take(&mut tunnel.in_requests) {
            return;
        }
        let (peer, id, version) = (tunnel.route.peer, tunnel.remote_id, tunnel.version);
        let hash = self.request_hash(peer, id, version);
        if let Ok(entry) = self.requests.find_entry(hash, |&at| at == index) {
            entry.remove();
        }
    }

    fn link_peer(&mut self, index: u32) {
        let addr = self.tunnel_at(index).route.peer.ip();
        let peer_index = self.peers.find_or_add(addr);
        let config_id = self.take_config_id(peer_index, addr);
        self.join_peer(index, peer_index, config_id);
    }

    /// Puts a tunnel first into a peer's list.
    pub(super) fn join_peer(&mut self, index: u32, peer_index: u32, config_id: u32) {
        let peer = self.peers.at_mut(peer_index);
        let next = core::mem::replace(&mut peer.first_tunnel, index);
        peer.tunnels += 1;
        peer.opened_total += 1;
        if next != NIL {
            self.tunnel_at_mut(next).peer_prev = index;
        }
        let tunnel = self.tunnel_at_mut(index);
        (tunnel.peer, tunnel.peer_next, tunnel.config_id) = (peer_index, next, config_id);
    }

    fn take_config_id(&mut self, peer_index: u32, addr: IpAddr) -> u32 {
        match self.config.config_ids {
            ConfigIds::Off => 0,
            ConfigIds::FirstFree => {
                let ids = &mut self.peers.at_mut(peer_index).config_ids;
                ids.get_or_insert_default().allocate().unwrap_or(0)
            }
            ConfigIds::Probe => (1..u32::MAX)
                .find(|&candidate| !self.config_id_is_used(addr, candidate))
                .unwrap_or(0),
        }
    }

    /// One probe of the design of 2013: looks up the peer, then walks its tunnels.
    pub(super) fn config_id_is_used(&self, addr: IpAddr, candidate: u32) -> bool {
        let Some(peer) = self.peers.find(addr) else {
            return false;
        };
        let mut at = self.peers.at(peer).first_tunnel;
        while at != NIL {
            let tunnel = self.tunnel_at(at);
            if tunnel.config_id == candidate {
                return true;
            }
            at = tunnel.peer_next;
        }
        false
    }

    /// Removes a tunnel from its peer's list, and the peer with its last tunnel.
    pub(super) fn unlink_peer(&mut self, index: u32) {
        let tunnel = self.tunnel_at_mut(index);
        let peer = tunnel.peer;
        if peer == NIL {
            return;
        }
        tunnel.peer = NIL;
        // The next tunnel with this peer may have the id.
        let config_id = core::mem::take(&mut tunnel.config_id);
        let (prev, next) = (tunnel.peer_prev, tunnel.peer_next);
        (tunnel.peer_prev, tunnel.peer_next) = (NIL, NIL);
        if prev == NIL {
            self.peers.at_mut(peer).first_tunnel = next;
        } else {
            self.tunnel_at_mut(prev).peer_next = next;
        }
        if next != NIL {
            self.tunnel_at_mut(next).peer_prev = prev;
        }
        let record = self.peers.at_mut(peer);
        record.tunnels -= 1;
        if let Some(ids) = &mut record.config_ids {
            ids.release(config_id);
        }
        self.peers.remove_if_unused(peer);
    }

    /// Makes a session's record with its own id; `None` if no id is free.
    pub(super) fn add_session(&mut self, tunnel: u32, role: Role, now: Instant) -> Option<u32> {
        let version = self.tunnel_at(tunnel).version;
        let narrow = match version {
            Version::V3 => 0,
            Version::V2 => self.free_session_id(tunnel)?,
        };
        let key: Key = self
            .sessions
            .insert_with(|key| Session::new(key, tunnel, version, role, now));
        let index = key.index;
        let id = match version {
            Version::V3 => ids::wide_id(index, &mut self.random),
            Version::V2 => u32::from(narrow),
        };
        self.session_at_mut(index).local_id = id;
        self.link_session(index);
        Some(index)
    }

    /// Puts a session with an id of ours into the tables, and first into its tunnel's list.
    pub(super) fn link_session(&mut self, index: u32) {
        let session = self.session_at(index);
        let (tunnel, version, id) = (session.tunnel, session.version, session.local_id);
        if version == Version::V2 {
            let hash = self.hasher.hash_one((tunnel, id));
            let Self {
                session_ids,
                sessions,
                hasher,
                ..
            } = self;
            session_ids.insert_unique(hash, index, |&index| {
                let s = sessions.at(index).expect("the table names only sessions");
                hasher.hash_one((s.tunnel, s.local_id))
            });
        }
        let record = self.tunnel_at_mut(tunnel);
        record.sessions += 1;
        record.empty_deadline = Instant::FAR_FUTURE;
        let next = core::mem::replace(&mut record.first_session, index);
        if next != NIL {
            self.session_at_mut(next).prev = index;
        }
        self.session_at_mut(index).next = next;
        if version == Version::V2 {
            self.order_session(tunnel, id);
        }
    }

    /// A 16-bit session id that is free in this tunnel.
    fn free_session_id(&mut self, tunnel: u32) -> Option<u16> {
        if self.tunnel_at(tunnel).sessions >= 65_535 {
            return None;
        }
        let start = self.random.below(65_535);
        (0..65_535)
            .map(|i| 1 + ((start + i) % 65_535) as u16)
            .find(|&id| self.narrow_session(tunnel, u32::from(id)).is_none())
    }

    /// An L2TPv2 session by our id.
    pub(super) fn narrow_session(&self, tunnel: u32, id: u32) -> Option<u32> {
        let hash = self.hasher.hash_one((tunnel, id));
        let same = |&index: &u32| {
            let s = self.session_at(index);
            s.tunnel == tunnel && s.local_id == id
        };
        self.session_ids.find(hash, same).copied()
    }

    /// An L2TPv3 session by our id.
    pub(super) fn wide_session(&self, id: u32) -> Option<u32> {
        let index = ids::wide_index(id);
        let session = self.sessions.at(index)?;
        (session.local_id == id && session.version == Version::V3).then_some(index)
    }

    /// A session of this tunnel by the peer's id.
    pub(super) fn session_by_remote(&self, tunnel: u32, remote_id: u32) -> Option<u32> {
        let hash = self.hasher.hash_one((tunnel, remote_id));
        let same = |&index: &u32| {
            let s = self.session_at(index);
            s.tunnel == tunnel && s.remote_id == remote_id
        };
        self.session_remotes.find(hash, same).copied()
    }

    /// Records the peer's id of a session.
    pub(super) fn set_session_remote(&mut self, index: u32, remote_id: u32) {
        let session = self.session_at_mut(index);
        session.remote_id = remote_id;
        session.in_remote = true;
        let hash = {
            let tunnel = self.session_at(index).tunnel;
            self.hasher.hash_one((tunnel, remote_id))
        };
        let Self {
            session_remotes,
            sessions,
            hasher,
            ..
        } = self;
        session_remotes.insert_unique(hash, index, |&index| {
            let s = sessions.at(index).expect("the table names only sessions");
            hasher.hash_one((s.tunnel, s.remote_id))
        });
    }

    /// Removes a session's record.
    pub(super) fn remove_session(&mut self, index: u32) -> Session {
        let session = self.session_at(index);
        let (tunnel, prev, next) = (session.tunnel, session.prev, session.next);
        if session.version == Version::V2 {
            let hash = self.hasher.hash_one((tunnel, session.local_id));
            if let Ok(entry) = self.session_ids.find_entry(hash, |&at| at == index) {
                entry.remove();
            }
        }
        let session = self.session_at(index);
        if session.in_remote {
            let hash = self.hasher.hash_one((tunnel, session.remote_id));
            if let Ok(entry) = self.session_remotes.find_entry(hash, |&at| at == index) {
                entry.remove();
            }
        }
        if prev == NIL {
            self.tunnel_at_mut(tunnel).first_session = next;
        } else {
            self.session_at_mut(prev).next = next;
        }
        if next != NIL {
            self.session_at_mut(next).prev = prev;
        }
        let record = self.tunnel_at_mut(tunnel);
        record.sessions -= 1;
        let left = record.sessions;
        let session = self.session_at(index);
        if session.version == Version::V2 {
            let id = session.local_id;
            self.ordered.remove_session(tunnel, id, left);
        }
        let key = self.session_at(index).key;
        let mut session = self.sessions.remove(key).expect("the session is there");
        if let Some((timer, _)) = session.timer.take() {
            base::timer::TimerStore::cancel(&mut self.timers, timer);
        }
        session
    }
}
