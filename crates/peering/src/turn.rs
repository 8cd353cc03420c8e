//! A speaker's sockets, and what happens to them in one turn of the loop.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use base::{Duration, Instant};
use bgp::config::Transport;
use bgp::{ConnId, Event, Speaker};
use reactor::tcp::{TcpOptions, TcpStream};
use reactor::{AddError, Interest, Reactor, Token};

use crate::connection::{Connection, Parting};
use crate::listener::{Listen, Listener, Signature};
use crate::read::Buffers;
use crate::write::UNSENT_MAX;

/// Connections accepted in one turn.
const ACCEPTS: usize = 512;
/// How long a closed stream may wait for its peer to read the last message.
const PARTING: Duration = Duration::from_secs(2);
/// How long a listener pauses when no descriptor is free. Others than connections may free descriptors meanwhile.
const REST: Duration = Duration::from_secs(1);
/// The most streams that wait for their peer to read the last message. Further streams are closed at once.
const PARTINGS_MAX: usize = 64;

/// In the token of a descriptor: a listener.
const LISTENER: u32 = 1 << 31;
/// In the token of a descriptor: a stream that the speaker has closed.
const PARTED: u32 = 1 << 30;

/// Counts of a speaker's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are open or being opened.
    pub connections: u32,
    /// Of those, streams that accept no data at present.
    pub blocked: u32,
    /// Incoming connections that the speaker refused.
    pub refused: u64,
    /// Connections that were closed at once because descriptors are short.
    pub short: u64,
    /// Octets received.
    pub octets_in: u64,
    /// Octets sent.
    pub octets_out: u64,
}

/// The sockets of one speaker.
#[derive(Debug)]
pub struct Peering {
    tag: u64,
    listeners: Vec<Listener>,
    signatures: Vec<Signature>,
    /// By the index of the speaker's connection.
    pub(crate) connections: Vec<Option<Connection>>,
    pub(crate) partings: Vec<Option<Parting>>,
    /// Whether messages of sessions are left over from the last turn.
    pub(crate) has_urgent: bool,
    /// Connections that have routes to send, in turn.
    pub(crate) bulk: VecDeque<ConnId>,
    /// Connections with input that was not read because the time was over, in turn.
    pub(crate) unread: VecDeque<ConnId>,
    pub(crate) counts: Counts,
    /// A listener that could not accept, and why.
    failed: Option<(Token, io::Error)>,
}

impl Peering {
    /// Opens the listeners. `tag` is the upper half of each token that the reactor returns; its lower 32 bits are not
    /// used.
    ///
    /// # Errors
    /// The address that could not be bound, and why.
    pub fn open(
        tag: u64,
        listen: &[Listen],
        signatures: Vec<Signature>,
        reactor: &mut Reactor,
    ) -> Result<Self, (SocketAddr, io::Error)> {
        let mut listeners = Vec::with_capacity(listen.len());
        for (listen, number) in listen.iter().zip(0..) {
            let user = tag | u64::from(LISTENER | number);
            let fault = |error| (listen.address, error);
            if let Some(listener) = Listener::open(*listen, user, reactor).map_err(fault)? {
                listener.sign(&[], &signatures).map_err(fault)?;
                listeners.push(listener);
            }
        }
        Ok(Self {
            tag,
            listeners,
            signatures,
            connections: Vec::new(),
            partings: Vec::new(),
            has_urgent: false,
            bulk: VecDeque::new(),
            unread: VecDeque::new(),
            counts: Counts::default(),
            failed: None,
        })
    }

    /// The listening addresses, with their ports.
    pub fn listening(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners.iter().map(|listener| listener.local)
    }

    /// The counts of these sockets.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A listener that could not accept a connection since the last call, and why. It rests for a second.
    pub fn take_failed(&mut self) -> Option<(Token, io::Error)> {
        self.failed.take()
    }

    /// Replaces the networks whose peers sign.
    ///
    /// # Errors
    /// The kernel's error; some listeners may have been changed.
    pub fn set_signatures(&mut self, signatures: Vec<Signature>) -> io::Result<()> {
        let before = std::mem::replace(&mut self.signatures, signatures);
        for listener in &self.listeners {
            listener.sign(&before, &self.signatures)?;
        }
        Ok(())
    }

    /// Handles a ready descriptor of this peering.
    pub fn ready(
        &mut self,
        ready: reactor::Ready,
        speaker: &mut Speaker,
        buffers: &mut Buffers,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        let number = ready.user as u32;
        if number & LISTENER != 0 {
            self.accept((number & !LISTENER) as usize, speaker, reactor, now);
        } else if number & PARTED != 0 {
            self.hear_out((number & !PARTED) as usize, buffers, reactor);
        } else {
            let index = number as usize;
            if ready.readiness.writable() {
                self.writable(index, speaker, reactor, now);
            }
            if ready.readiness.readable() {
                self.read(index, speaker, buffers, reactor, now);
            }
        }
    }

    /// Whether there is something to read or to send without waiting.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.has_urgent || !self.bulk.is_empty() || !self.unread.is_empty()
    }

    /// When [`Peering::tend`] has to be called at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let partings = self.partings.iter().flatten();
        let partings = partings.map(|parting| parting.until);
        let listeners = self.listeners.iter();
        let listeners = listeners.filter_map(|listener| listener.rests_until);
        partings.chain(listeners).min()
    }

    /// Whether the connection uses one of these sockets, rather than one that the caller carries in another way.
    #[must_use]
    pub fn has(&self, id: ConnId) -> bool {
        let connection = self.connections.get(id.index() as usize);
        connection.is_some_and(|found| found.as_ref().is_some_and(|found| found.id == id))
    }

    /// Every connection that is open or being opened.
    pub fn connections(&self) -> impl Iterator<Item = ConnId> {
        self.connections.iter().flatten().map(|found| found.id)
    }

    /// Closes everything without a message, like a router that loses power.
    pub fn close_all(&mut self, reactor: &mut Reactor) {
        for connection in self.connections.drain(..).flatten() {
            reactor.remove(connection.token);
        }
        for parting in self.partings.drain(..).flatten() {
            reactor.remove(parting.token);
        }
        for listener in self.listeners.drain(..) {
            reactor.remove(listener.token);
        }
        self.bulk.clear();
        self.unread.clear();
        self.counts.connections = 0;
        self.counts.blocked = 0;
    }

    /// Breaks a connection without a message, like a cable that is cut.
    pub fn cut(&mut self, id: ConnId, speaker: &mut Speaker, reactor: &mut Reactor, now: Instant) {
        self.broken(id, speaker, reactor, now);
    }

    /// Handles the speaker's events that concern sockets, and returns the others.
    pub fn act(
        &mut self,
        event: Event,
        speaker: &mut Speaker,
        reactor: &mut Reactor,
        now: Instant,
    ) -> Option<Event> {
        match event {
            Event::Connect {
                conn,
                remote,
                local,
                settings,
            } => {
                let transport = &settings.transport;
                let key = transport.md5.as_ref().map(|key| &key.reveal()[..]);
                let local = local.map(|ip| SocketAddr::new(ip, 0));
                let options = TcpOptions {
                    unsent_bytes: Some(UNSENT_MAX),
                    ..options(transport)
                };
                let opened = TcpStream::connect(local, remote, options, key);
                let kept = opened.and_then(|stream| Ok(self.keep(conn, stream, true, reactor)?));
                if kept.is_err() {
                    speaker.connect_failed(conn, now);
                }
                None
            }
            Event::Close { conn, last } => {
                self.close(conn, &last, reactor, now);
                None
            }
            other => Some(other),
        }
    }

    /// Closes streams whose peers had their time, and lets paused listeners try again.
    pub fn tend(&mut self, reactor: &mut Reactor, now: Instant) {
        let rested =
            |listener: &&mut Listener| listener.rests_until.is_some_and(|until| until <= now);
        for listener in self.listeners.iter_mut().filter(rested) {
            listener.rest(None, reactor);
        }
        for place in &mut self.partings {
            if place.as_ref().is_some_and(|parting| parting.until <= now)
                && let Some(parting) = place.take()
            {
                reactor.remove(parting.token);
            }
        }
        if self.partings.iter().all(Option::is_none) {
            self.partings.clear();
        }
    }

    fn accept(&mut self, at: usize, speaker: &mut Speaker, reactor: &mut Reactor, now: Instant) {
        for _ in 0..ACCEPTS {
            let Some(listener) = self.listeners.get_mut(at) else {
                return;
            };
            match listener.socket.accept() {
                Ok(Some((stream, remote))) => self.welcome(stream, remote, speaker, reactor, now),
                Ok(None) => return,
                Err(error) => {
                    // Descriptors are short. The kernel holds new connections until some are free.
                    listener.rest(Some(now + REST), reactor);
                    self.failed = Some((listener.token, error));
                    return;
                }
            }
        }
    }

    fn welcome(
        &mut self,
        stream: TcpStream,
        remote: SocketAddr,
        speaker: &mut Speaker,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        let Ok(local) = stream.local() else { return };
        let Ok(id) = speaker.accept(remote, local, now) else {
            self.counts.refused += 1;
            return;
        };
        let asked = speaker.transport(id).map(options);
        if let Some(asked) = asked.filter(|asked| *asked != TcpOptions::default())
            && stream.set_options(asked).is_err()
        {
            return speaker.closed(id, now);
        }
        if self.keep(id, stream, false, reactor).is_err() {
            self.counts.short += 1;
            speaker.closed(id, now);
        }
    }

    fn keep(
        &mut self,
        id: ConnId,
        stream: TcpStream,
        is_opening: bool,
        reactor: &mut Reactor,
    ) -> Result<(), AddError> {
        let index = id.index() as usize;
        let user = self.tag | index as u64;
        let interest = if is_opening {
            Interest::WRITE
        } else {
            Interest::READ
        };
        let token = reactor.add(&stream, "bgp", user, interest)?;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        self.connections[index] = Some(Connection {
            id,
            stream,
            token,
            is_opening,
            is_queued: false,
            is_unread: false,
            unsent: None,
        });
        self.counts.connections += 1;
        Ok(())
    }

    pub(crate) fn find(&mut self, id: ConnId) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(id.index() as usize)?.as_mut();
        connection.filter(|connection| connection.id == id)
    }

    /// Handles a stream that the peer closed or that broke.
    pub(crate) fn broken(
        &mut self,
        id: ConnId,
        speaker: &mut Speaker,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        if self.forget(id, reactor).is_some() {
            speaker.closed(id, now);
        }
    }

    /// Handles a connection that the speaker closes.
    fn close(&mut self, id: ConnId, last: &[u8], reactor: &mut Reactor, now: Instant) {
        let Some(connection) = self.forget(id, reactor) else {
            return;
        };
        // After half a message there is no place for another.
        if !last.is_empty() && connection.unsent.is_none() {
            // If the stream does not accept this now, it did not accept the earlier data either.
            let _ = connection.stream.write(last);
        }
        if connection.is_opening || connection.stream.end_output().is_err() {
            return;
        }
        let free = self.partings.iter().position(Option::is_none);
        let place = free.unwrap_or(self.partings.len());
        if place == PARTINGS_MAX {
            return;
        }
        let user = self.tag | u64::from(PARTED | place as u32);
        let stream = connection.stream;
        let Ok(token) = reactor.add(&stream, "bgp ending", user, Interest::READ) else {
            return;
        };
        let parting = Some(Parting {
            stream,
            token,
            until: now + PARTING,
        });
        if place == self.partings.len() {
            self.partings.push(parting);
        } else {
            self.partings[place] = parting;
        }
    }

    /// Removes a connection, which frees its descriptor.
    pub(crate) fn forget(&mut self, id: ConnId, reactor: &mut Reactor) -> Option<Connection> {
        self.find(id)?;
        let connection = self.connections[id.index() as usize].take()?;
        reactor.remove(connection.token);
        self.counts.connections -= 1;
        self.counts.blocked -= u32::from(connection.unsent.is_some());
        let resting = |listener: &&mut Listener| listener.rests_until.is_some();
        for listener in self.listeners.iter_mut().filter(resting) {
            listener.rest(None, reactor);
        }
        Some(connection)
    }
}

fn options(transport: &Transport) -> TcpOptions {
    TcpOptions {
        ttl: transport.ttl,
        ttl_min: transport.ttl_min,
        ..TcpOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use bgp::SpeakerConfig;
    use reactor::{PollerKind, StoreKind};

    use super::*;

    #[test]
    fn a_listener_that_rests_looks_again_by_itself() {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab).unwrap();
        let listen = Listen {
            address: "127.0.0.1:0".parse().unwrap(),
            is_optional: false,
        };
        let mut peering = Peering::open(0, &[listen], Vec::new(), &mut reactor).unwrap();
        let address = peering.listening().next().unwrap();
        let mut speaker = Speaker::new(SpeakerConfig::new(1, Ipv4Addr::LOCALHOST), [0; 32]);
        let now = reactor::clock::now();
        peering.listeners[0].rest(Some(now + REST), &mut reactor);
        let _stranger = std::net::TcpStream::connect(address).unwrap();
        reactor.wait(Some(reactor::clock::now())).unwrap();
        assert!(reactor.next_ready().is_none(), "it rests");
        assert_eq!(peering.poll_timeout(), Some(now + REST));

        peering.tend(&mut reactor, now + REST);
        assert_eq!(peering.poll_timeout(), None);
        let soon = reactor::clock::now() + Duration::from_secs(30);
        reactor.wait(Some(soon)).unwrap();
        let ready = reactor.next_ready().unwrap();
        let mut buffers = Buffers::new();
        peering.ready(ready, &mut speaker, &mut buffers, &mut reactor, now + REST);
        // No peer is configured at that address.
        assert_eq!(peering.counts().refused, 1);
    }
}
