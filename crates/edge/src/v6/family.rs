//! One subscriber's IPv6 state, while IPv6CP is open.

use aaa::Prefix;
use aaa::accounting::Ipv6Leases;
use base::Instant;
use forward::icmp::{Bucket, Rate};

use super::client::Uplink;
use super::server::{Leases, Wanted};

/// Answers to a subscriber's packets on its link. One answer is about as long as its question, so the rate bounds work,
/// not amplification.
pub(crate) const RATE: Rate = Rate::new(20, 40);

/// What a subscriber may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The prefix of its link, advertised.
    Link,
    /// The prefix of the network behind it, by DHCPv6.
    Delegated,
    /// An address, by DHCPv6.
    Address,
}

impl Part {
    pub(crate) const ALL: [Self; 3] = [Self::Link, Self::Delegated, Self::Address];

    /// What a DHCPv6 client calls it.
    pub(crate) const fn of(wanted: Wanted) -> Self {
        match wanted {
            Wanted::Address => Self::Address,
            Wanted::Prefix => Self::Delegated,
        }
    }
}

/// IPv6 on one link.
pub(crate) struct Family {
    /// Our interface identifier and the peer's.
    pub(crate) identifiers: [u64; 2],
    /// What it holds, by [`Part`].
    pub(crate) held: [Option<Prefix>; 3],
    /// Leases of DHCPv6.
    pub(crate) leases: Leases,
    /// When the next unsolicited Router Advertisement is due.
    pub(crate) advertise_at: Instant,
    /// When the last one was sent to all nodes.
    pub(crate) advertised: Option<Instant>,
    /// Advertisements left of the first ones, which are sent sooner.
    pub(crate) first_left: u8,
    pub(crate) bucket: Bucket,
    /// What we learn and ask for if we are the client.
    pub(crate) uplink: Option<Box<Uplink>>,
}

impl Family {
    pub(crate) fn new(identifiers: [u64; 2]) -> Self {
        Self {
            identifiers,
            held: [None; 3],
            leases: Leases::default(),
            advertise_at: Instant::FAR_FUTURE,
            advertised: None,
            first_left: 0,
            bucket: Bucket::default(),
            uplink: None,
        }
    }

    /// What it was, for the last record of its subscriber.
    pub(crate) fn past(&self) -> Box<Self> {
        Box::new(Self {
            held: self.held,
            leases: self.leases,
            ..Self::new(self.identifiers)
        })
    }

    /// The earliest of its deadlines.
    pub(crate) fn deadline(&self) -> Instant {
        let uplink = self.uplink.as_ref();
        let uplink = uplink.map_or(Instant::FAR_FUTURE, |uplink| uplink.deadline());
        self.advertise_at.min(self.leases.deadline()).min(uplink)
    }

    /// What it holds, for records and views.
    pub(crate) fn leases(&self) -> Ipv6Leases {
        let [prefix, delegated, address] = self.held;
        Ipv6Leases {
            prefix,
            delegated,
            address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_fits_into_200_octets() {
        let size = size_of::<Family>();
        assert!(size <= 200, "{size}");
    }
}
