//! Messages that we write, read by NetGauze.

use std::collections::HashMap;

use netgauze_bgp_pkt::BgpMessage;

use netgauze_bgp_pkt::path_attribute::{MpReach, MpUnreach, PathAttributeValue};
use netgauze_bgp_pkt::wire::deserializer::BgpParsingContext;
use netgauze_iana::address_family::AddressType;
use netgauze_parse_utils::reader::SliceReader;
use netgauze_parse_utils::traits::ParseFromWithOneInput;
use wire::bgp::{
    AddPathMode, Capability, EXTENDED_MAX, FamilyId, GracefulRestart, MESSAGE_MAX, NextHop, Nlri,
    Notification, Open, Prefix, Refresh, RouteRefresh, UpdateWriter, attr, frame, to_two_octet,
};

/// Every message in `octets`.
fn read(mut octets: &[u8], four_octet: bool, add_path: bool) -> Vec<BgpMessage> {
    let mut messages = Vec::new();
    while let Some((_, _, len)) = frame(octets, EXTENDED_MAX).expect("a header of ours") {
        let ids = [AddressType::Ipv4Unicast, AddressType::Ipv6Unicast];
        let ids = HashMap::from(ids.map(|family| (family, add_path)));
        let mut context =
            BgpParsingContext::new(four_octet, HashMap::new(), ids, true, true, true, true);
        let mut reader = SliceReader::new(&octets[..len]);
        let message = BgpMessage::parse(&mut reader, &mut context).expect("they understand");
        messages.push(message);
        octets = &octets[len..];
    }
    messages
}

/// The routes of messages: announced and withdrawn.
fn routes(messages: &[BgpMessage]) -> [Vec<String>; 2] {
    let [mut announced, mut withdrawn] = [Vec::new(), Vec::new()];
    let line = |prefix: String, id: Option<u32>| format!("{prefix} {}", id.unwrap_or(0));
    for message in messages {
        let BgpMessage::Update(update) = message else {
            panic!("an UPDATE");
        };
        let v4 = |nlri: &netgauze_bgp_pkt::nlri::Ipv4UnicastAddress| {
            line(nlri.network().address().to_string(), nlri.path_id())
        };
        let v6 = |nlri: &netgauze_bgp_pkt::nlri::Ipv6UnicastAddress| {
            line(nlri.network().address().to_string(), nlri.path_id())
        };
        announced.extend(update.nlri().iter().map(v4));
        withdrawn.extend(update.withdraw_routes().iter().map(v4));
        for attribute in update.path_attributes() {
            match attribute.value() {
                PathAttributeValue::MpReach(MpReach::Ipv6Unicast { nlri, .. }) => {
                    announced.extend(nlri.iter().map(v6));
                }
                PathAttributeValue::MpUnreach(MpUnreach::Ipv6Unicast { nlri }) => {
                    withdrawn.extend(nlri.iter().map(v6));
                }
                _ => {}
            }
        }
    }
    [announced, withdrawn]
}

fn attributes() -> Vec<u8> {
    let mut out = Vec::new();
    attr::emit(0x40, attr::code::ORIGIN, &[0], &mut out);
    let path = [2, 2, 0, 1, 0, 0, 0, 0, 0xfb, 0xf0];
    attr::emit(0x40, attr::code::AS_PATH, &path, &mut out);
    attr::put_number(attr::code::MED, 7, &mut out);
    attr::put_number(attr::code::LOCAL_PREF, 100, &mut out);
    attr::emit(0x40, attr::code::ATOMIC_AGGREGATE, &[], &mut out);
    let aggregator = [0, 1, 0, 0, 192, 0, 2, 1];
    attr::emit(0xc0, attr::code::AGGREGATOR, &aggregator, &mut out);
    attr::put_number(attr::code::COMMUNITIES, 0xfbf0_000e, &mut out);
    attr::emit(0xc0, attr::code::LARGE_COMMUNITIES, &[1; 12], &mut out);
    attr::put_number(attr::code::OTC, 64_496, &mut out);
    attr::emit(0xc0, 99, &[7; 300], &mut out);
    out
}

#[test]
fn routes_that_we_write_are_the_routes_that_they_read() {
    for family in FamilyId::ALL {
        for add_path in [false, true] {
            for four_octet in [false, true] {
                let nlri = |index: u32| Nlri {
                    prefix: match family {
                        FamilyId::Ipv4Unicast => Prefix::v4(index << 12, (index % 33) as u8),
                        FamilyId::Ipv6Unicast => {
                            Prefix::v6(u128::from(index) << 90, (index % 129) as u8)
                        }
                    },
                    path_id: if add_path { index } else { 0 },
                };
                let next_hop = match family {
                    FamilyId::Ipv4Unicast => NextHop::V4([192, 0, 2, 1].into()),
                    FamilyId::Ipv6Unicast => NextHop::V6(1.into(), Some(2.into())),
                };
                let mut attributes = attributes();
                if !four_octet {
                    let wide = std::mem::take(&mut attributes);
                    to_two_octet(&wide, &mut attributes);
                }
                let writer = UpdateWriter {
                    message_max: MESSAGE_MAX,
                    add_path: [add_path; 2],
                };
                let all: Vec<Nlri> = (0..3_000).map(nlri).collect();
                let lines: Vec<String> = all
                    .iter()
                    .map(|nlri| format!("{} {}", nlri.prefix, nlri.path_id))
                    .collect();
                let mut out = Vec::new();
                writer
                    .announce(&attributes, next_hop, all.iter().copied(), &mut out)
                    .expect("they fit");
                let [announced, withdrawn] = routes(&read(&out, four_octet, add_path));
                assert!(announced == lines && withdrawn.is_empty());
                out.clear();
                writer.withdraw(family, all.iter().copied(), &mut out);
                let [announced, withdrawn] = routes(&read(&out, four_octet, add_path));
                assert!(withdrawn == lines && announced.is_empty());
            }
        }
    }
}

#[test]
fn an_open_that_we_write_has_the_capabilities_that_they_read() {
    let families = FamilyId::ALL.map(Into::into);
    let mut open = Open::new(65_536, 90, 0xc000_0201);
    open.capabilities.extend([
        Capability::Multiprotocol(families[0]),
        Capability::Multiprotocol(families[1]),
        Capability::RouteRefresh,
        Capability::EnhancedRouteRefresh,
        Capability::ExtendedMessage,
        Capability::Role(3),
        Capability::AddPath(vec![(families[1], AddPathMode::Both)]),
        Capability::GracefulRestart(GracefulRestart {
            restarted: true,
            notification: false,
            time_s: 120,
            families: vec![(families[0], true)],
        }),
    ]);
    let mut out = Vec::new();
    open.emit(&mut out).expect("it fits");
    let messages = read(&out, true, false);
    let [BgpMessage::Open(theirs)] = &messages[..] else {
        panic!("an OPEN");
    };
    assert_eq!(theirs.my_asn4(), 65_536);
    assert_eq!(theirs.hold_time(), 90);
    assert_eq!(theirs.capabilities().len(), open.capabilities.len());
}

#[test]
fn other_messages_that_we_write_are_understood() {
    let mut out = wire::bgp::KEEPALIVE.to_vec();
    Notification::cease(2, "back in 2 hours").emit(&mut out);
    for refresh in [Refresh::Request, Refresh::Begin, Refresh::End] {
        let family = FamilyId::Ipv6Unicast.into();
        RouteRefresh { family, refresh }.emit(&mut out);
    }
    for family in FamilyId::ALL {
        UpdateWriter::end_of_rib(family, &mut out);
    }
    let messages = read(&out, true, false);
    assert_eq!(messages.len(), 7);
    assert!(matches!(messages[0], BgpMessage::KeepAlive));
    assert!(matches!(messages[1], BgpMessage::Notification(_)));
    assert!(matches!(messages[4], BgpMessage::RouteRefresh(_)));
    for end in &messages[5..] {
        let BgpMessage::Update(update) = end else {
            panic!("an UPDATE");
        };
        assert!(update.end_of_rib().is_some());
    }
}
