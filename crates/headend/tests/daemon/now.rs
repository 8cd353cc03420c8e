//! Tests the row of the whole daemon against the other rows, which count by walking over what they list.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Client, Daemon, Directory};

const USERS: &str = "\
[[user]]
name = \"user1\"
password = \"sesame\"
[[user]]
name = \"user2\"
password = \"sesame\"
";

/// An edge with two users, and a concentrator whose sessions are clients `user1`, `user2` and so on.
fn pair(directory: &Directory) -> (Daemon, Daemon, String) {
    let users = directory.write("users.toml", USERS);
    fs::set_permissions(users, fs::Permissions::from_mode(0o600)).unwrap();
    let (edge, peer) = Daemon::lns(
        directory,
        "[ppp]\naddress = \"10.64.255.1\"\n[[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n\
             [users]\nfile = \"users.toml\"\n",
    );
    (edge, client_of(directory), peer)
}

/// A concentrator whose sessions are clients `user1`, `user2` and so on.
fn client_of(directory: &Directory) -> Daemon {
    let lac = directory.write("lac.toml", "");
    fs::set_permissions(lac, fs::Permissions::from_mode(0o600)).unwrap();
    Daemon::lac(
        directory,
        "[client]\nname = \"user{n}\"\nsecret = \"sesame\"\n",
    )
}

fn dial(clients: &Daemon, peer: &str) -> Value {
    let session = json!({"session": true});
    clients.client().create(peer, 2, 1, session).remove(0)
}

fn now(client: &mut Client) -> Value {
    let mut rows = client.rows("show.now");
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

/// Asks until the row is as wanted.
fn await_now(client: &mut Client, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let row = now(client);
        if is_so(&row) {
            return row;
        }
        let waits = started.elapsed();
        assert!(waits < Duration::from_secs(60), "waited for {what}: {row}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn sum(object: &Value) -> u64 {
    let values = object.as_object().unwrap().values();
    values.map(|value| value.as_u64().unwrap()).sum()
}

#[test]
fn the_row_of_the_daemon_agrees_with_the_rows_of_each_table() {
    let directory = Directory::new();
    let (edge, clients, peer) = pair(&directory);
    let mut client = edge.client();
    let idle = now(&mut client);
    assert_eq!(sum(&idle["subscribers"]["by_state"]), 0, "{idle}");
    assert_eq!(
        (&idle["radius"], &idle["bgp"]),
        (&Value::Null, &Value::Null)
    );
    for _ in 0..2 {
        assert_eq!(dial(&clients, &peer)["up"], true);
    }
    assert_eq!(dial(&clients, &peer)["up"], false, "there is no third user");
    let row = await_now(&mut client, "two are up", |row| {
        row["subscribers"]["by_state"]["up"] == 2 && row["tunnels"]["by_state"]["established"] == 2
    });
    let subscribers = &row["subscribers"];
    let listed = client.rows("show.subscribers");
    assert_eq!(sum(&subscribers["by_state"]), listed.len() as u64);
    assert_eq!(subscribers["came_up"], 2);
    assert_eq!(subscribers["refused"]["rejected"], 1);
    assert_eq!(sum(&subscribers["refused"]), 1, "{row}");
    assert_eq!(sum(&subscribers["ended"]), 1, "{row}");
    assert_eq!(subscribers["ended"]["User Error"], 1);
    let pool = client.rows("show.pools").remove(0);
    let short = json!({"name": "home", "size": pool["size"], "used": 2});
    assert_eq!(row["pools"], json!([short]));
    assert_eq!(row["tunnels"]["sessions"], 2);
    let traffic = |row: &Value, field: &str| {
        listed_sum(&client_rows(&edge, "show.subscribers"), field) == row["traffic"][field]
    };
    for field in ["packets_in", "octets_in", "packets_out", "octets_out"] {
        assert!(traffic(&now(&mut client), field), "{field}");
    }
    let dropped = client.ask(json!({"do": "session.drop", "who": "user2"}));
    assert_eq!(dropped[0]["row"]["outcome"], "dropped");
    let row = await_now(&mut client, "one is left", |row| {
        sum(&row["subscribers"]["by_state"]) == 1
    });
    assert_eq!(row["subscribers"]["ended"]["Admin Reset"], 1);
    assert_eq!(row["pools"][0]["used"], 1);
}

fn client_rows(daemon: &Daemon, verb: &str) -> Vec<Value> {
    daemon.client().rows(verb)
}

fn listed_sum(rows: &[Value], field: &str) -> u64 {
    rows.iter().map(|row| row[field].as_u64().unwrap()).sum()
}

#[test]
fn two_rows_give_the_rates_of_the_time_between_them() {
    let directory = Directory::new();
    let (edge, _clients, _peer) = pair(&directory);
    let mut client = edge.client();
    let first = now(&mut client);
    std::thread::sleep(Duration::from_millis(20));
    let second = now(&mut client);
    let grew = |field: &str| {
        let of = |row: &Value| row["event_loop"][field].as_f64().unwrap();
        of(&second) - of(&first)
    };
    assert!(grew("waited_s") > 0.0 && grew("busy_s") > 0.0, "{second}");
    let control = |row: &Value| row["event_loop"]["handlers_s"]["control"].as_f64().unwrap();
    assert!(control(&second) > control(&first));
    assert!(second["at_s"].as_f64() > first["at_s"].as_f64());
    let timers = client.rows("show.event.timers").remove(0);
    assert!(sum(&second["event_loop"]["lateness"]) <= timers["fired"].as_u64().unwrap());
    let classes = second["event_loop"]["lateness"].as_object().unwrap();
    let bounds = classes.keys().filter(|key| *key != "inf");
    assert!(bounds.clone().all(|key| key.parse::<f64>().is_ok()));
    assert_eq!(bounds.count(), 29, "every bound is there from the start");
}

/// A router that accepts any peer on this host.
const ROUTER: &str = "\
[bgp]
asn = 65000
router_id = \"127.0.0.1\"
listen = [\"127.0.0.1:0\"]
[[bgp.dynamic]]
prefix = \"127.0.0.0/8\"
remote_asn = \"any\"
hold_time_s = 3
import = \"accept\"
export = \"accept\"
";

#[test]
fn the_routers_part_counts_updates_and_notes_the_margin_of_hold_timers() {
    let directory = Directory::new();
    let router = Daemon::start(&directory, "router", ROUTER);
    let mut client = router.client();
    let bgp = now(&mut client)["bgp"].take();
    let alone = json!({
        "peers": 0, "established": 0, "prefixes": 0, "updates_in": 0, "updates_out": 0,
        "hold_margin_s": null
    });
    assert_eq!(bgp, alone);
    let address = client.stats()["bgp"][0].as_str().unwrap().to_owned();
    let (_, port) = address.rsplit_once(':').unwrap();
    let customer = format!(
        "[bgp]\nasn = 65001\nrouter_id = \"127.0.0.2\"\nlisten = []\nnetworks = [\"198.51.100.0/24\"]\n\
         [[bgp.neighbor]]\naddress = \"127.0.0.1\"\nport = {port}\nlocal_address = \"127.0.0.2\"\n\
         remote_asn = 65000\nimport = \"accept\"\nexport = \"accept\"\n"
    );
    let customer = Daemon::start(&directory, "customer", &customer);
    let row = await_now(&mut client, "a margin", |row| {
        row["bgp"]["prefixes"] == 1 && !row["bgp"]["hold_margin_s"].is_null()
    });
    let bgp = &row["bgp"];
    assert_eq!((&bgp["peers"], &bgp["established"]), (&json!(1), &json!(1)));
    assert!(bgp["updates_in"].as_u64() >= Some(1), "{bgp}");
    let margin = bgp["hold_margin_s"].as_f64().unwrap();
    assert!((0.0..=3.0).contains(&margin), "{bgp}");
    let theirs = await_now(&mut customer.client(), "its updates", |row| {
        row["bgp"]["updates_out"].as_u64() >= Some(1)
    });
    assert_eq!(theirs["bgp"]["established"], 1);
}

#[test]
fn requests_to_radius_that_no_server_answers_are_counted() {
    let directory = Directory::new();
    let (edge, peer) = Daemon::lns(
        &directory,
        "[ppp]\naddress = \"10.64.255.1\"\n[[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n\
         [radius]\nnas_identifier = \"edge\"\n[[radius.server]]\nname = \"one\"\n\
         authentication = \"127.0.0.1:9\"\nsecret = \"sesame\"\ntimeout_s = 0.5\ntransmissions = 1\n",
    );
    let (clients, mut client) = (client_of(&directory), edge.client());
    let radius = now(&mut client)["radius"].take();
    assert_eq!(
        (&radius["failed"], &radius["outstanding"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(sum(&radius["round_trips"]), 0);
    assert_eq!(radius["round_trips"].as_object().unwrap().len(), 21);
    assert_eq!(dial(&clients, &peer)["up"], false);
    let row = await_now(&mut client, "a failure", |row| row["radius"]["failed"] == 1);
    assert_eq!(row["subscribers"]["refused"]["no-server"], 1, "{row}");
}

#[test]
fn the_last_seconds_are_recorded_though_the_daemon_slept_through_them() {
    let directory = Directory::new();
    let (edge, clients, peer) = pair(&directory);
    let mut client = edge.client();
    assert_eq!(dial(&clients, &peer)["up"], true);
    let came_up = json!({"do": "show.history", "series": "subscribers.came_up", "step_s": 1});
    let started = Instant::now();
    let row = loop {
        let mut lines = client.ask(came_up.clone());
        let row = lines.remove(0)["row"].take();
        let values = row["values"].as_array().map_or(0, Vec::len);
        if values >= 3 {
            break row;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{row}");
        std::thread::sleep(Duration::from_millis(1_500));
    };
    assert_eq!((&row["step_s"], &row["is_rate"]), (&json!(1), &json!(true)));
    let values = row["values"].as_array().unwrap();
    let all: f64 = values.iter().map(|value| value.as_f64().unwrap()).sum();
    assert_eq!(all, 1.0, "{row}");
    let present = now(&mut client);
    let last = row["first_s"].as_f64().unwrap() + values.len() as f64 - 1.0;
    let at = present["at_s"].as_f64().unwrap();
    assert!(last <= at, "{last} {at}");
    let up = client.ask(json!({"do": "show.history", "series": "subscribers.by_state.up"}));
    assert_eq!(up.len(), 2, "one row and the end: no minute has passed");
    let last = up[0]["row"]["values"].as_array().unwrap().last();
    assert_eq!(
        last,
        Some(&present["subscribers"]["by_state"]["up"].as_f64().into())
    );
}

#[test]
fn the_past_has_the_fields_of_the_row_and_refuses_what_is_no_field() {
    let directory = Directory::new();
    let (edge, _clients, _peer) = pair(&directory);
    let mut client = edge.client();
    let present = now(&mut client);
    let started = Instant::now();
    let names = loop {
        let rows = client.rows("show.history");
        if !rows.is_empty() {
            break rows;
        }
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(100));
    };
    let names: Vec<_> = names
        .iter()
        .map(|row| row["series"].as_str().unwrap())
        .collect();
    assert!(names.len() > 30, "{names:?}");
    for name in &names {
        let name = name.trim_end_matches(".p99");
        if name.starts_with("pools.") {
            continue;
        }
        let path: Vec<&str> = name.splitn(3, '.').collect();
        let found = path.iter().fold(&present, |at, key| &at[*key]);
        assert!(!found.is_null(), "{name} is no field of {present}");
    }
    assert!(!names.iter().any(|name| name.starts_with("bgp.")), "no BGP");
    for (bad, why) in [
        (json!({"series": "colour"}), "now/1 has no field \"colour\""),
        (
            json!({"step_s": 5}),
            "must be 1 (ten minutes) or 60 (a day)",
        ),
    ] {
        let mut request = json!({"do": "show.history"});
        for (key, value) in bad.as_object().unwrap() {
            request[key] = value.clone();
        }
        let answer = client.ask(request).remove(0);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
    }
}

/// Echoes every 0.1 s, so that there are round trips soon.
#[test]
fn the_longest_round_trips_are_listed_first_and_a_list_ends_at_its_limit() {
    let directory = Directory::new();
    let third = "[[user]]\nname = \"user3\"\npassword = \"sesame\"\n";
    let users = directory.write("users.toml", &format!("{USERS}{third}"));
    fs::set_permissions(users, fs::Permissions::from_mode(0o600)).unwrap();
    let (edge, peer) = Daemon::lns(
        &directory,
        "[ppp]\naddress = \"10.64.255.1\"\necho_interval_s = 0.1\n[[pool]]\nname = \"home\"\n\
         ranges = [\"10.64.0.0/24\"]\n[users]\nfile = \"users.toml\"\n",
    );
    let (clients, mut client) = (client_of(&directory), edge.client());
    for _ in 0..3 {
        assert_eq!(dial(&clients, &peer)["up"], true);
    }
    let mut ask = |request: Value| {
        let mut lines = client.ask(request);
        lines.pop();
        let rows = lines.into_iter().map(|mut line| line["row"].take());
        rows.collect::<Vec<_>>()
    };
    let started = Instant::now();
    let worst = loop {
        let worst = ask(json!({"do": "show.worst", "by": "round-trip"}));
        if worst.len() == 3 {
            break worst;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{worst:?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let trips = worst.iter().map(|row| row["echo_rtt_us"].as_u64().unwrap());
    assert!(trips.rev().is_sorted(), "{worst:?}");
    let detail = ask(json!({"do": "show.subscriber", "of": {"who": "user1"}}));
    assert!(detail[0]["echo_rtt_us"].as_u64().is_some(), "{detail:?}");
    let one = ask(json!({"do": "show.worst", "by": "round-trip", "count": 1}));
    assert_eq!(one.len(), 1);
    assert_eq!(
        ask(json!({"do": "show.worst"})).len(),
        0,
        "none was dropped"
    );
    for (limit, rows) in [(0, 0), (2, 2), (9, 3)] {
        let listed = ask(json!({"do": "show.subscribers", "limit": limit}));
        assert_eq!(listed.len(), rows, "{limit}");
    }
    orders_are_over_all_subscribers(&mut ask);
    let named = ask(json!({"do": "show.subscribers", "name": "user3", "limit": 1}));
    assert_eq!(
        named[0]["name"], "user3",
        "the limit counts rows, not visits"
    );
    let refused = client.ask(json!({"do": "show.worst", "count": 0}));
    assert_eq!(refused[0]["error"]["code"], "bad-request", "{refused:?}");
    wrong_orders_are_refused(&mut client);
    let page = edge.cli("show now");
    let page = String::from_utf8(page.stdout).unwrap();
    assert!(page.contains("subscribers      3 up\n"), "{page}");
}

/// Three subscribers, `user1` the oldest.
fn orders_are_over_all_subscribers(ask: &mut impl FnMut(Value) -> Vec<Value>) {
    let sorted = |order: &str, reverse: bool, limit: u32| json!({"do": "show.subscribers", "sort": order, "reverse": reverse, "limit": limit});
    let mut names = |order, reverse, limit| {
        let rows = ask(sorted(order, reverse, limit));
        let names = rows
            .iter()
            .map(|row| row["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("name", false, 2), ["user1", "user2"]);
    assert_eq!(names("name", true, 1), ["user3"]);
    assert_eq!(names("age", false, 9), ["user1", "user2", "user3"]);
    assert_eq!(names("age", true, 2), ["user3", "user2"]);
    for order in ["rate", "dropped", "round-trip"] {
        assert_eq!(names(order, false, 1_000).len(), 3, "{order}");
    }
    let longest = ask(sorted("round-trip", true, 3));
    let trips = longest
        .iter()
        .map(|row| row["echo_rtt_us"].as_u64().unwrap());
    assert!(trips.is_sorted(), "{longest:?}");
}

fn wrong_orders_are_refused(client: &mut Client) {
    for (wrong, message) in [
        (
            json!({"sort": "rate"}),
            "limit is missing; with sort it must be 1 to 1000",
        ),
        (json!({"sort": "rate", "limit": 1_001}), "limit is 1001;"),
        (json!({"limit": 5, "reverse": true}), "reverse needs sort"),
        (json!({"sort": "speed", "limit": 5}), "speed"),
    ] {
        let mut request = wrong;
        request["do"] = json!("show.subscribers");
        let refused = client.ask(request);
        let text = refused[0]["error"]["message"].as_str().unwrap();
        assert!(text.contains(message), "{refused:?}");
    }
}
