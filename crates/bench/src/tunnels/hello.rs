//! Measurements with established tunnels: HELLOs answered, HELLOs originated, and no traffic.

use anyhow::Result;
use base::Duration;
use lab::generator::{Generator, Sizes};
use lab::report::CoreWitness;
use wire::l2tp::Version;

use super::bare::{Bare, Kind};
use super::setup::{self, SOURCE};
use crate::harness::Bench;
use crate::harness::datagrams::Datagrams;
use crate::harness::server::{Lns, LnsProgram, LoopCounters, Server, Setup, Spent};

/// Pause once all tunnels are up: the wheel's tick and a margin.
const SETTLE: Duration = Duration::from_millis(50);

/// Cost of HELLOs over that many tunnels, for the process that answered or sent them.
#[derive(Clone, Debug)]
pub(super) struct Hello {
    pub(super) program: LnsProgram,
    pub(super) tunnels: u32,
    pub(super) rate: u32,
    /// HELLOs sent.
    pub(super) sent: u64,
    /// HELLOs acknowledged.
    pub(super) answered: u64,
    pub(super) spent: Spent,
    /// The daemon's counters, per HELLO.
    pub(super) accounts: LoopCounters,
    pub(super) others_percent: Option<f64>,
}

impl Hello {
    /// Processor time per HELLO.
    pub(super) fn each_us(&self) -> f64 {
        self.spent.cpu_us / (self.sent.max(1) as f64)
    }
}

/// The run of median cost.
pub(super) fn median(mut runs: Vec<Hello>) -> Option<Hello> {
    runs.sort_by(|a, b| a.each_us().total_cmp(&b.each_us()));
    let middle = runs.len().saturating_sub(1) / 2;
    runs.into_iter().nth(middle)
}

/// HELLOs from `load`, evenly spaced, that `server` answers.
///
/// # Errors
/// The server has ended, or the kernel's error for a socket.
pub(super) fn answered_by(
    program: LnsProgram,
    server: &Server,
    load: &mut Generator,
    rate: u32,
    span: Duration,
) -> Result<Hello> {
    load.answer(SETTLE)?;
    let witness = CoreWitness::start();
    let before = server.booked()?;
    let (sent, answered) = load.hello(rate, span)?;
    let spent = server.spent_since(&before)?.over(span);
    server.running.check()?;
    Ok(Hello {
        program,
        tunnels: load.established(),
        rate,
        sent,
        answered,
        spent,
        accounts: LoopCounters::default(),
        others_percent: crate::harness::others_of(witness.finish()),
    })
}

/// As [`answered_by`], for our LNS, with the LNS's own counters.
///
/// # Errors
/// As there.
pub(super) fn answered(
    lns: &mut Lns,
    load: &mut Generator,
    rate: u32,
    span: Duration,
) -> Result<Hello> {
    let before = lns.accounts()?;
    let hello = answered_by(LnsProgram::Headend, &lns.server, load, rate, span)?;
    let accounts = lns.accounts()?.per(hello.sent as f64, &before);
    Ok(Hello { accounts, ..hello })
}

/// The same datagrams, answered by a bare loop.
///
/// # Errors
/// It does not start, or the kernel's error for a socket.
pub(super) fn answered_bare(
    bench: &Bench,
    tunnels: u32,
    rate: u32,
    span: Duration,
    sizes: &Sizes,
) -> Result<Hello> {
    let bare = Bare::start(bench, &Kind::Echo)?;
    let mut load = Datagrams::new(SOURCE, tunnels)?;
    let witness = CoreWitness::start();
    let before = bare.server.booked()?;
    let (sent, answered) =
        load.send_evenly(bare.server.addresses[0], rate, span, sizes.last_sent)?;
    let spent = bare.server.spent_since(&before)?.over(span);
    let others_percent = crate::harness::others_of(witness.finish());
    let calls = bare.finish()?;
    Ok(Hello {
        program: LnsProgram::Bare,
        tunnels,
        rate,
        sent,
        answered,
        spent,
        accounts: of_calls(calls, sent),
        others_percent,
    })
}

/// HELLOs that our LNS sends over `tunnels`, `rate` per second on average, measured `windows`
/// times.
///
/// # Errors
/// It does not start or has ended, or the kernel's error for a socket.
pub(super) fn originated(
    bench: &Bench,
    tunnels: u32,
    rate: u32,
    window_min: Duration,
    windows: u32,
) -> Result<Vec<Hello>> {
    // Each tunnel sends one HELLO per interval, so whole intervals are measured.
    let interval_s = f64::from(tunnels) / f64::from(rate);
    let intervals = (window_min.as_secs_f64() / interval_s).ceil().max(1.0);
    let window = Duration::from_nanos((interval_s * intervals * 1e9) as u64);
    let setup = Setup {
        hello_s: interval_s,
        ..Setup::default()
    };
    let (mut lns, mut load, _) = setup::ours(bench, Version::V3, tunnels, &setup)?;
    (0..windows)
        .map(|_| {
            let calls = lns.accounts()?;
            let witness = CoreWitness::start();
            let before = lns.server.booked()?;
            let sent = load.answer(window)?;
            let spent = lns.server.spent_since(&before)?;
            lns.server.running.check()?;
            // A tunnel whose HELLO was not answered would soon be closed.
            let is_whole = lns.established()? == u64::from(tunnels);
            Ok(Hello {
                program: LnsProgram::Headend,
                tunnels,
                rate,
                sent,
                answered: if is_whole { sent } else { 0 },
                spent,
                accounts: lns.accounts()?.per(sent as f64, &calls),
                others_percent: crate::harness::others_of(witness.finish()),
            })
        })
        .collect()
}

/// As many datagrams, sent by a bare loop.
///
/// # Errors
/// It does not start, or the kernel's error for a socket.
pub(super) fn originated_bare(
    bench: &Bench,
    tunnels: u32,
    rate: u32,
    span: Duration,
    sizes: &Sizes,
) -> Result<Hello> {
    let mut load = Datagrams::new(SOURCE, tunnels)?;
    let kind = Kind::Hello {
        first: SOURCE,
        count: tunnels,
        port: load.port(),
        rate,
        bytes: sizes.last_sent,
    };
    let bare = Bare::start(bench, &kind)?;
    let witness = CoreWitness::start();
    let before = bare.server.booked()?;
    let sent = load.answer(span, sizes.last_received)?;
    let spent = bare.server.spent_since(&before)?;
    let others_percent = crate::harness::others_of(witness.finish());
    let calls = bare.finish()?;
    Ok(Hello {
        program: LnsProgram::Bare,
        tunnels,
        rate,
        sent,
        answered: sent,
        spent,
        accounts: of_calls(calls, sent),
        others_percent,
    })
}

/// Established tunnels without traffic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    pub(super) tunnels: u32,
    pub(super) spent: Spent,
    pub(super) others_percent: Option<f64>,
}

/// Measures our idle LNS for `span`.
///
/// # Errors
/// It has ended, or the kernel's error for a socket.
pub(super) fn idle(lns: &Lns, load: &mut Generator, span: Duration) -> Result<Idle> {
    load.answer(SETTLE)?;
    let witness = CoreWitness::start();
    let before = lns.server.booked()?;
    load.answer(span)?;
    let spent = lns.server.spent_since(&before)?;
    lns.server.running.check()?;
    Ok(Idle {
        tunnels: load.established(),
        spent,
        others_percent: crate::harness::others_of(witness.finish()),
    })
}

fn of_calls(calls: Vec<(String, f64)>, sent: u64) -> LoopCounters {
    LoopCounters {
        calls,
        ..LoopCounters::default()
    }
    .per(sent as f64, &LoopCounters::default())
}
