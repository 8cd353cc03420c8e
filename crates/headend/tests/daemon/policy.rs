//! `headend session set` for filters, walled gardens, times and networks.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::{Daemon, Directory};

fn private(directory: &Directory, name: &str, text: &str) {
    let path = directory.write(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// An edge with filters and a garden, and two clients of it.
fn pair(directory: &Directory) -> (Daemon, Daemon) {
    let user = |n| format!("[[user]]\nname = \"user{n}\"\npassword = \"sesame\"\n");
    private(
        directory,
        "users.toml",
        &format!("{}{}garden = \"unpaid\"\n", user(1), user(2)),
    );
    let filters = "filter slow\nin\n  accept ip\nfilter fast\nin\n  accept ip\n";
    private(directory, "filters.txt", filters);
    let (edge, peer) = Daemon::lns(
        directory,
        "[ppp]\naddress = \"10.64.255.1\"\nidle_timeout_s = 600\n[users]\nfile = \"users.toml\"\n\
         [filter]\nfile = \"filters.txt\"\ndefault = \"slow\"\n\
         [[garden]]\nname = \"unpaid\"\nportal = \"192.0.2.80:80\"\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n",
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
    edge.client().ask(of).remove(0)["row"].take()
}

#[test]
fn a_command_changes_filter_garden_times_and_networks() {
    let directory = Directory::new();
    let (edge, _clients) = pair(&directory);
    let set = edge.cli(
        "session set user1 --filter fast --garden unpaid --session-timeout 3600 --idle-timeout none \
         --route 10.1.0.0/16 --route 2001:db8:1::/48",
    );
    let printed = String::from_utf8(set.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "  filter    slow -> fast",
            "  garden    none -> unpaid",
            "  session timeout none -> 3600 s",
            "  idle timeout 600 s -> none",
            "  routes    none -> 10.1.0.0/16, 2001:db8:1::/48",
        ]
    );
    let row = detail(&edge, "user1");
    assert_eq!(
        (&row["filter"], &row["garden"]),
        (&json!("fast"), &json!("unpaid"))
    );
    assert_eq!(row["times"]["session_timeout_s"], 3600.0);
    assert_eq!(row["times"]["idle_timeout_s"], Value::Null);
    // The users file put the other one into the garden.
    assert_eq!(detail(&edge, "user2")["garden"], "unpaid");
    let again = edge.cli("session set user2 --garden none --route none --json");
    let row: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(row["schema"], "subscriber.set/1");
    assert_eq!(row["policy_before"]["garden"], "unpaid");
    assert_eq!(row["policy_after"]["garden"], Value::Null);
    assert_eq!(row["policy_after"]["routes"], json!([]));
}

#[test]
fn what_cannot_be_changed_is_refused_with_what_there_is() {
    let directory = Directory::new();
    let (edge, _clients) = pair(&directory);
    assert!(
        edge.cli("session set user2 --route 10.9.0.0/16")
            .status
            .success()
    );
    let before = detail(&edge, "user1")["routes"].clone();
    for (line, words) in [
        (
            "session set user1 --filter quick --route 10.1.0.0/16",
            "there is no filter \"quick\"; there are slow, fast",
        ),
        (
            "session set user1 --garden paid --route 10.1.0.0/16",
            "there is no garden \"paid\"; there is unpaid",
        ),
        (
            "session set user1 --route 10.1.0.0/16 --route 10.9.0.0/16",
            "another subscriber has 10.9.0.0/16",
        ),
        (
            "session set user1 --route 10.1.2.3/16",
            "\"10.1.2.3/16\" is no network; write one as \"10.1.0.0/16\"",
        ),
        (
            "session set user1 --interim-interval 5",
            "interim_interval_s must be 0 (none), or 60 and more",
        ),
        (
            "session set 0123456789abcdef01 --filter slow",
            "no subscriber \"0123456789abcdef01\" is connected",
        ),
    ] {
        let output = edge.cli(line);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {printed}");
        assert!(printed.contains(words), "{line}: {printed}");
        assert_eq!(detail(&edge, "user1")["routes"], before, "{line}");
    }
}
