//! The responder to UDP probes. Each answer has the length of its probe, so nothing is amplified, and the rate of
//! answers is limited per sender and in all.
//!
//! It has two tables of a fixed size. One counts the probes of each stream; if a row of it is full, the stream that
//! was silent for the longest time is forgotten and starts anew from 0. The other has each sender's allowance of
//! answers; senders that share an entry share the allowance.

use std::net::IpAddr;

use base::{Duration, Instant};

use crate::probe::{Probe, Stamps};

/// Answers a second to one sender.
pub const SENDER_RATE: u64 = 20_000;
/// Answers a second in all.
pub const TOTAL_RATE: u64 = 100_000;
/// Unused allowance accumulates for this many milliseconds.
const BURST_MS: u64 = 100;
/// Rows of [`WAYS`] streams each.
const ROWS: usize = 1_024;
const WAYS: usize = 4;
const SENDERS: usize = 4_096;

/// Why a datagram was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no request of this version.
    #[error("no probe")]
    NotAProbe,
    /// The sender, or all senders together, exceed the rate.
    #[error("above the rate")]
    TooFast,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    nonce: u64,
    count: u32,
    last: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Allowance {
    left: u64,
    since: Instant,
}

/// The responder's tables.
#[derive(Debug)]
pub struct Responder {
    seed: u64,
    streams: Vec<[Counted; WAYS]>,
    senders: Vec<Allowance>,
    total: Allowance,
    /// Probes answered.
    pub answered: u64,
    /// Datagrams that were not probes.
    pub strange: u64,
    /// Probes above the rate.
    pub limited: u64,
}

impl Allowance {
    fn full(rate: u64) -> Self {
        Self {
            left: rate * BURST_MS / 1_000,
            since: Instant::ZERO,
        }
    }

    fn has_one(&mut self, rate: u64, now: Instant) -> bool {
        let span_ns = 1_000_000_000 / rate;
        let new = now.since(self.since).as_nanos() / span_ns;
        let most = rate * BURST_MS / 1_000;
        if new >= most {
            (self.left, self.since) = (most, now);
        } else {
            self.left = (self.left + new).min(most);
            self.since += Duration::from_nanos(new * span_ns);
        }
        self.left > 0
    }
}

impl Responder {
    /// A responder with empty tables. `seed` decides which senders share an entry; it should be random.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            streams: vec![[Counted::default(); WAYS]; ROWS],
            senders: vec![Allowance::full(SENDER_RATE); SENDERS],
            total: Allowance::full(TOTAL_RATE),
            answered: 0,
            strange: 0,
            limited: 0,
        }
    }

    /// Writes the answer to `request` into `out`, which is cleared first. [`depart`] sets the departure time in it
    /// just before it is sent.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn answer(
        &mut self,
        request: &[u8],
        from: IpAddr,
        arrived_unix_ns: u64,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        out.clear();
        let Some(probe) = Probe::parse(request).filter(|probe| probe.reply.is_none()) else {
            self.strange += 1;
            return Err(Refused::NotAProbe);
        };
        // A refused probe was received all the same, so it is counted.
        let count = self.count(probe.nonce, from, now);
        let sender = self.place(from, 0) % SENDERS;
        let sender = &mut self.senders[sender];
        if !sender.has_one(SENDER_RATE, now) || !self.total.has_one(TOTAL_RATE, now) {
            self.limited += 1;
            return Err(Refused::TooFast);
        }
        sender.left -= 1;
        self.total.left -= 1;
        self.answered += 1;
        let answer = Probe {
            reply: Some(Stamps {
                arrived_ns: arrived_unix_ns,
                departed_ns: arrived_unix_ns,
                count,
            }),
            ..probe
        };
        answer.emit(crate::probe::UDP_MIN, out);
        out.extend_from_slice(&request[out.len()..]);
        Ok(())
    }

    fn count(&mut self, nonce: u64, from: IpAddr, now: Instant) -> u32 {
        let row = self.place(from, nonce) % ROWS;
        let row = &mut self.streams[row];
        let known = row
            .iter()
            .position(|entry| entry.nonce == nonce && entry.count > 0);
        let place = known.unwrap_or_else(|| {
            let silent = (0..WAYS).min_by_key(|&way| row[way].last);
            let place = silent.unwrap_or(0);
            row[place] = Counted {
                nonce,
                ..Counted::default()
            };
            place
        });
        let entry = &mut row[place];
        entry.count = entry.count.saturating_add(1);
        entry.last = now;
        entry.count
    }

    /// Mixes an address and a number; the multiplications are those of splitmix64.
    fn place(&self, from: IpAddr, number: u64) -> usize {
        let octets = match from {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let address = u128::from_be_bytes(octets);
        let words = [address as u64, (address >> 64) as u64, number];
        let mixed = words.into_iter().fold(self.seed, |mixed, word| {
            let mixed = (mixed ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        });
        mixed as usize
    }
}

/// Sets the departure time of an answer.
pub fn depart(answer: &mut [u8], departed_unix_ns: u64) {
    if let Some(place) = answer.get_mut(32..40) {
        place.copy_from_slice(&departed_unix_ns.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(nonce: u64, sequence: u64, size: u16) -> Vec<u8> {
        let probe = Probe {
            nonce,
            sequence,
            stream: 3,
            reply: None,
        };
        let mut out = Vec::new();
        probe.emit(size, &mut out);
        out
    }

    const FROM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn an_answer_is_as_long_as_its_request_and_carries_stamps_and_count() {
        let mut responder = Responder::new(1);
        let mut out = Vec::new();
        for (number, size) in [(1, 48), (2, 64), (3, 1_400)] {
            let request = request(7, number, size);
            let answered = responder.answer(&request, FROM, 1_000, Instant::ZERO, &mut out);
            assert_eq!((answered, out.len()), (Ok(()), request.len()));
            depart(&mut out, 1_500);
            let reply = Probe::parse(&out).unwrap();
            assert_eq!((reply.nonce, reply.sequence, reply.stream), (7, number, 3));
            let stamps = reply.reply.unwrap();
            let stamps = (stamps.arrived_ns, stamps.departed_ns, stamps.count);
            assert_eq!(stamps, (1_000, 1_500, number as u32));
            assert_eq!(out[48..], request[48..]);
        }
    }

    #[test]
    fn replies_short_ones_and_strangers_get_no_answer() {
        let mut responder = Responder::new(1);
        let (mut answer, mut out) = (Vec::new(), Vec::new());
        let good = request(7, 1, 48);
        responder
            .answer(&good, FROM, 0, Instant::ZERO, &mut answer)
            .unwrap();
        for strange in [&answer[..], &good[..47], b"", b"hello"] {
            let refused = responder.answer(strange, FROM, 0, Instant::ZERO, &mut out);
            assert_eq!((refused, out.len()), (Err(Refused::NotAProbe), 0));
        }
        assert_eq!((responder.answered, responder.strange), (1, 4));
    }

    #[test]
    fn above_its_rate_a_sender_is_not_answered_and_others_are() {
        let mut responder = Responder::new(1);
        let mut out = Vec::new();
        let mut answered = 0;
        // Ten times the rate for a second.
        for number in 0..200_000_u64 {
            let now = Instant::from_nanos(1_000_000_000 + number * 5_000);
            let request = request(7, number, 48);
            answered += u64::from(responder.answer(&request, FROM, 0, now, &mut out).is_ok());
        }
        let most = SENDER_RATE + SENDER_RATE * BURST_MS / 1_000;
        assert!((SENDER_RATE..=most).contains(&answered), "{answered}");
        let other = IpAddr::from([192, 0, 2, 2]);
        let now = Instant::from_nanos(2_000_000_000);
        let request = request(8, 1, 48);
        assert_eq!(responder.answer(&request, other, 0, now, &mut out), Ok(()));
    }

    #[test]
    fn a_full_row_forgets_the_stream_that_was_silent_for_longest() {
        let mut responder = Responder::new(1);
        let row = |responder: &Responder, nonce| responder.place(FROM, nonce) % ROWS;
        let target = row(&responder, 0);
        let nonces: Vec<u64> = (0..)
            .filter(|&nonce| row(&responder, nonce) == target)
            .take(WAYS + 1)
            .collect();
        for (second, &nonce) in nonces.iter().enumerate() {
            let now = Instant::from_nanos(second as u64 * 1_000_000_000);
            assert_eq!(responder.count(nonce, FROM, now), 1);
        }
        let now = Instant::from_nanos(9_000_000_000);
        assert_eq!(responder.count(nonces[WAYS], FROM, now), 2);
        assert_eq!(responder.count(nonces[0], FROM, now), 1, "was forgotten");
    }
}
