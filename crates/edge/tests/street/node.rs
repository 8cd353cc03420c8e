//! An edge as a machine of the simulated street: its frames become datagrams, so that one kind of link carries all.
//!
//! The last byte of a station's address is that of its MAC address. Port 1701 is L2TP, and each VLAN has a port.

use core::convert::Infallible;
use core::net::Ipv4Addr;
use std::collections::VecDeque;

use base::{Datagram, Instant, Machine, Route};
use edge::access::Either::{First, Second};
use edge::access::{Access, Served};
use edge::{Edge, Event, Inside, Outside};
use wire::pppoe::{Mac, Vlans};

use crate::books::Books;
use crate::desk::Desk;

pub(crate) type Way = <Served as Access>::Route;

/// Outside the street.
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// The edge's address in the network of the street.
pub(crate) const EDGE: u8 = 1;
/// The second PPPoE server.
pub(crate) const ROGUE: u8 = 70;
/// VLANs of the PPPoE interface, each a socket behind that of L2TP.
pub(crate) const VLANS: u32 = 2;
/// The first socket to RADIUS servers.
pub(crate) const RADIUS: u32 = 1 + VLANS;
/// The socket for CoA-Requests and Disconnect-Requests.
pub(crate) const REQUESTS: u32 = RADIUS + 2;
/// The port of that socket.
pub(crate) const REQUESTS_PORT: u16 = 3799;

const VLAN_FIRST: u16 = 100;
/// Octets of a test packet: headers, then its sender's number and address.
const PACKET: usize = 28 + 12;

pub(crate) fn ip(station: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, station)
}

pub(crate) fn mac(station: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, station])
}

pub(crate) fn vlan(number: u32) -> Vlans {
    Vlans::one(VLAN_FIRST + number as u16)
}

fn port_of(number: u32) -> u16 {
    2_000 + number as u16
}

/// The sockets of a station: L2TP, and one for each VLAN.
pub(crate) fn sockets(station: u8) -> Vec<String> {
    let vlans = (0..VLANS).map(port_of);
    let ports = [1701].into_iter().chain(vlans);
    ports
        .map(|port| format!("{}:{port}", ip(station)))
        .collect()
}

/// An edge of the street, and its owner.
pub(crate) struct Node {
    pub(crate) edge: Edge<Served>,
    pub(crate) books: Books,
    pub(crate) desk: Desk,
    pub(crate) station: u8,
    /// Which VLANs pass frames.
    pub(crate) has_vlan: [bool; VLANS as usize],
    /// Packets of ours that came back.
    pub(crate) answers: u64,
    /// Whether packets that it forwards to the inside are answered.
    echoes: bool,
    inside: Packets,
    pub(crate) sent: VecDeque<(Route, Vec<u8>)>,
}

#[derive(Default)]
struct Packets(Vec<Vec<u8>>);

impl Inside for Packets {
    fn packet(&mut self, packet: &[u8]) {
        self.0.push(packet.to_vec());
    }
}

#[derive(Default)]
struct Frames {
    begun: Vec<u8>,
    done: Vec<(Way, Vec<u8>)>,
}

impl Outside<Way> for Frames {
    fn begin(&mut self, _: &Way) -> Option<&mut Vec<u8>> {
        self.begun.clear();
        Some(&mut self.begun)
    }

    fn commit(&mut self, way: &Way) {
        self.done.push((*way, core::mem::take(&mut self.begun)));
    }
}

impl Node {
    /// An edge at a station. The owner of subscribers answers their packets.
    pub(crate) fn new(edge: Edge<Served>, desk: Desk, station: u8) -> Self {
        Self {
            echoes: edge.config().accounting,
            edge,
            books: Books::default(),
            desk,
            station,
            has_vlan: [true; VLANS as usize],
            answers: 0,
            inside: Packets::default(),
            sent: VecDeque::new(),
        }
    }

    /// Puts a message on the wire: one copy for each station that it is for.
    fn put(&mut self, way: Way, bytes: Vec<u8>) {
        let to = |station: u8, port: u16, socket: u32| Route {
            peer: (ip(station), port).into(),
            local: None,
            socket,
        };
        match way {
            First(route) => {
                let local = None;
                self.sent.push_back((Route { local, ..route }, bytes));
            }
            Second(route) => {
                let number = (0..VLANS).find(|&number| vlan(number) == route.vlans);
                let number = number.expect("frames are in one of the VLANs");
                if !self.has_vlan[number as usize] {
                    return;
                }
                let stations = match route.peer {
                    Mac::BROADCAST => vec![EDGE, ROGUE],
                    Mac([.., station]) => vec![station],
                };
                for station in stations.into_iter().filter(|&one| one != self.station) {
                    let route = to(station, port_of(number), 1 + number);
                    self.sent.push_back((route, bytes.clone()));
                }
            }
        }
    }

    /// A packet of a client to the far side, from a port of its choice.
    pub(crate) fn talk(&mut self, port: u16, now: Instant) {
        let mut clients = Vec::new();
        let mut cursor = 0;
        while let Some((next, one)) = self.edge.next_subscriber(cursor) {
            cursor = next;
            clients.extend(one.address.filter(|_| one.is_client));
        }
        for own in clients {
            let packet = udp((own, port), (FAR, 53), &self.mark(own));
            self.forward(&packet, now);
        }
    }

    /// Who sent a packet: the station, and the address that it used.
    fn mark(&self, own: Ipv4Addr) -> [u8; 12] {
        let mut mark = [0; 12];
        mark[7] = self.station;
        mark[8..].copy_from_slice(&own.octets());
        mark
    }

    /// A packet from the inside.
    pub(crate) fn forward(&mut self, packet: &[u8], now: Instant) {
        let mut octets = vec![0; wire::virtio::LENGTH];
        octets.extend_from_slice(packet);
        let mut frames = Frames::default();
        self.edge.forward(&mut octets, now, &mut frames);
        for (way, bytes) in frames.done {
            self.put(way, bytes);
        }
    }

    /// A PPP frame of a client, made by hand.
    pub(crate) fn say(&mut self, frame: &[u8]) {
        let Some((_, one)) = self.edge.next_subscriber(0) else {
            return;
        };
        let session = one.session;
        if let Some((header, way)) = self.edge.endpoint_mut().header(session) {
            let mut bytes = AsRef::<[u8]>::as_ref(&header).to_vec();
            bytes.extend_from_slice(frame);
            if matches!(way, Second(_)) {
                wire::pppoe::complete(&mut bytes, 0);
            }
            self.put(way, bytes);
        }
    }

    /// A Discovery packet, made by hand.
    pub(crate) fn shout(&mut self, number: u32, station: u8, bytes: Vec<u8>) {
        let route = pppoe::Route {
            port: 0,
            peer: mac(station),
            vlans: vlan(number),
        };
        self.put(Second(route), bytes);
    }

    /// Packets that leave on the inside: a server on the far side answers each packet, and our own clients compare the answer
    /// with what they sent.
    fn look_inside(&mut self, now: Instant) {
        for packet in core::mem::take(&mut self.inside.0) {
            if packet.len() != PACKET || packet[9] != 17 {
                continue;
            }
            let address = |at: usize| {
                let octets: [u8; 4] = packet[at..at + 4].try_into().expect("four");
                Ipv4Addr::from(octets)
            };
            let port = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
            let mark = &packet[28..];
            if self.echoes {
                let (from, to) = ((address(12), port(20)), (address(16), port(22)));
                self.check_source(from, address(36), mark[7]);
                let answer = udp(to, from, mark);
                self.forward(&answer, now);
            } else {
                assert_eq!(mark[7], self.station, "a packet of another station");
                assert_eq!(
                    address(16),
                    address(36),
                    "to another address than that of its question"
                );
                self.answers += 1;
            }
        }
    }

    /// A translated packet has a port of its subscriber's block.
    fn check_source(&self, (from, port): (Ipv4Addr, u16), inside: Ipv4Addr, station: u8) {
        let Some(nat) = self.edge.nat() else { return };
        if inside.octets()[0] != 10 {
            assert_eq!(from, inside, "an address that is not translated");
            return;
        }
        let block = nat.owner_of(from, port);
        let block = block.unwrap_or_else(|| panic!("{from}:{port} is nobody's, from {station}"));
        assert_eq!(block.inside, inside, "{from}:{port} belongs to another");
    }

    /// The owner's work after every change. `false` if there was none.
    fn work(&mut self, now: Instant) -> bool {
        self.look_inside(now);
        let before = self.sent.len();
        let worked = (self.desk).work(&mut self.edge, &mut self.books, &mut self.sent, now);
        worked || self.sent.len() > before
    }
}

impl Machine for Node {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = Event<Served>;
    type Discard = Infallible;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Infallible> {
        let Datagram { route, bytes } = input;
        let way = match route.socket {
            0 => First(Route {
                local: Some(ip(self.station).into()),
                ..route
            }),
            socket if socket < RADIUS => {
                let number = socket - 1;
                if !self.has_vlan[number as usize] {
                    return Ok(());
                }
                let core::net::IpAddr::V4(peer) = route.peer.ip() else {
                    return Ok(());
                };
                Second(pppoe::Route {
                    port: 0,
                    peer: mac(peer.octets()[3]),
                    vlans: vlan(number),
                })
            }
            _ => {
                self.desk.receive(route, bytes, now);
                return Ok(());
            }
        };
        self.edge.receive(way, bytes, now, &mut self.inside);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.edge.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.edge.handle_timeout(now);
        }
        self.desk.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        loop {
            self.work(now);
            if let Some((route, bytes)) = self.sent.pop_front() {
                out.extend_from_slice(&bytes);
                return Some(route);
            }
            let mut bytes = Vec::new();
            match self.edge.poll_transmit(now, &mut bytes) {
                Some(way) => self.put(way, bytes),
                None if !self.work(now) => return None,
                None => {}
            }
        }
    }

    fn poll_event(&mut self) -> Option<Event<Served>> {
        let event = self.edge.poll_event()?;
        self.books.event(&event);
        Some(event)
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let desk = self.desk.poll_timeout().map(|at| (at, "desk"));
        let all = [self.edge.poll_timeout(), desk];
        all.into_iter().flatten().min_by_key(|&(at, _)| at)
    }
}

/// A UDP packet without a checksum.
fn udp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), data: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 28];
    packet[0] = 0x45;
    packet[3] = 28 + data.len() as u8;
    packet[8] = 64;
    packet[9] = 17;
    packet[12..16].copy_from_slice(&from.0.octets());
    packet[16..20].copy_from_slice(&to.0.octets());
    packet[20..22].copy_from_slice(&from.1.to_be_bytes());
    packet[22..24].copy_from_slice(&to.1.to_be_bytes());
    packet[25] = 8 + data.len() as u8;
    let sum = !wire::checksum::sum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend_from_slice(data);
    packet
}
