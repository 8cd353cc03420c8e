//! `headend doctor` on this host, on one without devices, and against a running daemon.

use std::process::{Command, Output};

use reactor::namespace::Namespace;
use serde_json::Value;

use crate::pages;
use crate::support::{Daemon, Directory, HEADEND};

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(HEADEND);
    command.arg("doctor").args(arguments).output().unwrap()
}

fn rows(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.collect()
}

#[test]
fn the_commands_of_the_page_do_what_it_says() {
    let done = pages::run("doctor.md", &[], |_, _| {});
    assert_eq!((done.files, done.commands), (2, 4));
}

/// The findings in that state, each as `check: sentence`.
fn of_state(rows: &[Value], state: &str) -> Vec<String> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = rows.iter().filter(|row| row["state"] == state);
    rows.map(|row| format!("{}: {}", text(row, "check"), text(row, "finding")))
        .collect()
}

#[test]
fn a_running_daemon_has_its_own_ports_and_another_one_is_named() {
    let directory = Directory::new();
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let sections = format!("[lns]\nlisten = [\"{address}\"]\n");
    let daemon = Daemon::start(&directory, "one", &sections);
    let own = directory.path("one.toml");
    let output = doctor(&["--json", "--config", own.to_str().unwrap()]);
    let found = rows(&output);
    assert!(found.iter().all(|row| row["schema"] == "doctor/1"));
    let pid = daemon.pid();
    let used = format!(
        "ports: UDP {address} (lns.listen) is in use by this configuration's own headend, process {pid}."
    );
    assert!(of_state(&found, "ok").contains(&used), "{found:#?}");
    assert_eq!(output.status.code(), Some(0), "{found:#?}");
    // The same addresses, but another control socket: the first daemon is in the way.
    let other = format!("[control]\nsocket = \"other.sock\"\n{sections}");
    let other = directory.write("other.toml", &other);
    let output = doctor(&["--json", "--config", other.to_str().unwrap()]);
    let taken = format!("ports: UDP {address} (lns.listen) is taken by headend, process {pid}.");
    assert_eq!(of_state(&rows(&output), "fault"), [taken]);
    assert_eq!(output.status.code(), Some(1));
}

/// A host that has a device and an address of its own, but neither routes nor forwarding.
#[test]
fn a_host_without_routes_and_forwarding_is_told_both() {
    let directory = Directory::new();
    let config = directory.write(
        "lns.toml",
        "[control]\nsocket = \"lns.sock\"\n[lns]\nlisten = [\"127.0.0.1:1701\", \"10.9.9.9:1701\"]\n\
         [ppp]\naddress = \"10.255.0.1\"\n[[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n\
         [tun]\nname = \"inside\"\n[radius]\n[[radius.server]]\n\
         authentication = \"192.0.2.9:1812\"\nsecret = \"swordfish\"\n",
    );
    // Without the privilege this test cannot check anything.
    let Ok(host) = Namespace::new() else {
        return;
    };
    let mut command = Command::new(HEADEND);
    command.args(["doctor", "--json", "--config"]).arg(&config);
    let output = host.command(&mut command).unwrap().output().unwrap();
    let faults = of_state(&rows(&output), "fault");
    let expected = [
        "net.ipv4.ip_forward is 0",
        "No interface of this host has the address 10.9.9.9 (lns.listen)",
        "RADIUS server 192.0.2.9 (authentication, 192.0.2.9:1812) cannot be reached: Network is unreachable",
        "There is no route to 192.0.2.9",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for (fault, expected) in faults.iter().zip(expected) {
        assert!(fault.contains(expected), "{expected:?} is not in {fault:?}");
    }
}

/// A user without privileges, for whom nothing was prepared.
#[test]
fn another_users_capabilities_and_files_are_judged_for_that_user() {
    let directory = Directory::new();
    let socket = directory.path("lns.sock");
    directory.private("users.toml");
    directory.write(
        "users.toml",
        "[[user]]\nname = \"ann\"\npassword = \"the cat sat\"\n",
    );
    let config = directory.write(
        "lns.toml",
        &format!(
            "[control]\nsocket = {socket:?}\n[lns]\nlisten = [\"127.0.0.1:0\"]\n[ppp]\naddress = \"10.255.0.1\"\n\
             [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n[users]\nfile = \"users.toml\"\n\
             [bgp]\nasn = 65000\nrouter_id = \"192.0.2.1\"\n"
        ),
    );
    let output = doctor(&[
        "--json",
        "--offline",
        "--user",
        "nobody",
        "--config",
        config.to_str().unwrap(),
    ]);
    let faults = of_state(&rows(&output), "fault");
    let expected = [
        "capabilities: nobody lacks CAP_NET_BIND_SERVICE, which port 179 of bgp.listen needs.",
        "files: nobody cannot read the file with secrets",
        "files: nobody cannot create the control socket",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for (fault, expected) in faults.iter().zip(expected) {
        assert!(
            fault.starts_with(expected),
            "{expected:?} is not in {fault:?}"
        );
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("the cat sat"));
}

#[test]
fn a_missing_user_and_a_missing_file_are_named() {
    let output = doctor(&["--offline", "--user", "no-such-user"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("there is no user no-such-user in /etc/passwd"),
        "{errors}"
    );
    let output = doctor(&["--json", "--offline", "--config", "/nowhere/lns.toml"]);
    let faults = of_state(&rows(&output), "fault");
    assert!(
        faults[0].starts_with("configuration: /nowhere/lns.toml"),
        "{faults:?}"
    );
}

#[test]
fn a_report_has_version_kernel_and_keys_but_no_secret() {
    let directory = Directory::new();
    let secrets = [
        "swordfish-radius",
        "swordfish-l2tp",
        "swordfish-peer",
        "swordfish-client",
    ];
    let [radius, l2tp, peer, client] = secrets;
    directory.private("peer.secret");
    directory.write("peer.secret", peer);
    directory.private("users.toml");
    directory.write(
        "users.toml",
        "[[user]]\nname = \"ann\"\npassword = \"swordfish-user\"\n",
    );
    let config = directory.write(
        "lns.toml",
        &format!(
            "[control]\nsocket = \"lns.sock\"\n[lns]\nlisten = [\"127.0.0.1:0\"]\n[lac]\n[l2tp]\nsecret = {l2tp:?}\n\
             [ppp]\naddress = \"10.255.0.1\"\n[[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n\
             [users]\nfile = \"users.toml\"\n[client]\nname = \"me\"\nsecret = {client:?}\n\
             [radius]\n[[radius.server]]\nauthentication = \"127.0.0.1:18199\"\nsecret = {radius:?}\n\
             [bgp]\nasn = 65000\nrouter_id = \"192.0.2.1\"\nlisten = [\"127.0.0.1:0\"]\n\
             [[bgp.neighbor]]\naddress = \"127.0.0.9\"\nremote_asn = 65001\nsecret_file = \"peer.secret\"\n"
        ),
    );
    let log = directory.write(
        "log",
        &format!("a line\nwith {l2tp} and \u{1b}[2J\nthe end\n"),
    );
    let output = doctor(&[
        "--offline",
        "--report",
        "--config",
        config.to_str().unwrap(),
        "--log",
        log.to_str().unwrap(),
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "== headend 0.1.0",
        "kernel   ",
        "l2tp.secret = (secret)",
        "bgp.neighbor[127.0.0.9].secret = (secret)",
        "ppp.address = 10.255.0.1",
        "== findings",
        "with (secret) and \\u{1b}[2J",
        "the end",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("swordfish"), "{text}");
}
