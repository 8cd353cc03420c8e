//! Route refresh, requested by them and by us (RFC 2918).

use super::bgp::{SOON, settings};
use crate::bgp::{Kind, Router, Setup};
use crate::headend::Headend;
use crate::net::LAC;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// FRR.
pub(crate) fn with_frr(bench: &Bench<'_>) -> Result<()> {
    ask_and_answer(bench, Kind::Frr, Some("clear bgp ipv4 unicast * soft in"))
}

/// BIRD.
pub(crate) fn with_bird(bench: &Bench<'_>) -> Result<()> {
    ask_and_answer(bench, Kind::Bird, Some("reload in headend"))
}

/// GoBGP, which sends no request because it keeps every received route.
pub(crate) fn with_gobgp(bench: &Bench<'_>) -> Result<()> {
    ask_and_answer(bench, Kind::Gobgp, None)
}

fn ask_and_answer(bench: &Bench<'_>, kind: Kind, ask: Option<&str>) -> Result<()> {
    let peer = Router::start(bench, kind, &Setup::default())?;
    let us = Headend::speaker(bench, &settings("", "", ""))?;
    us.established(LAC)?;
    for prefix in ["198.51.100.0/24", "2001:db8:1::/48"] {
        us.paths(prefix, 1)?;
    }
    let show = match kind {
        Kind::Frr => "show bgp ipv4 unicast 203.0.113.0/24",
        Kind::Bird => "show route for 203.0.113.0/24",
        Kind::Gobgp => "global rib 203.0.113.0/24",
    };
    peer.wait_for(show, &["10.9.0.2"], SOON)?;

    let mut after = us.neighbor(LAC)?;
    if let Some(ask) = ask {
        peer.ask(ask)?;
        let before = after;
        after = us.neighbor_is(LAC, SOON, |row| {
            more(&before, row, "in", "route_refresh") && more(&before, row, "out", "update")
        })?;
        peer.wait_for(show, &["10.9.0.2"], SOON)?;
    }

    us.verb(&["bgp", "refresh", LAC])?;
    let last = us.neighbor_is(LAC, SOON, |row| {
        more(&after, row, "out", "route_refresh") && more(&after, row, "in", "update")
    })?;
    ensure!(last["ups"] == 1 && last["malformed"] == 0, "{last}");
    us.paths("198.51.100.0/24", 1)?;
    if kind != Kind::Bird {
        // The numbers of messages of that type, sent and received, as they count them.
        let command = match kind {
            Kind::Gobgp => "neighbor 10.9.0.2",
            Kind::Frr | Kind::Bird => "show bgp neighbors 10.9.0.2",
        };
        let printed = peer.ask(command)?;
        let line = printed
            .lines()
            .find(|line| line.trim_start().starts_with("Route Refresh:"));
        let line = line.with_context(|| printed.clone())?;
        let counts: Vec<u64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let ours = last["messages_out"]["route_refresh"].as_u64();
        ensure!(counts.get(1).copied() == ours, "{line}; {last}");
    }
    us.stop()
}

/// Whether there are more messages of a type than before.
fn more(before: &Value, after: &Value, way: &str, kind: &str) -> bool {
    let count = |row: &Value| row[format!("messages_{way}")][kind].as_u64();
    count(after) > count(before)
}
