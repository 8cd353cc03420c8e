//! The Python wheel: its checks, and the wheels that are published.
//!
//! `crates/python` is a workspace of its own, so that no other step builds it. Its checks run in a virtual environment in
//! `target/python`, with the packages of `crates/python/requirements-test.txt`.

use crate::cargo::{self, Metadata};
use crate::dependencies;
use crate::run::Report;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The wheels: the target of Rust, and the oldest system by the tag of the wheel.
const WHEELS: &[(&str, &str)] = &[
    ("x86_64-unknown-linux-gnu", "manylinux_2_28"),
    ("aarch64-unknown-linux-gnu", "manylinux_2_28"),
    ("x86_64-unknown-linux-musl", "musllinux_1_2"),
    ("aarch64-unknown-linux-musl", "musllinux_1_2"),
];

/// The places that the steps use.
struct Places {
    root: PathBuf,
    /// The crate's directory.
    package: PathBuf,
    /// Its target directory, with the virtual environment in it.
    target: PathBuf,
}

impl Places {
    fn of(metadata: &Metadata) -> Places {
        Places {
            root: metadata.root.clone(),
            package: metadata.root.join("crates/python"),
            target: metadata.target.join("python"),
        }
    }

    fn venv(&self) -> PathBuf {
        self.target.join("venv")
    }

    /// A program of the virtual environment, with cargo's output in a directory of its own.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.venv().join("bin").join(name));
        self.place(&mut command);
        command
    }

    fn cargo(&self, subcommand: &str) -> Command {
        let mut command = match subcommand {
            "fmt" => cargo::command(),
            _ => cargo::locked(subcommand),
        };
        if subcommand == "fmt" {
            command.arg(subcommand);
        }
        self.place(&mut command);
        command
    }

    fn place(&self, command: &mut Command) {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let own = std::iter::once(self.venv().join("bin"));
        let paths = std::env::join_paths(own.chain(std::env::split_paths(&paths)));
        command
            .current_dir(&self.package)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("VIRTUAL_ENV", self.venv())
            .env("PATH", paths.unwrap_or_default());
    }
}

/// Checks the crate, builds the wheel and runs its tests. `headend` is the command to compare it with.
/// With `ray`, the tests on Ray and on an S3 server run too.
pub(crate) fn check(report: &mut Report, metadata: &Metadata, headend: &Path, ray: bool) -> bool {
    const NAME: &str = "environment of the Python wheel";
    let places = Places::of(metadata);
    if !in_path("python3") {
        report.left_out(NAME, "no python3; apt-get install python3-venv");
        return true;
    }
    let good = report.check("dependencies of the Python wheel", || {
        let mut own = Metadata::of(&places.package).map_err(|fault| vec![fault])?;
        own.root.clone_from(&places.root);
        dependencies::check(&own)
    }) && report.check("no C in the Python wheel", || without_c(&places))
        && report.command(
            "format of the Python wheel",
            places.cargo("fmt").arg("--check"),
        );
    let prepared = environment(&places, ray);
    if let Err(faults) = &prepared
        && faults.iter().any(|fault| is_out_of_reach(fault))
    {
        report.left_out(
            NAME,
            "its packages cannot be reached, or python3-venv is missing",
        );
        return good;
    }
    good && report.check(NAME, || prepared)
        && report.command(
            "lint of the Python wheel",
            places.cargo("clippy").args(["--", "-D", "warnings"]),
        )
        && report.command(
            "build the Python wheel",
            places
                .program("maturin")
                .args(["develop", "--locked", "--quiet"]),
        )
        && report.command(
            "types of the Python wheel",
            places
                .program("mypy")
                .args(["--strict", "python", "tests", "measure"])
                .arg("--cache-dir")
                .arg(places.target.join("mypy")),
        )
        && report.command(
            "tests of the Python wheel",
            places
                .program("python")
                .args(["-m", "unittest", "discover", "-s", "tests"])
                .env("HEADEND", headend)
                .env("CAPTURES", places.root.join("testdata/interop-trace")),
        )
}

/// Builds the wheels that are published, in `target/python/wheels`, and checks their tags.
pub(crate) fn wheels(report: &mut Report, metadata: &Metadata) -> bool {
    let places = Places::of(metadata);
    let directory = places.target.join("wheels");
    if !report.check("environment of the Python wheel", || {
        environment(&places, false)
    }) {
        return false;
    }
    for (target, tag) in WHEELS {
        let built = report.command(
            "build a wheel",
            places
                .program("maturin")
                .args(["build", "--release", "--locked", "--zig"])
                .args(["--target", target, "--compatibility", tag, "--out"])
                .arg(&directory),
        );
        if !built {
            return false;
        }
    }
    report.check("tags of the wheels", || tags(&places, &directory))
}

/// Lets auditwheel judge each wheel.
fn tags(places: &Places, directory: &Path) -> Result<String, Vec<String>> {
    let entries = std::fs::read_dir(directory).map_err(|error| vec![error.to_string()])?;
    let mut faults = Vec::new();
    let mut count = 0;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let tag = WHEELS.iter().find(|(_, tag)| name.contains(tag));
        let Some((_, tag)) = tag else {
            continue;
        };
        count += 1;
        let shown = places.program("auditwheel").arg("show").arg(&path).output();
        let shown = shown.map_err(|error| vec![format!("auditwheel: {error}")])?;
        let text = String::from_utf8_lossy(&shown.stdout);
        if !shown.status.success() || !text.replace('\n', " ").contains(tag) {
            let errors = String::from_utf8_lossy(&shown.stderr);
            faults.push(format!("{name} is not {tag}: {text}{errors}"));
        }
    }
    match faults.is_empty() && count == WHEELS.len() {
        true => Ok(format!("{count} wheels")),
        false => {
            faults.push(format!("{count} of {} wheels were found", WHEELS.len()));
            Err(faults)
        }
    }
}

/// Makes the virtual environment, or brings it up to date.
fn environment(places: &Places, ray: bool) -> Result<String, Vec<String>> {
    let one = |command: &mut Command| -> Result<(), Vec<String>> {
        let output = command.output().map_err(|error| vec![error.to_string()])?;
        match output.status.success() {
            true => Ok(()),
            false => Err(vec![String::from_utf8_lossy(&output.stderr).into_owned()]),
        }
    };
    if !places.venv().join("bin/python").exists() {
        one(Command::new("python3")
            .args(["-m", "venv"])
            .arg(places.venv()))?;
    }
    let lists = ["requirements-test.txt", "requirements-ray.txt"];
    let lists = &lists[..1 + usize::from(ray)];
    for list in lists {
        one(places.program("python").args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--requirement",
            list,
        ]))?;
    }
    let venv = places.venv();
    Ok(format!("{}: {}", venv.display(), lists.join(", ")))
}

/// Whether the environment lacks a network or Python's own installer, which says nothing about the wheel.
fn is_out_of_reach(fault: &str) -> bool {
    [
        "NewConnectionError",
        "Max retries",
        "name resolution",
        "Connection refused",
        "timed out",
        "ProxyError",
        "ensurepip",
    ]
    .iter()
    .any(|sign| fault.contains(sign))
}

/// Checks that no dependency of the wheel compiles C: that would need a C compiler for each target.
fn without_c(places: &Places) -> Result<String, Vec<String>> {
    let output = places
        .cargo("tree")
        .args([
            "--target",
            "all",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .output();
    let output = output.map_err(|error| vec![error.to_string()])?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(vec![String::from_utf8_lossy(&output.stderr).into_owned()]);
    }
    // Windows and macOS are no targets of ours, but cc may come with them.
    let c = [
        "zstd-sys ",
        "bzip2-sys ",
        "lzma-sys ",
        "libz-sys ",
        "lz4-sys ",
    ];
    let found = text
        .lines()
        .filter(|line| c.iter().any(|name| line.starts_with(name)));
    let found: Vec<String> = found.map(|line| format!("{line} is C")).collect();
    match found.is_empty() {
        true => Ok(format!("{} packages", text.lines().count())),
        false => Err(found),
    }
}

fn in_path(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| path.join(name).is_file())
}
