//! Divides the time of one sender into causes.
//!
//! Time is decided in spans. A span ends when a packet shows what the sender waited for: new data, a retransmission, or
//! the last acknowledgement. [`super::cause::RULES`] has the rules.
//!
//! What the sender knew when it sent a segment follows from the time stamp that the segment echoes (RFC 7323 4.3): all
//! ACKs with that time stamp or an earlier one had reached it. The time since the last of these ACKs passed the point of
//! capture is the round trip to the sender, with all queues in it. Without time stamps, ACKs reach the sender after the
//! round trip of the handshake ([`Sender::lag`]). Start reading at [`Sender::data`].

use std::collections::VecDeque;

use super::cause::{CAUSES, Cause};
use super::names::Names;
use super::rates::{Clumps, Rates};
use super::recent::Recent;
use super::repair::{Recovery, Restart};
use crate::segment::Segment;

/// ACKs that have not reached the sender yet, at most.
const LAGGED_MAX: usize = 256;

/// A sender takes at most this long to send the data that an ACK releases. Time stamps count milliseconds.
pub(super) const PROMPT: i64 = 2_000_000;

/// A shorter silence without data in flight is a pause of the application.
const IDLE: i64 = 1_000_000_000;

/// Shortest rise of round trips that counts as a queue, and the packets with data before one counts.
const QUEUE: i64 = 3_000_000;
const QUEUE_PACKETS: u64 = 8;

/// A clock of time stamps whose ticks are longer is coarse; RFC 7323 5.4 allows 1 ms to 1 s. It is judged after a while.
const TICK_MAX: i64 = 20_000_000;
const CLOCK_TIME: i64 = 100_000_000;

/// Shortest retransmission time-out of Linux. RFC 6298 has 1 s.
const TIMEOUT: i64 = 200_000_000;

/// A congestion window that a loss has cut grows at least once in this time, or in so many round trips.
const GROWTH: i64 = 1_000_000_000;
const ROUNDS: i64 = 8;

/// A round lasts at least this long.
pub(super) const ROUND: i64 = 10_000_000;

/// Data of a full segment if the SYNs do not show it, with the time stamps that nearly all senders use.
const UNIT_MAX: u32 = 1_448;

/// Smaller segments show no path MTU (RFC 9293 3.7.1).
const UNIT_MIN: u32 = 536;

/// Segments closer than this leave at once.
const PAIR: i64 = 1_000_000;

/// Options, such as SACK blocks, make a full segment shorter by up to this much.
const OPTIONS: u32 = 40;

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
    /// When it passed the point of capture.
    pub(super) at: i64,
    pub(super) acked: u64,
    pub(super) window_end: u64,
    /// It came with data, which may be a request.
    pub(super) asks: bool,
    /// Its time stamp, if it has one.
    pub(super) stamped: bool,
    pub(super) stamp: u32,
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
    /// The other end awaits an answer.
    pub(super) owed: bool,
    /// Its first byte follows the highest one sent before.
    pub(super) follows: bool,
}

/// What follows from the extremes of recent values, which seldom change: [`Sender::measure`] computes it again when one
/// may have.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Path {
    /// Round trips are longer than the shortest: see [`Sender::is_queued`].
    is_longer: bool,
    /// See [`Sender::is_even`].
    is_even: bool,
    /// Round trip between the point of capture and the sender now, in nanoseconds.
    near: i64,
    /// Round trip of the path now, in nanoseconds; 0 if unknown.
    round_trip: i64,
    /// How long a round lasts, for [`Recent`], in nanoseconds.
    round: i64,
    /// Data in flight explains a shorter silence.
    pub(super) silence_max: i64,
}

/// One sender's time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sender {
    pub(super) shares: [Share; CAUSES],
    /// Time before this is divided.
    pub(super) upto: i64,
    /// Round trip of the handshake between the point of capture and the sender, in nanoseconds; 0 near
    /// the sender, or if it is unknown.
    pub lag: i64,
    /// The capture was taken near the sender.
    pub(super) is_near: bool,
    /// The first time stamp of the other end, and whether its clock is coarse.
    pub(super) clock_at: i64,
    pub(super) clock_start: u32,
    pub(super) is_coarse: bool,
    pub(super) lagged: VecDeque<Ack>,
    pub(super) acked: u64,
    pub(super) window_end: u64,
    pub(super) top: u64,
    /// An ACK since the last data found the window full.
    pub(super) blocked: bool,
    /// When all data was acknowledged; 0 while some is in flight.
    pub(super) drained: i64,
    /// The ACK that drained it came with data.
    pub(super) asked: bool,
    /// The data after it left as soon as that ACK had arrived.
    pub(super) prompt: bool,
    pub(super) current: u8,
    /// The last segment was shorter than a full one, though the window had room: there was no more to send.
    pub(super) ended: bool,
    pub(super) recovery: Recovery,
    pub(super) restart: Restart,
    pub(super) ever_lost: bool,
    /// What cut the congestion window last: a loss, or a needless retransmission.
    pub(super) cut: u8,
    pub(super) flight_max: u64,
    /// When the most bytes in flight last grew by a segment.
    pub(super) grown: i64,
    /// Round trips from the point of capture to the sender and to the receiver.
    pub(super) near: Recent,
    pub(super) far: Recent,
    pub(super) near_min: i64,
    pub(super) far_min: i64,
    /// Silences between segments.
    pub(super) gaps: Recent,
    /// The same, without those inside of a burst.
    pub(super) pauses: Recent,
    pub(super) last_sent: i64,
    /// Data of a full segment by the handshake, and as the capture has shown it; 0 before.
    pub(super) unit_max: u32,
    pub(super) unit_seen: u32,
    pub(super) last_payload: u32,
    /// The longest round trip that counted as a queue.
    pub(super) queue_max: i64,
    pub(super) names: Names,
    /// Packets since the last data that were lost between the sender and the point of capture; `None` if unknown.
    pub(super) missing: Option<u16>,
    /// It has sent FIN.
    pub(super) closed: bool,
    pub(super) rates: Rates,
    pub(super) clumps: Clumps,
    /// The start of TLS is not over.
    pub(super) tls: bool,
    /// Packets with data.
    pub(super) sent: u64,
    pub(super) path: Path,
}

impl Sender {
    /// The handshake is over at `now`: time before it is the handshake's. `lag` and `far` are its round trips from the
    /// point of capture to the sender and to the receiver, and `unit` is the data of a full segment; 0 if unknown.
    pub(super) fn open(
        &mut self,
        now: i64,
        packet: u64,
        (lag, far): (Option<i64>, i64),
        unit: u32,
    ) {
        self.settle(now, Cause::Handshake, packet);
        self.is_near = lag == Some(0);
        self.lag = lag.unwrap_or(0);
        (self.near_min, self.far_min) = (self.lag, far);
        self.unit_max = if unit == 0 { UNIT_MAX } else { unit };
        self.measure();
    }

    /// It is as new. Its list of ACKs keeps its room.
    pub(super) fn reset(&mut self) {
        let mut lagged = core::mem::take(&mut self.lagged);
        lagged.clear();
        *self = Sender {
            lagged,
            ..Sender::default()
        };
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
    #[inline]
    pub(super) fn settle(&mut self, now: i64, cause: Cause, packet: u64) {
        let span = now.saturating_sub(self.upto);
        if span <= 0 {
            return;
        }
        self.upto = now;
        let cause = match self.tls | self.closed {
            true => self.beside_ends(cause),
            false => cause,
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

    /// What a cause is while TLS starts, and after FIN.
    fn beside_ends(&self, cause: Cause) -> Cause {
        match cause {
            Cause::Application | Cause::Idle | Cause::SlowStart | Cause::Unknown if self.tls => {
                Cause::Tls
            }
            Cause::Application | Cause::Unknown if self.closed => Cause::Idle,
            cause => cause,
        }
    }

    /// Moves time from one cause to another.
    pub(super) fn move_time(&mut self, time: i64, from: Cause, to: Cause, packet: u64) {
        let source = &mut self.shares[from as usize];
        let time = time.min(source.time);
        source.time -= time;
        let share = &mut self.shares[to as usize];
        share.time = share.time.saturating_add(time);
        share.spans = share.spans.saturating_add(1);
        if time > share.longest {
            (share.longest, share.packet) = (time, packet);
        }
    }

    /// Bytes in flight, as the sender sees them.
    fn flight(&self) -> u64 {
        self.top.saturating_sub(self.acked)
    }

    /// An extreme of recent values may have changed.
    #[inline(never)]
    pub(super) fn measure(&mut self) {
        let near = self.near.low().unwrap_or(self.lag);
        let far = self.far.low().unwrap_or(self.far_min);
        let round_trip = near.saturating_add(far);
        let least = self.round_trip_min();
        let nearer = near.saturating_sub(self.near_min);
        let nearer = nearer.saturating_sub(self.gaps.high()).max(0);
        let longer = nearer.saturating_add(far.saturating_sub(self.far_min));
        let (longest, shortest) = (self.gaps.high(), self.pauses.low().unwrap_or(0));
        let is_alike = longest < shortest.saturating_mul(3) / 2;
        self.path = Path {
            is_longer: least > 0 && longer >= QUEUE.max(least / 8),
            is_even: self.gaps.has_before
                && (longest < round_trip / 2
                    || is_alike && shortest > round_trip.saturating_mul(3) / 2),
            near,
            round_trip,
            round: round_trip.max(ROUND),
            silence_max: TIMEOUT.max(round_trip.saturating_mul(2)),
        };
    }

    /// Round trip between the point of capture and the sender now, in nanoseconds.
    fn near(&self) -> i64 {
        self.path.near
    }

    /// Near the sender, ACKs arrive when they are seen. A clock of coarse ticks shows nothing.
    fn uses_echoes(&self) -> bool {
        !self.is_near && !self.is_coarse
    }

    /// Whether the clock of the other end's time stamps is too coarse.
    #[inline]
    fn follow_clock(&mut self, ack: &Ack) {
        if !ack.stamped {
            return;
        }
        if self.clock_at == 0 {
            (self.clock_at, self.clock_start) = (ack.at, ack.stamp);
        }
        let elapsed = ack.at.saturating_sub(self.clock_at);
        let ticks = ack.stamp.wrapping_sub(self.clock_start);
        self.is_coarse |= elapsed > CLOCK_TIME && i64::from(ticks) * TICK_MAX < elapsed;
    }

    /// Round trip of the path now; 0 if unknown.
    pub(super) fn round_trip(&self) -> i64 {
        self.path.round_trip
    }

    /// Round trip of the path without a queue, in nanoseconds; 0 if unknown.
    pub(super) fn round_trip_min(&self) -> i64 {
        self.near_min.saturating_add(self.far_min)
    }

    /// How long a round lasts, for [`Recent`].
    fn round(&self) -> i64 {
        self.path.round
    }

    /// An ACK measured a round trip between the point of capture and the receiver.
    #[inline(always)]
    pub(super) fn sample(&mut self, now: i64, time: i64) {
        let is_least = self.far_min == 0 || time < self.far_min;
        if is_least {
            self.far_min = time;
        }
        let round = self.round();
        if self.far.add(now, time, round) | is_least {
            self.measure();
        }
    }

    /// Whether an ACK acknowledges data, or opens the window, beyond the one before it.
    #[inline(always)]
    pub(super) fn is_news(&self, acked: u64, window_end: u64) -> bool {
        let (acked_before, end_before) = match self.lagged.back() {
            Some(last) => (last.acked, last.window_end),
            None => (self.acked, self.window_end),
        };
        acked > acked_before || window_end > end_before
    }

    /// An ACK from the other end passes the point of capture, and [is news](Sender::is_news).
    pub(super) fn acknowledge(&mut self, packet: u64, ack: Ack) {
        match self.recovery.until {
            0 => self.clumps.acknowledged(ack.at, ack.acked, self.unit()),
            _ => self.clumps.pause(),
        }
        self.follow_clock(&ack);
        if self.lagged.len() >= LAGGED_MAX
            && let Some(first) = self.lagged.pop_front()
        {
            self.arrive(&first, ack.at, packet);
        }
        self.lagged.push_back(ack);
    }

    /// Lets all ACKs reach the sender that had reached it when it sent a segment, seen at `now`, that echoes `echo`.
    fn hear(&mut self, now: i64, packet: u64, echo: Option<u32>) {
        let near = self.near();
        let mut last = None;
        while let Some(ack) = self.lagged.front().copied() {
            let has_arrived = match echo {
                Some(echo) if ack.stamped && self.uses_echoes() => {
                    echo.wrapping_sub(ack.stamp) as i32 >= 0
                }
                _ => ack.at.saturating_add(near) <= now,
            };
            if !has_arrived {
                break;
            }
            self.lagged.pop_front();
            self.arrive(&ack, now, packet);
            last = Some((ack.at, ack.stamped && echo.is_some() && self.uses_echoes()));
        }
        if let Some((at, is_measured)) = last {
            let time = now.saturating_sub(at).max(0);
            self.prompt = time <= near.saturating_add(PROMPT.max(near / 8));
            if is_measured {
                let is_least = self.near_min == 0 || time < self.near_min;
                if is_least {
                    self.near_min = time;
                }
                let round = self.round();
                if self.near.add(now, time, round) | is_least {
                    self.measure();
                }
            }
        }
    }

    /// An ACK has reached the sender, whose next packet passes at `now`.
    fn arrive(&mut self, ack: &Ack, now: i64, packet: u64) {
        let at = ack.at.saturating_add(self.near()).min(now);
        let room = self.window_end.saturating_sub(self.top);
        self.blocked |= self.window_end > 0 && room < u64::from(self.unit());
        self.acked = self.acked.max(ack.acked);
        self.window_end = self.window_end.max(ack.window_end);
        if self.recovery.until > 0 && self.acked >= self.recovery.until {
            self.settle(at, Cause::of(self.recovery.cause), packet);
            (self.recovery.until, self.flight_max) = (0, 0);
        }
        if self.drained == 0 && self.flight() == 0 && self.top > 0 {
            (self.drained, self.asked) = (at.max(1), ack.asks);
        }
    }

    /// The start of TLS is over.
    pub(super) fn end_tls(&mut self, now: i64, packet: u64) {
        if self.tls && self.recovery.until == 0 {
            self.settle(now, Cause::Tls, packet);
        }
        self.tls = false;
    }

    /// The sender's data passes the point of capture at `now`.
    pub(super) fn data(&mut self, now: i64, segment: &Segment, data: &Data) {
        self.sent += 1;
        if segment.payload != self.unit_seen || segment.payload != self.last_payload {
            self.learn_unit(now, segment.payload);
        }
        if !self.lagged.is_empty() {
            let options = &segment.options;
            let echo = options.timestamps.then_some(options.stamp().1);
            self.hear(now, segment.number, echo);
        }
        self.follow_names(segment);
        let lost = self.missing.take();
        if data.again {
            self.repeat(now, segment.number, data);
        } else if data.end > self.top {
            let cause = match self.is_steady(now, lost) {
                true => self.window_cause(now),
                false => {
                    self.decide_restart(now);
                    self.cause_of_new(now, segment, data, lost)
                }
            };
            if cause == Cause::Queue {
                self.queue_max = self.queue_max.max(self.round_trip());
            }
            self.settle(now, cause, segment.number);
            self.top = data.top.max(data.end);
            self.blocked = false;
            self.drained = 0;
            self.grow(now);
        }
        self.closed |= segment.fin();
        self.ended = segment.fin() || !self.is_whole(segment.payload) && self.has_room();
        if self.last_sent > 0 {
            self.space(now);
        }
        self.last_sent = now;
    }

    /// New data in the usual case: nothing is repaired, data is in flight, and there was more to send.
    #[inline(always)]
    fn is_steady(&self, now: i64, lost: Option<u16>) -> bool {
        let silence = now.saturating_sub(self.last_sent);
        (self.recovery.until == 0)
            & (self.restart.end == 0)
            & !self.blocked
            & !self.ended
            & (self.acked < self.top)
            & (silence <= self.path.silence_max)
            && matches!(lost, None | Some(0))
    }

    /// The window has room for a full segment, or is unknown.
    fn has_room(&self) -> bool {
        let room = self.window_end.saturating_sub(self.top);
        self.window_end == 0 || room >= u64::from(self.unit())
    }

    /// A silence before a segment. Segments of one burst are one.
    #[inline(always)]
    fn space(&mut self, now: i64) {
        let gap = now.saturating_sub(self.last_sent);
        let round = self.round();
        let mut has_changed = self.gaps.add(now, gap, round);
        if gap > self.gaps.high() / 4 {
            has_changed |= self.pauses.add(now, gap, round);
        }
        if has_changed {
            self.measure();
        }
    }

    /// Segments below the maximum that follow one another at once, of one size, show a smaller path MTU (RFC 8899).
    fn learn_unit(&mut self, now: i64, payload: u32) {
        let pair = payload == self.last_payload && now.saturating_sub(self.last_sent) < PAIR;
        if payload >= self.unit_max || pair && payload >= UNIT_MIN && payload > self.unit_seen {
            self.unit_seen = payload.min(self.unit_max);
        }
        self.last_payload = payload;
    }

    /// Data of a full segment.
    fn unit(&self) -> u32 {
        match self.unit_seen {
            0 => self.unit_max.max(1),
            seen => seen,
        }
    }

    /// Whether data is of full segments only; offloads join several.
    #[inline]
    fn is_whole(&self, payload: u32) -> bool {
        let unit = self.unit();
        // A division takes longer than all else here.
        if payload <= unit {
            return payload + OPTIONS >= unit;
        }
        let rest = payload % unit;
        rest == 0 || rest + OPTIONS >= unit
    }

    /// Counts packets that were lost between the sender and the point of capture.
    #[inline(always)]
    pub(super) fn follow_names(&mut self, segment: &Segment) {
        if segment.version != 4 || segment.syn() {
            return;
        }
        let segments = match segment.payload <= self.unit() {
            true => 1,
            false => segment.payload.div_ceil(self.unit()),
        };
        if let Some(lost) = self.names.follow(segment.id, segments as u16) {
            self.missing = Some(self.missing.unwrap_or(0).saturating_add(lost));
        }
    }

    /// Whether a segment that fills a gap was sent after all others: a retransmission of data that was lost before.
    pub(super) fn is_newer(&self, segment: &Segment) -> bool {
        segment.version == 4 && self.names.is_newer(segment.id)
    }

    /// A packet without data whose sequence number is `offset`: data below it that the capture lacks was lost before.
    pub(super) fn show(&mut self, offset: u64) {
        if self.top > 0 && offset > self.top {
            self.missing = Some(self.missing.unwrap_or(0).max(1));
        }
    }

    #[inline(always)]
    fn grow(&mut self, now: i64) {
        let flight = self.flight();
        if self.recovery.until > 0 {
            return;
        }
        if flight > self.flight_max {
            if flight >= self.flight_max + u64::from(self.unit()) || self.grown == 0 {
                self.grown = now;
            }
            self.flight_max = flight;
        }
    }

    /// What the sender of new data has waited for. `lost` packets before it did not reach the point of capture.
    fn cause_of_new(
        &mut self,
        now: i64,
        segment: &Segment,
        data: &Data,
        lost: Option<u16>,
    ) -> Cause {
        if self.recovery.until > 0 {
            return Cause::of(self.recovery.cause);
        }
        let silence = now.saturating_sub(self.last_sent);
        if let Some(cause) = self.cause_of_lost(now, segment, data, lost) {
            return cause;
        }
        if self.flight() == 0 {
            return self.cause_after_drain(now, segment, data, lost);
        }
        if self.blocked {
            Cause::Receiver
        } else if self.ended {
            Cause::Application
        } else if silence > self.path.silence_max {
            Cause::Unknown
        } else {
            self.window_cause(now)
        }
    }

    /// The same, if all data before it had been acknowledged.
    fn cause_after_drain(
        &mut self,
        now: i64,
        segment: &Segment,
        data: &Data,
        lost: Option<u16>,
    ) -> Cause {
        let packet = segment.number;
        if self.window_end > 0 && self.window_end <= self.top || self.blocked {
            return Cause::Receiver;
        }
        if self.drained > 0 && self.prompt && !self.asked && !self.ended {
            return self.window_cause(now);
        }
        let silence = now.saturating_sub(self.last_sent.max(self.upto));
        let is_usual = silence < self.gaps.high().saturating_mul(3) / 2;
        let since_growth = now.saturating_sub(self.grown);
        if !self.ended
            && is_usual
            && self.is_even()
            && since_growth > self.round_trip().saturating_mul(ROUNDS)
        {
            return Cause::Pacing;
        }
        let is_sure = self.is_near || lost == Some(0) || self.ended || self.sent <= 1;
        if !is_sure {
            if silence >= TIMEOUT {
                self.restart = Restart {
                    end: data.end,
                    time: now.saturating_sub(self.upto),
                    packet,
                };
            }
            return Cause::Unknown;
        }
        self.settle_drained(packet);
        let silence = now.saturating_sub(self.upto);
        let long = silence >= IDLE && silence >= self.round_trip_min().saturating_mul(4);
        match long && !data.owed {
            true => Cause::Idle,
            false => Cause::Application,
        }
    }

    /// No ACK was missing when all data had been acknowledged: before that, the last data waited in the queue, if there was
    /// one.
    fn settle_drained(&mut self, packet: u64) {
        if self.drained > 0 {
            let cause = match self.is_queued() {
                true => Cause::Queue,
                false => Cause::Application,
            };
            self.settle(self.drained, cause, packet);
        }
    }

    /// The congestion window, or what keeps the sender below it.
    #[inline]
    fn window_cause(&self, now: i64) -> Cause {
        let round_trip = self.round_trip();
        let since_growth = now.saturating_sub(self.grown);
        if self.blocked {
            Cause::Receiver
        } else if self.is_queued() {
            Cause::Queue
        } else if self.ever_lost && since_growth <= GROWTH.max(round_trip.saturating_mul(ROUNDS)) {
            Cause::of(self.cut)
        } else if !self.ever_lost && since_growth <= round_trip.saturating_mul(2) {
            Cause::SlowStart
        } else if since_growth > round_trip.saturating_mul(ROUNDS) && self.is_even() {
            Cause::Pacing
        } else {
            Cause::Unknown
        }
    }

    /// Whether round trips are longer than the shortest. A sender that paces uses an ACK up to a silence later.
    fn is_queued(&self) -> bool {
        self.sent >= QUEUE_PACKETS && self.path.is_longer
    }

    /// Whether the silences between segments are short beside the round trip, or longer and all alike. Bursts that ACKs
    /// release are a round trip apart.
    fn is_even(&self) -> bool {
        self.path.is_even
    }

    /// The connection has ended, or the capture has.
    pub(super) fn finish(&mut self, now: i64, packet: u64, owed: bool) {
        self.hear(now, packet, None);
        if self.recovery.until > 0 {
            self.settle(now, Cause::of(self.recovery.cause), packet);
        }
        self.settle_drained(packet);
        let rest = match (self.flight(), owed) {
            (0, true) => Cause::Application,
            (0, false) => Cause::Idle,
            _ => Cause::Unknown,
        };
        self.settle(now, rest, packet);
        self.judge_policer();
    }

    /// The same, and no packet will change how its time is divided. Only what the result needs remains.
    pub(super) fn end(&mut self, now: i64, packet: u64, owed: bool) {
        self.finish(now, packet, owed);
        let mut lagged = core::mem::take(&mut self.lagged);
        lagged.clear();
        *self = Sender {
            shares: self.shares,
            upto: self.upto,
            lag: self.lag,
            near_min: self.near_min,
            far_min: self.far_min,
            queue_max: self.queue_max,
            rates: Rates {
                mean: self.rates.mean,
                ..Rates::default()
            },
            current: self.current,
            closed: true,
            lagged,
            ..Sender::default()
        };
    }

    /// Time of each cause, by the causes' numbers.
    #[must_use]
    pub fn shares(&self) -> &[Share; CAUSES] {
        &self.shares
    }
}
