//! The report of a street of four lines, as text, JSON and page.

use serde_json::json;

use super::asks::{Detail, Leases, Queue, Subscribers};
use super::change::Change;
use super::datagrams::Received;
use super::report::{Report, Side};
use super::{RATE_BPS, page};

fn change() -> Change {
    let detail = |rate_bps, waited| Detail {
        rate_down_bps: Some(rate_bps),
        rate_from: Some("default".into()),
        queue: Queue {
            passed: 5,
            waited,
            dropped: 0,
        },
    };
    let stream = Received {
        sent: 100,
        received: 100,
        ..Received::default()
    };
    Change {
        program: "tcp",
        line: "line1@street.example".into(),
        samples: vec![(0.1, 50e6), (0.2, 25e6)],
        before: detail(RATE_BPS.into(), 10),
        after: detail((RATE_BPS / 2).into(), 70),
        sent_s: 0.1,
        ack_ms: 0.5,
        transmissions: 1,
        acks: 1,
        rate_before_bps: 49.5e6,
        rate_after_bps: 24.75e6,
        resent: None,
        streams: [stream; 2],
    }
}

/// A street of which everything came up.
fn report() -> Report {
    let side = Side {
        cpu_us: 150.0,
        bytes: 3_000.0,
    };
    let leases = Leases {
        addresses: 2,
        links: 2,
        delegated: 2,
    };
    let own = Subscribers {
        own: 2,
        handed_over: 0,
        with_ipv4: 2,
    };
    Report {
        lines: 4,
        up: 4,
        course: vec![0.5, 1.0, 1.5, 2.0],
        courses: [vec![0.5, 1.0], vec![1.5, 2.0]],
        ended: Vec::new(),
        retransmissions: 0,
        hosts_cpu_us: 400,
        bng: side,
        lns: side,
        subscribers: [
            Subscribers {
                handed_over: 2,
                ..own
            },
            own,
        ],
        tunnels: 1,
        sessions: 2,
        nats: Default::default(),
        leases: [leases; 2],
        answered: [(4, 4); 2],
        median_ms: [Some(1.25), None],
        change: Ok(change()),
        left: 0,
    }
}

#[test]
fn a_whole_street_passes_and_each_fault_is_named() {
    report().check().unwrap();
    let fault = |change: fn(&mut Report)| {
        let mut report = report();
        change(&mut report);
        report.check().unwrap_err().to_string()
    };
    let said = fault(|report| {
        report.up = 3;
        report.ended = vec!["line2@partner.example: no answer".into()];
    });
    assert_eq!(
        said,
        "3 of 4 lines have IPv4 and IPv6; of those that ended: line2@partner.example: no answer"
    );
    assert!(
        fault(|report| report.subscribers[1].own = 1).contains("the LNS 1: expected 2, 2 and 2")
    );
    assert!(fault(|report| report.answered[1].1 = 0).contains("0 of 4 lines have IPv6"));
    assert!(fault(|report| report.change = Err("no iperf3".into())).contains("no iperf3"));
    let with = |alter: fn(&mut Change)| {
        let mut street = report();
        let mut change = change();
        alter(&mut change);
        street.change = Ok(change);
        street.check().unwrap_err().to_string()
    };
    assert!(with(|change| change.after.rate_down_bps = Some(7)).contains("Some(7)"));
    assert!(with(|change| change.acks = 0).contains("0 CoA-ACKs"));
    assert!(with(|change| change.streams[0].reordered = 3).contains("3 datagrams"));
    assert!(fault(|report| report.left = 1).contains("1 subscribers were left"));
}

#[test]
fn the_json_has_what_was_counted_and_the_reason_for_what_was_not() {
    let mut report = report();
    let printed = report.json();
    assert_eq!(printed["schema"], "demo.street/1");
    assert_eq!(
        (&printed["seconds"], &printed["per_second"]),
        (&json!(2.0), &json!(2.0))
    );
    assert_eq!(printed["hosts_cpu_us_per_line"], 100.0);
    assert_eq!(
        printed["pings"]["ipv4"],
        json!({"sent": 4, "answered": 4, "median_ms": 1.25})
    );
    assert_eq!(
        printed["change"]["queue_packets"],
        json!({"passed": 0, "waited": 60, "dropped": 0})
    );
    assert_eq!(
        printed["change"]["samples"],
        json!([[0.1, 50e6], [0.2, 25e6]])
    );
    assert!(printed["no_change_because"].is_null());
    report.change = Err("iperf3 is not installed".into());
    let printed = report.json();
    assert!(printed["change"].is_null());
    assert_eq!(printed["no_change_because"], "iperf3 is not installed");
}

#[test]
fn the_text_has_a_column_for_each_daemon() {
    let mut text = Vec::new();
    report().write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for line in [
        "4 PPPoE lines on one interface: 2 end at the access concentrator (BNG), 2 at an LNS behind it",
        "  dual-stack   4 in 2.00 s from the first PADI, half of them in 1.50 s: 2 a second",
        "  handed over  2 in 1 L2TP tunnel",
        "lines handed over                          2           0",
        "CPU per line                             150         150  us",
        "  rate         49.50 of 50 Mbit/s before, 24.75 of 25 Mbit/s after it (bytes of IP packets)",
        "  datagrams    100 of 100 to the delegated prefix of the same line: 0 lost, 0 reordered",
    ] {
        assert!(
            text.lines().any(|found| found.trim_end() == line),
            "{line}\n{text}"
        );
    }
}

#[test]
fn the_page_needs_no_other_file_and_names_what_is_missing() {
    let mut report = report();
    let whole = page::html(&report);
    for text in [
        page::MARK,
        "1 L2TP tunnel, 2 sessions",
        "after the CoA",
        "The daemons",
    ] {
        assert!(whole.contains(text), "{text}");
    }
    assert_eq!(whole.matches("<section class=\"chart\"").count(), 2);
    for fetch in ["<script src", "<link", "@import", "<img"] {
        assert!(!whole.contains(fetch), "{fetch}");
    }
    report.change = Err("no <iperf3>".into());
    let part = page::html(&report);
    assert!(part.contains("No line was loaded: no &lt;iperf3&gt;."));
}
