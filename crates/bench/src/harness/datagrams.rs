//! The load on a bare loop: datagrams of zeros from a range of source addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Duration, Instant};
use reactor::{
    Interest, PollerKind, Reactor, RecvBatch, SendBatch, StoreKind, UdpOptions, UdpSocket, clock,
};

/// Longest datagram that [`Datagrams`] sends.
const OCTETS_MAX: usize = 2048;

/// What follows a reply.
pub(crate) enum Next {
    /// Another request of that many bytes, from the address that got the reply.
    Request(usize),
    /// Nothing: that address has all its replies.
    Done,
    /// Nothing: the reply belongs to no address.
    Ignore,
}

/// A socket that sends from many addresses.
pub(crate) struct Datagrams {
    reactor: Reactor,
    socket: UdpSocket,
    received: RecvBatch,
    out: SendBatch,
    first: Ipv4Addr,
    count: u32,
    payload: [u8; OCTETS_MAX],
}

impl Datagrams {
    /// Opens a socket that sends from `count` addresses, starting at `first`.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn new(first: Ipv4Addr, count: u32) -> io::Result<Self> {
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
            payload: [0; OCTETS_MAX],
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.socket.local_addr().port()
    }

    /// Number of source addresses.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The number of a source address, counted from the first one.
    fn place_of(&self, address: Option<IpAddr>) -> Option<usize> {
        let Some(IpAddr::V4(address)) = address else {
            return None;
        };
        Some(u32::from(address).wrapping_sub(u32::from(self.first)) as usize)
    }

    /// Sends a request of `octets` from each address, `window` addresses at a time. `next` gets the number
    /// of the address and the length of each reply. Returns how many addresses were done within `cap`.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(crate) fn exchange(
        &mut self,
        server: SocketAddr,
        window: u32,
        cap: Duration,
        octets: usize,
        mut next: impl FnMut(Option<usize>, usize) -> Next,
    ) -> io::Result<u32> {
        let start = clock::now();
        let (mut begun, mut done) = (0, 0);
        while done < self.count && clock::now().since(start) < cap {
            while begun < self.count && begun - done < window {
                let from = self.source(begun.into());
                self.out.push(&self.payload[..octets], server, Some(from));
                begun += 1;
            }
            self.socket.send(&mut self.out);
            self.reactor.wait(Some(start + cap))?;
            while self.reactor.next_ready().is_some() {}
            self.socket.recv(&mut self.received)?;
            for reply in self.received.iter() {
                match next(self.place_of(reply.local), reply.bytes.len()) {
                    Next::Request(octets) => {
                        let request = &self.payload[..octets];
                        self.out.push(request, server, reply.local);
                    }
                    Next::Done => done += 1,
                    Next::Ignore => {}
                }
            }
        }
        Ok(done)
    }

    /// Sends datagrams of `octets`, evenly spaced, `rate` per second for `span`, from each address in turn.
    /// Returns how many were sent and how many answered.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(crate) fn send_evenly(
        &mut self,
        server: SocketAddr,
        rate: u32,
        span: Duration,
        octets: usize,
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
                self.out.push(&self.payload[..octets], server, Some(from));
                self.socket.send(&mut self.out);
                sent += 1;
            }
            if now.since(start) >= span + Duration::from_millis(100) {
                return Ok((sent, answered));
            }
        }
    }

    /// Answers each datagram with one of `octets`, for `span`. Returns how many.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(crate) fn answer(&mut self, span: Duration, octets: usize) -> io::Result<u64> {
        let end = clock::now() + span;
        let mut answered = 0;
        while self.reactor.wait(Some(end))? < end {
            while self.reactor.next_ready().is_some() {}
            answered += self.socket.recv(&mut self.received)? as u64;
            for datagram in self.received.iter() {
                let reply = &self.payload[..octets];
                self.out.push(reply, datagram.peer, datagram.local);
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
