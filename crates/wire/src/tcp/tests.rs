use super::{Flags, Options, PROTOCOL, Tcp, TcpError};
use crate::packet::{Fragment, Packet};

/// A segment's octets: the fixed header with that data offset, then `rest`.
fn octets(offset: u8, rest: &[u8]) -> Vec<u8> {
    let mut octets = vec![0xc3, 0x50, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8];
    octets.extend([offset << 4 | 1, 0x52, 0x20, 0, 0xab, 0xcd, 0, 9]);
    octets.extend(rest);
    octets
}

fn packet(transport: &[u8], transport_length: usize) -> Packet<'_> {
    Packet {
        protocol: PROTOCOL,
        transport,
        transport_length: transport_length as u32,
        ..Packet::new()
    }
}

#[test]
fn reads_every_field() {
    let octets = octets(5, b"payload");
    let tcp = Tcp::parse(&packet(&octets, octets.len())).expect("a segment");
    let expected = Tcp {
        source_port: 50_000,
        destination_port: 80,
        sequence: 0x0102_0304,
        acknowledgment: 0x0506_0708,
        header_length: 20,
        flags: Flags::AE | Flags::ECE | Flags::ACK | Flags::SYN,
        window: 0x2000,
        checksum: 0xabcd,
        urgent: 9,
        options: Options::NONE,
        payload: b"payload",
        payload_length: 7,
    };
    assert_eq!(tcp, expected);
    assert!(tcp.flags.contains(Flags::SYN | Flags::ACK));
    assert!(!tcp.flags.contains(Flags::SYN | Flags::FIN));
}

#[test]
fn what_is_no_segment_is_refused() {
    let whole = octets(5, &[]);
    assert_eq!(Tcp::parse(&Packet::new()), Err(TcpError::NotTcp));
    let mut later = packet(&whole, 20);
    later.fragment = Fragment::Later;
    assert_eq!(Tcp::parse(&later), Err(TcpError::LaterFragment));
    assert_eq!(
        Tcp::parse(&packet(&whole[..15], 20)),
        Err(TcpError::Truncated)
    );
    for offset in 0..5 {
        let low = octets(offset, &[0; 40]);
        assert_eq!(Tcp::parse(&packet(&low, 60)), Err(TcpError::BadOffset));
    }
    let beyond = octets(6, &[]);
    assert_eq!(Tcp::parse(&packet(&beyond, 20)), Err(TcpError::BadOffset));
    assert_eq!(
        Tcp::parse(&packet(&beyond[..16], 20)),
        Err(TcpError::BadOffset)
    );
}

#[test]
fn sixteen_octets_are_enough() {
    let octets = octets(5, b"payload");
    let tcp = Tcp::parse(&packet(&octets[..16], octets.len())).expect("a segment");
    assert_eq!((tcp.window, tcp.checksum, tcp.urgent), (0x2000, 0, 0));
    assert_eq!((tcp.payload, tcp.payload_length), (&[][..], 7));
    assert!(!tcp.options.cut);
}

/// RFC 791 lets a router fragment a packet at any multiple of eight octets of payload.
#[test]
fn a_header_that_goes_on_in_the_next_fragment_is_read_as_far_as_it_is_there() {
    let octets = octets(10, &[2, 4, 5, 0xb4]);
    let mut packet = packet(&octets, octets.len());
    packet.fragment = Fragment::First;
    let tcp = Tcp::parse(&packet).expect("a segment");
    assert_eq!((tcp.header_length, tcp.payload_length), (40, 0));
    assert_eq!(tcp.options.mss, Some(1460));
    assert!(tcp.options.cut && !tcp.options.malformed);
}

#[test]
fn options_that_were_not_captured_are_cut() {
    let octets = octets(8, &[2, 4, 5, 0xb4, 8, 10, 0, 0, 0, 7, 0, 0]);
    for captured in 20..octets.len() {
        let tcp = Tcp::parse(&packet(&octets[..captured], 132)).expect("a segment");
        assert_eq!(tcp.options.mss, (captured >= 24).then_some(1460));
        assert!(tcp.options.cut && !tcp.options.malformed);
        assert_eq!((tcp.payload.len(), tcp.payload_length), (0, 100));
    }
}

#[test]
fn timestamps_are_read_aligned_or_not() {
    for options in [
        [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9],
        [8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 1],
        [8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 0, 77],
    ] {
        let octets = octets(8, &options);
        let tcp = Tcp::parse(&packet(&octets, octets.len())).expect("a segment");
        let expected = Options {
            timestamps: Some((7, 9)),
            ..Options::NONE
        };
        assert_eq!(tcp.options, expected);
        assert_eq!(Options::parse(&options), expected);
    }
}

#[test]
fn reads_the_options_of_a_syn() {
    let options = Options::parse(&[
        2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 0, 1, 3, 3, 7,
    ]);
    let expected = Options {
        mss: Some(1460),
        sack_permitted: true,
        timestamps: Some((7, 0)),
        window_scale: Some(7),
        ..Options::NONE
    };
    assert_eq!(options, expected);
}

#[test]
fn reads_up_to_four_sack_blocks() {
    for blocks in 1..=4_u32 {
        let mut octets = vec![1, 1, 5, 2 + 8 * blocks as u8];
        let edges: Vec<(u32, u32)> = (0..blocks).map(|n| (n * 100, n * 100 + 50)).collect();
        for (left, right) in &edges {
            octets.extend(left.to_be_bytes());
            octets.extend(right.to_be_bytes());
        }
        let options = Options::parse(&octets);
        assert_eq!(options.sack(), edges);
        assert!(!options.malformed);
    }
}

#[test]
fn a_malformed_option_ends_the_options_and_keeps_those_before() {
    for end in [
        &[2, 3, 5][..],
        &[3, 4, 7, 7],
        &[4, 3, 0],
        &[5, 2],
        &[5, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[8, 9, 0, 0, 0, 0, 0, 0, 0],
        &[254, 0],
        &[254, 1],
        &[254, 9],
        &[254],
    ] {
        let mut octets = vec![2, 4, 5, 0xb4];
        octets.extend(end);
        let options = Options::parse(&octets);
        assert!(options.malformed, "{end:?}");
        assert_eq!(options.mss, Some(1460));
    }
    let five_blocks = [&[5, 42][..], &[0; 40]].concat();
    assert!(Options::parse(&five_blocks).malformed);
}

#[test]
fn unknown_options_are_stepped_over_and_the_last_of_two_counts() {
    let options = Options::parse(&[30, 4, 0, 0, 2, 4, 0, 9, 2, 4, 5, 0xb4, 0, 255]);
    assert_eq!(options.mss, Some(1460));
    assert!(!options.malformed);
}
