//! A packet of a subscriber in a walled garden: nothing panics, a reply is a valid packet to the sender from the address
//! that it chose, and the same packet gets the same reply again.

use forward::portal::{Answer, LENGTH_MAX, Portal};
use wire::checksum;
use wire::ip::Header;
use wire::link::LinkType;
use wire::packet::{Packet, decode};

const SEED: u64 = 7;

/// Takes an octet that says whether the checksums are corrected and which port is addressed, and a packet.
///
/// # Panics
/// If a reply is not a packet, or does not match the input.
pub fn target(data: &[u8]) {
    let Some((&how, packet)) = data.split_first() else {
        return;
    };
    let mut packet = packet.to_vec();
    let Ok(header) = Header::read(&packet) else {
        return;
    };
    packet.truncate(header.total_length as usize);
    repair(how, &header, &mut packet);
    let portal = Portal::new("http://portal.example/").expect("an address");
    let mut out = [0; LENGTH_MAX];
    let header = match Header::read(&packet) {
        Ok(header) => header,
        Err(_) => return,
    };
    let answer = portal.answer(SEED, &header, &packet, &mut out);
    let Answer::Reply(length) = answer else {
        return;
    };
    let again = portal.answer(SEED, &header, &packet, &mut [0; LENGTH_MAX]);
    assert_eq!(again, answer, "the same segment again");
    check(&header, &out[..length]);
}

fn check(header: &Header, reply: &[u8]) {
    let read = Header::read(reply).expect("a reply is a packet");
    assert_eq!(read.total_length as usize, reply.len());
    assert_eq!(
        (read.source, read.source_port),
        (header.destination, header.destination_port)
    );
    assert_eq!(
        (read.destination, read.destination_port),
        (header.source, header.source_port)
    );
    let mut packet = Packet::new();
    decode(LinkType::RAW, reply, reply.len() as u32, &mut packet).expect("a reply is a packet");
    assert_eq!(checksum::tcp_ok(&packet), Some(true));
    if read.version == 4 {
        assert_eq!(checksum::ip_ok(reply), Some(true));
    }
}

/// Corrects the checksums of a TCP segment, and addresses a web server.
fn repair(how: u8, header: &Header, packet: &mut [u8]) {
    let at = usize::from(header.header_length);
    if how & 1 == 0 || header.protocol != wire::tcp::PROTOCOL || packet.len() < at + 20 {
        return;
    }
    let port: u16 = if how & 2 == 0 { 80 } else { 443 };
    packet[at + 2..at + 4].copy_from_slice(&port.to_be_bytes());
    packet[at + 16..at + 18].fill(0);
    let addresses = match header.version {
        4 => packet[12..20].to_vec(),
        _ => packet[8..40].to_vec(),
    };
    let pseudo = checksum::pseudo_sum(&addresses, wire::tcp::PROTOCOL, packet.len() - at);
    let sum = !checksum::fold(u64::from(pseudo) + u64::from(checksum::sum(&packet[at..])));
    packet[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
}
