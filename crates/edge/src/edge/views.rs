//! Rows for `show`.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};

use aaa::Profile;
use aaa::accounting::Ipv6Leases;
use base::{Duration, Instant};
use filter::FilterId;
use ppp::Link;

use crate::access::{Access, L2tp, Numbers};
use crate::counters::{Ends, Refusals};
use crate::edge::Edge;
use crate::end::End;
use crate::history::Ended;
use crate::key::{SubscriberKey, Traffic};
use crate::queue::Setting;
use crate::subscriber::{ByVersion, Phase, Subscriber};
use crate::v6::Family;

/// Totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Subscribers now, those being set up included.
    pub subscribers: usize,
    /// Subscribers that connected, since the start.
    pub up: u64,
    /// Subscribers that ended, connected or not.
    pub down: u64,
    /// Of those, the ones that were refused.
    pub refused: u64,
    /// Of those, the ones for which there was no address.
    pub without_address: u64,
    /// Sessions ended because the table was full.
    pub too_many: u64,
    /// Routes refused because another subscriber has them, or the table is full.
    pub routes_refused: u64,
    /// Routes now.
    pub routes: usize,
    /// Names and rates of queues that could not be applied, since the start.
    pub queue_faults: u64,
    /// LCP Echo-Replies to our requests, since the start (RFC 1661, section 5.8).
    pub echo_replies: u64,
    /// ICMP errors sent.
    pub icmp_errors: u64,
    /// Those that ended, by cause.
    pub ends: Ends,
    /// Failed admissions by reason.
    pub refusals: Refusals,
    /// Subscribers whose packets may pass now, by IP version.
    pub versions: ByVersion,
}

/// A subscriber as `show` sees it.
pub struct SubscriberView<'a, A: Access = L2tp> {
    /// Its key.
    pub key: SubscriberKey,
    /// Its session.
    pub session: A::Session,
    /// Where its session is.
    pub place: A::Place,
    /// Its name; empty before it gave one.
    pub name: &'a [u8],
    /// Its phase.
    pub phase: Phase,
    /// Whether we are the client.
    pub is_client: bool,
    /// Its link.
    pub link: &'a Link,
    /// Its IPv4 address; ours if we are the client.
    pub address: Option<Ipv4Addr>,
    /// Our interface identifier and the peer's.
    pub ipv6: Option<[u64; 2]>,
    /// Its IPv6 prefixes.
    pub leases: Ipv6Leases,
    /// When its leases by DHCPv6 end, of the address and of the delegated prefix.
    pub lease_ends: [Option<Instant>; 2],
    /// The largest packet that goes to it unfragmented, in bytes.
    pub mtu: u16,
    /// Its profile, if it is not the default one.
    pub profile: Option<&'a Profile>,
    /// The filter that its packets pass: that of its profile, or the configuration's.
    pub filter: Option<FilterId>,
    /// Rates, template and link of its queues; `None` if no source says anything about them.
    pub queue: Option<&'a Setting>,
    /// Its account's number.
    pub account: u64,
    /// Calling and called numbers.
    pub numbers: Option<&'a Numbers>,
    /// When its session came up.
    pub created: Instant,
    /// When its first network protocol did.
    pub up: Option<Instant>,
    /// Its traffic.
    pub traffic: Traffic,
    /// When its Session-Timeout ends it.
    pub ends: Option<Instant>,
    /// Why it is ending.
    pub ending: Option<&'a End<A::Reason>>,
}

/// Limits of a subscriber, from its profile or the configuration; zero means never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest session (Session-Timeout).
    pub session: Duration,
    /// Longest time without a data packet (Idle-Timeout).
    pub idle: Duration,
    /// Time between interim entries (Acct-Interim-Interval).
    pub interim: Duration,
}

impl<A: Access> Clone for SubscriberView<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Access> Copy for SubscriberView<'_, A> {}

impl<A: Access> fmt::Debug for SubscriberView<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriberView")
            .field("key", &self.key)
            .field("session", &self.session)
            .field("place", &self.place)
            .field("phase", &self.phase)
            .field("is_client", &self.is_client)
            .field("link", &self.link)
            .field("address", &self.address)
            .field("account", &self.account)
            .field("up", &self.up)
            .field("traffic", &self.traffic)
            .field("ending", &self.ending)
            .finish_non_exhaustive()
    }
}

impl<A: Access> Subscriber<A> {
    fn view(&self) -> SubscriberView<'_, A> {
        SubscriberView {
            key: SubscriberKey(self.key),
            session: self.session,
            place: self.place,
            name: &self.name,
            phase: self.phase(),
            is_client: self.is_client,
            link: &self.link,
            address: self.held,
            ipv6: self.identifiers(),
            leases: self.v6.as_deref().map(Family::leases).unwrap_or_default(),
            lease_ends: self
                .v6
                .as_deref()
                .map_or([None; 2], |family| family.leases.ends()),
            mtu: self.mtu,
            profile: self.profile.as_deref(),
            filter: self.filter,
            queue: self.queue.as_deref().and_then(|one| one.setting.as_ref()),
            account: self.account,
            numbers: self.numbers.as_deref(),
            created: self.created,
            up: self.up,
            traffic: self.traffic(),
            ends: Some(self.end_at).filter(|&at| at != Instant::FAR_FUTURE),
            ending: self.ending.as_deref(),
        }
    }
}

impl<A: Access> Edge<A> {
    /// One subscriber.
    #[must_use]
    pub fn subscriber(&self, key: SubscriberKey) -> Option<SubscriberView<'_, A>> {
        self.subscribers.get(key.0).map(Subscriber::view)
    }

    /// The subscriber of a session.
    #[must_use]
    pub fn subscriber_in(&self, session: A::Session) -> Option<SubscriberView<'_, A>> {
        let index = self.subscriber_of(session)?;
        self.subscribers.at(index).map(Subscriber::view)
    }

    /// The subscriber that has this address, or a network with it.
    #[must_use]
    pub fn subscriber_at(&self, address: Ipv4Addr) -> Option<SubscriberKey> {
        let index = self.path.routes.lookup_v4(address.to_bits())?;
        self.subscribers.at(index).map(|one| SubscriberKey(one.key))
    }

    /// The first subscriber at or behind `cursor`, and the cursor behind it.
    #[must_use]
    pub fn next_subscriber(&self, cursor: u32) -> Option<(u32, SubscriberView<'_, A>)> {
        let (index, subscriber) = self.subscribers.next_from(cursor)?;
        Some((index + 1, subscriber.view()))
    }

    /// The subscriber that holds an address, or else the one that packets to it go to. An address of our client gives
    /// that client.
    #[must_use]
    pub fn at_address(&self, address: IpAddr) -> Option<SubscriberKey> {
        let held = match address {
            IpAddr::V4(address) => self.pools.holder(address),
            IpAddr::V6(_) => None,
        };
        if let Some(holder) = held {
            return Some(SubscriberKey::from_token(holder.0));
        }
        let index = match address {
            IpAddr::V4(address) => [&self.path.routes, &self.path.own]
                .into_iter()
                .find_map(|routes| routes.lookup_v4(address.to_bits())),
            IpAddr::V6(address) => [&self.path.routes, &self.path.own]
                .into_iter()
                .find_map(|routes| routes.lookup_v6(address.to_bits())),
        };
        self.subscribers
            .at(index?)
            .map(|subscriber| SubscriberKey(subscriber.key))
    }

    /// The limits of a subscriber; none for our clients, whose network decides.
    #[must_use]
    pub fn limits(&self, key: SubscriberKey) -> Option<Limits> {
        let subscriber = self.subscribers.get(key.0)?;
        if subscriber.is_client {
            return None;
        }
        let config = &self.config;
        Some(Limits {
            session: subscriber.limit(|own| own.session_timeout, config.session_timeout),
            idle: subscriber.limit(|own| own.idle_timeout, config.idle_timeout),
            interim: subscriber.limit(|own| own.interim_interval, config.interim_interval),
        })
    }

    /// The `n`th subscriber that ended, the latest first.
    #[must_use]
    pub fn ended(&self, n: usize) -> Option<&Ended<A::Place, A::Reason>> {
        self.history.get(n)
    }

    /// How many subscribers are in a phase, in O(1).
    #[must_use]
    pub fn subscribers_in(&self, phase: Phase) -> u32 {
        self.phases.count(phase)
    }

    /// Totals.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            subscribers: self.subscribers.len(),
            up: self.counters.up,
            down: self.counters.down,
            refused: self.counters.refused,
            without_address: self.counters.without_address,
            too_many: self.counters.too_many,
            routes_refused: self.counters.routes_refused,
            routes: self.path.routes.len(),
            queue_faults: self.counters.queue_faults,
            echo_replies: self.counters.echo_replies,
            icmp_errors: self
                .path
                .all_counts()
                .iter()
                .map(|counts| counts.errors())
                .sum(),
            ends: self.counters.ends,
            refusals: self.counters.refusals,
            versions: self.versions,
        }
    }

    /// The pools.
    #[must_use]
    pub fn pools(&self) -> &aaa::pools::Pools {
        &self.pools
    }

    /// The pools, for changes.
    pub fn pools_mut(&mut self) -> &mut aaa::pools::Pools {
        &mut self.pools
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &crate::Config {
        &self.config
    }
}
