//! A program in the kernel beside the classifier that it is made from.

use bpf::asm::Reg;
use bpf::{Answer, Link, Options, emit};
use qos::Classify;
use qos::classifier::Classifier;
use qos::classify::{Filter, Hash};
use reactor::bpf::{Context, LoadError, Outcome, Program, ProgramKind};
use wire::flow::Keys;

/// What a program returns for packets that it cannot read.
pub(crate) const NO_ANSWER: u32 = 0xffff_fff0;

pub(crate) const OPTIONS: Options = Options {
    link: Link::Ethernet,
    answer: Answer::Class { major: 0 },
    no_answer: NO_ANSWER,
};

/// A classifier, and its program.
pub(crate) struct Pair {
    ours: Box<dyn Classify>,
    pub(crate) program: Program,
    pub(crate) what: String,
}

/// Loads instructions. `None` without the privilege; panics with the verifier's text if they are refused.
pub(crate) fn load(kind: ProgramKind, instructions: &[u64], what: &str) -> Option<Program> {
    match Program::load(kind, "differential", instructions) {
        Ok(program) => Some(program),
        Err(error) if LoadError::is_forbidden(&error) => {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            assert!(
                !status.contains("\nUid:\t0\t0"),
                "root may load programs: {error}"
            );
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{what}, {} instructions: {error}", instructions.len()),
    }
}

/// The classifier that our own queues use.
pub(crate) fn ours(classifier: &Classifier) -> Box<dyn Classify> {
    match classifier {
        Classifier::Rules(rules) => Box::new(Filter::new(rules.iter().copied())),
        Classifier::Map(map) => Box::new(*map),
        Classifier::Hash {
            keys,
            divisor,
            seed,
            baseclass,
        } => Box::new(Hash::new(*keys, *divisor, *seed, *baseclass)),
        Classifier::Bands(bands) => Box::new(*bands),
    }
}

impl Pair {
    pub(crate) fn new(classifier: &Classifier) -> Option<Pair> {
        let what = format!("{classifier:?}");
        let program = emit(classifier, &OPTIONS).expect("a program");
        Some(Pair {
            ours: ours(classifier),
            program: load(ProgramKind::Classifier, program.instructions(), &what)?,
            what,
        })
    }

    /// The class that our classifier gives, or 0.
    pub(crate) fn expected(&self, keys: &Keys) -> u32 {
        self.ours.class(keys).unwrap_or(0)
    }

    /// Compares both on a frame of Ethernet.
    pub(crate) fn compare(&self, frame: &[u8], mark: u32) -> Result<(), String> {
        if !is_runnable(frame) {
            return Ok(());
        }
        let mut keys = Keys::read_frame(frame);
        keys.mark = mark;
        let expected = self.expected(&keys);
        let found = self.run(frame, mark).value;
        match found == expected {
            true => Ok(()),
            false => Err(format!(
                "{}\n{expected:#x} is right, the program gives {found:#x}\n{keys:?}\n{}",
                self.what,
                hex(frame)
            )),
        }
    }

    pub(crate) fn run(&self, frame: &[u8], mark: u32) -> Outcome {
        let context = Context { mark, priority: 0 };
        self.program.run(frame, context, 1).expect("a run")
    }
}

/// Whether Linux runs a program on this frame: newer versions refuse an IP packet without a whole header, unless it
/// is behind a tag.
pub(crate) fn is_runnable(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([8, 0]) => frame.len() >= 34,
        Some([0x86, 0xdd]) => frame.len() >= 54,
        Some(_) => true,
        None => false,
    }
}

pub(crate) fn hex(frame: &[u8]) -> String {
    frame.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Instructions that put a VLAN tag where the kernel keeps those that it took off a frame, before `program`.
pub(crate) fn with_tag(tci: u16, program: &[u64]) -> Vec<u64> {
    const VLAN_PUSH: i32 = 18;
    let mut asm = bpf::asm::Assembler::new();
    asm.mov(Reg::R6, Reg::R1);
    asm.set(Reg::R2, u64::from(0x8100_u16.to_be()));
    asm.set(Reg::R3, tci.into());
    asm.call(VLAN_PUSH);
    asm.mov(Reg::R1, Reg::R6);
    let mut all = asm.finish().expect("no jumps");
    all.extend(program);
    all
}
