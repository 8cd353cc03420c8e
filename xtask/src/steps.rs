//! The steps of `cargo xtask test` in order: cheap ones first, and all of them even if one fails.

use crate::cargo::{self, Metadata};
use crate::run::Report;
use crate::sourced::Sources;
use crate::sources::Source;
use crate::{
    arrows, dependencies, dist, docs, functions, fuzz, kernel, keys, links, modules, packages,
    page, peers, prometheus, python, site, sources,
};
use crate::{tidy as tidiness, words as phrases};
use std::process::Command;

/// Whether the interop tests run.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Peers {
    /// They run, and their requirements must be met.
    Run,
    /// They are skipped, which the closing lines report.
    LeaveOut,
}

/// Runs every check and every test. True if all pass.
pub(crate) fn test(with: Peers) -> bool {
    let mut report = Report::default();
    // First, so that a machine without the peers reports that before it builds for minutes.
    if with == Peers::Run && !report.check("programs that the interop tests need", peers::ready) {
        return report.close();
    }
    let Some((metadata, sources)) = read(&mut report) else {
        return report.close();
    };

    report.command("format", cargo::command().args(["fmt", "--all", "--check"]));
    look(&mut report, &metadata, &sources);
    deny(&mut report);
    report.command(
        "lint",
        cargo::locked("clippy").args(["--workspace", "--all-targets", "--", "-D", "warnings"]),
    );
    report.command(
        "documentation",
        cargo::locked("doc")
            .args(["--no-deps", "--workspace"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    );
    oldest_rust(&mut report, &metadata);
    // Documentation examples are a separate step: otherwise rustdoc would run on every crate without examples.
    report.tests(
        "tests",
        cargo::locked("test").args([
            "--workspace",
            "--no-fail-fast",
            "--lib",
            "--bins",
            "--tests",
            "--examples",
        ]),
    );
    packages::examples(&mut report, &metadata);
    let members = metadata.members();
    let with_examples = docs::crates_with_examples(&members, &metadata.root, &sources);
    if !with_examples.is_empty() {
        let mut command = cargo::locked("test");
        command.args(["--doc", "--no-fail-fast"]);
        for package in with_examples {
            command.args(["--package", package]);
        }
        report.tests("examples in the documentation", &mut command);
    }
    let headend = metadata.target.join("debug/headend");
    python::check(&mut report, &metadata, &headend, false);
    page::check(&mut report, &metadata, &headend);
    if with == Peers::Run {
        run_interop(&mut report, &metadata, &Sources::default());
    }

    let good = report.close();
    if with == Peers::LeaveOut {
        println!(
            "\nThe interop tests were left out (--without-peers): nothing here ran against another implementation."
        );
    }
    println!(
        "{} passed, {} failed",
        report.count.passed, report.count.failed
    );
    good
}

/// Runs only the checks that build nothing.
pub(crate) fn tidy() -> bool {
    let mut report = Report::default();
    if let Some((metadata, sources)) = read(&mut report) {
        look(&mut report, &metadata, &sources);
    }
    report.close()
}

/// Builds the published binaries.
pub(crate) fn dist(arguments: &dist::Arguments) -> bool {
    let mut report = Report::default();
    if let Some((metadata, _)) = read(&mut report) {
        dist::run(&mut report, &metadata, arguments);
    }
    report.close()
}

/// Writes the pages as a site.
pub(crate) fn site() -> bool {
    let mut report = Report::default();
    if let Some((metadata, _)) = read(&mut report) {
        site::build(&mut report, &metadata.root, &metadata.target);
    }
    report.close()
}

/// Builds and tests the web page of the analyser.
pub(crate) fn page() -> bool {
    let mut report = Report::default();
    if let Some((metadata, _)) = read(&mut report) {
        let headend = metadata.target.join("debug/headend");
        page::check(&mut report, &metadata, &headend);
    }
    report.close()
}

/// Checks the Python wheel, or builds the wheels that are published.
pub(crate) fn python(kind: &str) -> bool {
    let mut report = Report::default();
    if let Some((metadata, _)) = read(&mut report) {
        let headend = metadata.target.join("debug/headend");
        match kind {
            "wheels" => python::wheels(&mut report, &metadata),
            _ => {
                report.command(
                    "build headend",
                    cargo::locked("build").args(["--workspace", "--bin", "headend"]),
                ) && python::check(&mut report, &metadata, &headend, kind == "ray")
            }
        };
    }
    report.close()
}

/// Packages the library crates.
pub(crate) fn crates() -> bool {
    let mut report = Report::default();
    if let Some((metadata, _)) = read(&mut report) {
        packages::package(&mut report, &metadata);
    }
    report.close()
}

/// Runs fuzz targets, or merges what they found.
pub(crate) fn fuzz(arguments: &fuzz::Arguments) -> bool {
    let done = Metadata::read()
        .and_then(|metadata| fuzz::run(&metadata.root, &metadata.target, arguments));
    match done {
        Ok(all_hold) => all_hold,
        Err(fault) => refuse(&fault),
    }
}

/// Prints the table of a crate's modules.
pub(crate) fn arrows(krate: &str) -> bool {
    let read = Metadata::read().and_then(|metadata| sources::read(&metadata.root));
    match read {
        Ok(sources) => modules::print(krate, &sources),
        Err(fault) => refuse(&fault),
    }
}

/// Lists banned phrases below a path; with `--write`, updates the counts.
pub(crate) fn words(path: &str) -> bool {
    let read = || -> Result<_, String> {
        let root = Metadata::read()?.root;
        let sources = sources::read(&root)?;
        let pages = sources::pages(&root)?;
        Ok((root, sources, pages))
    };
    match read() {
        Ok((root, sources, pages)) if path == "--write" => phrases::write(&root, &sources, &pages),
        Ok((root, sources, pages)) => phrases::list(&root, &sources, &pages, path),
        Err(fault) => refuse(&fault),
    }
}

fn refuse(fault: &str) -> bool {
    eprintln!("{fault}");
    false
}

/// Runs only the interop tests, or some of them by name.
pub(crate) fn interop(words: &[&str]) -> bool {
    let sources = match Sources::of(words) {
        Ok(sources) => sources,
        Err(fault) => return refuse(&fault),
    };
    let mut report = Report::default();
    if report.check("programs that the interop tests need", peers::ready)
        && let Some((metadata, _)) = read(&mut report)
    {
        run_interop(&mut report, &metadata, &sources);
    }
    report.close()
}

fn read(report: &mut Report) -> Option<(Metadata, Vec<Source>)> {
    let mut found = None;
    report.check("read the workspace", || {
        let metadata = Metadata::read().map_err(|fault| vec![fault])?;
        let sources = sources::read(&metadata.root).map_err(|fault| vec![fault])?;
        let what = format!("{} sources", sources.len());
        found = Some((metadata, sources));
        Ok(what)
    });
    found
}

fn look(report: &mut Report, metadata: &Metadata, sources: &[Source]) {
    let members = metadata.members();
    report.check("crate arrows", || arrows::check(&members));
    report.check("licences and sources of dependencies", || {
        dependencies::check(metadata)
    });
    report.check("metadata of the library crates", || {
        packages::check(metadata)
    });
    report.check("no code without its safety", || tidiness::safety(sources));
    report.check("length of files", || tidiness::lengths(sources));
    report.check("length of functions", || {
        functions::check(&metadata.root, sources)
    });
    report.check("module arrows", || modules::check(sources));
    report.check("keys in the documentation", || {
        keys::check(&metadata.root, sources)
    });
    report.check("banned phrases", || {
        let pages = sources::pages(&metadata.root).map_err(|fault| vec![fault])?;
        phrases::check(&metadata.root, sources, &pages)
    });
    report.check("links of the pages", || {
        let pages = sources::pages(&metadata.root).map_err(|fault| vec![fault])?;
        links::check(&metadata.root, &pages)
    });
    report.check("what docs/rfc names", || {
        docs::check(&metadata.root, &members, sources)
    });
}

/// Runs cargo-deny if it is installed, with all its checks beyond `dependencies.rs`.
fn deny(report: &mut Report) {
    let version = cargo::command().args(["deny", "--version"]).output();
    if version.is_ok_and(|output| output.status.success()) {
        report.command(
            "cargo-deny",
            cargo::command().args([
                "deny",
                "--offline",
                "--locked",
                "check",
                "licenses",
                "bans",
                "sources",
            ]),
        );
    } else {
        report.left_out(
            "cargo-deny",
            "not installed; the check above reads deny.toml too",
        );
    }
}

/// Builds with the oldest supported Rust, `rust-version`, if rustup has that toolchain.
fn oldest_rust(report: &mut Report, metadata: &Metadata) {
    const NAME: &str = "build with the oldest Rust";
    let Some(version) = metadata.rust_version() else {
        return report.left_out(NAME, "no crate has a rust-version");
    };
    let listed = Command::new("rustup").args(["toolchain", "list"]).output();
    let listed = listed.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    );
    let toolchain = listed.lines().find_map(|line| {
        let name = line.split_whitespace().next()?;
        let rest = name.strip_prefix(version)?;
        rest.starts_with(['.', '-']).then_some(name)
    });
    match toolchain {
        Some(toolchain) => {
            report.command(
                NAME,
                Command::new("rustup")
                    .args([
                        "run",
                        toolchain,
                        "cargo",
                        "check",
                        "--locked",
                        "--workspace",
                    ])
                    // Cargo passes its own toolchain on to its subprocesses.
                    .env_remove("CARGO")
                    .env_remove("RUSTC")
                    .env_remove("RUSTUP_TOOLCHAIN")
                    .env("CARGO_TARGET_DIR", metadata.target.join("oldest")),
            );
        }
        None => report.left_out(
            NAME,
            &format!(
                "Rust {version} is not installed; `rustup toolchain install {version}` does it"
            ),
        ),
    }
}

fn run_interop(report: &mut Report, metadata: &Metadata, sources: &Sources<'_>) {
    let built = report.check("a kernel for the interop tests", || {
        kernel::ready(&metadata.target)
    }) && report.check("Prometheus for the interop tests", || {
        prometheus::ready(&metadata.target)
    }) && report.command(
        "build headend and the interop tests",
        // The build that the tests have made already: with another profile, or with the features that these two
        // packages alone ask for, it takes minutes.
        cargo::locked("build").args(["--workspace", "--bin", "headend", "--bin", "interop"]),
    );
    let mut peers = Vec::new();
    let built = built
        && report.check("peers from source folders", || {
            peers = sources.build(&metadata.target)?;
            Ok(format!("{} are there", peers.len() / 2))
        });
    for (name, why) in sources.absent() {
        report.left_out(name, &why);
    }
    // Without it, its test fails.
    if built && page::is_wanted(&sources.others) {
        page::build(report, metadata);
    }
    // Instructions are those of the build that people run.
    let is_measured = sources.others.contains(&"--measure");
    let built = built
        && (!is_measured
            || report.command(
                "build headend for measuring",
                cargo::locked("build").args(["--release", "--package", "headend"]),
            ));
    if built {
        let profile = if is_measured { "release" } else { "debug" };
        let headend = metadata.target.join(profile).join("headend");
        let mut command = Command::new(metadata.target.join("debug/interop"));
        command
            .arg("--headend")
            .arg(headend)
            .arg("--root")
            .arg(&metadata.root)
            .arg("--kernel")
            .arg(kernel::directory(&metadata.target))
            .arg("--prometheus")
            .arg(prometheus::directory(&metadata.target))
            .arg("--page")
            .arg(page::file(metadata))
            .args(peers)
            .args(&sources.others);
        report.tests("interop tests", &mut command);
    }
}
