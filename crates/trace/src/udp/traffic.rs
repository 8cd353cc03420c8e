//! What `why` keeps of a UDP flow: silences of both ends, visible sequence numbers, and questions of DNS.

use serde::{Deserialize, Serialize};

use super::sequence::Streams;
use crate::rtt::Times;

/// Flows that are looked at. Further ones have packets and bytes only.
pub const TRAFFIC_MAX: usize = 1 << 18;

/// Questions that wait for their answers.
const ASKED_MAX: usize = 16;

const DNS: u16 = 53;

/// One end's packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// Its visible sequence numbers.
    pub streams: Streams,
    /// Its longest silence between two packets, in nanoseconds, and the packet that ended it.
    pub silence: (i64, u64),
    last: Option<i64>,
}

/// Questions and answers of DNS (RFC 1035 4.1.1), by their identifiers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    /// Questions, each once.
    pub questions: u64,
    /// Questions that were sent again before an answer.
    pub repeated: u64,
    /// Questions with an answer.
    pub answered: u64,
    /// The slowest answer, in nanoseconds, and its packet.
    pub slowest: (i64, u64),
    count: u64,
    min: i64,
    sum: i64,
    asked: Vec<(u16, i64)>,
}

impl Dns {
    /// Times from a question, as first sent, to its answer.
    #[must_use]
    pub fn times(&self) -> Times {
        Times {
            count: self.count,
            min: self.min,
            max: self.slowest.0,
            sum: self.sum,
            squares: 0.0,
        }
    }

    /// The mean of these times.
    #[must_use]
    pub fn mean(&self) -> Option<i64> {
        let count = i64::try_from(self.count).ok().filter(|&count| count > 0)?;
        Some(self.sum / count)
    }

    /// Questions without an answer.
    #[must_use]
    pub const fn unanswered(&self) -> u64 {
        self.questions.saturating_sub(self.answered)
    }

    fn packet(&mut self, payload: &[u8], time: i64, packet: u64) {
        let Some([id, more, flags, ..]) = payload.first_chunk::<12>() else {
            return;
        };
        let id = u16::from_be_bytes([*id, *more]);
        let known = self.asked.iter().position(|(other, _)| *other == id);
        match (flags & 0x80 != 0, known) {
            (false, Some(_)) => self.repeated += 1,
            (false, None) => {
                self.questions += 1;
                if self.asked.len() == ASKED_MAX {
                    self.asked.remove(0);
                }
                self.asked.push((id, time));
            }
            (true, Some(at)) => {
                let (_, asked) = self.asked.remove(at);
                let passed = time.saturating_sub(asked).max(0);
                self.answered += 1;
                self.min = match self.count {
                    0 => passed,
                    _ => self.min.min(passed),
                };
                if self.count == 0 || passed > self.slowest.0 {
                    self.slowest = (passed, packet);
                }
                self.sum = self.sum.saturating_add(passed);
                self.count += 1;
            }
            // Its question was before the capture, or was answered already.
            (true, None) => {}
        }
    }
}

/// What is kept of a flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// The packets of end `a`.
    pub a: Sender,
    /// The packets of end `b`.
    pub b: Sender,
    /// The last packet was of end `a`.
    pub last_from_a: bool,
    /// The flow is DNS.
    pub dns: Option<Dns>,
}

/// A datagram, as [`Traffic`] sees it.
pub(super) struct Seen<'a> {
    pub(super) from_a: bool,
    /// Ports of ends `a` and `b`.
    pub(super) ports: [u16; 2],
    /// The payload as far as it was captured, and its length.
    pub(super) payload: &'a [u8],
    pub(super) length: usize,
    pub(super) time: i64,
    pub(super) packet: u64,
    /// The flow is QUIC, whose numbers are encrypted.
    pub(super) is_quic: bool,
}

impl Traffic {
    pub(super) fn packet(&mut self, seen: &Seen<'_>) {
        let sender = if seen.from_a {
            &mut self.a
        } else {
            &mut self.b
        };
        if let Some(last) = sender.last.replace(seen.time) {
            let silence = seen.time.saturating_sub(last);
            if silence > sender.silence.0 {
                sender.silence = (silence, seen.packet);
            }
        }
        self.last_from_a = seen.from_a;
        if seen.ports.contains(&DNS) {
            let dns = self.dns.get_or_insert_default();
            dns.packet(seen.payload, seen.time, seen.packet);
        } else if !seen.is_quic {
            let payload = (seen.payload, seen.length);
            sender
                .streams
                .packet(payload, seen.ports, seen.time, seen.packet);
        }
    }

    /// Packets that are missing in the streams of an end.
    #[must_use]
    pub fn lost(&self, from_a: bool) -> u64 {
        let sender = if from_a { &self.a } else { &self.b };
        let lost = sender.streams.iter().map(super::sequence::Stream::lost);
        lost.fold(0, u64::saturating_add)
    }
}
