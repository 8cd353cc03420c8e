//! Both ends of the switched sessions: PPPoE hosts or a LAC, and the LNS.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, ensure};
use base::{Datagram, Duration, Instant, Machine, Route};
use l2tp::{Call, Event, OpenTunnel};
use pppoe::{Frame, PortConfig, Vlans};
use reactor::ether::{EtherRecv, EtherSend, EtherSocket};
use reactor::{RecvBatch, SendBatch, UdpSocket, clock};
use wire::l2tp::Version;
use wire::ppp::protocol;
use wire::pppoe::Mac;

use super::place::{self, HOSTS, LAC, LISTEN, LNS, Place};
use super::{Arrival, Way};
use crate::forward::packets;
use crate::pppoe::frames;

/// PPP's address and control bytes (RFC 1662, section 3.1).
const ADDRESS: [u8; 2] = [0xff, 0x03];
/// Longest time until all sessions are established.
const OPEN_MAX: Duration = Duration::from_secs(30);
/// Hosts that start in a turn.
const AT_ONCE: u16 = 64;
/// Limit of packets that wait to be sent.
const QUEUE: usize = 8_192;

/// An endpoint of L2TP with its socket.
pub(super) struct L2tp {
    endpoint: l2tp::Endpoint,
    pub(super) socket: UdpSocket,
    received: RecvBatch,
    out: SendBatch,
    up: u32,
}

/// PPPoE hosts with their socket. The number of a host is the number of its port in the endpoint.
pub(super) struct Hosts {
    endpoint: pppoe::Endpoint,
    pub(super) socket: EtherSocket,
    received: EtherRecv,
    out: EtherSend,
    sessions: Vec<pppoe::SessionKey>,
}

/// The subscribers' end.
pub(super) enum Subscribers {
    Hosts(Box<Hosts>),
    Lac(Box<L2tp>),
}

/// Both ends.
pub(super) struct Ends {
    pub(super) subscribers: Subscribers,
    pub(super) lns: Box<L2tp>,
}

/// The bytes before the content of packets at one end, up to PPP's protocol number.
pub(super) struct Heads {
    /// Of packets to the daemon, one for each session.
    to: Vec<Vec<u8>>,
    /// Of a packet from the daemon.
    from: Vec<u8>,
    /// The daemon's address, if packets are datagrams.
    daemon: Option<SocketAddr>,
}

/// The packets of one direction.
pub(super) struct Shots {
    /// One for each session.
    pub(super) packets: Vec<Vec<u8>>,
    /// The daemon's address, if packets are datagrams.
    pub(super) daemon: Option<SocketAddr>,
    /// How many bytes the daemon removes.
    pub(super) strip: usize,
    /// The bytes that it writes instead.
    pub(super) head: Vec<u8>,
}

impl Ends {
    /// Establishes that many sessions through the daemon.
    ///
    /// # Errors
    /// The kernel's error, or not all of them are established in time.
    pub(super) fn open(place: &Place, arrival: Arrival, sessions: u16) -> Result<Self> {
        let lns = place.lns.run(|| place::udp(LNS))??;
        let mut ends = Self {
            subscribers: match arrival {
                Arrival::Pppoe => {
                    let socket = place.hosts.run(|| place::ether(HOSTS, true))??;
                    Subscribers::Hosts(Box::new(Hosts::new(socket)))
                }
                Arrival::L2tp => {
                    let socket = place.hosts.run(|| place::udp(LAC))??;
                    Subscribers::Lac(Box::new(L2tp::calling(socket, sessions)?))
                }
            },
            lns: Box::new(L2tp::new(lns, true)),
        };
        let end = clock::now() + OPEN_MAX;
        let mut quiet_at = Instant::FAR_FUTURE;
        loop {
            let now = clock::now();
            ends.turn(sessions, now)?;
            if ends.lns.up >= u32::from(sessions) && quiet_at == Instant::FAR_FUTURE {
                // The last acknowledgements.
                quiet_at = now + Duration::from_millis(300);
            }
            if now > quiet_at {
                return Ok(ends);
            }
            let up = ends.lns.up;
            ensure!(now < end, "{up} of {sessions} sessions are established");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn turn(&mut self, sessions: u16, now: Instant) -> Result<()> {
        match &mut self.subscribers {
            Subscribers::Hosts(hosts) => hosts.turn(sessions, now)?,
            Subscribers::Lac(lac) => lac.turn(now)?,
        }
        Ok(self.lns.turn(now)?)
    }

    /// The packets of a direction.
    ///
    /// # Errors
    /// A session has ended.
    pub(super) fn shots(&mut self, way: Way) -> Result<Shots> {
        let near = match &mut self.subscribers {
            Subscribers::Hosts(hosts) => hosts.heads(),
            Subscribers::Lac(lac) => lac.heads(),
        };
        let (near, far) = (near?, self.lns.heads()?);
        let (from, to) = match way {
            Way::Up => (near, far),
            Way::Down => (far, near),
        };
        let content = content();
        let packets = (from.to.iter()).map(|head| [&head[..], &content].concat());
        Ok(Shots {
            packets: packets.collect(),
            daemon: from.daemon,
            strip: from.from.len(),
            head: to.from,
        })
    }
}

/// PPP's protocol number and a packet.
fn content() -> Vec<u8> {
    let from = Ipv4Addr::new(10, 0, 0, 1);
    let to = Ipv4Addr::new(203, 0, 113, 1);
    let packet = packets::udp(from, to, (4_000, 9));
    [&protocol::IPV4.to_be_bytes()[..], &packet].concat()
}

impl L2tp {
    fn new(socket: UdpSocket, is_lns: bool) -> Self {
        let config = l2tp::Config {
            host_name: "load".into(),
            accept: is_lns,
            hello_interval: Duration::ZERO,
            ..l2tp::Config::default()
        };
        Self {
            endpoint: l2tp::Endpoint::new(config, [if is_lns { 7 } else { 9 }; 32]),
            socket,
            received: RecvBatch::new(256),
            out: SendBatch::new(QUEUE),
            up: 0,
        }
    }

    /// A LAC that opens a tunnel with that many calls.
    fn calling(socket: UdpSocket, calls: u16) -> Result<Self> {
        let mut lac = Self::new(socket, false);
        let now = clock::now();
        let open = OpenTunnel {
            route: Route {
                local: Some(LAC.ip()),
                ..Route::to(LISTEN)
            },
            version: Version::V2,
        };
        let tunnel = lac.endpoint.open_tunnel(open, now)?;
        for _ in 0..calls {
            lac.endpoint.open_session(tunnel, Call::default(), now)?;
        }
        Ok(lac)
    }

    fn turn(&mut self, now: Instant) -> io::Result<()> {
        while self.socket.recv(&mut self.received)? > 0 {
            for datagram in self.received.iter() {
                let route = Route {
                    local: datagram.local,
                    ..Route::to(datagram.peer)
                };
                let bytes = datagram.bytes;
                // The endpoint counts what it ignores.
                let _ = self.endpoint.handle(Datagram { route, bytes }, now);
            }
        }
        self.endpoint.handle_timeout(now);
        let mut bytes = Vec::new();
        while let Some(route) = self.endpoint.poll_transmit(now, &mut bytes) {
            self.out.push(&bytes, route.peer, route.local);
            bytes.clear();
        }
        self.socket.send(&mut self.out);
        while let Some(event) = self.endpoint.poll_event() {
            self.up += u32::from(matches!(event, Event::SessionUp { .. }));
        }
        Ok(())
    }

    fn heads(&mut self) -> Result<Heads> {
        let mut keys = Vec::new();
        let mut cursor = 0;
        while let Some((next, view)) = self.endpoint.next_session(cursor) {
            cursor = next;
            keys.push(view.key);
        }
        let (mut to, mut daemon) = (Vec::new(), None);
        for key in keys {
            let header = self.endpoint.data_header(key).context("a session ended")?;
            daemon = Some(header.route.peer);
            to.push([header.as_bytes(), &ADDRESS].concat());
        }
        let from = to.first().context("no session")?.clone();
        Ok(Heads { to, from, daemon })
    }
}

impl Hosts {
    fn new(socket: EtherSocket) -> Self {
        Self {
            endpoint: pppoe::Endpoint::new(pppoe::Config::default(), [8; 32]),
            socket,
            received: EtherRecv::new(256),
            out: EtherSend::new(QUEUE),
            sessions: Vec::new(),
        }
    }

    fn turn(&mut self, hosts: u16, now: Instant) -> Result<()> {
        let known = self.sessions.len() as u16;
        for number in known..hosts.min(known.saturating_add(AT_ONCE)) {
            self.endpoint.add_port(number, PortConfig::default());
            let dial = pppoe::Dial::default();
            let session = self.endpoint.dial(number, Vlans::NONE, dial, now)?;
            self.sessions.push(session);
        }
        while self.socket.receive(&mut self.received)? > 0 {
            for frame in self.received.iter() {
                let Some(opened) = frames::open(frame.bytes) else {
                    continue;
                };
                let Some(port) = opened.host else {
                    continue;
                };
                let frame = Frame {
                    route: pppoe::Route {
                        port,
                        peer: opened.from,
                        vlans: Vlans::NONE,
                    },
                    is_broadcast: false,
                    bytes: opened.packet,
                };
                // The endpoint counts what it ignores.
                let _ = self.endpoint.handle(frame, now);
            }
        }
        self.endpoint.handle_timeout(now);
        let mut bytes = Vec::new();
        while let Some(route) = self.endpoint.poll_transmit(now, &mut bytes) {
            let from = frames::host(route.port);
            frames::append(self.out.begin(), from, route.peer, &bytes);
            self.out.commit();
            bytes.clear();
        }
        self.socket.send(&mut self.out);
        while self.endpoint.poll_event().is_some() {}
        Ok(())
    }

    fn heads(&self) -> Result<Heads> {
        let length = content().len();
        let frame = |from: Mac, to: Mac, header: &[u8]| {
            let mut out = Vec::new();
            let mut packet = header.to_vec();
            packet.resize(header.len() + length, 0);
            wire::pppoe::complete(&mut packet, 0);
            frames::append(&mut out, from, to, &packet);
            out.truncate(out.len() - length);
            out
        };
        let (mut to, mut from) = (Vec::new(), Vec::new());
        for (number, &session) in (0..).zip(&self.sessions) {
            let header = self.endpoint.header(session);
            let (header, route) = header.context("a session ended")?;
            to.push(frame(frames::host(number), route.peer, &header));
            from = frame(route.peer, frames::host(number), &header);
        }
        Ok(Heads {
            to,
            from,
            daemon: None,
        })
    }
}
