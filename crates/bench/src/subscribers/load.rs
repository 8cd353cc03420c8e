//! The load: subscribers that connect, each through a tunnel of its own, as clients of this
//! program's own edge.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Duration, Instant, Redacted, Route};
use edge::{Dial, Edge, Event};
use l2tp::{Call, Endpoint, OpenTunnel};
use ppp::Credentials;
use reactor::{
    Interest, PollerKind, Reactor, RecvBatch, SendBatch, StoreKind, UdpOptions, UdpSocket, clock,
};
use wire::l2tp::Version;

use super::lns::PASSWORD;

/// Limit of datagrams waiting to be sent.
const QUEUE: usize = 32_768;

/// Settings of the load.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Addresses of the LNS; tunnels use them in turn.
    pub(crate) servers: Vec<SocketAddr>,
    /// Source addresses, one for each tunnel: the first, and their number.
    pub(crate) sources: (Ipv4Addr, u32),
    /// Whether the clients ask for IPv6 in addition to IPv4.
    pub(crate) ipv6: bool,
    /// The number of the first user.
    pub(crate) first_user: u32,
}

/// Results of a wave of subscribers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wave {
    /// Subscribers that connected, as seen by the clients.
    pub(crate) up: u32,
    pub(super) seconds: f64,
    /// L2TP messages that were retransmitted.
    pub(super) retransmissions: u64,
    /// Datagrams received from the LNS, and their bytes.
    pub(super) received: (u64, u64),
    /// Datagrams sent to the LNS, and their bytes.
    pub(super) sent: (u64, u64),
}

/// Clients in this process.
pub(crate) struct Load {
    options: Options,
    pub(crate) edge: Edge,
    reactor: Reactor,
    socket: UdpSocket,
    received: RecvBatch,
    out: SendBatch,
    composed: Vec<u8>,
    opened: u32,
    up: u32,
    failed: u32,
    wave: Wave,
    /// Sees each datagram that arrives.
    pub(crate) observer: Option<Observer>,
}

/// Sees a datagram and the time of the turn in which it arrived.
pub(crate) type Observer = Box<dyn FnMut(&[u8], Instant) + Send>;

/// Discards packets for clients.
pub(crate) struct Nowhere;

impl edge::Inside for Nowhere {
    fn packet(&mut self, _packet: &[u8]) {}
}

impl Load {
    /// Opens the socket; sends nothing yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn new(options: Options) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0).into(), &buffers())?;
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
        reactor.add(&socket, "load", 0, Interest::READ)?;
        Ok(Self {
            options,
            edge: clients(),
            reactor,
            socket,
            received: RecvBatch::new(64),
            out: SendBatch::new(QUEUE),
            composed: Vec::new(),
            opened: 0,
            up: 0,
            failed: 0,
            wave: Wave::default(),
            observer: None,
        })
    }

    /// Keeps only the socket. The LNS keeps its tunnels until their HELLOs time out.
    pub(crate) fn into_socket(self) -> UdpSocket {
        self.socket
    }

    /// The socket's port.
    pub(super) fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// Connects `count` subscribers, `window` at a time, and waits until each is connected or has
    /// failed, or until `cap` has passed.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(crate) fn open(&mut self, count: u32, window: u32, cap: Duration) -> io::Result<Wave> {
        let start = clock::now();
        let resent = self.retransmissions();
        let (up, failed) = (self.up, self.failed);
        self.wave = Wave::default();
        let (mut now, mut asked) = (start, 0);
        loop {
            let done = self.up - up + self.failed - failed;
            while asked < count && asked - done < window {
                self.dial(now)?;
                asked += 1;
                // Sending in batches is cheaper than one by one.
                if asked % 64 == 0 {
                    self.send(now);
                }
            }
            self.send(now);
            if done >= count || now.since(start) > cap {
                break;
            }
            now = self.turn(Some(start + cap + Duration::from_millis(1)))?;
        }
        Ok(Wave {
            up: self.up - up,
            seconds: now.since(start).as_secs_f64(),
            retransmissions: self.retransmissions() - resent,
            ..self.wave
        })
    }

    /// Connects `count` subscribers through one tunnel, and waits until each is connected or has failed, or until `cap`
    /// has passed. Returns the tunnel and how many are connected.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(crate) fn open_in_one(
        &mut self,
        count: u32,
        cap: Duration,
    ) -> io::Result<(l2tp::TunnelKey, u32)> {
        let start = clock::now();
        let (up, failed) = (self.up, self.failed);
        let tunnel = self.open_tunnel(start)?;
        for _ in 0..count {
            self.call(tunnel, start)?;
        }
        self.send(start);
        let mut now = start;
        while self.up - up + self.failed - failed < count && now.since(start) <= cap {
            now = self.turn(Some(start + cap + Duration::from_millis(1)))?;
        }
        Ok((tunnel, self.up - up))
    }

    /// Opens `count` tunnels without sessions, and does not wait for them.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(crate) fn open_tunnels(&mut self, count: u32) -> io::Result<()> {
        let now = clock::now();
        for _ in 0..count {
            self.open_tunnel(now)?;
            self.opened += 1;
        }
        self.send(now);
        Ok(())
    }

    /// Closes a tunnel with a StopCCN.
    pub(crate) fn close(&mut self, tunnel: l2tp::TunnelKey) {
        let now = clock::now();
        let endpoint = self.edge.endpoint_mut();
        let closed = endpoint.close_tunnel(tunnel, now);
        debug_assert!(closed, "the tunnel is open");
        self.send(now);
    }

    /// Opens the next tunnel, with a call in it.
    fn dial(&mut self, now: Instant) -> io::Result<()> {
        let tunnel = self.open_tunnel(now)?;
        self.call(tunnel, now)
    }

    fn open_tunnel(&mut self, now: Instant) -> io::Result<l2tp::TunnelKey> {
        let n = self.opened;
        let (first, count) = self.options.sources;
        let source = Ipv4Addr::from(u32::from(first).wrapping_add(n % count.max(1)));
        // Each server address has tunnel ids of its own, as if each had a socket.
        let server = n as usize % self.options.servers.len();
        let route = Route {
            peer: self.options.servers[server],
            local: Some(IpAddr::V4(source)),
            socket: server as u32,
        };
        let version = Version::V2;
        let endpoint = self.edge.endpoint_mut();
        endpoint
            .open_tunnel(OpenTunnel { route, version }, now)
            .map_err(io::Error::other)
    }

    /// Places a call of the next user in a tunnel.
    fn call(&mut self, tunnel: l2tp::TunnelKey, now: Instant) -> io::Result<()> {
        let n = self.options.first_user + self.opened;
        self.opened += 1;
        let endpoint = self.edge.endpoint_mut();
        let session = endpoint
            .open_session(tunnel, Call::default(), now)
            .map_err(io::Error::other)?;
        let dial = Dial {
            credentials: Some(Credentials {
                name: super::lns::user(n).into_bytes().into(),
                secret: Redacted::new(PASSWORD.as_bytes().into()),
            }),
            ipv4: true,
            ipv6: self.options.ipv6,
            networks: Vec::new(),
        };
        self.edge.dial(session, dial, now);
        Ok(())
    }

    /// Answers messages of the LNS for `span`.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(crate) fn answer(&mut self, span: Duration) -> io::Result<()> {
        let end = clock::now() + span;
        while self.turn(Some(end))? < end {}
        Ok(())
    }

    /// Clients that have every address they asked for.
    pub(super) fn complete(&self) -> u32 {
        let (mut cursor, mut count) = (0, 0);
        while let Some((next, view)) = self.edge.next_subscriber(cursor) {
            cursor = next;
            let has_ipv6 = view.ipv6.is_some() || !self.options.ipv6;
            count += u32::from(view.address.is_some() && has_ipv6);
        }
        count
    }

    /// One turn: waits until `deadline` at most, reads input, sends what is due.
    fn turn(&mut self, deadline: Option<Instant>) -> io::Result<Instant> {
        let timer = self.edge.poll_timeout().map(|(at, _)| at);
        let until = [deadline, timer].into_iter().flatten().min();
        let mut now = self.reactor.wait(until)?;
        while let Some(ready) = self.reactor.next_ready() {
            loop {
                self.socket.recv(&mut self.received)?;
                self.handle_received(now);
                if !self.received.is_full() {
                    self.reactor.drained(ready.token);
                    break;
                }
                self.send(now);
            }
            now = clock::now();
        }
        self.edge.handle_timeout(now);
        self.send(now);
        Ok(now)
    }

    fn handle_received(&mut self, now: Instant) {
        for datagram in self.received.iter() {
            let servers = &self.options.servers;
            let server = servers.iter().position(|&server| server == datagram.peer);
            let route = Route {
                peer: datagram.peer,
                local: datagram.local,
                socket: server.unwrap_or(0) as u32,
            };
            if let Some(observer) = &mut self.observer {
                observer(datagram.bytes, now);
            }
            self.wave.received.0 += 1;
            self.wave.received.1 += datagram.bytes.len() as u64;
            self.edge.receive(route, datagram.bytes, now, &mut Nowhere);
        }
    }

    fn send(&mut self, now: Instant) {
        loop {
            self.composed.clear();
            let Some(route) = self.edge.poll_transmit(now, &mut self.composed) else {
                break;
            };
            self.wave.sent.0 += 1;
            self.wave.sent.1 += self.composed.len() as u64;
            self.out.push(&self.composed, route.peer, route.local);
            if self.out.is_full() {
                self.socket.send(&mut self.out);
            }
        }
        self.socket.send(&mut self.out);
        while let Some(event) = self.edge.poll_event() {
            match event {
                Event::Client { addresses, .. } if addresses.is_some() => self.up += 1,
                Event::Down { .. } | Event::Access(l2tp::Event::TunnelDown { .. }) => {
                    self.failed += 1;
                }
                _ => {}
            }
        }
    }

    fn retransmissions(&self) -> u64 {
        let mut rows = self.edge.endpoint().counters();
        rows.find(|(row, _)| row.to_string() == "retransmissions")
            .map_or(0, |(_, value)| value)
    }
}

/// Socket buffers large enough for a burst.
pub(crate) fn buffers() -> UdpOptions {
    UdpOptions {
        recv_buffer_bytes: Some(64 << 20),
        send_buffer_bytes: Some(8 << 20),
        gro: true,
        ..UdpOptions::default()
    }
}

/// An edge that has only clients, as many as needed.
fn clients() -> Edge {
    let config = l2tp::Config {
        host_name: "load".into(),
        hello_interval: Duration::ZERO,
        retransmit: l2tp::Retransmit {
            tries: 10,
            ..l2tp::Config::default().retransmit
        },
        limits: l2tp::Limits {
            tunnels: 1 << 19,
            sessions: 1 << 19,
            ..l2tp::Config::default().limits
        },
        ..l2tp::Config::default()
    };
    let edge = edge::Config {
        subscribers_max: 1 << 19,
        ppp: ppp::Config {
            echo_interval: Duration::ZERO,
            ..ppp::Config::default()
        },
        ..edge::Config::default()
    };
    let pools = aaa::Pools::new(Vec::new(), Vec::new(), 0).expect("no pool has no fault");
    Edge::new(edge, Endpoint::new(config, [7; 32]), pools, [9; 32])
}
