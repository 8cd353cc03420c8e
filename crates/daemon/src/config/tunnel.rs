//! `[[tunnel]]` and `[[tunnel.line]]`: sessions that are handed over to LNSs. docs/switching.md is the task's page.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use aaa::{Lns, TunnelTo};
use edge::{LineRule, NamedTunnel, Switching};
use settings::secret;
use settings::{At, Notes, Section};
use toml::de::DeTable;

use super::queue::network;
use super::vlans::VlanRange;

/// The most tunnels, and the most LNSs, realms and lines of one.
const TUNNELS_MAX: usize = 4_096;
const LNS_MAX: usize = 64;
const REALMS_MAX: usize = 4_096;
const LINES_MAX: usize = 1_024;

/// The port of L2TP (RFC 2661, section 8.1).
const PORT: u16 = 1701;

/// What the keys refer to in other sections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around<'a> {
    /// The addresses of `[lns] listen`.
    pub(super) own: &'a [SocketAddr],
    /// The names of the PPPoE interfaces by their numbers.
    pub(super) interfaces: &'a [&'a str],
}

/// Reads all tunnels.
pub(super) fn read(
    root: &DeTable<'_>,
    path: &Path,
    notes: &Notes<'_>,
    around: Around<'_>,
) -> Switching {
    let mut switching = Switching::default();
    let mut realms: Vec<At<Box<str>>> = Vec::new();
    for mut section in Section::each(root, "tunnel", "tunnel", notes) {
        let at = section.at();
        if switching.tunnels.len() == TUNNELS_MAX {
            let message = format!("is the tunnel beyond {TUNNELS_MAX}; give fewer");
            section.fault(at, "name", message);
            break;
        }
        let tunnel = tunnel(&mut section, path, around, &mut realms);
        if let Some(tunnel) = tunnel {
            if switching.tunnels.iter().any(|one| one.name == tunnel.name) {
                let words = format!("\"{}\" is given twice", tunnel.name);
                section.fault(at, "name", (words, "give each tunnel its own"));
            }
            switching.tunnels.push(tunnel);
        }
        section.finish();
    }
    if !switching.tunnels.is_empty() && !root.contains_key("lac") && notes.is_empty() {
        let message = "are of no use without [lac], whose sockets open tunnels; give [lac]";
        notes.whole("tunnel", message);
    }
    switching.is_on = !switching.tunnels.is_empty();
    switching
}

fn tunnel(
    section: &mut Section<'_>,
    path: &Path,
    around: Around<'_>,
    realms: &mut Vec<At<Box<str>>>,
) -> Option<NamedTunnel> {
    section.require("name", "give the tunnel a name: name = \"wholesale\"");
    let name = section.parsed("name", aaa::queue::name);
    section.require("lns", "give the LNSs: lns = [\"192.0.2.1\"]");
    let first = section.list("lns", "192.0.2.1", address);
    let backup = section.list_or_none("backup", "192.0.2.2", address);
    let secret = secret::optional(section, path).map(|secret| secret.value);
    // RFC 2661 4.4.3: a name AVP holds at most 255 octets.
    let host_name = section.sized("host_name", 1..=255);
    let peer_name = section.sized("peer_name", 1..=255);
    let from = section.from_text::<IpAddr>("from", "an IP address", "192.0.2.7");
    let own_realms = own_realms(section, realms);
    let lines = lines(section, around);
    let given = |key, one: &At<SocketAddr>, preference| {
        if is_own(one.value, around.own) {
            let words = format!("{} is an address of [lns]", one.value);
            let right = "give the LNS of another machine: a session would come back";
            section.fault(one.at, key, (words, right));
        }
        if let Some(from) = &from
            && from.value.is_ipv4() != one.value.is_ipv4()
        {
            let words = format!("{} and from are not of one address family", one.value);
            section.fault(one.at, key, (words, "give both as IPv4 or both as IPv6"));
        }
        let to = TunnelTo {
            client: from.as_ref().map(|from| from.value),
            secret: secret.clone(),
            client_name: host_name.as_ref().map(|name| name.value.into()),
            server_name: peer_name.as_ref().map(|name| name.value.into()),
            ..TunnelTo::new(one.value)
        };
        Lns {
            tunnel: Arc::new(to),
            preference,
            private_group: Box::default(),
        }
    };
    let mut lns: Vec<Lns> = first.iter().map(|one| given("lns", one, 0)).collect();
    let others = (1..).zip(&backup);
    lns.extend(others.map(|(n, one)| given("backup", one, n)));
    if lns.len() > LNS_MAX {
        let words = format!("has more than {LNS_MAX} LNSs with those of backup; give fewer");
        section.fault(section.at(), "lns", words);
    }
    Some(NamedTunnel {
        name: name?.value,
        lns: lns.into(),
        realms: own_realms,
        lines,
    })
}

/// Reads the realms of a tunnel. A realm leads to one tunnel.
fn own_realms(section: &mut Section<'_>, all: &mut Vec<At<Box<str>>>) -> Vec<Box<str>> {
    let realm = |text: &str| match text.len() {
        1..=253 if !text.contains('@') => Ok(Box::from(text.to_ascii_lowercase())),
        _ => Err(format!(
            "\"{text}\" is no realm; write what follows the @ of a name, such as \"isp.example\""
        )),
    };
    let mut own = Vec::new();
    for one in section.list_or_none("realms", "isp.example", realm) {
        if let Some(other) = all.iter().find(|other| other.value == one.value) {
            let line = section.line(other.at);
            let words = format!("\"{}\" is a realm of line {line} already", one.value);
            section.fault(one.at, "realms", (words, "give it once"));
            continue;
        }
        own.push(one.value.clone());
        all.push(one);
    }
    if own.len() > REALMS_MAX {
        let words = format!("has more than {REALMS_MAX} realms; give fewer");
        section.fault(section.at(), "realms", words);
    }
    own
}

/// Reads each `[[tunnel.line]]`.
fn lines(section: &mut Section<'_>, around: Around<'_>) -> Vec<LineRule> {
    let mut rules = Vec::new();
    for mut line in section.tables("line") {
        let interface = line.sized("interface", 1..=15);
        let port = interface.and_then(|name| {
            let found = around.interfaces.iter().position(|one| *one == name.value);
            if found.is_none() {
                let words = format!("there is no interface \"{}\"", name.value);
                let right = "give [[pppoe.interface]] with that name";
                line.fault(name.at, "interface", (words, right));
            }
            Some(found? as u16)
        });
        let vlans = line.list_or_none("vlans", "100-199", str::parse::<VlanRange>);
        let local = line.from_text::<IpAddr>("local", "an IP address", "192.0.2.1");
        let peer = line.parsed("peer", network);
        let host_name = line.sized("host_name", 1..=255);
        let is_ethernet = interface.is_some() || !vlans.is_empty();
        let is_tunnel = local.is_some() || peer.is_some() || host_name.is_some();
        if is_ethernet == is_tunnel {
            let words = match is_tunnel {
                false => "says for whom it is by none of its keys",
                true => "asks for a PPPoE interface and for a tunnel at once",
            };
            let right = "give interface and vlans, or some of local, peer, host_name";
            line.fault(line.at(), "interface", (words, right));
        }
        rules.push(LineRule {
            interface: port,
            vlans: vlans.into_iter().map(|one| one.value.ids()).collect(),
            peer: peer.map(|peer| peer.value),
            local: local.map(|local| local.value),
            host_name: host_name.map(|name| name.value.into()),
        });
        line.finish();
    }
    if rules.len() > LINES_MAX {
        let words = format!("has more than {LINES_MAX} lines; give fewer");
        section.fault(section.at(), "line", words);
    }
    rules
}

/// An LNS: an address, with the port if it is not 1701.
fn address(text: &str) -> Result<SocketAddr, String> {
    let alone = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    let found = text.parse::<SocketAddr>().or(alone).ok();
    let usable = |one: &SocketAddr| {
        one.port() != 0 && !one.ip().is_unspecified() && !one.ip().is_multicast()
    };
    found.filter(usable).ok_or_else(|| {
        format!("\"{text}\" is no address of an LNS; write \"192.0.2.1\" or \"192.0.2.1:1701\"")
    })
}

/// Whether an address is one that we listen on.
fn is_own(lns: SocketAddr, own: &[SocketAddr]) -> bool {
    own.iter().any(|own| {
        let same = own.ip() == lns.ip() || (own.ip().is_unspecified() && lns.ip().is_loopback());
        same && own.port() == lns.port()
    })
}
