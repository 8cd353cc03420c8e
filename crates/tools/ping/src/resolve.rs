//! Resolves hosts to addresses, and gives each stream a unique name.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use anyhow::{Result, anyhow};
use base::Duration;
use ping::{Protocol, StreamPlan};

use super::hi::From;
use super::spec::{Spec, tos_name};

/// The address families allowed for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4 or IPv6, whichever comes first.
    Any,
    /// IPv4 only.
    Four,
    /// IPv6 only.
    Six,
}

/// Looks up every host once, fills in missing stream settings from `common`, and names the streams. Also returns each
/// stream's destination, with an IPv6 address's scope and the UDP port.
///
/// # Errors
/// The first host that cannot be resolved.
pub(super) fn streams(
    specs: &[Spec],
    common: &Spec,
    family: Family,
) -> Result<(Vec<StreamPlan>, Vec<SocketAddr>)> {
    let mut known: HashMap<&str, SocketAddr> = HashMap::new();
    let mut streams = Vec::with_capacity(specs.len());
    let mut to = Vec::with_capacity(specs.len());
    for spec in specs {
        let address = match known.get(spec.host.as_str()) {
            Some(address) => *address,
            None => {
                let address = look_up(&spec.host, family)?;
                known.insert(&spec.host, address);
                address
            }
        };
        let udp = spec.udp.or(common.udp);
        let mut address = address;
        address.set_port(udp.unwrap_or(0));
        to.push(address);
        streams.push(StreamPlan {
            name: spec.name.clone().unwrap_or_default(),
            host: spec.host.clone(),
            address: address.ip(),
            protocol: udp.map_or(Protocol::Icmp, |port| Protocol::Udp { port }),
            tos: spec.tos.or(common.tos).unwrap_or(0),
            size: spec.size.or(common.size).unwrap_or(56),
            interval: spec.interval.or(common.interval).unwrap_or(Duration::ZERO),
            offset: Duration::ZERO,
            count: spec.count.or(common.count),
        });
    }
    name(&mut streams);
    Ok((streams, to))
}

/// The address of a host, without a port.
///
/// # Errors
/// The host is not known, or has no address of the family.
pub fn look_up(host: &str, family: Family) -> Result<SocketAddr> {
    let found = (host, 0).to_socket_addrs().map_err(|error| {
        let text = error.to_string();
        let text = text.strip_prefix("failed to lookup address information: ");
        anyhow!("{host}: {}", text.unwrap_or("Name or service not known"))
    })?;
    let wanted = |address: &SocketAddr| match family {
        Family::Any => true,
        Family::Four => address.is_ipv4(),
        Family::Six => address.is_ipv6(),
    };
    let mut found = found.filter(wanted);
    found.next().ok_or_else(|| {
        let family = if family == Family::Four {
            "IPv4"
        } else {
            "IPv6"
        };
        anyhow!("{host}: no {family} address")
    })
}

/// The first host that is a link-local address (RFC 4291 2.5.6) without an interface.
pub(super) fn without_scope<'a>(
    streams: &'a [StreamPlan],
    to: &[SocketAddr],
    from: &From,
) -> Option<&'a str> {
    let lacks_scope = |to: &SocketAddr| match to {
        SocketAddr::V6(six) => six.ip().is_unicast_link_local() && six.scope_id() == 0,
        SocketAddr::V4(_) => false,
    };
    let mut all = streams.iter().zip(to);
    let found = all.find(|(_, to)| from.interface.is_none() && lacks_scope(to));
    found.map(|(stream, _)| stream.host.as_str())
}

/// Names unnamed streams: the host, followed by what distinguishes the streams of that host.
fn name(streams: &mut [StreamPlan]) {
    let varies = |streams: &[StreamPlan], of: &StreamPlan, differs: Differs| {
        let mut same_host = streams.iter().filter(|other| other.host == of.host);
        same_host.any(|other| differs(other, of))
    };
    let names: Vec<String> = streams
        .iter()
        .map(|stream| {
            if !stream.name.is_empty() {
                return stream.name.clone();
            }
            let mut name = stream.host.clone();
            if varies(streams, stream, |a, b| a.protocol != b.protocol) {
                name += &match stream.protocol {
                    Protocol::Icmp => ",icmp".to_owned(),
                    Protocol::Udp { port } => format!(",udp={port}"),
                };
            }
            if varies(streams, stream, |a, b| a.tos != b.tos) {
                name = format!("{name},{}", tos_name(stream.tos));
            }
            if varies(streams, stream, |a, b| a.size != b.size) {
                name = format!("{name},{}", stream.size);
            }
            name
        })
        .collect();
    let mut taken = HashSet::new();
    for (stream, name) in streams.iter_mut().zip(names) {
        let free = (1..).map(|number| match number {
            1 => name.clone(),
            _ => format!("{name}#{number}"),
        });
        stream.name = free
            .into_iter()
            .find(|name| taken.insert(name.clone()))
            .unwrap_or_default();
    }
}

type Differs = fn(&StreamPlan, &StreamPlan) -> bool;

/// Whether a host was given as an address, possibly with an interface after it.
pub(super) fn is_address(host: &str) -> bool {
    let address = host.split_once('%').map_or(host, |(address, _)| address);
    address.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named_by_what_tells_them_apart() {
        let spec = |host: &str, tos, size, udp| Spec {
            host: host.into(),
            tos: Some(tos),
            size: Some(size),
            udp,
            ..Spec::default()
        };
        let specs = [
            spec("127.0.0.1", 0, 56, None),
            spec("127.0.0.1", 184, 56, None),
            spec("127.0.0.1", 184, 56, None),
            spec("127.0.0.1", 184, 99, Some(7)),
            spec("127.0.0.2", 184, 56, None),
        ];
        let (streams, to) = streams(&specs, &Spec::default(), Family::Any).unwrap();
        let names: Vec<&str> = streams.iter().map(|stream| &stream.name[..]).collect();
        let expected = [
            "127.0.0.1,icmp,be,56",
            "127.0.0.1,icmp,ef,56",
            "127.0.0.1,icmp,ef,56#2",
            "127.0.0.1,udp=7,ef,99",
            "127.0.0.2",
        ];
        assert_eq!(names, expected);
        assert_eq!(to[3], "127.0.0.1:7".parse().unwrap());
    }

    #[test]
    fn a_link_local_address_needs_its_interface() {
        let find = |host: &str, interface: Option<&str>| {
            let spec = Spec {
                host: host.into(),
                ..Spec::default()
            };
            let found = streams(&[spec], &Spec::default(), Family::Any).unwrap();
            let from = From {
                interface: interface.map(str::to_owned),
                ..From::default()
            };
            without_scope(&found.0, &found.1, &from).map(str::to_owned)
        };
        assert_eq!(find("fe80::1", None).as_deref(), Some("fe80::1"));
        assert_eq!(find("fe80::1", Some("lo")), None);
        assert_eq!(find("fe80::1%lo", None), None);
        assert_eq!(find("::1", None), None);
        assert!(is_address("fe80::1%lo") && is_address("::1") && !is_address("a%lo"));
    }

    #[test]
    fn a_host_that_is_not_known_is_named() {
        let error = look_up("nonesuch.invalid", Family::Any).unwrap_err();
        assert!(error.to_string().starts_with("nonesuch.invalid: "));
        let error = look_up("127.0.0.1", Family::Six).unwrap_err();
        assert_eq!(error.to_string(), "127.0.0.1: no IPv6 address");
    }
}
