//! Code that reads Ethernet and IP headers, in the order of `wire::flow`.

use crate::asm::{Label, Op, Reg, Test, Width};
use crate::frame::{
    AT, CONTEXT, DESTINATION, END, EXISTS, EXTENSIONS_HIGH, EXTENSIONS_LOW, FP, Pass,
    SKB_VLAN_PRESENT, SKB_VLAN_TCI, SMALL, SOURCE, Slot, TRAFFIC_CLASS, VLAN, Walk,
};
use wire::ip::EXTENSIONS_MAX;

use crate::Link;

pub(crate) const ETHERTYPE_IPV4: i32 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: i32 = 0x86dd;
const ETHERTYPE_PPPOE: i32 = 0x8864;
/// 802.1Q, 802.1ad, and two older values.
const TAGS: [i32; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
const TAGS_MAX: usize = 4;

const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
/// Protocols whose first 4 bytes are ports: TCP, UDP, SCTP, DCCP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [TCP, UDP, 132, 33, 136];
/// Extension headers of IPv6, as in `wire::ip`.
const EXTENSIONS: [u8; 8] = [0, 43, FRAGMENT, AUTHENTICATION, 60, 135, 139, 140];
const L2TP_PORT: i32 = 1701;
const VXLAN_PORT: i32 = 4789;
/// Stands for VXLAN where a tunnel's protocol is asked for; no protocol of IP has this number.
pub(crate) const VXLAN: i32 = 256;
/// Protocols of tunnels beside UDP: IPv4, IPv6, GRE, L2TPv3.
const TUNNELS: [u8; 4] = [4, 41, 47, 115];

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
    extensions: Label,
    ports: Label,
}

impl Walk {
    /// Reads the packet, as far as the pass does.
    pub(crate) fn read(&mut self, link: Link) {
        let ip = self.asm.label();
        if link == Link::Ethernet {
            self.frame(ip);
        }
        if self.needs.ip() {
            self.outer(ip);
            if self.needs.follow() {
                self.tunnels();
            }
        } else {
            // The frame's tags are all that is read.
            self.asm.bind(ip);
            self.asm.jump(self.classify);
        }
    }

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
        if self.pass == Pass::First {
            // Most frames have address and control fields, and IPv4.
            let other = self.asm.label();
            self.asm.set(Reg::R0, 0xff03_0021);
            self.asm.jump_if_reg(Test::Ne, Reg::R4, Reg::R0, other);
            self.asm.op_value(Op::Add, AT, 4);
            self.asm.jump(ways.ipv4);
            self.asm.bind(other);
        }
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
        let labels = [(); 4].map(|()| self.asm.label());
        let [ipv4, fragment, extensions, ports] = labels;
        let ends = Ends {
            bad: self.classify,
            cut: fragment,
            fragment,
            extensions,
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
        self.finish(Slot::Outer, &ends, self.tunnel);
    }

    /// Reads the header within a tunnel. If it is a tunnel's too, goes on at `tunnel`.
    pub(crate) fn inner(&mut self, ipv4: Label, ipv6: Label, tunnel: Label) {
        let labels = [(); 3].map(|()| self.asm.label());
        let [fragment, extensions, ports] = labels;
        let ends = Ends {
            bad: self.cut,
            cut: self.cut,
            fragment,
            extensions,
            ports,
        };
        for (way, octets, version) in [(ipv6, 40, 6), (ipv4, 20, 4)] {
            self.asm.bind(way);
            self.forget_whole();
            self.need(octets, ends.bad);
            self.asm.load(Width::Byte, Reg::R0, Reg::R2, 0);
            self.asm.op_value(Op::Rsh, Reg::R0, 4);
            self.asm.jump_if(Test::Ne, Reg::R0, version, ends.bad);
            match version {
                6 => self.ipv6(Slot::Inner, &ends),
                _ => self.ipv4(Slot::Inner, &ends),
            }
        }
        self.finish(Slot::Inner, &ends, tunnel);
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
        self.left(Reg::R4);
        let asm = &mut self.asm;
        asm.jump_if(Test::SignedLt, Reg::R0, 1, whole);
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
        let asm = &mut self.asm;
        asm.jump_if(Test::Ne, Reg::R4, AUTHENTICATION.into(), ends.ports);
        self.extended(&[AUTHENTICATION], ends);
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
        asm.load_swapped(Width::Half, Reg::R1, Reg::R2, 4);
        asm.op_value(Op::Add, AT, 40);
        let whole = asm.label();
        asm.jump_if(Test::Eq, Reg::R1, 0, whole);
        asm.op(Op::Add, Reg::R1, AT);
        self.left(Reg::R1);
        let asm = &mut self.asm;
        asm.jump_if(Test::SignedLt, Reg::R0, 1, whole);
        asm.mov(END, Reg::R1);
        asm.bind(whole);
        let extended = self.asm.label();
        self.jump_if_protocol(Reg::R4, &EXTENSIONS, extended);
        self.asm.jump(ends.ports);
        self.asm.bind(extended);
        self.extended(&EXTENSIONS, ends);
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
            self.arrange(Reg::R0);
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

    /// Arranges half of an address, as it was loaded, as the classifier reads it.
    fn arrange(&mut self, reg: Reg) {
        if cfg!(target_endian = "little") != self.needs.words {
            self.asm.reverse(reg);
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
                    self.arrange(Reg::R0);
                    let place = base + field + half;
                    self.asm.store(Width::Double, FP, place, Reg::R0);
                }
            }
        }
        if needs.exists {
            self.asm.store(Width::Double, FP, base + EXISTS, Reg::R1);
        }
    }

    /// Leaves extension headers of these kinds to [`Walk::extensions`].
    fn extended(&mut self, kinds: &[u8], ends: &Ends) {
        if self.pass == Pass::First {
            self.asm.jump(self.beyond);
            return;
        }
        for (slot, from) in [(EXTENSIONS_LOW, 0), (EXTENSIONS_HIGH, 128)] {
            let near = kinds.iter().filter(|&&kind| kind & 0xc0 == from);
            let bits: u64 = near.map(|kind| 1 << (kind & 0x3f)).sum();
            self.asm.set(Reg::R0, bits);
            self.asm.store(Width::Double, FP, slot, Reg::R0);
        }
        self.asm.jump(ends.extensions);
    }

    /// Skips extension headers, the first of the kind in R4.
    ///
    /// One path leads through the loop, without branches but those that leave it, so that the verifier follows as many
    /// paths as headers, and no more.
    fn extensions(&mut self, ends: &Ends) {
        self.asm.bind(ends.extensions);
        self.asm.set(Reg::R3, 0);
        let next = self.asm.here();
        self.forget();
        self.asm
            .jump_if(Test::Eq, Reg::R3, EXTENSIONS_MAX as i32, ends.cut);
        self.asm.op_value(Op::Add, Reg::R3, 1);
        self.need(4, ends.cut);
        self.asm.load(Width::Byte, Reg::R1, Reg::R2, 1);
        // A fragment header has 8 bytes, and AH a length in words less two; others count units of 8 bytes less one.
        self.equal(Reg::R5, Reg::R4, FRAGMENT.into());
        self.asm.mov(Reg::R0, Reg::R5);
        self.asm.op_value(Op::Sub, Reg::R0, 1);
        self.asm.op(Op::And, Reg::R1, Reg::R0);
        self.equal(Reg::R0, Reg::R4, AUTHENTICATION.into());
        self.asm.op_value(Op::Lsh, Reg::R1, 3);
        self.asm.op(Op::Rsh, Reg::R1, Reg::R0);
        self.asm.op_value(Op::Add, Reg::R1, 8);
        self.skip(Reg::R1, ends.cut);
        self.asm.load(Width::Byte, Reg::R4, Reg::R2, 0);
        self.asm.load_swapped(Width::Half, Reg::R0, Reg::R2, 2);
        self.asm.op_value(Op::And, Reg::R0, 0xfff9);
        self.asm.op(Op::Mul, Reg::R0, Reg::R5);
        self.asm.jump_if(Test::Ne, Reg::R0, 0, ends.fragment);
        // Bit R4 of the kinds of extension headers.
        self.asm.mov(Reg::R2, Reg::R4);
        self.asm.op_value(Op::Rsh, Reg::R2, 6);
        self.asm.set(Reg::R5, 0);
        for (slot, from) in [(EXTENSIONS_LOW, 0), (EXTENSIONS_HIGH, 128 >> 6)] {
            self.equal(Reg::R0, Reg::R2, from);
            self.asm.load(Width::Double, Reg::R1, FP, slot);
            self.asm.op(Op::Mul, Reg::R1, Reg::R0);
            self.asm.op(Op::Or, Reg::R5, Reg::R1);
        }
        self.asm.mov(Reg::R1, Reg::R4);
        self.asm.op_value(Op::And, Reg::R1, 0x3f);
        self.asm.op(Op::Rsh, Reg::R5, Reg::R1);
        self.asm.jump_if(Test::Set, Reg::R5, 1, next);
    }

    /// `to` is 1 if the register has this value of at most 32 bits, else 0.
    fn equal(&mut self, to: Reg, reg: Reg, value: i32) {
        self.asm.mov(to, reg);
        self.asm.op_value(Op::Xor, to, value);
        self.asm.op_value(Op::Sub, to, 1);
        self.asm.op_value(Op::Rsh, to, 63);
    }

    /// Skips extension headers, reads the ports, stores them, and decides whether this is a tunnel.
    fn finish(&mut self, slot: Slot, ends: &Ends, tunnel: Label) {
        if self.pass == Pass::Whole {
            self.extensions(ends);
        }
        let needs = self.flow_needs(slot);
        let (stored, with_ports, follow) =
            (self.asm.label(), self.asm.label(), self.needs.follow());
        self.asm.bind(ends.ports);
        self.forget_whole();
        if slot == Slot::Outer && !needs.small {
            // Nobody asks for its ports, unless they are a tunnel's.
            if follow {
                self.jump_if_any(Reg::R4, &[TCP.into()], self.classify);
                self.jump_if_any(Reg::R4, &[UDP.into()], with_ports);
            }
        } else {
            self.jump_if_protocol(Reg::R4, &WITH_PORTS, with_ports);
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
            self.jump_if_any(Reg::R4, &[UDP.into()], ports);
            self.jump_if_protocol(Reg::R4, &TUNNELS, tunnel);
            self.asm.jump(self.classify);
            self.asm.bind(ports);
            self.asm.mov(Reg::R0, Reg::R3);
            self.asm.op_value(Op::And, Reg::R0, 0xffff);
            let vxlan = match self.pass {
                Pass::First => self.beyond,
                Pass::Whole => self.asm.label(),
            };
            self.asm.jump_if(Test::Eq, Reg::R0, VXLAN_PORT, vxlan);
            self.asm.jump_if(Test::Eq, Reg::R0, L2TP_PORT, tunnel);
            self.asm.op_value(Op::Rsh, Reg::R3, 16);
            self.asm.jump_if(Test::Eq, Reg::R3, L2TP_PORT, tunnel);
            self.asm.jump(self.classify);
            if self.pass == Pass::Whole {
                self.asm.bind(vxlan);
                self.asm.set(Reg::R4, VXLAN as u64);
                self.asm.jump(tunnel);
            }
        } else {
            self.asm.jump(self.classify);
        }
        self.asm.bind(ends.fragment);
        self.unknown(Reg::R3);
        self.store_small(slot);
        self.asm.jump(self.classify);
    }

    /// Stores the protocol in R4 and the ports in R3.
    fn store_small(&mut self, slot: Slot) {
        if self.flow_needs(slot).small {
            self.asm.mov(Reg::R0, Reg::R4);
            self.asm.op_value(Op::Lsh, Reg::R0, 32);
            self.asm.op(Op::Or, Reg::R0, Reg::R3);
            let at = slot.base() + SMALL;
            self.asm.store(Width::Double, FP, at, Reg::R0);
        }
    }
}
