//! RFC 4787, by requirement.

use super::*;
use crate::nat::testing::{assert_sums, ends, fix_header, fragment, udp};
use crate::{Direction, Filtering};

#[test]
fn rfc_4787_req_1_mapping_is_endpoint_independent() {
    let mut world = world(config());
    let one = world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x"));
    let two = world.source(udp(ends((ANN, 4000), (DNS, 53)), b"x"));
    assert_eq!(one, two);
    let three = world.source(udp(ends((ANN, 4001), (DNS, 53)), b"x"));
    assert_ne!(one, three);
}

#[test]
fn rfc_4787_req_2_pooling_is_paired() {
    let mut config = config();
    config.block_ports = 16;
    let mut world = world(config);
    let (first, _) = world.source(udp(ends((ANN, 1), (WEB, 80)), b"x"));
    for port in 2..100 {
        let (external, _) = world.source(udp(ends((ANN, port), (WEB, 80)), b"x"));
        assert_eq!(external, first);
    }
}

#[test]
fn rfc_4787_req_3_no_port_has_two_mappings_and_system_ports_are_apart() {
    let mut world = world(config());
    let mut seen = std::collections::BTreeSet::new();
    for port in 1..1500 {
        let external = world.source(udp(ends((ANN, port), (WEB, 80)), b"x"));
        assert!(external.1 >= 1024, "REQ-3a: ports below 1024 are apart");
        assert!(seen.insert(external));
    }
}

#[test]
fn rfc_4787_req_5_a_mapping_lives_five_minutes_and_no_setting_makes_it_less_than_two() {
    let mut world = world(config());
    let external = world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x"));
    let answer = || udp(between((address(WEB), 80), external), b"y");
    world.wait(300);
    assert_eq!(world.back(&mut answer()), Ok(Verdict::Translated));
    world.wait(3);
    assert_eq!(world.back(&mut answer()), Err(Discard::NoMapping));
    let mut config = config();
    config.timeouts.udp = Duration::from_secs(119);
    assert!(Nat::new(config).is_err());
}

#[test]
fn rfc_4787_req_6_outbound_refreshes_and_inbound_only_if_wanted() {
    for inbound in [false, true] {
        let mut config = config();
        config.timeouts.inbound_refreshes = inbound;
        let mut world = world(config);
        let external = world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x"));
        let answer = || udp(between((address(WEB), 80), external), b"y");
        world.wait(200);
        assert_eq!(world.back(&mut answer()), Ok(Verdict::Translated));
        world.wait(200);
        let is_there = world.back(&mut answer()).is_ok();
        assert_eq!(is_there, inbound);
        let again = world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x"));
        assert_eq!(again, external, "the inside endpoint keeps its port");
        world.wait(299);
        assert_eq!(world.back(&mut answer()), Ok(Verdict::Translated));
    }
}

#[test]
fn rfc_4787_req_8_filtering_is_endpoint_independent_or_by_address() {
    let mut world = world(config());
    let external = world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x"));
    let mut stranger = udp(between((address(DNS), 9), external), b"y");
    assert_eq!(world.back(&mut stranger), Ok(Verdict::Translated));
    assert_eq!(
        crate::nat::testing::read(&stranger).to,
        (address(ANN), 4000)
    );
    assert_sums(&stranger, true);

    let mut config = config();
    config.filtering = Filtering::AddressDependent;
    let mut world = super::world(config);
    let external = world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x"));
    let from = |host: &str, port| udp(between((address(host), port), external), b"y");
    assert_eq!(world.back(&mut from(DNS, 53)), Err(Discard::Filtered));
    assert_eq!(world.back(&mut from(WEB, 81)), Ok(Verdict::Translated));
    world.source(udp(ends((ANN, 4000), (DNS, 9)), b"x"));
    assert_eq!(world.back(&mut from(DNS, 53)), Ok(Verdict::Translated));
}

#[test]
fn rfc_4787_req_9_hairpinning_has_the_external_source() {
    let mut world = world(config());
    let ann = world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x"));
    let mut packet = udp(between((address(BOB), 5000), ann), b"hello");
    assert_eq!(world.out(world.bob, &mut packet), Ok(Verdict::Hairpin));
    assert_sums(&packet, true);
    let seen = crate::nat::testing::read(&packet);
    assert_eq!(seen.to, (address(ANN), 4000));
    assert!(world.nat.owns(seen.from.0), "REQ-9a");
    let mut answer = udp(between((address(ANN), 4000), seen.from), b"hi");
    assert_eq!(world.out(world.ann, &mut answer), Ok(Verdict::Hairpin));
    let answer = crate::nat::testing::read(&answer);
    assert_eq!(answer, between(ann, (address(BOB), 5000)));
}

#[test]
fn rfc_4787_req_14_fragments_pass_in_any_order() {
    let data = [7; 32];
    let whole = udp(ends((ANN, 4000), (WEB, 80)), &data);
    let cut = |world: &mut World| {
        let mut first = whole[..44].to_vec();
        first[2..4].copy_from_slice(&44_u16.to_be_bytes());
        fragment(&mut first, 0x2000, 77);
        let mut later = whole[..20].to_vec();
        later.extend(&whole[44..]);
        let length = later.len() as u16;
        later[2..4].copy_from_slice(&length.to_be_bytes());
        fragment(&mut later, 3, 77);
        let _ = world;
        (first, later)
    };
    let mut world = world(config());
    let (mut first, mut later) = cut(&mut world);
    assert_eq!(world.out(world.ann, &mut first), Ok(Verdict::Translated));
    assert_eq!(world.out(world.ann, &mut later), Ok(Verdict::Translated));
    assert_eq!(first[4..6], later[4..6], "one datagram, one identification");
    assert_ne!(first[4..6], 77_u16.to_be_bytes(), "RFC 6864 section 5.3.1");
    assert_eq!(first[12..16], later[12..16]);
    assert_joined(&first, &later, whole.len());

    world.wait(60);
    let (mut first, mut later) = cut(&mut world);
    let kept = later.clone();
    assert_eq!(world.out(world.ann, &mut later), Ok(Verdict::Held));
    assert_eq!(later, kept);
    assert_eq!(world.out(world.ann, &mut first), Ok(Verdict::Translated));
    let mut released = Vec::new();
    let told = world.nat.poll_released(&mut released);
    assert_eq!(told, Some((Direction::Out, Verdict::Translated)));
    assert_joined(&first, &released, whole.len());
    assert_eq!(world.nat.poll_released(&mut released), None);
}

fn assert_joined(first: &[u8], later: &[u8], length: usize) {
    assert_sums(first, false);
    assert_sums(later, false);
    let mut joined = first.to_vec();
    joined.extend(&later[20..]);
    joined[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    joined[6..8].fill(0);
    fix_header(&mut joined);
    assert_sums(&joined, true);
}

#[test]
fn rfc_4787_req_14a_a_flood_of_fragments_costs_other_packets_nothing() {
    let mut config = config();
    config.limits.waiting_fragments_max = 10;
    config.limits.fragmented_max = 10;
    let mut world = world(config);
    let mut held = 0;
    for number in 0..100 {
        let mut later = udp(ends((ANN, 4000), (WEB, 80)), &[0; 8]);
        fragment(&mut later, 3, number);
        match world.out(world.ann, &mut later) {
            Ok(verdict) => {
                assert_eq!(verdict, Verdict::Held);
                held += 1;
            }
            Err(why) => assert_eq!(why, Discard::FragmentsFull),
        }
    }
    assert_eq!(held, 10);
    world.source(udp(ends((ANN, 4000), (WEB, 80)), b"whole"));
    for number in 200..300 {
        // In order: first, later.
        let mut first = udp(ends((ANN, 4000), (WEB, 80)), &[0; 8]);
        fragment(&mut first, 0x2000, number);
        assert_eq!(world.out(world.ann, &mut first), Ok(Verdict::Translated));
        let mut later = udp(ends((ANN, 4000), (WEB, 80)), &[0; 8]);
        fragment(&mut later, 3, number);
        assert_eq!(world.out(world.ann, &mut later), Ok(Verdict::Translated));
    }
    world.wait(100);
    assert_eq!(world.nat.counters().fragments_lost, 10);
}

#[test]
fn a_udp_datagram_without_a_checksum_stays_without() {
    let mut world = world(config());
    let mut packet = udp(ends((ANN, 4000), (WEB, 80)), b"x");
    packet[26..28].fill(0);
    assert_eq!(world.out(world.ann, &mut packet), Ok(Verdict::Translated));
    assert_eq!(packet[26..28], [0, 0]);
    assert_sums(&packet, true);
}

#[test]
fn an_external_address_is_no_inside_address() {
    let mut world = world(config());
    let mut packet = udp(ends(("192.0.2.1", 4000), (WEB, 80)), b"x");
    assert_eq!(world.out(world.ann, &mut packet), Err(Discard::Source));
}
