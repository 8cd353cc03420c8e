//! Tests the control protocol with well-behaved and faulty clients.

use crate::support::{Daemon, Directory};
use serde_json::{Value, json};

/// A LAC that opens `count` tunnels to a silent peer, so it has many tunnels but little work.
fn lac_with(directory: &Directory, count: u32) -> Daemon {
    let lac = Daemon::lac(
        directory,
        "[l2tp]\nretransmit_first_s = 30\nretransmit_cap_s = 30\n",
    );
    if count > 0 {
        let wait = json!({"wait": "none"});
        for line in lac.client().create("127.0.0.1:9", 3, count, wait) {
            assert!(line["tunnel"].as_u64() > Some(0) && line.get("up").is_none());
        }
    }
    lac
}

#[test]
fn a_client_that_does_not_read_costs_only_itself() {
    const TUNNELS: u32 = 2_000;
    const SHOWS: usize = 30;
    let directory = Directory::new();
    let lac = lac_with(&directory, TUNNELS);
    let mut other = lac.client();
    let before = other.stats()["rss_bytes"].as_u64().unwrap();
    // 60,000 rows of about 350 bytes each, 21 MB in total, which the client does not read.
    let mut slow = lac.client();
    for _ in 0..SHOWS {
        slow.send(json!({"do": "show.tunnels"}));
    }
    for _ in 0..3 {
        assert_eq!(other.rows("show.tunnels").len(), TUNNELS as usize);
    }
    let after = other.stats()["rss_bytes"].as_u64().unwrap();
    assert!(after < before + 8_000_000, "{before} bytes grew to {after}");
    // Once the client reads, it receives everything in order.
    for id in 1..=SHOWS {
        for row in 0..TUNNELS {
            let line = slow.next().unwrap();
            assert!(
                line["id"] == id && line["row"]["schema"] == "tunnel/1",
                "row {row}: {line}"
            );
        }
        assert_eq!(
            slow.next().unwrap(),
            json!({"v": 1, "id": id, "end": true, "rows": TUNNELS})
        );
    }
}

#[test]
fn requests_may_be_sent_before_the_answers_to_earlier_ones() {
    let directory = Directory::new();
    let lac = lac_with(&directory, 3);
    let mut client = lac.client();
    let shows = [
        "show.tunnels",
        "show.sessions",
        "show.peers",
        "show.counters",
        "server.stats",
    ];
    let ids: Vec<u64> = shows
        .iter()
        .map(|verb| client.send(json!({"do": verb})))
        .collect();
    let mut ended = Vec::new();
    while ended.len() < ids.len() {
        let line = client.next().unwrap();
        if line.get("end").is_some() {
            ended.push(line["id"].as_u64().unwrap());
        }
    }
    assert_eq!(ended, ids);
}

#[test]
fn a_creation_that_waits_does_not_hold_up_other_requests() {
    let directory = Directory::new();
    let lac = lac_with(&directory, 0);
    let mut client = lac.client();
    client.send(json!({"do": "tunnel.create", "peer": "127.0.0.1:9"}));
    let rows = client.rows("show.tunnels");
    assert_eq!(rows[0]["state"], "wait-ctl-reply");
    client.send(json!({"do": "tunnel.delete", "tunnel": rows[0]["id"]}));
    let mut lines: Vec<Value> = (0..3).map(|_| client.next().unwrap()).collect();
    lines.sort_by_key(|line| line["id"].as_u64());
    assert_eq!(
        (&lines[0]["up"], &lines[0]["reason"]),
        (&json!(false), &json!("closed by the operator"))
    );
    assert_eq!(lines[1], json!({"v": 1, "id": 1, "end": true, "rows": 1}));
    assert_eq!(lines[2]["closed"], 1);
}

#[test]
fn a_client_that_says_no_more_still_gets_its_answers() {
    let directory = Directory::new();
    let (_lns, peer) = Daemon::lns(&directory, "");
    let lac = Daemon::lac(&directory, "");
    let mut client = lac.client();
    client.send(json!({"do": "show.tunnels"}));
    client.send(json!({"do": "tunnel.create", "peer": peer, "count": 3}));
    client.send_raw(b"{\"v\":1,");
    client.say_no_more();
    let lines: Vec<Value> = std::iter::from_fn(|| client.next()).collect();
    let ends = lines
        .iter()
        .filter(|line| line.get("end").is_some())
        .count();
    let up = lines.iter().filter(|line| line["up"] == true).count();
    assert_eq!((lines.len(), ends, up), (5, 2, 3), "{lines:?}");
}

/// The client closes its socket as soon as it has written, with replies unread, before a show, or in the middle of a line.
#[test]
fn requests_of_a_client_that_closes_at_once_are_carried_out() {
    const TIMES: usize = 200;
    let directory = Directory::new();
    let lac = lac_with(&directory, 0);
    let create =
        "{\"v\":1,\"id\":1,\"do\":\"tunnel.create\",\"peer\":\"127.0.0.1:9\",\"wait\":\"none\"}\n";
    let show = "{\"v\":1,\"id\":2,\"do\":\"show.tunnels\"}\n";
    for turn in 0..TIMES {
        let mut client = lac.client();
        let text = match turn % 4 {
            0 => create.to_owned(),
            1 => format!("{show}{create}"),
            2 => format!("{create}{show}{}", &create[..create.len() - 1]),
            _ => format!("{}{create}", show.repeat(50)),
        };
        client.send_raw(text.as_bytes());
    }
    // The daemon accepts and reads clients in order, but it may still work on the last ones.
    let mut count = 0;
    for _ in 0..100 {
        count = lac.client().rows("show.tunnels").len();
        if count >= TIMES {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(
        count, TIMES,
        "each whole creation once, and no part of a line"
    );
    lac.client()
        .await_stats("no client is left behind", |stats| stats["clients"] == 1);
}

#[test]
fn a_bad_request_is_refused_and_the_connection_lives_on() {
    let directory = Directory::new();
    let lac = lac_with(&directory, 0);
    let mut client = lac.client();
    let cases: [(&str, u64, &str); 7] = [
        ("{\n", 0, "bad-request"),
        ("\"a string\"\n", 0, "bad-request"),
        ("{\"v\":2,\"id\":5,\"do\":\"show.peers\"}\n", 5, "version"),
        ("{\"v\":1,\"id\":6,\"do\":\"fly\"}\n", 6, "bad-request"),
        (
            "{\"v\":1,\"id\":7,\"do\":\"tunnel.delete\"}\n",
            7,
            "bad-request",
        ),
        (
            "{\"v\":1,\"id\":8,\"do\":\"tunnel.delete\",\"tunnel\":4}\n",
            8,
            "not-found",
        ),
        (
            "{\"v\":1,\"id\":9,\"do\":\"tunnel.create\",\"peer\":\"127.0.0.1:9\",\"count\":0}\n",
            9,
            "bad-request",
        ),
    ];
    for (line, id, code) in cases {
        client.send_raw(line.as_bytes());
        let reply = client.next().unwrap();
        assert_eq!(
            (&reply["id"], &reply["ok"]),
            (&json!(id), &json!(false)),
            "{line}"
        );
        assert_eq!(reply["error"]["code"], code, "{line}");
    }
    client.send_raw(b"\n\n");
    assert!(client.rows("show.tunnels").is_empty());
}

#[test]
fn a_line_without_end_is_refused_and_the_connection_closed() {
    let directory = Directory::new();
    let lac = lac_with(&directory, 0);
    let mut client = lac.client();
    client.send_raw(&[b'x'; 20_000]);
    assert_eq!(client.next().unwrap()["error"]["code"], "bad-request");
    assert_eq!(client.next(), None);
    assert_eq!(lac.client().stats()["clients"], 1);
}

#[test]
fn no_more_clients_are_taken_than_configured() {
    let directory = Directory::new();
    let socket = directory.path("lac.sock").display().to_string();
    let config = format!("[control]\nsocket = {socket:?}\nclients = 2\n[lac]\n");
    let config = directory.write("few.toml", &config);
    let mut child = std::process::Command::new(crate::support::HEADEND)
        .args(["run", "--config"])
        .arg(config)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let path = std::path::Path::new(&socket);
    let mut first = crate::support::Client::connect(path);
    // The client that only connected may still be counted.
    first.await_stats("it is alone", |stats| stats["clients"] == 1);
    let mut second = crate::support::Client::connect(path);
    assert_eq!(second.stats()["clients"], 2);
    let mut third = crate::support::Client::connect(path);
    assert_eq!(third.next().unwrap()["error"]["code"], "limit");
    assert_eq!(third.next(), None);
    drop(second);
    first.await_stats("one has gone", |stats| stats["clients"] == 1);
    assert_eq!(crate::support::Client::connect(path).stats()["clients"], 2);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_command_line_shows_tables_and_lines_of_json() {
    let directory = Directory::new();
    let (lns, peer) = Daemon::lns(&directory, "");
    let lac = Daemon::lac(&directory, "");
    let created = lac.cli(&format!(
        "tunnel create --peer {peer} --session --version 2"
    ));
    assert!(created.status.success());
    let said = String::from_utf8(created.stdout).unwrap();
    assert!(
        said.starts_with("tunnel ") && said.ends_with(" up\n"),
        "{said}"
    );
    let many = lac.cli(&format!("tunnel create --peer {peer} --count 300"));
    assert!(String::from_utf8_lossy(&many.stdout).starts_with("300 up, 0 failed"));

    let table = String::from_utf8(lac.cli("show tunnels").stdout).unwrap();
    assert_eq!(table.lines().count(), 302);
    assert!(table.lines().next().unwrap().contains("STATE"));
    let json = String::from_utf8(lac.cli("show tunnels --json").stdout).unwrap();
    let rows: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(rows.len() == 301 && rows.iter().all(|row| row["schema"] == "tunnel/1"));
    for what in [
        "sessions",
        "peers",
        "counters",
        "ended",
        "server",
        "event poll",
        "event timers",
        "event cpu",
    ] {
        let output = lns.cli(&format!("show {what} --json"));
        assert!(output.status.success(), "{what}");
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            assert!(
                row["schema"].as_str().unwrap().contains('/'),
                "{what}: {row}"
            );
        }
        assert!(
            !lns.cli(&format!("show {what}")).stdout.is_empty(),
            "{what}"
        );
    }

    let wrong = lac.cli("tunnel delete 4000000000");
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&wrong.stderr),
        "headend: there is no tunnel 4000000000\n"
    );
    assert_eq!(lac.cli("tunnel delete").status.code(), Some(2));
    let deleted = lac.cli("tunnel delete --all");
    assert_eq!(String::from_utf8_lossy(&deleted.stdout), "301 deleted\n");
}
