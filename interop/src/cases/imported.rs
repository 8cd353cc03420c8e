//! A daemon with its own configuration, then headend with what `headend import` makes of that: a third router, which has a
//! session with each in turn, sees the same neighbour and the same prefixes.

use super::bgp::SOON;
use crate::bgp::{Kind, OUR_ASN, Router, Setup, THEIR_ASN};
use crate::headend::Headend;
use crate::net::LAC;
use crate::process::until;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;

/// FRR's.
pub(crate) fn from_frr(bench: &Bench<'_>) -> Result<()> {
    let setup = Setup {
        is_passive: false,
        family: "prefix-list few in",
        file: "ip prefix-list few permit 203.0.113.0/24\n",
        ..Setup::default()
    };
    compare(bench, Kind::Frr, &setup)
}

/// BIRD's.
pub(crate) fn from_bird(bench: &Bench<'_>) -> Result<()> {
    let setup = Setup {
        is_passive: false,
        ..Setup::default()
    };
    compare(bench, Kind::Bird, &setup)
}

/// What the observer sees of a neighbour.
#[derive(Debug, PartialEq)]
struct Seen {
    asn: u64,
    hold_time_s: u64,
    prefixes: BTreeSet<String>,
}

fn compare(bench: &Bench<'_>, kind: Kind, setup: &Setup<'_>) -> Result<()> {
    let observer = Headend::speaker(
        bench,
        &format!(
            "[bgp]\nasn = {OUR_ASN}\nrouter_id = \"10.9.0.2\"\nlisten = [\"10.9.0.2:179\"]\nnetworks = [\"203.0.113.0/24\", \"192.0.2.0/25\"]\n\
             families = [\"ipv4\", \"ipv6\"]\nconnect_retry_s = 1\nidle_hold_s = 0.1\ndamp_oscillations = false\nimport = \"accept\"\nexport = \"accept\"\n\
             [[bgp.neighbor]]\naddress = \"{LAC}\"\nremote_asn = {THEIR_ASN}\ngraceful_restart = false\n"
        ),
    )?;
    let router = Router::start(bench, kind, setup)?;
    let theirs = seen(&observer)?;
    router.process.stop()?;
    observer.neighbor_is(LAC, SOON, |row| row["state"] != "Established")?;
    let file = bench.directory.join(format!("{}.conf", kind.name()));
    let imported = Headend::imported(bench, kind.name(), &file)?;
    let ours = seen(&observer)?;
    ensure!(theirs == ours, "the daemon: {theirs:?}; headend: {ours:?}");
    imported.stop()?;
    observer.stop()
}

/// Waits for the session and for three prefixes, and returns what the neighbour is like.
fn seen(observer: &Headend) -> Result<Seen> {
    let row = observer.established(LAC)?;
    let mut prefixes = BTreeSet::new();
    let found = until(SOON, || {
        let rows = observer.show(&["bgp", "route", "--received", LAC])?;
        prefixes = rows
            .iter()
            .filter_map(|row| row["prefix"].as_str().map(str::to_owned))
            .collect();
        Ok((prefixes.len() == 3).then_some(()))
    })?;
    found.with_context(|| format!("not three prefixes: {prefixes:?}; {row}"))?;
    Ok(Seen {
        asn: row["asn"].as_u64().context("an AS")?,
        hold_time_s: row["hold_time_s"].as_u64().context("a hold time")?,
        prefixes,
    })
}
