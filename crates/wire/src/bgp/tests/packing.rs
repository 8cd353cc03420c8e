//! Written UPDATE messages: how many there are, how long they are, and in which order.

use super::messages::hex;
use crate::bgp::*;

const ATTRIBUTES: &str = "40 01 01 00 40 02 06 02 01 0000fbf0 80 04 04 00000001";

fn v4() -> NextHop {
    NextHop::V4([192, 0, 2, 1].into())
}

fn v6() -> NextHop {
    NextHop::V6("2001:db8::1".parse().unwrap(), None)
}

fn routes(family: FamilyId, count: u32) -> Vec<Nlri> {
    (0..count)
        .map(|index| {
            let prefix = match family {
                FamilyId::Ipv4Unicast => Prefix::v4(index << 8, 24),
                FamilyId::Ipv6Unicast => Prefix::v6(u128::from(index) << 80, 48),
            };
            Nlri {
                prefix,
                path_id: index,
            }
        })
        .collect()
}

/// What the messages announce, and how long each is.
fn read(mut octets: &[u8], writer: UpdateWriter) -> (Vec<Nlri>, Vec<Nlri>, Vec<usize>) {
    let context = UpdateContext {
        add_path: writer.add_path,
        ..UpdateContext::default()
    };
    let (mut announced, mut withdrawn, mut lens) = (Vec::new(), Vec::new(), Vec::new());
    while let Some((_, body, len)) = frame(octets, writer.message_max).unwrap() {
        let update = Update::read(body, &context).unwrap();
        assert_eq!(update.faults(), []);
        announced.extend(update.announced());
        withdrawn.extend(update.withdrawn());
        lens.push(len);
        octets = &octets[len..];
    }
    assert!(octets.is_empty());
    (announced, withdrawn, lens)
}

#[test]
fn routes_of_one_set_of_attributes_fill_as_few_messages_as_they_can() {
    for family in FamilyId::ALL {
        for has_ids in [false, true] {
            for message_max in [MESSAGE_MAX, EXTENDED_MAX] {
                let writer = UpdateWriter {
                    message_max,
                    add_path: [has_ids; 2],
                };
                let mut routes = routes(family, 5_000);
                if !has_ids {
                    routes.iter_mut().for_each(|nlri| nlri.path_id = 0);
                }
                let each = encoded_len(routes[0].prefix, has_ids);
                let next_hop = if family == FamilyId::Ipv4Unicast {
                    v4()
                } else {
                    v6()
                };
                let mut out = Vec::new();
                let count = writer
                    .announce(&hex(ATTRIBUTES), next_hop, routes.clone(), &mut out)
                    .unwrap();
                let (announced, _, lens) = read(&out, writer);
                assert_eq!(announced, routes);
                assert_eq!(lens.len(), count);
                let (_, full) = lens.split_last().unwrap();
                assert!(full.iter().all(|len| len + each > message_max));

                out.clear();
                let count = writer.withdraw(family, routes.clone(), &mut out);
                let (_, withdrawn, lens) = read(&out, writer);
                assert_eq!(withdrawn, routes);
                assert_eq!(lens.len(), count);
                let (_, full) = lens.split_last().unwrap();
                assert!(full.iter().all(|len| len + each > message_max));
            }
        }
    }
}

#[test]
fn a_next_hop_takes_the_place_of_the_one_that_is_there() {
    let route = [Nlri::from(Prefix::v4(0x0a00_0000, 8))];
    for (attributes, expected) in [
        (
            "40 01 01 00 40 03 04 01020304 40 02 00",
            "40 01 01 00 40 03 04 c0000201 40 02 00",
        ),
        (
            "40 01 01 00 40 02 00 80 04 04 00000001",
            "40 01 01 00 40 02 00 40 03 04 c0000201 80 04 04 00000001",
        ),
        (
            "80 04 04 00000001 40 03 04 01020304",
            "80 04 04 00000001 40 03 04 c0000201",
        ),
        ("40 01 01 00", "40 01 01 00 40 03 04 c0000201"),
        ("", "40 03 04 c0000201"),
    ] {
        let mut out = Vec::new();
        let writer = UpdateWriter::default();
        writer
            .announce(&hex(attributes), v4(), route, &mut out)
            .unwrap();
        assert_eq!(out[23..out.len() - 2], hex(expected));
        // RFC 4760, section 3: no NEXT_HOP with IPv6 routes.
        out.clear();
        let route = [Nlri::from(Prefix::v6(0, 0))];
        writer
            .announce(&hex(attributes), v6(), route, &mut out)
            .unwrap();
        assert_eq!(attr::find(&out[23..], attr::code::NEXT_HOP), None);
        assert!(attr::find(&out[23..], attr::code::MP_REACH).is_some());
    }
}

#[test]
fn a_message_has_one_family() {
    let v4_routes = routes(FamilyId::Ipv4Unicast, 3);
    let mixed = [v4_routes, routes(FamilyId::Ipv6Unicast, 2)].concat();
    let writer = UpdateWriter::default();
    let mut out = Vec::new();
    let mut walk = mixed.into_iter().peekable();
    let attributes = hex(ATTRIBUTES);
    assert_eq!(
        writer.announce_next(&attributes, v4(), &mut walk, &mut out),
        Ok(3)
    );
    assert_eq!(
        writer.announce_next(&attributes, v4(), &mut walk, &mut out),
        Ok(0)
    );
    assert_eq!(
        writer.withdraw_next(FamilyId::Ipv4Unicast, &mut walk, &mut out),
        0
    );
    assert_eq!(
        writer.withdraw_next(FamilyId::Ipv6Unicast, &mut walk, &mut out),
        2
    );
    let (announced, withdrawn, lens) = read(&out, writer);
    assert_eq!((announced.len(), withdrawn.len(), lens.len()), (3, 2, 2));
}

#[test]
fn attributes_that_leave_no_room_are_refused() {
    for family in FamilyId::ALL {
        let next_hop = if family == FamilyId::Ipv4Unicast {
            v4()
        } else {
            v6()
        };
        let route = routes(family, 1);
        let each = encoded_len(route[0].prefix, false);
        let head = if family == FamilyId::Ipv4Unicast {
            23 + 7
        } else {
            23 + 4 + 21
        };
        let room = MESSAGE_MAX - head - each;
        for (len, is_refused) in [(room - 4, false), (room - 3, true)] {
            let mut attributes = Vec::new();
            attr::emit(0xc0, 99, &vec![7; len], &mut attributes);
            let mut out = vec![1, 2, 3];
            let result =
                UpdateWriter::default().announce(&attributes, next_hop, route.clone(), &mut out);
            assert_eq!(result == Err(TooLong), is_refused, "{family} {len}");
            assert_eq!(out.len(), if is_refused { 3 } else { 3 + MESSAGE_MAX });
        }
    }
}

#[test]
fn an_as_is_prepended_into_the_first_sequence_while_it_has_room() {
    // RFC 4271, section 5.1.2; RFC 5065, section 4.1.
    let prepended = |path: &str, kind, times| {
        let mut out = Vec::new();
        AsPath::new(&hex(path)).emit_prepended(kind, 64_500, times, &mut out);
        AsPath::new(&out).to_string()
    };
    let sequence = SegmentKind::Sequence;
    assert_eq!(prepended("", sequence, 1), "64500");
    assert_eq!(
        prepended("02 01 0000fbf0", sequence, 2),
        "64500 64500 64496"
    );
    assert_eq!(prepended("02 01 0000fbf0", sequence, 0), "64496");
    assert_eq!(prepended("01 01 0000fbf0", sequence, 1), "64500 {64496}");
    let confed = SegmentKind::ConfedSequence;
    assert_eq!(prepended("02 01 0000fbf0", confed, 1), "(64500) 64496");
    let mut full = vec![2, 255];
    full.extend_from_slice(&[0, 0, 0, 1].repeat(255));
    let mut out = Vec::new();
    AsPath::new(&full).emit_prepended(sequence, 64_500, 1, &mut out);
    assert_eq!(out[..8], hex("02 01 0000fbf4 02 ff"));
    assert_eq!(AsPath::new(&out).length(), 256);
}

#[test]
fn a_path_says_where_a_route_comes_from() {
    // RFC 4271, section 9.1.2.2; RFC 5065, section 5.3.
    for (path, text, length, origin, neighbour) in [
        ("", "", 0, None, None),
        ("02 02 00000001 00000002", "1 2", 2, Some(2), Some(1)),
        (
            "02 01 00000001 01 02 00000002 00000003",
            "1 {2,3}",
            2,
            None,
            Some(1),
        ),
        (
            "03 01 0000fc00 02 01 00000001",
            "(64512) 1",
            1,
            Some(1),
            Some(1),
        ),
        ("04 01 0000fc00", "[64512]", 0, None, None),
        ("01 01 00000001", "{1}", 1, None, None),
    ] {
        let octets = hex(path);
        let path = AsPath::new(&octets);
        assert_eq!(path.to_string(), text);
        assert_eq!(path.length(), length, "{text}");
        assert_eq!(path.origin_as(), origin, "{text}");
        assert_eq!(path.neighbour_as(), neighbour, "{text}");
    }
    let octets = hex("02 03 00000001 00000002 00000001");
    assert!(AsPath::new(&octets).contains(2));
    assert!(!AsPath::new(&octets).contains(3));
    assert_eq!(AsPath::new(&octets).count(1), 2);
}

#[test]
fn communities_read_and_write_as_texts() {
    use attr::{Community, ExtCommunity, LargeCommunity};
    for (community, text) in [
        (Community(0xfbf0_000e), "64496:14"),
        (Community::NO_EXPORT, "no-export"),
        (Community::BLACKHOLE, "blackhole"),
    ] {
        assert_eq!(community.to_string(), text);
        assert_eq!(text.parse(), Ok(community));
    }
    for text in ["65536:1", "1", "1:2:3", "+1:2", "no-such", ":", "1:"] {
        assert!(text.parse::<Community>().is_err(), "{text}");
    }
    let large = LargeCommunity([64_496, u32::MAX, 2]);
    assert_eq!(large.to_string(), "64496:4294967295:2");
    assert_eq!("64496:4294967295:2".parse(), Ok(large));
    for (value, text) in [
        (0x0002_fbf0_0000_000e, "RT:64496:14"),
        (0x0103_c000_0201_000e, "SoO:192.0.2.1:14"),
        (0x0202_0001_0000_000e, "RT:65536:14"),
        (0x0606_0000_0000_0001, "0x0606000000000001"),
    ] {
        assert_eq!(ExtCommunity(value).to_string(), text);
    }
    let attributes = hex(
        "c0 08 08 fbf0000e ffffff01 c0 10 08 0002fbf00000000e c0 20 0c 0000fbf0 00000001 00000002
         80 09 04 c0000201 80 0a 08 00000001 00000002 c0 23 04 0000fbf0 40 06 00",
    );
    assert_eq!(attr::communities(&attributes).len(), 2);
    assert_eq!(attr::ext_communities(&attributes).len(), 1);
    let large: Vec<_> = attr::large_communities(&attributes).collect();
    assert_eq!(large, [LargeCommunity([64_496, 1, 2])]);
    assert_eq!(attr::originator_id(&attributes), Some(0xc000_0201));
    assert_eq!(attr::cluster_list(&attributes).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(attr::otc(&attributes), Some(64_496));
    assert!(attr::find(&attributes, attr::code::ATOMIC_AGGREGATE).is_some());
    assert_eq!(attr::med(&attributes), None);
}

#[test]
fn a_long_attribute_gets_a_length_of_two_octets() {
    for (len, head) in [(255, "c0 63 ff"), (256, "d0 63 0100")] {
        let mut out = Vec::new();
        attr::emit(0xc0, 99, &vec![7; len], &mut out);
        let head = hex(head);
        assert_eq!(out[..head.len()], head);
        assert_eq!(attr::find(&out, 99).unwrap().value.len(), len);
    }
}
