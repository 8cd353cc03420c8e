//! The home gateway's rows through namespaces, from the command line to the files.

use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn command(bench: &Bench<'_>, directory: &Path) -> Command {
    let mut command = Command::new(bench.headend);
    command
        .args(["lab", "home-gateway", "--quick", "--rows", "1", "-o"])
        .arg(directory);
    command
}

/// Row 1 through the kernel's stack: its files, and what is in them.
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
    ensure!(printed["schema"] == 1 && printed["kind"] == "headend-home-gateway");
    let run = &printed["rows"][0]["runs"][0];
    let pings = run["pings"].as_array().context("pings")?;
    ensure!((10..=20).contains(&pings.len()), "{} pings", pings.len());
    // Both ways are 10 ms long.
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

/// Killed in the middle, it leaves no namespace and no interface.
pub(crate) fn leaves_nothing_when_killed(bench: &Bench<'_>) -> Result<()> {
    let mut child = command(bench, &bench.directory.join("killed"))
        .stdout(Stdio::null())
        .spawn()?;
    std::thread::sleep(Duration::from_secs(2));
    ensure!(child.try_wait()?.is_none(), "it ended by itself");
    child.kill()?;
    child.wait()?;
    let ip = |words: &[&str]| -> Result<String> {
        let output = Command::new("ip").args(words).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let links = ip(&["-o", "link"])?;
    let ours = ["lan0", "wan0", "lan1", "wan1", "a0", "b0"];
    let left = ours
        .iter()
        .find(|name| links.contains(&format!(" {name}@")));
    ensure!(left.is_none(), "{links}");
    ensure!(
        !ip(&["netns"])?.contains("headend"),
        "a namespace with a name"
    );
    Ok(())
}
