//! The hosts of the street: PPPoE clients, each with a MAC address of its own, as clients of one edge on one packet
//! socket. A thread in the street's namespace runs them. The number of a line is the number of its port in the endpoint.
//!
//! Packets to the watched lines leave through a TUN device to the kernel of the street's namespace, and packets from
//! their addresses come from there. So programs use these lines as their own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use aaa::Prefix;
use anyhow::{Context, Result};
use base::{Duration, Instant, Redacted};
use edge::access::Pppoe;
use edge::{Edge, Event};
use ppp::Credentials;
use pppoe::{Endpoint, Limits, PortConfig, Route, SessionKey, Vlans};
use reactor::ether::{EtherOptions, EtherRecv, EtherSocket};
use reactor::tun::{HEADER, Tun};
use reactor::{Interest, PollerKind, Reactor, StoreKind, clock};
use wire::ip::Header;
use wire::pppoe::{ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION};

use super::configs;
use super::echoes::{self, Echoes, Probe};
use super::frames::{self, Outbound};
use super::place::{Place, WAN};

/// The TUN device of the watched lines.
pub(super) const DEVICE: &str = "lines";
/// The largest packet of a line: Ethernet's 1,500 bytes less the headers of PPPoE and PPP.
pub(super) const MTU: u32 = 1_492;
/// Limit of frames waiting to be sent.
const QUEUE: usize = 8_192;
/// Frames received with one call.
const BATCH: usize = 256;
/// Wait before a Discovery packet is sent again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long one turn waits for frames: commands are read between two turns.
const TURN: Duration = Duration::from_millis(5);
/// Echo-Requests sent in one turn, so that no queue on their way is full.
const ECHOES_PER_TURN: usize = 32;
/// Longest time for all sessions to end.
const GOODBYE: Duration = Duration::from_secs(2);

/// What a line has.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) ipv4: Option<Ipv4Addr>,
    /// The address that the host formed from its link's prefix.
    pub(super) ipv6: Option<Ipv6Addr>,
    pub(super) delegated: Option<Prefix>,
    /// Seconds from the first PADI of the street until the line had all of these.
    pub(super) up_after_s: Option<f64>,
}

impl Line {
    /// The first address of the delegated prefix after its network's own.
    pub(super) fn home(&self) -> Option<Ipv6Addr> {
        match self.delegated?.address() {
            IpAddr::V6(address) => Some(Ipv6Addr::from_bits(address.to_bits() | 1)),
            IpAddr::V4(_) => None,
        }
    }

    fn is_dual_stack(&self) -> bool {
        self.ipv4.is_some() && self.ipv6.is_some() && self.delegated.is_some()
    }
}

/// Packets that arrived at a watched line.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// Bytes of IP packets.
    pub(super) octets: AtomicU64,
}

/// State that the hosts' thread shares with the demo.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) lines: Mutex<Vec<Line>>,
    pub(super) up: AtomicU32,
    /// Sessions that ended before the demo ended them, each with the reason.
    pub(super) ended: Mutex<Vec<String>>,
    /// Discovery packets that were sent again.
    pub(super) retransmissions: AtomicU64,
    /// Processor time of the hosts' thread in microseconds.
    pub(super) cpu_us: AtomicU64,
    pub(super) echoes: Mutex<Echoes>,
    /// Number of lines whose packets go to the TUN device.
    watched: AtomicU32,
    /// By the order of the watched lines.
    pub(super) arrived: [Arrived; 2],
}

/// Locks, whatever a thread that had the lock did.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the hosts are asked to do.
enum Command {
    /// Connect all lines.
    Dial,
    /// Pass the packets of these lines to the TUN device.
    Watch([u16; 2]),
    /// Ping the internet from each line, by IPv4 and by IPv6.
    Echo,
}

/// The hosts' thread. Dropping this ends their sessions.
pub(super) struct Hosts {
    pub(super) shared: Arc<Shared>,
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<io::Result<io::Result<()>>>>,
}

impl Hosts {
    /// Opens the packet socket and the TUN device, and starts the thread.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn start(place: &Place, lines: u16) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        lock(&shared.lines).resize(lines.into(), Line::default());
        let opened = place
            .street
            .run(|| -> Result<_> { Ok((open_socket()?, Tun::open(DEVICE)?)) });
        let (socket, tun) = opened?.context("the street's interfaces")?;
        let mut netlink = place.street.netlink()?;
        netlink.set_mtu(DEVICE, MTU)?;
        netlink.set_up(DEVICE, true)?;
        let (commands, received) = mpsc::channel();
        let mut engine = Engine::new(Arc::clone(&shared), socket, tun)?;
        let work = move || engine.run(&received);
        let thread = place.street.spawn("hosts", work)?;
        Ok(Self {
            shared,
            commands: Some(commands),
            thread: Some(thread),
        })
    }

    /// Connects all lines.
    pub(super) fn dial(&self) {
        self.order(Command::Dial);
    }

    /// Passes the packets of these lines to the TUN device from now on.
    ///
    /// # Errors
    /// The thread has ended.
    pub(super) fn watch(&mut self, lines: [u16; 2]) -> Result<()> {
        self.order(Command::Watch(lines));
        while self.shared.watched.load(Ordering::Acquire) == 0 {
            self.check()?;
            std::thread::sleep(TURN.into());
        }
        Ok(())
    }

    pub(super) fn echo(&self) {
        self.order(Command::Echo);
    }

    fn order(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // It fails only if the thread has ended, which `check` reports.
            let _ = commands.send(command);
        }
    }

    /// Fails if the thread has ended.
    ///
    /// # Errors
    /// Its error.
    pub(super) fn check(&mut self) -> Result<()> {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            self.stop()?;
            anyhow::bail!("the hosts have ended");
        }
        Ok(())
    }

    /// Ends all sessions, and the thread.
    ///
    /// # Errors
    /// Why the thread had ended before.
    pub(super) fn stop(&mut self) -> Result<()> {
        self.commands = None;
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        let ended = thread.join();
        ended
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?
            .context("the hosts' socket")
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            // The error that ended the demo is the one to report.
            let _ = thread.join();
        }
    }
}

/// Opens a socket for the frames of PPPoE on the street's wire, whatever their destination.
fn open_socket() -> Result<EtherSocket> {
    let options = EtherOptions {
        types: vec![ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION],
        any_destination: true,
        recv_buffer_bytes: Some(64 << 20),
        send_buffer_bytes: Some(8 << 20),
        ..EtherOptions::default()
    };
    let mut socket = EtherSocket::open(WAN, &options)?;
    socket.bind()?;
    Ok(socket)
}

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
struct Engine {
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
    fn new(shared: Arc<Shared>, socket: EtherSocket, tun: Tun) -> io::Result<Self> {
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
    fn run(&mut self, commands: &Receiver<Command>) -> io::Result<()> {
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
