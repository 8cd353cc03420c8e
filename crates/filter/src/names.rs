//! Names of protocols, services and ICMP types. The texts of /etc/protocols and /etc/services are parsed once,
//! when rules are loaded: matching a packet needs no names, and log lines use this table.

use std::collections::HashMap;

use wire::{icmp, tcp, udp};

/// The most names taken from one text; further ones are ignored.
const NAMES_MAX: usize = 16_384;
/// The longest name in octets; longer ones are ignored.
const NAME_MAX: usize = 64;

/// Built-in names. The first name of a number is the one displayed.
const PROTOCOLS: [(&str, u8); 22] = [
    ("icmp", icmp::PROTOCOL),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", tcp::PROTOCOL),
    ("egp", 8),
    ("udp", udp::PROTOCOL),
    ("dccp", wire::ip::DCCP),
    ("ipv6", 41),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmp6", icmp::PROTOCOL_V6),
    ("ipv6-icmp", icmp::PROTOCOL_V6),
    ("icmpv6", icmp::PROTOCOL_V6),
    ("eigrp", 88),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("l2tp", 115),
    ("sctp", wire::ip::SCTP),
    ("udplite", wire::ip::UDP_LITE),
];

const SERVICES: [(&str, u16); 26] = [
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("dns", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("http", 80),
    ("pop3", 110),
    ("ntp", 123),
    ("imap", 143),
    ("snmp", 161),
    ("bgp", 179),
    ("https", 443),
    ("microsoft-ds", 445),
    ("submissions", 465),
    ("isakmp", 500),
    ("submission", 587),
    ("imaps", 993),
    ("pop3s", 995),
    ("openvpn", 1194),
    ("l2tp", 1701),
    ("radius", 1812),
    ("sip", 5060),
];

/// ICMP types (RFC 792 and later).
pub(crate) const ICMP_TYPES: [(&str, u8); 8] = [
    ("echo-reply", 0),
    ("unreachable", 3),
    ("redirect", 5),
    ("echo-request", 8),
    ("time-exceeded", 11),
    ("parameter-problem", 12),
    ("timestamp", 13),
    ("timestamp-reply", 14),
];

/// ICMPv6 types (RFC 4443, RFC 4861, RFC 2710).
pub(crate) const ICMP6_TYPES: [(&str, u8); 13] = [
    ("unreachable", 1),
    ("packet-too-big", 2),
    ("time-exceeded", 3),
    ("parameter-problem", 4),
    ("echo-request", 128),
    ("echo-reply", 129),
    ("listener-query", 130),
    ("listener-report", 131),
    ("router-solicitation", 133),
    ("router-advertisement", 134),
    ("neighbour-solicitation", 135),
    ("neighbour-advertisement", 136),
    ("redirect", 137),
];

/// Names of protocols and services, in both directions.
#[derive(Debug, Clone)]
pub struct Names {
    protocols: HashMap<String, u8>,
    protocol_names: HashMap<u8, String>,
    services: HashMap<String, u16>,
    /// By protocol and port.
    service_names: HashMap<(u8, u16), String>,
}

impl Names {
    /// The built-in names only.
    #[must_use]
    pub fn well_known() -> Self {
        let mut names = Self {
            protocols: HashMap::new(),
            protocol_names: HashMap::new(),
            services: HashMap::new(),
            service_names: HashMap::new(),
        };
        for (name, number) in PROTOCOLS {
            names.add_protocol(name, number);
        }
        for (name, port) in SERVICES {
            for protocol in [tcp::PROTOCOL, udp::PROTOCOL] {
                names.add_service(name, protocol, port);
            }
        }
        names
    }

    /// The built-in names, and those that the texts of /etc/protocols and /etc/services add; invalid lines are
    /// ignored.
    #[must_use]
    pub fn read(protocols: &str, services: &str) -> Self {
        let mut names = Self::well_known();
        for (number, aliases) in entries(protocols).take(NAMES_MAX) {
            if let Ok(number) = number.parse() {
                aliases.for_each(|name| names.add_protocol(name, number));
            }
        }
        for (number, aliases) in entries(services).take(NAMES_MAX) {
            let Some((port, protocol)) = number.split_once('/') else {
                continue;
            };
            if let (Ok(port), Some(protocol)) = (port.parse(), names.protocol(protocol)) {
                aliases.for_each(|name| names.add_service(name, protocol, port));
            }
        }
        names
    }

    fn add_protocol(&mut self, name: &str, number: u8) {
        self.protocols
            .entry(name.to_ascii_lowercase())
            .or_insert(number);
        self.protocol_names
            .entry(number)
            .or_insert_with(|| name.to_owned());
    }

    fn add_service(&mut self, name: &str, protocol: u8, port: u16) {
        self.services
            .entry(name.to_ascii_lowercase())
            .or_insert(port);
        self.service_names
            .entry((protocol, port))
            .or_insert_with(|| name.to_owned());
    }

    /// A protocol's number, by name.
    #[must_use]
    pub fn protocol(&self, name: &str) -> Option<u8> {
        self.protocols.get(&name.to_ascii_lowercase()).copied()
    }

    /// A protocol's name, by number.
    #[must_use]
    pub fn protocol_name(&self, number: u8) -> Option<&str> {
        self.protocol_names.get(&number).map(String::as_str)
    }

    /// A service's port, by name, whatever the protocol.
    #[must_use]
    pub fn service(&self, name: &str) -> Option<u16> {
        self.services.get(&name.to_ascii_lowercase()).copied()
    }

    /// A service's name, by protocol and port.
    #[must_use]
    pub fn service_name(&self, protocol: u8, port: u16) -> Option<&str> {
        self.service_names
            .get(&(protocol, port))
            .map(String::as_str)
    }

    /// Every protocol's name.
    pub(crate) fn protocols(&self) -> Vec<&str> {
        self.protocols.keys().map(String::as_str).collect()
    }

    /// Every service's name.
    pub(crate) fn services(&self) -> Vec<&str> {
        self.services.keys().map(String::as_str).collect()
    }
}

/// For each line, the number in its second column and the names in the other columns.
fn entries(text: &str) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
    text.lines().filter_map(|line| {
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let number = words.next()?;
        let names = std::iter::once(name).chain(words);
        Some((number, names.filter(|name| name.len() <= NAME_MAX)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_texts_and_from_what_is_well_known() {
        let names = Names::read(
            "# IP\nip\t0\tIP # pseudo\ntcp 6 TCP\nhopopt 0 HOPOPT\nbad\nworse x\nfoo 300\nzz 253 ZZ",
            "echo 7/tcp\necho 7/udp sink\nodd 9/none\nbad 99999/tcp\nhttp 81/tcp www\n",
        );
        assert_eq!(names.protocol("TCP"), Some(6));
        assert_eq!(names.protocol("zz"), Some(253));
        assert_eq!(names.protocol("foo"), None);
        assert_eq!(names.protocol_name(6), Some("tcp"));
        assert_eq!(names.protocol_name(0), Some("ip"));
        assert_eq!(names.protocol_name(200), None);
        assert_eq!(names.service("sink"), Some(7));
        assert_eq!(names.service("http"), Some(80));
        assert_eq!(names.service_name(6, 81), Some("http"));
        assert_eq!(names.service_name(17, 7), Some("echo"));
        assert_eq!(names.service("odd"), None);
    }
}
