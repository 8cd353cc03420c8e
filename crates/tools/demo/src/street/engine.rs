//! The PPPoE clients of all lines on one edge, and the loop that serves them.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};

use aaa::Prefix;
use base::{Duration, Instant, Redacted};
use edge::access::Pppoe;
use edge::{Edge, Event};
use ppp::Credentials;
use pppoe::{Endpoint, Limits, PortConfig, Route, SessionKey, Vlans};
use reactor::ether::{EtherRecv, EtherSocket};
use reactor::tun::{HEADER, Tun};
use reactor::{Interest, PollerKind, Reactor, StoreKind, clock};
use wire::ip::Header;

use super::configs;
use super::echoes::{self, Probe};
use super::frames::{self, Outbound};
use super::hosts::{Command, Line, MTU, Shared, TURN, lock};

/// Limit of frames waiting to be sent.
const QUEUE: usize = 8_192;
/// Frames received with one call.
const BATCH: usize = 256;
/// Wait before a Discovery packet is sent again.
const AGAIN: Duration = Duration::from_secs(1);
/// Echo-Requests sent in one turn, so that no queue on their way is full.
const ECHOES_PER_TURN: usize = 32;
/// Longest time for all sessions to end.
const GOODBYE: Duration = Duration::from_secs(2);
/// A watched line, by its addresses.
#[derive(Clone, Copy)]
struct Watched {
    ipv4: Ipv4Addr,
    delegated: Prefix,
}

/// Takes the packets that arrive at lines.
struct Inside<'a> {
    shared: &'a Shared,
    watched: &'a [Watched],
    tun: &'a Tun,
    now: Instant,
}

impl edge::Inside for Inside<'_> {
    fn packet(&mut self, packet: &[u8]) {
        let Ok(header) = Header::read(packet) else {
            return;
        };
        if echoes::may_be(&header) && lock(&self.shared.echoes).take(&header, packet, self.now) {
            return;
        }
        let to = header.destination_address();
        let is_for = |line: &Watched| to == line.ipv4 || line.delegated.contains(to);
        if let Some(number) = self.watched.iter().position(is_for) {
            let octets = &self.shared.arrived[number].octets;
            octets.fetch_add(packet.len() as u64, Ordering::Relaxed);
            // The kernel drops a packet that it has no room for, as it would on any interface.
            let _ = self.tun.send(packet);
        }
    }
}

/// The hosts themselves.
pub(super) struct Engine {
    shared: Arc<Shared>,
    edge: Edge<Pppoe>,
    reactor: Reactor,
    /// `None` only while its frames are handled.
    received: Option<EtherRecv>,
    out: Outbound,
    tun: Tun,
    composed: Vec<u8>,
    sessions: Vec<SessionKey>,
    watched: Vec<Watched>,
    probes: Vec<Probe>,
    first_padi: Instant,
}

impl Engine {
    pub(super) fn new(shared: Arc<Shared>, socket: EtherSocket, tun: Tun) -> io::Result<Self> {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
        reactor.add(&socket, "wan", 0, Interest::READ)?;
        reactor.add(&tun, "lines", 1, Interest::READ)?;
        Ok(Self {
            shared,
            edge: clients(),
            reactor,
            received: Some(EtherRecv::new(BATCH)),
            out: Outbound::new(socket, QUEUE),
            tun,
            composed: Vec::new(),
            sessions: Vec::new(),
            watched: Vec::new(),
            probes: Vec::new(),
            first_padi: Instant::ZERO,
        })
    }

    /// Runs until the demo hangs up; then ends all sessions.
    pub(super) fn run(&mut self, commands: &Receiver<Command>) -> io::Result<()> {
        loop {
            match commands.try_recv() {
                Ok(Command::Dial) => self.dial()?,
                Ok(Command::Watch(lines)) => self.watch(lines),
                Ok(Command::Echo) => self.probes = Probe::of_all(&lock(&self.shared.lines)),
                Err(mpsc::TryRecvError::Empty) => {}
                Err(mpsc::TryRecvError::Disconnected) => return self.say_goodbye(),
            }
            let pause = match self.probes.is_empty() {
                true => TURN,
                false => Duration::from_millis(1),
            };
            let now = self.turn(clock::now() + pause)?;
            self.probe(now);
            let cpu_us = reactor::usage::thread_cpu().as_nanos() as u64 / 1_000;
            self.shared.cpu_us.store(cpu_us, Ordering::Relaxed);
        }
    }

    fn say_goodbye(&mut self) -> io::Result<()> {
        let now = clock::now();
        self.edge.release_uplinks(now);
        self.send(now);
        self.edge.shut_down(now);
        self.send(now);
        let end = now + GOODBYE;
        while !self.edge.is_quiet() && self.turn(clock::now() + TURN)? < end {}
        Ok(())
    }

    /// Connects every line at once, as after a power failure.
    fn dial(&mut self) -> io::Result<()> {
        let count = lock(&self.shared.lines).len() as u16;
        self.first_padi = clock::now();
        for line in 0..count {
            let now = clock::now();
            let endpoint = self.edge.endpoint_mut();
            endpoint.add_port(line, PortConfig::default());
            let dial = pppoe::Dial {
                wait: AGAIN,
                ..pppoe::Dial::default()
            };
            let session = endpoint.dial(line, Vlans::NONE, dial, now);
            let session = session.map_err(io::Error::other)?;
            self.sessions.push(session);
            let secret = Redacted::new(configs::PASSWORD.as_bytes().into());
            let name = configs::name(line).into_bytes().into();
            let dial = edge::Dial {
                credentials: Some(Credentials { name, secret }),
                ipv4: true,
                ipv6: true,
                networks: Vec::new(),
            };
            self.edge.dial(session, dial, now);
            if line % 64 == 63 {
                self.turn(Instant::ZERO)?;
            }
        }
        Ok(())
    }

    fn watch(&mut self, lines: [u16; 2]) {
        let all = lock(&self.shared.lines);
        let watched = lines.into_iter().filter_map(|line| {
            let line = all.get(usize::from(line))?;
            Some(Watched {
                ipv4: line.ipv4?,
                delegated: line.delegated?,
            })
        });
        self.watched = watched.collect();
        let count = self.watched.len() as u32;
        self.shared.watched.store(count, Ordering::Release);
    }

    /// Sends the next pings.
    fn probe(&mut self, now: Instant) {
        let rest = self.probes.len().saturating_sub(ECHOES_PER_TURN);
        for probe in self.probes.split_off(rest) {
            self.composed.clear();
            self.composed.resize(HEADER, 0);
            probe.write(&mut self.composed);
            lock(&self.shared.echoes).sent(&probe, now);
            self.edge.forward(&mut self.composed, now, &mut self.out);
        }
        self.out.send();
    }

    /// One turn: waits until `deadline` at most, reads input, sends what is due.
    fn turn(&mut self, deadline: Instant) -> io::Result<Instant> {
        let timer = self.edge.poll_timeout().map(|(at, _)| at);
        let until = timer.map_or(deadline, |timer| timer.min(deadline));
        let mut now = self.reactor.wait(Some(until))?;
        while let Some(ready) = self.reactor.next_ready() {
            loop {
                let more = match ready.user {
                    0 => self.receive(now)?,
                    _ => self.forward(now)?,
                };
                self.send(now);
                if !more {
                    self.reactor.drained(ready.token);
                    break;
                }
                now = clock::now();
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
        let outcome = self.out.socket.receive(&mut received);
        for frame in received.iter() {
            let Some((line, from, packet)) = frames::open(frame.bytes) else {
                continue;
            };
            let route = Route {
                port: line,
                peer: from,
                vlans: Vlans::NONE,
            };
            let mut inside = Inside {
                shared: &self.shared,
                watched: &self.watched,
                tun: &self.tun,
                now,
            };
            self.edge.receive(route, packet, now, &mut inside);
        }
        let is_full = received.is_full();
        self.received = Some(received);
        outcome.map_err(io::Error::other)?;
        Ok(is_full)
    }

    /// Passes packets of the kernel to the sessions that they belong to, by their source. Returns whether more may be
    /// waiting.
    fn forward(&mut self, now: Instant) -> io::Result<bool> {
        for _ in 0..BATCH {
            self.composed.resize(HEADER + 2 * MTU as usize, 0);
            self.composed[..HEADER].fill(0);
            let Some(length) = self.tun.receive(&mut self.composed[HEADER..])? else {
                return Ok(false);
            };
            let packet = &mut self.composed[..HEADER + length];
            self.edge.forward(packet, now, &mut self.out);
        }
        Ok(true)
    }

    fn send(&mut self, now: Instant) {
        loop {
            self.composed.clear();
            let Some(route) = self.edge.poll_transmit(now, &mut self.composed) else {
                break;
            };
            self.out.push(&route, &self.composed);
        }
        self.out.send();
        while let Some(event) = self.edge.poll_event() {
            self.heed(event, now);
        }
        let again = self.edge.endpoint().counters().retransmissions;
        self.shared.retransmissions.store(again, Ordering::Relaxed);
    }

    fn heed(&mut self, event: Event<Pppoe>, now: Instant) {
        match event {
            Event::Client {
                subscriber,
                addresses,
            } => self.change(subscriber, now, |line| {
                line.ipv4 = addresses.map(|(own, _)| own);
            }),
            Event::Uplink { subscriber, view } => self.change(subscriber, now, |line| {
                let view = view.filter(|view| view.is_default);
                let formed = view.as_ref().and_then(|view| view.addresses.first());
                line.ipv6 = formed.map(|formed| formed.address);
                let delegated = view.as_ref().and_then(|view| view.delegated.as_ref());
                line.delegated = delegated.map(|delegated| delegated.prefix);
            }),
            Event::Access(pppoe::Event::SessionDown { place, reason, .. }) => {
                let line = place.route.port;
                let text = format!("{}: {reason}", configs::name(line));
                lock(&self.shared.ended).push(text);
            }
            _ => {}
        }
    }

    /// Changes what a line has.
    fn change(
        &mut self,
        subscriber: edge::SubscriberKey,
        now: Instant,
        change: impl FnOnce(&mut Line),
    ) {
        let Some(view) = self.edge.subscriber(subscriber) else {
            return;
        };
        let mut lines = lock(&self.shared.lines);
        let Some(line) = lines.get_mut(usize::from(view.place.route.port)) else {
            return;
        };
        change(line);
        if line.is_dual_stack() && line.up_after_s.is_none() {
            line.up_after_s = Some(now.since(self.first_padi).as_secs_f64());
            self.shared.up.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// An edge that has only clients, each of which asks for a delegated prefix.
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
        uplink: Some(edge::v6::PrefixWish {
            duid: edge::v6::duid([0, 0, 0x5e, 0x10]),
            iaid: 1,
            length: None,
            rapid_commit: true,
        }),
        ..edge::Config::default()
    };
    let pools = aaa::Pools::new(Vec::new(), Vec::new(), 0).expect("no pool has no fault");
    Edge::new(edge, Endpoint::new(config, [7; 32]), pools, [9; 32])
}
