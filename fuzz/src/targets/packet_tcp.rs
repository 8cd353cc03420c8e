//! TCP segments: every way of reading one gives the same result, truncated or not.

use wire::packet::Packet;
use wire::tcp::{Options, PROTOCOL, Tcp};

/// Takes a segment.
///
/// # Panics
/// If a field does not match the bytes.
pub fn target(data: &[u8]) {
    let packet = |captured| Packet {
        protocol: PROTOCOL,
        transport: &data[..captured],
        transport_length: data.len() as u32,
        ..Packet::new()
    };
    let Ok(tcp) = Tcp::parse(&packet(data.len())) else {
        return;
    };
    let header_length = usize::from(tcp.header_length);
    assert_eq!(header_length, usize::from(data[12] >> 4) * 4);
    assert_eq!(tcp.payload.len(), tcp.payload_length as usize);
    if header_length <= data.len() && data.len() >= 20 {
        assert_eq!(tcp.payload, &data[header_length..]);
        assert_eq!(tcp.options, Options::parse(&data[20..header_length]));
    }
    assert!(tcp.options.sack().len() <= 4);
    for captured in 16..header_length.min(data.len()) {
        let cut = Tcp::parse(&packet(captured)).expect("its first octets are there");
        assert_eq!((cut.sequence, cut.window), (tcp.sequence, tcp.window));
        assert_eq!(cut.payload_length, tcp.payload_length);
        assert!(!cut.options.malformed);
        assert_eq!(cut.options.cut, header_length > 20);
    }
}
