//! How sessions end and which NOTIFICATION the other side gets: by an operator, by too many prefixes, by
//! silence.

use super::bgp::{SOON, settings};
use crate::bgp::{Kind, Router, Setup};
use crate::headend::Headend;
use crate::net::LAC;
use crate::process::until;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

/// What operators tell each other (RFC 9003).
const OUR_TEXT: &str = "moving to rack 12 ü";
const THEIR_TEXT: &str = "new_card_in_slot_3";

/// FRR.
pub(crate) fn with_frr(bench: &Bench<'_>) -> Result<()> {
    let stop = format!(
        "configure terminal\nrouter bgp 65001\nneighbor 10.9.0.2 shutdown message {THEIR_TEXT}"
    );
    let end = Ways {
        kind: Kind::Frr,
        stop: &stop,
        limit: "maximum-prefix 1",
        // FRR prints non-ASCII bytes as numbers.
        told_stop: "moving to rack 12 \\xc3\\xbc",
        told_limit: "6/1 (Cease/Maximum Number of Prefixes Reached)",
        told_hold: "4/0 (Hold Timer Expired)",
    };
    end.all(bench)
}

/// BIRD.
pub(crate) fn with_bird(bench: &Bench<'_>) -> Result<()> {
    let stop = format!("disable headend \"{THEIR_TEXT}\"");
    let end = Ways {
        kind: Kind::Bird,
        stop: &stop,
        // With one route more than the first excess one, it sends no NOTIFICATION.
        limit: "import limit 2 action disable;",
        told_stop: OUR_TEXT,
        told_limit: "Received: Maximum number of prefixes reached",
        told_hold: "Received: Hold timer expired",
    };
    end.all(bench)
}

/// GoBGP.
pub(crate) fn with_gobgp(bench: &Bench<'_>) -> Result<()> {
    let stop = format!("neighbor 10.9.0.2 shutdown --reason {THEIR_TEXT}");
    let end = Ways {
        kind: Kind::Gobgp,
        stop: &stop,
        limit: "[neighbors.afi-safis.prefix-limit.config]\nmax-prefixes = 1\n",
        told_stop: OUR_TEXT,
        told_limit: "Code=6",
        told_hold: "Code=4",
    };
    end.all(bench)
}

/// The commands for a daemon, and its output.
struct Ways<'w> {
    kind: Kind,
    /// Its operator stops the session.
    stop: &'w str,
    /// A limit below our number of IPv4 prefixes.
    limit: &'w str,
    /// It prints our operator's text,
    told_stop: &'w str,
    /// our NOTIFICATION about too many prefixes,
    told_limit: &'w str,
    /// and our NOTIFICATION about the expired hold timer.
    told_hold: &'w str,
}

impl Ways<'_> {
    fn all(&self, bench: &Bench<'_>) -> Result<()> {
        self.by_operators(bench)?;
        self.by_our_limit(bench)?;
        self.by_their_limit(bench)
    }

    fn by_operators(&self, bench: &Bench<'_>) -> Result<()> {
        let mut peer = Router::start(bench, self.kind, &Setup::default())?;
        let us = Headend::speaker(bench, &settings("damp_oscillations = false", "", ""))?;
        us.established(LAC)?;
        us.verb(&["bgp", "stop", LAC, "--message", OUR_TEXT])?;
        peer.process.wait_for(self.told_stop, SOON)?;
        us.neighbor_is(LAC, SOON, |row| row["is_started"] == false)?;
        us.verb(&["bgp", "start", LAC])?;
        us.established(LAC)?;

        // Silence: first theirs, then ours.
        peer.process.signal(Signal::STOP)?;
        us.happened(LAC, "sent", "Hold Timer Expired")?;
        peer.process.signal(Signal::CONT)?;
        peer.process.wait_for(self.told_hold, SOON)?;
        us.neighbor_is(LAC, SOON, |row| {
            row["state"] == "Established" && row["ups"] == 3
        })?;
        us.process.signal(Signal::STOP)?;
        let is_gone = |printed: &str| match self.kind {
            Kind::Frr => !printed.contains("BGP state = Established"),
            Kind::Bird => !printed.contains("Established"),
            Kind::Gobgp => !printed.contains("ESTABLISHED"),
        };
        let show = match self.kind {
            Kind::Frr => "show bgp neighbors 10.9.0.2",
            Kind::Bird => "show protocols headend",
            Kind::Gobgp => "neighbor 10.9.0.2",
        };
        peer.wait(show, SOON, is_gone)?;
        us.process.signal(Signal::CONT)?;
        us.neighbor_is(LAC, SOON, |row| {
            row["state"] == "Established" && row["ups"] == 4
        })?;

        peer.ask(self.stop)?;
        let told = us.happened(LAC, "received", THEIR_TEXT)?;
        ensure!(told.contains("Cease/Administrative Shutdown"), "{told}");
        us.stop()
    }

    fn by_our_limit(&self, bench: &Bench<'_>) -> Result<()> {
        let mut peer = Router::start(bench, self.kind, &Setup::default())?;
        // They have two IPv4 prefixes; we have three, since FRR counts those received before the limit.
        let us = Headend::speaker(bench, &settings("", "prefixes_max = 1\n", ""))?;
        us.happened(LAC, "sent", "Maximum Number of Prefixes Reached")?;
        peer.process.wait_for(self.told_limit, SOON)?;
        let row = us.neighbor_is(LAC, SOON, |row| row["state"] == "Idle")?;
        ensure!(row["prefixes_in"]["ipv4"] == 0, "their routes stay: {row}");
        us.stop()
    }

    fn by_their_limit(&self, bench: &Bench<'_>) -> Result<()> {
        let setup = Setup {
            family: self.limit,
            ..Setup::default()
        };
        let _peer = Router::start(bench, self.kind, &setup)?;
        let us = Headend::speaker(bench, &settings("", "", ""))?;
        match self.kind {
            // Whether BIRD sends a NOTIFICATION depends on what it has left to read: it may close silently, or
            // only stop.
            Kind::Bird => us.happened(LAC, "ended", "")?,
            Kind::Frr | Kind::Gobgp => {
                us.happened(LAC, "received", "Maximum Number of Prefixes Reached")?
            }
        };
        until(SOON, || {
            Ok(us
                .show(&["bgp", "route", "--received", LAC])?
                .is_empty()
                .then_some(()))
        })?
        .context("routes of a session that has ended")?;
        us.stop()
    }
}
