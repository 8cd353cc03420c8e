//! Code that chooses the class from what was read, and returns it.

use qos::classifier::Classifier;
use qos::classify::{Bands, Hash, Key, KeySet, Map};

use crate::Answer;
use crate::asm::{Assembler, Label, Op, Reg, Test, Width};
use crate::frame::{
    CONTEXT, DESTINATION, EXISTS, FP, SKB_CLASS, SKB_MARK, SKB_PRIORITY, SMALL, SOURCE, Slot,
    TRAFFIC_CLASS, VLAN,
};

/// Points to the innermost header's slots.
pub(crate) const INNERMOST: Reg = Reg::R9;

/// Instructions after which rules get another tail: jumps reach 32,767.
const TAIL_FAR: usize = 8_192;

const MAJOR: u32 = 0xffff_0000;

/// The part of a program that chooses.
pub(crate) struct Chooser<'a> {
    pub(crate) asm: &'a mut Assembler,
    answer: Answer,
    /// Code that returns the class in R0, for all rules near it. The kernel rewrites each access to its context, and
    /// moves all instructions after it.
    tail: Label,
    /// Where the code of this tail's rules begins.
    tail_from: usize,
}

impl<'a> Chooser<'a> {
    pub(crate) fn new(asm: &'a mut Assembler, answer: Answer) -> Self {
        Self {
            tail: asm.label(),
            tail_from: asm.position(),
            asm,
            answer,
        }
    }

    pub(crate) fn choose(&mut self, classifier: &Classifier, innermost: bool) {
        if innermost {
            self.point();
        }
        match classifier {
            Classifier::Rules(rules) => self.rules(rules),
            Classifier::Map(map) => self.map(map),
            Classifier::Hash {
                keys,
                divisor,
                seed,
                baseclass,
            } => self.hash(*keys, *divisor, *seed, *baseclass),
            Classifier::Bands(bands) => self.bands(bands),
        }
        self.end_tail();
    }

    /// Writes the tail of the rules so far. No path may lead here but jumps.
    fn end_tail(&mut self) {
        self.asm.bind(self.tail);
        self.leave();
        self.tail = self.asm.label();
        self.tail_from = self.asm.position();
    }

    /// Points R9 to the header within the tunnel, or else to the only one.
    fn point(&mut self) {
        let asm = &mut self.asm;
        let outer = asm.label();
        asm.mov(INNERMOST, FP);
        asm.op_value(Op::Add, INNERMOST, Slot::Outer.base().into());
        let exists = Slot::Inner.base() + EXISTS;
        asm.load_apart(Reg::R0, FP, exists);
        asm.jump_if(Test::Eq, Reg::R0, 0, outer);
        asm.mov(INNERMOST, FP);
        asm.op_value(Op::Add, INNERMOST, Slot::Inner.base().into());
        asm.bind(outer);
    }

    /// Ends the program with this class.
    pub(crate) fn class(&mut self, class: u32) {
        let class = match self.answer {
            Answer::Class { major } if major != 0 => u32::from(major) << 16 | class & !MAJOR,
            _ => class,
        };
        self.asm.set(Reg::R0, class.into());
        match self.answer {
            Answer::Class { .. } => self.asm.exit(),
            Answer::Nested { major } if class >> 16 == u32::from(major) => self.asm.exit(),
            _ => {
                self.asm.jump(self.tail);
                if self.asm.position() - self.tail_from > TAIL_FAR {
                    self.end_tail();
                }
            }
        }
    }

    /// Ends the program with the class in R0.
    fn class_in_r0(&mut self) {
        if let Answer::Class { major } = self.answer
            && major != 0
        {
            self.asm.op_word(Op::And, Reg::R0, !MAJOR);
            self.asm.op_word(Op::Or, Reg::R0, u32::from(major) << 16);
        }
        self.leave();
    }

    /// Ends the program without a class.
    pub(crate) fn none(&mut self) {
        let none = match self.answer {
            Answer::Minor => Answer::NEXT,
            _ => 0,
        };
        self.asm.set(Reg::R0, none.into());
        self.asm.exit();
    }

    fn leave(&mut self) {
        let field = match self.answer {
            Answer::Class { .. } => None,
            Answer::Minor => {
                self.asm.op_word(Op::And, Reg::R0, !MAJOR);
                Some(SKB_CLASS)
            }
            Answer::Priority | Answer::Nested { .. } => Some(SKB_PRIORITY),
            Answer::Mark => Some(SKB_MARK),
        };
        if let Some(field) = field {
            self.asm.load(Width::Double, Reg::R1, FP, CONTEXT);
            self.asm.store(Width::Word, Reg::R1, field, Reg::R0);
            if let Answer::Nested { major } = self.answer {
                self.asm.op_word(Op::Rsh, Reg::R0, 16);
                self.asm.op_word(Op::Or, Reg::R0, u32::from(major) << 16);
            } else {
                self.asm.set(Reg::R0, 0);
            }
        }
        self.asm.exit();
    }

    /// Loads the packet's mark.
    pub(crate) fn mark(&mut self, to: Reg) {
        self.asm.load(Width::Double, to, FP, CONTEXT);
        self.asm.load(Width::Word, to, to, SKB_MARK);
    }

    fn map(&mut self, map: &Map) {
        self.value(map.key);
        let asm = &mut self.asm;
        asm.op_word(Op::And, Reg::R0, map.mask);
        asm.op_word(Op::Xor, Reg::R0, map.xor);
        match map.rshift {
            0..32 => asm.op_word(Op::Rsh, Reg::R0, map.rshift),
            _ => asm.set(Reg::R0, 0),
        }
        asm.op_word(Op::Add, Reg::R0, map.addend);
        if map.divisor != 0 {
            asm.op_word(Op::Mod, Reg::R0, map.divisor);
        }
        self.counted(map.baseclass);
    }

    /// The class that is R0 after `baseclass`, of the same major number.
    fn counted(&mut self, baseclass: u32) {
        self.asm.op_word(Op::Add, Reg::R0, baseclass);
        self.asm.op_word(Op::And, Reg::R0, !MAJOR);
        self.asm.op_word(Op::Or, Reg::R0, baseclass & MAJOR);
        self.class_in_r0();
    }

    /// A key's value of 32 bits, in R0.
    fn value(&mut self, key: Key) {
        let (outer, inner) = ((FP, Slot::Outer.base()), (FP, Slot::Inner.base()));
        let innermost = (INNERMOST, 0);
        match key {
            Key::Src => self.folded(outer, SOURCE),
            Key::Dst => self.folded(outer, DESTINATION),
            Key::Proto => self.small(outer, 32, 0xffff_ffff),
            Key::ProtoSrc => self.small(outer, 16, 0xffff),
            Key::ProtoDst => self.small(outer, 0, 0xffff),
            Key::TunnelSrc => self.folded(inner, SOURCE),
            Key::TunnelDst => self.folded(inner, DESTINATION),
            Key::TunnelProto => self.small(inner, 32, 0xffff_ffff),
            Key::TunnelProtoSrc => self.small(inner, 16, 0xffff),
            Key::TunnelProtoDst => self.small(inner, 0, 0xffff),
            Key::InnermostSrc => self.folded(innermost, SOURCE),
            Key::InnermostDst => self.folded(innermost, DESTINATION),
            Key::InnermostProto => self.small(innermost, 32, 0xffff_ffff),
            Key::InnermostProtoSrc => self.small(innermost, 16, 0xffff),
            Key::InnermostProtoDst => self.small(innermost, 0, 0xffff),
            Key::Dscp => {
                self.asm.load(Width::Double, Reg::R0, FP, TRAFFIC_CLASS);
                self.asm.op_value(Op::Rsh, Reg::R0, 2);
            }
            Key::Mark => self.mark(Reg::R0),
            Key::Vlan => self.asm.load(Width::Double, Reg::R0, FP, VLAN),
        }
    }

    fn small(&mut self, (base, at): (Reg, i16), shift: i32, mask: u32) {
        self.asm.load(Width::Double, Reg::R0, base, at + SMALL);
        self.asm.op_value(Op::Rsh, Reg::R0, shift);
        self.asm.op_word(Op::And, Reg::R0, mask);
    }

    /// An address in 32 bits: IPv4 itself, and the exclusive or of IPv6's words.
    fn folded(&mut self, (base, at): (Reg, i16), field: i16) {
        let asm = &mut self.asm;
        let (fold, done) = (asm.label(), asm.label());
        asm.load(Width::Double, Reg::R1, base, at + field);
        asm.load(Width::Double, Reg::R2, base, at + field + 8);
        asm.mov(Reg::R0, Reg::R2);
        asm.op_value(Op::Rsh, Reg::R0, 32);
        asm.jump_if(Test::Ne, Reg::R1, 0, fold);
        asm.jump_if(Test::Ne, Reg::R0, 0xffff, fold);
        asm.mov_word(Reg::R0, Reg::R2);
        asm.jump(done);
        asm.bind(fold);
        asm.op(Op::Xor, Reg::R2, Reg::R1);
        asm.mov(Reg::R0, Reg::R2);
        asm.op_value(Op::Rsh, Reg::R0, 32);
        asm.op(Op::Xor, Reg::R0, Reg::R2);
        asm.mov_word(Reg::R0, Reg::R0);
        asm.bind(done);
    }

    fn bands(&mut self, bands: &Bands) {
        let of = |dscp: u8| bands.band(dscp << 2);
        let usual = (0..64).map(of).max_by_key(|&band| {
            let alike = (0..64).filter(|&dscp| of(dscp) == band);
            (alike.count(), core::cmp::Reverse(band))
        });
        let usual = usual.unwrap_or(0);
        self.asm.load(Width::Double, Reg::R0, FP, TRAFFIC_CLASS);
        self.asm.op_value(Op::Rsh, Reg::R0, 2);
        self.asm.set(Reg::R1, 1);
        self.asm.op(Op::Lsh, Reg::R1, Reg::R0);
        let mut others: Vec<u8> = (0..64).map(of).filter(|&band| band != usual).collect();
        others.sort_unstable();
        others.dedup();
        for band in others {
            let next = self.asm.label();
            let alike = (0..64u8).filter(|&dscp| of(dscp) == band);
            self.asm
                .set(Reg::R2, alike.map(|dscp| 1 << dscp).sum::<u64>());
            self.asm.op(Op::And, Reg::R2, Reg::R1);
            self.asm.jump_if(Test::Eq, Reg::R2, 0, next);
            self.class(1 + u32::from(band));
            self.asm.bind(next);
        }
        self.class(1 + u32::from(usual));
    }

    /// As [`Hash::class`]; the slots have the addresses as the hash reads them.
    fn hash(&mut self, keys: KeySet, divisor: u32, seed: u64, baseclass: u32) {
        let hash = Hash::new(keys, divisor, seed, baseclass);
        let (secret, keys) = (hash.secrets(), keys.without_determined());
        let places = [
            (FP, Slot::Outer.base()),
            (FP, Slot::Inner.base()),
            (INNERMOST, 0),
        ];
        self.asm.set(SUM, 0);
        for ((header, (base, slot)), at) in Hash::HEADERS.into_iter().zip(places).zip([0, 5, 10]) {
            let [source, destination, proto, proto_src, proto_dst] = header;
            for (key, field, at) in [(source, SOURCE, at), (destination, DESTINATION, at + 2)] {
                if keys.has(key) {
                    for (half, at) in [(0, at), (8, at + 1)] {
                        let place = slot + field + half;
                        self.asm.load(Width::Double, Reg::R1, base, place);
                        self.add_word(secret[at]);
                    }
                }
            }
            let bits = [
                (proto, 0xffff_ffff << 32),
                (proto_src, 0xffff << 16),
                (proto_dst, 0xffff),
            ];
            let bits = bits.into_iter().filter(|(key, _)| keys.has(*key));
            let mask: u64 = bits.map(|(_, bits)| bits).sum();
            if mask != 0 {
                self.asm.load(Width::Double, Reg::R1, base, slot + SMALL);
                self.masked(Reg::R1, mask);
                self.add_small(secret[at + 4]);
            }
        }
        self.add_others(keys, secret[15]);
        let [first, second] = Hash::factors();
        self.asm.set(Reg::R1, first);
        self.asm.op(Op::Mul, SUM, Reg::R1);
        self.asm.mov(Reg::R0, SUM);
        self.asm.op_value(Op::Rsh, Reg::R0, 32);
        self.asm.op(Op::Xor, Reg::R0, SUM);
        self.asm.set(Reg::R1, second);
        self.asm.op(Op::Mul, Reg::R0, Reg::R1);
        self.asm.op_value(Op::Rsh, Reg::R0, 32);
        if divisor != 0 {
            self.asm.set(Reg::R1, divisor.into());
            self.asm.op(Op::Mul, Reg::R0, Reg::R1);
            self.asm.op_value(Op::Rsh, Reg::R0, 32);
        }
        self.counted(baseclass);
    }

    /// DSCP, VLAN and mark.
    fn add_others(&mut self, keys: KeySet, secret: u64) {
        let [dscp, vlan, mark] = [Key::Dscp, Key::Vlan, Key::Mark].map(|key| keys.has(key));
        if !(dscp || vlan || mark) {
            return;
        }
        self.asm.set(Reg::R1, 0);
        if mark {
            self.mark(Reg::R1);
            self.asm.op_value(Op::Lsh, Reg::R1, 32);
        }
        if dscp {
            self.asm.load(Width::Double, Reg::R0, FP, TRAFFIC_CLASS);
            self.asm.op_value(Op::And, Reg::R0, 0xfc);
            self.asm.op_value(Op::Lsh, Reg::R0, 16);
            self.asm.op(Op::Or, Reg::R1, Reg::R0);
        }
        if vlan {
            self.asm.load(Width::Double, Reg::R0, FP, VLAN);
            self.asm.op(Op::Or, Reg::R1, Reg::R0);
        }
        self.add_word(secret);
    }

    pub(crate) fn masked(&mut self, reg: Reg, mask: u64) {
        if mask != u64::MAX {
            self.asm.set(Reg::R3, mask);
            self.asm.op(Op::And, reg, Reg::R3);
        }
    }

    /// `SUM += (R1 + secret) >> 32 * ((R1 + secret) & 0xffff_ffff)`.
    fn add_word(&mut self, secret: u64) {
        let asm = &mut self.asm;
        asm.set(Reg::R2, secret);
        asm.op(Op::Add, Reg::R1, Reg::R2);
        asm.mov_word(Reg::R2, Reg::R1);
        asm.op_value(Op::Rsh, Reg::R1, 32);
        asm.op(Op::Mul, Reg::R1, Reg::R2);
        asm.op(Op::Add, SUM, Reg::R1);
    }

    /// As [`Chooser::add_word`], but the halves of R1 and of the secret are added each for itself.
    fn add_small(&mut self, secret: u64) {
        let asm = &mut self.asm;
        asm.mov_word(Reg::R2, Reg::R1);
        asm.op_word(Op::Add, Reg::R2, secret as u32);
        asm.op_value(Op::Rsh, Reg::R1, 32);
        asm.op_word(Op::Add, Reg::R1, (secret >> 32) as u32);
        asm.op(Op::Mul, Reg::R1, Reg::R2);
        asm.op(Op::Add, SUM, Reg::R1);
    }
}

/// The hash so far.
const SUM: Reg = Reg::R8;
