//! Code that finds the packet behind a tunnel's header, in the order of `wire::flow`.

use crate::asm::{Label, Op, Reg, Test, Width};
use crate::frame::{AT, BASE, END, FP, Pass, Slot, Walk};
use wire::flow::LEVELS_MAX;

use crate::header::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, UDP, VXLAN, Ways};

/// Transparent Ethernet bridging, and PPP in GRE.
const ETHERTYPE_BRIDGING: i32 = 0x6558;
const ETHERTYPE_PPTP: i32 = 0x880b;

impl Walk {
    /// Follows tunnels, and the headers within.
    ///
    /// Each depth has code of its own: the verifier would follow a loop at each depth as if nothing were known of the
    /// one before, and it compares fewer states within loops.
    pub(crate) fn tunnels(&mut self) {
        let levels = match self.pass {
            Pass::First => 1,
            Pass::Whole => LEVELS_MAX,
        };
        let mut tunnel = self.tunnel;
        for level in 1..=levels {
            let [ipv4, ipv6] = [(); 2].map(|()| self.asm.label());
            let deeper = match self.pass {
                Pass::First if level == levels => self.beyond,
                _ => self.asm.label(),
            };
            self.follow(tunnel, ipv4, ipv6);
            self.inner(ipv4, ipv6, deeper);
            tunnel = deeper;
        }
        if self.pass == Pass::Whole {
            // A packet that is nested deeper counts as cut.
            self.follow(tunnel, self.cut, self.cut);
        }
        self.asm.bind(self.cut);
        self.clear(Slot::Inner);
        self.asm.jump(self.classify);
    }

    /// Follows the tunnel whose protocol is in R4, to a packet of IPv4 or IPv6.
    fn follow(&mut self, tunnel: Label, ipv4: Label, ipv6: Label) {
        let is_first = self.pass == Pass::First;
        let [gre, l2tp, vxlan, bridged, ppp] = [(); 5].map(|()| self.asm.label());
        let [v3, short] = match is_first {
            true => [self.beyond; 2],
            false => [l2tp, self.asm.label()],
        };
        let ways = Ways {
            ipv4,
            ipv6,
            other: self.classify,
            cut: self.cut,
        };
        self.asm.bind(tunnel);
        self.forget_whole();
        self.asm.jump_if(Test::Eq, Reg::R4, 4, ipv4);
        self.asm.jump_if(Test::Eq, Reg::R4, 41, ipv6);
        self.asm.jump_if(Test::Eq, Reg::R4, 47, gre);
        if !is_first {
            self.asm.jump_if(Test::Eq, Reg::R4, VXLAN, vxlan);
        }
        self.asm.jump_if(Test::Ne, Reg::R4, UDP.into(), v3);
        self.l2tp_over_udp(ways, v3, ppp);
        self.asm.bind(gre);
        self.gre(ways, bridged, ppp);
        if !is_first {
            self.asm.bind(vxlan);
            self.forget();
            self.vxlan(ways);
            self.asm.bind(bridged);
            self.forget();
            self.ethernet(ways, ppp);
        }
        self.asm.bind(ppp);
        self.forget_whole();
        self.ppp(ways, short);
        if !is_first {
            self.asm.bind(l2tp);
            self.l2tp_v3(ways);
            self.asm.bind(short);
            self.short_ppp(ways);
        }
    }

    /// GRE version 0, or version 1 (PPTP).
    fn gre(&mut self, ways: Ways, bridged: Label, ppp: Label) {
        self.need(4, ways.cut);
        let asm = &mut self.asm;
        asm.load_swapped(Width::Half, Reg::R4, Reg::R2, 0);
        asm.load_swapped(Width::Half, Reg::R3, Reg::R2, 2);
        // Checksum, key and sequence number are 4 bytes each.
        asm.set(Reg::R1, 4);
        for shift in [13, 11, 10] {
            asm.mov(Reg::R0, Reg::R4);
            asm.op_value(Op::Rsh, Reg::R0, shift);
            asm.op_value(Op::And, Reg::R0, 4);
            asm.op(Op::Add, Reg::R1, Reg::R0);
        }
        let pptp = asm.label();
        asm.mov(Reg::R0, Reg::R4);
        asm.op_value(Op::And, Reg::R0, 7);
        if self.pass == Pass::First {
            asm.jump_if(Test::Ne, Reg::R0, 0, self.beyond);
        } else {
            asm.jump_if(Test::Eq, Reg::R0, 1, pptp);
            asm.jump_if(Test::Ne, Reg::R0, 0, ways.other);
        }
        // Routing (RFC 1701).
        asm.jump_if(Test::Set, Reg::R4, 0x4000, ways.other);
        self.skip(Reg::R1, ways.cut);
        self.asm
            .jump_if(Test::Eq, Reg::R3, ETHERTYPE_IPV4, ways.ipv4);
        self.asm
            .jump_if(Test::Eq, Reg::R3, ETHERTYPE_IPV6, ways.ipv6);
        if self.pass == Pass::First {
            self.asm.jump(self.beyond);
            return;
        }
        self.asm
            .jump_if(Test::Eq, Reg::R3, ETHERTYPE_BRIDGING, bridged);
        self.asm.jump(ways.other);
        self.asm.bind(pptp);
        let asm = &mut self.asm;
        asm.jump_if(Test::Ne, Reg::R3, ETHERTYPE_PPTP, ways.other);
        // Without a sequence number it is only an acknowledgment.
        asm.mov(Reg::R0, Reg::R4);
        asm.op_value(Op::And, Reg::R0, 0x1000);
        asm.jump_if(Test::Eq, Reg::R0, 0, ways.other);
        asm.op_value(Op::And, Reg::R4, 0x80);
        asm.op_value(Op::Rsh, Reg::R4, 5);
        asm.op(Op::Add, Reg::R1, Reg::R4);
        self.skip(Reg::R1, ways.cut);
        self.asm.jump(ppp);
    }

    /// A UDP datagram to VXLAN's port, up to the Ethernet frame in it.
    fn vxlan(&mut self, ways: Ways) {
        self.need(16, ways.cut);
        self.asm.load(Width::Byte, Reg::R0, Reg::R2, 8);
        // The identifier of the network is valid.
        self.asm.op_value(Op::And, Reg::R0, 8);
        self.asm.jump_if(Test::Eq, Reg::R0, 0, ways.other);
        self.asm.op_value(Op::Add, AT, 16);
    }

    /// A PPP frame of fewer than 4 bytes: too short for a packet, so it is either cut or something else.
    fn short_ppp(&mut self, ways: Ways) {
        let (last, zero, address) = (self.asm.label(), self.asm.label(), self.asm.label());
        let packet = [0x21, 0x57];
        self.need(1, ways.cut);
        self.asm.load(Width::Byte, Reg::R4, Reg::R2, 0);
        self.jump_if_any(Reg::R4, &packet, ways.cut);
        self.asm.jump_if(Test::Eq, Reg::R4, 0, zero);
        self.asm.jump_if(Test::Eq, Reg::R4, 0xff, address);
        self.asm.jump(ways.other);
        self.asm.bind(zero);
        self.need(2, ways.cut);
        self.asm.load(Width::Byte, Reg::R4, Reg::R2, 1);
        self.jump_if_any(Reg::R4, &packet, ways.cut);
        self.asm.jump(ways.other);
        self.asm.bind(address);
        self.need(2, ways.cut);
        self.asm.load(Width::Byte, Reg::R4, Reg::R2, 1);
        self.asm.jump_if(Test::Eq, Reg::R4, 3, last);
        self.asm.jump(ways.other);
        self.asm.bind(last);
        self.need(3, ways.cut);
        self.asm.load(Width::Byte, Reg::R4, Reg::R2, 2);
        self.jump_if_any(Reg::R4, &[0, 0x21, 0x57, 0xff], ways.cut);
        self.asm.jump(ways.other);
    }

    /// A UDP datagram on L2TP's port.
    fn l2tp_over_udp(&mut self, ways: Ways, v3: Label, ppp: Label) {
        self.need(10, ways.cut);
        let asm = &mut self.asm;
        let (v2, no_offset) = (asm.label(), asm.label());
        asm.load_swapped(Width::Half, Reg::R3, Reg::R2, 8);
        asm.mov(Reg::R0, Reg::R3);
        asm.op_value(Op::And, Reg::R0, 0x800f);
        asm.jump_if(Test::Eq, Reg::R0, 2, v2);
        asm.jump_if(Test::Ne, Reg::R0, 3, ways.other);
        asm.set(Reg::R0, 12);
        self.skip(Reg::R0, ways.cut);
        self.asm.jump(v3);
        let asm = &mut self.asm;
        asm.bind(v2);
        asm.op_value(Op::Add, AT, 14);
        // Length, then Ns and Nr.
        for (shift, octets) in [(13, 2), (9, 4)] {
            asm.mov(Reg::R0, Reg::R3);
            asm.op_value(Op::Rsh, Reg::R0, shift);
            asm.op_value(Op::And, Reg::R0, octets);
            asm.op(Op::Add, AT, Reg::R0);
        }
        if self.pass == Pass::First {
            asm.jump_if(Test::Set, Reg::R3, 0x0200, self.beyond);
            self.within(ways.cut);
            self.asm.jump(ppp);
            return;
        }
        asm.op_value(Op::And, Reg::R3, 0x0200);
        asm.jump_if(Test::Eq, Reg::R3, 0, no_offset);
        self.need(2, ways.cut);
        self.asm.load_swapped(Width::Half, Reg::R0, Reg::R2, 0);
        self.asm.op_value(Op::Add, AT, 2);
        self.asm.op(Op::Add, AT, Reg::R0);
        self.asm.bind(no_offset);
        self.within(ways.cut);
        self.asm.jump(ppp);
    }

    /// A version 3 message: the first layout that fits, of cookies and sublayers of 0 to 12 bytes, PPP and Ethernet.
    fn l2tp_v3(&mut self, ways: Ways) {
        self.need(4, ways.cut);
        self.asm.load(Width::Word, Reg::R0, Reg::R2, 0);
        self.asm.jump_if(Test::Eq, Reg::R0, 0, ways.other);
        self.asm.op_value(Op::Add, AT, 4);
        // Stored so that the verifier forgets it: see `frame`.
        self.asm.store(Width::Word, FP, BASE, AT);
        self.asm.set(Reg::R3, 0);
        let guess = self.asm.here();
        self.asm.jump_if(Test::Gt, Reg::R3, 12, ways.other);
        self.payload();
        self.within(ways.other);
        let labels = [(); 7].map(|()| self.asm.label());
        let [
            ppp4,
            ppp6,
            is_ethernet,
            ethernet4,
            ethernet6,
            in_pppoe,
            next,
        ] = labels;
        let as_ppp = Ways {
            ipv4: ppp4,
            ipv6: ppp6,
            other: is_ethernet,
            cut: is_ethernet,
        };
        self.ppp(as_ppp, is_ethernet);
        for (way, packet, version) in [(ppp4, ways.ipv4, 4), (ppp6, ways.ipv6, 6)] {
            self.asm.bind(way);
            self.forget();
            self.rest(version, is_ethernet);
            self.asm.jump_if(Test::Eq, Reg::R1, 0, packet);
            self.asm.jump(is_ethernet);
        }
        self.asm.bind(is_ethernet);
        self.payload();
        let as_ethernet = Ways {
            ipv4: ethernet4,
            ipv6: ethernet6,
            other: next,
            cut: next,
        };
        self.ethernet(as_ethernet, in_pppoe);
        self.asm.bind(in_pppoe);
        self.forget();
        self.ppp(as_ethernet, next);
        for (way, packet, version) in [(ethernet4, ways.ipv4, 4), (ethernet6, ways.ipv6, 6)] {
            self.asm.bind(way);
            self.forget();
            self.rest(version, next);
            self.padded(packet, next);
        }
        self.asm.bind(next);
        self.asm.op_value(Op::Add, Reg::R3, 4);
        self.asm.jump(guess);
    }

    /// Goes to the payload, if R3 bytes are before it.
    fn payload(&mut self) {
        self.asm.load(Width::Word, AT, FP, BASE);
        self.asm.op(Op::Add, AT, Reg::R3);
    }

    /// Puts the number of bytes after the IP packet at `AT` into R1, or goes to `next` if that is no packet.
    fn rest(&mut self, version: i32, next: Label) {
        let octets = if version == 4 { 20 } else { 40 };
        self.need(octets, next);
        let asm = &mut self.asm;
        asm.load(Width::Byte, Reg::R0, Reg::R2, 0);
        if version == 4 {
            // Version 4 and at least 5 words.
            asm.jump_if(Test::Lt, Reg::R0, 0x45, next);
            asm.jump_if(Test::Gt, Reg::R0, 0x4f, next);
            asm.load_swapped(Width::Half, Reg::R0, Reg::R2, 2);
        } else {
            asm.op_value(Op::Rsh, Reg::R0, 4);
            asm.jump_if(Test::Ne, Reg::R0, 6, next);
            asm.load_swapped(Width::Half, Reg::R0, Reg::R2, 4);
            asm.op_value(Op::Add, Reg::R0, 40);
        }
        asm.mov(Reg::R1, END);
        asm.op(Op::Sub, Reg::R1, AT);
        asm.jump_if_reg(Test::Gt, Reg::R0, Reg::R1, next);
        asm.op(Op::Sub, Reg::R1, Reg::R0);
    }

    /// Goes to `packet` if R1 bytes may follow it: a short frame's padding, or a longer one's FCS. Else goes to `next`.
    fn padded(&mut self, packet: Label, next: Label) {
        let asm = &mut self.asm;
        let long = asm.label();
        asm.mov(Reg::R0, END);
        asm.load(Width::Word, Reg::R4, FP, BASE);
        asm.op(Op::Sub, Reg::R0, Reg::R4);
        asm.op(Op::Sub, Reg::R0, Reg::R3);
        asm.jump_if(Test::Gt, Reg::R0, 64, long);
        asm.jump_if(Test::Lt, Reg::R1, 46 + 1, packet);
        asm.jump(next);
        asm.bind(long);
        asm.jump_if(Test::Lt, Reg::R1, 4 + 1, packet);
        asm.jump(next);
    }
}
