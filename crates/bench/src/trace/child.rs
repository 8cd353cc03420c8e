//! Runs what is measured as the only child of a helper process, `headend bench trace-child`. The
//! kernel's counters of children are then those of this one process, and the benchmark's own memory
//! is not included. The bare loops are processes too, so that they are measured in the same way as
//! an analyser.

use std::ffi::OsString;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use capfile::{Block, Reader};
use reactor::usage;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};
use wire::packet::{self, Packet};
use wire::tcp::Tcp;

/// Run a bare loop, or a program, and say what it used.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceChildArgs {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, clap::Subcommand)]
enum Kind {
    /// Reads a file's records and does nothing with them
    Read { file: PathBuf },
    /// Reads them, and parses each down to its TCP header
    Parse { file: PathBuf },
    /// Runs a program whose output nobody reads, until it ends, the limit has passed or standard input ends
    Run {
        limit_s: f64,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
}

/// Resources that a program used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Used {
    /// Seconds from its start to its end.
    pub(crate) seconds: f64,
    /// Processor time in user and kernel mode, of all threads.
    pub(crate) cpu_s: f64,
    /// Its peak resident memory.
    pub(crate) resident_bytes: u64,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum End {
    Well,
    /// It was killed when the limit had passed.
    Stopped,
    /// It failed, with its own message or the kernel's.
    Badly(String),
}

/// Runs one of the kinds in this process.
pub(crate) fn run(args: &TraceChildArgs) -> Result<ExitCode> {
    match &args.kind {
        Kind::Read { file } => drop(black_box(read(file, |_| {})?)),
        Kind::Parse { file } => drop(black_box(read(file, parse)?)),
        Kind::Run { limit_s, command } => {
            let limit = Duration::try_from_secs_f64(*limit_s)?;
            // Nothing is written to standard input, so it ends when the parent is gone.
            let ran = run_here(limit, command, io::stdin().as_fd())?;
            println!("{}", serde_json::to_string(&ran)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a file to its end, block by block. Returns the number of records.
///
/// # Errors
/// The file cannot be read or is not valid.
pub(super) fn read(file: &Path, mut each: impl FnMut(&Block)) -> Result<u64> {
    let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let mut reader = Reader::new(opened).with_context(|| file.display().to_string())?;
    let mut block = Block::new();
    let mut records = 0;
    while reader.read_block(&mut block)? {
        records += block.records().len() as u64;
        each(&block);
    }
    if !reader.faults().is_empty() {
        bail!("{} is not whole", file.display());
    }
    Ok(records)
}

fn parse(block: &Block) {
    let mut packet = Packet::new();
    for record in block.records() {
        let frame = block.bytes(record);
        if packet::decode(record.link, frame, record.length, &mut packet).is_ok() {
            // Passed by reference, since copying the result would cost as much as the parsing.
            let _ = black_box(Tcp::parse(black_box(&packet)).as_ref());
        }
    }
}

/// Runs `command` until it ends, `limit` has passed, or `gone` becomes readable or is closed.
fn run_here(limit: Duration, command: &[OsString], gone: BorrowedFd<'_>) -> Result<(Used, End)> {
    let (program, arguments) = command.split_first().context("no program")?;
    let started = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
    let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let mut fds = [
        PollFd::new(&ended, PollFlags::IN),
        PollFd::new(&gone, PollFlags::IN),
    ];
    poll(&mut fds, Some(&Timespec::try_from(limit)?))?;
    let stopped = fds[0].revents().is_empty();
    if stopped {
        child.kill()?;
    }
    let seconds = started.elapsed().as_secs_f64();
    let status = child.wait()?;
    let used = usage::of_children();
    let end = match () {
        () if stopped => End::Stopped,
        () if status.success() => End::Well,
        () => End::Badly(status.to_string()),
    };
    let used = Used {
        seconds,
        cpu_s: used.cpu().as_secs_f64(),
        resident_bytes: used.resident_bytes_max,
    };
    Ok((used, end))
}

/// Runs `command` as a process and returns what it used; `None` if it was killed because it took
/// longer than `limit`.
///
/// # Errors
/// It cannot be started, or it ends with a status other than 0.
pub(crate) fn measure(command: &[OsString], limit: Duration) -> Result<Option<Used>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["bench", "trace-child", "run"])
        .arg(limit.as_secs_f64().to_string())
        .arg("--")
        .args(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start a process")?;
    // Kept open until the command has ended; closing it would mean that the parent is gone.
    let held = child.stdin.take();
    let output = child.wait_with_output()?;
    drop(held);
    let said = String::from_utf8_lossy(&output.stderr);
    let name = command.first().map(|program| program.to_string_lossy());
    let name = name.unwrap_or_default();
    let Ok((used, end)) = serde_json::from_slice::<(Used, End)>(&output.stdout) else {
        bail!("{name}: {}", said.trim());
    };
    match end {
        End::Well => Ok(Some(used)),
        End::Stopped => Ok(None),
        End::Badly(status) => bail!("{name}: {status}: {}", said.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_stopped_at_its_limit_and_one_that_fails_is_named() {
        let words = |line: &str| -> Vec<OsString> {
            let words = ["sh", "-c", line];
            words.map(OsString::from).into()
        };
        let (gone, _held) = io::pipe().unwrap();
        let run =
            |limit_s, line| run_here(Duration::from_secs_f64(limit_s), &words(line), gone.as_fd());
        let (used, end) = run(60.0, "exit 0").unwrap();
        assert_eq!(end, End::Well);
        assert!(used.resident_bytes > 100_000);
        let (_, end) = run(60.0, "exit 3").unwrap();
        assert!(matches!(&end, End::Badly(status) if status.contains('3')));
        assert_eq!(run(0.005, "exec sleep 60").unwrap().1, End::Stopped);
        let nowhere = ["no-such-program-anywhere".into()];
        assert!(run_here(Duration::ZERO, &nowhere, gone.as_fd()).is_err());
    }

    #[test]
    fn a_program_ends_with_those_who_wanted_it() {
        let (gone, held) = io::pipe().unwrap();
        drop(held);
        let command = ["sleep", "60"].map(OsString::from);
        let (_, end) = run_here(Duration::from_secs(60), &command, gone.as_fd()).unwrap();
        assert_eq!(end, End::Stopped);
    }
}
