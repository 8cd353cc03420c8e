//! Runs steps one after another, times them, and sums up.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// The outcome of a run of steps.
#[derive(Default)]
pub(crate) struct Report {
    steps: Vec<Step>,
    /// Steps that were skipped, with the reason.
    omitted: Vec<String>,
    /// Tests over all steps that ran tests.
    pub(crate) count: Count,
}

struct Step {
    name: &'static str,
    took: Duration,
    faults: Option<Vec<String>>,
}

impl Report {
    /// Runs a check that returns a summary or a list of faults.
    pub(crate) fn check(
        &mut self,
        name: &'static str,
        check: impl FnOnce() -> Result<String, Vec<String>>,
    ) -> bool {
        announce(name);
        let start = Instant::now();
        let outcome = check();
        match &outcome {
            Ok(what) => println!("{what}"),
            Err(faults) => println!("{} faults, listed in the summary", faults.len()),
        }
        self.add(name, start, outcome.err())
    }

    /// Prints that a step is skipped, and why.
    pub(crate) fn left_out(&mut self, name: &'static str, why: &str) {
        announce(name);
        println!("left out: {why}");
        self.omitted.push(format!("{name}: {why}"));
    }

    /// Runs a command that must succeed.
    pub(crate) fn command(&mut self, name: &'static str, command: &mut Command) -> bool {
        announce(name);
        let start = Instant::now();
        let faults = match command.status() {
            Ok(status) if status.success() => None,
            Ok(status) => Some(vec![format!("{}: {status}", spelt(command))]),
            Err(error) => Some(vec![format!("{}: {error}", spelt(command))]),
        };
        self.add(name, start, faults)
    }

    /// Runs a command that prints the summaries of `cargo test`, shows its output, and counts the tests.
    pub(crate) fn tests(&mut self, name: &'static str, command: &mut Command) -> bool {
        announce(name);
        let start = Instant::now();
        let (count, failures, fault) = count_tests(command);
        self.count.passed += count.passed;
        self.count.failed += count.failed;
        let fault =
            fault.or_else(|| (count == Count::default()).then(|| "no test was run".to_owned()));
        let faults = fault.map(|fault| std::iter::once(fault).chain(failures).collect());
        self.add(name, start, faults)
    }

    fn add(&mut self, name: &'static str, start: Instant, faults: Option<Vec<String>>) -> bool {
        let good = faults.is_none();
        self.steps.push(Step {
            name,
            took: start.elapsed(),
            faults,
        });
        good
    }

    /// Prints a line per step and the counts; true when nothing failed.
    pub(crate) fn close(&self) -> bool {
        announce("summary");
        let total: Duration = self.steps.iter().map(|step| step.took).sum();
        let share = |step: &Step| 100.0 * step.took.as_secs_f64() / total.as_secs_f64().max(1e-9);
        for step in &self.steps {
            let verdict = if step.faults.is_none() {
                "ok"
            } else {
                "FAILED"
            };
            println!(
                "{:>7.1} s  {:>3.0} %  {verdict:<6}  {}",
                step.took.as_secs_f64(),
                share(step),
                step.name
            );
            for fault in step.faults.iter().flatten() {
                println!("                            {fault}");
            }
        }
        for omitted in &self.omitted {
            println!("                 left out  {omitted}");
        }
        println!("{:>7.1} s  100 %  in all", total.as_secs_f64());
        self.steps.iter().all(|step| step.faults.is_none())
    }
}

fn announce(name: &str) {
    println!("\n== {name}");
    // The output of a step's command must follow its heading.
    let _ = std::io::stdout().flush();
}

/// Lines of output about failed tests that the summary repeats.
const FAILURE_LINES: usize = 200;

/// Runs a command. Returns the counts of its summaries, what it printed about failed tests, and its own fault.
fn count_tests(command: &mut Command) -> (Count, Vec<String>, Option<String>) {
    let mut count = Count::default();
    let mut failures = Vec::new();
    let mut is_failure = false;
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => {
            let fault = format!("{}: {error}", spelt(command));
            return (count, failures, Some(fault));
        }
    };
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::new(stdout);
        let mut line = Vec::new();
        while lines
            .read_until(b'\n', &mut line)
            .is_ok_and(|read| read > 0)
        {
            let text = String::from_utf8_lossy(&line);
            print!("{text}");
            // Each failed test's output has a heading of this form, and the counts follow the last one.
            is_failure |= text.starts_with("---- ");
            is_failure &= !text.starts_with("test result: ");
            if is_failure && failures.len() < FAILURE_LINES {
                failures.push(text.trim_end().to_owned());
            }
            if let Some(summary) = summary(&text) {
                count.passed += summary.passed;
                count.failed += summary.failed;
            }
            line.clear();
        }
    }
    let fault = match child.wait() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("{}: {status}", spelt(command))),
        Err(error) => Some(format!("{}: {error}", spelt(command))),
    };
    (count, failures, fault)
}

/// A command in the form in which it is typed.
fn spelt(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Reads `test result: ok. 12 passed; 0 failed; ...`.
fn summary(line: &str) -> Option<Count> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |name: &str| {
        counts
            .split("; ")
            .find_map(|part| part.trim().strip_suffix(name)?.trim().parse().ok())
    };
    Some(Count {
        passed: number("passed")?,
        failed: number("failed")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_cargo_test_is_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        assert_eq!(
            summary(line),
            Some(Count {
                passed: 12,
                failed: 3
            })
        );
        assert_eq!(summary("test a_result ... ok"), None);
    }

    #[test]
    fn a_command_that_fails_is_a_fault_and_its_tests_count() {
        let mut report = Report::default();
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'; exit 1",
        ]);
        assert!(!report.tests("tests", &mut command));
        assert_eq!(
            report.count,
            Count {
                passed: 1,
                failed: 2
            }
        );
        assert!(!report.close());
    }

    #[test]
    fn the_summary_repeats_what_a_failed_test_printed() {
        let mut command = Command::new("printf");
        let text = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\nleft: 1\n\ntest result: FAILED. 0 passed; 1 failed\nok\n";
        let (count, failures, fault) = count_tests(command.arg(text));
        assert_eq!((count.failed, fault), (1, None));
        assert_eq!(failures, ["---- a stdout ----", "left: 1", ""]);
    }

    #[test]
    fn a_test_step_that_runs_no_test_fails() {
        assert!(!Report::default().tests("tests", &mut Command::new("true")));
    }
}
