//! Runs the tests in parallel and prints results as `cargo test` does.

use crate::Options;
use crate::cases::{self, Case, Needs};
use crate::net::Wire;
use crate::sandbox::Work;
use anyhow::{Result, anyhow};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Tests that run at a time: they mostly wait, and share nothing. Those that assert rates follow one by one.
const AT_A_TIME: usize = 3;

/// Last lines of each log that a failed test shows.
const TAIL: usize = 25;

/// Logs that a failed test shows, since further ones rarely differ.
const LOGS: usize = 6;

/// The environment of a test.
pub(crate) struct Bench<'a> {
    /// Its two namespaces.
    pub(crate) wire: Wire,
    /// Its own directory, for configurations, logs and captures.
    pub(crate) directory: PathBuf,
    /// The run's files.
    pub(crate) work: &'a Work,
    /// The headend to test.
    pub(crate) headend: &'a Path,
    /// The workspace's root.
    pub(crate) root: &'a Path,
    /// An unpacked kernel package, for guests.
    pub(crate) kernel: &'a Path,
    /// Unpacked packages with Prometheus and its Python client.
    pub(crate) prometheus: &'a Path,
    /// The web page of the analyser.
    pub(crate) page: &'a Path,
    /// accel-ppp: `accel-pppd`, `modules` and `dictionary`.
    pub(crate) accel_ppp: Option<&'a Path>,
    /// BNG Blaster's program.
    pub(crate) bngblaster: Option<&'a Path>,
}

/// Runs all tests, or those whose name contains one of the options' names. True if all passed.
///
/// # Errors
/// No test has such a name.
pub(crate) fn run(work: &Work, options: &Options) -> Result<bool> {
    let all = match options.is_measured {
        true => cases::MEASURES,
        false => cases::ALL,
    };
    let (chosen, left_out) = choose(all, options)?;
    println!("running {} tests", chosen.len());
    for (name, flag) in &left_out {
        println!("test {name} ... left out: it needs {flag} DIR with the peer's sources");
    }
    let start = Instant::now();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let (alone, together): (Vec<_>, Vec<_>) =
        chosen.iter().copied().partition(|(_, case)| case.is_alone);
    let finish = |case: &Case, begin: Instant, outcome: Result<()>| {
        let mut failed = failed
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        print_outcome(case, begin.elapsed(), &outcome);
        failed.extend(outcome.err().map(|error| (case.name, error)));
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some((number, case)) = together.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let begin = Instant::now();
                    finish(case, begin, one(*number, case, work, options));
                }
            });
        }
    });
    for (number, case) in alone {
        let begin = Instant::now();
        finish(case, begin, one(number, case, work, options));
    }

    let failed = failed
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    for (name, error) in &failed {
        println!("\n---- {name} ----\n{error:#}");
        print_logs(&work.directory.join(name));
    }
    let verdict = if failed.is_empty() { "ok" } else { "FAILED" };
    let passed = chosen.len() - failed.len();
    println!(
        "\ntest result: {verdict}. {passed} passed; {} failed; {} ignored; 0 measured; {} filtered out; finished in {:.2}s",
        failed.len(),
        left_out.len(),
        all.len() - chosen.len() - left_out.len(),
        start.elapsed().as_secs_f64()
    );
    println!("{passed} passed, {} failed", failed.len());
    Ok(failed.is_empty())
}

/// The tests to run, with their numbers; and the names of those that are left out, with the flag of what they need.
type Choice = (
    Vec<(usize, &'static Case)>,
    Vec<(&'static str, &'static str)>,
);

fn choose(all: &'static [Case], options: &Options) -> Result<Choice> {
    let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
    for (number, case) in all.iter().enumerate() {
        match case.needs {
            _ if !is_chosen(case, &options.names) => {}
            Some(needs) if !is_given(needs, options) => left_out.push((case.name, needs.flag())),
            _ => chosen.push((number, case)),
        }
    }
    if chosen.is_empty() && left_out.is_empty() {
        return Err(anyhow!("no test has {:?} in its name", options.names));
    }
    Ok((chosen, left_out))
}

fn is_given(needs: Needs, options: &Options) -> bool {
    match needs {
        Needs::AccelPpp => options.accel_ppp.is_some(),
        Needs::BngBlaster => options.bngblaster.is_some(),
    }
}

fn is_chosen(case: &Case, names: &[String]) -> bool {
    names.is_empty() || names.iter().any(|name| case.name.contains(name.as_str()))
}

fn one(number: usize, case: &Case, work: &Work, options: &Options) -> Result<()> {
    let directory = work.directory.join(case.name);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    let bench = Bench {
        wire: Wire::new(&format!("t{number}"))?,
        directory,
        work,
        headend: &options.headend,
        root: &options.root,
        kernel: &options.kernel,
        prometheus: &options.prometheus,
        page: &options.page,
        accel_ppp: options.accel_ppp.as_deref(),
        bngblaster: options.bngblaster.as_deref(),
    };
    std::panic::catch_unwind(AssertUnwindSafe(|| (case.run)(&bench)))
        .unwrap_or_else(|_| Err(anyhow!("it panicked")))
}

fn print_outcome(case: &Case, took: Duration, outcome: &Result<()>) {
    let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
    println!(
        "test {} ... {verdict} ({:.1} s)",
        case.name,
        took.as_secs_f64()
    );
}

fn print_logs(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut logs: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
        .collect();
    logs.sort();
    // headend's log is always shown.
    logs.sort_by_key(|log| !is_ours(log));
    for log in logs.into_iter().take(LOGS) {
        let text = std::fs::read(&log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        println!("-- the end of {}", log.display());
        lines[lines.len().saturating_sub(TAIL)..]
            .iter()
            .for_each(|line| println!("   {line}"));
    }
}

fn is_ours(log: &Path) -> bool {
    log.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("headend"))
}
