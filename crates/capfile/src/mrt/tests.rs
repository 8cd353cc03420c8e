//! The examples of RFC 6396 both ways; every subtype written and read; files that are broken.

use std::net::IpAddr;

use proptest::prelude::*;
use wire::bgp::{FamilyId, NextHop, Prefix, Update, UpdateContext, attr, frame};

use super::*;

/// Bytes from hexadecimal digits separated by blanks.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|octet| !octet.is_ascii_whitespace())
        .map(|digit| char::from(digit).to_digit(16).expect("a digit") as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// The only record of a file.
fn only(octets: &[u8], check: impl FnOnce(&Record<'_>)) {
    let mut reader = Reader::open(octets).unwrap();
    check(&reader.next_record().unwrap().unwrap());
    assert!(reader.next_record().unwrap().is_none());
}

fn written(write: impl FnOnce(&mut Writer<&mut Vec<u8>>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out));
    out
}

const TIME_S: u32 = 1_300_475_700;

#[test]
fn a_message_of_rfc_6396_reads_and_writes() {
    // Appendix A, figure 16, whose Total Path Attribute Length is 31 there, four too few.
    let octets = hex(
        "4d83af34 0010 0004 00000052 0000fbf0 0000fbf1 0000 0001 c0000255 c6336404
         ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff
         00 3e 02 00 00 00 23 40 01 01 02 40 02 0e 02 03
         00 00 fb f0 00 00 fb ff 00 00 fb f6 40 03 04 c6
         33 64 55 c0 08 04 fb f0 00 0e 18 cb 00 71",
    );
    only(&octets, |record| {
        assert_eq!(
            record.time,
            Time {
                s: TIME_S,
                us: None
            }
        );
        let Body::Message(message) = &record.body else {
            panic!("a message");
        };
        let session = message.session;
        assert_eq!((session.peer_asn, session.local_asn), (64_496, 64_497));
        assert_eq!(session.peer, IpAddr::from([192, 0, 2, 85]));
        assert_eq!(session.local, IpAddr::from([198, 51, 100, 4]));
        assert!(message.four_octet && !message.add_path && !message.is_local);
        let (_, body, _) = frame(message.octets, 4_096).unwrap().unwrap();
        let update = Update::read(body, &message.context()).unwrap();
        assert_eq!(update.announced().count(), 1);
        let again = written(|writer| writer.message(record.time, message).unwrap());
        assert_eq!(again, octets);
    });
}

#[test]
fn a_peer_index_table_of_rfc_6396_reads_and_writes() {
    // Appendix A, figure 18.
    let octets = hex("4d83af34 000d 0001 00000022 c6336404 0000 0002
         02 c6336405 c6336405 00010005
         02 c0000221 c0000221 00010006");
    only(&octets, |record| {
        let Body::PeerIndexTable(table) = &record.body else {
            panic!("a table of peers");
        };
        assert_eq!(table.collector_id, 0xc633_6404);
        let peer = |router_id: u32, asn| Peer {
            router_id,
            address: IpAddr::from(router_id.to_be_bytes()),
            asn,
        };
        let peers = [peer(0xc633_6405, 65_541), peer(0xc000_0221, 65_542)];
        assert_eq!(table.peers, peers);
        let again = written(|writer| writer.peer_index_table(TIME_S, table).unwrap());
        assert_eq!(again, octets);
    });
}

const TABLE: UpdateContext = UpdateContext {
    four_octet: true,
    peer: wire::bgp::PeerKind::External,
    add_path: [false; 2],
    families: wire::bgp::Families::ALL,
    first_as: None,
};

#[test]
fn a_route_of_rfc_6396_reads_and_writes() {
    // Appendix A, figure 19, where MP_REACH_NLRI is whole in spite of section 4.3.4.
    let octets = hex(
        "4d83af34 000d 0004 00000057 0000002a 20 20010db8 0001 000f 4d83af34 0044
         40 01 01 00 50 02 00 0e 02 03 00 00 fb f0 00 00
         fb ff 00 00 fb f6 80 0e 2b 00 02 01 20 20 01 0d
         b8 00 0d 00 ff 00 00 00 00 00 00 01 87 fe 80 00
         00 00 00 00 00 02 12 f2 ff fe 9f 1b 00 00 00 20
         20 01 0d b8",
    );
    let mut canonical = Vec::new();
    let mut expected_next_hop = None;
    only(&octets, |record| {
        let Body::Rib(rib) = &record.body else {
            panic!("routes");
        };
        assert_eq!((rib.sequence, rib.entry_count()), (42, 1));
        assert_eq!(rib.prefix.to_string(), "2001:db8::/32");
        let entry = rib.entries().next().unwrap();
        assert_eq!((entry.peer_index, entry.originated_s), (15, TIME_S));
        let update = Update::read_table_entry(entry.attributes, FamilyId::Ipv6Unicast, &TABLE);
        let update = update.unwrap();
        assert_eq!(update.faults(), []);
        let path = attr::as_path(update.attributes()).to_string();
        assert_eq!(path, "64496 64511 64502");
        let next_hop = NextHop::V6(
            "2001:db8:d:ff::187".parse().unwrap(),
            Some("fe80::212:f2ff:fe9f:1b00".parse().unwrap()),
        );
        assert_eq!(update.next_hop(FamilyId::Ipv6Unicast), Some(next_hop));
        canonical = update.attributes().to_vec();
        expected_next_hop = Some(next_hop);
        let again = written(|writer| {
            let (sequence, prefix) = (rib.sequence, rib.prefix);
            writer
                .rib(TIME_S, sequence, prefix, false, rib.entries())
                .unwrap();
        });
        assert_eq!(again, octets);
    });
    // As section 4.3.4 has it.
    let mut attributes = Vec::new();
    table_attributes(&canonical, expected_next_hop.unwrap(), &mut attributes);
    assert_eq!(
        attributes,
        hex("40 01 01 00 50 02 00 0e 02 03 00 00 fb f0 00 00
             fb ff 00 00 fb f6 80 0e 21 20 20 01 0d
             b8 00 0d 00 ff 00 00 00 00 00 00 01 87 fe 80 00
             00 00 00 00 00 02 12 f2 ff fe 9f 1b 00")
    );
    let update = Update::read_table_entry(&attributes, FamilyId::Ipv6Unicast, &TABLE).unwrap();
    assert_eq!(update.next_hop(FamilyId::Ipv6Unicast), expected_next_hop);
    assert_eq!(update.attributes(), canonical);
}

#[test]
fn an_ipv4_next_hop_stands_in_the_attributes() {
    let canonical = hex("40 01 01 00 40 02 00 80 04 04 00000001");
    let next_hop = NextHop::V4([192, 0, 2, 1].into());
    let mut attributes = Vec::new();
    table_attributes(&canonical, next_hop, &mut attributes);
    let expected = "40 01 01 00 40 02 00 40 03 04 c0000201 80 04 04 00000001";
    assert_eq!(attributes, hex(expected));
    let update = Update::read_table_entry(&attributes, FamilyId::Ipv4Unicast, &TABLE).unwrap();
    assert_eq!(update.next_hop(FamilyId::Ipv4Unicast), Some(next_hop));
    assert_eq!(update.faults(), []);
    // Earlier contents are replaced.
    let mut again = Vec::new();
    table_attributes(&attributes, next_hop, &mut again);
    assert_eq!(again, attributes);
}

#[test]
fn routes_of_every_family_read_and_write() {
    for (prefix, add_path) in [
        ("0.0.0.0/0", false),
        ("192.0.2.0/23", true),
        ("::/0", true),
        ("2001:db8::/33", false),
        ("2001:db8::1/128", true),
    ] {
        let prefix: Prefix = prefix.parse().unwrap();
        let entry = |index: u16| Entry {
            peer_index: index,
            originated_s: 7,
            path_id: if add_path { 100 + u32::from(index) } else { 0 },
            attributes: &[0x40, 1, 1, 0],
        };
        let octets = written(|writer| {
            writer
                .rib(TIME_S, 9, prefix, add_path, (0..3).map(entry))
                .unwrap();
        });
        only(&octets, |record| {
            let Body::Rib(rib) = &record.body else {
                panic!("routes");
            };
            assert_eq!((rib.prefix, rib.add_path), (prefix, add_path));
            let entries: Vec<_> = rib.entries().collect();
            assert_eq!(entries, [entry(0), entry(1), entry(2)]);
        });
    }
}

fn session() -> impl Strategy<Value = Session> {
    let addresses = prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
        any::<([u8; 16], [u8; 16])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
    ];
    (any::<u32>(), any::<u32>(), any::<u16>(), addresses).prop_map(
        |(peer_asn, local_asn, interface, (peer, local))| Session {
            peer_asn,
            local_asn,
            interface,
            peer,
            local,
        },
    )
}

proptest! {
    #[test]
    fn messages_and_changes_of_state_that_are_written_are_read(
        mut session in session(),
        us in proptest::option::of(0u32..1_000_000),
        four_octet: bool,
        add_path: bool,
        is_local: bool,
        octets: Vec<u8>,
        old: u16,
        new: u16,
    ) {
        if !four_octet {
            session.peer_asn &= 0xffff;
            session.local_asn &= 0xffff;
        }
        let time = Time { s: TIME_S, us };
        let message = Message { session, four_octet, add_path, is_local, octets: &octets };
        let change = StateChange { session, four_octet, old, new };
        let file = written(|writer| {
            writer.message(time, &message).unwrap();
            writer.state_change(time, &change).unwrap();
        });
        let mut reader = Reader::open(&file[..]).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        prop_assert_eq!(record, Record { offset: 0, time, body: Body::Message(message) });
        let record = reader.next_record().unwrap().unwrap();
        prop_assert_eq!((record.time, record.body), (time, Body::StateChange(change)));
        prop_assert!(reader.next_record().unwrap().is_none());
    }

    #[test]
    fn no_octets_cause_a_panic(octets: Vec<u8>, kind in 11u16..18, subtype in 0u16..13) {
        let mut file = vec![0; 4];
        file.extend_from_slice(&kind.to_be_bytes());
        file.extend_from_slice(&subtype.to_be_bytes());
        file.extend_from_slice(&(octets.len() as u32).to_be_bytes());
        file.extend_from_slice(&octets);
        let mut reader = Reader::open(&file[..]).unwrap();
        let _ = reader.next_record();
        prop_assert!(reader.next_record().unwrap().is_none());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut writer = Writer::new(Vec::new());
    let mut session = Session {
        peer_asn: 65_536,
        local_asn: 1,
        interface: 0,
        peer: [192, 0, 2, 1].into(),
        local: [192, 0, 2, 2].into(),
    };
    let time = Time { s: 0, us: None };
    let message = |session, four_octet| Message {
        session,
        four_octet,
        add_path: false,
        is_local: false,
        octets: &[],
    };
    assert!(writer.message(time, &message(session, false)).is_err());
    assert!(writer.message(time, &message(session, true)).is_ok());
    session.local = "::1".parse().unwrap();
    assert!(writer.message(time, &message(session, true)).is_err());
    let entry = Entry {
        peer_index: 0,
        originated_s: 0,
        path_id: 0,
        attributes: &[],
    };
    let prefix = Prefix::v4(0, 0);
    let mut rib = |count| writer.rib(0, 0, prefix, false, std::iter::repeat_n(entry, count));
    assert!(rib(65_535).is_ok());
    assert!(rib(65_536).is_err());
    // A rejected record was not written in part.
    let file = writer.into_inner();
    let mut reader = Reader::open(&file[..]).unwrap();
    assert!(reader.next_record().unwrap().is_some());
    assert!(reader.next_record().unwrap().is_some());
    assert!(reader.next_record().unwrap().is_none());
}

const GOOD: &str = "4d83af34 000d 0001 00000008 c6336404 0000 0000";

#[test]
fn a_bad_record_does_not_end_the_file() {
    for (bad, kind, subtype) in [
        // Fewer peers than the count, and bytes after them.
        ("4d83af34 000d 0001 00000008 c6336404 0000 0001", 13, 1),
        ("4d83af34 000d 0001 00000009 c6336404 0000 0000 00", 13, 1),
        ("4d83af34 000d 0001 00000008 c6336404 0003 0000", 13, 1),
        // A prefix of 33 bits; an entry too few; one too long; one too many.
        ("4d83af34 000d 0002 00000007 00000000 21 0000", 13, 2),
        ("4d83af34 000d 0002 00000007 00000000 00 0001", 13, 2),
        (
            "4d83af34 000d 0002 0000000f 00000000 00 0001 0000 00000000 0001",
            13,
            2,
        ),
        (
            "4d83af34 000d 0002 0000000f 00000000 00 0000 0000 00000000 0000",
            13,
            2,
        ),
        // TABLE_DUMP cut; BGP4MP of a family that is none, without microseconds, with too much.
        ("4d83af34 000c 0001 00000004 00000000", 12, 1),
        (
            "4d83af34 0010 0001 00000010 fbf0 fbf1 0000 0003 00000000 00000000",
            16,
            1,
        ),
        ("4d83af34 0011 0001 00000002 0000", 17, 1),
        (
            "4d83af34 0010 0000 00000015 fbf0 fbf1 0000 0001 00000000 00000000 0001 0002 00",
            16,
            0,
        ),
    ] {
        let file = [hex(GOOD), hex(bad), hex(GOOD)].concat();
        let mut reader = Reader::open(&file[..]).unwrap();
        assert!(reader.next_record().unwrap().is_some());
        let fault = reader.next_record().unwrap_err();
        assert_eq!(fault.offset, 20);
        let is_it = matches!(fault.what, What::Malformed { kind: k, subtype: s } if (k, s) == (kind, subtype));
        assert!(is_it, "{bad}: {fault}");
        let last = reader.next_record().unwrap().unwrap();
        assert_eq!(last.offset, file.len() as u64 - 20);
        assert!(reader.next_record().unwrap().is_none());
    }
}

#[test]
fn a_file_that_ends_inside_a_record_says_where_that_begins() {
    let file = [hex(GOOD), hex(GOOD)].concat();
    for len in 21..40 {
        let mut reader = Reader::open(&file[..len]).unwrap();
        assert!(reader.next_record().unwrap().is_some());
        let fault = reader.next_record().unwrap_err();
        assert_eq!(fault.offset, 20);
        assert!(matches!(fault.what, What::Truncated));
        assert!(reader.next_record().unwrap().is_none());
    }
}

#[test]
fn a_length_that_cannot_be_ends_the_file() {
    let file = hex("4d83af34 000d 0001 ffffffff c6336404");
    let mut reader = Reader::open(&file[..]).unwrap();
    let fault = reader.next_record().unwrap_err();
    assert!(matches!(fault.what, What::TooLong(u32::MAX)));
    assert!(reader.next_record().unwrap().is_none());
}

#[test]
fn other_types_are_given_as_octets() {
    for (octets, kind, subtype) in [
        ("00000000 000b 0000 00000002 abcd", 11, 0),
        ("00000000 000c 0003 00000002 abcd", 12, 3),
        ("00000000 000d 0007 00000002 abcd", 13, 7),
        ("00000000 0010 0002 00000002 abcd", 16, 2),
        ("00000000 0030 0000 00000002 abcd", 48, 0),
    ] {
        only(&hex(octets), |record| {
            let octets = &[0xab, 0xcd][..];
            let expected = Body::Unknown {
                kind,
                subtype,
                octets,
            };
            assert_eq!(record.body, expected);
        });
    }
    only(
        &hex("00000000 000d 000c 00000009 00000001 0001 80 abcd"),
        |record| {
            let expected = Body::RibGeneric {
                sequence: 1,
                family: wire::bgp::AfiSafi { afi: 1, safi: 128 },
                add_path: true,
                octets: &[0xab, 0xcd],
            };
            assert_eq!(record.body, expected);
        },
    );
    let mut reader = Reader::open(&b""[..]).unwrap();
    assert!(reader.next_record().unwrap().is_none());
}
