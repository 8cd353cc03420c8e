//! The test network: a namespace for the access concentrator and one for its hosts, with a veth pair between them, and
//! the daemon that is measured.

use anyhow::{Context, Result};
use base::Duration;
use reactor::ether::{EtherOptions, EtherSocket};
use reactor::namespace::{Namespace, veth};
use serde_json::Value;
use wire::pppoe::{ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION};

use crate::harness::Bench;
use crate::harness::server::Lns;
use crate::subscribers::lns::Proof;
use crate::subscribers::radius::{Accepts, Responder, SECRET};

/// The access concentrator's end of the veth pair.
pub(super) const WIRE: &str = "wire";
/// The hosts' end.
pub(super) const HOSTS: &str = "hosts";

/// Limits on the rates of set-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limits {
    /// Those of an installation.
    Default,
    /// None, to measure the daemon itself.
    None,
}

/// The two namespaces.
pub(super) struct Place {
    pub(super) server: Namespace,
    pub(super) hosts: Namespace,
}

impl Place {
    /// Makes both namespaces and the wire between them.
    ///
    /// # Errors
    /// The kernel's error, for example that root is required.
    pub(super) fn new() -> Result<Self> {
        let namespace = || {
            Namespace::new().context("the benchmark needs two network namespaces: run it as root")
        };
        let place = Self {
            server: namespace()?,
            hosts: namespace()?,
        };
        for namespace in [&place.server, &place.hosts] {
            // Without IPv6 the kernel sends no packets of its own. A kernel that lacks IPv6 sends none anyway.
            let _ = namespace.set("ipv6/conf/default/disable_ipv6", "1");
        }
        veth((&place.server, WIRE), (&place.hosts, HOSTS))?;
        let ends = [(&place.server, WIRE), (&place.hosts, HOSTS)];
        for (namespace, name) in ends {
            namespace.netlink()?.set_up(name, true)?;
        }
        for (namespace, name) in ends {
            let mut netlink = namespace.netlink()?;
            netlink.wait_until_running(name, Duration::from_secs(5))?;
        }
        Ok(place)
    }

    /// A socket for the frames of PPPoE at the hosts' end, whatever their destination.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn socket(&self) -> Result<EtherSocket> {
        let opened = self.hosts.run(|| open(HOSTS, true))?;
        Ok(opened?)
    }

    /// Starts a RADIUS server beside the daemon.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn radius(&self) -> Result<Responder> {
        Ok(self.server.run(|| Responder::start(Accepts::Signed))??)
    }

    /// Starts the daemon.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn start(
        &self,
        bench: &Bench,
        proof: Proof,
        limits: Limits,
        radius: &Responder,
    ) -> Result<Lns> {
        let socket = bench.directory.path("bng.sock");
        let server = radius.addresses[0].to_string();
        let text = text(&socket.to_string_lossy(), proof, limits, &server);
        Lns::start_with(bench, "bng", &text, |command| {
            self.server.command(command)?;
            Ok(())
        })
    }
}

/// Opens the daemon's kind of socket on an interface of the calling thread's namespace.
pub(super) fn open(name: &str, any: bool) -> Result<EtherSocket, reactor::port::PortError> {
    let options = EtherOptions {
        types: vec![ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION],
        any_destination: any,
        recv_buffer_bytes: Some(64 << 20),
        send_buffer_bytes: Some(8 << 20),
        ..EtherOptions::default()
    };
    let mut socket = EtherSocket::open(name, &options)?;
    socket.bind()?;
    Ok(socket)
}

/// The daemon's configuration; `radius` is the address of the RADIUS server.
fn text(socket: &str, proof: Proof, limits: Limits, radius: &str) -> String {
    let proof = match proof {
        Proof::Chap => "chap",
        Proof::Pap => "pap",
    };
    let limits = match limits {
        Limits::Default => "",
        Limits::None => "half_open = 0\npadr_per_s = 0\npadi_per_s = 0\npadi_per_vlan_per_s = 0\n",
    };
    format!(
        "[control]\nsocket = {}\n[log]\nto = \"stderr\"\n\
         [pppoe]\n{limits}[[pppoe.interface]]\nname = \"{WIRE}\"\n\
         [ppp]\naddress = \"10.255.255.254\"\ndns = [\"10.255.255.253\", \"10.255.255.252\"]\nauthenticate = [\"{proof}\"]\n\
         address_v6 = \"2001:db8::1\"\nsubscribers = 1000000\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/13\"]\n\
         [[prefix_pool]]\nname = \"links\"\nranges = [\"2001:db8:4::/46\"]\nlength = 64\n\
         [[prefix_pool]]\nname = \"homes\"\nranges = [\"2001:db8:4000::/38\"]\nlength = 56\n\
         [ipv6]\nlink_pool = \"links\"\ndelegated_pool = \"homes\"\ndns = [\"2001:db8::53\"]\n\
         [radius]\n[[radius.server]]\nauthentication = \"{radius}\"\nsecret = \"{SECRET}\"\n",
        Value::from(socket)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_one_that_the_daemon_takes_with_and_without_limits() {
        for (limits, padis) in [(Limits::Default, 10_000), (Limits::None, 0)] {
            let text = text("/run/bench/bng.sock", Proof::Pap, limits, "127.0.0.1:1812");
            let settings = daemon::config::parse("bng.toml".as_ref(), text.as_bytes()).unwrap();
            let pppoe = settings.pppoe.unwrap();
            assert_eq!(pppoe.config.limits.padis_per_s, padis);
            assert_eq!(pppoe.interfaces.len(), 1);
            assert!(settings.subscribers.edge.ipv6);
        }
    }
}
