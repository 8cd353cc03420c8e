//! Tests two daemons on loopback: tunnels and sessions are established, listed and closed.

use crate::support::{Client, Daemon, Directory};
use serde_json::{Value, json};

fn of(rows: &[Value], key: &str, value: impl Into<Value>) -> usize {
    let value = value.into();
    rows.iter().filter(|row| row[key] == value).count()
}

/// Asserts that 25 tunnels of each version are listed, each with a session.
fn assert_fifty_are_listed(client: &mut Client) {
    let tunnels = client.rows("show.tunnels");
    assert_eq!(
        (of(&tunnels, "version", 2), of(&tunnels, "version", 3)),
        (25, 25)
    );
    assert_eq!(
        (
            of(&tunnels, "state", "established"),
            of(&tunnels, "sessions", 1)
        ),
        (50, 50)
    );
    let sessions = client.rows("show.sessions");
    assert_eq!(of(&sessions, "state", "established"), 50);
    assert_eq!(of(&sessions, "schema", "session/1"), 50);
    assert_eq!(client.rows("show.peers").len(), 1);
}

/// The two ids of each row, sorted.
fn pairs(rows: &[Value], ours: &str, theirs: &str) -> Vec<(Option<u64>, Option<u64>)> {
    let mut pairs: Vec<_> = rows
        .iter()
        .map(|row| (row[ours].as_u64(), row[theirs].as_u64()))
        .collect();
    pairs.sort_unstable();
    pairs
}

#[test]
fn fifty_tunnels_with_sessions_of_both_versions_come_up_and_go() {
    let directory = Directory::new();
    let (lns, peer) = Daemon::lns(&directory, "");
    let lac = Daemon::lac(&directory, "");
    let (mut at_lns, mut at_lac) = (lns.client(), lac.client());
    for (version, count) in [(2, 25), (3, 25)] {
        let lines = at_lac.create(&peer, version, count, json!({"session": true}));
        for line in &lines {
            assert!(
                line["up"] == true && line["session"].as_u64() > Some(0),
                "{line}"
            );
            assert!(line["ms"].as_f64() > Some(0.0), "{line}");
        }
    }
    at_lns.await_stats("all are up", |stats| stats["sessions_established"] == 50);
    for client in [&mut at_lns, &mut at_lac] {
        assert_fifty_are_listed(client);
    }
    // Each side's local id is the other side's remote id.
    let (lns_rows, lac_rows) = (at_lns.rows("show.tunnels"), at_lac.rows("show.tunnels"));
    assert_eq!(
        pairs(&lns_rows, "id", "remote_id"),
        pairs(&lac_rows, "remote_id", "id")
    );

    // First close a single session, then its tunnel, then everything else.
    let session = at_lac.rows("show.sessions").remove(0);
    let name =
        json!({"do": "session.delete", "tunnel": session["tunnel"], "session": session["id"]});
    assert_eq!(at_lac.ask(name)[0]["closed"], 1);
    at_lns.await_stats("the session is gone", |stats| stats["sessions"] == 49);
    let tunnel = json!({"do": "tunnel.delete", "tunnel": session["tunnel"]});
    assert_eq!(at_lac.ask(tunnel.clone())[0]["closed"], 1);
    assert_eq!(
        at_lac.ask(json!({"do": "tunnel.delete", "all": true}))[0]["closed"],
        49
    );
    for client in [&mut at_lns, &mut at_lac] {
        let stats = client.await_stats("all are gone", |s| s["tunnels"] == 0 && s["closing"] == 0);
        assert_eq!(stats["held"], 50);
        assert!(client.rows("show.tunnels").is_empty() && client.rows("show.sessions").is_empty());
    }
    assert_eq!(at_lac.ask(tunnel)[0]["error"]["code"], "not-found");
    let why = at_lns.rows("show.ended.tunnels");
    assert_eq!(
        of(&why, "reason", "closed by the peer, result 1"),
        50,
        "{:?}",
        why[0]
    );
    let why = at_lac.rows("show.ended.sessions");
    assert_eq!(
        (of(&why, "reason", "closed by the operator"), why.len()),
        (1, 50)
    );
}

#[test]
fn every_poller_store_and_timer_brings_tunnels_up() {
    let choices = [
        ("epoll", "slab", "wheel"),
        ("poll-kept", "tree", "tree"),
        ("poll-rebuilt", "list", "list"),
        ("io_uring", "slab", "wheel"),
    ];
    for (poller, descriptors, timers) in choices {
        let directory = Directory::new();
        let event = format!(
            "[event]\npoller = {poller:?}\ndescriptors = {descriptors:?}\ntimers = {timers:?}\n"
        );
        let (lns, peer) = Daemon::lns(&directory, &event);
        let lac = Daemon::lac(&directory, &event);
        let lines = lac.client().create(&peer, 3, 20, json!({"session": true}));
        assert_eq!(of(&lines, "up", true), 20, "{poller}");
        let waits = lns.client().rows("show.event.poll").remove(0);
        assert_eq!(
            (waits["poller"].as_str(), waits["descriptors"].as_str()),
            (Some(poller), Some(descriptors))
        );
        assert_eq!(lns.client().rows("show.event.timers")[0]["store"], timers);
    }
}

#[test]
fn a_socket_for_each_tunnel_is_opened_on_both_sides_and_closed_with_it() {
    let directory = Directory::new();
    let own = "sockets = \"per-tunnel\"\n[l2tp]\nhold_s = 0\n";
    let (lns, peer) = Daemon::lns(&directory, own);
    let lac = Daemon::lac(&directory, own);
    let (mut at_lns, mut at_lac) = (lns.client(), lac.client());
    let lines = at_lac.create(&peer, 3, 20, json!({"session": true}));
    assert_eq!(of(&lines, "up", true), 20);
    for client in [&mut at_lns, &mut at_lac] {
        client.await_stats("each has a socket", |stats| stats["sockets"] == 21);
    }
    let ports: std::collections::HashSet<String> = at_lns
        .rows("show.tunnels")
        .iter()
        .map(|row| row["peer"].to_string())
        .collect();
    assert_eq!(ports.len(), 20);
    at_lac.ask(json!({"do": "tunnel.delete", "all": true}));
    for client in [&mut at_lns, &mut at_lac] {
        client.await_stats("the sockets are closed", |stats| stats["sockets"] == 1);
    }
    let lines = at_lac.create(&peer, 2, 5, json!({}));
    assert_eq!(of(&lines, "up", true), 5);
}

#[test]
fn tunnels_with_own_sockets_to_one_peer_address_outlive_one_another() {
    let directory = Directory::new();
    let own = "sockets = \"per-tunnel\"\n[l2tp]\nhold_s = 0\n";
    let (lns, peer) = Daemon::lns(&directory, own);
    // All use one socket, so the LNS sees one peer address and port.
    let lac = Daemon::lac(&directory, "");
    let (mut at_lns, mut at_lac) = (lns.client(), lac.client());
    at_lac.create(&peer, 3, 5, json!({"session": true}));
    at_lac.create(&peer, 3, 5, json!({"session": true}));
    at_lns.await_stats("all are up", |stats| {
        stats["sessions_established"] == 10 && stats["sockets"] == 11
    });
    let tunnels = at_lac.rows("show.tunnels");
    let (ended, left) = tunnels.split_at(9);
    for tunnel in ended {
        at_lac.ask(json!({"do": "tunnel.delete", "tunnel": tunnel["id"]}));
    }
    at_lns.await_stats("one is left", |stats| stats["sockets"] == 2);
    let session = json!({"do": "session.create", "tunnel": left[0]["id"]});
    assert_eq!(at_lac.ask(session)[0]["up"], true);
}

#[test]
fn near_the_descriptor_limit_new_tunnels_are_refused_and_old_ones_kept() {
    let directory = Directory::new();
    let (_lns, peer) = Daemon::lns(&directory, "");
    let sections = "[lac]\nlisten = [\"127.0.0.1:0\"]\nsockets = \"per-tunnel\"\n";
    let lac = Daemon::start_limited(&directory, "lac", sections, Some(64));
    let mut client = lac.client();
    let lines = client.create(&peer, 3, 60, json!({}));
    let (up, refused): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line["up"] == true);
    assert!(!up.is_empty() && !refused.is_empty());
    let reason = refused[0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("of at most 64 descriptors are open"),
        "{reason}"
    );
    // Operators can still connect, and existing tunnels remain.
    assert_eq!(lac.client().stats()["established"], up.len());
    assert_eq!(
        lac.client().rows("show.event.poll")[0]["refused"],
        refused.len()
    );
}

#[test]
fn tunnels_come_from_the_addresses_of_a_network_in_turn() {
    let directory = Directory::new();
    let (lns, peer) = Daemon::lns(&directory, "");
    let lac = Daemon::start(&directory, "lac", "[lac]\n");
    let lines = lac
        .client()
        .create(&peer, 2, 4, json!({"from": "127.77.0.0/30"}));
    assert_eq!(of(&lines, "up", true), 4);
    let mut peers: Vec<_> = lns
        .client()
        .rows("show.peers")
        .iter()
        .map(|row| {
            (
                row["address"].as_str().unwrap().to_owned(),
                row["tunnels"].as_u64(),
            )
        })
        .collect();
    peers.sort();
    assert_eq!(
        peers,
        [
            ("127.77.0.1".into(), Some(2)),
            ("127.77.0.2".into(), Some(2))
        ]
    );
}

#[test]
fn what_cannot_be_created_is_told_with_its_reason() {
    let directory = Directory::new();
    let (lns, peer) = Daemon::lns(&directory, "[l2tp]\nsecret = \"one\"\n");
    let lac = Daemon::lac(
        &directory,
        "[l2tp]\nsecret = \"two\"\n[limits]\ntunnels = 2\n",
    );
    // With a different secret, the peer's response fails authentication.
    let line = lac
        .client()
        .create(&peer, 2, 1, json!({"session": true}))
        .remove(0);
    assert_eq!(line["up"], false, "{line}");
    assert!(
        line["reason"].as_str().unwrap().contains("not authorized"),
        "{line}"
    );
    // No [lac] section.
    let line = lns.client().create(&peer, 2, 1, json!({})).remove(0);
    assert!(
        line["reason"].as_str().unwrap().contains("no [lac]"),
        "{line}"
    );
    // A source address that the socket cannot use, and a table that is full.
    let line = lac
        .client()
        .create(&peer, 2, 1, json!({"from": "127.9.9.9/32"}))
        .remove(0);
    assert!(
        line["reason"].as_str().unwrap().contains("127.9.9.9"),
        "{line}"
    );
    let lines = lac
        .client()
        .create("127.0.0.1:9", 2, 3, json!({"wait": "none"}));
    assert_eq!(
        lines[2]["reason"], "the limit of tunnels is reached",
        "{lines:?}"
    );
    // A client that waits for a silent peer can still disconnect.
    lac.client()
        .send(json!({"do": "tunnel.create", "peer": "127.0.0.1:9"}));
    assert_eq!(lac.client().stats()["tunnels"], 2);
}

#[test]
fn outgoing_calls_are_refused_answered_or_asked_for_as_configured() {
    let directory = Directory::new();
    let (lns, peer) = Daemon::lns(&directory, "");
    let lac = Daemon::lac(&directory, "[l2tp]\noutgoing_calls = \"ask\"\n");
    let (mut at_lns, mut at_lac) = (lns.client(), lac.client());
    at_lac.create(&peer, 2, 1, json!({}));
    at_lns.await_stats("the tunnel is up", |stats| stats["established"] == 1);
    let tunnel = at_lns.rows("show.tunnels").remove(0)["id"].take();
    let id = at_lns.send(
        json!({"do": "session.create", "tunnel": tunnel, "outgoing": true, "called": "5551234"}),
    );
    at_lac.await_stats("the call is asked for", |stats| stats["sessions"] == 1);
    let call = at_lac.rows("show.sessions").remove(0);
    assert_eq!(
        (call["role"].as_str(), call["called_number"].as_str()),
        (Some("lac-outgoing"), Some("5551234"))
    );
    let answer = json!({"do": "session.answer", "tunnel": call["tunnel"], "session": call["id"]});
    assert_eq!(at_lac.ask(answer.clone())[0]["ok"], true);
    let up = at_lns.next().unwrap();
    assert!(up["id"] == id && up["up"] == true, "{up}");
    assert_eq!(at_lac.ask(answer)[0]["error"]["code"], "refused");
}

#[test]
fn a_tunnel_opened_for_a_session_that_is_refused_is_closed() {
    let directory = Directory::new();
    let (lns, peer) = Daemon::lns(&directory, "[limits]\nsessions = 1\n");
    let lac = Daemon::lac(&directory, "");
    for version in [2, 3] {
        let (mut at_lns, mut at_lac) = (lns.client(), lac.client());
        let first = at_lac.create(&peer, version, 1, json!({"session": true}));
        assert_eq!(first[0]["up"], true);
        let refused = at_lac.create(&peer, version, 1, json!({"session": true}));
        assert_eq!(refused[0]["up"], false, "{}", refused[0]);
        for client in [&mut at_lac, &mut at_lns] {
            client.await_stats("the second is gone", |stats| stats["tunnels"] == 1);
        }
        // A tunnel that was opened without a session stays when its sessions fail.
        let tunnel = at_lac.create(&peer, version, 1, json!({}))[0]["tunnel"].clone();
        let request = json!({"do": "session.create", "tunnel": tunnel, "version": version});
        assert_eq!(at_lac.ask(request)[0]["up"], false);
        assert_eq!(at_lac.stats()["tunnels"], 2);
        at_lac.ask(json!({"do": "tunnel.delete", "all": true}));
        at_lns.await_stats("all are gone", |stats| stats["tunnels"] == 0);
    }
}
