use super::initial::{Keys, in_full};
use super::spin::KEPT_MAX;
use super::*;
use proptest::prelude::*;

fn octets(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> = hexadecimal.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
    digits
        .chunks(2)
        .map(|pair| value(pair[0]) << 4 | value(pair[1]))
        .collect()
}

/// RFC 9001 appendix A.1.
const ID: &str = "8394c8f03e515708";

/// The CRYPTO frame of RFC 9001 appendix A.2.
const FRAME: &str = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c00000413011302010000\
     c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d0017001800100007000504616c706e00050005\
     0100000000003300260024001d00209370b2c9caa47fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b00030203\
     04000d0010000e0403050306030203080408050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff\
     07048000ffff0801100104800075300901100f088394c8f03e51570806048000ffff";

/// The client's packet of that appendix, protected.
fn client() -> Vec<u8> {
    let mut payload = octets(FRAME);
    payload.resize(1162, 0);
    sealed(
        true,
        "c300000001088394c8f03e5157080000449e00000002",
        2,
        &payload,
    )
}

/// A packet of the connection of that appendix: header with a number of four octets, number, payload. Its tag is not
/// verified.
fn sealed(of_client: bool, header: &str, number: u64, payload: &[u8]) -> Vec<u8> {
    let keys = Keys::new(1, &octets(ID), of_client).unwrap();
    let mut payload = payload.to_vec();
    keys.apply(number, &mut payload);
    let mut packet = octets(header);
    let number_at = packet.len() - 4;
    let mask = keys.mask(payload.first_chunk().unwrap());
    packet[0] ^= mask[0] & 0x0f;
    for (octet, mask) in packet[number_at..].iter_mut().zip(&mask[1..]) {
        *octet ^= mask;
    }
    packet.extend(payload);
    packet.extend([7; 16]);
    packet
}

/// An Initial packet with CRYPTO data, or with PING if it has none.
fn initial(of_client: bool, number: u32, crypto: Option<(u8, usize)>) -> Vec<u8> {
    let mut payload = match crypto {
        None => vec![1],
        Some((offset, length)) => [vec![6, offset, length as u8], vec![0xaa; length]].concat(),
    };
    payload.resize(1162, 0);
    let header = match of_client {
        true => format!("c300000001088394c8f03e5157080000449e{number:08x}"),
        false => format!("c3000000010008f067a5502a4262b500449e{number:08x}"),
    };
    sealed(of_client, &header, number.into(), &payload)
}

#[test]
fn the_keys_are_those_of_rfc_9001() {
    let client = Keys {
        key: octets("1f369613dd76d5467730efcbe3b1a22d")
            .try_into()
            .unwrap(),
        iv: octets("fa044b2f42a3fd3b46fb255c").try_into().unwrap(),
        header: octets("9f50449e04a0e810283a1e9933adedd2")
            .try_into()
            .unwrap(),
    };
    assert_eq!(Keys::new(1, &octets(ID), true), Some(client));
    let server = Keys {
        key: octets("cf3a5331653c364c88f0f379b6067e37")
            .try_into()
            .unwrap(),
        iv: octets("0ac1493ca1905853b0bba03e").try_into().unwrap(),
        header: octets("c206b8d9b9f0f37644430b490eeaa314")
            .try_into()
            .unwrap(),
    };
    assert_eq!(Keys::new(1, &octets(ID), false), Some(server));
    assert_eq!(Keys::new(0xff00_001d, &octets(ID), true), None);
}

#[test]
fn the_clients_packet_of_rfc_9001_is_protected_and_opened_as_there() {
    let packet = client();
    assert_eq!(packet.len(), 1200);
    let header = octets("c000000001088394c8f03e5157080000449e7b9aec34");
    assert_eq!(packet[..22], header);
    assert_eq!(packet[22..38], octets("d1b1c98dd7689fb8ec11d242b123dc9b"));
    let mut quic = Quic::start(&packet, 1200, 5).unwrap();
    quic.datagram(true, &packet, 2, 5);
    assert_eq!(quic.server_name, "example.com");
    assert_eq!(
        (quic.alpn_offered.as_str(), quic.tls_version),
        ("alpn", 0x0304)
    );
    assert_eq!(
        (quic.version, quic.original_destination_id.as_str()),
        (1, ID)
    );
    assert!(!quic.is_reading());
}

#[test]
fn a_handshake_ends_with_the_clients_first_short_header() {
    let packet = client();
    let mut quic = Quic::start(&packet, 1200, 100).unwrap();
    quic.datagram(true, &packet, 1, 100);
    let answer = octets("cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a");
    quic.datagram(false, &answer, 3, 150);
    quic.datagram(true, &[0x41, 1, 2, 3], 0, 220);
    quic.datagram(true, &[0x41, 1, 2, 3], 0, 900);
    assert_eq!((quic.answer(), quic.handshake()), (Some(50), Some(120)));
    assert_eq!(quic.server_id, "f067a5502a4262b5");
    assert_eq!(quic.codepoints, [[1, 0, 0], [0, 0, 1]]);
}

#[test]
fn the_spin_bit_gives_round_trips_unless_it_is_random() {
    let mut quic = Quic::start(&client(), 1200, 0).unwrap();
    for packet in 0..100i64 {
        let spin = packet / 10 % 2;
        quic.datagram(false, &[0x40 | (spin as u8) << 5, 1], 0, packet * 4_000_000);
        // Changes with each packet.
        quic.datagram(
            true,
            &[0x40 | (packet as u8 % 2) << 5, 1],
            0,
            packet * 4_000_000,
        );
    }
    let round_trips = quic.spin[1].round_trips();
    assert_eq!(
        (round_trips.count, round_trips.min, round_trips.max),
        (8, 40_000_000, 40_000_000)
    );
    assert_eq!(quic.spin[0].round_trips().count, 0);
}

#[test]
fn other_datagrams_start_nothing() {
    let packet = client();
    assert_eq!(Quic::start(&packet, 1199, 0), None);
    assert_eq!(Quic::start(&octets("000100002112a442"), 1200, 0), None);
}

proptest! {
    #[test]
    fn a_hello_in_pieces_in_any_order_is_put_together(seed in any::<u64>(), size in 8usize..80) {
        let whole = octets(FRAME)[4..].to_vec();
        let mut pieces: Vec<(usize, &[u8])> = whole.chunks(size).enumerate().map(|(at, piece)| (at * size, piece)).collect();
        pieces.sort_by_key(|(at, _)| (*at as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
        let mut hello = Hello::default();
        for (offset, piece) in pieces {
            hello.add(offset as u64, piece);
        }
        prop_assert_eq!(tls::hello(&hello.octets).unwrap().server_name, Some("example.com"));
    }

    #[test]
    fn no_datagrams_cause_a_panic(datagrams in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..80)), 0..20)) {
        let mut quic = Quic::start(&client(), 1200, 0).unwrap();
        for (from_client, mut datagram) in datagrams {
            if let Some(first) = datagram.first_mut() {
                *first |= 0xc0;
            }
            quic.datagram(from_client, &datagram, 1, 0);
        }
    }
}

/// A connection whose client sent its ClientHello at 0.
fn started() -> Quic {
    let mut quic = Quic::start(&client(), 1200, 0).unwrap();
    quic.datagram(true, &client(), 0, 0);
    assert!(quic.hello_is_read);
    quic
}

fn short(spin: bool) -> Vec<u8> {
    let mut packet = vec![0x40 | u8::from(spin) << 5];
    packet.resize(40, 7);
    packet
}

#[test]
fn packet_numbers_are_completed_as_in_rfc_9000_appendix_a() {
    assert_eq!(in_full(0x9b32, 16, 0xa82f_30eb), 0xa82f_9b32);
    assert_eq!(in_full(2, 8, 0), 2);
    assert_eq!(in_full(0xff, 8, 0x100), 0xff);
    assert_eq!(in_full(0, 8, 0x100), 0x100);
}

#[test]
fn numbers_of_both_ends_tell_copies_from_data_sent_again() {
    let mut quic = started();
    // The client's ClientHello had number 2.
    quic.datagram(true, &initial(true, 3, Some((0, 40))), 0, 300);
    quic.datagram(true, &initial(true, 3, Some((0, 40))), 0, 310);
    quic.datagram(true, &client(), 0, 320);
    quic.datagram(false, &initial(false, 0, Some((0, 60))), 0, 400);
    quic.datagram(false, &initial(false, 2, Some((0, 60))), 0, 600);
    quic.datagram(true, &initial(true, 4, None), 0, 700);
    let [client, server] = &quic.initials;
    assert_eq!((client.packets, client.duplicates), (3, 2));
    assert_eq!(
        (client.retransmitted, client.retransmitted_at),
        (1, Some(300))
    );
    assert_eq!((client.missing(), client.reordered), (0, 0));
    assert_eq!((server.packets, server.missing()), (2, 1));
    assert_eq!(
        (server.retransmitted, server.retransmitted_at),
        (1, Some(600))
    );
    // The client's data until 300, and the server's from 400 to 600; what follows the handshake does not count.
    assert_eq!(quic.lost(), 300);
    quic.datagram(true, &short(false), 0, 800);
    quic.datagram(false, &initial(false, 3, Some((0, 60))), 0, 2000);
    assert_eq!(quic.lost(), 400);
    // Copies are not the client's.
    assert_eq!((quic.repeated_hellos, quic.repeated_at), (1, Some(300)));
}

#[test]
fn packets_without_the_right_keys_have_no_numbers() {
    let mut quic = started();
    // As if the server had answered another client.
    let payload = vec![0; 1162];
    let other = Keys::new(1, &[5; 8], false).unwrap();
    let mut packet = initial(false, 0, None);
    let at = packet.len() - 16 - payload.len();
    packet.splice(at..at + payload.len(), payload);
    other.apply(0, &mut packet[at..]);
    quic.datagram(false, &packet, 0, 400);
    assert_eq!(quic.initials[1], Numbers::default());
}

#[test]
fn a_flow_opens_a_bounded_number_of_packets() {
    let mut quic = started();
    for number in 3..1000 {
        quic.datagram(true, &initial(true, number, None), 0, 5);
    }
    assert_eq!(quic.initials[0].packets, 128);
    assert_eq!(quic.opener, None);
}

#[test]
fn a_hello_is_repeated_until_the_server_answers() {
    let mut quic = started();
    quic.datagram(true, &initial(true, 3, Some((0, 40))), 0, 300);
    quic.datagram(true, &initial(true, 4, None), 0, 900);
    let mut server = client();
    server[0] = 0xe0;
    quic.datagram(false, &server, 0, 1000);
    quic.datagram(true, &initial(true, 5, None), 0, 1400);
    assert_eq!((quic.repeated_hellos, quic.repeated_at), (2, Some(300)));
    assert_eq!((quic.answer(), quic.replied), (Some(1000), Some(1400)));
    let mut quiet = started();
    quiet.datagram(false, &server, 0, 1000);
    quiet.datagram(true, &client(), 0, 1400);
    assert_eq!((quiet.repeated_hellos, quiet.repeated_at), (0, None));
}

/// Packets of one end each millisecond, with the spin bit of that packet.
fn spun(bits: impl IntoIterator<Item = bool>) -> Spin {
    let mut spin = Spin::default();
    for (at, bit) in (0i64..).zip(bits) {
        spin.packet(bit, at * 1_000_000);
    }
    spin
}

#[test]
fn a_bit_that_spins_shows_round_trips_and_one_at_random_does_not() {
    let steady = spun((0..1000).map(|at| at / 25 % 2 == 0));
    assert_eq!(steady.median(), Some((25_000_000, 0)));
    // Two packets swapped at one edge: three edges where one was.
    let swapped = spun((0..1000).map(|at| match at {
        499 => true,
        500 => false,
        at => at / 25 % 2 == 0,
    }));
    let (median, short) = swapped.median().unwrap();
    assert_eq!(median, 25_000_000);
    assert_eq!(short, 2);
    let mut state = 1u32;
    let random = spun((0..1000).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 31 == 0
    }));
    assert_eq!(random.median(), None);
    assert_eq!(spun((0..1000).map(|_| true)).median(), None);
}

#[test]
fn the_median_of_many_times_keeps_a_bounded_list() {
    let spin = spun((0..100_000).map(|at| at / 10 % 2 == 0));
    assert_eq!(spin.median(), Some((10_000_000, 0)));
    assert!(spin.kept.len() <= KEPT_MAX);
}

#[test]
fn a_fixed_bit_of_0_counts_only_after_the_handshake() {
    let mut quic = started();
    let greased = [vec![0x20], vec![9; 39]].concat();
    quic.datagram(false, &greased, 0, 10);
    assert_eq!(quic.greased, [0, 0]);
    quic.datagram(true, &short(false), 0, 20);
    quic.datagram(false, &greased, 0, 30);
    assert_eq!((quic.greased, quic.spin[1].packets), ([0, 1], 1));
}
