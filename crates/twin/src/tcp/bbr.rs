//! A model of BBR version 1: the bottleneck's rate is the largest delivery rate of ten rounds, the round trip the
//! smallest of ten seconds.
//!
//! Left out: the policer detector, and recovery's packet conservation.

use std::collections::VecDeque;

use super::control::Delivery;

/// Gain that doubles the rate in each round: 2 / ln 2.
const HIGH: f64 = 2.885;

/// Gains of the eight phases of a cycle.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// Rounds over which the largest rate counts.
const ROUNDS: u64 = 10;

/// How long the smallest round trip counts, and how long it is probed, in nanoseconds.
const SHORTEST_FOR: u64 = 10_000_000_000;
const PROBE_FOR: u64 = 200_000_000;

/// The window while the round trip is probed.
const WINDOW_MIN: f64 = 4.0;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    Startup,
    Drain,
    Cycle { at: usize, since: u64 },
    Probe { until: Option<u64> },
}

/// The state of BBR. Rates are in segments per nanosecond.
#[derive(Debug, Clone)]
pub(super) struct Bbr {
    initial: f64,
    window: f64,
    phase: Phase,
    round: u64,
    rates: VecDeque<(u64, f64)>,
    shortest: Option<(u64, u64)>,
    full: f64,
    full_rounds: u32,
    was_full: bool,
}

impl Bbr {
    pub(super) fn new(initial: u32) -> Bbr {
        Bbr {
            initial: f64::from(initial),
            window: f64::from(initial),
            phase: Phase::Startup,
            round: 0,
            rates: VecDeque::new(),
            shortest: None,
            full: 0.0,
            full_rounds: 0,
            was_full: false,
        }
    }

    fn rate(&self) -> Option<f64> {
        self.rates.front().map(|&(_, rate)| rate)
    }

    /// Segments that fill the path without a queue.
    fn product(&self) -> Option<f64> {
        Some(self.rate()? * self.shortest?.1 as f64)
    }

    /// An ACK; returns the window.
    pub(super) fn delivered(&mut self, delivery: &Delivery) -> f64 {
        let now = delivery.now;
        self.round += u64::from(delivery.is_round);
        if let Some((segments, time)) = delivery.rate.filter(|rate| rate.1 > 0) {
            let rate = segments as f64 / time as f64;
            while self.rates.back().is_some_and(|&(_, last)| last <= rate) {
                self.rates.pop_back();
            }
            self.rates.push_back((self.round, rate));
        }
        while self.rates.len() > 1 && self.rates[0].0 + ROUNDS < self.round {
            self.rates.pop_front();
        }
        let is_old = self.shortest.is_some_and(|(at, _)| now > at + SHORTEST_FOR);
        if let Some(time) = delivery.round_trip
            && (is_old || self.shortest.is_none_or(|(_, shortest)| time <= shortest))
        {
            self.shortest = Some((now, time));
        }
        self.step(delivery, is_old);
        let target = self.product().map(|product| self.gain().1 * product);
        let target = target.unwrap_or(self.initial).max(WINDOW_MIN);
        self.window = match self.phase {
            Phase::Probe { .. } => WINDOW_MIN,
            _ if self.was_full => target.min(self.window + delivery.segments as f64),
            _ => self.window + delivery.segments as f64,
        };
        self.window
    }

    /// Changes the phase.
    fn step(&mut self, delivery: &Delivery, is_old: bool) {
        let now = delivery.now;
        if delivery.is_round && !self.was_full {
            let rate = self.rate().unwrap_or(0.0);
            if rate >= self.full * 1.25 {
                (self.full, self.full_rounds) = (rate, 0);
            } else {
                self.full_rounds += 1;
                self.was_full = self.full_rounds >= 3;
            }
        }
        let in_flight = delivery.in_flight as f64;
        let product = self.product().unwrap_or(self.initial);
        let cycle = Phase::Cycle { at: 2, since: now };
        self.phase = match self.phase {
            Phase::Startup if self.was_full => Phase::Drain,
            Phase::Drain if in_flight <= product => cycle,
            Phase::Cycle { at, since } => {
                let is_long = now - since > self.shortest.map_or(0, |shortest| shortest.1);
                let is_over = match at {
                    0 => is_long && in_flight >= 1.25 * product,
                    1 => is_long || in_flight <= product,
                    _ => is_long,
                };
                match is_over {
                    true => Phase::Cycle {
                        at: (at + 1) % CYCLE.len(),
                        since: now,
                    },
                    false => self.phase,
                }
            }
            Phase::Probe { until: None } if in_flight <= WINDOW_MIN => Phase::Probe {
                until: Some(now + PROBE_FOR),
            },
            Phase::Probe { until: Some(until) } if now >= until => match self.was_full {
                true => {
                    self.window = product;
                    cycle
                }
                false => Phase::Startup,
            },
            phase => phase,
        };
        if is_old && !matches!(self.phase, Phase::Probe { .. }) {
            self.phase = Phase::Probe { until: None };
        }
    }

    /// Gains of the pacing rate and of the window.
    fn gain(&self) -> (f64, f64) {
        match self.phase {
            Phase::Startup => (HIGH, HIGH),
            Phase::Drain => (1.0 / HIGH, HIGH),
            Phase::Cycle { at, .. } => (CYCLE[at], 2.0),
            Phase::Probe { .. } => (1.0, 1.0),
        }
    }

    /// Nanoseconds between segments; `None` before the first delivery rate.
    pub(super) fn interval(&self) -> Option<u64> {
        let rate = self.rate()? * self.gain().0 * 0.99;
        Some((1.0 / rate) as u64)
    }
}
