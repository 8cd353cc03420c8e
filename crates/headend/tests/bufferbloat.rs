//! Tests `headend lab bufferbloat` over links with a token bucket in network namespaces: the delay that its queue adds,
//! files, a fix, and failures.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use reactor::namespace::{Namespace, veth};
use serde_json::Value;

const HEADEND: &str = env!("CARGO_BIN_EXE_headend");
/// The bottleneck: at most 100 ms of queue upstream and 100 ms downstream.
const UP: &str = "rate 4mbit burst 4kb limit 50000";
const DOWN: &str = "rate 16mbit burst 8kb limit 200000";
const QUEUE_US: u64 = 100_000;

/// A host, its provider with a slow link, and a far host with a responder.
struct World {
    directory: PathBuf,
    home: Namespace,
    /// Perhaps a machine on the way to the provider, with `lan0` and `wan0`.
    middle: Option<Namespace>,
    _provider: Namespace,
    far: Namespace,
}

/// `headend ping --responder 7007 --load`, or another process, killed when dropped.
struct Responder(Child);

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl World {
    fn new(name: &str) -> World {
        World::with(name, None)
    }

    fn with(name: &str, middle: Option<Namespace>) -> World {
        let name = format!("headend-bufferbloat-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let make = || Namespace::new().expect("root, or leave to make namespaces");
        let (home, provider, far) = (make(), make(), make());
        match &middle {
            None => veth((&home, "wan0"), (&provider, "line0")).unwrap(),
            Some(middle) => {
                veth((&home, "wan0"), (middle, "lan0")).unwrap();
                veth((middle, "wan0"), (&provider, "line0")).unwrap();
                for name in ["lan0", "wan0"] {
                    middle.netlink().unwrap().set_up(name, true).unwrap();
                }
            }
        }
        veth((&provider, "core0"), (&far, "far0")).unwrap();
        for (place, name, addresses) in [
            (&home, "wan0", ["192.0.2.2", "2001:db8:1::2"]),
            (&provider, "line0", ["192.0.2.1", "2001:db8:1::1"]),
            (&provider, "core0", ["198.51.100.1", "2001:db8:2::1"]),
            (&far, "far0", ["198.51.100.7", "2001:db8:2::7"]),
        ] {
            // A new address of IPv6 must be usable at once.
            let setting = format!("ipv6/conf/{name}/accept_dad");
            place.set(&setting, "0").unwrap();
            let mut netlink = place.netlink().unwrap();
            netlink.set_up(name, true).unwrap();
            netlink.add_address(name, ip(addresses[0]), 24).unwrap();
            netlink.add_address(name, ip(addresses[1]), 64).unwrap();
        }
        provider.forward().unwrap();
        let world = World {
            directory,
            home,
            middle,
            _provider: provider,
            far,
        };
        for (place, name) in [(&world.home, "wan0"), (&world.far, "far0")] {
            // Where round trips are short, the kernel's TCP queues up to 64 KiB as one packet.
            let words = ["link", "set", name, "gso_max_segs", "1"];
            world.done(place, "ip", &words);
        }
        for (four, six, place) in [
            ("192.0.2.1", "2001:db8:1::1", &world.home),
            ("198.51.100.1", "2001:db8:2::1", &world.far),
        ] {
            world.done(place, "ip", &["route", "add", "default", "via", four]);
            world.done(place, "ip", &["-6", "route", "add", "default", "via", six]);
        }
        for (name, bucket) in [("core0", UP), ("line0", DOWN)] {
            let words = format!("qdisc add dev {name} root tbf {bucket}");
            let words: Vec<&str> = words.split(' ').collect();
            world.done(&world._provider, "tc", &words);
        }
        world
    }

    fn command(&self, place: &Namespace, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        place.command(&mut command).unwrap();
        command
    }

    fn done(&self, place: &Namespace, program: &str, words: &[&str]) {
        let output = self.command(place, program, words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {words:?}: {errors}");
    }

    /// Starts the responder, with further flags.
    fn responder(&self, flags: &[&str]) -> Responder {
        let words = [&["ping", "--responder", "7007"], flags].concat();
        let mut command = self.command(&self.far, HEADEND, &words);
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut responder = Responder(child);
        let lines = if flags.is_empty() { 2 } else { 4 };
        let mut out = BufReader::new(responder.0.stdout.take().unwrap());
        for _ in 0..lines {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            assert!(line.contains(":7007"), "{line}");
        }
        responder
    }

    fn test(&self, words: &[&str]) -> Command {
        self.command(
            &self.home,
            HEADEND,
            &[&["lab", "bufferbloat"], words].concat(),
        )
    }

    fn run(&self, words: &[&str]) -> Output {
        self.test(words).output().unwrap()
    }

    /// Runs it with --json.
    fn json(&self, status: i32, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--json"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {errors}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs it and returns the last line on standard error.
    fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {errors}");
        assert!(output.stdout.is_empty(), "{words:?}");
        errors.lines().last().unwrap_or_default().to_owned()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.directory.join(name)).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

const FAR: &str = "198.51.100.7";
const SHORT: [&str; 4] = ["--idle", "1", "--seconds", "4"];

fn account<'a>(run: &'a Value, kind: &str) -> &'a Value {
    let accounts = run["accounts"].as_array().unwrap();
    accounts
        .iter()
        .find(|account| account["kind"] == kind)
        .unwrap()
}

fn delay(run: &Value, kind: &str, which: &str) -> u64 {
    account(run, kind)["pings"][0][which].as_u64().unwrap()
}

/// A quartile of a column of the first ping stream while a phase counts. A busy machine delays some pings, but not most.
fn quartile(run: &Value, kind: &str, column: &str, which: usize) -> i64 {
    let run = &run["run"];
    let phases = run["phases"].as_array().unwrap();
    let phase = phases.iter().find(|phase| phase["kind"] == kind).unwrap();
    let within = phase["counts_from_us"].as_i64().unwrap()..phase["to_us"].as_i64().unwrap();
    let numbers = |name: &str| run["pings"][0][name].as_array().unwrap().iter();
    let times = numbers("at_us").map(|at| at.as_i64().unwrap());
    let mut values: Vec<i64> = times
        .zip(numbers(column))
        .filter(|(at, _)| within.contains(at))
        .filter_map(|(_, value)| value.as_i64())
        .collect();
    values.sort_unstable();
    values[values.len() * which / 4]
}

#[test]
fn the_added_delay_is_that_of_the_queue_and_files_keep_it() {
    let world = World::new("queue");
    let _responder = world.responder(&["--load"]);
    let files = [
        "-o",
        "pings.json",
        "--flent",
        "run.flent.gz",
        "--plot",
        "run.svg",
        "--plot",
        "run.html",
        "--plot",
        "run.png",
    ];
    let words = [
        &[FAR, "-Q", "be,ef", "--congestion", "cubic"],
        &SHORT[..],
        &files,
    ]
    .concat();
    let document = world.json(0, &words);
    assert_eq!(document["schema"], "lab.bufferbloat/1");
    let run = &document["runs"][0];
    for (kind, rate, link) in [
        ("down", "down_bps", 16_000_000),
        ("up", "up_bps", 4_000_000),
    ] {
        // The queue is never longer than its limit says, and a filled one adds at least a third of that.
        let longest = delay(run, kind, "p95_us");
        assert!(longest >= QUEUE_US / 3, "{kind}: {longest} us");
        let rate = account(run, kind)[rate].as_u64().unwrap();
        assert!(rate > link / 2, "{kind}: {rate}");
    }
    assert!(delay(run, "idle", "p50_us") < QUEUE_US / 3);
    // The direction that is loaded is the one that waits.
    let way = |kind: &str, way: &str| quartile(run, kind, way, 2);
    assert!(way("up", "up_us") > way("up", "down_us"));
    assert!(way("down", "down_us") > way("down", "up_us"));
    assert!(run["verdict"]["grade"].is_string());
    assert!(run["verdict"]["set"].as_str().unwrap().starts_with("up="));
    let pings: Value = serde_json::from_slice(&world.read("pings.json")).unwrap();
    assert_eq!(pings["schema"], "ping.result/2");
    assert_eq!(pings["streams"][1]["plan"]["name"], "udp ef");
    assert!(world.read("run.png").starts_with(b"\x89PNG"));
    assert!(world.read("run.svg").starts_with(b"<svg"));
    assert!(world.read("run.html").starts_with(b"<!doctype html>"));
    // The flent file is the same run.
    let words = [
        &[FAR, "--compare", "run.flent.gz", "--load", "up"],
        &SHORT[..],
    ]
    .concat();
    let compared = world.json(0, &words);
    assert_eq!(compared["runs"][0]["name"], "run.flent.gz");
    assert_eq!(compared["runs"][0]["run"], run["run"]);
    assert_eq!(compared["runs"][1]["name"], "now");
}

#[test]
fn a_policy_with_the_pings_first_lowers_the_delay_of_uploads() {
    let world = World::new("policy");
    let _responder = world.responder(&["--load"]);
    let policy = "[link]\nup = \"3.4mbit\"\ndown = \"14mbit\"\n\n[[first]]\nname = \"pings\"\nproto = \"udp\"\nport = 7007\n";
    fs::write(world.directory.join("policy.toml"), policy).unwrap();
    let command = format!("{HEADEND} qos apply policy.toml --wan wan0 --state state");
    let words = [
        &[FAR, "--load", "up", "--exec", &command],
        &SHORT[..],
        &["--flent", "run.flent"],
    ]
    .concat();
    let document = world.json(0, &words);
    assert_eq!(document["exec"], command.as_str());
    let [before, after] = [0, 1].map(|run| quartile(&document["runs"][run], "up", "rtt_us", 1));
    assert!(after < before / 2, "{before} us before, {after} us after");
    for name in ["before-run.flent", "after-run.flent"] {
        let flent: Value = serde_json::from_slice(&world.read(name)).unwrap();
        assert_eq!(flent["version"], 4);
    }
}

/// `headend qos run` between the host and its provider: first without queues of its own, then with those of a home.
#[test]
fn a_shaper_with_queues_for_flows_lowers_the_delay_both_ways() {
    let middle = Namespace::new().expect("root, or leave to make namespaces");
    let world = World::with("shaper", Some(middle));
    let write = |name: &str, text: &str| fs::write(world.directory.join(name), text).unwrap();
    let link = "[link]\nup = \"3.4mbit\"\ndown = \"14mbit\"\n";
    write("policy.toml", "[link]\n[shape]\ntemplate = \"none\"\n");
    write("home.toml", link);
    let files = ["--policy", "policy.toml", "--socket", "control"];
    let words = [
        &["qos", "run", "--lan", "lan0", "--wan", "wan0"],
        &files[..],
    ]
    .concat();
    let mut shaper = world.command(world.middle.as_ref().unwrap(), HEADEND, &words);
    let mut shaper = Responder(shaper.stdout(Stdio::piped()).spawn().unwrap());
    let mut out = BufReader::new(shaper.0.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    let _responder = world.responder(&["--load"]);
    let command = format!("cp home.toml policy.toml; {HEADEND} qos reload --socket control >&2");
    let words = [
        &[FAR, "--load", "down,up", "--exec", &command],
        &SHORT[..],
        &["--plot", "both.svg"],
    ]
    .concat();
    let document = world.json(0, &words);
    for kind in ["down", "up"] {
        let [before, after] = [0, 1].map(|run| quartile(&document["runs"][run], kind, "rtt_us", 1));
        assert!(
            after < before / 2,
            "{kind}: {before} us before, {after} us after"
        );
    }
    // One picture, with both runs.
    let picture = String::from_utf8(world.read("both.svg")).unwrap();
    for name in [
        "before: udp be",
        "after: udp be",
        "before: down",
        "after: up",
    ] {
        assert!(picture.contains(name), "{name}");
    }
}

#[test]
fn a_bad_grade_is_exit_status_1_over_ipv6_too() {
    let world = World::new("six");
    let _responder = world.responder(&["--load"]);
    let words = [
        &["2001:db8:2::7", "--load", "down", "--fail-over", "A+"],
        &SHORT[..],
    ]
    .concat();
    let output = world.run(&words);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("\nGrade "), "{text}");
    assert!(text.contains("headend qos rate --down "), "{text}");
    // Without a terminal there is no progress bar.
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn what_the_responder_refuses_is_named() {
    let world = World::new("refused");
    let said = world.refused(&[FAR]);
    assert!(
        said.contains("refuses TCP connections: start `headend ping --responder 7007 --load`"),
        "{said}"
    );
    let responder = world.responder(&[]);
    let said = world.refused(&[FAR]);
    assert!(
        said.contains("refuses TCP connections"),
        "without --load: {said}"
    );
    drop(responder);
    fs::write(world.directory.join("token"), "a secret\n").unwrap();
    let limits = [
        "--load",
        "--load-streams",
        "4",
        "--load-seconds",
        "5",
        "--load-token",
        "token",
    ];
    let _responder = world.responder(&limits);
    for (words, why) in [
        (
            &[FAR][..],
            "serves 4 streams to one host, and --streams 4 needs 8",
        ),
        (&[FAR, "--streams", "2"], "loads for at most 5 s"),
        (
            &[FAR, "--streams", "2", "--seconds", "4"],
            "needs a token: use --token FILE",
        ),
        (
            &[
                FAR,
                "--streams",
                "2",
                "--seconds",
                "2",
                "--idle",
                "1",
                "--token",
                "nowhere",
            ],
            "cannot read the token in nowhere",
        ),
        (&["198.51.100.99", "--streams", "2"], "cannot be reached"),
        (&[FAR, "--compare", "token"], "--compare token"),
        (&[FAR, "--plot", "a.jpg"], "ends in .svg, .png or .html"),
        (&[FAR, "--load", "up,up"], "up is given twice"),
        (
            &[FAR, "--congestion", "no such thing"],
            "no name of a congestion control",
        ),
    ] {
        let said = world.refused(words);
        assert!(said.contains(why), "{words:?}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn what_is_refused_when_a_stream_starts_leaves_the_idle_phase() {
    let world = World::new("late");
    fs::write(world.directory.join("token"), "a secret\n").unwrap();
    fs::write(world.directory.join("other"), "another\n").unwrap();
    let _responder = world.responder(&["--load", "--load-token", "token"]);
    let short = ["--streams", "2", "--seconds", "2", "--idle", "1"];
    let document = world.json(2, &[&[FAR, "--token", "other"], &short[..]].concat());
    let faults = document["runs"][0]["run"]["faults"].to_string();
    assert!(faults.contains("the token is missing or wrong"), "{faults}");
    assert_eq!(document["runs"][0]["accounts"][0]["complete"], true);
    let document = world.json(
        2,
        &[
            &[FAR, "--token", "token", "--congestion", "nonesuch"],
            &short[..],
        ]
        .concat(),
    );
    let faults = document["runs"][0]["run"]["faults"].to_string();
    assert!(
        faults.contains("cannot use this congestion control"),
        "{faults}"
    );
    let document = world.json(
        0,
        &[&[FAR, "--token", "token", "--load", "up"], &short[..]].concat(),
    );
    assert_eq!(
        document["runs"][0]["run"]["faults"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn a_port_that_accepts_and_says_nothing_or_something_else_is_named() {
    let world = World::new("strange");
    let listener = world
        .far
        .run(|| TcpListener::bind("198.51.100.7:7007"))
        .unwrap()
        .unwrap();
    let said = world.refused(&[FAR]);
    assert!(
        said.contains("accepts connections, but says nothing"),
        "{said}"
    );
    let thread = std::thread::spawn(move || {
        // The first connection is that of the run above.
        for connection in listener.incoming().take(2) {
            let _ = std::io::Write::write_all(&mut connection.unwrap(), &[b'x'; 64]);
        }
    });
    let said = world.refused(&[FAR]);
    assert!(
        said.contains("no load service of headend answers there"),
        "{said}"
    );
    thread.join().unwrap();
}

#[test]
fn a_responder_that_ends_leaves_the_phases_before_it() {
    let world = World::new("dies");
    let responder = world.responder(&["--load"]);
    let words = [FAR, "--idle", "1", "--seconds", "60", "--json"];
    let mut command = world.test(&words);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(4));
    drop(responder);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("the responder closed the connection after "),
        "{errors}"
    );
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &document["runs"][0];
    assert_eq!(account(run, "idle")["complete"], true);
    assert_eq!(account(run, "down")["complete"], false);
    assert_eq!(run["run"]["interrupted"], true);
    assert!(delay(run, "down", "sent") > 0);
}

#[test]
fn an_interface_that_goes_down_is_named_and_the_phases_before_it_stay() {
    let world = World::new("down");
    let _responder = world.responder(&["--load"]);
    let words = [FAR, "--idle", "1", "--seconds", "12", "--json"];
    let mut command = world.test(&words);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(4));
    let mut netlink = world.home.netlink().unwrap();
    netlink.set_up("wan0", false).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("stalled: nothing arrived for 5 s"),
        "{errors}"
    );
    assert!(
        errors.contains("pings: udp be: Network is unreachable"),
        "{errors}"
    );
    let last = errors.lines().last().unwrap();
    assert!(
        last.contains("phase up: ") && last.contains("cannot be reached"),
        "{errors}"
    );
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &document["runs"][0];
    assert_eq!(account(run, "idle")["complete"], true);
    assert_eq!(account(run, "down")["complete"], false);
    // Most pings of the phase are lost, so that the others are worth no grade.
    assert!(run["verdict"]["grade"].is_null());
}

/// The commands of docs/bufferbloat.md, with short phases.
#[test]
fn every_command_of_the_page_works() {
    let world = World::new("page");
    let _responder = world.responder(&["--load"]);
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/bufferbloat.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page
        .split("```sh\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let mut count = 0;
    for line in block.lines() {
        let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
        if words[0] == "lab" {
            words.extend(["--idle", "1", "--seconds", "2", "--load", "down"]);
        }
        let output = world
            .command(&world.home, HEADEND, &words)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {errors}");
        assert!(!output.stdout.is_empty(), "{line}");
        count += 1;
    }
    assert!(count >= 8, "{count} commands");
    for name in [
        "run.svg",
        "run.png",
        "run.html",
        "pings.json.zst",
        "before.flent.gz",
        "both.png",
    ] {
        assert!(world.directory.join(name).is_file(), "{name}");
    }
}
