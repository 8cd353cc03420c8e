use super::*;
use crate::testing::{Builder, v4, v6};
use proptest::prelude::*;

fn pieces(packet: &[u8], mtu: u16) -> Vec<Vec<u8>> {
    let header = Header::read(packet).expect("a packet");
    split(&header, packet, mtu)
        .map(|piece| {
            let mut out = vec![0; piece.length()];
            assert_eq!(piece.write(&mut out), Some(out.len()));
            assert_eq!(piece.write(&mut out[1..]), None);
            out
        })
        .collect()
}

/// Total length, "more fragments", offset in eights.
fn shape(packet: &[u8]) -> (usize, bool, u16) {
    let flags = u16::from_be_bytes([packet[6], packet[7]]);
    (packet.len(), flags & 0x2000 != 0, flags & 0x1fff)
}

/// The content of a datagram from its fragments in any order, by RFC 791 section 3.2; asserts that they leave no gap.
fn reassembled(pieces: &[Vec<u8>], from: usize) -> Vec<u8> {
    let mut content = Vec::new();
    let mut in_order: Vec<_> = pieces.iter().collect();
    in_order.sort_by_key(|piece| shape(piece).2);
    for piece in in_order {
        let header = usize::from(piece[0] & 15) * 4;
        assert_eq!(usize::from(shape(piece).2) * 8, from + content.len());
        content.extend_from_slice(&piece[header..]);
    }
    content
}

#[test]
fn a_packet_that_fits_is_left_whole_and_one_that_does_not_is_cut_or_refused() {
    let read = |packet: &[u8]| Header::read(packet).expect("a packet");
    let cases = [
        (v4().udp(&[0; 1472]), 1500, Fit::Whole),
        (v4().udp(&[0; 1473]), 1500, Fit::Split(1500)),
        (
            v4().dont_fragment().udp(&[0; 1473]),
            1500,
            Fit::TooBig(1500),
        ),
        (v4().dont_fragment().udp(&[0; 1472]), 1500, Fit::Whole),
        (v4().udp(&[0; 60]), 20, Fit::Split(68)),
        (v6().udp(&[0; 1452]), 1500, Fit::Whole),
        (v6().udp(&[0; 1453]), 1500, Fit::TooBig(1500)),
        // RFC 8200 section 5: what is below IP has to carry 1280 octets.
        (v6().udp(&[0; 1232]), 1000, Fit::Whole),
        (v6().udp(&[0; 1233]), 1000, Fit::TooBig(1280)),
    ];
    for (packet, mtu, due) in cases {
        let header = read(&packet);
        assert_eq!(fit(&header, header.total_length, mtu), due);
    }
}

#[test]
fn the_procedure_of_rfc_791_is_followed() {
    // The example of RFC 791 appendix A, section 2: 452 octets of data through an MTU of 280.
    let packet = v4().content(&[7; 452]);
    let shapes: Vec<_> = pieces(&packet, 280)
        .iter()
        .map(|piece| shape(piece))
        .collect();
    assert_eq!(shapes, [(276, true, 0), (216, false, 32)]);
}

#[test]
fn a_fragment_of_a_fragment_keeps_its_place_and_only_the_last_is_the_end() {
    let middle = v4().fragment(100).more_fragments().content(&[7; 96]);
    let shapes: Vec<_> = pieces(&middle, 68)
        .iter()
        .map(|piece| shape(piece))
        .collect();
    assert_eq!(shapes, [(68, true, 100), (68, true, 106)]);
    let last = v4().fragment(100).content(&[7; 97]);
    let shapes: Vec<_> = pieces(&last, 68).iter().map(|piece| shape(piece)).collect();
    assert_eq!(shapes, [(68, true, 100), (68, true, 106), (21, false, 112)]);
}

#[test]
fn options_go_into_all_fragments_only_where_their_copied_flag_is_set() {
    // Record route (7) is not copied, loose source route (131) is (RFC 791 section 3.1).
    let route = [131, 7, 4, 192, 0, 2, 9];
    let mut options = vec![1, 7, 7, 4, 0, 0, 0, 0];
    options.extend_from_slice(&route);
    options.push(0);
    let packet = v4().options(&options).content(&[7; 200]);
    let pieces = pieces(&packet, 100);
    assert_eq!(pieces[0][20..36], options);
    assert_eq!(shape(&pieces[0]), (100, true, 0));
    for later in &pieces[1..] {
        assert_eq!(later[0], 0x47);
        assert_eq!(later[20..27], route);
        assert_eq!(later[27], 0);
    }
    assert_eq!(reassembled(&pieces, 0), [7; 200]);
}

#[test]
fn an_option_of_an_impossible_length_is_not_copied() {
    for options in [
        [131, 0, 1, 1],
        [131, 9, 1, 1],
        [131, 1, 1, 1],
        [1, 1, 1, 131],
    ] {
        let packet = v4().options(&options).content(&[7; 100]);
        let pieces = pieces(&packet, 68);
        assert_eq!((pieces[0][0], pieces[1][0]), (0x46, 0x45));
        assert_eq!(reassembled(&pieces, 0), [7; 100]);
    }
}

#[test]
fn nothing_comes_of_what_must_not_be_cut() {
    assert!(pieces(&v4().dont_fragment().content(&[0; 100]), 68).is_empty());
    assert!(pieces(&v6().content(&[0; 2000]), 1280).is_empty());
}

#[test]
fn pieces_end_where_offsets_do() {
    let beyond = v4().fragment(8190).content(&[0; 100]);
    let shapes: Vec<_> = pieces(&beyond, 68)
        .iter()
        .map(|piece| shape(piece))
        .collect();
    assert_eq!(shapes, [(68, true, 8190)]);
}

fn datagrams() -> impl Strategy<Value = Builder> {
    let options = prop::collection::vec(any::<[u8; 4]>(), 0..=10);
    (options, any::<u16>(), 0..100_u16, any::<bool>()).prop_map(
        |(options, identification, offset, is_last)| {
            let packet = v4()
                .options(options.as_flattened())
                .identification(identification)
                .fragment(offset);
            if is_last {
                packet
            } else {
                packet.more_fragments()
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_reassembled_is_what_was_cut_also_when_it_is_cut_again(
        datagram in datagrams(),
        content in prop::collection::vec(any::<u8>(), 0..3000),
        mtu in 68..2000_u16,
        again in 68..2000_u16,
    ) {
        // RFC 791: fragments but the last have a multiple of eight octets.
        let packet = datagram.content(&content);
        let (_, more, offset) = shape(&packet);
        prop_assume!(!more || content.len().is_multiple_of(8));
        let once = pieces(&packet, mtu);
        let twice: Vec<_> = once.iter().flat_map(|piece| pieces(piece, again)).collect();
        for (all, mtu) in [(&once, mtu), (&twice, again)] {
            for piece in all {
                prop_assert!(piece.len() <= usize::from(mtu));
                prop_assert_eq!(wire::checksum::ip_ok(piece), Some(true));
                prop_assert_eq!(&piece[12..20], &packet[12..20]);
                prop_assert_eq!(&piece[4..6], &packet[4..6]);
                let header = Header::read(piece).expect("a packet");
                prop_assert_eq!(header.total_length as usize, piece.len());
            }
            let ends: Vec<_> = all.iter().filter(|piece| !shape(piece).1).collect();
            prop_assert_eq!(ends.len(), usize::from(!more));
            prop_assert_eq!(reassembled(all, usize::from(offset) * 8), &content[..]);
        }
        prop_assert_eq!(&once[0][20..usize::from(once[0][0] & 15) * 4], &packet[20..usize::from(packet[0] & 15) * 4]);
    }
}
