//! Runs a small `headend bench tunnels`: every tunnel is established, and the files exist. The measured costs are not
//! checked.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The index of the named column in a table of the report.
fn column(table: &Value, name: &str) -> usize {
    let columns = table["columns"].as_array().unwrap();
    let found = columns.iter().position(|column| column["name"] == name);
    found.unwrap_or_else(|| panic!("no column {name} in {}", table["title"]))
}

/// The first table whose title starts with the given text.
fn table<'a>(report: &'a Value, title: &str) -> &'a Value {
    let tables = report["tables"].as_array().unwrap();
    let found = tables
        .iter()
        .find(|table| table["title"].as_str().unwrap().starts_with(title));
    found.unwrap_or_else(|| panic!("no table {title}"))
}

/// Two columns of every row.
fn pairs(table: &Value, names: [&str; 2]) -> Vec<(u64, u64)> {
    let [a, b] = names.map(|name| column(table, name));
    let rows = table["rows"].as_array().unwrap().iter();
    rows.map(|row| {
        let cell = |i: usize| row["cells"][i].as_u64().unwrap();
        (cell(a), cell(b))
    })
    .collect()
}

#[test]
fn brings_every_tunnel_up_and_writes_its_files() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-tunnels");
    let _ = fs::remove_dir_all(&out);
    let run = Command::new(env!("CARGO_BIN_EXE_headend"))
        .args([
            "bench", "tunnels", "--quick", "--sizes", "30,60,90", "--out",
        ])
        .arg(&out)
        .output()
        .unwrap();
    let (said, complained) = (
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr),
    );
    assert!(run.status.success(), "{said}\n{complained}");

    let json = fs::read_to_string(out.join("tunnels.json")).unwrap();
    let report: Value = serde_json::from_str(&json).unwrap();
    let set_up = pairs(table(&report, "Tunnels set up"), ["tunnels", "up"]);
    assert_eq!(set_up.len(), 3 * 2 * 2, "{set_up:?}");
    assert!(set_up.iter().all(|(asked, up)| asked == up), "{set_up:?}");
    let storms = pairs(table(&report, "A storm"), ["SCCRQs", "up"]);
    assert_eq!(storms, [(200, 200); 2]);
    let hellos = table(&report, "HELLOs answered");
    let hellos = pairs(hellos, ["sent", "datagrams answered"]);
    assert_eq!(hellos.len(), 3 * 2, "{hellos:?}");
    assert!(hellos.iter().all(|(sent, _)| *sent > 0), "{hellos:?}");

    let files = report["files"].as_array().unwrap();
    assert!(files.iter().any(|f| f.as_str().unwrap().ends_with(".svg")));
    assert!(files.iter().any(|f| f.as_str().unwrap().ends_with(".csv")));
    for file in files {
        let path = out.join(file.as_str().unwrap());
        assert!(fs::metadata(&path).unwrap().len() > 0, "{}", path.display());
        assert!(said.contains(&*path.to_string_lossy()), "{said}");
    }
}

#[test]
fn a_peer_that_nobody_knows_is_wrong_usage() {
    let run = Command::new(env!("CARGO_BIN_EXE_headend"))
        .args(["bench", "tunnels", "--against", "nobody"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("xl2tpd"));
}
