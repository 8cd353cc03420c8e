//! Sockets to RADIUS servers. A request's identifier has 8 bits (RFC 2865, section 3), so 256
//! outstanding requests to a server need one socket. Sockets are opened when they are first needed.

use std::io;
use std::net::SocketAddr;

use base::Route;
use hashbrown::HashMap;
use reactor::{Interest, Reactor, RecvBatch, SendBatch, UdpOptions, UdpSocket};

use crate::source::Source;

/// Limit of datagrams queued on a socket; larger than its number of identifiers.
const QUEUE: usize = 512;
/// Receive buffer. A reply has at most 4,096 bytes, so this is room for 256 replies.
const BUFFER_BYTES: usize = 1 << 20;

struct One {
    socket: UdpSocket,
    peer: SocketAddr,
    number: u32,
    out: SendBatch,
}

/// All sockets to servers.
#[derive(Default)]
pub(super) struct Sockets {
    all: Vec<One>,
    /// Index of a socket by the server's address and the client's socket number.
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

    /// Sends queued datagrams. When a socket's buffer is full the rest is dropped, and the client
    /// retransmits it.
    pub(super) fn flush(&mut self) {
        for place in self.queued.drain(..) {
            let one = &mut self.all[place];
            let outcome = one.socket.send(&mut one.out);
            self.dropped += outcome.dropped as u64 + one.out.clear() as u64;
        }
    }

    /// Reads all pending datagrams of a socket and passes each to `take`.
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
