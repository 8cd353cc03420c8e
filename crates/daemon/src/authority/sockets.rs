//! Sockets to RADIUS servers: one for each 256 requests outstanding at a server, opened on first use.

use std::io;
use std::net::SocketAddr;

use base::Route;
use hashbrown::HashMap;
use reactor::{Interest, Reactor, RecvBatch, SendBatch, UdpOptions, UdpSocket};

use crate::source::Source;

/// Datagrams that wait on a socket at most: more than the identifiers that it has.
const QUEUE: usize = 512;
/// A reply has at most 4,096 octets; so many of them may wait.
const BUFFER_BYTES: usize = 1 << 20;

struct One {
    socket: UdpSocket,
    peer: SocketAddr,
    number: u32,
    out: SendBatch,
}

/// All of them.
#[derive(Default)]
pub(super) struct Sockets {
    all: Vec<One>,
    /// By the server's address and the client's number.
    places: HashMap<(SocketAddr, u32), usize>,
    queued: Vec<usize>,
    /// Datagrams that could not be sent.
    pub(super) dropped: u64,
}

impl Sockets {
    /// Queues a datagram to `peer` on its socket `number`.
    pub(super) fn push(
        &mut self,
        peer: SocketAddr,
        number: u32,
        bytes: &[u8],
        reactor: &mut Reactor,
    ) {
        let place = match self.places.get(&(peer, number)) {
            Some(&place) => place,
            None => match self.open(peer, number, reactor) {
                Ok(place) => place,
                Err(error) => {
                    tracing::warn!(%error, server = %peer, "no socket to a RADIUS server");
                    self.dropped += 1;
                    return;
                }
            },
        };
        let one = &mut self.all[place];
        if one.out.is_empty() {
            self.queued.push(place);
        }
        one.out.push(bytes, peer, None);
    }

    fn open(&mut self, peer: SocketAddr, number: u32, reactor: &mut Reactor) -> io::Result<usize> {
        let any = match peer {
            SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
        };
        let options = UdpOptions {
            recv_buffer_bytes: Some(BUFFER_BYTES),
            connect: Some(peer),
            ..UdpOptions::default()
        };
        let socket = UdpSocket::bind(any, &options)?;
        let place = self.all.len();
        let source = Source::Radius(place as u32).to_bits();
        reactor
            .add(&socket, "radius", source, Interest::READ)
            .map_err(io::Error::other)?;
        self.all.push(One {
            socket,
            peer,
            number,
            out: SendBatch::new(QUEUE),
        });
        self.places.insert((peer, number), place);
        Ok(place)
    }

    /// Sends what is queued. A server's socket that is full loses what does not fit; it is sent again.
    pub(super) fn flush(&mut self) {
        for place in self.queued.drain(..) {
            let one = &mut self.all[place];
            let outcome = one.socket.send(&mut one.out);
            self.dropped += outcome.dropped as u64 + one.out.clear() as u64;
        }
    }

    /// Reads pending datagrams of a socket; each is passed to `take`.
    pub(super) fn receive(
        &mut self,
        place: u32,
        batch: &mut RecvBatch,
        mut take: impl FnMut(Route, &[u8]),
    ) -> io::Result<()> {
        let Some(one) = self.all.get_mut(place as usize) else {
            return Ok(());
        };
        one.socket.recv(batch)?;
        for datagram in batch.iter() {
            let route = Route {
                peer: one.peer,
                local: None,
                socket: one.number,
            };
            take(route, datagram.bytes);
        }
        Ok(())
    }
}
