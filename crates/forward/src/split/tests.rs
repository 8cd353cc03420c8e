use proptest::prelude::*;
use wire::segment::{self, Kind};

use super::*;

/// What a device gives: a header, and a packet with the sum of the pseudo header.
fn octets(is_v6: bool, is_tcp: bool, payload: usize, size: u16) -> Vec<u8> {
    let mut transport = vec![0x12, 0x34, 0, 80];
    if is_tcp {
        transport.extend([
            0xff, 0xff, 0xff, 0xf0, 1, 2, 3, 4, 0x60, 0x99, 0x20, 0, 0, 0, 0, 0,
        ]);
        transport.extend([1, 1, 1, 1]);
    } else {
        transport.extend((8 + payload as u16).to_be_bytes());
        transport.extend([0, 0]);
    }
    let length = transport.len();
    transport.extend((0..payload).map(|n| (n * 7) as u8));
    let protocol = if is_tcp { 6 } else { 17 };
    let mut packet = if is_v6 {
        let mut head = vec![0x60, 0, 0, 0];
        head.extend((transport.len() as u16).to_be_bytes());
        head.extend([protocol, 64]);
        head.extend([0x20; 16]);
        head.extend([0x30; 16]);
        head
    } else {
        let mut head = vec![0x46, 0];
        head.extend((transport.len() as u16 + 24).to_be_bytes());
        head.extend([0xff, 0xfe, 0x40, 0, 64, protocol, 0, 0]);
        head.extend([192, 0, 2, 1, 192, 0, 2, 2, 1, 1, 1, 1]);
        head
    };
    let (start, addresses) = if is_v6 { (40, 8..40) } else { (24, 12..20) };
    let sum = wire::checksum::pseudo_sum(&packet[addresses], protocol, transport.len());
    let place = if is_tcp { 16 } else { 6 };
    transport[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    packet.extend(transport);
    let gso = match (is_tcp, is_v6) {
        (false, _) => Gso::Udp,
        (true, false) => Gso::TcpV4,
        (true, true) => Gso::TcpV6,
    };
    let header = virtio::Header {
        gso,
        segment_size: size,
        header_length: (start + length) as u16,
        ..virtio::Header::default()
    };
    let header = header.with_open_checksum(start as u16, place as u16);
    [header.emit().to_vec(), packet].concat()
}

fn several(octets: &mut [u8]) -> Segments<'_> {
    match open(octets) {
        Ok(Opened::Several(segments)) => segments,
        other => panic!("{other:?}"),
    }
}

proptest! {
    /// The other way there is to cut, for frames.
    #[test]
    fn segments_are_those_of_a_frame_left_to_be_cut(
        is_v6: bool,
        is_tcp: bool,
        payload in 0_usize..3000,
        size in 1_u16..1500,
    ) {
        let mut octets = octets(is_v6, is_tcp, payload, size);
        let mut frame = vec![2; 12];
        frame.extend(if is_v6 { [0x86, 0xdd] } else { [8, 0] });
        frame.extend(&octets[virtio::LENGTH..]);
        let kind = if is_tcp { Kind::Tcp } else { Kind::Udp };
        let expected = segment::Segments::new(&frame, kind, size).unwrap();
        let segments = several(&mut octets);
        prop_assert_eq!(segments.count(), expected.count());
        let (mut ours, mut theirs) = (vec![0; 5000], vec![0; 5000]);
        for n in 0..=segments.count() {
            let length = segments.write(n, &mut ours);
            prop_assert_eq!(length, segments.length(n));
            prop_assert_eq!(length.map(|length| length + 14), expected.write(n, &mut theirs));
            if let Some(length) = length {
                // Ones' complement has two zeros: the other way writes the one that UDP needs, for TCP too.
                let place = segments.transport + 16;
                if is_tcp && ours[place..place + 2] == [0, 0] {
                    ours[place..place + 2].fill(0xff);
                }
                prop_assert_eq!(&ours[..length], &theirs[14..14 + length]);
            }
        }
    }

    #[test]
    fn all_segments_lie_one_after_the_other_with_room_in_front(
        is_tcp: bool,
        payload in 0_usize..3000,
        size in 1_u16..1500,
        headroom in 0_usize..65,
    ) {
        let mut octets = octets(false, is_tcp, payload, size);
        let segments = several(&mut octets);
        let layout = segments.layout(headroom);
        let mut out = vec![0xee; layout.octets()];
        prop_assert_eq!(segments.write_all(headroom, &mut out[1..]), None);
        prop_assert_eq!(segments.write_all(headroom, &mut out), Some(layout));
        let mut end = 0;
        for n in 0..segments.count() {
            let range = layout.range(n).unwrap();
            prop_assert_eq!(range.start, end);
            end = range.end;
            let (front, packet) = out[range].split_at(headroom);
            prop_assert!(front.iter().all(|&octet| octet == 0xee));
            let mut alone = Vec::new();
            segments.append(n, &mut alone);
            prop_assert_eq!(packet, alone);
        }
        prop_assert_eq!(end, out.len());
        prop_assert_eq!(layout.range(segments.count()), None);
    }

    /// Headers that lie, of the device and of the packet.
    #[test]
    fn no_octets_panic(
        is_v6: bool,
        is_tcp: bool,
        payload in 0_usize..200,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        end: prop::sample::Index,
    ) {
        let mut octets = octets(is_v6, is_tcp, payload, 50);
        for (place, octet) in damage {
            let at = place.index(octets.len().min(80));
            octets[at] = octet;
        }
        octets.truncate(end.index(octets.len()) + 1);
        let length = octets.len();
        match open(&mut octets) {
            Ok(Opened::Several(segments)) => {
                let mut out = vec![0; segments.layout(12).octets()];
                prop_assert!(segments.write_all(12, &mut out).is_some());
            }
            Ok(Opened::One(packet)) => prop_assert_eq!(packet.len(), length - virtio::LENGTH),
            Err(_) => {}
        }
    }
}

#[test]
fn flags_of_the_first_and_of_the_last_octet_stay_there() {
    let mut octets = octets(false, true, 250, 100);
    let segments = several(&mut octets);
    let flags: Vec<u8> = (0..3)
        .map(|n| {
            let mut out = Vec::new();
            segments.append(n, &mut out).unwrap();
            out[24 + 13]
        })
        .collect();
    assert_eq!(flags, [0x90, 0x10, 0x19]);
}

#[test]
fn an_open_checksum_is_completed_in_its_place() {
    for is_tcp in [false, true] {
        let mut octets = octets(true, is_tcp, 33, 100);
        octets[1] = 0;
        let Ok(Opened::One(packet)) = open(&mut octets) else {
            panic!("one packet");
        };
        let pseudo = wire::checksum::pseudo_sum(&packet[8..40], packet[6], packet.len() - 40);
        let total = u64::from(pseudo) + u64::from(sum(&packet[40..]));
        assert_eq!(fold(total), 0xffff);
    }
}

#[test]
fn headers_that_contradict_the_packet_are_refused() {
    let change = |at: usize, value: &[u8]| {
        let mut octets = octets(false, true, 250, 100);
        octets[at..at + value.len()].copy_from_slice(value);
        open(&mut octets).unwrap_err()
    };
    assert_eq!(change(1, &[4]), SplitError::Unsupported);
    assert_eq!(change(1, &[5]), SplitError::Unsupported);
    assert_eq!(change(1, &[3]), SplitError::Unsupported);
    assert_eq!(change(0, &[0]), SplitError::Checksum);
    assert_eq!(change(4, &[0, 0]), SplitError::Size);
    assert_eq!(change(6, &[0xff, 0xff]), SplitError::Checksum);
    // A fragment; a TCP header that is longer than the packet; one that is too short.
    assert_eq!(change(16, &[0x20]), SplitError::Unsupported);
    assert_eq!(change(34 + 12, &[0x40]), SplitError::Unsupported);
    assert!(matches!(change(12, &[0xff]), SplitError::Ip(_)));
    // Behind an Authentication Header, here of 12 octets.
    let mut behind = octets(false, true, 250, 100);
    behind.splice(34..34, [6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    let length = (behind.len() - virtio::LENGTH) as u16;
    behind[12..14].copy_from_slice(&length.to_be_bytes());
    behind[19] = 51;
    behind[6..8].copy_from_slice(&36_u16.to_ne_bytes());
    assert_eq!(open(&mut behind).unwrap_err(), SplitError::Unsupported);
    assert_eq!(open(&mut [0; 9]).unwrap_err(), SplitError::NoHeader);
    let mut place = octets(false, true, 250, 100);
    (place[1], place[8], place[9]) = (0, 0xff, 0xff);
    assert_eq!(open(&mut place).unwrap_err(), SplitError::Checksum);
}
