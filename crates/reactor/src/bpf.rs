//! eBPF programs in the kernel: loads them, runs them on given frames, and unloads them on drop.
//!
//! bpf(2), the kernel's Documentation/bpf. The instructions come from the caller, 8 bytes each; this module knows
//! nothing of them. Left out: maps, BTF, pinned programs, and attaching a program, which is `netlink`'s work.

use core::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys;
use crate::sys::bpf::Log;

/// How much of the verifier's text is kept.
const LOG_BYTES: usize = 1 << 20;
/// As much, if the verifier only counts.
const STATISTICS_BYTES: usize = 4 << 10;
/// How often an interrupted verifier is started.
const TRIES: usize = 10;
/// How much if that was not enough. Before Linux 6.4 the kernel keeps the beginning of a longer text, and the reason is at
/// its end.
const LOG_BYTES_MAX: usize = 16 << 20;
/// How many of its last lines an error carries.
const LOG_LINES: usize = 6;

/// Where a program can be attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// A traffic-control classifier or action; the packet begins with its link-layer header.
    Classifier,
    /// A lightweight tunnel's transmit hook; the packet begins with its IP header.
    IpOutput,
}

/// A loaded program. The kernel frees it when this and every attachment are gone.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}

/// Why the kernel refused a program.
#[derive(Debug)]
pub struct LoadError {
    /// The kernel's error.
    pub error: io::Error,
    /// The last lines of the verifier's text; empty if the verifier did not run.
    pub log: Vec<String>,
}

/// The work of the verifier for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Instructions that it followed, over all paths; the kernel's limit is 1,000,000.
    pub instructions: u32,
    /// States of registers and stack that it kept at the same time.
    pub states: u32,
}

/// What a program finds and leaves beside a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// The packet's mark.
    pub mark: u32,
    /// The packet's priority.
    pub priority: u32,
}

/// What a run of a program did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The value that the program returned.
    pub value: u32,
    /// Mark and priority afterwards.
    pub context: Context,
    /// Mean time of a run in nanoseconds, as the kernel measured it.
    pub run_ns: u32,
}

impl Program {
    /// Loads a program. `name` appears in `bpftool prog`; the kernel keeps 15 letters, digits, `_` and `.` of it.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(kind: ProgramKind, name: &str, instructions: &[u64]) -> Result<Self, LoadError> {
        let name = name_of(name);
        let load = |log: &mut [u8]| load(kind, instructions, &name, Log::Steps, log);
        let first = match load(&mut []) {
            Ok(fd) => return Ok(Self { fd }),
            Err(error) => error,
        };
        // The verifier's text takes time and memory, so only a refused program asks for it.
        let mut log = vec![0; LOG_BYTES];
        let mut again = load(&mut log);
        let is_short = |error: &io::Error| error.raw_os_error() == Some(libc::ENOSPC);
        if again.as_ref().is_err_and(is_short) {
            log = vec![0; LOG_BYTES_MAX];
            again = load(&mut log);
        }
        match again {
            Ok(fd) => Ok(Self { fd }),
            Err(_) => Err(LoadError {
                error: first,
                log: last_lines(&log),
            }),
        }
    }

    /// The verifier's work for a program, which is unloaded at once. `None` if the kernel does not count it.
    ///
    /// # Errors
    /// As [`Program::load`], with an empty text.
    pub fn effort(kind: ProgramKind, instructions: &[u64]) -> Result<Option<Effort>, LoadError> {
        let mut log = vec![0; STATISTICS_BYTES];
        match load(
            kind,
            instructions,
            &name_of("effort"),
            Log::Statistics,
            &mut log,
        ) {
            Ok(_) => Ok(Effort::read(&text(&log))),
            Err(error) => Err(LoadError {
                error,
                log: Vec::new(),
            }),
        }
    }

    /// The loaded program with this number, of any process. It stays loaded until this is dropped.
    ///
    /// # Errors
    /// There is none, or the calling thread lacks the privilege (root, or CAP_SYS_ADMIN).
    pub fn by_id(id: u32) -> io::Result<Self> {
        sys::bpf::by_id(id).map(|fd| Self { fd })
    }

    /// The program's number, by which filters list it, and the kernel's hash of its instructions. Other kernels may have
    /// another hash.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn identity(&self) -> io::Result<(u32, [u8; 8])> {
        sys::bpf::info(self.fd.as_fd())
    }

    /// Runs the program `repeat` times, at least once, on a frame with an Ethernet header. [`ProgramKind::IpOutput`] sees
    /// the frame without this header.
    ///
    /// # Errors
    /// The frame is shorter than 14 bytes or longer than about a page, or the kernel cannot run programs.
    pub fn run(&self, frame: &[u8], context: Context, repeat: u32) -> io::Result<Outcome> {
        let mut buffer = [0u8; SK_BUFF];
        put(&mut buffer, MARK, context.mark);
        put(&mut buffer, PRIORITY, context.priority);
        let (value, run_ns) =
            sys::bpf::test_run(self.fd.as_fd(), frame, &mut buffer, repeat.max(1))?;
        let context = Context {
            mark: get(&buffer, MARK),
            priority: get(&buffer, PRIORITY),
        };
        Ok(Outcome {
            value,
            context,
            run_ns,
        })
    }
}

/// Loads a program. A signal, or the freezer of a control group, ends the verifier before its time: then again.
fn load(
    kind: ProgramKind,
    instructions: &[u64],
    name: &[u8; 16],
    level: Log,
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    let kind = match kind {
        ProgramKind::Classifier => 3,
        ProgramKind::IpOutput => 12,
    };
    let mut done = sys::bpf::load(kind, instructions, name, level, log);
    for _ in 1..TRIES {
        match &done {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                done = sys::bpf::load(kind, instructions, name, level, log);
            }
            _ => break,
        }
    }
    done
}

impl Effort {
    /// Reads "processed 88 insns (limit 1000000) max_states_per_insn 0 total_states 5 peak_states 5 mark_read 2".
    fn read(text: &str) -> Option<Self> {
        let line = text.lines().find(|line| line.starts_with("processed "))?;
        let after = |name: &str| {
            let mut words = line.split_whitespace().skip_while(|word| *word != name);
            words.nth(1)?.parse().ok()
        };
        Some(Self {
            instructions: after("processed")?,
            states: after("peak_states")?,
        })
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl LoadError {
    /// Whether the calling thread lacks the privilege (CAP_BPF and CAP_NET_ADMIN, or root).
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.error.kind() == io::ErrorKind::PermissionDenied && self.log.is_empty()
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_forbidden() {
            return write!(
                f,
                "the kernel loads eBPF programs only for root or with CAP_BPF and CAP_NET_ADMIN"
            );
        }
        write!(f, "the kernel refused the eBPF program: {}", self.error)?;
        for line in &self.log {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl core::error::Error for LoadError {}

/// More bytes than `struct __sk_buff` has, which grows with the kernel (192 in Linux 6.18), and fields of it.
const SK_BUFF: usize = 256;
const MARK: usize = 8;
const PRIORITY: usize = 32;

fn put(buffer: &mut [u8; SK_BUFF], at: usize, value: u32) {
    buffer[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

fn get(buffer: &[u8; SK_BUFF], at: usize) -> u32 {
    u32::from_ne_bytes([buffer[at], buffer[at + 1], buffer[at + 2], buffer[at + 3]])
}

/// A name as the kernel accepts it: at most 15 of its characters, and a 0.
fn name_of(name: &str) -> [u8; 16] {
    let mut octets = [0; 16];
    let allowed = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'_' | b'.');
    for (place, octet) in octets[..15].iter_mut().zip(name.bytes().filter(allowed)) {
        *place = octet;
    }
    octets
}

/// The text up to its final 0.
fn text(log: &[u8]) -> String {
    let end = log.iter().position(|&octet| octet == 0);
    String::from_utf8_lossy(&log[..end.unwrap_or(log.len())]).into_owned()
}

fn last_lines(log: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = text(log)
        .lines()
        .rev()
        .take(LOG_LINES)
        .map(str::to_owned)
        .collect();
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `r0 = 7; exit`.
    const SEVEN: [u64; 2] = [0x0000_0007_0000_00b7, 0x95];

    /// `None` without the privilege, which a test reports.
    fn load(instructions: &[u64]) -> Option<Result<Program, LoadError>> {
        let loaded = Program::load(ProgramKind::Classifier, "head-end test.1", instructions);
        if loaded.as_ref().is_err_and(LoadError::is_forbidden) {
            assert!(
                !rustix::process::geteuid().is_root(),
                "root may load programs"
            );
            eprintln!("skipped: {}", loaded.expect_err("forbidden"));
            return None;
        }
        Some(loaded)
    }

    #[test]
    fn a_program_runs_and_returns_its_value() {
        let Some(program) = load(&SEVEN) else { return };
        let program = program.expect("a valid program");
        let context = Context {
            mark: 3,
            priority: 9,
        };
        let outcome = program.run(&[0; 60], context, 1).expect("a run");
        assert_eq!((outcome.value, outcome.context), (7, context));
        assert!(program.run(&[0; 3], context, 1).is_err());
    }

    #[test]
    fn a_program_is_found_by_its_number_until_it_is_gone() {
        let Some(program) = load(&SEVEN) else { return };
        let program = program.expect("a valid program");
        let (id, tag) = program.identity().expect("its number");
        let again = Program::by_id(id).expect("the same program");
        assert_eq!(again.identity().expect("its number"), (id, tag));
        let outcome = again.run(&[0; 60], Context::default(), 1);
        assert_eq!(outcome.expect("a run").value, 7);
        drop((program, again));
        assert!(Program::by_id(id).is_err(), "nothing holds it");
    }

    #[test]
    fn a_refused_program_carries_the_verifiers_last_lines() {
        // `exit` without a value in r0.
        let Some(refused) = load(&[0x95]) else { return };
        let error = refused.expect_err("an invalid program");
        assert!(!error.is_forbidden());
        assert!(error.log.len() <= LOG_LINES);
        assert!(error.to_string().contains("R0 !read_ok"), "{error}");
    }

    #[test]
    fn the_reason_at_the_end_of_a_long_text_is_kept() {
        // `r2 = 0; do r2 += 1 while r2 < 20000; exit` without a value in r0: two lines of text for each round.
        let long = [0x02b7, 0x0000_0001_0000_0207, 0x0000_4e20_fffe_02a5, 0x95];
        let Some(refused) = load(&long) else { return };
        let error = refused.expect_err("an invalid program");
        assert!(error.to_string().contains("R0 !read_ok"), "{error}");
        let mut short = vec![0; LOG_BYTES];
        let name = name_of("long");
        let kind = ProgramKind::Classifier;
        let again = super::load(kind, &long, &name, Log::Steps, &mut short);
        let errno = again.expect_err("an invalid program").raw_os_error();
        assert_eq!(
            errno,
            Some(libc::ENOSPC),
            "the text is longer than the first buffer"
        );
    }

    #[test]
    fn the_verifiers_work_is_counted() {
        if load(&SEVEN).is_none() {
            return;
        }
        let effort = Program::effort(ProgramKind::Classifier, &SEVEN).expect("a valid program");
        assert_eq!(effort.expect("counted").instructions, 2);
        let refused = Program::effort(ProgramKind::Classifier, &[0x95]);
        assert!(refused.is_err(), "an invalid program");
        let line = "processed 7 insns (limit 1000000) max_states_per_insn 0 total_states 5 peak_states 4 mark_read 2\n";
        let read = Effort::read(&format!("verification time 9 usec\n{line}"));
        let (instructions, states) = (7, 4);
        assert_eq!(
            read,
            Some(Effort {
                instructions,
                states
            })
        );
        assert_eq!(Effort::read("processed many"), None);
    }

    #[test]
    fn a_name_has_only_what_the_kernel_accepts() {
        assert_eq!(&name_of("head-end test.1"), b"headendtest.1\0\0\0");
        assert_eq!(&name_of("0123456789abcdefgh"), b"0123456789abcde\0");
    }
}
