//! What the store knows of each peer: what its session negotiated, and how many routes it has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base::Duration;
use wire::bgp::{FAMILIES, Families, FamilyId, MESSAGE_MAX, Role};

use crate::policy::Policy;

/// How the next hop of advertised routes is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NextHopRule {
    /// External peers are sent our own address, internal peers the received next hop (RFC 4271, section 5.1.3).
    #[default]
    Standard,
    /// Our own address, for internal peers too.
    Own,
    /// The received next hop, for external peers too: a third party's.
    Unchanged,
}

/// What a session negotiated and how it is configured.
#[derive(Debug, Clone)]
pub struct PeerTraits {
    /// The peer's AS.
    pub remote_asn: u32,
    /// Our AS towards it.
    pub local_asn: u32,
    /// The peer's BGP identifier.
    pub router_id: u32,
    /// The peer's address.
    pub remote: IpAddr,
    /// Our next hop for IPv4 routes.
    pub local_v4: Option<Ipv4Addr>,
    /// Our next hop for IPv6 routes.
    pub local_v6: Option<Ipv6Addr>,
    /// The negotiated families.
    pub families: Families,
    /// Whether the peer supports AS numbers of four octets (RFC 6793).
    pub four_octet: bool,
    /// The longest message that the peer accepts, in octets (RFC 8654).
    pub message_max: u16,
    /// Families for which the peer sends path identifiers (RFC 7911).
    pub add_path_rx: Families,
    /// Families for which we send path identifiers.
    pub add_path_tx: Families,
    /// How many paths of each prefix are sent, the best first; 0 for all.
    pub add_path_count: u16,
    /// Whether the peer is a client of this route reflector (RFC 4456).
    pub is_client: bool,
    /// How next hops are changed.
    pub next_hop: NextHopRule,
    /// Our role towards the peer (RFC 9234).
    pub role: Option<Role>,
    /// Whether the marks of RFC 7313 are sent around a refresh.
    pub enhanced_refresh: bool,
    /// Whether End-of-RIB is sent after the first dump (RFC 4724, section 2).
    pub end_of_rib: bool,
    /// How often our own AS may be in a path that is accepted.
    pub allow_own: u8,
    /// The import policy. For an external peer without one this is [`Policy::deny`] (RFC 8212).
    pub import: Arc<Policy>,
    /// The export policy, with the same default.
    pub export: Arc<Policy>,
    /// MinRouteAdvertisementIntervalTimer (RFC 4271, section 9.2.1.1).
    pub advertisement_interval: Duration,
    /// The most routes of each family, by [`FamilyId::index`].
    pub prefix_limit: [Option<u32>; FAMILIES],
}

impl PeerTraits {
    /// A session with the simplest options: IPv4 only, messages of up to 4,096 octets, AS numbers of four octets, and
    /// the policies of RFC 8212.
    #[must_use]
    pub fn new(local_asn: u32, remote_asn: u32, router_id: u32, remote: IpAddr) -> Self {
        let policy = if local_asn == remote_asn {
            Policy::accept()
        } else {
            Policy::deny()
        };
        PeerTraits {
            remote_asn,
            local_asn,
            router_id,
            remote,
            local_v4: None,
            local_v6: None,
            families: Families::IPV4,
            four_octet: true,
            message_max: MESSAGE_MAX as u16,
            add_path_rx: Families::NONE,
            add_path_tx: Families::NONE,
            add_path_count: 0,
            is_client: false,
            next_hop: NextHopRule::Standard,
            role: None,
            enhanced_refresh: false,
            end_of_rib: true,
            allow_own: 0,
            import: Arc::clone(&policy),
            export: policy,
            advertisement_interval: Duration::ZERO,
            prefix_limit: [None; FAMILIES],
        }
    }

    /// Whether both ends are in one AS.
    #[must_use]
    pub const fn is_internal(&self) -> bool {
        self.remote_asn == self.local_asn
    }
}

/// What is needed of the peer that a route came from.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) is_internal: bool,
    pub(crate) is_client: bool,
    pub(crate) is_local: bool,
    pub(crate) role: Option<Role>,
    pub(crate) asn: u32,
    pub(crate) router_id: u32,
    pub(crate) address: IpAddr,
}

impl Source {
    fn of(traits: &PeerTraits) -> Self {
        Source {
            is_internal: traits.is_internal(),
            is_client: traits.is_client,
            is_local: false,
            role: traits.role,
            asn: traits.remote_asn,
            router_id: traits.router_id,
            address: traits.remote,
        }
    }

    fn local(asn: u32, router_id: u32) -> Self {
        Source {
            is_internal: false,
            is_client: false,
            is_local: true,
            role: None,
            asn,
            router_id,
            address: Ipv4Addr::UNSPECIFIED.into(),
        }
    }

    /// The Only-To-Customer attribute that RFC 9234, section 5 adds to routes from it that have none.
    pub(crate) fn implied_otc(&self) -> u32 {
        match self.role {
            Some(Role::Customer | Role::Peer | Role::RouteServerClient) => self.asn,
            Some(Role::Provider | Role::RouteServer) | None => 0,
        }
    }
}

/// Counts of a peer's routes of one family.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held {
    /// All its routes in the table.
    pub(crate) routes: u32,
    /// The routes of older sessions among them.
    pub(crate) old: u32,
    /// The number of the current session, or of the current refresh within it.
    pub(crate) epoch: u8,
    /// Why old routes are kept for now, if they are.
    pub(crate) kept: Option<Kept>,
    /// How many numbers were used since all old routes were removed.
    pub(crate) sessions: u8,
}

/// The old routes of a peer that are kept: all from the number `since` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) since: u8,
    pub(crate) because: Old,
}

/// What made routes old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Old {
    /// The peer sends all its routes again (RFC 7313). It still has them, so they are as good as new ones if its session
    /// ends before it has sent them.
    Refresh,
    /// Its session has ended (RFC 4724). If the next session ends too before they are sent again, they are removed.
    Restart,
}

impl Held {
    /// Whether routes with that number stay: those of the current session, and old ones that are kept.
    #[inline]
    pub(crate) fn stays(&self, epoch: u8) -> bool {
        epoch == self.epoch
            || self
                .kept
                .is_some_and(|kept| self.age_of(epoch) <= self.age_of(kept.since))
    }

    /// Whether there are routes that a refresh made old.
    pub(crate) fn is_refreshing(&self) -> bool {
        self.old > 0 && self.kept.is_some_and(|kept| kept.because == Old::Refresh)
    }

    /// How many numbers were used after that one.
    const fn age_of(&self, epoch: u8) -> u8 {
        self.epoch.wrapping_sub(epoch)
    }
}

/// A peer.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) traits: PeerTraits,
    pub(crate) source: Source,
    pub(crate) is_open: bool,
    /// Whether its import policy changed and stored routes have not all been judged again.
    pub(crate) reimports: bool,
    pub(crate) held: [Held; FAMILIES],
}

impl Peer {
    pub(crate) fn held(&self, family: FamilyId) -> &Held {
        &self.held[family.index()]
    }

    #[inline]
    pub(crate) fn held_mut(&mut self, family: FamilyId) -> &mut Held {
        &mut self.held[family.index()]
    }
}

/// All peers by number, and ourselves.
#[derive(Debug)]
pub(crate) struct Peers {
    list: Vec<Option<Box<Peer>>>,
    local: Source,
}

impl Peers {
    pub(crate) fn new(asn: u32, router_id: u32) -> Self {
        Peers {
            list: Vec::new(),
            local: Source::local(asn, router_id),
        }
    }

    /// Replaces our AS and identifier.
    pub(crate) fn set_local(&mut self, asn: u32, router_id: u32) {
        self.local = Source::local(asn, router_id);
    }

    #[inline]
    pub(crate) fn get(&self, peer: u32) -> Option<&Peer> {
        self.list.get(peer as usize)?.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, peer: u32) -> Option<&mut Peer> {
        self.list.get_mut(peer as usize)?.as_deref_mut()
    }

    /// The peer that routes came from. It exists as long as one of the routes does.
    #[inline]
    pub(crate) fn source(&self, peer: u32) -> &Source {
        self.get(peer).map_or(&self.local, |peer| &peer.source)
    }

    /// Starts a session.
    pub(crate) fn open(&mut self, number: u32, traits: PeerTraits) -> &mut Peer {
        let at = number as usize;
        if self.list.len() <= at {
            self.list.resize_with(at + 1, || None);
        }
        let source = Source::of(&traits);
        match &mut self.list[at] {
            Some(peer) => {
                peer.traits = traits;
                peer.source = source;
                peer.is_open = true;
                peer
            }
            none => none.insert(Box::new(Peer {
                traits,
                source,
                is_open: true,
                reimports: false,
                held: [Held::default(); FAMILIES],
            })),
        }
    }

    /// Removes a peer that is closed and has no route left.
    pub(crate) fn forget_if_gone(&mut self, number: u32) {
        if let Some(peer) = self.get(number)
            && !peer.is_open
            && peer.held.iter().all(|held| held.routes == 0)
        {
            self.list[number as usize] = None;
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.list.capacity() * 8 + self.list.iter().flatten().count() * size_of::<Peer>()
    }
}
