//! Packets for tests.

use std::net::Ipv4Addr;

use wire::checksum::{fold, pseudo_sum, sum};

/// Addresses, ports and flags of a packet to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) from: (Ipv4Addr, u16),
    pub(crate) to: (Ipv4Addr, u16),
}

pub(crate) fn ends(from: (&str, u16), to: (&str, u16)) -> Ends {
    let address = |text: &str| text.parse().expect("an address");
    Ends {
        from: (address(from.0), from.1),
        to: (address(to.0), to.1),
    }
}

pub(crate) const SYN: u8 = 2;
pub(crate) const ACK: u8 = 16;
pub(crate) const FIN: u8 = 1;
pub(crate) const RST: u8 = 4;

/// An IPv4 packet with this behind its header, and options of as many words.
pub(crate) fn ip(ends: Ends, protocol: u8, options: usize, content: &[u8]) -> Vec<u8> {
    let header = 20 + options * 4;
    let mut packet = vec![0x45 + options as u8, 0];
    packet.extend(((header + content.len()) as u16).to_be_bytes());
    packet.extend([0x12, 0x34, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend(ends.from.0.octets());
    packet.extend(ends.to.0.octets());
    packet.resize(header, 1);
    packet.extend(content);
    fix_header(&mut packet);
    packet
}

pub(crate) fn fix_header(packet: &mut [u8]) {
    let header = usize::from(packet[0] & 15) * 4;
    packet[10..12].fill(0);
    let value = !sum(&packet[..header]);
    packet[10..12].copy_from_slice(&value.to_be_bytes());
}

/// Sets fragment flags and offset in eights, and an identification.
pub(crate) fn fragment(packet: &mut [u8], flags: u16, identification: u16) {
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    packet[6..8].copy_from_slice(&flags.to_be_bytes());
    fix_header(packet);
}

fn transport_sum(packet: &[u8]) -> u16 {
    let header = usize::from(packet[0] & 15) * 4;
    let own = sum(&packet[header..]);
    if packet[9] == 1 {
        return own;
    }
    let pseudo = pseudo_sum(&packet[12..20], packet[9], packet.len() - header);
    fold(u64::from(own) + u64::from(pseudo))
}

fn finish(ends: Ends, protocol: u8, mut content: Vec<u8>, at: usize) -> Vec<u8> {
    let mut packet = ip(ends, protocol, 0, &content);
    let value = match !transport_sum(&packet) {
        0 if protocol == 17 => 0xffff,
        value => value,
    };
    content[at..at + 2].copy_from_slice(&value.to_be_bytes());
    packet[20..].copy_from_slice(&content);
    packet
}

pub(crate) fn udp(ends: Ends, data: &[u8]) -> Vec<u8> {
    let mut content = ends.from.1.to_be_bytes().to_vec();
    content.extend(ends.to.1.to_be_bytes());
    content.extend((data.len() as u16 + 8).to_be_bytes());
    content.extend([0, 0]);
    content.extend(data);
    finish(ends, 17, content, 6)
}

pub(crate) fn tcp(ends: Ends, flags: u8) -> Vec<u8> {
    let mut content = ends.from.1.to_be_bytes().to_vec();
    content.extend(ends.to.1.to_be_bytes());
    content.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    content.extend(b"data");
    finish(ends, 6, content, 16)
}

/// An ICMP query of this type; the identifier is the source port.
pub(crate) fn query(ends: Ends, kind: u8) -> Vec<u8> {
    let mut content = vec![kind, 0, 0, 0];
    content.extend(ends.from.1.to_be_bytes());
    content.extend([0, 1]);
    content.extend(b"abcdefgh");
    finish(ends, 1, content, 2)
}

/// An ICMP error of this type that quotes a packet.
pub(crate) fn error(from: &str, to: &str, kind: u8, quote: &[u8]) -> Vec<u8> {
    let mut content = vec![kind, 1, 0, 0, 0, 0, 0, 0];
    content.extend(quote);
    finish(ends((from, 0), (to, 0)), 1, content, 2)
}

/// Source and destination of a packet, with ports, or the identifier in both.
pub(crate) fn read(packet: &[u8]) -> Ends {
    let address =
        |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    let transport = usize::from(packet[0] & 15) * 4;
    let word = |at: usize| u16::from_be_bytes([packet[transport + at], packet[transport + at + 1]]);
    let ports = match packet[9] {
        1 => (word(4), word(4)),
        _ => (word(0), word(2)),
    };
    Ends {
        from: (address(12), ports.0),
        to: (address(16), ports.1),
    }
}

/// What an ICMP error quotes.
pub(crate) fn quote(packet: &[u8]) -> &[u8] {
    &packet[usize::from(packet[0] & 15) * 4 + 8..]
}

/// Fails unless the checksums of the IP header and of the content are right; `content` is false for fragments.
#[track_caller]
pub(crate) fn assert_sums(packet: &[u8], content: bool) {
    assert_eq!(wire::checksum::ip_ok(packet), Some(true), "the IP header's");
    let no_sum = packet[9] == 17 && packet[26..28] == [0, 0];
    if content && !no_sum {
        assert_eq!(transport_sum(packet), 0xffff, "the transport's");
    }
}
