//! Measures time against the number of segments, for each list in each case, within a time limit.

use std::hint::black_box;

use base::{Duration, Instant};
use serde::Serialize;

use super::FLOOR;
use super::case::{Case, Load, Packet, Subject, at_random};
use super::list::{End, Linked, Ours, Overlap, SegmentList};
use crate::fit;

/// Number of packets between two clock readings.
const BLOCK: usize = 64;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Config {
    /// The cases, in this order.
    pub cases: Vec<Case>,
    /// Numbers of segments, one curve point each, in ascending order.
    pub sizes: Vec<usize>,
    /// Time limit of one measurement. A measurement that would exceed it, by the law of the smaller
    /// sizes, is not started.
    pub budget: Duration,
    /// Each is repeated until this much time was measured; the minimum is kept.
    pub repeat: Duration,
}

impl Default for Config {
    /// The harness and the recovery at 30,000, 60,000 and 120,000 segments, 20 seconds for each measurement at most.
    fn default() -> Self {
        Self {
            cases: Case::HARNESS.into_iter().chain([Case::Recovery]).collect(),
            sizes: [1, 2, 4]
                .map(|times| times * super::SEGMENTS_PUBLISHED)
                .into(),
            budget: Duration::from_secs(20),
            repeat: Duration::from_millis(100),
        }
    }
}

/// Results of each list in each case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentsReport {
    /// One row per case, subject and size, in that order.
    pub rows: Vec<Row>,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// [`Case::name`].
    pub case: &'static str,
    /// [`Subject::name`].
    pub list: &'static str,
    /// Segments.
    pub n: usize,
    /// Seconds for all timed packets; `None` if the time limit ended it and too few smaller sizes
    /// were measured.
    pub seconds: Option<f64>,
    /// Whether the time limit ended or prevented it, so that the seconds follow from the law of the
    /// smaller sizes.
    pub extrapolated: bool,
}

impl SegmentsReport {
    /// The rows of one list in one case, smallest first.
    pub fn curve(&self, case: Case, list: &str) -> impl Iterator<Item = &Row> {
        self.rows
            .iter()
            .filter(move |row| row.case == case.name() && row.list == list)
    }

    /// How the time of one list in one case grows, fitted to measured rows only.
    #[must_use]
    pub fn law(&self, case: Case, list: &str) -> Option<fit::PowerLaw> {
        let measured = self.curve(case, list).filter(|row| !row.extrapolated);
        let points: Vec<(f64, f64)> = measured
            .filter_map(|row| Some((row.n as f64, row.seconds?)))
            .collect();
        fit::log_log(&points)
    }
}

/// Two lists gave different results for the same segments, so one has a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("case {case:?}: {list} says {says}, {other} says {other_says}")]
pub struct Disagreement {
    case: &'static str,
    list: &'static str,
    says: String,
    other: &'static str,
    other_says: String,
}

/// Compares all lists segment by segment: n segments of each case, and n random ones from `seed`.
///
/// # Errors
/// The first segment for which they differ.
pub fn agree(n: usize, seed: u64) -> Result<(), Disagreement> {
    for case in Config::default().cases {
        let load = case.load(n);
        agree_on(case.name(), load.before.iter().chain(&load.timed))?;
    }
    agree_on("at random", &at_random(seed, n))
}

fn agree_on<'a>(
    case: &'static str,
    packets: impl IntoIterator<Item = &'a Packet>,
) -> Result<(), Disagreement> {
    let mut head = Linked::new(End::Head, End::Head);
    let mut others: [Box<dyn SegmentList>; 2] = [
        Box::new(Linked::new(End::Tail, End::Tail)),
        Box::new(Ours::default()),
    ];
    for packet in packets {
        let expected = insert(&mut head, packet);
        for other in &mut others {
            let found = insert(other.as_mut(), packet);
            if found != expected {
                return Err(Disagreement {
                    case,
                    list: head.name(),
                    says: format!("{expected:?} of {packet:?}"),
                    other: other.name(),
                    other_says: format!("{found:?}"),
                });
            }
        }
    }
    Ok(())
}

fn insert(list: &mut dyn SegmentList, packet: &Packet) -> Overlap {
    list.insert(packet.first, packet.length, packet.time_ns)
}

/// Measures every case; `clock` is the real one, and `on_row` is called with each finished row.
///
/// # Errors
/// Two lists gave different results for the same load.
pub fn run(
    config: &Config,
    clock: &mut dyn FnMut() -> Instant,
    on_row: &mut dyn FnMut(&Row),
) -> Result<SegmentsReport, Disagreement> {
    let mut report = SegmentsReport { rows: Vec::new() };
    for &case in &config.cases {
        let mut seen: Vec<(usize, &'static str, Totals)> = Vec::new();
        for subject in case.subjects() {
            for &n in config.sizes.iter().filter(|&&n| n > 0) {
                let law = report.law(case, subject.name);
                let expected = law.map(|law| law.at(n as f64));
                let took = if expected.is_some_and(|s| s > config.budget.as_secs_f64()) {
                    None
                } else {
                    measure(&subject, &case.load(n), config, clock)
                };
                let row = Row {
                    case: case.name(),
                    list: subject.name,
                    n,
                    seconds: took.map(|(seconds, _)| seconds).or(expected),
                    extrapolated: took.is_none(),
                };
                on_row(&row);
                report.rows.push(row);
                if let Some((_, totals)) = took
                    && subject.name != FLOOR
                {
                    check(case, n, subject.name, totals, &seen)?;
                    seen.push((n, subject.name, totals));
                }
            }
        }
    }
    Ok(report)
}

/// A list's results for a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    octets: u64,
    fills: u64,
    /// Packets that start where an earlier one ended; `None` without look-ups.
    follows: Option<u64>,
}

fn check(
    case: Case,
    n: usize,
    name: &'static str,
    totals: Totals,
    seen: &[(usize, &'static str, Totals)],
) -> Result<(), Disagreement> {
    let differs = |other: &Totals| {
        (other.octets, other.fills) != (totals.octets, totals.fills)
            || other
                .follows
                .zip(totals.follows)
                .is_some_and(|(a, b)| a != b)
    };
    match seen.iter().find(|(m, _, other)| *m == n && differs(other)) {
        None => Ok(()),
        Some((_, other, other_totals)) => Err(Disagreement {
            case: case.name(),
            list: name,
            says: format!("{totals:?}"),
            other,
            other_says: format!("{other_totals:?}"),
        }),
    }
}

/// The minimum in seconds over several rounds, or `None` if the time limit ended one of them.
fn measure(
    subject: &Subject,
    load: &Load,
    config: &Config,
    clock: &mut dyn FnMut() -> Instant,
) -> Option<(f64, Totals)> {
    let mut least: Option<(Duration, Totals)> = None;
    let mut total = Duration::ZERO;
    while least.is_none() || total < config.repeat {
        let (took, totals) = round(subject, load, config.budget, clock)?;
        if least.is_none_or(|(least, _)| took < least) {
            least = Some((took, totals));
        }
        // Guarantees the end of the loop even if the clock does not advance.
        total = total + took.max(Duration::from_micros(1));
    }
    least.map(|(took, totals)| (took.as_secs_f64(), totals))
}

fn round(
    subject: &Subject,
    load: &Load,
    budget: Duration,
    clock: &mut dyn FnMut() -> Instant,
) -> Option<(Duration, Totals)> {
    let mut list = (subject.make)();
    for packet in &load.before {
        insert(list.as_mut(), packet);
    }
    let look_up_from = if subject.looks_up {
        load.look_up_from
    } else {
        usize::MAX
    };
    let mut totals = Totals::default();
    let mut follows = 0;
    let begin = clock();
    for (i, packet) in load.timed.iter().enumerate() {
        let found = insert(list.as_mut(), packet);
        totals.octets += u64::from(found.octets);
        totals.fills += u64::from(found.fills);
        if i >= look_up_from {
            follows += u64::from(list.ended_at(packet.first));
        }
        if i % BLOCK == BLOCK - 1 && clock().since(begin) > budget {
            return None;
        }
    }
    let took = clock().since(begin);
    black_box(&list);
    totals.follows = subject.looks_up.then_some(follows);
    Some((took, totals))
}
