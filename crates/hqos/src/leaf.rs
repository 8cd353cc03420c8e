//! A subscriber's counters, and how long its packets waited.

use base::Duration;

/// Buckets of delays: two for each doubling from 64 us to 67 s.
const BUCKETS: usize = 42;
/// 2^16 ns: about 65 us.
const FIRST_SHIFT: u32 = 16;

/// Packets of a subscriber in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets that passed without waiting.
    pub passed: u64,
    /// Packets that waited and were sent.
    pub queued: u64,
    /// Bytes on the line of the packets that passed or were sent.
    pub octets: u64,
    /// Packets dropped, for any reason.
    pub dropped: u64,
    /// Packets marked "congestion experienced" instead of dropped.
    pub marked: u64,
}

/// What a packet of a subscriber reads only when it leaves, or never.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
pub(crate) struct Leaf {
    pub(crate) counts: Counts,
    pub(crate) delays: Delays,
}

const _: () = assert!(size_of::<Leaf>() == 128);

impl Leaf {
    /// Reads both cache lines.
    #[inline]
    pub(crate) fn touch(&self) -> u32 {
        self.counts.queued as u32 ^ u32::from(self.delays.0[BUCKETS - 1])
    }
}

/// How long packets waited: a histogram of the last 65,535 to 131,070 packets that waited, roughly.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delays([u16; BUCKETS]);

impl Default for Delays {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Delays {
    #[inline]
    pub(crate) fn add(&mut self, delay: Duration) {
        let bucket = &mut self.0[bucket(delay.as_nanos())];
        *bucket += 1;
        if *bucket == u16::MAX {
            self.0.iter_mut().for_each(|count| *count /= 2);
        }
    }

    /// The delay that `part` of the packets did not exceed: the upper end of its bucket, at most 1.5 times the true
    /// one. `None` if no packet waited.
    pub(crate) fn percentile(&self, part: f64) -> Option<Duration> {
        let total: u64 = self.0.iter().map(|&count| u64::from(count)).sum();
        let wanted = ((total as f64 * part).ceil() as u64).max(1);
        let mut sum = 0;
        let found = self.0.iter().position(|&count| {
            sum += u64::from(count);
            sum >= wanted
        });
        found.map(|index| Duration::from_nanos(end(index)))
    }
}

/// The bucket of a delay: the lower half of a doubling, or the upper.
fn bucket(ns: u64) -> usize {
    let scaled = ns >> (FIRST_SHIFT - 1);
    if scaled < 2 {
        return 0;
    }
    let doubling = scaled.ilog2();
    let half = scaled >> (doubling - 1) & 1;
    (2 * doubling as usize - 1 + half as usize).min(BUCKETS - 1)
}

/// Where a bucket ends.
fn end(index: usize) -> u64 {
    let doubling = index.div_ceil(2) as u32;
    let start = 1_u64 << (FIRST_SHIFT - 1 + doubling);
    match index {
        0 => start << 1,
        _ if index % 2 == 1 => start + start / 2,
        _ => start << 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_below_the_end_of_its_bucket_and_not_far_below() {
        let mut ns = 70_000_u64;
        while ns < 60_000_000_000 {
            let end = end(bucket(ns));
            assert!(ns < end && end <= ns + ns / 2 + 65_536, "{ns} {end}");
            assert!(bucket(end) == bucket(ns) + 1, "{ns} {end}");
            ns += ns / 7;
        }
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_packets_and_full_buckets_are_halved() {
        let mut delays = Delays::default();
        assert_eq!(delays.percentile(0.5), None);
        for _ in 0..200_000 {
            delays.add(Duration::from_millis(1));
        }
        (0..5_000).for_each(|_| delays.add(Duration::from_millis(100)));
        let ms = |part| delays.percentile(part).unwrap().as_nanos() as f64 / 1e6;
        assert!((1.0..1.6).contains(&ms(0.5)));
        assert!((100.0..150.1).contains(&ms(0.99)));
    }
}
