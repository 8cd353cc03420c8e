//! The data path of packets, as a value of its own. A path has one entry for each subscriber with all that packets
//! need, so that a packet reads two or three cache lines and nothing of PPP, sessions or accounts.
//!
//! An [`crate::Edge`] has one path and changes it as subscribers come and go. To forward on several cores, each further
//! core has a copy ([`crate::Edge::replica`]), which applies the same changes in the same order
//! ([`crate::Edge::poll_change`], [`Path::apply`]). A copy leaves to the edge all that is not an IP packet of an open
//! session, and all packets of sessions whose frames are numbered, because only one core can count. Each path writes its
//! own counters; any thread may read them. A shaped subscriber's queues are on one path, and one path translates a
//! subscriber's addresses; the others hand its packets over ([`Path::poll_handovers`]).
//!
//! | file | what it does |
//! |---|---|
//! | `entry` | a subscriber's entry |
//! | `change` | the changes that the edge sends |
//! | `crossing` | sessions that are switched to an LNS |
//! | `inward` | packets from subscribers to the inside |
//! | `outward` | packets from the inside to subscribers |
//! | `queues` | queues of shaped subscribers |
//! | `handover` | packets for another path: for its queues, or its NAT |
//! | `moves` | queues that move to another path |
//! | `nat` | translation of addresses |
//! | `translators` | which path translates a packet |
//! | `asked` | questions to the NATs of all paths |
//! | `look` | the state of queues, for a view |
//! | `errors` | ICMP errors about dropped packets |
//! | `filters` | packet filters |
//! | `gardens` | answers to subscribers in walled gardens |
//! | `copies` | copies of packets for captures |
//! | `counts` | counters |

pub(crate) mod asked;
pub(crate) mod change;
mod copies;
mod counts;
pub(crate) mod crossing;
mod entry;
mod errors;
mod filters;
mod gardens;
mod handover;
mod inward;
pub(crate) mod look;
mod moves;
pub(crate) mod nat;
mod outward;
mod queues;
mod translators;

use std::sync::Arc;

use ::nat::Nat;
use forward::routes::Routes;
use hashbrown::HashTable;
use hqos::Plan;

use crate::access::{Access, Encapsulation, Header, L2tp};
use crate::config::Config;
use crate::counters::Discard;
use crate::garden::Gardens;
use crate::outgoing::Outgoing;

pub use asked::{Asked, NatTotals, Owner};
pub use change::Change;
pub(crate) use copies::Copies;
pub use copies::{Passed, TapId, Tapped};
pub(crate) use counts::Counts;
pub use counts::PathCounts;
pub(crate) use crossing::{Crossing, Crossings};
pub(crate) use entry::{Entry, Facts, Meter};
use errors::Errors;
pub use filters::{Filters, Logged};
pub use handover::Handover;
use handover::Handovers;
pub(crate) use inward::packet;
pub use look::Look;
use nat::Translator;
use queues::{Limits, Queues};

/// What a path did with a datagram or a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// Forwarded, or discarded and counted.
    Done,
    /// Not touched: it is for the edge.
    Left,
}

/// Takes packets from subscribers: the network behind the edge.
pub trait Inside {
    /// Takes an IP packet without padding.
    fn packet(&mut self, packet: &[u8]);
}

/// Takes datagrams to peers.
pub trait Outside<R = <L2tp as Access>::Route> {
    /// Starts a datagram on this route. The caller appends its bytes to the buffer. `None` if there is no room.
    fn begin(&mut self, route: &R) -> Option<&mut Vec<u8>>;

    /// Finishes the datagram that was started.
    fn commit(&mut self, route: &R);
}

/// The data path of one core.
pub struct Path<E: Encapsulation = <L2tp as Access>::Encapsulation> {
    /// Which of an edge's paths this is; its own is 0.
    number: usize,
    clamp_mss: bool,
    /// Whether packets from one subscriber to another are dropped, unless both are excepted.
    isolate: bool,
    /// Entries of subscribers that are kept apart whatever the default is.
    isolated: u32,
    /// By the subscriber's index.
    entries: Vec<Option<Entry<E>>>,
    /// Indices of entries by the ids of data messages.
    sessions: HashTable<u32>,
    /// Switched sessions.
    pub(crate) crossings: Crossings<E>,
    /// Subscribers by their addresses and the networks behind them.
    pub(crate) routes: Routes,
    /// Our own addresses as a client.
    pub(crate) own: Routes,
    pub(crate) filters: Filters,
    pub(crate) gardens: Arc<Gardens>,
    /// The secret of our sequence numbers, the same on all paths.
    pub(crate) seed: u64,
    pub(crate) errors: Errors,
    /// ICMP errors to subscribers.
    pub(crate) outgoing: Outgoing<E::Route>,
    pub(crate) copies: Copies<E::Route>,
    /// The counters of all paths.
    counts: Arc<[Counts]>,
    /// Templates and shared links of queues.
    pub(crate) plan: Arc<Plan>,
    limits: Limits,
    /// Queues of shaped subscribers, if this path has had any.
    pub(crate) queues: Option<Box<Queues>>,
    /// Translates addresses, if there is a NAT.
    pub(crate) nat: Option<Box<Translator>>,
    /// Packets for other paths.
    handovers: Handovers,
    /// Sessions that packets arrived in since the last poll.
    heard: Vec<E::Session>,
    /// Buffer for a packet that is changed.
    scratch: Vec<u8>,
    /// Buffer for a packet from the inside that another path handed over.
    inbound: Vec<u8>,
}

impl<E: Encapsulation> Path<E> {
    pub(crate) fn new(config: &Config) -> Self {
        let paths = usize::from(config.paths.max(1));
        Self {
            number: 0,
            clamp_mss: config.clamp_mss,
            isolate: config.isolate,
            isolated: 0,
            entries: Vec::new(),
            sessions: HashTable::new(),
            crossings: Crossings::default(),
            routes: Routes::new(config.routes_max as usize),
            own: Routes::new(config.subscribers_max as usize),
            filters: Filters::new(paths),
            gardens: Arc::new(Gardens::new(&config.gardens, &Gardens::default())),
            seed: 0,
            errors: Errors::new(config),
            outgoing: Outgoing::default(),
            copies: Copies::default(),
            counts: (0..paths).map(|_| Counts::default()).collect(),
            plan: Arc::new(config.queues.plan().clone()),
            limits: Limits::new(config),
            queues: None,
            nat: None,
            handovers: Handovers::default(),
            heard: Vec::new(),
            scratch: Vec::new(),
            inbound: Vec::new(),
        }
    }

    /// A path of the same edge for another core, before any change.
    pub(crate) fn replica(&self, number: usize, config: &Config, nat: Option<Nat>) -> Self {
        let translator = nat.zip(self.nat.as_ref());
        let translator = translator.map(|(nat, own)| Translator::new(nat, own.inside().to_vec()));
        Self {
            nat: translator.map(Box::new),
            number,
            counts: Arc::clone(&self.counts),
            filters: self.filters.replica(number),
            gardens: Arc::clone(&self.gardens),
            seed: self.seed,
            plan: Arc::clone(&self.plan),
            ..Self::new(config)
        }
    }

    /// Which of an edge's paths this is; its own is 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Subscribers whose packets may pass.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len() + self.crossings.len()
    }

    /// Whether no packet may pass.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Prefixes that lead to subscribers.
    #[must_use]
    pub fn routes(&self) -> usize {
        self.routes.len()
    }

    /// A session that a packet arrived in since the last poll. Each is returned about once a second at most.
    pub fn poll_heard(&mut self) -> Option<E::Session> {
        self.heard.pop()
    }

    /// Passes all datagrams that [`Path::poll_transmit`] would return to `outside`, without a copy of their own. One without
    /// room is dropped, and counted. Returns how many were passed.
    pub fn pour(&mut self, outside: &mut impl Outside<E::Route>) -> u64 {
        let mut count = 0;
        while let Some((route, datagram)) = self.outgoing.front() {
            match outside.begin(route) {
                Some(out) => {
                    out.extend_from_slice(datagram);
                    outside.commit(route);
                    count += 1;
                }
                None => self.counts[self.number].discard(Discard::Backlog),
            }
            self.outgoing.drop_front();
        }
        count
    }

    /// Appends one datagram with an ICMP error, or a frame of a switched session, to `out`; `None` means drained.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<E::Route> {
        self.outgoing.pop(out)
    }

    pub(crate) fn entry(&self, place: u32) -> Option<&Entry<E>> {
        self.entries.get(place as usize)?.as_ref()
    }

    #[inline]
    fn find(&self, id: E::Id, route: &E::Route) -> Option<(u32, &Entry<E>)> {
        let place = self.sessions.find(E::hash(id), |&place| {
            let entry = self.entries[place as usize].as_ref();
            entry.is_some_and(|entry| entry.way.id() == id && entry.way.is_from(route))
        });
        let place = *place?;
        Some((place, self.entry(place)?))
    }

    pub(crate) fn put(&mut self, place: u32, mut entry: Entry<E>) {
        entry.settle(self.number, self.seat(place));
        let index = place as usize;
        let before = self.entries.get(index).and_then(Option::as_ref);
        let was_isolated = before.is_some_and(|one| one.isolate() == Some(true));
        self.isolated += u32::from(entry.isolate() == Some(true));
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        let id = entry.way.id();
        if let Some(before) = &mut self.entries[index] {
            entry.inherit(before);
            if before.way.id() == id {
                *before = entry;
                self.isolated -= u32::from(was_isolated);
                return;
            }
        }
        self.take_out(place);
        self.entries[index] = Some(entry);
        let entries = &self.entries;
        self.sessions.insert_unique(E::hash(id), place, |&at| {
            let entry = entries[at as usize].as_ref();
            let entry = entry.expect("the table names only entries");
            E::hash(entry.way.id())
        });
    }

    fn take_out(&mut self, place: u32) {
        let Some(entry) = self.entries.get_mut(place as usize).and_then(Option::take) else {
            return;
        };
        self.isolated -= u32::from(entry.isolate() == Some(true));
        self.part_nat(place);
        let hash = E::hash(entry.way.id());
        let found = self.sessions.find_entry(hash, |&at| at == place);
        if let Ok(found) = found {
            found.remove();
        }
    }

    #[cold]
    fn drop_of(&mut self, place: u32, why: Discard) {
        self.counts().discard(why);
        if let Some(Some(entry)) = self.entries.get(place as usize) {
            entry.meter(self.number).drop_one();
        }
    }
}

/// Composes headers that differ from frame to frame. The edge's endpoint does; other paths have none.
pub(crate) trait Headers<E: Encapsulation> {
    /// The header of a session's next frame.
    fn header(&mut self, session: E::Session) -> Option<E::Header>;
}

impl<A: Access> Headers<A::Encapsulation> for A {
    fn header(&mut self, session: A::Session) -> Option<Header<A>> {
        Access::header(self, session).map(|(header, _)| header)
    }
}

/// No composer: the path leaves packets that need one to the edge.
enum Nobody {}

impl<E: Encapsulation> Headers<E> for Nobody {
    fn header(&mut self, _: E::Session) -> Option<E::Header> {
        match *self {}
    }
}
