//! Setting a control connection up: RFC 2661 5.1 and 7.2.1, RFC 3931 3.3 and
//! 7.2. Requests, ties, limits, authentication.

use base::{Datagram, Instant};
use core::hash::BuildHasher;
use wire::l2tp::{self, Attribute, Control, Message, MessageType, Version, auth, digest};

use super::read::{assigned_id, printable, unreadable};
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

/// An SCCRQ that repeats that of an established or closed tunnel this long after
/// is no late duplicate: the peer restarted with the same id.
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
        let Some(keys) = self.keys.current() else {
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
            let id = Attribute::AssignedControlConnectionId.number();
            let asks_v3 = message
                .avps()
                .any(|avp| avp.vendor == 0 && avp.attribute == id);
            let wider = asks_v3.then(|| Message::parse(Version::V3, control.body));
            if let Some(wider) = wider
                && wider.has(Attribute::AssignedControlConnectionId)
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
        let credentials = self.check_request_digest(control, message)?;
        let remote_id = assigned_id(message);
        let request_hash = self.hasher.hash_one(control.body) as u32;
        let earlier = self.find_request(peer, remote_id, version);
        // A refused request must not affect existing tunnels.
        let has_secret = self.keys.current().is_some();
        let acceptable = credentials.check();
        let acceptable = acceptable.and_then(|()| check_start(message, has_secret));
        if let Some(index) = earlier {
            let same = self.tunnel_at(index).request_hash == request_hash;
            if same && !self.has_outlived_request(index, now) {
                return self.receive_sequenced(index, datagram, control, now);
            }
        }
        let harmful = earlier.is_some() && acceptable.is_err();
        if control.ns != 0 || control.nr != 0 || harmful {
            return Err(Discard::NotARequest);
        }
        let replaces = earlier.is_some_and(|index| self.tunnel_at(index).ending == Ending::No);
        if self.tally.live >= self.config.limits.tunnels && !replaces {
            return self.refuse_full(datagram.route, version, remote_id);
        }
        let frees = earlier.is_some_and(|index| self.tunnel_at(index).is_half_open());
        if self.source_is_full(peer.ip()) && !frees {
            return Err(Discard::HalfOpenPerSource);
        }
        if acceptable.is_ok() {
            self.resolve_tie(datagram.route, message, now)?;
        }
        if let Some(index) = earlier {
            self.forget_restarted(index, now);
        }
        if self.tally.half_open >= self.config.limits.half_open
            && !self.forget_oldest_half_open(now)
        {
            return Err(Discard::HalfOpenLimit);
        }
        let Some(index) = self.add_tunnel_evicting(datagram.route, version, now) else {
            return self.refuse_full(datagram.route, version, remote_id);
        };
        self.begin_half_open(index, (remote_id, request_hash), now);
        self.counters.count_received(MessageType::Sccrq.number());
        self.counters.ignored_avps += u64::from(message.ignored_avps());
        if let Credentials::Signed(auth) = credentials {
            // Before the refusal too, so that it can be signed.
            self.tunnel_at_mut(index).auth = Some(auth);
        }
        match acceptable {
            Ok(()) => self.accept_sccrq(index, message),
            Err(reason) => self.end_tunnel(index, Event::SccrqUnacceptable, reason, now),
        }
        self.mark_ready(index);
        Ok(())
    }

    /// A new tunnel has received its SCCRQ, from a peer that calls it `remote_id`.
    fn begin_half_open(&mut self, index: u32, (remote_id, hash): (u32, u32), now: Instant) {
        let setup_timeout = self.config.setup_timeout;
        let tunnel = self.tunnel_at_mut(index);
        tunnel.remote_id = remote_id;
        tunnel.request_hash = hash;
        tunnel.reliable.advance();
        tunnel.received = 1;
        tunnel.idle_deadline = now + setup_timeout;
        self.insert_request(index);
        self.add_half_open(index);
    }

    /// Answers an acceptable SCCRQ with an SCCRP.
    fn accept_sccrq(&mut self, index: u32, message: &Message<'_>) {
        self.take_start(index, message);
        self.step_tunnel(index, Event::SccrqAcceptable);
        self.compose_sccrp(index, message);
        self.events.push_back(crate::Event::TunnelAccepted {
            tunnel: self.tunnel_key(index),
        });
    }

    /// Whether a repeated SCCRQ of a tunnel cannot be a late duplicate.
    fn has_outlived_request(&self, index: u32, now: Instant) -> bool {
        let tunnel = self.tunnel_at(index);
        if tunnel.auth.is_some() {
            // A peer that restarts has a new nonce: this one is a replay.
            return false;
        }
        match (tunnel.ending, tunnel.up) {
            // Held: closed for `hold` minus the remaining time.
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

    /// An L2TPv3 request is authenticated before it is used (RFC 3931 4.3).
    fn check_request_digest(
        &mut self,
        control: &Control<'_>,
        message: &Message<'_>,
    ) -> Result<Credentials, Discard> {
        if message.version() == Version::V2 {
            return Ok(Credentials::Plain);
        }
        let nonce = message.get(Attribute::ControlMessageAuthenticationNonce);
        let signed = digest::present(control.whole);
        let good = match self.keys.current() {
            Some(keys) => !signed || digest::verify(control.whole, &keys.digest, &[], &[]),
            None if nonce.is_some() => true,
            None => !signed || digest::verify(control.whole, &digest::shared_key(&[]), &[], &[]),
        };
        if !good {
            return Err(Discard::BadDigest);
        }
        Ok(match (self.keys.current().is_some(), nonce) {
            (true, Some(nonce)) if signed => Credentials::Signed(Box::new(Auth {
                local_nonce: self.random.bytes(),
                told: false,
                remote_nonce: nonce.into(),
            })),
            (true, _) => Credentials::Refused("the request is not authenticated"),
            (false, Some(_)) => Credentials::Refused("no shared secret here"),
            (false, None) => Credentials::Plain,
        })
    }

    /// Stores the peer's values from an acceptable SCCRQ or SCCRP.
    fn take_start(&mut self, index: u32, message: &Message<'_>) {
        let window = message.u16(Attribute::ReceiveWindowSize);
        let tunnel = self.tunnel_at_mut(index);
        tunnel.peer_host = printable(message.get(Attribute::HostName).unwrap_or_default());
        tunnel
            .reliable
            .set_peer_window(window.unwrap_or(DEFAULT_WINDOW));
        tunnel.offers = Offers::from_message(message);
    }

    /// Resolves two crossing requests, at least one with a tie breaker (RFC 2661 4.4.3). An error means ours
    /// won and this one is dropped.
    fn resolve_tie(
        &mut self,
        route: base::Route,
        message: &Message<'_>,
        now: Instant,
    ) -> Result<(), Discard> {
        let theirs = message.u64(Attribute::TieBreaker);
        if theirs.is_none() && !self.config.tie_breaker {
            return Ok(());
        }
        let peer = route.peer.ip();
        let Some(record) = self.peers.find(peer).map(|at| self.peers.at(at)) else {
            return Ok(());
        };
        let (mut at, mut opening) = (record.first_tunnel, record.opening);
        let (mut lost, mut won) = (false, false);
        while at != NIL && opening > 0 {
            let tunnel = self.tunnel_at(at);
            let next = tunnel.peer_next;
            if tunnel.originated && tunnel.state == TunnelState::WaitCtlReply {
                opening -= 1;
                let ours = tunnel.setup.as_ref().and_then(|setup| setup.tie_breaker);
                // The lower value wins; any value wins over none.
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
        let has_secret = self.keys.of(self.tunnel_at(index).keys).is_some();
        let accepted = check_start(message, has_secret)
            .and_then(|()| self.check_reply_authentication(index, message))
            .and_then(|()| self.check_peer_name(index, message));
        match accepted {
            Ok(()) => {
                self.take_start(index, message);
                self.compose_scccn(index, message);
                self.step_tunnel(index, Event::SccrpAcceptable);
                self.tunnel_up(index, now);
            }
            Err(reason) => self.end_tunnel(index, Event::SccrpUnacceptable, reason, now),
        }
    }

    /// Whether the peer has the name that its tunnel was opened for (RFC 2868, section 3.10).
    fn check_peer_name(&self, index: u32, message: &Message<'_>) -> Result<(), TunnelEnd> {
        let setup = self.tunnel_at(index).setup.as_deref();
        let wanted = setup.and_then(|setup| setup.peer_name.as_deref());
        let given = message.get(Attribute::HostName).unwrap_or_default();
        match wanted.is_none_or(|wanted| wanted.as_bytes() == given) {
            true => Ok(()),
            false => Err(TunnelEnd::NotAuthorized("the peer has another host name")),
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
        let tunnel = self.tunnel_at(index);
        let challenge = tunnel.setup.as_ref().and_then(|setup| setup.challenge);
        let (Some(challenge), Some(keys)) = (challenge, self.keys.of(tunnel.keys)) else {
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

    /// Established: continues waiting sessions, and frees the set-up state.
    fn tunnel_up(&mut self, index: u32, now: Instant) {
        let hello = self.hello_wait();
        let tunnel = self.tunnel_at_mut(index);
        tunnel.up = Some(now);
        tunnel.setup = None;
        tunnel.idle_deadline = hello.map_or(Instant::FAR_FUTURE, |wait| now + wait);
        let (id, waiting) = (tunnel.local_id, core::mem::take(&mut tunnel.sessions_wait));
        self.tally.established += 1;
        self.counters.tunnels_established += 1;
        self.watch_empty(index, now);
        let tunnel = self.tunnel_key(index);
        self.events.push_back(crate::Event::TunnelUp { tunnel, id });
        if waiting {
            self.open_waiting_sessions(index, now);
        }
    }

    /// Applies a step of the table; the caller carries out its actions.
    pub(super) fn step_tunnel(&mut self, index: u32, event: Event) -> Action {
        let (action, next) = fsm::step(self.tunnel_at(index).state, event);
        self.set_tunnel_state(index, next);
        action
    }

    /// The only place that writes a tunnel's state, and updates the counts.
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
            self.remove_half_open(index);
        }
        debug_assert!(self.tunnel_at(index).ending == Ending::No);
    }

    /// State for the set-up of a tunnel whose secret has the number `keys`.
    pub(super) fn new_setup(
        &mut self,
        keys: u16,
        version: Version,
        tie_breaker: bool,
    ) -> Box<Setup> {
        let challenge = (version == Version::V2 && self.keys.of(keys).is_some())
            .then(|| self.random.bytes::<16>());
        let tie_breaker = tie_breaker.then(|| self.random.u64());
        Box::new(Setup {
            challenge,
            tie_breaker,
            ..Setup::default()
        })
    }
}

/// Why an SCCRQ or SCCRP must be refused, if it must.
fn check_start(message: &Message<'_>, has_secret: bool) -> Result<(), TunnelEnd> {
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
    if !message.has(Attribute::HostName) {
        return Err(TunnelEnd::MissingAvp(Attribute::HostName));
    }
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
    if version == Version::V2 && !has_secret && message.has(Attribute::Challenge) {
        return Err(TunnelEnd::NotAuthorized(
            "a challenge, but no shared secret here",
        ));
    }
    if message.u16(Attribute::ReceiveWindowSize) == Some(0) {
        return Err(TunnelEnd::BadValue(Attribute::ReceiveWindowSize.name()));
    }
    Ok(())
}

/// The authentication of an SCCRQ.
enum Credentials {
    /// Not needed, or done by the AVPs of RFC 2661.
    Plain,
    /// Its digest is right (RFC 3931 4.3).
    Signed(Box<Auth>),
    /// Missing or wrong, and why.
    Refused(&'static str),
}

impl Credentials {
    fn check(&self) -> Result<(), TunnelEnd> {
        match self {
            Self::Plain | Self::Signed(_) => Ok(()),
            Self::Refused(why) => Err(TunnelEnd::NotAuthorized(why)),
        }
    }
}
