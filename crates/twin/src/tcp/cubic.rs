//! CUBIC (RFC 9438) and HyStart's two conditions, with Linux's constants.

use super::control::Delivery;

/// RFC 9438 4.1 and 4.6.
const C: f64 = 0.4;
const BETA: f64 = 717.0 / 1024.0;

/// Growth of the window estimate of Reno for each window of ACKs (RFC 9438 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Before the first loss, Linux grows the window by at least 1/20 for each round trip.
const FIRST_GROWTH: f64 = 20.0;

/// HyStart is off below this window.
const LOW: f64 = 16.0;

/// ACKs closer than this belong to one train.
const TRAIN_GAP: u64 = 2_000_000;

/// Round trips of a round that HyStart looks at, and the bounds of the increase that ends slow start.
const SAMPLES: u32 = 8;
const INCREASE: (u64, u64) = (4_000_000, 16_000_000);

/// The state of CUBIC.
#[derive(Debug, Clone, Default)]
pub(super) struct Cubic {
    most: f64,
    epoch: Option<Epoch>,
    shortest: Option<u64>,
    round: Round,
}

/// A time of growth between two losses.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start: u64,
    k: f64,
    origin: f64,
    reno: f64,
}

/// A round trip in slow start.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    start: u64,
    last: u64,
    shortest: Option<u64>,
    samples: u32,
}

impl Cubic {
    /// Segments to add to a window for newly acknowledged ones.
    pub(super) fn growth(&mut self, now: u64, window: f64, segments: f64) -> f64 {
        let most = self.most;
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: now,
            k: ((most - window).max(0.0) / C).cbrt(),
            origin: most.max(window),
            reno: window,
        });
        let ahead = now + self.shortest.unwrap_or(0) - epoch.start;
        let t = ahead as f64 / 1e9 - epoch.k;
        let target = epoch.origin + C * t * t * t;
        let mut count = match target > window {
            true => window / (target - window),
            false => 100.0 * window,
        };
        if most == 0.0 {
            count = count.min(FIRST_GROWTH);
        }
        epoch.reno += ALPHA * segments / window;
        if epoch.reno > window {
            count = count.min(window / (epoch.reno - window));
        }
        segments / count.max(2.0)
    }

    /// The window after a loss (RFC 9438 4.6, 4.7).
    pub(super) fn reduce(&mut self, window: f64) -> f64 {
        self.epoch = None;
        self.most = match window < self.most {
            true => window * (1.0 + BETA) / 2.0,
            false => window,
        };
        (window * BETA).max(2.0)
    }

    /// Whether slow start ends: the ACKs of a round have come for half of the shortest round trip without a gap, or
    /// the round trips have grown.
    pub(super) fn leaves_slow_start(
        &mut self,
        delivery: &Delivery,
        window: f64,
        threshold: f64,
    ) -> bool {
        let Delivery {
            now, round_trip, ..
        } = *delivery;
        if let Some(time) = round_trip {
            self.shortest = Some(self.shortest.map_or(time, |shortest| shortest.min(time)));
        }
        if window >= threshold {
            return false;
        }
        if delivery.is_round {
            self.round = Round {
                start: now,
                last: now,
                shortest: None,
                samples: 0,
            };
        }
        let (Some(time), Some(shortest)) = (round_trip, self.shortest) else {
            return false;
        };
        let round = &mut self.round;
        let mut ends = false;
        if now - round.last <= TRAIN_GAP {
            round.last = now;
            ends = now - round.start > shortest / 2;
        }
        if round.samples < SAMPLES {
            round.samples += 1;
            round.shortest = Some(round.shortest.map_or(time, |least| least.min(time)));
        } else if let Some(least) = round.shortest {
            ends |= least > shortest + (shortest / 8).clamp(INCREASE.0, INCREASE.1);
        }
        ends && window >= LOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_returns_to_its_maximum_after_k_seconds() {
        let mut cubic = Cubic::default();
        let mut window = cubic.reduce(1000.0);
        assert!((window - 700.0).abs() < 1.0);
        // RFC 9438 4.2: K = cbrt(W_max (1 - beta) / C).
        let k = (300.0_f64 / 0.4).cbrt();
        let mut now = 0;
        while now < (k * 1e9) as u64 {
            window += cubic.growth(now, window, window / 10.0);
            now += 10_000_000;
        }
        assert!((window - 1000.0).abs() < 10.0, "{window}");
        // 4.7: a loss below the last maximum sets the maximum lower than the window.
        let mut cubic = Cubic::default();
        cubic.reduce(1000.0);
        cubic.reduce(800.0);
        assert!((cubic.most - 680.0).abs() < 2.0, "{}", cubic.most);
    }

    #[test]
    fn slow_start_ends_when_round_trips_grow() {
        let mut cubic = Cubic::default();
        let mut delivery = Delivery {
            now: 0,
            segments: 1,
            round_trip: Some(50_000_000),
            in_flight: 20,
            is_round: true,
            rate: None,
        };
        assert!(!cubic.leaves_slow_start(&delivery, 40.0, f64::INFINITY));
        let mut ended = 0;
        for ack in 0..10 {
            delivery.now = 60_000_000 + ack * 3_000_000;
            delivery.is_round = ack == 0;
            delivery.round_trip = Some(57_000_000);
            ended += u32::from(cubic.leaves_slow_start(&delivery, 40.0, f64::INFINITY));
        }
        assert!(ended > 0, "7 ms are more than an eighth of 50 ms");
    }
}
