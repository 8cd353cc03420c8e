//! Rows to text, with expectations written by hand from the formats' texts.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::rows::Families;
use super::text::Format;
use crate::link::Rows;

fn text(rows: &[Value], format: Format) -> String {
    let rows = rows.iter().map(|row| row.to_string().into()).collect();
    let mut families = Families::default();
    families.add_rows(&Rows { rows, more: false });
    families.text(format)
}

fn now() -> Value {
    json!({
        "schema": "now/1", "at_s": 1.5, "uptime_s": 7.25,
        "subscribers": {"by_state": {"link": 1, "up": 99_999}, "came_up": 18_446_744_073_709_551_615_u64,
            "ended": {"User-Request": 3}, "refused": {"a \"b\"\\\nc": 2}},
        "tunnels": {"by_state": {"established": 5}, "sessions": 6, "retransmissions": 7},
        "pools": [{"name": "p", "size": 8, "used": 9}],
        "radius": {"outstanding": 1, "waiting": 2, "failed": 3,
            "round_trips": {"1000": 4, "500": 2, "64000000": 1, "inf": 1}, "round_trips_us": 70_000_500.0},
        "traffic": {"packets_in": 1, "octets_in": 2, "packets_out": 3, "octets_out": 4, "dropped": {}},
        "event_loop": {"waited_s": 1.5, "busy_s": 0.5, "handlers_s": {"udp": 0.25}, "lateness": {"inf": 0},
            "lateness_us": 0.0, "overruns": 2},
        "bgp": {"peers": 2, "established": 1, "prefixes": 1000, "updates_in": 5, "updates_out": 6, "hold_margin_s": null},
        "rss_bytes": 4096
    })
}

#[test]
fn a_row_becomes_prometheus_text() {
    let text = text(&[now()], Format::Prometheus);
    let expected = r#"# HELP headend_uptime_seconds Time since the daemon started.
# TYPE headend_uptime_seconds gauge
headend_uptime_seconds 7.25
# HELP headend_subscribers Subscribers by state: `link`, `asking`, `networks`, `up`, `ending`.
# TYPE headend_subscribers gauge
headend_subscribers{state="link"} 1
headend_subscribers{state="up"} 99999
# HELP headend_subscribers_came_up_total Sessions that came up.
# TYPE headend_subscribers_came_up_total counter
headend_subscribers_came_up_total 18446744073709551615
# HELP headend_subscribers_ended_total Sessions that ended, by Acct-Terminate-Cause.
# TYPE headend_subscribers_ended_total counter
headend_subscribers_ended_total{cause="User-Request"} 3
# HELP headend_subscribers_refused_total Admissions that failed, by reason.
# TYPE headend_subscribers_refused_total counter
headend_subscribers_refused_total{reason="a \"b\"\\\nc"} 2
# HELP headend_tunnels Tunnels by state: `opening`, `established`, `closing`.
# TYPE headend_tunnels gauge
headend_tunnels{state="established"} 5
# HELP headend_tunnels_sessions Established sessions of all tunnels.
# TYPE headend_tunnels_sessions gauge
headend_tunnels_sessions 6
# HELP headend_tunnels_retransmissions_total Control messages sent again.
# TYPE headend_tunnels_retransmissions_total counter
headend_tunnels_retransmissions_total 7
# HELP headend_radius_round_trip_seconds Round trips of RADIUS requests.
# TYPE headend_radius_round_trip_seconds histogram
headend_radius_round_trip_seconds_bucket{le="0.0005"} 2
headend_radius_round_trip_seconds_bucket{le="0.001"} 6
headend_radius_round_trip_seconds_bucket{le="64.0"} 7
headend_radius_round_trip_seconds_bucket{le="+Inf"} 8
headend_radius_round_trip_seconds_sum 70.0005
headend_radius_round_trip_seconds_count 8
# HELP headend_traffic_packets_in_total Packets from subscribers.
# TYPE headend_traffic_packets_in_total counter
headend_traffic_packets_in_total 1
# HELP headend_traffic_in_bytes_total Bytes from subscribers.
# TYPE headend_traffic_in_bytes_total counter
headend_traffic_in_bytes_total 2
"#;
    assert!(text.starts_with(expected), "{text}");
    for line in [
        "headend_event_loop_waited_seconds_total 1.5",
        "headend_event_loop_lateness_seconds_bucket{le=\"+Inf\"} 0",
        "headend_event_loop_overruns_total 2",
        "headend_bgp_established 1",
        "headend_rss_bytes 4096",
    ] {
        assert!(
            text.lines().any(|known| known == line),
            "{line} is not in\n{text}"
        );
    }
    for absent in [
        "hold_margin",
        "at_seconds",
        "headend_pool",
        "EOF",
        "UNIT",
        "null",
        "# TYPE headend_traffic_dropped",
    ] {
        assert!(!text.contains(absent), "{absent} is in\n{text}");
    }
}

#[test]
fn openmetrics_declares_units_and_ends() {
    let text = text(&[now()], Format::OpenMetrics);
    let expected = "# HELP headend_traffic_in_bytes Bytes from subscribers.\n\
        # TYPE headend_traffic_in_bytes counter\n\
        # UNIT headend_traffic_in_bytes bytes\n\
        headend_traffic_in_bytes_total 2\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("# TYPE headend_radius_round_trip_seconds histogram\n# UNIT headend_radius_round_trip_seconds seconds\n"));
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
}

#[test]
fn ids_are_labels_and_units_are_base_units() {
    let rows = [
        json!({"schema": "pool/1", "name": "home", "sticky": true, "size": 10, "used": 3, "taken": 12}),
        json!({"schema": "radius.server/1", "name": "r1", "purpose": "authentication", "address": "192.0.2.1:1812",
            "state": "alive", "rtt_us": 250.0, "rtt_last_us": null, "ignored_because": {"late": 1}}),
        json!({"schema": "event.handler/1", "name": "udp", "calls": 4, "total_us": 1500, "mean_us": 375, "longest_us": 900}),
        json!({"schema": "bgp.neighbor/1", "address": "192.0.2.7", "version": 4, "asn": 65001, "name": null,
            "state": "Established", "state_or_prefixes": "9", "since_s": 60, "prefixes_in": 9, "messages_in": 5}),
        json!({"schema": "bgp.neighbor/1", "address": "192.0.2.8", "version": 4, "asn": 65002, "name": "up\\2",
            "state": "Idle", "state_or_prefixes": "Idle (stopped)", "since_s": null, "prefixes_in": 0, "messages_in": 0}),
        json!({"schema": "qos.run/1", "pid": 7, "up": {"rate_bps": 1_000_000, "bytes": 5, "backlog": 6, "lane": {"full": 2}},
            "lan": {"name": "eth0", "received": 3, "received_bytes": 4}}),
        json!({"schema": "qos.node/1", "way": "up", "kind": "fq_codel", "handle": "1:", "name": "games", "bytes": 8,
            "details": {"new_flows": 1}}),
        json!({"schema": "unknown/7", "name": "x", "size": 1}),
        json!({"schema": "subscriber/1", "name": "alice", "packets_in": 1}),
    ];
    let text = text(&rows, Format::Prometheus);
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = [
        "headend_pool_size{pool=\"home\"} 10",
        "headend_pool_used{pool=\"home\"} 3",
        "headend_pool_leased_total{pool=\"home\"} 12",
        "headend_radius_server_state{server=\"r1\",purpose=\"authentication\",state=\"alive\"} 1",
        "headend_radius_server_rtt_seconds{server=\"r1\",purpose=\"authentication\"} 0.00025",
        "headend_radius_server_ignored_because_total{server=\"r1\",purpose=\"authentication\",reason=\"late\"} 1",
        "headend_event_handler_calls_total{handler=\"udp\"} 4",
        "headend_event_handler_busy_seconds_total{handler=\"udp\"} 0.0015",
        "headend_event_handler_longest_seconds{handler=\"udp\"} 0.0009",
        "headend_bgp_neighbor_messages_in_total{address=\"192.0.2.7\",asn=\"65001\"} 5",
        "headend_bgp_neighbor_messages_in_total{address=\"192.0.2.8\",asn=\"65002\",peer=\"up\\\\2\"} 0",
        "headend_bgp_neighbor_since_seconds{address=\"192.0.2.7\",asn=\"65001\"} 60",
        "headend_bgp_neighbor_state{address=\"192.0.2.7\",asn=\"65001\",state=\"Established\"} 1",
        "headend_bgp_neighbor_state{address=\"192.0.2.8\",asn=\"65002\",peer=\"up\\\\2\",state=\"Idle (stopped)\"} 1",
        "headend_bgp_neighbor_prefixes_in{address=\"192.0.2.7\",asn=\"65001\"} 9",
        "headend_bgp_neighbor_prefixes_in{address=\"192.0.2.8\",asn=\"65002\",peer=\"up\\\\2\"} 0",
        "headend_qos_up_rate_bytes_per_second 125000.0",
        "headend_qos_up_bytes_total 5",
        "headend_qos_up_backlog_bytes 6",
        "headend_qos_up_lane_full_total 2",
        "headend_qos_lan_received_total{name=\"eth0\"} 3",
        "headend_qos_lan_received_bytes_total{name=\"eth0\"} 4",
        "headend_qos_node_bytes_total{way=\"up\",kind=\"fq_codel\",class=\"games\"} 8",
        "headend_qos_node_details{way=\"up\",kind=\"fq_codel\",class=\"games\",detail=\"new_flows\"} 1",
    ];
    assert_eq!(samples, expected);
}

#[test]
fn a_set_of_labels_occurs_once() {
    let row = json!({"schema": "pool/1", "name": "home", "size": 1});
    let text = text(&[row.clone(), row], Format::Prometheus);
    assert_eq!(text.matches("\nheadend_pool_size").count(), 1, "{text}");
}

#[test]
fn the_better_liked_format_is_chosen() {
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,\
                      text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    for (accept, format) in [
        ("", Format::Prometheus),
        ("*/*", Format::Prometheus),
        ("text/html", Format::Prometheus),
        ("text/plain;version=0.0.4", Format::Prometheus),
        (prometheus, Format::OpenMetrics),
        (
            "application/openmetrics-text; version=1.0.0",
            Format::OpenMetrics,
        ),
        (
            "application/openmetrics-text; version=2.0.0",
            Format::Prometheus,
        ),
        ("application/openmetrics-text;q=0", Format::Prometheus),
        (
            "application/openmetrics-text;q=0.1,text/plain",
            Format::Prometheus,
        ),
        (";;;,=,q=", Format::Prometheus),
    ] {
        assert_eq!(Format::of(accept), format, "{accept}");
    }
}

/// Reads a label's value back as the formats' texts say.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        plain.push(match c {
            '\\' => match rest.next() {
                Some('n') => '\n',
                Some(c) => c,
                None => panic!("a backslash at the end of {text:?}"),
            },
            '"' | '\n' => panic!("{c:?} is not escaped in {text:?}"),
            c => c,
        });
    }
    plain
}

/// Any JSON with keys that a row may have.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC*".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("subscribers".to_owned()),
        Just("by_state".to_owned()),
        Just("radius".to_owned()),
        Just("round_trips".to_owned()),
        Just("round_trips_us".to_owned()),
        Just("name".to_owned()),
        Just("size".to_owned()),
        "[a-z0-9]*",
    ];
    leaf.prop_recursive(4, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_name_becomes_a_label_that_reads_back(name in any::<String>()) {
        let row = json!({"schema": "pool/1", "name": name, "size": 1});
        let text = text(&[row], Format::OpenMetrics);
        let sample = text.split("headend_pool_size{pool=\"").nth(1).unwrap();
        let label = sample.split_once("\"} 1\n").unwrap().0;
        prop_assert_eq!(unescaped(label), name);
    }

    #[test]
    fn nonsense_in_a_row_makes_no_line_that_is_neither_comment_nor_sample(
        value in any_json(), schema in prop_oneof![Just("now/1"), Just("pool/1"), Just("qos.node/1")],
    ) {
        let mut row = json!({"schema": schema});
        if let Value::Object(map) = value {
            row.as_object_mut().unwrap().extend(map);
            row["schema"] = schema.into();
        }
        for line in text(&[row], Format::Prometheus).lines() {
            let number = line.rsplit_once(' ').and_then(|(_, number)| number.parse::<f64>().ok());
            prop_assert!(line.starts_with("# ") || line.starts_with("headend_") && number.is_some(), "{line}");
        }
    }

    #[test]
    fn any_accept_header_chooses_a_format(accept in any::<String>()) {
        let known = accept.to_ascii_lowercase().contains("application/openmetrics-text");
        prop_assert!(known || Format::of(&accept) == Format::Prometheus);
    }
}
