//! The crates that are packaged for other programs: their metadata, their examples and their packages.
//!
//! `cargo xtask tidy` checks the metadata, because that builds nothing. `cargo xtask crates` also runs an example of
//! each crate and lets cargo build each package on its own, with the other packages in place of a registry.

use crate::cargo::{self, Metadata};
use crate::run::Report;
use serde_json::Value;
use std::path::Path;

/// The crates, each with the example that needs no argument, and what cargo reads for it.
pub(crate) const LIBRARIES: &[(&str, &str, &[&str])] = &[
    ("base", "retry", &[]),
    ("settings", "read", &[]),
    ("plot", "chart", &[]),
    ("wire", "decode", &[]),
    ("capfile", "count", &[]),
    (
        "trace",
        "connections",
        &["testdata/interop-trace/conn-size.pcap.gz"],
    ),
    ("l2tp", "pair", &[]),
    ("pppoe", "pair", &[]),
    ("ppp", "pair", &[]),
    ("aaa", "admit", &[]),
    ("bgp", "pair", &[]),
];

/// The largest that all files of a package may be together. No test data goes into one.
const BYTES_MAX: u64 = 1_000_000;

/// Checks the metadata of the library crates.
///
/// # Errors
/// One line for each crate and key.
pub(crate) fn check(metadata: &Metadata) -> Result<String, Vec<String>> {
    let mut faults = Vec::new();
    for (name, example, _) in LIBRARIES {
        match metadata.package(&format!("headend-{name}")) {
            Some(package) => faults.extend(faults_of(&metadata.root, name, example, package)),
            None => faults.push(format!("headend-{name}: no such crate")),
        }
    }
    if faults.is_empty() {
        Ok(format!("{} crates", LIBRARIES.len()))
    } else {
        Err(faults)
    }
}

fn faults_of(root: &Path, name: &str, example: &str, package: &Value) -> Vec<String> {
    let directory = root.join("crates").join(name);
    let mut faults = Vec::new();
    let mut fault = |what: String| faults.push(format!("crates/{name}/Cargo.toml: {what}"));
    for key in ["description", "license", "documentation", "rust_version"] {
        if package[key].as_str().is_none_or(str::is_empty) {
            fault(format!("no {key}"));
        }
    }
    // The limits of crates.io.
    let words = |key: &str| package[key].as_array().map_or(0, Vec::len);
    for key in ["keywords", "categories"] {
        if !(1..=5).contains(&words(key)) {
            fault(format!("{} {key}; it must have 1 to 5", words(key)));
        }
    }
    if package["readme"].as_str() != Some("README.md") {
        fault("readme must be \"README.md\", the crate's own page".to_owned());
    }
    if package["publish"].as_array().is_some() {
        fault("publish must be true".to_owned());
    }
    let example = format!("examples/{example}.rs");
    for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT", &example] {
        if !directory.join(file).is_file() {
            fault(format!("no file crates/{name}/{file}"));
        }
    }
    let readme = std::fs::read_to_string(directory.join("README.md")).unwrap_or_default();
    for part in ["```rust", "\n## Stability\n", "\n## Licence\n"] {
        if !readme.contains(part) {
            fault(format!("README.md has no {:?}", part.trim()));
        }
    }
    let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
    match manifest.parse::<toml::Table>() {
        Ok(table)
            if table
                .get("package")
                .and_then(|of| of.get("include"))
                .is_none() =>
        {
            fault("no include; without it, tests and their data are packaged".to_owned());
        }
        Ok(_) => {}
        Err(error) => fault(error.to_string()),
    }
    faults
}

/// Runs the examples of the library crates, which must succeed.
pub(crate) fn examples(report: &mut Report, metadata: &Metadata) -> bool {
    report.check("examples of the library crates", || {
        let faults: Vec<String> = LIBRARIES
            .iter()
            .filter_map(|(name, example, arguments)| {
                let package = format!("headend-{name}");
                let mut command = cargo::locked("run");
                command.args(["--quiet", "--package", &package, "--example", example, "--"]);
                command.args(*arguments).current_dir(&metadata.root);
                match command.output() {
                    Ok(output) if output.status.success() && !output.stdout.is_empty() => None,
                    Ok(output) => Some(format!(
                        "{package}, example {example}: {}, {} bytes of output: {}",
                        output.status,
                        output.stdout.len(),
                        String::from_utf8_lossy(&output.stderr)
                    )),
                    Err(error) => Some(format!("{package}, example {example}: {error}")),
                }
            })
            .collect();
        if faults.is_empty() {
            Ok(format!("{} examples ran", LIBRARIES.len()))
        } else {
            Err(faults)
        }
    })
}

/// Packages the library crates, and builds each package on its own.
pub(crate) fn package(report: &mut Report, metadata: &Metadata) -> bool {
    let packages = LIBRARIES
        .iter()
        .flat_map(|(name, ..)| ["--package".to_owned(), format!("headend-{name}")]);
    report.check("metadata of the library crates", || check(metadata))
        && examples(report, metadata)
        && report.command(
            "package the library crates",
            cargo::locked("package").arg("--allow-dirty").args(packages),
        )
        && report.check("size of the packages", || sizes(&metadata.target))
}

/// Adds up the files that each package was built from.
fn sizes(target: &Path) -> Result<String, Vec<String>> {
    let (mut faults, mut largest) = (Vec::new(), 0);
    for (name, ..) in LIBRARIES {
        let version = env!("CARGO_PKG_VERSION");
        let directory = target.join(format!("package/headend-{name}-{version}"));
        match size(&directory) {
            Ok(bytes) if bytes <= BYTES_MAX => largest = largest.max(bytes),
            Ok(bytes) => faults.push(format!(
                "headend-{name}: {bytes} bytes of files; at most {BYTES_MAX} may be packaged"
            )),
            Err(error) => faults.push(format!("{}: {error}", directory.display())),
        }
    }
    if faults.is_empty() {
        Ok(format!("at most {largest} bytes of files each"))
    } else {
        Err(faults)
    }
}

fn size(directory: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => size(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_crates_of_this_tree_are_complete() {
        check(&Metadata::read().unwrap()).unwrap();
    }

    #[test]
    fn a_crate_without_metadata_is_reported_by_file_and_key() {
        let faults = faults_of(Path::new("/nowhere"), "x", "y", &Value::Null);
        for fault in [
            "crates/x/Cargo.toml: no description",
            "crates/x/Cargo.toml: 0 keywords; it must have 1 to 5",
            "crates/x/Cargo.toml: no file crates/x/LICENSE-MIT",
            "crates/x/Cargo.toml: README.md has no \"## Stability\"",
        ] {
            assert!(
                faults.iter().any(|found| found == fault),
                "{fault}: {faults:#?}"
            );
        }
    }
}
