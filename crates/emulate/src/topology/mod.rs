//! Routers, the links between them, and the shapes they are arranged in. Start with [`Topology`].

mod caida;
mod cycle;
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
pub use cycle::ProviderCycle;
pub use graph::GraphShape;

/// Limit of routers in one topology.
pub const ROUTERS_MAX: usize = 200_000;
/// Limit of links in one topology.
pub const LINKS_MAX: usize = 4_000_000;

/// The first router address where all links are in memory.
const ADDRESS_BASE: u32 = 0x0a00_0001;
/// The first router address where some links use TCP: a loopback address.
const LOOPBACK_BASE: u32 = 0x7f40_0001;
/// The first of the prefixes that routers own; each is a /24.
const PREFIX_BASE: u32 = 0x1000_0000;

/// A router's place in the hierarchy of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// It has no provider, and peers with all other routers of this tier.
    Top,
    /// It has customers.
    Transit,
    /// It has providers only.
    Stub,
    /// The topology has no roles.
    Flat,
}

/// What the router at the other end of a link is to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It pays this router.
    Customer,
    /// This router pays it.
    Provider,
    /// They exchange their customers' routes.
    Peer,
    /// They exchange all routes.
    Open,
}

impl Relation {
    /// The same link seen from its other end.
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

/// Settings of a router.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouterSettings {
    /// Hold time that its OPEN proposes, in seconds: 0 or at least 3 (RFC 4271 section 4.2).
    pub hold_time_s: u16,
    /// Interval of its KEEPALIVEs, in seconds; a third of the agreed hold time if not given.
    pub keepalive_s: Option<u16>,
    /// Least time between advertisements to a peer (MinRouteAdvertisementIntervalTimer); zero for none.
    pub advertisement_interval: Duration,
    /// Delay before it connects again after a failure.
    pub connect_retry: Duration,
    /// Whether it negotiates IPv6 unicast in addition to IPv4.
    pub ipv6: bool,
    /// Whether it announces a prefix of its own from the start.
    pub originates: bool,
    /// Whether it drops routes that are invalid by route origin validation (RFC 6811).
    pub validates: bool,
    /// Whether it uses the roles of RFC 9234 on its links.
    pub roles: bool,
    /// Whether it treats a route as withdrawn if the AS path does not start with the AS of the external peer that sent
    /// it (RFC 4271 section 6.3).
    pub enforces_first_as: bool,
    /// Whether it is a daemon outside of the emulation, connected over TCP.
    pub outside: bool,
    /// The port at its address on which it accepts TCP connections.
    pub port: u16,
}

impl RouterSettings {
    /// The timers suggested by RFC 4271, IPv4 only, no origin validation, no roles.
    pub const DEFAULT: Self = Self {
        hold_time_s: 90,
        keepalive_s: None,
        advertisement_interval: Duration::ZERO,
        connect_retry: Duration::from_secs(5),
        ipv6: false,
        originates: false,
        validates: false,
        roles: false,
        enforces_first_as: true,
        outside: false,
        port: 1790,
    };
}

/// One router.
#[derive(Clone, Debug)]
pub struct Router {
    /// Its name, unique in the topology.
    pub name: String,
    /// Its autonomous system number.
    pub asn: u32,
    /// Its address, which is also its BGP identifier.
    pub address: Ipv4Addr,
    /// Its place in the hierarchy.
    pub tier: Tier,
    /// Its settings.
    pub settings: RouterSettings,
}

/// What carries a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Messages are passed in memory within this process.
    Memory,
    /// A TCP connection over loopback; in real time only.
    Tcp,
}

/// How the ends of a link detect that it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// Both connections close at once.
    AtOnce,
    /// Bytes are lost until a hold timer expires.
    HoldTimer,
}

/// Settings of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSettings {
    /// One-way delay.
    pub delay: Duration,
    /// Largest additional delay of a message, drawn by seed; messages stay in order.
    pub jitter: Duration,
    /// Bytes per second in each direction; zero for no limit.
    pub rate_octets_s: u64,
    /// Mean time between losses of the session, drawn by seed; zero for none.
    pub mean_life: Duration,
    /// The transport.
    pub transport: Transport,
    /// How its failure is detected.
    pub detection: Detection,
}

impl LinkSettings {
    /// In memory, 10 ms, no session losses.
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
    /// Only the routers and links that the scenario lists.
    Explicit,
    /// A link between every two routers.
    Mesh {
        /// Number of routers.
        routers: usize,
    },
    /// Each router linked with the next, the last with the first.
    Ring {
        /// Number of routers.
        routers: usize,
    },
    /// A tree, numbered level by level.
    Tree {
        /// Number of routers.
        routers: usize,
        /// Number of children of each router.
        fanout: usize,
    },
    /// Pods of leaves below spines, and cores above the pods, with autonomous systems as in RFC
    /// 7938 section 5.2.
    Clos {
        /// Number of pods.
        pods: usize,
        /// Number of leaves in a pod.
        leaves: usize,
        /// Number of spines in a pod.
        spines: usize,
        /// Number of cores above all pods; zero if a single pod needs none.
        cores: usize,
    },
    /// A random graph of autonomous systems with roles.
    Random(GraphShape),
}

/// Routers and links.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// All routers; links and events refer to them by index.
    pub routers: Vec<Router>,
    /// All links.
    pub links: Vec<Link>,
    /// The distinct settings of the links.
    pub link_settings: Vec<LinkSettings>,
    names: HashMap<String, u32>,
    /// The line of each link that is from a file of AS relationships; these links come first.
    lines: Vec<u32>,
}

impl Topology {
    /// The topology of `shape`, drawn from `seed`; all routers and links have the given settings.
    #[must_use]
    pub fn new(shape: &Shape, seed: u64, router: RouterSettings, link: LinkSettings) -> Self {
        let mut topology = Self {
            link_settings: vec![link],
            ..Self::default()
        };
        shapes::lay_out(&mut topology, shape, seed, router);
        topology
    }

    /// The topology of a file of AS relationships in CAIDA's format, `a|b|-1` (a is b's provider)
    /// or `a|b|0` (peers).
    ///
    /// # Errors
    /// The first line that has another format or exceeds a limit.
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

    /// The settings of the link.
    #[must_use]
    pub fn settings_of(&self, link: &Link) -> LinkSettings {
        self.link_settings[usize::from(link.settings)]
    }

    /// The index of the link between two routers, in either order.
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

    /// The next hop sent to routers outside: the address that the router has in memory.
    pub(crate) fn next_hop(router: u32) -> Ipv4Addr {
        Ipv4Addr::from(ADDRESS_BASE + router)
    }

    /// Gives every router without an address of its own one in 127/8, for TCP links.
    pub(crate) fn use_loopback(&mut self) {
        for (index, router) in self.routers.iter_mut().enumerate() {
            if u32::from(router.address) == ADDRESS_BASE + index as u32 {
                router.address = Ipv4Addr::from(LOOPBACK_BASE + index as u32);
            }
        }
    }
}

/// The `index`th autonomous system number from `first` on, leaving out reserved numbers (RFC 7607,
/// RFC 6793, RFC 7300).
pub(crate) fn nth_asn(first: u32, index: usize) -> u32 {
    let mut asn = first.saturating_add(index as u32);
    for reserved in [23_456, 65_535] {
        if first <= reserved && asn >= reserved {
            asn += 1;
        }
    }
    asn
}
