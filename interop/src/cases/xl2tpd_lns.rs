//! Our LAC calls xl2tpd: a tunnel and a session, and their end.

use super::{SOON, number_after};
use crate::capture::Capture;
use crate::headend::{Headend, secret_key};
use crate::net::LNS;
use crate::runner::Bench;
use crate::xl2tpd::{Setup, VERBOSE, Xl2tpd, lns_section};
use anyhow::{Result, ensure};

/// No secret on either side.
pub(crate) fn without_a_secret(bench: &Bench<'_>) -> Result<()> {
    call(bench, None)
}

/// Both sides challenge, and both answer.
pub(crate) fn with_a_secret(bench: &Bench<'_>) -> Result<()> {
    call(bench, Some("lantern"))
}

fn call(bench: &Bench<'_>, secret: Option<&str>) -> Result<()> {
    let setup = Setup {
        name: "xl2tpd",
        address: LNS,
        secret,
        global: VERBOSE,
        sections: lns_section(secret.is_some()),
    };
    let mut peer = Xl2tpd::start(&bench.wire.lns, &bench.directory, &setup)?;
    let lac = Headend::lac(bench, &secret_key(secret))?;
    let capture = Capture::start(&bench.wire.lac, &bench.directory)?;
    lac.verb(&["tunnel", "create", "--peer", "10.9.0.2", "--version", "2"])?;

    let line = peer
        .process
        .wait_for("Connection established to 10.9.0.1", SOON)?;
    peer.process
        .wait_for("peer reports hostname 'headend.test'", SOON)?;
    if secret.is_some() {
        peer.process
            .wait_for("chalresp_avp: Challenge reply found", SOON)?;
        peer.process
            .wait_for("challenge_avp: challenge avp found", SOON)?;
    }
    let tunnel = lac.wait_for("tunnels", "established", 1, SOON)?.remove(0);
    ensure!(
        tunnel["id"] == number_after(&line, "Remote:")?,
        "{line} / {tunnel}"
    );
    ensure!(
        tunnel["remote_id"] == number_after(&line, "Local:")?,
        "{line} / {tunnel}"
    );
    ensure!(
        tunnel["version"] == 2 && tunnel["role"] == "lac" && tunnel["host_name"] == "xl2tpd.test",
        "{tunnel}"
    );

    lac.verb(&["session", "create", "--tunnel", &tunnel["id"].to_string()])?;
    let call = peer
        .process
        .wait_for("Call established with 10.9.0.1", SOON)?;
    let session = lac.wait_for("sessions", "established", 1, SOON)?.remove(0);
    ensure!(
        session["id"] == number_after(&call, "Remote:")?,
        "{call} / {session}"
    );
    ensure!(
        session["remote_id"] == number_after(&call, "Local:")?,
        "{call} / {session}"
    );

    lac.verb(&["tunnel", "delete", &tunnel["id"].to_string()])?;
    peer.process.wait_for(
        "message type is Stop-Control-Connection-Notification(4)",
        SOON,
    )?;
    lac.wait_for("tunnels", "established", 0, SOON)?;
    capture
        .finish()?
        .has_in_order(&["SCCRQ", "SCCRP", "SCCCN", "ICRQ", "ICRP", "ICCN", "StopCCN"])?;
    lac.stop()
}
