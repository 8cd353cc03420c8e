//! One subscriber: its link, its session, who it is, what it has.

use core::net::Ipv4Addr;
use std::sync::Arc;

use aaa::Profile;
use base::slab::Key;
use base::timer::TimerId;
use base::{Duration, Instant};
use filter::FilterId;
use forward::source::Addresses;
use ppp::{Claim, Link};
use wire::ppp::Compression;

use crate::access::{Access, Numbers};
use crate::end::End;
use crate::key::Traffic;
use crate::path::{Facts, Meter};

/// How far a subscriber has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// LCP is negotiated, or the peer is asked who it is.
    Link,
    /// Somebody was asked whether it may come in.
    Asking,
    /// It was let in; addresses are negotiated.
    Networks,
    /// Packets may flow.
    Up,
    /// It is told to go.
    Ending,
}

impl Phase {
    /// A stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Asking => "asking",
            Self::Networks => "networks",
            Self::Up => "up",
            Self::Ending => "ending",
        }
    }
}

/// What is kept of a subscriber.
pub(crate) struct Subscriber<A: Access> {
    pub(crate) key: Key,
    pub(crate) session: A::Session,
    /// Where its session is.
    pub(crate) place: A::Place,
    pub(crate) phase: Phase,
    /// Whether we are the client, and the peer the network.
    pub(crate) is_client: bool,
    /// Whether we let it in, and not a server.
    pub(crate) is_local: bool,
    /// The number of its claim that somebody was asked about, until the answer.
    pub(crate) asked: Option<u8>,
    /// Whether its account was begun.
    pub(crate) accounted: bool,
    /// The filter that its packets pass.
    pub(crate) filter: Option<FilterId>,
    /// Packets of both directions when its timer last looked.
    pub(crate) packets_seen: u64,
    /// The largest IP packet that goes to it whole.
    pub(crate) mtu: u16,
    /// How the heads of its frames may be shortened.
    pub(crate) compression: Compression,
    /// What it may send from: its IPv4 address while IPCP is open, its interface identifier. A client's are our own.
    pub(crate) addresses: Addresses,
    /// Our interface identifier and the peer's while IPv6CP is open.
    pub(crate) ipv6: Option<[u64; 2]>,
    /// What passed of it, by each path; none before its first network was open.
    pub(crate) meters: Option<Arc<[Meter]>>,
    pub(crate) link: Link,
    pub(crate) name: Box<[u8]>,
    /// The address that it holds, whether IPCP is open or not.
    pub(crate) held: Option<Ipv4Addr>,
    /// Number of its account; no two of an edge's have the same.
    pub(crate) account: u64,
    pub(crate) numbers: Option<Box<Numbers>>,
    pub(crate) timer: Option<(TimerId, Instant)>,
    pub(crate) created: Instant,
    pub(crate) up: Option<Instant>,
    /// When it is ended unless packets may flow by then.
    pub(crate) open_by: Instant,
    /// When it is ended whatever it does.
    pub(crate) end_at: Instant,
    /// When it is ended unless it was active.
    pub(crate) idle_at: Instant,
    pub(crate) interim_at: Instant,
    pub(crate) profile: Option<Box<Profile>>,
    /// Why it is told to go.
    pub(crate) ending: Option<Box<End<A::Reason>>>,
    /// What it claims beside what somebody was asked first.
    pub(crate) again: Option<Box<Again>>,
}

/// What somebody claims who did so before.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// The name that the present question is about, where an account has another one perhaps.
    pub(crate) name: Option<Box<[u8]>>,
    /// What it claimed since; to be asked about after the answer to that question.
    pub(crate) next: Option<Claim>,
}

impl<A: Access> Subscriber<A> {
    pub(crate) fn new(
        key: Key,
        session: A::Session,
        place: A::Place,
        link: Link,
        is_client: bool,
        now: Instant,
    ) -> Self {
        Self {
            key,
            session,
            place,
            numbers: None,
            phase: Phase::Link,
            is_client,
            is_local: true,
            asked: None,
            accounted: false,
            filter: None,
            packets_seen: 0,
            mtu: 0,
            compression: Compression::default(),
            addresses: Addresses::default(),
            ipv6: None,
            meters: None,
            link,
            name: Box::default(),
            held: None,
            account: 0,
            timer: None,
            created: now,
            up: None,
            open_by: Instant::FAR_FUTURE,
            end_at: Instant::FAR_FUTURE,
            idle_at: Instant::FAR_FUTURE,
            interim_at: Instant::FAR_FUTURE,
            profile: None,
            ending: None,
            again: None,
        }
    }

    /// Whether packets of this version of IP may pass.
    #[inline]
    pub(crate) fn is_open(&self, version: u8) -> bool {
        let open = match version {
            4 => self.addresses.v4 != 0,
            _ => self.ipv6.is_some(),
        };
        open && self.phase != Phase::Ending
    }

    /// What its path entry is made of.
    pub(crate) fn facts(&self, meters: Arc<[Meter]>) -> Facts {
        Facts {
            key: self.key,
            is_client: self.is_client,
            is_open: [self.is_open(4), self.is_open(6)],
            mtu: self.mtu,
            compression: self.compression,
            filter: self.filter,
            addresses: self.addresses,
            meters,
        }
    }

    /// What it sent and got so far.
    pub(crate) fn traffic(&self) -> Traffic {
        self.meters
            .as_deref()
            .map_or_else(Traffic::default, Meter::sum)
    }

    /// Only its link has something to do from here on.
    pub(crate) fn tell_to_go(&mut self, reason: End<A::Reason>) {
        self.phase = Phase::Ending;
        self.ending = Some(Box::new(reason));
        self.open_by = Instant::FAR_FUTURE;
        self.end_at = Instant::FAR_FUTURE;
        self.idle_at = Instant::FAR_FUTURE;
        self.interim_at = Instant::FAR_FUTURE;
    }

    /// When something has to be looked after.
    pub(crate) fn deadline(&self) -> Instant {
        self.link
            .timeout()
            .min(self.open_by)
            .min(self.end_at)
            .min(self.idle_at)
            .min(self.interim_at)
    }

    /// What it has of its profile, or what others have.
    pub(crate) fn limit(
        &self,
        own: impl FnOnce(&Profile) -> Option<Duration>,
        default: Duration,
    ) -> Duration {
        self.profile.as_deref().and_then(own).unwrap_or(default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Served;

    #[test]
    fn a_subscriber_fits_into_472_octets() {
        assert!(size_of::<Subscriber<Served>>() <= 472);
    }
}
