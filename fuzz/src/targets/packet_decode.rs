//! Captured frames of every link type: the packet lies within the frame, and the result is consistent however
//! much of the frame's end was not captured.

use wire::checksum;
use wire::link::LinkType;
use wire::packet::{Fragment, LAYERS_MAX, Packet, decode};
use wire::tcp::Tcp;
use wire::udp::Udp;

/// Takes a link type and the number of octets not captured, 16 bits each, and a frame.
///
/// # Panics
/// If a packet does not match the frame.
pub fn target(data: &[u8]) {
    let Some((&[a, b, c, d], frame)) = data.split_first_chunk::<4>() else {
        return;
    };
    let link = LinkType(u16::from_be_bytes([a, b]));
    let length = frame.len() as u32 + u32::from(u16::from_be_bytes([c, d]));
    let mut packet = Packet::new();
    match decode(link, frame, length, &mut packet) {
        Ok(()) => check(frame, &packet),
        Err(skip) => assert!(!skip.to_string().is_empty()),
    }
    let mut again = Packet::new();
    let decoded = decode(link, frame, length, &mut again);
    assert!(decoded.is_err() || again == packet);
}

fn check(frame: &[u8], packet: &Packet<'_>) {
    assert!(packet.version == 4 || packet.version == 6);
    assert!(packet.layers.len() <= LAYERS_MAX);
    assert!(packet.transport.len() <= packet.transport_length as usize);
    assert_eq!(packet.network[0] >> 4, packet.version);
    let range = frame.as_ptr_range();
    let network = packet.network.as_ptr_range();
    assert!(range.start <= network.start && network.end <= range.end);
    assert!(packet.network.ends_with(packet.transport));
    let _ = packet.layers.to_string();
    let _ = checksum::ip_ok(packet.network);
    if packet.fragment != Fragment::Whole {
        assert_eq!(
            (checksum::tcp_ok(packet), checksum::udp_ok(packet)),
            (None, None)
        );
    }
    if let Ok(tcp) = Tcp::parse(packet) {
        assert!(tcp.payload.len() <= tcp.payload_length as usize);
        assert!(packet.transport.ends_with(tcp.payload));
        let _ = checksum::tcp_ok(packet);
    }
    if let Ok(udp) = Udp::parse(packet) {
        assert!(udp.payload.len() <= udp.payload_length as usize);
        let _ = checksum::udp_ok(packet);
    }
}
