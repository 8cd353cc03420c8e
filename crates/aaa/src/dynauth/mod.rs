//! Handles requests that servers send to us (RFC 5176): to disconnect subscribers, and to change their authorisation.
//!
//! | file | contents |
//! |---|---|
//! | `config` | the permitted clients |
//! | `read` | the attributes of both requests: NAS and session identification |
//! | `order` | what a request asks for: [`Order`] |
//! | `selection` | which sessions a request selects: [`Selection`] |
//! | `cause` | why a request is refused: [`Cause`] |
//! | `recent` | requests that were seen |
//! | `counters` | counters, and why a datagram is ignored |
//!
//! [`Dynauth`] turns a datagram into a question for the owner, and the owner's answer into the reply. Start reading
//! there.
//!
//! A request is accepted if its source is a configured client, its authenticator is right, and its
//! Event-Timestamp is current. A repeated request gets the same reply as before and has no further effect
//! (section 2.3). It is remembered for as long as its Event-Timestamp is accepted (section 6.3).
//!
//! Left out: Vendor-Specific, Chargeable-User-Identity and Acct-Multi-Session-Id as identification; "Authorize Only"
//! (section 3.2), which gets a CoA-NAK with Unsupported Service; Diameter (section 4).

mod cause;
mod config;
mod counters;
mod order;
mod read;
mod recent;
mod selection;

use core::net::SocketAddr;
use std::collections::VecDeque;

use base::slab::Key;
use base::{Datagram, Duration, Instant, Route};
use wire::radius::attribute::{ERROR_CAUSE, EVENT_TIMESTAMP, PROXY_STATE, STATE};
use wire::radius::secret::{Signature, signature, verify_request};
use wire::radius::{Packet, Writer, code};

use crate::radius::QueueAttributes;
use recent::{Name, Recent, Seen};

pub use cause::Cause;
pub use config::{DynauthClient, DynauthConfig};
pub use counters::{DynauthCounters, DynauthDiscard};
pub use order::Order;
pub use selection::{Identity, Selection};

/// A request for the owner to carry out; the owner replies with [`Dynauth::answer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Identifies the request in the answer.
    pub ticket: Ticket,
    /// The requesting client's number: its index in the configuration, unless clients were replaced.
    pub client: usize,
    /// The sessions that it is about: all that it selects.
    pub selection: Selection,
    /// What is to be done.
    pub order: Order,
}

/// Names a request that has not been answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(Key);

/// The server side of RFC 5176, which receives requests.
pub struct Dynauth {
    config: DynauthConfig,
    /// By the number that requests know them by; `None` for one that was removed.
    clients: Vec<Option<DynauthClient>>,
    recent: Recent,
    /// Requests whose replies are ready to be sent.
    ready: VecDeque<Key>,
    events: VecDeque<Request>,
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

    /// Sets how attributes about queues are read.
    pub fn set_queue(&mut self, queue: QueueAttributes) {
        self.config.queue = queue;
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
            self.counters.discard(why);
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
        let sent_s = self.check_time(client, &packet, wall_s)?;
        self.recent.forget_old(now);
        let name = Name::new(client, &input.route, packet.authenticator(), sent_s);
        match self.recent.find(&name) {
            Some((_, false)) => return Err(DynauthDiscard::InProgress),
            Some((key, true)) => {
                self.counters.repeated += 1;
                self.recent.redirect(key, input.route);
                self.ready.push_back(key);
                return Ok(());
            }
            None if sent_s.is_some_and(|sent_s| self.recent.is_forgotten(client, sent_s)) => {
                return Err(DynauthDiscard::Stale);
            }
            None => {}
        }
        let seen = Seen::new(client, input.route, &packet, sent_s);
        let key = self.recent.insert(now, seen).ok_or(DynauthDiscard::Busy)?;
        self.counters.accept(code);
        match order::read(&packet, &self.config) {
            Ok((selection, order)) => self.events.push_back(Request {
                ticket: Ticket(key),
                client,
                selection,
                order,
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
        let client = client.ok_or(DynauthDiscard::UnknownClient)?;
        let secret = client.secret.reveal();
        if !verify_request(packet, secret) {
            return Err(DynauthDiscard::BadAuthenticator);
        }
        match signature(packet, &[0; 16], secret) {
            Signature::Right => Ok(()),
            Signature::Missing if client.require_message_authenticator => {
                Err(DynauthDiscard::NoSignature)
            }
            Signature::Missing => Ok(()),
            Signature::Wrong => Err(DynauthDiscard::BadSignature),
        }
    }

    /// The Event-Timestamp of a request, if it has one and that is current.
    fn check_time(
        &self,
        client: usize,
        packet: &Packet<'_>,
        wall_s: u64,
    ) -> Result<Option<u64>, DynauthDiscard> {
        let Some(timestamp) = packet.find(EVENT_TIMESTAMP) else {
            let client = self.clients[client].as_ref();
            return match client.is_some_and(|client| client.require_event_timestamp) {
                true => Err(DynauthDiscard::NoTimestamp),
                false => Ok(None),
            };
        };
        let sent_s = timestamp.integer().map(u64::from);
        let is_current = |sent_s: &u64| {
            let apart_s = sent_s.abs_diff(wall_s);
            Duration::from_secs(apart_s) <= self.config.window
        };
        let sent_s = sent_s.filter(is_current);
        sent_s.map(Some).ok_or(DynauthDiscard::Stale)
    }

    /// Answers a request: it was carried out for every session that it selects, or for none, for this reason. Does
    /// nothing if the request was answered before.
    pub fn answer(&mut self, ticket: Ticket, answer: Result<(), Cause>) {
        self.reply(ticket.0, answer.err());
    }

    /// Writes a reply, which is also sent if the request is repeated.
    fn reply(&mut self, key: Key, cause: Option<Cause>) {
        let Some(seen) = self.recent.get_mut(key) else {
            return;
        };
        let Some(client) = &self.clients[seen.client] else {
            return;
        };
        if seen.reply.is_some() {
            return;
        }
        let code = match (seen.code, cause) {
            (code::DISCONNECT_REQUEST, None) => code::DISCONNECT_ACK,
            (code::DISCONNECT_REQUEST, Some(_)) => code::DISCONNECT_NAK,
            (_, None) => code::COA_ACK,
            (_, Some(_)) => code::COA_NAK,
        };
        let secret = client.secret.reveal();
        let mut reply = Vec::new();
        let mut writer = Writer::new(&mut reply, code, seen.identifier, &seen.authenticator);
        writer.message_authenticator();
        if let Some(cause) = cause {
            writer.integer(ERROR_CAUSE, cause.value());
        }
        // Section 3.3: unmodified, in an ACK and in a NAK.
        if let Some(state) = &seen.state {
            writer.attribute(STATE, state);
        }
        for state in &seen.proxy_states {
            writer.attribute(PROXY_STATE, state);
        }
        // If Proxy-State attributes fill the request completely, no reply fits, and none is sent.
        if writer.finish_signed(secret).is_err() {
            reply.clear();
        }
        seen.reply = Some(reply.into());
        self.ready.push_back(key);
        self.counters.reply(seen.code, cause);
    }

    /// Appends one reply to `out` and returns its destination; `None` means drained.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Route> {
        loop {
            let key = self.ready.pop_front()?;
            if let Some(seen) = self.recent.get_mut(key)
                && let Some(reply) = seen.reply.as_deref().filter(|reply| !reply.is_empty())
            {
                out.extend_from_slice(reply);
                return Some(seen.route);
            }
        }
    }

    /// The next request for the owner to carry out.
    pub fn poll_event(&mut self) -> Option<Request> {
        self.events.pop_front()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> DynauthCounters {
        self.counters
    }
}
