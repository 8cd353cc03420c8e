//! The verdict on the published claims about the six rows and the experiments.

use std::ops::RangeInclusive;

use super::{PERIOD_S, Run, slowest};
use crate::gateway::outcome::{Setting, Spread};
use crate::gateway::rows::{Result, mean};
use crate::history::{Claim, Verdict};
use plot::number::{grouped, short};

/// Least loss of the stream beside the flood; 69 % was published.
const LOSS_MIN_PERCENT: f64 = 50.0;

/// A page load counts as slower from this factor on.
const SLOWER: f64 = 1.5;

/// A page load counts as equally fast up to this factor; 1.09 and 1.00 were published.
const AS_FAST: f64 = 1.25;

/// A share within these multiples of the published one counts as reproduced.
const SHARES: RangeInclusive<f64> = 0.75..=1.25;

/// Largest share that counts as nothing.
const NOTHING: f64 = 0.05;

/// Largest jitter with the policy, as a share of the jitter without it: beside uploads, and beside the flood.
const JITTER_MAX: [f64; 2] = [0.4, 0.75];

/// A ping that takes longer, or has no reply, counts as queued behind others: five times the idle
/// link's round trip.
const SPIKE_MS: f64 = 100.0;

/// Judges by B's stream beside the flood. The other rows, the tunnel and the change of the hash are further claims.
pub(super) fn verdict(run: &Run<'_>) -> Verdict {
    let claims = vec![
        protects(run),
        flood(run),
        nothing_lost(run),
        jitter(run),
        slow_pages(run),
        fast_pages(run),
        shares(run, "Without the policy", [3, 5]),
        shares(run, "With the policy", [4, 6]),
        tunnel(run),
        spikes(run),
        no_spikes(run),
    ];
    let mut verdict = Verdict::from_claims(claims);
    verdict.remarks.push(
        "All figures come from a model in virtual time. The model's link, page and TCP are not the published ones, \
         and the model has no noise; its figures differ from the published ones for these reasons."
            .into(),
    );
    verdict.remarks.extend(waits(run));
    verdict.remarks.extend(nine(run));
    verdict.remarks.extend(bands(run));
    verdict
}

/// A claim, with its reason if it could be tested.
fn claim(tested: Option<(bool, String)>, untested: &str) -> Claim {
    match tested {
        Some((holds, because)) => Claim {
            holds: Some(holds),
            because,
        },
        None => Claim {
            holds: None,
            because: format!("{untested} was not measured."),
        },
    }
}

fn loss(run: &Result) -> Option<f64> {
    Some(run.loss_percent)
}

/// `81.7 %`, or for several measurements `81.7 % (79.0 to 84.2)`.
fn spread(spread: Spread, decimals: usize, unit: &str) -> String {
    let Spread { mean, min, max, .. } = spread;
    let text = format!("{mean:.decimals$}{unit}");
    let [low, high] = [min, max].map(|value| format!("{value:.decimals$}"));
    if low == high {
        text
    } else {
        format!("{text} ({low} to {high})")
    }
}

/// The central claim: the flood destroys B's stream, and the policy protects it.
fn protects(run: &Run<'_>) -> Claim {
    let tested = || {
        let (without, with) = (run.mean(5, loss)?, run.mean(6, loss)?);
        Some((
            without >= LOSS_MIN_PERCENT && with < 1.0,
            format!(
                "Beside a flood of A, B's stream loses {without:.0} % without the policy and {} % with it; the \
                 published losses are 69 % and none.",
                short(with)
            ),
        ))
    };
    claim(tested(), "The stream beside the flood")
}

fn flood(run: &Run<'_>) -> Claim {
    let tested = || {
        let row = run.row(5)?;
        let here = row.spread(loss)?;
        Some((
            here.mean >= LOSS_MIN_PERCENT,
            format!(
                "Beside the flood the stream of B loses {}; the published loss is {:.0} %.",
                spread(here, 1, " %"),
                row.published.loss_percent
            ),
        ))
    };
    claim(tested(), "The stream beside the flood")
}

fn nothing_lost(run: &Run<'_>) -> Claim {
    let tested = || {
        let lost = [run.mean(4, loss)?, run.mean(6, loss)?];
        Some((
            lost == [0.0, 0.0],
            format!(
                "With the policy the stream loses {} % beside uploads and {} % beside the flood; in the account it \
                 loses nothing.",
                short(lost[0]),
                short(lost[1])
            ),
        ))
    };
    claim(tested(), "The stream with the policy")
}

fn jitter(run: &Run<'_>) -> Claim {
    let tested = || {
        let of = |number| run.mean(number, |run| Some(run.jitter_ms));
        let [up, up_with, flood, flood_with] = [of(3)?, of(4)?, of(5)?, of(6)?];
        Some((
            up_with <= JITTER_MAX[0] * up && flood_with <= JITTER_MAX[1] * flood,
            format!(
                "The policy changes the stream's jitter from {up:.1} to {up_with:.1} ms beside uploads and from \
                 {flood:.1} to {flood_with:.1} ms beside the flood. The published changes are from 2.6 to 0.5 ms and \
                 from 1.6 to 0.8 ms."
            ),
        ))
    };
    claim(tested(), "The stream's jitter")
}

fn slow_pages(run: &Run<'_>) -> Claim {
    let tested = || {
        let (idle, up) = (
            run.mean(1, Result::page_mean_ms)?,
            run.mean(3, Result::page_mean_ms)?,
        );
        let under_flood = run.row(5)?.runs.iter();
        let loaded: usize = under_flood.map(|run| run.page_ms.len()).sum();
        let flood = match loaded {
            0 => "beside the flood no page arrives".to_owned(),
            n => format!("beside the flood {n} pages arrive"),
        };
        Some((
            up / idle >= SLOWER && loaded == 0,
            format!(
                "Beside uploads a page takes {} ms instead of {} ms on the idle link, and {flood}. In the account, a \
                 page takes 1,507 ms instead of 490 ms, and no page arrives.",
                grouped(up, 0),
                grouped(idle, 0)
            ),
        ))
    };
    claim(tested(), "Pages without the policy")
}

fn fast_pages(run: &Run<'_>) -> Claim {
    let tested = || {
        let of = |number| run.mean(number, Result::page_mean_ms);
        let idle = of(2)?;
        let ratios = [of(4)? / idle, of(6)? / idle];
        Some((
            ratios.iter().all(|ratio| *ratio <= AS_FAST),
            format!(
                "With the policy a page takes {:.2} times as long beside uploads as on the idle link, and {:.2} times \
                 beside the flood; the published factors are 1.09 and 1.00.",
                ratios[0], ratios[1]
            ),
        ))
    };
    claim(tested(), "Pages with the policy")
}

/// B's shares in two rows, against uploads and against the flood.
fn shares(run: &Run<'_>, policy: &str, numbers: [u8; 2]) -> Claim {
    let tested = || {
        let of = |number: u8| {
            let row = run.row(number)?;
            Some((row.published.share?, row.spread(|run| run.share)?))
        };
        let [uploads, flood] = [of(numbers[0])?, of(numbers[1])?];
        let holds = |(was, here): (f64, Spread)| match was {
            0.0 => here.mean <= NOTHING,
            _ => SHARES.contains(&(here.mean / was)),
        };
        Some((
            holds(uploads) && holds(flood),
            format!(
                "{policy} an upload of B gets {} of the link against three of A and {} against the flood; the \
                 published shares are {} and {}.",
                spread(uploads.1, 2, ""),
                spread(flood.1, 2, ""),
                short(uploads.0),
                short(flood.0)
            ),
        ))
    };
    claim(tested(), &format!("{policy} B's share"))
}

/// The median of all pings of a setting; a ping without a reply counts as the longest.
fn median(setting: &Setting) -> Option<f64> {
    let mut trips: Vec<f64> = slowest(setting)
        .iter()
        .map(|ping| ping.1.unwrap_or(f64::INFINITY))
        .collect();
    trips.sort_by(f64::total_cmp);
    trips.get(trips.len() / 2).copied()
}

fn tunnel(run: &Run<'_>) -> Claim {
    let tested = || {
        let [before, after] = &run.experiment("tunnel")?.settings[..] else {
            return None;
        };
        let (before, after) = (median(before)?, median(after)?);
        Some((
            before > SPIKE_MS && after < SPIKE_MS,
            format!(
                "In one tunnel with an upload a ping takes {before:.0} ms (median) if queues read the outer header \
                 alone, and {after:.0} ms with tunnel keys. In the account, the ping shares the upload's queue, and \
                 tunnel keys separate the two."
            ),
        ))
    };
    claim(tested(), "The tunnel")
}

/// For each period between two changes of the hash: whether pings waited behind a flood. Also the
/// longest time from a period's start to the first such ping, in seconds.
fn periods(setting: &Setting) -> Option<(Vec<bool>, f64)> {
    let mut periods: Vec<bool> = Vec::new();
    let (mut was_slow, mut latest) = (false, 0.0_f64);
    for (at, trip) in slowest(setting) {
        let is_slow = trip.is_none_or(|trip| trip > SPIKE_MS);
        // Neither negative nor large.
        let period = (at / PERIOD_S) as usize;
        if period >= periods.len() {
            periods.push(false);
        }
        if is_slow && !was_slow {
            latest = latest.max(at - period as f64 * PERIOD_S);
        }
        was_slow = is_slow;
        *periods.last_mut()? |= is_slow;
    }
    (!periods.is_empty()).then_some((periods, latest))
}

fn spikes(run: &Run<'_>) -> Claim {
    let tested = || {
        let (periods, latest) = periods(run.experiment("perturb")?.settings.first()?)?;
        let slow = periods.iter().filter(|slow| **slow).count();
        Some((
            slow > 0 && slow < periods.len() && latest <= 1.0,
            format!(
                "SFQ of the old design makes pings wait more than {SPIKE_MS:.0} ms in {slow} of {} periods of its \
                 hash, from {latest:.1} s after a change at the latest. In the account, pings spike at changes of \
                 the hash, though not at every change.",
                periods.len()
            ),
        ))
    };
    claim(tested(), "SFQ of the old design")
}

fn no_spikes(run: &Run<'_>) -> Claim {
    let tested = || {
        let (periods, _) = periods(run.experiment("perturb")?.settings.last()?)?;
        let slow = periods.iter().filter(|slow| **slow).count();
        let of = periods.len();
        Some((
            slow == 0,
            format!(
                "headend's SFQ changes its hash as often, and makes pings wait in {slow} of {of} periods."
            ),
        ))
    };
    claim(tested(), "SFQ of ours")
}

/// How long pings took.
fn waits(run: &Run<'_>) -> Option<String> {
    let p99 = |number| run.mean(number, |run| run.ping_percentile_ms(0.99));
    let median = |number| run.mean(number, |run| run.ping_percentile_ms(0.5));
    Some(format!(
        "Without the policy, half of B's pings take more than {:.0} ms beside uploads. With the policy, 99 % take \
         less than {:.0} ms beside uploads, and less than {:.0} ms beside the flood.",
        median(3)?,
        p99(4)?,
        p99(6)?
    ))
}

/// The effect of fairness between flows only.
fn nine(run: &Run<'_>) -> Option<String> {
    let of = |name: &str| {
        let one = run.0.fairness.iter().find(|one| one.treatment == name)?;
        mean(&one.shares)
    };
    Some(format!(
        "Against nine uploads of A, one upload of B gets {:.2} of the link with fair queues for hosts, {:.2} with \
         fq_codel and {:.2} with SFQ. SFQ and fq_codel treat each upload as one of ten flows.",
        of("fair")?,
        of("fq_codel")?,
        of("sfq")?
    ))
}

/// The effect of TOS octets.
fn bands(run: &Run<'_>) -> Option<String> {
    let settings = &run.experiment("bands")?.settings;
    let p50 = |setting: usize, begin: &str| {
        let streams = &settings.get(setting)?.streams;
        let stream = streams.iter().find(|one| one.name.starts_with(begin))?;
        stream.percentile_ms(0.5)
    };
    Some(format!(
        "An ECN bit no longer selects a band of pfifo_fast: beside uploads, pings with TOS 0x00 and 0x02 take {:.0} \
         and {:.0} ms (median). The old reading of the TOS byte was not re-run. EF takes {:.0} ms if the queue reads \
         the byte as Linux does, and {:.0} ms if it reads a DSCP.",
        p50(0, "0x00")?,
        p50(0, "0x02")?,
        p50(0, "0xb8")?,
        p50(1, "0xb8")?
    ))
}
