//! Streams that show their numbers, and payloads that must not count as streams.

use super::*;
use proptest::prelude::*;

const PORTS: [u16; 2] = [40_000, 40_002];
const MS: i64 = 1_000_000;

fn rtp(number: u16, stamp: u32) -> Vec<u8> {
    let mut payload = vec![0x80, 0];
    payload.extend(number.to_be_bytes());
    payload.extend(stamp.to_be_bytes());
    payload.extend([0xde, 0xad, 0xbe, 0xef]);
    payload.resize(172, 0x55);
    payload
}

fn wireguard(number: u64) -> Vec<u8> {
    let mut payload = vec![4, 0, 0, 0, 7, 7, 7, 7];
    payload.extend(number.to_le_bytes());
    payload.resize(96, 0xaa);
    payload
}

fn esp(number: u32) -> Vec<u8> {
    let mut payload = vec![0xc0, 0xff, 0xee, 1];
    payload.extend(number.to_be_bytes());
    payload.resize(100, 0x33);
    payload
}

/// The streams of payloads, one each 20 ms.
fn streams(payloads: impl IntoIterator<Item = Vec<u8>>, ports: [u16; 2]) -> Streams {
    let mut streams = Streams::default();
    for (at, payload) in (0i64..).zip(payloads) {
        streams.packet(
            (&payload, payload.len()),
            ports,
            at * 20 * MS,
            at as u64 + 1,
        );
    }
    streams
}

fn only(streams: &Streams) -> &Stream {
    let list: Vec<&Stream> = streams.iter().collect();
    assert_eq!(list.len(), 1, "{streams:?}");
    list[0]
}

#[test]
fn a_loss_a_swap_and_a_copy_of_rtp_are_told_apart_across_the_wrap() {
    // 65530 to 65549; 65534 to 65536 are lost, 65540 is late, 65545 arrives twice.
    let numbers: [u32; 18] = [
        65_530, 65_531, 65_532, 65_533, 65_537, 65_538, 65_539, 65_541, 65_540, 65_542, 65_543,
        65_544, 65_545, 65_545, 65_546, 65_547, 65_548, 65_549,
    ];
    let found = streams(
        numbers.map(|number| rtp(number as u16, number * 160)),
        PORTS,
    );
    let stream = only(&found);
    assert_eq!(stream.protocol, Protocol::Rtp(0));
    assert_eq!((stream.expected(), stream.lost()), (20, 3));
    assert_eq!((stream.reordered, stream.duplicates), (1, 1));
    assert_eq!(stream.gap_max, (3, 5));
}

#[test]
fn an_outage_of_rtp_is_the_spacing_times_the_packets_lost_in_a_row() {
    // A packet each 20 ms.
    let mut streams = Streams::default();
    let numbers = (0..30u16).filter(|number| !(12..17).contains(number) && *number != 20);
    for (packet, number) in (1..).zip(numbers) {
        let payload = rtp(number, u32::from(number) * 160);
        let time = i64::from(number) * 20 * MS;
        streams.packet((&payload, payload.len()), PORTS, time, packet);
    }
    assert_eq!(only(&streams).outage, (5 * 20 * MS, 13));
    // Data of WireGuard has no spacing of its own.
    let found = self::streams([1, 2, 3, 4, 5, 6, 7, 8, 19].map(wireguard), PORTS);
    assert_eq!((only(&found).lost(), only(&found).outage.0), (10, 0));
}

#[test]
fn esp_and_wireguard_show_their_numbers() {
    let numbers = [5, 6, 7, 8, 9, 10, 11, 14, 15, 16];
    let found = streams(numbers.map(|number| esp(number as u32)), [500, 4500]);
    assert_eq!(
        (only(&found).protocol, only(&found).lost()),
        (Protocol::Esp, 2)
    );
    let found = streams(numbers.map(wireguard), PORTS);
    assert_eq!(
        (only(&found).protocol, only(&found).lost()),
        (Protocol::WireGuard, 2)
    );
    // ESP is recognised by its port only, and IKE beside it by an SPI of 0 (RFC 3948 2.2).
    assert_eq!(
        streams(numbers.map(|number| esp(number as u32)), PORTS)
            .iter()
            .count(),
        0
    );
    let ike = |number: u64| {
        let mut payload = esp(number as u32);
        payload[..4].fill(0);
        payload
    };
    assert_eq!(streams(numbers.map(ike), [500, 4500]).iter().count(), 0);
}

#[test]
fn seven_packets_are_not_enough_and_eight_are() {
    let many = |count: u16| streams((0..count).map(|number| rtp(number, 0)), PORTS);
    assert_eq!(many(7).iter().count(), 0);
    assert_eq!(many(8).iter().count(), 1);
}

#[test]
fn reports_of_rtcp_and_a_constant_payload_are_no_stream() {
    let report = |number: u16| {
        let mut payload = rtp(number, 0);
        payload[1] = 200;
        payload
    };
    assert_eq!(streams((0..40).map(report), PORTS).iter().count(), 0);
    let text = b"\x80abc, a protocol of text whose first octet has the version's bits".to_vec();
    let found = streams((0..40).map(|_| text.clone()), PORTS);
    assert!(found.iter().all(|stream| stream.lost() == 0));
}

/// RFC 3550 6.4.1: J += (|D| - J) / 16. One packet is 16 ms late: D is 16 ms with it and with the next.
#[test]
fn jitter_is_that_of_rfc_3550() {
    let mut jitter = Jitter::default();
    for at in 0..10u32 {
        jitter.packet(i64::from(at) * 20 * MS, at * 160, 8000);
    }
    assert_eq!(jitter.mean_and_max(), Some((0, 0)));
    jitter.packet(216 * MS, 1600, 8000);
    assert_eq!(jitter.now >> 4, MS);
    jitter.packet(220 * MS, 1760, 8000);
    assert_eq!(jitter.now >> 4, MS + 15 * MS / 16);
    assert_eq!(jitter.mean_and_max().unwrap().1, MS + 15 * MS / 16);
}

#[test]
fn a_jump_of_the_numbers_is_a_new_start_and_no_loss() {
    let numbers = (0..20u16).chain(30_000..30_020);
    let found = streams(numbers.map(|number| rtp(number, 0)), PORTS);
    assert_eq!((only(&found).lost(), only(&found).restarts), (0, 1));
    assert_eq!(only(&found).expected(), 40);
}

proptest! {
    /// Which packets are lost, copied and late is known: the account must be the same.
    #[test]
    fn the_account_is_that_of_the_path(
        fates in prop::collection::vec((0u8..20, 0u8..20), 20..300),
        start in any::<u16>(),
    ) {
        let mut arrivals: Vec<u64> = (0..8).collect();
        let (mut lost, mut copies) = (0, 0);
        for (number, (fate, late)) in (8u64..).zip(&fates) {
            match fate {
                0 => lost += 1,
                1 => {
                    copies += 1;
                    arrivals.extend([number, number]);
                }
                _ if *late == 0 => {
                    let place = arrivals.len().saturating_sub(3).max(8);
                    arrivals.insert(place, number);
                }
                _ => arrivals.push(number),
            }
        }
        // A loss at the end is not visible.
        let tail = fates.iter().rev().take_while(|(fate, _)| *fate == 0).count() as u64;
        let packets = arrivals.iter().map(|&number| rtp(start.wrapping_add(number as u16), 0));
        let found = streams(packets, PORTS);
        let stream = only(&found);
        prop_assert_eq!(stream.lost(), lost - tail);
        prop_assert_eq!(stream.duplicates, copies);
        let (mut most, mut seen) = (0, std::collections::BTreeSet::new());
        let late = arrivals.iter().filter(|&&number| {
            let is_late = number < most && !seen.contains(&number);
            seen.insert(number);
            most = most.max(number);
            is_late
        });
        prop_assert_eq!(stream.reordered, late.count() as u64);
    }

    /// Random payloads are no stream, and no payload brings the account down.
    #[test]
    fn random_payloads_are_no_stream(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..200),
        port in prop_oneof![Just(4500u16), Just(5004)],
    ) {
        prop_assert_eq!(streams(payloads, [port, 1000]).iter().count(), 0);
    }

    /// Hostile numbers of one stream.
    #[test]
    fn any_numbers_are_counted(numbers in prop::collection::vec(any::<u64>(), 0..60)) {
        let near = (0..9u64).chain(numbers.iter().map(|number| number % 3)).chain(numbers.clone());
        let found = streams(near.map(wireguard), PORTS);
        for stream in found.iter() {
            prop_assert!(stream.lost() <= stream.expected());
        }
    }
}
