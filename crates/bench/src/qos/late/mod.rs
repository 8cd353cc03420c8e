//! How late pings leave: streams of a hundred packets a second each, while no core, one core or
//! every core is busy.
//!
//! | module | contents |
//! |---|---|
//! | `bare` | the floor: a loop that sleeps until the next packet is due and sends it |
//! | `pings` | `headend ping` with a responder, as processes |

mod bare;
mod pings;

use anyhow::Result;
use base::Duration;
use lab::report::{Cell, Table};
use reactor::urgency::Urgency;

use super::scheduled::{Busy, cores};
use super::{Config, FLOOR};

/// Time between two packets of a stream.
const INTERVAL: Duration = Duration::from_millis(10);

/// Packets per second up to which the floor asks for real-time scheduling, as `headend ping` does.
const REAL_TIME_RATE_MAX: u64 = 20_000;

/// Goal: lateness that 99 of 100 packets of [`GOAL_STREAMS`] stay below beside one busy core.
const GOAL_MS: f64 = 0.5;
const GOAL_STREAMS: u32 = 100;

/// How many cores are busy with other work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Company {
    None,
    OneCore,
    AllCores,
}

impl Company {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::OneCore => "one",
            Self::AllCores => "all",
        }
    }

    fn busy(self) -> Busy {
        let cores = cores();
        Busy::on(match self {
            Self::None => &[],
            Self::OneCore => &cores[cores.len().saturating_sub(1)..],
            Self::AllCores => &cores,
        })
    }
}

/// Number of streams, and the other work on the cores.
const CASES: [(u32, Company); 5] = [
    (GOAL_STREAMS, Company::None),
    (GOAL_STREAMS / 4, Company::OneCore),
    (GOAL_STREAMS, Company::OneCore),
    (GOAL_STREAMS * 4, Company::OneCore),
    (GOAL_STREAMS, Company::AllCores),
];

/// Results: how late the packets were.
struct Late {
    /// Delays after the due time in nanoseconds, in ascending order; not empty.
    sorted_ns: Vec<i64>,
    /// Packets that were not sent because the sender was too far behind.
    skipped: u64,
    /// Time in which the sending thread was ready to run while other threads had the core.
    waited: Option<Duration>,
}

impl Late {
    fn new(mut late_ns: Vec<i64>) -> Self {
        late_ns.sort_unstable();
        Self {
            sorted_ns: late_ns,
            skipped: 0,
            waited: None,
        }
    }

    /// The lateness that a share of the packets did not exceed, in milliseconds.
    fn percentile_ms(&self, share: f64) -> f64 {
        let last = self.sorted_ns.len().saturating_sub(1);
        let place = (share * self.sorted_ns.len() as f64).ceil() as usize;
        let ns = self.sorted_ns.get(place.saturating_sub(1).min(last));
        ns.map_or(f64::NAN, |ns| *ns as f64 / 1e6)
    }
}

/// Measures all cases, and returns a sentence on the priority that the sender got.
///
/// # Errors
/// `headend ping` cannot be started, or fails.
pub(super) fn table(config: &Config, told: &mut dyn FnMut(String)) -> Result<(Table, String)> {
    let columns = [
        ("streams", ""),
        ("busy cores", ""),
        ("who sends", ""),
        ("p50", "ms"),
        ("p99", "ms"),
        ("p99.9", "ms"),
        ("max", "ms"),
        ("p99 to reach", "ms"),
        ("packets", ""),
        ("left out", ""),
        ("waited for a core", "ms"),
    ];
    let title = "How late packets leave, 100 a second for each stream";
    let mut table = Table::new(title, &columns);
    let mut granted = Urgency::Ordinary;
    for (streams, company) in CASES {
        told(format!(
            "{streams} streams of pings, busy cores: {}",
            company.name()
        ));
        let _busy = company.busy();
        let (floor, urgency) = bare::run(streams, config.packets)?;
        if streams == GOAL_STREAMS {
            granted = urgency;
        }
        table.floor(cells(streams, company, FLOOR, &floor));
        let pings = pings::run(streams, config.packets)?;
        table.row(cells(streams, company, "headend ping", &pings));
    }
    Ok((table, permitted(granted)))
}

fn cells(streams: u32, company: Company, who: &str, late: &Late) -> Vec<Cell> {
    let is_goal = (streams, company) == (GOAL_STREAMS, Company::OneCore) && who != FLOOR;
    let mut cells = vec![u64::from(streams).into(), company.name().into(), who.into()];
    let shares = [0.5, 0.99, 0.999, 1.0];
    cells.extend(shares.map(|share| Cell::num(late.percentile_ms(share), 3)));
    cells.push(is_goal.then_some(Cell::num(GOAL_MS, 1)).into());
    cells.push(late.sorted_ns.len().into());
    cells.push(late.skipped.into());
    let waited = late
        .waited
        .map(|span| Cell::num(span.as_secs_f64() * 1e3, 2));
    cells.push(waited.into());
    cells
}

fn permitted(urgency: Urgency) -> String {
    let what = match urgency {
        Urgency::RealTime => "a real-time thread, which waits for no ordinary thread",
        Urgency::Preferred => "an ordinary thread of the highest priority",
        Urgency::Ordinary => "an ordinary thread with short slices",
    };
    format!(
        "A sender of up to {REAL_TIME_RATE_MAX} packets a second asks to be a real-time thread; here the system made it {what}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_packets_and_the_last_is_the_worst() {
        let late = Late::new((1..=1_000).rev().map(|n| n * 1_000).collect());
        assert_eq!(late.percentile_ms(0.5), 0.5);
        assert_eq!(late.percentile_ms(0.99), 0.99);
        assert_eq!(late.percentile_ms(1.0), 1.0);
        assert_eq!(Late::new(vec![7_000_000]).percentile_ms(0.5), 7.0);
    }
}
