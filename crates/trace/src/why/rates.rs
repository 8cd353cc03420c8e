//! The rate between losses. A policer drops what exceeds its rate, so that all rates between its losses are equal
//! (Flach et al., "An Internet-Wide Analysis of Traffic Policing", 2016).

/// Rates between two losses, at least.
const RATES_MIN: u32 = 5;

/// Largest deviation of these rates, as a share of their mean.
const DEVIATION_MAX: f64 = 0.15;

/// Statistics of the rates between losses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rates {
    /// Time and acknowledged data at the last loss.
    pub(super) at: i64,
    pub(super) acked: u64,
    pub(super) count: u32,
    pub(super) mean: f64,
    /// Sum of squared deviations (Welford).
    pub(super) squares: f64,
}

impl Rates {
    /// A loss at `now`, when all data below `acked` was acknowledged.
    pub(super) fn lost(&mut self, now: i64, acked: u64, round_trip: i64) {
        let span = now.saturating_sub(self.at);
        if self.at > 0 {
            // Losses of one burst are one loss.
            if span < round_trip.saturating_mul(2) {
                return;
            }
            let rate = acked.saturating_sub(self.acked) as f64 / span as f64;
            self.count += 1;
            let delta = rate - self.mean;
            self.mean += delta / f64::from(self.count);
            self.squares += delta * (rate - self.mean);
        }
        (self.at, self.acked) = (now, acked);
    }

    /// Whether there are enough, and all are about equal.
    pub(super) fn are_equal(&self) -> bool {
        if self.count < RATES_MIN || self.mean <= 0.0 {
            return false;
        }
        let deviation = (self.squares / f64::from(self.count - 1)).sqrt();
        deviation <= self.mean * DEVIATION_MAX
    }

    /// Bytes per second.
    pub(super) fn bytes_per_second(&self) -> f64 {
        self.mean * 1e9
    }
}

/// Full segments whose ACKs are one clump.
const CLUMP: u64 = 4;

/// A clump takes at least this long.
const CLUMP_TIME_MIN: i64 = 100_000;

/// The mean rate of clumps is this much above the rate of all, if no queue spaces the data.
const UNEVEN: f64 = 1.15;

/// How evenly data is acknowledged. A queue sends its packets at one rate, one after the other; a policer lets clumps pass as
/// they are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Clumps {
    /// Start of the present clump; 0 if there is none.
    pub(super) since: i64,
    pub(super) acked: u64,
    pub(super) count: u32,
    /// Sum of the clumps' rates, of their bytes and of their times.
    pub(super) rates: f64,
    pub(super) bytes: u64,
    pub(super) time: i64,
}

impl Clumps {
    pub(super) fn acknowledged(&mut self, now: i64, acked: u64, unit: u32) {
        if self.since == 0 {
            (self.since, self.acked) = (now, acked);
            return;
        }
        let bytes = acked.saturating_sub(self.acked);
        if bytes < CLUMP * u64::from(unit) {
            return;
        }
        let time = now.saturating_sub(self.since).max(CLUMP_TIME_MIN);
        self.count = self.count.saturating_add(1);
        self.rates += bytes as f64 / time as f64;
        self.bytes = self.bytes.saturating_add(bytes);
        self.time = self.time.saturating_add(time);
        (self.since, self.acked) = (now, acked);
    }

    /// A recovery acknowledges many segments at once.
    pub(super) fn pause(&mut self) {
        self.since = 0;
    }

    pub(super) fn are_uneven(&self) -> bool {
        if self.count == 0 || self.time == 0 {
            return false;
        }
        let each = self.rates / f64::from(self.count);
        each >= UNEVEN * self.bytes as f64 / self.time as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_acks_are_a_queues_and_uneven_ones_are_not() {
        let (mut even, mut uneven) = (Clumps::default(), Clumps::default());
        for ack in 1..400_i64 {
            even.acknowledged(ack * MS, ack as u64 * 2_000, 1_000);
            // Ten ACKs within a millisecond, each 10 ms.
            let at = ack / 10 * 10 * MS + ack % 10 * MS / 10;
            uneven.acknowledged(at, ack as u64 * 2_000, 1_000);
        }
        assert!(!even.are_uneven());
        assert!(uneven.are_uneven());
    }

    const MS: i64 = 1_000_000;

    #[test]
    fn equal_rates_between_losses_are_a_policers() {
        let mut rates = Rates::default();
        for loss in 1..8 {
            rates.lost(loss * 300 * MS, loss as u64 * 300_000, 20 * MS);
        }
        assert!(rates.are_equal());
        assert!((rates.bytes_per_second() - 1e6).abs() < 1.0);
    }

    #[test]
    fn losses_at_random_are_not() {
        let mut rates = Rates::default();
        let (mut at, mut acked) = (MS, 0);
        for (span, bytes) in [
            (100, 9),
            (700, 20),
            (60, 30),
            (300, 5),
            (900, 90),
            (120, 40),
        ] {
            at += span * MS;
            acked += bytes * 10_000;
            rates.lost(at, acked, 20 * MS);
        }
        assert!(!rates.are_equal());
    }
}
