//! One packet at one point of the path: the fields that tell packets apart, and those that a path may rewrite.
//!
//! RFC 791, RFC 8200, RFC 9293, RFC 7323, RFC 768, RFC 792. Left out: fragments after the first, and IP packets inside
//! ICMP errors, whose addresses a NAT rewrites.

use std::net::{IpAddr, Ipv6Addr};

use wire::packet::{Fragment, Packet};
use wire::tcp::{self, Flags, Tcp};

const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// Payload bytes of a TCP packet that are hashed.
const TCP_DEPTH: usize = 32;

/// Payload bytes that are hashed of packets of other protocols, unless a capture holds fewer.
pub const DEPTH: usize = 256;

/// Fewer payload bytes than this do not tell packets apart.
const BODY_MIN: usize = 8;

/// The two points of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// The first capture.
    A,
    /// The second capture.
    B,
}

impl Point {
    /// The other point.
    #[must_use]
    pub const fn other(self) -> Point {
        match self {
            Point::A => Point::B,
            Point::B => Point::A,
        }
    }

    /// Its letter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Point::A => "A",
            Point::B => "B",
        }
    }
}

/// Addresses, ports and protocol of packets in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FlowKey {
    /// Source address; an IPv4 one as `::ffff:a.b.c.d`.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// Source port; 0 without ports.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// IP protocol number.
    pub protocol: u8,
}

impl FlowKey {
    /// The key of the other direction.
    #[must_use]
    pub const fn reversed(&self) -> FlowKey {
        FlowKey {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            protocol: self.protocol,
        }
    }

    /// Whether the destination is a multicast or broadcast address.
    pub(crate) fn has_many_receivers(&self) -> bool {
        let address = Ipv6Addr::from(self.destination);
        match address.to_ipv4_mapped() {
            Some(v4) => v4.is_multicast() || v4.is_broadcast(),
            None => address.is_multicast(),
        }
    }

    /// Whether one end, address and port, is the same.
    pub(crate) fn shares_an_end(&self, other: &FlowKey) -> bool {
        (self.source, self.source_port) == (other.source, other.source_port)
            || (self.destination, self.destination_port)
                == (other.destination, other.destination_port)
    }
}

/// `10.0.0.1:80 > 10.0.0.2:4000 tcp`
impl std::fmt::Display for FlowKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = |address: [u8; 16], port: u16| {
            let address = Ipv6Addr::from(address);
            let address = address
                .to_ipv4_mapped()
                .map_or(IpAddr::V6(address), IpAddr::V4);
            match (address, port) {
                (address, 0) => address.to_string(),
                (address, port) => std::net::SocketAddr::new(address, port).to_string(),
            }
        };
        write!(
            f,
            "{} > {}",
            end(self.source, self.source_port),
            end(self.destination, self.destination_port)
        )?;
        match self.protocol {
            tcp::PROTOCOL => f.write_str(" tcp"),
            UDP => f.write_str(" udp"),
            ICMP | ICMP_V6 => f.write_str(" icmp"),
            other => write!(f, " protocol {other}"),
        }
    }
}

/// A packet as one point saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sight {
    /// Its number in the capture, from 1, as other tools number frames.
    pub number: u64,
    /// When it was captured, in ns since 1970 by the capture's clock.
    pub time: i64,
    /// Its flow.
    pub key: FlowKey,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Identification of IPv4, 0 for IPv6.
    pub id: u16,
    /// Payload bytes as sent, after the TCP, UDP or ICMP header.
    pub length: u32,
    /// Hash of the start of the payload; 0 if too little was captured or all bytes are equal (TCP).
    pub body: u64,
    /// The rest is of TCP only: sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// TCP flags.
    pub flags: u16,
    /// Window as sent.
    pub window: u16,
    /// Time stamps: value and echo reply.
    pub stamps: Option<(u32, u32)>,
    /// First SACK block.
    pub sack: Option<(u32, u32)>,
    /// Maximum segment size; 0 if absent.
    pub mss: u16,
    /// Window scale shift.
    pub scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
}

impl Sight {
    /// The packet's fields. `depth` is the number of payload bytes to hash of other protocols than TCP.
    /// `None` for later fragments and for headers that the capture cut off.
    #[must_use]
    #[inline]
    pub fn new(number: u64, time: i64, packet: &Packet<'_>, depth: usize) -> Option<Sight> {
        if packet.fragment == Fragment::Later {
            return None;
        }
        let mut sight = Sight {
            number,
            time,
            hop_limit: packet.hop_limit,
            traffic_class: packet.traffic_class,
            id: packet.id,
            ..Sight::default()
        };
        sight.key.source = packet.source;
        sight.key.destination = packet.destination;
        sight.key.protocol = packet.protocol;
        match packet.protocol {
            tcp::PROTOCOL => sight.set_tcp(&Tcp::parse(packet).ok()?),
            _ => sight.set_other(packet, depth)?,
        }
        Some(sight)
    }

    #[inline]
    fn set_tcp(&mut self, tcp: &Tcp<'_>) {
        self.key.source_port = tcp.source_port;
        self.key.destination_port = tcp.destination_port;
        self.length = tcp.payload_length;
        self.sequence = tcp.sequence;
        self.acknowledgment = tcp.acknowledgment;
        self.flags = tcp.flags.0;
        self.window = tcp.window;
        self.stamps = tcp.options.timestamps;
        self.sack = tcp.options.sack().first().copied();
        self.mss = tcp.options.mss.unwrap_or(0);
        self.scale = tcp.options.window_scale;
        self.sack_permitted = tcp.options.sack_permitted;
        let start = tcp.payload.get(..TCP_DEPTH).unwrap_or(tcp.payload);
        if start.len() >= 16 {
            self.body = words(&start[..start.len() & !15]);
        }
    }

    fn set_other(&mut self, packet: &Packet<'_>, depth: usize) -> Option<()> {
        let transport = packet.transport;
        let payload = match packet.protocol {
            UDP => {
                let ports = transport.first_chunk::<4>()?;
                self.key.source_port = u16::from_be_bytes([ports[0], ports[1]]);
                self.key.destination_port = u16::from_be_bytes([ports[2], ports[3]]);
                self.length = packet.transport_length.saturating_sub(8);
                transport.get(8..).unwrap_or(&[])
            }
            // A NAT rewrites the checksum and the identifier of an echo; the sequence number stays.
            ICMP | ICMP_V6 => {
                let head = transport.first_chunk::<8>()?;
                self.length = packet.transport_length.saturating_sub(8);
                self.sequence = u32::from_be_bytes([head[0], head[1], head[6], head[7]]);
                transport.get(8..).unwrap_or(&[])
            }
            _ => {
                self.length = packet.transport_length;
                transport
            }
        };
        self.body = hash(payload.get(..depth).unwrap_or(payload)) | 1;
        Some(())
    }

    /// Whether it is TCP.
    #[must_use]
    #[inline]
    pub const fn is_tcp(&self) -> bool {
        self.key.protocol == tcp::PROTOCOL
    }

    /// Whether it has that flag.
    #[inline]
    pub(crate) const fn has(&self, flag: Flags) -> bool {
        self.flags & flag.0 != 0
    }

    /// Whether its payload tells it from other packets.
    pub(crate) const fn has_body(&self) -> bool {
        self.body != 0 && self.length as usize >= BODY_MIN
    }
}

/// A hash of a few bytes, in words of eight; 0 if all bytes are equal.
#[inline]
fn words(octets: &[u8]) -> u64 {
    let words = octets.chunks_exact(8).map(|word| {
        let word = word.first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(word)
    });
    let first = octets
        .first()
        .map_or(0, |&octet| u64::from_le_bytes([octet; 8]));
    let (mut mix, mut differs) = (Mix(octets.len() as u64), 0);
    for word in words {
        mix = mix.with(word);
        differs |= word ^ first;
    }
    if differs == 0 { 0 } else { mix.0 | 1 }
}

fn hash(octets: &[u8]) -> u64 {
    twox_hash::XxHash64::oneshot(0, octets)
}

/// Mixes numbers into a hash. Every hash starts from the run's seed, so that nobody can prepare captures whose packets
/// share a hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mix(pub(crate) u64);

impl Mix {
    #[inline]
    pub(crate) const fn with(self, value: u64) -> Mix {
        let product = ((self.0 ^ 0x9e37_79b9_7f4a_7c15) as u128)
            .wrapping_mul((value ^ 0xd1b5_4a32_d192_ed03) as u128);
        Mix((product as u64) ^ ((product >> 64) as u64) ^ value.rotate_left(32))
    }
}
