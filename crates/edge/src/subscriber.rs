//! One subscriber's record: session, link, name, address, limits, counters.

use core::net::Ipv4Addr;
use std::sync::Arc;

use aaa::{Address, Profile, Queue};
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
use crate::queue::Setting;
use crate::v6::Family;

/// The phase of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// LCP is being negotiated, or the peer is authenticating.
    Link,
    /// The owner was asked whether to admit it.
    Asking,
    /// It was admitted; addresses are being negotiated.
    Networks,
    /// Packets may flow.
    Up,
    /// It is ending: its link is being closed.
    Ending,
}

impl Phase {
    /// Every phase, in the order of its value.
    pub const ALL: [Self; 5] = [
        Self::Link,
        Self::Asking,
        Self::Networks,
        Self::Up,
        Self::Ending,
    ];

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

/// How many subscribers are in each phase. Kept up to date, so that nobody walks over 100,000 subscribers to count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phases([u32; Phase::ALL.len()]);

impl Phases {
    pub(crate) fn count(&self, phase: Phase) -> u32 {
        self.0[phase as usize]
    }

    fn change(&mut self, from: Phase, to: Phase) {
        self.0[from as usize] -= 1;
        self.0[to as usize] += 1;
    }
}

/// Subscribers whose packets may pass, by IP version. Kept up to date like `Phases`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByVersion {
    /// IPv4 alone.
    pub ipv4: u32,
    /// IPv6 alone.
    pub ipv6: u32,
    /// Both.
    pub both: u32,
}

impl ByVersion {
    fn place(&mut self, open: [bool; 2]) -> Option<&mut u32> {
        match open {
            [true, false] => Some(&mut self.ipv4),
            [false, true] => Some(&mut self.ipv6),
            [true, true] => Some(&mut self.both),
            [false, false] => None,
        }
    }
}

/// A subscriber.
pub(crate) struct Subscriber<A: Access> {
    pub(crate) key: Key,
    pub(crate) session: A::Session,
    /// Where its session is.
    pub(crate) place: A::Place,
    phase: Phase,
    /// Whether we are the client, and the peer the network.
    pub(crate) is_client: bool,
    /// Whether we authenticated it, not a server.
    pub(crate) is_local: bool,
    /// The number of the claim that a question is open about.
    pub(crate) asked: Option<u8>,
    /// Whether its accounting has started.
    pub(crate) accounted: bool,
    /// The versions of IP, 4 and 6, that it is counted by.
    counted: [bool; 2],
    /// The filter that its packets pass.
    pub(crate) filter: Option<FilterId>,
    /// Packets of both directions at the last idle check.
    pub(crate) packets_seen: u64,
    /// The largest IP packet that goes to it unfragmented.
    pub(crate) mtu: u16,
    /// How the heads of its frames may be shortened.
    pub(crate) compression: Compression,
    /// The addresses that it may send from: its IPv4 address while IPCP is open, its interface identifier. A client's
    /// are our own.
    pub(crate) addresses: Addresses,
    /// Its IPv6 while IPv6CP is open.
    pub(crate) v6: Option<Box<Family>>,
    /// Its IPv6 until IPv6CP closed last, for the last accounting entry.
    pub(crate) v6_before: Option<Box<Family>>,
    /// Its counters, by path; none before its first network protocol was open.
    pub(crate) meters: Option<Arc<[Meter]>>,
    pub(crate) link: Link,
    pub(crate) name: Box<[u8]>,
    /// The address that it leased, whether IPCP is open or not.
    pub(crate) held: Option<Ipv4Addr>,
    /// Number of its account, unique in the edge.
    pub(crate) account: u64,
    pub(crate) numbers: Option<Box<Numbers>>,
    pub(crate) timer: Option<(TimerId, Instant)>,
    pub(crate) created: Instant,
    pub(crate) up: Option<Instant>,
    /// Deadline for packets to flow.
    pub(crate) open_by: Instant,
    /// When its Session-Timeout ends it.
    pub(crate) end_at: Instant,
    /// When it is next checked for idleness.
    pub(crate) idle_at: Instant,
    pub(crate) interim_at: Instant,
    pub(crate) profile: Option<Box<Profile>>,
    /// Its queues, if any source says something about them.
    pub(crate) queue: Option<Box<Queueing>>,
    /// Why it is ending.
    pub(crate) ending: Option<Box<End<A::Reason>>>,
    /// Claims that it made while a question was open.
    pub(crate) again: Option<Box<Again>>,
}

/// A subscriber's queues.
#[derive(Clone, Debug)]
pub(crate) struct Queueing {
    /// What commands set.
    pub(crate) own: Queue,
    /// What all sources come to.
    pub(crate) setting: Option<Setting>,
}

/// Claims of a subscriber that has claimed a name before.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// The name that the open question is about, which may differ from the account's.
    pub(crate) name: Option<Box<[u8]>>,
    /// The latest claim since; asked about after the answer.
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
            counted: [false; 2],
            filter: None,
            packets_seen: 0,
            mtu: 0,
            compression: Compression::default(),
            addresses: Addresses::default(),
            v6: None,
            v6_before: None,
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
            queue: None,
            ending: None,
            again: None,
        }
    }

    /// Its phase.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Sets its phase, and counts it there: nothing else does.
    pub(crate) fn set_phase(&mut self, phase: Phase, phases: &mut Phases) {
        phases.change(core::mem::replace(&mut self.phase, phase), phase);
    }

    /// Counts a new subscriber.
    pub(crate) fn enter(&self, phases: &mut Phases) {
        phases.0[self.phase as usize] += 1;
    }

    /// Counts a subscriber that is removed no longer.
    pub(crate) fn leave(&mut self, phases: &mut Phases, versions: &mut ByVersion) {
        phases.0[self.phase as usize] -= 1;
        self.count_as([false; 2], versions);
    }

    /// Counts it by the versions of IP whose packets may pass now. Call this after each change of them.
    pub(crate) fn count_versions(&mut self, all: &mut ByVersion) {
        self.count_as([self.is_open(4), self.is_open(6)], all);
    }

    fn count_as(&mut self, open: [bool; 2], all: &mut ByVersion) {
        let before = core::mem::replace(&mut self.counted, open);
        if let Some(place) = all.place(before) {
            *place -= 1;
        }
        if let Some(place) = all.place(open) {
            *place += 1;
        }
    }

    /// Whether its profile lets it choose its own IPv4 address.
    pub(crate) fn may_choose(&self) -> bool {
        let profile = self.profile.as_deref();
        profile.is_some_and(|profile| profile.address == Address::ItsOwn)
    }

    /// Whether packets of this IP version may pass.
    #[inline]
    pub(crate) fn is_open(&self, version: u8) -> bool {
        let open = match version {
            4 => self.addresses.v4 != 0,
            _ => self.v6.is_some(),
        };
        open && self.phase != Phase::Ending
    }

    /// The facts for its path entry.
    pub(crate) fn facts(&self, home: Option<u8>, meters: Arc<[Meter]>) -> Facts {
        Facts {
            key: self.key,
            is_client: self.is_client,
            is_open: [self.is_open(4), self.is_open(6)],
            isolate: self.profile.as_deref().and_then(|own| own.isolate),
            mtu: self.mtu,
            compression: self.compression,
            filter: self.filter,
            garden: None,
            addresses: self.addresses,
            home,
            translator: 0,
            meters,
        }
    }

    /// Its traffic so far.
    pub(crate) fn traffic(&self) -> Traffic {
        self.meters
            .as_deref()
            .map_or_else(Traffic::default, Meter::sum)
    }

    /// Starts the end: from here on only its link has deadlines.
    pub(crate) fn tell_to_go(&mut self, reason: End<A::Reason>, phases: &mut Phases) {
        self.set_phase(Phase::Ending, phases);
        self.ending = Some(Box::new(reason));
        self.open_by = Instant::FAR_FUTURE;
        self.end_at = Instant::FAR_FUTURE;
        self.idle_at = Instant::FAR_FUTURE;
        self.interim_at = Instant::FAR_FUTURE;
    }

    /// The earliest of its deadlines.
    pub(crate) fn deadline(&self) -> Instant {
        self.link
            .timeout()
            .min(self.open_by)
            .min(self.end_at)
            .min(self.idle_at)
            .min(self.interim_at)
            .min(match self.v6.as_deref() {
                Some(family) if self.phase != Phase::Ending => family.deadline(),
                Some(_) | None => Instant::FAR_FUTURE,
            })
    }

    /// A limit from its profile, or the default.
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
    use crate::access::L2tp;

    #[test]
    fn a_subscriber_fits_into_488_octets() {
        assert!(size_of::<Subscriber<L2tp>>() <= 488);
    }
}
