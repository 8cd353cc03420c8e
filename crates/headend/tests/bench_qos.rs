//! Runs the commands of docs/bench-qos.md in a short form and checks their files. The measured figures are not checked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-qos-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn bench(words: &[&str], home: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headend"))
        .args(["bench", "qos"])
        .args(words)
        .current_dir(home)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn report(home: &Path, words: &[&str]) -> Value {
    let output = bench(words, home);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complained}");
    assert_eq!(complained, "", "progress is for terminals");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows(report: &Value, table: usize) -> &[Value] {
    report["tables"][table]["rows"].as_array().unwrap()
}

#[test]
fn each_kind_of_packet_each_queue_and_the_page_are_measured() {
    let home = directory("packets");
    let words = ["--quick", "--json", "--only", "classify,queues,page"];
    let report = report(&home, &words);
    assert_eq!(rows(&report, 0).len(), 10 * 4, "packets, steps");
    assert_eq!(rows(&report, 1).len(), 13, "the floor, queues and trees");
    assert_eq!(rows(&report, 2).len(), 3, "of the page");
    let files = home.join("bench-results/qos");
    assert!(files.join("packets-through-a-queue.svg").exists());
}

#[test]
fn the_queues_of_subscribers_are_measured_with_their_memory() {
    let words = ["--quick", "--json", "--only", "subscribers"];
    let report = report(&directory("subscribers"), &words);
    assert_eq!(
        rows(&report, 0).len(),
        7,
        "the floor, five ways to pass, memory"
    );
    assert_eq!(rows(&report, 1).len(), 2 * 3, "ways and numbers");
}

#[test]
fn each_rate_is_met_in_virtual_time_and_what_it_is_due_to_is_said_of_all() {
    let report = report(
        &directory("rates"),
        &["--quick", "--json", "--only", "rates"],
    );
    assert_eq!(rows(&report, 0).len(), 3 * 6, "rates, shapers and times");
    for row in rows(&report, 0) {
        let time = row["cells"][2].as_str().unwrap();
        if time.starts_with("virtual") {
            let error = row["cells"][4].as_f64().unwrap();
            assert!(error.abs() < 1.0, "{row}");
        }
        let whose = row["cells"][9].as_str().unwrap();
        let measured = row["cells"][3].as_f64();
        assert_eq!(
            measured.is_none(),
            whose.starts_with("not measured: "),
            "{row}"
        );
    }
}

#[test]
fn forwarding_is_measured_beside_the_kernel_s_bridge_and_a_bare_loop() {
    let words = ["--quick", "--json", "--only", "forward"];
    let report = report(&directory("forward"), &words);
    assert_eq!(rows(&report, 0).len(), 3 * 5 + 4 + 3, "loads and movers");
    for row in rows(&report, 0) {
        let cells = &row["cells"];
        let why = cells[9].as_str().unwrap_or_default();
        let is_measured = cells[3].as_f64().is_some();
        assert_eq!(is_measured, !why.starts_with("not measured: "), "{row}");
        assert_eq!(row["floor"] == true, cells[1] == "floor");
    }
}

#[test]
fn every_packet_of_the_streams_is_accounted_for_beside_its_floor() {
    let report = report(&directory("late"), &["--quick", "--json", "--only", "late"]);
    assert_eq!(rows(&report, 0).len(), 5 * 2, "cases, with a floor each");
    for row in rows(&report, 0) {
        let cells = &row["cells"];
        let [streams, packets, left_out] = [0, 8, 9].map(|at| cells[at].as_u64().unwrap());
        assert_eq!(packets + left_out, streams * 30, "{row}");
        assert_eq!(row["floor"] == true, cells[2] == "floor");
    }
    let to_reach = rows(&report, 0).iter().filter(|row| row["cells"][7] == 0.5);
    assert_eq!(to_reach.count(), 1, "100 streams beside one busy core");
}

#[test]
fn every_command_of_the_page_works() {
    let home = directory("page");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench-qos.md");
    let page = fs::read_to_string(page).unwrap();
    let commands: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("headend bench qos"))
        .collect();
    assert!(commands.len() >= 4);
    let mut done: Vec<Vec<&str>> = Vec::new();
    for command in commands {
        let mut words: Vec<&str> = command.split_whitespace().collect();
        // The long commands differ only in size.
        if !words.contains(&"--quick") {
            words.push("--quick");
        }
        if done.contains(&words) {
            continue;
        }
        done.push(words.clone());
        let output = bench(&words, &home);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {errors}");
        assert!(!output.stdout.is_empty(), "{command}");
        let out = words.iter().position(|word| *word == "--out");
        let directory = out.map_or("bench-results/qos", |at| words[at + 1]);
        assert!(home.join(directory).join("qos.json").exists(), "{command}");
    }
}

#[test]
fn a_part_that_is_not_there_is_wrong_usage() {
    let output = bench(&["--only", "speed"], &directory("unknown"));
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("classify") && said.contains("late"), "{said}");
}
