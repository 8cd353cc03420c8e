//! Code that tries rules in order.

use qos::classify::{FlowMatch, Match, Ports, Prefix};

use crate::answer::{Chooser, INNERMOST};
use crate::asm::{Label, Op, Reg, Test, Width};
use crate::frame::{DESTINATION, EXISTS, FP, SMALL, SOURCE, Slot, TRAFFIC_CLASS, VLAN};
use crate::hosts::Hosts;

/// A header that rules ask for: its slots, and the register that holds its protocol and ports.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) base: Reg,
    pub(crate) at: i16,
    small: Reg,
    pub(crate) of: fn(&Match) -> &FlowMatch,
}

pub(crate) const HEADERS: [Header; 3] = [
    Header {
        base: FP,
        at: Slot::Outer.base(),
        small: Reg::R6,
        of: |rule| &rule.outer,
    },
    Header {
        base: FP,
        at: Slot::Inner.base(),
        small: Reg::R7,
        of: |rule| &rule.tunnel,
    },
    Header {
        base: INNERMOST,
        at: 0,
        small: Reg::R8,
        of: |rule| &rule.innermost,
    },
];

const PROTO: u64 = 0xffff_ffff << 32;

impl Chooser<'_> {
    pub(crate) fn rules(&mut self, rules: &[(Match, u32)]) {
        for header in HEADERS {
            if rules.iter().any(|(rule, _)| has_small((header.of)(rule))) {
                self.hold(header);
            }
        }
        let mut rest = rules;
        while let Some((rule, class)) = rest.first() {
            if let Some((hosts, after)) = Hosts::first_of(rest) {
                self.search(&hosts);
                rest = after;
                continue;
            }
            let next = self.asm.label();
            for header in HEADERS {
                self.flow(header, (header.of)(rule), next);
            }
            self.others(rule, next);
            self.class(*class);
            self.asm.bind(next);
            rest = &rest[1..];
        }
        self.none();
    }

    /// Keeps a header's protocol and ports in a register. Without such a header, it has a protocol that no rule names.
    fn hold(&mut self, header: Header) {
        let exists = self.asm.label();
        let (small, base) = (header.small, header.base);
        self.asm.load(Width::Double, small, base, header.at + SMALL);
        self.asm.load_apart(Reg::R0, base, header.at + EXISTS);
        self.asm.jump_if(Test::Ne, Reg::R0, 0, exists);
        self.asm.set(small, u64::MAX);
        self.asm.bind(exists);
    }

    /// Goes to `next` unless the header meets the conditions.
    fn flow(&mut self, header: Header, asked: &FlowMatch, next: Label) {
        let (mask, value) = small_bits(asked);
        if mask != 0 {
            // (small ^ value) & mask: no bit may be left.
            self.asm.set(Reg::R0, value);
            self.asm.op(Op::Xor, Reg::R0, header.small);
            self.asm.set(Reg::R1, mask);
            self.asm.op(Op::And, Reg::R0, Reg::R1);
            self.asm.jump_if(Test::Ne, Reg::R0, 0, next);
        }
        // An address that is not all zeros exists only in a header that exists.
        let prefixes = [(asked.src, SOURCE), (asked.dst, DESTINATION)];
        let implied = prefixes
            .into_iter()
            .any(|(prefix, _)| prefix.is_some_and(|prefix| prefix.bits().1 != 0));
        if !asked.is_empty() && !implied && mask & PROTO == 0 {
            self.asm
                .load_apart(Reg::R0, header.base, header.at + EXISTS);
            self.asm.jump_if(Test::Eq, Reg::R0, 0, next);
        }
        for (ports, shift) in [(asked.proto_src, 16), (asked.proto_dst, 0)] {
            if let Some(ports) = ports.filter(|ports| ports.low != ports.high) {
                self.ports(header, ports, shift, next);
            }
        }
        for (prefix, field) in prefixes {
            if let Some(prefix) = prefix {
                self.prefix(header, prefix, field, next);
            }
        }
    }

    fn ports(&mut self, header: Header, ports: Ports, shift: i32, next: Label) {
        self.asm.mov(Reg::R0, header.small);
        self.asm.op_value(Op::Rsh, Reg::R0, shift);
        self.asm.op_value(Op::And, Reg::R0, 0xffff);
        self.asm.jump_if(Test::Lt, Reg::R0, ports.low.into(), next);
        self.asm.jump_if(Test::Gt, Reg::R0, ports.high.into(), next);
    }

    fn prefix(&mut self, header: Header, prefix: Prefix, field: i16, next: Label) {
        let (mask, value) = prefix.bits();
        let at = header.at + field;
        for (shift, half) in [(64, 0), (0, 8)] {
            let (mask, value) = ((mask >> shift) as u64, (value >> shift) as u64);
            if mask == 0 {
                continue;
            }
            self.asm.load_apart(Reg::R0, header.base, at + half);
            self.masked(Reg::R0, mask);
            if value == 0 {
                self.asm.jump_if(Test::Ne, Reg::R0, 0, next);
            } else {
                self.asm.set(Reg::R1, value);
                self.asm.jump_if_reg(Test::Ne, Reg::R0, Reg::R1, next);
            }
        }
        // IPv4 addresses have the bits of mapped ones, which no prefix of IPv6 contains here.
        if prefix.address().is_ipv6() && value >> 64 == 0 {
            let native = self.asm.label();
            self.asm.load_apart(Reg::R0, header.base, at);
            self.asm.jump_if(Test::Ne, Reg::R0, 0, native);
            self.asm.load(Width::Double, Reg::R0, header.base, at + 8);
            self.asm.op_value(Op::Rsh, Reg::R0, 32);
            self.asm.jump_if(Test::Eq, Reg::R0, 0xffff, next);
            self.asm.bind(native);
        }
    }

    /// Conditions that are on no header.
    fn others(&mut self, rule: &Match, next: Label) {
        if let Some(dscp) = rule.dscp {
            self.asm.load(Width::Double, Reg::R0, FP, TRAFFIC_CLASS);
            self.asm.op_value(Op::Rsh, Reg::R0, 2);
            let value = i32::from(dscp.value());
            self.asm.jump_if(Test::Ne, Reg::R0, value, next);
        }
        if let Some(mark) = rule.mark {
            self.mark(Reg::R0);
            self.asm.op_word(Op::Xor, Reg::R0, mark.value);
            self.asm.op_word(Op::And, Reg::R0, mark.mask);
            self.asm.jump_if(Test::Ne, Reg::R0, 0, next);
        }
        if let Some(vlan) = rule.vlan {
            self.asm.load(Width::Double, Reg::R0, FP, VLAN);
            self.asm.jump_if(Test::Ne, Reg::R0, vlan.into(), next);
        }
    }
}

fn has_small(asked: &FlowMatch) -> bool {
    asked.proto.is_some() || asked.proto_src.is_some() || asked.proto_dst.is_some()
}

/// The bits of protocol and ports that are compared exactly, and their values.
fn small_bits(asked: &FlowMatch) -> (u64, u64) {
    let proto = asked.proto.map(|proto| (PROTO, u64::from(proto) << 32));
    let port = |ports: Option<Ports>, shift: u32| {
        let one = ports.filter(|ports| ports.low == ports.high);
        one.map(|ports| (0xffff << shift, u64::from(ports.low) << shift))
    };
    let parts = [proto, port(asked.proto_src, 16), port(asked.proto_dst, 0)];
    let parts = parts.into_iter().flatten();
    parts.fold((0, 0), |(mask, value), part| {
        (mask | part.0, value | part.1)
    })
}
