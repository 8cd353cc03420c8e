//! The files of a release, their checksums and the signature.
//!
//! `SHA256SUMS` covers every file, and the signature covers `SHA256SUMS`. The secret key is outside of the repository;
//! minisign asks for its password.

use super::{Arguments, sbom, target};
use crate::cargo::Metadata;
use crate::page;
use crate::run::Report;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes the files of the targets to `target/release-files`.
pub(super) fn write(report: &mut Report, metadata: &Metadata, arguments: &Arguments) -> bool {
    let directory = metadata.target.join("release-files");
    let copied = report.check("files of the release", || {
        let mut faults = Vec::new();
        for target in &arguments.targets {
            if let Err(error) = copy(metadata, target, &directory) {
                faults.push(format!("{target}: {error}"));
            }
        }
        match faults.is_empty() {
            true => Ok(directory.display().to_string()),
            false => Err(faults),
        }
    });
    copied
        && report.check("checksums", || sums(&directory))
        && arguments
            .sign
            .as_ref()
            .is_none_or(|key| sign(report, &directory, key))
}

fn copy(metadata: &Metadata, target: &str, directory: &Path) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(directory).map_err(io)?;
    let from = metadata.target.join(target).join("dist");
    let name = format!("headend-{}-{target}", env!("CARGO_PKG_VERSION"));
    for (file, ending) in [("headend", ""), ("headend.debug", ".debug")] {
        std::fs::copy(from.join(file), directory.join(format!("{name}{ending}"))).map_err(io)?;
    }
    let text = sbom::of(target)?;
    std::fs::write(directory.join(format!("{name}.cdx.json")), text).map_err(io)?;
    let (binary, page) = (from.join("headend"), page::file(metadata));
    archive(&metadata.root, &binary, &page, target, directory)
}

/// Writes what `install.sh` downloads. Its name has no version, so that a link to the last release can be constant. The
/// same binary, page and commit give the same bytes.
pub(crate) fn archive(
    root: &Path,
    binary: &Path,
    page: &Path,
    target: &str,
    directory: &Path,
) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    let name = format!("headend-{target}");
    let tree = directory.join(&name);
    std::fs::create_dir_all(&tree).map_err(io)?;
    std::fs::copy(binary, tree.join("headend")).map_err(io)?;
    std::fs::copy(page, tree.join(page::NAME)).map_err(io)?;
    for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        std::fs::copy(root.join(file), tree.join(file)).map_err(io)?;
    }
    let status = Command::new("tar")
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .arg("--mode=u=rwX,go=rX")
        .arg(format!("--mtime=@{}", target::commit_time(root)))
        .args(["--use-compress-program=gzip -9n", "-cf"])
        .args([format!("{name}.tar.gz"), name])
        .current_dir(directory)
        .status()
        .map_err(io)?;
    std::fs::remove_dir_all(&tree).map_err(io)?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("tar: {status}")),
    }
}

/// Writes `SHA256SUMS` of every other file, sorted by name.
fn sums(directory: &Path) -> Result<String, Vec<String>> {
    let fault = |error: std::io::Error| vec![format!("{}: {error}", directory.display())];
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fault)? {
        let name = entry.map_err(fault)?.file_name();
        let name = name.to_string_lossy().into_owned();
        if !name.starts_with("SHA256SUMS") {
            names.push(name);
        }
    }
    names.sort();
    let output = Command::new("sha256sum")
        .args(&names)
        .current_dir(directory)
        .output()
        .map_err(fault)?;
    if !output.status.success() {
        return Err(vec![String::from_utf8_lossy(&output.stderr).into_owned()]);
    }
    std::fs::write(directory.join("SHA256SUMS"), output.stdout).map_err(fault)?;
    // A signature of other checksums would not verify.
    let _ = std::fs::remove_file(directory.join("SHA256SUMS.minisig"));
    Ok(format!("{} files", names.len()))
}

fn sign(report: &mut Report, directory: &Path, key: &Path) -> bool {
    let key = std::path::absolute(key).unwrap_or_else(|_| PathBuf::from(key));
    report.command(
        "signature",
        Command::new("minisign")
            .args(["-S", "-m", "SHA256SUMS", "-t"])
            .arg(format!("headend {}", env!("CARGO_PKG_VERSION")))
            .arg("-s")
            .arg(key)
            .current_dir(directory),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signs with a throw-away key and verifies; skipped with a message where minisign is not installed.
    #[test]
    fn checksums_are_signed_and_a_changed_file_is_noticed() {
        let directory = std::env::temp_dir().join(format!("xtask-sums-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("b"), "two").unwrap();
        std::fs::write(directory.join("a"), "one").unwrap();
        assert_eq!(sums(&directory).unwrap(), "2 files");
        let text = std::fs::read_to_string(directory.join("SHA256SUMS")).unwrap();
        let names: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split("  ").nth(1))
            .collect();
        assert_eq!(names, ["a", "b"]);
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            let output = command.args(arguments).current_dir(&directory).output();
            output.is_ok_and(|output| output.status.success())
        };
        assert!(run("sha256sum", &["--check", "SHA256SUMS"]));
        if Command::new("minisign").arg("-v").output().is_ok() {
            let keys = directory.join("keys");
            std::fs::create_dir(&keys).unwrap();
            assert!(run(
                "minisign",
                &["-G", "-W", "-p", "keys/public", "-s", "keys/secret"]
            ));
            let mut report = Report::default();
            assert!(sign(&mut report, &directory, &keys.join("secret")));
            let verify = ["-V", "-m", "SHA256SUMS", "-p", "keys/public"];
            assert!(run("minisign", &verify));
            std::fs::write(directory.join("SHA256SUMS"), text.replace("  a", "  c")).unwrap();
            assert!(!run("minisign", &verify));
        } else {
            println!("minisign is not installed: the signature was not tested");
        }
        std::fs::write(directory.join("a"), "three").unwrap();
        assert!(!run("sha256sum", &["--check", "SHA256SUMS"]));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
