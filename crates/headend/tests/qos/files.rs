//! Tests commands that only read files, and the queues of a real interface.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{HEADEND, Home};

/// Whether a command contacts or starts a shaper: such commands are tested elsewhere, with a running shaper.
pub(crate) fn is_of_a_running_one(words: &[&str]) -> bool {
    matches!(words[0], "run" | "show" | "reload" | "rate" | "hosts")
        || words.contains(&"--live")
        || words.contains(&"--socket")
}

#[test]
fn every_command_of_the_page_works() {
    let home = Home::new("page");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/qos.md");
    let page = fs::read_to_string(page).unwrap();
    let commands: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("headend qos "))
        .collect();
    assert!(commands.len() >= 9);
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        if is_of_a_running_one(&words) {
            continue;
        }
        let output = home.run(&words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {errors}");
        match words.iter().position(|word| *word == "-o") {
            Some(at) => assert!(fs::metadata(home.0.join(words[at + 1])).unwrap().len() > 1_000),
            None => assert!(!output.stdout.is_empty(), "{command}"),
        }
    }
}

/// The commands of docs/qos-import.md, with the files that the page shows.
#[test]
fn every_command_of_the_page_on_imports_works() {
    let home = Home::new("import");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/qos-import.md");
    let page = fs::read_to_string(page).unwrap();
    let mut shown = page.split("Save this example as `").skip(1);
    for example in &mut shown {
        let (name, rest) = example.split_once('`').unwrap();
        let text = rest.split("```text\n").nth(1).unwrap();
        home.write(name, text.split("```").next().unwrap());
    }
    let commands: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("headend qos "))
        .collect();
    assert!(commands.len() >= 4);
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let output = home.run(&words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {errors}");
        if let Some(at) = words.iter().position(|word| *word == "--out") {
            let checked = home.run(&["check", words[at + 1]]);
            assert_eq!(checked.status.code(), Some(0), "{command}");
        } else {
            assert!(!output.stdout.is_empty(), "{command}");
        }
    }
}

#[test]
fn an_import_refuses_to_overwrite_names_unknown_interfaces_and_is_strict_on_request() {
    let home = Home::new("import-mistakes");
    let section = "config queue\n option enabled 1\n option interface eth1\n option upload 900\n";
    home.write("sqm", section);
    home.write("lossy", &format!("{section} option squash_dscp 1\n"));
    home.write("there.toml", "mine");
    home.write("cut.json", "[{\"kind\":\"htb\",\"handle\":\"1:\",\"opt");
    for (words, status, said) in [
        (&["import", "sqm", "none"][..], 2, "none: cannot be read"),
        (
            &["import", "sqm", "there.toml"],
            2,
            "there.toml: has no section of type queue",
        ),
        (
            &["import", "tc", "there.toml"],
            2,
            "there.toml: nothing that tc prints, and no tc command",
        ),
        (
            &["import", "tc", "cut.json"],
            2,
            "cut.json: the JSON is cut short",
        ),
        (
            &["import", "sqm", "sqm", "--interface", "eth0"],
            2,
            "--interface eth0: sqm has no queue section for it; it has eth1",
        ),
        (
            &["import", "sqm", "sqm", "-o", "there.toml"],
            2,
            "there.toml exists; --force replaces it",
        ),
        (
            &["import", "sqm", "sqm", "-o", "none/there.toml"],
            2,
            "none/there.toml: cannot be written",
        ),
        (
            &["import", "sqm", "lossy", "--strict"],
            1,
            "not carried over, although they have an effect: 1",
        ),
        (&["import", "sqm", "sqm", "--strict"], 0, "3 options"),
    ] {
        let output = home.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {errors}");
        assert!(errors.contains(said) || status == 0, "{words:?}: {errors}");
    }
    assert_eq!(
        fs::read_to_string(home.0.join("there.toml")).unwrap(),
        "mine"
    );
    let forced = home.run(&["import", "sqm", "sqm", "-o", "there.toml", "--force"]);
    assert_eq!(forced.status.code(), Some(0));
    let text = fs::read_to_string(home.0.join("there.toml")).unwrap();
    assert!(text.contains("up = \"900kbit\""), "{text}");
}

/// tc makes a tree in a namespace and prints it, and the import reads it from standard input.
#[test]
fn the_queues_of_a_real_interface_become_a_policy() {
    let script = "set -e; ip link set lo up; \
        tc qdisc add dev lo root handle 1: stab overhead 30 mpu 64 linklayer atm htb default 20; \
        tc class add dev lo parent 1: classid 1:1 htb rate 9mbit; \
        tc class add dev lo parent 1:1 classid 1:10 htb rate 1mbit ceil 4mbit; \
        tc class add dev lo parent 1:1 classid 1:20 htb rate 8mbit ceil 9mbit; \
        tc qdisc add dev lo parent 1:10 handle 10: pfifo limit 9; \
        tc filter add dev lo parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10; \
        tc qdisc add dev lo ingress; \
        tc filter add dev lo parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev lo; \
        { tc -j -d qdisc show dev lo; tc -j class show dev lo; tc -j filter show dev lo; \
        tc -j filter show dev lo parent ffff:; } | \"$0\" qos import tc - --strict";
    let output = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--net",
            "sh",
            "-c",
            script,
            HEADEND,
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (policy, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{errors}");
    for key in [
        "up = \"9mbit\"",
        "per_packet = 44",
        "mpu = 64",
        "atm = true",
        "rate = \"1mbit\"",
        "ceil = \"4mbit\"",
        "dst_port = [\"22\"]",
        "queue = \"pfifo\"",
        "limit = 9",
    ] {
        let lines = policy.lines().filter(|line| line.starts_with(key));
        assert_eq!(lines.count(), 1, "{key}: {policy}");
    }
}

#[test]
fn mistakes_are_one_line_and_exit_status_2() {
    let home = Home::new("mistakes");
    fs::write(home.0.join("bad.toml"), "[link]\nup = \"2.3furlong\"\n").unwrap();
    let cut = "[{\"kind\":\"htb\",\"handle\":\"1:\",\"root\":true,\"opt";
    fs::write(home.0.join("cut.json"), cut).unwrap();
    fs::write(home.0.join("empty.json"), "").unwrap();
    fs::write(home.0.join("nothing.json"), "[ ]\n").unwrap();
    for (words, said) in [
        (&["check", "bad.toml"][..], "bad.toml:2:6: link.up: "),
        (&["check", "none.toml"], "none.toml: "),
        (
            &["check", "--wan", "no-such", "home.toml"],
            "--wan no-such: there is no such interface",
        ),
        (
            &["check", "--lan", "lo", "--wan", "lo", "home.toml"],
            "the same interface",
        ),
        (&["graph", "no-such"], "no-such: there is no such interface"),
        (&["graph", "../lo"], "../lo: there is no such interface"),
        (
            &["graph", "--policy", "bad.toml"],
            "bad.toml:2:6: link.up: ",
        ),
        (
            &["graph", "--policy", "home.toml", "-o", "home.bmp"],
            "the name says no format",
        ),
        (&["graph", "--tc-json", "none.json"], "none.json: "),
        (&["graph", "--tc-json", "cut.json"], "cut short"),
        (
            &["graph", "--tc-json", "empty.json"],
            "empty.json: nothing that",
        ),
        (
            &["graph", "--tc-json", "nothing.json"],
            "nothing.json: there is no discipline",
        ),
        (
            &["graph", "--policy", "home.toml", "-o", "none/home.svg"],
            "cannot write none/home.svg",
        ),
    ] {
        let output = home.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {errors}");
        assert!(errors.contains(said), "{words:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{words:?}: {errors}");
    }
    assert!(!home.0.join("home.bmp").exists());
}

/// The commands run in separate namespaces, which ordinary users may create where the system allows it.
#[test]
fn the_queues_of_a_real_interface_are_drawn() {
    let script = "set -e; ip link set lo up; tc qdisc add dev lo root handle 1: htb default 20; \
        tc class add dev lo parent 1: classid 1:1 htb rate 9mbit; \
        tc class add dev lo parent 1:1 classid 1:10 htb rate 1mbit; \
        tc class add dev lo parent 1:1 classid 1:20 htb rate 8mbit; \
        tc qdisc add dev lo parent 1:20 handle 20: pfifo limit 9; \
        tc filter add dev lo parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10; \
        tc filter add dev lo parent 1:1 protocol ip prio 2 u32 match ip dport 23 0xffff flowid 1:10; \
        exec \"$0\" qos graph lo";
    let output = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--net",
            "sh",
            "-c",
            script,
            HEADEND,
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (drawn, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{errors}");
    for once in [
        "htb 1:\n",
        "htb 1:1\n",
        "htb 1:10\n",
        "htb 1:20  [default]\n",
        "pfifo 20:\n",
        "pref 1 ip  -> 1:10\n",
        "pref 2 ip  -> 1:10\n",
    ] {
        assert_eq!(drawn.matches(once).count(), 1, "{once}{drawn}");
    }
}
