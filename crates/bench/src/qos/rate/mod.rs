//! The actual rate of a shaper beside the configured one, and the cause of any difference.
//!
//! | module | contents |
//! |---|---|
//! | `alone` | the queue by itself, in virtual time and in real time |
//! | `between` | the engine between two interfaces, with a sender, in real time |
//! | `subscriber` | a shaped subscriber of the edge, in virtual time and in real time |

mod alone;
pub(crate) mod between;
mod subscriber;

use anyhow::Result;
use base::Duration;
use lab::report::{Cell, Table};
use serde::{Deserialize, Serialize};

use super::Config;
use alone::Time;
pub(super) use alone::{Shaper, spec};
pub(super) use subscriber::BACKLOG_MS;

/// The rates that are shaped, in bits per second.
const RATES: [u64; 3] = [1_000_000, 32_000_000, 1_000_000_000];

/// Goal: largest deviation of a shaper from its rate.
const GOAL: f64 = 0.01;

/// Results for one rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Kept {
    /// The configured rate.
    rate_bps: u64,
    /// The rate that left.
    measured_bps: f64,
    /// Duration of the measurement.
    #[serde(with = "nanos")]
    span: Duration,
    /// The rate that arrived at the shaper, including frames it did not read in time; `None` if
    /// packets wait all the time.
    offered_bps: Option<f64>,
    /// Time in which the shaper's thread was ready to run while other threads had the core; `None`
    /// in virtual time or if unknown.
    #[serde(with = "nanos_if_known")]
    waited: Option<Duration>,
    /// The longest time between two polls of a queue that is polled continuously.
    #[serde(with = "nanos_if_known")]
    absent: Option<Duration>,
    /// Frames that the kernel dropped because the shaper did not read them in time.
    missed: u64,
}

impl Kept {
    /// How far the rate exceeded the configured one, as a fraction of it.
    fn error(&self) -> f64 {
        self.measured_bps / self.rate_bps as f64 - 1.0
    }

    /// The cause that determined the rate.
    fn held_by(&self) -> &'static str {
        let short = -self.error();
        let waited = self.waited.map_or(0.0, Duration::as_secs_f64) / self.span.as_secs_f64();
        let is_offered = |offered: f64| offered >= self.rate_bps as f64;
        if short.abs() <= GOAL {
            "the shaper"
        } else if short < 0.0 {
            "the shaper: too much"
        } else if !self.offered_bps.is_none_or(is_offered) {
            "the sender: too little came"
        } else if waited >= short / 2.0 {
            "others, who had its core"
        } else {
            "the shaper: too little"
        }
    }

    fn cells(&self, shaper: &str, time: &str) -> Vec<Cell> {
        let ms = |span: Option<Duration>| span.map(|span| Cell::num(span.as_secs_f64() * 1e3, 2));
        vec![
            self.rate_bps.into(),
            shaper.into(),
            time.into(),
            Cell::num(self.measured_bps, 0),
            Cell::num(self.error() * 100.0, 3),
            "within 1".into(),
            self.offered_bps.map(|bps| Cell::num(bps / 1e6, 2)).into(),
            ms(self.waited).into(),
            ms(self.absent).into(),
            self.held_by().into(),
        ]
    }
}

/// Measures all rates, in virtual time and in real time.
///
/// # Errors
/// A shaper that lets nothing pass.
pub(super) fn table(config: &Config, told: &mut dyn FnMut(String)) -> Result<Table> {
    let columns = [
        ("rate", "bit/s"),
        ("shaper", ""),
        ("time", ""),
        ("left", "bit/s"),
        ("error", "%"),
        ("to reach", "%"),
        ("offered", "Mbit/s"),
        ("waited for a core", "ms"),
        ("longest absence", "ms"),
        ("the rate is that of", ""),
    ];
    let mut table = Table::new("Configured rate of a shaper, and measured rate", &columns);
    for rate_bps in RATES {
        for shaper in Shaper::ALL {
            for &time in shaper.times() {
                let (name, how) = (shaper.name(), time.name());
                told(format!("{rate_bps} bit/s, {name}, {how}"));
                // A virtual-time result is exact, so a shorter span suffices.
                let is_brief = rate_bps > 1_000_000 && time != Time::Real;
                let tenth = Duration::from_nanos(config.span.as_nanos() / 10);
                let span = if is_brief { tenth } else { config.span };
                let kept = alone::run(shaper, rate_bps, time, span)?;
                table.row(kept.cells(name, how));
            }
        }
        told(format!("{rate_bps} bit/s between two interfaces"));
        let name = Shaper::Htb.name();
        let time = "real, between two interfaces";
        match between::measure(rate_bps, config.span) {
            Ok(kept) => table.row(kept.cells(name, time)),
            Err(error) => table.row([
                rate_bps.into(),
                name.into(),
                time.into(),
                Cell::Missing,
                Cell::Missing,
                "within 1".into(),
                Cell::Missing,
                Cell::Missing,
                Cell::Missing,
                format!("not measured: {error:#}").into(),
            ]),
        }
    }
    Ok(table)
}

/// Measures the rates of a subscriber, in virtual time and in real time.
///
/// # Errors
/// The subscriber does not connect, or its queue lets nothing pass.
pub(super) fn subscriber_table(config: &Config, told: &mut dyn FnMut(String)) -> Result<Table> {
    let columns = [
        ("rate", "bit/s"),
        ("subscriber's packets", ""),
        ("time", ""),
        ("left", "bit/s"),
        ("error", "%"),
        ("to reach", "%"),
        ("waited for a core", "ms"),
        ("the rate is that of", ""),
    ];
    let mut table = Table::new(
        "Configured rate of a subscriber, and measured rate",
        &columns,
    );
    for rate_bps in subscriber::RATES {
        for mix in subscriber::Mix::ALL {
            let times = [(Time::Virtual, "virtual"), (Time::Real, "real")];
            for (time, name) in times {
                if time == Time::Real && rate_bps > subscriber::REAL_MAX_BPS {
                    continue;
                }
                let packets = mix.name();
                told(format!("{rate_bps} bit/s, {packets}, {name}"));
                let kept = subscriber::run(rate_bps, mix, time, config.span)?;
                let waited = kept
                    .waited
                    .map(|span| Cell::num(span.as_secs_f64() * 1e3, 2));
                table.row([
                    rate_bps.into(),
                    packets.into(),
                    name.into(),
                    Cell::num(kept.measured_bps, 0),
                    Cell::num(kept.error() * 100.0, 3),
                    "within 1".into(),
                    waited.into(),
                    kept.held_by().into(),
                ]);
            }
        }
    }
    Ok(table)
}

/// A span as nanoseconds.
mod nanos {
    use base::Duration;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(span.as_nanos())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_nanos)
    }
}

/// A span as nanoseconds, or null.
mod nanos_if_known {
    use base::Duration;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        span: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        span.map(Duration::as_nanos).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let nanos = Option::<u64>::deserialize(from)?;
        Ok(nanos.map(Duration::from_nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_missed_is_said_to_be_whose_it_is() {
        let kept = Kept {
            rate_bps: 1_000,
            measured_bps: 999.0,
            span: Duration::from_secs(4),
            offered_bps: Some(1_250.0),
            waited: Some(Duration::from_millis(200)),
            absent: None,
            missed: 0,
        };
        assert_eq!(kept.held_by(), "the shaper");
        let short = Kept {
            measured_bps: 930.0,
            ..kept
        };
        // 200 ms of 4 s are 5 % of the 7 % that are missing.
        assert_eq!(short.held_by(), "others, who had its core");
        let waited = Some(Duration::from_millis(100));
        let alone = Kept { waited, ..short };
        assert_eq!(alone.held_by(), "the shaper: too little");
        let offered_bps = Some(950.0);
        let starved = Kept {
            offered_bps,
            ..short
        };
        assert_eq!(starved.held_by(), "the sender: too little came");
        let measured_bps = 1_020.0;
        let fast = Kept {
            measured_bps,
            ..kept
        };
        assert_eq!(fast.held_by(), "the shaper: too much");
    }

    #[test]
    fn what_a_child_says_is_read_as_it_was() {
        let kept = Kept {
            rate_bps: 1,
            measured_bps: 0.5,
            span: Duration::from_nanos(3),
            offered_bps: None,
            waited: Some(Duration::from_nanos(7)),
            absent: None,
            missed: 9,
        };
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<Kept>(&text).unwrap(), kept);
    }
}
