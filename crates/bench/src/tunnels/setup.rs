//! Sets up tunnels from distinct addresses, a given number at a time, and measures the cost of each
//! in time and memory.

use std::net::Ipv4Addr;

use anyhow::Result;
use base::Duration;
use lab::generator::{Generator, Options, Sizes, Wave};
use lab::report::CoreWitness;
use reactor::clock;
use reactor::usage::process_cpu;
use wire::l2tp::Version;

use super::bare::{Bare, Kind};
use crate::harness::Bench;
use crate::harness::costs::{median_by, range_by};
use crate::harness::datagrams::{Datagrams, Next};
use crate::harness::others_of;
use crate::harness::server::{Lns, LnsProgram, LoopCounters, Server, Setup};

/// The first source address of the tunnels.
pub(super) const SOURCE: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 0);

/// Number of tunnels being set up at a time.
pub(super) const WINDOW: u32 = 64;

/// Pause after the last reply. The kernel updates a process's counters when it goes to sleep.
const SETTLE: Duration = Duration::from_millis(20);

/// Longest time that one wave may take.
const WAVE_MAX: Duration = Duration::from_secs(60);

/// Number of tunnels at one listen address; L2TPv2's tunnel ids have 16 bits.
const V2_AT_ONE_ADDRESS: u32 = 60_000;

/// Results of one wave of tunnels, for the process that answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub(super) wave: Wave,
    /// Processor time of the answering process, per tunnel.
    pub(super) cpu_us: f64,
    /// Processor time of the load, per tunnel.
    pub(super) load_us: f64,
    /// Resident memory gained per established tunnel.
    pub(super) memory_bytes: f64,
    /// Resident memory before the first tunnel.
    pub(super) empty_bytes: u64,
    /// Datagrams dropped at a full buffer, at both ends.
    pub(super) drops: u64,
    /// Our daemon's own counters, per tunnel.
    pub(super) accounts: LoopCounters,
    /// Use of all cores by other processes.
    pub(super) others_percent: Option<f64>,
}

/// All waves of one kind and size.
#[derive(Clone, Debug)]
pub(super) struct SetUp {
    pub(super) program: LnsProgram,
    pub(super) version: Version,
    pub(super) tunnels: u32,
    pub(super) runs: Vec<Run>,
}

impl SetUp {
    /// The wave of median cost.
    pub(super) fn median(&self) -> Option<&Run> {
        median_by(&self.runs, |run| run.cpu_us)
    }

    /// The lowest and the highest cost of a wave.
    pub(super) fn range_us(&self) -> Option<(f64, f64)> {
        range_by(&self.runs, |run| run.cpu_us)
    }
}

/// Adds a wave to the others of its kind.
pub(super) fn file(
    all: &mut Vec<SetUp>,
    program: LnsProgram,
    version: Version,
    tunnels: u32,
    run: Run,
) {
    let same =
        |s: &&mut SetUp| s.program == program && s.version == version && s.tunnels == tunnels;
    match all.iter_mut().find(same) {
        Some(found) => found.runs.push(run),
        None => all.push(SetUp {
            program,
            version,
            tunnels,
            runs: vec![run],
        }),
    }
}

/// The number of a version.
pub(super) fn number(version: Version) -> u8 {
    match version {
        Version::V2 => 2,
        Version::V3 => 3,
    }
}

/// Number of addresses that our LNS needs for that many tunnels.
pub(super) fn listen(version: Version, tunnels: u32) -> u8 {
    match version {
        Version::V2 => tunnels.div_ceil(V2_AT_ONE_ADDRESS).clamp(1, 9) as u8,
        Version::V3 => 1,
    }
}

/// A LAC with an address for each of `tunnels`.
///
/// # Errors
/// The kernel's error.
pub(super) fn generator(server: &Server, version: Version, tunnels: u32) -> Result<Generator> {
    Ok(Generator::new(Options {
        servers: server.addresses.clone(),
        version,
        sources: Some((SOURCE, tunnels)),
        sessions: false,
        secret: None,
    })?)
}

/// Opens `tunnels` at `server`, `window` at a time, within `cap`.
///
/// # Errors
/// The server has ended, or the kernel's error for a socket.
pub(super) fn wave(
    server: &Server,
    generator: &mut Generator,
    tunnels: u32,
    window: u32,
    cap: Duration,
) -> Result<Run> {
    let us = std::process::id();
    let empty_bytes = server.resident()?;
    let dropped = server.drops();
    let witness = CoreWitness::start();
    let before = (server.booked()?, process_cpu());
    let wave = generator.open(tunnels, window, cap)?;
    let load = process_cpu().as_nanos() - before.1.as_nanos();
    generator.answer(SETTLE)?;
    let spent = server.spent_since(&before.0)?;
    let others = witness.finish();
    server.running.check()?;
    let each = f64::from(wave.up.max(1));
    let gained = server.resident()?.saturating_sub(empty_bytes);
    let here = lab::generator::drops_of(us, generator.local_addr()).unwrap_or(0);
    Ok(Run {
        cpu_us: spent.cpu_us / each,
        load_us: load as f64 / 1e3 / each,
        memory_bytes: gained as f64 / each,
        empty_bytes,
        drops: server.drops() - dropped + here,
        accounts: LoopCounters::default(),
        others_percent: others_of(others),
        wave,
    })
}

/// Our LNS with `tunnels` set up, still running.
///
/// # Errors
/// It does not start or has ended, or the kernel's error for a socket.
pub(super) fn ours(
    bench: &Bench,
    version: Version,
    tunnels: u32,
    setup: &Setup,
) -> Result<(Lns, Generator, Run)> {
    let setup = Setup {
        listen: listen(version, tunnels),
        ..*setup
    };
    let mut lns = Lns::start(bench, &setup)?;
    let mut load = generator(&lns.server, version, tunnels)?;
    let run = wave_at_ours(&mut lns, &mut load, tunnels, WINDOW, WAVE_MAX)?;
    Ok((lns, load, run))
}

/// As [`wave`], at our LNS. A tunnel counts as up once both ends report it: after a lost SCCCN,
/// only its sender considers the tunnel established.
///
/// # Errors
/// As there.
pub(super) fn wave_at_ours(
    lns: &mut Lns,
    load: &mut Generator,
    tunnels: u32,
    window: u32,
    cap: Duration,
) -> Result<Run> {
    let before = lns.accounts()?;
    let started = clock::now();
    let mut run = wave(&lns.server, load, tunnels, window, cap)?;
    run.accounts = lns.accounts()?.per(run.wave.up.into(), &before);
    let mut agreed = lns.established()?;
    while agreed < run.wave.up.into() && clock::now().since(started) < cap {
        load.answer(SETTLE)?;
        agreed = lns.established()?;
        run.wave.seconds = clock::now().since(started).as_secs_f64();
    }
    run.wave.up = run.wave.up.min(agreed as u32);
    run.wave.retransmissions = load.retransmissions();
    Ok(run)
}

/// A bare loop that exchanges the datagrams that an LNS exchanges for that many tunnels.
///
/// # Errors
/// It does not start, or the kernel's error for a socket.
pub(super) fn bare(bench: &Bench, tunnels: u32, sizes: &Sizes) -> Result<Run> {
    let kind = Kind::Batch {
        request: sizes.first_sent,
        long: sizes.first_received,
        short: sizes.last_received,
    };
    let bare = Bare::start(bench, &kind)?;
    let mut load = Datagrams::new(SOURCE, tunnels)?;
    let witness = CoreWitness::start();
    let (before, started) = (bare.server.booked()?, clock::now());
    let load_before = process_cpu();
    // The lengths of a tunnel's first and last reply differ.
    let next = |_, octets| {
        if octets == sizes.first_received {
            Next::Request(sizes.last_sent)
        } else {
            Next::Done
        }
    };
    let server = bare.server.addresses[0];
    let done = load.exchange(server, WINDOW, WAVE_MAX, sizes.first_sent, next)?;
    let seconds = clock::now().since(started).as_secs_f64();
    let load_ns = process_cpu().as_nanos() - load_before.as_nanos();
    load.answer(SETTLE, 1)?;
    let spent = bare.server.spent_since(&before)?;
    let others = witness.finish();
    let drops = bare.server.drops();
    let each = f64::from(done.max(1));
    let calls = bare.finish()?;
    Ok(Run {
        wave: Wave {
            asked: tunnels,
            up: done,
            seconds,
            ..Wave::default()
        },
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

/// The sizes of a version's datagrams: those of a set-up, and those of a HELLO.
///
/// # Errors
/// Our LNS does not start, or a tunnel to it does not come up.
pub(super) fn sizes(bench: &Bench, version: Version) -> Result<(Sizes, Sizes)> {
    let lns = Lns::start(bench, &Setup::default())?;
    let mut load = generator(&lns.server, version, 1)?;
    let run = wave(&lns.server, &mut load, 1, 1, Duration::from_secs(10))?;
    anyhow::ensure!(run.wave.up == 1, "no tunnel to our own LNS comes up");
    let set_up = load.sizes();
    load.hello(1000, Duration::from_millis(5))?;
    Ok((set_up, load.sizes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_gets_another_address_when_ids_run_out() {
        let listens = [1_000, 60_000, 60_001, 100_000].map(|n| listen(Version::V2, n));
        assert_eq!(listens, [1, 1, 2, 2]);
        assert_eq!(listen(Version::V3, 100_000), 1);
    }

    #[test]
    fn the_median_of_waves_is_one_of_them() {
        let mut all = Vec::new();
        for cpu_us in [9.0, 3.0, 5.0] {
            let run = Run {
                cpu_us,
                ..Run::default()
            };
            file(&mut all, LnsProgram::Headend, Version::V3, 10, run);
        }
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].median().unwrap().cpu_us, 5.0);
        assert_eq!(all[0].range_us(), Some((3.0, 9.0)));
    }
}
