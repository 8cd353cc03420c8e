//! Rates: a token bucket in one time stamp, and a table of fixed size for hosts.
//!
//! Implements parts of RFC 2516, section 9.

use base::Instant;

const SECOND_NS: u64 = 1_000_000_000;

/// A bucket that holds one second's worth: the time at which it would be full again (the generic cell rate algorithm).
#[derive(Clone, Copy, Default)]
pub(crate) struct Bucket {
    full_at: u64,
}

impl Bucket {
    /// Takes a token, if there is one; `per_s` 0: always.
    pub(crate) fn take(&mut self, per_s: u32, now: Instant) -> bool {
        if per_s == 0 {
            return true;
        }
        let token_ns = SECOND_NS / u64::from(per_s);
        let now = now.as_nanos();
        let next = self.full_at.max(now).saturating_add(token_ns);
        if next > now.saturating_add(SECOND_NS) {
            return false;
        }
        self.full_at = next;
        true
    }
}

/// Buckets of hosts or of VLANs, in a table whose size never changes. A host that comes to the place of another one takes it over
/// with a full bucket, so no host is limited by another host's packets.
pub(crate) struct HostBuckets {
    /// By the low bits of the host's hash, with its other bits. Allocated at first use.
    places: Vec<(u32, Bucket)>,
}

impl HostBuckets {
    const PLACES: usize = 8_192;

    pub(crate) const fn new() -> Self {
        Self { places: Vec::new() }
    }

    /// Takes a token of the host with this hash.
    pub(crate) fn take(&mut self, host: u64, per_s: u32, now: Instant) -> bool {
        if per_s == 0 {
            return true;
        }
        if self.places.is_empty() {
            self.places.resize(Self::PLACES, (0, Bucket::default()));
        }
        let mark = (host >> 32) as u32;
        let place = &mut self.places[host as usize % Self::PLACES];
        if place.0 != mark {
            *place = (mark, Bucket::default());
        }
        place.1.take(per_s, now)
    }
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use super::*;

    fn taken(per_s: u32, times: impl Iterator<Item = Instant>) -> usize {
        let mut bucket = Bucket::default();
        times.filter(|&now| bucket.take(per_s, now)).count()
    }

    #[test]
    fn a_bucket_gives_a_burst_of_one_second_and_then_its_rate() {
        let start = Instant::from_nanos(5 * SECOND_NS);
        assert_eq!(taken(100, (0..1_000).map(|_| start)), 100);
        // One second more: twice as many.
        let times = (0..1_000).map(|n| start + Duration::from_millis(n));
        let count = taken(100, times);
        assert!((198..=200).contains(&count), "{count}");
        assert_eq!(taken(0, (0..1_000).map(|_| start)), 1_000);
    }

    #[test]
    fn hosts_do_not_take_each_others_tokens() {
        let mut hosts = HostBuckets::new();
        let now = Instant::from_nanos(1);
        let host = |n: u64| n << 32 | n;
        for _ in 0..3 {
            hosts.take(host(1), 3, now);
        }
        assert!(!hosts.take(host(1), 3, now));
        assert!(hosts.take(host(2), 3, now));
        assert!(!hosts.take(host(1), 3, now));
        // The same place, another host.
        assert!(hosts.take(2 << 32 | 1, 3, now));
    }
}
