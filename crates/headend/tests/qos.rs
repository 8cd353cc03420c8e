//! `headend qos`: the commands of docs/qos.md, mistakes, and queues of a real interface.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const HEADEND: &str = env!("CARGO_BIN_EXE_headend");

/// A directory of its own with what the page's commands read.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("headend-qos-{name}-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tc");
        for entry in fs::read_dir(data).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), home.join(entry.file_name())).unwrap();
        }
        Self(home)
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new(HEADEND)
            .arg("qos")
            .args(words)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
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
    ] {
        let output = home.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {errors}");
        assert!(errors.contains(said), "{words:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{words:?}: {errors}");
    }
    assert!(!home.0.join("home.bmp").exists());
}

/// In namespaces of their own: a user without rights may make them where the system allows.
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
