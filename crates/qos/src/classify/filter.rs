//! Rules in order, the first that matches wins.

use core::ops::Range;

use wire::flow::{Dscp, Flow, Keys};

use super::{FlowMatch, Match, Ports, Prefix, small};

/// Rules and their classes, as u32 and flower have them in Linux.
///
/// Most rules ask for a protocol and exact ports, and most packets fail there; that is one comparison for each rule.
/// The other conditions of a rule are a list of tests behind it, so a condition that no rule has costs nothing.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    rules: Vec<Rule>,
    tests: Vec<Test>,
    /// Whether any rule starts with each of the headers.
    starts_with: [bool; 3],
}

#[derive(Debug, Clone)]
struct Rule {
    /// The header whose protocol and ports it compares first, the bits of them, and their values.
    header: Header,
    mask: u64,
    value: u64,
    /// Its tests.
    tests: Range<usize>,
    class: u32,
}

/// The header that a condition reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Header {
    Outer = 0,
    Tunnel = 1,
    Innermost = 2,
}

#[derive(Debug, Clone, Copy)]
enum Test {
    /// Bits of protocol and ports.
    Small(Header, u64, u64),
    SourcePort(Header, Ports),
    DestinationPort(Header, Ports),
    Dscp(Dscp),
    Mark {
        value: u32,
        mask: u32,
    },
    Vlan(u16),
    Exists(Header),
    Source(Header, Addresses),
    Destination(Header, Addresses),
}

/// Bits of an address.
#[derive(Debug, Clone, Copy)]
struct Addresses {
    mask: u128,
    value: u128,
    /// Whether it excludes IPv4 addresses, which have the same bits as mapped IPv6 addresses.
    native: bool,
}

impl Filter {
    /// A filter with these rules and their classes, in order.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = (Match, u32)>) -> Filter {
        let mut filter = Filter::default();
        for (rule, class) in rules {
            filter.push(&rule, class);
        }
        filter
    }

    /// Adds a rule after the others.
    pub fn push(&mut self, rule: &Match, class: u32) {
        let headers = [
            (Header::Outer, &rule.outer),
            (Header::Tunnel, &rule.tunnel),
            (Header::Innermost, &rule.innermost),
        ];
        let mut exact = headers
            .into_iter()
            .map(|(header, asked)| (header, small_bits(asked)))
            .filter(|(_, (mask, _))| *mask != 0);
        let first = self.tests.len();
        let (header, (mask, value)) = exact.next().unwrap_or((Header::Outer, (0, 0)));
        let others = exact.map(|(header, (mask, value))| Test::Small(header, mask, value));
        self.tests.extend(others);
        self.starts_with[header as usize] = true;

        self.tests.extend(rule.dscp.map(Test::Dscp));
        let mark = rule.mark.map(|mark| Test::Mark {
            value: mark.value,
            mask: mark.mask,
        });
        self.tests.extend(mark);
        self.tests.extend(rule.vlan.map(Test::Vlan));
        for (header, asked) in headers {
            let source = asked.proto_src.filter(|ports| !ports.is_one());
            let destination = asked.proto_dst.filter(|ports| !ports.is_one());
            let source = source.map(|ports| Test::SourcePort(header, ports));
            let destination = destination.map(|ports| Test::DestinationPort(header, ports));
            self.tests.extend(source.into_iter().chain(destination));
            self.push_addresses(header, asked);
        }
        self.rules.push(Rule {
            header,
            mask,
            value,
            tests: first..self.tests.len(),
            class,
        });
    }

    fn push_addresses(&mut self, header: Header, asked: &FlowMatch) {
        let source = asked.src.map(Addresses::of);
        let destination = asked.dst.map(Addresses::of);
        // An address that is not all zeros exists only in a header that exists.
        let implied = [source, destination]
            .into_iter()
            .flatten()
            .any(|addresses| addresses.value != 0);
        if !asked.is_empty() && !implied {
            self.tests.push(Test::Exists(header));
        }
        let source = source.map(|addresses| Test::Source(header, addresses));
        let destination = destination.map(|addresses| Test::Destination(header, addresses));
        self.tests.extend(source.into_iter().chain(destination));
    }

    /// The class of the first rule that matches.
    #[must_use]
    #[inline]
    pub fn class(&self, keys: &Keys) -> Option<u32> {
        let [outer, tunnel, innermost] = self.starts_with;
        let smalls = [
            if outer { small(&keys.outer) } else { 0 },
            if tunnel { small(&keys.inner) } else { 0 },
            if innermost {
                small(keys.innermost())
            } else {
                0
            },
        ];
        for rule in &self.rules {
            if smalls[rule.header as usize] & rule.mask == rule.value
                && self.tests[rule.tests.clone()]
                    .iter()
                    .all(|test| test.holds(keys))
            {
                return Some(rule.class);
            }
        }
        None
    }

    /// Rules in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether no rule is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// The bits of [`small`] that are compared exactly, and their values.
fn small_bits(asked: &FlowMatch) -> (u64, u64) {
    let proto = asked
        .proto
        .map(|proto| (0xffff_ffff << 32, u64::from(proto) << 32));
    let port = |ports: Option<Ports>, shift: u32| {
        let one = ports.filter(|ports| ports.is_one());
        one.map(|ports| (0xffff << shift, u64::from(ports.low) << shift))
    };
    let parts = [proto, port(asked.proto_src, 16), port(asked.proto_dst, 0)];
    parts
        .into_iter()
        .flatten()
        .fold((0, 0), |(mask, value), part| {
            (mask | part.0, value | part.1)
        })
}

impl Header {
    #[inline(always)]
    fn of(self, keys: &Keys) -> &Flow {
        match self {
            Header::Outer => &keys.outer,
            Header::Tunnel => &keys.inner,
            Header::Innermost => keys.innermost(),
        }
    }
}

impl Test {
    #[inline(always)]
    fn holds(&self, keys: &Keys) -> bool {
        match *self {
            Test::Small(header, mask, value) => small(header.of(keys)) & mask == value,
            Test::SourcePort(header, ports) => ports.has(header.of(keys).source_port),
            Test::DestinationPort(header, ports) => ports.has(header.of(keys).destination_port),
            Test::Dscp(dscp) => Dscp::of(keys.traffic_class) == dscp,
            Test::Mark { value, mask } => (keys.mark ^ value) & mask == 0,
            Test::Vlan(vlan) => keys.vlan == vlan,
            Test::Exists(header) => header.of(keys).exists(),
            Test::Source(header, addresses) => addresses.has(header.of(keys).source),
            Test::Destination(header, addresses) => addresses.has(header.of(keys).destination),
        }
    }
}

impl Addresses {
    fn of(prefix: Prefix) -> Addresses {
        let (mask, value) = prefix.bits();
        Addresses {
            mask,
            value,
            native: prefix.address().is_ipv6(),
        }
    }

    #[inline(always)]
    fn has(&self, address: [u8; 16]) -> bool {
        let bits = u128::from_be_bytes(address);
        bits & self.mask == self.value && !(self.native && bits >> 32 == 0xffff)
    }
}
