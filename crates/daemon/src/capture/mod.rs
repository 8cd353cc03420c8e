//! `capture.subscriber`: copies a subscriber's packets to a control client, as pcapng over the
//! control socket.
//!
//! The edge makes the copies ([`edge::Edge::tap`]). At the end of each turn they are sent to the
//! clients, with the turn's time as timestamp. If a client does not read, its copies are dropped
//! and the file records how many. The daemon never waits for a client.
//!
//! `datagram` rebuilds outer headers. Start with [`Captures::begin`].

mod datagram;

use crate::ports::{self, Ports};
use edge::access::Either::{First, Second};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};
use wire::pppoe::Mac;

use crate::served::{Passed, Tapped};
use base::Slab;
use base::slab::Key;
use capfile::{PcapngWriter, Way};
use edge::{SubscriberKey, TapId};
use wire::link::LinkType;

use super::client::Client;
use super::core::Core;
use super::sockets::Sockets;
use control::reply::{self, Code, Refusal};
use control::rows;

/// Limit in bytes of output waiting for a client; further copies are dropped.
const BACKLOG_MAX: usize = 4 << 20;

/// The file's interfaces.
const INSIDE: usize = 0;
const OUTSIDE: usize = 1;

/// One running capture and its counters.
struct Capture {
    client: Key,
    /// The request's id.
    id: u64,
    tap: TapId,
    /// Packets left to capture, both interfaces together.
    left: u64,
    /// Bytes kept of each packet.
    snap: usize,
    file: PcapngWriter<Vec<u8>>,
    received: [u64; 2],
    lost: [u64; 2],
    /// Our own address where the route does not name it: the destination address of the last packet
    /// received.
    local: Option<IpAddr>,
}

/// A client's request.
pub(super) struct Wanted<'a> {
    pub(super) keys: Vec<SubscriberKey>,
    /// If set, later sessions of this user name are captured too.
    pub(super) name: Option<&'a [u8]>,
    pub(super) count: Option<u64>,
    pub(super) snap: Option<u32>,
}

/// All captures of a daemon.
#[derive(Default)]
pub(super) struct Captures {
    captures: Vec<Capture>,
    copy: Vec<u8>,
    packet: Vec<u8>,
}

impl Captures {
    /// Starts a capture for a client's request.
    pub(super) fn begin(
        &mut self,
        (client, id): (Key, u64),
        wanted: Wanted<'_>,
        out: &mut Vec<u8>,
        core: &mut Core,
    ) -> Result<(), Refusal> {
        let subscribers = wanted.keys.len();
        let tap = core.edge.tap(wanted.keys, wanted.name).ok_or_else(|| {
            let message = format!("{} captures are under way already", edge::TAPS_MAX);
            Refusal::new(Code::Limit, message)
        })?;
        let snap = wanted.snap.unwrap_or(0);
        let file = file(snap).map_err(|error| Refusal::new(Code::Refused, error.to_string()))?;
        let mut capture = Capture {
            client,
            id,
            tap,
            left: wanted.count.unwrap_or(u64::MAX),
            snap: if snap == 0 { usize::MAX } else { snap as usize },
            file,
            received: [0; 2],
            lost: [0; 2],
            local: None,
        };
        let row = rows::Capture {
            schema: rows::Capture::SCHEMA,
            subscribers,
            format: "pcapng",
        };
        reply::row(out, id, &row);
        capture.write_out(out);
        self.captures.push(capture);
        Ok(())
    }

    /// Stops the client's capture with this request id, if there is one.
    pub(super) fn stop(
        &mut self,
        client: Key,
        id: u64,
        out: &mut Vec<u8>,
        core: &mut Core,
    ) -> bool {
        let of = |capture: &Capture| capture.client == client && capture.id == id;
        let Some(at) = self.captures.iter().position(of) else {
            return false;
        };
        self.captures.swap_remove(at).finish(out, core);
        true
    }

    /// Stops the captures of a client that disconnected.
    pub(super) fn gone(&mut self, client: Key, core: &mut Core) {
        self.captures.retain(|capture| {
            let is_its = capture.client == client;
            if is_its {
                core.edge.untap(capture.tap);
            }
            !is_its
        });
    }

    /// Writes waiting copies to their clients. `got` is called for each client that received
    /// something.
    pub(super) fn hand_out<T, J>(
        &mut self,
        core: &mut Core,
        clients: &mut Slab<T>,
        client: impl Fn(&mut T) -> &mut Client<J>,
        mut got: impl FnMut(Key),
    ) {
        let time_ns = wall_clock(core);
        while core.edge.has_tapped() {
            self.copy.clear();
            let Some(tapped) = core.edge.poll_tapped(&mut self.copy) else {
                break;
            };
            let of = |capture: &&mut Capture| capture.tap == tapped.tap;
            let Some(capture) = self.captures.iter_mut().find(of) else {
                continue;
            };
            let Some(one) = clients.get_mut(capture.client) else {
                continue;
            };
            let waiting = client(one).out_len() + capture.file.get_mut().len();
            let has_room = waiting + self.copy.len() < BACKLOG_MAX;
            let packet = capture.whole(
                &tapped,
                &self.copy,
                &mut self.packet,
                &core.sockets,
                &core.ports,
            );
            capture.take(&tapped, packet, has_room, time_ns);
        }
        self.captures.retain_mut(|capture| {
            let Some(one) = clients.get_mut(capture.client) else {
                return true;
            };
            let out = client(one).out();
            if capture.left == 0 {
                capture.finish(out, core);
            } else if !capture.file.get_mut().is_empty() {
                capture.write_out(out);
            } else {
                return true;
            }
            got(capture.client);
            capture.left > 0
        });
    }
}

/// Writes a PPPoE packet behind Ethernet's header, as it is on the wire.
fn ethernet(packet: &mut Vec<u8>, route: pppoe::Route, is_to: bool, copy: &[u8], ports: &Ports) {
    let own = ports
        .view(route.port.into())
        .map_or(Mac([0; 6]), |view| view.mac);
    let (from, to) = match is_to {
        true => (own, route.peer),
        false => (route.peer, own),
    };
    packet.clear();
    ports::append_frame(packet, from, to, route.vlans, copy);
}

impl Capture {
    /// A packet with all its headers.
    fn whole<'a>(
        &mut self,
        tapped: &Tapped,
        copy: &'a [u8],
        packet: &'a mut Vec<u8>,
        sockets: &Sockets,
        ports: &Ports,
    ) -> &'a [u8] {
        let route = match tapped.passed {
            Passed::Inside => return copy,
            Passed::Outside(First(route)) => route,
            Passed::Outside(Second(route)) => {
                ethernet(packet, route, tapped.is_to, copy, ports);
                return packet;
            }
        };
        if !tapped.is_to {
            self.local = route.local.or(self.local);
        }
        let unknown = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let mut local = sockets.local_addr(route.socket).unwrap_or(unknown);
        let known = route.local.or(self.local);
        if let Some(ip) = known.filter(|ip| ip.is_ipv4() == route.peer.is_ipv4()) {
            local.set_ip(ip);
        }
        let (from, to) = if tapped.is_to {
            (local, route.peer)
        } else {
            (route.peer, local)
        };
        packet.clear();
        datagram::append(packet, from, to, copy);
        packet
    }

    fn take(&mut self, tapped: &Tapped, packet: &[u8], has_room: bool, time_ns: u64) {
        if self.left == 0 {
            return;
        }
        let interface = match tapped.passed {
            Passed::Inside => INSIDE,
            Passed::Outside(_) => OUTSIDE,
        };
        self.received[interface] += 1;
        // Directions are the edge's: a packet to the subscriber goes in on the inside interface and
        // out on the outside one.
        let way = if tapped.is_to {
            Way::Outbound
        } else {
            Way::Inbound
        };
        let kept = &packet[..packet.len().min(self.snap)];
        let length = packet.len() as u32;
        let written = has_room
            && self
                .file
                .packet(interface as u32, time_ns, way, length, kept)
                .is_ok();
        if written {
            self.left -= 1;
        } else {
            self.lost[interface] += 1;
        }
    }

    /// Moves finished output of the file to the client.
    fn write_out(&mut self, out: &mut Vec<u8>) {
        let octets = self.file.get_mut();
        reply::octets(out, self.id, octets);
        octets.clear();
        octets.shrink_to(BACKLOG_MAX / 16);
    }

    fn finish(&mut self, out: &mut Vec<u8>, core: &mut Core) {
        let time_ns = wall_clock(core);
        let early = core.edge.untap(self.tap);
        for interface in [INSIDE, OUTSIDE] {
            self.received[interface] += early[interface];
            self.lost[interface] += early[interface];
            // Writing to memory cannot fail.
            let _ = self.file.statistics(
                interface as u32,
                time_ns,
                self.received[interface],
                self.lost[interface],
            );
        }
        self.write_out(out);
        let row = rows::CaptureEnd {
            schema: rows::CaptureEnd::SCHEMA,
            inside: self.received[INSIDE] - self.lost[INSIDE],
            outside: self.received[OUTSIDE] - self.lost[OUTSIDE],
            inside_lost: self.lost[INSIDE],
            outside_lost: self.lost[OUTSIDE],
        };
        reply::row(out, self.id, &row);
        reply::end(out, self.id, 2);
    }
}

/// Writes the pcapng section header and interfaces.
fn file(snap: u32) -> std::io::Result<PcapngWriter<Vec<u8>>> {
    let application = concat!("headend ", env!("CARGO_PKG_VERSION"));
    let mut file = PcapngWriter::new(Vec::new(), application)?;
    let inside = "IP packets of the subscriber";
    file.interface(LinkType::RAW, "inside", inside, snap)?;
    let outside = "L2TP datagrams of its session; their IP and UDP headers were made anew";
    file.interface(LinkType::RAW, "outside", outside, snap)?;
    Ok(file)
}

/// The turn's wall-clock time, in ns since 1970.
fn wall_clock(core: &Core) -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.map_or(0, |since| since.as_nanos() as u64);
    now.saturating_sub(reactor::clock::now().since(core.now).as_nanos())
}
