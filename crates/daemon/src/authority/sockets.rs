//! Sockets to RADIUS servers. A request's identifier has 8 bits (RFC 2865, section 3), so 256
//! outstanding requests to a server need one socket. Sockets are opened when they are first needed.

use std::io;
use std::net::SocketAddr;

use base::Route;
use hashbrown::HashMap;
use reactor::{Interest, Reactor, RecvBatch, SendBatch, Token, UdpOptions, UdpSocket};

use crate::source::Source;

/// Limit of datagrams queued on a socket; larger than its number of identifiers.
const QUEUE: usize = 512;
/// Receive buffer. A reply has at most 4,096 bytes, so this is room for 256 replies.
const BUFFER_BYTES: usize = 1 << 20;

struct One {
    /// `None` while the socket is lost. Its datagrams are dropped, and the client retransmits them.
    socket: Option<UdpSocket>,
    token: Option<Token>,
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
    /// Places whose servers were removed, to be used again.
    free: Vec<usize>,
    failed: Vec<(u32, io::Error)>,
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
            None => self.place(peer, number, reactor),
        };
        let one = &mut self.all[place];
        if one.socket.is_none() {
            self.dropped += 1;
            return;
        }
        if one.out.is_empty() {
            self.queued.push(place);
        }
        one.out.push(bytes, peer, None);
    }

    /// Closes the sockets to peers that are not among `peers`.
    pub(super) fn keep(&mut self, peers: &[SocketAddr], reactor: &mut Reactor) {
        let gone = self.places.extract_if(|(peer, _), _| !peers.contains(peer));
        let gone: Vec<usize> = gone.map(|(_, place)| place).collect();
        for place in gone {
            self.lose(place as u32, reactor);
            self.free.push(place);
        }
    }

    /// Makes a place for a socket, and opens it if possible.
    fn place(&mut self, peer: SocketAddr, number: u32, reactor: &mut Reactor) -> usize {
        let one = One {
            socket: None,
            token: None,
            peer,
            number,
            out: SendBatch::new(QUEUE),
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.all[place] = one;
                place
            }
            None => {
                self.all.push(one);
                self.all.len() - 1
            }
        };
        self.places.insert((peer, number), place);
        if let Err(error) = self.reopen(place as u32, reactor) {
            self.failed.push((place as u32, error));
        }
        place
    }

    /// A socket that could not be opened, and why.
    pub(super) fn take_failed(&mut self) -> Option<(u32, io::Error)> {
        self.failed.pop()
    }

    /// The server of a socket.
    pub(super) fn server_of(&self, place: u32) -> Option<SocketAddr> {
        self.all.get(place as usize).map(|one| one.peer)
    }

    /// Closes a socket that failed.
    pub(super) fn lose(&mut self, place: u32, reactor: &mut Reactor) {
        if let Some(one) = self.all.get_mut(place as usize) {
            self.dropped += one.out.clear() as u64;
            if let Some(token) = one.token.take() {
                reactor.remove(token);
            }
            one.socket = None;
            self.queued.retain(|queued| *queued != place as usize);
        }
    }

    /// Opens a socket, or a lost one again. Replies to requests of the lost socket are lost too.
    pub(super) fn reopen(&mut self, place: u32, reactor: &mut Reactor) -> io::Result<()> {
        let is_free = self.free.contains(&(place as usize));
        let Some(one) = self.all.get_mut(place as usize).filter(|_| !is_free) else {
            return Ok(());
        };
        let any = match one.peer {
            SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
        };
        let options = UdpOptions {
            recv_buffer_bytes: Some(BUFFER_BYTES),
            connect: Some(one.peer),
            gro: true,
            ..UdpOptions::default()
        };
        let socket = UdpSocket::bind(any, &options)?;
        let source = Source::Radius(place).to_bits();
        let token = reactor.add(&socket, "radius", source, Interest::READ)?;
        (one.socket, one.token) = (Some(socket), Some(token));
        Ok(())
    }

    /// Sends queued datagrams. When a socket's buffer is full the rest is dropped, and the client
    /// retransmits it.
    pub(super) fn flush(&mut self) {
        for place in self.queued.drain(..) {
            let one = &mut self.all[place];
            if let Some(socket) = &mut one.socket {
                self.dropped += socket.send(&mut one.out).dropped as u64;
            }
            self.dropped += one.out.clear() as u64;
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
        let Some(socket) = &mut one.socket else {
            return Ok(());
        };
        socket.recv(batch)?;
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
