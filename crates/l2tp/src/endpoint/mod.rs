//! An L2TP endpoint, LAC and LNS in one: its tables, and the code that a datagram
//! passes.
//!
//! | file | what it does |
//! |---|---|
//! | `receive` | the tunnel and sequence of a datagram |
//! | `read` | values and faults of messages |
//! | `setup` | SCCRQ, SCCRP, SCCCN: ties, limits, authentication |
//! | `calls` | ICRQ to SLI: sessions |
//! | `open` | commands that open and answer |
//! | `close` | every way to end, and the history |
//! | `compose` | the AVPs of each message that is sent |
//! | `data` | data messages: sessions and headers of frames |
//! | `transmit` | headers, acknowledgements, digests |
//! | `half_open` | limits on requests of unauthenticated peers |
//! | `timers` | deadlines |
//! | `keys` | the secrets of tunnels |
//! | `reconfigure` | a new configuration |
//! | `snapshot`, `restore` | tunnels and sessions as values |
//! | `resume` | tunnels after a crash |
//! | `tables` | look-ups and links |
//! | `views` | rows for `show` |
//! | `ordered` | rows in the order of SNMP |
//!
//! Implements parts of RFC 2661, sections 3.0 and 5.0; RFC 3931, sections 2 and 4.

use std::collections::VecDeque;

use base::timer::AnyTimers;
use base::{Datagram, Instant, Machine, Route, Slab};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::config::Config;
use crate::discard::{Counters, Discard};
use crate::event::Event;
use crate::ids::NarrowIds;
use crate::peers::Peers;
use crate::pool::MessagePool;
use crate::random::Random;
use crate::session::{EndedSession, Session};
use crate::tunnel::{EndedTunnel, Tunnel};
use keys::Keyring;

mod calls;
mod close;
mod compose;
mod data;
mod half_open;
mod keys;
mod open;
mod ordered;
mod read;
mod receive;
mod reconfigure;
mod restore;
mod resume;
mod setup;
mod snapshot;
mod speeds;
mod tables;
#[cfg(test)]
mod tests;
mod timers;
mod transmit;
mod views;

pub use compose::FIRMWARE_REVISION;
pub use data::{DataHeader, DataIds, DataWay, Received};
pub use open::{Identity, OpenError, OpenTunnel};
pub use snapshot::Generator;
pub use views::{Counts, PeerView, Totals};

/// Refusals of requests that get no record, waiting to be sent; more are
/// dropped and counted.
const REFUSALS_MAX: usize = 1_024;

/// Ns and Nr of an answer to a first message.
const FIRST_REPLY: (u16, u16) = (0, 1);

/// An L2TP endpoint without I/O: LAC and LNS, versions 2 and 3.
///
/// The owner passes it datagrams and time. After every change it drains the
/// endpoint: transmits, then events, then the timeout. One drain may follow a
/// whole batch, whose acknowledgements are then combined.
pub struct Endpoint {
    config: Config,
    keys: Keyring,
    random: Random,
    hasher: FixedState,
    /// The seed of `hasher`.
    hash_seed: u64,
    tunnels: Slab<Tunnel>,
    sessions: Slab<Session>,
    peers: Peers,
    /// Spaces of 16-bit tunnel ids, of 65,535 tunnels each. A new one is made when
    /// the others are full; the peer's address distinguishes equal ids.
    narrow_ids: Vec<NarrowIds>,
    /// Tunnels by the peer's address and the id that it assigned.
    requests: HashTable<u32>,
    /// L2TPv2 sessions by tunnel and our id.
    session_ids: HashTable<u32>,
    /// Sessions by tunnel and the peer's id.
    session_remotes: HashTable<u32>,
    /// Places and ids in order, for SNMP.
    ordered: ordered::Ordered,
    timers: AnyTimers,
    pool: MessagePool,
    /// Tunnels that have something to send, or a timer to arm.
    ready: VecDeque<u32>,
    refusals: VecDeque<(Route, Vec<u8>)>,
    events: VecDeque<Event>,
    /// The sources of half-open tunnels.
    sources: half_open::Sources,
    /// Half-open tunnels, oldest first; a key may be stale.
    half_open_order: VecDeque<base::slab::Key>,
    /// Held tunnels, oldest first; a key may be stale.
    held_order: VecDeque<base::slab::Key>,
    ended_tunnels: VecDeque<EndedTunnel>,
    ended_sessions: VecDeque<EndedSession>,
    counters: Counters,
    tally: Tally,
    next_serial: u32,
    shutting_down: bool,
    /// Buffer for messages whose hidden AVPs have been decrypted.
    unhidden: Vec<u8>,
    /// Since when a new configuration moves deadlines, and the place of the next tunnel.
    retiming: Option<(Instant, u32)>,
}

/// Numbers of tunnels by phase, updated at each change.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// Neither closing nor held.
    live: u32,
    established: u32,
    /// Opened by a peer and not yet established, or refused and not yet settled.
    half_open: u32,
    closing: u32,
    held: u32,
    sessions_established: u32,
}

impl Endpoint {
    /// Makes an endpoint. `seed` is 32 random octets; equal seeds and inputs
    /// give equal outputs.
    ///
    /// # Panics
    /// If `config` does not pass [`Config::validate`].
    pub fn new(config: Config, seed: [u8; 32]) -> Self {
        config.validate().expect("the configuration was validated");
        let mut random = Random::new(seed);
        let hash_seed = random.u64();
        Self {
            keys: Keyring::new(config.secret.as_ref()),
            hasher: FixedState::with_seed(hash_seed),
            hash_seed,
            tunnels: Slab::new(),
            sessions: Slab::new(),
            peers: Peers::new(config.peer_lookup, random.u64()),
            narrow_ids: Vec::new(),
            requests: HashTable::new(),
            session_ids: HashTable::new(),
            session_remotes: HashTable::new(),
            ordered: ordered::Ordered::default(),
            timers: AnyTimers::new(config.timers, config.tick),
            pool: MessagePool::default(),
            ready: VecDeque::new(),
            refusals: VecDeque::new(),
            events: VecDeque::new(),
            sources: half_open::Sources::new(random.u64()),
            half_open_order: VecDeque::new(),
            held_order: VecDeque::new(),
            ended_tunnels: VecDeque::new(),
            ended_sessions: VecDeque::new(),
            counters: Counters::default(),
            tally: Tally::default(),
            next_serial: random.below(1 << 16),
            shutting_down: false,
            unhidden: Vec::new(),
            retiming: None,
            random,
            config,
        }
    }
}

impl Machine for Endpoint {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = Event;
    type Discard = Discard;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Discard> {
        self.receive(input, now)
            .map_err(|why| self.counters.discard(why))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeouts(now, usize::MAX);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        self.next_transmit(now, out)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.earliest_deadline()
    }
}
