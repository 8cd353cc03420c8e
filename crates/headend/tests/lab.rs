//! Tests `headend lab home-gateway` in virtual time: several rounds, policy files, mistakes. The interop tests cover
//! its run in namespaces.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const HEADEND: &str = env!("CARGO_BIN_EXE_headend");

/// A directory for one test.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("headend-lab-{name}-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        Self(home)
    }

    fn run(&self, words: &str) -> Output {
        Command::new(HEADEND)
            .args(["lab", "home-gateway", "--virtual"])
            .args(words.split_whitespace())
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The output of `--json`.
    fn json(&self, words: &str) -> Value {
        let output = self.run(&format!("{words} --json"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn shares(row: &Value) -> Vec<f64> {
    let runs = row["runs"].as_array().unwrap();
    runs.iter()
        .map(|run| run["share"].as_f64().unwrap())
        .collect()
}

#[test]
fn several_rounds_have_a_chance_each_and_a_spread_and_come_again_with_their_seed() {
    let home = Home::new("rounds");
    let words = "--rows 3,4 --seconds 5 --repeat 3 --seed 7 -o out";
    let first = home.json(words);
    let rows = first["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let shares = shares(row);
        assert_eq!(shares.len(), 3);
        let pings = |run: usize| &row["runs"][run]["pings"];
        assert_ne!(pings(0), pings(1));
        assert_eq!(pings(2).as_array().unwrap().len(), 50);
    }
    assert_eq!(home.json(words)["rows"], first["rows"]);
    // The third round equals the first round of a run with a later seed.
    let later = home.json("--rows 3,4 --seconds 5 --seed 9 -o out-9");
    assert_eq!(later["rows"][1]["runs"][0], rows[1]["runs"][2]);
    let table = home.file("out/rows.csv");
    let spread = table
        .lines()
        .find(|line| line.starts_with("4,B's share,3,"))
        .unwrap();
    let figures: Vec<f64> = spread
        .split(',')
        .skip(3)
        .map(|figure| figure.parse().unwrap())
        .collect();
    let shares = shares(&rows[1]);
    assert!((figures[0] - shares.iter().sum::<f64>() / 3.0).abs() < 0.001);
    assert!(figures[1] <= figures[0] && figures[0] <= figures[2]);
    assert!(
        home.file("out/report.html")
            .contains("The first of 3 measurements")
    );
    assert_eq!(home.file("out/pings.csv").lines().count(), 1 + 2 * 3 * 50);
}

#[test]
fn a_policy_file_is_a_treatment_as_those_with_a_name_are() {
    let home = Home::new("policy");
    let policy = "[link]\nup = \"2.3mbit\"\ndown = \"19mbit\"\n";
    fs::write(home.0.join("home.toml"), policy).unwrap();
    let outcome = home.json("--treatment home.toml --rows 5,6 --seconds 10 -o out");
    assert_eq!(outcome["treatment"], "home.toml");
    let [open, shaped] = [0, 1].map(|row| &outcome["rows"][row]["runs"][0]);
    assert!(open["loss_percent"].as_f64().unwrap() >= 50.0);
    assert_eq!(shaped["loss_percent"], 0.0);
    let share = shaped["share"].as_f64().unwrap();
    assert!((0.45..=0.55).contains(&share), "{share}");
    // The total is the policy's rate: 1,400 of the flood's 1,466 bytes on the wire count, and 1,448 of TCP's 1,538.
    let goodput = shaped["goodput_bps"].as_f64().unwrap();
    assert!(
        goodput <= 2_300_000.0 * 1.01 * 1_400.0 / 1_466.0,
        "{goodput}"
    );
}

#[test]
fn a_policy_that_is_no_slower_than_the_link_is_advised_against() {
    let home = Home::new("fast");
    fs::write(
        home.0.join("fast.toml"),
        "[link]\nup = \"5mbit\"\ndown = \"19mbit\"\n",
    )
    .unwrap();
    let output = home.run("--treatment fast.toml --rows 2 --seconds 1 -o out");
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("up is not below the link's 2500 kbit/s"),
        "{said}"
    );
}

#[test]
fn rows_are_printed_as_they_are_written() {
    let home = Home::new("csv");
    let output = home.run("--rows 1,2 --seconds 1 --csv -o out");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        home.file("out/rows.csv")
    );
}

#[test]
fn mistakes_are_one_line_and_leave_nothing() {
    let home = Home::new("mistakes");
    fs::write(home.0.join("wrong.toml"), "[link]\nup = \"fast\"\n").unwrap();
    fs::write(home.0.join("taken"), "").unwrap();
    for (words, said) in [
        ("--treatment cake", "--treatment cake: neither none"),
        ("--treatment wrong.toml", "wrong.toml:2:"),
        ("--treatment .", "--treatment .: "),
        ("--rows 7", "--rows 7: "),
        (
            "--engine user,kernel",
            "--virtual: the model has only the engine user",
        ),
        (
            "--engine kernel --treatment none",
            "--engine kernel: treatment none",
        ),
        ("--rows 1 -o taken/out", "cannot make taken/out"),
    ] {
        let output = home.run(words);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {text}");
        assert_eq!(text.lines().count(), 1, "{words}: {text}");
        assert!(text.contains(said), "{words}: {text}");
        assert!(output.stdout.is_empty());
    }
    // clap's error for a value spans several lines, with the syntax.
    for words in [
        "--rate 3bananas",
        "--rate 1",
        "--delay 3s",
        "--seconds 0",
        "--repeat 0",
        "--fifo 0",
    ] {
        assert_eq!(home.run(words).status.code(), Some(2), "{words}");
    }
    assert!(!home.0.join("lab-results").exists());
}

/// The experiment in a guest needs a kernel.
#[test]
fn a_guest_without_a_kernel_is_refused_in_one_line() {
    let home = Home::new("guest");
    fs::create_dir(home.0.join("empty")).unwrap();
    for (kernel, said) in [
        ("nowhere", "--guest nowhere: "),
        ("empty", "no lib/modules"),
    ] {
        let output = Command::new(HEADEND)
            .args(["lab", "home-gateway", "--engine", "cake", "-o", "out"])
            .args(["--guest", kernel])
            .current_dir(&home.0)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(said), "{text}");
        assert!(!home.0.join("out").exists());
    }
}

/// The commands of docs/lab-use.md. A busy host is saturated, which is exit status 1.
#[test]
fn every_command_of_the_page_on_use_works() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab-use.md");
    let page = fs::read_to_string(page).unwrap();
    let commands = page
        .lines()
        .filter_map(|line| line.strip_prefix("headend lab use"))
        .filter(|command| !command.contains("--watch"));
    let mut count = 0;
    for command in commands {
        let words = ["lab", "use"].into_iter().chain(command.split_whitespace());
        let output = Command::new(HEADEND).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{command}: {said}"
        );
        assert!(said.is_empty(), "{said}");
        count += 1;
    }
    assert!(count >= 2);
}

#[test]
fn each_resource_has_a_verdict_a_threshold_and_a_source() {
    let output = Command::new(HEADEND)
        .args(["lab", "use", "--interval", "0.1", "--json"])
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "lab.use/1");
    let rows = document["rows"].as_array().unwrap();
    for resource in [
        "cpu",
        "memory",
        "interface",
        "queue",
        "socket",
        "descriptors",
        "conntrack",
        "disk",
        "daemon loop",
    ] {
        assert!(
            rows.iter().any(|row| row["resource"] == resource),
            "{resource}"
        );
    }
    for row in rows {
        assert!(row["threshold"].as_f64().unwrap() > 0.0);
        assert!(!row["source"].as_str().unwrap().is_empty());
        assert!(!row["shown_by"].as_str().unwrap().is_empty());
    }
    let is_saturated = rows.iter().any(|row| row["verdict"] == "saturated");
    assert_eq!(output.status.code(), Some(i32::from(is_saturated)));
    let wrong = Command::new(HEADEND)
        .args(["lab", "use", "--interval", "0"])
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

/// A token bucket of 8 kbit/s is full after a few datagrams, in a namespace of its own.
#[test]
fn a_full_queue_is_named() {
    let script = "set -e; ip link set lo up; ip link add a0 type veth peer name a1; \
        ip address add 192.0.2.1/24 dev a0; ip link set a0 up; ip link set a1 up; \
        ip neighbour add 192.0.2.2 lladdr 02:00:00:00:00:02 dev a0; \
        tc qdisc add dev a0 root tbf rate 8kbit burst 2k limit 20k; \
        head -c 60000 /dev/zero | split -b 1000 --filter='cat > /dev/udp/192.0.2.2/9'; \
        exec \"$0\" lab use --interval 0.2";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "bash", "-c"])
        .args([script, HEADEND])
        .env("SHELL", "/bin/bash")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{text}");
    let named = text
        .lines()
        .filter(|line| line.starts_with("saturated queue a0 tbf"));
    assert!(named.count() >= 1, "{text}");
}
