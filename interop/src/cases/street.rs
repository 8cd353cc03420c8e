//! `headend demo street` with iperf3: 200 lines, half of them at an LNS, and a CoA-Request while iperf3 downloads.

use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::process::Command;

/// Tolerances of a rate: above, which nothing excuses, and below: controlled delay drops segments, and TCP slows down
/// for a moment.
const ABOVE: f64 = 0.01;
const BELOW: f64 = 0.06;

/// The JSON of the street: every line has IPv4 through NAT and IPv6, and iperf3 gets each configured rate.
pub(crate) fn halves_a_rate(bench: &Bench<'_>) -> Result<()> {
    let directory = bench.directory.join("page");
    let output = Command::new(bench.headend)
        .args([
            "demo", "street", "--lines", "200", "--load", "iperf3", "--json", "-o",
        ])
        .arg(&directory)
        .output()?;
    std::fs::write(bench.directory.join("street.json"), &output.stdout)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(0), "{said}");
    let printed: Value = serde_json::from_slice(&output.stdout).context("the printed JSON")?;
    ensure!(printed["schema"] == "demo.street/1", "{printed}");
    counted(&printed)?;
    let change = &printed["change"];
    ensure!(
        change["load"] == "iperf3" && change["configured_after_by"] == "command",
        "{change}"
    );
    for (configured, measured) in [
        ("configured_before_bps", "measured_before_bps"),
        ("configured_after_bps", "measured_after_bps"),
    ] {
        let share = change[measured].as_f64().zip(change[configured].as_f64());
        let (measured, configured) = share.with_context(|| change.to_string())?;
        let share = measured / configured;
        ensure!(
            (1.0 - BELOW..=1.0 + ABOVE).contains(&share),
            "{share}: {change}"
        );
    }
    for stream in ["datagrams", "datagrams_at_lns"] {
        let stream = &change[stream];
        ensure!(stream["sent"].as_u64() > Some(500), "{stream}");
        ensure!(stream["lost"] == 0 && stream["reordered"] == 0, "{stream}");
    }
    let page = std::fs::read_to_string(directory.join("street.html"))?;
    ensure!(
        page.matches("<section class=\"chart\"").count() == 2,
        "the page's charts"
    );
    Ok(())
}

/// What the daemons and the hosts counted.
fn counted(printed: &Value) -> Result<()> {
    let expected = [
        ("/lines", 200),
        ("/dual_stack", 200),
        ("/handed_over", 100),
        ("/tunnels", 1),
        ("/sessions_in_tunnels", 100),
        ("/bng/subscribers", 100),
        ("/lns/subscribers", 100),
        ("/pings/ipv4/answered", 200),
        ("/pings/ipv6/answered", 200),
        ("/listed_at_end", 0),
    ];
    for (pointer, value) in expected {
        let found = printed.pointer(pointer).and_then(Value::as_u64);
        ensure!(found == Some(value), "{pointer} is {found:?}, not {value}");
    }
    for daemon in ["bng", "lns"] {
        let daemon = &printed[daemon];
        let leased = [
            "addresses_leased",
            "link_prefixes_leased",
            "prefixes_delegated",
        ];
        let is_leased = |name: &&str| daemon[*name] == 100;
        ensure!(leased.iter().all(is_leased), "{daemon}");
        // A block for each line, which has sent a ping.
        ensure!(daemon["nat"]["blocks"] == 100, "{daemon}");
        ensure!(daemon["nat"]["mappings"].as_u64() >= Some(100), "{daemon}");
    }
    Ok(())
}
