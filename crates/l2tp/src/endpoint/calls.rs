//! Calls: RFC 2661 5.2 and 7.4 to 7.5, RFC 3931 3.4 and 7.3 to 7.4.

use base::Instant;
use base::slab::Key;
use wire::l2tp::{Attribute, Message, MessageType, Version};

use super::Endpoint;
use super::read::{check_options, peer_session_id, unreadable_call};
use crate::config::{OutgoingCalls, Pseudowire};
use crate::end::{Codes, Notice, SessionEnd};
use crate::event::{CallErrors, Event as Told};
use crate::pool::NIL;
use crate::session::fsm::{self, Action, Event};
use crate::session::{CallDetails, Cookie, EndedSession, Role, SessionKey, SessionState};

/// CDN codes for an unknown session: RFC 2661 4.4.2, error 5.
fn invalid_session() -> Codes {
    Codes {
        result: 2,
        error: Some(5),
        message: String::new(),
    }
}

impl Endpoint {
    /// A session message of an established tunnel.
    pub(super) fn receive_call(
        &mut self,
        tunnel: u32,
        header_id: u16,
        message: &Message<'_>,
        now: Instant,
    ) {
        let kind = message.kind();
        let found = self.find_call(tunnel, header_id, message);
        if matches!(kind, MessageType::Icrq | MessageType::Ocrq) {
            return match found {
                None => self.receive_request(tunnel, message, now),
                Some(index) => self.refuse_in_session(index, message, now),
            };
        }
        let Some(index) = found else {
            return self.receive_stray(tunnel, header_id, message);
        };
        if kind == MessageType::Cdn {
            let notice = Notice::of_cdn(message);
            return self.step_and_end(index, Event::Cdn, SessionEnd::Peer(notice), now);
        }
        if let Err(reason) = unreadable_call(message) {
            return self.step_and_end(index, Event::Close, reason, now);
        }
        match kind {
            MessageType::Icrp | MessageType::Ocrp => self.receive_reply(index, message, now),
            MessageType::Iccn | MessageType::Occn => self.receive_connected(index, message, now),
            MessageType::Wen => self.receive_wen(index, message),
            MessageType::Sli => self.receive_sli(index, message),
            _ => debug_assert!(false, "{kind:?} is not a session's"),
        }
    }

    /// The session that a message is for, found by our id, or by the peer's if the peer does not know ours yet.
    fn find_call(&self, tunnel: u32, header_id: u16, message: &Message<'_>) -> Option<u32> {
        match message.version() {
            Version::V2 if header_id != 0 => self.narrow_session(tunnel, u32::from(header_id)),
            Version::V3 if message.u32(Attribute::RemoteSessionId).unwrap_or(0) != 0 => {
                let index = self.wide_session(message.u32(Attribute::RemoteSessionId)?)?;
                (self.session_at(index).tunnel == tunnel).then_some(index)
            }
            Version::V2 | Version::V3 => match peer_session_id(message) {
                0 => None,
                id => self.session_by_remote(tunnel, id),
            },
        }
    }

    /// A message for an unknown session. A reply gets a CDN, since its sender
    /// waits for more.
    fn receive_stray(&mut self, tunnel: u32, header_id: u16, message: &Message<'_>) {
        self.counters.session_strays += 1;
        let remote_id = peer_session_id(message);
        let is_reply = matches!(message.kind(), MessageType::Icrp | MessageType::Ocrp);
        if !is_reply || remote_id == 0 {
            return;
        }
        let local_id = match message.version() {
            Version::V2 => u32::from(header_id),
            Version::V3 => message.u32(Attribute::RemoteSessionId).unwrap_or(0),
        };
        if local_id != 0 {
            self.compose_cdn(tunnel, local_id, remote_id, &invalid_session(), None);
        }
    }

    /// ICRQ or OCRQ for a new session.
    fn receive_request(&mut self, tunnel: u32, message: &Message<'_>, now: Instant) {
        let role = match message.kind() {
            MessageType::Icrq => Role::LnsIncoming,
            _ => Role::LacOutgoing,
        };
        let remote_id = peer_session_id(message);
        if !self.resolve_session_tie(tunnel, message, now) {
            return self.refuse_request(tunnel, role, remote_id, SessionEnd::LostTie, now);
        }
        let limits = self.config.limits;
        let full = self.sessions.len() >= limits.sessions as usize
            || self.tunnel_at(tunnel).sessions >= limits.sessions_per_tunnel;
        let acceptable = self.check_request(role, message);
        if full && acceptable.is_ok() {
            return self.refuse_request(tunnel, role, remote_id, SessionEnd::NoFacilities, now);
        }
        if let Err(reason) = acceptable {
            return self.refuse_request(tunnel, role, remote_id, reason, now);
        }
        let Some(index) = self.add_session(tunnel, role, now) else {
            return self.refuse_request(tunnel, role, remote_id, SessionEnd::NoFacilities, now);
        };
        self.set_session_remote(index, remote_id);
        let version = message.version();
        let cookie = self.new_cookie(version);
        let session = self.session_at_mut(index);
        session.announced = true;
        session.local_cookie = cookie;
        if let Some(number) = message.u16(Attribute::PseudowireType) {
            session.pseudowire = number;
        }
        self.take_details(index, message);
        self.step_session(index, Event::RequestAcceptable);
        self.arm_session(index, now + self.config.setup_timeout);
        match role {
            Role::LacOutgoing => {
                self.compose_reply(index, MessageType::Ocrp);
                if self.config.outgoing_calls == OutgoingCalls::Answer {
                    self.bearer_answered(index);
                } else {
                    let session = SessionKey(self.session_at(index).key);
                    self.events.push_back(Told::CallRequested { session });
                }
            }
            Role::LnsIncoming | Role::LacIncoming | Role::LnsOutgoing => {
                self.compose_reply(index, MessageType::Icrp);
            }
        }
    }

    /// Whether an ICRQ or OCRQ can be accepted.
    fn check_request(&self, role: Role, message: &Message<'_>) -> Result<(), SessionEnd> {
        unreadable_call(message)?;
        let version = message.version();
        let id_attribute = match version {
            Version::V2 => Attribute::AssignedSessionId,
            Version::V3 => Attribute::LocalSessionId,
        };
        if !message.has(id_attribute) {
            return Err(SessionEnd::MissingAvp(id_attribute));
        }
        if peer_session_id(message) == 0 {
            return Err(SessionEnd::BadValue(id_attribute.name()));
        }
        if role == Role::LacOutgoing && self.config.outgoing_calls == OutgoingCalls::Refuse {
            return Err(SessionEnd::NoFacilities);
        }
        if version == Version::V2 {
            return Ok(());
        }
        let number = message
            .u16(Attribute::PseudowireType)
            .ok_or(SessionEnd::MissingAvp(Attribute::PseudowireType))?;
        let offered = Pseudowire::from_number(number)
            .is_some_and(|pseudowire| self.config.pseudowires.contains(&pseudowire));
        if !offered {
            return Err(SessionEnd::UnsupportedPseudowire(number));
        }
        check_options(message, false)
    }

    /// CDN for a call that gets no record.
    fn refuse_request(
        &mut self,
        tunnel: u32,
        role: Role,
        remote_id: u32,
        reason: SessionEnd,
        now: Instant,
    ) {
        let (action, _) = fsm::step(role, SessionState::Idle, Event::RequestUnacceptable);
        debug_assert_eq!(action, Action::SendCdn);
        let record = self.tunnel_at(tunnel);
        let (version, tunnel_id) = (record.version, record.local_id);
        let id = match version {
            Version::V2 => 1 + self.random.below(0xffff),
            Version::V3 => crate::ids::wide_id(0, &mut self.random),
        };
        if let Some(codes) = reason.codes(version) {
            self.compose_cdn(tunnel, id, remote_id, &codes, None);
        }
        self.remember_session(EndedSession {
            id,
            remote_id,
            tunnel_id,
            version,
            created: now,
            up: None,
            ended: now,
            reason,
        });
    }

    /// Resolves two crossing calls for one circuit (RFC 3931 5.4.4). `false` if
    /// the peer's loses.
    fn resolve_session_tie(&mut self, tunnel: u32, message: &Message<'_>, now: Instant) -> bool {
        let end_id = message
            .get(Attribute::RemoteEndId)
            .filter(|id| !id.is_empty());
        let (Version::V3, Some(end_id)) = (message.version(), end_id) else {
            return true;
        };
        if self.tunnel_at(tunnel).calls_unanswered == 0 {
            return true;
        }
        let theirs = message.u64(Attribute::TieBreaker);
        let (mut at, mut wins) = (self.tunnel_at(tunnel).first_session, true);
        while at != NIL {
            let session = self.session_at(at);
            let next = session.next;
            let same = session.state == SessionState::WaitReply
                && session
                    .details
                    .as_ref()
                    .is_some_and(|d| *d.remote_end_id == *end_id);
            if same {
                let ours = (session.tie_breaker != 0).then_some(session.tie_breaker);
                let we_win = match (ours, theirs) {
                    (Some(ours), Some(theirs)) => ours < theirs,
                    (ours, _) => ours.is_some(),
                };
                // Equal or absent on both sides: both calls end.
                wins &= ours != theirs && !we_win;
                if !we_win {
                    self.end_session(at, SessionEnd::LostTie, now);
                }
            }
            at = next;
        }
        wins
    }

    /// ICRQ or OCRQ for an existing session: out of order.
    fn refuse_in_session(&mut self, index: u32, message: &Message<'_>, now: Instant) {
        let what = message.kind().name();
        self.step_and_end(
            index,
            Event::RequestAcceptable,
            SessionEnd::StateMachine(what),
            now,
        );
    }

    /// ICRP or OCRP.
    fn receive_reply(&mut self, index: u32, message: &Message<'_>, now: Instant) {
        let session = self.session_at(index);
        let expected = match session.role {
            Role::LacIncoming => MessageType::Icrp,
            Role::LnsOutgoing => MessageType::Ocrp,
            Role::LnsIncoming | Role::LacOutgoing => MessageType::Unknown(0),
        };
        if session.state != SessionState::WaitReply || message.kind() != expected {
            let reason = SessionEnd::StateMachine(message.kind().name());
            return self.step_and_end(index, Event::ReplyUnacceptable, reason, now);
        }
        let remote_id = peer_session_id(message);
        let in_use = self.session_by_remote(session.tunnel, remote_id).is_some();
        let reason = match check_options(message, false) {
            Err(reason) => Some(reason),
            Ok(()) if remote_id == 0 => Some(SessionEnd::BadValue("session id")),
            Ok(()) if in_use => Some(SessionEnd::BadValue("session id that is in use")),
            Ok(()) => None,
        };
        if let Some(reason) = reason {
            return self.step_and_end(index, Event::ReplyUnacceptable, reason, now);
        }
        self.set_session_remote(index, remote_id);
        self.take_options(index, message);
        self.take_circuit_status(index, message);
        if self.step_session(index, Event::ReplyAcceptable) == Action::SendConnected {
            self.compose_connected(index, MessageType::Iccn);
        }
    }

    /// ICCN or OCCN.
    fn receive_connected(&mut self, index: u32, message: &Message<'_>, now: Instant) {
        let session = self.session_at(index);
        let expected = match session.role {
            Role::LnsIncoming => MessageType::Iccn,
            Role::LnsOutgoing => MessageType::Occn,
            Role::LacIncoming | Role::LacOutgoing => MessageType::Unknown(0),
        };
        if session.state != SessionState::WaitConnect || message.kind() != expected {
            let reason = SessionEnd::StateMachine(message.kind().name());
            return self.step_and_end(index, Event::ConnectedUnacceptable, reason, now);
        }
        if let Err(reason) = check_options(message, session.sublayer) {
            return self.step_and_end(index, Event::ConnectedUnacceptable, reason, now);
        }
        self.take_details(index, message);
        self.step_session(index, Event::ConnectedAcceptable);
        self.session_up(index, now);
    }

    fn receive_wen(&mut self, index: u32, message: &Message<'_>) {
        let session = SessionKey(self.session_at(index).key);
        if let Some(errors) = message
            .get(Attribute::CallErrors)
            .and_then(CallErrors::from_wire)
        {
            self.events.push_back(Told::WanErrors { session, errors });
        }
    }

    fn receive_sli(&mut self, index: u32, message: &Message<'_>) {
        let session = SessionKey(self.session_at(index).key);
        let accm = message.get(Attribute::Accm).and_then(|value| {
            let value: &[u8; 10] = value.try_into().ok()?;
            let at =
                |i: usize| u32::from_be_bytes([value[i], value[i + 1], value[i + 2], value[i + 3]]);
            Some((at(2), at(6)))
        });
        let circuit_status = message.u16(Attribute::CircuitStatus);
        self.take_circuit_status(index, message);
        self.events.push_back(Told::LinkInfo {
            session,
            accm,
            circuit_status,
        });
    }

    /// The message that connects a session has been sent.
    pub(super) fn session_connected(&mut self, session: Key, now: Instant) {
        let session = self
            .sessions
            .get(session)
            .map(|one| (one.key.index, one.up));
        if let Some((index, None)) = session {
            self.session_up(index, now);
        }
    }

    pub(super) fn session_up(&mut self, index: u32, now: Instant) {
        self.disarm_session(index);
        let session = self.session_at_mut(index);
        session.up = Some(now);
        let (key, tunnel, id) = (SessionKey(session.key), session.tunnel, session.local_id);
        self.counters.sessions_established += 1;
        let tunnel = self.tunnel_key(tunnel);
        self.events.push_back(Told::SessionUp {
            session: key,
            tunnel,
            id,
        });
    }

    /// Applies a step of the table; the caller carries out its actions.
    pub(super) fn step_session(&mut self, index: u32, event: Event) -> Action {
        let session = self.session_at(index);
        let (action, next) = fsm::step(session.role, session.state, event);
        self.set_session_state(index, next);
        action
    }

    /// The only place that writes a session's state, and updates the counts.
    pub(super) fn set_session_state(&mut self, index: u32, next: SessionState) {
        let session = self.session_at_mut(index);
        let was = core::mem::replace(&mut session.state, next);
        let tunnel = session.tunnel;
        let follow = |count: &mut u32, state| {
            *count += u32::from(next == state);
            *count -= u32::from(was == state);
        };
        follow(
            &mut self.tally.sessions_established,
            SessionState::Established,
        );
        follow(
            &mut self.tunnel_at_mut(tunnel).calls_unanswered,
            SessionState::WaitReply,
        );
    }

    /// Applies a step that ends the session, with or without a CDN as the table requires.
    fn step_and_end(&mut self, index: u32, event: Event, reason: SessionEnd, now: Instant) {
        let session = self.session_at_mut(index);
        let (action, next) = fsm::step(session.role, session.state, event);
        debug_assert_eq!(next, SessionState::Idle, "{event:?} ends a session");
        if action == Action::CleanUp {
            session.announced = false;
        }
        self.end_session(index, reason, now);
    }

    /// Stores the cookie, sublayer and sequencing that the peer requests.
    fn take_options(&mut self, index: u32, message: &Message<'_>) {
        let session = self.session_at_mut(index);
        if let Some(cookie) = message
            .get(Attribute::AssignedCookie)
            .and_then(Cookie::from_wire)
        {
            session.remote_cookie = cookie;
        }
        if let Some(kind) = message.u16(Attribute::L2SpecificSublayer) {
            session.sublayer = kind == 1;
        }
        session.sequencing |= message.has(Attribute::SequencingRequired)
            || message
                .u16(Attribute::DataSequencing)
                .is_some_and(|level| level != 0);
    }

    /// The peer's latest circuit status (RFC 3931 5.4.5).
    fn take_circuit_status(&mut self, index: u32, message: &Message<'_>) {
        if let Some(status) = message.u16(Attribute::CircuitStatus) {
            let details = &mut self.session_at_mut(index).details;
            details.get_or_insert_default().circuit_status = status;
        }
    }

    fn take_details(&mut self, index: u32, message: &Message<'_>) {
        self.take_options(index, message);
        let session = self.session_at_mut(index);
        let mut details = session.details.take().unwrap_or_default();
        details.take(message);
        session.details = (*details != CallDetails::default()).then_some(details);
    }
}
