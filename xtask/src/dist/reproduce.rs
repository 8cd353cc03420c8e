//! Whether a build gives the same bytes in another directory.
//!
//! The tree is exported from git twice, to two places with names of different lengths, and built in each from nothing.

use super::target;
use crate::cargo::Metadata;
use crate::run::Report;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the last commit twice and compares.
pub(super) fn check(report: &mut Report, metadata: &Metadata, name: &str) -> bool {
    let below = metadata.target.join("reproduce");
    // Read once: a commit may arrive while the first build runs.
    let Some(commit) = head(&metadata.root) else {
        return report.check("the last commit", || {
            Err(vec!["git rev-parse HEAD found none".to_owned()])
        });
    };
    let trees = [below.join("first"), below.join("another-place/of/the-tree")];
    for tree in &trees {
        let exported = report.check("export the commit", || {
            export(&metadata.root, &commit, tree)
        });
        if !exported {
            return false;
        }
        let mut command = match target::command_elsewhere(tree, name) {
            Ok(command) => command,
            Err(faults) => return report.check("compilers of the target", || Err(faults)),
        };
        if !report.command("build in a directory of its own", &mut command) {
            return false;
        }
    }
    report.check("the same bytes", || {
        let [first, second] = trees.map(|tree| binary(&tree, name));
        compare(&first, &second)
    })
}

fn binary(tree: &Path, name: &str) -> PathBuf {
    tree.join("target").join(name).join("dist/headend")
}

/// Writes the files of the commit to a new directory. What is not committed is left out.
fn export(root: &Path, commit: &str, tree: &Path) -> Result<String, Vec<String>> {
    let fault = |error: std::io::Error| vec![format!("{}: {error}", tree.display())];
    if tree.exists() {
        std::fs::remove_dir_all(tree).map_err(fault)?;
    }
    std::fs::create_dir_all(tree).map_err(fault)?;
    // A clone keeps the commit's time, which the archive of a release has.
    let mut clone = Command::new("git");
    clone.args(["clone", "--quiet", "--local", "--no-checkout"]);
    clone.args([root, tree]);
    let mut checkout = Command::new("git");
    checkout.args(["checkout", "--quiet", "--detach", commit]);
    checkout.current_dir(tree);
    for mut command in [clone, checkout] {
        let status = command.status().map_err(fault)?;
        if !status.success() {
            return Err(vec![format!("git, for {}: {status}", tree.display())]);
        }
    }
    Ok(format!("{commit} in {}", tree.display()))
}

/// The name of the last commit.
fn head(root: &Path) -> Option<String> {
    let mut command = Command::new("git");
    command.args(["rev-parse", "HEAD"]).current_dir(root);
    let output = command.output().ok()?;
    let name = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !name.trim().is_empty()).then(|| name.trim().to_owned())
}

/// Compares two files byte by byte.
fn compare(first: &Path, second: &Path) -> Result<String, Vec<String>> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| vec![format!("{}: {error}", path.display())])
    };
    let (a, b) = (read(first)?, read(second)?);
    let different = a.iter().zip(&b).filter(|(a, b)| a != b).count();
    if different == 0 && a.len() == b.len() {
        return Ok(format!("{} bytes, all equal", a.len()));
    }
    let at = a.iter().zip(&b).position(|(a, b)| a != b);
    let at = at.unwrap_or(a.len().min(b.len()));
    let near = |bytes: &[u8]| {
        let part = &bytes[at.saturating_sub(32)..bytes.len().min(at + 64)];
        String::from_utf8_lossy(part).escape_debug().to_string()
    };
    Err(vec![
        format!(
            "{} and {} bytes; {different} differ, the first at {at:#x}",
            a.len(),
            b.len()
        ),
        format!("{}: {}", first.display(), near(&a)),
        format!("{}: {}", second.display(), near(&b)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_reported_with_its_place() {
        let directory = std::env::temp_dir().join(format!("xtask-compare-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (a, b) = (
            write("a", "the same path /x"),
            write("b", "the same path /y"),
        );
        assert_eq!(compare(&a, &a).unwrap(), "16 bytes, all equal");
        let faults = compare(&a, &b).unwrap_err();
        assert_eq!(faults[0], "16 and 16 bytes; 1 differ, the first at 0xf");
        assert!(compare(&a, &write("c", "the same path /x, and more")).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
