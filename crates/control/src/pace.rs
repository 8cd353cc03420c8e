//! How many creations may be in progress: more while the daemon keeps up, fewer when it falls behind (additive
//! increase, multiplicative decrease).

use std::time::Duration;

/// Bounds of the window.
const LEAST: u32 = 8;
const MOST: u32 = 4096;

/// The window of outstanding creations.
#[derive(Debug)]
pub struct Pace {
    window: u32,
    /// Doubling until the rate stops growing.
    probing: bool,
    /// Highest rate of a round, per second; forgets slowly.
    best: f64,
    last: f64,
    round: Round,
}

/// As many completions as the window had when it began.
#[derive(Debug, Default)]
struct Round {
    started: Duration,
    completed: u32,
    failed: u32,
}

impl Default for Pace {
    /// A small window.
    fn default() -> Self {
        Self {
            window: 64,
            probing: true,
            best: 0.0,
            last: 0.0,
            round: Round::default(),
        }
    }
}

impl Pace {
    /// How many creations may be started while `outstanding` are in progress. A small refill waits until it is worth a
    /// line.
    pub fn allowance(&self, outstanding: u32) -> u32 {
        let room = self.window.saturating_sub(outstanding);
        if outstanding == 0 || room >= (self.window / 4).max(1) {
            room
        } else {
            0
        }
    }

    /// Records a creation that finished or failed, `at` since the start.
    pub fn completed(&mut self, up: bool, at: Duration) {
        self.round.completed += 1;
        self.round.failed += u32::from(!up);
        if self.round.completed >= self.window {
            let took = (at.saturating_sub(self.round.started))
                .as_secs_f64()
                .max(1e-6);
            self.judge(f64::from(self.round.completed) / took);
            self.round = Round {
                started: at,
                ..Round::default()
            };
        }
    }

    fn judge(&mut self, rate: f64) {
        if self.round.failed > 0 {
            self.probing = false;
            self.window /= 2;
        } else if rate < self.best * 0.75 {
            self.probing = false;
            self.window = self.window * 3 / 4;
        } else if self.probing && rate > self.last * 1.1 {
            self.window *= 2;
        } else {
            self.probing = false;
            self.window += 32;
        }
        self.window = self.window.clamp(LEAST, MOST);
        self.best = rate.max(self.best * 0.98);
        self.last = rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A daemon that completes `rate` per second, however many are requested.
    fn settle(pace: &mut Pace, at: &mut f64, rate: f64, rounds: usize, up: bool) {
        for _ in 0..rounds {
            for _ in 0..pace.window {
                *at += 1.0 / rate;
                pace.completed(up, Duration::from_secs_f64(*at));
            }
        }
    }

    #[test]
    fn grows_while_the_rate_grows() {
        let (mut pace, mut at) = (Pace::default(), 0.0);
        settle(&mut pace, &mut at, 1_000.0, 1, true);
        settle(&mut pace, &mut at, 2_000.0, 1, true);
        settle(&mut pace, &mut at, 4_000.0, 1, true);
        assert_eq!(pace.window, 512);
        settle(&mut pace, &mut at, 4_000.0, 2, true);
        assert_eq!(pace.window, 512 + 64);
    }

    #[test]
    fn shrinks_when_the_daemon_falls_behind_or_creations_fail() {
        let (mut pace, mut at) = (Pace::default(), 0.0);
        settle(&mut pace, &mut at, 4_000.0, 4, true);
        let before = pace.window;
        settle(&mut pace, &mut at, 1_000.0, 1, true);
        assert!(pace.window < before);
        let before = pace.window;
        settle(&mut pace, &mut at, 4_000.0, 1, false);
        assert_eq!(pace.window, before / 2);
        settle(&mut pace, &mut at, 4_000.0, 20, false);
        assert_eq!(pace.window, LEAST);
    }

    #[test]
    fn never_starts_more_than_the_window_nor_stalls_when_nothing_is_under_way() {
        let pace = Pace::default();
        assert_eq!(pace.allowance(0), 64);
        assert_eq!(pace.allowance(60), 0);
        assert_eq!(pace.allowance(48), 16);
        assert_eq!(pace.allowance(100), 0);
    }
}
