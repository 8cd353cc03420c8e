//! Katalix's Go module calls our LNS, from a separate port for each tunnel.

use super::{SOON, number_after};
use crate::capture::Capture;
use crate::golac::Golac;
use crate::headend::Headend;
use crate::net::{LAC, LAC_V6, LNS, LNS_V6};
use crate::runner::Bench;
use anyhow::{Result, ensure};
use serde_json::Value;

const TUNNELS: usize = 3;
const SESSIONS: usize = 2;

/// Over IPv4.
pub(crate) fn calls_our_lns(bench: &Bench<'_>) -> Result<()> {
    call(bench, LAC, LNS)
}

/// Over IPv6.
pub(crate) fn calls_our_lns_over_ipv6(bench: &Bench<'_>) -> Result<()> {
    call(bench, &format!("[{LAC_V6}]"), &format!("[{LNS_V6}]"))
}

/// Tunnels and sessions are established, answer two HELLOs, and close.
fn call(bench: &Bench<'_>, local: &str, peer: &str) -> Result<()> {
    let lns = Headend::lns(bench, "hello_interval_s = 1.0\n")?;
    let capture = Capture::start(&bench.wire.lns, &bench.directory)?;
    let peer = format!("{peer}:1701");
    let mut golac = Golac::start(
        bench.work,
        &bench.wire.lac,
        &bench.directory,
        [local, &peer],
        [TUNNELS, SESSIONS],
    )?;

    golac.process.wait_for_lines("tunnel up: ", TUNNELS, SOON)?;
    golac
        .process
        .wait_for_lines("session up: ", TUNNELS * SESSIONS, SOON)?;
    let tunnels = lns.wait_for("tunnels", "established", TUNNELS, SOON)?;
    let sessions = lns.wait_for("sessions", "established", TUNNELS * SESSIONS, SOON)?;
    for line in golac
        .process
        .printed()
        .lines()
        .filter(|line| line.starts_with("tunnel up: "))
    {
        let row = row_with(&tunnels, number_after(line, "peer ")?);
        ensure!(
            row.is_some_and(|row| row["remote_id"] == number_after(line, "local ").unwrap_or(0)),
            "{line}"
        );
    }
    for line in golac
        .process
        .printed()
        .lines()
        .filter(|line| line.starts_with("session up: "))
    {
        let (id, remote) = (number_after(line, "peer ")?, number_after(line, "local ")?);
        ensure!(
            sessions
                .iter()
                .any(|row| row["id"] == id && row["remote_id"] == remote),
            "{line} / {sessions:?}"
        );
    }

    // We send a HELLO after a second of silence, and another a second later; the peer acknowledges, so
    // everything stays established.
    let hellos = 2 * TUNNELS;
    golac
        .process
        .wait_for_lines("message=recv message_type=avpMsgTypeHello", hellos, SOON)?;
    lns.wait_for("sessions", "established", TUNNELS * SESSIONS, SOON)?;
    ensure!(
        golac.process.lines_with("isRetransmit=true") == 0,
        "it had to send something twice"
    );

    golac.close()?;
    lns.wait_for("tunnels", "established", 0, SOON)?;
    capture.finish()?.has_in_order(&[
        "SCCRQ", "SCCRP", "SCCCN", "ICRQ", "ICRP", "ICCN", "HELLO", "StopCCN",
    ])?;
    lns.stop()
}

fn row_with(rows: &[Value], id: u64) -> Option<&Value> {
    rows.iter().find(|row| row["id"] == id)
}
