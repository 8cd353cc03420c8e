//! Runs `headend bench segments` with few segments and `headend bench diff` with few packets, and checks their files. The
//! measured figures are not checked.

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

#[test]
fn diff_measures_three_sizes_next_to_bare_loops() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-diff");
    let _ = fs::remove_dir_all(&out);
    let output = Command::new(env!("CARGO_BIN_EXE_headend"))
        .args(["bench", "diff", "--quick", "--packets", "2000", "--out"])
        .arg(&out)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complained}");
    let report: Value = serde_json::from_slice(&fs::read(out.join("diff.json")).unwrap()).unwrap();
    let rows = report["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * 3, "sizes, programs");
    // One of a thousand is lost, if it carries data.
    for (rows, pairs) in rows.chunks(3).zip([1999, 3997, 7995]) {
        assert!(rows.iter().all(|row| {
            row["cells"][0]
                .as_i64()
                .is_some_and(|found| (found - pairs).abs() < 4)
        }));
        assert_eq!(rows[2]["cells"][1], "headend trace diff");
    }
}
