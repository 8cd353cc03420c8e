//! The conditions of a section, converted to [`Match`]es for each direction.

use core::str::FromStr;
use std::net::IpAddr;

use settings::{At, Notes, Section, choose};
use wire::flow::Dscp;

use crate::classify::{FlowMatch, Mark, Match, Ports, Prefix};

/// Maximum number of matches of one section. The lengths of its lists multiply.
const MATCHES_MAX: usize = 1_024;

const PROTOCOLS: [(&str, u8); 13] = [
    ("tcp", 6),
    ("udp", 17),
    ("icmp", 1),
    ("icmpv6", 58),
    ("sctp", 132),
    ("dccp", 33),
    ("udplite", 136),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("ipip", 4),
    ("6in4", 41),
    ("l2tp", 115),
];

/// IP protocols that have ports.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// The keys of a section that are conditions.
pub(super) const CONDITIONS: [&str; 13] = [
    "proto", "port", "src_port", "dst_port", "host", "remote", "src", "dst", "dscp", "tos", "mark",
    "vlan", "header",
];

/// The packets that a section matches, for each direction.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rules {
    /// Matches for uploaded packets.
    pub(super) up: Vec<Match>,
    /// Matches for downloaded packets.
    pub(super) down: Vec<Match>,
}

#[derive(Debug, Clone, Copy)]
enum Header {
    Innermost,
    Outer,
    Tunnel,
}

/// Reads the conditions of a section. A packet must meet every condition. It meets a list if it matches one element.
pub(super) fn read(section: &mut Section<'_>, notes: &Notes<'_>) -> Rules {
    let given = CONDITIONS
        .iter()
        .any(|key| *key != "header" && section.has(key));
    if !given {
        let right = "give at least one of proto, port, src_port, dst_port, host, remote, src, dst, dscp, tos, mark, vlan";
        let name = section.name();
        notes.at(section.at(), &name, ("matches every packet", right));
    }
    let headers = [
        ("innermost", Header::Innermost),
        ("outer", Header::Outer),
        ("tunnel", Header::Tunnel),
    ];
    let header = section.choice("header", &headers);
    let header = header.map_or(Header::Innermost, |header| header.value);
    let flows = flows(section, notes);
    let codes = code_points(section, notes);
    let marks = optional(section.several("mark", mark));
    let vlan = |text: &str| match text.parse() {
        Ok(vlan @ 0..=4_094) => Ok(vlan),
        _ => Err(format!(
            "\"{text}\" is no VLAN; write its identifier: 0 to 4094"
        )),
    };
    let vlans = optional(section.several("vlan", vlan));
    let mut rules = Rules::default();
    let all = [flows.len(), codes.len(), marks.len(), vlans.len()];
    if all.iter().product::<usize>() > MATCHES_MAX {
        let name = section.name();
        let message = format!("comes to more than {MATCHES_MAX} rules");
        notes.at(
            section.at(),
            &name,
            (message, "shorten its lists, or use prefixes and ranges"),
        );
        return rules;
    }
    for flow in &flows {
        for &dscp in &codes {
            for &mark in &marks {
                for &vlan in &vlans {
                    let rest = Match {
                        dscp,
                        mark,
                        vlan,
                        ..Match::default()
                    };
                    rules.up.push(with(header, flow[0], rest));
                    rules.down.push(with(header, flow[1], rest));
                }
            }
        }
    }
    rules
}

fn with(header: Header, flow: FlowMatch, mut rest: Match) -> Match {
    match header {
        Header::Innermost => rest.innermost = flow,
        Header::Outer => rest.outer = flow,
        Header::Tunnel => rest.tunnel = flow,
    }
    rest
}

/// Reads addresses, protocols and ports. Each pair is for up and down.
fn flows(section: &mut Section<'_>, notes: &Notes<'_>) -> Vec<[FlowMatch; 2]> {
    let protocols = section.several("proto", protocol);
    let portless = protocols
        .iter()
        .find(|protocol| !WITH_PORTS.contains(&protocol.value));
    let ports_given = ["port", "src_port", "dst_port"].into_iter();
    let ports_given: Vec<_> = ports_given.filter(|key| section.has(key)).collect();
    if let (Some(protocol), Some(_)) = (portless, ports_given.first()) {
        let key = section.path("proto");
        let message = format!("protocol {} has no ports", protocol.value);
        let right =
            "leave the port out, or give it with tcp, udp, sctp or dccp in a section of its own";
        notes.at(protocol.at, &key, (message, right));
    }
    exclusive(section, "port", &["src_port", "dst_port"], notes);
    exclusive(section, "host", &["src", "dst"], notes);
    exclusive(section, "remote", &["src", "dst"], notes);
    let either = section.several("port", told::<Ports>);
    let src_ports = optional(section.several("src_port", told::<Ports>));
    let dst_ports = optional(section.several("dst_port", told::<Ports>));
    let mut pairs = Vec::new();
    for &proto_src in &src_ports {
        pairs.extend(dst_ports.iter().map(|&proto_dst| (proto_src, proto_dst)));
    }
    if !either.is_empty() {
        let both = either.iter().map(|ports| Some(ports.value));
        pairs = both
            .flat_map(|ports| [(ports, None), (None, ports)])
            .collect();
    }
    let hosts = optional(section.several("host", told::<Prefix>));
    let remotes = optional(section.several("remote", told::<Prefix>));
    let sources = optional(section.several("src", told::<Prefix>));
    let destinations = optional(section.several("dst", told::<Prefix>));
    let mut flows = Vec::new();
    for &proto in &optional(protocols) {
        for &(proto_src, proto_dst) in &pairs {
            for (&host, &source) in product(&hosts, &sources) {
                for (&remote, &destination) in product(&remotes, &destinations) {
                    let flow = |src: Option<Prefix>, dst: Option<Prefix>| FlowMatch {
                        src: src.or(source),
                        dst: dst.or(destination),
                        proto,
                        proto_src,
                        proto_dst,
                    };
                    flows.push([flow(host, remote), flow(remote, host)]);
                    if flows.len() > MATCHES_MAX {
                        return flows;
                    }
                }
            }
        }
    }
    flows
}

fn product<'p, T>(a: &'p [T], b: &'p [T]) -> impl Iterator<Item = (&'p T, &'p T)> {
    a.iter().flat_map(move |a| b.iter().map(move |b| (a, b)))
}

/// Reads the DSCPs of `dscp` and `tos`.
fn code_points(section: &mut Section<'_>, notes: &Notes<'_>) -> Vec<Option<Dscp>> {
    let mut codes = section.several("dscp", told::<Dscp>);
    let octets = section.several("tos", tos);
    let key = section.path("tos");
    for At {
        value: (value, mask),
        at,
    } in octets
    {
        let right = format!(
            "write {:#04x}/{:#04x}; here they are left out of account",
            value & 0xfc,
            mask & 0xfc
        );
        if value & !mask & 0b11 != 0 {
            let message = "its two lowest bits are ECN, which no rule can match";
            notes.advise(at, &key, (message, right));
        } else if value & mask & 0b11 != 0 {
            let message = "its two lowest bits are ECN: a router that marks congestion, or a sender that does not use ECN, would slip through this rule";
            notes.advise(at, &key, (message, right));
        } else if mask & 0b11 != 0 {
            let message = "its mask has the two lowest bits, which are ECN: packets of senders that use ECN would slip through this rule";
            notes.advise(at, &key, (message, right));
        }
        let wanted = (0..64).filter_map(Dscp::new);
        let wanted = wanted.filter(|dscp| (dscp.traffic_class() ^ value) & mask & 0xfc == 0);
        codes.extend(wanted.map(|value| At { value, at }));
    }
    optional(codes)
}

/// Reports two keys that set the same condition.
fn exclusive(section: &Section<'_>, key: &'static str, others: &[&'static str], notes: &Notes<'_>) {
    let other = others.iter().find(|other| section.has(other));
    if let Some(other) = other.filter(|_| section.has(key)) {
        let message = format!("{key} and {other} are both given");
        let right = match key {
            "port" => "port is either end's; src_port and dst_port are as in the packet",
            _ => "host and remote turn round with the direction; src and dst are as in the packet",
        };
        notes.at(section.at(), section.path(key), (message, right));
    }
}

/// The values, or a single `None` if the section does not give the key.
fn optional<T>(values: Vec<At<T>>) -> Vec<Option<T>> {
    match values.is_empty() {
        true => vec![None],
        false => values.into_iter().map(|at| Some(at.value)).collect(),
    }
}

fn told<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    let text = text.parse();
    text.map_err(|error: T::Err| error.to_string().replacen(": ", "; ", 1))
}

fn protocol(text: &str) -> Result<u8, String> {
    let number = text.parse::<u8>().ok();
    number.map_or_else(|| choose(&text.to_ascii_lowercase(), &PROTOCOLS), Ok)
}

fn hexadecimal(text: &str) -> Option<u32> {
    match text.trim().strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    }
}

fn tos(text: &str) -> Result<(u8, u8), String> {
    let octet = |text| hexadecimal(text).and_then(|value| u8::try_from(value).ok());
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xfc"));
    octet(value).zip(octet(mask)).ok_or_else(|| {
        format!("\"{text}\" is no TOS octet; write 0x10, or \"0x10/0xfc\" with a mask, or better its DSCP")
    })
}

fn mark(text: &str) -> Result<Mark, String> {
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
    let both = hexadecimal(value).zip(hexadecimal(mask));
    both.map(|(value, mask)| Mark { value, mask })
        .ok_or_else(|| format!("\"{text}\" is no mark; write 0x1, or \"0x1/0xff\" with a mask"))
}

/// Whether `a` matches every packet that `b` matches. Compares this pair only, so it can miss cases that need several
/// matches.
pub(super) fn covers(a: &Match, b: &Match) -> bool {
    flow_covers(&a.outer, &b.outer)
        && flow_covers(&a.tunnel, &b.tunnel)
        && flow_covers(&a.innermost, &b.innermost)
        && a.dscp.is_none_or(|dscp| b.dscp == Some(dscp))
        && a.vlan.is_none_or(|vlan| b.vlan == Some(vlan))
        && a.mark.is_none_or(|a| {
            b.mark
                .is_some_and(|b| a.mask & !b.mask == 0 && (a.value ^ b.value) & a.mask == 0)
        })
}

fn flow_covers(a: &FlowMatch, b: &FlowMatch) -> bool {
    let prefix = |a: Option<Prefix>, b: Option<Prefix>| {
        a.is_none_or(|a| b.is_some_and(|b| a.length() <= b.length() && a.has(octets(b.address()))))
    };
    let ports = |a: Option<Ports>, b: Option<Ports>| {
        a.is_none_or(|a| b.is_some_and(|b| a.low <= b.low && b.high <= a.high))
    };
    prefix(a.src, b.src)
        && prefix(a.dst, b.dst)
        && a.proto.is_none_or(|proto| b.proto == Some(proto))
        && ports(a.proto_src, b.proto_src)
        && ports(a.proto_dst, b.proto_dst)
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}
