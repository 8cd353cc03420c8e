//! Time stamps (RFC 7323 3): how fast an end's clock ticks, and round trips from a time stamp to its echo.
//!
//! The echo of a time stamp may be late, because a delayed ACK echoes the oldest one (RFC 7323 4.3), so these round trips
//! include the receiver's delay. A time stamp's first packet counts. The receiver may be behind the point of capture:
//! the round trip is that between the point of capture and the receiver.

use std::collections::VecDeque;

use crate::rtt::Times;
use crate::segment::Segment;

/// Time stamps whose echo is awaited. Beyond it, the oldest is forgotten.
pub(super) const AWAITED_MAX: usize = 64;

/// The shortest time over which a clock's rate is estimated.
const SPAN_MIN: i64 = 1_000_000_000;

/// A difference that is no step forward: the value is older, or the end has restarted.
const FORWARD_MAX: u32 = 1 << 31;

/// The time stamps that one end sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stamps {
    /// Value and time of the first one.
    pub(super) first: Option<(u32, i64)>,
    /// Value and time of the latest.
    pub(super) last: (u32, i64),
    /// By how much the values have grown.
    pub(super) ticks: u64,
    /// Values and when each was first seen, in order.
    pub(super) awaited: VecDeque<(u32, i64)>,
    /// Round trips from the first packet with a time stamp to the first packet of the other end that echoes it.
    pub round_trips: Times,
}

impl Stamps {
    /// The last value that it sent.
    #[must_use]
    pub fn value(&self) -> Option<u32> {
        self.first.map(|_| self.last.0)
    }

    /// Ticks of its clock in a second; `None` unless its packets span a second.
    #[must_use]
    pub fn rate_hz(&self) -> Option<f64> {
        let (_, first) = self.first?;
        let span = self.last.1.saturating_sub(first);
        let enough = span >= SPAN_MIN && self.ticks > 0;
        enough.then(|| self.ticks as f64 * 1e9 / span as f64)
    }

    /// It sent a packet.
    pub(super) fn sent(&mut self, segment: &Segment) {
        if !segment.options.timestamps || segment.rst() {
            return;
        }
        let value = segment.options.stamp().0;
        if self.first.is_none() {
            self.first = Some((value, segment.time));
            self.last = (value, segment.time);
            self.awaited.push_back(self.last);
            return;
        }
        let step = value.wrapping_sub(self.last.0);
        if step == 0 || step >= FORWARD_MAX {
            return;
        }
        self.ticks += u64::from(step);
        self.last = (value, segment.time);
        if self.awaited.len() >= AWAITED_MAX {
            self.awaited.pop_front();
        }
        self.awaited.push_back(self.last);
    }

    /// The other end sent a packet, which may echo one.
    pub(super) fn echoed(&mut self, segment: &Segment) {
        if !segment.options.timestamps || !segment.ack() {
            return;
        }
        let echo = segment.options.stamp().1;
        let Some(at) = self.awaited.iter().position(|&(value, _)| value == echo) else {
            return;
        };
        let (_, sent) = self.awaited[at];
        self.awaited.drain(..=at);
        self.round_trips
            .add(segment.time.saturating_sub(sent).max(0));
    }
}
