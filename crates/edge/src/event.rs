//! Events that an edge reports to its owner, and questions that it asks.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};

use aaa::Profile;
use ppp::Claim;

use crate::access::{Access, L2tp};
use crate::end::End;
use crate::key::SubscriberKey;
use crate::v6::UplinkView;

/// An event that an edge reports.
pub enum Event<A: Access = L2tp> {
    /// The endpoint below reports something.
    Access(A::Event),
    /// A subscriber is connected: at least one network protocol is open.
    Up {
        /// The subscriber.
        subscriber: SubscriberKey,
    },
    /// Our client got an address, or lost it.
    Client {
        /// The client.
        subscriber: SubscriberKey,
        /// Our address and the peer's; `None` if they are lost.
        addresses: Option<(Ipv4Addr, Ipv4Addr)>,
    },
    /// What our client has by IPv6 changed: its router, its addresses, its delegated prefix. Reported only if
    /// [`crate::Config::uplink`] is set.
    Uplink {
        /// The client.
        subscriber: SubscriberKey,
        /// What it has; `None` if IPv6CP is down.
        view: Option<Box<UplinkView>>,
    },
    /// The route to a network or an address was added or removed. Reported only if
    /// [`crate::Config::tells_networks`] is set.
    Network {
        /// Its address.
        address: IpAddr,
        /// Its prefix length.
        length: u8,
        /// Whether it now leads to a subscriber.
        leads: bool,
    },
    /// Names or rates of a subscriber's queues could not be applied; the next source decided.
    QueueFaults {
        /// The subscriber.
        subscriber: SubscriberKey,
        /// What could not be applied.
        faults: String,
    },
    /// A subscriber got no IPv6 prefix or address: the pool is used up or unknown, or another subscriber holds a fixed
    /// one. Reported for the first of a series; [`crate::v6::V6Count::Unavailable`] counts all.
    NoPrefix {
        /// The subscriber.
        subscriber: SubscriberKey,
        /// The pool, if it was to come from one.
        pool: Option<Box<str>>,
    },
    /// A subscriber ended, whether it had connected or not.
    Down {
        /// The subscriber; its key is stale now.
        subscriber: SubscriberKey,
        /// Its session, which ended or is ending.
        session: A::Session,
        /// Its name; empty if it gave none.
        name: Box<[u8]>,
        /// Its account's number.
        account: u64,
        /// Whether it had connected.
        was_up: bool,
        /// Whether we were the client.
        is_client: bool,
        /// Why.
        reason: End<A::Reason>,
    },
}

impl<A: Access> fmt::Debug for Event<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Access(event) => f.debug_tuple("Access").field(event).finish(),
            Self::Up { subscriber } => f.debug_tuple("Up").field(subscriber).finish(),
            Self::Client {
                subscriber,
                addresses,
            } => (f.debug_tuple("Client").field(subscriber).field(addresses)).finish(),
            Self::Uplink { subscriber, view } => {
                (f.debug_tuple("Uplink").field(subscriber).field(view)).finish()
            }
            Self::Network {
                address,
                length,
                leads,
            } => (f
                .debug_tuple("Network")
                .field(address)
                .field(length)
                .field(leads))
            .finish(),
            Self::QueueFaults { subscriber, faults } => (f.debug_tuple("QueueFaults"))
                .field(subscriber)
                .field(faults)
                .finish(),
            Self::NoPrefix { subscriber, pool } => (f.debug_struct("NoPrefix"))
                .field("subscriber", subscriber)
                .field("pool", pool)
                .finish(),
            Self::Down {
                subscriber,
                session,
                reason,
                ..
            } => (f
                .debug_tuple("Down")
                .field(subscriber)
                .field(session)
                .field(reason))
            .finish(),
        }
    }
}

/// What an admitted subscriber gets.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// Address, routes, limits.
    pub profile: Profile,
    /// Whether it gets its previous address again, if that is free.
    pub sticky: bool,
    /// Whether a server admitted it, not our users file.
    pub is_remote: bool,
    /// Largest number of connected subscribers with this name, this one included; `None`: unlimited.
    pub sessions: Option<u32>,
    /// Its queues, if it is shaped. A shape that [`hqos::Plan::check_ids`] refuses is ignored.
    pub shape: Option<hqos::Shape>,
    /// Attributes about its queues that could not be read. They are counted and reported, and change nothing.
    pub left_out: Vec<String>,
}

/// A subscriber claims a name and proves it, for the first time or again.
///
/// Answer each question once. Until then there is no other question about that subscriber.
#[derive(Clone, Debug)]
pub struct Question {
    /// The subscriber.
    pub subscriber: SubscriberKey,
    /// The claimed name and its proof.
    pub claim: Claim,
}
