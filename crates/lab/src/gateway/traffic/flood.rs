//! Sends datagrams at a rate, without regard to loss.

use std::net::UdpSocket;
use std::time::Instant;

use super::{Pace, Span};
use crate::gateway::stop::Stop;

/// Bytes of UDP payload in each datagram, as published.
pub const PAYLOAD: usize = 1_400;

/// Sends at `rate_bps` of payload until the span ends or `over` is set; returns how many datagrams it sent.
/// Datagrams that the kernel has no room for are counted too.
///
/// # Errors
/// The socket cannot be made.
pub fn send(span: Span, rate_bps: u64, over: &Stop) -> std::io::Result<u64> {
    let socket = UdpSocket::bind(match span.to {
        std::net::SocketAddr::V4(_) => "0.0.0.0:0",
        std::net::SocketAddr::V6(_) => "[::]:0",
    })?;
    span.wait();
    let mut pace = Pace::new(span.begin, PAYLOAD, rate_bps);
    let payload = [0; PAYLOAD];
    let mut sent = 0;
    while Instant::now() < span.end && !over.is_set() {
        pace.wait();
        // A "port unreachable" for an earlier datagram does not stop the flood.
        let _ = socket.send_to(&payload, span.to);
        sent += 1;
    }
    Ok(sent)
}
