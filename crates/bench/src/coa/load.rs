//! CoA-Requests that are made beforehand, and the socket that sends them and counts the replies.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use base::Duration;
use reactor::{
    Interest, PollerKind, Reactor, RecvBatch, SendBatch, StoreKind, UdpOptions, UdpSocket, clock,
};
use wire::radius::attribute::{USER_NAME, VENDOR_SPECIFIC};
use wire::radius::vendor::{WISPR, wispr};
use wire::radius::{Packet, Writer, code};

use crate::subscribers::lns::user;

/// The secret shared with the LNS.
pub(super) const SECRET: &str = "between us";
/// The lowest rate that a request sets, in bits per second.
const RATE_MIN: u32 = 1_000_000;
/// Longest time without a reply.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Results of one exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exchanged {
    pub(super) replies: u32,
    /// Of those, CoA-ACK.
    pub(super) acknowledged: u32,
    pub(super) reply_octets: usize,
    pub(super) seconds: f64,
}

/// Makes requests, no two of which are equal.
pub(super) struct Requests {
    subscribers: u32,
    made: u32,
}

impl Requests {
    pub(super) fn new(subscribers: u32) -> Self {
        Self {
            subscribers,
            made: 0,
        }
    }

    /// The next requests.
    pub(super) fn next_batch(&mut self, count: u32) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.next_one()).collect()
    }

    fn next_one(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, code::COA_REQUEST, self.made as u8, &[0; 16]);
        writer.attribute(USER_NAME, user(self.made % self.subscribers).as_bytes());
        let mut rate = WISPR.to_be_bytes().to_vec();
        rate.extend([wispr::BANDWIDTH_MAX_DOWN, 6]);
        rate.extend((RATE_MIN + self.made).to_be_bytes());
        writer.attribute(VENDOR_SPECIFIC, &rate);
        // Two attributes always have room.
        let _ = writer.finish_signed(SECRET.as_bytes());
        self.made += 1;
        out
    }
}

/// Sends all requests, `window` at a time, and counts the replies.
///
/// # Errors
/// The kernel's error for the socket.
pub(super) fn exchange(to: SocketAddr, batch: &[Vec<u8>], window: u32) -> io::Result<Exchanged> {
    let options = UdpOptions {
        recv_buffer_bytes: Some(16 << 20),
        send_buffer_bytes: Some(4 << 20),
        ..UdpOptions::default()
    };
    let mut socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into(), &options)?;
    let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
    reactor.add(&socket, "load", 0, Interest::READ)?;
    let mut received = RecvBatch::new(64);
    let mut out = SendBatch::new(4_096);
    let mut exchanged = Exchanged::default();
    let mut sent = 0;
    let start = clock::now();
    let mut heard = start;
    while (exchanged.replies as usize) < batch.len() {
        while sent < batch.len() && sent - (exchanged.replies as usize) < window as usize {
            out.push(&batch[sent], to, None);
            sent += 1;
        }
        socket.send(&mut out);
        let now = reactor.wait(Some(heard + SILENCE_MAX))?;
        if now.since(heard) >= SILENCE_MAX {
            break;
        }
        while reactor.next_ready().is_some() {}
        if socket.recv(&mut received)? > 0 {
            heard = now;
        }
        for reply in received.iter() {
            exchanged.replies += 1;
            exchanged.reply_octets = reply.bytes.len();
            let packet = Packet::parse(reply.bytes);
            let is_ack = packet.is_ok_and(|packet| packet.code() == code::COA_ACK);
            exchanged.acknowledged += u32::from(is_ack);
        }
    }
    exchanged.seconds = clock::now().since(start).as_secs_f64();
    Ok(exchanged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::radius::secret::verify_request;

    #[test]
    fn requests_are_signed_and_no_two_are_equal() {
        let batch = Requests::new(10).next_batch(600);
        let mut seen = std::collections::BTreeSet::new();
        for bytes in &batch {
            let packet = Packet::parse(bytes).unwrap();
            assert!(verify_request(&packet, SECRET.as_bytes()));
            assert!(seen.insert(packet.authenticator()));
        }
    }
}
