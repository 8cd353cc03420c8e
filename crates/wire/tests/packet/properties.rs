//! Invariants of the result for arbitrary bytes.

use proptest::prelude::*;
use wire::link::LinkType;
use wire::packet::{Packet, decode};
use wire::tcp::Tcp;
use wire::udp::Udp;
use wire::{checksum, packet};

use crate::encapsulations;

const LINKS: [u16; 26] = [
    0, 1, 6, 9, 10, 11, 12, 14, 19, 50, 51, 100, 101, 104, 106, 108, 113, 123, 166, 204, 205, 228,
    229, 276, 129, 65535,
];

fn holds(link: LinkType, frame: &[u8], length: u32) {
    let mut packet = Packet::new();
    if decode(link, frame, length, &mut packet).is_err() {
        return;
    }
    assert!(packet.layers.len() <= packet::LAYERS_MAX);
    assert!(packet.transport.len() <= packet.network.len());
    assert!(packet.transport.len() <= packet.transport_length as usize);
    if let Ok(tcp) = Tcp::parse(&packet) {
        assert!(tcp.payload.len() <= tcp.payload_length as usize);
    }
    if let Ok(udp) = Udp::parse(&packet) {
        assert!(udp.payload.len() <= udp.payload_length as usize);
    }
    let _ = checksum::ip_ok(packet.network);
    let _ = checksum::tcp_ok(&packet);
    let _ = checksum::udp_ok(&packet);
}

proptest! {
    #[test]
    fn any_octets_hold(
        link in proptest::sample::select(&LINKS[..]),
        frame in proptest::collection::vec(any::<u8>(), 0..200),
        length in any::<u32>(),
    ) {
        holds(LinkType(link), &frame, length);
    }

    #[test]
    fn any_frame_with_a_few_octets_changed_holds(
        index in any::<proptest::sample::Index>(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        cut in 0_usize..120,
    ) {
        let cases = encapsulations::all();
        let case = &cases[index.index(cases.len())];
        let mut frame = case.frame.clone();
        for (at, value) in changes {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        let length = frame.len() as u32;
        holds(case.link, &frame, length);
        frame.truncate(frame.len().saturating_sub(cut));
        holds(case.link, &frame, length);
    }
}
