//! Tests saving, loading, comparing and rejecting result files.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::peer::{Peer, When};
use crate::support::{Directory, HEADEND, json, ping, ping_ok, read_lines, shape};
use crate::udp::terminate;

#[test]
fn a_signal_ends_the_run_in_good_order_and_keeps_what_was_measured() {
    let peer = Peer::new(|_| vec![When::Now]);
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
    let rest = read_lines(&mut child, 20);
    terminate(&child);
    let rest: Vec<String> = rest.collect();
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
        _ => vec![When::Now],
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
    assert_eq!(compared["schema"], "ping.comparison/1");
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
fn json_is_the_plan_and_summary_of_each_stream_and_nothing_else() {
    let peer = Peer::new(|_| vec![When::Now]);
    let args = ["--json", "-c", "3", "-i", "0.01", "-s", "48"];
    let done = ping(&[&args[..], &["--udp", &peer.port(), "127.0.0.1"]].concat());
    peer.end();
    assert_eq!(done.status.code(), Some(0));
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    let printed: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(printed["schema"], "ping.summary/1");
    let stream = &printed["streams"][0];
    assert_eq!(
        (&stream["plan"]["count"], &stream["summary"]["received"]),
        (&3.into(), &3.into())
    );
    assert_eq!(stream["loss"], 0.0);
}

#[test]
fn files_that_are_cut_short_foreign_or_newer_are_refused() {
    let peer = Peer::new(|_| vec![When::Now]);
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
            text.replace("\"version\":2", "\"version\":9"),
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
    let peer = Peer::new(|_| vec![When::Now]);
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

#[test]
fn a_file_that_is_loaded_and_saved_is_the_same_octet_for_octet() {
    // Lost, duplicate, late and reordered packets, and both directions.
    let peer = Peer::new(|number| match number % 6 {
        0 => vec![],
        1 => vec![When::Now, When::Now],
        2 => vec![When::After(Duration::from_millis(150))],
        3 => vec![When::After(Duration::from_millis(30))],
        _ => vec![When::Now],
    });
    let directory = Directory::new();
    let file = directory.path("out.json");
    let args = ["-q", "-c", "30", "-i", "0.01", "-W", "0.1", "-o", &file];
    let streams = ["127.0.0.1,size=48", "127.0.0.1,size=200,dscp=af41"];
    ping_ok(0, &[&args[..], &["--udp", &peer.port()], &streams].concat());
    peer.end();
    let octets = fs::read(&file).unwrap();
    let outcome = ::ping::file::read(&octets[..]).unwrap();
    let mut again = Vec::new();
    ::ping::file::write(&outcome, &mut again).unwrap();
    assert!(again == octets);
}

#[test]
fn a_full_disk_is_told_and_the_summary_is_printed() {
    let peer = Peer::new(|_| vec![When::Now]);
    let directory = Directory::new();
    let page = directory.path("out.html");
    let args = ["-q", "-c", "3", "-i", "0.01", "-s", "48", "-o", "/dev/full"];
    let more = ["--plot", &page, "--udp", &peer.port(), "127.0.0.1"];
    let found = ping(&[&args[..], &more].concat());
    peer.end();
    let errors = String::from_utf8(found.stderr).unwrap();
    assert_eq!(found.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("cannot write /dev/full: No space left") && errors.lines().count() == 1
    );
    let text = String::from_utf8(found.stdout).unwrap();
    assert!(text.contains("3 packets transmitted, 3 received"), "{text}");
    assert_eq!(directory.names(), ["out.html"], "what can be written is");
    assert!(!fs::metadata("/dev/full").unwrap().is_file());
}

#[test]
fn sigquit_asks_how_things_stand() {
    let peer = Peer::new(|_| vec![When::Now]);
    let args = ["-i", "0.01", "-s", "48", "--udp", &peer.port()];
    let mut command = Command::new(HEADEND);
    command.arg("ping").args(args);
    command.args(["127.0.0.1,name=a", "127.0.0.1,name=b"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut rest = read_lines(&mut child, 10);
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-QUIT", &pid]).status().unwrap();
    assert!(killed.success());
    for _ in 0..10 {
        rest.next().unwrap();
    }
    terminate(&child);
    rest.for_each(drop);
    let output = child.wait_with_output().unwrap();
    peer.end();
    assert!(output.status.success());
    let errors = shape(&String::from_utf8(output.stderr).unwrap());
    let figures = "N/N packets, N% loss, min/avg/ewma/max = N.N/N.N/N.N/N.N ms";
    assert_eq!(errors, format!("\ra: {figures}\n\rb: {figures}\n"));
}

#[test]
fn a_file_of_streams_is_carried_out_as_it_stands() {
    let (one, other) = (
        Peer::new(|_| vec![When::Now]),
        Peer::new(|_| vec![When::Now]),
    );
    let directory = Directory::new();
    let [streams, file] = ["streams.toml", "out.json"].map(|name| directory.path(name));
    let text = format!(
        "interval = 0.01\ncount = 4\nudp = {}\ntos = \"lowdelay\"\n\
         [[stream]]\nhost = \"127.0.0.1\"\nsize = 300\n\
         [[stream]]\nhost = \"127.0.0.1\"\nname = \"slow\"\ntos = 0xb8\ninterval = 0.02\ncount = 2\nudp = {}\n",
        one.port(),
        other.port()
    );
    fs::write(&streams, text).unwrap();
    let args = ["-q", "-f", &streams, "-s", "100", "-Q", "af41", "-o", &file];
    ping_ok(0, &args);
    assert_eq!((one.end(), other.end()), (vec![300; 4], vec![100; 2]));
    let result = json(&file);
    for (number, name, tos, interval_ns, count) in [
        (0, "127.0.0.1,udp=", 0x10, 10_000_000, 4),
        (1, "slow", 0xb8, 20_000_000, 2),
    ] {
        let plan = &result["streams"][number]["plan"];
        assert!(plan["name"].as_str().unwrap().starts_with(name), "{plan}");
        assert_eq!(plan["tos"], tos);
        assert_eq!(
            (&plan["interval_ns"], &plan["count"]),
            (&interval_ns.into(), &count.into())
        );
        let sent = &result["streams"][number]["summary"]["transmitted"];
        assert_eq!(sent, count);
    }
}

#[test]
fn a_deadline_ends_the_run() {
    let peer = Peer::new(|_| vec![When::Now]);
    let args = [
        "-q",
        "-i",
        "0.01",
        "-w",
        "0.2",
        "-s",
        "48",
        "--udp",
        &peer.port(),
    ];
    let text = ping_ok(0, &[&args[..], &["127.0.0.1"]].concat());
    let sent = peer.end().len();
    assert!((2..=21).contains(&sent), "{sent}");
    assert!(
        text.contains(&format!("{sent} packets transmitted, ")),
        "{text}"
    );
}
