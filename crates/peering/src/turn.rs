//! A speaker's sockets, and what happens to them in a turn of the loop.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use base::{Duration, Instant};
use bgp::config::Transport;
use bgp::{ConnId, Event, Speaker};
use reactor::tcp::{TcpOptions, TcpStream};
use reactor::{AddError, Interest, Reactor};

use crate::connection::{Connection, Parting, Written};
use crate::listener::{Listen, Listener, Signature};

/// Read from one connection at a time.
const READ_MAX: usize = 64 << 10;
/// Made for one connection at a time.
const WRITE_MAX: usize = 64 << 10;
/// Read in one turn at full size, over all connections that share the buffers; the rest of them are read a message at
/// a time, so that all are heard.
const TURN_READ: usize = 2 << 20;
/// Octets of a connection that is read beyond that.
const SHARE: usize = 4096;
/// Connections taken in one turn.
const ACCEPTS: usize = 512;
/// Connections written to in one turn at most so often, so that reading has its turn.
const WRITES: usize = 4096;
/// How long a stream that is done with may wait for its peer to read the end.
const PARTING: Duration = Duration::from_secs(2);
/// How long a listener rests that found no descriptor: others than connections may have freed some.
const REST: Duration = Duration::from_secs(1);
/// Streams that wait so; beyond, they are closed at once.
const PARTINGS_MAX: usize = 64;

/// In a descriptor's number: a listener.
const LISTENER: u32 = 1 << 31;
/// In a descriptor's number: a stream that is done with.
const PARTED: u32 = 1 << 30;

/// What the connections of a thread are read and written with, and how much of a turn is used up.
#[derive(Debug)]
pub struct Buffers {
    input: Box<[u8]>,
    output: Vec<u8>,
    left: usize,
}

impl Buffers {
    /// Buffers for one thread.
    #[must_use]
    pub fn new() -> Self {
        Self {
            input: vec![0; READ_MAX].into(),
            output: Vec::with_capacity(WRITE_MAX + SHARE),
            left: TURN_READ,
        }
    }

    /// A new turn begins.
    pub fn begin(&mut self) {
        self.left = TURN_READ;
    }

    /// What was written last, whether the stream took it at once or not.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        &self.output
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}

/// What is counted of a speaker's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are open or being opened.
    pub connections: u32,
    /// Of those, streams that take nothing at present.
    pub blocked: u32,
    /// Connections of others that the speaker did not want.
    pub refused: u64,
    /// Connections that were closed at once because descriptors are short.
    pub short: u64,
    /// Octets read.
    pub octets_in: u64,
    /// Octets handed to streams.
    pub octets_out: u64,
}

/// The sockets of one speaker.
#[derive(Debug)]
pub struct Peering {
    tag: u64,
    listeners: Vec<Listener>,
    signatures: Vec<Signature>,
    /// By the index of the speaker's connection.
    connections: Vec<Option<Connection>>,
    partings: Vec<Option<Parting>>,
    /// Connections for which there is more to be made.
    more: VecDeque<ConnId>,
    counts: Counts,
}

impl Peering {
    /// Opens the listeners. `tag` goes before the number of each descriptor in what the reactor hands back: its lower
    /// 32 bits are not used.
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
            more: VecDeque::new(),
            counts: Counts::default(),
        })
    }

    /// Where it listens, ports filled in.
    pub fn listening(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners.iter().map(|listener| listener.local)
    }

    /// What is counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// From now on other peers sign.
    ///
    /// # Errors
    /// What the kernel said; some listeners may have been changed.
    pub fn set_signatures(&mut self, signatures: Vec<Signature>) -> io::Result<()> {
        let before = std::mem::replace(&mut self.signatures, signatures);
        for listener in &self.listeners {
            listener.sign(&before, &self.signatures)?;
        }
        Ok(())
    }

    /// Serves a descriptor of this peering that is ready.
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

    /// Whether there is something to be made without waiting for anything.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.more.is_empty()
    }

    /// When [`Peering::tend`] is to be called at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let partings = self.partings.iter().flatten();
        let partings = partings.map(|parting| parting.until);
        let listeners = self.listeners.iter();
        let listeners = listeners.filter_map(|listener| listener.rests_until);
        partings.chain(listeners).min()
    }

    /// Writes what the speaker has for its peers. Returns how many writes that took.
    pub fn write(
        &mut self,
        speaker: &mut Speaker,
        buffers: &mut Buffers,
        reactor: &mut Reactor,
        now: Instant,
    ) -> u64 {
        let mut writes = 0;
        // What was left over in the last turn comes behind what is new: that is short mostly.
        for _ in 0..WRITES {
            let Some(id) = speaker.poll_ready() else {
                break;
            };
            writes += 1;
            self.write_to(id, speaker, buffers, reactor, now);
        }
        for _ in 0..self.more.len() {
            let Some(id) = self.more.pop_front() else {
                break;
            };
            writes += 1;
            self.write_to(id, speaker, buffers, reactor, now);
        }
        writes
    }

    /// Whether the connection is one of these sockets, and not one that somebody else carries.
    #[must_use]
    pub fn has(&self, id: ConnId) -> bool {
        let connection = self.connections.get(id.index() as usize);
        connection.is_some_and(|found| found.as_ref().is_some_and(|found| found.id == id))
    }

    /// Every connection that is open or being opened.
    pub fn connections(&self) -> impl Iterator<Item = ConnId> {
        self.connections.iter().flatten().map(|found| found.id)
    }

    /// Writes octets of somebody else's to a connection whose stream is free; whether it was.
    pub fn write_raw(&mut self, id: ConnId, octets: &[u8], reactor: &mut Reactor) -> bool {
        let Some(connection) = self.find(id) else {
            return false;
        };
        if connection.unsent.is_some() || connection.is_opening {
            return false;
        }
        let is_some = matches!(connection.write(octets), Written::Some);
        let is_watched = !is_some || connection.watch(reactor).is_ok();
        self.counts.blocked += u32::from(is_some);
        is_watched
    }

    /// Closes everything without a word, as a router that lost its power.
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
        self.counts.connections = 0;
        self.counts.blocked = 0;
    }

    /// Writes what the speaker has for one peer, which [`Speaker::poll_ready`] named; [`Buffers::written`] has it then.
    /// For owners who carry connections in other ways, too.
    pub fn write_one(
        &mut self,
        id: ConnId,
        speaker: &mut Speaker,
        buffers: &mut Buffers,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        buffers.output.clear();
        self.write_to(id, speaker, buffers, reactor, now);
    }

    /// A connection for which there is more to be made, which was left over.
    pub fn poll_more(&mut self) -> Option<ConnId> {
        self.more.pop_front()
    }

    /// Breaks a connection without a word, as a cable that is cut.
    pub fn cut(&mut self, id: ConnId, speaker: &mut Speaker, reactor: &mut Reactor, now: Instant) {
        self.broken(id, speaker, reactor, now);
    }

    /// Does what the speaker asks for; other events are handed back.
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
                let opened = TcpStream::connect(local, remote, options(transport), key);
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

    /// Closes streams whose peers had their time, and has listeners look again whether there are descriptors.
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
                Err(_) => {
                    // Descriptors are short: the kernel keeps who comes until some are free again.
                    listener.rest(Some(now + REST), reactor);
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
            unsent: None,
        });
        self.counts.connections += 1;
        Ok(())
    }

    fn read(
        &mut self,
        index: usize,
        speaker: &mut Speaker,
        buffers: &mut Buffers,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        let Some(Some(connection)) = self.connections.get(index) else {
            return;
        };
        let most = if buffers.left > 0 { READ_MAX } else { SHARE };
        let id = connection.id;
        match connection.stream.read(&mut buffers.input[..most]) {
            Ok(None) => {}
            Ok(Some(count)) if count > 0 => {
                self.counts.octets_in += count as u64;
                buffers.left = buffers.left.saturating_sub(count);
                if count == most {
                    speaker.unread(id, now);
                }
                // A connection that the speaker has given up meanwhile is closed by its event.
                let _ = speaker.receive(id, &buffers.input[..count], now);
            }
            Ok(Some(_)) | Err(_) => self.broken(id, speaker, reactor, now),
        }
    }

    fn writable(
        &mut self,
        index: usize,
        speaker: &mut Speaker,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return;
        };
        let id = connection.id;
        if connection.is_opening {
            let local = match connection.stream.error() {
                Ok(None) => connection.stream.local(),
                Ok(Some(error)) | Err(error) => Err(error),
            };
            match local {
                Ok(local) => {
                    connection.is_opening = false;
                    let watched = connection.watch(reactor);
                    speaker.connected(id, local, now);
                    if watched.is_err() {
                        self.broken(id, speaker, reactor, now);
                    }
                }
                Err(_) => {
                    self.forget(id, reactor);
                    speaker.connect_failed(id, now);
                }
            }
            return;
        }
        // A stream that ended is ready for everything.
        if connection.unsent.is_none() {
            return;
        }
        match connection.write_unsent() {
            Written::All => {
                self.counts.blocked -= 1;
                let watched = connection.watch(reactor);
                speaker.set_blocked(id, false);
                if watched.is_err() {
                    self.broken(id, speaker, reactor, now);
                }
            }
            Written::Some => {}
            Written::Broken => self.broken(id, speaker, reactor, now),
        }
    }

    fn write_to(
        &mut self,
        id: ConnId,
        speaker: &mut Speaker,
        buffers: &mut Buffers,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        let Some(connection) = self.find(id) else {
            return;
        };
        if connection.unsent.is_some() || connection.is_opening {
            return;
        }
        let out = &mut buffers.output;
        out.clear();
        let more = speaker.fill(id, out, WRITE_MAX, now);
        if out.is_empty() {
            return;
        }
        let written = connection.write(out);
        let watched = match written {
            Written::Some => connection.watch(reactor),
            Written::All | Written::Broken => Ok(()),
        };
        self.counts.octets_out += out.len() as u64;
        match written {
            Written::All if more => self.more.push_back(id),
            Written::All => {}
            Written::Some => {
                self.counts.blocked += 1;
                speaker.set_blocked(id, true);
                if watched.is_err() {
                    self.broken(id, speaker, reactor, now);
                }
            }
            Written::Broken => self.broken(id, speaker, reactor, now),
        }
    }

    fn find(&mut self, id: ConnId) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(id.index() as usize)?.as_mut();
        connection.filter(|connection| connection.id == id)
    }

    /// The peer closed it, or it broke.
    fn broken(&mut self, id: ConnId, speaker: &mut Speaker, reactor: &mut Reactor, now: Instant) {
        if self.forget(id, reactor).is_some() {
            speaker.closed(id, now);
        }
    }

    /// The speaker is done with it.
    fn close(&mut self, id: ConnId, last: &[u8], reactor: &mut Reactor, now: Instant) {
        let Some(connection) = self.forget(id, reactor) else {
            return;
        };
        // Behind half a message there is no place for another.
        if !last.is_empty() && connection.unsent.is_none() {
            // A stream that does not take it has not taken what came before either.
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

    /// Takes it out; its descriptor is free again.
    fn forget(&mut self, id: ConnId, reactor: &mut Reactor) -> Option<Connection> {
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

    /// Reads and forgets what still comes of a stream that is done with.
    fn hear_out(&mut self, place: usize, buffers: &mut Buffers, reactor: &mut Reactor) {
        let Some(Some(parting)) = self.partings.get(place) else {
            return;
        };
        if let Ok(Some(0)) | Err(_) = parting.stream.read(&mut buffers.input[..READ_MAX])
            && let Some(parting) = self.partings[place].take()
        {
            reactor.remove(parting.token);
        }
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
        // Nobody is configured there.
        assert_eq!(peering.counts().refused, 1);
    }
}
