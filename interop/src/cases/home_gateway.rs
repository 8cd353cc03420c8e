//! The home gateway's rows, run in namespaces, from the command line to the result files.

use crate::kernel;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn command(bench: &Bench<'_>, directory: &Path) -> Command {
    let mut command = Command::new(bench.headend);
    command
        .args(["lab", "home-gateway", "--quick", "--rows", "1", "-o"])
        .arg(directory);
    command
}

/// Row 1 through the kernel's stack: its files and their contents.
pub(crate) fn measures_a_row(bench: &Bench<'_>) -> Result<()> {
    let directory = bench.directory.join("results");
    let output = command(bench, &directory).arg("--json").output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(0), "{said}");
    let printed: Value = serde_json::from_slice(&output.stdout).context("the printed JSON")?;
    let file = std::fs::read(directory.join("results.json"))?;
    ensure!(
        printed == serde_json::from_slice::<Value>(&file)?,
        "another file"
    );
    ensure!(printed["schema"] == "lab.home-gateway/2" && printed["kind"] == "headend-home-gateway");
    let run = &printed["rows"][0]["runs"][0];
    let pings = run["pings"].as_array().context("pings")?;
    ensure!((10..=20).contains(&pings.len()), "{} pings", pings.len());
    // Each direction has a delay of 10 ms.
    let trips = pings.iter().filter_map(|ping| ping[1].as_f64());
    ensure!(
        trips.clone().count() > 0 && trips.clone().all(|ms| ms >= 20.0),
        "{run}"
    );
    ensure!(
        run["loss_percent"].as_f64().is_some_and(|loss| loss < 50.0),
        "{run}"
    );
    for name in ["rows.csv", "pings.csv", "report.html"] {
        ensure!(directory.join(name).is_file(), "no {name}");
    }
    Ok(())
}

/// The namespaces that the process writing to `directory` is in or has open, except our own. The process is
/// identified by its command line, because `/proc` shows other process ids than those of our own process
/// namespace.
fn namespaces(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let ours = std::fs::read_link("/proc/self/ns/net")?;
    let mut found = BTreeSet::new();
    for process in std::fs::read_dir("/proc")?.flatten() {
        let typed = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&typed).contains(&*directory.to_string_lossy()) {
            found.extend(links(&process.path()));
        }
    }
    found.remove(&ours);
    ensure!(found.len() >= 5, "{found:?}");
    Ok(found)
}

/// The network namespaces that the threads and descriptors of a process refer to.
fn links(process: &Path) -> Vec<PathBuf> {
    let entries = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let threads = entries(process.join("task")).map(|thread| thread.path().join("ns/net"));
    let descriptors = entries(process.join("fd")).map(|descriptor| descriptor.path());
    // Processes start and end meanwhile.
    let links = threads.chain(descriptors).flat_map(std::fs::read_link);
    links
        .filter(|link| link.to_string_lossy().starts_with("net:["))
        .collect()
}

/// The processes that are in one of them or have it open, and where it is mounted.
fn holders(namespaces: &BTreeSet<PathBuf>) -> Result<Vec<String>> {
    let mut holders = Vec::new();
    for process in std::fs::read_dir("/proc")?.flatten() {
        let held = links(&process.path());
        if held.iter().any(|link| namespaces.contains(link)) {
            let name = std::fs::read_to_string(process.path().join("comm"));
            holders.push(name.unwrap_or_default());
        }
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    let is_held = |mount: &&str| {
        namespaces
            .iter()
            .any(|one| mount.contains(&*one.to_string_lossy()))
    };
    holders.extend(mounts.lines().filter(is_held).map(str::to_owned));
    Ok(holders)
}

/// Retries for some seconds.
fn eventually(what: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(90);
    while !is_so()? {
        ensure!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Killed while a browser runs, it leaves no namespace, no process and no file of the browser.
pub(crate) fn leaves_nothing_when_killed(bench: &Bench<'_>) -> Result<()> {
    // A browser that loads nothing and keeps writing to its profile until it is ended.
    let browser = bench.directory.join("browser");
    let script = "#!/bin/sh\nfor word; do case $word in --user-data-dir=*) cd \"${word#*=}\";; esac; done\n\
                  while :; do date > page; sleep 0.1; done\n";
    std::fs::write(&browser, script)?;
    std::fs::set_permissions(&browser, Permissions::from_mode(0o755))?;
    let temporary = bench.directory.join("temporary");
    std::fs::create_dir_all(&temporary)?;
    let directory = bench.directory.join("killed");
    let mut child = Command::new(bench.headend)
        .args(["lab", "home-gateway", "--rows", "2", "--seconds", "20"])
        .arg("--browser")
        .arg(&browser)
        .arg("-o")
        .arg(&directory)
        .env("TMPDIR", &temporary)
        .stdout(Stdio::null())
        .spawn()?;
    let profile = temporary.join(format!("headend-browser-{}", child.id()));
    eventually("the browser runs", || Ok(profile.join("page").exists()))?;
    let namespaces = namespaces(&directory)?;
    child.kill()?;
    child.wait()?;
    eventually("nobody is left", || Ok(holders(&namespaces)?.is_empty()))?;
    eventually("the profile is gone", || Ok(!profile.exists()))?;
    Ok(())
}

/// Stopped in the middle of a row, it prints the results so far, and leaves no namespace.
pub(crate) fn keeps_a_partial_row_when_stopped(bench: &Bench<'_>) -> Result<()> {
    let directory = bench.directory.join("stopped");
    let child = Command::new(bench.headend)
        .args(["lab", "home-gateway", "--rows", "3,4", "--seconds", "120"])
        .args(["--browser", "none", "-o"])
        .arg(&directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // Settling takes three seconds; the rest is measured.
    std::thread::sleep(Duration::from_secs(12));
    let namespaces = namespaces(&directory)?;
    let pid = child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status()?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(0), "{said}");
    ensure!(holders(&namespaces)?.is_empty(), "a process is left");
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(
        printed.contains("It was stopped during \"round 1, row 3"),
        "{printed}"
    );
    let file = std::fs::read(directory.join("results.json"))?;
    let outcome: Value = serde_json::from_slice(&file)?;
    ensure!(outcome["interrupted"] == true, "{outcome}");
    ensure!(
        outcome["rows"]
            .as_array()
            .is_some_and(|rows| rows.len() == 1)
    );
    let run = &outcome["rows"][0]["runs"][0];
    ensure!(run["partial"] == true, "{run}");
    let pings = run["pings"].as_array().context("pings")?;
    ensure!((1..600).contains(&pings.len()), "{} pings", pings.len());
    for name in ["rows.csv", "pings.csv", "report.html"] {
        ensure!(directory.join(name).is_file(), "no {name}");
    }
    Ok(())
}

/// Row 6 by all three engines, in a guest whose kernel has them: nothing of B's stream is lost, and each engine has a
/// row of its own.
pub(crate) fn compares_engines_in_a_guest(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    let directory = bench.directory.join("engines");
    let output = Command::new(bench.directory.join("headend"))
        .args(["lab", "home-gateway", "--engine", "user,kernel,cake"])
        .args(["--rows", "6", "--seconds", "4", "--json", "--guest"])
        .arg(bench.kernel)
        .arg("-o")
        .arg(&directory)
        .env("TMPDIR", &bench.directory)
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(0), "{said}");
    let outcome: Value = serde_json::from_slice(&output.stdout).context("the printed JSON")?;
    ensure!(outcome["place"] == "namespaces of a guest in virtual time");
    let rows = outcome["rows"].as_array().context("rows")?;
    let engines: Vec<_> = rows
        .iter()
        .filter_map(|row| row["engine"].as_str())
        .collect();
    ensure!(engines == ["user", "kernel", "cake"], "{engines:?}");
    for row in rows {
        ensure!(row["failed"].is_null(), "{row}");
        let run = &row["runs"][0];
        ensure!(run["loss_percent"] == 0.0, "{row}");
        let share = run["share"].as_f64().context("a share")?;
        ensure!((0.4..=0.6).contains(&share), "{share}: {row}");
    }
    for name in ["results.json", "rows.csv", "pings.csv", "report.html"] {
        ensure!(directory.join(name).is_file(), "no {name}");
    }
    let left = std::fs::read_dir(&directory)?.flatten().count();
    ensure!(left == 4, "{left} files");
    Ok(())
}

/// Stopped while a guest measures, it ends the guest and keeps the rows until then.
pub(crate) fn keeps_what_a_stopped_guest_measured(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    let directory = bench.directory.join("stopped");
    let child = Command::new(bench.directory.join("headend"))
        .args(["lab", "home-gateway", "--rows", "1,3", "--seconds", "5"])
        .args(["--repeat", "100", "--json", "--guest"])
        .arg(bench.kernel)
        .arg("-o")
        .arg(&directory)
        .env("TMPDIR", &bench.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let started = directory
        .join(format!(".guest-{}", child.id()))
        .join("started");
    eventually("the guest measures", || Ok(started.exists()))?;
    // Row 1 is nearly idle, which takes a guest no time.
    std::thread::sleep(Duration::from_secs(30));
    let pid = child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status()?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(0), "{said}");
    let outcome: Value = serde_json::from_slice(&output.stdout).context("the printed JSON")?;
    ensure!(outcome["interrupted"] == true, "{outcome}");
    let runs = outcome["rows"][0]["runs"].as_array().context("runs")?;
    ensure!((1..100).contains(&runs.len()), "{} runs", runs.len());
    for name in ["results.json", "rows.csv", "pings.csv", "report.html"] {
        ensure!(directory.join(name).is_file(), "no {name}");
    }
    let left = std::fs::read_dir(&directory)?.flatten().count();
    ensure!(left == 4, "{left} files");
    Ok(())
}
