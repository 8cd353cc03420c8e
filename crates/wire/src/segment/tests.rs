use proptest::prelude::*;

use super::*;
use crate::link::LinkType;
use crate::packet::{self, Fragment, Packet};

/// The encapsulation of a frame's packet.
#[derive(Debug, Clone, Copy)]
struct Shape {
    is_v6: bool,
    tags: usize,
    /// An outer IPv4 or IPv6 header, if any.
    outer: Option<bool>,
}

fn ip_header(is_v6: bool, protocol: u8, payload: usize) -> Vec<u8> {
    if is_v6 {
        let mut head = vec![0x60, 0, 0, 0];
        head.extend((payload as u16).to_be_bytes());
        head.extend([protocol, 64]);
        head.extend([0x20; 16]);
        head.extend([0x30; 16]);
        return head;
    }
    let mut head = vec![0x45, 0xb9];
    head.extend((payload as u16 + 20).to_be_bytes());
    head.extend([
        0xff, 0xfe, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
    ]);
    let sum = !checksum::sum(&head);
    head[10..12].copy_from_slice(&sum.to_be_bytes());
    head
}

/// A frame with a TCP segment (with an option, flags CWR, ACK, PSH, FIN) or a UDP datagram.
fn frame(shape: Shape, kind: Kind, payload: usize) -> Vec<u8> {
    let mut transport = match kind {
        Kind::Tcp => {
            let mut head = vec![0x12, 0x34, 0, 80, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 9];
            head.extend([0x60, 0x99, 0x10, 0, 0xab, 0xcd, 0, 0, 2, 4, 5, 0xb4]);
            head
        }
        Kind::Udp => {
            let mut head = vec![0x12, 0x34, 0, 53];
            head.extend((payload as u16 + 8).to_be_bytes());
            head.extend([0xab, 0xcd]);
            head
        }
    };
    transport.extend((0..payload).map(|n| (n * 7) as u8));
    let protocol = if kind == Kind::Tcp { 6 } else { 17 };
    let mut packet = ip_header(shape.is_v6, protocol, transport.len());
    packet.extend(transport);
    let mut is_v6 = shape.is_v6;
    if let Some(outer) = shape.outer {
        let mut head = ip_header(outer, if is_v6 { 41 } else { 4 }, packet.len());
        head.extend(packet);
        packet = head;
        is_v6 = outer;
    }
    let mut frame = vec![2; 12];
    for n in 0..shape.tags {
        frame.extend([
            if n == 0 && shape.tags == 2 {
                0x88
            } else {
                0x81
            },
            0,
        ]);
        if n == 0 && shape.tags == 2 {
            *frame.last_mut().unwrap() = 0xa8;
        }
        frame.extend([0, 7]);
    }
    frame.extend(if is_v6 { [0x86, 0xdd] } else { [8, 0] });
    frame.extend(packet);
    frame
}

fn decoded(frame: &[u8]) -> Packet<'_> {
    let mut packet = Packet::default();
    packet::decode(LinkType::ETHERNET, frame, frame.len() as u32, &mut packet).unwrap();
    packet
}

fn all(segments: &Segments<'_>) -> Vec<Vec<u8>> {
    let mut out = vec![0xee; segments.length_max()];
    let written = (0..segments.count()).map(|n| {
        let length = segments.write(n, &mut out).unwrap();
        out[..length].to_vec()
    });
    written.collect()
}

fn shapes() -> impl Strategy<Value = Shape> {
    (any::<bool>(), 0..3_usize, any::<Option<bool>>()).prop_map(|(is_v6, tags, outer)| Shape {
        is_v6,
        tags,
        outer,
    })
}

proptest! {
    #[test]
    fn what_was_cut_is_whole_again_when_put_together(
        shape in shapes(),
        is_tcp: bool,
        payload in 0..20_000_usize,
        size in 1..3000_u16,
    ) {
        let size = size.max(payload as u16 / 50).max(1);
        let kind = if is_tcp { Kind::Tcp } else { Kind::Udp };
        let whole = frame(shape, kind, payload);
        let segments = Segments::new(&whole, kind, size).unwrap();
        let cut = all(&segments);
        prop_assert_eq!(cut.len(), payload.div_ceil(size.into()).max(1));
        let head = if is_tcp { 24 } else { 8 };
        let mut together = Vec::new();
        for (n, frame) in cut.iter().enumerate() {
            let packet = decoded(frame);
            prop_assert_eq!(packet.fragment, Fragment::Whole);
            let right = if is_tcp { checksum::tcp_ok(&packet) } else { checksum::udp_ok(&packet) };
            prop_assert_eq!(right, Some(true));
            let at = ip_offset(frame).unwrap();
            if frame[at] >> 4 == 4 {
                prop_assert_eq!(checksum::ip_ok(&frame[at..]), Some(true));
                let id = u16::from_be_bytes([frame[at + 4], frame[at + 5]]);
                prop_assert_eq!(id, 0xfffe_u16.wrapping_add(n as u16));
            }
            if is_tcp {
                let sequence = u32::from_be_bytes(packet.transport[4..8].try_into().unwrap());
                prop_assert_eq!(sequence, 0xffff_ff00_u32.wrapping_add(together.len() as u32));
                let flags = packet.transport[13];
                prop_assert_eq!(flags & 0x80 != 0, n == 0, "CWR");
                prop_assert_eq!(flags & 0x10 != 0, true, "ACK");
                prop_assert_eq!(flags & 0x09 == 0x09, n + 1 == cut.len(), "FIN and PSH");
                prop_assert_eq!(flags & 0x09 == 0, n + 1 != cut.len(), "FIN and PSH");
            }
            prop_assert!(packet.transport.len() - head <= size.into());
            together.extend_from_slice(&packet.transport[head..]);
        }
        let packet = decoded(&whole);
        prop_assert_eq!(&together[..], &packet.transport[head..]);
    }

    #[test]
    fn any_octets_are_cut_or_refused(
        octets in prop::collection::vec(any::<u8>(), 0..200),
        size: u16,
        is_tcp: bool,
        shape in shapes(),
        cut_at in 0..200_usize,
    ) {
        let kind = if is_tcp { Kind::Tcp } else { Kind::Udp };
        if let Ok(segments) = Segments::new(&octets, kind, size) {
            all(&segments);
        }
        let mut part = frame(shape, kind, 40);
        part.truncate(cut_at);
        if let Ok(segments) = Segments::new(&part, kind, size) {
            all(&segments);
        }
        let (start, offset) = (octets.first().copied().unwrap_or(0), size);
        complete_checksum(&mut octets.clone(), start.into(), offset.into());
    }
}

const PLAIN: Shape = Shape {
    is_v6: false,
    tags: 0,
    outer: None,
};

#[test]
fn a_datagram_without_checksum_is_cut_into_datagrams_without() {
    let mut whole = frame(PLAIN, Kind::Udp, 100);
    whole[14 + 20 + 6..14 + 20 + 8].fill(0);
    let segments = Segments::new(&whole, Kind::Udp, 60).unwrap();
    for (frame, length) in all(&segments).iter().zip([68_u16, 48]) {
        assert_eq!(frame[14 + 20 + 4..14 + 20 + 6], length.to_be_bytes());
        assert_eq!(frame[14 + 20 + 6..14 + 20 + 8], [0, 0]);
    }
}

#[test]
fn a_checksum_over_the_pseudo_header_is_completed() {
    let mut whole = frame(PLAIN, Kind::Tcp, 333);
    let ip = Ip {
        at: 14,
        length: 20,
        is_v6: false,
    };
    let sum = pseudo_sum(&whole[14..], &ip, Kind::Tcp, 24 + 333);
    whole[14 + 20 + 16..14 + 20 + 18].copy_from_slice(&sum.to_be_bytes());
    assert!(complete_checksum(&mut whole, 14 + 20, 16));
    assert_eq!(checksum::tcp_ok(&decoded(&whole)), Some(true));
    assert!(!complete_checksum(&mut whole, 10, usize::MAX));
    assert!(!complete_checksum(&mut whole, 10_000, 0));
}

#[test]
fn fragments_and_other_protocols_are_refused() {
    let mut fragment = frame(PLAIN, Kind::Udp, 100);
    fragment[14 + 6] = 0x20;
    let unsupported = Some(SegmentError::Unsupported);
    assert_eq!(Segments::new(&fragment, Kind::Udp, 60).err(), unsupported);
    let tcp = frame(PLAIN, Kind::Tcp, 100);
    assert_eq!(Segments::new(&tcp, Kind::Udp, 60).err(), unsupported);
    assert_eq!(
        Segments::new(&tcp, Kind::Tcp, 0).err(),
        Some(SegmentError::Size)
    );
    assert_eq!(Segments::new(&[0xff; 60], Kind::Tcp, 9).err(), unsupported);
}

#[test]
fn a_packet_is_taken_without_the_frame_s_padding() {
    for is_v6 in [false, true] {
        let shape = Shape {
            is_v6,
            tags: 1,
            ..PLAIN
        };
        let mut padded = frame(shape, Kind::Udp, 1);
        let length = padded.len() - 18;
        padded.resize(100, 0);
        assert_eq!(ip_packet(&padded).map(<[u8]>::len), Some(length));
        // An impossible length is ignored.
        padded[18 + if is_v6 { 4 } else { 2 }] = 0xff;
        assert_eq!(ip_packet(&padded).map(<[u8]>::len), Some(82));
        for cut in 0..100 {
            let _ = ip_packet(&padded[..cut]);
        }
    }
    assert_eq!(ip_packet(&[0xff; 60]), None);
}

/// Every way to cut a frame into pieces and the pieces into segments gives the segments of the whole frame.
#[test]
fn the_segments_of_pieces_are_those_of_the_whole_frame() {
    for kind in [Kind::Tcp, Kind::Udp] {
        for is_v6 in [false, true] {
            let shape = Shape {
                is_v6,
                tags: 0,
                outer: None,
            };
            let whole = frame(shape, kind, 4_321);
            let segments = Segments::new(&whole, kind, 500).unwrap();
            let write = |segments: &Segments<'_>, n: usize| {
                let mut out = vec![0; segments.length(n)];
                assert_eq!(segments.write(n, &mut out), Some(out.len()));
                out
            };
            let all: Vec<_> = (0..segments.count()).map(|n| write(&segments, n)).collect();
            for each in 1..=9 {
                let mut cut = Vec::new();
                for first in (0..9).step_by(each) {
                    let mut out = vec![0; 5_000];
                    let piece = segments.write_piece(first, each, &mut out).unwrap();
                    assert_eq!((piece.is_v6, piece.headers), (is_v6, segments.payload));
                    let piece = Segments::new(&out[..piece.length], kind, 500).unwrap();
                    cut.extend((0..piece.count()).map(|n| write(&piece, n)));
                }
                assert!(cut == all, "{kind:?}, {each} at once");
            }
        }
    }
}

#[test]
fn a_piece_s_checksum_is_complete_once_its_octets_are_added() {
    let shape = Shape {
        is_v6: false,
        tags: 0,
        outer: None,
    };
    let whole = frame(shape, Kind::Tcp, 2_000);
    let segments = Segments::new(&whole, Kind::Tcp, 500).unwrap();
    let mut out = vec![0; 3_000];
    let piece = segments.write_piece(1, 3, &mut out).unwrap();
    let out = &mut out[..piece.length];
    assert!(complete_checksum(out, piece.transport, piece.checksum));
    let transport = &out[piece.transport..];
    let sum = pseudo_sum(&out[14..], &segments.ips[0], Kind::Tcp, transport.len());
    let total = u32::from(sum) + u32::from(checksum::sum(transport));
    assert_eq!((total >> 16) + (total & 0xffff), 0xffff);
}

#[test]
fn a_frame_with_tags_or_an_outer_header_or_without_a_checksum_has_no_pieces() {
    let plain = Shape {
        is_v6: false,
        tags: 0,
        outer: None,
    };
    let outer = Some(false);
    for shape in [Shape { tags: 1, ..plain }, Shape { outer, ..plain }] {
        let whole = frame(shape, Kind::Tcp, 2_000);
        let segments = Segments::new(&whole, Kind::Tcp, 500).unwrap();
        assert_eq!(segments.write_piece(0, 2, &mut [0; 3_000]), None);
    }
    let mut whole = frame(plain, Kind::Udp, 2_000);
    whole[40..42].fill(0);
    let segments = Segments::new(&whole, Kind::Udp, 500).unwrap();
    assert_eq!(segments.write_piece(0, 2, &mut [0; 3_000]), None);
    whole[40] = 1;
    let segments = Segments::new(&whole, Kind::Udp, 500).unwrap();
    assert_eq!(segments.write_piece(4, 1, &mut [0; 3_000]), None);
    assert_eq!(segments.write_piece(0, 2, &mut [0; 1_041]), None);
    assert!(segments.write_piece(0, 2, &mut [0; 1_042]).is_some());
}
