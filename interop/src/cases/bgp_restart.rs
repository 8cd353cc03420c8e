//! Graceful restart (RFC 4724): one side is killed, the other keeps its routes until they are sent again or the
//! timer expires.

use super::bgp::{SOON, settings};
use crate::bgp::{Kind, Router, Setup};
use crate::headend::Headend;
use crate::net::LAC;
use crate::process::until;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

/// FRR.
pub(crate) fn with_frr(bench: &Bench<'_>) -> Result<()> {
    let setup = Setup {
        global: " bgp graceful-restart\n bgp graceful-restart restart-time 6\n bgp graceful-restart preserve-fw-state\n",
        ..Setup::default()
    };
    ours_stay(bench, Kind::Frr, &setup)?;
    theirs_stay(bench, Kind::Frr, &setup)
}

/// BIRD.
pub(crate) fn with_bird(bench: &Bench<'_>) -> Result<()> {
    let setup = Setup {
        session: "graceful restart on; graceful restart time 6;",
        ..Setup::default()
    };
    ours_stay(bench, Kind::Bird, &setup)?;
    theirs_stay(bench, Kind::Bird, &setup)
}

const PRESERVES: &str =
    "graceful_restart = true\npreserve_forwarding = true\nrestart_time_s = 20\n";

fn ours_stay(bench: &Bench<'_>, kind: Kind, setup: &Setup<'_>) -> Result<()> {
    let peer = Router::start(bench, kind, setup)?;
    let us = Headend::speaker(bench, &settings("", PRESERVES, ""))?;
    us.established(LAC)?;
    // FRR marks the route as stale; BIRD reports that it waits for us.
    let (show, waits) = match kind {
        Kind::Bird => (
            "show protocols all headend",
            "Neighbor graceful restart active",
        ),
        Kind::Frr | Kind::Gobgp => ("show bgp ipv4 unicast 203.0.113.0/24", "(stale)"),
    };
    let route = match kind {
        Kind::Bird => "show route for 203.0.113.0/24",
        Kind::Frr | Kind::Gobgp => show,
    };
    peer.wait_for(route, &["10.9.0.2"], SOON)?;
    us.process.signal(Signal::KILL)?;
    drop(us);
    peer.wait_for(show, &[waits], SOON)?;
    let kept = peer.ask(route)?;
    ensure!(kept.contains("10.9.0.2"), "our route is gone: {kept}");
    let us = Headend::speaker(bench, &settings("restarted = true", PRESERVES, ""))?;
    us.established(LAC)?;
    peer.wait(show, SOON, |printed| !printed.contains(waits))?;
    peer.wait_for(route, &["10.9.0.2"], SOON)?;
    us.stop()
}

fn theirs_stay(bench: &Bench<'_>, kind: Kind, setup: &Setup<'_>) -> Result<()> {
    let peer = Router::start(bench, kind, setup)?;
    let us = Headend::speaker(bench, &settings("", "", ""))?;
    let row = us.established(LAC)?;
    ensure!(row["graceful_restart_s"] == 6, "{row}");
    ensure!(us.paths("198.51.100.0/24", 1)?[0]["stale"] == false);
    // Its routes and End-of-RIB have arrived before it is killed.
    peer.process.signal(Signal::KILL)?;
    drop(peer);
    goes_stale(&us)?;
    let row = us.neighbor(LAC)?;
    ensure!(row["stale_left_s"].is_number(), "{row}");
    let peer = Router::start(bench, kind, setup)?;
    us.established(LAC)?;
    until(SOON, || {
        let paths = us.routes_to("198.51.100.0/24")?;
        let is_fresh = paths.first().is_some_and(|path| path["stale"] == false);
        Ok(is_fresh.then_some(()))
    })?
    .context("the route does not come again")?;
    us.neighbor_is(LAC, SOON, |row| row["stale_left_s"].is_null())?;

    // It does not return.
    peer.process.signal(Signal::KILL)?;
    drop(peer);
    goes_stale(&us)?;
    us.paths("198.51.100.0/24", 0)?;
    us.stop()
}

fn goes_stale(us: &Headend) -> Result<()> {
    until(SOON, || {
        let paths = us.routes_to("198.51.100.0/24")?;
        ensure!(paths.len() == 1, "the route did not stay: {paths:?}");
        Ok((paths[0]["stale"] == true).then_some(()))
    })?
    .context("the route is not stale")
}
