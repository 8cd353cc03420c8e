//! Compares the compiled form with the rules checked one after another.

use proptest::prelude::*;
use wire::ip::{Upper, mapped};

use super::*;
use crate::rule::is_damaged;
use crate::{Direction, FilterSet, Names};

/// The tables for ports and, through the table for addresses, for 16-bit numbers: of up to 64 lists, one bit
/// per list that contains the number.
fn tables(lists: &[Vec<Interval<u16>>]) -> (Ports, Ranges<u16>) {
    let mut rows = Rows::new(lists.len());
    let ports = Ports::new(lists.iter().cloned(), &mut rows);
    (ports, Ranges::new(lists.iter().cloned(), &mut rows))
}

fn every_number_finds(lists: &[Vec<Interval<u16>>]) {
    let (ports, ranges) = tables(lists);
    for number in 0..=u16::MAX {
        let bits = ports.find(number);
        assert_eq!(bits, ranges.find(number), "{number}");
        for (rule, list) in lists.iter().enumerate() {
            let is_in = |&(first, last): &Interval<u16>| (first..=last).contains(&number);
            let expected = list.is_empty() || list.iter().any(is_in);
            assert_eq!(bits >> rule & 1 == 1, expected, "{number} in list {rule}");
        }
    }
}

#[test]
fn every_number_finds_the_rules_of_its_interval() {
    every_number_finds(&[
        vec![],
        vec![(0, 0), (u16::MAX, u16::MAX)],
        vec![(80, 80), (443, 443), (80, 90)],
        vec![(0, u16::MAX)],
        vec![(1_000, 2_000), (2_001, 3_000), (500, 1_500)],
        vec![(65_000, u16::MAX)],
    ]);
    every_number_finds(&[vec![(40_000, 40_000)]]);
    every_number_finds(&[vec![(0, 40_000)]]);
    every_number_finds(&[vec![], vec![]]);
}

#[test]
fn intervals_that_are_close_together_and_far_from_others_are_found() {
    let near = |first: u16| (0..40).map(move |n| vec![(first + n * 2, first + n * 2)]);
    for first in [0, 1, 30_001, u16::MAX - 79] {
        let far = [vec![(20_000, 20_000)], vec![(50_000, 50_010)]];
        let lists: Vec<_> = near(first).chain(far).collect();
        every_number_finds(&lists);
    }
}

#[test]
fn no_rules_match_nothing() {
    let (ports, ranges) = tables(&[]);
    assert_eq!((ports.find(0), ranges.find(0)), (0, 0));
    let table = Compiled::<u32>::new(&[]);
    let names = Names::well_known();
    let packet = crate::parse_packet("udp 1.2.3.4:5 > 1.2.3.5:6", &names);
    assert_eq!(table.first_match(&packet.expect("a packet").1), 0);
}

/// Only a few distinct values, so that rules overlap and packets match.
const PREFIXES: [&str; 12] = [
    "any",
    "any",
    "any",
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.3",
    "10.1.2.3,192.0.2.0/24",
    "0.0.0.0/0",
    "10.1.2.250-10.1.3.9",
    "2001:db8::/32",
    "2001:db8::1,10.1.2.0/24",
    "::/0",
];
const HEADS: [&str; 12] = [
    "ip", "ip", "ip4", "ip6", "tcp", "tcp", "udp", "tcp,udp", "icmp", "icmp6", "47", "sctp",
];
const PORTS: [&str; 8] = [
    "",
    "",
    " port 80",
    " port 80,443",
    " port 0-1023",
    " port 1024-65535",
    " port 53",
    " port 0,65535",
];
const OPTIONS: [&str; 8] = [
    "",
    "",
    "",
    "established",
    "flags S/SA",
    "flags F",
    "fragment",
    "icmp-type",
];

fn rule_text() -> impl Strategy<Value = String> {
    let parts = (
        any::<bool>(),
        0..HEADS.len(),
        0..PREFIXES.len(),
        0..PORTS.len(),
        0..PREFIXES.len(),
        0..PORTS.len(),
        0..OPTIONS.len(),
    );
    parts.prop_map(|(accept, head, from, sport, to, dport, option)| {
        let action = if accept { "accept" } else { "deny" };
        let head = HEADS[head];
        let ports = |index: usize| match head {
            "tcp" | "udp" | "tcp,udp" | "sctp" => PORTS[index],
            _ => "",
        };
        let option = match (OPTIONS[option], head) {
            ("icmp-type", "icmp") => "icmp-type 8,3/4,0",
            ("icmp-type", "icmp6") => "icmp-type 128,2",
            (option @ ("established" | "flags S/SA" | "flags F"), "tcp") => option,
            ("fragment", _) if ports(sport).is_empty() && ports(dport).is_empty() => "fragment",
            _ => "",
        };
        format!(
            "{action} {head} from {}{} to {}{} {option}",
            PREFIXES[from],
            ports(sport),
            PREFIXES[to],
            ports(dport)
        )
    })
}

fn address(version: u8) -> impl Strategy<Value = u128> {
    let v4 = prop_oneof![
        Just([10, 1, 2, 3]),
        Just([10, 1, 2, 250]),
        Just([10, 1, 3, 9]),
        Just([10, 1, 3, 10]),
        Just([192, 0, 2, 77]),
        any::<[u8; 4]>(),
    ];
    let v6 = prop_oneof![
        Just(0x2001_0db8_u128 << 96 | 1),
        Just(0x2001_0db8_u128 << 96 | 2),
        any::<u128>(),
        Just(mapped([10, 1, 2, 3])),
    ];
    (v4, v6).prop_map(move |(v4, v6)| match version {
        4 => mapped(v4),
        _ => v6,
    })
}

/// A packet with nothing read after its IP header.
fn bare(version: u8, source: u128, destination: u128, protocol: u8) -> Header {
    Header {
        source,
        destination,
        total_length: 100,
        header_length: 40,
        source_port: 0,
        destination_port: 0,
        fragment_offset: 0,
        version,
        protocol,
        traffic_class: 0,
        hop_limit: 64,
        tcp_flags: 0,
        fragment: Fragment::Whole,
        upper: Upper::Unread,
        dont_fragment: false,
    }
}

fn packet() -> impl Strategy<Value = Header> {
    prop_oneof![Just(4_u8), Just(6)].prop_flat_map(|version| {
        let port = || {
            prop_oneof![
                Just(80_u16),
                Just(443),
                Just(53),
                Just(0),
                Just(u16::MAX),
                any::<u16>()
            ]
        };
        let protocol = prop_oneof![
            Just(6_u8),
            Just(6),
            Just(17),
            Just(1),
            Just(58),
            Just(47),
            Just(132),
            any::<u8>()
        ];
        let kind = prop_oneof![
            Just(0x0800_u16),
            Just(0x0304),
            Just(0x0303),
            Just(0x8000),
            any::<u16>()
        ];
        let fragment = 0..5_u8;
        (
            address(version),
            address(version),
            protocol,
            port(),
            port(),
            kind,
            any::<u8>(),
            fragment,
        )
            .prop_map(
                move |(source, destination, protocol, sport, dport, kind, flags, fragment)| {
                    let mut header = bare(version, source, destination, protocol);
                    header.fragment = match fragment {
                        0 => Fragment::First,
                        1 => Fragment::Later,
                        _ => Fragment::Whole,
                    };
                    if header.fragment == Fragment::Later {
                        header.fragment_offset = 1_480;
                    } else if wire::ip::has_ports(protocol) {
                        header.upper = Upper::Ports;
                        (header.source_port, header.destination_port) = (sport, dport);
                        if protocol == 6 {
                            header.tcp_flags = flags;
                        }
                    } else if matches!(protocol, 1 | 58) {
                        header.upper = Upper::Icmp;
                        header.destination_port = kind;
                    }
                    header
                },
            )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_first_matching_rule_decides(
        rules in prop::collection::vec(rule_text(), 0..200),
        packets in prop::collection::vec(packet(), 64),
        accepts in any::<bool>(),
    ) {
        // Rules whose parts have different versions are refused, so no filter contains them.
        let names = Names::well_known();
        let usable = |rule: &&String| {
            let (_, remarks) = crate::text::parse(&format!("filter x\nin\n{rule}\n"), &names);
            remarks.faults.is_empty()
        };
        let lines: Vec<&String> = rules.iter().filter(usable).collect();
        let mut text = "filter x\nin\n".to_owned();
        for line in &lines {
            text += &format!("{line}\n");
        }
        text += if accepts { "default accept\n" } else { "default deny\n" };
        let (set, _) = FilterSet::parse(&text, &names).expect("each is usable");
        let filter = set.get(set.find("x").expect("it is there")).expect("it is there");
        let rules = filter.rules(Direction::In);
        prop_assert_eq!(rules.len(), lines.len());
        for packet in &packets {
            prop_assert!(!is_damaged(packet));
            let verdict = filter.matches(packet, Direction::In);
            let first = rules.iter().position(|rule| rule.matches(packet));
            prop_assert_eq!(verdict.rule as usize, first.unwrap_or(rules.len()));
            let accept = first.map_or(accepts, |at| rules[at].accept);
            prop_assert_eq!(verdict.accept, accept);
            let explained = filter.explain(packet, Direction::In, &names);
            prop_assert_eq!(explained.steps.len(), first.unwrap_or(rules.len()) + 1);
            prop_assert!(explained.steps.last().expect("one decides").why_not.is_none());
        }
    }
}
