//! RFC 5382 and RFC 7857 section 2, by requirement.

use super::*;
use crate::Filtering;
use crate::nat::testing::{ACK, FIN, RST, SYN, assert_sums, ends, read, tcp, udp};

/// Ann opens a connection to the web server. Its external source.
fn open(world: &mut World, port: u16) -> (Ipv4Addr, u16) {
    let to = (WEB, 80);
    let external = world.source(tcp(ends((ANN, port), to), SYN));
    let mut answer = tcp(between((address(WEB), 80), external), SYN | ACK);
    assert_eq!(world.back(&mut answer), Ok(Verdict::Translated));
    assert_eq!(read(&answer).to, (address(ANN), port));
    assert_sums(&answer, true);
    assert_eq!(world.source(tcp(ends((ANN, port), to), ACK)), external);
    external
}

fn inside(world: &mut World, flags: u8) -> Result<Verdict, Discard> {
    world.out(world.ann, &mut tcp(ends((ANN, 4000), (WEB, 80)), flags))
}

fn outside(world: &mut World, external: (Ipv4Addr, u16), flags: u8) -> Result<Verdict, Discard> {
    world.back(&mut tcp(between((address(WEB), 80), external), flags))
}

#[test]
fn rfc_5382_req_1_mapping_is_endpoint_independent_and_by_protocol() {
    let mut world = world(config());
    let external = open(&mut world, 4000);
    assert_eq!(
        world.source(tcp(ends((ANN, 4000), (DNS, 53)), SYN)),
        external
    );
    // RFC 7857 section 5: UDP has a mapping of its own.
    world.source(udp(ends((ANN, 4000), (DNS, 53)), b"x"));
    assert_eq!(world.nat.counters().mappings, 2);
}

#[test]
fn rfc_5382_req_2_a_simultaneous_open_passes() {
    let mut world = world(config());
    let external = world.source(tcp(ends((ANN, 4000), (WEB, 80)), SYN));
    assert_eq!(outside(&mut world, external, SYN), Ok(Verdict::Translated));
    assert_eq!(inside(&mut world, SYN | ACK), Ok(Verdict::Translated));
    let answer = outside(&mut world, external, SYN | ACK);
    assert_eq!(answer, Ok(Verdict::Translated));
    // Established: it survives two hours.
    world.wait(7440);
    assert_eq!(outside(&mut world, external, ACK), Ok(Verdict::Translated));
}

#[test]
fn rfc_5382_req_2_a_connection_from_outside_to_a_mapping_is_followed() {
    let mut world = world(config());
    let external = open(&mut world, 4000);
    let peer = (address("203.0.113.5"), 999);
    let mut syn = tcp(between(peer, external), SYN);
    assert_eq!(world.back(&mut syn), Ok(Verdict::Translated));
    let mut answer = tcp(between((address(ANN), 4000), peer), SYN | ACK);
    assert_eq!(world.out(world.ann, &mut answer), Ok(Verdict::Translated));
    // The first connection closes and ends; the second keeps the mapping.
    inside(&mut world, FIN | ACK).expect("passes");
    outside(&mut world, external, FIN | ACK).expect("passes");
    world.wait(7000);
    let mut data = tcp(between(peer, external), ACK);
    assert_eq!(world.back(&mut data), Ok(Verdict::Translated));
    world.wait(7440);
    assert_eq!(world.nat.counters().mappings, 1);
    world.wait(3);
    assert_eq!(world.nat.counters().mappings, 0);
    assert_eq!(world.nat.counters().sessions, 0);
}

#[test]
fn rfc_5382_req_3_filtering_is_endpoint_independent_or_by_address() {
    let mut world = world(config());
    let external = open(&mut world, 4000);
    let syn = |host: &str| tcp(between((address(host), 99), external), SYN);
    assert_eq!(world.back(&mut syn(DNS)), Ok(Verdict::Translated));
    let mut config = config();
    config.filtering = Filtering::AddressDependent;
    let mut world = super::world(config);
    let external = open(&mut world, 4000);
    let syn = |host: &str| tcp(between((address(host), 99), external), SYN);
    assert_eq!(world.back(&mut syn(DNS)), Err(Discard::Filtered));
    assert_eq!(world.back(&mut syn(WEB)), Ok(Verdict::Translated));
}

#[test]
fn rfc_5382_req_4_an_unsolicited_syn_is_dropped_in_silence() {
    let mut world = world(config());
    let to = (address("192.0.2.1"), 40_000);
    let mut syn = tcp(between((address(WEB), 80), to), SYN);
    assert_eq!(world.back(&mut syn), Err(Discard::NoMapping));
    assert!(!Discard::NoMapping.is_shortage(), "no error is sent");
}

#[test]
fn rfc_5382_req_5_established_lives_2_h_4_min_and_transitory_4_min() {
    let mut world = world(config());
    let external = open(&mut world, 4000);
    world.wait(7440);
    assert_eq!(outside(&mut world, external, ACK), Ok(Verdict::Translated));
    world.wait(7443);
    assert_eq!(outside(&mut world, external, ACK), Err(Discard::NoMapping));
    // Half open.
    let external = world.source(tcp(ends((ANN, 4000), (WEB, 80)), SYN));
    world.wait(240);
    let answer = outside(&mut world, external, SYN | ACK);
    assert_eq!(answer, Ok(Verdict::Translated));
    // Closing.
    inside(&mut world, FIN | ACK).expect("passes");
    outside(&mut world, external, FIN | ACK).expect("passes");
    world.wait(240);
    assert_eq!(inside(&mut world, ACK), Ok(Verdict::Translated));
    world.wait(3);
    assert_eq!(inside(&mut world, ACK), Err(Discard::NotSyn));
}

#[test]
fn rfc_5382_req_5_no_setting_is_below_the_minima() {
    let set: [fn(&mut Config); 3] = [
        |config| config.timeouts.tcp_established = Duration::from_secs(7439),
        |config| config.timeouts.tcp_closing = Duration::from_secs(239),
        |config| config.timeouts.icmp = Duration::from_secs(59),
    ];
    for set in set {
        let mut config = config();
        set(&mut config);
        assert!(Nat::new(config).is_err());
    }
}

#[test]
fn rfc_7857_section_2_1_opening_and_closing_are_set_apart() {
    let mut config = config();
    config.timeouts.tcp_opening = Duration::from_secs(30);
    let mut world = world(config);
    world.source(tcp(ends((ANN, 4000), (WEB, 80)), SYN));
    world.wait(33);
    assert_eq!(world.nat.counters().mappings, 0);
}

#[test]
fn rfc_7857_section_2_2_a_reset_is_translated_and_the_mapping_waits_four_minutes() {
    let mut world = world(config());
    let external = open(&mut world, 4000);
    assert_eq!(outside(&mut world, external, RST), Ok(Verdict::Translated));
    world.wait(240);
    assert_eq!(world.nat.counters().mappings, 1);
    world.wait(3);
    assert_eq!(world.nat.counters().mappings, 0);
    // A reset that the ends ignore does no harm.
    let external = open(&mut world, 4000);
    outside(&mut world, external, RST).expect("passes");
    assert_eq!(inside(&mut world, ACK), Ok(Verdict::Translated));
    world.wait(7440);
    assert_eq!(world.nat.counters().mappings, 1);
}

#[test]
fn rfc_7857_section_7_inbound_packets_that_start_nothing_refresh_nothing() {
    let mut world = world(config());
    let external = world.source(tcp(ends((ANN, 4000), (WEB, 80)), SYN));
    for _ in 0..4 {
        world.wait(60);
        let mut noise = tcp(between((address(DNS), 5), external), ACK);
        let _ = world.back(&mut noise);
    }
    world.wait(3);
    assert_eq!(world.nat.counters().mappings, 0);
}

#[test]
fn rfc_5382_req_8_hairpinned_connections_are_followed_on_both_sides() {
    let mut world = world(config());
    let ann = open(&mut world, 4000);
    let mut syn = tcp(between((address(BOB), 5000), ann), SYN);
    assert_eq!(world.out(world.bob, &mut syn), Ok(Verdict::Hairpin));
    assert_sums(&syn, true);
    let bob = read(&syn).from;
    let mut answer = tcp(between((address(ANN), 4000), bob), SYN | ACK);
    assert_eq!(world.out(world.ann, &mut answer), Ok(Verdict::Hairpin));
    assert_sums(&answer, true);
    assert_eq!(read(&answer), between(ann, (address(BOB), 5000)));
    world.wait(7000);
    let mut data = tcp(between((address(BOB), 5000), ann), ACK);
    assert_eq!(world.out(world.bob, &mut data), Ok(Verdict::Hairpin));
}

#[test]
fn a_segment_without_a_connection_makes_no_mapping() {
    let mut world = world(config());
    assert_eq!(inside(&mut world, ACK), Err(Discard::NotSyn));
    assert_eq!(inside(&mut world, RST), Err(Discard::NotSyn));
    assert_eq!(inside(&mut world, SYN | ACK), Err(Discard::NotSyn));
    assert_eq!(world.nat.counters().mappings, 0);
}

#[test]
fn connections_of_one_mapping_have_a_limit() {
    let mut config = config();
    config.limits.sessions_per_mapping = 3;
    let mut world = world(config);
    for port in 1..=4 {
        world.source(tcp(ends((ANN, 4000), (WEB, port)), SYN));
    }
    let mut packet = tcp(ends((ANN, 4000), (WEB, 5)), SYN);
    let before = packet.clone();
    let result = world.out(world.ann, &mut packet);
    assert_eq!(result, Err(Discard::SessionsFull));
    assert_eq!(packet, before);
}
