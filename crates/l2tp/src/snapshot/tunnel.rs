//! The fields of a tunnel.

use base::slab::Key;
use base::snapshot::{Codec, Part};
use base::{Instant, Route};
use wire::l2tp::Version;

use super::message::{self, MESSAGES_MAX};
use super::{Refused, RouteValue, VALUE_MAX, maybe_text, text};
use crate::ids;
use crate::pool::{Message, MessagePool};
use crate::reliable::Reliable;
use crate::tunnel::{Auth, Ending, Offers, Setup, Tunnel, TunnelState};

const VERSIONS: &[(u8, Version)] = &[(2, Version::V2), (3, Version::V3)];

/// Established comes first, since the first value takes no octets.
const STATES: &[(u8, TunnelState)] = &[
    (4, TunnelState::Established),
    (1, TunnelState::Idle),
    (2, TunnelState::WaitCtlReply),
    (3, TunnelState::WaitCtlConn),
];

const ENDINGS: &[(u8, Ending)] = &[(0, Ending::No), (1, Ending::StopSent), (2, Ending::Held)];

/// A tunnel with its queued messages.
pub(crate) struct TunnelValue<'a> {
    pub(crate) tunnel: &'a mut Tunnel,
    /// Unacknowledged messages, oldest first.
    pub(crate) queue: Vec<Message>,
    /// Messages that arrived ahead of a missing one, in order of arrival.
    pub(crate) early: Vec<Message>,
    /// The check value of its secret, if it has one.
    pub(crate) secret: Option<u32>,
}

impl<'a> TunnelValue<'a> {
    /// A value to be read into `tunnel`, which comes from [`blank`].
    pub(crate) fn new(tunnel: &'a mut Tunnel) -> Self {
        Self {
            tunnel,
            queue: Vec::new(),
            early: Vec::new(),
            secret: None,
        }
    }

    /// Passes the value of a tunnel to `write`. Its messages are outside of the pool meanwhile.
    pub(crate) fn with(
        tunnel: &'a mut Tunnel,
        pool: &mut MessagePool,
        secret: Option<u32>,
        write: impl FnOnce(&mut Self),
    ) {
        let (queue, early) = tunnel.reliable.queues();
        let mut value = TunnelValue {
            tunnel,
            queue: message::take_all(pool, &queue, message::outgoing),
            early: message::take_all(pool, &early, message::early),
            secret,
        };
        write(&mut value);
        message::put_back(pool, &queue, value.queue);
        message::put_back(pool, &early, value.early);
    }

    /// Whether the fields that were read fit together, so that the endpoint can go on with them.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        let tunnel = &*self.tunnel;
        let fault = |field| Err(Refused::value(Self::NAME, field));
        let is_open = tunnel.ending == Ending::No;
        let state_fits = match tunnel.state {
            TunnelState::Idle => !is_open,
            TunnelState::WaitCtlReply => is_open && tunnel.originated && tunnel.up.is_none(),
            TunnelState::WaitCtlConn => is_open && !tunnel.originated && tunnel.up.is_none(),
            TunnelState::Established => is_open && tunnel.up.is_some(),
        };
        if !state_fits {
            return fault("state");
        }
        if tunnel.key.index >= ids::MAX_TUNNELS {
            return fault("place");
        }
        let local_fits = match tunnel.version {
            Version::V2 => (1..=0xffff).contains(&tunnel.local_id),
            Version::V3 => ids::is_wide(tunnel.local_id, tunnel.key.index),
        };
        if !local_fits {
            return fault("local_id");
        }
        if tunnel.version == Version::V2 && tunnel.remote_id > 0xffff {
            return fault("remote_id");
        }
        if tunnel.auth.is_some() && (tunnel.version == Version::V2 || self.secret.is_none()) {
            return fault("auth");
        }
        if !is_open && (tunnel.config_id != 0 || tunnel.setup.is_some()) {
            return fault("ending");
        }
        if !self.queue.iter().all(|one| one.is_ours(tunnel.version)) {
            return fault("queue");
        }
        if !tunnel.reliable.fits(&self.queue) {
            return fault("window");
        }
        let mut numbers: Vec<u16> = self.early.iter().map(|one| one.ns).collect();
        numbers.sort_unstable();
        let is_early = |one: &Message| tunnel.reliable.is_ahead(one.ns) && one.connects.is_none();
        if !numbers.is_sorted_by(|a, b| a < b) || !self.early.iter().all(is_early) {
            return fault("early");
        }
        Ok(())
    }
}

/// A tunnel to read into: absent fields keep these values.
pub(crate) fn blank() -> Tunnel {
    let key = Key {
        index: 0,
        generation: 0,
    };
    let route = Route::to(core::net::SocketAddr::from(([0, 0, 0, 0], 0)));
    Tunnel {
        state: TunnelState::Established,
        reliable: Reliable::blank(),
        ..Tunnel::new(key, route, Version::V2, 0, Instant::ZERO)
    }
}

impl Part for TunnelValue<'_> {
    const NAME: &'static str = "tunnel";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let tunnel = &mut *self.tunnel;
        codec.number(1, "place", &mut tunnel.key.index);
        codec.number(2, "generation", &mut tunnel.key.generation);
        codec.choice(3, "version", &mut tunnel.version, VERSIONS);
        codec.choice(4, "state", &mut tunnel.state, STATES);
        codec.choice(5, "ending", &mut tunnel.ending, ENDINGS);
        codec.number(6, "originated", &mut tunnel.originated);
        codec.number(7, "local_id", &mut tunnel.local_id);
        codec.number(8, "remote_id", &mut tunnel.remote_id);
        codec.part(9, "route", &mut RouteValue(&mut tunnel.route));
        codec.time(10, "created", &mut tunnel.created);
        codec.maybe_time(11, "up", &mut tunnel.up);
        codec.deadline(12, "idle_deadline", &mut tunnel.idle_deadline);
        codec.deadline(13, "empty_deadline", &mut tunnel.empty_deadline);
        codec.time(14, "last_heard", &mut tunnel.last_heard);
        codec.part(15, "window", &mut tunnel.reliable);
        codec.maybe(16, "secret", &mut self.secret);
        codec.maybe_part(17, "auth", &mut tunnel.auth, Box::default);
        let mut offers = tunnel.offers.bits();
        codec.number(18, "offers", &mut offers);
        if C::READS {
            match Offers::from_bits(offers) {
                Some(offers) => tunnel.offers = offers,
                None => codec.refuse(),
            }
        }
        codec.number(19, "config_id", &mut tunnel.config_id);
        codec.number(20, "request_hash", &mut tunnel.request_hash);
        codec.number(21, "received", &mut tunnel.received);
        codec.number(22, "sent", &mut tunnel.sent);
        codec.number(23, "retransmissions", &mut tunnel.retransmissions);
        codec.number(24, "duplicates", &mut tunnel.duplicates);
        text(codec, 25, "peer_host", &mut tunnel.peer_host);
        codec.maybe_part(26, "setup", &mut tunnel.setup, Box::default);
        codec.list(27, "queue", &mut self.queue, MESSAGES_MAX);
        codec.list(28, "early", &mut self.early, MESSAGES_MAX);
    }
}

impl Part for Box<Auth> {
    const NAME: &'static str = "auth";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.array(1, "local_nonce", &mut self.local_nonce);
        codec.number(2, "told", &mut self.told);
        codec.boxed(3, "remote_nonce", &mut self.remote_nonce, VALUE_MAX);
    }
}

impl Part for Box<Setup> {
    const NAME: &'static str = "setup";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let mut challenge = self.challenge.map(Vec::from);
        codec.maybe_bytes(1, "challenge", &mut challenge, 16);
        if C::READS {
            match challenge.map(<[u8; 16]>::try_from).transpose() {
                Ok(challenge) => self.challenge = challenge,
                Err(_) => codec.refuse(),
            }
        }
        codec.maybe(2, "tie_breaker", &mut self.tie_breaker);
        maybe_text(codec, 3, "host_name", &mut self.host_name);
        maybe_text(codec, 4, "peer_name", &mut self.peer_name);
    }
}
