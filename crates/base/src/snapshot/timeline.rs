//! Times that outlive the process that made them.

use crate::time::Instant;

/// [`Instant::ZERO`], which often stands for none.
const NONE: u64 = 0;

/// A moment that is never: [`Instant::FAR_FUTURE`].
const NEVER: u64 = 1;

/// The first other moment.
const FIRST: u64 = 2;

const MS: i128 = 1_000_000;

/// Translates between a process's clock and milliseconds on a timeline that goes on when the process ends.
///
/// ```
/// use base::{Duration, Instant, snapshot::Timeline};
///
/// // A process that starts 10 s after another one sees the same moment 10 s earlier on its own clock.
/// let (first, second) = (Timeline::new(0), Timeline::new(10_000_000_000));
/// let moment = Instant::ZERO + Duration::from_secs(12);
/// assert_eq!(second.at(first.of(moment)), Instant::ZERO + Duration::from_secs(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timeline {
    shift_ms: i128,
}

impl Timeline {
    /// The process's clock reads 0 when the timeline reads `shift_ns`, rounded to milliseconds.
    #[must_use]
    pub const fn new(shift_ns: i128) -> Timeline {
        Timeline {
            shift_ms: shift_ns.div_euclid(MS),
        }
    }

    /// The number of a moment. Moments before the start of the timeline count as its start.
    #[must_use]
    pub fn of(self, moment: Instant) -> u64 {
        match moment {
            Instant::ZERO => return NONE,
            Instant::FAR_FUTURE => return NEVER,
            _ => {}
        }
        let ms = i128::from(moment.as_nanos()).div_euclid(MS) + self.shift_ms;
        u64::try_from(ms.max(0))
            .unwrap_or(u64::MAX)
            .saturating_add(FIRST)
    }

    /// The moment of a number. Moments before the process's clock began count as its first nanosecond.
    #[must_use]
    pub fn at(self, number: u64) -> Instant {
        match number {
            NONE => return Instant::ZERO,
            NEVER => return Instant::FAR_FUTURE,
            _ => {}
        }
        let ms = i128::from(number.saturating_sub(FIRST)) - self.shift_ms;
        let ns = ms.saturating_mul(MS).clamp(1, i128::from(u64::MAX) - 1);
        Instant::from_nanos(ns as u64)
    }
}
