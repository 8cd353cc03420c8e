//! Runs the fuzz targets in libFuzzer, guided by coverage, and merges the inputs that they find into the committed
//! corpora.
//!
//! The program is `fuzz/coverage`. It is a workspace of its own, because libFuzzer needs a C++ compiler. The compiler's
//! coverage pass works on stable Rust, but sanitizers do not, so no sanitizer is used. Except for merged inputs, a run
//! writes only to `target/fuzz`. Start reading at [`run`].

use crate::cargo;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// What `cargo fuzz build -s none` gives to the compiler.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares \
                     -Cllvm-args=-simplifycfg-branch-fold-threshold=0";

/// Inputs that a merge adds to a target's corpus at most, and their bytes: the ordinary tests run every prefix of every
/// input.
const MERGED_MAX: usize = 12;
const MERGED_BYTES_MAX: u64 = 2_048;
/// The same of a slow target.
const MERGED_BYTES_SLOW_MAX: u64 = 256;

/// How long each target runs unless the command line says otherwise.
const SECONDS: u64 = 60;

/// The words after `cargo xtask fuzz`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// A target's name, or `all`.
    target: String,
    seconds: u64,
    /// Whether inputs with new coverage are added to the committed corpora instead.
    merges: bool,
}

impl Arguments {
    /// Reads the words; `None` if they cannot be understood.
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        let (target, rest) = words.split_first()?;
        let (seconds, merges) = match rest {
            [] => (SECONDS, false),
            ["--merge"] => (SECONDS, true),
            [seconds] => (seconds.parse().ok().filter(|seconds| *seconds > 0)?, false),
            _ => return None,
        };
        let is_name = !target.starts_with('-');
        is_name.then(|| Self {
            target: (*target).to_owned(),
            seconds,
            merges,
        })
    }
}

/// A target of the program.
struct Target {
    name: String,
    len_max: String,
    is_slow: bool,
}

/// The program and the directories.
struct Engine {
    program: PathBuf,
    /// `fuzz/corpus`.
    committed: PathBuf,
    /// `target/fuzz`.
    directory: PathBuf,
}

/// Builds the program, and runs or merges the targets. True if no target failed.
///
/// # Errors
/// Why nothing could run.
pub(crate) fn run(
    root: &Path,
    target_directory: &Path,
    arguments: &Arguments,
) -> Result<bool, String> {
    let engine = Engine::build(root, target_directory)?;
    let targets = engine.targets()?;
    let chosen: Vec<&Target> = targets
        .iter()
        .filter(|target| arguments.target == target.name || arguments.target == "all")
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        let name = &arguments.target;
        return Err(format!("no target {name}; there are: {}", names.join(", ")));
    }
    let mut all_hold = true;
    for target in chosen {
        let done = match arguments.merges {
            true => engine.merge(target),
            false => engine.fuzz(target, arguments.seconds),
        };
        match done {
            Ok(line) => println!("{}: {line}", target.name),
            Err(fault) => {
                println!("{}: FAILED: {fault}", target.name);
                all_hold = false;
            }
        }
    }
    Ok(all_hold)
}

impl Engine {
    fn build(root: &Path, target_directory: &Path) -> Result<Self, String> {
        let has_compiler = Command::new("c++").arg("--version").output();
        if !has_compiler.is_ok_and(|output| output.status.success()) {
            return Err("libFuzzer needs a C++ compiler: apt-get install g++".to_owned());
        }
        let directory = target_directory.join("fuzz");
        let host = host()?;
        let package = root.join("fuzz/coverage");
        // The versions are those of the workspace; cargo adds libFuzzer's crates.
        let lock = package.join("Cargo.lock");
        fs::copy(root.join("Cargo.lock"), &lock).map_err(|error| said(&lock, &error))?;
        // With a target, cargo does not instrument build scripts and procedural macros.
        let status = cargo::command()
            .args(["build", "--release", "--target", &host, "--manifest-path"])
            .arg(package.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&directory)
            .env("RUSTFLAGS", FLAGS)
            .status();
        match status {
            Ok(status) if status.success() => Ok(Self {
                program: directory.join(host).join("release/fuzz-coverage"),
                committed: root.join("fuzz/corpus"),
                directory,
            }),
            Ok(status) => Err(format!("the build ended with {status}")),
            Err(error) => Err(format!("cargo cannot be run: {error}")),
        }
    }

    /// The program's targets.
    fn targets(&self) -> Result<Vec<Target>, String> {
        let output = Command::new(&self.program)
            .env("FUZZ_TARGET", "list")
            .output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let targets = text.lines().filter_map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            Some(Target {
                name: words.next()?,
                len_max: words.next()?,
                is_slow: words.next()? == "true",
            })
        });
        Ok(targets.collect())
    }

    /// The inputs that runs have found.
    fn found(&self, target: &Target) -> PathBuf {
        self.directory.join("corpus").join(&target.name)
    }

    fn start(&self, target: &Target) -> Command {
        let mut command = Command::new(&self.program);
        let len_max = format!("-max_len={}", target.len_max);
        command.env("FUZZ_TARGET", &target.name).arg(len_max);
        command
    }

    /// Runs a target; its crash, if there is one, is in `target/fuzz/crashes`.
    fn fuzz(&self, target: &Target, seconds: u64) -> Result<String, String> {
        let (found, crashes) = (self.found(target), self.directory.join("crashes"));
        for directory in [&found, &crashes] {
            fs::create_dir_all(directory).map_err(|error| said(directory, &error))?;
        }
        let prefix = crashes.join(format!("{}-", target.name));
        let output = self
            .start(target)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}", prefix.display()))
            .arg("-print_final_stats=1")
            .arg(&found)
            .arg(self.committed.join(&target.name))
            .output();
        let output = output.map_err(|error| said(&self.program, &error))?;
        let text = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let _ = io::stderr().write_all(&output.stderr);
            return Err(format!("it ended with {}, see above", output.status));
        }
        Ok(summary(&text))
    }

    /// Adds a few found inputs, those that reach the most code that the committed corpus does not reach.
    fn merge(&self, target: &Target) -> Result<String, String> {
        let (found, committed) = (self.found(target), self.committed.join(&target.name));
        let merged = self.directory.join("merged").join(&target.name);
        let done = || -> io::Result<(usize, usize)> {
            if merged.exists() {
                fs::remove_dir_all(&merged)?;
            }
            fs::create_dir_all(&merged)?;
            fs::create_dir_all(&found)?;
            for input in inputs(&committed)? {
                fs::copy(committed.join(&input.name), merged.join(&input.name))?;
            }
            let output = self
                .start(target)
                .arg("-set_cover_merge=1")
                .args([&merged, &found])
                .output()?;
            if !output.status.success() {
                let fault = format!("the merge ended with {}", output.status);
                return Err(io::Error::other(fault));
            }
            let mut new = inputs(&merged)?;
            new.retain(|input| !committed.join(&input.name).exists());
            let bytes_max = match target.is_slow {
                true => MERGED_BYTES_SLOW_MAX,
                false => MERGED_BYTES_MAX,
            };
            let kept = first_that_fit(&new, bytes_max);
            for input in &kept {
                fs::copy(merged.join(&input.name), committed.join(&input.name))?;
            }
            Ok((kept.len(), new.len()))
        };
        let (kept, new) = done().map_err(|error| said(&committed, &error))?;
        Ok(format!("{kept} of {new} inputs with new coverage added"))
    }
}

/// A file of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Input {
    written: SystemTime,
    name: String,
    bytes: u64,
}

/// The files of a directory in the order in which they were written. libFuzzer writes those first that cover the most.
fn inputs(directory: &Path) -> io::Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        inputs.push(Input {
            written: metadata.modified()?,
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: metadata.len(),
        });
    }
    inputs.sort();
    Ok(inputs)
}

/// The first inputs, without those that are too long for the rest of the room.
fn first_that_fit(inputs: &[Input], bytes_max: u64) -> Vec<&Input> {
    let mut left = bytes_max;
    let fit = inputs.iter().filter(|input| {
        let fits = input.bytes <= left;
        if fits {
            left -= input.bytes;
        }
        fits
    });
    fit.take(MERGED_MAX).collect()
}

/// Executions, and what they covered, from libFuzzer's output.
fn summary(text: &str) -> String {
    let figure = |name: &str| {
        let line = text.lines().rev().find_map(|line| line.strip_prefix(name));
        line.map_or("?", str::trim).to_owned()
    };
    // "#4096 pulse  cov: 310 ft: 512 corp: ...".
    let words: Vec<&str> = text.split_whitespace().collect();
    let covered = words.windows(2).rev().find(|pair| pair[0] == "cov:");
    format!(
        "{} executions, {}/s, {} edges covered, {} new inputs",
        figure("stat::number_of_executed_units:"),
        figure("stat::average_exec_per_sec:"),
        covered.map_or("?", |pair| pair[1]),
        figure("stat::new_units_added:")
    )
}

/// The compiler's own target.
fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|error| format!("rustc cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "rustc does not say its host".to_owned())
}

fn said(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn words_are_a_target_and_seconds_or_a_merge() {
        let of = |words: &[&str]| Arguments::of(words);
        let arguments = |target: &str, seconds, merges| {
            Some(Arguments {
                target: target.to_owned(),
                seconds,
                merges,
            })
        };
        assert_eq!(of(&["mrt"]), arguments("mrt", SECONDS, false));
        assert_eq!(of(&["all", "20"]), arguments("all", 20, false));
        assert_eq!(of(&["mrt", "--merge"]), arguments("mrt", SECONDS, true));
        for wrong in [
            &[][..],
            &["mrt", "0"],
            &["mrt", "soon"],
            &["--merge"],
            &["mrt", "1", "2"],
        ] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_summary_has_the_last_figures() {
        let text = "#2\tINITED cov: 30 ft: 31 corp: 1/1b\n#9\tDONE   cov: 41 ft: 52 corp: 4/9b\n\
                    stat::number_of_executed_units: 580720\nstat::average_exec_per_sec:     96786\n\
                    stat::new_units_added:          79\n";
        let words = "580720 executions, 96786/s, 41 edges covered, 79 new inputs";
        assert_eq!(summary(text), words);
        assert!(summary("").starts_with("? executions"));
    }

    #[test]
    fn a_merge_adds_few_inputs_those_written_first() {
        let of = |sizes: &[u64]| {
            let inputs: Vec<Input> = (0..)
                .zip(sizes)
                .map(|(second, bytes)| Input {
                    written: SystemTime::UNIX_EPOCH + Duration::from_secs(second),
                    name: second.to_string(),
                    bytes: *bytes,
                })
                .collect();
            let kept = first_that_fit(&inputs, 2_048);
            kept.iter()
                .map(|input| input.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&[]), [""; 0]);
        assert_eq!(of(&[1; 40]).len(), MERGED_MAX);
        assert_eq!(of(&[3_000, 2_000, 100, 48]), ["1", "3"]);
    }
}
