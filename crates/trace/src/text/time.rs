//! Local times and durations as text.

use core::fmt;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A time, in nanoseconds since 1970, as local time with microseconds: `Wed Nov 25 09:29:23.422612 1998`.
#[derive(Debug, Clone, Copy)]
pub struct LocalTime<'a> {
    /// Nanoseconds since 1970.
    pub time: i64,
    /// The time zone.
    pub zone: &'a TimeZone,
}

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

impl fmt::Display for LocalTime<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.time == 0 {
            return f.write_str("        <the epoch>       ");
        }
        let timestamp = Timestamp::from_nanosecond(i128::from(self.time)).unwrap_or_default();
        let local = Zoned::new(timestamp, self.zone.clone());
        let day = DAYS[local.weekday().to_sunday_zero_offset() as usize % 7];
        let month = MONTHS[(local.month() as usize + 11) % 12];
        write!(
            f,
            "{day} {month} {:2} {:02}:{:02}:{:02}.{:06} {}",
            local.day(),
            local.hour(),
            local.minute(),
            local.second(),
            local.subsec_nanosecond() / 1000,
            local.year()
        )
    }
}

/// A duration in nanoseconds, as hours, minutes, seconds and microseconds: `0:00:10.438257`. Hours can exceed 24.
#[derive(Debug, Clone, Copy)]
pub struct Elapsed(
    /// Nanoseconds; a negative duration counts as 0.
    pub i64,
);

impl Elapsed {
    /// From one time to another: the difference of the times that [`LocalTime`] shows.
    #[must_use]
    pub fn between(first: i64, last: i64) -> Elapsed {
        let micros = last.div_euclid(1000).saturating_sub(first.div_euclid(1000));
        Elapsed(micros.saturating_mul(1000))
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.max(0).saturating_add(500) / 1000;
        let seconds = micros / 1_000_000;
        write!(
            f,
            "{}:{:02}:{:02}.{:06}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            micros % 1_000_000
        )
    }
}

/// The zone of a `TZ` with a summer time but no rule for it, such as `EST5EDT`, for systems without a database of
/// zones. The rule is that of the United States since 2007, as in the C library. `None` if the text is not of this
/// form.
#[must_use]
pub fn zone_without_rule(tz: &str) -> Option<TimeZone> {
    if tz.contains(',') {
        return None;
    }
    TimeZone::posix(&format!("{tz},M3.2.0,M11.1.0")).ok()
}
