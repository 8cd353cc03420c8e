//! Where the demo's daemons run: in two network namespaces with a link between them or, if that is
//! not permitted, both on the loopback interface.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr};

use base::Duration;
use reactor::namespace::{Namespace, become_root_in_user_namespace, veth};
use reactor::tun::Tun;

/// The LNS's address on the link.
const LNS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The LAC's address on the link.
const LAC: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// The interface name of the link in both namespaces.
const WIRE: &str = "wire0";

/// Two network namespaces, and a link between them.
pub(super) struct Place {
    pub(super) lns: Namespace,
    pub(super) lac: Namespace,
}

impl Place {
    /// Makes the namespaces, with present privileges or else as root of a user namespace. The
    /// latter requires that no other thread exists.
    ///
    /// # Errors
    /// The kernel's error, with a remedy.
    pub(super) fn make() -> io::Result<Self> {
        let lns = match Namespace::new() {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                become_root_in_user_namespace()?;
                Namespace::new()?
            }
            made => made?,
        };
        let place = Self {
            lns,
            lac: Namespace::new()?,
        };
        // Tests whether TUN devices are permitted before anything runs.
        place.lns.run(|| Tun::open("probe%d"))??;
        veth((&place.lns, WIRE), (&place.lac, WIRE))?;
        let ends = [(&place.lns, LNS), (&place.lac, LAC)];
        for (namespace, address) in ends {
            let mut netlink = namespace.netlink()?;
            netlink.add_address(WIRE, IpAddr::V4(address), 24)?;
            netlink.set_up(WIRE, true)?;
        }
        for (namespace, _) in ends {
            let limit = Duration::from_secs(5);
            namespace.netlink()?.wait_until_running(WIRE, limit)?;
        }
        Ok(place)
    }

    /// Both namespaces, the LNS's first.
    pub(super) fn both(&self) -> [&Namespace; 2] {
        [&self.lns, &self.lac]
    }
}

/// The addresses that LNS and LAC have in a place.
pub(super) fn addresses(place: Option<&Place>) -> [Ipv4Addr; 2] {
    match place {
        Some(_) => [LNS, LAC],
        None => [Ipv4Addr::LOCALHOST; 2],
    }
}
