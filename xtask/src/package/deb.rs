//! The Debian package.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{DEB_MAX, Place, at, ensure, epoch, output};
use crate::cargo;

/// Where the package is.
pub(super) fn file(place: &Place) -> PathBuf {
    place.out.join("headend.deb")
}

/// Builds the package, and checks its size.
pub(super) fn build(place: &Place) -> Result<String, String> {
    let file = file(place);
    let mut command = cargo::command();
    command
        .args([
            "deb",
            "--package",
            "headend",
            "--no-build",
            "--no-strip",
            "--quiet",
            "--output",
        ])
        .arg(&file)
        .current_dir(&place.root)
        .env("SOURCE_DATE_EPOCH", epoch(&place.root)?);
    output(&mut command).map_err(|fault| match fault.contains("no such command") {
        true => "cargo-deb is not installed: cargo install cargo-deb".to_owned(),
        false => fault,
    })?;
    let bytes = file.metadata().map_err(at(&file))?.len();
    ensure(bytes <= DEB_MAX, || {
        format!("{}: {bytes} bytes, {DEB_MAX} is the most", file.display())
    })?;
    Ok(format!("{}: {:.1} MB", file.display(), bytes as f64 / 1e6))
}

/// A field of the package's description.
pub(super) fn field(file: &Path, name: &str) -> Result<String, String> {
    let text = output(Command::new("dpkg-deb").arg("-f").arg(file).arg(name))?;
    Ok(text.trim().to_owned())
}
