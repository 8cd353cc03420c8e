//! Handles requests that servers send to us (RFC 5176) to disconnect subscribers.
//!
//! - [`Dynauth`]: turns a datagram into a question for the owner, and the owner's answer into the reply. Start
//!   reading here.
//! - [`Selection`]: which sessions a request selects.
//!
//! A request is accepted if its source is a configured client, its authenticator is right, and its
//! Event-Timestamp is current. A repeated request gets the same reply as before and has no further effect
//! (section 2.3). It is remembered for as long as its Event-Timestamp is accepted (section 6.3).
//!
//! Left out: changes of authorisation (section 2.2), which get a CoA-NAK with Unsupported Extension; Vendor-Specific,
//! Chargeable-User-Identity and the IPv6 attributes as identification; "Authorize Only".

mod read;
mod recent;
mod selection;

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

use base::slab::Key;
use base::{Datagram, Duration, Instant, Redacted, Route};
use wire::radius::attribute::{ERROR_CAUSE, PROXY_STATE, error_cause};
use wire::radius::secret::{Signature, signature, verify_request};
use wire::radius::{Packet, ParseError, Writer, code};

use crate::radius::Nas;
use recent::{Recent, Seen};

pub use selection::Selection;

/// The permitted clients, and the conditions for accepting a request.
#[derive(Clone, Debug)]
pub struct DynauthConfig {
    /// Our own identity; NAS attributes in a request must match it.
    pub nas: Nas,
    /// The clients that may send requests.
    pub clients: Vec<DynauthClient>,
    /// How far an Event-Timestamp may be from the current time (RFC 5176, section 6.3).
    pub window: Duration,
    /// Whether requests without Event-Timestamp are discarded.
    pub require_timestamp: bool,
    /// The most requests remembered within the window; further ones are discarded.
    pub recent_max: usize,
}

/// A client that may send requests.
#[derive(Clone, Debug)]
pub struct DynauthClient {
    /// Its address; the port does not matter.
    pub address: IpAddr,
    /// The shared secret.
    pub secret: Redacted<Box<[u8]>>,
}

impl DynauthConfig {
    /// The default limits, and no clients.
    #[must_use]
    pub fn new(nas: Nas) -> Self {
        Self {
            nas,
            clients: Vec::new(),
            window: Duration::from_secs(300),
            require_timestamp: false,
            recent_max: 16_384,
        }
    }
}

/// A request for the owner to carry out; the owner replies with [`Dynauth::answer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disconnect {
    /// Identifies the request in the answer.
    pub ticket: Ticket,
    /// The requesting client's number: its index in the configuration, unless clients were replaced.
    pub client: usize,
    /// The sessions to end: all that it selects.
    pub selection: Selection,
    /// Class attributes for the sessions' Stop records (section 3.6, note 4).
    pub class: Vec<Box<[u8]>>,
}

/// Names a request that has not been answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(Key);

/// The owner's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All selected sessions have ended: Disconnect-ACK.
    Done,
    /// No session was selected: Disconnect-NAK with Session Context Not Found.
    NotFound,
    /// A selected session cannot be ended: Disconnect-NAK with Session Context Not Removable.
    NotRemovable,
    /// This client may not end the session: Disconnect-NAK with Administratively Prohibited.
    Prohibited,
    /// The owner cannot do it now: Disconnect-NAK with Resources Unavailable.
    Unavailable,
}

impl Answer {
    const fn error_cause(self) -> Option<u32> {
        match self {
            Self::Done => None,
            Self::NotFound => Some(error_cause::SESSION_NOT_FOUND),
            Self::NotRemovable => Some(error_cause::SESSION_NOT_REMOVABLE),
            Self::Prohibited => Some(error_cause::PROHIBITED),
            Self::Unavailable => Some(error_cause::RESOURCES_UNAVAILABLE),
        }
    }
}

/// Why a datagram was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DynauthDiscard {
    /// Its source is not a configured client.
    #[error("from no client")]
    UnknownClient,
    /// Its lengths are invalid.
    #[error("malformed: {0}")]
    Malformed(ParseError),
    /// It is not a request of RFC 5176.
    #[error("unexpected code {0}")]
    Code(u8),
    /// Its authenticator is wrong: the sender does not know the secret.
    #[error("bad authenticator")]
    BadAuthenticator,
    /// Its Message-Authenticator is wrong.
    #[error("bad Message-Authenticator")]
    BadSignature,
    /// Its Event-Timestamp is outside the window.
    #[error("stale Event-Timestamp")]
    Stale,
    /// It has no Event-Timestamp, which is required.
    #[error("no Event-Timestamp")]
    NoTimestamp,
    /// It repeats a request that has not been answered yet.
    #[error("a repetition of what is being done")]
    InProgress,
    /// Too many requests are remembered.
    #[error("too many requests")]
    Busy,
}

/// Counters of requests and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DynauthCounters {
    /// New requests that were accepted.
    pub requests: u64,
    /// Disconnect-ACK.
    pub acks: u64,
    /// Disconnect-NAK and CoA-NAK.
    pub naks: u64,
    /// Replies sent again for repeated requests.
    pub repeated: u64,
    /// [`DynauthDiscard::UnknownClient`].
    pub unknown_client: u64,
    /// [`DynauthDiscard::Malformed`] and [`DynauthDiscard::Code`].
    pub malformed: u64,
    /// [`DynauthDiscard::BadAuthenticator`] and [`DynauthDiscard::BadSignature`].
    pub unauthentic: u64,
    /// [`DynauthDiscard::Stale`] and [`DynauthDiscard::NoTimestamp`].
    pub stale: u64,
    /// [`DynauthDiscard::InProgress`].
    pub in_progress: u64,
    /// [`DynauthDiscard::Busy`].
    pub busy: u64,
}

/// The server side of RFC 5176, which receives requests.
pub struct Dynauth {
    config: DynauthConfig,
    /// By the number that requests know them by; `None` for one that was removed.
    clients: Vec<Option<DynauthClient>>,
    recent: Recent,
    /// Requests whose replies are ready to be sent.
    ready: VecDeque<Key>,
    events: VecDeque<Disconnect>,
    counters: DynauthCounters,
}

impl Dynauth {
    /// Creates a server that has received no request.
    #[must_use]
    pub fn new(config: DynauthConfig) -> Self {
        Self {
            recent: Recent::new(config.window, config.recent_max),
            clients: config.clients.iter().cloned().map(Some).collect(),
            config,
            ready: VecDeque::new(),
            events: VecDeque::new(),
            counters: DynauthCounters::default(),
        }
    }

    /// Replaces the permitted clients. Requests that were accepted before are remembered, and answered to clients that
    /// stay.
    pub fn set_clients(&mut self, clients: Vec<DynauthClient>) {
        let find = |address| clients.iter().find(|new| new.address == address).cloned();
        for known in &mut self.clients {
            *known = known.take().and_then(|old| find(old.address));
        }
        for new in clients.iter() {
            let known = self.clients.iter().flatten();
            if known
                .map(|known| known.address)
                .all(|known| known != new.address)
            {
                self.clients.push(Some(new.clone()));
            }
        }
        self.config.clients = clients;
    }

    /// Handles a datagram. `wall_s` is the time of day, in seconds since 1970. The result is a reply, an event,
    /// or an event and later a reply.
    ///
    /// # Errors
    /// The datagram was ignored and counted; no state changed.
    pub fn handle(
        &mut self,
        input: Datagram<'_>,
        now: Instant,
        wall_s: u64,
    ) -> Result<(), DynauthDiscard> {
        let taken = self.receive(input, now, wall_s);
        if let Err(why) = taken {
            *self.counters.of(why) += 1;
        }
        taken
    }

    fn receive(
        &mut self,
        input: Datagram<'_>,
        now: Instant,
        wall_s: u64,
    ) -> Result<(), DynauthDiscard> {
        let client = self.find_client(input.route.peer)?;
        let packet = Packet::parse(input.bytes).map_err(DynauthDiscard::Malformed)?;
        let code = packet.code();
        if !matches!(code, code::DISCONNECT_REQUEST | code::COA_REQUEST) {
            return Err(DynauthDiscard::Code(code));
        }
        self.verify(client, &packet)?;
        self.check_time(&packet, wall_s)?;
        self.recent.forget_old(now);
        match self.recent.find(client, &packet.authenticator()) {
            Some((_, false)) => return Err(DynauthDiscard::InProgress),
            Some((key, true)) => {
                self.counters.repeated += 1;
                self.recent.redirect(key, input.route);
                self.ready.push_back(key);
                return Ok(());
            }
            None => {}
        }
        let seen = Seen::new(client, input.route, &packet);
        let key = self.recent.insert(now, seen).ok_or(DynauthDiscard::Busy)?;
        self.counters.requests += 1;
        if code == code::COA_REQUEST {
            self.reply(key, Some(error_cause::UNSUPPORTED_EXTENSION));
            return Ok(());
        }
        match read::read_disconnect(&packet, &self.config.nas) {
            Ok(wanted) => self.events.push_back(Disconnect {
                ticket: Ticket(key),
                client,
                selection: wanted.selection,
                class: wanted.class,
            }),
            Err(cause) => self.reply(key, Some(cause)),
        }
        Ok(())
    }

    fn find_client(&self, peer: SocketAddr) -> Result<usize, DynauthDiscard> {
        let address = peer.ip().to_canonical();
        let is_it = |client: &DynauthClient| client.address.to_canonical() == address;
        let is_there = |client: &Option<DynauthClient>| client.as_ref().is_some_and(is_it);
        let client = self.clients.iter().position(is_there);
        client.ok_or(DynauthDiscard::UnknownClient)
    }

    fn verify(&self, client: usize, packet: &Packet<'_>) -> Result<(), DynauthDiscard> {
        let client = self.clients[client].as_ref();
        let secret = client.ok_or(DynauthDiscard::UnknownClient)?.secret.reveal();
        if !verify_request(packet, secret) {
            return Err(DynauthDiscard::BadAuthenticator);
        }
        match signature(packet, &[0; 16], secret) {
            Signature::Right | Signature::Missing => Ok(()),
            Signature::Wrong => Err(DynauthDiscard::BadSignature),
        }
    }

    fn check_time(&self, packet: &Packet<'_>, wall_s: u64) -> Result<(), DynauthDiscard> {
        let Some(timestamp) = packet.find(wire::radius::attribute::EVENT_TIMESTAMP) else {
            return match self.config.require_timestamp {
                true => Err(DynauthDiscard::NoTimestamp),
                false => Ok(()),
            };
        };
        let sent_s = timestamp.integer().map(u64::from);
        let apart_s = sent_s.map(|sent_s| sent_s.abs_diff(wall_s));
        match apart_s {
            Some(apart_s) if Duration::from_secs(apart_s) <= self.config.window => Ok(()),
            _ => Err(DynauthDiscard::Stale),
        }
    }

    /// Answers a request; does nothing if it was answered before.
    pub fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.reply(ticket.0, answer.error_cause());
    }

    /// Writes a reply, which is also sent if the request is repeated.
    fn reply(&mut self, key: Key, error_cause: Option<u32>) {
        let Some(seen) = self.recent.get_mut(key) else {
            return;
        };
        let Some(client) = &self.clients[seen.client] else {
            return;
        };
        if !seen.reply.is_empty() {
            return;
        }
        let code = match (seen.code, error_cause) {
            (code::DISCONNECT_REQUEST, None) => code::DISCONNECT_ACK,
            (code::DISCONNECT_REQUEST, Some(_)) => code::DISCONNECT_NAK,
            (_, None) => code::COA_ACK,
            (_, Some(_)) => code::COA_NAK,
        };
        let secret = client.secret.reveal();
        let mut reply = Vec::new();
        let mut writer = Writer::new(&mut reply, code, seen.identifier, &seen.authenticator);
        writer.message_authenticator();
        if let Some(cause) = error_cause {
            writer.integer(ERROR_CAUSE, cause);
        }
        for state in &seen.proxy_states {
            writer.attribute(PROXY_STATE, state);
        }
        // If Proxy-State attributes fill the request completely, no reply fits, and none is sent.
        if writer.finish_signed(secret).is_ok() {
            seen.reply = reply.into();
            self.ready.push_back(key);
        }
        match error_cause {
            None => self.counters.acks += 1,
            Some(_) => self.counters.naks += 1,
        }
    }

    /// Appends one reply to `out` and returns its destination; `None` means drained.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Route> {
        loop {
            let key = self.ready.pop_front()?;
            if let Some(seen) = self.recent.get_mut(key) {
                out.extend_from_slice(&seen.reply);
                return Some(seen.route);
            }
        }
    }

    /// The next request for the owner to carry out.
    pub fn poll_event(&mut self) -> Option<Disconnect> {
        self.events.pop_front()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> DynauthCounters {
        self.counters
    }
}

impl DynauthCounters {
    fn of(&mut self, why: DynauthDiscard) -> &mut u64 {
        match why {
            DynauthDiscard::UnknownClient => &mut self.unknown_client,
            DynauthDiscard::Malformed(_) | DynauthDiscard::Code(_) => &mut self.malformed,
            DynauthDiscard::BadAuthenticator | DynauthDiscard::BadSignature => {
                &mut self.unauthentic
            }
            DynauthDiscard::Stale | DynauthDiscard::NoTimestamp => &mut self.stale,
            DynauthDiscard::InProgress => &mut self.in_progress,
            DynauthDiscard::Busy => &mut self.busy,
        }
    }
}
