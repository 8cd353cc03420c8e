//! An assembler for eBPF instructions (RFC 9669): registers, labels, and the instructions that classifiers need.
//!
//! ```
//! use bpf::asm::{Assembler, Reg, Test};
//!
//! let mut asm = Assembler::new();
//! let done = asm.label();
//! asm.set(Reg::R0, 7);
//! asm.jump_if(Test::Eq, Reg::R1, 0, done);
//! asm.set(Reg::R0, 8);
//! asm.bind(done);
//! asm.exit();
//! assert_eq!(asm.finish().unwrap().len(), 4);
//! ```
//!
//! Left out: maps, atomic operations, most signed comparisons, and calls between functions of one program.

/// A register. R10 is the frame pointer; the kernel's functions overwrite R0 to R5 and keep the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// Bytes that a load or a store moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 8 bits.
    Byte,
    /// 16 bits.
    Half,
    /// 32 bits.
    Word,
    /// 64 bits.
    Double,
}

/// An operation on the whole register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Bitwise or.
    Or,
    /// Bitwise and.
    And,
    /// Shift to the left.
    Lsh,
    /// Shift to the right, filled with zeros.
    Rsh,
    /// Remainder of a division without sign.
    Mod,
    /// Bitwise exclusive or.
    Xor,
    /// Copy.
    Mov,
}

/// A comparison, without sign unless its name says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less, with sign.
    SignedLt,
    /// Some bit of both is set.
    Set,
}

/// A place in the program that jumps lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// Why the instructions are no program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    /// A jump leads further than 32,767 instructions.
    #[error(
        "a jump at instruction {0} leads too far: the policy has too many rules for one program"
    )]
    TooFar(usize),
    /// A jump leads to a label without a place.
    #[error("a jump at instruction {0} leads nowhere")]
    NoPlace(usize),
}

/// Instructions under construction.
#[derive(Debug, Clone, Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    /// The instruction that each label marks.
    labels: Vec<Option<usize>>,
    /// Jumps, and the labels that they lead to.
    jumps: Vec<(usize, Label)>,
}

#[derive(Debug, Clone, Copy)]
struct Instruction {
    code: u8,
    to: u8,
    from: u8,
    offset: i16,
    value: i32,
}

const LDX: u8 = 0x61;
const ST: u8 = 0x62;
const STX: u8 = 0x63;
const ALU32: u8 = 0x04;
const JMP: u8 = 0x05;
const JMP32: u8 = 0x06;
const ALU64: u8 = 0x07;
const EXIT: u8 = 0x95;
/// The operand is a register.
const REGISTER: u8 = 0x08;

impl Width {
    /// The bits of the width in an instruction for 32 bits: see the table in RFC 9669 5.1.
    const fn of(self, instruction: u8) -> u8 {
        instruction
            | match self {
                Width::Word => 0x00,
                Width::Half => 0x08,
                Width::Byte => 0x10,
                Width::Double => 0x18,
            }
    }
}

impl Op {
    const fn code(self) -> u8 {
        match self {
            Op::Add => 0x00,
            Op::Sub => 0x10,
            Op::Mul => 0x20,
            Op::Or => 0x40,
            Op::And => 0x50,
            Op::Lsh => 0x60,
            Op::Rsh => 0x70,
            Op::Mod => 0x90,
            Op::Xor => 0xa0,
            Op::Mov => 0xb0,
        }
    }
}

impl Test {
    const fn code(self) -> u8 {
        match self {
            Test::Eq => 0x10,
            Test::Gt => 0x20,
            Test::Ge => 0x30,
            Test::Set => 0x40,
            Test::Ne => 0x50,
            Test::Lt => 0xa0,
            Test::SignedLt => 0xc0,
        }
    }
}

impl Assembler {
    /// No instructions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A new label, without a place.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Gives a label the place of the next instruction.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// A new label at the next instruction.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    /// The number of instructions so far.
    #[must_use]
    pub fn position(&self) -> usize {
        self.code.len()
    }

    fn push(&mut self, code: u8, to: u8, from: u8, offset: i16, value: i32) {
        self.code.push(Instruction {
            code,
            to,
            from,
            offset,
            value,
        });
    }

    /// `to = to op from`, 64 bits.
    pub fn op(&mut self, op: Op, to: Reg, from: Reg) {
        self.push(ALU64 | op.code() | REGISTER, to as u8, from as u8, 0, 0);
    }

    /// `to = to op value`, 64 bits; the value keeps its sign.
    pub fn op_value(&mut self, op: Op, to: Reg, value: i32) {
        self.push(ALU64 | op.code(), to as u8, 0, 0, value);
    }

    /// `to = to op value` in 32 bits; the upper half becomes 0.
    pub fn op_word(&mut self, op: Op, to: Reg, value: u32) {
        self.push(ALU32 | op.code(), to as u8, 0, 0, value as i32);
    }

    /// `to = from` in 32 bits; the upper half becomes 0.
    pub fn mov_word(&mut self, to: Reg, from: Reg) {
        self.push(
            ALU32 | Op::Mov.code() | REGISTER,
            to as u8,
            from as u8,
            0,
            0,
        );
    }

    /// `to = from`.
    pub fn mov(&mut self, to: Reg, from: Reg) {
        self.op(Op::Mov, to, from);
    }

    /// `to = value`, in the shortest form.
    pub fn set(&mut self, to: Reg, value: u64) {
        if let Ok(small) = u32::try_from(value) {
            self.op_word(Op::Mov, to, small);
        } else if let Ok(small) = i32::try_from(value as i64) {
            self.op_value(Op::Mov, to, small);
        } else {
            self.push(0x18, to as u8, 0, 0, value as u32 as i32);
            self.push(0, 0, 0, 0, (value >> 32) as u32 as i32);
        }
    }

    /// Turns the lower 16, 32 or 64 bits from network to host order; the bits above become 0.
    pub fn swap(&mut self, width: Width, to: Reg) {
        let bits = match width {
            Width::Byte => return self.op_value(Op::And, to, 0xff),
            Width::Half => 16,
            Width::Word => 32,
            Width::Double => 64,
        };
        self.push(0xdc, to as u8, 0, 0, bits);
    }

    /// Reverses the register's 8 bytes.
    pub fn reverse(&mut self, to: Reg) {
        // To the order that this machine does not have.
        let code = if cfg!(target_endian = "little") {
            0xdc
        } else {
            0xd4
        };
        self.push(code, to as u8, 0, 0, 64);
    }

    /// `to = *(from + offset)`, in host order.
    pub fn load(&mut self, width: Width, to: Reg, from: Reg, offset: i16) {
        self.push(width.of(LDX), to as u8, from as u8, offset, 0);
    }

    /// As [`Assembler::load`], from network order.
    pub fn load_swapped(&mut self, width: Width, to: Reg, from: Reg, offset: i16) {
        self.load(width, to, from, offset);
        if width != Width::Byte {
            self.swap(width, to);
        }
    }

    /// As [`Assembler::load`] of 8 bytes from the stack. What a comparison shows of the register, the verifier does not
    /// conclude of the stack.
    pub fn load_apart(&mut self, to: Reg, from: Reg, offset: i16) {
        self.load(Width::Double, to, from, offset);
        self.op_value(Op::Xor, to, 0);
    }

    /// `*(to + offset) = from`.
    pub fn store(&mut self, width: Width, to: Reg, offset: i16, from: Reg) {
        self.push(width.of(STX), to as u8, from as u8, offset, 0);
    }

    /// `*(to + offset) = value`; 64 bits keep its sign.
    pub fn store_value(&mut self, width: Width, to: Reg, offset: i16, value: i32) {
        self.push(width.of(ST), to as u8, 0, offset, value);
    }

    /// Goes on at the label.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(JMP, 0, 0, 0, 0);
    }

    /// Goes on at the label if the register compares so with the value, whose sign is extended.
    pub fn jump_if(&mut self, test: Test, reg: Reg, value: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(JMP | test.code(), reg as u8, 0, 0, value);
    }

    /// As [`Assembler::jump_if`] for the lower 32 bits.
    pub fn jump_if_word(&mut self, test: Test, reg: Reg, value: u32, label: Label) {
        self.jumps.push((self.code.len(), label));
        let code = JMP32 | test.code();
        self.push(code, reg as u8, 0, 0, value as i32);
    }

    /// Goes on at the label if two registers compare so.
    pub fn jump_if_reg(&mut self, test: Test, a: Reg, b: Reg, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(JMP | test.code() | REGISTER, a as u8, b as u8, 0, 0);
    }

    /// Calls a function of the kernel by its number in `enum bpf_func_id`.
    pub fn call(&mut self, function: i32) {
        self.push(0x85, 0, 0, 0, function);
    }

    /// Ends the program; R0 is its value.
    pub fn exit(&mut self) {
        self.push(EXIT, 0, 0, 0, 0);
    }

    /// The instructions, as bpf(2) of this machine takes them, without those that nothing leads to: the verifier
    /// refuses such instructions.
    ///
    /// # Errors
    /// See [`AssembleError`].
    pub fn finish(mut self) -> Result<Vec<u64>, AssembleError> {
        let mut targets = vec![None; self.code.len()];
        for (at, label) in &self.jumps {
            targets[*at] = Some(self.labels[label.0]);
        }
        let is_reached = self.reached(&targets)?;
        // The number that each instruction gets.
        let mut numbers = Vec::with_capacity(self.code.len() + 1);
        let mut count = 0_usize;
        for &is_kept in &is_reached {
            numbers.push(count);
            count += usize::from(is_kept);
        }
        numbers.push(count);
        for (at, target) in targets.into_iter().enumerate() {
            if let Some(Some(place)) = target.filter(|_| is_reached[at]) {
                let far = numbers[place] as i64 - numbers[at] as i64 - 1;
                let offset = i16::try_from(far).map_err(|_| AssembleError::TooFar(at))?;
                self.code[at].offset = offset;
            }
        }
        let kept = self.code.iter().zip(is_reached).filter(|(_, kept)| *kept);
        Ok(kept.map(|(instruction, _)| instruction.encode()).collect())
    }

    /// Which instructions some path from the first one leads to.
    fn reached(&self, targets: &[Option<Option<usize>>]) -> Result<Vec<bool>, AssembleError> {
        let mut reached = vec![false; self.code.len()];
        let mut open = vec![0];
        while let Some(at) = open.pop() {
            if at >= reached.len() || core::mem::replace(&mut reached[at], true) {
                continue;
            }
            if let Some(target) = targets[at] {
                open.push(target.ok_or(AssembleError::NoPlace(at))?);
            }
            if !matches!(self.code[at].code, EXIT | JMP) {
                open.push(at + 1);
            }
        }
        Ok(reached)
    }
}

impl Instruction {
    fn encode(&self) -> u64 {
        let registers = match cfg!(target_endian = "little") {
            true => self.from << 4 | self.to,
            false => self.to << 4 | self.from,
        };
        let [o0, o1] = self.offset.to_ne_bytes();
        let [v0, v1, v2, v3] = self.value.to_ne_bytes();
        u64::from_ne_bytes([self.code, registers, o0, o1, v0, v1, v2, v3])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_encoding_of_the_rfc() {
        let mut asm = Assembler::new();
        asm.mov(Reg::R6, Reg::R1);
        asm.load_swapped(Width::Half, Reg::R2, Reg::R6, 12);
        asm.store(Width::Double, Reg::R10, -8, Reg::R6);
        asm.set(Reg::R3, u64::MAX);
        asm.set(Reg::R3, 0x1_0000_0002);
        let octets: Vec<[u8; 8]> = asm
            .finish()
            .unwrap()
            .iter()
            .map(|i| i.to_le_bytes())
            .collect();
        let expected = [
            [0xbf, 0x16, 0, 0, 0, 0, 0, 0],
            [0x69, 0x62, 12, 0, 0, 0, 0, 0],
            [0xdc, 0x02, 0, 0, 16, 0, 0, 0],
            [0x7b, 0x6a, 0xf8, 0xff, 0, 0, 0, 0],
            [0xb7, 0x03, 0, 0, 0xff, 0xff, 0xff, 0xff],
            [0x18, 0x03, 0, 0, 2, 0, 0, 0],
            [0, 0, 0, 0, 1, 0, 0, 0],
        ];
        if cfg!(target_endian = "little") {
            assert_eq!(octets, expected);
        }
    }

    #[test]
    fn jumps_lead_to_their_labels_forwards_and_backwards() {
        let mut asm = Assembler::new();
        let end = asm.label();
        let start = asm.here();
        asm.jump_if(Test::Eq, Reg::R1, 0, end);
        asm.jump(start);
        asm.bind(end);
        asm.exit();
        let offsets = asm.finish().unwrap();
        let offset = |at: usize| (offsets[at] >> 16) as u16 as i16;
        if cfg!(target_endian = "little") {
            assert_eq!((offset(0), offset(1)), (1, -2));
        }
    }

    #[test]
    fn what_nothing_leads_to_is_left_out() {
        let mut asm = Assembler::new();
        let (end, nowhere) = (asm.label(), asm.label());
        asm.jump(end);
        asm.set(Reg::R0, 1);
        asm.jump(nowhere);
        asm.bind(end);
        asm.exit();
        let kept = asm.finish().unwrap();
        assert_eq!(kept.len(), 2);
        assert_eq!(
            kept[0] & 0xffff_0000,
            0,
            "the jump is to the next instruction"
        );
    }

    #[test]
    fn a_jump_too_far_or_to_nowhere_is_refused() {
        let mut asm = Assembler::new();
        let end = asm.label();
        asm.jump_if(Test::Eq, Reg::R1, 0, end);
        assert_eq!(asm.clone().finish(), Err(AssembleError::NoPlace(0)));
        for _ in 0..0x8000 {
            asm.set(Reg::R0, 0);
        }
        asm.bind(end);
        assert_eq!(asm.finish(), Err(AssembleError::TooFar(0)));
    }
}
