//! Two different secrets: the side that detects it refuses, and the other side prints the reason.

use super::SOON;
use crate::capture::Capture;
use crate::headend::{Headend, secret_key};
use crate::l2tpns::L2tpns;
use crate::net::{LAC, LNS};
use crate::process::until;
use crate::runner::Bench;
use crate::xl2tpd::{Setup, VERBOSE, Xl2tpd, lac_section, lns_section};
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// "Requester is not authorized to establish a control channel", RFC 2661 section 4.4.2.
const NOT_AUTHORISED: u64 = 4;

/// xl2tpd answers our challenge wrongly, and prints the StopCCN that it receives.
pub(crate) fn our_lns_refuses_xl2tpd(bench: &Bench<'_>) -> Result<()> {
    let lns = Headend::lns(bench, &secret_key(Some("lantern")))?;
    let capture = Capture::start(&bench.wire.lns, &bench.directory)?;
    // It sends no challenge, so that we detect the mismatch.
    let sections = lac_section("one", LNS, false, "");
    let setup = Setup {
        name: "xl2tpd",
        address: LAC,
        secret: Some("lamp"),
        global: VERBOSE,
        sections,
    };
    let mut peer = Xl2tpd::start(&bench.wire.lac, &bench.directory, &setup)?;
    peer.command("c one")?;

    let line = peer.process.wait_for("peer closing for reason", SOON)?;
    ensure!(
        line.contains(&format!("for reason {NOT_AUTHORISED} (")),
        "{line}"
    );
    ensure!(
        peer.process.lines_with("Call established") == 0,
        "it has a call with the wrong secret"
    );
    ended(&lns, NOT_AUTHORISED)?;
    capture
        .finish()?
        .has_in_order(&["SCCRQ", "SCCRP", "SCCCN", "StopCCN"])?;
    lns.stop()
}

/// xl2tpd answers our challenge wrongly as LNS, and prints the StopCCN that it receives.
pub(crate) fn our_lac_refuses_xl2tpd(bench: &Bench<'_>) -> Result<()> {
    let sections = lns_section(false);
    let setup = Setup {
        name: "xl2tpd",
        address: LNS,
        secret: Some("lamp"),
        global: VERBOSE,
        sections,
    };
    let mut peer = Xl2tpd::start(&bench.wire.lns, &bench.directory, &setup)?;
    let lac = Headend::lac(bench, &secret_key(Some("lantern")))?;
    let capture = Capture::start(&bench.wire.lac, &bench.directory)?;
    refused_to_the_operator(&lac)?;

    let line = peer.process.wait_for("peer closing for reason", SOON)?;
    ensure!(
        line.contains(&format!("for reason {NOT_AUTHORISED} (")),
        "{line}"
    );
    ensure!(
        peer.process.lines_with("Connection established") == 0,
        "it has a tunnel with the wrong secret"
    );
    ended(&lac, NOT_AUTHORISED)?;
    capture
        .finish()?
        .has_in_order(&["SCCRQ", "SCCRP", "StopCCN"])?;
    lac.stop()
}

/// l2tpns answers our challenge wrongly, and prints the StopCCN that it receives.
pub(crate) fn our_lac_refuses_l2tpns(bench: &Bench<'_>) -> Result<()> {
    let mut peer = L2tpns::start(&bench.wire.lns, &bench.directory, LNS, "lamp")?;
    let lac = Headend::lac(bench, &secret_key(Some("lantern")))?;
    let capture = Capture::start(&bench.wire.lac, &bench.directory)?;
    refused_to_the_operator(&lac)?;

    peer.process
        .wait_for(&format!("Result Code {NOT_AUTHORISED}:"), SOON)?;
    ended(&lac, NOT_AUTHORISED)?;
    capture
        .finish()?
        .has_in_order(&["SCCRQ", "SCCRP", "StopCCN"])?;
    lac.stop()
}

/// The command that creates a tunnel fails, and prints the reason.
fn refused_to_the_operator(lac: &Headend) -> Result<()> {
    let outcome = lac.verb(&["tunnel", "create", "--peer", "10.9.0.2", "--version", "2"]);
    let error = outcome
        .err()
        .context("the tunnel was created with the wrong secret")?
        .to_string();
    ensure!(error.contains("not authorized"), "{error}");
    Ok(())
}

/// The tunnel is gone, and its history has the result code that was sent.
fn ended(headend: &Headend, result: u64) -> Result<()> {
    let mut last: Vec<Value> = Vec::new();
    let found = until(SOON, || {
        last = headend.show(&["tunnels", "--ended"])?;
        Ok(last.iter().any(|row| row["result"] == result).then_some(()))
    })?;
    found.with_context(|| format!("no tunnel ended with result {result}: {last:?}"))?;
    ensure!(
        headend.show(&["tunnels"])?.is_empty(),
        "a tunnel is listed that was refused"
    );
    Ok(())
}
