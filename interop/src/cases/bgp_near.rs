//! Sessions restricted to neighbours with a low hop count or a shared secret: GTSM (RFC 5082), and TCP's
//! signatures (RFC 2385).

use super::bgp::settings;
use crate::bgp::{Kind, Router, Setup};
use crate::headend::Headend;
use crate::net::LAC;
use crate::process::until;
use crate::runner::Bench;
use anyhow::{Result, ensure};
use std::time::Duration;

/// How long to wait for a session that must not be established.
const NEVER: Duration = Duration::from_secs(4);

/// FRR's packets from beyond the link are dropped, whichever side connects.
pub(crate) fn only_from_the_link(bench: &Bench<'_>) -> Result<()> {
    for we_dial in [true, false] {
        let setup = Setup {
            is_passive: we_dial,
            ..Setup::default()
        };
        // It sends with a TTL of 1, as to any external peer.
        let peer = Router::start(bench, Kind::Frr, &setup)?;
        let keys = format!("ttl_security_hops = 1\npassive = {}\n", !we_dial);
        let us = Headend::speaker(bench, &settings("", &keys, ""))?;
        stays_down(&us)?;
        peer.ask("configure terminal\nrouter bgp 65001\nneighbor 10.9.0.2 ttl-security hops 1")?;
        // No NOTIFICATION for the previous session has arrived.
        us.verb(&["bgp", "reset", LAC])?;
        let row = us.established(LAC)?;
        ensure!(row["outgoing"] == we_dial, "{row}");
        us.stop()?;
    }
    Ok(())
}

/// The same secret on both sides establishes a session, another or none does not, whichever side connects.
pub(crate) fn only_with_the_secret(bench: &Bench<'_>) -> Result<()> {
    let frr = ["password lantern", "password torch", ""];
    let bird = ["password \"lantern\";", "password \"torch\";", ""];
    for (kind, we_dial, sessions) in [(Kind::Frr, true, frr), (Kind::Bird, false, bird)] {
        for (session, is_friend) in sessions.into_iter().zip([true, false, false]) {
            let setup = Setup {
                is_passive: we_dial,
                session,
                ..Setup::default()
            };
            let peer = Router::start(bench, kind, &setup)?;
            let keys = format!("secret = \"lantern\"\npassive = {}\n", !we_dial);
            let us = Headend::speaker(bench, &settings("", &keys, ""))?;
            if is_friend {
                let row = us.established(LAC)?;
                ensure!(row["outgoing"] == we_dial, "{row}");
                us.paths("198.51.100.0/24", 1)?;
            } else {
                stays_down(&us)?;
            }
            drop(peer);
            us.stop()?;
        }
    }
    Ok(())
}

fn stays_down(us: &Headend) -> Result<()> {
    let came = until(NEVER, || {
        let row = us.neighbor(LAC)?;
        Ok((row["state"] == "Established").then_some(row))
    })?;
    ensure!(came.is_none(), "a session that is not to be: {came:?}");
    Ok(())
}
