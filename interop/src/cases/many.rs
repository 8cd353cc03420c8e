//! A thousand tunnels, and thirty clients at once.

use super::{SOON, number_after};
use crate::headend::Headend;
use crate::net::{LAC, LNS};
use crate::process::until;
use crate::runner::Bench;
use crate::xl2tpd::{Setup, Xl2tpd, lac_section};
use anyhow::{Context, Result, ensure};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

const TUNNELS: usize = 1_000;

/// xl2tpd reads one command in about 8 ms, and loses one that arrives sooner.
const COMMAND_EVERY: Duration = Duration::from_millis(10);

/// Limit for all thousand: ten seconds of commands, and xl2tpd's own delays.
const THOUSAND_MAX: Duration = Duration::from_secs(90);

const CLIENTS: usize = 30;

/// xl2tpd sends a HELLO after a minute, and gives up after some retries.
const NOTICE_MAX: Duration = Duration::from_secs(120);

/// A client that is refused or unanswered redials each second; each has this long.
const RECOVER_MAX: Duration = Duration::from_secs(60);

/// One xl2tpd opens a thousand tunnels; both sides show the same ones.
pub(crate) fn a_thousand_tunnels(bench: &Bench<'_>) -> Result<()> {
    let lns = Headend::lns(bench, "")?;
    let setup = Setup {
        name: "xl2tpd",
        address: LAC,
        secret: None,
        global: "",
        sections: String::new(),
    };
    let peer = Xl2tpd::start(&bench.wire.lac, &bench.directory, &setup)?;
    let end = Instant::now() + THOUSAND_MAX;
    loop {
        let up = tunnels_of(&peer)?.len();
        if up >= TUNNELS {
            break;
        }
        ensure!(Instant::now() < end, "{up} tunnels are up at the peer");
        // Some commands are lost: repeat as many as are missing, after those in progress have had their time.
        for _ in up..TUNNELS {
            peer.command(&format!("t {LNS}"))?;
            std::thread::sleep(COMMAND_EVERY);
        }
        std::thread::sleep(Duration::from_secs(1));
    }

    // Late tunnels may still be established on both sides: done once both show the same.
    let mut last = (0, 0);
    let same = until(SOON, || {
        let mut ours = HashMap::new();
        for row in lns
            .show(&["tunnels"])?
            .iter()
            .filter(|row| row["state"] == "established")
        {
            let id = |key: &str| row[key].as_u64().with_context(|| format!("{key} in {row}"));
            ours.insert(id("remote_id")?, id("id")?);
        }
        let theirs = tunnels_of(&peer)?;
        last = (ours.len(), theirs.len());
        Ok((ours == theirs).then_some(()))
    })?;
    same.with_context(|| {
        format!(
            "{} tunnels here and {} at the peer, not the same ones",
            last.0, last.1
        )
    })?;
    lns.stop()
}

/// The tunnels that an xl2tpd has printed as established: its own ids and the LNS's. It draws its ids at random
/// and may draw one twice; the LNS treats that as a restart of that tunnel, so the later one counts.
fn tunnels_of(peer: &Xl2tpd) -> Result<HashMap<u64, u64>> {
    let printed = peer.process.printed();
    let up = printed
        .lines()
        .filter(|line| line.contains("Connection established to 10.9.0.2"));
    up.map(|line| {
        Ok((
            number_after(line, "Local:")?,
            number_after(line, "Remote:")?,
        ))
    })
    .collect()
}

/// Thirty clients are notified that their LNS ends, and all get a tunnel and a session with the next one.
pub(crate) fn recover_after_a_restart(bench: &Bench<'_>) -> Result<()> {
    let first = Headend::lns(bench, "")?;
    let mut clients = start_clients(bench)?;
    all_up(&first, &mut clients, 1).context("before the restart")?;
    first.stop()?;
    for client in &mut clients {
        client.process.wait_for("closed to 10.9.0.2", SOON)?;
    }
    let second = Headend::lns(bench, "")?;
    all_up(&second, &mut clients, 2).context("after the restart")?;
    second.stop()
}

/// Thirty clients detect, all at about the same time, that their LNS has lost its state, and recover.
pub(crate) fn recover_after_a_crash(bench: &Bench<'_>) -> Result<()> {
    let first = Headend::lns(bench, "")?;
    let mut clients = start_clients(bench)?;
    all_up(&first, &mut clients, 1).context("before the crash")?;
    // Dropping it kills it without notice; the next one gets HELLOs for unknown tunnels.
    drop(first);
    let second = Headend::lns(bench, "")?;
    for client in &mut clients {
        client
            .process
            .wait_for("Maximum retries exceeded for tunnel", NOTICE_MAX)?;
    }
    all_up(&second, &mut clients, 2).context("after the crash")?;
    second.stop()
}

/// Thirty clients crash and return from the same addresses and ports while the LNS still has their old tunnels.
pub(crate) fn recover_after_their_crash(bench: &Bench<'_>) -> Result<()> {
    let lns = Headend::lns(bench, "hello_interval_s = 1.0\n")?;
    let mut clients = start_clients(bench)?;
    all_up(&lns, &mut clients, 1).context("before the crash")?;
    drop(clients);
    let mut clients = start_clients(bench)?;
    // Their old tunnels end once HELLOs to them stay unanswered, and only the new ones are left.
    all_up(&lns, &mut clients, 1).context("after the crash")?;
    lns.stop()
}

fn start_clients(bench: &Bench<'_>) -> Result<Vec<Xl2tpd>> {
    (1..=CLIENTS)
        .map(|number| start_client(bench, number))
        .collect()
}

fn start_client(bench: &Bench<'_>, number: usize) -> Result<Xl2tpd> {
    let address = format!("10.9.0.{}", 100 + number);
    bench.wire.lac.ip(&[
        "address",
        "replace",
        &format!("{address}/24"),
        "dev",
        "wire",
    ])?;
    let name = format!("client-{number}");
    let log = bench.directory.join(format!("{name}.log"));
    if log.exists() {
        std::fs::rename(&log, log.with_extension("log.1"))?;
    }
    let more = "autodial = yes\nredial = yes\nredial timeout = 1\nmax redials = 1000\n";
    let setup = Setup {
        name: &name,
        address: &address,
        // It sends a HELLO each minute, and detects a dead peer sooner with few retries.
        global: "max retries = 2\n",
        secret: None,
        sections: lac_section("one", LNS, false, more),
    };
    Xl2tpd::start(&bench.wire.lac, &bench.directory, &setup)
}

/// Each client has printed its tunnel and call for the `times`-th time, and we show one of each per client.
fn all_up(lns: &Headend, clients: &mut [Xl2tpd], times: usize) -> Result<()> {
    for client in clients.iter_mut() {
        client
            .process
            .wait_for_lines("Connection established to 10.9.0.2", times, RECOVER_MAX)?;
        client
            .process
            .wait_for_lines("Call established with 10.9.0.2", times, RECOVER_MAX)?;
    }
    let rows = lns.wait_for("tunnels", "established", clients.len(), RECOVER_MAX)?;
    let peers: HashSet<String> = rows.iter().map(|row| row["peer"].to_string()).collect();
    ensure!(
        peers.len() == clients.len(),
        "tunnels with {} clients",
        peers.len()
    );
    lns.wait_for("sessions", "established", clients.len(), RECOVER_MAX)?;
    Ok(())
}
