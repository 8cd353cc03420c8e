//! Why a connection is as slow as it is: the time of each sender, divided into causes without remainder.
//!
//! [`Why`] is a part of a [`Connection`](crate::Connection) if [`Options::why`](crate::Options::why) is set. It sees each
//! packet after the statistics include it.
//!
//! | file | what it has |
//! |---|---|
//! | `cause` | the causes, and the table of their rules |
//! | `sender` | one sender's time |
//! | `repair` | losses, and the time of their repair |
//! | `names` | gaps of IPv4 identifications: packets lost before the point of capture |
//! | `recent` | extremes of the last round trips |
//! | `rates` | rates between losses, for policers |
//! | `findings` | what single packets show, such as zero windows and resets |
//! | `interval` | the causes in an interval of a connection that goes on |
//! | `kept` | how it is frozen |
//! | `verdict` | the result in one sentence, with its confidence |
//! | `report` | the result for a connection, for all that show it |
//! | `columns` | the same as a table |
//!
//! UDP flows have a report of their own: [`crate::udp::report`].

pub mod cause;
pub mod columns;
pub mod findings;
mod interval;
mod kept;
mod names;
mod rates;
mod recent;
mod repair;
pub mod report;
mod sender;
pub mod verdict;

pub use cause::{CAUSES, Cause, RULES, Rule};
pub use findings::{FINDINGS, Finding, Findings};
pub use interval::{Interval, Mark, Moment};
pub use report::{Report, Side};
pub use sender::{Sender, Share};
pub use verdict::{Confidence, Vantage, Verdict};

use crate::direction::{Direction, Events};
use crate::segment::Segment;
use sender::{Ack, Data};

/// First octet of a TLS record with a handshake message, and of one with application data (RFC 8446 5.1).
const TLS_HANDSHAKE: u8 = 22;
const TLS_DATA: u8 = 23;

/// Larger than any window.
const UNKNOWN_WINDOW: u64 = 1 << 40;

/// Shorter round trips to the sender make no difference.
const LAG_MIN: i64 = 500_000;

/// Where the start of TLS is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Tls {
    /// No data yet.
    #[default]
    Unknown,
    /// The client is end `a` if true.
    Started(bool),
    /// Over, or there is none.
    Over,
}

/// The time of both senders of a connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Why {
    /// End `a`'s time.
    pub a: Sender,
    /// End `b`'s time.
    pub b: Sender,
    /// What single packets show.
    pub findings: Findings,
    begun: bool,
    opened: bool,
    /// Both ends have sent FIN, and all data is acknowledged: all later time is idle.
    over: bool,
    tls: Tls,
    /// The last data was of end `a`.
    asked_by_a: bool,
    any_data: bool,
    /// Number of the last packet.
    last_packet: u64,
}

impl Why {
    /// A packet of end `a` or `b`, after the statistics of both include it. Before it, the other end's data had
    /// `samples` round trips.
    pub(crate) fn packet(
        &mut self,
        segment: &Segment,
        from_a: bool,
        samples: u64,
        (a, b): (&Direction, &Direction),
    ) {
        let (this, other) = if from_a { (a, b) } else { (b, a) };
        let now = segment.time;
        self.last_packet = segment.number;
        if !self.begun {
            self.begun = true;
            self.a.begin(now);
            self.b.begin(now);
        }
        if this.events.has(Events::COPY) {
            return;
        }
        let lags = (self.a.lag, self.b.lag);
        self.findings.packet(segment, from_a, (a, b), lags);
        if segment.syn() {
            return;
        }
        if self.over {
            self.a.settle(now, Cause::Idle, segment.number);
            self.b.settle(now, Cause::Idle, segment.number);
            return;
        }
        if !self.opened {
            self.open(segment, (a, b));
        }
        let owed = self.any_data && self.asked_by_a != from_a;
        let (mine, theirs) = if from_a {
            (&mut self.a, &mut self.b)
        } else {
            (&mut self.b, &mut self.a)
        };
        send(mine, this, segment, owed);
        if segment.ack() && !segment.rst() {
            acknowledge(theirs, (this, other), segment, samples);
        }
        if segment.payload > 0 {
            if self.tls != Tls::Over {
                self.follow_tls(segment, from_a);
            }
            (self.any_data, self.asked_by_a) = (true, from_a);
        }
        if self.a.closed && self.b.closed && is_acknowledged(a) && is_acknowledged(b) {
            self.end(now);
        }
    }

    /// The handshake is over.
    #[cold]
    fn open(&mut self, segment: &Segment, (a, b): (&Direction, &Direction)) {
        self.opened = true;
        let unit = unit(a, b);
        let (lag_a, near_a) = (lag(b, a), near(a).unwrap_or(0));
        let (lag_b, near_b) = (lag(a, b), near(b).unwrap_or(0));
        self.a
            .open(segment.time, segment.number, (lag_a, near_a), unit);
        self.b
            .open(segment.time, segment.number, (lag_b, near_b), unit);
    }

    /// Both ends have sent all they had: what was needed to divide their time is not needed any more.
    #[cold]
    fn end(&mut self, now: i64) {
        self.over = true;
        let owed = |by_a: bool| self.any_data && self.asked_by_a != by_a;
        let (owed_by_a, owed_by_b) = (owed(true), owed(false));
        self.a.end(now, self.last_packet, owed_by_a);
        self.b.end(now, self.last_packet, owed_by_b);
    }

    /// Finds where the start of TLS begins and ends.
    fn follow_tls(&mut self, segment: &Segment, from_a: bool) {
        self.tls = match self.tls {
            Tls::Unknown if segment.lead == TLS_HANDSHAKE => Tls::Started(from_a),
            Tls::Unknown => Tls::Over,
            Tls::Started(client) if client == from_a && segment.lead == TLS_DATA => Tls::Over,
            other => other,
        };
        if matches!(self.tls, Tls::Started(_)) {
            (self.a.tls, self.b.tls) = (true, true);
        } else {
            self.a.end_tls(segment.time, segment.number);
            self.b.end_tls(segment.time, segment.number);
        }
    }

    /// It is as new, with the room that its lists have.
    pub(crate) fn reset(&mut self) {
        let Why {
            a,
            b,
            findings,
            begun,
            opened,
            over,
            tls,
            asked_by_a,
            any_data,
            last_packet,
        } = self;
        a.reset();
        b.reset();
        findings.reset();
        (*begun, *opened, *over) = (false, false, false);
        (*tls, *asked_by_a, *any_data, *last_packet) = (Tls::Unknown, false, false, 0);
    }

    /// The connection as it would be if it had ended at `now`: all time until then is divided.
    #[must_use]
    pub fn until(&self, now: i64) -> Why {
        let mut ended = self.clone();
        let owed = |by_a: bool| self.any_data && self.asked_by_a != by_a;
        if !self.opened && self.begun {
            ended.a.open(now, self.last_packet, (None, 0), 0);
            ended.b.open(now, self.last_packet, (None, 0), 0);
        }
        if self.over {
            ended.a.settle(now, Cause::Idle, self.last_packet);
            ended.b.settle(now, Cause::Idle, self.last_packet);
            return ended;
        }
        ended.a.finish(now, self.last_packet, owed(true));
        ended.b.finish(now, self.last_packet, owed(false));
        ended
    }
}

impl crate::Connection {
    /// What its packets show, as if it had ended with its last packet; `None` without [`Options::why`](crate::Options::why).
    #[must_use]
    pub fn findings(&self) -> Option<Findings> {
        let mut findings = self.why.as_ref()?.findings.clone();
        findings.finish(&self.a, &self.b);
        Some(findings)
    }
}

/// All data of an end is acknowledged.
fn is_acknowledged(this: &Direction) -> bool {
    this.segments.acked() >= this.segments.top()
}

/// A packet's part in its sender's time.
#[inline]
fn send(mine: &mut Sender, this: &Direction, segment: &Segment, owed: bool) {
    if segment.payload > 0 || segment.fin() {
        let top = this.segments.top();
        let end = match top as u32 == segment.end() && top > 0 {
            true => top,
            false => this.offset(segment.end()),
        };
        let data = Data {
            top,
            end: end + u64::from(segment.fin()),
            again: this.events.has(Events::AGAIN),
            spurious: this.events.has(Events::SPURIOUS),
            fast: this.events.has(Events::FAST),
            owed,
            follows: end.wrapping_sub(u64::from(segment.payload)) == mine.top,
        };
        // A segment that was overtaken ends no span.
        let is_late = this.events.has(Events::LATE);
        if !this.keep_alive_pending && (!is_late || mine.is_newer(segment)) {
            let fast = data.fast || is_late;
            let data = Data {
                again: data.again || is_late,
                fast,
                ..data
            };
            mine.data(segment.time, segment, &data);
        }
    } else {
        mine.follow_names(segment);
        if !segment.rst() {
            mine.show(this.offset(segment.sequence));
        }
    }
}

/// A packet's part in the other end's time: what it acknowledges, and the window.
#[inline]
fn acknowledge(
    theirs: &mut Sender,
    (this, other): (&Direction, &Direction),
    segment: &Segment,
    samples: u64,
) {
    let acked = other.segments.acked();
    // Without both SYNs nobody knows the scale, but 0 is 0.
    let known = this.syns > 0 && other.syns > 0 || this.window == 0;
    let window = match known {
        true => u64::from(this.window),
        false => UNKNOWN_WINDOW,
    };
    let window_end = acked.saturating_add(window);
    if other.rtt.count > samples {
        theirs.sample(segment.time, other.rtt_last);
    }
    if theirs.is_news(acked, window_end) {
        let ack = Ack {
            at: segment.time,
            acked,
            window_end,
            asks: segment.payload > 0,
            stamped: segment.options.timestamps,
            stamp: segment.options.stamp().0,
        };
        theirs.acknowledge(segment.number, ack);
    }
    if this.events.has(Events::DSACK) {
        theirs.needless(segment.number);
    }
}

/// Round trip of a direction's SYN, or its data's shortest one, from the point of capture to the other end; `None` if
/// there is no sample.
fn near(this: &Direction) -> Option<i64> {
    let syn_acked = this.syn.is_some() && this.segments.acked() > 0;
    match (this.rtt_handshake, this.rtt.count) {
        (0, 0) => syn_acked.then_some(0),
        (0, _) => Some(this.rtt.min),
        (time, _) => Some(time),
    }
}

/// Round trip between the point of capture and the end that acknowledges `this`. 0 if it is short beside that of
/// `other`; `None` if it is unknown.
fn lag(this: &Direction, other: &Direction) -> Option<i64> {
    let near = near(this)?;
    let far = self::near(other).unwrap_or(0);
    Some(if near < LAG_MIN || near < far / 8 {
        0
    } else {
        near
    })
}

/// Data of a full segment, by the options of both SYNs (RFC 9293 3.7.1, RFC 7323 3.2); 0 if they are unknown.
fn unit(a: &Direction, b: &Direction) -> u32 {
    let stamps = match a.asked_timestamps && b.asked_timestamps {
        true => 12,
        false => 0,
    };
    u32::from(a.mss.min(b.mss)).saturating_sub(stamps)
}

#[cfg(test)]
mod tests;
