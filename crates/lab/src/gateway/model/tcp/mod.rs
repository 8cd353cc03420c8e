//! One end of a TCP connection, as far as a queue can see it.
//!
//! RFC 9293 (handshake, acknowledgements), RFC 5681 and 6928 (slow start from ten segments,
//! congestion avoidance), RFC 2018 (selective acknowledgements), RFC 8985 (loss detection by time,
//! tail loss probes), RFC 6298 (time-outs), RFC 3168 (ECN).
//!
//! Bytes have no content and receive windows never close. Left out: delayed acknowledgements, FIN,
//! timestamps, CUBIC, HyStart.

mod flight;
mod sender;

use std::collections::VecDeque;
use std::net::SocketAddrV4;

use base::Instant;

use super::packet::{self, ACK, CWR, ECE, SYN, Segment};
use sender::Sender;

/// Bytes of payload in a full segment.
const MSS: u64 = 1_448;

/// Limit of SACK blocks in an acknowledgement.
const BLOCKS: usize = 3;

/// The bytes from `.0` up to `.1`.
type Span = (u64, u64);

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Tcp {
    local: SocketAddrV4,
    remote: SocketAddrV4,
    ecn: bool,
    sender: Sender,
    // Receiving.
    received: u64,
    beyond: Vec<Span>,
    /// Start of the last segment received.
    latest: u64,
    echo: bool,
    reply: bool,
    out: VecDeque<Vec<u8>>,
}

impl Tcp {
    /// One end of a connection; the end that opens it calls [`Tcp::connect`].
    pub(super) fn new(local: SocketAddrV4, remote: SocketAddrV4, ecn: bool) -> Self {
        Self {
            local,
            remote,
            ecn,
            sender: Sender::new(),
            received: 0,
            beyond: Vec::new(),
            latest: 0,
            echo: false,
            reply: false,
            out: VecDeque::new(),
        }
    }

    /// Sends the SYN.
    pub(super) fn connect(&mut self, now: Instant) {
        self.send(now);
    }

    /// Adds bytes to the data to send.
    pub(super) fn write(&mut self, octets: u64, now: Instant) {
        self.sender.write(octets);
        if self.sender.next() > 0 {
            self.send(now);
        }
    }

    /// Bytes of payload received in order.
    pub(super) fn delivered(&self) -> u64 {
        self.received.saturating_sub(1)
    }

    /// The next packet to send.
    pub(super) fn poll(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// When the next timer expires.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.sender.deadline()
    }

    /// The offsets needed to parse a packet for this end.
    pub(super) fn reference(&self) -> (u64, u64) {
        (self.sender.next(), self.received)
    }

    /// Handles a received segment.
    pub(super) fn take(&mut self, segment: &Segment, now: Instant) {
        if segment.flags & ACK != 0 {
            let marked = self.ecn && segment.flags & ECE != 0;
            self.sender
                .take(segment.acknowledgment, &segment.sack, marked, now);
        }
        let space = u64::from(segment.length) + u64::from(segment.flags & SYN != 0);
        if space > 0 {
            self.echo = (self.echo && segment.flags & CWR == 0) || segment.marked;
            self.reply = true;
            self.latest = segment.sequence;
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
        self.send(now);
        if std::mem::take(&mut self.reply) {
            self.emit(self.sender.next(), 0, 0);
        }
    }

    /// Handles expired timers.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.sender.deadline().is_some_and(|at| at <= now) {
            self.sender.handle_timeout(now);
            self.send(now);
        }
    }

    fn send(&mut self, now: Instant) {
        self.sender.fill(now);
        for (from, to) in std::mem::take(&mut self.sender.due) {
            self.emit_data(from, to);
        }
    }

    fn emit_data(&mut self, from: u64, to: u64) {
        let (length, flags) = if from == 0 { (0, SYN) } else { (to - from, 0) };
        let reduced = if length > 0 && std::mem::take(&mut self.sender.reduced) {
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
            sack: self.blocks(),
            marked: false,
        };
        self.reply = false;
        self.out
            .push_back(packet::tcp(self.local, self.remote, &segment, self.ecn));
    }

    /// SACK blocks: the block of the last segment first (RFC 2018 section 4), then the highest.
    fn blocks(&self) -> Vec<Span> {
        let is_latest = |block: &&Span| (block.0..block.1).contains(&self.latest);
        let latest = self.beyond.iter().filter(is_latest);
        let others = self.beyond.iter().rev().filter(|block| !is_latest(block));
        latest.chain(others).take(BLOCKS).copied().collect()
    }
}

/// Inserts a span into sorted spans and merges adjacent ones.
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
