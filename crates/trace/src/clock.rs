//! The capture's own clock, which idle connections time out by.

/// The largest step that a single packet may make, in nanoseconds: ten minutes, less than any time-out.
const LEAP: i64 = 600_000_000_000;

/// The latest time stamp so far, of packets of any kind.
///
/// The time stamps of real captures sometimes run backwards, and single packets may have the time of another year.
/// Therefore this clock never goes back, and leaps ahead only if two packets in a row do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    now: Option<i64>,
    /// The time that the last packet would have made it leap to.
    ahead: Option<i64>,
}

impl Clock {
    /// The time; [`i64::MIN`] before the first packet.
    #[must_use]
    #[inline]
    pub fn now(&self) -> i64 {
        self.now.unwrap_or(i64::MIN)
    }

    /// Notes the time of the next packet in the order of the capture.
    #[inline]
    pub fn tick(&mut self, time: i64) {
        let now = self.now.unwrap_or(time);
        if time.saturating_sub(now) <= LEAP {
            self.now = Some(now.max(time));
            self.ahead = None;
        } else {
            self.leap(now, time);
        }
    }

    /// Whether the last packet would have made it leap, so that the next one decides.
    pub(crate) fn is_leaping(&self) -> bool {
        self.ahead.is_some()
    }

    /// Whether a packet of that time makes it neither leap nor wait for the next one.
    pub(crate) fn reaches(&self, time: i64) -> bool {
        time.saturating_sub(self.now.unwrap_or(time)) <= LEAP
    }

    /// Its time, and the time it may leap to.
    pub(crate) fn to_parts(self) -> (Option<i64>, Option<i64>) {
        (self.now, self.ahead)
    }

    /// The clock of [`Clock::to_parts`].
    pub(crate) fn from_parts((now, ahead): (Option<i64>, Option<i64>)) -> Clock {
        Clock { now, ahead }
    }

    #[cold]
    fn leap(&mut self, now: i64, time: i64) {
        if let Some(ahead) = self.ahead
            && ahead.saturating_sub(time) <= LEAP
        {
            // Two distant times only show that it is at least as late as the earlier one.
            let near = time.saturating_sub(ahead) <= LEAP;
            self.now = Some(now.max(if near { ahead.max(time) } else { ahead }));
        }
        let now = self.now.unwrap_or(time);
        self.ahead = (time.saturating_sub(now) > LEAP).then_some(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(times: &[i64]) -> i64 {
        let mut clock = Clock::default();
        for time in times {
            clock.tick(time * 60_000_000_000);
        }
        clock.now() / 60_000_000_000
    }

    #[test]
    fn it_does_not_go_back() {
        assert_eq!(after(&[5, 3, 4]), 5);
    }

    #[test]
    fn one_packet_from_another_year_does_not_move_it() {
        assert_eq!(after(&[5, 5_000_000, 6, 7]), 7);
    }

    #[test]
    fn after_a_long_silence_the_second_packet_moves_it() {
        assert_eq!(after(&[5, 500]), 5);
        assert_eq!(after(&[5, 500, 501]), 501);
        assert_eq!(after(&[5, 500, 499]), 500);
    }

    #[test]
    fn where_all_packets_are_far_apart_it_is_one_packet_late() {
        assert_eq!(after(&[0, 100, 200, 300]), 200);
    }
}
