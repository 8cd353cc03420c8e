//! The network of the street: four namespaces, and virtual wires between them.
//!
//! ```text
//! street (hosts) -- wan ==== access -- bng -- uplink ==== bng -- internet
//!                                      bng -- core ==== core -- lns -- uplink ==== lns -- internet
//! ```

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Duration;
use reactor::namespace::{Namespace, become_root_in_user_namespace, veth};
use reactor::tun::Tun;

/// The hosts' end of the wire to the access concentrator.
pub(super) const WAN: &str = "wan";
/// The access concentrator's end.
pub(super) const ACCESS: &str = "access";

/// Addresses on the wires. All are reserved for documentation (RFC 5737, RFC 3849).
pub(super) const BNG: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const BNG_ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(super) const LNS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 6);
const LNS_ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 5);
pub(super) const BNG_CORE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
pub(super) const LNS_CORE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
pub(super) const BNG_V6: Ipv6Addr = v6(1, 2);
const BNG_ROUTER_V6: Ipv6Addr = v6(1, 1);
pub(super) const LNS_V6: Ipv6Addr = v6(2, 2);
const LNS_ROUTER_V6: Ipv6Addr = v6(2, 1);

/// The address from which the operator's RADIUS server sends.
pub(super) const RADIUS: Ipv4Addr = BNG_ROUTER;

/// The server in the internet.
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
pub(super) const SERVER_V6: Ipv6Addr = v6(0x80, 0x80);

/// How long a wire may take to be up.
const WIRE_UP_MAX: Duration = Duration::from_secs(5);

/// Address `host` in the /64 number `network` of 2001:db8::/48.
const fn v6(network: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, network, 0, 0, 0, host)
}

/// The networks that a daemon gives to its subscribers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Networks {
    /// The router to the internet.
    via: (Ipv4Addr, Ipv6Addr),
    /// The external addresses of the translation, without their length.
    pub(super) external: Ipv4Addr,
    /// Inside addresses.
    pub(super) inside: (Ipv4Addr, u8),
    /// Prefixes of links.
    pub(super) links: (Ipv6Addr, u8),
    /// Delegated prefixes.
    pub(super) homes: (Ipv6Addr, u8),
}

/// The networks of the access concentrator.
pub(super) const OF_BNG: Networks = Networks {
    via: (BNG, BNG_V6),
    external: Ipv4Addr::new(198, 51, 100, 0),
    inside: (Ipv4Addr::new(100, 64, 0, 0), 16),
    links: (Ipv6Addr::new(0x2001, 0xdb8, 0x10, 0, 0, 0, 0, 0), 48),
    homes: (Ipv6Addr::new(0x2001, 0xdb8, 0x4000, 0, 0, 0, 0, 0), 40),
};

/// The networks of the LNS.
pub(super) const OF_LNS: Networks = Networks {
    via: (LNS, LNS_V6),
    external: Ipv4Addr::new(198, 51, 100, 128),
    inside: (Ipv4Addr::new(100, 65, 0, 0), 16),
    links: (Ipv6Addr::new(0x2001, 0xdb8, 0x20, 0, 0, 0, 0, 0), 48),
    homes: (Ipv6Addr::new(0x2001, 0xdb8, 0x8000, 0, 0, 0, 0, 0), 40),
};

/// Length of the external networks in the internet's routes: half of 198.51.100.0/24 each.
const EXTERNAL_LENGTH: u8 = 25;

/// The four namespaces. They vanish with the last process in them.
pub(super) struct Place {
    pub(super) street: Namespace,
    pub(super) bng: Namespace,
    pub(super) lns: Namespace,
    pub(super) internet: Namespace,
}

impl Place {
    /// Makes the namespaces, with present privileges or else as root of a user namespace. The latter requires that no
    /// other thread exists.
    ///
    /// # Errors
    /// The kernel's error, with a remedy.
    pub(super) fn make() -> io::Result<Self> {
        let street = match Namespace::new() {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                become_root_in_user_namespace()?;
                Namespace::new()?
            }
            made => made?,
        };
        let place = Self {
            street,
            bng: Namespace::new()?,
            lns: Namespace::new()?,
            internet: Namespace::new()?,
        };
        // Tests whether TUN devices are permitted before anything runs.
        place.bng.run(|| Tun::open("probe%d"))??;
        place.lay_wires()?;
        place.route()?;
        Ok(place)
    }

    fn lay_wires(&self) -> io::Result<()> {
        for namespace in [&self.street, &self.bng, &self.lns, &self.internet] {
            // Each address is unique, so none waits for duplicate address detection. A kernel without IPv6 has no
            // such setting, and the addresses below then give the error.
            let _ = namespace.set("ipv6/conf/default/accept_dad", "0");
        }
        let wires = [
            ((&self.street, WAN), (&self.bng, ACCESS)),
            ((&self.bng, "uplink"), (&self.internet, "bng")),
            ((&self.lns, "uplink"), (&self.internet, "lns")),
            ((&self.bng, "core"), (&self.lns, "core")),
        ];
        for (one, other) in wires {
            veth(one, other)?;
        }
        let addresses: [(&Namespace, &str, IpAddr, u8); 10] = [
            (&self.bng, "uplink", BNG.into(), 30),
            (&self.internet, "bng", BNG_ROUTER.into(), 30),
            (&self.lns, "uplink", LNS.into(), 30),
            (&self.internet, "lns", LNS_ROUTER.into(), 30),
            (&self.bng, "core", BNG_CORE.into(), 30),
            (&self.lns, "core", LNS_CORE.into(), 30),
            (&self.bng, "uplink", BNG_V6.into(), 64),
            (&self.internet, "bng", BNG_ROUTER_V6.into(), 64),
            (&self.lns, "uplink", LNS_V6.into(), 64),
            (&self.internet, "lns", LNS_ROUTER_V6.into(), 64),
        ];
        for (namespace, name, address, length) in addresses {
            namespace.netlink()?.add_address(name, address, length)?;
        }
        let ends = || wires.into_iter().flat_map(|(one, other)| [one, other]);
        for (namespace, name) in ends() {
            namespace.netlink()?.set_up(name, true)?;
        }
        for (namespace, name) in ends() {
            let mut netlink = namespace.netlink()?;
            netlink.wait_until_running(name, WIRE_UP_MAX)?;
        }
        Ok(())
    }

    fn route(&self) -> io::Result<()> {
        for edge in [&self.bng, &self.lns] {
            edge.forward()?;
        }
        let defaults: [(IpAddr, &Namespace); 4] = [
            (BNG_ROUTER.into(), &self.bng),
            (BNG_ROUTER_V6.into(), &self.bng),
            (LNS_ROUTER.into(), &self.lns),
            (LNS_ROUTER_V6.into(), &self.lns),
        ];
        for (router, edge) in defaults {
            let mut netlink = edge.netlink()?;
            netlink.add_route(any(router), 0, Some(router), "uplink")?;
        }
        let mut internet = self.internet.netlink()?;
        internet.add_address("lo", SERVER.into(), 32)?;
        internet.add_address("lo", SERVER_V6.into(), 128)?;
        for (networks, name) in [(OF_BNG, "bng"), (OF_LNS, "lns")] {
            let (v4, v6) = networks.via;
            let external = networks.external.into();
            internet.add_route(external, EXTERNAL_LENGTH, Some(v4.into()), name)?;
            for (prefix, length) in [networks.links, networks.homes] {
                internet.add_route(prefix.into(), length, Some(v6.into()), name)?;
            }
        }
        Ok(())
    }
}

/// The address of the default route.
pub(super) fn any(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}
