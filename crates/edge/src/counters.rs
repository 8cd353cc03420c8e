//! Counters of an edge, and its reasons to discard.

use aaa::accounting::TerminateCause;

use crate::v6::V6Counts;

/// Why a packet was dropped, or a frame ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discard {
    /// A frame in a session that does not end here.
    NotTerminated,
    /// A packet of a network protocol that is not open.
    NotOpen,
    /// The IP version of a packet differs from its frame's.
    OtherVersion,
    /// The filter denies it.
    Filtered,
    /// A packet from the TUN device cannot be split into segments.
    NotCut,
    /// No room to queue a frame or datagram.
    Backlog,
    /// Its subscriber's queue was full, or the packet had waited too long.
    Queue,
    /// The core with its subscriber's queues was behind.
    Handover,
    /// An ICMPv6 message on a subscriber's link that is invalid (RFC 4861, sections 6.1 and 7.1).
    Ndp,
    /// A DHCPv6 message that is invalid (RFC 8415, section 16).
    Dhcp,
    /// More packets to us on a subscriber's link than are answered.
    LinkRate,
    /// The NAT has no mapping for it, or cannot make one; [`crate::Edge::nat`] has the reasons.
    Nat,
    /// It is for another subscriber, and subscribers are isolated from each other.
    Isolated,
    /// The packet itself is invalid, or has no route.
    Forward(forward::Discard),
    /// A frame that PPP ignored.
    Ppp(ppp::Discard),
}

const OWN: [Discard; 13] = [
    Discard::NotTerminated,
    Discard::NotOpen,
    Discard::OtherVersion,
    Discard::Filtered,
    Discard::NotCut,
    Discard::Backlog,
    Discard::Queue,
    Discard::Handover,
    Discard::Ndp,
    Discard::Dhcp,
    Discard::LinkRate,
    Discard::Nat,
    Discard::Isolated,
];

impl Discard {
    /// How many reasons there are.
    pub const COUNT: usize = OWN.len() + forward::Discard::ALL.len() + ppp::Discard::ALL.len();

    /// Every reason, in the order of their counters.
    pub fn all() -> impl Iterator<Item = Self> {
        let forward = forward::Discard::ALL.into_iter().map(Self::Forward);
        let ppp = ppp::Discard::ALL.into_iter().map(Self::Ppp);
        OWN.into_iter().chain(forward).chain(ppp)
    }

    /// The index of its counter.
    pub(crate) fn place(self) -> usize {
        match self {
            Self::NotTerminated => 0,
            Self::NotOpen => 1,
            Self::OtherVersion => 2,
            Self::Filtered => 3,
            Self::NotCut => 4,
            Self::Backlog => 5,
            Self::Queue => 6,
            Self::Handover => 7,
            Self::Ndp => 8,
            Self::Dhcp => 9,
            Self::LinkRate => 10,
            Self::Nat => 11,
            Self::Isolated => 12,
            Self::Forward(why) => OWN.len() + why as usize,
            Self::Ppp(why) => {
                let known = ppp::Discard::ALL.iter().position(|&one| one == why);
                OWN.len() + forward::Discard::ALL.len() + known.unwrap_or(0)
            }
        }
    }

    /// A stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotTerminated => "not_terminated",
            Self::NotOpen => "not_open",
            Self::OtherVersion => "other_version",
            Self::Filtered => "filtered",
            Self::NotCut => "not_cut",
            Self::Backlog => "backlog",
            Self::Queue => "queue",
            Self::Handover => "handover",
            Self::Ndp => "neighbor_discovery",
            Self::Dhcp => "dhcpv6",
            Self::LinkRate => "link_rate",
            Self::Nat => "nat",
            Self::Isolated => "isolated",
            Self::Forward(why) => why.name(),
            Self::Ppp(why) => why.name(),
        }
    }
}

/// Why a subscriber was not admitted, or its session not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The users file or a RADIUS server rejected its name or its password.
    Rejected,
    /// No RADIUS server answered.
    NoServer,
    /// It authenticated again with another name.
    OtherName,
    /// Its name has as many sessions as it may have.
    TooManySessions,
    /// Its profile names a filter that does not exist.
    NoFilter,
    /// Its rates, template or link cannot be applied, and `strict` is set.
    NoQueue,
    /// There was no address for it.
    NoAddress,
    /// The limit on subscribers is reached.
    TooManySubscribers,
    /// It did not authenticate, or open a network protocol, in time.
    Timeout,
    /// Its name or line failed too often, and has to wait.
    Throttled,
    /// Its realm does not allow the method that it authenticated by.
    Method,
    /// No LNS took its session.
    NoTunnel,
}

impl Refusal {
    /// Every reason, in the order of its value.
    pub const ALL: [Self; 12] = [
        Self::Rejected,
        Self::NoServer,
        Self::OtherName,
        Self::TooManySessions,
        Self::NoFilter,
        Self::NoQueue,
        Self::NoAddress,
        Self::TooManySubscribers,
        Self::Timeout,
        Self::Throttled,
        Self::Method,
        Self::NoTunnel,
    ];

    /// A stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::NoServer => "no-server",
            Self::OtherName => "other-name",
            Self::TooManySessions => "too-many-sessions",
            Self::NoFilter => "no-filter",
            Self::NoQueue => "no-queue",
            Self::NoAddress => "no-address",
            Self::TooManySubscribers => "too-many-subscribers",
            Self::Timeout => "timeout",
            Self::Throttled => "throttled",
            Self::Method => "method",
            Self::NoTunnel => "no-tunnel",
        }
    }
}

/// Failed admissions by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    pub(crate) fn count(&mut self, why: Refusal) {
        self.0[why as usize] += 1;
    }

    /// The failed admissions for a reason.
    #[must_use]
    pub fn of(&self, why: Refusal) -> u64 {
        self.0[why as usize]
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Ended subscribers by Acct-Terminate-Cause (RFC 2866, section 5.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends([u64; TerminateCause::ALL.len()]);

impl Ends {
    pub(crate) fn count(&mut self, cause: TerminateCause) {
        self.0[cause as usize - 1] += 1;
    }

    /// The ends for a cause.
    #[must_use]
    pub fn of(&self, cause: TerminateCause) -> u64 {
        self.0[cause as usize - 1]
    }
}

/// The counters of the edge itself; its paths have their own. Plain numbers: counting costs an addition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// Subscribers that connected.
    pub(crate) up: u64,
    /// Subscribers that ended, connected or not.
    pub(crate) down: u64,
    /// Those that were refused.
    pub(crate) refused: u64,
    /// Those for which there was no address.
    pub(crate) without_address: u64,
    /// Sessions ended because the table was full.
    pub(crate) too_many: u64,
    /// Routes refused because another subscriber has them, or the table is full.
    pub(crate) routes_refused: u64,
    /// Names and rates of queues that could not be applied.
    pub(crate) queue_faults: u64,
    /// LCP Echo-Replies to our requests.
    pub(crate) echo_replies: u64,
    pub(crate) ends: Ends,
    pub(crate) refusals: Refusals,
    /// IPv6 on the links.
    pub(crate) v6: V6Counts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_and_every_refusal_has_a_counter_of_its_own() {
        for (n, cause) in TerminateCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, n + 1);
        }
        for (n, why) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, n);
        }
    }

    #[test]
    fn every_reason_has_a_counter_of_its_own() {
        let places: Vec<_> = Discard::all().map(Discard::place).collect();
        assert_eq!(places, (0..Discard::COUNT).collect::<Vec<_>>());
    }
}
