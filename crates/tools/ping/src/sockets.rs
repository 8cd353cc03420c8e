//! Assigns streams to sockets, and tracks the transmit times that the kernel has not reported yet.
//!
//! ICMP streams of a family share a socket, because their data carries a tag. Streams whose packets are too small for
//! the tag get separate sockets if they go to the same address. Each UDP stream has its own socket, so it is a flow of
//! its own.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Result, anyhow};
use ping::probe::Tag;
use ping::{Protocol, StreamPlan};
use reactor::timed::{Family, TimedOptions, TimedSocket};
use rustix::io::Errno;
use rustix::net::netdevice::{index_to_name, name_to_index};
use wire::icmp::Version;

use super::hi::{From, Task};
use super::packets::plain;

/// Maximum packets whose transmit time is awaited.
const AWAITED_MAX: usize = 16_384;
/// How many packets a later packet's transmit time may overtake.
const OVERTAKEN_MAX: usize = 256;
/// Receive buffer for packets that arrive between two reads, at the highest rates.
const BUFFER_BYTES: usize = 4 << 20;

/// A socket and its streams.
pub(super) struct Lane {
    pub(super) socket: TimedSocket,
    /// Whether it is an ICMP socket.
    pub(super) version: Option<Version>,
    /// Streams without a tag, by address.
    pub(super) untagged: HashMap<IpAddr, u32>,
    awaited: VecDeque<(u32, u64)>,
    /// The socket's number of the first packet whose transmit time is awaited.
    first: u32,
}

/// A named interface and its index, which stays the same as long as the interface exists.
#[derive(Debug, Clone)]
struct Interface {
    name: String,
    index: u32,
}

/// All sockets, and the socket of each stream.
pub(super) struct Lanes {
    pub(super) lanes: Vec<Lane>,
    pub(super) of_stream: Vec<u32>,
    /// The interfaces that streams are bound to.
    through: Vec<Option<Interface>>,
}

impl Lanes {
    /// Opens the sockets of the task's streams.
    ///
    /// # Errors
    /// A permission or an interface is missing.
    pub(super) fn open(task: &Task) -> Result<Lanes> {
        let mut all = Lanes {
            lanes: Vec::new(),
            of_stream: Vec::new(),
            through: Vec::new(),
        };
        for (number, stream) in task.plan.streams.iter().enumerate() {
            let lane = match stream.protocol {
                Protocol::Icmp => all.icmp(number as u32, stream, &task.from)?,
                Protocol::Udp { .. } => all.udp(stream, &task.from)?,
            };
            all.of_stream.push(lane);
            let socket = &all.lanes[lane as usize].socket;
            let through = through(socket, stream, &task.to[number], &task.from);
            all.through.push(through);
        }
        Ok(all)
    }

    /// The name of the interface that a stream is bound to, if the interface no longer exists.
    pub(super) fn vanished(&self, stream: u32) -> Option<&str> {
        let interface = self.through[stream as usize].as_ref()?;
        let lane = &self.lanes[self.of_stream[stream as usize] as usize];
        let there = index_to_name(&lane.socket, interface.index);
        there.is_err().then_some(&interface.name)
    }

    fn icmp(&mut self, number: u32, stream: &StreamPlan, from: &From) -> Result<u32> {
        let (family, version) = match stream.address {
            IpAddr::V4(_) => (Family::V4, Version::V4),
            IpAddr::V6(_) => (Family::V6, Version::V6),
        };
        let tagged = Tag::fits(stream.size);
        let is_free = |lane: &Lane| {
            let free = tagged || !lane.untagged.contains_key(&stream.address);
            lane.version == Some(version) && free
        };
        let lane = match self.lanes.iter().position(is_free) {
            Some(lane) => lane,
            None => {
                let socket = TimedSocket::icmp(family, &options(from));
                let socket = socket.map_err(|error| refusal(&error, from, "ICMP"))?;
                self.add(socket, Some(version))
            }
        };
        if !tagged {
            self.lanes[lane].untagged.insert(stream.address, number);
        }
        Ok(lane as u32)
    }

    fn udp(&mut self, stream: &StreamPlan, from: &From) -> Result<u32> {
        let any = match stream.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let address = SocketAddr::new(from.source.unwrap_or(any), 0);
        let socket = TimedSocket::udp(address, &options(from));
        let socket = socket.map_err(|error| refusal(&error, from, "UDP"))?;
        Ok(self.add(socket, None) as u32)
    }

    fn add(&mut self, socket: TimedSocket, version: Option<Version>) -> usize {
        self.lanes.push(Lane {
            socket,
            version,
            untagged: HashMap::new(),
            awaited: VecDeque::new(),
            first: 0,
        });
        self.lanes.len() - 1
    }
}

impl Lane {
    /// Records which packet has the socket's number `id`. Numbers are given in order.
    pub(super) fn await_time(&mut self, id: u32, stream: u32, sequence: u64) {
        if self.awaited.is_empty() {
            self.first = id;
        }
        if self.awaited.len() >= AWAITED_MAX {
            self.awaited.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        self.awaited.push_back((stream, sequence));
    }

    /// The packet of a number. Earlier entries are discarded, except a few that may have been overtaken.
    pub(super) fn whose(&mut self, id: u32) -> Option<(u32, u64)> {
        let place = id.wrapping_sub(self.first) as usize;
        let found = *self.awaited.get(place)?;
        if place >= 2 * OVERTAKEN_MAX {
            let done = place - OVERTAKEN_MAX;
            self.awaited.drain(..done);
            self.first = self.first.wrapping_add(done as u32);
        }
        Some(found)
    }
}

/// The interface of a stream, given as its own setting or after its address.
fn through(
    socket: &TimedSocket,
    stream: &StreamPlan,
    to: &SocketAddr,
    from: &From,
) -> Option<Interface> {
    if let Some(name) = &from.interface {
        let index = name_to_index(socket, name).ok()?;
        let name = name.clone();
        return Some(Interface { name, index });
    }
    let (_, zone) = stream.host.split_once('%')?;
    match to {
        SocketAddr::V6(six) if six.scope_id() != 0 => Some(Interface {
            name: zone.to_owned(),
            index: six.scope_id(),
        }),
        _ => None,
    }
}

fn options(from: &From) -> TimedOptions {
    TimedOptions {
        source: from.source,
        interface: from.interface.clone(),
        hop_limit: from.hop_limit,
        dont_fragment: from.dont_fragment,
        recv_buffer_bytes: Some(BUFFER_BYTES),
        ..TimedOptions::default()
    }
}

/// One line that says why a socket could not be opened.
fn refusal(error: &io::Error, from: &From, protocol: &str) -> anyhow::Error {
    let interface = from.interface.as_deref();
    let is_gone = Errno::from_io_error(error) == Some(Errno::NODEV);
    match (error.kind(), interface, from.source) {
        (io::ErrorKind::PermissionDenied, None, _) if protocol == "ICMP" => anyhow!(
            "no permission to send ICMP: it takes a group in net.ipv4.ping_group_range, or CAP_NET_RAW"
        ),
        (io::ErrorKind::AddrNotAvailable, _, Some(source)) => {
            anyhow!("{source} is no address of this host")
        }
        (_, Some(interface), _) if is_gone => anyhow!("no interface {interface}"),
        (_, Some(interface), _) => {
            anyhow!("cannot send {protocol} from {interface}: {}", plain(error))
        }
        _ => anyhow!("cannot send {protocol}: {}", plain(error)),
    }
}
