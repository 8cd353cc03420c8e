//! One end of a TCP connection, as far as a queue can tell.
//!
//! RFC 9293 (handshake, acknowledgements), RFC 5681 and 6928 (slow start from ten segments, congestion avoidance), RFC
//! 2018 and 6675 (selective acknowledgements, recovery by them), RFC 6298 (time-outs), RFC 3168 (ECN).
//!
//! Octets have no content and windows never close. Left out: delayed acknowledgements, FIN, time stamps, CUBIC.

use std::collections::VecDeque;
use std::net::SocketAddrV4;

use base::{Duration, Instant};

use super::packet::{self, ACK, CWR, ECE, SYN, Segment};

/// Octets of payload in a full segment.
const MSS: u64 = 1_448;

/// Segments that a connection begins with (RFC 6928).
const INITIAL: u64 = 10;

/// Bounds of the time-out: RFC 6298 asks for a second at the start, and Linux for a fifth at least.
const RTO_FIRST: Duration = Duration::from_secs(1);
const RTO_MIN: Duration = Duration::from_millis(200);
const RTO_MAX: Duration = Duration::from_secs(60);

/// Octets that lie between `.0` and `.1`.
type Span = (u64, u64);

/// A segment that was sent and is not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Flight {
    from: u64,
    to: u64,
    /// The other end has it, beyond a hole.
    sacked: bool,
    /// It is believed lost.
    lost: bool,
    /// It was sent again since.
    resent: bool,
}

impl Flight {
    /// Octets of it believed to be on their way.
    fn on_its_way(&self) -> u64 {
        let gone = self.sacked || (self.lost && !self.resent);
        if gone { 0 } else { self.to - self.from }
    }
}

/// A connection's end.
#[derive(Debug)]
pub(super) struct Tcp {
    local: SocketAddrV4,
    remote: SocketAddrV4,
    ecn: bool,
    // Sending.
    flight: VecDeque<Flight>,
    next: u64,
    /// Where the application's data end, the SYN's octet counted.
    end: u64,
    window: u64,
    threshold: u64,
    /// Loss recovery ends when this is acknowledged.
    recover: Option<u64>,
    duplicates: u32,
    timer: Option<Instant>,
    rto: Duration,
    smoothed: Option<(u64, u64)>,
    /// A segment whose round trip is measured, by its end; none that was sent again (Karn).
    timed: Option<(u64, Instant)>,
    reduced: bool,
    // Receiving.
    received: u64,
    beyond: Vec<Span>,
    echo: bool,
    reply: bool,
    out: VecDeque<Vec<u8>>,
}

impl Tcp {
    /// A connection's end; the one that opens it calls [`Tcp::connect`].
    pub(super) fn new(local: SocketAddrV4, remote: SocketAddrV4, ecn: bool) -> Self {
        Self {
            local,
            remote,
            ecn,
            flight: VecDeque::new(),
            next: 0,
            end: 1,
            window: INITIAL * MSS,
            threshold: u64::MAX,
            recover: None,
            duplicates: 0,
            timer: None,
            rto: RTO_FIRST,
            smoothed: None,
            timed: None,
            reduced: false,
            received: 0,
            beyond: Vec::new(),
            echo: false,
            reply: false,
            out: VecDeque::new(),
        }
    }

    /// Sends the SYN.
    pub(super) fn connect(&mut self, now: Instant) {
        self.fill(now);
    }

    /// Adds octets to what is to be sent.
    pub(super) fn write(&mut self, octets: u64, now: Instant) {
        self.end = self.end.saturating_add(octets);
        if self.next > 0 {
            self.fill(now);
        }
    }

    /// Octets of payload that have arrived in order.
    pub(super) fn delivered(&self) -> u64 {
        self.received.saturating_sub(1)
    }

    /// The next packet to send.
    pub(super) fn poll(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// When the time-out strikes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timer
    }

    /// Offsets by which a packet for this end is read.
    pub(super) fn reference(&self) -> (u64, u64) {
        (self.next, self.received)
    }

    /// Takes a segment.
    pub(super) fn take(&mut self, segment: &Segment, now: Instant) {
        if segment.flags & ACK != 0 {
            self.take_acknowledgment(segment, now);
        }
        let space = u64::from(segment.length) + u64::from(segment.flags & SYN != 0);
        if space > 0 {
            self.echo = (self.echo && segment.flags & CWR == 0) || segment.marked;
            self.reply = true;
            insert(
                &mut self.beyond,
                (segment.sequence, segment.sequence + space),
            );
            if let Some(&(left, right)) = self.beyond.first()
                && left <= self.received
            {
                self.received = self.received.max(right);
                self.beyond.remove(0);
            }
        }
        self.fill(now);
        if std::mem::take(&mut self.reply) {
            self.emit(self.next, 0, 0);
        }
    }

    fn take_acknowledgment(&mut self, segment: &Segment, now: Instant) {
        for flight in &mut self.flight {
            let covers = |&(left, right): &Span| left <= flight.from && flight.to <= right;
            flight.sacked |= segment.sack.iter().any(covers);
        }
        let before = self.acknowledged();
        let to = segment.acknowledgment.min(self.next);
        if to > before {
            self.advance(before, to, now);
        } else if !self.flight.is_empty() && segment.length == 0 {
            self.duplicates += 1;
        }
        self.find_losses();
        let marked = self.ecn && segment.flags & ECE != 0;
        let lost = self.flight.iter().any(|flight| flight.lost);
        if (marked || lost) && self.recover.is_none() {
            self.threshold = self.half_in_flight();
            self.window = self.threshold;
            self.recover = Some(self.next);
            self.reduced = marked;
        }
    }

    /// RFC 6675: a segment is lost when three of its followers have arrived; the first also after three duplicates.
    fn find_losses(&mut self) {
        let mut followers = 0;
        for flight in self.flight.iter_mut().rev() {
            if flight.sacked {
                followers += 1;
            } else if followers >= 3 {
                flight.lost = true;
            }
        }
        if self.duplicates >= 3
            && let Some(first) = self.flight.front_mut()
        {
            first.lost = true;
        }
    }

    /// The first octet that the other end has not acknowledged.
    fn acknowledged(&self) -> u64 {
        self.flight.front().map_or(self.next, |first| first.from)
    }

    fn advance(&mut self, from: u64, to: u64, now: Instant) {
        if let Some((end, sent)) = self.timed
            && to >= end
        {
            self.sample(now.since(sent));
            self.timed = None;
        }
        while self.flight.front().is_some_and(|first| first.to <= to) {
            self.flight.pop_front();
        }
        self.duplicates = 0;
        let octets = to - from;
        let slow_start = self.window < self.threshold;
        if self.recover.is_some_and(|recover| to >= recover) {
            self.recover = None;
        }
        if slow_start {
            self.window += octets.min(2 * MSS);
        } else if self.recover.is_none() {
            self.window += (MSS * octets / self.window).max(1);
        }
        self.timer = (!self.flight.is_empty()).then(|| now + self.rto);
    }

    /// RFC 6298, in nanoseconds.
    fn sample(&mut self, round_trip: Duration) {
        let sample = round_trip.as_nanos();
        let (smoothed, deviation) = match self.smoothed {
            None => (sample, sample / 2),
            Some((smoothed, deviation)) => (
                smoothed - smoothed / 8 + sample / 8,
                deviation - deviation / 4 + smoothed.abs_diff(sample) / 4,
            ),
        };
        self.smoothed = Some((smoothed, deviation));
        let rto = Duration::from_nanos(smoothed + 4 * deviation);
        self.rto = rto.clamp(RTO_MIN, RTO_MAX);
    }

    fn half_in_flight(&self) -> u64 {
        ((self.next - self.acknowledged()) / 2).max(2 * MSS)
    }

    /// Fires the time-out if it is due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.threshold = self.half_in_flight();
        self.window = MSS;
        self.recover = Some(self.next);
        for flight in &mut self.flight {
            flight.lost = true;
            flight.resent = false;
        }
        self.timed = None;
        self.duplicates = 0;
        self.rto = self.rto.saturating_mul(2).clamp(RTO_MIN, RTO_MAX);
        self.timer = None;
        self.fill(now);
    }

    /// Sends what the window lets: what was lost first, then new data.
    fn fill(&mut self, now: Instant) {
        let mut pipe: u64 = self.flight.iter().map(Flight::on_its_way).sum();
        while pipe < self.window {
            let lost = |flight: &&mut Flight| flight.lost && !flight.resent && !flight.sacked;
            let (from, to) = if let Some(flight) = self.flight.iter_mut().find(lost) {
                flight.resent = true;
                self.timed = None;
                (flight.from, flight.to)
            } else if let Some(to) = self.may_send() {
                let from = std::mem::replace(&mut self.next, to);
                self.flight.push_back(Flight {
                    from,
                    to,
                    sacked: false,
                    lost: false,
                    resent: false,
                });
                if self.timed.is_none() && self.recover.is_none() {
                    self.timed = Some((to, now));
                }
                (from, to)
            } else {
                break;
            };
            pipe += to - from;
            self.emit_data(from, to);
            self.timer = self.timer.or(Some(now + self.rto));
        }
    }

    /// The end of the next new segment: the SYN first, and no data before that is acknowledged.
    fn may_send(&self) -> Option<u64> {
        if self.next == 0 {
            return Some(1);
        }
        let open = self.received > 0 && self.acknowledged() > 0;
        (open && self.next < self.end).then(|| self.end.min(self.next + MSS))
    }

    fn emit_data(&mut self, from: u64, to: u64) {
        let (length, flags) = if from == 0 { (0, SYN) } else { (to - from, 0) };
        let reduced = if length > 0 && std::mem::take(&mut self.reduced) {
            CWR
        } else {
            0
        };
        let length = u32::try_from(length).expect("at most a segment");
        self.emit(from, length, flags | reduced);
    }

    fn emit(&mut self, sequence: u64, length: u32, flags: u16) {
        let acknowledge = if self.received > 0 { ACK } else { 0 };
        let echo = if self.echo { ECE } else { 0 };
        let segment = Segment {
            sequence,
            acknowledgment: self.received,
            flags: flags | acknowledge | echo,
            length,
            sack: self.beyond.iter().rev().take(3).copied().collect(),
            marked: false,
        };
        self.reply = false;
        self.out
            .push_back(packet::tcp(self.local, self.remote, &segment, self.ecn));
    }
}

/// Adds a span to spans in order, joining what touches.
fn insert(spans: &mut Vec<Span>, (mut left, mut right): Span) {
    let at = spans.partition_point(|span| span.1 < left);
    while let Some(&(l, r)) = spans.get(at) {
        if l > right {
            break;
        }
        left = left.min(l);
        right = right.max(r);
        spans.remove(at);
    }
    spans.insert(at, (left, right));
}
