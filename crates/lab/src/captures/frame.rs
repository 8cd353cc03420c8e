//! Encodes packets: Ethernet (IEEE 802.3, 802.1Q), IPv4 (RFC 791), IPv6 (RFC 8200), TCP (RFC 9293)
//! with its options (RFC 2018, RFC 7323).
//!
//! Every payload consists of zeros. Zeros do not change an Internet checksum (RFC 1071), so
//! checksums are right for whole packets although the file holds only their first bytes.

use std::io::{self, BufWriter, Write};
use std::net::IpAddr;

use capfile::{PcapWriter, Resolution};
use wire::link::LinkType;

use super::Written;

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;

const ETHER_TYPE_IPV4: u16 = 0x0800;
const ETHER_TYPE_IPV6: u16 = 0x86dd;
const ETHER_TYPE_VLAN: u16 = 0x8100;
const PROTOCOL_TCP: u8 = 6;
const HOP_LIMIT: u8 = 64;
const DONT_FRAGMENT: u8 = 0x40;

/// Ethernet with a VLAN tag, IPv6, and TCP's ports.
const TEMPLATE_MAX: usize = 18 + 40 + 4;
const TCP_HEADER: usize = 20;
const OPTIONS_MAX: usize = 40;

/// Bytes of a pcap file before its records, and of a record before its packet.
const FILE_HEADER: u64 = 24;
const RECORD_HEADER: u64 = 16;

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;

/// Limit of the captured part of a packet; all headers fit in.
pub(super) const SNAP_MAX: usize = 128;

/// One end of a connection, as its packets name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub(super) ip: IpAddr,
    pub(super) port: u16,
}

/// The constant parts of the packets of one direction.
#[derive(Clone, Debug)]
pub(super) struct Template {
    octets: [u8; TEMPLATE_MAX],
    ip_at: usize,
    tcp_at: usize,
    /// Sum over addresses and protocol, for TCP's checksum.
    pseudo_sum: u32,
}

impl Template {
    /// Packets from `source` to `destination`, both IPv4 or both IPv6; `upstream` chooses the
    /// direction of the Ethernet addresses.
    pub(super) fn new(
        source: Address,
        destination: Address,
        vlan: Option<u16>,
        upstream: bool,
    ) -> Self {
        let mut head = ethernet(upstream);
        if let Some(tag) = vlan {
            head.extend_from_slice(&ETHER_TYPE_VLAN.to_be_bytes());
            head.extend_from_slice(&tag.to_be_bytes());
        }
        let ip_at = head.len() + 2;
        let addresses_at = match (source.ip, destination.ip) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                head.extend_from_slice(&ETHER_TYPE_IPV4.to_be_bytes());
                head.extend_from_slice(&[0x45, 0, 0, 0, 0, 0, DONT_FRAGMENT, 0]);
                head.extend_from_slice(&[HOP_LIMIT, PROTOCOL_TCP, 0, 0]);
                head.extend_from_slice(&from.octets());
                head.extend_from_slice(&to.octets());
                ip_at + 12
            }
            (from, to) => {
                let octets = |ip| match ip {
                    IpAddr::V6(ip) => ip.octets(),
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                };
                head.extend_from_slice(&ETHER_TYPE_IPV6.to_be_bytes());
                head.extend_from_slice(&[0x60, 0, 0, 0, 0, 0, PROTOCOL_TCP, HOP_LIMIT]);
                head.extend_from_slice(&octets(from));
                head.extend_from_slice(&octets(to));
                ip_at + 8
            }
        };
        let tcp_at = head.len();
        head.extend_from_slice(&source.port.to_be_bytes());
        head.extend_from_slice(&destination.port.to_be_bytes());
        let mut octets = [0; TEMPLATE_MAX];
        octets[..head.len()].copy_from_slice(&head);
        Self {
            octets,
            ip_at,
            tcp_at,
            pseudo_sum: sum(&octets[addresses_at..tcp_at]) + u32::from(PROTOCOL_TCP),
        }
    }
}

/// The two addresses of an Ethernet header, both locally administered.
pub(super) fn ethernet(upstream: bool) -> Vec<u8> {
    let (near, far) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let (source, destination) = if upstream { (near, far) } else { (far, near) };
    [destination, source].concat()
}

/// The fields that differ from packet to packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    /// IPv4's identification; unused in IPv6.
    pub(super) id: u16,
    pub(super) options: Options,
    pub(super) payload: u16,
}

/// A TCP header's options, padded to 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    octets: [u8; OPTIONS_MAX],
    len: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            octets: [0; OPTIONS_MAX],
            len: 0,
        }
    }
}

impl Options {
    /// The options of a SYN: the maximum segment size, a window scale, and those requested.
    pub(super) fn of_syn(mss: u16, scale: u8, sack: bool, timestamps: Option<(u32, u32)>) -> Self {
        let mut options = Self::default();
        let [high, low] = mss.to_be_bytes();
        options.push(&[2, 4, high, low, 1, 3, 3, scale]);
        if sack {
            options.push(&[1, 1, 4, 2]);
        }
        options.timestamps(timestamps);
        options
    }

    /// The timestamps option: value and echo.
    pub(super) fn timestamps(&mut self, timestamps: Option<(u32, u32)>) {
        if let Some((value, echo)) = timestamps {
            self.push(&[1, 1, 8, 10]);
            self.push(&value.to_be_bytes());
            self.push(&echo.to_be_bytes());
        }
    }

    /// A SACK option with as many `blocks` (left and right edge) as fit.
    pub(super) fn sack(&mut self, blocks: impl Iterator<Item = (u32, u32)>) {
        let room = (OPTIONS_MAX - self.len).saturating_sub(4) / 8;
        let at = self.len;
        for (i, (left, right)) in blocks.take(room).enumerate() {
            if i == 0 {
                self.push(&[1, 1, 5, 2]);
            }
            self.octets[at + 3] += 8;
            self.push(&left.to_be_bytes());
            self.push(&right.to_be_bytes());
        }
    }

    fn push(&mut self, octets: &[u8]) {
        self.octets[self.len..self.len + octets.len()].copy_from_slice(octets);
        self.len += octets.len();
    }
}

/// A capture file in progress: pcap with microseconds, Ethernet.
pub(super) struct Capture<'a> {
    out: PcapWriter<BufWriter<&'a mut dyn Write>>,
    snap: usize,
    written: Written,
}

impl<'a> Capture<'a> {
    /// Starts a file that holds the first `snap` bytes of each packet.
    ///
    /// # Errors
    /// Those of `out`.
    pub(super) fn new(out: &'a mut dyn Write, snap: usize) -> io::Result<Self> {
        let out = BufWriter::with_capacity(BUFFER, out);
        Ok(Self {
            out: PcapWriter::new(out, LinkType::ETHERNET, Resolution::Micros)?,
            snap: snap.min(SNAP_MAX),
            written: Written {
                packets: 0,
                bytes: FILE_HEADER,
            },
        })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Those of `out`.
    pub(super) fn finish(mut self) -> io::Result<Written> {
        self.out.flush()?;
        Ok(self.written)
    }

    /// Counters of the file so far.
    pub(super) fn written(&self) -> Written {
        self.written
    }

    /// Writes a TCP packet with right checksums.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn tcp(
        &mut self,
        time_ns: u64,
        template: &Template,
        segment: &Segment,
    ) -> io::Result<()> {
        let mut packet = [0; SNAP_MAX];
        let (ip_at, tcp_at) = (template.ip_at, template.tcp_at);
        packet[..TEMPLATE_MAX].copy_from_slice(&template.octets);
        let options = &segment.options;
        let header_len = TCP_HEADER + options.len;
        let tcp_len = header_len + usize::from(segment.payload);

        let tcp = &mut packet[tcp_at..tcp_at + header_len];
        tcp[4..8].copy_from_slice(&segment.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&segment.ack.to_be_bytes());
        tcp[12] = (header_len as u8 / 4) << 4;
        tcp[13] = segment.flags;
        tcp[14..16].copy_from_slice(&segment.window.to_be_bytes());
        tcp[TCP_HEADER..].copy_from_slice(&options.octets[..options.len]);
        let checksum = fold(template.pseudo_sum + tcp_len as u32 + sum(tcp));
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());

        let ip = &mut packet[ip_at..tcp_at];
        if ip.len() == 20 {
            ip[2..4].copy_from_slice(&(20 + tcp_len as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&segment.id.to_be_bytes());
            let checksum = fold(sum(ip));
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            ip[4..6].copy_from_slice(&(tcp_len as u16).to_be_bytes());
        }
        let captured = (tcp_at + tcp_len).min(self.snap);
        self.record(time_ns, &packet[..captured], tcp_at + tcp_len)
    }

    /// Writes a packet of any other kind: `head`, and zeros up to `len` bytes.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn other(&mut self, time_ns: u64, head: &[u8], len: usize) -> io::Result<()> {
        let mut packet = [0; SNAP_MAX];
        let held = head.len().min(SNAP_MAX);
        packet[..held].copy_from_slice(&head[..held]);
        self.record(time_ns, &packet[..len.min(self.snap)], len)
    }

    fn record(&mut self, time_ns: u64, held: &[u8], len: usize) -> io::Result<()> {
        self.out.write(time_ns as i64, len as u32, held)?;
        self.written.packets += 1;
        self.written.bytes += RECORD_HEADER + held.len() as u64;
        Ok(())
    }
}

/// The unfolded sum of 16-bit words of RFC 1071; `octets` has an even length.
pub(super) fn sum(octets: &[u8]) -> u32 {
    let words = octets.chunks_exact(2);
    words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum()
}

/// Folds and complements a sum into a checksum.
pub(super) fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    !((once & 0xffff) + (once >> 16)) as u16
}
