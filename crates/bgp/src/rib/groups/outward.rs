//! From a stored path to the attributes and next hop that a group of peers is sent: RFC 4271, sections 5.1 and 9.1.3;
//! RFC 1997; RFC 4456, section 8; RFC 9234, section 5.

use std::net::{Ipv4Addr, Ipv6Addr};

use base::Duration;
use wire::bgp::{FamilyId, NextHop, Role};

use crate::policy::rewrite::{Change, Clusters, Rewrite};
use crate::policy::{Edits, Policy};
use crate::rib::store::{
    Digest, LOCAL_PREF_DEFAULT, NextHopRule, PathInfo, PeerTraits, Source, Store,
};

/// What peers must have in common to get the same messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outward {
    pub(crate) family: FamilyId,
    pub(crate) is_internal: bool,
    is_client: bool,
    four_octet: bool,
    pub(crate) message_max: u16,
    /// The peer's number, and how many paths of each prefix it is sent, if they are sent with path identifiers. Such a
    /// group has one member.
    pub(crate) add_path: Option<(u32, u16)>,
    local_asn: u32,
    local_v4: Option<Ipv4Addr>,
    local_v6: Option<Ipv6Addr>,
    next_hop: NextHopRule,
    role: Option<Role>,
    pub(crate) advertisement_interval: Duration,
}

impl Outward {
    pub(crate) fn of(peer: u32, traits: &PeerTraits, family: FamilyId) -> Self {
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

    /// Whether such peers may be sent a path at all, before policy.
    pub(crate) fn may_send(&self, digest: &Digest, source: &Source) -> bool {
        let kept = if self.is_internal {
            Digest::NO_ADVERTISE
        } else {
            Digest::NO_ADVERTISE | Digest::NO_EXPORT | Digest::NO_EXPORT_SUBCONFED
        };
        if digest.flags & kept != 0 {
            return false;
        }
        // Routes from internal peers reach internal peers only by reflection (RFC 4456).
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

    /// Writes the attributes that such peers are sent, with the changes of the export policy, into `out`. Returns the
    /// next hop; `None` means that there is none, so the route cannot be sent.
    pub(crate) fn encode(
        &self,
        path: &PathInfo,
        store: &Store,
        (policy, edits): (&Policy, Edits),
        out: &mut Vec<u8>,
    ) -> Option<NextHop> {
        let source = store.source(path.peer());
        let attributes = store.attributes(path.attributes);
        let raw = attributes.raw;
        let mut rewrite = Rewrite {
            leaves: true,
            otc: self.otc(source),
            ..Rewrite::default()
        };
        if self.is_internal {
            rewrite.local_pref = Change::Add(LOCAL_PREF_DEFAULT);
            if source.is_internal {
                rewrite.originator = Change::Add(source.router_id);
                rewrite.clusters = Clusters::Prepend(store.cluster_id());
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
        // The writer adds the next hop where the family wants it.
        rewrite.next_hop = Change::Remove;
        let next_hop = from_policy
            .map(NextHop::from)
            .filter(|next_hop| self.family.takes(*next_hop))
            .or_else(|| self.next_hop(attributes.next_hop(self.family)))?;
        out.clear();
        if self.four_octet {
            rewrite.apply(raw, out);
        } else {
            let mut wide = Vec::with_capacity(raw.len() + 16);
            rewrite.apply(raw, &mut wide);
            wire::bgp::to_two_octet(&wide, out);
        }
        Some(next_hop)
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
        let own = self.family.own_next_hop(self.local_v4, self.local_v6);
        match self.next_hop {
            NextHopRule::Own => own,
            NextHopRule::Standard if self.is_internal => received.or(own),
            // Without an address of this family, the received next hop is passed on.
            NextHopRule::Standard => own.or(received),
            NextHopRule::Unchanged => received.or(own),
        }
    }
}
