//! Prometheus, promtool and the Python client's parsers for the interop tests: Debian's packages, unpacked but not installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kernel::run;

/// Names a folder with the unpacked packages to use instead of Debian's newest.
const VARIABLE: &str = "HEADEND_PROMETHEUS";

const PACKAGES: [&str; 2] = ["prometheus", "python3-prometheus-client"];

/// A file of each package.
const FILES: [&str; 3] = [
    "usr/bin/promtool",
    "usr/bin/prometheus",
    "usr/lib/python3/dist-packages/prometheus_client/parser.py",
];

/// Where they are unpacked: below the target directory, so that they are fetched only once.
pub(crate) fn directory(target: &Path) -> PathBuf {
    std::env::var_os(VARIABLE).map_or_else(|| target.join("prometheus"), PathBuf::from)
}

/// Ensures that they are there.
///
/// # Errors
/// What could not be fetched or unpacked, and a remedy.
pub(crate) fn ready(target: &Path) -> Result<String, Vec<String>> {
    let directory = directory(target);
    let place = directory.display();
    let missing = FILES.iter().find(|file| !directory.join(file).exists());
    let Some(missing) = missing else {
        return Ok(format!("Prometheus is in {place}"));
    };
    if std::env::var_os(VARIABLE).is_some() {
        return Err(vec![format!(
            "{VARIABLE} names {place}, which has no {missing}"
        )]);
    }
    fetch(&directory).map_err(|why| {
        vec![
            why,
            format!("unpack {} yourself (dpkg-deb -x)", PACKAGES.join(" and ")),
            format!("and name the folder in {VARIABLE}, or leave the interop tests out:  cargo xtask test --without-peers"),
        ]
    })?;
    Ok(format!("Prometheus was unpacked into {place}"))
}

fn fetch(directory: &Path) -> Result<(), String> {
    let part = directory.with_extension("part");
    // What an interrupted run left there.
    let _ = std::fs::remove_dir_all(&part);
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(&part).map_err(|error| format!("{}: {error}", part.display()))?;
    let download = || {
        run(Command::new("apt-get")
            .arg("download")
            .args(PACKAGES)
            .current_dir(&part))
    };
    // The package lists may be older than the archive.
    if download().is_err() {
        run(Command::new("apt-get").arg("update"))?;
        download()?;
    }
    let entries = std::fs::read_dir(&part).map_err(|error| error.to_string())?;
    let packages: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    for package in packages {
        run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&part))?;
        std::fs::remove_file(&package).map_err(|error| error.to_string())?;
    }
    std::fs::rename(&part, directory).map_err(|error| format!("{}: {error}", directory.display()))
}
