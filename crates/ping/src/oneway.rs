//! Each direction by itself, from a responder's time stamps and packet count.
//!
//! Delay variation and loss of a direction do not need synchronised clocks. Delays do, so they are estimates: they
//! assume that the shortest delay is equal both ways (half the difference of the two minima is then the clock
//! offset). Clocks that drift apart during an experiment widen the delays.

use serde::{Deserialize, Serialize};

use crate::histogram::rank;
use crate::sample::{OneWay, Sample};
use crate::statistics::Percentiles;

/// The results for both directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directions {
    /// How far the responder's clock is ahead of ours, assuming that the shortest delays up and down are equal: an
    /// estimate.
    pub clock_offset_ns: i64,
    /// From here to the responder.
    pub up: Direction,
    /// From the responder to here.
    pub down: Direction,
    /// Lost packets of unknown direction: after the last reply, or without the responder's count.
    pub lost_somewhere: u64,
}

/// One direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// Packets lost in this direction; `None` if the responder could not count.
    pub lost: Option<u64>,
    /// Mean difference of the delays of successive packets (RFC 3550 6.4.1, not smoothed).
    pub jitter_ns: u64,
    /// The shortest delay, corrected by the estimated clock offset.
    pub min_ns: i64,
    /// Delays above the shortest (RFC 5481 4.2), for packets whose samples are stored.
    pub above_min: Option<Percentiles>,
}

/// Sums of a running stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    replies: u64,
    up: Sums,
    down: Sums,
    /// One more than the highest index answered with a count, and the highest count.
    reached: u64,
    counted: u64,
    /// Whether the responder forgot this stream in between.
    restarted: bool,
    /// Indices of packets that never left, while there are few.
    failed: Vec<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    min_ns: i64,
    last_ns: i64,
    differences_ns: u128,
}

impl Sums {
    fn add(&mut self, delay_ns: i64, first: bool) {
        if first {
            self.min_ns = delay_ns;
        } else {
            self.min_ns = self.min_ns.min(delay_ns);
            self.differences_ns += u128::from(delay_ns.abs_diff(self.last_ns));
        }
        self.last_ns = delay_ns;
    }
}

/// Failures whose index is remembered.
const FAILED_MAX: usize = 1_024;
/// How far a later packet's count may be below an earlier one's. Beyond this the responder has restarted its counter.
const REORDER_MAX: u64 = 1_024;

impl Tally {
    pub(crate) fn add(&mut self, index: u64, up_ns: i64, down_ns: i64, count: u32) {
        let first = self.replies == 0;
        self.replies += 1;
        self.up.add(up_ns, first);
        self.down.add(down_ns, first);
        let count = u64::from(count);
        if count == 0 {
            return;
        }
        if index >= self.reached {
            self.reached = index + 1;
            self.restarted |= count + REORDER_MAX < self.counted;
        }
        self.counted = self.counted.max(count);
    }

    pub(crate) fn fail(&mut self, index: u64) {
        if self.failed.len() < FAILED_MAX {
            self.failed.push(index);
        } else {
            self.restarted = true;
        }
    }

    /// Losses up, down, and of unknown direction.
    fn losses(&self, lost: u64) -> (Option<u64>, Option<u64>, u64) {
        if self.restarted || self.counted == 0 {
            return (None, None, lost);
        }
        let failed = self.failed.partition_point(|&index| index < self.reached) as u64;
        let sent = self.reached.saturating_sub(failed);
        let lost_until_then = sent.saturating_sub(self.replies).min(lost);
        let up = sent.saturating_sub(self.counted).min(lost_until_then);
        (Some(up), Some(lost_until_then - up), lost - lost_until_then)
    }

    /// The results; `None` if no reply came.
    pub(crate) fn finish(
        &self,
        lost: u64,
        samples: &[Sample],
        delays: &[OneWay],
    ) -> Option<Directions> {
        if self.replies == 0 {
            return None;
        }
        let pairs = || {
            let pairs = samples.iter().zip(delays);
            pairs.filter_map(|(sample, delay)| Some((sample.rtt()?, delay)))
        };
        let ups = pairs().map(|(_, delay)| delay.up_ns).collect();
        let downs = pairs().map(|(rtt, delay)| delay.down_ns(rtt)).collect();
        let (lost_up, lost_down, lost_somewhere) = self.losses(lost);
        // In 128 bits: both may be the time since 1970.
        let offset = (i128::from(self.up.min_ns) - i128::from(self.down.min_ns)) / 2;
        let clock_offset_ns = i64::try_from(offset).unwrap_or(0);
        let direction = |sums: &Sums, lost, delays, min_ns| Direction {
            lost,
            jitter_ns: u64::try_from(sums.differences_ns / u128::from((self.replies - 1).max(1)))
                .unwrap_or(u64::MAX),
            min_ns,
            above_min: above(delays, sums.min_ns),
        };
        let up_min = self.up.min_ns.saturating_sub(clock_offset_ns);
        let down_min = self.down.min_ns.saturating_add(clock_offset_ns);
        Some(Directions {
            clock_offset_ns,
            up: direction(&self.up, lost_up, ups, up_min),
            down: direction(&self.down, lost_down, downs, down_min),
            lost_somewhere,
        })
    }
}

fn above(mut delays: Vec<i64>, min_ns: i64) -> Option<Percentiles> {
    let count = delays.len() as u64;
    if count == 0 {
        return None;
    }
    let at = |share| {
        let place = (rank(count, share) - 1) as usize;
        delays.select_nth_unstable(place).1.abs_diff(min_ns)
    };
    Some(Percentiles::new(Percentiles::SHARES.map(at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::State;

    /// 10 ms each way, the responder's clock 1 s ahead, every fourth reply 2 ms later.
    fn tally() -> (Tally, Vec<Sample>, Vec<OneWay>) {
        let (mut tally, mut samples, mut delays) = (Tally::default(), vec![], vec![]);
        for index in 0..100_u64 {
            let extra = if index % 4 == 3 { 2_000_000 } else { 0 };
            let rtt = 20_000_000 + extra as u64;
            let up_ns = 1_010_000_000;
            let delay = OneWay {
                up_ns,
                turn_ns: 0,
                count: index as u32 + 1,
            };
            let mut sample = Sample::new(0);
            sample.set_reply(rtt, 0, 0);
            sample.set_state(State::Replied);
            tally.add(
                index,
                up_ns,
                delay.down_ns(sample.rtt().unwrap()),
                delay.count,
            );
            samples.push(sample);
            delays.push(delay);
        }
        (tally, samples, delays)
    }

    #[test]
    fn the_offset_of_clocks_is_found_and_variation_told_by_direction() {
        let (tally, samples, delays) = tally();
        let found = tally.finish(0, &samples, &delays).unwrap();
        assert_eq!(found.clock_offset_ns, 1_000_000_000);
        assert_eq!(
            (found.up.min_ns, found.down.min_ns),
            (10_000_000, 10_000_000)
        );
        assert_eq!((found.up.jitter_ns, found.up.lost), (0, Some(0)));
        // 25 steps up and 24 down, of 2 ms, in 99 differences.
        assert_eq!(found.down.jitter_ns, 49 * 2_000_000 / 99);
        let above = found.down.above_min.unwrap();
        assert_eq!((above.p50_ns, above.p90_ns), (0, 2_000_000));
    }

    #[test]
    fn losses_are_told_apart_by_the_responder_s_count() {
        let mut tally = Tally::default();
        // Of ten packets 2 and 3 are lost on the way up, 5 on the way down, 8 and 9 somewhere; 6 was never sent.
        tally.fail(6);
        for (index, count) in [(0, 1), (1, 2), (4, 3), (7, 5)] {
            tally.add(index, 0, 0, count);
        }
        assert_eq!(tally.losses(5), (Some(2), Some(1), 2));
        // A reply overtaken on the way back changes nothing.
        tally.add(5, 0, 0, 4);
        assert_eq!(tally.losses(4), (Some(2), Some(0), 2));
    }

    #[test]
    fn a_responder_that_does_not_count_or_restarts_is_not_believed() {
        let mut tally = Tally::default();
        tally.add(0, 0, 0, 0);
        assert_eq!(tally.losses(3), (None, None, 3));
        tally.add(5_000, 0, 0, 5_000);
        tally.add(5_001, 0, 0, 1);
        assert_eq!(tally.losses(3), (None, None, 3));
    }
}
