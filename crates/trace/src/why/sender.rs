//! Divides the time of one sender into causes.
//!
//! Time is decided in spans. A span ends when a packet shows what the sender waited for: new data, a retransmission, or
//! the last acknowledgement. [`super::cause::RULES`] has the rules. ACKs take effect when they have reached the sender and
//! data that they release could be back at the point of capture ([`Sender::lag`]). Start reading at [`Sender::data`].

use std::collections::VecDeque;

use super::cause::{CAUSES, Cause};
use super::rates::Rates;
use crate::segment::Segment;

/// ACKs that have not reached the sender yet, at most.
const LAGGED_MAX: usize = 256;

/// A sender takes at most this long to send the data that an ACK releases.
const PROMPT: i64 = 1_000_000;

/// A shorter silence without data in flight is a pause of the application.
const IDLE: i64 = 1_000_000_000;

/// Shortest rise of round trips that counts as a queue.
const QUEUE: i64 = 3_000_000;

/// A recovery that began with a fast retransmission waits for a time-out if it is silent for longer: the shortest
/// time-out of Linux.
const TIMEOUT: i64 = 200_000_000;

/// The time of one cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Its time, in nanoseconds.
    pub time: i64,
    /// Number of spans.
    pub spans: u32,
    /// The longest span, in nanoseconds.
    pub longest: i64,
    /// Number of the packet that ended the longest span, counted over the input from 1.
    pub packet: u64,
}

/// An ACK on its way to the sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ack {
    /// When data that it releases can be at the point of capture.
    pub(super) at: i64,
    pub(super) acked: u64,
    pub(super) window_end: u64,
    /// It came with data, which may be a request.
    pub(super) asks: bool,
}

/// What a packet with data or FIN did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Data {
    /// Offset after the highest byte sent.
    pub(super) top: u64,
    /// Offset after this segment.
    pub(super) end: u64,
    /// It is a retransmission.
    pub(super) again: bool,
    /// All of it had been acknowledged.
    pub(super) spurious: bool,
    /// Duplicate ACKs or SACK asked for it.
    pub(super) fast: bool,
}

/// The latest recovery from a loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Recovery {
    /// It ends when all data below is acknowledged; 0 if it has ended.
    pub(super) until: u64,
    pub(super) cause: u8,
    /// Its time so far.
    pub(super) time: i64,
    /// Retransmissions, and those that D-SACK reported as needless.
    pub(super) sent: u32,
    pub(super) needless: u32,
}

/// One sender's time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sender {
    pub(super) shares: [Share; CAUSES],
    /// Time before this is divided.
    pub(super) upto: i64,
    /// Round trip between the point of capture and the sender, in nanoseconds; 0 if it is captured near the sender.
    pub lag: i64,
    pub(super) lagged: VecDeque<Ack>,
    pub(super) acked: u64,
    pub(super) window_end: u64,
    pub(super) top: u64,
    /// When the last ACK with news reached the sender.
    pub(super) released: i64,
    /// An ACK since the last data found the window full.
    pub(super) blocked: bool,
    /// When all data was acknowledged; 0 while some is in flight.
    pub(super) drained: i64,
    /// The ACK that drained it came with data.
    pub(super) asked: bool,
    pub(super) current: u8,
    /// The last segment was full and without PSH: there was more to send.
    pub(super) more: bool,
    pub(super) recovery: Recovery,
    /// Bytes in flight at the last loss, until as many are in flight again.
    pub(super) loss_flight: u64,
    pub(super) ever_lost: bool,
    pub(super) flight_max: u64,
    /// When the most bytes in flight last grew by a segment.
    pub(super) grown: i64,
    /// Shortest and last round trip of data, the lag included, in nanoseconds; 0 before the first.
    pub rtt_min: i64,
    pub(super) rtt_last: i64,
    pub(super) last_sent: i64,
    pub(super) full: u32,
    pub(super) rates: Rates,
    /// The start of TLS is not over.
    pub(super) tls: bool,
    /// Packets with data.
    pub(super) sent: u64,
}

impl Sender {
    /// The handshake is over at `now`: time before it is the handshake's.
    pub(super) fn open(&mut self, now: i64, packet: u64, lag: i64) {
        self.settle(now, Cause::Handshake, packet);
        self.lag = lag;
    }

    /// Time before this is divided into causes, in nanoseconds since 1970.
    pub(crate) fn divided(&self) -> i64 {
        self.upto
    }

    /// Its time begins.
    pub(super) fn begin(&mut self, now: i64) {
        self.upto = now;
    }

    /// Time until `now` was this cause's.
    fn settle(&mut self, now: i64, cause: Cause, packet: u64) {
        let span = now.saturating_sub(self.upto);
        if span <= 0 {
            return;
        }
        self.upto = now;
        let cause = match cause {
            Cause::Application | Cause::Idle | Cause::SlowStart | Cause::Unknown if self.tls => {
                Cause::Tls
            }
            cause => cause,
        };
        let share = &mut self.shares[cause as usize];
        share.time = share.time.saturating_add(span);
        if self.current != cause as u8 || share.spans == 0 {
            share.spans = share.spans.saturating_add(1);
        }
        if span > share.longest {
            (share.longest, share.packet) = (span, packet);
        }
        self.current = cause as u8;
        if cause.is_loss() && self.recovery.cause == cause as u8 {
            self.recovery.time = self.recovery.time.saturating_add(span);
        }
    }

    /// Bytes in flight, as the sender sees them.
    fn flight(&self) -> u64 {
        self.top.saturating_sub(self.acked)
    }

    /// How long after an ACK its data may be sent.
    fn prompt(&self) -> i64 {
        PROMPT.max(self.lag / 4)
    }

    /// An ACK from the other end passes the point of capture.
    pub(super) fn acknowledge(&mut self, now: i64, packet: u64, ack: Ack, round_trip: Option<i64>) {
        if let Some(time) = round_trip {
            let time = time.saturating_add(self.lag).max(1);
            self.rtt_last = time;
            if self.rtt_min == 0 || time < self.rtt_min {
                self.rtt_min = time;
            }
        }
        if self.lag == 0 {
            self.arrive(&ack, packet);
            return;
        }
        if self.lagged.len() >= LAGGED_MAX
            && let Some(first) = self.lagged.pop_front()
        {
            self.arrive(&first, packet);
        }
        let at = now.saturating_add(self.lag);
        self.lagged.push_back(Ack { at, ..ack });
    }

    /// Lets all ACKs reach the sender whose time has come.
    pub(super) fn pass(&mut self, now: i64, packet: u64) {
        while let Some(ack) = self.lagged.front().copied()
            && ack.at <= now
        {
            self.lagged.pop_front();
            self.arrive(&ack, packet);
        }
    }

    fn arrive(&mut self, ack: &Ack, packet: u64) {
        if ack.acked <= self.acked && ack.window_end <= self.window_end {
            return;
        }
        let room = self.window_end.saturating_sub(self.top);
        self.blocked |= self.window_end > 0 && room < u64::from(self.full.max(1));
        self.acked = self.acked.max(ack.acked);
        self.window_end = self.window_end.max(ack.window_end);
        self.released = ack.at;
        if self.recovery.until > 0 && self.acked >= self.recovery.until {
            self.settle(ack.at, Cause::of(self.recovery.cause), packet);
            self.recovery.until = 0;
        }
        if self.drained == 0 && self.flight() == 0 && self.top > 0 {
            (self.drained, self.asked) = (ack.at, ack.asks);
        }
    }

    /// The other end reports that a retransmission was needless (RFC 2883).
    pub(super) fn needless(&mut self) {
        let recovery = &mut self.recovery;
        recovery.needless = recovery.needless.saturating_add(1);
        let cause = Cause::of(recovery.cause);
        if recovery.sent == 0
            || recovery.needless < recovery.sent
            || !cause.is_loss()
            || cause == Cause::Spurious
        {
            return;
        }
        recovery.cause = Cause::Spurious as u8;
        let from = &mut self.shares[cause as usize];
        let (time, packet) = (recovery.time.min(from.time), from.packet);
        from.time -= time;
        let to = &mut self.shares[Cause::Spurious as usize];
        to.time = to.time.saturating_add(time);
        to.spans = to.spans.saturating_add(1);
        if time > to.longest {
            (to.longest, to.packet) = (time, packet);
        }
    }

    /// The sender's data passes the point of capture at `now`. `owed` if the other end awaits an answer.
    pub(super) fn data(&mut self, now: i64, segment: &Segment, data: &Data, owed: bool) {
        self.sent += 1;
        self.full = self.full.max(segment.payload);
        if data.again {
            self.repeat(now, segment.number, data);
        } else if data.end > self.top {
            let cause = self.cause_of_new(now, segment.number, owed);
            self.settle(now, cause, segment.number);
            self.top = data.top.max(data.end);
            self.blocked = false;
            self.drained = 0;
            self.grow(now);
        }
        self.more = segment.payload >= self.full && !segment.psh() && !segment.fin();
        self.last_sent = now;
    }

    fn grow(&mut self, now: i64) {
        let flight = self.flight();
        if flight > self.flight_max {
            if flight >= self.flight_max + u64::from(self.full.max(1)) || self.grown == 0 {
                self.grown = now;
            }
            self.flight_max = flight;
        }
        if flight >= self.loss_flight {
            self.loss_flight = 0;
        }
    }

    /// What the sender of new data has waited for.
    fn cause_of_new(&mut self, now: i64, packet: u64, owed: bool) -> Cause {
        if self.recovery.until > 0 {
            return Cause::of(self.recovery.cause);
        }
        let prompt = self.prompt();
        let released = self.released > 0 && now.saturating_sub(self.released) <= prompt;
        if self.flight() == 0 {
            if self.window_end > 0 && self.window_end <= self.top {
                return Cause::Receiver;
            }
            if self.drained > 0 && released && !self.asked {
                return self.window_cause(now);
            }
            if self.drained > 0 {
                // The data ended here: no ACK was missing.
                self.settle(self.drained, Cause::Application, packet);
            }
            let silence = now.saturating_sub(self.upto);
            let long = silence >= IDLE && silence >= self.rtt_min.saturating_mul(4);
            return match long && !owed {
                true => Cause::Idle,
                false => Cause::Application,
            };
        }
        let silence = now.saturating_sub(self.last_sent);
        if silence <= prompt.min(PROMPT.max(self.rtt_min / 8)) && !released {
            return Cause::of(self.current);
        }
        if released {
            self.window_cause(now)
        } else if !self.more {
            Cause::Application
        } else if self.rtt_min > 0 && silence < self.rtt_min {
            Cause::Pacing
        } else {
            Cause::Unknown
        }
    }

    /// An ACK released the data: which window was full?
    fn window_cause(&self, now: i64) -> Cause {
        let longer = self.rtt_last.saturating_sub(self.rtt_min);
        if self.blocked {
            Cause::Receiver
        } else if self.rtt_min > 0 && longer >= QUEUE.max(self.rtt_min / 4) {
            Cause::Queue
        } else if self.loss_flight > 0 {
            Cause::AfterLoss
        } else if !self.ever_lost
            && now.saturating_sub(self.grown) <= self.rtt_last.saturating_mul(2)
        {
            Cause::SlowStart
        } else {
            Cause::Unknown
        }
    }

    /// A retransmission.
    fn repeat(&mut self, now: i64, packet: u64, data: &Data) {
        let silence = now.saturating_sub(self.last_sent);
        let cause = if data.spurious {
            Cause::Spurious
        } else if data.fast {
            Cause::FastRetransmit
        } else if data.end >= self.top {
            Cause::TailLoss
        } else {
            Cause::Timeout
        };
        if self.recovery.until > 0 {
            if !data.fast && silence >= TIMEOUT && self.recovery.cause != Cause::Timeout as u8 {
                self.recovery.cause = cause as u8;
                self.recovery.time = 0;
            }
            self.recovery.sent = self.recovery.sent.saturating_add(1);
            self.settle(now, Cause::of(self.recovery.cause), packet);
            return;
        }
        self.recovery = Recovery {
            until: self.top.max(data.end),
            cause: cause as u8,
            sent: 1,
            ..Recovery::default()
        };
        if cause != Cause::Spurious {
            self.ever_lost = true;
            self.loss_flight = self.flight().max(u64::from(self.full));
            self.rates.lost(now, self.acked, self.rtt_min);
        }
        self.settle(now, cause, packet);
    }

    /// The connection has ended, or the capture has.
    pub(super) fn finish(&mut self, now: i64, packet: u64, owed: bool) {
        self.pass(now, packet);
        if self.recovery.until > 0 {
            self.settle(now, Cause::of(self.recovery.cause), packet);
        }
        if self.drained > 0 {
            self.settle(self.drained, Cause::Application, packet);
        }
        let rest = match (self.flight(), owed) {
            (0, true) => Cause::Application,
            (0, false) => Cause::Idle,
            _ => Cause::Unknown,
        };
        self.settle(now, rest, packet);
        self.judge_policer();
    }

    /// If the losses are those of a policer, their time is the policer's.
    fn judge_policer(&mut self) {
        let time = |cause: Cause| self.shares[cause as usize].time;
        let loss = [
            Cause::FastRetransmit,
            Cause::Timeout,
            Cause::TailLoss,
            Cause::AfterLoss,
        ];
        let lost: i64 = loss.into_iter().map(time).sum();
        if !self.rates.are_equal() || time(Cause::Queue) > lost / 4 {
            return;
        }
        let mut policer = self.shares[Cause::Policer as usize];
        for cause in loss {
            let share = core::mem::take(&mut self.shares[cause as usize]);
            policer.time = policer.time.saturating_add(share.time);
            policer.spans = policer.spans.saturating_add(share.spans);
            if share.longest > policer.longest {
                (policer.longest, policer.packet) = (share.longest, share.packet);
            }
        }
        self.shares[Cause::Policer as usize] = policer;
    }

    /// Time of each cause, by the causes' numbers.
    #[must_use]
    pub fn shares(&self) -> &[Share; CAUSES] {
        &self.shares
    }
}
