//! The account of each phase: delays of each ping stream, and the rates.

use serde::Serialize;

use super::run::{Kind, Phase, Pings, Run};

/// The delays of one ping stream in a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delay {
    /// The stream.
    pub name: String,
    /// Packets sent while the phase counted.
    pub sent: u64,
    /// Packets of these without a reply.
    pub lost: u64,
    /// Round trips by nearest rank; `None` without a reply.
    pub min_us: Option<u64>,
    /// The median.
    pub p50_us: Option<u64>,
    /// The 95th percentile.
    pub p95_us: Option<u64>,
    /// The longest.
    pub max_us: Option<u64>,
    /// The 95th percentile of the delays to the responder.
    pub up_p95_us: Option<i64>,
    /// The 95th percentile of the delays from the responder.
    pub down_p95_us: Option<i64>,
}

/// The account of a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The phase.
    pub kind: Kind,
    /// Whether it lasted as long as planned, with all of its streams.
    pub complete: bool,
    /// Mean rate to this host, in bits of payload per second; `None` if nothing was sent.
    pub down_bps: Option<u64>,
    /// Mean rate from this host.
    pub up_bps: Option<u64>,
    /// Each ping stream.
    pub pings: Vec<Delay>,
}

/// The accounts of a run's phases.
#[must_use]
pub fn accounts(run: &Run) -> Vec<Account> {
    run.phases.iter().map(|phase| account(run, phase)).collect()
}

fn account(run: &Run, phase: &Phase) -> Account {
    let is_loaded = |kinds: [Kind; 2]| kinds.contains(&phase.kind);
    let rate = |streams: &[Vec<u64>]| {
        let sums = run.load.sum(streams);
        mean(&run.load.at_us, &sums, phase)
    };
    let down = is_loaded([Kind::Down, Kind::Both]).then(|| rate(&run.load.down_bps));
    let up = is_loaded([Kind::Up, Kind::Both]).then(|| rate(&run.load.up_bps));
    Account {
        kind: phase.kind,
        complete: phase.complete,
        down_bps: down.flatten(),
        up_bps: up.flatten(),
        pings: run.pings.iter().map(|pings| delay(pings, phase)).collect(),
    }
}

/// The mean of rates while a phase counts. Each rate holds since the reading before, so a reading has the weight of
/// that time.
fn mean(at_us: &[u64], rates: &[u64], phase: &Phase) -> Option<u64> {
    let (mut bits, mut time) = (0_u128, 0_u128);
    let mut before = 0;
    for (at, rate) in at_us.iter().zip(rates) {
        let from = before.max(phase.counts_from_us);
        let span = u128::from((*at).min(phase.to_us).saturating_sub(from));
        bits += u128::from(*rate) * span;
        time += span;
        before = *at;
    }
    let mean = bits.checked_div(time)?;
    u64::try_from(mean).ok()
}

fn delay(pings: &Pings, phase: &Phase) -> Delay {
    let counts = |at: i64| {
        u64::try_from(at).is_ok_and(|at| (phase.counts_from_us..phase.to_us).contains(&at))
    };
    let mut delay = Delay {
        name: pings.name.clone(),
        sent: 0,
        lost: 0,
        min_us: None,
        p50_us: None,
        p95_us: None,
        max_us: None,
        up_p95_us: None,
        down_p95_us: None,
    };
    let (mut trips, mut ups, mut downs) = (Vec::new(), Vec::new(), Vec::new());
    for (index, at) in pings.at_us.iter().enumerate() {
        if !counts(*at) {
            continue;
        }
        delay.sent += 1;
        match pings.rtt_us.get(index).copied().flatten() {
            Some(rtt) => trips.push(rtt),
            None => delay.lost += 1,
        }
        ups.extend(pings.up_us.get(index).copied().flatten());
        downs.extend(pings.down_us.get(index).copied().flatten());
    }
    trips.sort_unstable();
    ups.sort_unstable();
    downs.sort_unstable();
    delay.min_us = trips.first().copied();
    delay.p50_us = rank(&trips, 50);
    delay.p95_us = rank(&trips, 95);
    delay.max_us = trips.last().copied();
    delay.up_p95_us = rank(&ups, 95);
    delay.down_p95_us = rank(&downs, 95);
    delay
}

/// A percentile of sorted values by nearest rank.
fn rank<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let place = (sorted.len() * percent).div_ceil(100);
    sorted.get(place.saturating_sub(1)).copied()
}
