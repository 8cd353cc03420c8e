//! The round-trip estimate and the time-out (RFC 6298), with Linux's bounds.

/// The smallest difference between the time-out and the smoothed round trip, in nanoseconds. RFC 6298 has a minimum of
/// 1 s for the whole; Linux adds at least 200 ms.
const MARGIN_MIN: u64 = 200_000_000;
const RTO_FIRST: u64 = 1_000_000_000;
const RTO_MAX: u64 = 120_000_000_000;

/// Smoothed round trip, its variation, and the back-off.
#[derive(Debug, Clone, Default)]
pub(super) struct Timer {
    srtt: Option<u64>,
    variation: u64,
    min: Option<u64>,
    backoff: u32,
}

impl Timer {
    /// A round trip was measured (RFC 6298 2.2, 2.3).
    pub(super) fn sample(&mut self, time: u64) {
        self.backoff = 0;
        self.min = Some(self.min.map_or(time, |min| min.min(time)));
        match self.srtt {
            None => {
                self.srtt = Some(time);
                self.variation = time / 2;
            }
            Some(srtt) => {
                let difference = srtt.abs_diff(time);
                self.variation = (3 * self.variation + difference) / 4;
                self.srtt = Some((7 * srtt + time) / 8);
            }
        }
    }

    /// The smoothed round trip; 0 before the first sample.
    pub(super) fn srtt(&self) -> u64 {
        self.srtt.unwrap_or(0)
    }

    /// The shortest round trip; 0 before the first sample.
    pub(super) fn min(&self) -> u64 {
        self.min.unwrap_or(0)
    }

    /// The time-out ran out (RFC 6298 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(10);
    }

    /// The time-out.
    pub(super) fn rto(&self) -> u64 {
        let base = match self.srtt {
            None => RTO_FIRST,
            Some(srtt) => srtt + (4 * self.variation).max(MARGIN_MIN),
        };
        (base << self.backoff).min(RTO_MAX)
    }

    /// Time until the last segment is probed (RFC 8985 7.2).
    pub(super) fn probe(&self, in_flight: u64) -> u64 {
        let srtt = self.srtt();
        let delayed = if in_flight == 1 {
            MARGIN_MIN
        } else {
            2_000_000
        };
        (2 * srtt + delayed).min(self.rto())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_out_follows_rfc_6298() {
        let mut timer = Timer::default();
        assert_eq!(timer.rto(), 1_000_000_000);
        timer.sample(400_000_000);
        // 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
        assert_eq!(timer.rto(), 1_200_000_000);
        timer.sample(400_000_000);
        // 2.3: RTTVAR = 3/4 RTTVAR.
        assert_eq!(timer.rto(), 1_000_000_000);
        timer.back_off();
        timer.back_off();
        assert_eq!(timer.rto(), 4_000_000_000);
        timer.sample(400_000_000);
        assert!(timer.rto() < 1_000_000_000);
    }
}
