//! A PPPoE endpoint, access concentrator and host in one: its tables, and the code that a frame passes.
//!
//! | file | what it does |
//! |---|---|
//! | `fsm` | the table of states |
//! | `receive` | the header, the port and the kind of a packet |
//! | `offer` | PADI to PADO, without state |
//! | `accept` | PADR to PADS: cookies, limits, sessions |
//! | `client` | PADI, PADO, PADR, PADS as a host |
//! | `data` | session data: sessions and headers of frames |
//! | `close` | every way to end |
//! | `parting` | ends of many sessions at once |
//! | `timers` | deadlines |
//! | `ports` | interfaces, and a new configuration |
//! | `tables` | look-ups and links |
//! | `transmit` | the order of packets to send |
//! | `views` | rows for `show` |
//!
//! Implements parts of RFC 2516, sections 5, 8 and 9; RFC 4638, section 4.

use std::collections::{HashMap, VecDeque};

use base::slab::Key;
use base::timer::Wheel;
use base::{Instant, Machine, Slab};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::blacklist::Blacklist;
use crate::bucket::{Bucket, HostBuckets};
use crate::config::{Config, PortConfig};
use crate::cookie::Cookies;
use crate::counters::Counters;
use crate::discard::Discard;
use crate::event::Event;
use crate::ids::Ids;
use crate::outbox::Outbox;
use crate::random::Random;
use crate::route::{Frame, Route};
use crate::session::Session;

mod accept;
mod client;
mod close;
mod data;
mod fsm;
mod offer;
mod parting;
mod ports;
mod receive;
mod tables;
#[cfg(test)]
mod tests;
mod timers;
mod transmit;
mod views;

pub use client::{Dial, DialError};

/// The longest Discovery packet that is sent or accepted, in bytes: Ethernet's payload.
const PACKET_MAX: usize = 1_500;

/// A PPPoE endpoint without I/O: access concentrator and host.
///
/// The owner passes it frames and time. After every change it drains the endpoint: transmits, then events, then the
/// timeout. One drain may follow a whole batch.
pub struct Endpoint {
    config: Config,
    blacklist: Blacklist,
    cookies: Cookies,
    random: Random,
    hasher: FixedState,
    /// By number.
    ports: Vec<Option<Box<PortConfig>>>,
    sessions: Slab<Session>,
    ids: Ids,
    /// Sessions that have an id, by port, the peer's address and the id.
    by_id: HashTable<u32>,
    /// Each host's oldest session, by route. Servers only, as the next ones.
    by_host: HashTable<u32>,
    /// Sessions by route, cookie and Host-Uniq of the PADR.
    by_request: HashTable<u32>,
    /// Numbers of sessions by line.
    lines: HashMap<u64, u32, FixedState>,
    timers: Wheel,
    /// PADOs that wait for their delay.
    delayed: Slab<timers::Delayed>,
    outbox: Outbox,
    /// PADTs of sessions that ended.
    padts: VecDeque<(Route, u16)>,
    /// Client sessions that have a packet to send; a key may be stale.
    ready: VecDeque<Key>,
    events: VecDeque<Event>,
    counters: Counters,
    /// Sessions of lost ports and VLANs, and at a shutdown all.
    partings: parting::Partings,
    half_open: u32,
    /// Client sessions without an id.
    dialing: u32,
    padis: Bucket,
    padrs: Bucket,
    unknown_padts: Bucket,
    padis_of_hosts: HostBuckets,
    padis_of_vlans: HostBuckets,
    padrs_of_hosts: HostBuckets,
    shutting_down: bool,
}

impl Endpoint {
    /// Makes an endpoint without ports. `seed` is 32 random bytes; equal seeds and inputs give equal outputs.
    ///
    /// # Panics
    /// If `config` does not pass [`Config::validate`].
    #[must_use]
    pub fn new(config: Config, seed: [u8; 32]) -> Self {
        config.validate().expect("the configuration was validated");
        let mut random = Random::new(seed);
        Self {
            blacklist: Blacklist::new(&config.blacklist, random.u64()),
            cookies: Cookies::new(random.bytes()),
            hasher: FixedState::with_seed(random.u64()),
            ports: Vec::new(),
            sessions: Slab::new(),
            ids: Ids::new(&mut random),
            by_id: HashTable::new(),
            by_host: HashTable::new(),
            by_request: HashTable::new(),
            lines: HashMap::with_hasher(FixedState::with_seed(random.u64())),
            timers: Wheel::new(config.timer_tick),
            delayed: Slab::new(),
            outbox: Outbox::default(),
            padts: VecDeque::new(),
            ready: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            partings: parting::Partings::default(),
            half_open: 0,
            dialing: 0,
            padis: Bucket::default(),
            padrs: Bucket::default(),
            unknown_padts: Bucket::default(),
            padis_of_hosts: HostBuckets::new(),
            padis_of_vlans: HostBuckets::new(),
            padrs_of_hosts: HostBuckets::new(),
            shutting_down: false,
            random,
            config,
        }
    }
}

impl Machine for Endpoint {
    type Input<'a> = Frame<'a>;
    type Transmit = Route;
    type Event = Event;
    type Discard = Discard;

    fn handle(&mut self, input: Frame<'_>, now: Instant) -> Result<(), Discard> {
        self.receive(input, now).map_err(|why| self.discard(why))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeouts(now, usize::MAX);
    }

    fn poll_transmit(&mut self, _: Instant, out: &mut Vec<u8>) -> Option<Route> {
        self.next_transmit(out)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.earliest_deadline()
    }
}
