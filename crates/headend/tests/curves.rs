//! Runs short forms of `headend bench timers|poll|bringup|history`, and checks that the files are written and no
//! process is left. The measured figures are not checked.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const HEADEND: &str = env!("CARGO_BIN_EXE_headend");

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("curves-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

fn bench(arguments: &[&str], out: &Path) -> Output {
    Command::new(HEADEND)
        .arg("bench")
        .args(arguments)
        .arg("--out")
        .arg(out)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs a benchmark into an empty directory and reads its JSON. Its files must exist and be named on standard output.
fn report(name: &str) -> Value {
    let out = directory(name);
    let output = bench(&[name, "--quick"], &out);
    let said = String::from_utf8(output.stdout).unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complained}");
    assert_eq!(complained, "", "progress is for terminals");
    let report = read(&out.join(format!("{name}.json")));
    check_files(&report, &out, &said);
    report
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn check_files(report: &Value, out: &Path, said: &str) {
    let files = report["files"].as_array().unwrap();
    let tables = report["tables"].as_array().unwrap().len();
    let charts = report["charts"].as_array().unwrap().len();
    assert_eq!(files.len(), tables + charts);
    assert!(tables > 0 && charts > 0);
    for file in files {
        let file = file.as_str().unwrap();
        assert!(said.contains(file), "{file} is not named");
        let text = fs::read_to_string(out.join(file)).unwrap();
        if file.ends_with(".svg") {
            assert!(
                text.starts_with("<svg") && text.trim_end().ends_with("</svg>"),
                "{file}"
            );
        } else {
            assert!(text.lines().count() > 1, "{file} has no row");
        }
    }
    assert!(!report["method"].as_array().unwrap().is_empty());
}

/// The cells of the row that starts with `first`, in the table with the title `title`.
fn row<'a>(report: &'a Value, title: &str, first: &str) -> &'a [Value] {
    let tables = report["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["title"] == title);
    let rows = table.unwrap()["rows"].as_array().unwrap();
    let cells = |row: &'a Value| row["cells"].as_array().unwrap().as_slice();
    rows.iter()
        .map(cells)
        .find(|cells| cells[0].as_str().unwrap().starts_with(first))
        .unwrap()
}

#[test]
fn timers_writes_every_operation_with_its_floor() {
    let report = report("timers");
    assert_eq!(report["tables"].as_array().unwrap().len(), 4);
    for table in report["tables"].as_array().unwrap() {
        let rows = table["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 4, "a floor and three stores");
        assert_eq!(rows.iter().filter(|row| row["floor"] == true).count(), 1);
    }
}

#[test]
fn poll_writes_every_poller_at_every_size() {
    let report = report("poll");
    let rows = report["tables"][0]["rows"].as_array().unwrap();
    for poller in ["poll-rebuilt", "poll-kept", "epoll"] {
        let of_poller = rows.iter().filter(|row| row["cells"][0] == poller);
        assert_eq!(of_poller.count(), 3 * 3 * 2, "sizes, stores, ready");
    }
}

#[test]
fn bringup_brings_up_all_tunnels_of_our_own_designs() {
    let report = report("bringup");
    for build in ["default", "socket-each", "poll-kept"] {
        let cells = row(&report, "Bring-up: time", build);
        assert_eq!(cells[2], 400, "{build}");
    }
    for build in ["r2929", "r3031", "r3125", "r3158", "r3181"] {
        let cells = row(&report, "Bring-up: time", build);
        assert!(cells[2].as_u64() > Some(0), "{build} brought nothing up");
    }
    let default = row(&report, "Bring-up: system calls per tunnel", "default");
    assert!(default[2..].iter().any(|calls| calls.as_f64() > Some(0.0)));
}

#[test]
fn history_writes_one_page_with_all_chapters() {
    let out = directory("history");
    let page = out.join("page.html");
    let output = bench(&["history", "--quick"], &page);
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("The page: ") && said.contains("page.html"));
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.trim_end().ends_with("</html>"));
    assert_eq!(text.matches("<section").count(), 6);
    let summary = read(&out.join("history.json"));
    assert_eq!(summary["schema"], "bench.history/1");
    assert_eq!(summary["complete"], true);
    let names: Vec<&str> = summary["chapters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|chapter| chapter["name"].as_str().unwrap())
        .collect();
    let expected = [
        "tunnel bring-up",
        "poll and epoll",
        "home gateway",
        "capture",
        "filter",
        "full mesh",
    ];
    assert_eq!(names, expected);
    let report = read(&out.join("history-figures.json"));
    check_files(&report, &out, &said);
    let ours = row(&report, "Times, also as multiples of r3125's", "headend");
    assert_eq!(ours[4], "measured", "all of ours were up");
    let title = "The capture of 2.87 million packets, published and here, also as multiples of the look-up from the tail";
    let whole = row(&report, title, "headend, whole analysis");
    assert!(whole[2].as_str().unwrap().ends_with("measured"));
    let title = "The six rows, published (publ.) and here (virtual time, policy: fair)";
    let mut tables = report["tables"].as_array().unwrap().iter();
    let rows = &tables.find(|table| table["title"] == title).unwrap()["rows"];
    let published = rows[4]["cells"][3].as_f64();
    assert_eq!(published, Some(69.0), "row 5's loss");
}

#[test]
fn an_interrupted_history_prints_the_finished_chapters_and_removes_its_files() {
    let out = directory("history-interrupted");
    let temporary = out.join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let mut bench = Command::new(HEADEND)
        .args(["bench", "history", "--quick", "--json", "--out"])
        .arg(out.join("page.html"))
        .env("TMPDIR", &temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(bench.stderr.take().unwrap()).lines();
    let first = progress.next().unwrap().unwrap();
    assert!(first.starts_with("history 1/6: tunnel bring-up"), "{first}");
    let pid = Pid::from_raw(bench.id().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["complete"], false);
    assert_eq!(printed["chapters"][0]["name"], "tunnel bring-up");
    assert_eq!(printed["chapters"][0]["verdict"], "not_judged");
    assert_eq!(printed, read(&out.join("history.json")));
    let page = fs::read_to_string(out.join("page.html")).unwrap();
    let finished = printed["chapters"].as_array().unwrap().len();
    assert_eq!(page.matches("<section").count(), finished);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn an_unknown_build_is_wrong_usage_and_the_known_ones_are_named() {
    let output = bench(&["bringup", "--builds", "r1"], &directory("unknown"));
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("r2929") && said.contains("default"), "{said}");
}

#[test]
fn an_interrupt_ends_the_daemons_of_a_bring_up() {
    let patience = Duration::from_secs(30);
    let started = Instant::now();
    let mut bench = Command::new(HEADEND)
        .args(["bench", "bringup", "--builds", "r2929", "--out"])
        .arg(directory("interrupt"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", bench.id());
    let daemons = loop {
        let text = fs::read_to_string(&children).unwrap();
        let found: Vec<u32> = text
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect();
        if found.len() == 2 {
            break found;
        }
        assert!(started.elapsed() < patience, "no daemons");
        std::thread::sleep(Duration::from_millis(5));
    };
    let pid = Pid::from_raw(bench.id().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(bench.wait().unwrap().code(), Some(130));
    for daemon in daemons {
        assert!(
            !Path::new(&format!("/proc/{daemon}")).exists(),
            "{daemon} runs on"
        );
    }
}
