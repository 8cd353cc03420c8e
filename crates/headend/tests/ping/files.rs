//! Result files: kept, loaded, compared, refused.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::peer::Peer;
use crate::support::{Directory, HEADEND, json, ping, ping_ok};
use crate::udp::terminate;

#[test]
fn a_signal_ends_the_run_in_good_order_and_keeps_what_was_measured() {
    let peer = Peer::new(|_| vec![std::time::Duration::ZERO]);
    let directory = Directory::new();
    let file = directory.path("out.json");
    let args = [
        "-i",
        "0.01",
        "-s",
        "48",
        "-o",
        &file,
        "--udp",
        &peer.port(),
        "127.0.0.1",
    ];
    let mut command = Command::new(HEADEND);
    let command = command.arg("ping").args(args).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..20 {
        lines.next().unwrap().unwrap();
    }
    terminate(&child);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success());
    peer.end();
    assert!(
        rest.iter()
            .any(|line| line == "--- 127.0.0.1 ping statistics ---")
    );
    assert!(rest.last().unwrap().starts_with("rtt min/avg/max/mdev = "));
    let result = json(&file);
    assert_eq!(result["interrupted"], true);
    let summary = &result["streams"][0]["summary"];
    assert!(summary["received"].as_u64().unwrap() >= 19, "{summary}");
    assert_eq!(directory.names(), ["out.json"]);
}

#[test]
fn results_are_compressed_by_name_loaded_and_compared() {
    let peer = Peer::new(|number| match number % 4 {
        0 => vec![],
        _ => vec![std::time::Duration::ZERO],
    });
    let directory = Directory::new();
    let files = ["a.json", "b.json.gz", "c.json.zst"].map(|name| directory.path(name));
    for file in &files {
        let args = [
            "-q", "-c", "8", "-i", "0.01", "-W", "0.1", "-s", "48", "-o", file,
        ];
        ping_ok(
            0,
            &[&args[..], &["--udp", &peer.port(), "127.0.0.1"]].concat(),
        );
    }
    peer.end();
    let [a, b, c] = files.each_ref().map(String::as_str);
    let table = ping_ok(0, &["show", a, b, c]);
    let rows: Vec<&str> = table.lines().collect();
    assert!(
        rows[0].contains("p99") && rows[0].ends_with("loss +/-"),
        "{}",
        rows[0]
    );
    assert!(
        rows[1].contains("25.00%") && rows[1].ends_with('-'),
        "{}",
        rows[1]
    );
    assert!(rows[2].ends_with("+0.00%") && rows[3].ends_with("+0.00%"));
    let compared: Value = serde_json::from_str(&ping_ok(0, &["show", "--json", a, b])).unwrap();
    assert_eq!(compared["schema"], "ping-comparison/1");
    let stream = &compared["files"][1]["streams"][0];
    assert_eq!(
        (&stream["loss"], &stream["difference"]["loss"]),
        (&0.25.into(), &0.0.into())
    );
    let rows = ping_ok(0, &["show", "--csv", a, c]);
    assert_eq!(rows.lines().count(), 17);
    assert!(rows.starts_with("file,stream,sequence,"));
    assert_eq!(rows.matches(",lost,").count(), 4);
}

#[test]
fn files_that_are_cut_short_foreign_or_newer_are_refused() {
    let peer = Peer::new(|_| vec![std::time::Duration::ZERO]);
    let directory = Directory::new();
    let good = directory.path("good.json");
    let args = ["-q", "-c", "3", "-i", "0.01", "-s", "48", "-o", &good];
    ping_ok(
        0,
        &[&args[..], &["--udp", &peer.port(), "127.0.0.1"]].concat(),
    );
    peer.end();
    let text = fs::read_to_string(&good).unwrap();
    let bad = directory.path("bad.json");
    for (content, why) in [
        (text[..text.len() / 2].to_owned(), "cut short"),
        (String::new(), "cut short"),
        ("{\"pings\":[]}".to_owned(), "not a result of headend ping"),
        (
            text.replace("\"version\":1", "\"version\":9"),
            "made by a newer version",
        ),
        (
            text.replace("\"ttl\":[", "\"ttl\":[999,"),
            "damaged: ttl: 999 cannot be",
        ),
    ] {
        fs::write(&bad, content).unwrap();
        let found = ping(&["show", &good, &bad]);
        let errors = String::from_utf8(found.stderr).unwrap();
        assert_eq!(
            (found.status.code(), found.stdout.len()),
            (Some(2), 0),
            "{errors}"
        );
        assert_eq!(errors.lines().count(), 1);
        assert!(errors.contains(&format!("bad.json: {why}")), "{errors}");
    }
}

#[test]
fn samples_beyond_the_limit_are_counted_and_it_is_said() {
    let peer = Peer::new(|_| vec![std::time::Duration::ZERO]);
    let directory = Directory::new();
    let file = directory.path("out.json");
    let args = [
        "-q",
        "-c",
        "9",
        "-i",
        "0.005",
        "-s",
        "48",
        "--samples",
        "4",
        "-o",
        &file,
    ];
    let found = ping(&[&args[..], &["--udp", &peer.port(), "127.0.0.1"]].concat());
    peer.end();
    let errors = String::from_utf8(found.stderr).unwrap();
    assert!(
        errors.contains("samples of 4 of 9 packets were kept"),
        "{errors}"
    );
    let result = json(&file);
    assert_eq!(result["streams"][0]["summary"]["received"], 9);
    assert_eq!(
        result["streams"][0]["samples"]["ttl"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}
