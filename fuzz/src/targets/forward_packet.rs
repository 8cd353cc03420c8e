//! The data path of any packet through an edge: nothing panics, a discarded packet is unchanged, and a packet
//! that leaves has checksums as valid as before, whether it is the packet itself, a fragment of it, or an error
//! about it.

use std::net::{Ipv4Addr, Ipv6Addr};

use base::Instant;
use forward::check::{self, Reach};
use forward::fragment::{self, Fit};
use forward::icmp::{self, Bucket, Error, Local, Rate, Sender, Silence};
use forward::mss::{self, Sum};
use forward::routes::Routes;
use forward::source::{self, Addresses};
use forward::{Discard, hop};
use wire::checksum;
use wire::ip::{Header, HeaderError};
use wire::link::LinkType;
use wire::packet::{Packet, decode};

const SLOT: u32 = 7;
const AUTHENTICATION: u8 = 51;

/// Takes two octets of MTU, one that chooses a change to the packet, and a packet.
///
/// # Panics
/// If the output is not a packet, or does not match the input.
pub fn target(data: &[u8]) {
    let Some((&[high, low, how], packet)) = data.split_first_chunk() else {
        return;
    };
    let mtu = u16::from_be_bytes([high, low]);
    let mut packet = packet.to_vec();
    let Ok(header) = Header::read(&packet) else {
        return;
    };
    packet.truncate(header.total_length as usize);
    if header.version == 4 && how & 1 != 0 {
        repair(&mut packet);
    }
    let (routes, addresses) = if how & 2 != 0 {
        subscriber(&header)
    } else {
        (Routes::new(2), Addresses::default())
    };
    match up(&packet, &header, mtu, &routes, &addresses) {
        Ok(()) => {}
        Err(why) => error(Error::of(why), &packet, &header),
    }
    down(&packet, &header, mtu);
    for due in [Error::NetUnreachable, Error::Prohibited, Error::TooBig(mtu)] {
        error(Some(due), &packet, &header);
    }
}

/// Corrects the header checksum.
fn repair(packet: &mut [u8]) {
    let length = usize::from(packet[0] & 15) * 4;
    packet[10..12].fill(0);
    let sum = !checksum::sum(&packet[..length]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// A subscriber that owns the packet's source, as its address or as a framed route.
fn subscriber(header: &Header) -> (Routes, Addresses) {
    let mut routes = Routes::new(2);
    let length = if header.version == 4 { 24 } else { 48 };
    let framed = routes.insert(header.source_address(), length, SLOT);
    assert_eq!(framed, Ok(()));
    assert_eq!(routes.lookup(header.source_address()), Some(SLOT));
    let mut addresses = Addresses::default();
    if header.destination & 1 != 0 {
        addresses.v4 = header.source as u32;
        addresses.interface = (header.source as u64).to_be_bytes();
    }
    (routes, addresses)
}

fn up(
    packet: &[u8],
    header: &Header,
    mtu: u16,
    routes: &Routes,
    addresses: &Addresses,
) -> Result<(), Discard> {
    check::checksum(header, packet)?;
    let reach = check::addresses(header)?;
    source::check(addresses, SLOT, routes, header, reach)?;
    if reach == Reach::Link {
        return Ok(());
    }
    let mut after = packet.to_vec();
    pass(header, &mut after, mtu).inspect_err(|_| assert_eq!(after, packet))?;
    let read = Header::read(&after).expect("what leaves is a packet");
    assert_eq!(read.hop_limit, header.hop_limit - 1);
    let same = Header {
        hop_limit: header.hop_limit,
        ..read
    };
    assert_eq!(same, *header);
    assert_eq!(check::checksum(&read, &after), Ok(()));
    assert_eq!(tcp_ok(&after), tcp_ok(packet));
    Ok(())
}

fn pass(header: &Header, packet: &mut [u8], mtu: u16) -> Result<(), Discard> {
    hop::decrement(header, packet)?;
    let lowered = mss::clamp(header, packet, mtu, Sum::Complete);
    assert!(mss::is_syn(header) || !lowered);
    assert!(!mss::clamp(header, packet, mtu, Sum::Complete));
    Ok(())
}

fn tcp_ok(octets: &[u8]) -> Option<bool> {
    let mut packet = Packet::new();
    decode(LinkType::RAW, octets, octets.len() as u32, &mut packet).ok()?;
    // For a tunnel, the decoded packet is the inner one, which is not touched.
    (packet.layers.is_empty()).then(|| checksum::tcp_ok(&packet))?
}

/// Checks that fragments are contiguous and add up to the original.
fn down(packet: &[u8], header: &Header, mtu: u16) {
    let fit = fragment::fit(header, header.total_length, mtu);
    let pieces: Vec<_> = fragment::split(header, packet, mtu).collect();
    if header.version == 6 || matches!(fit, Fit::TooBig(_)) {
        assert!(pieces.is_empty());
        return;
    }
    let is_beyond = check::addresses(header) == Err(Discard::FragmentEnd);
    assert!(is_beyond || (pieces.len() == 1) == (fit == Fit::Whole));
    let mut content = Vec::new();
    for piece in &pieces {
        let mut out = vec![0; piece.length()];
        assert_eq!(piece.write(&mut out), Some(out.len()));
        let offset = usize::from(header.fragment_offset) + content.len();
        content.extend_from_slice(piece.content);
        let read = match Header::read(&out) {
            // A first fragment may end inside AH, which no reader accepts.
            Err(HeaderError::Extension) if out[9] == AUTHENTICATION => continue,
            read => read.expect("a fragment is a packet"),
        };
        assert_eq!(read.total_length as usize, out.len());
        assert!(out.len() <= usize::from(fragment::usable_mtu(4, mtu)));
        assert_eq!(check::checksum(&read, &out), Ok(()));
        assert_eq!(
            (read.source, read.destination),
            (header.source, header.destination)
        );
        assert_eq!(usize::from(read.fragment_offset), offset);
    }
    let from = usize::from(packet[0] & 15) * 4;
    assert!(packet[from..].starts_with(&content));
    if !is_beyond {
        assert_eq!(packet[from..], content);
    }
}

/// Checks that an error is a packet with right checksums, about a packet that may cause errors.
fn error(due: Option<Error>, packet: &[u8], header: &Header) {
    let Some(due) = due else {
        return;
    };
    let local = Local {
        v4: Ipv4Addr::new(192, 0, 2, 254),
        v6: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    };
    let mut sender = Sender::new(local, Rate::new(1, 1));
    let mut bucket = Bucket::default();
    let mut out = [0; icmp::LENGTH_MAX];
    let mut send = |packet: &[u8], header: &Header, out: &mut _| {
        sender.write(due, header, packet, &mut bucket, Instant::ZERO, out)
    };
    let Ok(length) = send(packet, header, &mut out) else {
        return;
    };
    let answer = &out[..length];
    let read = Header::read(answer).expect("an error is a packet");
    assert_eq!(read.total_length as usize, length);
    assert_eq!(read.destination, header.source);
    assert_eq!(check::checksum(&read, answer), Ok(()));
    let quote = usize::from(read.header_length) + 8;
    assert!(packet.starts_with(&answer[quote..]));
    let mut other = [0; icmp::LENGTH_MAX];
    assert_eq!(send(answer, &read, &mut other), Err(Silence::AboutAnError));
    assert_eq!(send(packet, header, &mut other), Err(Silence::Limited));
}
