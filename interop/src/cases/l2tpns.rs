//! Our LAC calls l2tpns: a tunnel and a session, and their end.

use super::SOON;
use crate::capture::Capture;
use crate::headend::{Headend, secret_key};
use crate::l2tpns::L2tpns;
use crate::net::LNS;
use crate::process::until;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};

/// Neither side sends a challenge: l2tpns never does by itself.
pub(crate) fn without_a_secret(bench: &Bench<'_>) -> Result<()> {
    call(bench, None)
}

/// We send a challenge, and l2tpns answers.
pub(crate) fn with_a_secret(bench: &Bench<'_>) -> Result<()> {
    call(bench, Some("lantern"))
}

fn call(bench: &Bench<'_>, secret: Option<&str>) -> Result<()> {
    let mut peer = L2tpns::start(&bench.wire.lns, &bench.directory, LNS, "lantern")?;
    let lac = Headend::lac(bench, &secret_key(secret))?;
    let capture = Capture::start(&bench.wire.lac, &bench.directory)?;
    lac.verb(&["tunnel", "create", "--peer", "10.9.0.2", "--version", "2"])?;

    let tunnel = lac.wait_for("tunnels", "established", 1, SOON)?.remove(0);
    ensure!(
        tunnel["version"] == 2 && tunnel["host_name"] == "l2tpns.test",
        "{tunnel}"
    );
    if secret.is_some() {
        peer.process
            .wait_for("LAC requested CHAP authentication for tunnel", SOON)?;
    }
    lac.verb(&["session", "create", "--tunnel", &tunnel["id"].to_string()])?;
    let session = lac.wait_for("sessions", "established", 1, SOON)?.remove(0);

    // TID, Hostname, IP, State, Sessions.
    let id = tunnel["remote_id"].to_string();
    let row = until(SOON, || {
        let tunnels = peer.ask("show tunnels")?;
        let row = tunnels
            .lines()
            .map(words)
            .find(|row| row.first() == Some(&id.as_str()) && row.get(4) == Some(&"1"));
        Ok(row.map(|row| row.join(" ")))
    })?;
    let row = row.with_context(|| format!("l2tpns shows no tunnel {id} with one session"))?;
    ensure!(row.contains("headend.test 10.9.0.1 Open 1"), "{row}");
    let detail = peer.ask(&format!("show session {}", session["remote_id"]))?;
    ensure!(
        detail
            .lines()
            .map(words)
            .any(|row| row == ["Tunnel", "ID:", &id]),
        "{detail}"
    );

    lac.verb(&["tunnel", "delete", &tunnel["id"].to_string()])?;
    peer.process.wait_for("Received StopCCN", SOON)?;
    lac.wait_for("tunnels", "established", 0, SOON)?;
    capture
        .finish()?
        .has_in_order(&["SCCRQ", "SCCRP", "SCCCN", "ICRQ", "ICRP", "ICCN", "StopCCN"])?;
    lac.stop()
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}
