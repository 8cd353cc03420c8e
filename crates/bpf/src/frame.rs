//! Where a program keeps what it has read: registers while it walks over headers, and slots on its stack.
//!
//! A program reads a packet in one of two passes. The first reads what most packets have, up to one header in a tunnel,
//! and only in the packet's first piece. Whatever is beyond that starts the whole pass, from the beginning.
//!
//! The verifier follows every path through the headers, and each state of registers and stack that differs from those it
//! has seen at the same instruction. Three things keep these states few, on Linux 6.1 and 6.18. No loop contains another
//! one, because within a loop the verifier compares few states. [`Walk::forget`] hides what is known of an offset where
//! paths meet in the whole pass: it stores 4 bytes where the verifiers keep no value, and loads them back. What is stored
//! for the classifier is unknown to the verifier, zeros too ([`Walk::unknown`]), and so is the end of the headers: it is
//! only subtracted from, never compared itself.

use crate::asm::{Assembler, Label, Op, Reg, Test, Width};
use crate::needs::{FlowNeeds, Needs};

/// The packet's first byte, and the byte after its last one that is in one piece.
pub(crate) const DATA: Reg = Reg::R6;
pub(crate) const DATA_END: Reg = Reg::R7;
/// The offset of the next header, and of the end that the headers so far give.
pub(crate) const AT: Reg = Reg::R8;
pub(crate) const END: Reg = Reg::R9;
/// The frame pointer.
pub(crate) const FP: Reg = Reg::R10;

/// Slots below the frame pointer.
pub(crate) const CONTEXT: i16 = -8;
/// Extension headers of the IP version that is read: bits of protocols from 0 on, and from 128 on.
pub(crate) const EXTENSIONS_LOW: i16 = -16;
pub(crate) const EXTENSIONS_HIGH: i16 = -56;
/// Four bytes each that begin in the middle of a slot: see [`Walk::forget`].
const FORGOTTEN_AT: i16 = -20;
pub(crate) const BASE: i16 = -28;
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
/// How many bytes the whole pass has in one piece.
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

/// How much of a packet is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    First,
    Whole,
}

/// The part of a program that reads headers.
pub(crate) struct Walk {
    pub(crate) asm: Assembler,
    pub(crate) needs: Needs,
    pub(crate) pass: Pass,
    /// Headers are read: choose the class.
    pub(crate) classify: Label,
    /// The innermost header is cut: there is none.
    pub(crate) cut: Label,
    /// A tunnel begins: protocol in R4.
    pub(crate) tunnel: Label,
    /// This pass does not read more.
    pub(crate) beyond: Label,
    no_answer: Label,
}

impl Walk {
    /// Begins a program: keeps the context.
    pub(crate) fn new(needs: Needs) -> Walk {
        let mut asm = Assembler::new();
        asm.store(Width::Double, FP, CONTEXT, Reg::R1);
        let [classify, no_answer, cut, tunnel, beyond] = [(); 5].map(|()| asm.label());
        Walk {
            asm,
            needs,
            pass: Pass::First,
            classify,
            cut,
            tunnel,
            beyond,
            no_answer,
        }
    }

    /// Begins a pass: finds the packet, and clears the slots.
    pub(crate) fn begin(&mut self, pass: Pass) {
        if pass == Pass::Whole {
            self.asm.bind(self.beyond);
            self.beyond = self.no_answer;
            [self.cut, self.tunnel] = [(); 2].map(|()| self.asm.label());
            self.pull();
        }
        self.pass = pass;
        self.asm.load(Width::Word, END, Reg::R1, SKB_LEN);
        self.unknown(Reg::R0);
        self.clear_to(Slot::Outer, Reg::R0);
        self.clear_to(Slot::Inner, Reg::R0);
        let needs = self.needs;
        for (slot, is_needed) in [(TRAFFIC_CLASS, needs.traffic_class), (VLAN, needs.vlan)] {
            if is_needed {
                self.asm.store(Width::Double, FP, slot, Reg::R0);
            }
        }
        self.asm.load(Width::Word, DATA, Reg::R1, SKB_DATA);
        self.asm.load(Width::Word, DATA_END, Reg::R1, SKB_DATA_END);
        self.asm.set(AT, 0);
    }

    /// Puts the packet's first bytes into one piece. R1 is the context afterwards.
    fn pull(&mut self) {
        let asm = &mut self.asm;
        let (short, whole) = (asm.label(), asm.label());
        asm.load(Width::Double, Reg::R1, FP, CONTEXT);
        asm.load(Width::Word, Reg::R2, Reg::R1, SKB_LEN);
        asm.jump_if(Test::Lt, Reg::R2, PULL, short);
        asm.set(Reg::R2, PULL as u64);
        asm.bind(short);
        asm.load(Width::Word, Reg::R0, Reg::R1, SKB_DATA);
        asm.op(Op::Add, Reg::R0, Reg::R2);
        asm.load(Width::Word, Reg::R3, Reg::R1, SKB_DATA_END);
        asm.jump_if_reg(Test::Ge, Reg::R3, Reg::R0, whole);
        asm.call(PULL_DATA);
        asm.bind(whole);
        asm.load(Width::Double, Reg::R1, FP, CONTEXT);
    }

    /// Ends the walk: what to do where a packet cannot be read.
    pub(crate) fn end(&mut self, no_answer: u32) {
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
        self.unknown(Reg::R0);
        self.clear_to(slot, Reg::R0);
    }

    fn clear_to(&mut self, slot: Slot, zero: Reg) {
        let needs = self.flow_needs(slot);
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
                self.asm.store(Width::Double, FP, place, zero);
            }
        }
    }

    /// Sets a register to a 0 that the verifiers do not know: they do not see that both operands are the same.
    pub(crate) fn unknown(&mut self, reg: Reg) {
        self.asm.mov(reg, END);
        self.asm.op(Op::Xor, reg, END);
        self.asm.op(Op::Mul, reg, reg);
    }

    /// Points R2 to the next `octets` bytes of the packet, or goes to `cut` if the headers say that there are fewer.
    /// Overwrites R0.
    pub(crate) fn need(&mut self, octets: i32, cut: Label) {
        self.left(AT);
        let asm = &mut self.asm;
        asm.jump_if(Test::SignedLt, Reg::R0, octets, cut);
        if self.pass == Pass::Whole {
            asm.jump_if(Test::Gt, AT, AT_MAX, self.beyond);
        }
        asm.mov(Reg::R2, DATA);
        asm.op(Op::Add, Reg::R2, AT);
        asm.mov(Reg::R0, Reg::R2);
        asm.op_value(Op::Add, Reg::R0, octets);
        asm.jump_if_reg(Test::Gt, Reg::R0, DATA_END, self.beyond);
    }

    /// As [`Walk::forget`] in the whole pass. In the first one so few paths meet that the bytes are not worth their time.
    pub(crate) fn forget_whole(&mut self) {
        if self.pass == Pass::Whole {
            self.forget();
        }
    }

    /// Makes the offsets of all paths that meet here equal for the verifier.
    pub(crate) fn forget(&mut self) {
        self.asm.store(Width::Word, FP, FORGOTTEN_AT, AT);
        self.asm.load(Width::Word, AT, FP, FORGOTTEN_AT);
        if self.pass == Pass::First {
            self.asm.jump_if(Test::Gt, AT, AT_MAX / 2, self.beyond);
        }
        // The verifier compares states only where a jump leads to; the kernel then removes this one.
        let next = self.asm.label();
        self.asm.jump(next);
        self.asm.bind(next);
    }

    /// Goes to `label` if the register equals one of these.
    pub(crate) fn jump_if_any(&mut self, reg: Reg, values: &[i32], label: Label) {
        for &value in values {
            self.asm.jump_if(Test::Eq, reg, value, label);
        }
    }

    /// As [`Walk::jump_if_any`] for a protocol, of which most are below 64. Overwrites R1.
    pub(crate) fn jump_if_protocol(&mut self, reg: Reg, values: &[u8], label: Label) {
        let (high, after) = (self.asm.label(), self.asm.label());
        let low = values.iter().filter(|&&value| value < 64);
        let bits: u64 = low.map(|value| 1 << value).sum();
        self.asm.jump_if(Test::Gt, reg, 63, high);
        self.asm.set(Reg::R1, bits);
        self.asm.op(Op::Rsh, Reg::R1, reg);
        self.asm.jump_if(Test::Set, Reg::R1, 1, label);
        self.asm.jump(after);
        self.asm.bind(high);
        for &value in values.iter().filter(|&&value| value >= 64) {
            self.asm.jump_if(Test::Eq, reg, value.into(), label);
        }
        self.asm.bind(after);
    }

    /// Goes on behind `AT + reg`, or to `cut` if that is after the end.
    pub(crate) fn skip(&mut self, reg: Reg, cut: Label) {
        self.asm.op(Op::Add, AT, reg);
        self.within(cut);
    }

    /// Goes to `cut` if `AT` is after the end.
    pub(crate) fn within(&mut self, cut: Label) {
        self.left(AT);
        self.asm.jump_if(Test::SignedLt, Reg::R0, 0, cut);
    }

    /// Puts the signed number of bytes from `reg` to the end into R0.
    pub(crate) fn left(&mut self, reg: Reg) {
        self.asm.mov(Reg::R0, END);
        self.asm.op(Op::Sub, Reg::R0, reg);
    }
}
