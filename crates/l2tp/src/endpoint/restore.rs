//! Reads tunnels and sessions into the tables, under the places, generations and ids that they had.
//!
//! All checks come first, so that a refused value changes nothing. Start reading at [`Endpoint::restore_tunnel`].

use base::snapshot::Reader;
use base::{Instant, Redacted};
use foldhash::fast::FixedState;
use wire::l2tp::{CONTROL_HEADER_LEN, Version, digest};

use super::Endpoint;
use super::keys::check;
use super::snapshot::Once;
use crate::config::ConfigIds;
use crate::pool::Message;
use crate::session::{Session, SessionKey, SessionState};
use crate::snapshot::{Refused, SessionValue, TunnelValue, session, tunnel};
use crate::tunnel::{Ending, Tunnel, TunnelKey, TunnelState};

impl Endpoint {
    /// Reads what [`Endpoint::snapshot`] wrote.
    ///
    /// # Errors
    /// There are tunnels already, or the octets are no such value.
    pub fn restore(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused> {
        if !self.tunnels.is_empty() {
            return Err(Refused::NotEmpty);
        }
        let mut once = Once::default();
        reader.next_into(&mut once)?;
        self.hash_seed = once.hash_seed;
        self.hasher = FixedState::with_seed(once.hash_seed);
        self.next_serial = once.next_serial;
        Ok(())
    }

    /// Reads a tunnel that [`Endpoint::tunnel_snapshot`] wrote. Restore a tunnel before its sessions, and the tunnels of a
    /// peer in the order of their age: ties are resolved in that order.
    ///
    /// The tunnel continues in its state. Timers that were due meanwhile fire at the next call, and the tunnel may have
    /// messages to send. Its secret is `secret` or one of the configuration's: the one that fits the check value.
    ///
    /// # Errors
    /// The reason; nothing has changed.
    pub fn restore_tunnel(
        &mut self,
        reader: &mut Reader<'_>,
        secret: Option<&Redacted<Vec<u8>>>,
    ) -> Result<TunnelKey, Refused> {
        let mut tunnel = tunnel::blank();
        let mut value = TunnelValue::new(&mut tunnel);
        reader.next_into(&mut value)?;
        value.check()?;
        let (queue, early, wanted) = (value.queue, value.early, value.secret);
        self.check_tunnel(&tunnel)?;
        tunnel.keys = self.keys_for(wanted, secret)?;
        if !self.can_sign(&tunnel, &queue) {
            return Err(Refused::value("tunnel", "queue"));
        }
        tunnel.reliable.adopt(queue, early, &mut self.pool);
        Ok(self.adopt_tunnel(tunnel))
    }

    /// Whether there is room for a tunnel and its ids.
    fn check_tunnel(&self, tunnel: &Tunnel) -> Result<(), Refused> {
        let (limits, versions) = (self.config.limits, self.config.versions);
        let spoken = match tunnel.version {
            Version::V2 => versions.v2,
            Version::V3 => versions.v3,
        };
        if !spoken {
            return Err(Refused::VersionOff);
        }
        if tunnel.ending == Ending::No && self.tally.live >= limits.tunnels {
            return Err(Refused::LimitReached("tunnels"));
        }
        if tunnel.is_half_open() && self.tally.half_open >= limits.half_open {
            return Err(Refused::LimitReached("half_open"));
        }
        if tunnel.is_held() && self.tally.held >= limits.held {
            return Err(Refused::LimitReached("held"));
        }
        if self.tunnels.at(tunnel.key.index).is_some() {
            return Err(Refused::PlaceInUse);
        }
        let peer = tunnel.route.peer;
        if tunnel.version == Version::V2 {
            let id = tunnel.local_id as u16;
            let mut spaces = self.narrow_ids.iter();
            let has_room = spaces.any(|ids| ids.get(id).is_none())
                || self.narrow_ids.len() <= limits.tunnels as usize / 65_535;
            if !has_room || self.has_narrow_id(usize::MAX, id, peer.ip()) {
                return Err(Refused::IdInUse("local id"));
            }
        }
        let same = || self.find_request(peer, tunnel.remote_id, tunnel.version);
        if is_request(tunnel) && same().is_some() {
            return Err(Refused::IdInUse("remote id"));
        }
        let id = tunnel.config_id;
        let known = self.peers.find(peer.ip()).map(|at| self.peers.at(at));
        let is_used = match self.config.config_ids {
            ConfigIds::Off => false,
            ConfigIds::FirstFree => known
                .and_then(|known| known.config_ids.as_ref())
                .is_some_and(|ids| ids.is_used(id)),
            ConfigIds::Probe => id != 0 && self.config_id_is_used(peer.ip(), id),
        };
        match is_used {
            true => Err(Refused::IdInUse("config id")),
            false => Ok(()),
        }
    }

    /// The number of the secret that has a check value.
    fn keys_for(
        &mut self,
        wanted: Option<u32>,
        secret: Option<&Redacted<Vec<u8>>>,
    ) -> Result<u16, Refused> {
        let Some(wanted) = wanted else {
            return Ok(self.keys.number_of(None));
        };
        if let Some(number) = self.keys.find(wanted, self.hash_seed) {
            return Ok(number);
        }
        let is_it = |one: &&Redacted<Vec<u8>>| check(one.reveal(), self.hash_seed) == wanted;
        match secret.filter(is_it) {
            Some(secret) => Ok(self.keys.number_of(Some(secret))),
            None => Err(Refused::UnknownSecret),
        }
    }

    /// Whether each queued message has the digest that it is sent with.
    fn can_sign(&self, tunnel: &Tunnel, queue: &[Message]) -> bool {
        let (Some(_), Some(keys)) = (&tunnel.auth, self.keys.of(tunnel.keys)) else {
            return true;
        };
        queue.iter().all(|one| {
            let mut message = vec![0; CONTROL_HEADER_LEN];
            message.extend_from_slice(&one.body);
            digest::sign(&mut message, self.config.digest, &keys.digest, &[], &[])
        })
    }

    /// Puts a tunnel into the tables. [`Endpoint::check_tunnel`] has found room.
    fn adopt_tunnel(&mut self, tunnel: Tunnel) -> TunnelKey {
        let (key, version, ending) = (tunnel.key, tunnel.version, tunnel.ending);
        let (id, peer, config_id) = (tunnel.local_id, tunnel.route.peer, tunnel.config_id);
        let is_open = ending == Ending::No;
        let is_up = tunnel.state == TunnelState::Established;
        let is_opening = tunnel.originated && tunnel.state == TunnelState::WaitCtlReply;
        let (is_half_open, is_request) = (tunnel.is_half_open(), is_request(&tunnel));
        let index = key.index;
        let placed = self.tunnels.insert_at(key, tunnel).is_ok();
        debug_assert!(placed, "the place was free");
        if version == Version::V2 {
            self.claim_narrow_id(id as u16, index);
        }
        self.ordered.add_tunnel(index, version);
        if is_open {
            let at = self.peers.find_or_add(peer.ip());
            let record = self.peers.at_mut(at);
            record.opening += u32::from(is_opening);
            if self.config.config_ids == ConfigIds::FirstFree {
                record.config_ids.get_or_insert_default().claim(config_id);
            }
            self.join_peer(index, at, config_id);
        }
        if is_request {
            self.insert_request(index);
        }
        if is_half_open {
            self.add_half_open(index);
        }
        if ending == Ending::Held {
            self.held_order.push_back(key);
        }
        self.tally.live += u32::from(is_open);
        self.tally.established += u32::from(is_up);
        self.tally.closing += u32::from(ending == Ending::StopSent);
        self.tally.held += u32::from(ending == Ending::Held);
        self.settle_timer(index);
        self.mark_ready(index);
        TunnelKey(key)
    }

    /// Reads a session that [`Endpoint::session_snapshot`] wrote, after its tunnel. Restore the sessions of a tunnel in
    /// the order of their age: those that wait for the tunnel are opened in that order.
    ///
    /// # Errors
    /// The reason; nothing has changed.
    pub fn restore_session(&mut self, reader: &mut Reader<'_>) -> Result<SessionKey, Refused> {
        let mut session = session::blank();
        let mut value = SessionValue::new(&mut session);
        reader.next_into(&mut value)?;
        let (tunnel, due) = (value.tunnel, value.due);
        let record = self.tunnels.get(tunnel);
        let record = record.filter(|one| one.ending == Ending::No);
        let record = record.ok_or(Refused::UnknownTunnel)?;
        value.check(record.version, record.state)?;
        let limits = self.config.limits;
        if self.sessions.len() >= limits.sessions as usize {
            return Err(Refused::LimitReached("sessions"));
        }
        if record.sessions >= limits.sessions_per_tunnel {
            return Err(Refused::LimitReached("sessions_per_tunnel"));
        }
        (session.version, session.tunnel) = (record.version, tunnel.index);
        if self.sessions.at(session.key.index).is_some() {
            return Err(Refused::PlaceInUse);
        }
        let is_narrow = session.version == Version::V2;
        if is_narrow
            && self
                .narrow_session(tunnel.index, session.local_id)
                .is_some()
        {
            return Err(Refused::IdInUse("local id"));
        }
        let remote = session.remote_id;
        if remote != 0 && self.session_by_remote(tunnel.index, remote).is_some() {
            return Err(Refused::IdInUse("remote id"));
        }
        Ok(self.adopt_session(session, due))
    }

    /// Puts a session into the tables.
    fn adopt_session(&mut self, mut session: Session, due: Option<Instant>) -> SessionKey {
        let (key, tunnel) = (session.key, session.tunnel);
        let state = core::mem::replace(&mut session.state, SessionState::Idle);
        let remote = session.remote_id;
        let placed = self.sessions.insert_at(key, session).is_ok();
        debug_assert!(placed, "the place was free");
        self.link_session(key.index);
        if remote != 0 {
            self.set_session_remote(key.index, remote);
        }
        self.set_session_state(key.index, state);
        if let Some(due) = due {
            self.arm_session(key.index, due);
        }
        if state == SessionState::WaitTunnel {
            self.tunnel_at_mut(tunnel).sessions_wait = true;
        }
        self.settle_timer(tunnel);
        SessionKey(key)
    }
}

/// Whether the table of requests has the tunnel: a repeated SCCRQ is for it.
fn is_request(tunnel: &Tunnel) -> bool {
    let is_forgotten = tunnel.is_held() && tunnel.up.is_some();
    !tunnel.originated && !is_forgotten
}
