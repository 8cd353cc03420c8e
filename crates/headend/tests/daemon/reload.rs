//! Tests which keys a reload applies, what the daemon reports about each key, and how a reload is
//! undone.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Daemon, Directory};

const EDGE: &str = "\
[ppp]\naddress = \"10.64.255.1\"\n\
[[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n\
[users]\nfile = \"users.toml\"\n";

fn write_users(directory: &Directory, users: &str) {
    let path = directory.write("users.toml", users);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn edge(directory: &Directory, more: &str) -> (Daemon, String) {
    write_users(
        directory,
        "[[user]]\nname = \"user1\"\npassword = \"sesame\"\n",
    );
    Daemon::lns(directory, &format!("{EDGE}{more}"))
}

/// Replaces text of the edge's configuration file.
fn edit(directory: &Directory, old: &str, new: &str) {
    let text = fs::read_to_string(directory.path("lns.toml")).unwrap();
    assert!(text.contains(old), "{text}");
    directory.write("lns.toml", &text.replacen(old, new, 1));
}

/// The rows of `headend reload --json`: the effect of each key, and the sums.
fn reload(edge: &Daemon, flags: &str) -> (BTreeMap<String, Value>, Value) {
    let output = edge.cli(&format!("reload --json {flags}"));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut rows: Vec<Value> = rows.collect();
    let error = String::from_utf8_lossy(&output.stderr);
    let sums = rows.pop().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(sums["schema"], "reload/1");
    assert!(rows.iter().all(|row| row["schema"] == "reload.change/1"));
    let key = |row: &Value| row["key"].as_str().unwrap().to_owned();
    (
        rows.iter().map(|row| (key(row), row.clone())).collect(),
        sums,
    )
}

fn refusal(edge: &Daemon, line: &str) -> String {
    let output = edge.cli(line);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn pools(edge: &Daemon) -> Vec<String> {
    let rows = edge.client().rows("show.pools");
    let names = rows.iter().filter_map(|row| row["name"].as_str());
    names.map(str::to_owned).collect()
}

fn dial(clients: &Daemon, peer: &str) -> Value {
    let session = json!({"session": true});
    clients.client().create(peer, 2, 1, session).remove(0)
}

#[test]
fn a_reload_says_of_each_key_whether_it_applies_or_needs_a_restart() {
    let directory = Directory::new();
    let (edge, _) = edge(&directory, "");
    let (changes, sums) = reload(&edge, "");
    assert!(changes.is_empty(), "{changes:?}");
    assert_eq!((&sums["applied"], &sums["restart"]), (&json!(0), &json!(0)));

    edit(
        &directory,
        "[ppp]\n",
        "[event]\nbatch = 7\n[ppp]\necho_interval_s = 7\nmru = 1400\n",
    );
    edit(
        &directory,
        "[users]\n",
        "[[pool]]\nname = \"guests\"\nranges = [\"10.65.0.0/24\"]\n[users]\n",
    );
    write_users(
        &directory,
        "[[user]]\nname = \"user2\"\npassword = \"sesame\"\npool = \"guests\"\n",
    );
    let (changes, sums) = reload(&edge, "");
    let told: Vec<(&str, &str)> = changes
        .iter()
        .map(|(key, row)| (&**key, row["effect"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("event.batch", "restart"),
            ("pool", "applied"),
            ("pool[guests].name", "applied"),
            ("pool[guests].ranges", "applied"),
            ("ppp.echo_interval_s", "applied"),
            ("ppp.mru", "applied-to-new"),
            ("users.file", "applied"),
        ]
    );
    let batch = &changes["event.batch"];
    assert_eq!((&batch["old"], &batch["new"]), (&Value::Null, &json!("7")));
    assert_eq!(changes["pool"]["new"], "[home, guests]");
    assert_eq!(
        changes["users.file"]["note"],
        "the content of the file has changed"
    );
    assert_eq!((&sums["applied"], &sums["restart"]), (&json!(6), &json!(1)));
    assert_eq!(pools(&edge), ["home", "guests"]);

    // The key that needs a restart is listed again; the others are in force.
    edge.signal("HUP");
    let line = "event.batch: default -> 7: restart";
    edge.client().await_stats("the signal is logged", |_| {
        edge.log().matches(line).count() == 2
    });
    let (changes, _) = reload(&edge, "");
    assert_eq!(changes.keys().collect::<Vec<_>>(), ["event.batch"]);
    assert_eq!(edge.client().stats()["reloads"], 3);
}

#[test]
fn a_file_with_a_fault_changes_nothing() {
    let directory = Directory::new();
    let (edge, _) = edge(&directory, "");
    edit(&directory, "name = \"home\"", "name = \"guests\"");
    write_users(
        &directory,
        "[[user]]\nname = \"user1\"\npassword = \"sesame\"\npool = \"home\"\n",
    );
    let told = refusal(&edge, "reload");
    assert!(
        told.contains(
            "users.toml:4:8: user[1].pool: there is no pool \"home\"; there are \"guests\""
        ),
        "{told}"
    );
    assert_eq!(pools(&edge), ["home"]);
    edge.signal("HUP");
    edge.client().await_stats("the fault is logged", |_| {
        edge.log().contains("SIGHUP: no setting was changed")
    });
    assert_eq!(edge.client().stats()["reloads"], 0);
}

#[test]
fn a_reload_that_is_not_confirmed_undoes_itself() {
    let directory = Directory::new();
    let (edge, peer) = edge(&directory, "");
    let clients = Daemon::lac(
        &directory,
        "[client]\nname = \"user1\"\nsecret = \"sesame\"\n",
    );
    write_users(
        &directory,
        "[[user]]\nname = \"other\"\npassword = \"sesame\"\n",
    );
    edit(&directory, "name = \"home\"", "name = \"guests\"");
    let (_, sums) = reload(&edge, "--timeout 5");
    assert_eq!(sums["undo_in_s"], 5.0);
    assert_eq!(
        dial(&clients, &peer)["up"],
        false,
        "the new users are in force"
    );
    assert_eq!(pools(&edge), ["guests"]);
    let left = edge.client().stats()["undo_in_s"].as_f64().unwrap();
    assert!(left > 0.0 && left <= 5.0, "{left}");
    for line in ["reload", "reload --timeout 9"] {
        let told = refusal(&edge, line);
        assert!(told.contains("the last reload is undone in"), "{told}");
        assert!(told.contains("headend confirm"), "{told}");
    }
    // A signal is refused as well, and changes nothing.
    edge.signal("HUP");
    edge.client()
        .await_stats("it is undone", |stats| stats["undo_in_s"].is_null());
    assert_eq!(pools(&edge), ["home"]);
    assert_eq!(dial(&clients, &peer)["up"], true, "the old users are back");
    let log = edge.log();
    assert!(
        log.contains("no \"headend confirm\" came within 5 s"),
        "{log}"
    );
    assert!(log.contains("SIGHUP: no setting was changed"), "{log}");
    // The file has not changed, so that the same reload is possible again.
    let (changes, _) = reload(&edge, "");
    assert!(
        changes.contains_key("users.file") && changes.contains_key("pool"),
        "{changes:?}"
    );
}

#[test]
fn a_reload_that_is_confirmed_stays() {
    let directory = Directory::new();
    let (edge, _) = edge(&directory, "");
    let told = refusal(&edge, "confirm");
    assert!(
        told.contains("no reload waits for a confirmation"),
        "{told}"
    );
    edit(&directory, "name = \"home\"", "name = \"guests\"");
    let (_, sums) = reload(&edge, "--timeout 2");
    assert_eq!(sums["failed"], 0);
    assert!(edge.cli("confirm").status.success());
    assert!(edge.client().stats()["undo_in_s"].is_null());
    // Another reload is possible at once.
    let (changes, _) = reload(&edge, "--timeout 1");
    assert!(changes.is_empty());
    edge.client()
        .await_stats("it is undone", |stats| stats["undo_in_s"].is_null());
    assert_eq!(
        pools(&edge),
        ["guests"],
        "the undo goes back to what was confirmed"
    );
    let wrong = edge.client().ask(json!({"do": "reload", "timeout_s": 0.5}));
    assert_eq!(wrong[0]["error"]["code"], "bad-request");
}

/// A RADIUS server that only listens.
fn silent() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let address = socket.local_addr().unwrap().to_string();
    (socket, address)
}

#[test]
fn radius_servers_are_replaced_and_requests_move_to_the_new_ones() {
    let directory = Directory::new();
    let ([old, new], door) = ([silent(), silent()], silent());
    let server = |address: &str, secret: &str| {
        format!(
            "[[radius.server]]\nname = \"one\"\nauthentication = \"{address}\"\nsecret = \"{secret}\"\n"
        )
    };
    let before = server(&old.1, "old secret");
    let (edge, peer) = edge(&directory, &before);
    let clients = Daemon::lac(
        &directory,
        "[client]\nname = \"stranger\"\nsecret = \"sesame\"\n",
    );
    let wait = json!({"session": true, "wait": "none"});
    clients.client().create(&peer, 2, 1, wait);
    let mut request = [0; 4_096];
    old.0.recv(&mut request).unwrap();
    assert_eq!(request[0], 1, "an Access-Request");

    let taken = format!("[radius]\ndisconnect = \"{}\"\n", door.1);
    edit(
        &directory,
        &before,
        &(taken + &server(&new.1, "new secret")),
    );
    let (changes, sums) = reload(&edge, "");
    new.0.recv(&mut request).unwrap();
    assert_eq!(request[0], 1, "the same request at the new server");
    assert_eq!(
        changes["radius.server[one].authentication"]["effect"],
        "applied"
    );
    let secret = &changes["radius.server[one].secret"];
    assert_eq!(
        (&secret["old"], &secret["new"], &secret["note"]),
        (
            &json!("(secret)"),
            &json!("(secret)"),
            &json!("another secret")
        )
    );
    assert!(!edge.log().contains("new secret"), "{}", edge.log());
    // The address for Disconnect-Requests is in use.
    let failed = &changes["radius.disconnect"];
    assert_eq!(
        (&failed["effect"], &sums["failed"]),
        (&json!("failed"), &json!(1))
    );
    assert!(
        failed["note"].as_str().unwrap().contains("in use"),
        "{failed}"
    );
    assert_eq!(edge.cli("reload").status.code(), Some(1));
    drop(door.0);
    let (changes, sums) = reload(&edge, "");
    assert_eq!(
        (changes.len(), &sums["applied"]),
        (1, &json!(1)),
        "{changes:?}"
    );
    let servers = edge.client().rows("show.radius");
    assert_eq!(servers[0]["address"], new.1);
    assert!(
        servers.iter().all(|row| row["address"] != old.1),
        "{servers:?}"
    );
}

/// Tunnels of a removed address go on; its socket is closed after the last of them.
// long: one scenario, step by step
#[test]
fn listen_addresses_are_added_and_removed_without_losing_a_tunnel() {
    let directory = Directory::new();
    let (lns, first) = Daemon::lns(
        &directory,
        "[l2tp]\nhold_s = 0\nsetup_timeout_s = 2\nretransmit_tries = 1\n",
    );
    let lac = Daemon::lac(
        &directory,
        "[l2tp]\nhold_s = 0\nretransmit_first_s = 0.1\nretransmit_tries = 1\n",
    );
    let tunnel = |peer: &str| lac.client().create(peer, 3, 1, json!({})).remove(0);
    let old = tunnel(&first);
    assert_eq!(old["up"], true, "{old}");
    edit(
        &directory,
        "[\"127.0.0.1:0\"]",
        "[\"127.0.0.1:0\", \"127.0.0.2:0\"]",
    );
    let (changes, _) = reload(&lns, "");
    assert_eq!(changes["lns.listen"]["effect"], "applied");
    let listening = |lns: &Daemon| -> Vec<String> {
        let stats = lns.client().stats();
        let all = stats["lns"].as_array().unwrap().iter();
        all.map(|one| one.as_str().unwrap().to_owned()).collect()
    };
    let both = listening(&lns);
    assert_eq!((both.len(), &both[0]), (2, &first));
    assert!(both[1].starts_with("127.0.0.2:"), "{both:?}");
    assert_eq!(tunnel(&both[1])["up"], true);

    // An address that is in use changes nothing.
    let (_taken, address) = silent();
    edit(
        &directory,
        "\"127.0.0.1:0\", \"127.0.0.2:0\"",
        &format!("\"127.0.0.2:0\", \"{address}\""),
    );
    let (changes, _) = reload(&lns, "");
    let failed = &changes["lns.listen"];
    assert_eq!(failed["effect"], "failed");
    assert!(
        failed["note"].as_str().unwrap().contains(&address),
        "{failed}"
    );
    assert_eq!(listening(&lns), both);

    edit(
        &directory,
        &format!("\"127.0.0.2:0\", \"{address}\""),
        "\"127.0.0.2:0\"",
    );
    let (changes, sums) = reload(&lns, "");
    assert_eq!(
        (changes.len(), &sums["failed"]),
        (1, &json!(0)),
        "{changes:?}"
    );
    assert_eq!(listening(&lns), both[1..]);
    let refused = tunnel(&first);
    assert_eq!(refused["up"], false, "{refused}");
    assert_eq!(tunnel(&both[1])["up"], true);
    let sockets = lns.client().stats()["sockets"].clone();
    let session = json!({"do": "session.create", "tunnel": old["tunnel"]});
    assert_eq!(
        lac.client().ask(session)[0]["up"],
        true,
        "the old tunnel goes on"
    );
    let delete = json!({"do": "tunnel.delete", "tunnel": old["tunnel"]});
    assert_eq!(lac.client().ask(delete)[0]["ok"], true);
    lns.client().await_stats("the socket is closed", |stats| {
        stats["sockets"].as_u64().unwrap() == sockets.as_u64().unwrap() - 1
    });
    assert!(lns.log().contains("no longer listening"), "{}", lns.log());
}

#[test]
fn the_level_of_the_log_changes_at_once() {
    let directory = Directory::new();
    let (edge, peer) = edge(&directory, "");
    let lac = Daemon::lac(&directory, "");
    let lines = |edge: &Daemon| edge.log().matches("tunnel up").count();
    let open = || lac.client().create(&peer, 3, 1, json!({})).remove(0);
    assert_eq!(open()["up"], true);
    edge.client()
        .await_stats("the tunnel is logged", |_| lines(&edge) == 1);
    edit(&directory, "level = \"debug\"", "level = \"info\"");
    let (changes, _) = reload(&edge, "");
    assert_eq!(changes["log.level"]["effect"], "applied");
    assert_eq!(open()["up"], true);
    edit(&directory, "level = \"info\"", "level = \"debug\"");
    reload(&edge, "");
    assert_eq!(open()["up"], true);
    edge.client()
        .await_stats("only the last is logged", |_| lines(&edge) == 2);
}
