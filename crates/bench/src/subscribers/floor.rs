//! The load on the bare loop: as many datagrams per subscriber as an LNS exchanges, of the same
//! mean length, without content.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::Duration;
use reactor::{
    Interest, PollerKind, Reactor, RecvBatch, SendBatch, StoreKind, UdpOptions, UdpSocket, clock,
};

use super::load::Wave;

/// The datagrams of one subscriber.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    /// Number of requests; each is answered before the next is sent.
    pub(super) rounds: u32,
    pub(super) request_octets: usize,
    pub(super) answer_octets: usize,
}

impl Shape {
    /// The datagrams of one subscriber in that wave. The larger of the two directions counts, since
    /// the bare loop replies to every datagram.
    pub(super) fn of(wave: &Wave) -> Self {
        let up = u64::from(wave.up.max(1));
        let mean = |(count, octets): (u64, u64)| octets.div_ceil(count.max(1)).max(1) as usize;
        let most = wave.sent.0.max(wave.received.0);
        Self {
            rounds: most.div_ceil(up).max(1) as u32,
            request_octets: mean(wave.sent),
            answer_octets: mean(wave.received),
        }
    }
}

/// The sender.
pub(super) struct Load {
    reactor: Reactor,
    socket: UdpSocket,
    received: RecvBatch,
    out: SendBatch,
    first: Ipv4Addr,
    /// Replies still to come, for each address.
    left: Vec<u32>,
}

impl Load {
    /// Opens a socket that sends from `count` addresses, starting at `first`.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn new(first: Ipv4Addr, count: u32) -> io::Result<Self> {
        let options = UdpOptions {
            recv_buffer_bytes: Some(64 << 20),
            send_buffer_bytes: Some(8 << 20),
            gro: true,
            ..UdpOptions::default()
        };
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0).into(), &options)?;
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
        reactor.add(&socket, "load", 0, Interest::READ)?;
        Ok(Self {
            reactor,
            socket,
            received: RecvBatch::new(64),
            out: SendBatch::new(4096),
            first,
            left: vec![0; count as usize],
        })
    }

    /// Sends requests from each address, each after the reply to the one before, `window` addresses
    /// at a time. Returns how many addresses got all replies within `cap`.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(super) fn exchange(
        &mut self,
        server: SocketAddr,
        shape: &Shape,
        window: u32,
        cap: Duration,
    ) -> io::Result<u32> {
        let request = vec![0; shape.request_octets];
        let start = clock::now();
        let count = self.left.len() as u32;
        let (mut begun, mut done) = (0, 0);
        self.left.fill(shape.rounds);
        while done < count && clock::now().since(start) < cap {
            while begun < count && begun - done < window {
                let from = Ipv4Addr::from(u32::from(self.first).wrapping_add(begun));
                self.out.push(&request, server, Some(from.into()));
                begun += 1;
            }
            self.socket.send(&mut self.out);
            self.reactor.wait(Some(start + cap))?;
            while self.reactor.next_ready().is_some() {}
            self.socket.recv(&mut self.received)?;
            for answer in self.received.iter() {
                let Some(IpAddr::V4(to)) = answer.local else {
                    continue;
                };
                let place = u32::from(to).wrapping_sub(u32::from(self.first));
                let Some(left) = self.left.get_mut(place as usize) else {
                    continue;
                };
                *left = left.saturating_sub(1);
                if *left == 0 {
                    done += 1;
                } else {
                    self.out.push(&request, server, answer.local);
                }
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_loop_s_subscriber_has_the_datagrams_of_a_real_one() {
        let wave = Wave {
            up: 10,
            sent: (75, 3_000),
            received: (81, 8_100),
            ..Wave::default()
        };
        let shape = Shape {
            rounds: 9,
            request_octets: 40,
            answer_octets: 100,
        };
        assert_eq!(Shape::of(&wave), shape);
        assert_eq!(Shape::of(&Wave::default()).rounds, 1);
    }
}
