//! Counters of the loop's cost.

use base::Duration;

/// How many handlers have counters of their own; later ones share the last, "other".
const HANDLERS: usize = 32;

/// A handler in the loop, for the counters: see [`crate::Reactor::handler`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandlerId(pub(crate) u8);

/// Counters of one handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerStats {
    /// Its name.
    pub name: &'static str,
    /// How often it ran.
    pub calls: u64,
    /// Its total time.
    pub total: Duration,
    /// Its longest single booking.
    pub longest: Duration,
}

impl HandlerStats {
    /// Time per call.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.total.as_nanos() / self.calls.max(1))
    }
}

/// The counters of all handlers.
#[derive(Debug, Default)]
pub(crate) struct Handlers(Vec<HandlerStats>);

impl Handlers {
    /// The counters of this name, opened if needed.
    pub(crate) fn open(&mut self, name: &'static str) -> HandlerId {
        let known = self.0.iter().position(|h| h.name == name);
        let index = known.unwrap_or_else(|| {
            if self.0.len() < HANDLERS {
                let name = if self.0.len() == HANDLERS - 1 {
                    "other"
                } else {
                    name
                };
                let (calls, total, longest) = (0, Duration::ZERO, Duration::ZERO);
                self.0.push(HandlerStats {
                    name,
                    calls,
                    total,
                    longest,
                });
            }
            self.0.len() - 1
        });
        HandlerId(index as u8)
    }

    pub(crate) fn book(&mut self, id: HandlerId, calls: u64, took: Duration) {
        if let Some(h) = self.0.get_mut(usize::from(id.0)) {
            h.calls += calls;
            h.total = h.total + took;
            h.longest = h.longest.max(took);
        }
    }

    pub(crate) fn name(&self, id: HandlerId) -> &'static str {
        self.0.get(usize::from(id.0)).map_or("other", |h| h.name)
    }

    pub(crate) fn all(&self) -> &[HandlerStats] {
        &self.0
    }
}

/// Counters of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WaitStats {
    /// How often the loop waited.
    pub waits: u64,
    /// Waits without a ready descriptor: a timer was due, or a signal arrived.
    pub empty: u64,
    /// Watched descriptors, summed over all waits.
    pub watched: u64,
    /// Ready descriptors, summed over all waits.
    pub ready: u64,
    /// Events not delivered because their descriptor had been removed or was no longer watched for them.
    pub stale: u64,
    /// Descriptors closed without being removed, as found by the poller.
    pub closed_unremoved: u64,
    /// Additions refused near the descriptor limit.
    pub refused: u64,
    /// Time spent in waits.
    pub waited: Duration,
    /// Time since the reactor was made.
    pub uptime: Duration,
}

impl WaitStats {
    /// The share of watched descriptors that were ready: 1 is ideal; near 0, each wait visits many idle ones.
    pub fn ready_ratio(&self) -> f64 {
        if self.watched == 0 {
            0.0
        } else {
            self.ready as f64 / self.watched as f64
        }
    }

    /// Waits per second of uptime.
    pub fn waits_per_second(&self) -> f64 {
        let seconds = self.uptime.as_secs_f64();
        if seconds == 0.0 {
            0.0
        } else {
            self.waits as f64 / seconds
        }
    }

    /// Time spent outside waits.
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(
            self.uptime
                .as_nanos()
                .saturating_sub(self.waited.as_nanos()),
        )
    }
}

/// Statistics of how late timers fired, in classes that double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    buckets: [u64; Self::BUCKETS],
    count: u64,
    total: Duration,
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        let (count, total, max) = (0, Duration::ZERO, Duration::ZERO);
        Self {
            buckets: [0; Self::BUCKETS],
            count,
            total,
            max,
        }
    }
}

impl Lateness {
    const BUCKETS: usize = 40;

    pub(crate) fn record(&mut self, late: Duration) {
        let class = (u64::BITS - late.as_nanos().leading_zeros()) as usize;
        self.buckets[class.min(Self::BUCKETS - 1)] += 1;
        self.count += 1;
        self.total = self.total + late;
        self.max = self.max.max(late);
    }

    /// Timers recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest lateness.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The sum of the lateness of all timers.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// Mean lateness.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.total.as_nanos() / self.count.max(1))
    }

    /// The non-empty classes: each with its upper bound and count. Bounds double; the last class has none.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.buckets
            .iter()
            .enumerate()
            .filter(|&(_, &n)| n > 0)
            .map(|(i, &n)| {
                let last = i == Self::BUCKETS - 1;
                (
                    if last {
                        Duration::MAX
                    } else {
                        Duration::from_nanos(1 << i)
                    },
                    n,
                )
            })
    }

    /// Every class from `least` up, with its upper bound and count, empty ones too; those below it are counted in the
    /// first. The last class has no bound.
    pub fn classes_from(
        &self,
        least: Duration,
    ) -> impl Iterator<Item = (Option<Duration>, u64)> + '_ {
        let first = least.as_nanos().next_power_of_two().trailing_zeros() as usize;
        let first = first.min(Self::BUCKETS - 1);
        let last = Self::BUCKETS - 1;
        (first..=last).map(move |class| {
            let from = if class == first { 0 } else { class };
            let count = self.buckets[from..=class].iter().sum();
            let below = (class < last).then(|| Duration::from_nanos(1 << class));
            (below, count)
        })
    }

    /// An upper bound of the lateness of at least `part` (0 to 1) of the timers.
    pub fn quantile(&self, part: f64) -> Duration {
        let wanted = (self.count as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (below, count) in self.buckets() {
            seen += count;
            if seen >= wanted {
                return below.min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_has_calls_total_mean_and_longest() {
        let mut handlers = Handlers::default();
        let id = handlers.open("udp");
        assert_eq!(handlers.open("udp"), id);
        handlers.book(id, 1, Duration::from_nanos(30));
        handlers.book(id, 2, Duration::from_nanos(60));
        let h = handlers.all()[0];
        assert_eq!(
            (h.calls, h.total.as_nanos(), h.longest.as_nanos()),
            (3, 90, 60)
        );
        assert_eq!(h.mean().as_nanos(), 30);
    }

    #[test]
    fn handlers_past_the_limit_are_booked_on_other() {
        let mut handlers = Handlers::default();
        let names: Vec<&'static str> = (0..40)
            .map(|i| &*Box::leak(format!("h{i}").into_boxed_str()))
            .collect();
        for &name in &names {
            let id = handlers.open(name);
            handlers.book(id, 1, Duration::ZERO);
        }
        assert_eq!(handlers.all().len(), HANDLERS);
        let other = handlers.all()[HANDLERS - 1];
        assert_eq!(
            (other.name, other.calls),
            ("other", 40 - (HANDLERS as u64 - 1))
        );
    }

    #[test]
    fn lateness_falls_into_classes_that_double() {
        let mut late = Lateness::default();
        for ns in [0, 1, 2, 3, 4, 1_000_000, u64::MAX] {
            late.record(Duration::from_nanos(ns));
        }
        let classes: Vec<_> = late.buckets().map(|(d, n)| (d.as_nanos(), n)).collect();
        assert_eq!(
            classes,
            [(1, 1), (2, 1), (4, 2), (8, 1), (1 << 20, 1), (u64::MAX, 1)]
        );
        assert_eq!((late.count(), late.max()), (7, Duration::MAX));
        assert_eq!(late.quantile(0.5).as_nanos(), 4);
        let coarse = late.classes_from(Duration::from_nanos(1_000));
        let coarse: Vec<_> = coarse.filter(|(_, n)| *n > 0).collect();
        let ns = |ns| Some(Duration::from_nanos(ns));
        assert_eq!(coarse, [(ns(1_024), 5), (ns(1 << 20), 1), (None, 1)]);
        assert_eq!(late.classes_from(Duration::from_nanos(1_000)).count(), 30);
    }
}
