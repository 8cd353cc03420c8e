//! Commands: open tunnels and sessions, answer calls, send HELLO, WEN and SLI.
//!
//! Implements parts of RFC 3931, sections 3.4.1, 3.4.2, 5.4.4, 6.13 and 6.14, and RFC 2868, sections 3.9 and 3.10.

use base::{Instant, Redacted, Route};
use wire::l2tp::{MessageType, Version};

use super::Endpoint;
use crate::config::Pseudowire;
use crate::end::SessionEnd;
use crate::event::CallErrors;
use crate::pool::NIL;
use crate::session::{Call, Cookie, Direction, Role, SessionKey, SessionState, fsm as call};
use crate::tunnel::fsm::{self, Event};
use crate::tunnel::{Auth, Ending, TunnelKey, TunnelState};

/// The peer and version of a new tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTunnel {
    /// The peer's address and port, our address, the socket.
    pub route: Route,
    /// The protocol version to request.
    pub version: Version,
}

/// What a tunnel that we open has of its own, in place of the configuration's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity<'a> {
    /// The shared secret; `None` for the configuration's.
    pub secret: Option<&'a Redacted<Vec<u8>>>,
    /// Our Host Name, 1 to 255 octets; `None` for the configuration's.
    pub host_name: Option<&'a str>,
    /// The Host Name that the peer must give; `None` for any.
    pub peer_name: Option<&'a str>,
}

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// This endpoint is being shut down.
    #[error("shutting down")]
    ShuttingDown,
    /// The version is disabled here.
    #[error("this protocol version is switched off")]
    VersionOff,
    /// The table of tunnels is full.
    #[error("the limit of tunnels is reached")]
    TunnelLimit,
    /// The table of sessions is full.
    #[error("the limit of sessions is reached")]
    SessionLimit,
    /// No such tunnel, or it is closing.
    #[error("no such tunnel")]
    NoSuchTunnel,
    /// L2TPv2 carries PPP only.
    #[error("L2TPv2 carries PPP only")]
    NotInV2,
    /// The owner carries no frames of this type (`Config::pseudowires`).
    #[error("the frames of pseudowires of type {} are not carried", .0.name())]
    NotCarried(Pseudowire),
    /// A number, name or proxy value is longer than an AVP can hold hidden,
    /// 1,015 octets.
    #[error("a value of the call is longer than 1,015 octets")]
    TooLong,
}

impl Endpoint {
    /// Sends an SCCRQ.
    ///
    /// # Errors
    /// A limit is reached, the version is off, or the endpoint is shutting down.
    pub fn open_tunnel(&mut self, open: OpenTunnel, now: Instant) -> Result<TunnelKey, OpenError> {
        self.open_tunnel_as(open, Identity::default(), now)
    }

    /// Sends an SCCRQ with a secret or names of this tunnel's own.
    ///
    /// # Errors
    /// As for [`Endpoint::open_tunnel`].
    pub fn open_tunnel_as(
        &mut self,
        open: OpenTunnel,
        identity: Identity<'_>,
        now: Instant,
    ) -> Result<TunnelKey, OpenError> {
        if self.shutting_down {
            return Err(OpenError::ShuttingDown);
        }
        let spoken = match open.version {
            Version::V2 => self.config.versions.v2,
            Version::V3 => self.config.versions.v3,
        };
        if !spoken {
            return Err(OpenError::VersionOff);
        }
        if self.tally.live >= self.config.limits.tunnels {
            return Err(OpenError::TunnelLimit);
        }
        let index = self
            .add_tunnel_evicting(open.route, open.version, now)
            .ok_or(OpenError::TunnelLimit)?;
        let keys = match identity.secret {
            Some(secret) => self.keys.number_of(Some(secret)),
            None => self.keys.number(),
        };
        let mut setup = self.new_setup(keys, open.version, self.config.tie_breaker);
        setup.host_name = identity.host_name.map(Into::into);
        setup.peer_name = identity.peer_name.map(Into::into);
        let auth = (open.version == Version::V3 && self.keys.of(keys).is_some()).then(|| {
            Box::new(Auth {
                local_nonce: self.random.bytes(),
                told: true,
                remote_nonce: Box::default(),
            })
        });
        let setup_timeout = self.config.setup_timeout;
        let tunnel = self.tunnel_at_mut(index);
        tunnel.originated = true;
        tunnel.keys = keys;
        tunnel.setup = Some(setup);
        tunnel.auth = auth;
        tunnel.idle_deadline = now + setup_timeout;
        self.step_tunnel(index, Event::OpenRequest);
        self.compose_sccrq(index);
        Ok(self.tunnel_key(index))
    }

    /// Makes a call in a tunnel; the call waits until the tunnel is established.
    ///
    /// # Errors
    /// No such tunnel, a limit is reached, or the call does not fit the version.
    pub fn open_session(
        &mut self,
        tunnel: TunnelKey,
        call: Call,
        now: Instant,
    ) -> Result<SessionKey, OpenError> {
        if self.shutting_down {
            return Err(OpenError::ShuttingDown);
        }
        let record = self
            .tunnels
            .get(tunnel.0)
            .filter(|t| t.ending == Ending::No);
        let record = record.ok_or(OpenError::NoSuchTunnel)?;
        let (version, sessions) = (record.version, record.sessions);
        if version == Version::V2 && call.pseudowire != Pseudowire::Ppp {
            return Err(OpenError::NotInV2);
        }
        if version == Version::V3 && !self.config.pseudowires.contains(&call.pseudowire) {
            return Err(OpenError::NotCarried(call.pseudowire));
        }
        if !call.details.fits() {
            return Err(OpenError::TooLong);
        }
        let limits = self.config.limits;
        if self.sessions.len() >= limits.sessions as usize || sessions >= limits.sessions_per_tunnel
        {
            return Err(OpenError::SessionLimit);
        }
        let role = match call.direction {
            Direction::Incoming => Role::LacIncoming,
            Direction::Outgoing => Role::LnsOutgoing,
        };
        let index = self
            .add_session(tunnel.0.index, role, now)
            .ok_or(OpenError::SessionLimit)?;
        let (cookie, tie) = (self.new_cookie(version), self.new_session_tie(version));
        let mut details = call.details;
        if details.serial == 0 {
            self.next_serial = self.next_serial.wrapping_add(1).max(1);
            details.serial = self.next_serial;
        }
        let session = self.session_at_mut(index);
        session.pseudowire = call.pseudowire.number();
        session.sequencing = call.sequencing;
        session.local_cookie = cookie;
        session.tie_breaker = tie;
        session.details = Some(Box::new(details));
        let key = SessionKey(session.key);
        self.step_session(index, call::Event::OpenRequest);
        self.await_tunnel(index, now);
        Ok(key)
    }

    pub(super) fn new_cookie(&mut self, version: Version) -> Cookie {
        match version {
            Version::V2 => Cookie::NONE,
            Version::V3 => Cookie::new(self.random.bytes(), self.config.cookie_len),
        }
    }

    fn new_session_tie(&mut self, version: Version) -> u64 {
        if version == Version::V3 && self.config.tie_breaker {
            self.random.u64().max(1)
        } else {
            0
        }
    }

    /// wait-tunnel: continues at once if the tunnel is established.
    fn await_tunnel(&mut self, index: u32, now: Instant) {
        let tunnel = self.session_at(index).tunnel;
        let record = self.tunnel_at_mut(tunnel);
        let (_, next) = fsm::step(record.state, Event::OpenRequest);
        if next == TunnelState::Established {
            self.tunnel_open_event(index, now);
        } else {
            record.sessions_wait = true;
        }
    }

    /// Continues the sessions that wait for the tunnel.
    pub(super) fn open_waiting_sessions(&mut self, tunnel: u32, now: Instant) {
        // The list starts with the newest session; calls must be made in the order they were opened.
        let (mut at, mut last) = (self.tunnel_at(tunnel).first_session, NIL);
        while at != NIL {
            (last, at) = (at, self.session_at(at).next);
        }
        while last != NIL {
            let session = self.session_at(last);
            let (before, waits) = (session.prev, session.state == SessionState::WaitTunnel);
            if waits {
                self.tunnel_open_event(last, now);
            }
            last = before;
        }
    }

    fn tunnel_open_event(&mut self, index: u32, now: Instant) {
        let session = self.session_at(index);
        let (role, pseudowire) = (session.role, session.pseudowire);
        let kind = match role {
            Role::LacIncoming | Role::LnsIncoming => MessageType::Icrq,
            Role::LnsOutgoing | Role::LacOutgoing => MessageType::Ocrq,
        };
        let offers = self.tunnel_at(session.tunnel).offers;
        if !offers.takes(pseudowire) {
            let reason = SessionEnd::UnsupportedPseudowire(pseudowire);
            return self.end_session(index, reason, now);
        }
        if kind == MessageType::Ocrq && !offers.places_calls() {
            return self.end_session(index, SessionEnd::NoFacilities, now);
        }
        self.step_session(index, call::Event::TunnelOpen);
        let session = self.session_at_mut(index);
        session.announced = true;
        if kind == MessageType::Icrq {
            session.details.get_or_insert_default();
        }
        self.compose_request(index, kind);
        self.arm_session(index, now + self.config.setup_timeout);
    }

    /// Reports that the bearer answered a call that `Event::CallRequested` asked for; `false` if the session
    /// does not wait for that.
    pub fn answer_call(&mut self, session: SessionKey) -> bool {
        let waits = self
            .sessions
            .get(session.0)
            .is_some_and(|s| s.role == Role::LacOutgoing && s.state == SessionState::WaitCsAnswer);
        if waits {
            self.bearer_answered(session.0.index);
        }
        waits
    }

    pub(super) fn bearer_answered(&mut self, index: u32) {
        self.step_session(index, call::Event::BearerAnswer);
        self.compose_connected(index, MessageType::Occn);
    }

    /// Sends a HELLO in an established tunnel now. `false` if there is no such
    /// tunnel.
    pub fn send_hello(&mut self, tunnel: TunnelKey) -> bool {
        let up = self
            .tunnels
            .get(tunnel.0)
            .is_some_and(|t| t.state == TunnelState::Established);
        if up {
            self.compose_hello(tunnel.0.index);
        }
        up
    }

    /// Sends a WEN with a call's error counters; `false` without such a session. The caller must not send more
    /// than one in 60 s (RFC 2661 6.13).
    pub fn send_wan_errors(&mut self, session: SessionKey, errors: CallErrors) -> bool {
        let up = self.is_up(session);
        if up {
            self.compose_wen(session.0.index, errors);
        }
        up
    }

    /// Sends an SLI: the ACCMs for sending and receiving in L2TPv2, whether the
    /// circuit is active in L2TPv3; `false` without such a session.
    pub fn send_link_info(&mut self, session: SessionKey, accm: (u32, u32), active: bool) -> bool {
        let up = self.is_up(session);
        if up {
            self.compose_sli(session.0.index, accm, active);
        }
        up
    }

    fn is_up(&self, session: SessionKey) -> bool {
        self.sessions
            .get(session.0)
            .is_some_and(|s| s.state == SessionState::Established)
    }

    /// Moves a tunnel to another of the owner's sockets.
    pub fn set_socket(&mut self, tunnel: TunnelKey, socket: u32) {
        if let Some(tunnel) = self.tunnels.get_mut(tunnel.0) {
            tunnel.route.socket = socket;
        }
    }
}
