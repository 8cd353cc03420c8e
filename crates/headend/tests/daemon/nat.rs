//! Translation of addresses: docs/nat.md, reloads, and what `headend check` says.

use serde_json::{Value, json};

use crate::pages;
use crate::support::{Daemon, Directory};

#[test]
fn every_command_of_the_page_runs() {
    let done = pages::run("nat.md", &[("127.0.0.1:17013", "127.0.0.1:0")], |_, _| {});
    assert!(done.files == 1 && done.commands >= 13, "{done:?}");
}

const NAT: &str = "[ppp]\naddress = \"10.64.255.1\"\nauthenticate = \"nobody\"\n\
                   [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n\
                   [nat]\ninside = [\"10.64.0.0/24\"]\nexternal = [\"203.0.113.0/30\"]\n\
                   [[nat.forward]]\nprotocol = \"tcp\"\nexternal = \"203.0.113.1:80\"\ninside = \"10.64.0.7:80\"\n";

fn nat(daemon: &Daemon) -> Value {
    let rows = daemon.client().ask(json!({"do": "show.nat"}));
    rows[0]["row"].clone()
}

#[test]
fn a_reload_changes_pool_and_forwardings_and_says_what_needs_a_restart() {
    let directory = Directory::new();
    let (edge, _) = Daemon::lns(&directory, NAT);
    let before = nat(&edge);
    assert_eq!(
        (&before["blocks"], &before["forwards"]),
        (&json!(504), &json!(1))
    );
    let path = directory.path("lns.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text
        .replace("203.0.113.0/30", "203.0.113.0/31")
        .replace(
            "[[nat.forward]]",
            "block_ports = 64\nudp_timeout_s = 600\n[[nat.forward]]",
        )
        .replace("203.0.113.1:80", "203.0.113.1:81");
    std::fs::write(&path, text).unwrap();
    let said = edge.cli("reload --json");
    let said = String::from_utf8(said.stdout).unwrap();
    let effects: Vec<(String, String)> = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|row| Some((row["key"].as_str()?.into(), row["effect"].as_str()?.into())))
        .collect();
    let expected = [
        ("nat.block_ports", "restart"),
        ("nat.external", "applied"),
        ("nat.udp_timeout_s", "applied"),
        ("nat.forward[1].external", "applied"),
    ];
    let expected = expected.map(|(key, effect)| (key.to_owned(), effect.to_owned()));
    assert_eq!(effects, expected);
    let after = nat(&edge);
    assert_eq!(
        (&after["blocks"], &after["forwards"]),
        (&json!(252), &json!(1))
    );
    let who = |external: &str| {
        let rows = edge
            .client()
            .ask(json!({"do": "nat.who", "external": external}));
        rows[0]["row"]["by"].clone()
    };
    assert_eq!(
        (who("203.0.113.1:81"), who("203.0.113.1:80")),
        (json!("forward"), Value::Null)
    );
}

#[test]
fn a_daemon_without_nat_says_so() {
    let directory = Directory::new();
    let (edge, _) = Daemon::lns(&directory, "");
    for line in [
        "show nat",
        "nat who 192.0.2.1:80",
        "nat forward list",
        "nat forward del tcp 192.0.2.1:80",
    ] {
        let output = edge.cli(line);
        assert_eq!(output.status.code(), Some(1), "{line}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("its configuration has no [nat]"),
            "{line}: {said}"
        );
    }
}
