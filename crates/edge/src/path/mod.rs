//! The way of packets, as a value of its own: what it needs of each subscriber lies together, made before, so that a
//! packet reads two or three lines of memory and nothing of PPP, L2TP or accounts.
//!
//! An [`crate::Edge`] has one and changes it as subscribers come and go. Where packets are to pass on several cores,
//! each further core has a copy ([`crate::Edge::replica`]), which takes the same changes in the same order
//! ([`crate::Edge::poll_change`], [`Path::apply`]). A copy leaves to the edge whatever is no packet of IP of an open
//! session, or is in a session whose frames are numbered: one counter cannot be in two places. What each path counts is
//! written by it alone and read by whoever wants to.
//!
//! | file | what happens there |
//! |---|---|
//! | `entry` | what is kept of a subscriber |
//! | `change` | what the edge tells its paths |
//! | `inward` | from a tunnel to the inside |
//! | `outward` | from the inside into a tunnel |
//! | `errors` | ICMP errors about packets that did not go on |
//! | `filters` | which packets may pass |
//! | `copies` | copies of what passes, for who looks |
//! | `counts` | what was discarded, and what passed |

pub(crate) mod change;
mod copies;
mod counts;
mod entry;
mod errors;
mod filters;
mod inward;
mod outward;

use std::sync::Arc;

use forward::routes::Routes;
use hashbrown::HashTable;

use crate::access::{Access, Encapsulation, Header, Served};
use crate::config::Config;
use crate::counters::Discard;
use crate::outgoing::Outgoing;

pub use change::Change;
pub(crate) use copies::Copies;
pub use copies::{Passed, TapId, Tapped};
pub(crate) use counts::Counts;
pub use counts::PathCounts;
pub(crate) use entry::{Entry, Facts, Meter};
use errors::Errors;
pub use filters::{Filters, Logged};
pub(crate) use inward::packet;

/// What became of a datagram or of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// It went on, or was discarded and counted.
    Done,
    /// Nothing was done: it is for the edge, as it is.
    Left,
}

/// Where packets of subscribers go.
pub trait Inside {
    /// Takes an IP packet without padding.
    fn packet(&mut self, packet: &[u8]);
}

/// Where datagrams to peers go.
pub trait Outside<R = <Served as Access>::Route> {
    /// Begins a datagram on this way: its octets are to be appended to the buffer. `None` where there is no room.
    fn begin(&mut self, route: &R) -> Option<&mut Vec<u8>>;

    /// Ends the datagram begun.
    fn commit(&mut self, route: &R);
}

/// All that packets need on their way.
pub struct Path<E: Encapsulation = <Served as Access>::Encapsulation> {
    /// Which of an edge's paths this is; its own is 0.
    number: usize,
    clamp_mss: bool,
    /// By the subscriber's place.
    entries: Vec<Option<Entry<E>>>,
    /// Places of entries by the ids of data messages.
    sessions: HashTable<u32>,
    /// Subscribers by their addresses and the networks behind them.
    pub(crate) routes: Routes,
    /// Our own addresses as a client.
    pub(crate) own: Routes,
    pub(crate) filters: Filters,
    pub(crate) errors: Errors,
    /// ICMP errors to subscribers.
    pub(crate) outgoing: Outgoing<E::Route>,
    pub(crate) copies: Copies<E::Route>,
    /// Of all paths.
    counts: Arc<[Counts]>,
    /// Sessions that were heard of since somebody looked.
    heard: Vec<E::Session>,
    /// A packet that is changed on its way.
    scratch: Vec<u8>,
}

impl<E: Encapsulation> Path<E> {
    pub(crate) fn new(config: &Config) -> Self {
        let paths = usize::from(config.paths.max(1));
        Self {
            number: 0,
            clamp_mss: config.clamp_mss,
            entries: Vec::new(),
            sessions: HashTable::new(),
            routes: Routes::new(config.routes_max as usize),
            own: Routes::new(config.subscribers_max as usize),
            filters: Filters::new(paths),
            errors: Errors::new(config),
            outgoing: Outgoing::default(),
            copies: Copies::default(),
            counts: (0..paths).map(|_| Counts::default()).collect(),
            heard: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// A path of the same edge for another core, before any change was made.
    pub(crate) fn replica(&self, number: usize, config: &Config) -> Self {
        Self {
            number,
            counts: Arc::clone(&self.counts),
            filters: self.filters.replica(number),
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
        self.sessions.len()
    }

    /// Whether no packet may pass.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Prefixes that lead to subscribers.
    #[must_use]
    pub fn routes(&self) -> usize {
        self.routes.len()
    }

    /// A session of which something came since it was asked last; each is named about once a second at most.
    pub fn poll_heard(&mut self) -> Option<E::Session> {
        self.heard.pop()
    }

    /// Appends one datagram about a packet that did not go on to `out`; `None` means drained.
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
        let index = place as usize;
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        let id = entry.way.id();
        if let Some(before) = &mut self.entries[index] {
            entry.inherit(before);
            if before.way.id() == id {
                *before = entry;
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

/// Composes the headers that are not the same for every frame: the edge's endpoint. Other paths have none.
pub(crate) trait Headers<E: Encapsulation> {
    /// The header of a session's next frame.
    fn header(&mut self, session: E::Session) -> Option<E::Header>;
}

impl<A: Access> Headers<A::Encapsulation> for A {
    fn header(&mut self, session: A::Session) -> Option<Header<A>> {
        Access::header(self, session).map(|(header, _)| header)
    }
}

/// Nobody composes headers: the path leaves packets that need one to the edge.
enum Nobody {}

impl<E: Encapsulation> Headers<E> for Nobody {
    fn header(&mut self, _: E::Session) -> Option<E::Header> {
        match *self {}
    }
}
