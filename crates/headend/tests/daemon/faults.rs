//! Tests that no failing device or descriptor ends the daemon. The daemon logs, counts and shows
//! each failure, and opens the device or descriptor again.

use std::fs;
use std::net::{IpAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use reactor::namespace::{Namespace, veth};
use reactor::netlink::{LEARNED_ORIGIN, Netlink, RouteFilter};
use serde_json::json;

use crate::support::{Daemon, Directory};

const EDGE: &str = "\
[lns]
listen = [\"127.0.0.1:1701\"]
[ppp]
address = \"10.64.255.1\"
authenticate = \"nobody\"
[[pool]]
name = \"home\"
ranges = [\"10.64.0.0/24\"]
[tun]
name = \"inside\"
routes = [\"10.99.0.0/16\"]
";

/// An edge with a TUN device in a namespace of its own, with one subscriber. `None` without the
/// privilege.
fn edge(directory: &Directory, more: &str) -> Option<(Namespace, Daemon, Daemon)> {
    let namespace = Namespace::new().ok()?;
    let edge = Daemon::start_in(&namespace, directory, "lns", &format!("{EDGE}{more}"));
    // A file with a secret must be private.
    let path = directory.write("lac.toml", "");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let client =
        "[lac]\nlisten = [\"127.0.0.1:0\"]\n[client]\nname = \"one\"\nsecret = \"sesame\"\n";
    let clients = Daemon::start_in(&namespace, directory, "lac", client);
    let session = json!({"session": true});
    clients.client().create("127.0.0.1:1701", 2, 1, session);
    Some((namespace, edge, clients))
}

/// The addresses of the device, and the routes through it; `None` if there is no device.
fn device(netlink: &mut Netlink) -> Option<(Vec<String>, Vec<String>)> {
    let index = netlink.index("inside").ok()?;
    let (link, _) = netlink.link(index).unwrap()?;
    let shown = |(address, length): (IpAddr, u8)| format!("{address}/{length}");
    let addresses = netlink.addresses(link.index).unwrap();
    let v4 = addresses
        .into_iter()
        .filter(|(address, _)| address.is_ipv4());
    let routes = netlink.routes(RouteFilter {
        is_ipv4: true,
        table: 254,
        protocol: None,
        interface: Some(link.index),
    });
    let routes = routes.unwrap().into_iter().map(|route| shown(route.to));
    Some((v4.map(shown).collect(), routes.collect()))
}

/// Waits until the device has all its addresses and routes.
fn await_device(netlink: &mut Netlink, daemon: &Daemon) {
    let started = Instant::now();
    let wanted = ["10.64.0.0/24".to_owned(), "10.99.0.0/16".to_owned()];
    loop {
        if let Some((addresses, routes)) = device(netlink)
            && addresses == ["10.64.255.1/32"]
            && wanted.iter().all(|one| routes.contains(one))
        {
            return;
        }
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{}",
            daemon.log()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_device_that_is_deleted_is_made_again_and_no_peer_is_lost() {
    let directory = Directory::new();
    // Without the privilege this test cannot check anything.
    let Some((namespace, mut edge, clients)) = edge(&directory, "") else {
        return;
    };
    let mut netlink = namespace.netlink().unwrap();
    await_device(&mut netlink, &edge);
    for round in 1..=3 {
        netlink.delete("inside").unwrap();
        edge.client()
            .await_stats("the device is made again", |stats| {
                let source = &stats["sources"][0];
                source["faults"] == round && source["state"] == "works"
            });
        await_device(&mut netlink, &edge);
    }
    let stats = edge.client().stats();
    assert_eq!(stats["faults"], 3, "{stats}");
    let source = &stats["sources"][0];
    assert_eq!(source["name"], "tun inside");
    assert!(
        source["reason"].as_str().unwrap().contains("bad state"),
        "{source}"
    );
    let shown = edge.cli("show kernel");
    let shown = String::from_utf8(shown.stdout).unwrap();
    for kind in ["link", "addresses", "routes"] {
        let line = shown
            .lines()
            .find(|line| line.contains(&format!("device inside  {kind} ")));
        assert!(line.is_some(), "{kind} in {shown}");
    }
    let shown = edge.cli("show server");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("sources that failed") && shown.contains("tun inside"),
        "{shown}"
    );
    for daemon in [&edge, &clients] {
        let stats = daemon.client().stats();
        assert_eq!(
            (&stats["established"], &stats["sessions_established"]),
            (&json!(1), &json!(1))
        );
    }
    edge.signal("TERM");
    assert_eq!(edge.wait().code(), Some(0), "{}", edge.log());
}

#[test]
fn a_device_that_is_renamed_is_followed_and_one_that_is_moved_is_made_again() {
    let directory = Directory::new();
    let elsewhere = Namespace::new();
    // Without the privilege this test cannot check anything.
    let (Some((namespace, mut edge, _clients)), Ok(elsewhere)) = (edge(&directory, ""), elsewhere)
    else {
        return;
    };
    let mut netlink = namespace.netlink().unwrap();
    await_device(&mut netlink, &edge);
    let is_shown = |edge: &Daemon, start: &str| {
        let shown = String::from_utf8(edge.cli("show kernel").stdout).unwrap();
        shown.lines().any(|line| line.starts_with(start))
    };
    netlink.set_up("inside", false).unwrap();
    netlink.rename("inside", "renamed").unwrap();
    netlink.set_up("renamed", true).unwrap();
    edge.await_log("the device was renamed before=\"inside\"");
    assert!(is_shown(&edge, "device renamed  routes "));
    netlink.set_up("renamed", false).unwrap();
    netlink.rename("renamed", "inside").unwrap();
    netlink.set_up("inside", true).unwrap();
    await_device(&mut netlink, &edge);

    // Packets would reach the other namespace alone.
    netlink.move_to("inside", &elsewhere).unwrap();
    edge.await_log("the device left this network namespace");
    await_device(&mut netlink, &edge);
    let stats = edge.client().stats();
    assert_eq!(
        (&stats["faults"], &stats["established"]),
        (&json!(1), &json!(1))
    );
    let there = elsewhere.netlink().unwrap();
    assert!(there.index("inside").is_err(), "the old device is closed");
    edge.signal("TERM");
    assert_eq!(edge.wait().code(), Some(0), "{}", edge.log());
}

#[test]
fn a_device_that_is_set_down_and_up_gets_its_routes_back() {
    let directory = Directory::new();
    // Without the privilege this test cannot check anything.
    let Some((namespace, edge, _clients)) = edge(&directory, "") else {
        return;
    };
    let mut netlink = namespace.netlink().unwrap();
    await_device(&mut netlink, &edge);
    netlink.set_up("inside", false).unwrap();
    let is_logged = |text: &str| edge.log().contains(text);
    let mut client = edge.client();
    client.await_stats("the log says so", |_| is_logged("the device was set down"));
    assert!(
        !device(&mut netlink)
            .unwrap()
            .1
            .contains(&"10.64.0.0/24".into())
    );
    let rows = edge.client().rows("show.kernel");
    assert_eq!(rows[0]["reason"], "set down");
    assert_eq!(rows[2]["missing"], json!(["10.64.0.0/24", "10.99.0.0/16"]));
    netlink.set_up("inside", true).unwrap();
    await_device(&mut netlink, &edge);
    client.await_stats("the log says so", |_| is_logged("they are set again"));
    // So fast that no comparison sees it down.
    netlink.set_up("inside", false).unwrap();
    netlink.set_up("inside", true).unwrap();
    await_device(&mut netlink, &edge);
    assert_eq!(client.stats()["sessions_established"], 1);
}

#[test]
fn queues_of_further_cores_come_back_too() {
    let directory = Directory::new();
    // Without the privilege this test cannot check anything.
    let Some((namespace, edge, _clients)) = edge(&directory, "[event]\nshards = 3\n") else {
        return;
    };
    let mut netlink = namespace.netlink().unwrap();
    await_device(&mut netlink, &edge);
    for round in 1..=3 {
        netlink.delete("inside").unwrap();
        // The first thread makes it again once, for all three.
        edge.client().await_stats("it is made again", |stats| {
            let source = &stats["sources"][0];
            source["faults"] == round && source["state"] == "works"
        });
        await_device(&mut netlink, &edge);
    }
    let rows = edge.client().rows("show.event.poll");
    assert_eq!(rows.iter().filter(|row| row["owner"] == "tun").count(), 1);
}

/// The learned routes of the main table.
fn learned(netlink: &mut Netlink) -> Vec<String> {
    let filter = RouteFilter {
        is_ipv4: true,
        table: 254,
        protocol: Some(LEARNED_ORIGIN),
        interface: None,
    };
    let routes = netlink.routes(filter).unwrap();
    let shown = routes
        .iter()
        .map(|route| format!("{}/{}", route.to.0, route.to.1));
    shown.collect()
}

/// Two hosts on a wire, 192.0.2.1 and 192.0.2.2. `None` without the privilege.
fn hosts() -> Option<(Namespace, Namespace)> {
    let (here, there) = (Namespace::new().ok()?, Namespace::new().ok()?);
    veth((&here, "wire"), (&there, "wire")).unwrap();
    for (namespace, own) in [(&here, "192.0.2.1"), (&there, "192.0.2.2")] {
        let mut netlink = namespace.netlink().unwrap();
        let own = own.parse().unwrap();
        netlink.set_up("wire", true).unwrap();
        netlink.add_address("wire", own, 24).unwrap();
    }
    Some((here, there))
}

/// The configuration of a BGP speaker with one peer.
fn speaker(own: (u32, &str), other: (u32, &str), more: &str, peer: &str) -> String {
    let ((asn, own), (remote_asn, remote)) = (own, other);
    format!(
        "[bgp]\nasn = {asn}\nrouter_id = \"{own}\"\nlisten = [\"{own}:179\"]\n{more}\
         [[bgp.neighbor]]\naddress = \"{remote}\"\nremote_asn = {remote_asn}\n\
         import = \"accept\"\nexport = \"accept\"\n{peer}"
    )
}

/// Waits until the kernel has these learned routes.
fn await_learned(netlink: &mut Netlink, expected: &[&str], daemon: &Daemon) {
    let started = Instant::now();
    while learned(netlink) != expected {
        let waited = started.elapsed();
        assert!(waited < Duration::from_secs(60), "{}", daemon.log());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn routes_of_a_killed_daemon_do_not_outlive_the_next_one() {
    let directory = Directory::new();
    // Without the privilege this test cannot check anything.
    let Some((here, there)) = hosts() else {
        return;
    };
    let (one, two) = ((64501, "192.0.2.1"), (64502, "192.0.2.2"));
    let announces = "networks = [\"203.0.113.0/24\"]\n";
    let _speaker = Daemon::start_in(&there, &directory, "two", &speaker(two, one, announces, ""));
    let mut netlink = here.netlink().unwrap();
    let start = |peer: &str| {
        Daemon::start_in(
            &here,
            &directory,
            "one",
            &speaker(one, two, "install = true\n", peer),
        )
    };
    let mut first = start("preserve_forwarding = true\n");
    await_learned(&mut netlink, &["203.0.113.0/24"], &first);
    first.signal("KILL");
    first.wait();
    assert_eq!(learned(&mut netlink), ["203.0.113.0/24"]);
    // Its forwarding state survives a restart, so the routes stay for a while.
    let mut other = start("enabled = false\npreserve_forwarding = true\nrestart_time_s = 4000\n");
    other.client().await_stats("it has looked", |_| {
        let row = other.client().rows("show.kernel").remove(0);
        row["stale"] == 1
    });
    assert_eq!(learned(&mut netlink), ["203.0.113.0/24"]);
    other.signal("KILL");
    other.wait();
    let second = start("enabled = false\n");
    await_learned(&mut netlink, &[], &second);
    let shown = second.cli("show kernel --json");
    let row: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let counts = json!([
        row["schema"],
        row["what"],
        row["wanted"],
        row["stale"],
        row["swept"]
    ]);
    assert_eq!(counts, json!(["kernel/1", "learned routes", 0, 0, 1]));
}

#[test]
fn a_session_that_was_open_when_the_daemon_was_killed_gets_its_stop() {
    let directory = Directory::new();
    let private = |name: &str| {
        let path = directory.write(name, "");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    let store = directory.path("accounts.redb");
    // Nothing answers there, so all records stay in the store.
    let sections = format!(
        "[ppp]\naddress = \"10.64.255.1\"\nauthenticate = \"nobody\"\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n[radius]\naccounting_store = {store:?}\n\
         [[radius.server]]\naccounting = \"127.0.0.1:9\"\nsecret = \"s3cret\"\n"
    );
    private("lns.toml");
    let (mut edge, peer) = Daemon::lns(&directory, &sections);
    private("lac.toml");
    let clients = Daemon::lac(
        &directory,
        "[client]\nname = \"one\"\nsecret = \"sesame\"\n",
    );
    clients
        .client()
        .create(&peer, 2, 1, json!({"session": true}));
    let stored = |edge: &Daemon| {
        let rows = edge.client().rows("show.radius");
        let row = rows.into_iter().find(|row| row["schema"] == "radius/1");
        let store = row.unwrap()["store"].take();
        (
            store["stored"].as_u64().unwrap(),
            store["open"].as_u64().unwrap(),
        )
    };
    // Accounting-On and Start, and the draft of the Stop.
    edge.client()
        .await_stats("all is on disk", |_| stored(&edge) == (2, 1));
    edge.signal("KILL");
    edge.wait();
    let (edge, _) = Daemon::lns(&directory, &sections);
    assert!(
        edge.log()
            .contains("an earlier run ended with open sessions"),
        "{}",
        edge.log()
    );
    // The Stop, and the Accounting-On of the second run.
    edge.client()
        .await_stats("all is on disk", |_| stored(&edge) == (4, 0));
}

#[test]
fn listeners_that_are_short_of_descriptors_rest_and_accept_again() {
    let directory = Directory::new();
    let sections = "[bgp]\nasn = 64500\nrouter_id = \"192.0.2.1\"\nlisten = [\"127.0.0.1:0\"]\n\
        [[bgp.dynamic]]\nprefix = \"127.0.0.0/8\"\nremote_asn = 64501\n";
    let daemon = Daemon::start_limited(&directory, "router", sections, Some(48));
    let mut first = daemon.client();
    let address = first.stats()["bgp"][0].as_str().unwrap().to_owned();
    // Clients of the control socket may use the reserve, so they end it.
    let many: Vec<_> = (0..60)
        .map(|_| UnixStream::connect(&daemon.socket).unwrap())
        .collect();
    let is = |stats: &serde_json::Value, name: &str| {
        let sources = stats["sources"].as_array().unwrap();
        sources.iter().any(|one| {
            one["name"] == name
                && one["reason"]
                    .as_str()
                    .unwrap()
                    .contains("Too many open files")
        })
    };
    first.await_stats("the control socket rests", |stats| is(stats, "control"));
    let peer = TcpStream::connect(&address).unwrap();
    first.await_stats("the BGP listener rests", |stats| is(stats, "bgp listener"));
    drop(many);
    let works = |stats: &serde_json::Value| {
        let sources = stats["sources"].as_array().unwrap();
        sources.iter().all(|one| one["state"] == "works") && stats["clients"] == 1
    };
    first.await_stats("both accept again", works);
    assert!(daemon.client().stats()["pid"].is_u64());
    drop(peer);
}
