//! A TCP connection: its two ends, and the statistics of both directions.

use crate::details::Details;
use crate::direction::Direction;
use crate::key::FlowKey;
use crate::segment::Segment;
use crate::verdict::Verdict;
use crate::why::Why;
use core::net::IpAddr;

/// A connection, or the part of it that the capture shows. End `a` sent its first packet in the capture.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// Its number: 1 is the first connection of the input. 0 before numbers are assigned.
    pub number: u64,
    /// Number of its first packet in the whole input. Connections are ordered by it.
    pub first_packet: u64,
    /// Index of the file that its first packet is in.
    pub file: u32,
    /// Addresses and ports.
    pub key: FlowKey,
    /// End `a` is the lower end of the key.
    pub a_is_low: bool,
    /// Time of the first packet, in nanoseconds since 1970.
    pub first_time: i64,
    /// Time of the last packet.
    pub last_time: i64,
    /// The capture's clock at the last packet, for time-outs.
    pub(crate) last_clock: i64,
    /// Packets both ways.
    pub packets: u64,
    /// The data sent by end `a` (a2b).
    pub a: Direction,
    /// The data sent by end `b` (b2a).
    pub b: Direction,
    /// What the senders waited for, if [`crate::Options::why`] asks for it.
    pub why: Option<Box<Why>>,
    /// What else its packets show, if [`crate::Options::details`] or [`crate::Options::interval_ns`] asks for it.
    pub details: Option<Box<Details>>,
}

impl Connection {
    /// Address and port of end `a`.
    #[must_use]
    pub fn a_end(&self) -> (IpAddr, u16) {
        self.key.end(self.a_is_low)
    }

    /// Address and port of end `b`.
    #[must_use]
    pub fn b_end(&self) -> (IpAddr, u16) {
        self.key.end(!self.a_is_low)
    }

    /// How many ends sent a SYN: 0 to 2.
    #[must_use]
    pub fn syns(&self) -> u32 {
        u32::from(self.a.syns > 0) + u32::from(self.b.syns > 0)
    }

    /// How many ends sent a FIN: 0 to 2.
    #[must_use]
    pub fn fins(&self) -> u32 {
        u32::from(self.a.fins > 0) + u32::from(self.b.fins > 0)
    }

    /// Both SYNs and both FINs are in the capture.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.syns() == 2 && self.fins() == 2
    }

    /// An end sent RST.
    #[must_use]
    pub fn is_reset(&self) -> bool {
        self.a.resets > 0 || self.b.resets > 0
    }

    /// It is closed: both ends sent a FIN, or one sent a RST.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.fins() == 2 || self.is_reset()
    }

    /// Notes what else a packet shows, after [`Connection::receive`].
    #[inline]
    pub(crate) fn detail(&mut self, segment: &Segment, verdict: &Verdict, payload: &[u8]) {
        if let Some(details) = &mut self.details {
            details.packet(segment, verdict, (&self.a, &self.b), payload);
        }
    }

    /// What its lists hold beyond the room that every connection has, in segments.
    #[inline]
    pub(crate) fn many(&self) -> usize {
        self.a.segments.many() + self.b.segments.many() + self.details_size()
    }

    /// What its details hold, in segments of the same size.
    pub(crate) fn details_size(&self) -> usize {
        let details = self.details.as_deref();
        details.map_or(0, Details::memory) / size_of::<crate::segments::Sent>()
    }

    /// The end that sent this packet has sent one before.
    #[inline]
    pub(crate) fn has_sent(&self, segment: &Segment) -> bool {
        let from_a = segment.from_low == self.a_is_low;
        let this = if from_a { &self.a } else { &self.b };
        this.last_time.is_some()
    }

    /// All data of both ends is acknowledged.
    pub(crate) fn is_quiet(&self) -> bool {
        let quiet = |direction: &Direction| direction.segments.acked() >= direction.segments.top();
        quiet(&self.a) && quiet(&self.b)
    }

    /// Time from its first packet to its last, in nanoseconds; 0 if the time stamps ran backwards.
    #[must_use]
    pub fn elapsed(&self) -> i64 {
        self.last_time.saturating_sub(self.first_time).max(0)
    }

    /// The longest silence of each end, in nanoseconds. An open connection is silent until the capture's end, at `end`.
    /// `None` for an end that sent nothing.
    #[must_use]
    pub fn idle_max(&self, end: i64) -> (Option<i64>, Option<i64>) {
        let open = !self.is_closed();
        let idle = |direction: &Direction| {
            let last = direction.last_time?;
            let rest = if open { end.saturating_sub(last) } else { 0 };
            Some(direction.idle_max.max(rest))
        };
        (idle(&self.a), idle(&self.b))
    }

    /// Reads a number of each cache line that most packets need.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.packets
            .wrapping_add(self.key.touch())
            .wrapping_add(self.a.touch())
            .wrapping_add(self.b.touch())
    }

    /// Like [`Connection::touch`], for the lists, which are elsewhere in memory.
    #[inline]
    pub(crate) fn touch_lists(&self) -> u64 {
        self.a.touch_lists().wrapping_add(self.b.touch_lists())
    }

    /// Makes it a new connection and keeps the allocated room.
    pub(crate) fn reset(&mut self) {
        let Connection {
            number,
            first_packet,
            file,
            key,
            a_is_low,
            first_time,
            last_time,
            last_clock,
            packets,
            a,
            b,
            why,
            details,
        } = self;
        if let Some(why) = why {
            why.reset();
        }
        *details = None;
        (*number, *first_packet, *file, *packets) = (0, 0, 0, 0);
        (*key, *a_is_low) = (FlowKey::default(), false);
        (*first_time, *last_time, *last_clock) = (0, 0, 0);
        a.reset();
        b.reset();
    }
}
