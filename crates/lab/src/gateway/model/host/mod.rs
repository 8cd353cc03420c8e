//! A model host: its connections, the pages it loads, and its scheduled traffic.

mod page;
mod schedule;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use base::{Datagram, Duration, Instant, Machine, Route};
use sim::Rng;

use super::packet::{self, ICMP, RST, SYN, Segment, TCP, UDP};
use super::tcp::Tcp;
use crate::gateway::traffic::stream::{self, Account, Receiver};
use crate::gateway::traffic::{flood, page::OBJECT_OCTETS};
use crate::gateway::tunnel;
use page::Page;
pub use schedule::Echo;
use schedule::{Schedule, What};

/// Port for bulk data.
pub(super) const BULK: u16 = 22;
/// Port of the web server.
pub(super) const WEB: u16 = 80;
/// Port of the thin stream.
const STREAM: u16 = 5_001;
/// Port of the flood; no socket listens there.
const FLOOD: u16 = 9;
/// First ephemeral port.
const EPHEMERAL: u16 = 32_768;
/// Bytes of a request for one object.
const REQUEST: u64 = 80;

/// A connection, and the data its application waits for.
#[derive(Debug)]
struct Connection {
    tcp: Tcp,
    /// The byte count at which the requested data has arrived, if it has not yet.
    wanted: Option<u64>,
    /// Bytes of requests answered, at the server.
    served: u64,
}

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    address: Ipv4Addr,
    gateway: SocketAddr,
    ecn: bool,
    connections: BTreeMap<(u16, SocketAddrV4), Connection>,
    schedule: Schedule,
    page: Option<Page>,
    next_port: u16,
    out: VecDeque<Vec<u8>>,
    receiver: Receiver,
    flooded: u64,
    /// Whether all its packets go through a tunnel (RFC 2003).
    pub(super) tunnelled: bool,
    /// Load time of each loaded page.
    pub(super) loads: Vec<Duration>,
}

impl Host {
    pub(super) fn new(address: Ipv4Addr, gateway: SocketAddr, ecn: bool, chance: Rng) -> Self {
        Self {
            address,
            gateway,
            ecn,
            connections: BTreeMap::new(),
            schedule: Schedule::new(address, chance),
            page: None,
            next_port: EPHEMERAL,
            out: VecDeque::new(),
            receiver: Receiver::default(),
            flooded: 0,
            tunnelled: false,
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

    /// Sends datagrams at a rate, without regard to loss.
    pub(super) fn flood(&mut self, to: Ipv4Addr, rate_bps: u64, span: (Instant, Instant)) {
        let interval = interval(flood::PAYLOAD, rate_bps);
        self.schedule.every(What::Flood, to, interval, span);
    }

    /// Sends the thin stream.
    pub(super) fn stream(&mut self, to: Ipv4Addr, span: (Instant, Instant)) {
        let interval = interval(stream::PAYLOAD, stream::RATE_BPS);
        self.schedule.every(What::Stream, to, interval, span);
    }

    pub(super) fn ping(
        &mut self,
        (to, class): (Ipv4Addr, u8),
        interval: Duration,
        span: (Instant, Instant),
    ) {
        self.schedule
            .every(What::Ping { class }, to, interval, span);
    }

    /// Stops all scheduled traffic.
    pub(super) fn fall_silent(&mut self, now: Instant) {
        self.schedule.end(now);
    }

    /// The pings, in the order in which they were sent.
    pub(super) fn echoes(&self) -> &[Echo] {
        &self.schedule.echoes
    }

    /// Receiver statistics of the stream.
    pub(super) fn account(&self) -> Account {
        self.receiver.account
    }

    /// Datagrams of the stream that this host has sent.
    pub(super) fn stream_sent(&self) -> u64 {
        self.schedule.stream_sent()
    }

    /// Bytes of bulk data received from a host.
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

    /// Bytes of the flood received.
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

    /// Sends a reset because the connection does not exist.
    fn reset(&mut self, port: u16, remote: SocketAddrV4) {
        let segment = Segment {
            flags: RST,
            ..Segment::default()
        };
        let local = SocketAddrV4::new(self.address, port);
        self.out
            .push_back(packet::tcp(local, remote, &segment, false));
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
        if first.flags & RST != 0 {
            self.connections.remove(&key);
            return;
        }
        let Some(connection) = self.connections.get_mut(&key) else {
            self.reset(destination, remote);
            return;
        };
        let (sent, received) = connection.tcp.reference();
        if let Some((segment, ..)) = packet::read_tcp(octets, sent, received) {
            connection.tcp.take(&segment, now);
        }
        if destination == WEB {
            while connection.tcp.delivered() >= connection.served + REQUEST {
                connection.served += REQUEST;
                connection.tcp.write(OBJECT_OCTETS as u64, now);
            }
        } else if connection
            .wanted
            .is_some_and(|wanted| connection.tcp.delivered() >= wanted)
        {
            connection.wanted = None;
            self.object_is_there(remote, now);
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
                if let Some(number) = word(16) {
                    self.schedule.answered(number, now);
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
        self.schedule.send_due(now, &mut self.out);
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
        let scheduled = self.schedule.next().map(|at| (at, "schedule"));
        let tcp = self
            .connections
            .values()
            .filter_map(|connection| Some((connection.tcp.deadline()?, "TCP")));
        tcp.chain(scheduled).min()
    }
}

/// Interval between datagrams of one size at a payload rate.
fn interval(octets: usize, rate_bps: u64) -> Duration {
    Duration::from_nanos(octets as u64 * 8 * 1_000_000_000 / rate_bps.max(1))
}
