//! Tests `headend qos apply` and `remove` on interfaces in namespaces: what `tc` lists, mistakes, kills.

use std::fs;
use std::process::{Command, Output, Stdio};

use reactor::namespace::Namespace;
use serde_json::Value;

use crate::support::Home;

const POLICY: &str = r#"
[link]
up = "9.4mbit"
down = "47mbit"
overhead = "pppoe-ptm"
[[first]]
name = "ssh"
proto = "tcp"
port = 22
[[class]]
name = "work"
rate = "20%"
[[class]]
name = "desktop"
parent = "work"
rate = "15%"
host = "192.0.2.0/28"
proto = "tcp"
dst_port = "3000-3389"
"#;

/// A router with the interfaces `wan0` and `lan0`, and files.
pub(crate) struct Router {
    pub(crate) home: Home,
    pub(crate) namespace: Namespace,
}

impl Router {
    pub(crate) fn new(name: &str) -> Self {
        let namespace = Namespace::new().expect("root, or leave to make namespaces");
        let home = Home::new(name);
        home.write("home.toml", POLICY);
        let router = Self { home, namespace };
        router.make_links();
        router
    }

    fn make_links(&self) {
        let mut netlink = self.namespace.netlink().unwrap();
        for (name, peer) in [("wan0", "far0"), ("lan0", "near0")] {
            netlink.add_veth(name, peer, None).unwrap();
            netlink.set_up(name, true).unwrap();
            netlink.set_up(peer, true).unwrap();
        }
    }

    pub(crate) fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(&self.home.0)
            .stdin(Stdio::null());
        self.namespace.command(&mut command).unwrap();
        command
    }

    pub(crate) fn headend(&self, words: &[&str]) -> Command {
        let words = [&["qos"], words, &["--state", "state"]].concat();
        self.command(crate::support::HEADEND, &words)
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.headend(words).output().unwrap()
    }

    /// The number of records of what was there.
    fn states(&self) -> usize {
        let files = fs::read_dir(self.home.path("state")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".json")).count()
    }

    /// Runs it and returns its standard output.
    pub(crate) fn done(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs it and returns its last line on standard error.
    pub(crate) fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {errors}");
        errors.lines().last().unwrap_or_default().to_owned()
    }

    pub(crate) fn tc(&self, words: &str) -> String {
        let words: Vec<&str> = words.split(' ').collect();
        let output = self.command("tc", &words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tc {words:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// All queues of the given interfaces, as `tc` lists them without counters.
    pub(crate) fn listed(&self, names: &[&str]) -> String {
        let mut text = String::new();
        for name in names {
            for what in [
                "-d qdisc show",
                "-d class show",
                "filter show",
                "filter show ingress",
            ] {
                let (what, place) = what.split_at(what.find("show").unwrap() + 4);
                let mut lines = self.tc(&format!("{what} dev {name}{place}"));
                lines = lines.replace(" not_in_hw", "");
                // A counter: "direct_packets_stat 3".
                let mut words: Vec<&str> = lines.split(' ').collect();
                // And the number of a program: "id 3".
                let is_number = |word: &&str| ["direct_packets_stat", "id"].contains(word);
                while let Some(at) = words.iter().position(is_number) {
                    words.drain(at..at + 2);
                }
                lines = words.join(" ");
                let mut lines: Vec<&str> = lines.lines().collect();
                if what.contains("class") {
                    lines.sort_unstable();
                }
                text.push_str(&format!("{name} {what}{place}\n{}\n", lines.join("\n")));
            }
        }
        text
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.namespace.netlink().unwrap().index(name).is_ok()
    }
}

#[test]
fn the_kernel_lists_what_the_tc_lines_make_and_remove_restores_what_was_there() {
    let router = Router::new("apply");
    // tc cannot load the programs.
    let policy = format!("{POLICY}[kernel]\nclassifier = \"u32\"\n");
    router.home.write("home.toml", &policy);
    let names = ["wan0", "ifb4wan0"];
    let before = router.listed(&["wan0"]);
    let lines = router.done(&["apply", "home.toml", "--wan", "wan0", "--dry-run"]);
    assert_eq!(
        router.listed(&["wan0"]),
        before,
        "a dry run changes nothing"
    );
    let said = router.done(&["apply", "home.toml", "--wan", "wan0"]);
    assert!(
        said.starts_with("wan0: up 9400Kbit, down 47Mbit; "),
        "{said}"
    );
    let applied = router.listed(&names);
    assert!(applied.contains("htb 1:31 parent 1:30"), "{applied}");
    // The second time nothing differs.
    // The names of the policy are on the kernel's classes and filters.
    let drawn = router.done(&["graph", "wan0"]);
    for (below, name) in [
        ("u32 800::800 pref 1 ip ", "ssh"),
        ("htb 1:31", "desktop"),
        ("htb 1:20", "rest"),
    ] {
        let mut lines = drawn.lines().skip_while(|line| !line.contains(below));
        let next = lines.nth(1).unwrap_or_default();
        assert!(next.ends_with(&format!("“{name}”")), "{below}: {drawn}");
    }
    let again = router.done(&["apply", "home.toml", "--wan", "wan0"]);
    assert!(again.contains(" 0 changes"), "{again}");
    router.done(&["remove", "--wan", "wan0"]);
    assert_eq!(router.listed(&["wan0"]), before);
    assert!(!router.has("ifb4wan0"));
    assert_eq!(router.states(), 0);
    // The printed lines do the same.
    let status = router.command("sh", &["-ec", &lines]).status().unwrap();
    assert!(status.success(), "{lines}");
    assert_eq!(router.listed(&names), applied);
}

#[test]
fn the_commands_of_the_page_work() {
    let router = Router::new("apply-page");
    let before = router.listed(&["wan0", "lan0"]);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/qos-apply.md");
    let page = fs::read_to_string(page).unwrap();
    let (mut policy, mut is_policy, mut commands) = (String::new(), false, 0);
    for line in page.lines() {
        if line.starts_with("```") {
            is_policy = line == "```toml policy.toml";
        } else if is_policy {
            policy.push_str(&format!("{line}\n"));
            router.home.write("policy.toml", &policy);
        } else if let Some(command) = line.strip_prefix("$ headend qos ") {
            let words: Vec<&str> = command.split(' ').collect();
            router.done(&words);
            commands += 1;
        } else if let Some(command) = line.strip_prefix("$ tc ") {
            router.tc(command);
            commands += 1;
        }
    }
    assert!(commands >= 8, "{commands}");
    assert_eq!(router.listed(&["wan0", "lan0"]), before);
}

#[test]
fn with_two_interfaces_downloads_are_shaped_at_the_second() {
    let router = Router::new("apply-lan");
    let before = router.listed(&["wan0", "lan0"]);
    let words = ["apply", "home.toml", "--wan", "wan0", "--lan", "lan0"];
    let shown = router.done(&[&words[..], &["--json"]].concat());
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["schema"], "qos.apply/1");
    assert_eq!(shown["devices"][1]["device"], "lan0");
    assert!(!router.has("ifb4wan0"));
    let rate = |name: &str| router.tc(&format!("class show dev {name} classid 1:1"));
    assert!(rate("wan0").contains("rate 9400Kbit"), "{}", rate("wan0"));
    assert!(rate("lan0").contains("rate 47Mbit"), "{}", rate("lan0"));
    let taken = router.refused(&["apply", "home.toml", "--wan", "lan0"]);
    assert!(taken.contains("part of the policy of wan0"), "{taken}");
    // Without --lan, the second interface is as it was, and arriving packets are redirected.
    router.done(&words[..4]);
    assert_eq!(
        router.listed(&["lan0"]),
        before[before.find("lan0 -d").unwrap()..]
    );
    assert!(router.has("ifb4wan0"));
    router.done(&["remove", "--wan", "wan0"]);
    assert_eq!(router.listed(&["wan0", "lan0"]), before);
    assert!(!router.has("ifb4wan0"));
}

#[test]
fn queues_that_the_operator_made_come_back() {
    let router = Router::new("apply-foreign");
    for line in [
        "qdisc add dev wan0 root handle 7: htb default 0x10",
        "class add dev wan0 parent 7: classid 7:1 htb rate 5mbit burst 20k cburst 20k quantum 3000",
        "class add dev wan0 parent 7:1 classid 7:10 htb rate 1mbit ceil 5mbit burst 9k cburst 9k quantum 2000",
        "qdisc add dev wan0 parent 7:10 handle 10: bfifo limit 30000",
        "qdisc add dev wan0 handle ffff: ingress",
        "filter add dev wan0 parent ffff:fff2 protocol ip prio 5 u32 match ip dport 9 0xffff action mirred egress redirect dev lan0",
    ] {
        router.tc(line);
    }
    let before = router.listed(&["wan0"]);
    router.done(&["apply", "home.toml", "--wan", "wan0"]);
    let arriving = router.tc("filter show dev wan0 ingress");
    assert!(
        arriving.contains("pref 5") && arriving.contains("pref 6"),
        "{arriving}"
    );
    router.done(&["remove", "--wan", "wan0"]);
    assert_eq!(router.listed(&["wan0"]), before);
}

#[test]
fn a_changed_policy_keeps_classes_and_their_counters() {
    let router = Router::new("apply-counters");
    router.done(&["apply", "home.toml", "--wan", "wan0"]);
    let address = ("192.0.2.1".parse().unwrap(), 24);
    let mut netlink = router.namespace.netlink().unwrap();
    netlink.add_address("wan0", address.0, address.1).unwrap();
    let sent = |router: &Router| {
        let text = router.tc("-s class show dev wan0 classid 1:20");
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "pkt").unwrap();
        words[at - 1].parse::<u64>().unwrap()
    };
    router
        .namespace
        .run(|| {
            let socket = std::net::UdpSocket::bind("192.0.2.1:0").unwrap();
            for _ in 0..50 {
                // The other end has no address; requests for it are packets too.
                let _ = socket.send_to(&[0; 100], "192.0.2.255:9");
                let _ = socket.send_to(&[0; 100], "192.0.2.2:9");
            }
        })
        .unwrap();
    let before = crate::support::until("packets", || Some(sent(&router)).filter(|sent| *sent > 0));
    router
        .home
        .write("home.toml", &POLICY.replace("9.4mbit", "8mbit"));
    let said = router.done(&["apply", "home.toml", "--wan", "wan0"]);
    // The classes of one direction, and shorter queues.
    assert!(!said.contains(" 0 changes"), "{said}");
    assert!(
        router
            .tc("class show dev wan0 classid 1:1")
            .contains("rate 8Mbit")
    );
    assert!(sent(&router) >= before, "counters are kept");
    // A class more is one class, its queue and its filters.
    let more = "[[class]]\nname = \"more\"\nrate = \"1%\"\nproto = 99\n";
    router
        .home
        .write("home.toml", &(POLICY.replace("9.4mbit", "8mbit") + more));
    router.done(&["apply", "home.toml", "--wan", "wan0"]);
    assert!(sent(&router) >= before);
    router.done(&["remove", "--wan", "wan0"]);
}

#[test]
fn mistakes_are_named_and_change_nothing() {
    let router = Router::new("apply-mistakes");
    let before = router.listed(&["wan0"]);
    let cases: [(&[&str], &str); 5] = [
        (
            &["apply", "home.toml", "--wan", "no0"],
            "--wan no0: there is no such interface",
        ),
        (
            &["apply", "home.toml", "--wan", "wan0", "--lan", "no1"],
            "--lan no1: there is no such interface",
        ),
        (
            &["apply", "home.toml", "--wan", "wan0", "--lan", "wan0"],
            "are the same interface",
        ),
        (&["apply", "none.toml", "--wan", "wan0"], "none.toml"),
        (
            &["remove", "--wan", "wan0"],
            "wan0: headend qos apply has made no queues here",
        ),
    ];
    for (words, said) in cases {
        let refused = router.refused(words);
        assert!(refused.contains(said), "{words:?}: {refused}");
    }
    let without = "[kernel]\nclassifier = \"u32\"\n";
    for (part, said) in [
        ("[[first]]\nvlan = 3\n", "vlan"),
        ("[[class]]\nrate = \"1%\"\nmark = 3\n", "mark"),
        (
            "[[first]]\nheader = \"tunnel\"\nport = 22\n",
            "header = \"tunnel\"",
        ),
    ] {
        router
            .home
            .write("bad.toml", &format!("{POLICY}{part}{without}"));
        let refused = router.refused(&["apply", "bad.toml", "--wan", "wan0"]);
        assert!(refused.contains(said), "{refused}");
    }
    // The kernel refuses this one: its classes are nested too deeply.
    let mut deep = "[link]\nup = \"9mbit\"\n[[class]]\nname = \"c0\"\nrate = \"50%\"\n".to_owned();
    for n in 1..9 {
        let above = n - 1;
        deep.push_str(&format!(
            "[[class]]\nname = \"c{n}\"\nparent = \"c{above}\"\nrate = \"50%\"\n"
        ));
    }
    router.home.write("deep.toml", &(deep + "port = 1\n"));
    let refused = router.refused(&["apply", "deep.toml", "--wan", "wan0"]);
    assert!(refused.contains("deep"), "{refused}");
    router.home.write("state", "");
    let refused = router.refused(&["apply", "home.toml", "--wan", "wan0"]);
    assert!(refused.contains("state: cannot be read"), "{refused}");
    assert_eq!(router.listed(&["wan0"]), before);
    assert!(!router.has("ifb4wan0"));
}

#[test]
fn an_interface_that_was_made_again_has_no_old_state() {
    let router = Router::new("apply-again");
    router.done(&["apply", "home.toml", "--wan", "wan0"]);
    let mut netlink = router.namespace.netlink().unwrap();
    netlink.delete("wan0").unwrap();
    netlink.delete("lan0").unwrap();
    let gone = router.run(&["remove", "--wan", "wan0"]);
    let errors = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert!(errors.contains("wan0: no longer exists"), "{errors}");
    assert!(!router.has("ifb4wan0"));
    router.make_links();
    let before = router.listed(&["wan0"]);
    router.done(&["apply", "home.toml", "--wan", "wan0"]);
    router.done(&["remove", "--wan", "wan0"]);
    assert_eq!(router.listed(&["wan0"]), before);
}

/// What was left by kills.
#[derive(Debug, Default)]
struct Left {
    old: usize,
    new: usize,
}

/// Checks what a kill has left, and that `apply` (every second time) and `remove` go on from there.
fn check_kill(router: &Router, [old, new]: [&str; 2], place: &str, left: &mut Left) {
    let names = ["wan0"];
    let found = router.listed(&names);
    match (found == old, found == new) {
        (true, _) => left.old += 1,
        (_, true) => left.new += 1,
        _ => panic!("half after {place}: {found}"),
    }
    if (left.old + left.new).is_multiple_of(2) {
        router.done(&["apply", "home.toml", "--wan", "wan0"]);
        assert_eq!(router.listed(&names), new, "{place}");
    }
    // There is nothing to remove if the kill came before the first change.
    router.run(&["remove", "--wan", "wan0"]);
    assert_eq!(router.listed(&names), old, "{place}");
    assert!(!router.has("ifb4wan0"), "{place}");
}

/// The queues before, and after `apply`.
fn old_and_new(router: &Router) -> [String; 2] {
    let old = router.listed(&["wan0"]);
    router.done(&["apply", "home.toml", "--wan", "wan0"]);
    let new = router.listed(&["wan0"]);
    router.done(&["remove", "--wan", "wan0"]);
    [old, new]
}

#[test]
fn a_kill_at_any_time_leaves_the_old_queues_or_the_new_ones() {
    const ROUNDS: u32 = 100;
    let router = Router::new("apply-kill");
    let [old, new] = old_and_new(&router);
    let begun = std::time::Instant::now();
    router.done(&["apply", "home.toml", "--wan", "wan0"]);
    let whole = begun.elapsed();
    router.done(&["remove", "--wan", "wan0"]);
    let mut left = Left::default();
    for round in 0..ROUNDS {
        let mut command = router.headend(&["apply", "home.toml", "--wan", "wan0"]);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(whole * round / ROUNDS);
        // The first is killed at once, the last one has ended.
        if round + 1 < ROUNDS {
            child.kill().unwrap();
        }
        child.wait().unwrap();
        check_kill(&router, [&old, &new], &format!("round {round}"), &mut left);
    }
    println!("{left:?}");
    assert!(left.old > 0 && left.new > 0, "{left:?}");
}

/// A kill at every system call that changes something or reads what is there. strace places them.
#[test]
fn a_kill_before_each_system_call_leaves_the_old_queues_or_the_new_ones() {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("skipped: this test needs strace");
        return;
    }
    let router = Router::new("apply-kill-calls");
    let [old, new] = old_and_new(&router);
    let mut left = Left::default();
    for call in [
        "sendto", "recvfrom", "write", "fsync", "openat", "rename", "unlink", "bpf", "mkdir",
    ] {
        for number in 1.. {
            let place = format!("{call} {number}");
            let inject = format!("inject={call}:signal=KILL:when={number}");
            let words = [
                "-f",
                "-o",
                "/dev/null",
                "-e",
                &inject,
                crate::support::HEADEND,
            ];
            let apply = ["qos", "apply", "home.toml", "--wan", "wan0"];
            let words = [&words[..], &apply, &["--state", "state"]].concat();
            let output = router.command("strace", &words).output().unwrap();
            check_kill(&router, [&old, &new], &place, &mut left);
            if output.status.success() {
                break;
            }
        }
    }
    println!("{left:?}");
    assert!(left.old > 50 && left.new > 5, "{left:?}");
}

#[test]
fn two_at_once_on_one_interface_take_turns_or_are_refused_by_name() {
    let router = Router::new("apply-two");
    let before = router.listed(&["wan0"]);
    for _ in 0..10 {
        let spawn = || {
            let mut command = router.headend(&["apply", "home.toml", "--wan", "wan0"]);
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let both = [spawn(), spawn()].map(|child| child.wait_with_output().unwrap());
        for output in &both {
            let errors = String::from_utf8_lossy(&output.stderr);
            let is_named = errors.contains("--wan wan0: another headend qos");
            assert!(output.status.success() || is_named, "{errors}");
        }
        assert!(both.iter().any(|output| output.status.success()));
    }
    router.done(&["remove", "--wan", "wan0"]);
    assert_eq!(router.listed(&["wan0"]), before);
}
