//! Rates and recent values of the daemon's counters, from readings of `now/1`.

use std::collections::{BTreeMap, VecDeque};

use control::rows::{History, Now};

/// Values that a ring keeps: ten minutes at one reading a second.
const RING_MAX: usize = 600;

/// The newest values of a series, oldest first; `None` where there was no value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring(VecDeque<Option<f64>>);

impl Ring {
    /// Appends a value, and drops the oldest of a full ring.
    pub(crate) fn push(&mut self, value: Option<f64>) {
        if self.0.len() == RING_MAX {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    /// The newest `count` values at most.
    pub(crate) fn newest(&self, count: usize) -> Vec<Option<f64>> {
        let skip = self.0.len().saturating_sub(count);
        self.0.iter().skip(skip).copied().collect()
    }
}

/// The series that the overview draws, in the order of `Pace::rings`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Series {
    CameUp,
    Ended,
    Refused,
    OctetsIn,
    OctetsOut,
    Dropped,
    Busy,
    Lateness,
    Margin,
}

const SERIES: usize = Series::Margin as usize + 1;

/// A name with its rate, and its total since the daemon started.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) rate: Option<f64>,
    pub(crate) total: f64,
}

/// The last two readings, and the recent values of some series.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last: Option<Now>,
    before: Option<Now>,
    rings: [Ring; SERIES],
    is_seeded: bool,
}

impl Pace {
    /// Takes a reading.
    pub(crate) fn push(&mut self, now: Now) {
        self.before = self.last.take();
        // The counters of a restarted daemon start at 0, so two readings around the restart give no rate.
        if self
            .before
            .as_ref()
            .is_some_and(|before| before.uptime_s > now.uptime_s)
        {
            self.before = None;
        }
        let is_first = self.before.is_none();
        self.last = Some(now);
        if is_first {
            return;
        }
        let values = [
            self.rate(|now| now.subscribers.came_up as f64),
            self.rate(|now| sum(&now.subscribers.ended)),
            self.rate(|now| sum(&now.subscribers.refused)),
            self.rate(|now| now.traffic.octets_in as f64),
            self.rate(|now| now.traffic.octets_out as f64),
            self.rate(|now| sum(&now.traffic.dropped)),
            self.rate(|now| now.event_loop.busy_s),
            self.quantile(0.99, |now| Some(&now.event_loop.lateness)),
            self.last
                .as_ref()
                .and_then(|now| now.bgp.as_ref()?.hold_margin_s),
        ];
        for (ring, value) in self.rings.iter_mut().zip(values) {
            ring.push(value);
        }
    }

    /// Puts what the daemon recorded before the first reading into the rings.
    pub(crate) fn seed(&mut self, rows: &[History]) {
        if self.is_seeded {
            return;
        }
        self.is_seeded = true;
        for (series, name) in [
            (Series::CameUp, "subscribers.came_up"),
            (Series::Ended, "subscribers.ended"),
            (Series::Refused, "subscribers.refused"),
            (Series::OctetsIn, "traffic.octets_in"),
            (Series::OctetsOut, "traffic.octets_out"),
            (Series::Dropped, "traffic.dropped"),
            (Series::Busy, "event_loop.busy_s"),
            (Series::Lateness, "event_loop.lateness.p99"),
            (Series::Margin, "bgp.hold_margin_s"),
        ] {
            let past = past(rows, name);
            let ring = &mut self.rings[series as usize];
            let readings = std::mem::take(ring);
            past.into_iter().for_each(|value| ring.push(value));
            readings.0.into_iter().for_each(|value| ring.push(value));
        }
    }

    /// The last reading.
    pub(crate) fn last(&self) -> Option<&Now> {
        self.last.as_ref()
    }

    /// The recent values of a series.
    pub(crate) fn ring(&self, series: Series) -> &Ring {
        &self.rings[series as usize]
    }

    /// How fast a counter rises, per second.
    pub(crate) fn rate(&self, counter: impl Fn(&Now) -> f64) -> Option<f64> {
        let (before, last, span) = self.both()?;
        let rise = counter(last) - counter(before);
        (rise >= 0.0).then_some(rise / span)
    }

    /// The names of a map with their rates, the fastest first, and among equals the largest total first.
    pub(crate) fn parts<T: Copy + Into<Amount>>(
        &self,
        map: impl Fn(&Now) -> &BTreeMap<String, T>,
    ) -> Vec<Part> {
        let Some(last) = &self.last else {
            return Vec::new();
        };
        let amount = |value: T| -> f64 { value.into().0 };
        let both = self.both();
        let part = |(name, &total): (&String, &T)| {
            let total = amount(total);
            let rate = both.map(|(before, _, span)| {
                let start = map(before).get(name).map_or(0.0, |&value| amount(value));
                (total - start).max(0.0) / span
            });
            Part {
                name: name.clone(),
                rate,
                total,
            }
        };
        let mut parts: Vec<Part> = map(last).iter().map(part).collect();
        let order = |part: &Part| (part.rate.unwrap_or(0.0), part.total);
        parts.sort_by(|a, b| {
            let (a, b) = (order(a), order(b));
            b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
        });
        parts
    }

    /// The upper bound, in microseconds, of the bucket that holds this quantile of what was counted between the two
    /// readings; infinite for the last bucket.
    pub(crate) fn quantile(
        &self,
        share: f64,
        histogram: impl Fn(&Now) -> Option<&BTreeMap<String, u64>>,
    ) -> Option<f64> {
        let (before, last, _) = self.both()?;
        let (before, last) = (histogram(before)?, histogram(last)?);
        let mut buckets: Vec<(f64, u64)> = last
            .iter()
            .filter_map(|(bound, &count)| {
                let start = before.get(bound).copied().unwrap_or(0);
                Some((bound.parse().ok()?, count.saturating_sub(start)))
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let all: u64 = buckets.iter().map(|(_, count)| count).sum();
        let mut left = (all as f64 * share).ceil() as u64;
        for (bound, count) in buckets {
            if count > 0 && left <= count {
                return Some(bound);
            }
            left = left.saturating_sub(count);
        }
        None
    }

    fn both(&self) -> Option<(&Now, &Now, f64)> {
        let (before, last) = (self.before.as_ref()?, self.last.as_ref()?);
        let span = last.uptime_s - before.uptime_s;
        (span > 0.0).then_some((before, last, span))
    }
}

/// A counter's value as a number.
pub(crate) struct Amount(f64);

impl From<u64> for Amount {
    fn from(value: u64) -> Self {
        Self(value as f64)
    }
}

impl From<f64> for Amount {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

/// The sum of a map of counters.
pub(crate) fn sum(map: &BTreeMap<String, u64>) -> f64 {
    map.values().map(|&value| value as f64).sum()
}

/// The values of a series by second. A long series takes several rows.
fn past(rows: &[History], name: &str) -> Vec<Option<f64>> {
    let is_of = |row: &&History| row.step_s == 1 && row.series == name;
    let rows: Vec<&History> = rows.iter().filter(is_of).collect();
    let Some(first) = rows.iter().map(|row| row.first_s as u64).min() else {
        return Vec::new();
    };
    let mut values: Vec<Option<f64>> = Vec::new();
    for row in rows {
        let start = (row.first_s as u64 - first) as usize;
        for (i, value) in row.values.iter().enumerate() {
            let at = start + i;
            // A daemon keeps ten minutes by the second; another program may send anything.
            if at >= 2 * RING_MAX {
                break;
            }
            if values.len() <= at {
                values.resize(at + 1, None);
            }
            values[at] = *value;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(series: &str, first_s: f64, values: &[Option<f64>]) -> History {
        History {
            schema: History::SCHEMA.to_owned(),
            series: series.to_owned(),
            is_rate: true,
            step_s: 1,
            first_s,
            values: values.to_vec(),
        }
    }

    fn reading(uptime_s: f64, octets_in: u64) -> Now {
        let mut now = Now {
            uptime_s,
            ..Now::default()
        };
        now.traffic.octets_in = octets_in;
        now
    }

    #[test]
    fn readings_follow_what_the_daemon_recorded() {
        let mut pace = Pace::default();
        pace.push(reading(1.0, 100));
        pace.push(reading(2.0, 150));
        let rows = [
            history("traffic.octets_in", 102.0, &[Some(7.0)]),
            history("traffic.octets_in", 100.0, &[Some(5.0), None]),
            history("traffic.octets_in.part", 100.0, &[Some(9.0)]),
            history("traffic.octets_in", 1e18, &[Some(1.0)]),
        ];
        pace.seed(&rows);
        let all = [Some(5.0), None, Some(7.0), Some(50.0)];
        assert_eq!(pace.ring(Series::OctetsIn).newest(99), all);
        pace.seed(&rows);
        assert_eq!(pace.ring(Series::OctetsIn).newest(99), all, "only once");
    }

    #[test]
    fn a_ring_keeps_the_newest_values() {
        let mut ring = Ring::default();
        (0..RING_MAX + 5).for_each(|i| ring.push(Some(i as f64)));
        let newest = ring.newest(usize::MAX);
        assert_eq!(newest.len(), RING_MAX);
        assert_eq!((newest[0], newest[RING_MAX - 1]), (Some(5.0), Some(604.0)));
    }

    #[test]
    fn a_quantile_is_that_of_the_last_interval() {
        let mut pace = Pace::default();
        let with = |uptime_s, buckets: [(&str, u64); 3]| {
            let mut now = reading(uptime_s, 0);
            let buckets = buckets
                .into_iter()
                .map(|(name, count)| (name.to_owned(), count));
            now.event_loop.lateness = buckets.collect();
            now
        };
        let late = |pace: &Pace, share| pace.quantile(share, |now| Some(&now.event_loop.lateness));
        pace.push(with(1.0, [("64", 1_000), ("128", 0), ("inf", 0)]));
        assert_eq!(late(&pace, 0.5), None);
        pace.push(with(2.0, [("64", 1_001), ("128", 98), ("inf", 1)]));
        assert_eq!(late(&pace, 0.01), Some(64.0));
        assert_eq!(late(&pace, 0.99), Some(128.0));
        assert_eq!(late(&pace, 1.0), Some(f64::INFINITY));
        pace.push(with(3.0, [("64", 1_001), ("128", 98), ("inf", 1)]));
        assert_eq!(late(&pace, 0.99), None, "nothing was counted");
    }
}
