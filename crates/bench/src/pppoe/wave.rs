//! One wave of hosts that connect, and its cost to the daemon in time and memory; as many frames through the bare loop;
//! and a flood of PADIs at both.

use anyhow::{Context, Result, ensure};
use base::Duration;
use lab::report::CoreWitness;
use reactor::clock;
use reactor::usage::process_cpu;

use super::bare::{self, Bare, Shape};
use super::hosts::{Flooded, Hosts, Wave};
use super::place::{Limits, Place};
use crate::harness::Bench;
use crate::harness::costs::{median_by, range_by};
use crate::harness::others_of;
use crate::harness::server::{LoopCounters, Server};
use crate::subscribers::lns::Proof;

/// Longest time that one wave may take.
const WAVE_MAX: Duration = Duration::from_secs(90);
/// Pause after the last reply. The kernel updates a process's counters when it goes to sleep.
const SETTLE: Duration = Duration::from_millis(20);

/// Results of one wave, for the daemon or the bare loop.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub(super) wave: Wave,
    /// Processor time of the daemon or the bare loop, per host.
    pub(super) cpu_us: f64,
    /// Processor time of the load, per host.
    pub(super) load_us: f64,
    /// Resident memory gained per host.
    pub(super) memory_bytes: f64,
    /// Resident memory before the first host.
    pub(super) empty_bytes: u64,
    /// The daemon's own counters, per host.
    pub(super) accounts: LoopCounters,
    /// Requests answered by the RADIUS server.
    pub(super) asked: u64,
    /// Use of all cores by other processes.
    pub(super) others_percent: Option<f64>,
}

/// All waves of one kind and size.
#[derive(Clone, Debug)]
pub(super) struct Waves {
    /// `None` is the bare loop.
    pub(super) proof: Option<Proof>,
    pub(super) hosts: u16,
    pub(super) runs: Vec<Run>,
}

impl Waves {
    /// The wave of median cost.
    pub(super) fn median(&self) -> Option<&Run> {
        median_by(&self.runs, |run| run.cpu_us)
    }

    /// The lowest and the highest cost of a wave.
    pub(super) fn range_us(&self) -> Option<(f64, f64)> {
        range_by(&self.runs, |run| run.cpu_us)
    }
}

/// Connects `count` hosts to a new daemon.
///
/// # Errors
/// It does not start or has ended, or the kernel's error for a socket.
pub(super) fn ours(
    bench: &Bench,
    place: &Place,
    proof: Proof,
    count: u16,
    window: u32,
) -> Result<Run> {
    let radius = place.radius()?;
    let mut daemon = place.start(bench, proof, Limits::None, &radius)?;
    let mut hosts = Hosts::new(place.socket()?)?;
    let empty_bytes = daemon.server.resident()?;
    let accounts = daemon.accounts()?;
    let witness = CoreWitness::start();
    let before = (daemon.server.booked()?, process_cpu());
    let wave = hosts.open(count, window, WAVE_MAX)?;
    let load_ns = process_cpu().as_nanos() - before.1.as_nanos();
    hosts.answer(SETTLE)?;
    let spent = daemon.server.spent_since(&before.0)?;
    let others = witness.finish();
    daemon.server.running.check()?;
    let each = f64::from(wave.up.max(1));
    let gained = daemon.server.resident()?.saturating_sub(empty_bytes);
    Ok(Run {
        cpu_us: spent.cpu_us / each,
        load_us: load_ns as f64 / 1e3 / each,
        memory_bytes: gained as f64 / each,
        empty_bytes,
        accounts: daemon.accounts()?.per(each, &accounts),
        asked: radius.answered(),
        others_percent: others_of(others),
        wave,
    })
}

/// A bare loop that exchanges as many frames, of the same mean length, as `like` did.
///
/// # Errors
/// It does not start, or the kernel's error for a socket.
pub(super) fn bare(
    bench: &Bench,
    place: &Place,
    count: u16,
    window: u32,
    like: &Wave,
) -> Result<Run> {
    let shape = Shape::of(like.up, like.sent, like.received);
    let bare = Bare::start(bench, place, Some(shape.answer_octets))?;
    let mut socket = place.socket()?;
    let witness = CoreWitness::start();
    let (before, started) = (bare.server.booked()?, clock::now());
    let load_before = process_cpu();
    let done = bare::exchange(&mut socket, &shape, (count, window), WAVE_MAX)?;
    let seconds = clock::now().since(started).as_secs_f64();
    let load_ns = process_cpu().as_nanos() - load_before.as_nanos();
    std::thread::sleep(SETTLE.into());
    let spent = bare.server.spent_since(&before)?;
    let others = witness.finish();
    let each = f64::from(done.max(1));
    bare.finish()?;
    let frames = u64::from(shape.rounds) * u64::from(done);
    Ok(Run {
        wave: Wave {
            up: done,
            seconds,
            retransmissions: 0,
            sent: (frames, frames * shape.request_octets as u64),
            received: (frames, frames * shape.answer_octets as u64),
        },
        cpu_us: spent.cpu_us / each,
        load_us: load_ns as f64 / 1e3 / each,
        others_percent: others_of(others),
        ..Run::default()
    })
}

/// A flood, at the daemon or at the bare loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flood {
    /// `None` is the bare loop.
    pub(super) sessions: Option<u16>,
    pub(super) flooded: Flooded,
    /// Processor time, in percent of one core.
    pub(super) cpu_percent: f64,
    pub(super) others_percent: Option<f64>,
}

impl Flood {
    /// Whether every Echo-Request of an established session was answered.
    pub(super) fn is_complete(&self) -> bool {
        self.sessions.is_none() || self.flooded.replies == self.flooded.echoes
    }
}

/// A flood at a daemon with the default limits and that many sessions, then the same at a bare loop that only receives.
///
/// # Errors
/// One of them does not start, not every session is established, or the kernel's error for a socket.
pub(super) fn floods(
    bench: &Bench,
    place: &Place,
    sessions: u16,
    (rate, span): (u32, Duration),
) -> Result<[Flood; 2]> {
    let ours = {
        let radius = place.radius()?;
        let daemon = place.start(bench, Proof::Chap, Limits::Default, &radius)?;
        let mut hosts = Hosts::new(place.socket()?)?;
        let wave = hosts.open(sessions, 64, WAVE_MAX)?;
        let up = wave.up;
        ensure!(
            up == u32::from(sessions),
            "{up} of {sessions} hosts connected"
        );
        let flood = flood(&daemon.server, &mut hosts, Some(sessions), (rate, span))?;
        daemon.server.running.check()?;
        flood
    };
    let bare = Bare::start(bench, place, None)?;
    let mut hosts = Hosts::new(place.socket()?)?;
    let theirs = flood(&bare.server, &mut hosts, None, (rate, span))?;
    let received = bare.finish()?;
    let sent = theirs.flooded.padis;
    let lost = sent.checked_sub(received);
    lost.filter(|&lost| lost * 100 <= sent)
        .with_context(|| format!("the bare loop received {received} of {sent} frames"))?;
    Ok([ours, theirs])
}

fn flood(
    server: &Server,
    hosts: &mut Hosts,
    sessions: Option<u16>,
    (rate, span): (u32, Duration),
) -> Result<Flood> {
    let witness = CoreWitness::start();
    let before = server.booked()?;
    let flooded = hosts.flood(rate, span)?;
    let spent = server.spent_since(&before)?;
    Ok(Flood {
        sessions,
        flooded,
        cpu_percent: spent.over(span).percent(),
        others_percent: others_of(witness.finish()),
    })
}
