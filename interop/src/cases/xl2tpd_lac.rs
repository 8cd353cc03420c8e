//! xl2tpd calls our LNS: a tunnel and a session, and their end.

use super::{SOON, number_after};
use crate::capture::Capture;
use crate::headend::{Headend, secret_key};
use crate::net::{LAC, LNS};
use crate::runner::Bench;
use crate::xl2tpd::{Setup, VERBOSE, Xl2tpd, lac_section};
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
    let lns = Headend::lns(bench, &secret_key(secret))?;
    let capture = Capture::start(&bench.wire.lns, &bench.directory)?;
    let setup = Setup {
        name: "xl2tpd",
        address: LAC,
        secret,
        global: VERBOSE,
        sections: lac_section("one", LNS, secret.is_some(), ""),
    };
    let mut peer = Xl2tpd::start(&bench.wire.lac, &bench.directory, &setup)?;
    peer.command("c one")?;

    // Their ids, then ours; they must agree.
    let line = peer
        .process
        .wait_for("Connection established to 10.9.0.2", SOON)?;
    let call = peer
        .process
        .wait_for("Call established with 10.9.0.2", SOON)?;
    peer.process
        .wait_for("peer reports hostname 'headend.test'", SOON)?;
    if secret.is_some() {
        peer.process
            .wait_for("chalresp_avp: Challenge reply found", SOON)?;
        peer.process
            .wait_for("challenge_avp: challenge avp found", SOON)?;
    }
    let tunnel = lns.wait_for("tunnels", "established", 1, SOON)?.remove(0);
    ensure!(
        tunnel["id"] == number_after(&line, "Remote:")?,
        "{line} / {tunnel}"
    );
    ensure!(
        tunnel["remote_id"] == number_after(&line, "Local:")?,
        "{line} / {tunnel}"
    );
    ensure!(
        tunnel["version"] == 2 && tunnel["role"] == "lns" && tunnel["peer"] == "10.9.0.1:1701",
        "{tunnel}"
    );
    let session = lns.wait_for("sessions", "established", 1, SOON)?.remove(0);
    ensure!(
        session["id"] == number_after(&call, "Remote:")?,
        "{call} / {session}"
    );
    ensure!(
        session["remote_id"] == number_after(&call, "Local:")?,
        "{call} / {session}"
    );
    ensure!(session["tunnel"] == tunnel["id"], "{session}");

    // They hang up; the call and the tunnel also end on our side.
    peer.command("d one")?;
    lns.wait_for("sessions", "established", 0, SOON)?;
    lns.wait_for("tunnels", "established", 0, SOON)?;
    ensure!(
        lns.show(&["tunnels"])?.is_empty(),
        "a tunnel is listed after its end"
    );
    capture
        .finish()?
        .has_in_order(&["SCCRQ", "SCCRP", "SCCCN", "ICRQ", "ICRP", "ICCN", "StopCCN"])?;
    lns.stop()
}
