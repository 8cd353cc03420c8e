//! The committed corpora, and the inputs that made a target panic.

use std::io;
use std::path::{Path, PathBuf};

use crate::Target;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The inputs of `corpus/TARGET/`, by file name, so that a seed always meets
/// them in the same order.
///
/// # Errors
/// The directory or a file in it cannot be read.
pub fn load(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let directory = root().join("corpus").join(target.name);
    let entries = std::fs::read_dir(directory)?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths.iter().map(std::fs::read).collect()
}

/// Stores an input that made the target panic, as `crashes/TARGET-HASH`.
///
/// # Errors
/// The file cannot be written.
pub fn keep_crash(target: &Target, input: &[u8]) -> io::Result<PathBuf> {
    let directory = root().join("crashes");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!("{}-{:016x}", target.name, fnv1a(input)));
    std::fs::write(&path, input)?;
    Ok(path)
}

/// FNV-1a, 64 bits: names a file after its content.
fn fnv1a(octets: &[u8]) -> u64 {
    octets.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
