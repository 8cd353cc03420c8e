//! `headend lab bufferbloat`: loads the link to a responder and measures what that adds to the delay of pings.
//!
//! | module | contents |
//! |---|---|
//! | `args` | the command line and its meaning |
//! | `streams` | TCP streams to and from the load service |
//! | `course` | one run: its phases in order, beside the pings |
//! | `publish` | files, pictures and text |
//!
//! `lab::bufferbloat` judges and draws what is measured here. docs/bufferbloat.md is the page.

mod args;
mod course;
mod publish;
mod streams;

use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::bufferbloat::{Grade, Run, Verdict, accounts};
use reactor::Signals;

pub(super) use args::BloatArgs;
use args::Task;
use course::{Course, Ran};
use publish::Files;

/// Longest sleep before signals are checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// From the end of the command of --exec to the second run.
const SETTLE: Duration = Duration::from_secs(1);

/// Runs the test, and prints and writes its results.
///
/// # Errors
/// What ended the test; what was measured until then is printed and written.
pub(super) fn run(args: &BloatArgs) -> Result<ExitCode> {
    // Before any thread starts, since threads inherit the set of blocked signals.
    let signals = Signals::new()?;
    let task = Task::new(args)?;
    let files = Files::open(&task)?;
    let (ran, ended) = measure(&task, &signals);
    // What ended the test is reported last.
    let last = ended.as_ref().err().map(|error| format!("{error:#}"));
    let published = publish::publish(&task, files, &ran, last.as_deref());
    ended.and(published)?;
    Ok(status(task.fail_over, ran.last().map(|(_, ran)| &ran.run)))
}

/// Exit status 1: the last run has a worse grade than is permitted, or none.
fn status(fail_over: Option<Grade>, last: Option<&Run>) -> ExitCode {
    let grade = last.and_then(|run| Verdict::of(&accounts(run)).grade);
    match fail_over {
        Some(limit) if grade.is_none_or(|grade| grade > limit) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// The runs, each with its name, and what ended the test.
fn measure(task: &Task, signals: &Signals) -> (Vec<(String, Ran)>, Result<()>) {
    let course = Course { task, signals };
    let Some(command) = &task.exec else {
        let name = if task.compare.is_empty() {
            "run"
        } else {
            "now"
        };
        let (ran, ended) = split(course.run(name));
        return (ran.into_iter().collect(), ended);
    };
    let (before, ended) = split(course.run("before"));
    let mut all: Vec<(String, Ran)> = before.into_iter().collect();
    let ended = ended.and_then(|()| {
        if all.iter().any(|(_, ran)| ran.run.interrupted) {
            return Ok(());
        }
        execute(command, signals)?;
        let (after, ended) = split(course.run("after"));
        all.extend(after);
        ended
    });
    (all, ended)
}

/// A run that began has results, whatever ended it.
fn split(ran: Result<(String, Ran)>) -> (Option<(String, Ran)>, Result<()>) {
    match ran {
        Ok((name, mut ran)) => {
            let ended = ran.ended.take().map_or(Ok(()), Err);
            (Some((name, ran)), ended)
        }
        Err(error) => (None, Err(error)),
    }
}

/// Runs the command of --exec in a shell. Its output goes to standard error, so that ours stays readable for programs.
fn execute(command: &str, signals: &Signals) -> Result<()> {
    use std::os::fd::AsFd;
    let failed = || format!("--exec {command:?} cannot be run");
    let errors = std::io::stderr().as_fd().try_clone_to_owned()?;
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::from(errors))
        .spawn()
        .with_context(failed)?;
    let status = loop {
        if let Some(status) = child.try_wait().with_context(failed)? {
            break status;
        }
        if signals.next_signal()?.is_some() {
            // The shell ends; what it has started is its own.
            let _ = child.kill();
            let _ = child.wait();
            bail!("--exec {command:?} was stopped by a signal; there is no second run");
        }
        std::thread::sleep(LOOK_EVERY);
    };
    if !status.success() {
        bail!("--exec {command:?} failed ({status}); there is no second run");
    }
    std::thread::sleep(SETTLE);
    Ok(())
}
