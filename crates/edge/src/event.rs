//! What an edge tells its owner, and asks it.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};

use aaa::Profile;
use ppp::Claim;

use crate::access::{Access, Served};
use crate::end::End;
use crate::key::SubscriberKey;

/// What an edge tells its owner.
pub enum Event<A: Access = Served> {
    /// The endpoint below reports something.
    Access(A::Event),
    /// A subscriber is on line: packets of at least one network protocol may flow.
    Up {
        /// Who.
        subscriber: SubscriberKey,
    },
    /// A client of ours is on line, or lost its address.
    Client {
        /// Which.
        subscriber: SubscriberKey,
        /// Our address and the peer's; `None` when they are gone.
        addresses: Option<(Ipv4Addr, Ipv4Addr)>,
    },
    /// A network, or an address alone, leads to a subscriber from now on, or to none any more. Told where
    /// [`crate::Config::tells_networks`] asks for it.
    Network {
        /// Its address.
        address: IpAddr,
        /// How many of the address's first bits count.
        length: u8,
        /// Whether it leads to somebody.
        leads: bool,
    },
    /// Somebody is not on line any more, or did not come so far.
    Down {
        /// Who; nothing is there under this key any more.
        subscriber: SubscriberKey,
        /// Its session, which has ended or ends now.
        session: A::Session,
        /// Its name, as far as it said one.
        name: Box<[u8]>,
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
            Self::Down {
                subscriber,
                session,
                name: _,
                reason,
            } => (f
                .debug_tuple("Down")
                .field(subscriber)
                .field(session)
                .field(reason))
            .finish(),
        }
    }
}

/// What somebody gets who is let in.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// Address, routes, times.
    pub profile: Profile,
    /// Whether it is to get its last address back.
    pub sticky: bool,
    /// Whether a server let it in, and not we ourselves.
    pub is_remote: bool,
    /// How many may be on line by its name, this one counted; `None`: any number.
    pub sessions: Option<u32>,
}

/// Somebody says who it is, and asks to come in, or shows once more that it is who it was.
///
/// It is to be answered once. Until then there is no other question of that subscriber.
#[derive(Clone, Debug)]
pub struct Question {
    /// Who.
    pub subscriber: SubscriberKey,
    /// Its name and proof.
    pub claim: Claim,
}
