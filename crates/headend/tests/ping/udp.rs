//! Tests UDP streams with headend's responder, and with a faulty test responder.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::peer::{Peer, When};
use crate::support::{Directory, HEADEND, json, ping_ok};

/// `headend ping --responder`, ended by SIGTERM.
struct Responder {
    child: Child,
    port: String,
}

impl Responder {
    fn new(address: &str) -> Responder {
        let mut command = Command::new(HEADEND);
        command.args(["ping", "--responder", address]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.as_mut().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().to_owned();
        Responder { child, port }
    }

    fn end(mut self) {
        terminate(&self.child);
        assert!(self.child.wait().unwrap().success());
    }
}

pub(crate) fn terminate(child: &Child) {
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(killed.success());
}

#[test]
fn a_responder_answers_with_stamps_counts_and_the_same_tos_and_size() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let directory = Directory::new();
        let file = directory.path("out.json");
        let responder = Responder::new(address);
        let host = if address.starts_with('[') {
            "::1"
        } else {
            "127.0.0.1"
        };
        let args = [
            "-c", "20", "-i", "0.005", "-Q", "ef", "-s", "200", "-o", &file,
        ];
        let text = ping_ok(0, &[&args[..], &["--udp", &responder.port, host]].concat());
        responder.end();
        assert!(
            text.contains(&format!("200 bytes from {host}: udp_seq=20 ttl=")),
            "{text}"
        );
        assert!(text.contains("20 packets transmitted, 20 received, 0% packet loss"));
        let result = json(&file);
        let stream = &result["streams"][0];
        let directions = &stream["summary"]["directions"];
        assert_eq!(
            (&directions["up"]["lost"], &directions["down"]["lost"]),
            (&0.into(), &0.into())
        );
        let samples = &stream["samples"];
        let counts: Vec<u64> = serde_json::from_value(samples["count"].clone()).unwrap();
        assert_eq!(counts, (1..=20).collect::<Vec<u64>>());
        let tos: Vec<u64> = serde_json::from_value(samples["tos"].clone()).unwrap();
        assert!(tos.iter().all(|tos| *tos == 184), "{tos:?}");
        // Both ends use the same clock, so the delays of both directions add up to the round trip.
        let column =
            |name: &str| serde_json::from_value::<Vec<i64>>(samples[name].clone()).unwrap();
        for ((up, turn), rtt) in column("up_ns")
            .iter()
            .zip(column("turn_ns"))
            .zip(column("rtt_ns"))
        {
            assert!(*up + turn <= rtt + 1_000_000, "{up} {turn} {rtt}");
        }
    }
}

#[test]
fn a_peer_with_known_faults_gives_exactly_the_known_counts() {
    // 200 packets 20 ms apart, with a wait of 1.5 s. Every 20th is dropped, every 20th is duplicated, and every 20th is
    // answered after the next three. Packets 25, 35 and 45 are answered after 2.5 s, which is too late.
    let peer = Peer::new(|number| match number {
        25 | 35 | 45 => vec![When::After(Duration::from_millis(2_500))],
        n if n % 20 == 3 => vec![],
        n if n % 20 == 7 => vec![When::Now, When::Now],
        n if n % 20 == 11 => vec![When::Behind(3)],
        _ => vec![When::Now],
    });
    let directory = Directory::new();
    let file = directory.path("out.json");
    let args = [
        "-q", "-c", "200", "-i", "0.02", "-W", "1.5", "-s", "64", "-o", &file,
    ];
    ping_ok(
        0,
        &[&args[..], &["--udp", &peer.port(), "127.0.0.1"]].concat(),
    );
    let lengths = peer.end();
    assert_eq!(lengths, [64; 200]);
    let result = json(&file);
    let summary = &result["streams"][0]["summary"];
    for (key, count) in [
        ("transmitted", 200),
        ("received", 190),
        ("lost", 10),
        ("duplicates", 10),
        ("reordered", 10 + 3),
        ("late", 3),
        ("failed", 0),
        ("waiting", 0),
    ] {
        assert_eq!(summary[key], count, "{key} of {summary}");
    }
    // The peer received all of them: every loss was on the return path.
    let directions = &summary["directions"];
    assert_eq!(directions["up"]["lost"], 0);
    assert_eq!(directions["down"]["lost"], 10);
}

#[test]
fn a_peer_that_is_silent_ends_the_run_with_status_1() {
    let peer = Peer::new(|_| vec![]);
    let args = ["-c", "3", "-i", "0.01", "-W", "0.1", "-s", "48"];
    let text = ping_ok(
        1,
        &[&args[..], &["--udp", &peer.port(), "127.0.0.1"]].concat(),
    );
    assert_eq!(peer.end().len(), 3);
    let closing = "3 packets transmitted, 0 received, 100% packet loss, time ";
    assert!(text.contains(closing), "{text}");
}

#[test]
fn a_port_without_a_responder_is_reported() {
    // The port was bound and closed again, so nothing listens on it.
    let port = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().port().to_string()
    };
    let args = [
        "-c",
        "2",
        "-i",
        "0.01",
        "-W",
        "0.2",
        "--udp",
        &port,
        "127.0.0.1",
    ];
    let text = ping_ok(1, &args);
    assert!(
        text.contains("From 127.0.0.1 udp_seq=1 Destination Port Unreachable"),
        "{text}"
    );
    assert!(text.contains(", +2 errors, 100% packet loss"), "{text}");
}
