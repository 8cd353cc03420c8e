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

/// The text of a schema, and that of each schema whose fields it includes.
fn with_included(documented: &BTreeMap<String, String>, schema: &str) -> String {
    let own = &documented[schema];
    let included = own.split("the fields of `").skip(1);
    let included = included.filter_map(|rest| documented.get(rest.split('`').next()?));
    included.fold(own.clone(), |all, text| all + text)
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
        if !documented.contains_key(row.schema) {
            missing.push(row.schema.to_owned());
            continue;
        }
        let text = with_included(&documented, row.schema);
        let absent = all
            .iter()
            .filter(|name| !text.contains(&format!("`{name}`")));
        missing.extend(absent.map(|name| format!("{} {name}", row.schema)));
    }
    for (schema, fields) in [
        (Subscriber::SCHEMA, Traffic::FIELDS),
        (QosNodeRow::SCHEMA, QosSums::FIELDS),
        (QOS_SHOWN.schema, QosSums::FIELDS),
        (QOS_SHOWN.schema, QosRates::FIELDS),
    ] {
        let text = with_included(&documented, schema);
        let rates_of_shown = |name: &str| name == "rates" && schema != QOS_SHOWN.schema;
        for field in fields.iter().filter(|field| !rates_of_shown(field.name)) {
            let name = format!("`{}`", field.name);
            assert!(text.contains(&name), "{schema}: {name}");
        }
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
        access: "l2tp",
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
fn a_row_of_a_queue_has_its_fields_in_their_order_and_is_read_again() {
    let row = QosNodeRow {
        schema: QosNodeRow::SCHEMA.to_owned(),
        node: QosNode {
            way: "up".to_owned(),
            kind: "htb".to_owned(),
            is_class: true,
            handle: "1:20".to_owned(),
            parent: None,
            name: Some("own".to_owned()),
            options: String::new(),
            sums: QosSums {
                bytes: u64::MAX,
                rates: Some(QosRates::default()),
                ..QosSums::default()
            },
            details: [("lended".to_owned(), -1)].into(),
            rules: vec![QosRule {
                what: "else".to_owned(),
                class: "1:20".to_owned(),
                name: None,
            }],
        },
    };
    let text = serde_json::to_string(&row).unwrap();
    assert_eq!(
        text,
        "{\"schema\":\"qos.node/1\",\"way\":\"up\",\"kind\":\"htb\",\"is_class\":true,\"handle\":\"1:20\",\
         \"parent\":null,\"name\":\"own\",\"options\":\"\",\"bytes\":18446744073709551615,\"packets\":0,\"drops\":0,\
         \"overlimits\":0,\"requeues\":0,\"backlog\":0,\"qlen\":0,\"ecn_mark\":0,\"rates\":{\"bps\":0,\"pps\":0.0,\
         \"drops_ps\":0.0,\"marks_ps\":0.0},\"details\":{\"lended\":-1},\"rules\":[{\"what\":\"else\",\
         \"class\":\"1:20\"}]}"
    );
    assert_eq!(serde_json::from_str::<QosNodeRow>(&text).unwrap(), row);
    let shown = QosNodeRow::TYPE.shown();
    let shown: Vec<_> = shown.iter().map(|field| field.name).collect();
    assert_eq!(shown, ["bytes", "drops", "qlen", "ecn_mark"]);
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
    let since = found(BgpNeighbor::FIELDS, "since_s");
    assert_eq!(
        (since.heading, since.shown),
        (Some("UP/DOWN"), Shown::Since)
    );
    assert!(found(Tunnel::FIELDS, "window").heading.is_none());
    for row in TYPES {
        assert!(
            row.fields.iter().all(|field| field.help.ends_with('.')),
            "{}",
            row.schema
        );
    }
}
