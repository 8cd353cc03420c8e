//! Setting a control connection up: RFC 2661 5.1 and 7.2.1, RFC 3931 3.3 and
//! 7.2. Requests, ties, limits, authentication.

use base::{Datagram, Instant};
use core::hash::BuildHasher;
use wire::l2tp::{self, Attribute, Control, Message, MessageType, Version, auth, digest};

use super::receive::unreadable;
use super::{Endpoint, FIRST_REPLY};
use crate::discard::Discard;
use crate::end::{Codes, TunnelEnd};
use crate::pool::NIL;
use crate::reliable::DEFAULT_WINDOW;
use crate::tunnel::fsm::{self, Action, Event};
use crate::tunnel::{Auth, Ending, Offers, Setup, TunnelState};

/// The version of RFC 2661: 1, revision 0.
const PROTOCOL_VERSION: u16 = 0x0100;

/// StopCCN: "control connection already exists" (RFC 3931 5.4.2).
const CONNECTION_EXISTS: u16 = 3;

/// The SCCRQ of a tunnel that is established or closed, when it comes again this
/// long after, cannot be a late duplicate: the peer began anew with the same id.
const RESTART_AFTER: base::Duration = base::Duration::from_secs(8);

impl Endpoint {
    /// A message with tunnel id 0: a request, or a StopCCN from a peer that
    /// does not know our id yet.
    pub(super) fn receive_unaddressed(
        &mut self,
        datagram: &Datagram<'_>,
        control: &Control<'_>,
        now: Instant,
    ) -> Result<(), Discard> {
        let message = Message::parse(control.version, control.body);
        if !message.has_hidden() {
            return self.receive_first(datagram, control, &message, now);
        }
        let Some(keys) = &self.keys else {
            return self.receive_first(datagram, control, &message, now);
        };
        let key: &[u8] = match control.version {
            Version::V2 => &keys.secret,
            Version::V3 => &keys.hiding,
        };
        let mut clear = core::mem::take(&mut self.unhidden);
        clear.clear();
        let result = match l2tp::unhide(control.body, key, &mut clear) {
            Ok(()) => {
                let message = Message::parse(control.version, &clear);
                self.receive_first(datagram, control, &message, now)
            }
            Err(_) => self.receive_first(datagram, control, &message, now),
        };
        self.unhidden = clear;
        result
    }

    fn receive_first(
        &mut self,
        datagram: &Datagram<'_>,
        control: &Control<'_>,
        message: &Message<'_>,
        now: Instant,
    ) -> Result<(), Discard> {
        match message.kind() {
            MessageType::Sccrq => {}
            MessageType::StopCcn => {
                let id = assigned_id(message);
                let index = self
                    .find_request(datagram.route.peer, id, control.version)
                    .ok_or(Discard::UnknownTunnel)?;
                return self.receive_sequenced(index, datagram, control, now);
            }
            _ => return Err(Discard::NotARequest),
        }
        if control.version == Version::V2 && self.config.versions.v3 {
            let wider = Message::parse(Version::V3, control.body);
            if wider.has(Attribute::AssignedControlConnectionId)
                && wider.has(Attribute::PseudowireCapabilitiesList)
            {
                return self.receive_sccrq(datagram, control, &wider, now);
            }
        }
        if control.version == Version::V2 && !self.config.versions.v2 {
            return Err(Discard::UnsupportedVersion);
        }
        self.receive_sccrq(datagram, control, message, now)
    }

    fn receive_sccrq(
        &mut self,
        datagram: &Datagram<'_>,
        control: &Control<'_>,
        message: &Message<'_>,
        now: Instant,
    ) -> Result<(), Discard> {
        if !self.config.accept || self.shutting_down {
            return Err(Discard::NotAccepting);
        }
        let (peer, version) = (datagram.route.peer, message.version());
        let authorized = self.check_request_digest(control, message)?;
        let remote_id = assigned_id(message);
        let request_hash = self.hasher.hash_one(control.body) as u32;
        if let Some(index) = self.find_request(peer, remote_id, version) {
            let same = self.tunnel_at(index).request_hash == request_hash;
            if same && !self.has_outlived_request(index, now) {
                return self.receive_sequenced(index, datagram, control, now);
            }
            if authorized.is_err() {
                // Anybody's: the tunnel that is there must not suffer.
                return Err(Discard::BadDigest);
            }
            self.forget_restarted(index, now);
        }
        if control.ns != 0 || control.nr != 0 {
            return Err(Discard::NotARequest);
        }
        if authorized.is_ok() {
            self.resolve_tie(datagram.route, message, now)?;
        }
        if self.tally.half_open >= self.config.limits.half_open {
            return Err(Discard::HalfOpenLimit);
        }
        if self.tally.live >= self.config.limits.tunnels {
            return self.refuse_full(datagram.route, version, remote_id);
        }
        let Some(index) = self.add_tunnel_evicting(datagram.route, version, now) else {
            return self.refuse_full(datagram.route, version, remote_id);
        };
        let setup_timeout = self.config.setup_timeout;
        let tunnel = self.tunnel_at_mut(index);
        tunnel.remote_id = remote_id;
        tunnel.request_hash = request_hash;
        tunnel.reliable.advance();
        tunnel.received = 1;
        tunnel.idle_deadline = now + setup_timeout;
        self.insert_request(index);
        self.tally.half_open += 1;
        self.counters.count_received(MessageType::Sccrq.number());
        self.note_ignored(message);
        match authorized.and_then(|auth| self.take_request(index, message, auth)) {
            Ok(()) => {
                self.step_tunnel(index, Event::SccrqAcceptable);
                self.compose_sccrp(index, message);
                self.events.push_back(crate::Event::TunnelAccepted {
                    tunnel: self.tunnel_key(index),
                });
            }
            Err(reason) => self.end_tunnel(index, Event::SccrqUnacceptable, reason, now),
        }
        self.mark_ready(index);
        Ok(())
    }

    /// Whether a tunnel's SCCRQ that comes again cannot be a late duplicate.
    fn has_outlived_request(&self, index: u32, now: Instant) -> bool {
        let tunnel = self.tunnel_at(index);
        if tunnel.auth.is_some() {
            // A peer that begins anew has a new nonce: this one is a replay.
            return false;
        }
        match (tunnel.ending, tunnel.up) {
            // Held: closed since `hold` less what remains of it.
            (Ending::Held, _) => {
                let remains = tunnel.idle_deadline.since(now);
                remains + RESTART_AFTER < self.config.hold
            }
            (Ending::No | Ending::StopSent, Some(up)) => now.since(up) > RESTART_AFTER,
            (Ending::No | Ending::StopSent, None) => false,
        }
    }

    /// The SCCRQ that lost to ours: silence in L2TPv2 (RFC 2661 4.4.3), a StopCCN
    /// as "an explicit rejection" in L2TPv3 (RFC 3931 5.4.3).
    fn reject_loser(&mut self, route: base::Route, version: Version, remote_id: u32) {
        if version == Version::V3 {
            let codes = Codes {
                result: CONNECTION_EXISTS,
                error: None,
                message: String::new(),
            };
            self.refuse_stateless(route, version, remote_id, FIRST_REPLY, &codes);
        }
    }

    fn note_ignored(&mut self, message: &Message<'_>) {
        if message.ignored_malformed().is_some() {
            self.counters.ignored_avps += 1;
        }
    }

    /// An L2TPv3 request is authenticated before it is used (RFC 3931 4.3): the
    /// outer error drops it, the inner refuses it.
    #[allow(clippy::type_complexity)]
    fn check_request_digest(
        &mut self,
        control: &Control<'_>,
        message: &Message<'_>,
    ) -> Result<Result<Option<Box<Auth>>, TunnelEnd>, Discard> {
        if message.version() == Version::V2 {
            return Ok(Ok(None));
        }
        let nonce = message.get(Attribute::ControlMessageAuthenticationNonce);
        let signed = digest::present(control.whole);
        let good = match &self.keys {
            Some(keys) => !signed || digest::verify(control.whole, &keys.digest, &[], &[]),
            None if nonce.is_some() => true,
            None => !signed || digest::verify(control.whole, &digest::shared_key(&[]), &[], &[]),
        };
        if !good {
            return Err(Discard::BadDigest);
        }
        Ok(match (self.keys.is_some(), nonce) {
            (true, Some(nonce)) if signed => Ok(Some(Box::new(Auth {
                local_nonce: self.random.bytes(),
                told: false,
                remote_nonce: nonce.into(),
            }))),
            (true, _) => Err(TunnelEnd::NotAuthorized("the request is not authenticated")),
            (false, Some(_)) => Err(TunnelEnd::NotAuthorized("no shared secret here")),
            (false, None) => Ok(None),
        })
    }

    /// Takes what an SCCRQ or SCCRP says of the peer, or says why not.
    fn take_request(
        &mut self,
        index: u32,
        message: &Message<'_>,
        auth: Option<Box<Auth>>,
    ) -> Result<(), TunnelEnd> {
        if auth.is_some() {
            // First of all, so that a refusal can be signed.
            self.tunnel_at_mut(index).auth = auth;
        }
        let version = message.version();
        if version == Version::V2 {
            match message.u16(Attribute::ProtocolVersion) {
                Some(PROTOCOL_VERSION) => {}
                Some(other) => return Err(TunnelEnd::ProtocolVersion(other)),
                None if message.fault().is_none() => {
                    return Err(TunnelEnd::MissingAvp(Attribute::ProtocolVersion));
                }
                None => {}
            }
        }
        unreadable(message)?;
        let host = message
            .get(Attribute::HostName)
            .ok_or(TunnelEnd::MissingAvp(Attribute::HostName))?;
        let id_attribute = match version {
            Version::V2 => Attribute::AssignedTunnelId,
            Version::V3 => Attribute::AssignedControlConnectionId,
        };
        if !message.has(id_attribute) {
            return Err(TunnelEnd::MissingAvp(id_attribute));
        }
        if assigned_id(message) == 0 {
            return Err(TunnelEnd::BadValue(id_attribute.name()));
        }
        if version == Version::V2 && self.keys.is_none() && message.has(Attribute::Challenge) {
            return Err(TunnelEnd::NotAuthorized(
                "a challenge, but no shared secret here",
            ));
        }
        let window = message
            .u16(Attribute::ReceiveWindowSize)
            .unwrap_or(DEFAULT_WINDOW);
        if window == 0 {
            return Err(TunnelEnd::BadValue(Attribute::ReceiveWindowSize.name()));
        }
        let host = printable(host);
        let tunnel = self.tunnel_at_mut(index);
        tunnel.peer_host = host;
        tunnel.reliable.set_peer_window(window);
        tunnel.offers = Offers::from_message(message);
        Ok(())
    }

    /// Two requests that cross, where one of them has a tie breaker
    /// (RFC 2661 4.4.3). An error means ours won and this one is dropped.
    fn resolve_tie(
        &mut self,
        route: base::Route,
        message: &Message<'_>,
        now: Instant,
    ) -> Result<(), Discard> {
        let peer = route.peer.ip();
        let Some(record) = self.peers.find(peer).map(|at| self.peers.at(at)) else {
            return Ok(());
        };
        let theirs = message.u64(Attribute::TieBreaker);
        if record.opening == 0 || (theirs.is_none() && !self.config.tie_breaker) {
            return Ok(());
        }
        let (mut at, mut lost, mut won) = (record.first_tunnel, false, false);
        while at != NIL {
            let tunnel = self.tunnel_at(at);
            let next = tunnel.peer_next;
            if tunnel.originated && tunnel.state == TunnelState::WaitCtlReply {
                let ours = tunnel.setup.as_ref().and_then(|setup| setup.tie_breaker);
                // The lower value wins; who sent one wins over who did not.
                let order = match (ours, theirs) {
                    (Some(ours), Some(theirs)) => ours.cmp(&theirs),
                    (Some(_), None) => core::cmp::Ordering::Less,
                    (None, Some(_)) => core::cmp::Ordering::Greater,
                    (None, None) => {
                        at = next;
                        continue;
                    }
                };
                if order != core::cmp::Ordering::Less {
                    self.end_tunnel(at, Event::LoseTie, TunnelEnd::LostTie, now);
                }
                lost |= order != core::cmp::Ordering::Greater;
                won |= order == core::cmp::Ordering::Less;
            }
            at = next;
        }
        if won {
            self.reject_loser(route, message.version(), assigned_id(message));
        }
        if lost { Err(Discard::LostTie) } else { Ok(()) }
    }

    pub(super) fn receive_sccrp(&mut self, index: u32, message: &Message<'_>, now: Instant) {
        if self.tunnel_at(index).state != TunnelState::WaitCtlReply {
            let reason = TunnelEnd::StateMachine("SCCRP");
            return self.end_tunnel(index, Event::SccrpAcceptable, reason, now);
        }
        // Even a refusal is addressed by the id that the peer has assigned, and
        // signed with the nonce that it has chosen.
        let nonce = message.get(Attribute::ControlMessageAuthenticationNonce);
        let tunnel = self.tunnel_at_mut(index);
        tunnel.remote_id = assigned_id(message);
        if let (Some(auth), Some(nonce)) = (&mut tunnel.auth, nonce) {
            auth.remote_nonce = nonce.into();
        }
        let accepted = self
            .take_request(index, message, None)
            .and_then(|()| self.check_reply_authentication(index, message));
        match accepted {
            Ok(()) => {
                self.compose_scccn(index, message);
                self.step_tunnel(index, Event::SccrpAcceptable);
                self.tunnel_up(index, now);
            }
            Err(reason) => self.end_tunnel(index, Event::SccrpUnacceptable, reason, now),
        }
    }

    fn check_reply_authentication(
        &self,
        index: u32,
        message: &Message<'_>,
    ) -> Result<(), TunnelEnd> {
        match message.version() {
            Version::V2 => self.check_response(index, message, MessageType::Sccrp),
            Version::V3 => {
                let told = message.has(Attribute::ControlMessageAuthenticationNonce);
                match (self.tunnel_at(index).auth.is_some(), told) {
                    (true, true) | (false, false) => Ok(()),
                    (true, false) => {
                        Err(TunnelEnd::NotAuthorized("the reply is not authenticated"))
                    }
                    (false, true) => Err(TunnelEnd::NotAuthorized("no shared secret here")),
                }
            }
        }
    }

    /// The Challenge Response of RFC 2661 4.4.3; its CHAP id is the type of the
    /// message that carries it.
    fn check_response(
        &self,
        index: u32,
        message: &Message<'_>,
        carrier: MessageType,
    ) -> Result<(), TunnelEnd> {
        let setup = self.tunnel_at(index).setup.as_ref();
        let (Some(challenge), Some(keys)) = (setup.and_then(|s| s.challenge), &self.keys) else {
            return Ok(());
        };
        let response = message
            .get(Attribute::ChallengeResponse)
            .ok_or(TunnelEnd::NotAuthorized("no challenge response"))?;
        let id = carrier.number() as u8;
        if auth::verify_response(id, &keys.secret, &challenge, response) {
            Ok(())
        } else {
            Err(TunnelEnd::NotAuthorized("wrong challenge response"))
        }
    }

    pub(super) fn receive_scccn(&mut self, index: u32, message: &Message<'_>, now: Instant) {
        if self.tunnel_at(index).state != TunnelState::WaitCtlConn {
            let reason = TunnelEnd::StateMachine("SCCCN");
            return self.end_tunnel(index, Event::ScccnAcceptable, reason, now);
        }
        let accepted = unreadable(message)
            .and_then(|()| self.check_response(index, message, MessageType::Scccn));
        match accepted {
            Ok(()) => {
                self.step_tunnel(index, Event::ScccnAcceptable);
                self.tunnel_up(index, now);
            }
            Err(reason) => self.end_tunnel(index, Event::ScccnUnacceptable, reason, now),
        }
    }

    /// Established: sessions that waited go on, set-up state goes.
    fn tunnel_up(&mut self, index: u32, now: Instant) {
        let hello = self.hello_wait();
        let tunnel = self.tunnel_at_mut(index);
        tunnel.up = Some(now);
        tunnel.setup = None;
        tunnel.idle_deadline = hello.map_or(Instant::FAR_FUTURE, |wait| now + wait);
        let (id, waiting) = (tunnel.local_id, core::mem::take(&mut tunnel.sessions_wait));
        self.tally.established += 1;
        self.counters.tunnels_established += 1;
        let tunnel = self.tunnel_key(index);
        self.events.push_back(crate::Event::TunnelUp { tunnel, id });
        if waiting {
            self.open_waiting_sessions(index, now);
        }
    }

    /// Takes a step of the table whose action the caller carries out.
    pub(super) fn step_tunnel(&mut self, index: u32, event: Event) -> Action {
        let (action, next) = fsm::step(self.tunnel_at(index).state, event);
        self.set_tunnel_state(index, next);
        action
    }

    /// The only place that writes a tunnel's state: counts follow it.
    pub(super) fn set_tunnel_state(&mut self, index: u32, next: TunnelState) {
        let tunnel = self.tunnel_at_mut(index);
        let state = core::mem::replace(&mut tunnel.state, next);
        let (originated, peer) = (tunnel.originated, tunnel.peer);
        let was_opening = originated && state == TunnelState::WaitCtlReply;
        let is_opening = originated && next == TunnelState::WaitCtlReply;
        if was_opening != is_opening {
            let opening = &mut self.peers.at_mut(peer).opening;
            *opening = if is_opening {
                *opening + 1
            } else {
                *opening - 1
            };
        }
        if !originated && next == TunnelState::Established {
            self.tally.half_open -= 1;
        }
        debug_assert!(self.tunnel_at(index).ending == Ending::No);
    }

    pub(super) fn new_setup(&mut self, version: Version, tie_breaker: bool) -> Box<Setup> {
        let challenge =
            (version == Version::V2 && self.keys.is_some()).then(|| self.random.bytes::<16>());
        let tie_breaker = tie_breaker.then(|| self.random.u64());
        Box::new(Setup {
            challenge,
            tie_breaker,
        })
    }
}

/// The id that the peer assigned, 0 where it did not.
pub(super) fn assigned_id(message: &Message<'_>) -> u32 {
    match message.version() {
        Version::V2 => message.u16(Attribute::AssignedTunnelId).map(u32::from),
        Version::V3 => message.u32(Attribute::AssignedControlConnectionId),
    }
    .unwrap_or(0)
}

/// A peer's name for people: at most 128 octets, without control characters.
fn printable(name: &[u8]) -> Box<str> {
    let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
    if name.chars().any(char::is_control) {
        return name
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect::<String>()
            .into();
    }
    name.into()
}
