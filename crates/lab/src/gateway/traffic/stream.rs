//! A thin stream of datagrams, and what its receiver measures: loss, order, and jitter as defined
//! in RFC 3550 6.4.1.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{LOOK_EVERY, Pace, Span};
use crate::gateway::stop::Stop;

/// Bytes of UDP payload in each datagram, as published.
pub const PAYLOAD: usize = 500;

/// Rate of the payload in bits a second, as published.
pub const RATE_BPS: u64 = 200_000;

/// The start of each datagram, by which the receiver recognises it.
const MAGIC: [u8; 8] = *b"hd-strm1";

/// The receiver's statistics.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Account {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that arrived, each counted once.
    pub received: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Datagrams that arrived after a later one.
    pub reordered: u64,
    /// Smoothed difference of transit times in milliseconds at the end, RFC 3550 6.4.1.
    pub jitter_ms: f64,
}

impl Account {
    /// Share of the datagrams that never arrived, in per cent; 0 when none was sent.
    #[must_use]
    pub fn loss_percent(&self) -> f64 {
        if self.sent == 0 {
            return 0.0;
        }
        100.0 * self.sent.saturating_sub(self.received) as f64 / self.sent as f64
    }
}

/// Sends for the span, or until stopped; returns how many datagrams it sent.
///
/// # Errors
/// The socket cannot be made.
pub fn send(span: Span, stop: &Stop) -> std::io::Result<u64> {
    let socket = UdpSocket::bind(match span.to {
        std::net::SocketAddr::V4(_) => "0.0.0.0:0",
        std::net::SocketAddr::V6(_) => "[::]:0",
    })?;
    span.wait();
    let mut pace = Pace::new(span.begin, PAYLOAD, RATE_BPS);
    let mut payload = [0; PAYLOAD];
    payload[..8].copy_from_slice(&MAGIC);
    let mut sent: u64 = 0;
    while Instant::now() < span.end && !stop.is_set() {
        pace.wait();
        payload[8..16].copy_from_slice(&sent.to_be_bytes());
        let at = nanos(span.begin.elapsed());
        payload[16..24].copy_from_slice(&at.to_be_bytes());
        let _ = socket.send_to(&payload, span.to);
        sent += 1;
    }
    Ok(sent)
}

/// Receives until `over` is set; `begin` is the sender's start, on the same clock. The caller fills
/// in `sent`.
///
/// # Errors
/// The socket refuses a time-out.
pub fn receive(socket: &UdpSocket, begin: Instant, over: &Stop) -> std::io::Result<Account> {
    socket.set_read_timeout(Some(LOOK_EVERY))?;
    let mut buffer = [0; 2_048];
    let mut receiver = Receiver::default();
    while !over.is_set() {
        if let Ok(octets) = socket.recv(&mut buffer)
            && let Some((number, sent_ns)) = parse(&buffer[..octets])
        {
            receiver.take(number, sent_ns, nanos(begin.elapsed()));
        }
    }
    Ok(receiver.account)
}

fn parse(payload: &[u8]) -> Option<(u64, u64)> {
    let payload: &[u8; PAYLOAD] = payload.try_into().ok()?;
    let word = |at: usize| payload[at..at + 8].try_into().map(u64::from_be_bytes);
    (payload[..8] == MAGIC).then_some((word(8).ok()?, word(16).ok()?))
}

/// The statistics while the stream runs.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Receiver {
    pub(in crate::gateway) account: Account,
    seen: Vec<bool>,
    transit_ns: Option<i64>,
}

/// Limit of sequence numbers: a day of datagrams.
const NUMBERS_MAX: u64 = 50 * 86_400;

impl Receiver {
    pub(in crate::gateway) fn take(&mut self, number: u64, sent_ns: u64, arrived_ns: u64) {
        let Ok(index) = usize::try_from(number) else {
            return;
        };
        if number >= NUMBERS_MAX {
            return;
        }
        if self.seen.get(index) == Some(&true) {
            self.account.duplicates += 1;
            return;
        }
        if index >= self.seen.len() {
            self.seen.resize(index + 1, false);
        } else {
            self.account.reordered += 1;
        }
        self.seen[index] = true;
        self.account.received += 1;
        let transit = arrived_ns.cast_signed() - sent_ns.cast_signed();
        if let Some(before) = self.transit_ns {
            let difference_ms = (transit - before).unsigned_abs() as f64 / 1e6;
            self.account.jitter_ms += (difference_ms - self.account.jitter_ms) / 16.0;
        }
        self.transit_ns = Some(transit);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
