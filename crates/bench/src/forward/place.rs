//! The test network: a namespace for the LNS and one for its peers, a veth pair between them, and
//! the kernel's interface counters.

use base::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use reactor::namespace::{Namespace, veth};
use serde_json::Value;

use crate::harness::Bench;
use crate::harness::server::{Lns, write_private};
use crate::subscribers::lns as users;

/// The address of the LNS.
pub(super) const LNS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 200, 0, 1)), 1701);

/// The first address of the peers.
pub(super) const PEER: Ipv4Addr = Ipv4Addr::new(10, 200, 1, 0);

/// The LNS's own inside address.
pub(super) const OWN: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 254);

/// Networks of subscribers.
pub(super) const POOL: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 0, 0, 0), 13);

/// The TUN device, of the LNS or of the bare loop.
pub(super) const TUN: &str = "inside";

/// The peers' end of the veth pair.
pub(super) const WIRE: &str = "peers";

/// Bytes that the kernel counts for a packet before the UDP payload: Ethernet, IPv4, UDP.
const BEFORE_CONTENT: u64 = 14 + 20 + 8;

/// The two namespaces.
pub(super) struct Place {
    pub(super) lns: Namespace,
    pub(super) peers: Namespace,
}

/// Counters of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    octets: u64,
    /// Packets that the kernel passes as one (GSO) count as one.
    packets: u64,
}

impl Count {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            octets: self.octets - before.octets,
            packets: self.packets - before.packets,
        }
    }

    /// Number of packets of `length` bytes from IP on. Packets that were passed as one share
    /// `front` bytes of headers.
    pub(super) fn ip_packets(self, length: u64, front: u64) -> u64 {
        self.octets.saturating_sub(self.packets * front) / (length - front)
    }

    /// Number of Ethernet frames of `length` bytes, if the kernel joins none.
    pub(crate) fn frames(self, length: u64) -> u64 {
        self.octets / length
    }

    /// Number of datagrams with `content` bytes of payload.
    pub(crate) fn datagrams(self, content: u64) -> u64 {
        self.octets.saturating_sub(self.packets * BEFORE_CONTENT) / content
    }
}

impl Place {
    /// Makes both namespaces, with `peers` addresses on the peers' side.
    ///
    /// # Errors
    /// The kernel's error, for example that root is required.
    pub(super) fn new(peers: u32) -> Result<Self> {
        let place = Self {
            lns: Namespace::new()?,
            peers: Namespace::new()?,
        };
        for namespace in [&place.lns, &place.peers] {
            // Without IPv6 the kernel sends no packets of its own. A kernel that lacks IPv6 sends
            // none anyway.
            let _ = namespace.set("ipv6/conf/default/disable_ipv6", "1");
        }
        veth((&place.peers, WIRE), (&place.lns, "wire"))?;
        for (namespace, name) in [(&place.lns, "wire"), (&place.peers, WIRE)] {
            namespace.netlink()?.set_up(name, true)?;
        }
        let mut netlink = place.lns.netlink()?;
        netlink.wait_until_running("wire", Duration::from_secs(5))?;
        netlink.add_address("wire", LNS.ip(), 16)?;
        let mut netlink = place.peers.netlink()?;
        netlink.wait_until_running(WIRE, Duration::from_secs(5))?;
        for n in 0..peers {
            netlink.add_address(WIRE, peer(n).into(), 16)?;
        }
        Ok(place)
    }

    /// What an interface of a namespace has received.
    ///
    /// # Errors
    /// There is no such interface.
    pub(super) fn received(namespace: &Namespace, name: &str) -> Result<Count> {
        received(namespace, name)
    }

    /// Starts our LNS for that many subscribers.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn start(&self, bench: &Bench, subscribers: u32, offloads: bool) -> Result<Lns> {
        write_private(
            &bench.directory.path("users.toml"),
            &users::users(subscribers),
        )?;
        let socket = bench.directory.path("lns.sock");
        let text = text(&socket.to_string_lossy(), offloads);
        Lns::start_with(bench, "lns", &text, |command| {
            self.lns.command(command)?;
            Ok(())
        })
    }
}

/// The address of peer `n`.
pub(super) fn peer(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(PEER) + n)
}

fn text(socket: &str, offloads: bool) -> String {
    let (pool, length) = POOL;
    format!(
        "[control]\nsocket = {}\n[lns]\nlisten = [\"{LNS}\"]\nhello_interval_s = 3600\n[log]\nto = \"stderr\"\n\
         [ppp]\naddress = \"{OWN}\"\nipv6 = false\ndns = [\"{OWN}\"]\n\
         [[pool]]\nname = \"home\"\nranges = [\"{pool}/{length}\"]\n\
         [users]\nfile = \"users.toml\"\n[tun]\nname = \"{TUN}\"\noffloads = {offloads}\n",
        Value::from(socket),
    )
}

/// What an interface of a namespace has received.
///
/// # Errors
/// There is no such interface.
pub(crate) fn received(namespace: &Namespace, name: &str) -> Result<Count> {
    let text = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
    received_in(&text, name).with_context(|| format!("no interface {name}"))
}

/// Bytes and packets received (proc_net_dev(5)).
fn received_in(text: &str, name: &str) -> Option<Count> {
    let mut lines = text.lines();
    let counts = lines.find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
    let mut numbers = counts.split_ascii_whitespace().map(str::parse);
    Some(Count {
        octets: numbers.next()?.ok()?,
        packets: numbers.next()?.ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_s_counts_are_found_and_packets_passed_as_one_are_told_apart() {
        let text =
            "Inter-|   Receive\n face |bytes    packets\n    lo: 1 1 0\ninside: 4636 2 0 0\n";
        let count = received_in(text, "inside").unwrap();
        // 64 packets of 100 bytes joined into one with 28 bytes of headers and 64 times 72 of
        // payload. A single packet of 100 bytes is not counted.
        assert_eq!(count.ip_packets(100, 28), (4_636 - 56) / 72);
        assert_eq!(received_in(text, "in"), None);
        let wire = Count {
            octets: 42 + 10 * 112,
            packets: 1,
        };
        assert_eq!(wire.datagrams(112), 10);
    }

    #[test]
    fn the_lns_s_configuration_is_one_that_the_daemon_takes() {
        let directory = std::env::temp_dir().join(format!("bench-place-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        write_private(&directory.join("users.toml"), &users::users(1)).unwrap();
        let text = text("/run/bench/lns.sock", false);
        let settings = daemon::config::parse(&directory.join("lns.toml"), text.as_bytes());
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(!settings.unwrap().subscribers.tun.unwrap().offloads);
    }
}
