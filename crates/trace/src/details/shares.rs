//! Shares of a sender's time, as integrals: how long it had data in flight, and how much of that it was limited by the
//! receiver's window or recovering from a loss.
//!
//! The names are those of Linux's tcp_info. The kernel counts a sender as limited by the window only if it has more to
//! send; the capture does not know that. A time between two packets counts by the state after the first of them.

use crate::direction::Direction;

/// Shares of one sender's time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares {
    /// Time of the last packet of the connection.
    pub(super) last: Option<i64>,
    /// Data was in flight after it.
    pub(super) is_busy: bool,
    /// No further full-sized segment fitted into the window.
    pub(super) is_limited: bool,
    /// Lost data was not acknowledged.
    pub(super) is_recovering: bool,
    /// Offset up to which data must be acknowledged to end the recovery.
    pub(super) recover: u64,
    /// Retransmitted packets so far.
    pub(super) retransmitted: u64,
    /// With data in flight (tcpi_busy_time).
    pub busy: i64,
    /// Of this, with a window that left no room for a full-sized segment (tcpi_rwnd_limited).
    pub rwnd_limited: i64,
    /// Of this, from the first retransmission until all data sent before it was acknowledged.
    pub recovery: i64,
}

impl Shares {
    /// A packet of either end at `time`. `this` is the sender's direction; `other` is that of the receiver, which
    /// advertises the window.
    pub(super) fn packet(&mut self, time: i64, this: &Direction, other: &Direction) {
        if let Some(last) = self.last {
            let passed = time.saturating_sub(last).max(0);
            for (state, sum) in [
                (self.is_busy, &mut self.busy),
                (self.is_limited, &mut self.rwnd_limited),
                (self.is_recovering, &mut self.recovery),
            ] {
                *sum = sum.saturating_add(if state { passed } else { 0 });
            }
        }
        self.last = Some(time);
        let (acked, top) = (this.segments.acked(), this.segments.top());
        let in_flight = this.owin.last;
        self.is_busy = in_flight > 0;
        let known = other.windows.count > 0 && this.segment_max > 0;
        let room = u64::from(other.window).saturating_sub(in_flight);
        self.is_limited = self.is_busy && known && room < u64::from(this.segment_max);
        if this.retransmitted_packets > self.retransmitted {
            self.retransmitted = this.retransmitted_packets;
            if !self.is_recovering {
                self.recover = top;
            }
        }
        self.is_recovering = self.is_busy && acked < self.recover;
    }
}
