//! A classifier of [`qos`] as an eBPF program, so that Linux's own queues choose classes as ours do. Start with [`emit`].
//!
//! RFC 9669 (the instructions), and the headers of [`wire::flow`], whose answers these programs give: Ethernet, VLAN
//! tags in the frame or taken off by the kernel, PPPoE, IPv4, IPv6 and its extension headers, and inside IP in IP, GRE
//! and L2TP, as deep as [`wire::flow::LEVELS_MAX`]. A program reads only the headers and fields that its classifier
//! asks for.
//!
//! | module | contents |
//! |---|---|
//! | [`asm`] | instructions, labels, jumps |
//! | `needs` | what a classifier asks for |
//! | `frame` | registers and stack of a program, checked access to the packet |
//! | `header` | Ethernet, IP and ports |
//! | `tunnel` | GRE, L2TP, PPP, nesting |
//! | `answer` | maps, hashes, bands; what the program returns |
//! | `rules` | rules in order |
//! | `hosts` | rules for many hosts, searched in halves |
//!
//! A program has no answer ([`Options::no_answer`]) for two kinds of packets that `wire::flow` reads. In one, a header
//! begins after byte 65,024. In the other, a header begins after byte 512 and the packet is in several pieces, as the
//! kernel stores large packets.
//!
//! Left out: loading and attaching a program, which is for `reactor`; maps, so a new seed of a hash is a new program.
#![forbid(unsafe_code)]

mod answer;
pub mod asm;
mod frame;
mod header;
mod hosts;
mod needs;
mod rules;
mod tunnel;

use qos::classifier::Classifier;

use answer::Chooser;
use asm::AssembleError;
use frame::{Pass, Walk};
use needs::Needs;

/// What a packet begins with where the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Link {
    /// An Ethernet header: most interfaces.
    #[default]
    Ethernet,
    /// An IP header: `tun`, `ppp` and tunnel interfaces.
    Ip,
}

/// What a program does with the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Returns the class's full name, as `tc filter … bpf` without `direct-action` takes it. 0 is no match, so that the
    /// next filter is tried. With `direct-action`, Linux would keep only the minor number of a class.
    Class {
        /// The major number in place of the class's own; 0 keeps that.
        major: u16,
    },
    /// Returns the class of an outer discipline, whose minor number is the major number of the rule's class, and sets the
    /// packet's priority to the class: the inner discipline of `htb`, with this major number, finds it by the priority.
    /// Classes of the outer discipline are returned as they are, and leave the priority. For rules; maps and hashes have
    /// only classes of inner disciplines.
    Nested {
        /// The major number of the outer discipline.
        major: u16,
    },
    /// For a filter with `direct-action` that names the major number (`classid 20:0`): sets the packet's minor number and
    /// returns 0 (`TC_ACT_OK`). Without a class it returns [`Answer::NEXT`]. So one program serves several disciplines.
    Minor,
    /// Sets the packet's priority to the class, and returns 0. Without a class, the priority stays.
    Priority,
    /// Sets the packet's mark to the class, and returns 0. Without a class, the mark stays.
    Mark,
}

impl Answer {
    /// What a program returns under `direct-action` so that the next filter is tried (`TC_ACT_UNSPEC`).
    pub const NEXT: u32 = u32::MAX;
}

/// Where a program runs and what it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What a packet begins with.
    pub link: Link,
    /// What the program does with the class.
    pub answer: Answer,
    /// The value that the program returns for packets that it cannot read to their end.
    pub no_answer: u32,
}

impl Default for Options {
    /// For Ethernet, returning the class as it is, and 0 for no answer.
    fn default() -> Self {
        Self {
            link: Link::default(),
            answer: Answer::Class { major: 0 },
            no_answer: 0,
        }
    }
}

/// A program's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    instructions: Vec<u64>,
}

impl Program {
    /// The instructions, as bpf(2) of this machine takes them.
    #[must_use]
    pub fn instructions(&self) -> &[u64] {
        &self.instructions
    }
}

/// The program that chooses as `classifier` does.
///
/// # Errors
/// See [`AssembleError`]; only a list of thousands of rules can cause one.
pub fn emit(classifier: &Classifier, options: &Options) -> Result<Program, AssembleError> {
    let needs = Needs::of(classifier);
    let mut walk = Walk::new(needs);
    if needs.ip() || needs.vlan {
        for pass in [Pass::First, Pass::Whole] {
            walk.begin(pass);
            walk.read(options.link);
        }
        walk.end(options.no_answer);
    }
    walk.asm.bind(walk.classify);
    let mut chooser = Chooser::new(&mut walk.asm, options.answer);
    chooser.choose(classifier, needs.innermost);
    Ok(Program {
        instructions: walk.asm.finish()?,
    })
}
