//! `cargo run --release -p fuzz -- TARGET [--seconds N] [--seed S]`
//!
//! Runs one target, or `all`, for a while, and prints executions per second. An input that makes a target panic
//! is stored in `fuzz/crashes/`, its name is printed, and the exit code is 1; `--input FILE` runs it again.
#![forbid(unsafe_code)]

use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::Parser;
use fuzz::mutate::Mutator;
use fuzz::{TARGETS, Target, corpus};

/// Passes mutated bytes to a decoder and checks its invariants.
#[derive(Parser)]
struct Arguments {
    /// The target's name, or `all`.
    target: String,
    /// How long to run each target.
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// The seed of the mutations; by default, the time.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Run the target on this file only.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
}

/// Executions between two checks of the clock.
const BATCH: u64 = 512;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let targets: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| arguments.target == target.name || arguments.target == "all")
        .collect();
    if targets.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!(
            "no target {}; there are: {}",
            arguments.target,
            names.join(", ")
        );
        return ExitCode::from(2);
    }
    let mut worst = ExitCode::SUCCESS;
    for target in targets {
        let done = match &arguments.input {
            Some(path) => run_file(target, path),
            None => run(target, &arguments),
        };
        if let Err(reason) = done {
            eprintln!("{}: {reason}", target.name);
            worst = ExitCode::FAILURE;
        }
    }
    worst
}

fn run_file(target: &Target, path: &PathBuf) -> Result<(), String> {
    let input = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    (target.run)(&input);
    println!("{}: {} holds", target.name, path.display());
    Ok(())
}

fn run(target: &Target, arguments: &Arguments) -> Result<(), String> {
    let seed = arguments.seed.unwrap_or_else(seed_from_time);
    let corpus = corpus::load(target).map_err(|error| format!("corpus: {error}"))?;
    println!(
        "{}: {} corpus files, seed {seed}",
        target.name,
        corpus.len()
    );
    for input in &corpus {
        execute(target, input)?;
    }
    let mut mutator = Mutator::new(seed, corpus, target.len_max);
    let mut input = Vec::new();
    let start = Instant::now();
    let limit = Duration::from_secs(arguments.seconds);
    let mut executions = 0;
    while start.elapsed() < limit {
        for _ in 0..BATCH {
            mutator.next_input(&mut input);
            execute(target, &input)?;
        }
        executions += BATCH;
    }
    let per_second = executions as f64 / start.elapsed().as_secs_f64();
    println!(
        "{}: {executions} executions, {per_second:.0}/s",
        target.name
    );
    Ok(())
}

/// Runs the target once; a panic stores the input and ends the run.
fn execute(target: &Target, input: &[u8]) -> Result<(), String> {
    panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|_| {
        match corpus::keep_crash(target, input) {
            Ok(path) => format!("panicked; the input is {}", path.display()),
            Err(error) => format!("panicked on {input:02x?}, which could not be kept: {error}"),
        }
    })
}

fn seed_from_time() -> u64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    since.as_nanos() as u64
}
