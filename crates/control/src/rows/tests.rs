use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::*;

/// The table "Schemas" of the page of the protocol: the text of each row of the table by its schema.
fn documented() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/control-protocol.md");
    let page = std::fs::read_to_string(path).expect("docs/control-protocol.md");
    let rows = page.lines().filter_map(|line| {
        let (schema, fields) = line.strip_prefix("| `")?.split_once("` | ")?;
        let is_schema = schema.contains('/') && !schema.starts_with('{');
        is_schema.then(|| (schema.to_owned(), fields.to_owned()))
    });
    rows.collect()
}

/// The names of `fields`, and those of the objects among them.
fn names(fields: &[Field], all: &mut Vec<&'static str>) {
    for field in fields {
        match field.kind {
            Kind::Part(part) => {
                all.push(field.name);
                names(part, all);
            }
            // "and the traffic fields": they are listed once.
            Kind::Flat(_) => {}
            _ => all.push(field.name),
        }
    }
}

#[test]
fn each_field_of_each_row_is_on_the_page_of_the_protocol() {
    let documented = documented();
    let mut missing = Vec::new();
    for row in TYPES {
        let mut all = Vec::new();
        names(row.fields, &mut all);
        let Some(text) = documented.get(row.schema) else {
            missing.push(row.schema.to_owned());
            continue;
        };
        let absent = all
            .iter()
            .filter(|name| !text.contains(&format!("`{name}`")));
        missing.extend(absent.map(|name| format!("{} {name}", row.schema)));
    }
    for field in Traffic::FIELDS {
        assert!(documented[Subscriber::SCHEMA].contains(&format!("`{}`", field.name)));
    }
    assert!(missing.is_empty(), "not on the page: {missing:#?}");
}

#[test]
fn the_page_of_the_protocol_names_no_row_that_does_not_exist() {
    let documented = documented();
    let unknown: Vec<_> = documented
        .keys()
        .filter(|schema| row_type(schema).is_none())
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn each_schema_is_of_one_row_and_each_heading_of_one_field() {
    let schemas: HashSet<_> = TYPES.iter().map(|row| row.schema).collect();
    assert_eq!(schemas.len(), TYPES.len());
    for row in TYPES.iter().filter(|row| row.layout == Layout::Table) {
        let shown = row.shown();
        let headings: HashSet<_> = shown.iter().filter_map(|field| field.heading).collect();
        assert!(!headings.is_empty(), "{} shows nothing", row.schema);
        assert_eq!(
            headings.len(),
            shown.len(),
            "{} repeats a heading",
            row.schema
        );
        let upper = |heading: &&str| **heading == heading.to_uppercase();
        assert!(headings.iter().all(upper), "{}: {headings:?}", row.schema);
    }
    for row in TYPES.iter().filter(|row| row.layout == Layout::Own) {
        assert!(
            row.shown().is_empty(),
            "{} has a layout of its own",
            row.schema
        );
    }
}

#[test]
fn a_row_has_the_fields_that_it_declares_in_their_order() {
    let traffic = Traffic {
        packets_in: 1,
        octets_in: 2,
        packets_out: 3,
        octets_out: 4,
        dropped: 5,
    };
    let row = EndedSubscriber {
        schema: EndedSubscriber::SCHEMA,
        name: "alice",
        ended_s_ago: 1.5,
        up_s: None,
        address: None,
        tunnel: 7,
        session: 9,
        account: None,
        age_s: 2.0,
        traffic,
        reason: &"idle",
        terminate_cause: 4,
    };
    let text = serde_json::to_string(&row).unwrap();
    let mut declared = vec!["schema"];
    for field in EndedSubscriber::FIELDS {
        match field.kind {
            Kind::Flat(part) => declared.extend(part.iter().map(|field| field.name)),
            _ => declared.push(field.name),
        }
    }
    let places: Vec<_> = declared
        .iter()
        .map(|name| text.find(&format!("\"{name}\":")).expect(name))
        .collect();
    assert!(places.is_sorted(), "{text}");
    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        written.as_object().map(serde_json::Map::len),
        Some(declared.len())
    );
}

#[test]
fn a_declaration_has_kind_unit_look_and_documentation() {
    let found = |fields: &'static [Field], name: &str| {
        *fields.iter().find(|field| field.name == name).expect(name)
    };
    let lost = found(Tunnel::FIELDS, "retransmissions");
    assert!(matches!(lost.kind, Kind::Counter));
    assert_eq!(lost.help, "Control messages sent again.");
    let uptime = found(Tunnel::FIELDS, "up_s");
    assert_eq!((uptime.unit, uptime.shown), (Unit::Seconds, Shown::Age));
    let hold = found(BgpHold::FIELDS, "hold_time_s");
    assert_eq!((hold.unit, hold.shown), (Unit::Seconds, Shown::Number));
    assert!(found(Tunnel::FIELDS, "window").heading.is_none());
    for row in TYPES {
        assert!(
            row.fields.iter().all(|field| field.help.ends_with('.')),
            "{}",
            row.schema
        );
    }
}
