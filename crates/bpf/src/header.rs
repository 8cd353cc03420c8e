//! Code that reads Ethernet and IP headers, in the order of `wire::flow`.

use crate::asm::{Label, Op, Reg, Test, Width};
use crate::frame::{
    AT, CONTEXT, DESTINATION, END, EXISTS, FP, SKB_VLAN_PRESENT, SKB_VLAN_TCI, SMALL, SOURCE, Slot,
    TRAFFIC_CLASS, VLAN, Walk,
};
use wire::flow::LEVELS_MAX;
use wire::ip::EXTENSIONS_MAX;

pub(crate) const ETHERTYPE_IPV4: i32 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: i32 = 0x86dd;
const ETHERTYPE_PPPOE: i32 = 0x8864;
/// 802.1Q, 802.1ad, and two older values.
const TAGS: [i32; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
const TAGS_MAX: usize = 4;

const TCP: i32 = 6;
pub(crate) const UDP: i32 = 17;
const FRAGMENT: i32 = 44;
const AUTHENTICATION: i32 = 51;
/// Protocols whose first 4 bytes are ports: TCP, UDP, SCTP, DCCP, UDP-Lite.
const WITH_PORTS: [i32; 5] = [TCP, UDP, 132, 33, 136];
/// Extension headers of IPv6, as in `wire::ip`.
const EXTENSIONS: [i32; 8] = [0, 43, FRAGMENT, AUTHENTICATION, 60, 135, 139, 140];
const L2TP_PORT: i32 = 1701;
const VXLAN_PORT: i32 = 4789;
/// Protocols of tunnels beside UDP: IPv4, IPv6, GRE, L2TPv3.
const TUNNELS: [i32; 4] = [4, 41, 47, 115];

/// The 8 bytes of an IPv6 address that an IPv4 address ends, without that, as they are in memory.
const MAPPED: u64 = u64::from_ne_bytes([0, 0, 0xff, 0xff, 0, 0, 0, 0]);

/// Where an Ethernet frame or a PPP frame leads.
#[derive(Clone, Copy)]
pub(crate) struct Ways {
    pub(crate) ipv4: Label,
    pub(crate) ipv6: Label,
    pub(crate) other: Label,
    pub(crate) cut: Label,
}

/// Where a header's code goes on; the protocol is in R4.
struct Ends {
    /// The header itself is bad.
    bad: Label,
    /// It has a flow without ports, and nothing more can be read.
    cut: Label,
    fragment: Label,
    ports: Label,
}

impl Walk {
    /// Reads the frame's Ethernet header and tags, then its IP packet.
    pub(crate) fn frame(&mut self, ip: Label) {
        if self.needs.vlan {
            let none = self.asm.label();
            self.asm
                .load(Width::Word, Reg::R0, Reg::R1, SKB_VLAN_PRESENT);
            self.asm.jump_if(Test::Eq, Reg::R0, 0, none);
            self.asm.load(Width::Word, Reg::R0, Reg::R1, SKB_VLAN_TCI);
            self.asm.op_value(Op::And, Reg::R0, 0xfff);
            self.asm.store(Width::Double, FP, VLAN, Reg::R0);
            self.asm.bind(none);
        }
        let (met, ppp) = (self.asm.label(), self.asm.label());
        let classify = self.classify;
        self.need(14, classify);
        self.asm.load_swapped(Width::Half, Reg::R4, Reg::R2, 12);
        self.asm.op_value(Op::Add, AT, 14);
        self.asm.jump_if(Test::Eq, Reg::R4, ETHERTYPE_IPV4, ip);
        let ways = Ways {
            ipv4: met,
            ipv6: met,
            other: classify,
            cut: classify,
        };
        self.tags(true, classify);
        self.typed(ways, ppp);
        self.asm.bind(ppp);
        // A frame too short for an IP header has no keys, whatever it begins with.
        self.ppp(ways, classify);
        self.asm.bind(met);
        self.forget();
        self.asm.jump(ip);
    }

    /// Reads an Ethernet header within a tunnel; `ppp` follows a PPPoE header.
    pub(crate) fn ethernet(&mut self, ways: Ways, ppp: Label) {
        self.need(14, ways.cut);
        self.asm.load_swapped(Width::Half, Reg::R4, Reg::R2, 12);
        self.asm.op_value(Op::Add, AT, 14);
        self.tags(false, ways.cut);
        self.typed(ways, ppp);
    }

    /// Skips tags, with the EtherType in R4. The kernel may have taken the frame's first one off.
    fn tags(&mut self, is_frame: bool, cut: Label) {
        let done = self.asm.label();
        let second = self.asm.label();
        for index in 0..TAGS_MAX {
            let tag = self.asm.label();
            self.jump_if_any(Reg::R4, &TAGS, tag);
            self.asm.jump(done);
            self.asm.bind(tag);
            if is_frame && index == 0 {
                self.asm.load(Width::Double, Reg::R1, FP, CONTEXT);
                self.asm
                    .load(Width::Word, Reg::R1, Reg::R1, SKB_VLAN_PRESENT);
                self.asm.jump_if(Test::Ne, Reg::R1, 0, second);
            }
            if is_frame && index == 1 {
                self.asm.bind(second);
            }
            self.need(4, cut);
            if is_frame && index == 0 && self.needs.vlan {
                self.asm.load(Width::Half, Reg::R0, Reg::R2, 0);
                let identifier = i32::from(0x0fff_u16.to_be());
                self.asm.op_value(Op::And, Reg::R0, identifier);
                self.asm.swap(Width::Half, Reg::R0);
                self.asm.store(Width::Double, FP, VLAN, Reg::R0);
            }
            self.asm.load_swapped(Width::Half, Reg::R4, Reg::R2, 2);
            self.asm.op_value(Op::Add, AT, 4);
        }
        if !is_frame {
            self.asm.bind(second);
        }
        self.asm.bind(done);
        self.forget();
    }

    /// What the EtherType in R4 announces.
    fn typed(&mut self, ways: Ways, ppp: Label) {
        self.asm
            .jump_if(Test::Eq, Reg::R4, ETHERTYPE_IPV4, ways.ipv4);
        self.asm
            .jump_if(Test::Eq, Reg::R4, ETHERTYPE_IPV6, ways.ipv6);
        self.asm
            .jump_if(Test::Ne, Reg::R4, ETHERTYPE_PPPOE, ways.other);
        self.need(6, ways.cut);
        self.asm.load_swapped(Width::Half, Reg::R0, Reg::R2, 0);
        self.asm.jump_if(Test::Ne, Reg::R0, 0x1100, ways.other);
        self.asm.op_value(Op::Add, AT, 6);
        self.asm.jump(ppp);
    }

    /// Reads the beginning of a PPP frame; one of fewer than 4 bytes goes to `short`.
    pub(crate) fn ppp(&mut self, ways: Ways, short: Label) {
        let bare = self.asm.label();
        self.need(4, short);
        self.asm.load_swapped(Width::Word, Reg::R4, Reg::R2, 0);
        self.asm.mov(Reg::R0, Reg::R4);
        self.asm.op_value(Op::Rsh, Reg::R0, 16);
        self.asm.jump_if(Test::Ne, Reg::R0, 0xff03, bare);
        self.asm.op_value(Op::Add, AT, 2);
        self.asm.op_word(Op::Lsh, Reg::R4, 16);
        self.asm.bind(bare);
        for (shift, octets) in [(24, 1), (16, 2)] {
            self.asm.mov(Reg::R0, Reg::R4);
            self.asm.op_value(Op::Rsh, Reg::R0, shift);
            for (protocol, way) in [(0x21, ways.ipv4), (0x57, ways.ipv6)] {
                let next = self.asm.label();
                self.asm.jump_if(Test::Ne, Reg::R0, protocol, next);
                self.asm.op_value(Op::Add, AT, octets);
                self.asm.jump(way);
                self.asm.bind(next);
            }
        }
        self.asm.jump(ways.other);
    }

    /// Reads the outermost IP header, of either version.
    pub(crate) fn outer(&mut self, ip: Label) {
        self.asm.bind(ip);
        let (ipv4, fragment, ports) = (self.asm.label(), self.asm.label(), self.asm.label());
        let ends = Ends {
            bad: self.classify,
            cut: fragment,
            fragment,
            ports,
        };
        self.need(20, ends.bad);
        self.asm.load(Width::Byte, Reg::R0, Reg::R2, 0);
        self.asm.op_value(Op::Rsh, Reg::R0, 4);
        self.asm.jump_if(Test::Eq, Reg::R0, 4, ipv4);
        self.asm.jump_if(Test::Ne, Reg::R0, 6, ends.bad);
        self.need(40, ends.bad);
        self.ipv6(Slot::Outer, &ends);
        self.asm.bind(ipv4);
        self.ipv4(Slot::Outer, &ends);
        self.finish(Slot::Outer, &ends);
    }

    /// Reads headers within tunnels until one is no tunnel's.
    pub(crate) fn inner(&mut self, ipv4: Label, ipv6: Label) {
        let (fragment, ports) = (self.asm.label(), self.asm.label());
        let ends = Ends {
            bad: self.cut,
            cut: self.cut,
            fragment,
            ports,
        };
        for (way, octets, version) in [(ipv6, 40, 6), (ipv4, 20, 4)] {
            self.asm.bind(way);
            self.forget();
            self.asm.op_value(Op::Add, Reg::R5, 1);
            let levels = LEVELS_MAX as i32;
            self.asm.jump_if(Test::Gt, Reg::R5, levels, ends.bad);
            self.need(octets, ends.bad);
            self.asm.load(Width::Byte, Reg::R0, Reg::R2, 0);
            self.asm.op_value(Op::Rsh, Reg::R0, 4);
            self.asm.jump_if(Test::Ne, Reg::R0, version, ends.bad);
            match version {
                6 => self.ipv6(Slot::Inner, &ends),
                _ => self.ipv4(Slot::Inner, &ends),
            }
        }
        self.finish(Slot::Inner, &ends);
    }

    /// An IPv4 header at R2.
    fn ipv4(&mut self, slot: Slot, ends: &Ends) {
        let asm = &mut self.asm;
        asm.load(Width::Byte, Reg::R3, Reg::R2, 0);
        asm.op_value(Op::And, Reg::R3, 0xf);
        asm.op_value(Op::Lsh, Reg::R3, 2);
        asm.jump_if(Test::Lt, Reg::R3, 20, ends.bad);
        asm.load_swapped(Width::Half, Reg::R4, Reg::R2, 2);
        let (total, whole) = (asm.label(), asm.label());
        asm.jump_if(Test::Ne, Reg::R4, 0, total);
        // A segment that the network card will split.
        asm.mov(Reg::R4, END);
        asm.op(Op::Sub, Reg::R4, AT);
        asm.bind(total);
        asm.jump_if_reg(Test::Gt, Reg::R3, Reg::R4, ends.bad);
        asm.op(Op::Add, Reg::R4, AT);
        asm.jump_if_reg(Test::Ge, Reg::R4, END, whole);
        asm.mov(END, Reg::R4);
        asm.bind(whole);
        if slot == Slot::Outer && self.needs.traffic_class {
            self.asm.load(Width::Byte, Reg::R0, Reg::R2, 1);
            self.asm.store(Width::Double, FP, TRAFFIC_CLASS, Reg::R0);
        }
        self.addresses4(slot);
        let asm = &mut self.asm;
        asm.load(Width::Byte, Reg::R4, Reg::R2, 9);
        asm.load_swapped(Width::Half, Reg::R0, Reg::R2, 6);
        asm.jump_if(Test::Set, Reg::R0, 0x3fff, ends.fragment);
        self.skip(Reg::R3, ends.cut);
        self.asm
            .jump_if(Test::Ne, Reg::R4, AUTHENTICATION, ends.ports);
        self.extensions(4, ends);
    }

    /// An IPv6 header at R2.
    fn ipv6(&mut self, slot: Slot, ends: &Ends) {
        if slot == Slot::Outer && self.needs.traffic_class {
            self.asm.load_swapped(Width::Half, Reg::R0, Reg::R2, 0);
            self.asm.op_value(Op::Rsh, Reg::R0, 4);
            self.asm.op_value(Op::And, Reg::R0, 0xff);
            self.asm.store(Width::Double, FP, TRAFFIC_CLASS, Reg::R0);
        }
        self.addresses6(slot);
        let asm = &mut self.asm;
        asm.load(Width::Byte, Reg::R4, Reg::R2, 6);
        asm.load_swapped(Width::Half, Reg::R0, Reg::R2, 4);
        asm.op_value(Op::Add, AT, 40);
        let whole = asm.label();
        asm.jump_if(Test::Eq, Reg::R0, 0, whole);
        asm.op(Op::Add, Reg::R0, AT);
        asm.jump_if_reg(Test::Ge, Reg::R0, END, whole);
        asm.mov(END, Reg::R0);
        asm.bind(whole);
        let extended = self.asm.label();
        self.jump_if_any(Reg::R4, &EXTENSIONS, extended);
        self.asm.jump(ends.ports);
        self.asm.bind(extended);
        self.extensions(6, ends);
    }

    fn addresses4(&mut self, slot: Slot) {
        let needs = self.flow_needs(slot);
        let (base, is_inner) = (slot.base(), slot == Slot::Inner);
        for (is_needed, field, at) in [
            (needs.source, SOURCE, 12),
            (needs.destination, DESTINATION, 16),
        ] {
            if !is_needed {
                continue;
            }
            self.asm.load(Width::Word, Reg::R0, Reg::R2, at);
            if cfg!(target_endian = "little") {
                self.asm.op_value(Op::Lsh, Reg::R0, 32);
            }
            self.asm.set(Reg::R1, MAPPED);
            self.asm.op(Op::Or, Reg::R0, Reg::R1);
            self.asm.swap(Width::Double, Reg::R0);
            self.asm.store(Width::Double, FP, base + field + 8, Reg::R0);
            if is_inner {
                self.unknown(Reg::R0);
                self.asm.store(Width::Double, FP, base + field, Reg::R0);
            }
        }
        if needs.exists {
            // The header's length, which is never 0, in any order of bytes.
            self.asm.mov(Reg::R0, Reg::R3);
            self.asm.swap(Width::Half, Reg::R0);
            self.asm.store(Width::Double, FP, base + EXISTS, Reg::R0);
        }
    }

    fn addresses6(&mut self, slot: Slot) {
        let needs = self.flow_needs(slot);
        let base = slot.base();
        if needs.exists {
            self.asm.set(Reg::R1, 0);
        }
        for (is_needed, field, at) in [
            (needs.source, SOURCE, 8),
            (needs.destination, DESTINATION, 24),
        ] {
            for half in [0, 8] {
                if is_needed || needs.exists {
                    self.asm.load(Width::Double, Reg::R0, Reg::R2, at + half);
                }
                if needs.exists {
                    self.asm.op(Op::Or, Reg::R1, Reg::R0);
                }
                if is_needed {
                    self.asm.swap(Width::Double, Reg::R0);
                    let place = base + field + half;
                    self.asm.store(Width::Double, FP, place, Reg::R0);
                }
            }
        }
        if needs.exists {
            self.asm.store(Width::Double, FP, base + EXISTS, Reg::R1);
        }
    }

    /// Skips AH, and in IPv6 extension headers, of the kind in R4.
    fn extensions(&mut self, version: u8, ends: &Ends) {
        self.asm.set(Reg::R3, 0);
        let next = self.asm.here();
        self.forget_protocol();
        self.asm
            .jump_if(Test::Eq, Reg::R3, EXTENSIONS_MAX as i32, ends.cut);
        self.asm.op_value(Op::Add, Reg::R3, 1);
        self.need(4, ends.cut);
        let skipped = self.asm.label();
        if version == 6 {
            let other = self.asm.label();
            self.asm.jump_if(Test::Ne, Reg::R4, FRAGMENT, other);
            self.asm.op_value(Op::Add, AT, 8);
            self.asm.jump_if_reg(Test::Gt, AT, END, ends.cut);
            self.asm.load(Width::Byte, Reg::R4, Reg::R2, 0);
            self.asm.load_swapped(Width::Half, Reg::R0, Reg::R2, 2);
            self.asm.jump_if(Test::Set, Reg::R0, 0xfff9, ends.fragment);
            self.asm.jump(skipped);
            self.asm.bind(other);
        }
        let (units, octets) = (self.asm.label(), self.asm.label());
        self.asm.load(Width::Byte, Reg::R1, Reg::R2, 1);
        self.asm.jump_if(Test::Ne, Reg::R4, AUTHENTICATION, units);
        self.asm.op_value(Op::Lsh, Reg::R1, 2);
        self.asm.jump(octets);
        self.asm.bind(units);
        self.asm.op_value(Op::Lsh, Reg::R1, 3);
        self.asm.bind(octets);
        self.asm.op_value(Op::Add, Reg::R1, 8);
        self.skip(Reg::R1, ends.cut);
        self.asm.load(Width::Byte, Reg::R4, Reg::R2, 0);
        self.asm.bind(skipped);
        match version {
            4 => self.jump_if_any(Reg::R4, &[AUTHENTICATION], next),
            _ => self.jump_if_any(Reg::R4, &EXTENSIONS, next),
        }
        self.forget();
        self.asm.jump(ends.ports);
    }

    /// Reads the ports, stores them, and decides whether this is a tunnel.
    fn finish(&mut self, slot: Slot, ends: &Ends) {
        let needs = self.flow_needs(slot);
        let (stored, with_ports, follow) =
            (self.asm.label(), self.asm.label(), self.needs.follow());
        self.asm.bind(ends.ports);
        if slot == Slot::Inner {
            self.forget();
        }
        if slot == Slot::Outer && !needs.small {
            // Nobody asks for its ports, unless they are a tunnel's.
            if follow {
                self.jump_if_any(Reg::R4, &[TCP], self.classify);
                self.jump_if_any(Reg::R4, &[UDP], with_ports);
            }
        } else {
            self.jump_if_any(Reg::R4, &WITH_PORTS, with_ports);
        }
        self.unknown(Reg::R3);
        self.asm.jump(stored);
        self.asm.bind(with_ports);
        self.need(4, ends.cut);
        self.asm.load_swapped(Width::Word, Reg::R3, Reg::R2, 0);
        self.asm.bind(stored);
        self.store_small(slot);
        if follow {
            let ports = self.asm.label();
            self.jump_if_any(Reg::R4, &[UDP], ports);
            self.jump_if_any(Reg::R4, &TUNNELS, self.tunnel);
            self.asm.jump(self.classify);
            self.asm.bind(ports);
            self.asm.mov(Reg::R0, Reg::R3);
            self.asm.op_value(Op::And, Reg::R0, 0xffff);
            self.asm.jump_if(Test::Eq, Reg::R0, VXLAN_PORT, self.vxlan);
            self.asm.jump_if(Test::Eq, Reg::R0, L2TP_PORT, self.tunnel);
            self.asm.op_value(Op::Rsh, Reg::R3, 16);
            self.asm.jump_if(Test::Eq, Reg::R3, L2TP_PORT, self.tunnel);
        }
        self.asm.jump(self.classify);
        self.asm.bind(ends.fragment);
        self.unknown(Reg::R3);
        self.store_small(slot);
        self.asm.jump(self.classify);
    }

    /// Stores the protocol in R4 and the ports in R3.
    fn store_small(&mut self, slot: Slot) {
        if self.flow_needs(slot).small {
            // A protocol that the verifier knows would be another state of every rule.
            self.forgotten_protocol(Reg::R0);
            self.asm.op_value(Op::Lsh, Reg::R0, 32);
            self.asm.op(Op::Or, Reg::R0, Reg::R3);
            let at = slot.base() + SMALL;
            self.asm.store(Width::Double, FP, at, Reg::R0);
        }
    }
}
