//! Compares headend's text with ping's.

use std::process::Command;

use crate::support::{can_ping, ping_ok, shape};

#[test]
fn lines_on_loopback_are_those_of_ping() {
    if !can_ping() {
        return;
    }
    let text = ping_ok(0, &["-c", "3", "-i", "0.01", "127.0.0.1"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.");
    for (number, line) in lines[1..4].iter().enumerate() {
        let begin = format!(
            "64 bytes from 127.0.0.1: icmp_seq={} ttl=64 time=",
            number + 1
        );
        assert!(line.starts_with(&begin) && line.ends_with(" ms"), "{line}");
    }
    assert_eq!(lines[4], "");
    assert_eq!(lines[5], "--- 127.0.0.1 ping statistics ---");
    let counts = "3 packets transmitted, 3 received, 0% packet loss, time ";
    assert!(lines[6].starts_with(counts) && lines[6].ends_with("ms"));
    // On a machine that is delayed, two packets are in flight.
    let figures = shape(lines[7]);
    let figures = figures.trim_end_matches(", pipe N");
    assert_eq!(figures, "rtt min/avg/max/mdev = N.N/N.N/N.N/N.N ms");
    assert_eq!(lines.len(), 8);
}

#[test]
fn the_text_has_the_shape_of_the_system_s_ping() {
    if !can_ping() {
        return;
    }
    for args in [
        &["-c", "2", "-i", "0.2", "127.0.0.1"][..],
        &["-c", "1", "-q", "-s", "100", "127.0.0.1"],
        &["-c", "1", "-D", "-n", "127.0.0.1"],
        &["-c", "2", "-i", "0.2", "-Q", "0xb8", "::1"],
        &["-c", "1", "-W", "1", "-4", "-n", "localhost"],
    ] {
        // Without ping, or with another program of that name, there is nothing to compare with.
        let Ok(theirs) = Command::new("ping").args(args).env("LC_ALL", "C").output() else {
            return;
        };
        if !theirs.status.success() {
            continue;
        }
        let theirs = shape(&String::from_utf8(theirs.stdout).unwrap());
        let version = Command::new("ping").arg("-V").output().unwrap();
        if !String::from_utf8_lossy(&version.stdout).contains("iputils") {
            return;
        }
        let ours = shape(&ping_ok(0, args));
        // Later versions of ping set a space before an IPv6 address in brackets.
        let alike = |text: &str| text.replace(" (::N)", "(::N)").replace(", pipe N", "");
        assert_eq!(alike(&ours), alike(&theirs), "{args:?}");
    }
}

#[test]
fn several_hosts_tos_and_sizes_are_streams_of_their_own() {
    if !can_ping() {
        return;
    }
    let args = ["-q", "-c", "2", "-i", "0.01", "-Q", "ef,be", "-s", "0,56"];
    let text = ping_ok(
        0,
        &[&args[..], &["127.0.0.1", "127.0.0.2,size=100,name=other"]].concat(),
    );
    let names = ["ef,0", "ef,56", "be,0", "be,56"].map(|kind| format!("127.0.0.1,{kind}"));
    let names = names.iter().map(String::as_str).chain(["other", "other#2"]);
    for name in names {
        let closing = format!("--- {name} ping statistics ---\n2 packets transmitted, 2 received");
        assert!(text.contains(&closing), "{name} in {text}");
    }
    assert_eq!(text.matches("\nrtt min/avg/max/mdev = ").count(), 6);
}

#[test]
fn rows_of_csv_are_all_that_is_printed() {
    if !can_ping() {
        return;
    }
    let text = ping_ok(
        0,
        &["--csv", "-c", "3", "-i", "0.01", "127.0.0.1", "127.0.0.2"],
    );
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 7);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let column = |name| rows[0].iter().position(|head| *head == name).unwrap();
    for (number, row) in rows[1..].iter().enumerate() {
        assert_eq!(row[column("sequence")], (number % 3 + 1).to_string());
        assert_eq!(row[column("state")], "replied");
        let due = number % 3 * 10_000_000 + number / 3 * 5_000_000;
        assert_eq!(row[column("due_ns")], due.to_string());
    }
}
