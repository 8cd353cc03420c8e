//! Counts and round-trip statistics of a stream, as ping computes them, and percentiles.

use base::Duration;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Counts of a stream, and its round trips.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// Packets sent, or refused by the kernel.
    pub transmitted: u64,
    /// Packets refused by the kernel.
    pub failed: u64,
    /// Packets answered, in time or late; each counts once.
    pub received: u64,
    /// Packets answered after the timeout.
    pub late: u64,
    /// Packets timed out without an answer.
    pub lost: u64,
    /// Further replies to answered packets.
    pub duplicates: u64,
    /// Packets first answered after a later packet had been answered.
    pub reordered: u64,
    /// Packets not sent because the sender was more than a second behind.
    pub skipped: u64,
    /// ICMP errors that routers or hosts reported.
    pub errors: u64,
    /// The most packets in flight when a reply came: ping's "pipe".
    pub pipe: u64,
    /// Sum of round trips, and of their squares, in whole microseconds, duplicates included.
    sum_us: u128,
    squares_us: u128,
    /// Eight times the moving average of the round trips that ping keeps, in microseconds.
    ewma_8us: u64,
    rtt_min_ns: u64,
    rtt_max_ns: u64,
    rtts: Histogram,
}

/// Round trips as ping prints them, in whole microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundTrips {
    /// The shortest.
    pub min_us: u64,
    /// The mean, rounded down.
    pub avg_us: u64,
    /// The longest.
    pub max_us: u64,
    /// The standard deviation, rounded down.
    pub mdev_us: u64,
}

/// Percentiles, by nearest rank, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Percentiles {
    /// The median.
    pub p50_ns: u64,
    /// 90 of 100 are not above it.
    pub p90_ns: u64,
    /// 99 of 100 are not above it.
    pub p99_ns: u64,
    /// 999 of 1,000 are not above it.
    pub p999_ns: u64,
}

impl Percentiles {
    pub(crate) const SHARES: [u32; 4] = [500_000, 900_000, 990_000, 999_000];

    pub(crate) fn new([p50_ns, p90_ns, p99_ns, p999_ns]: [u64; 4]) -> Self {
        Self {
            p50_ns,
            p90_ns,
            p99_ns,
            p999_ns,
        }
    }

    pub(crate) fn of(histogram: &Histogram) -> Option<Self> {
        histogram.quantiles(Self::SHARES).map(Self::new)
    }
}

impl Statistics {
    /// Counts the round trip of a reply. ping's sums include duplicates; percentiles do not.
    pub(crate) fn add_rtt(&mut self, rtt: Duration, duplicate: bool) {
        let ns = rtt.as_nanos();
        let us = u128::from(ns / 1_000);
        let first = self.received + self.duplicates == 0;
        self.rtt_min_ns = if first { ns } else { self.rtt_min_ns.min(ns) };
        self.rtt_max_ns = self.rtt_max_ns.max(ns);
        self.sum_us += us;
        self.squares_us += us * us;
        let us = ns / 1_000;
        self.ewma_8us = match first {
            true => us.saturating_mul(8),
            false => (self.ewma_8us - self.ewma_8us / 8).saturating_add(us),
        };
        if duplicate {
            self.duplicates += 1;
        } else {
            self.received += 1;
            self.rtts.add(ns);
        }
    }

    /// Packets neither answered nor timed out.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.transmitted
            .saturating_sub(self.failed + self.received + self.lost)
    }

    /// The longest round trip.
    #[must_use]
    pub fn rtt_max(&self) -> Duration {
        Duration::from_nanos(self.rtt_max_ns)
    }

    /// The round trips as ping prints them; `None` if no reply came.
    #[must_use]
    pub fn round_trips(&self) -> Option<RoundTrips> {
        let total = u128::from(self.received + self.duplicates);
        if total == 0 {
            return None;
        }
        let variance = (self.squares_us - self.sum_us * self.sum_us / total) / total;
        Some(RoundTrips {
            min_us: self.rtt_min_ns / 1_000,
            avg_us: (self.sum_us / total) as u64,
            max_us: self.rtt_max_ns / 1_000,
            mdev_us: variance.isqrt() as u64,
        })
    }

    /// The moving average of the round trips in whole microseconds; the last one has a weight of 1/8.
    #[must_use]
    pub fn ewma_us(&self) -> u64 {
        self.ewma_8us / 8
    }

    /// Percentiles of the round trips; `None` if no reply came.
    #[must_use]
    pub fn percentiles(&self) -> Option<Percentiles> {
        Percentiles::of(&self.rtts)
    }

    /// Median and 99th percentile of the round trips, in nanoseconds.
    #[must_use]
    pub fn p50_p99(&self) -> Option<[u64; 2]> {
        self.rtts.quantiles([500_000, 990_000])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_that_ping_prints() {
        // 0.014 and 0.030 ms: ping printed 0.014/0.022/0.030/0.008; 0.016, 0.032: 0.016/0.024/0.032/0.008.
        for (rtts, figures) in [
            (vec![14_000, 30_999], [14, 22, 30, 8]),
            (vec![16_200, 32_000], [16, 24, 32, 8]),
            (vec![21_000, 29_000], [21, 25, 29, 4]),
            (vec![5_000_000_000], [5_000_000, 5_000_000, 5_000_000, 0]),
        ] {
            let mut statistics = Statistics::default();
            for rtt in rtts {
                statistics.add_rtt(Duration::from_nanos(rtt), false);
            }
            let found = statistics.round_trips().unwrap();
            let found = [found.min_us, found.avg_us, found.max_us, found.mdev_us];
            assert_eq!(found, figures);
        }
    }

    #[test]
    fn duplicates_are_in_ping_s_sums_and_not_in_percentiles() {
        let mut statistics = Statistics::default();
        statistics.add_rtt(Duration::from_millis(1), false);
        statistics.add_rtt(Duration::from_millis(3), true);
        let found = statistics.round_trips().unwrap();
        assert_eq!((found.avg_us, found.max_us), (2_000, 3_000));
        let percentiles = statistics.percentiles().unwrap();
        assert_eq!(percentiles.p999_ns, 1_000_000);
        assert_eq!((statistics.received, statistics.duplicates), (1, 1));
    }
}
