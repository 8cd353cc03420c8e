//! Tests an operator's view of subscribers: the list, the details of one, termination causes, captures, drops. Runs
//! every command of the page about them.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::pages;
use crate::support::{Daemon, Directory, HEADEND};

const USERS: &str = "\
[[user]]
name = \"user1\"
password = \"sesame\"
routes = [\"10.77.0.0/16\"]
[[user]]
name = \"user2\"
password = \"sesame\"
idle_timeout_s = 600
";

fn secret(directory: &Directory, name: &str, text: &str) {
    let path = directory.write(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// An edge with users, and a concentrator whose sessions are clients `user1`, `user2` and so on.
fn pair(directory: &Directory) -> (Daemon, Daemon, String) {
    secret(directory, "users.toml", USERS);
    let (edge, peer) = Daemon::lns(
        directory,
        "[ppp]\naddress = \"10.64.255.1\"\ndns = [\"9.9.9.9\"]\nsession_timeout_s = 3600\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n[users]\nfile = \"users.toml\"\n",
    );
    // The file that the daemon writes on start must also be private.
    secret(directory, "lac.toml", "");
    let clients = Daemon::lac(
        directory,
        "[client]\nname = \"user{n}\"\nsecret = \"sesame\"\n",
    );
    (edge, clients, peer)
}

fn dial(clients: &Daemon, peer: &str) -> Value {
    let session = json!({"session": true});
    clients.client().create(peer, 2, 1, session).remove(0)
}

fn text(output: &std::process::Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn rows_of(daemon: &Daemon, line: &str) -> Vec<Value> {
    let output = daemon.cli(line);
    let lines = text(&output);
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits until no subscriber of the name is connected.
fn await_end(daemon: &Daemon, name: &str) {
    let started = Instant::now();
    while daemon
        .cli(&format!("show subscriber {name}"))
        .status
        .success()
    {
        assert!(started.elapsed() < Duration::from_secs(60), "{name} stays");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_session_of_a_client_is_up_when_it_is_on_line_or_says_why_not() {
    let directory = Directory::new();
    let (edge, clients, peer) = pair(&directory);
    for name in ["user1", "user2"] {
        assert_eq!(dial(&clients, &peer)["up"], true);
        // A session is up when its first network protocol opens; IPv6CP may be a round trip ahead of IPCP.
        let of = json!({"do": "show.subscriber", "of": {"who": name}});
        let started = Instant::now();
        let mine = loop {
            let mine = clients.client().ask(of.clone()).remove(0);
            if mine["row"]["ppp"]["ipcp"] == "Opened" {
                break mine;
            }
            assert_eq!(mine["row"]["state"], "up", "{mine}");
            assert!(started.elapsed() < Duration::from_secs(60), "{mine}");
        };
        let theirs = edge.client().ask(of).remove(0);
        assert_eq!(
            mine["row"]["ipv4"]["address"], theirs["row"]["ipv4"]["address"],
            "{theirs}"
        );
    }
    let refused = dial(&clients, &peer);
    assert_eq!(
        (&refused["up"], &refused["reason"]),
        (
            &json!(false),
            &json!("the peer refused us: \"authentication failed\"")
        )
    );
    let ended = rows_of(&clients, "show subscribers --ended --json").remove(0);
    assert_eq!(ended["reason"], refused["reason"]);
    // The tunnel that was opened for it is closed at both ends; the others stay.
    for daemon in [&clients, &edge] {
        daemon
            .client()
            .await_stats("the third is gone", |stats| stats["tunnels"] == 2);
    }
    let tunnels = clients.client().rows("show.ended.tunnels");
    assert_eq!(
        tunnels[0]["reason"],
        "the session that it was opened for failed"
    );
}

#[test]
fn everything_about_a_subscriber_is_shown_by_name_address_network_and_session() {
    let directory = Directory::new();
    let (edge, clients, peer) = pair(&directory);
    dial(&clients, &peer);
    let row = rows_of(&edge, "show subscriber user1 --json").remove(0);
    assert_eq!(row["schema"], "subscriber.detail/1");
    assert_eq!(
        (&row["state"], &row["role"]),
        (&json!("up"), &json!("network"))
    );
    assert_eq!(
        row["ipv4"],
        json!({"address": "10.64.0.1", "other": "10.64.255.1", "dns": ["9.9.9.9"], "pool": null})
    );
    assert_eq!(row["routes"], json!(["10.77.0.0/16"]));
    assert_eq!(row["tunnel"]["version"], 2);
    let lcp = &row["ppp"]["lcp"];
    assert_eq!(
        (&lcp["state"], &lcp["local"]["authentication"]),
        (&json!("Opened"), &json!("chap-md5"))
    );
    assert_eq!(lcp["peer"]["authentication"], Value::Null);
    assert_eq!(
        (&lcp["local"]["mru"], row["ppp"]["claims"].as_u64()),
        (&json!(1500), Some(1))
    );
    assert_eq!(row["times"]["session_timeout_s"], 3600.0);
    assert!(row["times"]["session_left_s"].as_f64().unwrap() > 3_500.0);
    let ids = ["tunnel", "session"].map(|part| row[part]["id"].as_u64().unwrap());
    for who in [
        "10.64.0.1".to_owned(),
        "10.77.1.2".to_owned(),
        format!("--tunnel {} --session {}", ids[0], ids[1]),
    ] {
        let same = rows_of(&edge, &format!("show subscriber {who} --json"));
        assert_eq!(same[0]["name"], "user1", "{who}");
    }
    let page = text(&edge.cli("show subscriber user1"));
    for part in [
        "up for ",
        "10.64.0.1",
        "9.9.9.9",
        "10.77.0.0/16",
        "session timeout  1h00m, ",
        "idle timeout     none",
        "authenticated    chap-md5, 1 attempt",
        "LCP              Opened",
        "requires chap-md5",
        "host name headend",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // The client logs it too.
    let mine = rows_of(&clients, "show subscriber user1 --json").remove(0);
    assert_eq!(
        (&mine["role"], &mine["ipv4"]["other"]),
        (&json!("client"), &json!("10.64.255.1"))
    );
}

#[test]
fn lists_are_filtered_and_sessions_name_their_subscribers() {
    let directory = Directory::new();
    let (edge, clients, peer) = pair(&directory);
    for _ in 0..3 {
        dial(&clients, &peer);
    }
    let names = |line: &str| -> Vec<String> {
        let rows = rows_of(&edge, &format!("show subscribers --json {line}"));
        let name = |row: &Value| row["name"].as_str().unwrap().to_owned();
        rows.iter().map(name).collect()
    };
    assert_eq!(names(""), ["user1", "user2"]);
    assert_eq!(names("--name r2 --state up"), ["user2"]);
    assert!(names("--state asking").is_empty());
    let first = rows_of(&edge, "show subscribers --json").remove(0);
    assert_eq!(names(&format!("--tunnel {}", first["tunnel"])), ["user1"]);
    let ended = rows_of(&edge, "show subscribers --ended --json");
    assert_eq!(
        (&ended[0]["name"], &ended[0]["reason"]),
        (&json!("user3"), &json!("not let in: unknown user"))
    );
    let sessions = edge.client().rows("show.sessions");
    let of: Vec<_> = sessions
        .iter()
        .map(|row| (&row["subscriber"], &row["phase"]))
        .collect();
    assert_eq!(
        of,
        [
            (&json!("user1"), &json!("up")),
            (&json!("user2"), &json!("up"))
        ]
    );
    let pools = edge.client().rows("show.pools");
    let pool = &pools[0];
    assert_eq!((&pool["name"], &pool["used"]), (&json!("home"), &json!(2)));
    let count = |field: &str| pool[field].as_u64().unwrap();
    assert_eq!(
        count("used") + count("free") + count("left_out"),
        count("size")
    );
    assert_eq!(pools[1]["schema"], "pool.outside/1");
}

#[test]
fn a_drop_says_whom_and_history_says_why() {
    let directory = Directory::new();
    let (edge, clients, peer) = pair(&directory);
    dial(&clients, &peer);
    let dropped = edge.cli("session drop user1");
    assert!(dropped.status.success());
    let said = text(&dropped);
    assert!(
        said.starts_with("user1: tunnel ") && said.contains("10.64.0.1, up for "),
        "{said}"
    );
    await_end(&edge, "user1");
    let gone = edge.cli("show subscriber user1");
    assert_eq!(gone.status.code(), Some(1));
    let why = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert!(
        why.contains("user1 is not connected; its last session ended ")
            && why.contains("an operator ended it"),
        "{why}"
    );
    assert!(text(&gone).contains("an operator ended it"));
    // The client received it as a PPP message.
    await_end(&clients, "user1");
    let ended = rows_of(&clients, "show subscribers --ended --json");
    assert_eq!(ended[0]["reason"], "the peer ended it");
    for line in [
        "session drop user1",
        "show subscriber nobody",
        "session drop 10.64.0.9",
    ] {
        let output = edge.cli(line);
        assert_eq!(output.status.code(), Some(1), "{line}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("headend show subscribers"), "{line}: {said}");
    }
    for line in [
        "session drop",
        "show subscriber",
        "show subscriber --tunnel 1",
        "capture subscriber x",
    ] {
        assert_eq!(edge.cli(line).status.code(), Some(2), "{line}");
    }
    assert_eq!(edge.client().rows("show.pools")[0]["used"], 0);
}

#[test]
fn a_second_drop_says_what_became_of_the_first() {
    let directory = Directory::new();
    let (edge, clients, peer) = pair(&directory);
    dial(&clients, &peer);
    // The client does not acknowledge the Terminate-Request yet.
    clients.signal("STOP");
    let first = edge.cli("session drop user1 --json");
    let row: Value = serde_json::from_str(&text(&first)).unwrap();
    assert_eq!(
        (&row["outcome"], &row["ending"]),
        (&json!("dropped"), &Value::Null)
    );
    let second = edge.cli("session drop user1 --json");
    assert_eq!(second.status.code(), Some(1));
    let row: Value = serde_json::from_str(&text(&second)).unwrap();
    assert_eq!(
        (&row["outcome"], &row["ending"]),
        (&json!("ending"), &json!("an operator ended it"))
    );
    let third = edge.cli("session drop 10.64.0.1");
    assert_eq!(third.status.code(), Some(1));
    assert!(
        text(&third).ends_with("; is being dropped already: an operator ended it\n"),
        "{}",
        text(&third)
    );
    clients.signal("CONT");
    await_end(&edge, "user1");
    for who in ["user1", "10.64.0.1"] {
        let late = edge.cli(&format!("session drop {who}"));
        assert_eq!(late.status.code(), Some(1));
        let why = String::from_utf8_lossy(&late.stderr).into_owned();
        assert!(
            why.contains("is not connected; its last session ended ")
                && why.contains(" s ago: an operator ended it"),
            "{why}"
        );
    }
}

/// Captured packets: their interfaces and bytes.
fn captured(file: &Path) -> Vec<(u16, Vec<u8>)> {
    let mut reader = capfile::Reader::new(fs::File::open(file).unwrap()).unwrap();
    let mut block = capfile::Block::new();
    let mut packets = Vec::new();
    while reader.read_block(&mut block).unwrap() {
        let records = block.records().iter();
        packets.extend(records.map(|record| (record.interface, block.bytes(record).to_vec())));
    }
    packets
}

#[test]
fn a_capture_that_waits_has_the_link_from_when_it_says_its_name() {
    let directory = Directory::new();
    let (edge, clients, peer) = pair(&directory);
    let file = directory.path("user1.pcapng");
    let nobody = edge.cli(&format!(
        "capture subscriber user1 {} --seconds 1",
        file.display()
    ));
    assert_eq!(nobody.status.code(), Some(1));
    assert!(!file.exists());
    let mut capture = Command::new(HEADEND)
        .args(["capture", "subscriber", "user1"])
        .arg(&file)
        .args(["--wait", "--count", "4", "--socket"])
        .arg(&edge.socket)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !file.exists() {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    dial(&clients, &peer);
    assert!(capture.wait().unwrap().success());
    let mut said = String::new();
    std::io::Read::read_to_string(&mut capture.stderr.take().unwrap(), &mut said).unwrap();
    assert!(
        said.contains("not connected yet") && said.contains("0 packets inside, 4 outside, 0 lost"),
        "{said}"
    );
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let packets = captured(&file);
    assert_eq!(packets.len(), 4);
    for (interface, octets) in packets {
        assert_eq!(interface, 1);
        // IPv4 with UDP between the tunnel's addresses, with correct checksums.
        assert_eq!((octets[0], octets[9]), (0x45, 17));
        assert_eq!(octets[12..20], [127, 0, 0, 1, 127, 0, 0, 1]);
        assert_eq!(wire::checksum::sum(&octets[..20]), 0xffff);
        let udp = u32::from(wire::checksum::pseudo_sum(
            &octets[12..20],
            17,
            octets.len() - 20,
        )) + u32::from(wire::checksum::sum(&octets[20..]));
        assert_eq!((udp & 0xffff) + (udp >> 16), 0xffff);
    }
}

#[test]
fn a_capture_is_ended_by_a_signal_with_a_whole_file() {
    let directory = Directory::new();
    let (edge, clients, peer) = pair(&directory);
    dial(&clients, &peer);
    let file = directory.path("user1.pcapng");
    let mut capture = Command::new(HEADEND)
        .args(["capture", "subscriber", "10.64.0.1"])
        .arg(&file)
        .arg("--socket")
        .arg(&edge.socket)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !file.exists() {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupt = Command::new("kill")
        .args(["-INT", &capture.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    assert!(capture.wait().unwrap().success());
    let octets = fs::read(&file).unwrap();
    // The last block is the second interface's statistics.
    let length = u32::from_le_bytes(*octets.last_chunk().unwrap()) as usize;
    let last = &octets[octets.len() - length..];
    assert_eq!((last[0], last[8]), (5, 1));
    assert!(captured(&file).is_empty());
}

#[test]
fn every_command_of_the_page_runs() {
    // Another process may use the page's port here.
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let done = pages::run(
        "subscribers.md",
        &[("127.0.0.1:17010", &address)],
        |_, _| (),
    );
    assert!(done.files == 5 && done.commands > 24, "{done:?}");
}

#[test]
fn every_command_of_the_page_about_switching_runs() {
    let free = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().to_string()
    };
    let (lac, lns) = (free(), free());
    let done = pages::run(
        "switching.md",
        &[("127.0.0.1:17020", &lac), ("127.0.0.1:17021", &lns)],
        |_, _| (),
    );
    assert!(done.files == 6 && done.commands > 11, "{done:?}");
}

#[test]
fn every_command_of_the_page_about_ipv6_runs() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let ask = |home: &Path, socket: &str, what: &str| {
        let output = Command::new(HEADEND)
            .args(["show", what, "alice", "--json", "--socket", socket])
            .current_dir(home)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let row = text.lines().next().unwrap_or("null");
        serde_json::from_str::<Value>(row).unwrap_or_default()
    };
    let mut seen = None;
    let done = pages::run(
        "ipv6.md",
        &[("127.0.0.1:17025", &address)],
        |home, command| {
            if command.starts_with("headend show pools") {
                // The client asks within a second.
                let begun = Instant::now();
                let row = loop {
                    let row = ask(home, "client.sock", "subscriber");
                    if !row["ipv6"]["delegated"].is_null() || begun.elapsed().as_secs() > 60 {
                        break row;
                    }
                    std::thread::sleep(Duration::from_millis(50));
                };
                seen = Some([row, ask(home, "edge.sock", "subscriber")]);
            }
        },
    );
    assert!(done.files == 3 && done.commands > 9, "{done:?}");
    let [client, edge] = seen.expect("the page shows the pools");
    assert_eq!(client["ipv6"]["dhcpv6"], "bound", "{client}");
    assert_eq!(client["ipv6"]["delegated"], edge["ipv6"]["delegated"]);
    assert_eq!(client["ipv6"]["interface_id"], edge["ipv6"]["interface_id"]);
    assert_eq!(edge["ipv6"]["dhcpv6"], "leased");
    assert_eq!(edge["ppp"]["ipv6cp"], "Opened");
    let left = edge["ipv6"]["delegated_left_s"].as_f64().unwrap();
    assert!(left > 80_000.0 && left <= 86_400.0, "{left}");
}

#[test]
fn every_command_of_the_page_about_changes_runs() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let done = pages::run("policy.md", &[("127.0.0.1:17026", &address)], |_, _| ());
    assert!(done.files == 4 && done.commands > 11, "{done:?}");
}
