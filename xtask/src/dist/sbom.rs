//! The parts list of a binary: a software bill of materials in CycloneDX 1.5, as JSON.
//!
//! Source: the resolved dependencies of the package `headend` for one target (`cargo metadata`), without those of
//! tests and builds of tests. Cargo.lock has the checksums. Left out: files, vulnerabilities, times and serial numbers,
//! because the list must have the same bytes in each build.

use crate::cargo;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The list for a target.
///
/// # Errors
/// cargo's errors, or that its answer is not the documented JSON.
pub(super) fn of(target: &str) -> Result<String, String> {
    let output = cargo::locked("metadata")
        .args(["--format-version", "1", "--filter-platform", target])
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let lock = std::fs::read_to_string(format!("{root}/Cargo.lock"))
        .map_err(|error| format!("Cargo.lock: {error}"))?;
    let list = list(&metadata, &checksums(&lock)?)
        .ok_or_else(|| "cargo metadata: not the answer it documents".to_owned())?;
    serde_json::to_string_pretty(&list)
        .map(|text| text + "\n")
        .map_err(|error| error.to_string())
}

/// The checksums of Cargo.lock by name and version.
fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>, String> {
    let table: toml::Table = lock
        .parse()
        .map_err(|error| format!("Cargo.lock: {error}"))?;
    let packages = table.get("package").and_then(toml::Value::as_array);
    let text = |package: &toml::Value, key: &str| package.get(key)?.as_str().map(str::to_owned);
    Ok(packages
        .into_iter()
        .flatten()
        .filter_map(|package| {
            let place = (text(package, "name")?, text(package, "version")?);
            Some((place, text(package, "checksum")?))
        })
        .collect())
}

/// The list of what `cargo metadata` reports.
fn list(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Option<Value> {
    let packages: BTreeMap<&str, &Value> = metadata["packages"]
        .as_array()?
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, Vec<&str>> = metadata["resolve"]["nodes"]
        .as_array()?
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, used_by(node))))
        .collect();
    let root = packages
        .iter()
        .find(|(_, package)| package["name"] == "headend")
        .map(|(id, _)| *id)?;
    let mut reached = BTreeSet::from([root]);
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        for used in nodes.get(id)? {
            if reached.insert(used) {
                open.push(used);
            }
        }
    }
    let of = |id: &&str| component(packages.get(id)?, checksums);
    let components: Option<Vec<Value>> = reached.iter().filter(|id| **id != root).map(of).collect();
    let dependencies: Option<Vec<Value>> = reached
        .iter()
        .map(|id| {
            let uses: Option<BTreeSet<String>> = nodes
                .get(id)?
                .iter()
                .map(|used| purl(packages.get(used)?))
                .collect();
            Some(json!({"ref": purl(packages.get(id)?)?, "dependsOn": uses?}))
        })
        .collect();
    let mut program = of(&root)?;
    program["type"] = json!("application");
    Some(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": program},
        "components": components?,
        "dependencies": dependencies?,
    }))
}

/// The packages that a node uses to build and to run, not those for tests alone.
fn used_by(node: &Value) -> Vec<&str> {
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies
        .filter(|used| {
            let mut kinds = used["dep_kinds"].as_array().into_iter().flatten();
            kinds.any(|kind| kind["kind"] != "dev")
        })
        .filter_map(|used| used["pkg"].as_str())
        .collect()
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Option<Value> {
    let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package)?,
        "name": name,
        "version": version,
        "purl": purl(package)?,
    });
    // The old spelling of OR is no SPDX expression.
    if let Some(licence) = package["license"].as_str() {
        component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    if let Some(sum) = checksums.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    Some(component)
}

/// The package's URL, which is its reference too.
fn purl(package: &Value) -> Option<String> {
    let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
    Some(format!("pkg:cargo/{name}@{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The required fields of the schema bom-1.5 (cyclonedx.org/schema/bom-1.5.schema.json), and that each reference
    /// leads to a component.
    fn faults(bom: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        for key in ["bomFormat", "specVersion"] {
            if !bom[key].is_string() {
                faults.push(format!("no {key}"));
            }
        }
        let program = &bom["metadata"]["component"];
        let components = bom["components"].as_array().into_iter().flatten();
        let all: Vec<&Value> = components.chain([program]).collect();
        let mut references = BTreeSet::new();
        for component in all {
            let kinds = ["application", "library"];
            if !kinds.iter().any(|kind| component["type"] == *kind)
                || !component["name"].is_string()
            {
                faults.push(format!("type or name: {component}"));
            }
            for licence in component["licenses"].as_array().into_iter().flatten() {
                if licence["expression"]
                    .as_str()
                    .is_none_or(|text| text.contains('/'))
                {
                    faults.push(format!("licence: {component}"));
                }
            }
            for hash in component["hashes"].as_array().into_iter().flatten() {
                let sum = hash["content"].as_str().unwrap_or_default();
                if sum.len() != 64 || !sum.bytes().all(|octet| octet.is_ascii_hexdigit()) {
                    faults.push(format!("hash: {component}"));
                }
            }
            if !references.insert(component["bom-ref"].as_str().unwrap_or_default()) {
                faults.push(format!("twice: {component}"));
            }
        }
        for dependency in bom["dependencies"].as_array().into_iter().flatten() {
            let uses = dependency["dependsOn"].as_array().into_iter().flatten();
            for reference in uses.chain([&dependency["ref"]]) {
                if !references.contains(reference.as_str().unwrap_or("none")) {
                    faults.push(format!("{reference} is no component"));
                }
            }
        }
        faults
    }

    #[test]
    fn the_list_of_this_tree_has_what_the_schema_requires() {
        let text = of(crate::dist::target::DEFAULT).unwrap();
        assert_eq!(text, of(crate::dist::target::DEFAULT).unwrap());
        let bom: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(faults(&bom), Vec::<String>::new());
        let names: Vec<&str> = bom["components"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|component| component["name"].as_str())
            .collect();
        for (name, there) in [("mimalloc", true), ("zstd-sys", true), ("proptest", false)] {
            assert_eq!(names.contains(&name), there, "{name}");
        }
    }

    #[test]
    fn a_list_with_faults_is_noticed() {
        let bom = json!({"components": [{"type": "x"}], "dependencies": [{"ref": "y"}]});
        assert!(faults(&bom).len() >= 4, "{:?}", faults(&bom));
    }
}
