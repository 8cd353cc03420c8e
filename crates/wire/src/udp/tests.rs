use super::{PROTOCOL, Udp, UdpError};
use crate::packet::{Fragment, Packet};

fn packet(transport: &[u8], transport_length: usize) -> Packet<'_> {
    Packet {
        protocol: PROTOCOL,
        transport,
        transport_length: transport_length as u32,
        ..Packet::new()
    }
}

#[test]
fn reads_every_field_and_leaves_off_what_is_beyond_the_length() {
    let octets = [0, 53, 0x0f, 0xa0, 0, 10, 0xab, 0xcd, 1, 2, 3];
    let udp = Udp::parse(&packet(&octets, 11)).expect("a datagram");
    let expected = Udp {
        source_port: 53,
        destination_port: 4000,
        length: 10,
        checksum: 0xabcd,
        payload: &[1, 2],
        payload_length: 2,
    };
    assert_eq!(udp, expected);
}

#[test]
fn a_length_of_0_is_the_packet_s() {
    let octets = [0, 53, 0x0f, 0xa0, 0, 0, 0, 0, 1, 2, 3];
    let udp = Udp::parse(&packet(&octets, 70_008)).expect("a datagram");
    assert_eq!((udp.payload.len(), udp.payload_length), (3, 70_000));
}

#[test]
fn a_first_fragment_has_less_than_the_length() {
    let octets = [0, 53, 0x0f, 0xa0, 0x10, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let mut packet = packet(&octets, 16);
    packet.fragment = Fragment::First;
    let udp = Udp::parse(&packet).expect("a datagram");
    assert_eq!((udp.length, udp.payload_length), (4096, 8));
}

#[test]
fn what_is_no_datagram_is_refused() {
    let octets = [0, 53, 0x0f, 0xa0, 0, 7, 0, 0];
    assert_eq!(Udp::parse(&Packet::new()), Err(UdpError::NotUdp));
    assert_eq!(Udp::parse(&packet(&octets, 8)), Err(UdpError::BadLength));
    assert_eq!(
        Udp::parse(&packet(&octets[..7], 8)),
        Err(UdpError::Truncated)
    );
    let mut later = packet(&octets, 8);
    later.fragment = Fragment::Later;
    assert_eq!(Udp::parse(&later), Err(UdpError::LaterFragment));
}
