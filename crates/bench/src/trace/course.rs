//! What the analyser benchmark measures, and in which order.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use lab::captures::{KINDS, Kind, SCALE_MAX, named};
use lab::fit;
use lab::plot::number::{grouped, human_seconds};

use super::TraceArgs;
use super::child::{Used, measure};
use super::programs::{Peer, TraceProgram};
use super::store::{Capture, CaptureStore};

/// The sizes of a capture, as multiples of the scale.
const SIZES: [f64; 3] = [1.0, 2.0, 4.0];
/// Sizes at which other analysers are measured, until one takes too long.
const PEER_SIZES: [f64; 7] = [1.0 / 64.0, 1.0 / 32.0, 0.0625, 0.125, 0.25, 0.5, 1.0];
/// Least number of packets for other analysers; with fewer, their start-up time would dominate.
const PEER_PACKETS_MIN: u64 = 2_000;
/// A measurement that takes longer is not repeated.
const REPEATED_UP_TO_S: f64 = 8.0;
/// Time limit for our own analyser, which is never reached.
const OURS_LIMIT: Duration = Duration::from_secs(1800);
/// The capture with many connections, used for memory per connection.
pub(super) const MANY: &str = "short";

/// What is measured at each size.
pub(super) const ONE_THREAD: [TraceProgram; 4] = [
    TraceProgram::Read,
    TraceProgram::Parse,
    TraceProgram::Quiet,
    TraceProgram::Why,
];

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) kinds: Vec<&'static str>,
    /// Factor of the smallest of the three sizes.
    pub(super) factor: f64,
    pub(super) rounds: u32,
    pub(super) threads: Vec<u32>,
    pub(super) peers: Vec<Peer>,
    /// Time limit of another analyser for one capture.
    pub(super) peer_limit: Duration,
}

impl TraceArgs {
    /// The plan for the command line's options.
    pub(super) fn plan(&self) -> Plan {
        let kinds: Vec<&'static str> = if self.only.is_empty() {
            KINDS.iter().map(|kind| kind.name).collect()
        } else {
            self.only.iter().map(|kind| kind.name).collect()
        };
        let scale = if self.quick { 0.002 } else { 1.0 };
        Plan {
            kinds,
            factor: self.scale.unwrap_or(scale),
            rounds: if self.quick { 1 } else { self.rounds },
            threads: self.threads.clone(),
            peers: self.against.clone(),
            peer_limit: Duration::from_secs(self.limit_s.into()),
        }
    }
}

/// One reader of one capture.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) program: TraceProgram,
    pub(super) kind: &'static str,
    pub(super) factor: f64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) connections: Option<u64>,
    pub(super) runs: Vec<Used>,
}

impl Measured {
    /// The run with the median processor time.
    pub(super) fn median(&self) -> Used {
        let mut runs = self.runs.clone();
        runs.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
        runs[runs.len() / 2]
    }

    /// The median time from start to end.
    pub(super) fn elapsed_s(&self) -> f64 {
        let mut seconds: Vec<f64> = self.runs.iter().map(|run| run.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    }

    pub(super) fn cpu_s(&self) -> f64 {
        self.median().cpu_s
    }

    /// Packets per second of processor time.
    pub(super) fn packets_per_s(&self) -> f64 {
        self.packets as f64 / self.cpu_s().max(1e-9)
    }
}

/// All results.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) all: Vec<Measured>,
    /// Memory for a capture of one connection.
    pub(super) one_connection_bytes: Option<u64>,
    /// What could not be measured, and why.
    pub(super) notes: Vec<String>,
}

impl Results {
    pub(super) fn of(&self, program: TraceProgram, kind: &str) -> impl Iterator<Item = &Measured> {
        self.all
            .iter()
            .filter(move |one| one.program == program && one.kind == kind)
    }

    /// The result at the smallest of the three sizes, which at scale 1 is the size that the
    /// capture's description gives.
    pub(super) fn at(&self, program: TraceProgram, kind: &str, factor: f64) -> Option<&Measured> {
        self.of(program, kind).find(|one| one.factor == factor)
    }

    /// How processor time grows with the number of packets; 1 means proportionally.
    pub(super) fn exponent(&self, program: TraceProgram, kind: &str) -> Option<f64> {
        exponent(self.of(program, kind))
    }

    fn add(&mut self, program: TraceProgram, capture: &Capture, used: Used) {
        let same = |one: &&mut Measured| {
            one.program == program && one.kind == capture.kind.name && one.factor == capture.factor
        };
        match self.all.iter_mut().find(same) {
            Some(one) => one.runs.push(used),
            None => self.all.push(Measured {
                program,
                kind: capture.kind.name,
                factor: capture.factor,
                packets: capture.packets,
                bytes: capture.bytes,
                connections: capture.connections,
                runs: vec![used],
            }),
        }
    }
}

/// Fitted over the three largest sizes.
fn exponent<'a>(sizes: impl Iterator<Item = &'a Measured>) -> Option<f64> {
    let mut points: Vec<(f64, f64)> = sizes.map(|one| (one.packets as f64, one.cpu_s())).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let largest = &points[points.len().saturating_sub(3)..];
    fit::log_log(largest).map(|law| law.exponent)
}

/// Number of connections in a capture: the lines of our report.
fn connections(capture: &Capture) -> Result<u64> {
    let words = TraceProgram::Brief.command(&capture.path, &capture.path)?;
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start a process")?;
    let report = BufReader::new(child.stdout.take().context("no report")?);
    let mut count = 0;
    for line in report.lines() {
        let line = line?;
        let number = line.split_once(": ").map(|(number, _)| number.trim());
        count += u64::from(number.is_some_and(|number| number.parse::<u64>().is_ok()));
    }
    ensure!(child.wait()?.success(), "headend trace fails");
    Ok(count)
}

/// Carries out the measurements.
pub(super) struct Course<'a> {
    pub(super) store: &'a CaptureStore,
    pub(super) bar: &'a ProgressBar,
    pub(super) plan: &'a Plan,
    pub(super) results: Results,
}

impl Course<'_> {
    /// Measures everything.
    ///
    /// # Errors
    /// A capture cannot be written, or one of those measured fails.
    pub(super) fn run(&mut self) -> Result<()> {
        for name in &self.plan.kinds {
            let kind = named(name).context("a capture that nobody knows")?;
            self.ours(kind)?;
            self.peers(kind)?;
        }
        if self.plan.kinds.contains(&MANY) {
            self.one_connection()?;
        }
        Ok(())
    }

    fn ours(&mut self, kind: &'static Kind) -> Result<()> {
        let factors = SIZES.map(|size| size * self.plan.factor);
        let mut captures = Vec::new();
        for factor in factors.into_iter().filter(|factor| *factor <= SCALE_MAX) {
            let mut capture = self.capture(kind, factor)?;
            if kind.name == MANY {
                capture.connections = Some(connections(&capture)?);
            }
            captures.push(capture);
        }
        for _ in 0..self.plan.rounds {
            for capture in &captures {
                for program in ONE_THREAD {
                    self.once(program, capture, OURS_LIMIT)?;
                }
            }
        }
        let first = captures.first().context("no capture")?;
        let mut asked = vec![TraceProgram::Brief, TraceProgram::Long];
        // With two files per connection, the file system would dominate.
        if !["short", "mixed"].contains(&kind.name) {
            asked.extend([TraceProgram::Sequences, TraceProgram::Graphs]);
        }
        asked.extend(self.plan.threads.iter().map(|n| TraceProgram::Threads(*n)));
        for _ in 0..self.plan.rounds {
            for program in &asked {
                self.once(*program, first, OURS_LIMIT)?;
            }
        }
        for capture in &captures[1..] {
            self.store.done_with(capture);
        }
        Ok(())
    }

    /// Measures the memory for one connection. What exceeds it in a capture of many is divided by
    /// their number.
    fn one_connection(&mut self) -> Result<()> {
        let kind = named(MANY).context(MANY)?;
        let capture = self.capture(kind, 1e-7)?;
        let command = TraceProgram::Quiet.command(&capture.path, &capture.path)?;
        let used = measure(&command, OURS_LIMIT)?;
        self.results.one_connection_bytes = used.map(|used| used.resident_bytes);
        self.store.done_with(&capture);
        Ok(())
    }

    /// Measures each of the other analysers at growing sizes, until the next would take too long.
    fn peers(&mut self, kind: &'static Kind) -> Result<()> {
        for &peer in &self.plan.peers {
            let program = TraceProgram::Peer(peer);
            for size in PEER_SIZES {
                let capture = self.capture(kind, size * self.plan.factor)?;
                let enough = capture.packets >= PEER_PACKETS_MIN || size == 1.0;
                let ended = !enough || self.peer(program, &capture)?;
                if size < 1.0 {
                    self.store.done_with(&capture);
                }
                if !ended {
                    break;
                }
            }
        }
        let capture = self.capture(kind, self.plan.factor)?;
        self.store.done_with(&capture);
        Ok(())
    }

    /// Measures one size; returns whether twice the size is worth trying.
    fn peer(&mut self, program: TraceProgram, capture: &Capture) -> Result<bool> {
        let limit = self.plan.peer_limit;
        for _ in 0..self.plan.rounds {
            if !self.once(program, capture, limit)? {
                return Ok(false);
            }
        }
        let (name, kind) = (program.name(), capture.kind.name);
        let Some(took) = self.results.at(program, kind, capture.factor) else {
            return Ok(false);
        };
        let took_s = took.elapsed_s();
        let growth = self.results.exponent(program, kind).unwrap_or(1.0).max(1.0);
        let next_s = took_s * 2f64.powf(growth);
        let worth = next_s <= limit.as_secs_f64();
        if !worth && capture.factor < self.plan.factor {
            self.results.notes.push(format!(
                "{name} on {kind}: {} packets took it {}, twice as many would take {}",
                grouped(capture.packets as f64, 0),
                human_seconds(took_s),
                human_seconds(next_s)
            ));
        }
        Ok(worth)
    }

    /// Measures once, unless it is known to take too long. Returns false if it did not end within
    /// the limit.
    fn once(&mut self, program: TraceProgram, capture: &Capture, limit: Duration) -> Result<bool> {
        let kind = capture.kind.name;
        if let Some(before) = self.results.at(program, kind, capture.factor)
            && before.elapsed_s() > REPEATED_UP_TO_S
        {
            return Ok(true);
        }
        let packets = grouped(capture.packets as f64, 0);
        let what = format!("{kind}, {packets} packets: {}", program.name());
        self.bar.set_message(what);
        let run = |dir: &Path| measure(&program.command(&capture.path, dir)?, limit);
        let used = if program.writes_graphs() {
            self.store.with_directory(run)?
        } else {
            run(&capture.path)?
        };
        match used {
            Some(used) => self.results.add(program, capture, used),
            None => self.results.notes.push(format!(
                "{} on {kind}: stopped after {} on {packets} packets",
                program.name(),
                human_seconds(limit.as_secs_f64())
            )),
        }
        Ok(used.is_some())
    }

    fn capture(&self, kind: &'static Kind, factor: f64) -> Result<Capture> {
        self.bar.set_message(format!("writing {}", kind.name));
        self.store.capture(kind, factor)
    }
}
