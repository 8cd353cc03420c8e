//! Texts of files that an operator wrote.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};

/// Octets of the longest file that is read.
const FILE_MAX: u64 = 64 << 20;

/// The text of a file.
///
/// # Errors
/// It cannot be read, is too long, or is no text.
pub fn text_of(path: &Path) -> Result<String> {
    let mut octets = Vec::new();
    let name = || path.display().to_string();
    let file = std::fs::File::open(path).with_context(name)?;
    file.take(FILE_MAX + 1)
        .read_to_end(&mut octets)
        .with_context(name)?;
    anyhow::ensure!(
        octets.len() as u64 <= FILE_MAX,
        "{}: is longer than 64 MiB",
        path.display()
    );
    String::from_utf8(octets).with_context(|| format!("{}: is not text", path.display()))
}

/// The texts of `/etc/protocols` and `/etc/services`, empty where a file is missing.
pub fn network_names() -> [String; 2] {
    ["/etc/protocols", "/etc/services"].map(|path| text_of(Path::new(path)).unwrap_or_default())
}
