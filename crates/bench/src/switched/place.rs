//! The test network: a namespace each for the daemon, the subscribers and the LNS, with two veth pairs, and the daemon
//! that is measured.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use base::Duration;
use reactor::ether::{EtherOptions, EtherSocket};
use reactor::namespace::{Namespace, veth};
use reactor::{UdpOptions, UdpSocket};
use serde_json::Value;
use wire::pppoe::{ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION};

use super::Arrival;
use crate::harness::Bench;
use crate::harness::server::Lns;

/// The daemon's interface to subscribers, and the subscribers' to it.
pub(super) const WIRE: &str = "wire";
pub(super) const HOSTS: &str = "hosts";
/// The daemon's interface to the LNS, and the LNS's to it.
const CORE: &str = "core";
pub(super) const FAR: &str = "far";

/// The daemon's address for the subscribers' LAC, and that LAC's address.
pub(super) const LISTEN: SocketAddr = at([10, 201, 0, 1]);
pub(super) const LAC: SocketAddr = at([10, 201, 0, 2]);
/// The daemon's address for the LNS, and the LNS's address.
pub(super) const OWN: SocketAddr = at([10, 202, 0, 1]);
pub(super) const LNS: SocketAddr = at([10, 202, 0, 2]);

/// Receive buffer of the daemon, the bare loop and both ends, in bytes.
const ROOM: usize = 8 << 20;

const fn at([a, b, c, d]: [u8; 4]) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), 1701)
}

/// The three namespaces.
pub(super) struct Place {
    pub(super) daemon: Namespace,
    pub(super) hosts: Namespace,
    pub(super) lns: Namespace,
}

impl Place {
    /// Makes the namespaces and the wires between them.
    ///
    /// # Errors
    /// The kernel's error, for example that root is required.
    pub(super) fn new() -> Result<Self> {
        let namespace = || {
            Namespace::new().context("the benchmark needs three network namespaces: run it as root")
        };
        let place = Self {
            daemon: namespace()?,
            hosts: namespace()?,
            lns: namespace()?,
        };
        for namespace in [&place.daemon, &place.hosts, &place.lns] {
            // Without IPv6 the kernel sends no packets of its own. A kernel that lacks IPv6 sends none anyway.
            let _ = namespace.set("ipv6/conf/default/disable_ipv6", "1");
        }
        veth((&place.daemon, WIRE), (&place.hosts, HOSTS))?;
        veth((&place.daemon, CORE), (&place.lns, FAR))?;
        let ends = [
            (&place.daemon, WIRE, LISTEN),
            (&place.hosts, HOSTS, LAC),
            (&place.daemon, CORE, OWN),
            (&place.lns, FAR, LNS),
        ];
        for (namespace, name, _) in ends {
            namespace.netlink()?.set_up(name, true)?;
        }
        for (namespace, name, address) in ends {
            let mut netlink = namespace.netlink()?;
            netlink.wait_until_running(name, Duration::from_secs(5))?;
            netlink.add_address(name, address.ip(), 24)?;
        }
        Ok(place)
    }

    /// Starts the daemon.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn start(&self, bench: &Bench, arrival: Arrival) -> Result<Lns> {
        let socket = bench.directory.path("lac.sock");
        let text = text(&socket.to_string_lossy(), arrival);
        Lns::start_with(bench, "lac", &text, |command| {
            self.daemon.command(command)?;
            Ok(())
        })
    }
}

/// Opens the daemon's kind of socket on an interface of the calling thread's namespace.
pub(super) fn ether(name: &str, any: bool) -> Result<EtherSocket, reactor::port::PortError> {
    let options = EtherOptions {
        types: vec![ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION],
        any_destination: any,
        recv_buffer_bytes: Some(ROOM),
        send_buffer_bytes: Some(ROOM),
        ..EtherOptions::default()
    };
    let mut socket = EtherSocket::open(name, &options)?;
    socket.bind()?;
    Ok(socket)
}

/// Opens the daemon's kind of socket for L2TP.
pub(super) fn udp(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let options = UdpOptions {
        recv_buffer_bytes: Some(ROOM),
        send_buffer_bytes: Some(ROOM),
        gro: true,
        ..UdpOptions::default()
    };
    UdpSocket::bind(address, &options)
}

/// The daemon's configuration.
fn text(socket: &str, arrival: Arrival) -> String {
    let (access, line) = match arrival {
        Arrival::Pppoe => (
            format!(
                "[pppoe]\nhalf_open = 0\npadr_per_s = 0\npadi_per_s = 0\npadi_per_vlan_per_s = 0\n[[pppoe.interface]]\nname = \"{WIRE}\"\n"
            ),
            format!("interface = \"{WIRE}\""),
        ),
        Arrival::L2tp => (
            format!("[lns]\nlisten = [\"{LISTEN}\"]\nhello_interval_s = 3600\n"),
            format!("peer = \"{}/32\"", LAC.ip()),
        ),
    };
    format!(
        "[control]\nsocket = {}\n[log]\nto = \"stderr\"\n{access}[lac]\nlisten = [\"{}:0\"]\n\
         [event]\nreceive_buffer_bytes = {ROOM}\nsend_buffer_bytes = {ROOM}\n\
         [[tunnel]]\nname = \"isp\"\nlns = [\"{LNS}\"]\n[[tunnel.line]]\n{line}\n",
        Value::from(socket),
        OWN.ip(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_one_that_the_daemon_takes() {
        for arrival in [Arrival::Pppoe, Arrival::L2tp] {
            let text = text("/run/bench/lac.sock", arrival);
            let settings = daemon::config::parse("lac.toml".as_ref(), text.as_bytes()).unwrap();
            let tunnels = &settings.subscribers.edge.switching.tunnels;
            assert_eq!(tunnels.len(), 1);
            assert_eq!(tunnels[0].lns[0].tunnel.server, LNS);
            assert_eq!(tunnels[0].lines.len(), 1);
        }
    }
}
