//! The experiment's hosts and links: network namespaces that disappear with this process.
//!
//! ```text
//! A ---- gateway ---- [shaper] ---- [modem] ---- far side
//! B ----/            lan0 wan0     lan1 wan1
//! ```
//!
//! The kernel forwards in the gateway. Shaper and modem are engines of ours between two packet
//! sockets each, in a namespace without addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use base::Duration;
use reactor::namespace::{Namespace, veth};

/// Host A, which loads the link.
pub const A: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 10);
/// Host B, whose delay and loss are measured.
pub const B: Ipv4Addr = Ipv4Addr::new(192, 168, 2, 20);
/// The far side of the link.
pub const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// All addresses of the far side, so that several destinations can be pinged.
pub const FARS: [Ipv4Addr; 3] = [
    FAR,
    Ipv4Addr::new(198, 51, 100, 3),
    Ipv4Addr::new(198, 51, 100, 4),
];

const GATEWAY_TO_A: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);
const GATEWAY_TO_B: Ipv4Addr = Ipv4Addr::new(192, 168, 2, 1);
const GATEWAY_TO_FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

/// Interfaces of the shaper and of the modem, in the namespace of the line: towards the hosts, and away from them.
pub const SHAPER: (&str, &str) = ("lan0", "wan0");
/// The interfaces of the modem, in the same order.
pub const MODEM: (&str, &str) = ("lan1", "wan1");

/// Longest time until a new veth pair carries packets.
const WIRE_MAX: Duration = Duration::from_secs(10);

/// The namespaces.
#[derive(Debug)]
pub struct Topology {
    /// Host A.
    pub a: Namespace,
    /// Host B.
    pub b: Namespace,
    /// The router between the hosts and the line.
    pub gateway: Namespace,
    /// The namespace with the ports of shaper and modem.
    pub line: Namespace,
    /// The far side.
    pub far: Namespace,
}

impl Topology {
    /// Makes all namespaces. Every link carries packets, and every interface except the line's has
    /// its address.
    ///
    /// # Errors
    /// The privilege to make namespaces is missing, or the kernel has no virtual Ethernet.
    pub fn new() -> io::Result<Self> {
        let topology = Self {
            a: Namespace::new()?,
            b: Namespace::new()?,
            gateway: Namespace::new()?,
            line: Namespace::new()?,
            far: Namespace::new()?,
        };
        // Without IPv6 the hosts send no packets of their own that would disturb the measurement.
        for namespace in topology.all() {
            quiet(namespace)?;
        }
        let Self {
            a,
            b,
            gateway,
            line,
            far,
        } = &topology;
        wire((a, "eth0"), (gateway, "a0"))?;
        wire((b, "eth0"), (gateway, "b0"))?;
        wire((gateway, "wan0"), (line, SHAPER.0))?;
        wire((line, SHAPER.1), (line, MODEM.0))?;
        wire((line, MODEM.1), (far, "eth0"))?;
        address(a, "eth0", A)?;
        address(gateway, "a0", GATEWAY_TO_A)?;
        address(b, "eth0", B)?;
        address(gateway, "b0", GATEWAY_TO_B)?;
        address(gateway, "wan0", GATEWAY_TO_FAR)?;
        for one in FARS {
            address(far, "eth0", one)?;
        }
        default_route(a, GATEWAY_TO_A)?;
        default_route(b, GATEWAY_TO_B)?;
        default_route(far, GATEWAY_TO_FAR)?;
        gateway.forward()?;
        Ok(topology)
    }

    fn all(&self) -> [&Namespace; 5] {
        [&self.a, &self.b, &self.gateway, &self.line, &self.far]
    }
}

/// Turns IPv6 off, because its hosts send neighbour and router solicitations by themselves.
fn quiet(namespace: &Namespace) -> io::Result<()> {
    ["all", "default"].iter().try_for_each(|which| {
        match namespace.set(&format!("ipv6/conf/{which}/disable_ipv6"), "1") {
            // A kernel without IPv6 sends none.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    })
}

fn wire(one: (&Namespace, &str), other: (&Namespace, &str)) -> io::Result<()> {
    veth(one, other)?;
    for (namespace, name) in [one, other] {
        namespace.netlink()?.set_up(name, true)?;
    }
    for (namespace, name) in [one, other] {
        namespace.netlink()?.wait_until_running(name, WIRE_MAX)?;
    }
    Ok(())
}

fn address(namespace: &Namespace, name: &str, address: Ipv4Addr) -> io::Result<()> {
    namespace
        .netlink()?
        .add_address(name, IpAddr::V4(address), 24)
}

fn default_route(namespace: &Namespace, via: Ipv4Addr) -> io::Result<()> {
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    namespace
        .netlink()?
        .add_route(any, 0, Some(IpAddr::V4(via)), "eth0")
}
