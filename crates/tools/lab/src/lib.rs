//! `headend lab`: experiments with hosts and links of their own. The experiments are in the `lab`
//! crate; this one reads the command line, shows progress and writes files.
//!
//! | module | contents |
//! |---|---|
//! | `args` | the command line of `home-gateway`, and its meaning |
//! | `bufferbloat` | `bufferbloat`: what load adds to the delay of other packets |
//! | `host` | `use`: the resources of this host |
//! | `guest` | the experiment in a guest with another kernel |
//! | `course` | the measurements in order, on a thread of its own |
//!
//! Exit status: 0 if done, or if stopped by a signal with results, which are written; 2 after an
//! error; 1 from `use` if a resource is saturated, and from `bufferbloat` if the grade is too bad.
#![forbid(unsafe_code)]

mod args;
mod bufferbloat;
mod course;
mod guest;
mod host;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use lab::gateway::engine::Engine;
use lab::gateway::outcome::{EngineOutcome, Outcome, RowOutcome};
use lab::gateway::report;
use lab::gateway::run::Place;
use lab::report::{CoreWitness, MachineInfo};
use reactor::Signals;
use reactor::namespace::{Namespace, become_root_in_user_namespace};

use args::{GatewayArgs, Task};
use course::Step;

/// Longest wait before signals are checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Experiments with hosts and links of their own.
#[derive(Debug, clap::Args)]
pub struct LabArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measure two hosts behind a slow link: how the load of one delays the other, without and with a policy
    HomeGateway(GatewayArgs),
    /// Measure what load adds to the delay of other packets between this host and a responder, with a grade
    Bufferbloat(Box<bufferbloat::BloatArgs>),
    /// Judge utilisation, saturation and errors of each resource of this host
    Use(host::UseArgs),
}

/// Runs the experiment of the command line.
pub fn run(args: &LabArgs) -> Result<ExitCode> {
    let done = match &args.verb {
        Verb::HomeGateway(args) => Task::new(args)
            .and_then(|task| match args.guest(&task)? {
                Some(guest) => guest::print(&guest.run()?),
                None => home_gateway(&task),
            })
            .map(|()| ExitCode::SUCCESS),
        Verb::Bufferbloat(args) => bufferbloat::run(args),
        Verb::Use(args) => host::run(args),
    };
    match done {
        Ok(status) => Ok(status),
        Err(error) if cli::is_broken_pipe(&error) => Err(error),
        Err(error) => {
            eprintln!("headend lab: {error:#}");
            Ok(ExitCode::from(2))
        }
    }
}

fn home_gateway(task: &Task) -> Result<()> {
    // Before any thread starts, since threads inherit the set of blocked signals.
    let signals = Signals::new()?;
    if task.plan.place == Place::Namespaces {
        may_make_namespaces()?;
    }
    let engines = engines(task)?;
    // Reported now and not after all measurements.
    std::fs::create_dir_all(&task.directory)
        .with_context(|| format!("cannot make {}", task.directory.display()))?;
    let witness = CoreWitness::start();
    let (steps, taken) = mpsc::channel();
    let bar = progress(course::parts(task));
    let thread = std::thread::spawn({
        let task = task.clone();
        move || course::run(&task, &steps)
    });
    let mut outcome = course::empty(task, engines, MachineInfo::read());
    let mut under_way = None;
    let ended = loop {
        match taken.recv_timeout(LOOK_EVERY) {
            Ok(Step::Begins(what)) => {
                under_way = Some(what.clone());
                bar.set_message(what);
            }
            Ok(step) => {
                bar.inc(1);
                course::keep(&mut outcome, step);
            }
            Err(RecvTimeoutError::Disconnected) => break true,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if signals.next_signal()?.is_some() {
            if outcome.interrupted {
                break false;
            }
            // The running measurement ends with partial results. A second signal ends it without
            // waiting.
            outcome.interrupted = true;
            outcome.cut_short = under_way.take();
            task.plan.stop.set();
            bar.set_message("stopping");
        }
    };
    bar.finish_and_clear();
    // If nobody waits for the measurements, they end with the process, and so do their namespaces.
    let failed = match ended {
        true => thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .err(),
        false => None,
    };
    outcome.machine = MachineInfo::read_with(witness);
    let measured = is_measured(&outcome);
    if measured {
        publish(task, &outcome)?;
    } else {
        // Removed only if it is empty.
        let _ = std::fs::remove_dir(&task.directory);
    }
    match failed {
        Some(error) => Err(error.into()),
        None if !measured => bail!("stopped before anything was measured"),
        None => Ok(()),
    }
}

/// Whether there is anything to write.
fn is_measured(outcome: &Outcome) -> bool {
    let has_figures = |row: &RowOutcome| !row.runs.is_empty() || row.failed.is_some();
    outcome.rows.iter().any(has_figures)
        || !outcome.fairness.is_empty()
        || !outcome.experiments.is_empty()
}

/// Whether namespaces can be made, with present privileges or as root of a user namespace.
fn may_make_namespaces() -> Result<()> {
    match Namespace::new() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Ok(become_root_in_user_namespace()?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Tries each engine.
///
/// # Errors
/// One cannot be had in this kernel; names those that can.
fn engines(task: &Task) -> Result<Vec<EngineOutcome>> {
    let mut outcomes = Vec::new();
    for engine in &task.engines {
        match engine.try_out() {
            Ok(lacks) => {
                for lack in &lacks {
                    eprintln!("headend lab: --engine {}: {lack}", engine.name());
                }
                outcomes.push(EngineOutcome {
                    name: engine.name(),
                    how: engine.how(),
                    lacks,
                });
            }
            Err(error) => {
                return Err(refusal(task, engine, &error));
            }
        }
    }
    Ok(outcomes)
}

/// Why an engine cannot be had, and what can be had in its place.
fn refusal(task: &Task, engine: &Engine, error: &std::io::Error) -> anyhow::Error {
    let kernel = MachineInfo::read().kernel;
    let module = match engine {
        Engine::Cake(_) => " (module sch_cake)",
        Engine::Kernel(_) | Engine::User => "",
    };
    let name = engine.name();
    let can = task.engines.iter().filter(|other| *other != engine);
    let can = can.filter(|other| **other != Engine::User && other.try_out().is_ok());
    let can: Vec<_> = std::iter::once("user")
        .chain(can.map(Engine::name))
        .collect();
    let error = error.to_string();
    let error = error.trim_end_matches('.');
    anyhow::anyhow!(
        "--engine {name}: {kernel} cannot set it up{module}: {error}; here take --engine {}, or name a kernel package of Debian with --guest DIR",
        can.join(",")
    )
}

fn progress(parts: u64) -> ProgressBar {
    // Nothing is drawn if standard error is not a terminal.
    let bar = ProgressBar::new(parts);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Writes the files, and prints the requested output.
fn publish(task: &Task, outcome: &Outcome) -> Result<()> {
    let json = outcome.to_json();
    let tables = report::tables(outcome);
    let csv: Vec<String> = tables.iter().map(|table| table.to_csv()).collect();
    let rows = csv.join("\r\n");
    let files = [
        ("results.json", json.as_str()),
        ("rows.csv", &rows),
        ("pings.csv", &outcome.pings_csv()),
        ("report.html", &report::page(outcome)),
    ];
    for (name, content) in files {
        write(&task.directory.join(name), content)?;
    }
    let mut out = std::io::stdout().lock();
    if task.json {
        out.write_all(json.as_bytes())?;
    } else if task.csv {
        out.write_all(rows.as_bytes())?;
    } else {
        for table in &tables {
            writeln!(out, "{}", table.to_text())?;
        }
        if outcome.compares() {
            for line in report::engines(outcome) {
                writeln!(out, "{line}")?;
            }
            writeln!(out)?;
        }
        for line in outcome.machine.lines() {
            writeln!(out, "{line}")?;
        }
        if let Some(stopped) = outcome.stopped() {
            writeln!(out, "\n{stopped}")?;
        }
        let report = task.directory.join("report.html");
        writeln!(out, "\nThe report: {}", report.display())?;
    }
    Ok(())
}

fn write(path: &Path, content: &str) -> Result<()> {
    std::fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
