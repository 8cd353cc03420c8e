//! RFC 5508, by requirement.

use super::*;
use crate::nat::testing::{assert_sums, ends, error, fix_header, ip, query, quote, read, tcp, udp};

#[test]
fn rfc_5508_req_1_queries_and_their_replies_pass_by_identifier() {
    for (request, reply) in [(8, 0), (13, 14), (17, 18)] {
        let mut world = world(config());
        let external = world.source(query(ends((ANN, 77), (WEB, 0)), request));
        let other = world.source(query(ends((ANN, 77), (DNS, 0)), request));
        assert_eq!(external, other, "REQ-1a");
        let mut answer = query(between((address(WEB), external.1), (external.0, 0)), reply);
        assert_eq!(world.back(&mut answer), Ok(Verdict::Translated));
        assert_sums(&answer, true);
        assert_eq!(read(&answer).to, (address(ANN), 77));
        // A query from outside has no mapping, whatever its identifier.
        let mut asks = query(
            between((address(WEB), external.1), (external.0, 0)),
            request,
        );
        assert_eq!(world.back(&mut asks), Err(Discard::NoMapping));
    }
}

#[test]
fn rfc_5508_req_2_a_query_mapping_lives_sixty_seconds() {
    let mut world = world(config());
    let external = world.source(query(ends((ANN, 77), (WEB, 0)), 8));
    let answer = || query(between((address(WEB), external.1), (external.0, 0)), 0);
    world.wait(60);
    assert_eq!(world.back(&mut answer()), Ok(Verdict::Translated));
    world.wait(3);
    assert_eq!(world.back(&mut answer()), Err(Discard::NoMapping));
}

/// A packet of Ann's as the web server sees it.
fn sent(world: &mut World, packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    assert_eq!(world.out(world.ann, &mut packet), Ok(Verdict::Translated));
    packet
}

#[test]
fn rfc_5508_req_3_damaged_errors_are_dropped() {
    let mut world = world(config());
    let seen = sent(&mut world, &udp(ends((ANN, 4000), (WEB, 80)), b"hello"));
    let external = read(&seen).from.0.to_string();
    let mut bad = error(WEB, &external, 3, &seen);
    bad[22] ^= 1;
    assert_eq!(world.back(&mut bad), Err(Discard::IcmpDamaged));
    let mut quoted = seen.clone();
    quoted[10] ^= 1;
    let mut bad = error(WEB, &external, 3, &quoted);
    assert_eq!(world.back(&mut bad), Err(Discard::IcmpDamaged), "REQ-3a");
    // REQ-3c: the quoted transport checksum is nobody's business here.
    let mut quoted = seen;
    quoted[26] ^= 1;
    let mut good = error(WEB, &external, 3, &quoted);
    assert_eq!(world.back(&mut good), Ok(Verdict::Translated));
    assert_sums(&good, true);
}

#[test]
fn rfc_5508_req_3b_options_of_the_quoted_packet_are_passed_over() {
    let mut world = world(config());
    let plain = udp(ends((ANN, 4000), (WEB, 80)), b"hello");
    let with_options = ip(ends((ANN, 4000), (WEB, 80)), 17, 3, &plain[20..]);
    let seen = sent(&mut world, &with_options);
    let mut back = error(WEB, &read(&seen).from.0.to_string(), 11, &seen);
    assert_eq!(world.back(&mut back), Ok(Verdict::Translated));
    assert_sums(&back, true);
    assert_eq!(read(quote(&back)).from, (address(ANN), 4000));
}

#[test]
fn rfc_5508_req_3d_extensions_behind_the_quote_stay() {
    let mut world = world(config());
    let seen = sent(&mut world, &udp(ends((ANN, 4000), (WEB, 80)), &[5; 100]));
    let mut quoted = seen.clone();
    quoted.extend([0x20, 0, 0xab, 0xcd, 0, 8, 1, 1, 9, 9, 9, 9]);
    let mut back = error(WEB, &read(&seen).from.0.to_string(), 3, &quoted);
    assert_eq!(world.back(&mut back), Ok(Verdict::Translated));
    assert_sums(&back, true);
    assert!(back.ends_with(&[1, 1, 9, 9, 9, 9]));
}

#[test]
fn rfc_5508_req_4_an_error_from_outside_quotes_what_the_host_sent() {
    let to = (WEB, 80);
    let packets = [
        udp(ends((ANN, 4000), to), b"hello"),
        tcp(ends((ANN, 4000), to), 2),
        query(ends((ANN, 4000), (WEB, 0)), 8),
    ];
    for (packet, kind) in packets
        .iter()
        .flat_map(|one| [(one, 3), (one, 11), (one, 12)])
    {
        for length in [28, packet.len()] {
            let mut world = world(config());
            let seen = sent(&mut world, packet);
            let external = read(&seen).from.0.to_string();
            // From a router on the way, cut to the least that RFC 792 has.
            let mut back = error("203.0.113.1", &external, kind, &seen[..length]);
            assert_eq!(world.back(&mut back), Ok(Verdict::Translated));
            assert_sums(&back, true);
            assert_eq!(back[20], kind, "REQ-4b");
            assert_eq!(back[12..16], [203, 0, 113, 1]);
            assert_eq!(read(&back).to.0, address(ANN), "REQ-4c");
            assert_eq!(read(quote(&back)), read(packet), "REQ-4a");
            assert_eq!(wire::checksum::ip_ok(quote(&back)), Some(true));
            if length == packet.len() {
                assert_sums(quote(&back), true);
            }
        }
    }
}

#[test]
fn rfc_5508_req_4_an_error_without_a_mapping_is_dropped() {
    let mut world = world(config());
    let nobody = udp(ends(("192.0.2.1", 4000), (WEB, 80)), b"x");
    let mut back = error(WEB, "192.0.2.1", 3, &nobody);
    let before = back.clone();
    assert_eq!(world.back(&mut back), Err(Discard::NoMapping));
    assert_eq!(back, before);
}

#[test]
fn rfc_5508_req_5_an_error_from_inside_has_an_external_source() {
    let mut world = world(config());
    let external = world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x"));
    let mut answer = udp(between((address(WEB), 80), external), b"too late");
    let outer = answer.clone();
    assert_eq!(world.back(&mut answer), Ok(Verdict::Translated));
    // From the host itself, and from a router behind it.
    for from in [ANN, "100.64.0.99"] {
        let mut back = error(from, WEB, 3, &answer);
        assert_eq!(world.out(world.ann, &mut back), Ok(Verdict::Translated));
        assert_sums(&back, true);
        assert_eq!(read(&back).from.0, external.0, "REQ-5c");
        assert_eq!(read(quote(&back)), read(&outer), "REQ-5a");
        assert_sums(quote(&back), true);
    }
    let stray = udp(ends((WEB, 80), (ANN, 4999)), b"x");
    let mut back = error(ANN, WEB, 3, &stray);
    assert_eq!(world.out(world.ann, &mut back), Err(Discard::NoMapping));
}

#[test]
fn rfc_5508_req_6_rfc_4787_req_12_errors_neither_refresh_nor_end_a_mapping() {
    let mut world = world(config());
    let seen = sent(&mut world, &udp(ends((ANN, 4000), (WEB, 80)), b"x"));
    let external = read(&seen).from.0.to_string();
    for _ in 0..5 {
        world.wait(60);
        let mut back = error(WEB, &external, 3, &seen);
        assert_eq!(world.back(&mut back), Ok(Verdict::Translated));
    }
    world.wait(3);
    let mut back = error(WEB, &external, 3, &seen);
    assert_eq!(world.back(&mut back), Err(Discard::NoMapping));
}

#[test]
fn rfc_5508_req_7_errors_are_hairpinned() {
    let mut world = world(config());
    let ann = world.source(udp(ends((ANN, 4000), (WEB, 80)), b"x"));
    let mut packet = udp(between((address(BOB), 5000), ann), b"hello");
    let sent = packet.clone();
    assert_eq!(world.out(world.bob, &mut packet), Ok(Verdict::Hairpin));
    let bob = read(&packet).from.0.to_string();
    let mut back = error(ANN, &bob, 3, &packet);
    assert_eq!(world.out(world.ann, &mut back), Ok(Verdict::Hairpin));
    assert_sums(&back, true);
    assert_eq!(read(&back).from.0, ann.0);
    assert_eq!(read(&back).to.0, address(BOB), "REQ-7a");
    assert_eq!(read(quote(&back)), read(&sent));
    assert_sums(quote(&back), true);
}

#[test]
fn rfc_5508_req_10_and_11_other_messages_are_dropped() {
    let mut world = world(config());
    for kind in [4, 5, 9, 10, 15, 16, 30, 42] {
        let mut packet = query(ends((ANN, 1), (WEB, 0)), kind);
        assert_eq!(world.out(world.ann, &mut packet), Err(Discard::IcmpType));
    }
}

#[test]
fn an_error_about_a_later_fragment_is_dropped() {
    let mut world = world(config());
    let mut seen = sent(&mut world, &udp(ends((ANN, 4000), (WEB, 80)), b"x"));
    seen[7] = 9;
    fix_header(&mut seen);
    let mut back = error(WEB, &read(&seen).from.0.to_string(), 3, &seen);
    assert_eq!(world.back(&mut back), Err(Discard::NoMapping));
}
