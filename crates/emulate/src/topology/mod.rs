//! Who is there and who speaks to whom: routers, links, and the shapes they are laid out in.

mod caida;
mod graph;
mod shapes;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::Read;
use std::net::Ipv4Addr;

use base::Duration;
use wire::bgp::Prefix;

pub use caida::CaidaFault;
pub use graph::GraphShape;

/// Routers of one topology at most.
pub const ROUTERS_MAX: usize = 200_000;
/// Links of one topology at most.
pub const LINKS_MAX: usize = 4_000_000;

/// The first address of routers whose links are all in memory.
const ADDRESS_BASE: u32 = 0x0a00_0001;
/// The first address of routers where some links are TCP: loopback.
const LOOPBACK_BASE: u32 = 0x7f40_0001;
/// The first of the prefixes that routers own, a /24 each.
const PREFIX_BASE: u32 = 0x1000_0000;

/// Where in the hierarchy of providers a router stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// It has no provider and peers with all others like it.
    Top,
    /// It has customers.
    Transit,
    /// It has none.
    Stub,
    /// The topology has no roles.
    Flat,
}

/// What the other end of a link is to this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It pays this end.
    Customer,
    /// This end pays it.
    Provider,
    /// They exchange their customers' routes.
    Peer,
    /// They exchange everything.
    Open,
}

impl Relation {
    /// The same link from its other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Customer => Self::Provider,
            Self::Provider => Self::Customer,
            Self::Peer => Self::Peer,
            Self::Open => Self::Open,
        }
    }
}

/// How a router behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouterSettings {
    /// Hold time that its OPEN proposes, in seconds: 0 or at least 3 (RFC 4271 section 4.2).
    pub hold_time_s: u16,
    /// Interval of its KEEPALIVEs, in seconds; a third of the agreed hold time if not given.
    pub keepalive_s: Option<u16>,
    /// Least time between advertisements to a peer (MinRouteAdvertisementIntervalTimer); zero for none.
    pub advertisement_interval: Duration,
    /// How long it waits before it dials again.
    pub connect_retry: Duration,
    /// Whether IPv6 unicast is negotiated beside IPv4.
    pub ipv6: bool,
    /// Whether it announces a prefix of its own from the start.
    pub originates: bool,
    /// Whether it drops routes that route origin validation (RFC 6811) calls invalid.
    pub validates: bool,
    /// Whether it has the roles of RFC 9234 on its links.
    pub roles: bool,
    /// Whether it is a daemon outside of the emulation, which is reached over TCP.
    pub outside: bool,
    /// The port at its address where it is reached over TCP.
    pub port: u16,
}

impl RouterSettings {
    /// RFC 4271's suggested times, IPv4 only, no origin validation, no roles.
    pub const DEFAULT: Self = Self {
        hold_time_s: 90,
        keepalive_s: None,
        advertisement_interval: Duration::ZERO,
        connect_retry: Duration::from_secs(5),
        ipv6: false,
        originates: false,
        validates: false,
        roles: false,
        outside: false,
        port: 1790,
    };
}

/// One router.
#[derive(Clone, Debug)]
pub struct Router {
    /// Its name, unique in the topology.
    pub name: String,
    /// Its autonomous system.
    pub asn: u32,
    /// Its address, which is its identifier too.
    pub address: Ipv4Addr,
    /// Where it stands.
    pub tier: Tier,
    /// How it behaves.
    pub settings: RouterSettings,
}

/// What carries a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Octets handed over in this process.
    Memory,
    /// A TCP connection on loopback, in real time only.
    Tcp,
}

/// How the ends of a link learn that it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// Both connections close at once.
    AtOnce,
    /// Octets vanish until a hold timer expires.
    HoldTimer,
}

/// How a link behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSettings {
    /// One-way delay.
    pub delay: Duration,
    /// Most that a message is late beyond the delay, drawn by seed; order is kept.
    pub jitter: Duration,
    /// Octets a second in each direction; zero for no limit.
    pub rate_octets_s: u64,
    /// Mean time between losses of the session, drawn by seed; zero for none.
    pub mean_life: Duration,
    /// What carries it.
    pub transport: Transport,
    /// How its failure is noticed.
    pub detection: Detection,
}

impl LinkSettings {
    /// In memory, 10 ms, nothing lost.
    pub const DEFAULT: Self = Self {
        delay: Duration::from_millis(10),
        jitter: Duration::ZERO,
        rate_octets_s: 0,
        mean_life: Duration::ZERO,
        transport: Transport::Memory,
        detection: Detection::AtOnce,
    };
}

/// One link, and the session over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Index of one router.
    pub a: u32,
    /// Index of the other.
    pub b: u32,
    /// What `b` is to `a`.
    pub relation: Relation,
    /// Index into [`Topology::link_settings`].
    pub settings: u16,
}

/// The shape in which routers are laid out.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Only what is listed router by router.
    Explicit,
    /// Each with each.
    Mesh {
        /// Routers.
        routers: usize,
    },
    /// Each with the next, the last with the first.
    Ring {
        /// Routers.
        routers: usize,
    },
    /// A tree in the order of its levels.
    Tree {
        /// Routers.
        routers: usize,
        /// Children of each.
        fanout: usize,
    },
    /// Leaves below spines in pods, pods below cores, with autonomous systems as RFC 7938 section 5.2 has them.
    Clos {
        /// Pods.
        pods: usize,
        /// Leaves of a pod.
        leaves: usize,
        /// Spines of a pod.
        spines: usize,
        /// Cores above all pods; none with a single pod that needs none.
        cores: usize,
    },
    /// A random graph of autonomous systems with roles.
    Random(GraphShape),
}

/// Routers and links.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Every router; links and events name them by index.
    pub routers: Vec<Router>,
    /// Every link.
    pub links: Vec<Link>,
    /// The settings that links have.
    pub link_settings: Vec<LinkSettings>,
    names: HashMap<String, u32>,
}

impl Topology {
    /// The topology of `shape`, whose chance comes from `seed`; all routers and links behave as given.
    #[must_use]
    pub fn new(shape: &Shape, seed: u64, router: RouterSettings, link: LinkSettings) -> Self {
        let mut topology = Self {
            link_settings: vec![link],
            ..Self::default()
        };
        shapes::lay_out(&mut topology, shape, seed, router);
        topology
    }

    /// The topology of a file of AS relationships in CAIDA's format, `a|b|-1` (a is b's provider) or `a|b|0` (peers).
    ///
    /// # Errors
    /// The first line that is not of that form, or one too many.
    pub fn from_caida(
        text: impl Read,
        router: RouterSettings,
        link: LinkSettings,
    ) -> Result<Self, CaidaFault> {
        let mut topology = Self {
            link_settings: vec![link],
            ..Self::default()
        };
        caida::read(&mut topology, text, router)?;
        Ok(topology)
    }

    /// The index of the router called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// The name of the router at `index`.
    #[must_use]
    pub fn name(&self, index: u32) -> &str {
        &self.routers[index as usize].name
    }

    /// Adds a router and gives it the next address; `None` if the name is taken.
    pub fn add_router(
        &mut self,
        name: String,
        asn: u32,
        tier: Tier,
        settings: RouterSettings,
    ) -> Option<u32> {
        let index = self.routers.len() as u32;
        match self.names.entry(name.clone()) {
            std::collections::hash_map::Entry::Occupied(_) => return None,
            std::collections::hash_map::Entry::Vacant(vacant) => vacant.insert(index),
        };
        self.routers.push(Router {
            name,
            asn,
            address: Ipv4Addr::from(ADDRESS_BASE + index),
            tier,
            settings,
        });
        Some(index)
    }

    /// Adds a link with the first settings.
    pub(crate) fn join(&mut self, a: u32, b: u32, relation: Relation) {
        self.links.push(Link {
            a,
            b,
            relation,
            settings: 0,
        });
    }

    /// The index of `settings`, which are added if no link has them yet.
    pub(crate) fn settings_index(&mut self, settings: LinkSettings) -> u16 {
        let found = self.link_settings.iter().position(|s| *s == settings);
        let index = found.unwrap_or_else(|| {
            self.link_settings.push(settings);
            self.link_settings.len() - 1
        });
        u16::try_from(index).expect("a scenario has fewer sections of links than 65,536")
    }

    /// How the link behaves.
    #[must_use]
    pub fn settings_of(&self, link: &Link) -> LinkSettings {
        self.link_settings[usize::from(link.settings)]
    }

    /// The link between two routers, whichever way round: its index.
    #[must_use]
    pub fn link_between(&self, a: u32, b: u32) -> Option<u32> {
        let joins = |link: &Link| (link.a, link.b) == (a, b) || (link.a, link.b) == (b, a);
        self.links.iter().position(joins).map(|index| index as u32)
    }

    /// The /24 that belongs to the router at `index`.
    #[must_use]
    pub fn own_prefix(index: u32) -> Prefix {
        Prefix::v4(PREFIX_BASE + (index << 8), 24)
    }

    /// The next hop that routers outside are told: the address that the router has in memory.
    pub(crate) fn next_hop(router: u32) -> Ipv4Addr {
        Ipv4Addr::from(ADDRESS_BASE + router)
    }

    /// Gives every router without an address of its own one of 127/8, for links over TCP.
    pub(crate) fn use_loopback(&mut self) {
        for (index, router) in self.routers.iter_mut().enumerate() {
            if u32::from(router.address) == ADDRESS_BASE + index as u32 {
                router.address = Ipv4Addr::from(LOOPBACK_BASE + index as u32);
            }
        }
    }
}

/// The `index`th autonomous system number from `first` on, without those that mean something else (RFC 7607, RFC 6793,
/// RFC 7300).
pub(crate) fn nth_asn(first: u32, index: usize) -> u32 {
    let mut asn = first.saturating_add(index as u32);
    for reserved in [23_456, 65_535] {
        if first <= reserved && asn >= reserved {
            asn += 1;
        }
    }
    asn
}
