//! Rates, templates and links of subscribers: what the sources come to, commands, reloads. Runs every command of the
//! page about them.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::pages;
use crate::support::{Daemon, Directory};

const USERS: &str = "\
[[user]]
name = \"user1\"
password = \"sesame\"
rate_down = \"20mbit\"
[[user]]
name = \"user2\"
password = \"sesame\"
queue = \"gold\"
";

const QUEUES: &str = "\
[queue.default]
template = \"standard\"
link = \"access-7\"
[[queue.template]]
name = \"standard\"
rate_down = \"10mbit\"
rate_up = \"2mbit\"
[[queue.template]]
name = \"gold\"
rate_down = \"50mbit\"
[[queue.link]]
name = \"access-7\"
parent = \"uplink\"
down = \"100mbit\"
up = \"40mbit\"
[[queue.link]]
name = \"uplink\"
";

fn private(directory: &Directory, name: &str, text: &str) {
    let path = directory.write(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// An edge with queues, and two clients of it.
fn pair(directory: &Directory) -> (Daemon, Daemon) {
    pair_with(directory, "")
}

/// The same, with more sections in the file of the edge.
fn pair_with(directory: &Directory, more: &str) -> (Daemon, Daemon) {
    private(directory, "users.toml", USERS);
    let (edge, peer) = Daemon::lns(
        directory,
        &format!(
            "[ppp]\naddress = \"10.64.255.1\"\n[users]\nfile = \"users.toml\"\n\
             [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n{QUEUES}{more}"
        ),
    );
    private(directory, "lac.toml", "");
    let clients = Daemon::lac(
        directory,
        "[client]\nname = \"user{n}\"\nsecret = \"sesame\"\n",
    );
    for _ in 0..2 {
        let session = json!({"session": true});
        let created = clients.client().create(&peer, 2, 1, session).remove(0);
        assert_eq!(created["up"], true);
    }
    (edge, clients)
}

fn detail(edge: &Daemon, name: &str) -> Value {
    let of = json!({"do": "show.subscriber", "of": {"who": name}});
    edge.client().ask(of).remove(0)["row"]["queue"].take()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_subscriber_has_the_queues_that_its_sources_come_to() {
    let directory = Directory::new();
    let (edge, _clients) = pair(&directory);
    assert_eq!(
        detail(&edge, "user1"),
        json!({
            "rate_down_bps": 20_000_000, "rate_down_from": "user",
            "rate_up_bps": 2_000_000, "rate_up_from": "default",
            "template": "standard", "template_from": "default",
            "link": "access-7", "link_from": "default",
        })
    );
    let rows = edge.client().rows("show.subscribers");
    let gold = rows.iter().find(|row| row["name"] == "user2").unwrap();
    assert_eq!(
        (&gold["rate_down_bps"], &gold["template"], &gold["link"]),
        (&json!(50_000_000), &json!("gold"), &json!("access-7"))
    );
    let page = stdout(&edge.cli("show subscriber user1"));
    for line in [
        "rate down        20 Mbit/s (user)\n",
        "rate up          2 Mbit/s (default)\n",
        "template         standard (default)\n",
        "link             access-7 (default)\n",
        "queue down       0 packets, 0 B; 0 waited, 0 dropped, 0 marked\n",
    ] {
        assert!(page.contains(line), "{page}");
    }
}

#[test]
fn a_subscriber_has_the_figures_of_its_queues() {
    let directory = Directory::new();
    let (edge, _clients) = pair(&directory);
    let of = json!({"do": "show.subscriber", "of": {"who": "user1"}});
    let row = edge.client().ask(of).remove(0)["row"].take();
    for (field, direction) in [("queue_down", "down"), ("queue_up", "up")] {
        let of = json!({"do": "show.queue", "who": "user1"});
        let replies = edge.client().ask(of);
        let queues = replies.iter().map(|reply| &reply["row"]);
        let same = queues.filter(|row| row["schema"] == "queue/1" && row["direction"] == direction);
        let [queue] = same.collect::<Vec<_>>()[..] else {
            panic!("{replies:?}");
        };
        for (name, value) in row[field].as_object().unwrap() {
            assert_eq!(value, &queue[name], "{direction} {name}");
        }
        assert_eq!(row[field].as_object().unwrap().len(), 8);
    }
}

#[test]
fn a_command_changes_one_subscriber_until_it_is_reset() {
    let directory = Directory::new();
    let (edge, _clients) = pair(&directory);
    let set = edge.cli("session set user1 --rate-down 30mbit --template gold --rate-up none");
    let said = stdout(&set);
    assert!(set.status.success(), "{}", stderr(&set));
    let lines: Vec<&str> = said.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "  rate down 20 Mbit/s -> 30 Mbit/s",
            "  rate up   2 Mbit/s -> none",
            "  template  standard -> gold",
        ]
    );
    assert_eq!(detail(&edge, "user1")["rate_down_from"], "command");
    assert_eq!(detail(&edge, "user2")["rate_down_bps"], 50_000_000);
    let again = edge.cli("session set 10.64.0.1 --rate-up none --json");
    let row: Value = serde_json::from_str(&stdout(&again)).unwrap();
    assert_eq!(
        (&row["schema"], &row["before"]),
        (&json!("subscriber.set/1"), &row["after"])
    );
    let reset = stdout(&edge.cli("session set user1 --reset"));
    assert!(
        reset.contains("rate down 30 Mbit/s -> 20 Mbit/s"),
        "{reset}"
    );
    assert_eq!(detail(&edge, "user1")["template_from"], "default");
}

#[test]
fn what_cannot_be_set_is_refused_by_name_and_changes_nothing() {
    let directory = Directory::new();
    let (edge, _clients) = pair(&directory);
    let before = detail(&edge, "user1");
    for (line, words) in [
        (
            "session set user1 --rate-down 200mbit",
            "link access-7 has 100 Mbit/s down, of which 2 subscribers may use 70 Mbit/s: 200 Mbit/s is more than the whole link",
        ),
        (
            "session set user1 --template god",
            "there is no template \"god\"; there are standard, gold, default",
        ),
        (
            "session set user1 --link access-8",
            "there is no link \"access-8\"; there are access-7, uplink",
        ),
        (
            "session set user* --rate-up 1mbit",
            "name one subscriber; there is no wildcard",
        ),
        (
            "session set nobody --rate-up 1mbit",
            "no subscriber \"nobody\" is connected",
        ),
        (
            "session set user1 --rate-up 20",
            "rate_up_bps must be 0 (no limit), or 8 kbit/s to 1000 Gbit/s",
        ),
    ] {
        let output = edge.cli(line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
    }
    for line in [
        "session set user1",
        "session set --rate-up 1mbit",
        "session set user1 --rate-down fast",
    ] {
        assert_eq!(edge.cli(line).status.code(), Some(2), "{line}");
    }
    assert_eq!(detail(&edge, "user1"), before);
}

#[test]
fn a_name_with_several_sessions_is_refused() {
    let directory = Directory::new();
    let (edge, clients) = pair(&directory);
    let peers = clients.client().rows("show.tunnels");
    let peer = peers[0]["peer"].as_str().unwrap().to_owned();
    drop(clients);
    private(&directory, "twin.toml", "");
    let twins = Daemon::start(
        &directory,
        "twin",
        "[lac]\nlisten = [\"127.0.0.1:0\"]\n[client]\nname = \"user2\"\nsecret = \"sesame\"\n",
    );
    for _ in 0..2 {
        let session = json!({"session": true});
        twins.client().create(&peer, 2, 1, session);
    }
    let output = edge.cli("session set user2 --rate-up 1mbit");
    let said = stderr(&output);
    assert!(
        said.contains("sessions have the name \"user2\"; name one by its address"),
        "{said}"
    );
}

#[test]
fn a_reload_changes_connected_subscribers() {
    let directory = Directory::new();
    let (edge, _clients) = pair(&directory);
    let path = directory.path("lns.toml");
    let text = fs::read_to_string(&path).unwrap();
    let changed = text
        .replace("rate_up = \"2mbit\"", "rate_up = \"3mbit\"")
        .replace("name = \"gold\"", "name = \"silver\"")
        .replace("down = \"100mbit\"", "down = \"19mbit\"");
    fs::write(&path, &changed).unwrap();
    // The users file names the template that is gone, and a user's default link became too narrow for nobody's rate.
    let refused = stderr(&edge.cli("reload"));
    assert!(
        refused.contains("user[2].queue: there is no template \"gold\""),
        "{refused}"
    );
    private(&directory, "users.toml", &USERS.replace("gold", "silver"));
    let done = edge.cli("reload");
    assert!(done.status.success(), "{}", stderr(&done));
    let begun = Instant::now();
    while detail(&edge, "user1")["rate_up_bps"] != 3_000_000 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    // Its profile still names the template that is gone: the default decides.
    let second = detail(&edge, "user2");
    assert_eq!(
        (&second["template"], &second["template_from"]),
        (&json!("standard"), &json!("default"))
    );
    let counters = edge.client().rows("show.counters");
    let faults = counters
        .iter()
        .find(|row| row["name"] == "subscriber_queue_faults")
        .unwrap();
    // The template of the second, and the rate of the first over its link.
    assert_eq!(faults["value"], 2);
}

/// What `show queue` prints for a subscriber: the thread and the links of its queue down.
fn place(edge: &Daemon, name: &str) -> (u64, String) {
    let shown = edge.cli(&format!("show queue {name} --json"));
    assert!(shown.status.success(), "{}", stderr(&shown));
    let said = stdout(&shown);
    let row: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&row["subscriber"], &row["direction"]),
        (&json!(name), &json!("down"))
    );
    let links = row["links"].as_str().unwrap().to_owned();
    (row["shard"].as_u64().unwrap(), links)
}

#[test]
fn each_thread_has_queues_and_every_door_reaches_them() {
    let directory = Directory::new();
    let other = "[[queue.link]]\nname = \"access-8\"\ndown = \"50mbit\"\n";
    let (edge, _clients) = pair_with(&directory, &format!("{other}[event]\nshards = 3\n"));
    let (first, links) = place(&edge, "user1");
    assert_eq!(links, "access-7,uplink");
    // One tree is on one thread, and another tree on another.
    assert_eq!(place(&edge, "user2").0, first);
    assert!(
        edge.cli("session set user2 --link access-8")
            .status
            .success()
    );
    let (second, links) = place(&edge, "user2");
    assert!(second != first && links == "access-8", "{second} {links}");
    let queues = |edge: &Daemon| -> Vec<u64> {
        let rows = edge.client().rows("show.event.shards");
        rows.iter()
            .map(|row| row["queues"].as_u64().unwrap())
            .collect()
    };
    let all = queues(&edge);
    assert_eq!(
        (all[first as usize], all[second as usize], all.len()),
        (1, 1, 3)
    );
    // A plan that joins both trees brings them to one thread.
    let path = directory.path("lns.toml");
    let text = fs::read_to_string(&path).unwrap();
    let joined = text.replace(
        "name = \"access-8\"\n",
        "name = \"access-8\"\nparent = \"uplink\"\n",
    );
    fs::write(&path, joined).unwrap();
    assert!(edge.cli("reload").status.success());
    let (one, links) = place(&edge, "user2");
    assert_eq!(
        (one, links.as_str()),
        (place(&edge, "user1").0, "access-8,uplink")
    );
    assert_eq!(queues(&edge).into_iter().max(), Some(2));
    let set = edge.cli("session set user1 --rate-down none --link access-8");
    assert!(set.status.success(), "{}", stderr(&set));
    assert_eq!(place(&edge, "user1"), (one, "access-8,uplink".to_owned()));
}

#[test]
fn every_command_of_the_page_runs() {
    // Another process may use the page's port here.
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let done = pages::run(
        "subscriber-queues.md",
        &[("127.0.0.1:17020", &address)],
        |_, _| (),
    );
    assert!(done.files == 3 && done.commands > 16, "{done:?}");
}
