//! The sender: prepared packets, in turn, at a rate.

use std::net::SocketAddr;

use base::Duration;
use reactor::ether::{EtherSend, EtherSocket};
use reactor::{SendBatch, UdpSocket, clock};

/// Packets sent together.
const BURST: usize = 64;

/// What was sent, and how long that took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) seconds: f64,
}

/// The socket of a sender.
pub(super) enum Outlet<'a> {
    Ether(&'a mut EtherSocket, EtherSend),
    Udp(&'a mut UdpSocket, Box<SendBatch>, SocketAddr),
}

impl<'a> Outlet<'a> {
    /// Sends Ethernet frames.
    pub(super) fn ether(socket: &'a mut EtherSocket) -> Self {
        Self::Ether(socket, EtherSend::new(BURST))
    }

    /// Sends datagrams to one peer, each as a message of its own.
    pub(super) fn udp(socket: &'a mut UdpSocket, peer: SocketAddr) -> Self {
        socket.disable_gso();
        Self::Udp(socket, Box::new(SendBatch::new(BURST)), peer)
    }

    fn push(&mut self, shot: &[u8]) {
        match self {
            Self::Ether(_, batch) => {
                batch.begin().extend_from_slice(shot);
                batch.commit();
            }
            Self::Udp(_, batch, peer) => batch.push(shot, *peer, None),
        }
    }

    /// Sends what was pushed. Packets that the kernel did not take are dropped. Returns how many were sent.
    fn flush(&mut self) -> u64 {
        match self {
            Self::Ether(socket, batch) => {
                let sent = socket.send(batch).sent;
                batch.clear();
                sent as u64
            }
            Self::Udp(socket, batch, _) => {
                let sent = socket.send(batch).sent;
                batch.clear();
                sent as u64
            }
        }
    }
}

/// Sends `rate` packets a second, a burst at a time, for `span`.
pub(super) fn send(outlet: &mut Outlet<'_>, shots: &[Vec<u8>], rate: u64, span: Duration) -> Sent {
    let start = clock::now();
    let (mut sent, mut asked) = (0, 0_u64);
    let mut next = shots.iter().cycle();
    loop {
        let elapsed = clock::now().since(start);
        if elapsed >= span {
            return Sent {
                packets: sent,
                seconds: elapsed.as_secs_f64(),
            };
        }
        let due = (elapsed.as_secs_f64() * rate as f64) as u64;
        if asked + BURST as u64 > due {
            std::hint::spin_loop();
            continue;
        }
        for shot in next.by_ref().take(BURST) {
            outlet.push(shot);
        }
        sent += outlet.flush();
        asked += BURST as u64;
    }
}
