//! Properties that hold for arbitrary bytes.

use proptest::prelude::*;

use super::*;
use crate::link::LinkType;
use crate::packet::{Packet, decode};

/// A packet in a tunnel, possibly nested.
fn nested(levels: core::ops::Range<usize>) -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let bare = prop_oneof![
        Just(inner4()),
        Just(inner6()),
        Just(ipv4(A, B, 1, &[8; 16])),
        Just(ipv6(0, &extension(6, 1, &udp(1, 2, &[0; 12])))),
        Just(fragment4(A, B, 17, 0x2000, &udp(1, 2, &[0; 24]))),
    ];
    let choices = proptest::collection::vec(any::<prop::sample::Index>(), levels);
    (bare, choices).prop_map(|(bare, choices)| {
        let mut packet = bare.clone();
        for choice in choices {
            let version = packet[0] >> 4;
            packet = choice.get(&tunnels(&packet, version)).1.clone();
        }
        (bare, packet)
    })
}

proptest! {
    #[test]
    fn any_octets_have_keys(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Keys::read_frame(&octets);
        let keys = Keys::read(&octets);
        prop_assert_eq!((keys.vlan, keys.mark), (0, 0));
        let version = octets.first().map_or(0, |first| first >> 4);
        prop_assert!(matches!(version, 4 | 6) || keys == Keys::default());
        let _ = keys.as_kernel();
    }

    #[test]
    fn keys_that_are_replaced_are_those_that_are_read((_, packet) in nested(0..3)) {
        let mut keys = Keys { vlan: 7, mark: 8, ..Keys::read(&inner6()) };
        keys.inner = keys.outer;
        keys.replace(&packet);
        prop_assert_eq!(keys, Keys::read(&packet));
    }

    #[test]
    fn a_tunnels_inner_flow_is_the_outer_flow_of_what_it_carries((bare, packet) in nested(1..5)) {
        prop_assert_eq!(Keys::read(&packet).inner, Keys::read(&bare).outer);
    }

    #[test]
    fn a_packet_read_in_one_pass_has_the_same_inner_flow(
        mut packet in proptest::collection::vec(any::<u8>(), 20..80),
        length in 0u16..90,
        protocol in prop::sample::select(vec![6u8, 17, 4, 1, 51]),
        is_fragment in any::<bool>(),
        port in proptest::option::of(prop::sample::select(vec![1701_u16, 4789])),
    ) {
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        if !is_fragment {
            packet[6..8].fill(0);
        }
        packet[9] = protocol;
        if let Some(port) = port && packet.len() >= 24 {
            packet[22..24].copy_from_slice(&port.to_be_bytes());
        }
        let (mut once, mut general) = (Flow::default(), Flow::default());
        let found = innermost(Inside::Ipv4(&packet), &mut once);
        prop_assert_eq!(found, any_innermost(Inside::Ipv4(&packet), &mut general));
        prop_assert!(found.is_err() || once == general);
    }

    #[test]
    fn more_tunnels_than_four_have_no_inner_flow((_, packet) in nested(5..7)) {
        let keys = Keys::read(&packet);
        prop_assert!(keys.outer.exists());
        prop_assert_eq!(keys.inner, Flow::default());
    }

    #[test]
    fn a_packet_that_is_cut_has_its_flows_whole_or_not_at_all((bare, packet) in nested(0..2)) {
        let whole = Keys::read(&packet);
        for length in 0..packet.len() {
            let keys = Keys::read(&packet[..length]);
            prop_assert!(keys.inner == whole.inner || keys.inner == Flow::default());
            if keys.outer.exists() {
                prop_assert_eq!(keys.outer.source, whole.outer.source);
                prop_assert_eq!(keys.outer.destination, whole.outer.destination);
                prop_assert_eq!(keys.traffic_class, TRAFFIC_CLASS);
                let ports = (keys.outer.source_port, keys.outer.destination_port);
                prop_assert!(ports == (0, 0) || keys.outer == whole.outer);
            }
            if length < packet.len() - bare.len() {
                prop_assert_eq!(keys.inner, Flow::default());
            }
        }
        prop_assert_eq!(Keys::read(&packet[..19]), Keys::default());
    }

    #[test]
    fn octets_that_change_give_some_keys_and_never_others_than_the_octets_say(
        (_, mut packet) in nested(0..4),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        for (at, value) in changes {
            let at = at.index(packet.len());
            packet[at] = value;
        }
        let keys = Keys::read(&packet);
        let holds = |flow: &Flow| {
            let address = |address: &[u8; 16]| {
                let short = address.strip_prefix(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
                let octets = short.unwrap_or(address);
                packet.windows(octets.len()).any(|window| window == octets)
            };
            !flow.exists() || address(&flow.source) && address(&flow.destination)
        };
        prop_assert!(holds(&keys.outer) && holds(&keys.inner));
    }

    #[test]
    fn the_innermost_flow_is_the_one_that_the_analysers_decoder_finds((_, packet) in nested(0..3)) {
        let mut decoded = Packet::new();
        decode(LinkType::RAW, &packet, packet.len() as u32, &mut decoded).expect("a packet");
        let keys = Keys::read(&packet);
        let flow = keys.innermost();
        prop_assert_eq!(flow.source, decoded.source);
        prop_assert_eq!(flow.destination, decoded.destination);
        prop_assert_eq!(flow.protocol, u32::from(decoded.protocol));
    }
}
