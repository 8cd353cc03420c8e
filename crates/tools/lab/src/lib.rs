//! `headend lab`: experiments with hosts and links of their own. The experiments are in the `lab`
//! crate; this one reads the command line, shows progress and writes files.
//!
//! | module | contents |
//! |---|---|
//! | `args` | the command line of `home-gateway`, and its meaning |
//! | `bufferbloat` | `bufferbloat`: what load adds to the delay of other packets |
//! | `host` | `use`: the resources of this host |
//! | `course` | the measurements in order, on a thread of its own |
//!
//! Exit status: 0 if done, or if stopped by a signal with results, which are written; 2 after an
//! error; 1 from `use` if a resource is saturated, and from `bufferbloat` if the grade is too bad.
#![forbid(unsafe_code)]

mod args;
mod bufferbloat;
mod course;
mod host;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use lab::gateway::outcome::Outcome;
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
            .and_then(|task| home_gateway(&task))
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
    let mut outcome = course::empty(task, MachineInfo::read());
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
    let measured = outcome.rows.iter().any(|row| !row.runs.is_empty())
        || !outcome.fairness.is_empty()
        || !outcome.experiments.is_empty();
    if measured {
        publish(task, &outcome)?;
    }
    if !measured {
        // Removed only if it is empty.
        let _ = std::fs::remove_dir(&task.directory);
    }
    match failed {
        Some(error) => Err(error.into()),
        None if !measured => bail!("stopped before anything was measured"),
        None => Ok(()),
    }
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
