//! Packets of the tests: each has a number in its content, by which it is found again.

use core::net::Ipv4Addr;

use wire::checksum;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMP: u8 = 1;

/// An address and port, or the identifier of a query.
pub(super) type End = (Ipv4Addr, u16);

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) protocol: u8,
    pub(super) from: End,
    pub(super) to: End,
    pub(super) number: u32,
}

fn ip(protocol: u8, from: Ipv4Addr, to: Ipv4Addr, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 20];
    packet[0] = 0x45;
    packet[6] = 0x40;
    packet[8] = 64;
    packet[9] = protocol;
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    packet.extend_from_slice(content);
    set_header(&mut packet, 0, 0x4000);
    packet
}

/// Sets identification, flags and fragment offset, then length and checksum.
fn set_header(packet: &mut [u8], identification: u16, fragment: u16) {
    let total = packet.len() as u16;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    packet[10..12].fill(0);
    let sum = !checksum::sum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// A packet: of UDP, a SYN of TCP, or an echo. `is_reply` for ICMP alone.
pub(super) fn packet(protocol: u8, from: End, to: End, is_reply: bool, number: u32) -> Vec<u8> {
    let (one, two) = (from.1.to_be_bytes(), to.1.to_be_bytes());
    let mut content = match protocol {
        TCP => [&one[..], &two, &[0; 8], &[0x50, 2], &[0; 6]].concat(),
        UDP => [&one[..], &two, &[0, 28], &[0; 2]].concat(),
        _ => {
            let id = if is_reply { two } else { one };
            [&[if is_reply { 0 } else { 8 }, 0, 0, 0], &id[..], &[0; 2]].concat()
        }
    };
    content.extend(number.to_be_bytes());
    content.extend([0; 16]);
    if protocol == ICMP {
        let sum = !checksum::sum(&content);
        content[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    ip(protocol, from.0, to.0, &content)
}

/// An ICMP error about a packet, to its sender.
pub(super) fn error(from: Ipv4Addr, about: &[u8]) -> Vec<u8> {
    let mut content = vec![3, 1, 0, 0, 0, 0, 0, 0];
    content.extend_from_slice(&about[..28]);
    let sum = !checksum::sum(&content);
    content[2..4].copy_from_slice(&sum.to_be_bytes());
    ip(ICMP, from, address(about, 12), &content)
}

/// A packet in three fragments.
pub(super) fn pieces(packet: &[u8], identification: u16) -> Vec<Vec<u8>> {
    let content = &packet[20..];
    let chunks = content.chunks(8).enumerate();
    let last = content.len().div_ceil(8) - 1;
    chunks
        .map(|(at, chunk)| {
            let mut piece = packet[..20].to_vec();
            piece.extend_from_slice(chunk);
            let more = if at < last { 0x2000 } else { 0 };
            set_header(&mut piece, identification, at as u16 | more);
            piece
        })
        .collect()
}

pub(super) fn address(packet: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3])
}

/// Whether a packet is a fragment.
pub(super) fn is_piece(packet: &[u8]) -> bool {
    u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0
}

pub(super) fn is_error(packet: &[u8]) -> bool {
    packet[9] == ICMP && packet[20] == 3
}

/// Reads a packet of [`packet`].
pub(super) fn seen(packet: &[u8]) -> Seen {
    assert_eq!(checksum::ip_ok(packet), Some(true));
    let word = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let protocol = packet[9];
    let (ports, content) = match protocol {
        TCP => ([word(20), word(22)], 40),
        UDP => ([word(20), word(22)], 28),
        _ => ([word(24); 2], 28),
    };
    let number = u32::from_be_bytes(packet[content..content + 4].try_into().unwrap());
    Seen {
        protocol,
        from: (address(packet, 12), ports[0]),
        to: (address(packet, 16), ports[1]),
        number,
    }
}

/// The IPv4 packet in a datagram.
pub(super) fn inner(datagram: &[u8]) -> Vec<u8> {
    let head = datagram
        .windows(3)
        .position(|three| three == [0, 0x21, 0x45]);
    datagram[head.expect("an IPv4 packet") + 2..].to_vec()
}

/// The packet with its length, and the checksum of its header.
pub(super) fn with_length(mut packet: Vec<u8>) -> Vec<u8> {
    set_header(&mut packet, 0, 0x4000);
    packet
}
