//! Tests how a daemon starts and ends, and how it handles what earlier processes left behind.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::Command;

use crate::pages;
use crate::support::{Daemon, Directory, HEADEND};
use serde_json::json;

#[test]
fn sigterm_tells_every_peer_and_exits_0() {
    let directory = Directory::new();
    let (lns, peer) = Daemon::lns(&directory, "");
    let mut lac = Daemon::lac(&directory, "");
    lac.client().create(&peer, 2, 10, json!({"session": true}));
    lac.client().create(&peer, 3, 10, json!({"session": true}));
    lns.client()
        .await_stats("all are up", |stats| stats["established"] == 20);
    lac.signal("TERM");
    assert_eq!(lac.wait().code(), Some(0), "{}", lac.log());
    assert!(!lac.socket.exists(), "the control socket is gone");
    lns.client()
        .await_stats("the LNS knows", |stats| stats["tunnels"] == 0);
    let ended = lns.client().rows("show.ended.tunnels");
    let told = ended
        .iter()
        .filter(|row| row["reason"] == "closed by the peer, result 6")
        .count();
    assert_eq!(told, 20, "StopCCN 6: the requester is being shut down");
}

#[test]
fn a_peer_that_is_silent_does_not_keep_a_daemon_from_ending() {
    let directory = Directory::new();
    let mut lac = Daemon::lac(&directory, "[l2tp]\nshutdown_wait_s = 60\n");
    lac.client()
        .create("127.0.0.1:9", 3, 1, json!({"wait": "none"}));
    lac.signal("INT");
    assert_eq!(lac.wait().code(), Some(0));
    assert!(lac.log().contains("INFO ended"), "{}", lac.log());
}

#[test]
fn sighup_ends_nothing() {
    let directory = Directory::new();
    let (lns, _) = Daemon::lns(&directory, "");
    lns.signal("HUP");
    let logged = |lns: &Daemon| lns.log().contains("SIGHUP");
    lns.client()
        .await_stats("the signal is logged", |_| logged(&lns));
}

#[test]
fn the_socket_of_a_dead_daemon_is_taken_over_and_that_of_a_live_one_is_not() {
    let directory = Directory::new();
    let sections = "[lns]\nlisten = [\"127.0.0.1:0\"]\n";
    let mut first = Daemon::start(&directory, "lns", sections);
    first.signal("KILL");
    first.wait();
    assert!(first.socket.exists(), "it could not clean up");
    let second = Daemon::start(&directory, "lns", sections);
    let meta = std::fs::metadata(&second.socket).unwrap();
    assert!(meta.file_type().is_socket());
    assert_eq!(meta.permissions().mode() & 0o777, 0o660);

    let third = Command::new(HEADEND)
        .args(["run", "--config"])
        .arg(directory.path("lns.toml"))
        .output()
        .unwrap();
    assert_eq!(third.status.code(), Some(1));
    let said = String::from_utf8_lossy(&third.stderr);
    assert!(said.contains(" answers on "), "{said}");
    assert_eq!(second.client().stats()["pid"], second.pid());
}

#[test]
fn a_daemon_keeps_no_privilege() {
    let directory = Directory::new();
    let (lns, _) = Daemon::lns(&directory, "");
    let status = std::fs::read_to_string(format!("/proc/{}/status", lns.pid())).unwrap();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .unwrap();
    assert_eq!(effective.trim(), "0000000000000000");
}

#[test]
fn check_and_run_refuse_a_wrong_configuration_before_anything_is_opened() {
    let directory = Directory::new();
    let socket = directory.path("x.sock");
    let good = format!("[control]\nsocket = {socket:?}\n[lns]\nlisten = [\"127.0.0.1:0\"]\n");
    let good = directory.write("good.toml", &good);
    let bad =
        format!("[control]\nsocket = {socket:?}\n[lns]\nlisten = [\"127.0.0.1\"]\nlisten_on = 1\n");
    let bad = directory.write("bad.toml", &bad);
    let run = |words: &[&str], file: &std::path::Path| {
        let output = Command::new(HEADEND)
            .args(words)
            .arg(file)
            .output()
            .unwrap();
        let (out, err) = (output.stdout, output.stderr);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(out), text(err))
    };
    let ok = format!("{}: ok\n", good.display());
    assert_eq!(run(&["check"], &good), (Some(0), ok, String::new()));
    let faults = format!(
        "{file}:4:11: lns.listen: \"127.0.0.1\" has no port; write \"127.0.0.1:1701\"\n\
         {file}:5:1: lns.listen_on: unknown key; did you mean listen?\n",
        file = bad.display()
    );
    assert_eq!(
        run(&["check"], &bad),
        (Some(2), String::new(), faults.clone())
    );
    let (code, printed, _) = run(&["check", "--json"], &bad);
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &document["usable"]), (Some(2), &false.into()));
    assert_eq!(document["schema"], "check/1");
    let said: Vec<_> = faults.lines().collect();
    assert_eq!(document["faults"], serde_json::json!(said));
    let (code, _, said) = run(&["run", "--config"], &bad);
    assert_eq!(code, Some(2));
    assert!(
        said.starts_with(&faults) && said.contains("not started: 2 faults"),
        "{said}"
    );
    assert!(!socket.exists());
}

#[test]
fn a_client_without_a_daemon_is_told_what_to_do() {
    let directory = Directory::new();
    let socket = directory.path("none.sock");
    let output = Command::new(HEADEND)
        .args(["show", "tunnels", "--socket"])
        .arg(&socket)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(&socket.display().to_string()) && said.contains("headend run --config FILE"),
        "{said}"
    );
}

/// Runs the demo and returns its report.
fn demo(arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(HEADEND)
        .args(["demo", "--json"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_demo_brings_all_up_and_leaves_nothing_behind() {
    for (version, more) in [("2", "--no-ppp"), ("3", "--seconds=0")] {
        let report = demo(&["--tunnels", "300", "--version", version, more]);
        assert_eq!(
            (&report["schema"], &report["up"]),
            (&json!("demo/1"), &json!(300))
        );
        for side in ["lns", "lac"] {
            assert_eq!(
                (&report[side]["established"], &report[side]["sessions"]),
                (&json!(300), &json!(300))
            );
            assert_eq!(report[side]["held_after_teardown"], 300);
        }
        assert_eq!(report["listed_after_teardown"], 0);
        assert_eq!(report["traffic"], json!([]));
        let subscribers = &report["subscribers"];
        if more == "--no-ppp" {
            assert!(subscribers.is_null());
        } else {
            assert_eq!(
                (&subscribers["online"], &subscribers["online_at_end"]),
                (&json!(300), &json!(300))
            );
            assert!(subscribers["echo_replies"].as_u64().unwrap() >= 300);
        }
    }
}

#[test]
fn the_demo_has_traffic_both_ways_or_says_why_not() {
    for version in ["2", "3"] {
        let report = demo(&["--tunnels", "20", "--version", version, "--seconds", "1"]);
        assert_eq!(report["subscribers"]["online_at_end"], 20);
        let rows = report["traffic"].as_array().unwrap();
        if rows.is_empty() {
            // Namespaces or TUN devices may be forbidden here.
            assert!(
                report["no_traffic_because"]
                    .as_str()
                    .unwrap()
                    .contains(": ")
            );
            continue;
        }
        let kinds: Vec<_> = rows
            .iter()
            .map(|row| (row["protocol"].as_str(), row["way"].as_str()))
            .collect();
        let all = [
            ("TCP", "up"),
            ("TCP", "down"),
            ("UDP", "up"),
            ("UDP", "down"),
        ];
        assert_eq!(
            kinds,
            all.map(|(protocol, way)| (Some(protocol), Some(way)))
        );
        for row in rows {
            assert!(row["payload_octets"].as_u64().unwrap() > 0, "{row}");
        }
    }
}

#[test]
fn the_street_connects_every_line_and_halves_a_rate_or_says_what_is_missing() {
    let directory = Directory::new();
    let out = directory.path("street");
    let output = Command::new(HEADEND)
        .args([
            "demo", "street", "--lines", "20", "--quick", "--load", "tcp", "--json", "--out",
        ])
        .arg(&out)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) {
        // Namespaces or TUN devices may be forbidden here.
        assert!(
            errors.contains("needs network namespaces and TUN devices: "),
            "{errors}"
        );
        return;
    }
    assert!(output.status.success(), "{errors}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "demo.street/1");
    assert_eq!(
        (&report["dual_stack"], &report["handed_over"]),
        (&json!(20), &json!(10))
    );
    for daemon in ["bng", "lns"] {
        assert_eq!(report[daemon]["prefixes_delegated"], 10, "{report}");
        assert_eq!(report[daemon]["nat"]["subscribers"], 10, "{report}");
    }
    for version in ["ipv4", "ipv6"] {
        assert_eq!(report["pings"][version]["answered"], 20, "{report}");
    }
    let change = &report["change"];
    assert_eq!(change["configured_after_by"], "command");
    let rate = |name: &str| change[name].as_f64().unwrap();
    assert_eq!(
        2.0 * rate("configured_after_bps"),
        rate("configured_before_bps")
    );
    // A busy machine may be slower than the rates, but a queue never lets more pass.
    for (measured, configured) in [
        ("measured_before_bps", "configured_before_bps"),
        ("measured_after_bps", "configured_after_bps"),
    ] {
        assert!(
            rate(measured) > 0.0 && rate(measured) <= 1.01 * rate(configured),
            "{change}"
        );
    }
    let page = std::fs::read_to_string(out.join("street.html")).unwrap();
    assert!(page.contains("line1@street.example") && page.contains("after the CoA"));
    let instead = [
        ("--quick", "--quick --lines 20"),
        ("--lines 500", "--lines 20 --quick"),
    ];
    let done = pages::run("demo.md", &instead, |_, _| {});
    assert_eq!(done.commands, 2);
    // A page that no street wrote is refused before anything is made.
    std::fs::write(out.join("street.html"), "<p>mine</p>").unwrap();
    let output = Command::new(HEADEND)
        .args(["demo", "street", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("no demo street wrote it"), "{errors}");
}
