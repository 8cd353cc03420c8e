//! Says in words what a u32 filter compares (tc-u32(8)): "dst port 22", "src 10.0.0.0/8".
//!
//! A key is a word of the packet under a mask. [`Said::of`] merges the keys of a filter into one sparse header and takes
//! the fields of Ethernet, 802.1Q, PPPoE (RFC 2516), IPv4 (RFC 791), IPv6 (RFC 8200), TCP, UDP and ICMP out of it. Bits
//! that belong to no known field stay numbers, as do all bits if the network protocol is unknown.
//!
//! As tc's own `match ip dport` does, a fixed offset behind the IP header assumes a header without options.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use wire::flow::Dscp;

/// A word of the packet: 32 bits from `offset`, in bytes from the start of the network header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) value: u32,
    pub(super) mask: u32,
    pub(super) offset: i32,
    /// Whether `offset` counts from the end of the IP header ("nexthdr+").
    pub(super) is_next: bool,
}

/// How the value of a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// A number, or a range of numbers.
    Number,
    Hex,
    /// The IP header's length in words of four bytes.
    Words,
    /// The version of IP, which the protocol already says: this one.
    Version(u8),
    TrafficClass,
    Fragment,
    Protocol,
    Address4,
    Address6,
    Mac,
    EtherType,
    TcpFlags,
}

/// A field: where it is, in bits, and how its value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    name: &'static str,
    is_next: bool,
    start: i64,
    width: u32,
    style: Style,
}

/// A field that a filter compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Compared {
    field: Field,
    value: u128,
    mask: u128,
}

/// A filter's comparisons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    fields: Vec<Compared>,
    /// What belongs to no known field.
    rest: Vec<Key>,
}

const TCP: u128 = 6;
const ICMP: [u128; 2] = [1, 58];
/// Protocols that begin with both ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u128; 5] = [TCP, 17, 33, 132, 136];
const PROTOCOLS: [(u128, &str); 16] = [
    (1, "icmp"),
    (2, "igmp"),
    (4, "ipip"),
    (TCP, "tcp"),
    (17, "udp"),
    (33, "dccp"),
    (41, "6in4"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (58, "icmpv6"),
    (89, "ospf"),
    (112, "vrrp"),
    (115, "l2tp"),
    (132, "sctp"),
    (136, "udplite"),
];
const ETHER_TYPES: [(u128, &str); 7] = [
    (IP, "ip"),
    (IPV6, "ipv6"),
    (0x0806, "arp"),
    (0x8100, "802.1Q"),
    (0x88a8, "802.1ad"),
    (0x8863, "ppp_disc"),
    (0x8864, "ppp_ses"),
];
const IP: u128 = 0x0800;
const IPV6: u128 = 0x86dd;
/// In the order of the bits, the lowest first.
const TCP_FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

/// The bytes that a filter compares: value and mask by place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Header(BTreeMap<(bool, i64), (u8, u8)>);

impl Header {
    /// Merges keys; `None` if two of them contradict each other.
    fn of(keys: &[Key]) -> Option<Self> {
        let mut header = Self::default();
        for key in keys {
            let bytes = key.value.to_be_bytes().into_iter();
            let bytes = bytes.zip(key.mask.to_be_bytes()).zip(0..);
            for ((value, mask), at) in bytes.filter(|((_, mask), _)| *mask != 0) {
                let place = (key.is_next, i64::from(key.offset) + at);
                let byte = header.0.entry(place).or_default();
                if (byte.0 ^ value) & byte.1 & mask != 0 {
                    return None;
                }
                *byte = (byte.0 | value & mask, byte.1 | mask);
            }
        }
        Some(header)
    }

    /// The bits of a field that are compared; `None` if there are none.
    fn look(&self, field: &Field) -> Option<Compared> {
        let end = field.start + i64::from(field.width);
        let (first, last) = (field.start.div_euclid(8), (end - 1).div_euclid(8));
        let (mut value, mut mask) = (0, 0);
        for (&(_, at), &(own, own_mask)) in
            self.0.range((field.is_next, first)..=(field.is_next, last))
        {
            let right = end - (at + 1) * 8;
            let moved = |byte: u8| match u32::try_from(right) {
                Ok(left) => u128::from(byte) << left,
                Err(_) => u128::from(byte) >> right.unsigned_abs().min(8),
            };
            value |= moved(own);
            mask |= moved(own_mask);
        }
        let whole = whole(field.width);
        let (value, mask) = (value & whole, mask & whole);
        (mask != 0).then_some(Compared {
            field: *field,
            value,
            mask,
        })
    }

    /// Removes the bits of a field.
    fn remove(&mut self, field: &Field) {
        let end = field.start + i64::from(field.width);
        let (first, last) = (field.start.div_euclid(8), (end - 1).div_euclid(8));
        for at in first..=last {
            let Some(byte) = self.0.get_mut(&(field.is_next, at)) else {
                continue;
            };
            for bit in 0..8 {
                let is_own = (field.start..end).contains(&(at * 8 + bit));
                let own = if is_own { 0x80 >> bit } else { 0 };
                *byte = (byte.0 & !own, byte.1 & !own);
            }
            if byte.1 == 0 {
                self.0.remove(&(field.is_next, at));
            }
        }
    }

    /// The remaining bytes as keys at multiples of four bytes.
    fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        for (&(is_next, at), &(value, mask)) in &self.0 {
            let offset = i32::try_from(at.div_euclid(4) * 4).unwrap_or(i32::MIN);
            let left = 24 - 8 * at.rem_euclid(4);
            let word = |byte: u8| u32::from(byte) << left;
            match keys.last_mut() {
                Some(key) if key.offset == offset && key.is_next == is_next => {
                    key.value |= word(value);
                    key.mask |= word(mask);
                }
                _ => keys.push(Key {
                    value: word(value),
                    mask: word(mask),
                    offset,
                    is_next,
                }),
            }
        }
        keys
    }
}

/// A number whose lowest `width` bits are set.
fn whole(width: u32) -> u128 {
    u128::MAX >> 128_u32.saturating_sub(width).min(127)
}

impl Said {
    /// What a filter for `protocol`, as tc names it, compares.
    pub(super) fn of(protocol: &str, keys: &[Key]) -> Self {
        let Some(mut header) = Header::of(keys) else {
            return Self {
                fields: Vec::new(),
                rest: keys.to_vec(),
            };
        };
        let mut fields = Vec::new();
        for field in fields_of(protocol, &header) {
            if let Some(compared) = header.look(&field) {
                header.remove(&field);
                fields.push(compared);
            }
        }
        Self {
            fields,
            rest: header.keys(),
        }
    }

    /// The comparisons in words: "proto tcp, dst port 22".
    pub(super) fn words(&self) -> String {
        let fields = self.fields.iter().filter_map(Compared::words);
        let rest = self.rest.iter().map(Key::words);
        let all: Vec<String> = fields.chain(rest).collect();
        match all.is_empty() {
            true => "all packets".to_owned(),
            false => all.join(", "),
        }
    }
}

/// The bits that choose a rule's bucket in a hash table: "bucket by src & 0.0.0.255".
pub(super) fn bucket(protocol: &str, mask: u32, offset: i32) -> String {
    let key = Key {
        value: 0,
        mask,
        offset,
        is_next: false,
    };
    let said = Said::of(protocol, &[key]);
    match (said.fields.as_slice(), said.rest.is_empty()) {
        ([Compared { field, mask, .. }], true) => {
            let bits = match field.style {
                Style::Address4 => Ipv4Addr::from(u32::try_from(*mask).unwrap_or(0)).to_string(),
                Style::Address6 => Ipv6Addr::from(*mask).to_string(),
                _ => format!("{mask:#x}"),
            };
            format!("bucket by {} & {bits}", field.name)
        }
        _ => format!("hash mask {mask:08x} at {offset}"),
    }
}

/// Where "nexthdr" is for the rules of a linked table.
pub(super) fn next_header(mask: u32, shift: u32, offset: i32) -> String {
    match (mask, shift, offset) {
        (0x0f00, 6, 0) => "nexthdr: the end of the IP header".to_owned(),
        _ => format!("nexthdr: {mask:04x}>>{shift} at {offset}"),
    }
}

/// A rule of a policy with the words of u32 filters: "innermost-proto 6 innermost-proto-dst 22" becomes
/// "proto tcp, dst port 22".
pub(super) fn rule(what: &str) -> String {
    let words: Vec<&str> = what.split(' ').collect();
    let pairs = words.chunks(2).map(|pair| {
        let [key, value] = pair else {
            return pair.join(" ");
        };
        let (of, field) = match key.strip_prefix("innermost-") {
            Some(field) => ("", field),
            None => match key.strip_prefix("tunnel-") {
                Some(field) => ("tunnel ", field),
                None => ("outer ", *key),
            },
        };
        match field {
            "src" | "dst" => format!("{of}{field} {value}"),
            "proto-src" => format!("{of}src port {value}"),
            "proto-dst" => format!("{of}dst port {value}"),
            "proto" => {
                let number = value.parse().ok();
                let known = PROTOCOLS.iter().find(|(own, _)| Some(*own) == number);
                format!("{of}proto {}", known.map_or(*value, |(_, name)| *name))
            }
            // Only the outer header counts: "dscp ef", "vlan 100".
            _ => format!("{key} {value}"),
        }
    });
    pairs.collect::<Vec<_>>().join(", ")
}

impl Key {
    /// The key as tc prints it.
    fn words(&self) -> String {
        let next = if self.is_next { "nexthdr+" } else { "" };
        format!(
            "match {:08x}/{:08x} at {next}{}",
            self.value, self.mask, self.offset
        )
    }
}

/// The fields that a packet of `protocol` has, those that people ask for first.
fn fields_of(protocol: &str, header: &Header) -> Vec<Field> {
    let field = |name, start, width, style| Field {
        name,
        is_next: false,
        start,
        width,
        style,
    };
    let known = |field: Field| {
        let compared = header.look(&field)?;
        (compared.mask == whole(field.width)).then_some(compared.value)
    };
    let ether_type = field("type", -16, 16, Style::EtherType);
    let mut fields = vec![
        ether_type,
        field("dst mac", -112, 48, Style::Mac),
        field("src mac", -64, 48, Style::Mac),
    ];
    let (network, base) = match protocol {
        "ip" => (Some(IP), 0),
        "ipv6" => (Some(IPV6), 0),
        "all" => {
            let version = field("version", 0, 4, Style::Number);
            fields.push(version);
            let by_version = match known(version) {
                Some(4) => Some(IP),
                Some(6) => Some(IPV6),
                _ => None,
            };
            (known(ether_type).or(by_version), 0)
        }
        "802.1Q" | "802.1ad" => {
            let inner = field("inner type", 16, 16, Style::EtherType);
            fields.extend([
                field("vlan", 4, 12, Style::Number),
                field("priority", 0, 3, Style::Number),
                inner,
            ]);
            (known(inner), 32)
        }
        "ppp_ses" => {
            let inner = field("ppp", 48, 16, Style::Hex);
            fields.extend([field("session", 16, 16, Style::Number), inner]);
            let network = match known(inner) {
                Some(0x21) => Some(IP),
                Some(0x57) => Some(IPV6),
                _ => None,
            };
            (network, 64)
        }
        _ => (None, 0),
    };
    match network {
        Some(IP) => fields.extend(ip_fields(base, header)),
        Some(IPV6) => fields.extend(ipv6_fields(base, header)),
        _ => {}
    }
    fields
}

fn ip_fields(base: i64, header: &Header) -> Vec<Field> {
    let field = |name, start, width, style| Field {
        name,
        is_next: false,
        start: base + start,
        width,
        style,
    };
    let protocol = field("proto", 72, 8, Style::Protocol);
    let mut fields = vec![
        protocol,
        field("src", 96, 32, Style::Address4),
        field("dst", 128, 32, Style::Address4),
    ];
    fields.extend(transport(header, protocol, base + 160));
    fields.extend([
        field("tos", 8, 8, Style::TrafficClass),
        field("length", 16, 16, Style::Number),
        field("ttl", 64, 8, Style::Number),
        field("id", 32, 16, Style::Hex),
        field("header", 4, 4, Style::Words),
        field("fragment", 48, 16, Style::Fragment),
        field("version", 0, 4, Style::Version(4)),
    ]);
    fields
}

fn ipv6_fields(base: i64, header: &Header) -> Vec<Field> {
    let field = |name, start, width, style| Field {
        name,
        is_next: false,
        start: base + start,
        width,
        style,
    };
    let protocol = field("proto", 48, 8, Style::Protocol);
    let mut fields = vec![
        protocol,
        field("src", 64, 128, Style::Address6),
        field("dst", 192, 128, Style::Address6),
    ];
    fields.extend(transport(header, protocol, base + 320));
    fields.extend([
        field("tos", 4, 8, Style::TrafficClass),
        field("payload", 32, 16, Style::Number),
        field("hop limit", 56, 8, Style::Number),
        field("flow label", 12, 20, Style::Hex),
        field("version", 0, 4, Style::Version(6)),
    ]);
    fields
}

/// The fields behind the IP header, at `base` and at "nexthdr+0".
fn transport(header: &Header, protocol: Field, base: i64) -> Vec<Field> {
    let compared = header.look(&protocol);
    let number = compared.filter(|it| it.mask == whole(8)).map(|it| it.value);
    let mut fields = Vec::new();
    for (is_next, base) in [(false, base), (true, 0)] {
        let field = |name, start, width, style| Field {
            name,
            is_next,
            start: base + start,
            width,
            style,
        };
        if number.is_none_or(|number| WITH_PORTS.contains(&number)) {
            fields.push(field("src port", 0, 16, Style::Number));
            fields.push(field("dst port", 16, 16, Style::Number));
        }
        if number == Some(TCP) {
            fields.push(field("tcp flags", 104, 8, Style::TcpFlags));
        }
        if number.is_some_and(|number| ICMP.contains(&number)) {
            fields.push(field("icmp type", 0, 8, Style::Number));
            fields.push(field("icmp code", 8, 8, Style::Number));
        }
    }
    fields
}

impl Compared {
    /// The comparison in words; `None` if the protocol already says it.
    fn words(&self) -> Option<String> {
        let Self { field, value, mask } = *self;
        let name = field.name;
        let is_whole = mask == whole(field.width);
        let hex = || match is_whole {
            true => format!("{name} {value:#x}"),
            false => format!("{name} {value:#x}/{mask:#x}"),
        };
        let named = |names: &[(u128, &str)]| {
            let known = names.iter().find(|(number, _)| *number == value);
            known
                .filter(|_| is_whole)
                .map(|(_, word)| format!("{name} {word}"))
        };
        Some(match field.style {
            Style::Version(known) if is_whole && value == u128::from(known) => return None,
            Style::Hex | Style::Version(_) => hex(),
            Style::Number => self
                .range()
                .map_or_else(hex, |range| format!("{name} {range}")),
            Style::Words if is_whole => format!("{name} {} bytes", value * 4),
            Style::Words => hex(),
            Style::TrafficClass => match mask {
                0xfc => {
                    let class = u8::try_from(value).unwrap_or(0);
                    format!("dscp {}", Dscp::of(class))
                }
                _ => hex(),
            },
            Style::Fragment => fragment(value, mask).map_or_else(hex, str::to_owned),
            Style::Protocol => named(&PROTOCOLS)
                .or_else(|| is_whole.then(|| format!("{name} {value}")))
                .unwrap_or_else(hex),
            Style::EtherType => named(&ETHER_TYPES).unwrap_or_else(hex),
            Style::Address4 => {
                let address = |bits: u128| Ipv4Addr::from(u32::try_from(bits).unwrap_or(0));
                let network = prefix(mask, 32).map_or_else(
                    || format!("{}/{}", address(value), address(mask)),
                    |length| with_length(address(value).to_string(), length, 32),
                );
                format!("{name} {network}")
            }
            Style::Address6 => {
                let (address, bits) = (Ipv6Addr::from(value), Ipv6Addr::from(mask));
                let network = prefix(mask, 128).map_or_else(
                    || format!("{address}/{bits}"),
                    |length| with_length(address.to_string(), length, 128),
                );
                format!("{name} {network}")
            }
            Style::Mac if is_whole => format!("{name} {}", mac(value)),
            Style::Mac => format!("{name} {}/{}", mac(value), mac(mask)),
            Style::TcpFlags => tcp_flags(value, mask, is_whole),
        })
    }

    /// "22", or "1024-2047" where the mask leaves out the lowest bits; `None` if the values are no range.
    fn range(&self) -> Option<String> {
        let high = self.value | whole(self.field.width) & !self.mask;
        prefix(self.mask, self.field.width)?;
        Some(match high == self.value {
            true => self.value.to_string(),
            false => format!("{}-{high}", self.value),
        })
    }
}

/// The length of the prefix that a mask of `width` bits leaves; `None` if the mask has holes.
fn prefix(mask: u128, width: u32) -> Option<u32> {
    let length = mask.count_ones();
    let high = whole(width) & !whole(width - length.min(width));
    let high = if length == width { whole(width) } else { high };
    (mask == high).then_some(length)
}

fn with_length(address: String, length: u32, width: u32) -> String {
    match length == width {
        true => address,
        false => format!("{address}/{length}"),
    }
}

fn mac(value: u128) -> String {
    let bytes = &value.to_be_bytes()[10..];
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(":")
}

/// The flags and the fragment offset of IPv4.
fn fragment(value: u128, mask: u128) -> Option<&'static str> {
    match (value, mask) {
        (0, 0x3fff) => Some("no fragment"),
        (0, 0x1fff) => Some("no later fragment"),
        (0x2000, 0x3fff) => Some("first fragment"),
        (0x2000, 0x2000) => Some("more fragments"),
        (0x4000, 0x4000) => Some("do not fragment"),
        _ => None,
    }
}

/// "tcp flags syn", "tcp flags syn without ack", "tcp flags ack alone".
fn tcp_flags(value: u128, mask: u128, is_whole: bool) -> String {
    let list = |bits: u128| {
        let set = TCP_FLAGS.iter().enumerate();
        let set = set.filter(|(bit, _)| bits >> bit & 1 == 1);
        set.map(|(_, name)| *name).collect::<Vec<_>>().join("+")
    };
    let (set, clear) = (list(value), list(mask & !value));
    match (set.is_empty(), clear.is_empty()) {
        (true, _) => format!("tcp flags without {clear}"),
        (false, false) if is_whole => format!("tcp flags {set} alone"),
        (false, false) => format!("tcp flags {set} without {clear}"),
        (false, true) => format!("tcp flags {set}"),
    }
}

#[cfg(test)]
mod tests;
