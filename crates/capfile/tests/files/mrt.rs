//! Files of route collectors, read whole; `testdata/bgp/README.md` lists their sources.

use std::collections::BTreeMap;
use std::path::PathBuf;

use capfile::mrt::{Body, Entry, Reader, Record, Writer, table_attributes};
use wire::bgp::{Kind, PeerKind, Update, UpdateContext, frame};

fn file(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/bgp");
    std::fs::read(path.join(name)).expect("the file is there")
}

/// Counts of a file's contents, by name.
type Counts = BTreeMap<String, usize>;

fn count(octets: &[u8]) -> Counts {
    let mut counts = Counts::new();
    let mut reader = Reader::open(octets).expect("gzip");
    loop {
        match reader.next_record() {
            Ok(None) => return counts,
            Ok(Some(record)) => count_record(&record, &mut counts),
            Err(fault) => *counts.entry(fault.what.to_string()).or_default() += 1,
        }
    }
}

fn count_record(record: &Record<'_>, counts: &mut Counts) {
    let mut add = |name: String, count: usize| {
        if count > 0 {
            *counts.entry(name).or_default() += count;
        }
    };
    // What a table keeps may have come from inside.
    let table = UpdateContext {
        peer: PeerKind::Internal,
        ..UpdateContext::default()
    };
    match &record.body {
        Body::PeerIndexTable(table) => add("peers".into(), table.peers.len()),
        Body::Rib(rib) => {
            add("prefixes".into(), 1);
            for entry in rib.entries() {
                let family = rib.prefix.family();
                let update = Update::read_table_entry(entry.attributes, family, &table);
                let update = update.expect("attributes");
                for fault in update.faults() {
                    add(fault.to_string(), 1);
                }
                add("routes".into(), 1);
            }
        }
        Body::TableDump(dump) => {
            let context = UpdateContext {
                four_octet: false,
                ..table
            };
            let family = dump.prefix.family();
            let update = Update::read_table_entry(dump.attributes, family, &context);
            let update = update.expect("attributes");
            add("routes".into(), 1);
            for fault in update.faults() {
                add(fault.to_string(), 1);
            }
        }
        Body::Message(message) => {
            let (kind, body, _) = frame(message.octets, 65_535)
                .expect("a header")
                .expect("a whole message");
            add(format!("{kind:?}"), 1);
            if kind == Kind::Update {
                match Update::read(body, &message.context()) {
                    Err(notification) => add(notification.to_string(), 1),
                    Ok(update) => {
                        add("announced".into(), update.announced().count());
                        add("withdrawn".into(), update.withdrawn().count());
                        for fault in update.faults() {
                            add(fault.to_string(), 1);
                        }
                    }
                }
            }
        }
        Body::StateChange(_) => add("state changes".into(), 1),
        Body::RibGeneric { .. } => add("generic".into(), 1),
        Body::Unknown { kind, subtype, .. } => add(format!("type {kind}.{subtype}"), 1),
    }
}

fn assert_counts(name: &str, expected: &[(&str, usize)]) {
    let expected = expected
        .iter()
        .map(|&(what, count)| (what.to_owned(), count))
        .collect();
    assert_eq!(count(&file(name)), expected, "{name}");
}

#[test]
fn tables_of_collectors_hold_what_they_hold() {
    let zero = "attribute 7 (AGGREGATOR): AS 0 (RFC 7607, section 2: attribute discard)";
    assert_counts("bview.20020722.2337.gz", &[(zero, 8), ("routes", 115_521)]);
    assert_counts(
        "bview.64k_stream_overflow.gz",
        &[("peers", 54), ("prefixes", 1), ("routes", 23)],
    );
    // Two routes are the collector's own, and have no attributes at all.
    assert_counts(
        "bview.ipv4_unicast_add_path.gz",
        &[
            (
                "attribute 1 (ORIGIN): is missing (RFC 7606, section 3 (d): treat-as-withdraw)",
                2,
            ),
            (
                "attribute 2 (AS_PATH): is missing (RFC 7606, section 3 (d): treat-as-withdraw)",
                2,
            ),
            (
                "attribute 3 (NEXT_HOP): is missing (RFC 7606, section 3 (d): treat-as-withdraw)",
                2,
            ),
            ("peers", 3),
            ("prefixes", 31),
            ("routes", 62),
        ],
    );
}

#[test]
fn updates_of_collectors_hold_what_they_hold() {
    // Multicast routes of 2007.
    let family = |code: u8| {
        format!(
            "attribute {code} ({}): a family that was not agreed on (RFC 4760, section 8: attribute discard)",
            wire::bgp::attr::row(code).name
        )
    };
    assert_counts(
        "updates.20070211.0141.gz",
        &[
            ("Update", 23_394),
            ("announced", 51_236),
            ("withdrawn", 2_270),
            (&family(14), 93),
            (&family(15), 58),
        ],
    );
    // A peer that announces IPv6 routes with the next hop `::`.
    let no_host = "attribute 14 (MP_REACH_NLRI): not the address of a host (RFC 7606, section 3 (e): treat-as-withdraw)";
    assert_counts(
        "updates.20071015.1505.gz",
        &[
            ("Keepalive", 75),
            ("Update", 4_222),
            ("announced", 10_090),
            (no_host, 21),
            ("withdrawn", 406),
        ],
    );
    assert_counts(
        "updates.20160811.1600.gz",
        &[
            ("Keepalive", 168),
            ("Update", 17_216),
            ("announced", 39_256),
            ("state changes", 22),
            ("withdrawn", 1_956),
        ],
    );
}

#[test]
fn messages_made_to_break_readers_do_not() {
    assert_counts(
        "updates.long_withdrawal.gz",
        &[("Update", 1), ("withdrawn", 4_096)],
    );
    // A second prefix starts after the one with excess bits, and does not fit.
    assert_counts(
        "updates.nlri_mask_trailing_bits.gz",
        &[
            ("UPDATE Message Error/Invalid Network Field", 1),
            ("Update", 1),
        ],
    );
}

#[test]
fn every_record_that_can_be_written_is_written_as_it_was() {
    for name in [
        "updates.20070211.0141.gz",
        "updates.20160811.1600.gz",
        "bview.ipv4_unicast_add_path.gz",
    ] {
        let octets = file(name);
        let mut plain = Vec::new();
        std::io::Read::read_to_end(
            &mut flate2::read::MultiGzDecoder::new(&octets[..]),
            &mut plain,
        )
        .expect("gzip");
        let mut writer = Writer::new(Vec::new());
        let mut reader = Reader::open(&octets[..]).expect("gzip");
        while let Some(record) = reader.next_record().expect("a whole file") {
            let time_s = record.time.s;
            match &record.body {
                Body::PeerIndexTable(table) => writer.peer_index_table(time_s, table),
                Body::Rib(rib) => {
                    let entries = rib.entries();
                    writer.rib(time_s, rib.sequence, rib.prefix, rib.add_path, entries)
                }
                Body::Message(message) => writer.message(record.time, message),
                Body::StateChange(change) => writer.state_change(record.time, change),
                other => panic!("{other:?}"),
            }
            .expect("to memory");
        }
        assert!(writer.into_inner() == plain, "{name}");
    }
}

/// A table as a set: prefix, peer, attributes, next hop.
type Routes = Vec<(String, u16, Vec<u8>, String)>;

/// Reads a table in the old format and writes its routes in the new one.
fn rewritten(octets: &[u8]) -> (Routes, Vec<u8>) {
    let context = UpdateContext {
        four_octet: false,
        peer: PeerKind::Internal,
        ..UpdateContext::default()
    };
    let mut routes = Routes::new();
    let mut writer = Writer::new(Vec::new());
    let mut reader = Reader::open(octets).expect("gzip");
    while let Some(record) = reader.next_record().expect("a whole file") {
        let Body::TableDump(dump) = record.body else {
            continue;
        };
        let family = dump.prefix.family();
        let update = Update::read_table_entry(dump.attributes, family, &context).expect("good");
        let next_hop = update.next_hop(family).expect("a next hop");
        let mut attributes = Vec::new();
        table_attributes(update.attributes(), next_hop, &mut attributes);
        let entry = Entry {
            peer_index: dump.peer_asn,
            originated_s: dump.originated_s,
            path_id: 0,
            attributes: &attributes,
        };
        let sequence = u32::from(dump.sequence);
        writer
            .rib(record.time.s, sequence, dump.prefix, false, [entry])
            .expect("to memory");
        routes.push((
            dump.prefix.to_string(),
            dump.peer_asn,
            update.attributes().to_vec(),
            next_hop.to_string(),
        ));
    }
    (routes, writer.into_inner())
}

#[test]
fn a_table_that_is_written_again_holds_the_same_routes() {
    let (routes, octets) = rewritten(&file("bview.20020722.2337.gz"));
    let context = UpdateContext {
        peer: PeerKind::Internal,
        ..UpdateContext::default()
    };
    let mut again = Routes::new();
    let mut reader = Reader::open(&octets[..]).expect("plain");
    while let Some(record) = reader.next_record().expect("a whole file") {
        let Body::Rib(rib) = record.body else {
            panic!("routes only");
        };
        let family = rib.prefix.family();
        for entry in rib.entries() {
            let update =
                Update::read_table_entry(entry.attributes, family, &context).expect("good");
            assert_eq!(update.faults(), []);
            again.push((
                rib.prefix.to_string(),
                entry.peer_index,
                update.attributes().to_vec(),
                update.next_hop(family).expect("a next hop").to_string(),
            ));
        }
    }
    assert_eq!(routes.len(), 115_521);
    assert!(routes == again);
}
