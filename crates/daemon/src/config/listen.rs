//! Listen addresses: `listen` and `sockets` of a section.

use std::net::{IpAddr, SocketAddr};

use super::{Listen, Role, Sockets};
use settings::{At, Section};

/// A section's `listen` and `sockets`, with the position of each address in the file.
pub(super) struct Bound {
    pub(super) addrs: Vec<At<Listen>>,
    sockets: Sockets,
}

impl Bound {
    /// The role that these keys configure.
    pub(super) fn role(self) -> Role {
        let listen = self.addrs.into_iter().map(|addr| addr.value).collect();
        Role {
            listen,
            sockets: self.sockets,
        }
    }
}

/// Reads `listen` and `sockets`. `default` is used if `listen` is absent; if `default` is empty too, the key is
/// reported as missing.
pub(super) fn read(section: &mut Section, default: &[&str]) -> Bound {
    let sockets = section
        .choice(
            "sockets",
            &[
                ("shared", Sockets::Shared),
                ("per-tunnel", Sockets::PerTunnel),
            ],
        )
        .map_or(Sockets::Shared, |sockets| sockets.value);
    let mut addrs: Vec<At<Listen>> = Vec::new();
    if !section.has("listen") {
        if default.is_empty() {
            let remedy = "give the addresses to serve: listen = [\"127.0.0.1:1701\"]";
            section.require("listen", remedy);
        }
        let at = section.at();
        for addr in default.iter().filter_map(|text| text.parse().ok()) {
            addrs.push(At {
                value: Listen {
                    addr,
                    optional: true,
                },
                at,
            });
        }
    }
    let given = |text: &str| {
        address(text).map(|addr| Listen {
            addr,
            optional: false,
        })
    };
    addrs.extend(section.list("listen", "127.0.0.1:1701", given));
    Bound { addrs, sockets }
}

/// Reports each address that cannot be bound because an earlier one already uses it.
pub(super) fn refuse_overlap(addrs: &[At<Listen>], earlier: &[At<Listen>], section: &mut Section) {
    for (i, one) in addrs.iter().enumerate() {
        let before = earlier.iter().chain(&addrs[..i]);
        let Some(other) = before
            .clone()
            .find(|other| overlap(one.value.addr, other.value.addr))
        else {
            continue;
        };
        let (addr, held, line) = (one.value.addr, other.value.addr, section.line(other.at));
        let message = if addr == held {
            format!("{addr} is given twice, first in line {line}; give it once")
        } else {
            format!("{addr} overlaps {held} in line {line}; give one of them, or another port")
        };
        section.fault(one.at, "listen", message);
    }
}

fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let same_port = a.port() == b.port() && a.port() != 0;
    let same_family = a.is_ipv4() == b.is_ipv4();
    let any = a.ip().is_unspecified() || b.ip().is_unspecified();
    same_port && same_family && (any || a.ip() == b.ip())
}

/// Parses an address and port that a datagram socket can bind.
fn address(text: &str) -> Result<SocketAddr, String> {
    let Ok(addr) = text.parse::<SocketAddr>() else {
        return Err(match text.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(IpAddr::V4(ip)) => format!("\"{text}\" has no port; write \"{ip}:1701\""),
            Ok(IpAddr::V6(ip)) => format!("\"{text}\" has no port; write \"[{ip}]:1701\""),
            Err(_) => format!(
                "\"{text}\" is not an IP address and port; write it like \"127.0.0.1:1701\" or \"[::1]:1701\""
            ),
        });
    };
    let multicast = addr.ip().is_multicast();
    match addr.ip() {
        IpAddr::V4(ip) if multicast || ip.is_broadcast() => Err(format!(
            "{ip} is no address of a host; give one of this host's"
        )),
        IpAddr::V6(ip) if multicast => Err(format!(
            "{ip} is no address of a host; give one of this host's"
        )),
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(v4) => Err(format!(
                "{ip} is an IPv4 address; write \"{v4}:{}\"",
                addr.port()
            )),
            None => Ok(addr),
        },
        IpAddr::V4(_) => Ok(addr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspecified_address_overlaps_every_address_of_its_family_and_port() {
        let overlap = |a: &str, b: &str| overlap(a.parse().unwrap(), b.parse().unwrap());
        assert!(overlap("0.0.0.0:1701", "127.0.0.1:1701"));
        assert!(overlap("[::1]:1701", "[::]:1701"));
        assert!(!overlap("0.0.0.0:1701", "[::]:1701"));
        assert!(!overlap("127.0.0.1:0", "127.0.0.1:0"));
        assert!(!overlap("127.0.0.1:1701", "127.0.0.1:1702"));
    }
}
