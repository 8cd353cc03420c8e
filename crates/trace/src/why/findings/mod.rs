//! What single packets show: zero windows, options that are missing, resets and who sent them, and the like.
//!
//! RFC 9293, RFC 7323, RFC 1122 4.2.3, RFC 3168, RFC 6928. Start reading at `Findings::packet`; [`table`] has the rules.
//! The causes of time in [`super::cause`] do not depend on findings.

mod kept;
pub mod table;

pub use table::{DESCRIPTIONS, Description, FINDINGS, Finding, Unit};

use super::sender::PROMPT;
use crate::direction::{Direction, Events};
use crate::segment::{ECE, RST, SYN, Segment};

/// An ACK that comes this much later than the shortest round trip was delayed: the shortest delay of common systems is
/// 40 ms.
const DELAYED: i64 = 35_000_000;

/// No system delays an ACK for longer (RFC 9293 3.8.6.3).
const DELAYED_MAX: i64 = 550_000_000;

/// Resets after a longer silence are those of a time-out.
const SILENCE: i64 = 60_000_000_000;

/// Steps of a window that make a silly window.
const STEPS: u32 = 3;

/// Segments with new data after which ECT should have been seen.
const ECN_SEGMENTS: u32 = 10;

/// Room for options in a full segment.
const OPTIONS: u32 = 20;

/// A smaller first flight than RFC 3390 allows with common sizes of segments.
const FIRST_FLIGHT: u64 = 4;

/// With a shorter round trip, the first flight may be in flight when the first ACK comes.
const FAR: i64 = 5_000_000;

/// Smaller segments pass any path (RFC 9293 3.7.1).
const MSS_DEFAULT: u32 = 536;

/// What was seen of one finding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// How often.
    pub count: u32,
    /// Number of the first packet, counted over the input from 1.
    pub first: u64,
    /// The largest value. [`Description::unit`] says what it is.
    pub value: u64,
    /// Number of the packet with the largest value.
    pub packet: u64,
}

impl Seen {
    fn add(&mut self, packet: u64, value: u64) {
        if self.count == 0 {
            self.first = packet;
        }
        if self.count == 0 || value > self.value {
            (self.value, self.packet) = (value, packet);
        }
        self.count = self.count.saturating_add(1);
    }
}

/// The answers of a sender to losses: what is in flight after a loss, beside what was in flight before it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Response {
    /// Losses that were answered.
    pub count: u32,
    /// Sum of the ratios.
    pub sum: f64,
    /// Sum of their squares.
    pub squares: f64,
}

/// A full segment that was sent again and again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stuck {
    offset: u64,
    /// How often it was sent again.
    times: u32,
    first_packet: u64,
    /// End of a smaller segment with the same data; 0 if there is none.
    smaller: u64,
}

/// Findings about one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct End {
    /// What was seen, by the findings' numbers. Most ends have none.
    seen: Vec<(u8, Seen)>,
    /// Its answers to losses.
    pub response: Response,
    /// TTL of its first packet that is no reset; 0 before it.
    ttl: u8,
    /// Its packets have different TTLs.
    ttl_varies: bool,
    syn_time: i64,
    syn_packet: u64,
    syn_options: (u16, u8, bool),
    /// Its SYN asked for ECN or agreed.
    ecn: bool,
    ecn_capable: bool,
    new_segments: u32,
    /// When its window became 0; 0 while it is open.
    closed_since: i64,
    closed_packet: u64,
    /// The right edge of its window.
    edge: u64,
    steps: Seen,
    /// End and time of a small segment that is alone in flight.
    small: (u64, i64),
    /// Time of a delayed ACK for it, its packet, and its delay.
    late: (i64, u64, i64),
    /// Its largest segment, and the end of the first one of that size; 0 before.
    full_size: u32,
    full_end: u64,
    /// Its last segment was full and without PSH: there was more to send.
    more: bool,
    /// Its first data was acknowledged.
    answered: bool,
    stuck: Stuck,
    reset_packet: u64,
    /// A loss being repaired: highest byte sent when it began, and bytes in flight.
    loss: (u64, u64),
}

impl Response {
    /// The congestion control that answers losses in this way; `None` if the answers do not show it.
    #[must_use]
    pub fn like(&self) -> Option<&'static str> {
        let count = f64::from(self.count);
        let mean = self.mean()?;
        let variance = self.squares / count - mean * mean;
        if self.count < 3 || variance > 0.15 * 0.15 {
            return None;
        }
        match mean {
            0.42..=0.58 => Some("reno"),
            0.62..=0.78 => Some("cubic"),
            0.9..=1.2 => Some("no response to loss"),
            _ => None,
        }
    }

    /// Mean ratio of the data in flight after a loss to that before it.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

impl End {
    /// What was seen of a finding.
    #[must_use]
    pub fn seen(&self, finding: Finding) -> Seen {
        match self.place(finding) {
            Ok(at) => self.seen[at].1,
            Err(_) => Seen::default(),
        }
    }

    /// Where the finding is in the list, or belongs.
    fn place(&self, finding: Finding) -> Result<usize, usize> {
        self.seen
            .binary_search_by_key(&(finding as u8), |(number, _)| *number)
    }

    #[cold]
    fn add(&mut self, finding: Finding, packet: u64, value: u64) {
        let at = self.place(finding).unwrap_or_else(|at| {
            self.seen.insert(at, (finding as u8, Seen::default()));
            at
        });
        self.seen[at].1.add(packet, value);
    }

    #[cold]
    fn set(&mut self, finding: Finding, packet: u64, value: u64) {
        if self.place(finding).is_err() {
            self.add(finding, packet, value);
        }
    }

    /// It is as new. Its list keeps its room.
    fn reset(&mut self) {
        let mut seen = core::mem::take(&mut self.seen);
        seen.clear();
        *self = End {
            seen,
            ..End::default()
        };
    }
}

/// Findings about both ends of a connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// About end `a`.
    pub a: End,
    /// About end `b`.
    pub b: End,
    last_time: i64,
}

/// A packet, with what the analyser knows of both ends after it.
struct Step<'a> {
    segment: &'a Segment,
    this: &'a Direction,
    other: &'a Direction,
    /// Round trips between the point of capture and the packet's sender, and the other end.
    lag: i64,
    other_lag: i64,
    silence: i64,
}

impl<'a> Step<'a> {
    /// `last` is the time of the packet before it; 0 if there is none.
    #[cold]
    fn new(
        segment: &'a Segment,
        (this, other): (&'a Direction, &'a Direction),
        (lag_a, lag_b): (i64, i64),
        from_a: bool,
        last: i64,
    ) -> Step<'a> {
        let (lag, other_lag) = match from_a {
            true => (lag_a, lag_b),
            false => (lag_b, lag_a),
        };
        Step {
            segment,
            this,
            other,
            lag,
            other_lag,
            silence: match last {
                0 => 0,
                last => segment.time.saturating_sub(last),
            },
        }
    }
}

impl Findings {
    pub(super) fn reset(&mut self) {
        self.a.reset();
        self.b.reset();
        self.last_time = 0;
    }

    /// A packet of end `a` or `b`, after the statistics of both include it. `lags` are the round trips between the point
    /// of capture and both ends; 0 if the point is near.
    pub(super) fn packet(
        &mut self,
        segment: &Segment,
        from_a: bool,
        (a, b): (&Direction, &Direction),
        lags: (i64, i64),
    ) {
        let (mine, theirs, this, other) = match from_a {
            true => (&mut self.a, &mut self.b, a, b),
            false => (&mut self.b, &mut self.a, b, a),
        };
        let last = core::mem::replace(&mut self.last_time, segment.time);
        let step = || Step::new(segment, (this, other), lags, from_a, last);
        let is_special = segment.flags & (SYN | RST | ECE) != 0 || segment.ce();
        if is_special && mine.special(&step(), theirs) {
            return;
        }
        mine.origin(segment);
        if segment.payload > 0 && !mine.is_usual(segment, this, other) {
            mine.data(&step());
        }
        if segment.ack() {
            mine.window(segment, this, other);
            if theirs.waits(other) {
                theirs.acknowledged(&step());
            }
        }
    }

    /// As if the connection had ended now: `a` and `b` are its ends.
    pub(super) fn finish(&mut self, a: &Direction, b: &Direction) {
        let agreed = self.a.ecn && self.b.ecn;
        for (end, direction, now) in [(&mut self.a, a, b.last_time), (&mut self.b, b, a.last_time)]
        {
            end.finish(direction, now.max(direction.last_time).unwrap_or(0), agreed);
        }
    }
}

impl End {
    /// A packet with SYN, RST or marks of ECN. True if it has no other part in the findings.
    #[cold]
    fn special(&mut self, step: &Step<'_>, theirs: &mut End) -> bool {
        let segment = step.segment;
        if segment.rst() {
            self.ended(step);
            return true;
        }
        if segment.syn() {
            self.origin(segment);
            self.syn(step, theirs);
            return true;
        }
        self.marks(step, theirs);
        false
    }

    /// Whether a segment of its data is like most: new, as long as the longest one, and nothing waits for it. It is counted
    /// here.
    #[inline(always)]
    fn is_usual(&mut self, segment: &Segment, this: &Direction, other: &Direction) -> bool {
        let mss = u32::from(other.mss);
        let is_usual = (segment.payload == self.full_size)
            & (segment.payload >= this.segment_max)
            & (segment.payload + OPTIONS >= mss.max(MSS_DEFAULT))
            & (mss == 0 || segment.payload <= mss)
            & (!this.events.has(Events::AGAIN))
            & (self.late.0 == 0)
            & (self.small.0 == 0);
        if is_usual {
            self.more = !segment.psh();
            self.new_segments = self.new_segments.saturating_add(1);
            self.ecn_capable |= segment.traffic_class & 3 != 0;
        }
        is_usual
    }

    /// Whether an ACK of its data may be a finding, or part of one.
    #[inline(always)]
    fn waits(&self, this: &Direction) -> bool {
        (this.data_acked & !self.answered)
            | (self.small.0 > 0)
            | (self.stuck.times > 0)
            | (self.loss.0 > 0)
    }

    /// The device that sends its packets.
    #[inline(always)]
    fn origin(&mut self, segment: &Segment) {
        match self.ttl {
            0 => self.ttl = segment.hop_limit,
            ttl => self.ttl_varies |= ttl != segment.hop_limit,
        }
        if self.reset_packet > 0 && segment.payload > 0 {
            let packet = self.reset_packet;
            self.set(Finding::ResetInjected, packet, 0);
        }
    }

    fn syn(&mut self, step: &Step<'_>, theirs: &mut End) {
        let segment = step.segment;
        let options = &segment.options;
        let scale = options.window_scale.map_or(u8::MAX, |scale| scale.min(14));
        let now = (options.mss.unwrap_or(0), scale, options.sack_permitted);
        self.ecn = match segment.ack() {
            // RFC 3168 6.1.1: the answer has ECE without CWR.
            true => segment.ece() && !segment.cwr() && theirs.ecn,
            false => segment.ece() && segment.cwr(),
        };
        if self.syn_packet > 0 {
            if step.this.bad_behaviour {
                return;
            }
            let time = segment.time.saturating_sub(self.syn_time).max(0);
            self.add(Finding::SynRepeated, segment.number, time as u64);
            if now != self.syn_options {
                self.add(Finding::SynChanged, segment.number, 0);
            }
            return;
        }
        (self.syn_time, self.syn_packet) = (segment.time, segment.number);
        self.syn_options = now;
        // Of a capture that begins with the answer, nobody knows what was asked for.
        let asked = |has: fn(&Direction) -> bool| match segment.ack() {
            true => step.other.syns > 0 && has(step.other),
            false => true,
        };
        if scale == u8::MAX && asked(|other| other.asked_scale) {
            self.add(Finding::NoWindowScale, segment.number, 0);
        }
        if !options.sack_permitted && asked(|other| other.asked_sack) {
            self.add(Finding::NoSack, segment.number, 0);
        }
        let ethernet = if segment.version == 6 { 1440 } else { 1460 };
        if let Some(mss) = options.mss
            && mss < ethernet
        {
            self.add(Finding::SmallMss, segment.number, u64::from(mss));
        }
    }

    /// A segment of its data.
    fn data(&mut self, step: &Step<'_>) {
        let (segment, this) = (step.segment, step.this);
        let again = this.events.has(Events::AGAIN);
        let first = this.offset(segment.sequence);
        let end = first + u64::from(segment.payload);
        let full = segment.payload >= this.segment_max;
        self.more = full && !segment.psh();
        if step.other.mss > 0 && segment.payload > u32::from(step.other.mss) {
            self.add(Finding::OverMss, segment.number, u64::from(segment.payload));
        }
        if again {
            self.sent_again(step, first, end, full);
            return;
        }
        self.new_segments = self.new_segments.saturating_add(1);
        self.ecn_capable |= segment.traffic_class & 3 != 0;
        if segment.payload > self.full_size {
            (self.full_size, self.full_end) = (segment.payload, end);
        }
        if self.late.0 > 0 {
            let (at, packet, delay) = self.late;
            let prompt = PROMPT.max(step.lag / 4).saturating_add(step.lag);
            if segment.time.saturating_sub(at) <= prompt {
                self.add(Finding::DelayedAck, packet, delay as u64);
            }
            self.late = (0, 0, 0);
        }
        // Nagle's algorithm holds back what is smaller than a full segment, options included.
        let small = segment.payload + OPTIONS < u32::from(step.other.mss).max(MSS_DEFAULT);
        self.small = match small && this.segments.acked() >= first {
            true => (end, segment.time),
            false => (0, 0),
        };
    }

    fn sent_again(&mut self, step: &Step<'_>, first: u64, end: u64, full: bool) {
        let this = step.this;
        self.small = (0, 0);
        // After a time-out the window begins anew, so that its ratio says nothing.
        if self.loss.0 == 0 && step.lag == 0 {
            let top = this.segments.top();
            let fast = this.events.has(Events::FAST);
            let flight = top.saturating_sub(this.segments.acked());
            self.loss = (top, if fast { flight } else { 0 });
        }
        if this.segment_max <= MSS_DEFAULT {
            return;
        }
        if self.stuck.offset != first {
            self.stuck = Stuck {
                offset: first,
                first_packet: step.segment.number,
                ..Stuck::default()
            };
        }
        match full {
            true => self.stuck.times = self.stuck.times.saturating_add(1),
            false => self.stuck.smaller = end,
        }
    }

    /// Its own window.
    #[inline(always)]
    fn window(&mut self, segment: &Segment, this: &Direction, other: &Direction) {
        let window = u64::from(this.window);
        if window == 0 {
            if self.closed_since == 0 {
                (self.closed_since, self.closed_packet) = (segment.time, segment.number);
            }
        } else if self.closed_since != 0 {
            self.opened(segment.time);
        }
        let edge = other.segments.acked() + window;
        if window > 0 && window < u64::from(other.segment_max) && edge > self.edge {
            self.step(segment, (this, other), edge - self.edge);
        }
        self.edge = self.edge.max(edge);
    }

    /// Its small window has moved by so many bytes.
    #[cold]
    fn step(&mut self, segment: &Segment, (this, other): (&Direction, &Direction), moved: u64) {
        let step_min = u64::from(other.segment_max).min(u64::from(this.windows.max) / 2);
        // A window without its scale is no window.
        let known = this.syns > 0 && other.syns > 0;
        if known && u64::from(this.window) < step_min && self.edge > 0 && moved < step_min {
            self.steps.add(segment.number, moved);
        }
    }

    #[cold]
    fn opened(&mut self, now: i64) {
        let time = now.saturating_sub(self.closed_since).max(0);
        let packet = self.closed_packet;
        self.add(Finding::ZeroWindow, packet, time as u64);
        self.closed_since = 0;
    }

    /// The other end's packet acknowledges its data.
    #[inline(never)]
    fn acknowledged(&mut self, step: &Step<'_>) {
        // The packet is the other end's, so that its "other" is this end.
        let (segment, this) = (step.segment, step.other);
        let acked = this.segments.acked();
        if this.data_acked && !self.answered {
            self.answered = true;
            self.first_flight(step);
        }
        if self.small.0 > 0 && acked >= self.small.0 {
            let delay = segment.time.saturating_sub(self.small.1);
            let shortest = match (this.rtt.min, this.rtt_handshake) {
                (0, time) | (time, 0) => time,
                (one, two) => one.min(two),
            };
            let extra = delay.saturating_sub(shortest);
            if segment.payload == 0 && shortest > 0 && (DELAYED..DELAYED_MAX).contains(&extra) {
                self.late = (segment.time, segment.number, extra);
            }
            self.small = (0, 0);
        }
        if self.stuck.times > 0 && acked > self.stuck.offset {
            if self.stuck.smaller > 0 && self.stuck.times >= 2 && acked <= self.stuck.smaller {
                self.black_hole(this);
            }
            self.stuck = Stuck::default();
        }
        if self.loss.0 > 0 && acked >= self.loss.0 {
            let (_, before) = core::mem::take(&mut self.loss);
            let flight = this.segments.top().saturating_sub(acked);
            if before > 0 && flight > 0 {
                let ratio = flight as f64 / before as f64;
                self.response.count += 1;
                self.response.sum += ratio;
                self.response.squares += ratio * ratio;
            }
        }
    }

    /// The first ACK of its data has come. Further from the sender, ACKs and the rest of the flight pass each other.
    fn first_flight(&mut self, step: &Step<'_>) {
        let this = step.other;
        let far = this.rtt.min >= FAR && step.other_lag == 0;
        if far && self.more && this.initial_packets < FIRST_FLIGHT {
            self.add(
                Finding::SmallInitialWindow,
                step.segment.number,
                this.initial_packets,
            );
        }
    }

    fn black_hole(&mut self, this: &Direction) {
        let packet = self.stuck.first_packet;
        self.add(Finding::PathMtu, packet, u64::from(this.segment_max));
    }

    /// Marks of ECN on its packet, and in it.
    fn marks(&mut self, step: &Step<'_>, theirs: &mut End) {
        let segment = step.segment;
        if segment.ce() {
            self.add(Finding::EcnMarked, segment.number, 0);
        }
        // With CE here, the other end's packets count already.
        if segment.ece() && self.ecn && theirs.ecn && step.other.ce_packets == 0 {
            theirs.add(Finding::EcnMarked, segment.number, 0);
        }
    }

    fn ended(&mut self, step: &Step<'_>) {
        let (segment, this, other) = (step.segment, step.this, step.other);
        if self.reset_packet > 0 {
            return;
        }
        self.reset_packet = segment.number;
        let strange = self.ttl > 0 && self.ttl.abs_diff(segment.hop_limit) >= 2 && !self.ttl_varies;
        let flight = match other.segments.acked() {
            0 => 0,
            acked => other.segments.top().saturating_sub(acked),
        };
        let (finding, value) = if this.syns == 0 && other.syns > 0 && other.data_bytes == 0 {
            (Finding::Refused, 0)
        } else if strange {
            (Finding::ResetInjected, 0)
        } else if step.silence >= SILENCE {
            (Finding::ResetIdle, step.silence as u64)
        } else if flight > 1 || flight == 1 && other.fins == 0 {
            (Finding::ResetDataLost, flight)
        } else if this.fins > 0 || other.fins > 0 {
            (Finding::ResetAfterClose, 0)
        } else {
            (Finding::Reset, 0)
        };
        self.add(finding, segment.number, value);
    }

    fn finish(&mut self, this: &Direction, now: i64, agreed_on_ecn: bool) {
        if self.closed_since != 0 {
            self.opened(now);
        }
        if self.steps.count >= STEPS
            && let Err(at) = self.place(Finding::SillyWindow)
        {
            self.seen
                .insert(at, (Finding::SillyWindow as u8, self.steps));
        }
        let full_acked = self.full_end > 0 && this.segments.acked() >= self.full_end;
        if self.stuck.times >= 3 && !full_acked {
            self.black_hole(this);
        }
        if agreed_on_ecn && self.new_segments >= ECN_SEGMENTS && !self.ecn_capable {
            let packet = self.syn_packet;
            self.set(Finding::EcnCleared, packet, 0);
        }
        let unseen = this.unseen_bytes();
        if unseen > 0 {
            self.set(Finding::CaptureLoss, 0, unseen);
        }
    }
}

#[cfg(test)]
mod tests;
