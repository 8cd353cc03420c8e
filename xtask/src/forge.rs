//! Tests of the files for a forge (`.github`): issue forms and workflows. The forge reports their faults only after a
//! push.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use yaml_rust2::{Yaml, YamlLoader};

fn read(directory: &str) -> Vec<(PathBuf, Yaml)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.github");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join(directory)).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut documents = YamlLoader::load_from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(documents.len(), 1, "{}", path.display());
        found.push((path, documents.remove(0)));
    }
    found
}

#[test]
fn issue_forms_have_what_the_forge_requires() {
    for (path, form) in read("ISSUE_TEMPLATE") {
        if path.ends_with("config.yml") {
            assert_eq!(form["blank_issues_enabled"], Yaml::Boolean(false));
            continue;
        }
        let name = path.display();
        for key in ["name", "description"] {
            assert!(form[key].as_str().is_some(), "{name}: no {key}");
        }
        let mut ids = BTreeSet::new();
        for part in form["body"].as_vec().expect("a body") {
            let (kind, attributes) = (part["type"].as_str().unwrap(), &part["attributes"]);
            if kind == "markdown" {
                assert!(attributes["value"].as_str().is_some(), "{name}");
                continue;
            }
            assert!(
                ["input", "textarea", "dropdown"].contains(&kind),
                "{name}: {kind}"
            );
            assert!(attributes["label"].as_str().is_some(), "{name}: no label");
            assert!(
                ids.insert(part["id"].as_str().unwrap()),
                "{name}: an id twice"
            );
            assert!(
                part["validations"]["required"].as_bool().is_some(),
                "{name}"
            );
            assert_eq!(
                kind == "dropdown",
                attributes["options"].as_vec().is_some(),
                "{name}"
            );
        }
    }
}

#[test]
fn workflows_run_commands_that_exist() {
    let mut names = BTreeSet::new();
    for (path, flow) in read("workflows") {
        let name = path.display();
        names.insert(flow["name"].as_str().expect("a name").to_owned());
        assert!(!flow["on"].is_badvalue(), "{name}: no on");
        // Nothing that runs for a stranger's change may write.
        assert_eq!(
            flow["permissions"]["contents"].as_str(),
            Some("read"),
            "{name}"
        );
        for (job, steps) in flow["jobs"].as_hash().expect("jobs") {
            assert!(steps["runs-on"].as_str().is_some(), "{name}: {job:?}");
            assert!(
                steps["timeout-minutes"].as_i64().is_some(),
                "{name}: {job:?}"
            );
            for step in steps["steps"].as_vec().expect("steps") {
                match (step["uses"].as_str(), step["run"].as_str()) {
                    (Some(action), None) => assert!(action.contains('@'), "{name}: {action}"),
                    (None, Some(script)) => script.lines().for_each(known),
                    _ => panic!("{name}: a step has either uses or run"),
                }
            }
        }
    }
    let expected = ["bench", "fuzz", "release", "test"].map(str::to_owned);
    assert_eq!(names, BTreeSet::from(expected));
}

/// A line of a script: `cargo xtask VERB --FLAG` must be in the usage text.
fn known(line: &str) {
    let Some((_, words)) = line.split_once("cargo xtask ") else {
        return;
    };
    let verb = words.split_whitespace().next().unwrap();
    let lines: Vec<&str> = crate::USAGE.lines().collect();
    let of_verb = |usage: &&&str| usage.starts_with(&format!("cargo xtask {verb}"));
    let usage: String = lines.iter().filter(of_verb).copied().collect();
    assert!(!usage.is_empty(), "cargo xtask {verb} does not exist");
    for flag in words
        .split_whitespace()
        .filter(|word| word.starts_with("--"))
    {
        assert!(usage.contains(flag), "cargo xtask {verb} has no {flag}");
    }
}
