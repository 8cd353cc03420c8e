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
