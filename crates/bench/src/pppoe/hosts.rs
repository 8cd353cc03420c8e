//! The load: PPPoE hosts, each with a MAC address of its own, as clients of this program's own edge, on one packet
//! socket. The number of a host is the number of its port in the endpoint.

use std::io;

use base::{Duration, Instant, Redacted};
use edge::access::Pppoe;
use edge::{Edge, Event};
use ppp::Credentials;
use pppoe::{Endpoint, Limits, PortConfig, Route, SessionKey, Vlans};
use reactor::ether::{EtherRecv, EtherSend, EtherSocket};
use reactor::{Interest, PollerKind, Reactor, StoreKind, clock};
use wire::dhcpv6::{CLIENT_PORT, Kind};
use wire::icmp::PROTOCOL_V6;
use wire::ndp::{IPV6_HEADER, ROUTER_ADVERTISEMENT};
use wire::ppp::control::code::{ECHO_REPLY, ECHO_REQUEST};
use wire::ppp::protocol;
use wire::pppoe::{Code, HEADER_LEN, Mac, Writer, tag};
use wire::udp;

use super::dhcp::{self, State};
use super::frames;
use crate::subscribers::lns::{PASSWORD, user};
use crate::subscribers::load::Nowhere;

/// Limit of frames waiting to be sent.
const QUEUE: usize = 4_096;
/// Frames received with one call.
const BATCH: usize = 256;
/// Wait before a DHCPv6 message is sent again.
const AGAIN: Duration = Duration::from_secs(1);

/// A host.
#[derive(Clone, Copy)]
struct Host {
    session: SessionKey,
    has_ipv4: bool,
    ipv6: State,
}

/// Results of a wave of hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Wave {
    /// Hosts with an IPv4 address and a delegated prefix.
    pub(super) up: u32,
    pub(super) seconds: f64,
    /// Packets of Discovery and DHCPv6 that were sent again.
    pub(super) retransmissions: u64,
    /// Frames sent to the access concentrator, and their bytes.
    pub(super) sent: (u64, u64),
    /// Frames received from it, and their bytes.
    pub(super) received: (u64, u64),
}

/// Results of a flood.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flooded {
    pub(super) padis: u64,
    pub(super) pados: u64,
    /// LCP Echo-Requests of established sessions, and the replies to them.
    pub(super) echoes: u64,
    pub(super) replies: u64,
    pub(super) seconds: f64,
}

/// All hosts.
pub(super) struct Hosts {
    edge: Edge<Pppoe>,
    reactor: Reactor,
    socket: EtherSocket,
    /// `None` only while its frames are handled.
    received: Option<EtherRecv>,
    out: EtherSend,
    composed: Vec<u8>,
    each: Vec<Host>,
    up: u32,
    failed: u32,
    wave: Wave,
    flood: Flooded,
    resend_at: Instant,
}

impl Hosts {
    /// Hosts that send nothing yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn new(socket: EtherSocket) -> io::Result<Self> {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
        reactor.add(&socket, "load", 0, Interest::READ)?;
        Ok(Self {
            edge: clients(),
            reactor,
            socket,
            received: Some(EtherRecv::new(BATCH)),
            out: EtherSend::new(QUEUE),
            composed: Vec::new(),
            each: Vec::new(),
            up: 0,
            failed: 0,
            wave: Wave::default(),
            flood: Flooded::default(),
            resend_at: Instant::FAR_FUTURE,
        })
    }

    /// Connects `count` more hosts, `window` at a time, and waits until each is connected or has failed, or until `cap`
    /// has passed.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(super) fn open(&mut self, count: u16, window: u32, cap: Duration) -> io::Result<Wave> {
        let start = clock::now();
        let (up, failed) = (self.up, self.failed);
        let before = self.edge.endpoint().counters().retransmissions;
        self.wave = Wave::default();
        self.resend_at = start + AGAIN;
        let (mut now, mut asked) = (start, 0);
        loop {
            let done = self.up - up + self.failed - failed;
            while asked < u32::from(count) && asked - done < window {
                self.dial(now)?;
                asked += 1;
                if asked % 64 == 0 {
                    self.send(now);
                }
            }
            self.send(now);
            if done >= count.into() || now.since(start) > cap {
                break;
            }
            now = self.turn(self.resend_at.min(start + cap + Duration::from_millis(1)))?;
            if now >= self.resend_at {
                self.resend();
                self.resend_at = now + AGAIN;
            }
        }
        let discovery = self.edge.endpoint().counters().retransmissions - before;
        Ok(Wave {
            up: self.up - up,
            seconds: now.since(start).as_secs_f64(),
            retransmissions: self.wave.retransmissions + discovery,
            ..self.wave
        })
    }

    fn dial(&mut self, now: Instant) -> io::Result<()> {
        let number = self.each.len() as u16;
        let name = user(number.into()).into_bytes().into();
        let endpoint = self.edge.endpoint_mut();
        endpoint.add_port(number, PortConfig::default());
        let dial = pppoe::Dial {
            wait: AGAIN,
            ..pppoe::Dial::default()
        };
        let session = endpoint
            .dial(number, Vlans::NONE, dial, now)
            .map_err(io::Error::other)?;
        self.each.push(Host {
            session,
            has_ipv4: false,
            ipv6: State::Idle,
        });
        let dial = edge::Dial {
            credentials: Some(Credentials {
                name,
                secret: Redacted::new(PASSWORD.as_bytes().into()),
            }),
            ipv4: true,
            ipv6: true,
            networks: Vec::new(),
        };
        self.edge.dial(session, dial, now);
        Ok(())
    }

    /// Answers the access concentrator for `span`.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(super) fn answer(&mut self, span: Duration) -> io::Result<()> {
        let end = clock::now() + span;
        while self.turn(end)? < end {}
        Ok(())
    }

    /// Sends `rate` PADIs per second for `span`, each from another MAC address, and 1,000 LCP Echo-Requests per second in
    /// the sessions that are there, in turn. Waits 200 ms for the last replies.
    ///
    /// # Errors
    /// The kernel's error for the socket.
    pub(super) fn flood(&mut self, rate: u32, span: Duration) -> io::Result<Flooded> {
        let start = clock::now();
        let end = span + Duration::from_millis(200);
        self.flood = Flooded::default();
        loop {
            let now = self.turn(Instant::ZERO)?;
            let spent = now.since(start);
            let due = |rate: u32| {
                let nanos = u128::from(spent.min(span).as_nanos());
                (nanos * u128::from(rate) / 1_000_000_000) as u64
            };
            let (padis, echoes) = (due(rate), due(1_000));
            while self.flood.padis < padis {
                self.padi();
            }
            while self.flood.echoes < echoes && !self.each.is_empty() {
                self.echo();
            }
            self.socket.send(&mut self.out);
            if spent >= end {
                self.flood.seconds = spent.as_secs_f64();
                return Ok(self.flood);
            }
        }
    }

    /// Queues a PADI of a station that is no host.
    fn padi(&mut self) {
        let number = self.flood.padis as u32;
        self.flood.padis += 1;
        self.composed.clear();
        let mut writer = Writer::new(&mut self.composed, Code::PADI, 0);
        writer.tag(tag::SERVICE_NAME, b"");
        writer.tag(tag::HOST_UNIQ, &number.to_be_bytes());
        writer.finish();
        self.queue(frames::stranger(number), Mac::BROADCAST);
    }

    /// Queues an LCP Echo-Request of the next session. Its magic number is 0, which belongs to nobody (RFC 1661,
    /// section 5.8).
    fn echo(&mut self) {
        let number = (self.flood.echoes % self.each.len() as u64) as u16;
        self.flood.echoes += 1;
        self.packet(number, protocol::LCP, |out| {
            out.extend_from_slice(&[ECHO_REQUEST, 0xe0, 0, 8, 0, 0, 0, 0]);
        });
    }

    /// One turn: waits until `deadline` at most, reads input, sends what is due.
    fn turn(&mut self, deadline: Instant) -> io::Result<Instant> {
        let timer = self.edge.poll_timeout().map(|(at, _)| at);
        let until = timer.map_or(deadline, |timer| timer.min(deadline));
        let mut now = self.reactor.wait(Some(until))?;
        while let Some(ready) = self.reactor.next_ready() {
            loop {
                if !self.receive(now)? {
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

    /// Handles the frames of one call. Returns whether more may be waiting.
    fn receive(&mut self, now: Instant) -> io::Result<bool> {
        let Some(mut received) = self.received.take() else {
            return Ok(false);
        };
        let outcome = self.socket.receive(&mut received);
        for frame in received.iter() {
            let Some(opened) = frames::open(frame.bytes) else {
                continue;
            };
            let Some(host) = opened.host else {
                self.flood.pados += 1;
                continue;
            };
            self.wave.received.0 += 1;
            self.wave.received.1 += frame.bytes.len() as u64;
            if self.take(host, opened.packet) {
                continue;
            }
            let route = Route {
                port: host,
                peer: opened.from,
                vlans: Vlans::NONE,
            };
            self.edge.receive(route, opened.packet, now, &mut Nowhere);
        }
        let is_full = received.is_full();
        self.received = Some(received);
        outcome.map_err(io::Error::other)?;
        Ok(is_full)
    }

    /// Takes a frame that is not for the edge: IPv6 packets, and replies to our own Echo-Requests.
    fn take(&mut self, host: u16, packet: &[u8]) -> bool {
        let Some((&[_, 0, _, _, _, _, a, b], packet)) = packet.split_first_chunk::<8>() else {
            return false;
        };
        match u16::from_be_bytes([a, b]) {
            protocol::LCP if packet.starts_with(&[ECHO_REPLY, 0xe0]) => {
                self.flood.replies += 1;
                true
            }
            protocol::IPV6 => {
                self.ipv6(host, packet);
                true
            }
            _ => false,
        }
    }

    /// A Router Advertisement makes a host solicit a prefix, and a server's message goes on from there.
    fn ipv6(&mut self, number: u16, packet: &[u8]) {
        let Some(host) = self.each.get(usize::from(number)) else {
            return;
        };
        let content = packet.get(IPV6_HEADER..).unwrap_or_default();
        match (packet.get(6), content) {
            (Some(&PROTOCOL_V6), [ROUTER_ADVERTISEMENT, ..]) if host.ipv6 == State::Idle => {
                self.ask(number, None);
            }
            (Some(&udp::PROTOCOL), [_, _, a, b, _, _, _, _, message @ ..])
                if u16::from_be_bytes([*a, *b]) == CLIENT_PORT =>
            {
                let Some(answer) = dhcp::read(message, number) else {
                    return;
                };
                match (host.ipv6, answer.kind) {
                    (State::Soliciting, Kind::Advertise) => self.ask(number, Some(&answer)),
                    (State::Requesting, Kind::Reply) => self.settle(number, |host| {
                        host.ipv6 = State::Bound;
                    }),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Sends a host's Solicit, or its Request.
    fn ask(&mut self, number: u16, offer: Option<&dhcp::Answer<'_>>) {
        let host = &mut self.each[usize::from(number)];
        host.ipv6 = match offer {
            None => State::Soliciting,
            Some(_) => State::Requesting,
        };
        let view = self.edge.subscriber_in(host.session);
        let Some([own, _]) = view.and_then(|view| view.ipv6) else {
            host.ipv6 = State::Idle;
            return;
        };
        self.packet(number, protocol::IPV6, |out| {
            dhcp::write(number, own, offer, out);
        });
    }

    /// Changes a host, and counts it once it has everything.
    fn settle(&mut self, number: u16, change: impl FnOnce(&mut Host)) {
        let is_up = |host: &Host| host.has_ipv4 && host.ipv6 == State::Bound;
        if let Some(host) = self.each.get_mut(usize::from(number)) {
            let before = is_up(host);
            change(host);
            self.up += u32::from(is_up(host) && !before);
        }
    }

    /// Solicits again for hosts that have no prefix yet.
    fn resend(&mut self) {
        for number in 0..self.each.len() as u16 {
            let state = self.each[usize::from(number)].ipv6;
            if matches!(state, State::Soliciting | State::Requesting) {
                self.wave.retransmissions += 1;
                self.ask(number, None);
            }
        }
    }

    /// Queues a PPP frame of a host.
    fn packet(&mut self, number: u16, kind: u16, write: impl FnOnce(&mut Vec<u8>)) {
        let session = self.each[usize::from(number)].session;
        let Some((header, route)) = self.edge.endpoint().header(session) else {
            return;
        };
        self.composed.clear();
        self.composed.extend_from_slice(&header[..HEADER_LEN]);
        self.composed.extend_from_slice(&kind.to_be_bytes());
        write(&mut self.composed);
        wire::pppoe::complete(&mut self.composed, 0);
        self.queue(frames::host(number), route.peer);
    }

    /// Queues the composed packet.
    fn queue(&mut self, from: Mac, to: Mac) {
        self.wave.sent.0 += 1;
        self.wave.sent.1 += 14 + self.composed.len() as u64;
        frames::append(self.out.begin(), from, to, &self.composed);
        self.out.commit();
        if self.out.is_full() {
            self.socket.send(&mut self.out);
        }
    }

    fn send(&mut self, now: Instant) {
        loop {
            self.composed.clear();
            let Some(route) = self.edge.poll_transmit(now, &mut self.composed) else {
                break;
            };
            self.queue(frames::host(route.port), route.peer);
        }
        self.socket.send(&mut self.out);
        while let Some(event) = self.edge.poll_event() {
            match event {
                Event::Client {
                    subscriber,
                    addresses: Some(_),
                } => {
                    let view = self.edge.subscriber(subscriber);
                    let number = view.map(|view| view.place.route.port);
                    if let Some(number) = number {
                        self.settle(number, |host| host.has_ipv4 = true);
                    }
                }
                Event::Access(pppoe::Event::SessionDown { .. }) => self.failed += 1,
                _ => {}
            }
        }
    }
}

/// An edge that has only clients, as many as needed.
fn clients() -> Edge<Pppoe> {
    let config = pppoe::Config {
        limits: Limits {
            sessions_max: 1 << 17,
            ..Limits::default()
        },
        ..pppoe::Config::default()
    };
    let edge = edge::Config {
        ppp: ppp::Config {
            echo_interval: Duration::ZERO,
            ..ppp::Config::default()
        },
        ..edge::Config::default()
    };
    let pools = aaa::Pools::new(Vec::new(), Vec::new(), 0).expect("no pool has no fault");
    Edge::new(edge, Endpoint::new(config, [7; 32]), pools, [9; 32])
}
