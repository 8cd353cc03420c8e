//! Rates of subscribers' traffic, for lists of the fastest: each list reads all counters and keeps them for the next one.

use crate::served::SubscriberView;
use base::{Duration, Instant};

/// The least span of a rate. Within it, a further request gets the rates of the same span.
const SPAN_MIN: Duration = Duration::from_secs(1);

/// What the previous list by rate read of each subscriber: 32 bytes for each place in the table of subscribers. Nothing
/// before the first such list.
#[derive(Debug, Default)]
pub(super) struct Rates(Vec<Reading>);

#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    /// The subscriber's key.
    token: u64,
    octets: u64,
    at: Instant,
    /// Octets per second before that.
    rate: u64,
}

impl Rates {
    /// The subscriber's rate in octets per second. The first reading has that since the session came up.
    pub(super) fn read(&mut self, view: &SubscriberView, now: Instant) -> u64 {
        let octets = view
            .traffic
            .octets_in
            .saturating_add(view.traffic.octets_out);
        self.see(view.key.to_token(), octets, view.created, now)
    }

    fn see(&mut self, token: u64, octets: u64, created: Instant, now: Instant) -> u64 {
        // The lower half of a key is the place in the table.
        let place = (token & u64::from(u32::MAX)) as usize;
        if self.0.len() <= place {
            self.0.resize(place + 1, Reading::default());
        }
        let known = &mut self.0[place];
        let is_known = known.token == token && known.at >= created && known.at > Instant::ZERO;
        let (before, since) = match is_known {
            true if now.since(known.at) < SPAN_MIN => return known.rate,
            true => (known.octets, known.at),
            false => (0, created),
        };
        let span = now.since(since).as_nanos().max(1);
        let rate = u128::from(octets.saturating_sub(before)) * 1_000_000_000 / u128::from(span);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        *known = Reading {
            token,
            octets,
            at: now,
            rate,
        };
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_since_the_previous_reading() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut rates = Rates::default();
        let token = |generation: u64| generation << 32 | 5;
        // 10,000 octets in the first 10 s of the session, then 9,000 in 3 s.
        assert_eq!(rates.see(token(1), 10_000, at(500), at(10_500)), 1_000);
        assert_eq!(rates.see(token(1), 19_000, at(500), at(13_500)), 3_000);
        assert_eq!(
            rates.see(token(1), 90_000, at(500), at(13_900)),
            3_000,
            "another client asks for the same span"
        );
        assert_eq!(rates.see(token(1), 19_000, at(500), at(14_500)), 0);
        // Another subscriber in the same place.
        assert_eq!(rates.see(token(2), 4_000, at(14_500), at(16_500)), 2_000);
        assert_eq!(rates.0.len(), 6);
    }
}
