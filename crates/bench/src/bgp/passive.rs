//! Passive peers: the cost of keeping established sessions, and the time until many sessions that
//! start at once are up.

use anyhow::Result;
use base::Duration;
use lab::report::CoreWitness;
use reactor::usage::process_cpu;

use super::daemons::{BgpProgram, Setup};
use super::load::{Load, Pace, Seen};
use crate::harness::Bench;
use crate::harness::others_of;

/// Longest time that sessions may take to come up.
pub(super) const UP_MAX: Duration = Duration::from_secs(60);

/// Pause between the last session and the measurement.
const SETTLE: Duration = Duration::from_secs(2);

/// Results for sessions that are kept.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) program: BgpProgram,
    pub(super) peers: u32,
    /// Sessions established at the end.
    pub(super) up: u32,
    /// Of the subject, in percent of one core.
    pub(super) cpu_percent: f64,
    /// Processor time of one session per second.
    pub(super) each_us: f64,
    /// Waits (voluntary context switches) per second.
    pub(super) waits: f64,
    /// Resident memory gained per session.
    pub(super) memory_bytes: f64,
    pub(super) empty_bytes: u64,
    /// KEEPALIVEs that a session received per second.
    pub(super) keepalives: f64,
    pub(super) seen: Seen,
    /// Of the load generator, in percent of one core.
    pub(super) load_percent: f64,
    pub(super) others_percent: Option<f64>,
}

/// Brings sessions up and keeps them for `span`.
///
/// # Errors
/// The subject does not start, or the kernel's error for a socket.
pub(super) fn keep(
    bench: &Bench,
    program: &BgpProgram,
    peers: u32,
    span: Duration,
) -> Result<Kept> {
    let setup = Setup::TIGHT;
    let server = program.start(bench, setup)?;
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
        program: program.clone(),
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

/// Results for sessions that all start at once.
#[derive(Clone, Debug)]
pub(super) struct Risen {
    pub(super) program: BgpProgram,
    pub(super) peers: u32,
    pub(super) up: u32,
    /// From the first connect to the last session established.
    pub(super) seconds: f64,
    /// Processor time of the subject, per session.
    pub(super) cpu_us: f64,
    pub(super) seen: Seen,
    pub(super) others_percent: Option<f64>,
}

/// Starts all sessions before any input is read.
///
/// # Errors
/// The subject does not start, or the kernel's error for a socket.
pub(super) fn rise(bench: &Bench, program: &BgpProgram, peers: u32) -> Result<Risen> {
    let setup = Setup::USUAL;
    let server = program.start(bench, setup)?;
    let mut load = Load::new(server.addresses[0], peers, setup.hold_s)?;
    let witness = CoreWitness::start();
    let before = server.booked()?;
    let took = load.open(Pace::AtOnce, UP_MAX)?;
    let spent = server.spent_since(&before)?;
    let others = witness.finish();
    server.running.check()?;
    Ok(Risen {
        program: program.clone(),
        peers,
        up: load.up(),
        seconds: took.as_secs_f64(),
        cpu_us: spent.cpu_us / f64::from(load.up().max(1)),
        seen: load.seen.clone(),
        others_percent: others_of(others),
    })
}
