//! The fields of a session.

use base::slab::Key;
use base::snapshot::{Codec, Part};
use base::{Instant, Redacted};
use wire::l2tp::Version;
use wire::pppoe::LineInfo;

use super::{Refused, VALUE_MAX, text};
use crate::cause::PppCause;
use crate::ids;
use crate::session::{CallDetails, Cookie, Proxy, Role, Session, SessionState};
use crate::tunnel::TunnelState;

const ROLES: &[(u8, Role)] = &[
    (0, Role::LnsIncoming),
    (1, Role::LacIncoming),
    (2, Role::LacOutgoing),
    (3, Role::LnsOutgoing),
];

/// Established comes first, since the first value takes no octets. Idle sessions do not exist.
const STATES: &[(u8, SessionState)] = &[
    (5, SessionState::Established),
    (1, SessionState::WaitTunnel),
    (2, SessionState::WaitReply),
    (3, SessionState::WaitConnect),
    (4, SessionState::WaitCsAnswer),
];

/// Numbers of data messages have 24 bits in L2TPv3 and 16 in L2TPv2.
const SEQUENCES: u32 = 1 << 24;

/// The most octets of the values of an access line: 20 numbers, and two texts of 63 octets.
const LINE_MAX: usize = 512;

/// A session, and what the endpoint knows of it besides.
pub(crate) struct SessionValue<'a> {
    pub(crate) session: &'a mut Session,
    /// Its tunnel.
    pub(crate) tunnel: Key,
    /// When its timer is due.
    pub(crate) due: Option<Instant>,
}

impl<'a> SessionValue<'a> {
    /// A value to be read into `session`, which comes from [`blank`].
    pub(crate) fn new(session: &'a mut Session) -> Self {
        let tunnel = Key {
            index: 0,
            generation: 0,
        };
        Self {
            session,
            tunnel,
            due: None,
        }
    }

    /// Whether the fields that were read fit together and into a tunnel of that state.
    pub(crate) fn check(&self, version: Version, tunnel: TunnelState) -> Result<(), Refused> {
        use SessionState::{Established, Idle, WaitConnect, WaitCsAnswer, WaitReply, WaitTunnel};
        let session = &*self.session;
        let fault = |field| Err(Refused::value(Self::NAME, field));
        let role_fits = match session.state {
            Idle => false,
            Established => true,
            WaitTunnel | WaitReply => {
                matches!(session.role, Role::LacIncoming | Role::LnsOutgoing)
            }
            WaitConnect => matches!(session.role, Role::LnsIncoming | Role::LnsOutgoing),
            WaitCsAnswer => session.role == Role::LacOutgoing,
        };
        let waits = session.state == WaitTunnel;
        if !role_fits || waits == (tunnel == TunnelState::Established) {
            return fault("state");
        }
        if session.up.is_some() && session.state != Established {
            return fault("up");
        }
        if session.key.index >= ids::MAX_SESSIONS {
            return fault("place");
        }
        let is_narrow = version == Version::V2;
        let local_fits = match version {
            Version::V2 => (1..=0xffff).contains(&session.local_id),
            Version::V3 => ids::is_wide(session.local_id, session.key.index),
        };
        if !local_fits {
            return fault("local_id");
        }
        if is_narrow && session.remote_id > 0xffff {
            return fault("remote_id");
        }
        if session.expected_sequence.max(session.sent_sequence) >= SEQUENCES {
            return fault("sent_sequence");
        }
        let fits = session.details.as_ref().is_none_or(|one| one.fits());
        if waits && !fits {
            return fault("details");
        }
        Ok(())
    }
}

/// A session to read into: absent fields keep these values.
pub(crate) fn blank() -> Session {
    let key = Key {
        index: 0,
        generation: 0,
    };
    Session {
        state: SessionState::Established,
        pseudowire: 0,
        ..Session::new(key, 0, Version::V2, Role::LnsIncoming, Instant::ZERO)
    }
}

impl Part for SessionValue<'_> {
    const NAME: &'static str = "session";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let session = &mut *self.session;
        codec.number(1, "place", &mut session.key.index);
        codec.number(2, "generation", &mut session.key.generation);
        codec.number(3, "tunnel", &mut self.tunnel.index);
        codec.number(4, "tunnel_generation", &mut self.tunnel.generation);
        codec.number(5, "local_id", &mut session.local_id);
        codec.number(6, "remote_id", &mut session.remote_id);
        codec.choice(7, "role", &mut session.role, ROLES);
        codec.choice(8, "state", &mut session.state, STATES);
        codec.number(9, "announced", &mut session.announced);
        codec.number(10, "pseudowire", &mut session.pseudowire);
        codec.time(11, "created", &mut session.created);
        codec.maybe_time(12, "up", &mut session.up);
        codec.maybe_time(13, "due", &mut self.due);
        cookie(codec, 14, "local_cookie", &mut session.local_cookie);
        cookie(codec, 15, "remote_cookie", &mut session.remote_cookie);
        codec.number(16, "sublayer", &mut session.sublayer);
        codec.number(17, "local_sublayer", &mut session.local_sublayer);
        codec.number(18, "expected_sequence", &mut session.expected_sequence);
        codec.number(19, "sent_sequence", &mut session.sent_sequence);
        codec.number(20, "sequencing", &mut session.sequencing);
        codec.number(21, "sequencing_by_peer", &mut session.sequencing_by_peer);
        codec.number(22, "tie_breaker", &mut session.tie_breaker);
        codec.maybe_part(23, "details", &mut session.details, Box::default);
        codec.maybe_part(24, "cause", &mut session.cause, no_cause);
        codec.number(25, "any_sequence", &mut session.any_sequence);
    }
}

fn cookie<C: Codec>(codec: &mut C, number: u8, name: &'static str, value: &mut Cookie) {
    let mut list = value.as_bytes().to_vec();
    codec.bytes(number, name, &mut list, 8);
    if C::READS {
        match Cookie::from_wire(&list) {
            Some(cookie) => *value = cookie,
            None => codec.refuse(),
        }
    }
}

impl Part for Box<CallDetails> {
    const NAME: &'static str = "call";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.number(1, "serial", &mut self.serial);
        codec.boxed(2, "called_number", &mut self.called_number, VALUE_MAX);
        codec.boxed(3, "calling_number", &mut self.calling_number, VALUE_MAX);
        codec.boxed(4, "sub_address", &mut self.sub_address, VALUE_MAX);
        codec.boxed(5, "remote_end_id", &mut self.remote_end_id, VALUE_MAX);
        codec.number(6, "tx_speed_bps", &mut self.tx_speed_bps);
        codec.number(7, "rx_speed_bps", &mut self.rx_speed_bps);
        codec.maybe(8, "physical_channel", &mut self.physical_channel);
        codec.boxed(9, "private_group", &mut self.private_group, VALUE_MAX);
        codec.number(10, "bearer_type", &mut self.bearer_type);
        codec.number(11, "framing_type", &mut self.framing_type);
        codec.number(12, "circuit_status", &mut self.circuit_status);
        let line = self.line.as_ref().map(LineInfo::as_bytes);
        let mut raw = line.unwrap_or_default().to_vec();
        codec.bytes(13, "line", &mut raw, LINE_MAX);
        if C::READS {
            self.line = LineInfo::parse(&raw);
            let read = self.line.as_ref().map(LineInfo::as_bytes);
            if read.unwrap_or_default() != raw {
                codec.refuse();
            }
        }
        codec.number(14, "speed_updates", &mut self.speed_updates);
        codec.maybe_part(15, "proxy", &mut self.proxy, Box::default);
    }
}

impl Part for Box<Proxy> {
    const NAME: &'static str = "proxy";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.boxed(
            1,
            "initial_received_confreq",
            &mut self.initial_received_confreq,
            VALUE_MAX,
        );
        codec.boxed(
            2,
            "last_sent_confreq",
            &mut self.last_sent_confreq,
            VALUE_MAX,
        );
        codec.boxed(
            3,
            "last_received_confreq",
            &mut self.last_received_confreq,
            VALUE_MAX,
        );
        codec.maybe(4, "authen_type", &mut self.authen_type);
        redacted(codec, 5, "authen_name", &mut self.authen_name);
        codec.boxed(6, "authen_challenge", &mut self.authen_challenge, VALUE_MAX);
        codec.maybe(7, "authen_id", &mut self.authen_id);
        redacted(codec, 8, "authen_response", &mut self.authen_response);
    }
}

fn redacted<C: Codec>(
    codec: &mut C,
    number: u8,
    name: &'static str,
    value: &mut Redacted<Box<[u8]>>,
) {
    let mut list = value.reveal().to_vec();
    codec.bytes(number, name, &mut list, VALUE_MAX);
    if C::READS {
        *value = Redacted::new(list.into());
    }
}

fn no_cause() -> Box<PppCause> {
    Box::new(PppCause {
        code: 0,
        protocol: 0,
        direction: 0,
        message: Box::default(),
    })
}

impl Part for Box<PppCause> {
    const NAME: &'static str = "ppp_cause";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.number(1, "code", &mut self.code);
        codec.number(2, "protocol", &mut self.protocol);
        codec.number(3, "direction", &mut self.direction);
        text(codec, 4, "message", &mut self.message);
    }
}
