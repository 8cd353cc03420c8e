//! From a path in the table to what a group of peers is told of it: RFC 4271, sections 5.1 and 9.1.3; RFC 1997;
//! RFC 4456, section 8; RFC 9234, section 5.
//!
//! Implements parts of RFC 8212.

use std::net::{Ipv4Addr, Ipv6Addr};

use base::Duration;
use wire::bgp::attr;
use wire::bgp::{Family, NextHop, Role};

use super::attrs::{AttributeStore, Attributes, Digest, LOCAL_PREF_DEFAULT};
use super::paths::Path;
use super::peer::{NextHopRule, PeerTraits, Source};
use crate::policy::rewrite::{Change, Clusters, Rewrite};
use crate::policy::{Edits, Policy};

/// What peers must have in common to be told the same octets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outward {
    pub(crate) family: Family,
    pub(crate) is_internal: bool,
    is_client: bool,
    four_octet: bool,
    pub(crate) message_max: u16,
    /// The peer's number and how many paths of each prefix, where they are sent with identifiers: such a group is of
    /// one peer.
    pub(crate) add_path: Option<(u32, u16)>,
    local_asn: u32,
    local_v4: Option<Ipv4Addr>,
    local_v6: Option<Ipv6Addr>,
    next_hop: NextHopRule,
    role: Option<Role>,
    pub(crate) advertisement_interval: Duration,
}

/// What is said of a path: attributes as they go on the wire, and the next hop.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) attributes: Vec<u8>,
    pub(crate) next_hop: Option<NextHop>,
}

impl Outward {
    pub(crate) fn of(peer: u32, traits: &PeerTraits, family: Family) -> Self {
        let add_path = traits.add_path_tx.contains(family);
        Outward {
            family,
            is_internal: traits.is_internal(),
            is_client: traits.is_client,
            four_octet: traits.four_octet,
            message_max: traits.message_max,
            add_path: add_path.then_some((peer, traits.add_path_count)),
            local_asn: traits.local_asn,
            local_v4: traits.local_v4,
            local_v6: traits.local_v6,
            next_hop: traits.next_hop,
            role: traits.role,
            advertisement_interval: traits.advertisement_interval,
        }
    }

    /// Whether such peers may be told of a path at all, before policy.
    pub(crate) fn may_send(&self, digest: &Digest, source: &Source) -> bool {
        let kept = if self.is_internal {
            Digest::NO_ADVERTISE
        } else {
            Digest::NO_ADVERTISE | Digest::NO_EXPORT | Digest::NO_EXPORT_SUBCONFED
        };
        if digest.flags & kept != 0 {
            return false;
        }
        // A route from inside goes on to the inside only by reflection.
        if self.is_internal && source.is_internal && !source.is_client && !self.is_client {
            return false;
        }
        let only_to_customer = digest.otc != 0 || source.implied_otc() != 0;
        let upward = matches!(
            self.role,
            Some(Role::Customer | Role::Peer | Role::RouteServerClient)
        );
        !(only_to_customer && upward)
    }

    /// Writes what such peers are told, with the changes of the export policy; `None` where there is no next hop to
    /// tell.
    pub(crate) fn tell(
        &self,
        path: &Path,
        source: &Source,
        ours: &Ours,
        store: &AttributeStore,
        (policy, edits): (&Policy, Edits),
        told: &mut Told,
    ) -> Option<()> {
        let Attributes { next_hop, raw } = store.get(path.attributes);
        let mut rewrite = Rewrite {
            leaves: true,
            otc: self.otc(source),
            ..Rewrite::default()
        };
        if self.is_internal {
            rewrite.local_pref = Change::Add(LOCAL_PREF_DEFAULT);
            if source.is_internal {
                rewrite.originator = Change::Add(source.router_id);
                rewrite.clusters = Clusters::Prepend(ours.cluster_id);
            }
        } else {
            rewrite.prepend = (self.local_asn, 1);
            rewrite.local_pref = Change::Remove;
            rewrite.originator = Change::Remove;
            rewrite.clusters = Clusters::Remove;
            if !source.is_local {
                rewrite.med = Change::Remove;
            }
        }
        let from_policy = policy.rewrite(edits, self.local_asn, &mut rewrite);
        // Its place is the writer's concern.
        rewrite.next_hop = Change::Remove;
        let received = match self.family {
            Family::Ipv4Unicast => attr::next_hop(raw).map(NextHop::V4),
            Family::Ipv6Unicast => next_hop_v6(next_hop),
        };
        let of_family = |next_hop: &NextHop| next_hop.family() == self.family;
        told.next_hop = from_policy
            .map(NextHop::from)
            .filter(of_family)
            .or_else(|| self.next_hop(received));
        told.next_hop?;
        told.attributes.clear();
        if self.four_octet {
            rewrite.apply(raw, &mut told.attributes);
        } else {
            let mut wide = Vec::with_capacity(raw.len() + 16);
            rewrite.apply(raw, &mut wide);
            wire::bgp::to_two_octet(&wide, &mut told.attributes);
        }
        Some(())
    }

    fn otc(&self, source: &Source) -> Change {
        match (source.implied_otc(), self.role) {
            (0, Some(Role::Provider | Role::Peer | Role::RouteServer)) => {
                Change::Add(self.local_asn)
            }
            (0, Some(Role::Customer | Role::RouteServerClient) | None) => Change::Keep,
            (asn, _) => Change::Add(asn),
        }
    }

    fn next_hop(&self, received: Option<NextHop>) -> Option<NextHop> {
        let own = match self.family {
            Family::Ipv4Unicast => self.local_v4.map(NextHop::V4),
            Family::Ipv6Unicast => self.local_v6.map(|address| NextHop::V6(address, None)),
        };
        match self.next_hop {
            NextHopRule::Own => own,
            NextHopRule::Standard if self.is_internal => received.or(own),
            // One end without an address of the family leaves the next hop to a third party.
            NextHopRule::Standard => own.or(received),
            NextHopRule::Unchanged => received.or(own),
        }
    }
}

/// Reads a next hop that stands apart from the attributes; without the link-local address, which means nothing on
/// other links.
pub(crate) fn next_hop_v6(octets: &[u8]) -> Option<NextHop> {
    let global: &[u8; 16] = octets.first_chunk()?;
    Some(NextHop::V6(Ipv6Addr::from(*global), None))
}

/// What we are to the peers of our AS.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ours {
    pub(crate) cluster_id: u32,
}
