//! The RADIUS client. A request is one entry of a slab with one timer: it waits for a server, or is outstanding
//! at a server under an identifier. It passes through the files here in this order: this one accepts it,
//! `place` finds it a server, `repeat` retransmits it or moves it to the next server, `receive` ends it. `reload` replaces the servers.
//!
//! Implements parts of RFC 2865, section 2.

mod place;
mod receive;
mod reload;
mod repeat;

use core::net::SocketAddr;
use std::collections::VecDeque;

use base::slab::Key;
use base::timer::{TimerId, TimerStore, Wheel};
use base::{Datagram, Duration, Instant, Machine, Slab};
use wire::radius::{Attributes, HEADER, LENGTH_MAX};

use super::config::{Config, ConfigError, ServerConfig};
use super::event::{Discard, Event, Failure, Ignored, Purpose, Refused, Transmit};
use super::identifiers::Identifier;
use super::proof::Way;
use super::random::Random;
use super::request::{ANY_SERVER, AccessRequest};
use super::server::Service;
use super::views::Totals;

/// Octets reserved in a record for Acct-Delay-Time.
const DELAY_OCTETS: usize = 6;
/// Buffers kept for reuse.
const BUFFERS_MAX: usize = 4_096;
/// The largest buffer that is kept, in octets.
const BUFFER_OCTETS_MAX: usize = 1_024;
/// Resolution of the timers.
const TICK: Duration = Duration::from_millis(10);

/// A client of RADIUS servers: takes requests, returns one event per request.
///
/// Callers drain after every mutation: transmits, then events, then the timeout.
pub struct Client {
    config: Config,
    servers: Vec<Server>,
    requests: Slab<Request>,
    timers: Wheel,
    /// Requests whose datagram is ready to be sent.
    ready: VecDeque<Key>,
    /// Requests that wait for a server, by purpose; some may have ended.
    waiting: [VecDeque<Key>; 2],
    events: VecDeque<Event>,
    /// Empty buffers for datagrams.
    buffers: Vec<Vec<u8>>,
    random: Random,
    /// Key that hides the passwords of waiting requests in memory.
    seal: [u8; 32],
    totals: Totals,
}

/// A server and its two services.
struct Server {
    config: ServerConfig,
    services: [Option<Service>; 2],
}

/// A request, from its acceptance until its event.
struct Request {
    token: u64,
    purpose: Purpose,
    way: Way,
    place: Option<Place>,
    /// Bit set of the servers that did not answer it, or may not be asked.
    tried: u16,
    /// Transmissions to the current server.
    transmissions: u8,
    /// Whether its datagram is ready to be sent.
    is_ready: bool,
    /// The replies to it that were ignored.
    ignored: Ignored,
    timer: TimerId,
    taken_at: Instant,
    sent_at: Instant,
    /// The timeout its timer was last set to.
    patience: Duration,
    /// The time of day when it was accepted, in seconds since 1970; only set for accounting.
    wall_s: u64,
    /// The server whose secret hides its password; `None` for the client's own key.
    written_for: Option<u8>,
    datagram: Vec<u8>,
}

/// The server and identifier under which a request is outstanding.
#[derive(Clone, Copy)]
struct Place {
    server: u8,
    identifier: Identifier,
}

impl Client {
    /// Creates a client. `seed` is 32 random octets; equal seeds and inputs give equal outputs.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn new(config: Config, seed: [u8; 32]) -> Result<Self, ConfigError> {
        config.check()?;
        let servers = config.servers.iter().map(Server::new).collect();
        let mut random = Random::new(seed);
        let seal = random.bytes();
        Ok(Self {
            config,
            servers,
            requests: Slab::new(),
            timers: Wheel::new(TICK),
            ready: VecDeque::new(),
            waiting: [VecDeque::new(), VecDeque::new()],
            events: VecDeque::new(),
            buffers: Vec::new(),
            random,
            seal,
            totals: Totals::default(),
        })
    }

    /// Asks whether a subscriber may connect. Results in one event with the token: Accepted, Rejected or
    /// Failed.
    ///
    /// # Errors
    /// The request was refused, and counted.
    pub fn authenticate(
        &mut self,
        now: Instant,
        request: &AccessRequest<'_>,
        token: u64,
    ) -> Result<(), Refused> {
        let purpose = Purpose::Authentication;
        if !request.fits() {
            return Err(self.refuse(Refused::TooLong));
        }
        self.check_room(purpose)?;
        let tried = request.excluded();
        if !self.has_untried(purpose, tried) {
            return Err(self.refuse(Refused::NoServer));
        }
        let place = self.find_place(now, purpose, tried);
        let id = place.map_or(0, |place| place.identifier.id);
        let mut datagram = self.buffer();
        let authenticator = self.random.bytes();
        let secret = match place {
            Some(place) => self.servers[usize::from(place.server)].secret(),
            None => &self.seal,
        };
        let written = request.write(&mut datagram, &self.config.nas, id, &authenticator, secret);
        written.expect("values that fit leave half of a packet free");
        let key = self.insert(now, purpose, token, place, 0, datagram);
        if let Some(entry) = self.requests.get_mut(key) {
            entry.tried = tried;
            entry.way = Way::of(&request.proof);
        }
        Ok(())
    }

    /// Sends a record encoded by [`crate::accounting::Record::encode`], now or before a restart. `wall_s` is
    /// the time of day, in seconds since 1970. Results in one event with the token: Recorded or RecordFailed.
    ///
    /// # Errors
    /// The record was refused, and counted.
    pub fn account(
        &mut self,
        now: Instant,
        wall_s: u64,
        record: &[u8],
        token: u64,
    ) -> Result<(), Refused> {
        self.account_at(now, wall_s, record, token, ANY_SERVER)
    }

    /// As [`Client::account`], at some servers only: `servers` is a bit set of their indexes. If none of these has an
    /// accounting port, all servers may get the record.
    ///
    /// # Errors
    /// The record was refused, and counted.
    pub fn account_at(
        &mut self,
        now: Instant,
        wall_s: u64,
        record: &[u8],
        token: u64,
        servers: u16,
    ) -> Result<(), Refused> {
        let purpose = Purpose::Accounting;
        let attributes = match Attributes::parse(record) {
            Ok(attributes) => attributes,
            Err(error) => return Err(self.refuse(Refused::Malformed(error))),
        };
        if record.len() > LENGTH_MAX - HEADER - DELAY_OCTETS {
            return Err(self.refuse(Refused::TooLong));
        }
        self.check_room(purpose)?;
        let tried = match self.has_untried(purpose, !servers) {
            true => !servers,
            false => 0,
        };
        let place = self.find_place(now, purpose, tried);
        let mut datagram = self.buffer();
        self.write_account(&mut datagram, place, attributes, wall_s);
        let key = self.insert(now, purpose, token, place, wall_s, datagram);
        if let Some(entry) = self.requests.get_mut(key) {
            entry.tried = tried;
        }
        Ok(())
    }

    /// How many more requests could be accepted now.
    #[must_use]
    pub fn room(&self) -> usize {
        (self.config.outstanding_max + self.config.waiting_max).saturating_sub(self.requests.len())
    }

    /// Counters over all servers.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    fn check_room(&mut self, purpose: Purpose) -> Result<(), Refused> {
        let is_served = |server: &Server| server.services[purpose as usize].is_some();
        if !self.servers.iter().any(is_served) {
            return Err(self.refuse(Refused::NoServer));
        }
        if self.totals.waiting >= self.config.waiting_max {
            return Err(self.refuse(Refused::Full));
        }
        Ok(())
    }

    fn refuse(&mut self, why: Refused) -> Refused {
        self.totals.refused += 1;
        why
    }

    /// Makes a request from a datagram; it is sent, or waits for a server.
    fn insert(
        &mut self,
        now: Instant,
        purpose: Purpose,
        token: u64,
        place: Option<Place>,
        wall_s: u64,
        datagram: Vec<u8>,
    ) -> Key {
        let timers = &mut self.timers;
        let waiting_until = now + self.config.waiting_time;
        let key = self.requests.insert_with(|key| Request {
            token,
            purpose,
            way: Way::Plain,
            place,
            tried: 0,
            transmissions: 0,
            is_ready: false,
            ignored: Ignored::default(),
            written_for: place.map(|place| place.server),
            timer: timers.insert(waiting_until, key.index),
            taken_at: now,
            sent_at: now,
            patience: Duration::ZERO,
            wall_s,
            datagram,
        });
        match place {
            Some(place) => self.enter(now, key, place),
            None => self.wait(key),
        }
        key
    }

    /// Lets a request wait for a server, and sets its timer.
    fn wait(&mut self, key: Key) {
        if let Some(request) = self.requests.get(key) {
            self.waiting[request.purpose as usize].push_back(key);
            self.totals.waiting += 1;
        }
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    fn keep_buffer(&mut self, mut buffer: Vec<u8>) {
        if self.buffers.len() < BUFFERS_MAX && buffer.capacity() <= BUFFER_OCTETS_MAX {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// Removes a request and everything it holds; a waiting request takes its identifier.
    fn remove(&mut self, now: Instant, key: Key) -> Option<Request> {
        let request = self.requests.remove(key)?;
        self.timers.cancel(request.timer);
        match request.place {
            Some(place) => self.leave(request.purpose, place),
            None => self.totals.waiting -= 1,
        }
        self.admit(now);
        Some(request)
    }

    /// Ends a request without an answer.
    fn fail(&mut self, now: Instant, key: Key, why: Failure) {
        if let Some(request) = self.remove(now, key) {
            let token = request.token;
            self.totals.failed += 1;
            self.events.push_back(match request.purpose {
                Purpose::Authentication => Event::Failed { token, why },
                Purpose::Accounting => Event::RecordFailed { token, why },
            });
            self.keep_buffer(request.datagram);
        }
    }

    fn service(&mut self, purpose: Purpose, server: u8) -> &mut Service {
        let services = &mut self.servers[usize::from(server)].services;
        let service = services[purpose as usize].as_mut();
        service.expect("a place is at a server that has the purpose")
    }

    pub(super) fn services_by_purpose(
        &self,
    ) -> impl Iterator<Item = (usize, &str, Purpose, &Service)> {
        self.servers.iter().enumerate().flat_map(|(n, server)| {
            Purpose::ALL.into_iter().filter_map(move |purpose| {
                let service = server.services[purpose as usize].as_ref()?;
                Some((n, &*server.config.name, purpose, service))
            })
        })
    }
}

impl Machine for Client {
    type Input<'a> = Datagram<'a>;
    type Transmit = Transmit;
    type Event = Event;
    type Discard = Discard;

    /// Handles a datagram received on one of the sockets that [`Transmit`] named.
    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Discard> {
        self.receive(input, now)
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(expired) = self.timers.pop_due(now) {
            if let Some(key) = self.requests.key_at(expired.token) {
                self.time_out(now, key);
            }
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        while let Some(key) = self.ready.pop_front() {
            let Some(request) = self.requests.get_mut(key) else {
                continue;
            };
            request.is_ready = false;
            let Some(place) = request.place else {
                continue;
            };
            out.extend_from_slice(&request.datagram);
            let purpose = request.purpose;
            return Some(Transmit {
                server: usize::from(place.server),
                socket: u32::from(place.identifier.socket),
                peer: self.service(purpose, place.server).address,
            });
        }
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let deadline = self.timers.next_deadline()?;
        Some((deadline, "retransmission"))
    }
}

impl Server {
    fn new(config: &ServerConfig) -> Self {
        let service = |address: Option<SocketAddr>| {
            address.map(|address| Service::new(address, config.sockets_max))
        };
        Self {
            services: [service(config.authentication), service(config.accounting)],
            config: config.clone(),
        }
    }

    fn secret(&self) -> &[u8] {
        self.config.secret.reveal()
    }
}
