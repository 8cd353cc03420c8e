//! The metrics of `headend web`: Prometheus scrapes them, promtool finds no fault in them, and the parsers of the Python
//! client read them in both formats.

use super::SOON;
use crate::headend::Headend;
use crate::process::{Process, until};
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs::File;
use std::process::Command;

/// An LNS with a pool and a BGP speaker.
const SECTIONS: &str = r#"[lns]
listen = ["127.0.0.1:17010"]

[ppp]
address = "10.64.0.1"

[users]
file = "users.toml"

[[pool]]
name = "ho\\me"
ranges = ["10.64.1.0/24"]

[bgp]
asn = 65001
router_id = "127.0.0.1"
listen = []

[[bgp.neighbor]]
name = "up \"stream\""
address = "127.0.0.9"
remote_asn = 65000
"#;

/// Where `headend web` and Prometheus listen, in the namespace of the test.
const WEB: &str = "127.0.0.1:9464";
const PROMETHEUS: &str = "127.0.0.1:9090";

/// Fetches the metrics in both formats, and prints the samples of each as JSON.
const READ: &str = r#"
import json, sys, urllib.request
from prometheus_client.parser import text_string_to_metric_families as plain
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

def fetch(accept):
    request = urllib.request.Request("http://ADDRESS/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()

def samples(families):
    families = list(families)
    assert len({family.name for family in families}) == len(families)
    assert all(family.documentation and family.type != "unknown" for family in families)
    return [[sample.name, sample.labels, sample.value] for family in families for sample in family.samples]

kind, text = fetch("text/plain;version=0.0.4")
assert kind.startswith("text/plain; version=0.0.4"), kind
open("metrics.txt", "w").write(text)
kind, open_text = fetch("application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
assert kind.startswith("application/openmetrics-text; version=1.0.0"), kind
print(json.dumps([samples(plain(text)), samples(openmetrics(open_text))]))
"#;

/// A server scrapes a daemon that shows the same by `headend show`.
pub(crate) fn scrapes_headend_web(bench: &Bench<'_>) -> Result<()> {
    std::fs::write(bench.directory.join("users.toml"), "")?;
    rustix::fs::chmod(
        bench.directory.join("users.toml"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )?;
    let daemon = Headend::speaker(bench, SECTIONS)?;
    let mut command = bench.wire.lns.command(bench.headend);
    command.args(["web", "--listen", WEB, "--socket"]);
    command.arg(daemon.socket());
    let mut web = Process::start(command, "web", &bench.directory)?;
    web.wait_for("open to this host", SOON)?;

    let mut python = bench.wire.lns.command("python3");
    let output = python
        .args(["-c", &READ.replace("ADDRESS", WEB)])
        .env(
            "PYTHONPATH",
            bench.prometheus.join("usr/lib/python3/dist-packages"),
        )
        .current_dir(&bench.directory)
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the Python client: {errors}");
    let formats: Vec<Vec<(String, Value, f64)>> = serde_json::from_slice(&output.stdout)?;
    for samples in &formats {
        compare(&daemon, samples)?;
    }
    ensure!(formats[0].len() == formats[1].len());

    let checked = Command::new(bench.prometheus.join("usr/bin/promtool"))
        .args(["check", "metrics"])
        .stdin(File::open(bench.directory.join("metrics.txt"))?)
        .output()?;
    let faults = String::from_utf8_lossy(&checked.stderr);
    ensure!(
        checked.status.success() && faults.is_empty(),
        "promtool: {faults}"
    );
    let server = start_prometheus(bench)?;
    is_up(bench, "1")?;
    // Without a daemon, a scrape still succeeds and says so.
    daemon.stop()?;
    is_up(bench, "0")?;
    server.stop()?;
    web.stop()?;
    Ok(())
}

/// Compares samples with what `headend show` prints.
fn compare(daemon: &Headend, samples: &[(String, Value, f64)]) -> Result<()> {
    let find = |name: &str, key: &str, value: &Value| {
        let found = samples
            .iter()
            .find(|(known, labels, _)| known == name && (key.is_empty() || labels[key] == *value));
        found.map(|(_, _, value)| *value).context(name.to_owned())
    };
    ensure!(find("headend_up", "", &Value::Null)? == 1.0);
    let pools = daemon.show(&["pools"])?;
    let pool = pools.iter().find(|row| row["schema"] == "pool/1");
    let pool = pool.context("a pool")?;
    let size = find("headend_pool_size", "pool", &pool["name"])?;
    ensure!(Some(size) == pool["size"].as_f64(), "{size} {pool}");
    let neighbors = daemon.show(&["bgp", "summary"])?;
    let neighbor = neighbors
        .iter()
        .find(|row| row["schema"] == "bgp.neighbor/1");
    let neighbor = neighbor.context("a neighbor")?;
    let prefixes = find(
        "headend_bgp_neighbor_prefixes_in",
        "peer",
        &neighbor["name"],
    )?;
    ensure!(Some(prefixes) == neighbor["prefixes_in"].as_f64());
    Ok(())
}

/// Starts Prometheus, which scrapes `headend web` each second.
fn start_prometheus(bench: &Bench<'_>) -> Result<Process> {
    let config = bench.directory.join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n  - job_name: headend\n    \
         static_configs: [{{targets: [\"{WEB}\"]}}]\n"
    );
    std::fs::write(&config, text)?;
    let mut command = bench
        .wire
        .lns
        .command(bench.prometheus.join("usr/bin/prometheus"));
    command
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            bench.directory.join("tsdb").display()
        ))
        .arg(format!("--web.listen-address={PROMETHEUS}"));
    Process::start(command, "prometheus", &bench.directory)
}

/// Waits until Prometheus has `headend_up` with this value.
fn is_up(bench: &Bench<'_>, value: &str) -> Result<()> {
    let mut last = String::new();
    let found = until(SOON, || {
        let mut query = bench
            .wire
            .lns
            .command(bench.prometheus.join("usr/bin/promtool"));
        query.args([
            "query",
            "instant",
            &format!("http://{PROMETHEUS}"),
            "headend_up",
        ]);
        let output = query.output()?;
        last = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(last.contains(&format!("=> {value} @")).then_some(()))
    })?;
    found.with_context(|| format!("Prometheus has no headend_up {value}: {last}"))
}
