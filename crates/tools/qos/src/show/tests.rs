//! Tests both output formats on one shaper.

use super::{table, text};
use crate::rows::fill_rates;
use control::rows::{QOS_SHOWN, QosLane, QosNode, QosPort, QosRun, QosSums, QosWay};

fn sums(packets: u64) -> QosSums {
    QosSums {
        bytes: packets * 1_000,
        packets,
        drops: 2,
        overlimits: 3,
        requeues: 0,
        backlog: 5_000,
        qlen: 5,
        ecn_mark: 1,
        rates: None,
    }
}

fn node(handle: &str, parent: Option<&str>, kind: &str, name: Option<&str>) -> QosNode {
    QosNode {
        way: "up".into(),
        kind: kind.into(),
        is_class: name.is_some(),
        handle: handle.into(),
        parent: parent.map(str::to_owned),
        name: name.map(str::to_owned),
        options: "limit 9p".into(),
        sums: sums(100),
        details: [("new_flow_count".to_owned(), 7)].into(),
        rules: Vec::new(),
    }
}

fn port(name: &str) -> QosPort {
    let zero = serde_json::json!({
        "name": name, "received": 1, "received_bytes": 2, "received_large": 3, "missed": 4, "no_room": 5, "sent": 6,
        "sent_bytes": 7, "refused": 8, "blocked": 9, "downs": 10, "faults": 11
    });
    serde_json::from_value(zero).expect("a port")
}

fn run(packets: u64, taken_ns: u64) -> QosRun {
    let way = QosWay {
        rate_bps: Some(2_300_000),
        file_bps: Some(2_300_000),
        line_bps: None,
        least_bps: Some(12_000),
        sums: sums(packets),
        lane: QosLane {
            packets,
            no_room: 4,
            ..QosLane::default()
        },
        nodes: vec![
            node("1:", None, "htb", None),
            node("1:1", Some("1:"), "htb", Some("link")),
            node("1:20", Some("1:1"), "htb", Some("evil\u{1b}[2J")),
            node("1:30", Some("1:1"), "htb", Some("own")),
            node("20:", Some("1:20"), "fair", None),
        ],
    };
    QosRun {
        schema: QOS_SHOWN.schema.into(),
        pid: 7,
        policy: "home.toml".into(),
        policy_age_s: 4.2,
        reloads: 1,
        uptime_s: 185.0,
        taken_ns,
        interval_s: None,
        down: QosWay {
            nodes: Vec::new(),
            rate_bps: None,
            ..way.clone()
        },
        up: way,
        lan: port("lan0"),
        wan: port("wan0"),
        frames: 5,
        frames_max: 900,
    }
}

#[test]
fn the_text_is_as_tc_prints_with_names_rates_lanes_and_ports() {
    let before = run(0, 1_000_000_000);
    let mut now = run(1_000, 2_000_000_000);
    now.up.nodes[4].sums.packets += 50;
    fill_rates(&mut now, &before);
    let text = text::text(&now);
    for line in [
        "lan0 <-> wan0, pid 7, up 3m05s, home.toml since 4.2s (1 reloads)",
        "up: lan0 -> wan0, rate 2300Kbit, now 8.00 Mbit/s, 1000 p/s",
        "down: wan0 -> lan0, not shaped, now 8.00 Mbit/s, 1000 p/s",
        "qdisc htb 1: root limit 9p",
        " Sent 100000 bytes 100 pkt (dropped 2, overlimits 3 requeues 0)",
        " rate 0 bit/s 0pps backlog 5000b 5p requeues 0 ecn_mark 1",
        " rate 0 bit/s 50pps backlog 5000b 5p requeues 0 ecn_mark 1",
        "  new_flow_count 7",
        "class htb 1:1 root \"link\" limit 9p",
        "class htb 1:20 parent 1:1 leaf 20: \"evil [2J\" limit 9p",
        "qdisc fair 20: parent 1:20 limit 9p",
        "frames 5 of 900",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
    assert!(text.contains("\nlane packets 1000 past 0 "), "{text}");
    assert!(
        text.contains("\nport wan0 received 1 received_bytes 2 "),
        "{text}"
    );
}

#[test]
fn the_table_has_a_line_for_each_queue_below_what_it_stands_in() {
    let before = run(0, 1_000_000_000);
    let mut now = run(1_000, 2_000_000_000);
    fill_rates(&mut now, &before);
    let table = table::table(&now);
    assert!(!table.contains('\u{1b}'));
    let names: Vec<&str> = table
        .lines()
        .filter(|line| line.contains(" bit/s"))
        .map(|line| {
            line.split("  0 bit/s")
                .next()
                .unwrap_or_default()
                .trim_end()
        })
        .collect();
    let expected = [
        "1: htb",
        "  1:1 link",
        "    1:20 evil [2J",
        "      20: fair",
        "    1:30 own",
    ];
    assert_eq!(names, expected, "{table}");
    assert!(
        table.contains("lost beside the queues: no_room 4"),
        "{table}"
    );
    let width = |begin: &str| table.lines().find(|line| line.starts_with(begin));
    let columns = |line: Option<&str>| line.map(|line| line.chars().count());
    assert_eq!(columns(width("1: htb ")), columns(width("      20: fair ")));
    assert_eq!(
        columns(table.lines().find(|line| line.contains("dropped/s"))),
        columns(width("1: htb "))
    );
}

#[test]
fn another_process_gives_no_rates_and_a_document_is_read_again() {
    let before = run(0, 1_000_000_000);
    let mut now = run(1_000, 2_000_000_000);
    now.pid = 8;
    fill_rates(&mut now, &before);
    assert_eq!((now.interval_s, now.up.sums.rates), (None, None));
    now.pid = 7;
    fill_rates(&mut now, &before);
    let text = serde_json::to_string(&now).expect("JSON");
    assert_eq!(
        serde_json::from_str::<QosRun>(&text).expect("a document"),
        now
    );
}
