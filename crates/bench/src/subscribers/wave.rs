//! A wave of subscribers that connect a given number at a time, and the cost of each to the LNS in
//! time and memory.

use std::net::Ipv4Addr;

use anyhow::Result;
use base::Duration;
use lab::report::CoreWitness;
use reactor::clock;
use reactor::usage::process_cpu;

use super::floor;
use super::lns::{self, Kind};
use super::load::{Load, Options, Wave};
use super::radius::{Accepts, Responder};
use crate::harness::Bench;
use crate::harness::costs::{median_by, range_by};
use crate::harness::datagrams::Datagrams;
use crate::harness::others_of;
use crate::harness::server::LoopCounters;
use crate::tunnels::bare::{self, Bare};

/// The first source address of the tunnels.
pub(super) const SOURCE: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 0);

/// Longest time that one wave may take.
const WAVE_MAX: Duration = Duration::from_secs(60);

/// Pause after the last reply. The kernel updates a process's counters when it goes to sleep.
const SETTLE: Duration = Duration::from_millis(20);

/// Results of one wave, for the LNS or the bare loop.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub(super) wave: Wave,
    /// Subscribers with everything they asked for, as reported by both ends.
    pub(super) complete: u32,
    /// Processor time of the LNS or the bare loop, per subscriber.
    pub(super) cpu_us: f64,
    /// Processor time of the load, per subscriber.
    pub(super) load_us: f64,
    /// Resident memory gained per subscriber with its tunnel.
    pub(super) memory_bytes: f64,
    /// Resident memory before the first subscriber.
    pub(super) empty_bytes: u64,
    /// Datagrams dropped at a full buffer, at both ends.
    pub(super) drops: u64,
    /// The daemon's own counters, per subscriber.
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
    pub(super) kind: Option<Kind>,
    pub(super) subscribers: u32,
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

/// Connects `subscribers` to a new LNS of ours.
///
/// # Errors
/// It does not start or has ended, or the kernel's error for a socket.
pub(super) fn ours(bench: &Bench, kind: Kind, subscribers: u32, window: u32) -> Result<Run> {
    let responder = Responder::start(Accepts::Signed)?;
    let mut lns = lns::start(bench, kind, subscribers, responder.addresses)?;
    let mut load = Load::new(Options {
        servers: lns.server.addresses.clone(),
        sources: (SOURCE, subscribers),
        ipv6: kind.ipv6,
        first_user: 0,
    })?;
    let empty_bytes = lns.server.resident()?;
    let accounts = lns.accounts()?;
    let witness = CoreWitness::start();
    let before = (lns.server.booked()?, process_cpu());
    let wave = load.open(subscribers, window, WAVE_MAX)?;
    let load_ns = process_cpu().as_nanos() - before.1.as_nanos();
    load.answer(SETTLE)?;
    let spent = lns.server.spent_since(&before.0)?;
    let others = witness.finish();
    lns.server.running.check()?;
    let each = f64::from(wave.up.max(1));
    let here = lab::generator::drops_of(std::process::id(), load.local_addr()).unwrap_or(0);
    let gained = lns.server.resident()?.saturating_sub(empty_bytes);
    Ok(Run {
        complete: load.complete().min(lns.sessions()? as u32),
        cpu_us: spent.cpu_us / each,
        load_us: load_ns as f64 / 1e3 / each,
        memory_bytes: gained as f64 / each,
        empty_bytes,
        drops: lns.server.drops() + here,
        accounts: lns.accounts()?.per(each, &accounts),
        asked: responder.answered(),
        others_percent: others_of(others),
        wave,
    })
}

/// A bare loop that exchanges as many datagrams, of the same mean length, as `like` did, for that
/// many subscribers.
///
/// # Errors
/// It does not start, or the kernel's error for a socket.
pub(super) fn bare(bench: &Bench, subscribers: u32, window: u32, like: &Wave) -> Result<Run> {
    let shape = floor::Shape::of(like);
    let kind = bare::Kind::Batch {
        request: 0,
        long: shape.answer_octets,
        short: shape.answer_octets,
    };
    let bare = Bare::start(bench, &kind)?;
    let mut load = Datagrams::new(SOURCE, subscribers)?;
    let witness = CoreWitness::start();
    let (before, started) = (bare.server.booked()?, clock::now());
    let load_before = process_cpu();
    let server = bare.server.addresses[0];
    let done = floor::exchange(&mut load, server, &shape, window, WAVE_MAX)?;
    let seconds = clock::now().since(started).as_secs_f64();
    let load_ns = process_cpu().as_nanos() - load_before.as_nanos();
    std::thread::sleep(SETTLE.into());
    let spent = bare.server.spent_since(&before)?;
    let others = witness.finish();
    let drops = bare.server.drops();
    let each = f64::from(done.max(1));
    let calls = bare.finish()?;
    let datagrams = u64::from(shape.rounds) * u64::from(done);
    Ok(Run {
        wave: Wave {
            up: done,
            seconds,
            sent: (datagrams, datagrams * shape.request_octets as u64),
            received: (datagrams, datagrams * shape.answer_octets as u64),
            ..Wave::default()
        },
        complete: done,
        cpu_us: spent.cpu_us / each,
        load_us: load_ns as f64 / 1e3 / each,
        drops,
        accounts: LoopCounters {
            calls,
            ..LoopCounters::default()
        }
        .per(each, &LoopCounters::default()),
        others_percent: others_of(others),
        ..Run::default()
    })
}
