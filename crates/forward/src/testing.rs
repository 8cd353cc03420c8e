//! Packets for tests.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::link::LinkType;
use wire::packet::{Packet, decode};

/// An IP packet to be.
#[derive(Debug, Clone)]
pub(crate) struct Builder {
    version: u8,
    source: u128,
    destination: u128,
    options: Vec<u8>,
    flags: u16,
    identification: u16,
    hops: u8,
    protocol: u8,
    class: u8,
}

/// A packet from 192.0.2.1 to 198.51.100.7.
pub(crate) fn v4() -> Builder {
    Builder {
        version: 4,
        source: Ipv4Addr::new(192, 0, 2, 1).to_bits().into(),
        destination: Ipv4Addr::new(198, 51, 100, 7).to_bits().into(),
        options: Vec::new(),
        flags: 0,
        identification: 0x1234,
        hops: 64,
        protocol: 17,
        class: 0,
    }
}

/// A packet from 2001:db8::1 to 2001:db8:1::7.
pub(crate) fn v6() -> Builder {
    Builder { version: 6, ..v4() }
        .from("2001:db8::1")
        .to("2001:db8:1::7")
}

impl Builder {
    fn address(&self, text: &str) -> u128 {
        if self.version == 4 {
            let address: Ipv4Addr = text.parse().expect("an IPv4 address");
            address.to_bits().into()
        } else {
            let address: Ipv6Addr = text.parse().expect("an IPv6 address");
            address.to_bits()
        }
    }

    pub(crate) fn from(mut self, text: &str) -> Self {
        self.source = self.address(text);
        self
    }

    pub(crate) fn source_bits(mut self, address: [u8; 4]) -> Self {
        self.source = u32::from_be_bytes(address).into();
        self
    }

    pub(crate) fn to(mut self, text: &str) -> Self {
        self.destination = self.address(text);
        self
    }

    /// IPv4 options, a multiple of four octets.
    pub(crate) fn options(mut self, options: &[u8]) -> Self {
        self.options = options.to_vec();
        self
    }

    pub(crate) fn hops(mut self, hops: u8) -> Self {
        self.hops = hops;
        self
    }

    pub(crate) fn identification(mut self, identification: u16) -> Self {
        self.identification = identification;
        self
    }

    pub(crate) fn class(mut self, class: u8) -> Self {
        self.class = class;
        self
    }

    pub(crate) fn protocol(mut self, protocol: u8) -> Self {
        self.protocol = protocol;
        self
    }

    /// IPv4's fragment offset in eights of octets.
    pub(crate) fn fragment(mut self, offset: u16) -> Self {
        self.flags |= offset;
        self
    }

    pub(crate) fn more_fragments(mut self) -> Self {
        self.flags |= 0x2000;
        self
    }

    pub(crate) fn dont_fragment(mut self) -> Self {
        self.flags |= 0x4000;
        self
    }

    /// The packet with this behind its IP header.
    pub(crate) fn content(&self, content: &[u8]) -> Vec<u8> {
        let mut packet = if self.version == 4 {
            self.header_v4(content.len())
        } else {
            self.header_v6(content.len())
        };
        packet.extend_from_slice(content);
        packet
    }

    fn header_v4(&self, length: usize) -> Vec<u8> {
        let header = 20 + self.options.len();
        let mut packet = vec![0x40 | (header / 4) as u8, self.class];
        packet.extend_from_slice(&((header + length) as u16).to_be_bytes());
        packet.extend_from_slice(&self.identification.to_be_bytes());
        packet.extend_from_slice(&self.flags.to_be_bytes());
        packet.extend_from_slice(&[self.hops, self.protocol, 0, 0]);
        packet.extend_from_slice(&(self.source as u32).to_be_bytes());
        packet.extend_from_slice(&(self.destination as u32).to_be_bytes());
        packet.extend_from_slice(&self.options);
        let sum = !wire::checksum::sum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    fn header_v6(&self, length: usize) -> Vec<u8> {
        let mut packet = (0x6000_0000 | u32::from(self.class) << 20)
            .to_be_bytes()
            .to_vec();
        packet.extend_from_slice(&(length as u16).to_be_bytes());
        packet.extend_from_slice(&[self.protocol, self.hops]);
        packet.extend_from_slice(&self.source.to_be_bytes());
        packet.extend_from_slice(&self.destination.to_be_bytes());
        packet
    }

    /// A UDP datagram without a checksum.
    pub(crate) fn udp(self, data: &[u8]) -> Vec<u8> {
        let mut content = vec![0, 53, 0x80, 0];
        content.extend_from_slice(&(data.len() as u16 + 8).to_be_bytes());
        content.extend_from_slice(&[0, 0]);
        content.extend_from_slice(data);
        self.protocol(17).content(&content)
    }

    /// A TCP segment with a right checksum; options are padded with zeros.
    pub(crate) fn tcp(self, flags: u8, options: &[u8], data: &[u8]) -> Vec<u8> {
        let mut content = vec![0, 80, 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        content.push(((20 + options.len()).div_ceil(4) as u8) << 4);
        content.extend_from_slice(&[flags, 0xff, 0xff, 0, 0, 0, 0]);
        content.extend_from_slice(options);
        content.resize(content.len().next_multiple_of(4), 0);
        content.extend_from_slice(data);
        let mut whole = self.source.to_be_bytes().to_vec();
        whole.extend_from_slice(&self.destination.to_be_bytes());
        whole.extend_from_slice(&(content.len() as u32 + 6).to_be_bytes());
        whole.extend_from_slice(&content);
        let sum = !wire::checksum::sum(&whole);
        content[16..18].copy_from_slice(&sum.to_be_bytes());
        self.protocol(6).content(&content)
    }
}

/// Whether the TCP checksum of an IP packet is right.
pub(crate) fn tcp_ok(octets: &[u8]) -> Option<bool> {
    let mut packet = Packet::new();
    decode(LinkType::RAW, octets, octets.len() as u32, &mut packet).ok()?;
    wire::checksum::tcp_ok(&packet)
}
