//! Runs `headend bench segments` with few segments and checks its files. The measured figures are not checked.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headend"))
        .args(["bench", "segments"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn segments_writes_each_case_with_every_list_and_what_was_published() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-segments");
    let _ = fs::remove_dir_all(&out);
    let output = bench(&[
        "--quick",
        "--segments",
        "200",
        "--out",
        out.to_str().unwrap(),
    ]);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complained}");
    assert_eq!(complained, "", "progress is for terminals");
    let text = fs::read(out.join("segments.json")).unwrap();
    let report: Value = serde_json::from_slice(&text).unwrap();
    let rows = |table: usize| report["tables"][table]["rows"].as_array().unwrap();

    let harness = rows(0);
    assert_eq!(harness.len(), 4 * 4, "cases, lists");
    for case in harness.chunks(4) {
        let lists = ["floor", "from the head", "from the tail", "ours"];
        assert!(case.iter().map(|row| &row["cells"][1]).eq(&lists));
    }
    let from_head = &harness[5]["cells"];
    assert_eq!(from_head[0], "all overlap");
    assert_eq!(from_head[6], 4_830);
    let sizes = 2..=4;
    assert!(sizes.clone().all(|at| from_head[at].as_f64() > Some(0.0)));

    let recovery = rows(1);
    assert_eq!(
        recovery.len(),
        7,
        "a floor, four old designs, ours with and without"
    );
    assert_eq!(recovery[1]["cells"][5], "7 h");
    let files = report["files"].as_array().unwrap();
    assert_eq!(files.len(), 2 + 5, "tables and charts");
}

#[test]
fn no_segments_are_wrong_usage() {
    assert_eq!(bench(&["--segments", "0"]).status.code(), Some(2));
}
