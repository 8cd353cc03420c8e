//! Passive peers: what an established session costs that only has to be kept, and how long many take to come up at
//! once.

use anyhow::Result;
use base::Duration;
use lab::report::CoreWitness;
use reactor::usage::process_cpu;

use super::daemons::{Setup, Who};
use super::load::{Load, Pace, Seen};
use crate::harness::Bench;
use crate::harness::others_of;

/// Longest that sessions may take to come up.
pub(super) const UP_MAX: Duration = Duration::from_secs(60);

/// From the last session on until the measurement begins.
const SETTLE: Duration = Duration::from_secs(2);

/// Sessions that are kept.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) who: Who,
    pub(super) peers: u32,
    /// Established at the end.
    pub(super) up: u32,
    /// Of one core, of whoever is measured.
    pub(super) cpu_percent: f64,
    /// Processor time for a session in a second.
    pub(super) each_us: f64,
    /// Times that it went to sleep, in a second.
    pub(super) waits: f64,
    /// Resident memory gained for a session.
    pub(super) memory_bytes: f64,
    pub(super) empty_bytes: u64,
    /// KEEPALIVEs that a session got in a second.
    pub(super) keepalives: f64,
    pub(super) seen: Seen,
    /// Of one core, of the load.
    pub(super) load_percent: f64,
    pub(super) others_percent: Option<f64>,
}

/// Brings sessions up and keeps them for `span`.
///
/// # Errors
/// It does not start, or what the kernel said of a socket.
pub(super) fn keep(bench: &Bench, who: &Who, peers: u32, span: Duration) -> Result<Kept> {
    let setup = Setup::TIGHT;
    let server = who.start(bench, setup)?;
    let empty_bytes = server.resident()?;
    let mut load = Load::new(server.addresses[0], peers, setup.hold_s)?;
    load.open(Pace::Spread, UP_MAX)?;
    load.keep(SETTLE)?;
    let gained = server.resident()?.saturating_sub(empty_bytes);
    let memory_bytes = gained as f64 / f64::from(load.up().max(1));
    let witness = CoreWitness::start();
    let (before, load_before) = (server.booked()?, process_cpu());
    let keepalives = load.seen.keepalives;
    load.keep(span)?;
    let spent = server.spent_since(&before)?;
    let load_ns = process_cpu().as_nanos() - load_before.as_nanos();
    let others = witness.finish();
    server.running.check()?;
    let up = load.up();
    let session_seconds = f64::from(up.max(1)) * spent.seconds;
    Ok(Kept {
        who: who.clone(),
        peers,
        up,
        cpu_percent: spent.percent(),
        each_us: spent.cpu_us / session_seconds,
        waits: spent.waits / spent.seconds,
        memory_bytes,
        empty_bytes,
        keepalives: (load.seen.keepalives - keepalives) as f64 / session_seconds,
        seen: load.seen.clone(),
        load_percent: load_ns as f64 / 1e7 / spent.seconds,
        others_percent: others_of(others),
    })
}

/// Sessions that all begin at once.
#[derive(Clone, Debug)]
pub(super) struct Risen {
    pub(super) who: Who,
    pub(super) peers: u32,
    pub(super) up: u32,
    /// From the first connect to the last session that was established.
    pub(super) seconds: f64,
    /// Of whoever is measured, for a session.
    pub(super) cpu_us: f64,
    pub(super) seen: Seen,
    pub(super) others_percent: Option<f64>,
}

/// Begins all sessions before anything is read.
///
/// # Errors
/// It does not start, or what the kernel said of a socket.
pub(super) fn rise(bench: &Bench, who: &Who, peers: u32) -> Result<Risen> {
    let setup = Setup::USUAL;
    let server = who.start(bench, setup)?;
    let mut load = Load::new(server.addresses[0], peers, setup.hold_s)?;
    let witness = CoreWitness::start();
    let before = server.booked()?;
    let took = load.open(Pace::AtOnce, UP_MAX)?;
    let spent = server.spent_since(&before)?;
    let others = witness.finish();
    server.running.check()?;
    Ok(Risen {
        who: who.clone(),
        peers,
        up: load.up(),
        seconds: took.as_secs_f64(),
        cpu_us: spent.cpu_us / f64::from(load.up().max(1)),
        seen: load.seen.clone(),
        others_percent: others_of(others),
    })
}
