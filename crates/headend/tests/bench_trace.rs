//! Runs a small `headend bench trace`: every requested measurement is made, and the files exist. The measured costs are
//! not checked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-trace-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn bench(arguments: &[&str], out: &Path) -> Output {
    let run = Command::new(env!("CARGO_BIN_EXE_headend"))
        .args(["bench", "trace", "--quick", "--scale", "0.0005"])
        .args(arguments)
        .arg("--out")
        .arg(out)
        .env("TMPDIR", out)
        .output();
    run.unwrap()
}

/// The rows of the table whose title starts with the given text, as cells.
fn rows<'a>(report: &'a Value, title: &str) -> Vec<&'a [Value]> {
    let tables = report["tables"].as_array().unwrap().iter();
    let mut found = tables.filter(|table| table["title"].as_str().unwrap().starts_with(title));
    let table = found.next().unwrap_or_else(|| panic!("no table {title}"));
    let rows = table["rows"].as_array().unwrap().iter();
    rows.map(|row| row["cells"].as_array().unwrap().as_slice())
        .collect()
}

#[test]
fn measures_every_size_and_kind_of_report_and_leaves_only_its_files() {
    let out = directory("own");
    let run = bench(&["--only", "clean,short", "--threads", "2,3"], &out);
    let (said, complained) = (
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr),
    );
    assert!(run.status.success(), "{said}\n{complained}");
    assert_eq!(complained, "", "progress is for terminals");

    let json = fs::read_to_string(out.join("trace.json")).unwrap();
    let report: Value = serde_json::from_str(&json).unwrap();
    let sizes = rows(&report, "Time and memory by size");
    assert_eq!(
        sizes.len(),
        2 * 3 * 4,
        "captures, sizes, two floors, us and why"
    );
    assert!(sizes.iter().all(|cells| cells[1].as_u64() > Some(0)));
    let held = sizes.iter().filter(|cells| cells[12].as_f64() > Some(0.0));
    assert_eq!(
        held.count(),
        3,
        "memory of a connection, where there are many"
    );
    let asked = rows(&report, "Reports, graphs and threads");
    let of = |kind: &str| asked.iter().filter(|cells| cells[0] == kind).count();
    assert_eq!((of("clean"), of("short")), (7, 5));
    let goals = rows(&report, "What is to be reached");
    assert!(
        goals
            .iter()
            .all(|cells| cells[5] == "yes" || cells[5] == "no")
    );

    let mut files: Vec<String> = vec!["trace.json".into()];
    let named = report["files"].as_array().unwrap().iter();
    files.extend(named.map(|file| file.as_str().unwrap().to_owned()));
    for file in &files {
        assert!(said.contains(file.as_str()), "{file} is not named");
    }
    let mut here: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    here.sort();
    assert_eq!(here, files, "captures and graphs are gone");
}

#[test]
fn captures_that_are_to_be_kept_are_kept_and_taken_again() {
    let (out, kept) = (directory("kept"), directory("kept-captures"));
    let arguments = [
        "--only",
        "oneway-loss",
        "--captures",
        kept.to_str().unwrap(),
    ];
    assert!(bench(&arguments, &out).status.success());
    let written = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let first = kept.join("oneway-loss-0.0005.pcap");
    let before = written(&first);
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 3);
    assert!(bench(&arguments, &out).status.success());
    assert_eq!(written(&first), before);
}

#[test]
fn a_missing_peer_is_named_with_its_package() {
    let out = directory("missing");
    let run = Command::new(env!("CARGO_BIN_EXE_headend"))
        .args(["bench", "trace", "--quick", "--against", "tcptrace,tshark"])
        .arg("--out")
        .arg(&out)
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(1), "{said}");
    for peer in ["tcptrace", "tshark"] {
        let hint = format!("{peer} is not installed: apt-get install {peer}");
        assert!(said.contains(&hint), "{said}");
    }
}

#[test]
fn a_peer_or_a_capture_that_nobody_knows_is_wrong_usage() {
    let out = directory("unknown");
    for (arguments, known) in [
        (["--against", "nobody"], "tcptrace"),
        (["--only", "nothing"], "oneway-loss"),
    ] {
        let run = bench(&arguments, &out);
        assert_eq!(run.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&run.stderr).contains(known));
    }
}
