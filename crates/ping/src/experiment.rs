//! A running experiment: all streams, their schedule and their timeouts.
//!
//! The owner of the sockets calls, in a loop: [`Experiment::pop_send`] until it is empty, and sends each packet;
//! [`Experiment::sent`] or [`Experiment::failed`] with the kernel's answer; [`Experiment::received`] for each reply;
//! [`Experiment::handle_timeout`]; then it waits until [`Experiment::poll_timeout`]. When [`Experiment::is_over`] is
//! true, [`Experiment::finish`] returns the result. All instants come from one clock.
//!
//! An idle stream costs nothing: it has one timer for its next packet and one for the oldest unanswered packet. The
//! schedule is absolute: a packet that is sent late does not delay the next.

use base::timer::{TimerStore, Wheel};
use base::{Duration, Instant};

use crate::outcome::{Finished, Outcome};
use crate::plan::Plan;
use crate::statistics::Statistics;
use crate::stream::{Arrival, Stream, ns_after};

/// Packets are due at multiples of this.
const SEND_TICK: Duration = Duration::from_micros(1);
/// Packets time out at multiples of this.
const WAIT_TICK: Duration = Duration::from_millis(1);

/// A packet to send now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Its stream's index in the plan.
    pub stream: u32,
    /// Its number, from 1.
    pub sequence: u64,
    /// When it was due.
    pub due: Instant,
}

/// The packet that a reply answers, as the reply says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    /// The number itself.
    Full(u64),
    /// Its lower 16 bits: they mean the latest packet with these bits.
    Low(u16),
}

/// A responder's time stamps and count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Far {
    /// Arrival at the responder, in nanoseconds after the start of the experiment, by the responder's clock.
    pub arrived_ns: i64,
    /// Departure from the responder, by the same clock.
    pub departed_ns: i64,
    /// Packets of this stream that the responder had received, this one included; 0 if it does not know.
    pub count: u32,
}

/// A reply as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Its stream.
    pub stream: u32,
    /// The packet that it answers.
    pub sequence: Sequence,
    /// Its arrival time.
    pub at: Instant,
    /// Its TTL or hop limit; 0 if unknown.
    pub ttl: u8,
    /// Its TOS octet or traffic class.
    pub tos: u8,
    /// The time stamps and count of a responder.
    pub far: Option<Far>,
}

/// How a reply was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The packet it answers.
    pub sequence: u64,
    /// The round trip.
    pub rtt: Duration,
    /// It arrived after the timeout.
    pub late: bool,
    /// The packet had been answered before.
    pub duplicate: bool,
    /// A later packet had been answered before this one.
    pub reordered: bool,
}

/// Why a reply was ignored; each is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// No stream has this number.
    #[error("reply to an unknown stream")]
    UnknownStream,
    /// No packet with this number was sent, or it was sent too long ago to be remembered.
    #[error("reply to an unknown packet")]
    UnknownSequence,
}

/// The present state of a stream, for a live view.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// Packets sent.
    pub transmitted: u64,
    /// Packets answered.
    pub received: u64,
    /// Packets lost, not sent, or overdue: unanswered for twice the longest round trip.
    pub missing: u64,
    /// Packets answered after the timeout.
    pub late: u64,
    /// Further replies to answered packets.
    pub duplicates: u64,
    /// Packets answered after a later one.
    pub reordered: u64,
    /// ICMP errors received.
    pub errors: u64,
    /// The last round trip, in nanoseconds.
    pub last_ns: Option<u64>,
    /// Median and 99th percentile of the round trips, in nanoseconds.
    pub p50_p99_ns: Option<[u64; 2]>,
    /// Round trips of the latest packets in nanoseconds; `None` for a missing one.
    pub recent: Vec<Option<u64>>,
}

/// A running experiment.
pub struct Experiment {
    plan: Plan,
    start: Instant,
    streams: Vec<Stream>,
    sends: Wheel,
    waits: Wheel,
    running: usize,
    ignored: u64,
}

impl Experiment {
    /// An experiment that starts at `start`. The plan should have passed [`Plan::check`].
    #[must_use]
    pub fn new(plan: Plan, start: Instant) -> Self {
        let keep_max = plan.samples_max / plan.streams.len().max(1) as u64;
        let streams: Vec<Stream> = plan
            .streams
            .iter()
            .map(|stream| Stream::new(stream, start, keep_max))
            .collect();
        let mut sends = Wheel::new(SEND_TICK);
        for (number, stream) in streams.iter().enumerate() {
            if stream.sends() {
                sends.insert(stream.next_due, number as u32);
            }
        }
        let running = streams.iter().filter(|stream| !stream.is_over()).count();
        Self {
            plan,
            start,
            streams,
            sends,
            waits: Wheel::new(WAIT_TICK),
            running,
            ignored: 0,
        }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// When the next packet is due; `None` if no more packets will be sent.
    #[must_use]
    pub fn next_send(&self) -> Option<Instant> {
        self.sends.next_deadline()
    }

    /// When the next packet is due or times out.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match (self.sends.next_deadline(), self.waits.next_deadline()) {
            (Some(send), Some(wait)) => Some(send.min(wait)),
            (one, other) => one.or(other),
        }
    }

    /// Takes one packet that is due at `now`, and records it as sent at that time.
    pub fn pop_send(&mut self, now: Instant) -> Option<Due> {
        loop {
            let number = self.sends.pop_due(now)?.token;
            let stream = &mut self.streams[number as usize];
            if !stream.sends() {
                continue;
            }
            let (index, due) = stream.take(self.start, now);
            if stream.sends() {
                self.sends.insert(stream.next_due, number);
                if stream.timer.is_none() {
                    self.arm(number);
                }
            } else {
                self.rearm(number);
            }
            return Some(Due {
                stream: number,
                sequence: index + 1,
                due,
            });
        }
    }

    /// Records the kernel's time stamp of a packet. Ignored if the packet is answered or has timed out.
    pub fn sent(&mut self, stream: u32, sequence: u64, at: Instant) {
        let at_ns = ns_after(self.start, at);
        if let (Some(stream), Some(index)) = (
            self.streams.get_mut(stream as usize),
            sequence.checked_sub(1),
        ) {
            stream.sent(index, at_ns);
        }
    }

    /// Records that the kernel refused to send a packet.
    pub fn failed(&mut self, stream: u32, sequence: u64) {
        if let (Some(entry), Some(index)) = (
            self.streams.get_mut(stream as usize),
            sequence.checked_sub(1),
        ) {
            let was_over = entry.is_over();
            entry.failed(index);
            self.note_end(stream, was_over);
        }
    }

    /// Counts an ICMP error for a packet of this stream. The packet may still be answered.
    pub fn note_error(&mut self, stream: u32) {
        if let Some(stream) = self.streams.get_mut(stream as usize) {
            stream.statistics.errors += 1;
        }
    }

    /// The packet that a reply or an error refers to; `None` if there is none.
    #[must_use]
    pub fn resolve(&self, stream: u32, sequence: Sequence) -> Option<u64> {
        let stream = self.streams.get(stream as usize)?;
        let last = stream.samples.length();
        let sequence = match sequence {
            Sequence::Full(sequence) => sequence,
            Sequence::Low(low) => expand(last, low),
        };
        (1..=last).contains(&sequence).then_some(sequence)
    }

    /// Records a reply.
    ///
    /// # Errors
    /// Why the reply was ignored and counted.
    pub fn received(&mut self, reply: Reply) -> Result<Accepted, Ignored> {
        let booked = self.book(&reply);
        self.ignored += u64::from(booked.is_err());
        booked
    }

    fn book(&mut self, reply: &Reply) -> Result<Accepted, Ignored> {
        let sequence = self.resolve(reply.stream, reply.sequence);
        let stream = self
            .streams
            .get_mut(reply.stream as usize)
            .ok_or(Ignored::UnknownStream)?;
        let sequence = sequence.ok_or(Ignored::UnknownSequence)?;
        let index = sequence - 1;
        let arrival = Arrival {
            at_ns: ns_after(self.start, reply.at),
            ttl: reply.ttl,
            tos: reply.tos,
            far: reply
                .far
                .map(|far| (far.arrived_ns, far.departed_ns, far.count)),
        };
        let was_over = stream.is_over();
        let first = stream.statistics.received == 0;
        let booked = stream
            .reply(index, self.plan.wait, arrival)
            .ok_or(Ignored::UnknownSequence)?;
        // A first reply shortens the timeout of the last packets.
        if first && !stream.sends() && !stream.is_over() {
            self.rearm(reply.stream);
        }
        self.note_end(reply.stream, was_over);
        Ok(Accepted {
            sequence,
            rtt: booked.rtt,
            late: booked.late,
            duplicate: booked.duplicate,
            reordered: booked.reordered,
        })
    }

    /// Counts a reply whose stream cannot be found, which [`Experiment::received`] therefore cannot take.
    pub fn note_unknown(&mut self) {
        self.ignored += 1;
    }

    /// Times out the packets that have waited long enough.
    pub fn handle_timeout(&mut self, now: Instant) {
        let now_ns = ns_after(self.start, now);
        while let Some(expired) = self.waits.pop_due(now) {
            let stream = &mut self.streams[expired.token as usize];
            let was_over = stream.is_over();
            stream.timer = None;
            stream.expire(self.plan.wait, now_ns);
            self.note_end(expired.token, was_over);
            self.arm(expired.token);
        }
    }

    /// Sends no more packets. Waits only for likely replies: twice the longest round trip for streams that had
    /// replies.
    pub fn stop(&mut self) {
        for number in 0..self.streams.len() as u32 {
            let stream = &mut self.streams[number as usize];
            let was_over = stream.is_over();
            stream.stop();
            self.note_end(number, was_over);
            self.rearm(number);
        }
        self.sends = Wheel::new(SEND_TICK);
    }

    /// Stops sending and waiting at once.
    pub fn abandon(&mut self) {
        self.streams.iter_mut().for_each(Stream::abandon);
        self.running = 0;
        self.sends = Wheel::new(SEND_TICK);
        self.waits = Wheel::new(WAIT_TICK);
    }

    /// Whether no more packets are sent or waited for.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.running == 0
    }

    /// A stream's counts and round trips so far.
    #[must_use]
    pub fn statistics(&self, stream: u32) -> Option<&Statistics> {
        Some(&self.streams.get(stream as usize)?.statistics)
    }

    /// Replies that were ignored.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Writes a stream's present state into `live`, with its latest `recent_max` packets. The cost does not grow with
    /// the rate, except for one step per packet sent since the last call.
    pub fn live(&mut self, stream: u32, now: Instant, recent_max: usize, live: &mut Live) {
        let now_ns = ns_after(self.start, now);
        let Some(stream) = self.streams.get_mut(stream as usize) else {
            return;
        };
        let overdue = stream.overdue(self.plan.wait, now_ns);
        let statistics = &stream.statistics;
        live.transmitted = statistics.transmitted;
        live.received = statistics.received;
        live.missing = statistics.lost + statistics.failed + overdue;
        live.late = statistics.late;
        live.duplicates = statistics.duplicates;
        live.reordered = statistics.reordered;
        live.errors = statistics.errors;
        live.last_ns = stream.last_rtt.map(Duration::as_nanos);
        live.p50_p99_ns = statistics.p50_p99();
        live.recent.clear();
        let recent = stream.recent(recent_max);
        live.recent
            .extend(recent.map(|sample| sample.rtt().map(Duration::as_nanos)));
    }

    /// The result; unanswered packets are marked as waiting. `started_unix_ns` is the experiment's start by the
    /// calendar.
    #[must_use]
    pub fn finish(self, started_unix_ns: u64, interrupted: bool) -> Outcome {
        let finished = self.streams.into_iter().zip(self.plan.streams);
        let finished = finished.map(|(stream, plan)| Finished { stream, plan });
        Outcome::of(
            finished,
            self.plan.wait,
            started_unix_ns,
            interrupted,
            self.ignored,
        )
    }

    fn note_end(&mut self, stream: u32, was_over: bool) {
        let is_over = self.streams[stream as usize].is_over();
        match (was_over, is_over) {
            (false, true) => self.running -= 1,
            (true, false) => self.running += 1,
            (false, false) | (true, true) => {}
        }
    }

    /// Arms the timeout of a stream's oldest packet.
    fn arm(&mut self, number: u32) {
        let stream = &mut self.streams[number as usize];
        if stream.is_over() {
            return;
        }
        if let Some(at_ns) = stream.gives_up_ns(self.plan.wait) {
            let after = Duration::from_nanos(u64::try_from(at_ns).unwrap_or(0));
            stream.timer = Some(self.waits.insert(self.start + after, number));
        }
    }

    fn rearm(&mut self, number: u32) {
        if let Some(timer) = self.streams[number as usize].timer.take() {
            self.waits.cancel(timer);
        }
        self.arm(number);
    }
}

/// The latest number up to `last` with these lower 16 bits; 0 if there is none.
fn expand(last: u64, low: u16) -> u64 {
    let candidate = last & !0xffff | u64::from(low);
    match candidate > last {
        true => candidate.saturating_sub(0x1_0000),
        false => candidate,
    }
}

#[cfg(test)]
mod tests;
