//! Why a connection is as slow as it is: the time of each sender, divided into causes without remainder.
//!
//! [`Why`] is a part of a [`Connection`](crate::Connection) if [`Options::why`](crate::Options::why) is set. For each
//! packet it compares what the analyser knew before the packet with what it knows after it, so that `why` adds nothing
//! to an analysis without it.
//!
//! | file | what it has |
//! |---|---|
//! | `cause` | the causes, and the table of their rules |
//! | `sender` | one sender's time |
//! | `rates` | rates between losses, for policers |
//! | `findings` | what single packets show, such as zero windows and resets |
//! | `kept` | how it is frozen |
//! | `verdict` | the result in one sentence, with its confidence |
//!
//! Left out: UDP and QUIC.

pub mod cause;
pub mod findings;
mod kept;
mod rates;
mod sender;
pub mod verdict;

pub use cause::{CAUSES, Cause, RULES, Rule};
pub use findings::{FINDINGS, Finding, Findings};
pub use sender::{Sender, Share};
pub use verdict::{Confidence, Vantage, Verdict};

use crate::direction::Direction;
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
    tls: Tls,
    /// The last data was of end `a`.
    asked_by_a: bool,
    any_data: bool,
    /// Number of the last packet.
    last_packet: u64,
}

/// What the analyser knew of a direction before a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    retransmitted: u64,
    spurious: u64,
    fast: u64,
    dsacks: u64,
    samples: u64,
    duplicates: u64,
    out_of_order: u64,
}

impl Before {
    /// Of the packet's sender, `this`, and of the other end.
    pub(crate) fn new(this: &Direction, other: &Direction) -> Before {
        Before {
            retransmitted: this.retransmitted_packets,
            spurious: this.spurious_retransmissions,
            fast: this.fast_retransmissions,
            dsacks: this.dsack_packets,
            samples: other.rtt.count,
            duplicates: this.hardware_duplicates,
            out_of_order: this.out_of_order_packets,
        }
    }
}

impl Why {
    /// A packet of end `a` or `b`, after the statistics of both include it.
    pub(crate) fn packet(
        &mut self,
        segment: &Segment,
        from_a: bool,
        before: &Before,
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
        if this.hardware_duplicates > before.duplicates {
            return;
        }
        self.a.pass(now, segment.number);
        self.b.pass(now, segment.number);
        let lags = (self.a.lag, self.b.lag);
        self.findings.packet(segment, from_a, before, (a, b), lags);
        if segment.syn() {
            return;
        }
        if !self.opened {
            self.opened = true;
            self.a.open(now, segment.number, lag(b, a));
            self.b.open(now, segment.number, lag(a, b));
        }
        let owed = self.any_data && self.asked_by_a != from_a;
        let (mine, theirs) = if from_a {
            (&mut self.a, &mut self.b)
        } else {
            (&mut self.b, &mut self.a)
        };
        if segment.payload > 0 || segment.fin() {
            let data = Data {
                top: this.segments.top(),
                end: this.offset(segment.end()) + u64::from(segment.fin()),
                again: this.retransmitted_packets > before.retransmitted,
                spurious: this.spurious_retransmissions > before.spurious,
                fast: this.fast_retransmissions > before.fast,
            };
            // A segment that was overtaken ends no span.
            if this.out_of_order_packets == before.out_of_order && !this.keep_alive_pending {
                mine.data(now, segment, &data, owed);
            }
        }
        if segment.ack() && !segment.rst() {
            let acked = other.segments.acked();
            // Without both SYNs nobody knows the scale, but 0 is 0.
            let known = this.syns > 0 && other.syns > 0 || this.window == 0;
            let window = match known {
                true => u64::from(this.window),
                false => UNKNOWN_WINDOW,
            };
            let ack = Ack {
                at: now,
                acked,
                window_end: acked.saturating_add(window),
                asks: segment.payload > 0,
            };
            let sampled = other.rtt.count > before.samples;
            let round_trip = sampled.then_some(other.rtt_last);
            theirs.acknowledge(now, segment.number, ack, round_trip);
            if this.dsack_packets > before.dsacks {
                theirs.needless();
            }
        }
        if segment.payload > 0 {
            self.follow_tls(segment, from_a);
            (self.any_data, self.asked_by_a) = (true, from_a);
        }
    }

    /// Finds where the start of TLS begins and ends.
    fn follow_tls(&mut self, segment: &Segment, from_a: bool) {
        self.tls = match self.tls {
            Tls::Unknown if segment.lead == TLS_HANDSHAKE => Tls::Started(from_a),
            Tls::Unknown => Tls::Over,
            Tls::Started(client) if client == from_a && segment.lead == TLS_DATA => Tls::Over,
            other => other,
        };
        let on = matches!(self.tls, Tls::Started(_));
        (self.a.tls, self.b.tls) = (on, on);
    }

    /// The connection as it would be if it had ended at `now`: all time until then is divided.
    #[must_use]
    pub fn until(&self, now: i64) -> Why {
        let mut ended = self.clone();
        let owed = |by_a: bool| self.any_data && self.asked_by_a != by_a;
        if !self.opened && self.begun {
            ended.a.open(now, self.last_packet, 0);
            ended.b.open(now, self.last_packet, 0);
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

/// Round trip between the point of capture and the end that sent `this`: that of the other end's packets, as this end
/// acknowledges them. 0 if it is short beside the whole round trip.
fn lag(this: &Direction, other: &Direction) -> i64 {
    // `this` is the data that the end acknowledges.
    let near = match this.rtt_handshake {
        0 => this.rtt.min,
        time => time,
    };
    let far = match other.rtt_handshake {
        0 => other.rtt.min,
        time => time,
    };
    if near < LAG_MIN || near < far / 8 {
        0
    } else {
        near
    }
}

#[cfg(test)]
mod tests;
