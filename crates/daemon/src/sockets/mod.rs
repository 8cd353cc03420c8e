//! The UDP sockets: some are shared by many tunnels, others belong to one tunnel.
//!
//! `Route::socket` holds a socket's number. Shared sockets are numbered from 0; the numbers of the
//! others have the bit [`OWN`]. `traffic` reads and writes them, `reload` adds and removes listen
//! addresses.

mod outside;
mod reload;
mod slot;
mod traffic;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

use base::slab::Key;
use base::{Route, Slab};
use reactor::{
    AddError, BufferReport, Instruction, Interest, Reactor, SendBatch, SocketStats, Token,
    UdpOptions, UdpSocket,
};

use self::slot::Slot;

use super::source::Source;
use crate::config::{Event, Listen, Role, Sockets as Mode, Steer};

pub(super) use outside::Outside;

/// Limit of datagrams queued on a shared socket.
const QUEUE: usize = 2048;

/// The bit of the numbers of tunnels' own sockets.
const OWN: u32 = 1 << 31;

/// The place of a tunnel's own socket; `None` for the number of a shared one.
fn own_place(number: u32) -> Option<u32> {
    (number & OWN != 0).then_some(number & !OWN)
}

/// The end of a tunnel that a shared socket serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Lns,
    Lac,
}

/// A socket that many tunnels share.
struct Shared {
    end: End,
    /// The address of the configuration, which may let the kernel choose the port.
    listen: SocketAddr,
    stage: Stage,
    socket: Slot,
    /// `None` while the socket is lost.
    token: Option<Token>,
    out: SendBatch,
    blocked: bool,
}

/// What a shared socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// New tunnels are accepted, or originated.
    Open,
    /// Its address was removed. So many tunnels still use it, at most.
    Leaving { tunnels: usize },
    /// It is closed.
    Closed,
}

/// A tunnel's own socket, connected to its peer.
struct Own {
    socket: Slot,
    token: Option<Token>,
    peer: SocketAddr,
    /// The shared socket it was made for.
    parent: u32,
}

/// All sockets.
pub(super) struct Sockets {
    shared: Vec<Shared>,
    own: Slab<Own>,
    /// Datagrams queued for one of the tunnels' own sockets.
    spare: SendBatch,
    spare_for: u32,
    per_tunnel: [bool; 2],
    /// Index where the search for a socket for an outgoing tunnel starts.
    next_lac: usize,
    blocked: usize,
    /// Counters of sockets that are closed.
    closed: SocketStats,
    /// Number of datagrams that could not be sent, and the last error.
    pub(super) dropped: u64,
    pub(super) last_error: Option<io::Error>,
    /// A socket that cannot be watched any more; see [`Sockets::take_failed`].
    failed: Option<(u32, io::Error)>,
    /// Whether an address was removed since the start.
    has_left: bool,
}

impl Sockets {
    pub(super) fn new(lns: Option<&Role>, lac: Option<&Role>) -> Self {
        let per_tunnel = [lns, lac].map(|role| role.is_some_and(|r| r.sockets == Mode::PerTunnel));
        Self {
            shared: Vec::new(),
            own: Slab::new(),
            spare: SendBatch::new(QUEUE),
            spare_for: 0,
            per_tunnel,
            next_lac: 0,
            blocked: 0,
            closed: SocketStats::default(),
            dropped: 0,
            last_error: None,
            failed: None,
            has_left: false,
        }
    }

    /// Opens a shared socket. Returns `false` if it is optional and the host lacks that address
    /// family.
    pub(super) fn open_shared(
        &mut self,
        end: End,
        listen: Listen,
        event: &Event,
        reactor: &mut Reactor,
    ) -> io::Result<bool> {
        let shared = end == End::Lns && self.per_tunnel(end);
        let options = options(event, shared || event.shards > 1);
        let bound = match event.shards {
            1 => Slot::open(listen.addr, options),
            // A socket without port sharing is bound first, so that an address in use by another
            // daemon is refused and not shared. This socket also determines the port, since the
            // kernel may otherwise choose one that other sockets share.
            _ => UdpSocket::bind(listen.addr, &UdpOptions::default())
                .map(|alone| alone.local_addr())
                .and_then(|address| Slot::open(address, options)),
        };
        let socket = match bound {
            Ok(socket) => socket,
            Err(_) if listen.optional => return Ok(false),
            Err(error) => return Err(error),
        };
        let number = self.shared.len() as u64;
        let owner = end.owner();
        let source = Source::Udp(number as u32);
        let token = watch(&socket, owner, source, reactor)?;
        tracing::info!(address = %socket.local_addr(), end = owner, "listening");
        for report in reports(&socket) {
            if report.is_short() {
                tracing::warn!(address = %socket.local_addr(), "{report}");
            } else {
                tracing::info!(address = %socket.local_addr(), "{report}");
            }
        }
        let out = SendBatch::new(QUEUE);
        self.shared.push(Shared {
            end,
            listen: listen.addr,
            stage: Stage::Open,
            socket,
            token: Some(token),
            out,
            blocked: false,
        });
        Ok(true)
    }

    /// Opens shared sockets of the same addresses and numbers, for another thread.
    pub(super) fn copy(&self, event: &Event, reactor: &mut Reactor) -> io::Result<Self> {
        let mut copy = Self::new(None, None);
        for (number, shared) in self.shared.iter().enumerate() {
            let socket = Slot::open(shared.socket.local_addr(), options(event, true))?;
            // The buffer sizes of the first socket were reported; no other may silently have
            // smaller ones.
            if reports(&socket).ne(reports(&shared.socket)) {
                tracing::warn!(address = %socket.local_addr(), "a further thread's buffers differ from the first one's");
            }
            let source = Source::Udp(number as u32);
            let token = watch(&socket, "udp", source, reactor)?;
            copy.shared.push(Shared {
                end: shared.end,
                listen: shared.listen,
                stage: shared.stage,
                socket,
                token: Some(token),
                out: SendBatch::new(QUEUE),
                blocked: false,
            });
        }
        Ok(copy)
    }

    /// Installs the program that chooses the socket for a datagram to a shared address.
    pub(super) fn steer(&self, program: &[Instruction]) -> io::Result<()> {
        let mut shared = self.shared.iter();
        shared.try_for_each(|shared| {
            let socket = shared.socket.socket();
            socket.map_or(Ok(()), |socket| socket.steer(program))
        })
    }

    /// The addresses bound for `end`.
    pub(super) fn addresses(&self, end: End) -> Vec<SocketAddr> {
        let is_open = |shared: &&Shared| shared.end == end && shared.stage == Stage::Open;
        let of_end = self.shared.iter().filter(is_open);
        of_end.map(|shared| shared.socket.local_addr()).collect()
    }

    /// Whether tunnels to one of our addresses and this port arrive here.
    pub(super) fn listens_on(&self, port: u16) -> bool {
        let mut of_end = self.addresses(End::Lns).into_iter();
        of_end.any(|address| address.port() == port)
    }

    /// The address that socket `number` is bound to.
    pub(super) fn local_addr(&self, number: u32) -> Option<SocketAddr> {
        match self.shared.get(number as usize) {
            Some(shared) => Some(shared.socket.local_addr()),
            None => {
                let own = self.own.at(own_place(number)?)?;
                Some(own.socket.local_addr())
            }
        }
    }

    /// Number of sockets.
    pub(super) fn len(&self) -> usize {
        let open = self
            .shared
            .iter()
            .filter(|shared| shared.stage != Stage::Closed);
        open.count() + self.own.len()
    }

    /// Counters of all open sockets, and of the tunnels' own sockets that are closed.
    pub(super) fn stats(&self) -> SocketStats {
        let shared = self.shared.iter().map(|shared| shared.socket.stats());
        let own = self.own.iter().map(|(_, own)| own.socket.stats());
        shared.chain(own).fold(self.closed, add)
    }

    /// Whether tunnels of `end` get a socket each.
    fn per_tunnel(&self, end: End) -> bool {
        self.per_tunnel[usize::from(end == End::Lac)]
    }

    /// The shared socket of a tunnel accepted on socket `number`, if the tunnel is to get its own.
    /// The tunnel may have been opened on another tunnel's own socket, if both have the same peer.
    pub(super) fn to_be_parted(&self, number: u32) -> Option<u32> {
        let parent = match own_place(number) {
            None => number,
            Some(index) => self.own.at(index)?.parent,
        };
        let shared = &self.shared[parent as usize];
        (shared.end == End::Lns && self.per_tunnel(End::Lns)).then_some(parent)
    }

    /// A route to `peer` for a tunnel that we open, from the address `from` if given. `Err` is a
    /// message for the operator.
    pub(super) fn originate(
        &mut self,
        peer: SocketAddr,
        from: Option<IpAddr>,
        reactor: &mut Reactor,
    ) -> Result<Route, String> {
        let count = self.shared.len();
        let fits = |shared: &Shared| {
            let local = shared.socket.local_addr();
            shared.end == End::Lac
                && shared.stage == Stage::Open
                && local.is_ipv4() == peer.is_ipv4()
                && from.is_none_or(|from| local.ip().is_unspecified() || local.ip() == from)
        };
        let found = (0..count)
            .map(|i| (self.next_lac + i) % count)
            .find(|&i| fits(&self.shared[i]))
            .ok_or_else(|| self.no_way(peer, from))?;
        self.next_lac = (found + 1) % count;
        let local = self.shared[found].socket.local_addr();
        let ip = from.or((!local.ip().is_unspecified()).then_some(local.ip()));
        let mut route = Route {
            peer,
            local: ip,
            socket: found as u32,
        };
        if self.per_tunnel(End::Lac) {
            let bind = SocketAddr::new(ip.unwrap_or(local.ip()), 0);
            route.socket = self
                .open_own(route.socket, bind, peer, false, reactor)
                .map_err(|error| format!("no socket for another tunnel: {error}"))?;
        }
        Ok(route)
    }

    fn no_way(&self, peer: SocketAddr, from: Option<IpAddr>) -> String {
        if !self.shared.iter().any(|shared| shared.end == End::Lac) {
            return "this daemon originates no tunnels: its configuration has no [lac]".into();
        }
        match from {
            Some(from) => format!(
                "no [lac] listen address can send from {from} to {peer}: it must be that address or 0.0.0.0 or [::]"
            ),
            None => format!("no [lac] listen address is of the address family of {peer}"),
        }
    }

    /// Opens the own socket of a tunnel that a peer opened on the shared socket of `route`.
    pub(super) fn accept(&mut self, route: Route, reactor: &mut Reactor) -> Result<u32, AddError> {
        let local = self.shared[route.socket as usize].socket.local_addr();
        let bind = SocketAddr::new(route.local.unwrap_or(local.ip()), local.port());
        self.open_own(route.socket, bind, route.peer, true, reactor)
    }

    fn open_own(
        &mut self,
        parent: u32,
        bind: SocketAddr,
        peer: SocketAddr,
        reuse_port: bool,
        reactor: &mut Reactor,
    ) -> Result<u32, AddError> {
        let options = UdpOptions {
            reuse_port,
            connect: Some(peer),
            ..UdpOptions::default()
        };
        let socket = Slot::open(bind, options).map_err(AddError::Io)?;
        let key = self.own.insert(Own {
            socket,
            token: None,
            peer,
            parent,
        });
        let number = OWN | key.index;
        match self.watch_own(key, reactor) {
            Ok(()) => Ok(number),
            Err(error) => {
                self.own.remove(key);
                Err(error)
            }
        }
    }

    fn watch_own(&mut self, key: Key, reactor: &mut Reactor) -> Result<(), AddError> {
        let number = OWN | key.index;
        let Some(own) = self.own.get_mut(key) else {
            return Ok(());
        };
        let owner = match self.shared[own.parent as usize].end {
            End::Lns => "lns tunnel",
            End::Lac => "lac tunnel",
        };
        own.token = Some(watch(&own.socket, owner, Source::Udp(number), reactor)?);
        Ok(())
    }

    /// Closes a socket that failed. Its number stays; datagrams for it are dropped and counted
    /// until [`Sockets::reopen`].
    pub(super) fn lose(&mut self, number: u32, reactor: &mut Reactor) {
        if self.spare_for == number {
            self.dropped += self.spare.clear() as u64;
        }
        let token = match self.shared.get_mut(number as usize) {
            Some(shared) => {
                shared.socket.lose();
                self.dropped += shared.out.clear() as u64;
                self.blocked -= usize::from(core::mem::take(&mut shared.blocked));
                shared.token.take()
            }
            None => {
                let own = own_place(number).and_then(|place| self.own.at_mut(place));
                own.and_then(|own| {
                    own.socket.lose();
                    own.token.take()
                })
            }
        };
        if let Some(token) = token {
            reactor.remove(token);
        }
    }

    /// Opens a lost socket again, at its old address. A tunnel's own socket may be gone meanwhile;
    /// there is nothing to do then.
    pub(super) fn reopen(&mut self, number: u32, reactor: &mut Reactor) -> io::Result<()> {
        if let Some(shared) = self.shared.get_mut(number as usize) {
            if shared.stage == Stage::Closed {
                return Ok(());
            }
            shared.socket.reopen()?;
            let source = Source::Udp(number);
            let watched = watch(&shared.socket, shared.end.owner(), source, reactor);
            shared.token = watched.as_ref().ok().copied();
            if watched.is_err() {
                shared.socket.lose();
            }
            return Ok(watched.map(drop)?);
        }
        let Some(key) = own_place(number).and_then(|place| self.own.key_at(place)) else {
            return Ok(());
        };
        if let Some(own) = self.own.get_mut(key) {
            own.socket.reopen()?;
        }
        let watched = self.watch_own(key, reactor);
        if watched.is_err()
            && let Some(own) = self.own.get_mut(key)
        {
            own.socket.lose();
        }
        Ok(watched?)
    }

    /// Closes a tunnel's own socket; does nothing for a shared one. Returns whether it did.
    pub(super) fn close(&mut self, number: u32, reactor: &mut Reactor) -> bool {
        let Some(index) = own_place(number) else {
            return false;
        };
        let Some(key) = self.own.key_at(index) else {
            return false;
        };
        if self.spare_for == number {
            self.flush_spare();
        }
        let Some(own) = self.own.remove(key) else {
            return false;
        };
        self.closed = add(self.closed, own.socket.stats());
        if let Some(token) = own.token {
            reactor.remove(token);
        }
        true
    }
}

impl End {
    /// The owner's name of its shared sockets.
    fn owner(self) -> &'static str {
        match self {
            End::Lns => "lns",
            End::Lac => "lac",
        }
    }
}

fn watch(
    slot: &Slot,
    owner: &'static str,
    source: Source,
    reactor: &mut Reactor,
) -> Result<Token, AddError> {
    let fd = slot
        .fd()
        .ok_or_else(|| AddError::Io(ErrorKind::NotConnected.into()))?;
    reactor.add(fd, owner, source.to_bits(), Interest::READ)
}

/// The sizes that the kernel granted for the socket's buffers.
fn reports(slot: &Slot) -> impl Iterator<Item = BufferReport> {
    let socket = slot.socket();
    let reports = socket.map(|socket| [socket.receive_buffer(), socket.send_buffer()]);
    reports.into_iter().flatten().flatten()
}

/// Options of a shared socket.
fn options(event: &Event, reuse_port: bool) -> UdpOptions {
    UdpOptions {
        recv_buffer_bytes: Some(event.receive_buffer_bytes),
        send_buffer_bytes: Some(event.send_buffer_bytes),
        reuse_port,
        connect: None,
        // Joined datagrams may belong to many sessions, and all go to one socket.
        gro: event.shards == 1 || event.steer == Steer::Peer,
    }
}

pub(super) fn add(a: SocketStats, b: SocketStats) -> SocketStats {
    SocketStats {
        received: a.received + b.received,
        truncated: a.truncated + b.truncated,
        joined: a.joined + b.joined,
        receive_errors: a.receive_errors + b.receive_errors,
        sent: a.sent + b.sent,
        dropped: a.dropped + b.dropped,
        merged: a.merged + b.merged,
        blocked: a.blocked + b.blocked,
    }
}

#[cfg(test)]
mod tests {
    use reactor::{PollerKind, StoreKind};

    use super::*;

    fn one(reactor: &mut Reactor) -> Sockets {
        let address = "127.0.0.1:0".parse().unwrap();
        let socket = Slot::open(address, UdpOptions::default()).unwrap();
        let token = watch(&socket, "lns", Source::Udp(0), reactor).unwrap();
        let mut sockets = Sockets::new(None, None);
        sockets.shared.push(Shared {
            end: End::Lns,
            listen: address,
            stage: Stage::Open,
            socket,
            token: Some(token),
            out: SendBatch::new(8),
            blocked: false,
        });
        sockets
    }

    #[test]
    fn a_lost_socket_drops_what_it_has_and_comes_back_at_its_address() {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab).unwrap();
        let mut sockets = one(&mut reactor);
        let address = sockets.local_addr(0).unwrap();
        let route = Route {
            peer: address,
            local: None,
            socket: 0,
        };
        sockets.push(route, b"queued");
        (sockets.shared[0].blocked, sockets.blocked) = (true, 1);
        sockets.lose(0, &mut reactor);
        assert_eq!((sockets.dropped, reactor.watched()), (1, 0));
        assert!(!sockets.is_blocked(), "the others may send");
        sockets.push(route, b"meanwhile");
        sockets.flush(&mut reactor);
        assert_eq!(sockets.dropped, 2);

        sockets.reopen(0, &mut reactor).unwrap();
        assert_eq!(sockets.local_addr(0), Some(address));
        sockets.push(route, b"to ourselves");
        sockets.flush(&mut reactor);
        reactor
            .wait(Some(reactor::clock::now() + base::Duration::from_secs(30)))
            .unwrap();
        assert_eq!(
            reactor.next_ready().map(|ready| ready.user),
            Some(Source::Udp(0).to_bits())
        );
        assert_eq!(sockets.stats().sent, 1);
    }

    #[test]
    fn a_socket_that_waits_to_send_does_so_after_a_rest_too() {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab).unwrap();
        let mut sockets = one(&mut reactor);
        assert_eq!(sockets.interest(0), Interest::READ);
        sockets.shared[0].blocked = true;
        assert_eq!(sockets.interest(0), Interest::BOTH);
    }
}
