//! Extremes of the last round trips: a whole life's percentiles hide a queue that comes and goes.

/// Values before a round may end, so that a slow sender's extremes are of several values too.
const COUNT_MIN: u32 = 4;

/// The lowest and highest value of this round and the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Recent {
    /// When this round began.
    pub(super) since: i64,
    /// Values of this round.
    pub(super) count: u32,
    /// Whether there was a round before it.
    pub(super) has_before: bool,
    pub(super) low: i64,
    pub(super) high: i64,
    pub(super) low_before: i64,
    pub(super) high_before: i64,
}

impl Recent {
    /// A value at `now`. A round lasts for `span`, at least. True if an extreme may have changed.
    #[inline(always)]
    pub(super) fn add(&mut self, now: i64, value: i64, span: i64) -> bool {
        let is_round = self.count >= COUNT_MIN && now.wrapping_sub(self.since) >= span;
        if is_round | (self.count == 0) | (value < self.low) | (value > self.high) {
            self.change(now, value, is_round);
            return true;
        }
        self.count = self.count.saturating_add(1);
        false
    }

    #[inline(never)]
    fn change(&mut self, now: i64, value: i64, is_round: bool) {
        if is_round {
            (self.low_before, self.high_before) = (self.low, self.high);
            (self.has_before, self.count) = (true, 0);
        }
        if self.count == 0 {
            (self.since, self.low, self.high) = (now, value, value);
        } else {
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
        self.count = self.count.saturating_add(1);
    }

    /// The lowest value; `None` before the first.
    pub(super) fn low(&self) -> Option<i64> {
        match (self.count, self.has_before) {
            (0, _) => None,
            (_, true) => Some(self.low.min(self.low_before)),
            (_, false) => Some(self.low),
        }
    }

    /// The highest value; 0 before the first.
    pub(super) fn high(&self) -> i64 {
        match self.has_before {
            true => self.high.max(self.high_before),
            false => self.high,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_forgotten_after_two_rounds() {
        let mut recent = Recent::default();
        assert_eq!(recent.low(), None);
        for at in 0..30 {
            recent.add(at, if at == 3 { 1 } else { 9 }, 10);
            assert_eq!(
                recent.low(),
                Some(if (3..20).contains(&at) { 1 } else { 9 }),
                "{at}"
            );
            assert_eq!(recent.high(), 9);
        }
    }

    #[test]
    fn a_round_has_four_values() {
        let mut recent = Recent::default();
        for at in 0..4 {
            recent.add(at * 100, at, 10);
        }
        assert_eq!((recent.low(), recent.high()), (Some(0), 3));
    }
}
