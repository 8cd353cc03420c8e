//! The causes in an interval of a connection that goes on: what has been added since an earlier moment.
//!
//! A later packet may show another cause for time that has passed: a silence whose cause was unknown turns out to be a
//! time-out. That time is in the interval before already, and is not added to this one again.

use core::fmt;

use super::Why;
use super::cause::{CAUSES, Cause};
use super::verdict::{detail, main_of};
use crate::connection::Connection;
use crate::direction::Direction;

/// A sender whose data is not acknowledged for longer than this is given up (RFC 6298 2.4 lets a time-out be limited to
/// no less than a minute; Linux limits it to two).
const SILENCE_MAX: i64 = 120_000_000_000;

/// A connection's times up to a moment: what to keep of it until the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The moment, in nanoseconds since 1970.
    pub until: i64,
    times: [[i64; CAUSES]; 2],
    bytes: [u64; 2],
    retransmitted: [u64; 2],
}

/// A connection at a moment.
#[derive(Debug)]
pub struct Moment<'c> {
    connection: &'c Connection,
    why: Why,
    mark: Mark,
    now: i64,
}

/// One direction of a connection in an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Its sender is end `a`.
    pub from_a: bool,
    /// The part of the interval in which the connection existed, in nanoseconds.
    pub span: i64,
    /// Time of each cause, by its number. The sum is `span`.
    pub times: [i64; CAUSES],
    /// New bytes of data.
    pub bytes: u64,
    /// Retransmitted packets.
    pub retransmitted: u64,
    /// The main cause.
    pub cause: Cause,
    /// What makes it plausible.
    pub detail: Option<String>,
    /// Data is in flight, and no packet was captured in the whole interval.
    pub is_silent: bool,
}

impl<'c> Moment<'c> {
    /// The connection as it is at `now`, after its packets until then; `None` without [`Connection::why`], or if neither
    /// end sent data.
    #[must_use]
    pub fn new(connection: &'c Connection, now: i64) -> Option<Moment<'c>> {
        let why = connection.why.as_ref()?;
        let (a, b) = (&connection.a, &connection.b);
        if a.data_bytes + b.data_bytes == 0 {
            return None;
        }
        // A closed connection waits for nothing.
        let until = match connection.is_closed() {
            true => connection.last_time,
            false => now.max(connection.last_time),
        };
        let why = why.until(until);
        let times = |sender: &super::Sender| sender.shares().map(|share| share.time);
        let mark = Mark {
            until,
            times: [times(&why.a), times(&why.b)],
            bytes: [a.unique_bytes, b.unique_bytes],
            retransmitted: [a.retransmitted_packets, b.retransmitted_packets],
        };
        Some(Moment {
            connection,
            why,
            mark,
            now,
        })
    }

    /// What to keep until the next moment.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Whether the connection may wait for something although no packet shows it: data is in flight.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let silence = self.now.saturating_sub(self.connection.last_time);
        !self.connection.is_closed() && !self.connection.is_quiet() && silence < SILENCE_MAX
    }

    /// The direction from one end in the interval that began at `from`. `before` is of an earlier moment; the times and
    /// bytes of the interval are what was added since. `None` without one, unless the connection began in the interval; if the
    /// end never sent data; and if the connection ended before the interval.
    #[must_use]
    pub fn since(&self, before: Option<&Mark>, from: i64, from_a: bool) -> Option<Interval> {
        let (this, other, sender) = match from_a {
            true => (&self.connection.a, &self.connection.b, &self.why.a),
            false => (&self.connection.b, &self.connection.a, &self.why.b),
        };
        let span = self.mark.until - from.max(self.connection.first_time);
        let is_new = self.connection.first_time >= from;
        if this.data_bytes == 0 || span <= 0 || before.is_none() && !is_new {
            return None;
        }
        let end = usize::from(!from_a);
        let old = before.map_or([0; CAUSES], |mark| mark.times[end]);
        let mut times: [i64; CAUSES] =
            core::array::from_fn(|cause| self.mark.times[end][cause].saturating_sub(old[cause]));
        fit(&mut times, span);
        let cause = main_of(&times, span);
        let growth = |now: u64, old: Option<u64>| now.saturating_sub(old.unwrap_or(0));
        Some(Interval {
            from_a,
            span,
            times,
            bytes: growth(self.mark.bytes[end], before.map(|mark| mark.bytes[end])),
            retransmitted: growth(
                self.mark.retransmitted[end],
                before.map(|mark| mark.retransmitted[end]),
            ),
            cause,
            detail: detail(cause, sender, this, other),
            is_silent: in_flight(this) && self.connection.last_time < from,
        })
    }
}

fn in_flight(direction: &Direction) -> bool {
    direction.segments.acked() < direction.segments.top()
}

/// Makes the times not negative, and their sum `span`.
///
/// There is more time than the interval has if an earlier silence has got another cause, or if the connection was not
/// looked at for a while because nothing was in flight. The second is idle time or the application's in most cases, so
/// idle time gives way first, then the causes with the most time.
fn fit(times: &mut [i64; CAUSES], span: i64) {
    for time in times.iter_mut() {
        *time = (*time).max(0);
    }
    let mut excess = times.iter().sum::<i64>().saturating_sub(span).max(0);
    let mut take = |time: &mut i64| {
        let part = (*time).min(excess);
        *time -= part;
        excess -= part;
    };
    take(&mut times[Cause::Idle as usize]);
    let mut order: [usize; CAUSES] = core::array::from_fn(|cause| cause);
    order.sort_by_key(|&cause| core::cmp::Reverse(times[cause]));
    for cause in order {
        take(&mut times[cause]);
    }
    let missing = span - times.iter().sum::<i64>();
    times[Cause::Unknown as usize] += missing.max(0);
}

impl Interval {
    /// The part of the main cause, from 0 to 1.
    #[must_use]
    pub fn part(&self) -> f64 {
        self.times[self.cause as usize] as f64 / self.span.max(1) as f64
    }

    /// New data, in bits per second.
    #[must_use]
    pub fn bits_per_second(&self) -> f64 {
        self.bytes as f64 * 8e9 / self.span.max(1) as f64
    }

    /// Time that something else than the ends' own work took.
    #[must_use]
    pub fn lost(&self) -> i64 {
        let silent = self.is_silent;
        let lost =
            Cause::all().filter(|&cause| cause.is_limit() || silent && cause == Cause::Unknown);
        lost.map(|cause| self.times[cause as usize]).sum()
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.span as f64 / 1e9;
        if self.is_silent {
            return write!(f, "no packet for {seconds:.1} s, with data in flight");
        }
        let phrase = self.cause.rule().phrase;
        write!(f, "{:.0} % of {seconds:.1} s {phrase}", self.part() * 100.0)?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}
