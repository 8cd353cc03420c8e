//! Events as log records: IPFIX (RFC 8158, RFC 7011) and syslog (RFC 5424). Bytes and texts only; the caller sends them.
//!
//! A record names no destination (RFC 6888 REQ-12). Times of events are of the caller's clock; [`Clock`] makes dates of them.

mod ipfix;
mod syslog;

use base::Instant;

pub use ipfix::{Exporter, TEMPLATES};
pub use syslog::line;

/// The relation of the caller's clock to the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Milliseconds since 1970, UTC, at the clock's origin.
    pub origin_ms: u64,
}

impl Clock {
    /// Milliseconds since 1970.
    #[must_use]
    pub fn millis(&self, at: Instant) -> u64 {
        self.origin_ms + at.since(Instant::ZERO).as_millis()
    }
}

/// Year, month and day of a day since 1970 in the Gregorian calendar.
#[must_use]
pub(crate) fn date(day: u64) -> (u64, u64, u64) {
    // Counted from 1 March of year 0, so that a leap day is a year's last day.
    let day = day + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}
