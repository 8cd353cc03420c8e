//! Files of route collectors: bgpkit-parser must find the same routes with the same attributes.

use std::io::Read;
use std::path::PathBuf;

use bgpkit_parser::models::{Community, ElemType, MetaCommunity};
use bgpkit_parser::{BgpElem, BgpkitParser};
use capfile::mrt::{Body, Message, PeerIndexTable, Reader, Rib};
use wire::bgp::{EXTENDED_MAX, Kind, Nlri, PeerKind, Update, UpdateContext, attr, frame};

fn file(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/bgp");
    let packed = std::fs::read(path.join(name)).expect("the file is there");
    let mut octets = Vec::new();
    flate2::read::MultiGzDecoder::new(&packed[..])
        .read_to_end(&mut octets)
        .expect("gzip");
    octets
}

/// A route as a line, decoded by bgpkit-parser.
fn theirs(elem: &BgpElem) -> String {
    let route = format!("{} {}", elem.peer_ip, elem.prefix.prefix);
    let path_id = elem.prefix.path_id.unwrap_or(0);
    if elem.elem_type == ElemType::WITHDRAW {
        return format!("withdrawn {route} {path_id}");
    }
    let communities: Vec<String> = elem
        .communities
        .iter()
        .flatten()
        .filter_map(|community| match community {
            MetaCommunity::Plain(Community::Custom(asn, value)) => Some(format!("{asn}:{value}")),
            MetaCommunity::Plain(Community::NoExport) => Some("no-export".into()),
            MetaCommunity::Plain(Community::NoAdvertise) => Some("no-advertise".into()),
            MetaCommunity::Plain(Community::NoExportSubConfed) => Some("local-AS".into()),
            MetaCommunity::Extended(_)
            | MetaCommunity::Ipv6Extended(_)
            | MetaCommunity::Large(_) => None,
        })
        .collect();
    format!(
        "{route} {path_id} [{}] {:?} {} {} {} {communities:?} {:?}",
        elem.as_path
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        elem.next_hop,
        elem.origin.map_or(3, |origin| origin as u8),
        // bgpkit-parser uses 0 for an absent value.
        elem.med.unwrap_or(0),
        elem.local_pref.unwrap_or(0),
        elem.aggr_asn.map(u32::from),
    )
}

/// The same, decoded by us.
fn ours(peer: std::net::IpAddr, nlri: Nlri, update: &Update<'_>) -> String {
    let attributes = update.attributes();
    let communities: Vec<String> = attr::communities(attributes)
        .map(|community| match community {
            // bgpkit-parser names three communities.
            attr::Community::NO_EXPORT
            | attr::Community::NO_ADVERTISE
            | attr::Community::NO_EXPORT_SUBCONFED => community.to_string(),
            attr::Community(number) => format!("{}:{}", number >> 16, number & 0xffff),
        })
        .collect();
    format!(
        "{peer} {} {} [{}] {:?} {} {} {} {communities:?} {:?}",
        nlri.prefix,
        nlri.path_id,
        attr::as_path(attributes),
        update
            .next_hop(nlri.prefix.family())
            .map(wire::bgp::NextHop::address),
        attr::find(attributes, attr::code::ORIGIN).map_or(3, |origin| origin.value[0]),
        attr::med(attributes).unwrap_or(0),
        attr::local_pref(attributes).unwrap_or(0),
        attr::aggregator(attributes).map(|(asn, _)| asn),
    )
}

const TABLE: UpdateContext = UpdateContext {
    four_octet: true,
    peer: PeerKind::Internal,
    add_path: [false; 2],
    families: wire::bgp::Families::ALL,
    first_as: None,
};

fn lines_of(octets: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut peers = Vec::new();
    let mut reader = Reader::open(octets).expect("plain");
    while let Some(record) = reader.next_record().expect("a whole file") {
        match record.body {
            Body::PeerIndexTable(PeerIndexTable { peers: table, .. }) => peers = table,
            Body::Rib(rib) => rib_lines(&rib, &peers, &mut lines),
            Body::TableDump(dump) => {
                let context = UpdateContext {
                    four_octet: false,
                    ..TABLE
                };
                let family = dump.prefix.family();
                let update = Update::read_table_entry(dump.attributes, family, &context);
                lines.push(ours(
                    dump.peer,
                    dump.prefix.into(),
                    &update.expect("attributes"),
                ));
            }
            Body::Message(message) => message_lines(&message, &mut lines),
            Body::StateChange(_) | Body::RibGeneric { .. } | Body::Unknown { .. } => {}
        }
    }
    lines
}

fn rib_lines(rib: &Rib<'_>, peers: &[capfile::mrt::Peer], lines: &mut Vec<String>) {
    for entry in rib.entries() {
        let family = rib.prefix.family();
        let update = Update::read_table_entry(entry.attributes, family, &TABLE);
        let nlri = Nlri {
            prefix: rib.prefix,
            path_id: entry.path_id,
        };
        let peer = peers[usize::from(entry.peer_index)].address;
        lines.push(ours(peer, nlri, &update.expect("attributes")));
    }
}

fn message_lines(message: &Message<'_>, lines: &mut Vec<String>) {
    let (kind, body, _) = frame(message.octets, EXTENDED_MAX)
        .expect("a header")
        .expect("whole");
    if kind != Kind::Update {
        return;
    }
    let context = UpdateContext {
        // Excludes attributes that we discard because of the peer's kind.
        peer: PeerKind::External,
        ..message.context()
    };
    let update = Update::read(body, &context).expect("a message that stands");
    let peer = message.session.peer;
    lines.extend(update.announced().map(|nlri| ours(peer, nlri, &update)));
    lines.extend(
        update
            .withdrawn()
            .map(|nlri| format!("withdrawn {peer} {} {}", nlri.prefix, nlri.path_id)),
    );
}

/// Lines found only by bgpkit-parser, and lines found only by us.
fn differences(name: &str) -> (Vec<String>, Vec<String>, usize) {
    let octets = file(name);
    let mut ours = lines_of(&octets);
    let mut theirs: Vec<String> = BgpkitParser::from_reader(&octets[..])
        .into_elem_iter()
        .map(|elem| theirs(&elem))
        .collect();
    ours.sort_unstable();
    theirs.sort_unstable();
    let count = ours.len();
    let (mut only_theirs, mut only_ours) = (Vec::new(), Vec::new());
    let mut walk = ours.into_iter().peekable();
    for line in theirs {
        while let Some(before) = walk.next_if(|ours| *ours < line) {
            only_ours.push(before);
        }
        if walk.next_if_eq(&line).is_none() {
            only_theirs.push(line);
        }
    }
    only_ours.extend(walk);
    (only_theirs, only_ours, count)
}

#[test]
fn files_without_anything_odd_hold_the_same_routes() {
    for (name, count) in [
        ("bview.64k_stream_overflow.gz", 23),
        ("updates.20160811.1600.gz", 41_212),
        ("updates.long_withdrawal.gz", 4_096),
    ] {
        let (theirs, ours, found) = differences(name);
        assert_eq!(found, count, "{name}");
        assert!(theirs.is_empty() && ours.is_empty(), "{name} {theirs:?}");
    }
}

#[test]
fn an_aggregator_of_as_0_is_discarded_by_us_alone() {
    // RFC 7607, section 2.
    let (theirs, ours, count) = differences("bview.20020722.2337.gz");
    assert_eq!((theirs.len(), ours.len(), count), (8, 8, 115_521));
    for (theirs, ours) in theirs.iter().zip(&ours) {
        let route = theirs.strip_suffix("Some(0)").expect("an aggregator");
        assert_eq!(*ours, format!("{route}None"));
    }
}

#[test]
fn path_identifiers_of_a_table_are_read_by_us_alone() {
    let (theirs, ours, count) = differences("bview.ipv4_unicast_add_path.gz");
    assert_eq!((theirs.len(), ours.len(), count), (60, 60, 62));
    // Peer, prefix, path identifier, the rest.
    let without_id = |line: &String| -> String {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.remove(2);
        words.join(" ")
    };
    let mut theirs: Vec<String> = theirs.iter().map(without_id).collect();
    let mut ours: Vec<String> = ours.iter().map(without_id).collect();
    theirs.sort_unstable();
    ours.sort_unstable();
    assert_eq!(ours, theirs);
}

#[test]
fn multicast_routes_are_read_by_them_alone() {
    let (theirs, ours, count) = differences("updates.20070211.0141.gz");
    // 93 messages announce some, 58 withdraw some.
    assert_eq!((theirs.len(), ours.len(), count), (151, 0, 53_506));
}

#[test]
fn ipv6_routes_without_a_next_hop_are_withdrawn_by_us_alone() {
    // RFC 7606, section 3 (e).
    let (theirs, ours, count) = differences("updates.20071015.1505.gz");
    assert_eq!((theirs.len(), ours.len(), count), (21, 21, 10_496));
    assert!(theirs.iter().all(|line| line.contains("Some(::)")));
    assert!(ours.iter().all(|line| line.starts_with("withdrawn ")));
}
