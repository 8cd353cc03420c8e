//! One TCP connection in virtual time: handshake, an optional request, a transfer with losses, and
//! the close.
//!
//! The capture is taken next to the sender of the transfer, the near end. Its segments are captured
//! when they are sent; replies of the far end are captured a round trip later. The sender spaces
//! its segments evenly.
//!
//! Left out: congestion control, flow control, retransmission time-outs of data, and the loss of
//! retransmitted segments.

use std::collections::VecDeque;
use std::io;

use sim::Rng;

use super::frame::{ACK, Address, Capture, FIN, Options, PSH, RST, SYN, Segment, Template};
use super::receiver::{Acknowledgement, Receiver};

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Time an end needs to send an immediate reply.
const TURN: u64 = 20 * MICROSECOND;
/// Large enough for two round trips of the fastest sender here.
const WINDOW_SCALE: u8 = 9;
const WINDOW_SYN: u16 = 64_240;
const WINDOW: u16 = 50_000;
/// Number of unanswered SYNs; the second and third are sent after 1 and 2 seconds (RFC 6298 5.5).
const SYNS: u32 = 3;

/// Parameters of a connection.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The end next to the capture, which sends the transfer.
    pub(super) near: Address,
    /// The other end.
    pub(super) far: Address,
    pub(super) vlan: Option<u16>,
    /// Initial sequence numbers of the near and the far end.
    pub(super) isn: (u32, u32),
    /// Bytes of the far end's request. The far end connects if there is a request; with 0 the near
    /// end connects and sends at once.
    pub(super) request: u16,
    /// Segments of the transfer, all of `mss` bytes except the last, which has `tail`.
    pub(super) segments: u32,
    pub(super) mss: u16,
    pub(super) tail: u16,
    /// Time between segments.
    pub(super) gap_ns: u64,
    pub(super) round_trip_ns: u64,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    pub(super) faults: Faults,
    pub(super) seen: Seen,
    pub(super) ending: Ending,
}

/// Probabilities of faults in segments of the transfer, in millionths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// The first segment that may have a fault; unless it is 0, that segment is lost after the
    /// capture.
    pub(super) first: u32,
    /// Lost after the capture point, and retransmitted a round trip later.
    pub(super) lost_after: u32,
    /// Lost before the capture point, and retransmitted a round trip later.
    pub(super) lost_before: u32,
    /// Retransmitted a round trip later although it arrived.
    pub(super) spurious: u32,
    /// Overtaken by three other segments before the capture point.
    pub(super) overtaken: u32,
    /// Packets of either direction that the capture misses; never those of the handshake.
    pub(super) missed: u32,
}

/// The ends whose packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Both ends'.
    Both,
    /// The near end's.
    Near,
    /// The near end's, and the far end's packets of the handshake.
    NearAndHandshake,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With a FIN from each end, the near one first.
    Fin,
    /// With an RST from the near end.
    Reset,
    /// The connection is never established: no SYN is answered.
    NoAnswer,
}

/// What happens at the capture point at some time, other than the first transmission of a segment.
#[derive(Clone, Copy, Debug)]
enum Event {
    Syn(u32),
    SynAck,
    HandshakeAck,
    Request,
    Overtaken(u32),
    Resend(u32),
    Ack(Acknowledgement),
    Close,
    FinAck,
    LastAck,
}

/// The state of one end that its packets show.
#[derive(Debug)]
struct End {
    template: Template,
    isn: u32,
    id: u16,
    /// Origin of its timestamps, in milliseconds.
    clock: u32,
    /// The other end's latest time stamp.
    echo: u32,
}

/// One moment at the capture point.
pub(super) struct Moment<'a, 'b> {
    /// Nanoseconds since 1970.
    pub(super) now: u64,
    pub(super) rng: &'a mut Rng,
    pub(super) capture: &'a mut Capture<'b>,
}

/// A connection in progress.
#[derive(Debug)]
pub(super) struct Flow {
    plan: Plan,
    near: End,
    far: End,
    receiver: Receiver,
    /// When the next new segment is sent; `u64::MAX` if there is none to send now.
    send_at: u64,
    sent: u32,
    /// Segments lost or presumed lost, and not retransmitted yet.
    resending: u32,
    /// Bytes that the far end has sent.
    asked: u16,
    /// When the far end's last packet passes the capture point.
    far_at: u64,
    /// Sorted by time.
    events: VecDeque<(u64, Event)>,
}

impl Flow {
    /// A connection whose first packet is sent at `start_ns`.
    pub(super) fn new(plan: Plan, start_ns: u64, rng: &mut Rng) -> Self {
        let end = |from, to, isn, upstream, random: u64| End {
            template: Template::new(from, to, plan.vlan, upstream),
            isn,
            id: random as u16,
            clock: (random >> 16) as u32,
            echo: 0,
        };
        let mut flow = Self {
            near: end(plan.near, plan.far, plan.isn.0, true, rng.next_u64()),
            far: end(plan.far, plan.near, plan.isn.1, false, rng.next_u64()),
            receiver: Receiver::default(),
            send_at: u64::MAX,
            sent: 0,
            resending: 0,
            asked: 0,
            far_at: 0,
            events: VecDeque::with_capacity(4),
            plan,
        };
        flow.schedule(start_ns, Event::Syn(1));
        flow
    }

    /// The time of its next step; `None` after the last.
    pub(super) fn next_at(&self) -> Option<u64> {
        let event = self.events.front().map_or(u64::MAX, |event| event.0);
        let next = event.min(self.send_at);
        (next != u64::MAX).then_some(next)
    }

    /// Does the next step, which is due now.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn step(&mut self, at: &mut Moment<'_, '_>) -> io::Result<()> {
        match self.events.front() {
            Some(&(then, event)) if then <= at.now => {
                self.events.pop_front();
                self.handle(event, at)
            }
            _ if self.send_at <= at.now => self.send_new(at),
            _ => Ok(()),
        }
    }

    fn handle(&mut self, event: Event, at: &mut Moment<'_, '_>) -> io::Result<()> {
        match event {
            Event::Syn(_) | Event::SynAck | Event::HandshakeAck | Event::Request => {
                self.open(event, at)
            }
            Event::Overtaken(index) => self.transmit(index, at),
            Event::Resend(index) => {
                self.resending -= 1;
                self.transmit(index, at)?;
                self.close_when_done(at.now);
                Ok(())
            }
            Event::Ack(ack) => self.acknowledge(&ack, at),
            Event::Close | Event::FinAck | Event::LastAck => self.close(event, at),
        }
    }

    /// The handshake and the request.
    fn open(&mut self, event: Event, at: &mut Moment<'_, '_>) -> io::Result<()> {
        let near_connects = self.plan.request == 0;
        let answer = |by_near| {
            if by_near {
                at.now + TURN
            } else {
                at.now + self.plan.round_trip_ns
            }
        };
        match event {
            Event::Syn(count) => {
                if self.plan.ending != Ending::NoAnswer {
                    self.schedule(answer(!near_connects), Event::SynAck);
                } else if count < SYNS {
                    self.schedule(at.now + (SECOND << (count - 1)), Event::Syn(count + 1));
                }
                self.emit_syn(near_connects, 0, at)
            }
            Event::SynAck => {
                self.schedule(answer(near_connects), Event::HandshakeAck);
                self.emit_syn(!near_connects, ACK, at)
            }
            Event::HandshakeAck if near_connects => {
                self.send_at = at.now + TURN;
                let segment = self.near_segment(0, ACK, 0, at.now);
                self.emit_near(segment, at)
            }
            Event::HandshakeAck => {
                self.schedule(at.now + TURN, Event::Request);
                let segment = self.far_segment(0, ACK, 0, at.now);
                self.emit_far(segment, at)
            }
            _ => {
                self.send_at = at.now + MILLISECOND + at.rng.below(MILLISECOND);
                let segment = self.far_segment(0, ACK | PSH, self.plan.request, at.now);
                self.asked = self.plan.request;
                self.emit_far(segment, at)
            }
        }
    }

    /// Sends the next segment of the transfer, or loses it.
    fn send_new(&mut self, at: &mut Moment<'_, '_>) -> io::Result<()> {
        let (faults, gap) = (self.plan.faults, self.plan.gap_ns);
        let index = self.sent;
        self.sent += 1;
        self.send_at = if self.sent < self.plan.segments {
            at.now + gap
        } else {
            u64::MAX
        };
        let is_first = index == faults.first && index > 0;
        let may_be = index >= faults.first;
        let mut lot = at.rng.below(1_000_000) as u32;
        let mut drawn = |share: u32| {
            let is_it = may_be && lot < share;
            lot = lot.wrapping_sub(share);
            is_it
        };
        let lost_after = drawn(faults.lost_after) || is_first;
        let lost_before = drawn(faults.lost_before);
        let spurious = drawn(faults.spurious);
        let overtaken = drawn(faults.overtaken);
        if lost_after || lost_before || spurious {
            self.resending += 1;
            let again = at.now + self.plan.round_trip_ns + 4 * gap;
            self.schedule(again, Event::Resend(index));
        }
        if lost_after {
            self.emit_data(index, at)?;
        } else if overtaken {
            self.schedule(at.now + 3 * gap + gap / 2, Event::Overtaken(index));
        } else if !lost_before {
            self.transmit(index, at)?;
        }
        self.close_when_done(at.now);
        Ok(())
    }

    /// Sends a segment that arrives.
    fn transmit(&mut self, index: u32, at: &mut Moment<'_, '_>) -> io::Result<()> {
        if self.plan.seen == Seen::Both {
            let stamp = milliseconds(self.near.clock, at.now);
            if let Some(ack) = self.receiver.receive(index, stamp) {
                let then = self.far_answers(at);
                self.schedule(then, Event::Ack(ack));
            }
        }
        self.emit_data(index, at)
    }

    fn close_when_done(&mut self, now: u64) {
        if self.sent == self.plan.segments && self.resending == 0 {
            // After the segment that was overtaken.
            self.schedule(now + 4 * self.plan.gap_ns, Event::Close);
        }
    }

    fn close(&mut self, event: Event, at: &mut Moment<'_, '_>) -> io::Result<()> {
        let all = self.plan.segments;
        match event {
            Event::Close if self.plan.ending == Ending::Reset => {
                let segment = self.near_segment(all, ACK | RST, 0, at.now);
                self.emit_near(segment, at)
            }
            Event::Close => {
                let then = self.far_answers(at);
                self.schedule(then, Event::FinAck);
                let segment = self.near_segment(all, ACK | FIN, 0, at.now);
                self.emit_near(segment, at)
            }
            Event::FinAck => {
                self.schedule(at.now + TURN, Event::LastAck);
                let mut segment = self.far_segment(all, ACK | FIN, 0, at.now);
                segment.ack = segment.ack.wrapping_add(1);
                self.emit_far(segment, at)
            }
            _ => {
                let mut segment = self.near_segment(all, ACK, 0, at.now);
                segment.seq = segment.seq.wrapping_add(1);
                segment.ack = segment.ack.wrapping_add(1);
                self.emit_near(segment, at)
            }
        }
    }

    fn acknowledge(&mut self, ack: &Acknowledgement, at: &mut Moment<'_, '_>) -> io::Result<()> {
        self.far.echo = ack.timestamp;
        let mut segment = self.far_segment(ack.next, ACK, 0, at.now);
        if self.plan.sack {
            let first = self.near.isn.wrapping_add(1);
            let edge = |index| first.wrapping_add(self.offset(index));
            let blocks = ack
                .blocks()
                .iter()
                .map(|&(from, to)| (edge(from), edge(to)));
            segment.options.sack(blocks);
        }
        self.emit_far(segment, at)
    }

    /// When the far end's reply to the present packet passes the capture point: a round trip later,
    /// in order.
    fn far_answers(&mut self, at: &mut Moment<'_, '_>) -> u64 {
        let round_trip = self.plan.round_trip_ns;
        let jitter = at.rng.below(round_trip / 16 + 1);
        self.far_at = (self.far_at + MICROSECOND).max(at.now + round_trip + jitter);
        self.far_at
    }

    /// Inserts an event by its time; most belong at or near the end.
    fn schedule(&mut self, then: u64, event: Event) {
        let later = self.events.iter().rev().take_while(|e| e.0 > then).count();
        self.events.insert(self.events.len() - later, (then, event));
    }

    /// Bytes of the transfer before segment `index`, modulo 2^32.
    fn offset(&self, index: u32) -> u32 {
        let whole = index.wrapping_mul(u32::from(self.plan.mss));
        if index == self.plan.segments && index > 0 {
            whole.wrapping_sub(u32::from(self.plan.mss - self.plan.tail))
        } else {
            whole
        }
    }

    /// A packet of the near end with the sequence number of segment `index`.
    fn near_segment(&self, index: u32, flags: u8, payload: u16, now: u64) -> Segment {
        let seq = self
            .near
            .isn
            .wrapping_add(1)
            .wrapping_add(self.offset(index));
        let ack = self.far.isn.wrapping_add(1 + u32::from(self.asked));
        segment(seq, ack, flags, payload, self.stamps(&self.near, now))
    }

    /// A packet of the far end that acknowledges everything before segment `next`.
    fn far_segment(&self, next: u32, flags: u8, payload: u16, now: u64) -> Segment {
        let seq = self.far.isn.wrapping_add(1 + u32::from(self.asked));
        let ack = self
            .near
            .isn
            .wrapping_add(1)
            .wrapping_add(self.offset(next));
        segment(seq, ack, flags, payload, self.stamps(&self.far, now))
    }

    fn stamps(&self, end: &End, now: u64) -> Option<(u32, u32)> {
        let stamps = (milliseconds(end.clock, now), end.echo);
        self.plan.timestamps.then_some(stamps)
    }

    fn emit_data(&mut self, index: u32, at: &mut Moment<'_, '_>) -> io::Result<()> {
        let (length, push) = if index + 1 == self.plan.segments {
            (self.plan.tail, PSH)
        } else {
            (self.plan.mss, 0)
        };
        let segment = self.near_segment(index, ACK | push, length, at.now);
        self.emit_near(segment, at)
    }

    fn emit_near(&mut self, mut segment: Segment, at: &mut Moment<'_, '_>) -> io::Result<()> {
        segment.id = self.near.next_id();
        if self.is_missed(at.rng) {
            return Ok(());
        }
        at.capture.tcp(at.now, &self.near.template, &segment)
    }

    fn emit_far(&mut self, mut segment: Segment, at: &mut Moment<'_, '_>) -> io::Result<()> {
        segment.id = self.far.next_id();
        self.near.echo = milliseconds(self.far.clock, at.now);
        let is_seen = match self.plan.seen {
            Seen::Both => true,
            Seen::Near => false,
            Seen::NearAndHandshake => self.is_opening(),
        };
        if !is_seen || self.is_missed(at.rng) {
            return Ok(());
        }
        at.capture.tcp(at.now, &self.far.template, &segment)
    }

    /// A SYN, with an ACK if it answers another.
    fn emit_syn(&mut self, by_near: bool, ack: u8, at: &mut Moment<'_, '_>) -> io::Result<()> {
        let (from, to) = if by_near {
            (&mut self.near, &mut self.far)
        } else {
            (&mut self.far, &mut self.near)
        };
        let value = milliseconds(from.clock, at.now);
        let stamps = self.plan.timestamps.then_some((value, from.echo));
        to.echo = value;
        let mss = self.plan.mss + if stamps.is_some() { 12 } else { 0 };
        let segment = Segment {
            seq: from.isn,
            ack: if ack == 0 { 0 } else { to.isn.wrapping_add(1) },
            flags: SYN | ack,
            window: WINDOW_SYN,
            id: from.next_id(),
            options: Options::of_syn(mss, WINDOW_SCALE, self.plan.sack, stamps),
            payload: 0,
        };
        if by_near || self.plan.seen != Seen::Near {
            at.capture.tcp(at.now, &from.template, &segment)?;
        }
        Ok(())
    }

    fn is_opening(&self) -> bool {
        self.sent == 0
    }

    /// Whether the capture misses this packet; never one of the handshake.
    fn is_missed(&self, rng: &mut Rng) -> bool {
        let share = self.plan.faults.missed;
        share > 0 && !self.is_opening() && rng.below(1_000_000) < u64::from(share)
    }
}

impl End {
    fn next_id(&mut self) -> u16 {
        self.id = self.id.wrapping_add(1);
        self.id
    }
}

fn segment(seq: u32, ack: u32, flags: u8, payload: u16, stamps: Option<(u32, u32)>) -> Segment {
    let mut options = Options::default();
    options.timestamps(stamps);
    Segment {
        seq,
        ack,
        flags,
        window: WINDOW,
        id: 0,
        options,
        payload,
    }
}

/// A clock in milliseconds that started at `zero`.
fn milliseconds(zero: u32, now: u64) -> u32 {
    zero.wrapping_add((now / MILLISECOND) as u32)
}
