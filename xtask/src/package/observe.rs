//! The files for those who watch: Prometheus, Grafana, compose and containerlab.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use yaml_rust2::YamlLoader;

use super::{at, ensure, output};

/// Every file below a folder whose name ends so.
pub(super) fn below(directory: &Path, end: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let entries = fs::read_dir(directory).map_err(at(directory))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(below(&path, end)?);
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads every YAML and JSON file, and checks that files which they name are there.
pub(super) fn syntax(packaging: &Path) -> Result<String, Vec<String>> {
    let mut faults = Vec::new();
    let check = || -> Result<(usize, Vec<String>), String> {
        let mut count = 0;
        let mut named = Vec::new();
        for end in [".yml", ".yaml"] {
            for file in below(packaging, end)? {
                let text = fs::read_to_string(&file).map_err(at(&file))?;
                YamlLoader::load_from_str(&text)
                    .map_err(|error| format!("{}: {error}", file.display()))?;
                named.extend(missing(&file, &text));
                count += 1;
            }
        }
        for file in below(packaging, ".json")? {
            let text = fs::read_to_string(&file).map_err(at(&file))?;
            let value: Value = serde_json::from_str(&text)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            dashboard(&value).map_err(|fault| format!("{}: {fault}", file.display()))?;
            count += 1;
        }
        Ok((count, named))
    };
    let count = match check() {
        Ok((count, named)) => {
            faults.extend(named);
            count
        }
        Err(fault) => {
            faults.push(fault);
            0
        }
    };
    match faults.is_empty() {
        true => Ok(format!("{count} files")),
        false => Err(faults),
    }
}

/// The files beside `file` that its mounts name and that are not there.
fn missing(file: &Path, text: &str) -> Vec<String> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let mounts = text.lines().filter_map(|line| {
        let mount = line.trim().strip_prefix("- ")?;
        let (host, _) = mount.split_once(":/")?;
        host.starts_with("./").then(|| host.to_owned())
    });
    mounts
        .filter(|host| !directory.join(host).exists())
        .map(|host| format!("{}: mounts {host}, which is missing", file.display()))
        .collect()
}

/// Checks what Grafana needs of a dashboard: panels with unique numbers, each in the grid, with a title, a description
/// and queries; and that each query is of a metric of ours.
fn dashboard(value: &Value) -> Result<(), String> {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    ensure(is_text(&value["title"]) && is_text(&value["uid"]), || {
        "no title or uid".into()
    })?;
    ensure(value["schemaVersion"].is_u64(), || {
        "no schemaVersion".into()
    })?;
    let panels = value["panels"].as_array().ok_or("no panels")?;
    let mut numbers: Vec<u64> = panels
        .iter()
        .filter_map(|panel| panel["id"].as_u64())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    ensure(numbers.len() == panels.len(), || {
        "panels share a number".into()
    })?;
    for panel in panels {
        let title = panel["title"].as_str().unwrap_or("a panel without title");
        let grid = |key: &str| {
            panel["gridPos"][key]
                .as_u64()
                .ok_or(format!("{title}: no gridPos.{key}"))
        };
        ensure(grid("x")? + grid("w")? <= 24 && grid("h")? > 0, || {
            format!("{title}: off the grid")
        })?;
        grid("y")?;
        if panel["type"] == "row" {
            continue;
        }
        ensure(is_text(&panel["description"]), || {
            format!("{title}: no description")
        })?;
        let targets = panel["targets"]
            .as_array()
            .ok_or(format!("{title}: no targets"))?;
        let is_ours = |target: &Value| {
            let query = target["expr"].as_str().unwrap_or_default();
            query.contains("headend_") || query.contains("up{")
        };
        ensure(!targets.is_empty() && targets.iter().all(is_ours), || {
            format!("{title}: a query without a metric of headend")
        })?;
    }
    Ok(())
}

/// Lets Prometheus check the alert rules, and runs their tests.
pub(super) fn rules(packaging: &Path) -> Result<String, Vec<String>> {
    let directory = packaging.join("prometheus");
    let run = |words: &[&str]| {
        let mut promtool = Command::new("promtool");
        output(promtool.args(words).current_dir(&directory))
    };
    run(&["check", "rules", "headend.rules.yml"])
        .and_then(|_| run(&["check", "config", "--syntax-only", "prometheus.yml"]))
        .and_then(|_| run(&["test", "rules", "headend.test.yml"]))
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .map_err(super::one)
}
