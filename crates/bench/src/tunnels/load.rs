//! The load on a bare loop: datagrams with the number, sizes, order and addresses of a LAC's,
//! without a protocol.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Duration, Instant};
use lab::generator::Sizes;
use reactor::{
    Interest, PollerKind, Reactor, RecvBatch, SendBatch, StoreKind, UdpOptions, UdpSocket, clock,
};

/// The sender.
pub(super) struct Load {
    reactor: Reactor,
    socket: UdpSocket,
    received: RecvBatch,
    out: SendBatch,
    first: Ipv4Addr,
    count: u32,
    payload: Vec<u8>,
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
            count: count.max(1),
            payload: vec![0; 2048],
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.socket.local_addr().port()
    }

    /// Sends two requests from each address and reads two replies, `window` addresses at a time.
    /// Returns how many addresses got both replies within `cap`.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(super) fn set_up(
        &mut self,
        server: SocketAddr,
        sizes: &Sizes,
        window: u32,
        cap: Duration,
    ) -> io::Result<u32> {
        let start = clock::now();
        let (mut begun, mut done) = (0, 0);
        while done < self.count && clock::now().since(start) < cap {
            while begun < self.count && begun - done < window {
                let from = self.source(begun.into());
                self.out
                    .push(&self.payload[..sizes.first_sent], server, Some(from));
                begun += 1;
            }
            self.socket.send(&mut self.out);
            self.reactor.wait(Some(start + cap))?;
            while self.reactor.next_ready().is_some() {}
            self.socket.recv(&mut self.received)?;
            for answer in self.received.iter() {
                if answer.bytes.len() == sizes.first_received {
                    self.out
                        .push(&self.payload[..sizes.last_sent], server, answer.local);
                } else {
                    done += 1;
                }
            }
        }
        Ok(done)
    }

    /// Sends datagrams of `bytes`, evenly spaced, `rate` per second for `span`. Returns how many
    /// were sent and how many answered.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(super) fn hello(
        &mut self,
        server: SocketAddr,
        rate: u32,
        span: Duration,
        bytes: usize,
    ) -> io::Result<(u64, u64)> {
        let start = clock::now();
        let spacing_ns = 1_000_000_000 / u64::from(rate.max(1));
        let (mut sent, mut answered) = (0, 0);
        loop {
            let now = self.reactor.wait(Some(Instant::ZERO))?;
            if self.reactor.next_ready().is_some() {
                answered += self.socket.recv(&mut self.received)? as u64;
            }
            let due = now.since(start).as_nanos().min(span.as_nanos()) / spacing_ns;
            while sent < due {
                let from = self.source(sent);
                self.out.push(&self.payload[..bytes], server, Some(from));
                self.socket.send(&mut self.out);
                sent += 1;
            }
            if now.since(start) >= span + Duration::from_millis(100) {
                return Ok((sent, answered));
            }
        }
    }

    /// Answers each datagram with one of `bytes`, for `span`. Returns how many.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(super) fn answer(&mut self, span: Duration, bytes: usize) -> io::Result<u64> {
        let end = clock::now() + span;
        let mut answered = 0;
        while self.reactor.wait(Some(end))? < end {
            while self.reactor.next_ready().is_some() {}
            answered += self.socket.recv(&mut self.received)? as u64;
            for datagram in self.received.iter() {
                self.out
                    .push(&self.payload[..bytes], datagram.peer, datagram.local);
            }
            self.socket.send(&mut self.out);
        }
        Ok(answered)
    }

    fn source(&self, n: u64) -> IpAddr {
        let n = (n % u64::from(self.count)) as u32;
        Ipv4Addr::from(u32::from(self.first).wrapping_add(n)).into()
    }
}
