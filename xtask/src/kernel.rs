//! A real Linux kernel for the interop tests that need one: Debian's package, unpacked but not installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names an unpacked kernel package (`boot/`, `lib/modules/`) to use instead of Debian's newest.
const VARIABLE: &str = "HEADEND_KERNEL";

/// Debian's package that depends on the newest kernel.
const PACKAGE: &str = "linux-image-amd64";

/// Where the kernel is stored: below the target directory, so that it is fetched only once.
pub(crate) fn directory(target: &Path) -> PathBuf {
    std::env::var_os(VARIABLE).map_or_else(|| target.join("kernel-lab"), PathBuf::from)
}

/// Ensures that it is there.
///
/// # Errors
/// What could not be fetched or unpacked, and a remedy.
pub(crate) fn ready(target: &Path) -> Result<String, Vec<String>> {
    let directory = directory(target);
    if is_there(&directory) {
        return Ok(format!("a kernel is in {}", directory.display()));
    }
    if std::env::var_os(VARIABLE).is_some() {
        return Err(vec![format!(
            "{VARIABLE} names {}, which has no boot/vmlinuz-* and lib/modules/, and no usr/lib/modules/*/vmlinuz",
            directory.display()
        )]);
    }
    fetch(&directory).map_err(|why| {
        vec![
            why,
            format!("unpack a {PACKAGE} yourself (dpkg-deb -x) and name its folder in {VARIABLE},"),
            "or leave the interop tests out:  cargo xtask test --without-peers".to_owned(),
        ]
    })?;
    Ok(format!(
        "a kernel was unpacked into {}",
        directory.display()
    ))
}

/// From Linux 7 on, Debian's packages have everything below `usr/lib/modules/`, the image too.
fn is_there(directory: &Path) -> bool {
    let entries = |place: &str| {
        let entries = std::fs::read_dir(directory.join(place));
        entries.into_iter().flatten().flatten()
    };
    let image =
        entries("boot").any(|entry| entry.file_name().to_string_lossy().starts_with("vmlinuz-"));
    let beside = entries("usr/lib/modules").any(|entry| entry.path().join("vmlinuz").is_file());
    beside || image && directory.join("lib/modules").is_dir()
}

fn fetch(directory: &Path) -> Result<(), String> {
    let part = directory.with_extension("part");
    let _ = std::fs::remove_dir_all(&part);
    std::fs::create_dir_all(&part).map_err(|error| format!("{}: {error}", part.display()))?;
    // The package lists may be older than the archive.
    if download(&part).is_err() {
        run(Command::new("apt-get").arg("update"))?;
        download(&part)?;
    }
    let package = std::fs::read_dir(&part)
        .map_err(|error| error.to_string())?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "deb"))
        .ok_or("apt-get download left no package")?;
    run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&part))?;
    let _ = std::fs::remove_file(&package);
    // Sound and most drivers take up two thirds of it.
    for modules in std::fs::read_dir(part.join("lib/modules"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let _ = std::fs::remove_dir_all(modules.path().join("kernel/sound"));
    }
    let _ = std::fs::remove_dir_all(directory);
    std::fs::rename(&part, directory).map_err(|error| format!("{}: {error}", directory.display()))
}

fn download(directory: &Path) -> Result<(), String> {
    let depends = run(Command::new("apt-cache").args(["depends", PACKAGE]))?;
    let image = depends
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: linux-image-"))
        .ok_or_else(|| format!("apt-cache knows no kernel that {PACKAGE} depends on"))?;
    run(Command::new("apt-get")
        .args(["download", &format!("linux-image-{image}")])
        .current_dir(directory))
    .map(drop)
}

/// Runs a command, and returns its output.
///
/// # Errors
/// The command and its errors.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}
