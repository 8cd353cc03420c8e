//! The policy as an eBPF program, asked about frames.

use anyhow::{Result, bail};
use bpf::{Answer, Link, Options, emit};
use qos::tree::Classifier;
use reactor::bpf::{Context, Program, ProgramKind};

use super::frames::Frame;

/// The value of a program that cannot read a packet; no class of a policy has it.
const NO_ANSWER: u32 = u32::MAX - 1;

/// What the kernel's program reports about a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The program's value: a class, or 0.
    Value(u32),
    NoAnswer,
    /// The kernel could not be asked, and why.
    NotAsked(String),
}

/// The policy in the kernel: for frames, and for IP packets.
pub(super) struct Kernel {
    programs: [Result<Program, String>; 2],
    /// Instructions of the program for frames.
    pub(super) instructions: usize,
}

impl Kernel {
    /// Loads the programs that these frames need.
    ///
    /// # Errors
    /// The kernel refuses a program, though it may be loaded.
    pub(super) fn load(classifier: &Classifier, frames: &[Frame]) -> Result<Self> {
        let mut instructions = 0;
        let mut load = |link, kind, is_needed: bool| {
            let options = Options {
                link,
                answer: Answer::Class { major: 0 },
                no_answer: NO_ANSWER,
            };
            let program = emit(classifier, &options)?;
            if link == Link::Ethernet {
                instructions = program.instructions().len();
            }
            if !is_needed {
                return Ok(Err("no frame is of this kind".to_owned()));
            }
            match Program::load(kind, "headend_explain", program.instructions()) {
                Ok(program) => Ok(Ok(program)),
                Err(error) if error.is_forbidden() => Ok(Err(error.to_string())),
                Err(error) => bail!("{error}"),
            }
        };
        let has = |is_ip| frames.iter().any(|frame| frame.is_ip == is_ip);
        let programs = [
            load(Link::Ethernet, ProgramKind::Classifier, has(false))?,
            load(Link::Ip, ProgramKind::IpOutput, has(true))?,
        ];
        Ok(Self {
            programs,
            instructions,
        })
    }

    pub(super) fn ask(&self, frame: &Frame, mark: u32) -> Verdict {
        let program = match &self.programs[usize::from(frame.is_ip)] {
            Ok(program) => program,
            Err(why) => return Verdict::NotAsked(why.clone()),
        };
        let with_header;
        let octets = match frame.is_ip {
            false => &frame.octets,
            true => {
                let version = frame.octets.first().map_or(0, |first| first >> 4);
                let kind = if version == 6 { [0x86, 0xdd] } else { [8, 0] };
                let header = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &kind[..]].concat();
                with_header = [header, frame.octets.clone()].concat();
                &with_header
            }
        };
        let context = Context { mark, priority: 0 };
        match program.run(octets, context, 1) {
            Ok(outcome) if outcome.value == NO_ANSWER => Verdict::NoAnswer,
            Ok(outcome) => Verdict::Value(outcome.value),
            Err(error) => Verdict::NotAsked(format!(
                "the kernel runs no program on this frame of {} bytes ({error}); it takes whole IP headers and about \
                 3,500 bytes at most",
                octets.len()
            )),
        }
    }
}
