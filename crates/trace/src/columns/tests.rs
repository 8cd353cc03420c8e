use super::*;
use proptest::prelude::*;
use samples::{connections, run, segments, steps};
use std::fmt::Write;

/// A number in a row; a value of another type counts as absent.
fn number(name: &str, rows: &[Row<'_>; 2]) -> Option<f64> {
    let placed = ALL.iter().find(|placed| placed.name == name).expect(name);
    let row = &rows[placed.side];
    match placed.column.get {
        Get::Count(get) => Some(get(row) as f64),
        Get::Maybe(get) => get(row).map(|value| value as f64),
        Get::Span(get) | Get::Time(get) => get(row).map(|value| value as f64),
        Get::Real(get) => get(row),
        Get::Moment(get) => Some(get(row) as f64),
        Get::Flag(_) | Get::Name(_) | Get::Text(_) => None,
    }
}

/// Columns that must not fall from one to the next where they are there.
const RISING: &[&[&str]] = &[
    &["segment_min", "segment_avg", "segment_max"],
    &["win_adv_min", "win_adv_avg", "win_adv_max"],
    &["win_adv_min", "win_adv_min_nonzero", "win_adv_max"],
    &["owin_min_nonzero", "owin_avg", "owin_max"],
    &["owin_weighted_avg", "owin_max"],
    &["rtt_min_ns", "rtt_avg_ns", "rtt_max_ns"],
    &[
        "rtt_min_ns",
        "rtt_p50_ns",
        "rtt_p90_ns",
        "rtt_p99_ns",
        "rtt_max_ns",
    ],
    &["rtt_full_min_ns", "rtt_full_avg_ns", "rtt_full_max_ns"],
    &[
        "rtt_ambiguous_min_ns",
        "rtt_ambiguous_avg_ns",
        "rtt_ambiguous_max_ns",
    ],
    &[
        "retransmission_time_min_ns",
        "retransmission_time_avg_ns",
        "retransmission_time_max_ns",
    ],
    &["zero_window_longest_ns", "zero_window_total_ns"],
    &["stall_longest_ns", "stall_total_ns"],
    &["unique_bytes", "data_bytes"],
    &["data_packets", "packets"],
];

#[test]
fn every_group_of_bounds_is_checked() {
    for column in direction::COLUMNS {
        let bound = ["_min", "_max", "_avg", "_p50", "_p90", "_p99"]
            .iter()
            .any(|word| column.name.trim_end_matches("_ns").ends_with(word));
        let alone = ["sack_blocks_max", "idle_max_ns", "retransmissions_max"];
        let checked = RISING.iter().any(|group| group.contains(&column.name));
        assert!(
            checked || !bound || alone.contains(&column.name),
            "{}",
            column.name
        );
    }
}

proptest! {
    #[test]
    fn the_least_is_not_above_the_mean_nor_the_mean_above_the_most(steps in steps(150)) {
        let found = run(&segments(&steps), &[], (0, 1));
        for connection in connections(&found) {
            let rows = rows(&connection, found.summary.end());
            for (group, side) in RISING.iter().flat_map(|group| [(group, "a2b"), (group, "b2a")]) {
                let names = group.iter().map(|name| format!("{side}_{name}"));
                let values: Vec<f64> = names.filter_map(|name| number(&name, &rows)).collect();
                prop_assert!(values.is_sorted(), "{side} {group:?}: {values:?}");
            }
        }
    }
}

#[test]
fn a_window_that_was_zero_is_the_smallest() {
    let mut connection = Connection::default();
    let windows = &mut connection.a.windows;
    (windows.min, windows.max, windows.total, windows.count) = (1000, 1200, 2200, 3);
    for zeros in [0, 1] {
        connection.a.windows.zero = zeros;
        let rows = rows(&connection, 0);
        assert_eq!(number("a2b_win_adv_min", &rows), Some(0.0));
        assert_eq!(number("a2b_win_adv_min_nonzero", &rows), Some(1000.0));
        assert_eq!(number("b2a_win_adv_min", &rows), None);
    }
    connection.a.windows.zero = 0;
    connection.a.windows.count = 2;
    assert_eq!(
        number("a2b_win_adv_min", &rows(&connection, 0)),
        Some(1000.0)
    );
}

#[test]
fn the_window_that_is_closed_at_the_end_counts_until_the_last_packet() {
    let mut connection = Connection {
        last_time: 500,
        ..Connection::default()
    };
    let episodes = &mut connection.b.zero_windows;
    (episodes.count, episodes.total, episodes.longest) = (3, 70, 50);
    episodes.since = Some(200);
    let rows = rows(&connection, 9000);
    assert_eq!(number("b2a_zero_window_total_ns", &rows), Some(370.0));
    assert_eq!(number("b2a_zero_window_longest_ns", &rows), Some(300.0));
    assert_eq!(number("a2b_zero_window_total_ns", &rows), None);
}

#[test]
fn names_are_unique_and_lower_case() {
    let mut names: Vec<&str> = ALL.iter().map(|placed| placed.name.as_str()).collect();
    let lower = |name: &&str| {
        name.bytes()
            .all(|octet| matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    assert!(names.iter().all(lower));
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn an_end_that_sent_nothing_has_counts_of_0_and_no_bounds() {
    let connection = Connection::default();
    let rows = rows(&connection, 0);
    for placed in ALL.iter().filter(|placed| placed.side == 1) {
        let value = number(&placed.name, &rows);
        assert!(
            matches!(value, None | Some(0.0)),
            "{}: {value:?}",
            placed.name
        );
        if placed.column.get.may_be_absent() {
            assert_eq!(value, None, "{}", placed.name);
        }
    }
}

fn kind(get: Get) -> (&'static str, &'static str) {
    match get {
        Get::Count(_) | Get::Maybe(_) | Get::Span(_) => ("integer", "int64"),
        Get::Real(_) => ("number", "double"),
        Get::Flag(_) => ("true or false", "boolean"),
        Get::Moment(_) | Get::Time(_) => ("integer, ns since 1970", "timestamp[ns, UTC]"),
        Get::Name(_) | Get::Text(_) => ("string", "string"),
    }
}

/// The rows of the page for some columns.
fn table(columns: &[Column]) -> String {
    let mut out = String::from(
        "| column | JSON type | Parquet type | unit | can be absent | tcptrace | meaning |\n|---|---|---|---|---|---|---|\n",
    );
    for column in columns {
        let (json, parquet) = kind(column.get);
        let absent = if column.get.may_be_absent() {
            "yes"
        } else {
            ""
        };
        let Column {
            name,
            unit,
            tcptrace,
            doc,
            ..
        } = column;
        writeln!(
            out,
            "| `{name}` | {json} | {parquet} | {unit} | {absent} | {tcptrace} | {doc} |"
        )
        .unwrap();
    }
    out
}

/// The page, between what people wrote.
fn page(written: &str) -> String {
    let mut counts = String::from("| field | meaning |\n|---|---|\n");
    for Count { name, doc, .. } in SUMMARY {
        writeln!(counts, "| `{name}` | {doc} |").unwrap();
    }
    let mut page = written.to_owned();
    for (name, table) in [
        ("connection", table(connection::COLUMNS)),
        ("direction", table(direction::COLUMNS)),
        ("details", table(details::CONNECTION)),
        ("details of directions", table(details::DIRECTION)),
        ("summary", counts),
    ] {
        let (begin, end) = (format!("<!-- table {name} -->\n"), "<!-- end -->");
        let start = page.find(&begin).expect(name) + begin.len();
        let length = page[start..].find(end).expect(name);
        page.replace_range(start..start + length, &table);
    }
    page
}

#[test]
fn the_documentation_lists_every_column() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trace-columns.md");
    let written = std::fs::read_to_string(path).unwrap();
    let page = page(&written);
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    } else {
        assert!(
            page == written,
            "run this test once with WRITE_DOCS=1 set, and look at what changed"
        );
    }
    let version = format!("`\"schema\":\"trace.connection/{SCHEMA}\"`");
    assert!(
        page.contains(&version),
        "the page does not tell of {version}"
    );
}
