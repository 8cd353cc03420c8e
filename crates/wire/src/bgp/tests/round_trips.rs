//! Written messages can be read back, read messages can be written again, and no bytes cause a panic.

use crate::bgp::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn family() -> impl Strategy<Value = AfiSafi> {
    (0u16..4, 0u8..3).prop_map(|(afi, safi)| AfiSafi { afi, safi })
}

fn capability() -> impl Strategy<Value = Capability> {
    prop_oneof![
        family().prop_map(Capability::Multiprotocol),
        Just(Capability::RouteRefresh),
        Just(Capability::ExtendedMessage),
        Just(Capability::EnhancedRouteRefresh),
        any::<u8>().prop_map(Capability::Role),
        (1u32..).prop_map(Capability::FourOctetAs),
        (
            any::<bool>(),
            any::<bool>(),
            0u16..4_096,
            vec((family(), any::<bool>()), 0..4)
        )
            .prop_map(|(restarted, notification, time_s, families)| {
                Capability::GracefulRestart(GracefulRestart {
                    restarted,
                    notification,
                    time_s,
                    families,
                })
            }),
        vec(
            (family(), 1u8..4).prop_map(|(family, mode)| {
                (family, AddPathMode::from_number(mode).expect("1 to 3"))
            }),
            0..4
        )
        .prop_map(Capability::AddPath),
        (vec(any::<u8>(), 0..9), vec(any::<u8>(), 0..9))
            .prop_map(|(host, domain)| Capability::Fqdn { host, domain }),
        (100u8.., vec(any::<u8>(), 0..40))
            .prop_map(|(code, value)| Capability::Unknown { code, value }),
    ]
}

prop_compose! {
    fn nlri(family: FamilyId)(address: u128, len in 0..=family.bits(), path_id: u32) -> Nlri {
        let prefix = match family {
            FamilyId::Ipv4Unicast => Prefix::v4(address as u32, len),
            FamilyId::Ipv6Unicast => Prefix::v6(address, len),
        };
        Nlri { prefix, path_id }
    }
}

fn routes() -> impl Strategy<Value = (FamilyId, Vec<Nlri>)> {
    prop_oneof![
        vec(nlri(FamilyId::Ipv4Unicast), 1..900).prop_map(|n| (FamilyId::Ipv4Unicast, n)),
        vec(nlri(FamilyId::Ipv6Unicast), 1..300).prop_map(|n| (FamilyId::Ipv6Unicast, n)),
    ]
}

prop_compose! {
    fn context()(
        four_octet: bool,
        peer in prop_oneof![
            Just(PeerKind::External),
            Just(PeerKind::Confederation),
            Just(PeerKind::Internal),
        ],
        add_path: [bool; 2],
        families in prop_oneof![Just(Families::ALL), Just(Families::IPV4)],
    ) -> UpdateContext {
        UpdateContext { four_octet, peer, add_path, families, first_as: None }
    }
}

proptest! {
    #[test]
    fn an_open_that_is_written_is_read(
        asn in 1u32..,
        hold_time_s in 3u16..,
        router_id in 1u32..,
        capabilities in vec(capability(), 0..12),
    ) {
        let mut open = Open::new(asn, hold_time_s, router_id);
        open.capabilities.extend(capabilities);
        let mut out = Vec::new();
        open.emit(&mut out).unwrap();
        let (kind, body, len) = frame(&out, MESSAGE_MAX).unwrap().unwrap();
        prop_assert_eq!((kind, len), (Kind::Open, out.len()));
        prop_assert_eq!(Open::read(body), Ok(open));
    }

    #[test]
    fn routes_that_are_written_are_read(
        (family, mut routes) in routes(),
        has_ids: bool,
        message_max in 200usize..5_000,
        med: u32,
    ) {
        if !has_ids {
            routes.iter_mut().for_each(|nlri| nlri.path_id = 0);
        }
        let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2, 0];
        attr::put_number(attr::code::MED, med, &mut attributes);
        let next_hop = match family {
            FamilyId::Ipv4Unicast => NextHop::V4([192, 0, 2, 1].into()),
            FamilyId::Ipv6Unicast => NextHop::V6(1.into(), Some(2.into())),
        };
        let writer = UpdateWriter { message_max, add_path: [has_ids; 2] };
        let context = UpdateContext { add_path: [has_ids; 2], ..UpdateContext::default() };
        let mut out = Vec::new();
        let announced = writer.announce(&attributes, next_hop, routes.clone(), &mut out).unwrap();
        let withdrawn = writer.withdraw(family, routes.clone(), &mut out);
        let mut octets = &out[..];
        let (mut read, mut unread, mut messages) = (Vec::new(), Vec::new(), 0);
        while let Some((_, body, len)) = frame(octets, message_max).unwrap() {
            let update = Update::read(body, &context).unwrap();
            prop_assert_eq!(update.faults(), []);
            if !update.announced().is_empty() {
                prop_assert_eq!(update.next_hop(family), Some(next_hop));
                prop_assert_eq!(attr::med(update.attributes()), Some(med));
            }
            read.extend(update.announced());
            unread.extend(update.withdrawn());
            octets = &octets[len..];
            messages += 1;
        }
        prop_assert_eq!(messages, announced + withdrawn);
        prop_assert_eq!(&read, &routes);
        prop_assert_eq!(unread, routes);
    }

    #[test]
    fn no_octets_cause_a_panic(body in vec(any::<u8>(), 0..120), context in context()) {
        let _ = Open::read(&body);
        let _ = RouteRefresh::read(&body);
        if let Ok(notification) = Notification::read(&body) {
            let mut out = Vec::new();
            notification.emit(&mut out);
            prop_assert_eq!(&out[HEADER_LEN..], body.clone());
        }
        if let Ok(update) = Update::read(&body, &context) {
            let _ = update.announced().chain(update.withdrawn()).count();
        }
        let _ = Update::read_table_entry(&body, FamilyId::Ipv6Unicast, &context);
    }

    #[test]
    fn a_path_of_two_octets_keeps_its_length_both_ways(
        segments in vec((1u8..3, vec(1u32..200_000, 1..9)), 0..5),
        aggregator in proptest::option::of(1u32..200_000),
    ) {
        let mut path = Vec::new();
        for (kind, asns) in &segments {
            path.extend_from_slice(&[*kind, asns.len() as u8]);
            for asn in asns {
                path.extend_from_slice(&asn.to_be_bytes());
            }
        }
        let mut attributes = vec![0x40, 1, 1, 0];
        attr::emit(0x40, attr::code::AS_PATH, &path, &mut attributes);
        attr::emit(0x40, attr::code::NEXT_HOP, &[192, 0, 2, 1], &mut attributes);
        attr::emit(0x40, attr::code::LOCAL_PREF, &[0, 0, 0, 1], &mut attributes);
        if let Some(asn) = aggregator {
            let mut value = asn.to_be_bytes().to_vec();
            value.extend_from_slice(&[192, 0, 2, 2]);
            attr::emit(0xc0, attr::code::AGGREGATOR, &value, &mut attributes);
        }
        let mut narrow = vec![0, 0, 0, 0];
        to_two_octet(&attributes, &mut narrow);
        let len = (narrow.len() - 4) as u16;
        narrow[2..4].copy_from_slice(&len.to_be_bytes());
        narrow.push(0);
        let context = UpdateContext {
            four_octet: false,
            peer: PeerKind::Internal,
            ..UpdateContext::default()
        };
        let update = Update::read(&narrow, &context).unwrap();
        prop_assert_eq!(update.faults(), []);
        prop_assert_eq!(update.attributes(), attributes);
    }
}
