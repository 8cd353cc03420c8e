//! Links over TCP. Each router that has one opens sockets at an address of its own. The router at
//! the other end may be in this process or a daemon outside of it.
//!
//! When a link fails, its connection breaks at both ends, and neither end connects again until the
//! link is repaired. The delays and rates configured for links in memory do not apply here.

use std::io;
use std::net::{IpAddr, SocketAddr};

use base::Instant;
use bgp::{ConnId, Event, PeerId, Speaker};
use peering::{Buffers, Listen, Peering};
use reactor::{HandlerId, Interest, PollerKind, Reactor, Ready, StoreKind, Waker};

use super::{World, count};
use crate::topology::Transport;

/// Descriptor number of the waker, by which another thread wakes the loop.
const WAKER: u64 = u64::MAX;
/// A connection's number contains the router's number above this bit.
const ROUTER_SHIFT: u32 = 32;

/// Waits in one turn, as long as each returns as many descriptors as it can.
const ROUNDS_MAX: usize = 64;

/// The sockets of a world.
pub(crate) struct Tcp {
    pub(crate) reactor: Reactor,
    buffers: Buffers,
    /// Indexed by router.
    peerings: Vec<Option<Box<Peering>>>,
    /// Routers that have more to write.
    more: Vec<u32>,
    handlers: TcpHandlers,
    /// The world's time when all input had been read.
    pub(super) drained: Instant,
}

/// The handlers that the loop's time is booked to.
#[derive(Clone, Copy)]
struct TcpHandlers {
    read: HandlerId,
    routers: HandlerId,
}

impl Tcp {
    /// Sockets for `routers` routers, none of them open yet. `waker` ends a wait.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn open(routers: usize, waker: &Waker, poller: PollerKind) -> io::Result<Self> {
        let mut reactor = Reactor::new(poller, StoreKind::default())?;
        reactor.add(waker, "waker", WAKER, Interest::READ)?;
        let handlers = TcpHandlers {
            read: reactor.handler("bgp read"),
            routers: reactor.handler("routers"),
        };
        Ok(Self {
            reactor,
            buffers: Buffers::new(),
            peerings: (0..routers).map(|_| None).collect(),
            more: Vec::new(),
            handlers,
            drained: Instant::ZERO,
        })
    }

    /// Whether a router has sockets.
    pub(super) fn serves(&self, router: u32) -> bool {
        self.peerings[router as usize].is_some()
    }

    fn has(&self, router: u32, conn: ConnId) -> bool {
        let peering = self.peerings[router as usize].as_ref();
        peering.is_some_and(|peering| peering.has(conn))
    }
}

impl World {
    /// Opens the sockets of a router that has TCP links.
    pub(super) fn listen(&mut self, router: u32) {
        let Some(tcp) = &mut self.tcp else { return };
        let topology = &self.scenario.topology;
        let over_tcp = |(_, link): &(u32, u32)| {
            let link = topology.links[*link as usize];
            topology.settings_of(&link).transport == Transport::Tcp
        };
        if !self.lines.near(router).iter().any(over_tcp) {
            return;
        }
        let own = &topology.routers[router as usize];
        let listen = Listen {
            address: SocketAddr::new(IpAddr::V4(own.address), own.settings.port),
            is_optional: false,
        };
        let tag = u64::from(router) << ROUTER_SHIFT;
        match Peering::open(tag, &[listen], Vec::new(), &mut tcp.reactor) {
            Ok(peering) => tcp.peerings[router as usize] = Some(Box::new(peering)),
            Err((address, error)) => {
                let name = &own.name;
                self.faults
                    .push(format!("{name} cannot listen on {address}: {error}"));
            }
        }
    }

    /// Waits until a socket is ready or until `deadline` in real time. Serves ready sockets at the
    /// world's time `at`. Returns whether the waker ended the wait.
    ///
    /// # Errors
    /// The event loop failed.
    pub(crate) fn wait(
        &mut self,
        deadline: Instant,
        at: impl Fn(Instant) -> Instant,
    ) -> io::Result<bool> {
        let mut woken = false;
        let mut deadline = deadline;
        // All pending input is read before timers fire, so that no peer times out because we were
        // late.
        for _ in 0..ROUNDS_MAX {
            let Some(tcp) = &mut self.tcp else {
                return Ok(false);
            };
            let now = tcp.reactor.wait(Some(deadline))?;
            self.now = self.now.max(at(now));
            tcp.buffers.begin();
            woken |= self.serve_ready();
            let Some(tcp) = &mut self.tcp else {
                return Ok(woken);
            };
            if !tcp.reactor.was_full() {
                // A wait that a signal interrupted has not looked at the sockets.
                if tcp.reactor.complete_until() == now {
                    tcp.drained = self.now;
                }
                break;
            }
            deadline = now;
        }
        self.go_on_writing();
        self.answer();
        if let Some(tcp) = &mut self.tcp {
            let account = tcp.handlers.routers;
            tcp.reactor.lap(account);
        }
        Ok(woken)
    }

    /// Serves the sockets that the last wait returned; returns whether the waker was among them.
    fn serve_ready(&mut self) -> bool {
        let mut woken = false;
        let mut served = 0;
        while let Some(ready) = self.tcp.as_mut().and_then(|tcp| tcp.reactor.next_ready()) {
            if ready.user == WAKER {
                woken = true;
            } else {
                served += 1;
                self.serve(ready);
            }
        }
        if let Some(tcp) = &mut self.tcp
            && served > 0
        {
            let account = tcp.handlers.read;
            tcp.reactor.lap_many(account, served);
        }
        woken
    }

    fn serve(&mut self, ready: Ready) {
        let router = (ready.user >> ROUTER_SHIFT) as u32;
        let Some(tcp) = &mut self.tcp else { return };
        let node = &mut self.nodes[router as usize];
        let (Some(peering), Some(speaker)) = (
            tcp.peerings
                .get_mut(router as usize)
                .and_then(Option::as_mut),
            node.speaker.as_deref_mut(),
        ) else {
            return;
        };
        peering.ready(ready, speaker, &mut tcp.buffers, &mut tcp.reactor, self.now);
        self.wake(router);
    }

    /// Continues unfinished writes.
    fn go_on_writing(&mut self) {
        let Some(tcp) = &mut self.tcp else { return };
        for router in std::mem::take(&mut tcp.more) {
            self.wake(router);
        }
    }

    /// Whether a socket carries the connection.
    #[inline]
    pub(super) fn is_over_tcp(&self, router: u32, conn: ConnId) -> bool {
        self.tcp.as_ref().is_some_and(|tcp| tcp.has(router, conn))
    }

    /// Writes what a router has for one peer.
    pub(super) fn write_tcp(&mut self, router: u32, speaker: &mut Speaker, conn: ConnId) {
        let Some(tcp) = &mut self.tcp else { return };
        let Some(peering) = &mut tcp.peerings[router as usize] else {
            return;
        };
        peering.write_one(conn, speaker, &mut tcp.buffers, &mut tcp.reactor, self.now);
        if peering.has_work() {
            tcp.more.push(router);
        }
        let (messages, updates) = count(tcp.buffers.written());
        self.totals.messages += u64::from(messages);
        self.observer.sent(router, updates, self.now);
    }

    /// Continues a router's unfinished writes, a share for each of its peers.
    pub(super) fn write_more(&mut self, router: u32, speaker: &mut Speaker) {
        let left = |world: &mut Self| {
            let tcp = world.tcp.as_mut()?;
            tcp.peerings[router as usize].as_mut()?.poll_more()
        };
        let mut all = Vec::new();
        while let Some(conn) = left(self) {
            all.push(conn);
        }
        for conn in all {
            self.write_tcp(router, speaker, conn);
        }
    }

    /// Does what a speaker asks of its sockets. Returns an event that does not concern sockets.
    pub(super) fn act_on_tcp(
        &mut self,
        router: u32,
        speaker: &mut Speaker,
        event: Event,
    ) -> Option<Event> {
        let is_ours = match &event {
            Event::Connect { remote, .. } => self.link_over_tcp(router, remote.ip()).is_some(),
            Event::Close { conn, .. } => self.is_over_tcp(router, *conn),
            Event::Up { .. }
            | Event::Down { .. }
            | Event::Malformed { .. }
            | Event::Forgotten { .. } => false,
        };
        if !is_ours {
            return Some(event);
        }
        let tcp = self.tcp.as_mut()?;
        let peering = tcp.peerings[router as usize].as_mut()?;
        peering.act(event, speaker, &mut tcp.reactor, self.now)
    }

    /// The link to a peer, if it uses TCP.
    fn link_over_tcp(&self, router: u32, remote: IpAddr) -> Option<u32> {
        let link = self.link_to(router, remote)?;
        self.carries(link).then_some(link)
    }

    /// Whether the link uses TCP.
    pub(super) fn carries(&self, link: u32) -> bool {
        let topology = &self.scenario.topology;
        let settings = topology.settings_of(&topology.links[link as usize]);
        self.tcp.is_some() && settings.transport == Transport::Tcp
    }

    /// Breaks the connection of a link at those ends that are here. With `stays` it is not opened
    /// again until the link is repaired.
    pub(super) fn cut_tcp(&mut self, link: u32, stays: bool) {
        let ends = self.scenario.topology.links[link as usize];
        for (router, other) in [(ends.a, ends.b), (ends.b, ends.a)] {
            let address = self.scenario.topology.routers[other as usize].address;
            let now = self.now;
            let Some(tcp) = &mut self.tcp else { return };
            let (Some(peering), Some(speaker)) = (
                tcp.peerings[router as usize].as_mut(),
                self.nodes[router as usize].speaker.as_deref_mut(),
            ) else {
                continue;
            };
            let Some(peer) = speaker.peer(IpAddr::V4(address)) else {
                continue;
            };
            let of_peer = |conn: &ConnId| speaker.peer_of(*conn) == Some(peer);
            let its: Vec<ConnId> = peering.connections().filter(of_peer).collect();
            for conn in its {
                peering.cut(conn, speaker, &mut tcp.reactor, now);
            }
            if stays {
                speaker.stop_peer(peer, "", now);
            }
            self.wake(router);
        }
    }

    /// A failed link is repaired.
    pub(super) fn mend_tcp(&mut self, link: u32) {
        let ends = self.scenario.topology.links[link as usize];
        for (router, other) in [(ends.a, ends.b), (ends.b, ends.a)] {
            let address = self.scenario.topology.routers[other as usize].address;
            self.with(router, |speaker, now| {
                if let Some(peer) = speaker.peer(IpAddr::V4(address)) {
                    speaker.start_peer(peer, now);
                }
            });
        }
    }

    /// Counts UPDATEs that arrived by sockets, from the speakers' counters.
    pub(crate) fn count_received(&mut self) {
        let Some(tcp) = &self.tcp else { return };
        for (router, _) in (0..)
            .zip(&tcp.peerings)
            .filter(|(_, peering)| peering.is_some())
        {
            let Some(speaker) = self.nodes[router as usize].speaker.as_deref() else {
                continue;
            };
            let mut from = PeerId(0);
            let mut updates = 0;
            while let Some(view) = speaker.next_neighbor(from, self.now) {
                let link = self.link_over_tcp(router, view.remote);
                updates += if link.is_some() {
                    view.counts.updates_in
                } else {
                    0
                };
                from = PeerId(view.id.0 + 1);
            }
            self.observer
                .received(router, updates.try_into().unwrap_or(u32::MAX));
        }
    }

    /// A router failed: closes its sockets.
    pub(super) fn close_tcp(&mut self, router: u32) {
        if let Some(tcp) = &mut self.tcp
            && let Some(mut peering) = tcp.peerings[router as usize].take()
        {
            peering.close_all(&mut tcp.reactor);
        }
    }

    /// Sends a raw message over the session with a neighbour; returns whether that session uses
    /// TCP.
    pub(super) fn send_raw_tcp(&mut self, router: u32, neighbour: u32, message: &[u8]) -> bool {
        let address = self.scenario.topology.routers[neighbour as usize].address;
        let Some(tcp) = &mut self.tcp else {
            return false;
        };
        let (Some(peering), Some(speaker)) = (
            tcp.peerings[router as usize].as_mut(),
            self.nodes[router as usize].speaker.as_deref(),
        ) else {
            return false;
        };
        let peer = speaker.peer(IpAddr::V4(address));
        let found = peering
            .connections()
            .find(|conn| speaker.peer_of(*conn) == peer);
        let Some(conn) = found else { return false };
        peering.write_raw(conn, message, &mut tcp.reactor)
    }
}
