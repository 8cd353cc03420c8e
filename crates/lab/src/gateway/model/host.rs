//! A host: its connections, its stream, its pings.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use base::{Datagram, Duration, Instant, Machine, Route};
use sim::Rng;

use super::packet::{self, ICMP, SYN, TCP, UDP};
use super::tcp::Tcp;
use crate::gateway::traffic::stream::{self, Account, Receiver};
use crate::gateway::traffic::{flood, page};
use crate::gateway::tunnel;

/// Where bulk data go.
pub(super) const BULK: u16 = 22;
/// Where the page is served.
pub(super) const WEB: u16 = 80;
/// Where the thin stream goes.
const STREAM: u16 = 5_001;
/// Where the flood goes; nobody listens.
const FLOOD: u16 = 9;
/// First port that connections are opened from.
const EPHEMERAL: u16 = 32_768;
/// Connections of a page's loader.
const LOADERS: u16 = 6;
/// Octets of a request for one object.
const REQUEST: u64 = 80;

/// Something that sends on a schedule.
#[derive(Debug)]
struct Periodic {
    what: What,
    to: Ipv4Addr,
    /// When the next one would be due if each kept its time.
    slot: Instant,
    /// When the next one is sent.
    next: Instant,
    end: Instant,
    interval: Duration,
    sent: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Flood,
    Stream,
    Ping { class: u8 },
}

/// One echo request and what became of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Echo {
    /// When it was sent.
    pub sent: Instant,
    /// How long its reply took; `None` for none.
    pub round_trip: Option<Duration>,
}

/// A page being loaded.
#[derive(Debug)]
struct Page {
    begin: Instant,
    first_port: u16,
    asked: usize,
    done: usize,
}

/// A connection, and what its application waits for.
#[derive(Debug)]
struct Connection {
    tcp: Tcp,
    /// Octets asked for that have not arrived yet, by the count at which they have.
    wanted: Option<u64>,
    /// Octets of requests that were answered, at the serving end.
    served: u64,
}

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    address: Ipv4Addr,
    gateway: SocketAddr,
    ecn: bool,
    chance: Rng,
    connections: BTreeMap<(u16, SocketAddrV4), Connection>,
    periodic: Vec<Periodic>,
    page: Option<Page>,
    next_port: u16,
    out: VecDeque<Vec<u8>>,
    receiver: Receiver,
    flooded: u64,
    /// Whether all that it sends goes through a tunnel (RFC 2003).
    pub(super) tunnelled: bool,
    pub(super) echoes: Vec<Echo>,
    /// How long each page took that was loaded.
    pub(super) loads: Vec<Duration>,
}

impl Host {
    pub(super) fn new(address: Ipv4Addr, gateway: SocketAddr, ecn: bool, chance: Rng) -> Self {
        Self {
            address,
            gateway,
            ecn,
            chance,
            connections: BTreeMap::new(),
            periodic: Vec::new(),
            page: None,
            next_port: EPHEMERAL,
            out: VecDeque::new(),
            receiver: Receiver::default(),
            flooded: 0,
            tunnelled: false,
            echoes: Vec::new(),
            loads: Vec::new(),
        }
    }

    /// Opens a connection that sends as long as the model runs.
    pub(super) fn bulk(&mut self, to: Ipv4Addr, now: Instant) {
        let port = self.open(SocketAddrV4::new(to, BULK), now);
        if let Some(connection) = self
            .connections
            .get_mut(&(port, SocketAddrV4::new(to, BULK)))
        {
            connection.tcp.write(u64::MAX / 2, now);
        }
        self.drain();
    }

    pub(super) fn flood(&mut self, to: Ipv4Addr, rate_bps: u64, now: Instant, end: Instant) {
        let interval = flood::PAYLOAD as u64 * 8 * 1_000_000_000 / rate_bps.max(1);
        self.every(What::Flood, to, Duration::from_nanos(interval), now, end);
    }

    pub(super) fn stream(&mut self, to: Ipv4Addr, now: Instant, end: Instant) {
        let interval = stream::PAYLOAD as u64 * 8 * 1_000_000_000 / stream::RATE_BPS;
        self.every(What::Stream, to, Duration::from_nanos(interval), now, end);
    }

    pub(super) fn ping(
        &mut self,
        to: Ipv4Addr,
        class: u8,
        interval: Duration,
        now: Instant,
        end: Instant,
    ) {
        self.every(What::Ping { class }, to, interval, now, end);
    }

    fn every(&mut self, what: What, to: Ipv4Addr, interval: Duration, now: Instant, end: Instant) {
        self.periodic.push(Periodic {
            what,
            to,
            slot: now,
            next: now,
            end,
            interval,
            sent: 0,
        });
    }

    /// Loads a page, unless one is being loaded; true when it began.
    pub(super) fn load(&mut self, server: Ipv4Addr, now: Instant) -> bool {
        if self.page.is_some() {
            return false;
        }
        let remote = SocketAddrV4::new(server, WEB);
        let first_port = self.next_port;
        for _ in 0..LOADERS {
            self.open(remote, now);
        }
        self.page = Some(Page {
            begin: now,
            first_port,
            asked: 0,
            done: 0,
        });
        self.ask(first_port, remote, now);
        self.drain();
        true
    }

    /// Gives up a page that is not there yet.
    pub(super) fn give_up(&mut self) {
        if self.page.take().is_some() {
            self.connections
                .retain(|(_, remote), _| remote.port() != WEB);
        }
    }

    /// What arrived of the stream.
    pub(super) fn account(&self) -> Account {
        self.receiver.account
    }

    /// Datagrams of the stream that this host has sent.
    pub(super) fn stream_sent(&self) -> u64 {
        self.periodic
            .iter()
            .filter(|periodic| periodic.what == What::Stream)
            .map(|periodic| periodic.sent)
            .sum()
    }

    /// Octets of bulk data that have arrived from a host.
    pub(super) fn bulk_from(&self, host: Ipv4Addr) -> u64 {
        let theirs = |((port, remote), _): &(&(u16, SocketAddrV4), &Connection)| {
            *port == BULK && *remote.ip() == host
        };
        self.connections
            .iter()
            .filter(theirs)
            .map(|(_, connection)| connection.tcp.delivered())
            .sum()
    }

    /// Octets of the flood that have arrived.
    pub(super) fn flooded(&self) -> u64 {
        self.flooded
    }

    fn open(&mut self, remote: SocketAddrV4, now: Instant) -> u16 {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(EPHEMERAL);
        let mut tcp = Tcp::new(SocketAddrV4::new(self.address, port), remote, self.ecn);
        tcp.connect(now);
        self.connections.insert(
            (port, remote),
            Connection {
                tcp,
                wanted: None,
                served: 0,
            },
        );
        port
    }

    /// Asks for the next object on a connection that is idle: the page itself first, on the first connection.
    fn ask(&mut self, port: u16, remote: SocketAddrV4, now: Instant) {
        let (Some(page), Some(connection)) =
            (&mut self.page, self.connections.get_mut(&(port, remote)))
        else {
            return;
        };
        // The objects are known once the page is there.
        let may = page.asked == 0 && port == page.first_port || page.asked > 0 && page.done > 0;
        if may && connection.wanted.is_none() && page.asked <= page::OBJECTS {
            page.asked += 1;
            connection.wanted = Some(connection.tcp.delivered() + page::OBJECT_OCTETS as u64);
            connection.tcp.write(REQUEST, now);
        }
    }

    fn take_tcp(&mut self, octets: &[u8], from: Ipv4Addr, now: Instant) {
        let Some((first, source, destination)) = packet::read_tcp(octets, 0, 0) else {
            return;
        };
        let remote = SocketAddrV4::new(from, source);
        let key = (destination, remote);
        if first.flags & SYN != 0
            && matches!(destination, BULK | WEB)
            && !self.connections.contains_key(&key)
        {
            let tcp = Tcp::new(
                SocketAddrV4::new(self.address, destination),
                remote,
                self.ecn,
            );
            self.connections.insert(
                key,
                Connection {
                    tcp,
                    wanted: None,
                    served: 0,
                },
            );
        }
        let Some(connection) = self.connections.get_mut(&key) else {
            return;
        };
        let (sent, received) = connection.tcp.reference();
        if let Some((segment, ..)) = packet::read_tcp(octets, sent, received) {
            connection.tcp.take(&segment, now);
        }
        if destination == WEB {
            while connection.tcp.delivered() >= connection.served + REQUEST {
                connection.served += REQUEST;
                connection.tcp.write(page::OBJECT_OCTETS as u64, now);
            }
        } else if connection
            .wanted
            .is_some_and(|wanted| connection.tcp.delivered() >= wanted)
        {
            connection.wanted = None;
            self.object_is_there(remote, now);
        }
    }

    fn object_is_there(&mut self, remote: SocketAddrV4, now: Instant) {
        let Some(page) = &mut self.page else { return };
        page.done += 1;
        if page.done > page::OBJECTS {
            self.loads.push(now.since(page.begin));
            self.give_up();
            return;
        }
        let first = page.first_port;
        for port in first..first.saturating_add(LOADERS) {
            self.ask(port, remote, now);
        }
    }

    fn take_other(&mut self, octets: &[u8], protocol: u8, from: Ipv4Addr, now: Instant) {
        let Some(packet) = packet::decode(octets) else {
            return;
        };
        let content = packet.transport;
        let word = |at: usize| {
            content
                .get(at..at + 8)
                .and_then(|word| word.try_into().ok())
                .map(u64::from_be_bytes)
        };
        match protocol {
            ICMP if content.first() == Some(&8) => {
                let mut reply = octets.to_vec();
                let (own, other) = (self.address.octets(), from.octets());
                reply[12..16].copy_from_slice(&own);
                reply[16..20].copy_from_slice(&other);
                reply[20] = 0;
                self.out.push_back(reply);
            }
            ICMP => {
                if let Some(number) = word(16)
                    && let Some(echo) = usize::try_from(number)
                        .ok()
                        .and_then(|number| self.echoes.get_mut(number))
                {
                    echo.round_trip = Some(now.since(echo.sent));
                }
            }
            UDP if content.get(2..4) == Some(&STREAM.to_be_bytes()) => {
                if let (Some(number), Some(sent)) = (word(8), word(16)) {
                    self.receiver.take(number, sent, now.as_nanos());
                }
            }
            UDP => self.flooded += u64::from(packet.transport_length.saturating_sub(8)),
            _ => {}
        }
    }

    fn send_due(&mut self, now: Instant) {
        let mut periodic = std::mem::take(&mut self.periodic);
        for each in &mut periodic {
            while each.next <= now && each.next < each.end {
                let packet = self.periodic_packet(each, now);
                self.out.push_back(packet);
                each.sent += 1;
                each.slot += each.interval;
                each.next = each.slot;
                // Two clocks of the same machine would else stay in step, and a full queue hit always the same one.
                if each.what == What::Flood {
                    each.next += self.chance.up_to(each.interval);
                }
            }
        }
        self.periodic = periodic;
    }

    fn periodic_packet(&mut self, each: &Periodic, now: Instant) -> Vec<u8> {
        let from = |port| SocketAddrV4::new(self.address, port);
        let to = |port| SocketAddrV4::new(each.to, port);
        match each.what {
            What::Flood => packet::udp(from(FLOOD), to(FLOOD), flood::PAYLOAD, &[]),
            What::Stream => {
                let head = [each.sent.to_be_bytes(), now.as_nanos().to_be_bytes()].concat();
                packet::udp(from(STREAM), to(STREAM), stream::PAYLOAD, &head)
            }
            What::Ping { class } => {
                let number = self.echoes.len() as u64;
                let packet = packet::echo(from(0), to(0), class, number);
                self.echoes.push(Echo {
                    sent: now,
                    round_trip: None,
                });
                packet
            }
        }
    }

    fn drain(&mut self) {
        for connection in self.connections.values_mut() {
            while let Some(packet) = connection.tcp.poll() {
                self.out.push_back(packet);
            }
        }
    }
}

impl Machine for Host {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = ();
    type Discard = Infallible;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Infallible> {
        let octets = tunnel::unwrapped(input.bytes).unwrap_or(input.bytes);
        if let Some(&[_, _, _, _, _, _, _, _, _, protocol, _, _, a, b, c, d]) = octets.first_chunk()
        {
            let from = Ipv4Addr::new(a, b, c, d);
            if protocol == TCP {
                self.take_tcp(octets, from, now);
            } else {
                self.take_other(octets, protocol, from, now);
            }
            self.drain();
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.send_due(now);
        for connection in self.connections.values_mut() {
            connection.tcp.handle_timeout(now);
        }
        self.drain();
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        let mut packet = self.out.pop_front()?;
        if self.tunnelled {
            packet = tunnel::wrapped(&packet);
        }
        out.extend_from_slice(&packet);
        Some(Route {
            peer: self.gateway,
            local: None,
            socket: 0,
        })
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let periodic = self
            .periodic
            .iter()
            .filter(|each| each.next < each.end)
            .map(|each| (each.next, "schedule"));
        let tcp = self
            .connections
            .values()
            .filter_map(|connection| Some((connection.tcp.deadline()?, "RTO")));
        periodic.chain(tcp).min()
    }
}
