//! Conditions as u32 filters, unless [`super::programs`] has a program for them (tc-u32(8)): words of the packet from the start of the IP header.
//!
//! Filters read a packet's outer header. Ports are read where a header without options ends; fragments have none, as in
//! [`wire::flow`]. Another kind of filter replaces [`filters_of`] alone.

use core::net::IpAddr;

use qos::classify::{FlowMatch, Mark, Match, Ports, Prefix};
use qos::tree::Classifier;

use super::{Compiler, ROOT, Refusal};
use crate::object::{Action, Filter, FilterKind, Handle, Key, Object};

/// EtherTypes of IPv4, IPv6, and any.
const IP: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ANY: u16 = 3;
/// Protocols with ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];
/// The most filters of a tree. u32 has 2,047 tables, and each filter has one.
pub(super) const FILTERS_MAX: usize = 2_000;

/// Why a mark cannot be asked for.
pub(super) const MARKLESS: &str =
    "mark: packets are redirected before the firewall marks them; give --lan IF";

/// A filter without its place: the EtherType, the words, the mark.
type Words = (u16, Vec<Key>, Option<(u32, u32)>);

impl Compiler<'_> {
    pub(super) fn add_rules(&mut self) -> Result<(), Refusal> {
        let spec = self.spec;
        let Some(Classifier::Rules(rules)) = &spec.classifier else {
            return Ok(());
        };
        if self.has_program(rules)? {
            return self.attach_rules(rules);
        }
        if !self.abilities.u32 {
            let message = "this kernel has no u32 filters (module cls_u32); load it, or leave out [[first]] and [[class]]";
            return self.refuse("rules", message);
        }
        let mut priority = 0;
        let mut names = self.policy.rule_names(self.place.is_up).into_iter();
        for (rule, class) in rules {
            let name = names.next().unwrap_or_default();
            let minor = *class as u16;
            if let Some(missing) = self.missing(rule) {
                return self.refuse(&self.name(minor), missing);
            }
            if rule.innermost != FlowMatch::default() {
                let line = "rules read the outer header of a packet in a tunnel, because u32 filters do not look into \
                            tunnels; eBPF programs do (kernel.classifier, module cls_bpf)";
                self.advise(line.to_owned());
            }
            for (protocol, keys, mark) in filters_of(rule) {
                priority += 1;
                if usize::from(priority) > FILTERS_MAX {
                    let message = format!(
                        "its rules and those before come to more than {FILTERS_MAX} filters; use prefixes, give proto \
                         with port, or use headend qos run"
                    );
                    return self.refuse(&self.name(minor), message);
                }
                let kind = FilterKind::U32 {
                    keys,
                    mark,
                    action: Action::Class(Handle::new(ROOT, minor)),
                };
                self.out.filter_names.push(name.to_owned());
                self.out.tree.push(Object::Filter(Filter {
                    parent: Handle::new(ROOT, 0),
                    priority,
                    protocol,
                    handle: 0,
                    chain: 0,
                    kind,
                }));
            }
        }
        Ok(())
    }

    /// The condition that u32 filters cannot express here.
    fn missing(&self, rule: &Match) -> Option<&'static str> {
        if rule.tunnel != FlowMatch::default() {
            return Some(
                "header = \"tunnel\": u32 filters do not look into tunnels; leave out classifier = \"u32\", load the module \
                 cls_bpf, or use headend qos run",
            );
        }
        if rule.vlan.is_some() {
            return Some(
                "vlan: u32 filters cannot read the tag; leave out classifier = \"u32\", load the module cls_bpf, or apply a \
                 policy to the VLAN's own interface",
            );
        }
        if self.is_markless(rule) {
            return Some(MARKLESS);
        }
        let is_left_out = rule.mark.is_some() && !self.abilities.u32_mark;
        is_left_out.then_some(
            "mark: this kernel's u32 filters compare no marks (CONFIG_CLS_U32_MARK); leave out classifier = \"u32\", or load \
             the module cls_bpf",
        )
    }

    /// Whether the rule asks for a mark where packets have none.
    pub(super) fn is_markless(&self, rule: &Match) -> bool {
        rule.mark.is_some() && self.place.is_redirected
    }
}

/// Number of filters of a rule.
pub(super) fn count(rule: &Match) -> usize {
    filters_of(rule).len()
}

/// The filters that together match what a rule matches.
fn filters_of(rule: &Match) -> Vec<Words> {
    let flow = match rule.outer == FlowMatch::default() {
        true => &rule.innermost,
        false => &rule.outer,
    };
    let mark = rule.mark.map(|Mark { value, mask }| (value & mask, mask));
    if *flow == FlowMatch::default() && rule.dscp.is_none() {
        let all = Key {
            offset: 0,
            mask: 0,
            value: 0,
        };
        return vec![(ANY, vec![all], mark)];
    }
    let mut filters = Vec::new();
    for protocol in [IP, IPV6] {
        let is_ipv4 = protocol == IP;
        let is_other = |prefix: Option<Prefix>| {
            prefix.is_some_and(|prefix| prefix.address().is_ipv4() != is_ipv4)
        };
        if is_other(flow.src) || is_other(flow.dst) {
            continue;
        }
        for (proto, source, destination) in transports(flow) {
            let mut header = Header::default();
            if let Some(dscp) = rule.dscp {
                let class = u32::from(dscp.traffic_class());
                let shift = if is_ipv4 { 16 } else { 20 };
                header.compare(0, 0xfc << shift, class << shift);
            }
            if let Some(proto) = proto {
                let (offset, shift) = if is_ipv4 { (8, 16) } else { (4, 8) };
                header.compare(offset, 0xff << shift, u32::from(proto) << shift);
            }
            let places = if is_ipv4 { [12, 16] } else { [8, 24] };
            for (prefix, offset) in [flow.src, flow.dst].into_iter().zip(places) {
                if let Some(prefix) = prefix {
                    header.address(offset, prefix);
                }
            }
            if source.is_some() || destination.is_some() {
                if is_ipv4 {
                    // A header of 20 bytes, and no fragment.
                    header.compare(0, 0x0f << 24, 0x05 << 24);
                    header.compare(4, 0x3fff, 0);
                }
                let at = if is_ipv4 { 20 } else { 40 };
                let ((source_mask, source), (mask, value)) =
                    (source.unwrap_or_default(), destination.unwrap_or_default());
                header.compare(at, u32::from(source_mask) << 16, u32::from(source) << 16);
                header.compare(at, mask.into(), value.into());
            }
            filters.push((protocol, header.0, mark));
        }
    }
    filters
}

/// A mask and a value.
type Masked = (u16, u16);

/// Protocol and ports, one filter for each. A range of ports takes several masks.
fn transports(flow: &FlowMatch) -> Vec<(Option<u8>, Option<Masked>, Option<Masked>)> {
    let each = |ports: Option<Ports>| match ports {
        None => vec![None],
        Some(ports) => masks(ports).into_iter().map(Some).collect(),
    };
    let (sources, destinations) = (each(flow.proto_src), each(flow.proto_dst));
    let has_ports = flow.proto_src.is_some() || flow.proto_dst.is_some();
    let protocols = match flow.proto {
        Some(proto) => vec![Some(proto)],
        None if has_ports => WITH_PORTS.map(Some).to_vec(),
        None => vec![None],
    };
    let mut all = Vec::new();
    for &proto in &protocols {
        for &source in &sources {
            all.extend(destinations.iter().map(|&to| (proto, source, to)));
        }
    }
    all
}

/// The fewest masked values that make up a range of ports.
fn masks(ports: Ports) -> Vec<Masked> {
    let mut out = Vec::new();
    let (mut low, high) = (u32::from(ports.low), u32::from(ports.high));
    while low <= high {
        let mut size = 1 << low.trailing_zeros().min(16);
        while low + size - 1 > high {
            size /= 2;
        }
        out.push((!(size - 1) as u16, low as u16));
        low += size;
    }
    out
}

/// The words that a filter compares, in the order of their places.
#[derive(Debug, Default)]
struct Header(Vec<Key>);

impl Header {
    fn compare(&mut self, offset: i32, mask: u32, value: u32) {
        let value = value & mask;
        match self.0.iter_mut().find(|key| key.offset == offset) {
            Some(key) => {
                key.mask |= mask;
                key.value |= value;
            }
            None => self.0.push(Key {
                offset,
                mask,
                value,
            }),
        }
    }

    fn address(&mut self, offset: i32, prefix: Prefix) {
        let octets = match prefix.address() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        for (n, word) in (0..).zip(octets.chunks_exact(4)) {
            let bits = u32::from(prefix.length()).saturating_sub(n * 32).min(32);
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            let value = word
                .iter()
                .fold(0, |value, &byte| value << 8 | u32::from(byte));
            if mask != 0 || n == 0 {
                self.compare(offset + 4 * n.cast_signed(), mask, value);
            }
        }
    }
}
