//! Where a program keeps what it has read: registers while it walks over headers, and slots on its stack.
//!
//! The verifier has to follow every path through the headers. Offsets in the packet differ on each path, and a state
//! with another offset is a state that it checks again: five levels of tunnels would multiply. So the walk forgets what
//! the verifier knows of an offset where paths meet ([`Walk::forget`]): it stores 4 bytes where the verifier of Linux 6.1
//! and that of 6.18 keep no value, and loads them back.

use crate::asm::{Assembler, Label, Op, Reg, Test, Width};
use crate::needs::{FlowNeeds, Needs};

/// The packet's first byte, and the byte after its last one that is in one piece.
pub(crate) const DATA: Reg = Reg::R6;
pub(crate) const DATA_END: Reg = Reg::R7;
/// The offset of the next header, and of the end that the headers so far give.
pub(crate) const AT: Reg = Reg::R8;
pub(crate) const END: Reg = Reg::R9;
/// How many headers within tunnels were read.
pub(crate) const LEVEL: Reg = Reg::R5;
/// The frame pointer.
pub(crate) const FP: Reg = Reg::R10;

/// Slots below the frame pointer.
pub(crate) const CONTEXT: i16 = -8;
const PULLED: i16 = -16;
/// Four bytes each that begin in the middle of a slot: see [`Walk::forget`].
const FORGOTTEN_AT: i16 = -20;
pub(crate) const BASE: i16 = -28;
const FORGOTTEN_END: i16 = -52;
const FORGOTTEN_PROTOCOL: i16 = -60;
pub(crate) const TRAFFIC_CLASS: i16 = -40;
pub(crate) const VLAN: i16 = -48;
const OUTER: i16 = -112;
const INNER: i16 = -160;

/// Fields of a header's slots.
pub(crate) const SOURCE: i16 = 0;
pub(crate) const DESTINATION: i16 = 16;
pub(crate) const SMALL: i16 = 32;
pub(crate) const EXISTS: i16 = 40;

/// Fields of `struct __sk_buff`.
pub(crate) const SKB_LEN: i16 = 0;
pub(crate) const SKB_MARK: i16 = 8;
pub(crate) const SKB_VLAN_PRESENT: i16 = 20;
pub(crate) const SKB_VLAN_TCI: i16 = 24;
pub(crate) const SKB_PRIORITY: i16 = 32;
pub(crate) const SKB_CLASS: i16 = 72;
const SKB_DATA: i16 = 76;
const SKB_DATA_END: i16 = 80;

/// The furthest offset that is read; the verifier follows 16 bits.
const AT_MAX: i32 = 0xfe00;
/// How many bytes are put into one piece if a header is not.
const PULL: i32 = 512;
const PULL_DATA: i32 = 39;

/// One of the two headers that have slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Outer,
    Inner,
}

impl Slot {
    pub(crate) const fn base(self) -> i16 {
        match self {
            Slot::Outer => OUTER,
            Slot::Inner => INNER,
        }
    }
}

/// The part of a program that reads headers.
pub(crate) struct Walk {
    pub(crate) asm: Assembler,
    pub(crate) needs: Needs,
    /// Headers are read: choose the class.
    pub(crate) classify: Label,
    /// This program cannot tell.
    pub(crate) no_answer: Label,
    /// The innermost header is cut: there is none.
    pub(crate) cut: Label,
    /// A tunnel begins: protocol in R4.
    pub(crate) tunnel: Label,
    /// A UDP datagram to VXLAN's port begins.
    pub(crate) vxlan: Label,
    pull: Label,
    restart: Label,
}

impl Walk {
    /// Begins a program: keeps the context, finds the packet, and clears the slots.
    pub(crate) fn begin(needs: Needs) -> Walk {
        let mut asm = Assembler::new();
        asm.store(Width::Double, FP, CONTEXT, Reg::R1);
        asm.store_value(Width::Double, FP, PULLED, 0);
        let restart = asm.here();
        let labels = [(); 6].map(|()| asm.label());
        let [classify, no_answer, cut, tunnel, vxlan, pull] = labels;
        let mut walk = Walk {
            asm,
            needs,
            classify,
            no_answer,
            cut,
            tunnel,
            vxlan,
            pull,
            restart,
        };
        walk.asm.load(Width::Word, END, Reg::R1, SKB_LEN);
        walk.clear(Slot::Outer);
        walk.clear(Slot::Inner);
        walk.unknown(Reg::R0);
        for (slot, is_needed) in [(TRAFFIC_CLASS, needs.traffic_class), (VLAN, needs.vlan)] {
            if is_needed {
                walk.asm.store(Width::Double, FP, slot, Reg::R0);
            }
        }
        if needs.ip() || needs.vlan {
            walk.asm.load(Width::Word, DATA, Reg::R1, SKB_DATA);
            walk.asm.load(Width::Word, DATA_END, Reg::R1, SKB_DATA_END);
            walk.asm.set(AT, 0);
            walk.asm.set(LEVEL, 0);
        }
        walk
    }

    /// Ends the walk: what to do where a header is not in one piece, or cannot be read.
    pub(crate) fn end(&mut self, no_answer: u32) {
        self.asm.bind(self.pull);
        self.asm.load(Width::Double, Reg::R0, FP, PULLED);
        self.asm.jump_if(Test::Ne, Reg::R0, 0, self.no_answer);
        self.asm.store_value(Width::Double, FP, PULLED, 1);
        self.asm.load(Width::Double, Reg::R1, FP, CONTEXT);
        self.asm.load(Width::Word, Reg::R2, Reg::R1, SKB_LEN);
        let pull = self.asm.label();
        self.asm.jump_if(Test::Lt, Reg::R2, PULL, pull);
        self.asm.set(Reg::R2, PULL as u64);
        self.asm.bind(pull);
        self.asm.call(PULL_DATA);
        self.asm.load(Width::Double, Reg::R1, FP, CONTEXT);
        self.asm.jump(self.restart);
        self.asm.bind(self.no_answer);
        self.asm.set(Reg::R0, no_answer.into());
        self.asm.exit();
    }

    pub(crate) fn flow_needs(&self, slot: Slot) -> FlowNeeds {
        match slot {
            Slot::Outer => self.needs.outer,
            Slot::Inner => self.needs.inner,
        }
    }

    /// Sets a header's slots to 0, those that anything reads. Overwrites R0.
    ///
    /// The verifiers must not know that these are zeros: a slot with a known value is another state than one without,
    /// and each would be checked on its own. So [`Walk::unknown`] zeros are stored, here and in `header`.
    pub(crate) fn clear(&mut self, slot: Slot) {
        let needs = self.flow_needs(slot);
        self.unknown(Reg::R0);
        for (at, is_needed) in [
            (SOURCE, needs.source),
            (SOURCE + 8, needs.source),
            (DESTINATION, needs.destination),
            (DESTINATION + 8, needs.destination),
            (SMALL, needs.small),
            (EXISTS, needs.exists),
        ] {
            if is_needed {
                let place = slot.base() + at;
                self.asm.store(Width::Double, FP, place, Reg::R0);
            }
        }
    }

    /// Sets a register to a 0 that the verifiers do not know: they do not see that both operands are the same.
    pub(crate) fn unknown(&mut self, reg: Reg) {
        self.asm.mov(reg, END);
        self.asm.op(Op::Xor, reg, END);
    }

    /// Points R2 to the next `octets` bytes of the packet, or goes to `cut` if the headers say that there are fewer.
    /// Overwrites R0.
    pub(crate) fn need(&mut self, octets: i32, cut: Label) {
        let asm = &mut self.asm;
        asm.mov(Reg::R0, AT);
        asm.op_value(Op::Add, Reg::R0, octets);
        asm.jump_if_reg(Test::Gt, Reg::R0, END, cut);
        asm.jump_if(Test::Gt, AT, AT_MAX, self.no_answer);
        asm.mov(Reg::R2, DATA);
        asm.op(Op::Add, Reg::R2, AT);
        asm.mov(Reg::R0, Reg::R2);
        asm.op_value(Op::Add, Reg::R0, octets);
        asm.jump_if_reg(Test::Gt, Reg::R0, DATA_END, self.pull);
    }

    /// Makes all paths that meet here equal for the verifier.
    pub(crate) fn forget(&mut self) {
        for (reg, place) in [(AT, FORGOTTEN_AT), (END, FORGOTTEN_END)] {
            self.asm.store(Width::Word, FP, place, reg);
            self.asm.load(Width::Word, reg, FP, place);
        }
        // The verifier compares states only where a jump leads to; the kernel then removes this one.
        let next = self.asm.label();
        self.asm.jump(next);
        self.asm.bind(next);
    }

    /// Copies the protocol in R4, so that the verifier does not know its value.
    pub(crate) fn forgotten_protocol(&mut self, to: Reg) {
        self.asm.store(Width::Word, FP, FORGOTTEN_PROTOCOL, Reg::R4);
        self.asm.load(Width::Word, to, FP, FORGOTTEN_PROTOCOL);
    }

    /// As [`Walk::forget`], and the protocol in R4 too.
    pub(crate) fn forget_protocol(&mut self) {
        self.forgotten_protocol(Reg::R4);
        self.forget();
    }

    /// Goes to `label` if the register equals one of these.
    pub(crate) fn jump_if_any(&mut self, reg: Reg, values: &[i32], label: Label) {
        for &value in values {
            self.asm.jump_if(Test::Eq, reg, value, label);
        }
    }

    /// Goes on behind `AT + reg`, or to `cut` if that is after the end.
    pub(crate) fn skip(&mut self, reg: Reg, cut: Label) {
        self.asm.op(Op::Add, AT, reg);
        self.asm.jump_if_reg(Test::Gt, AT, END, cut);
    }
}
