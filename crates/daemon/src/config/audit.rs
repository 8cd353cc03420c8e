//! `[audit]`: the audit log.

use std::path::{Path, PathBuf};

use settings::{Notes, Section};
use toml::de::DeTable;

/// The file of the audit log, and how it is rotated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    pub file: PathBuf,
    /// The size after which the file is rotated. 0: never.
    pub rotate_octets: u64,
    /// Rotated files that are kept.
    pub keep: u32,
}

pub(super) fn read(root: &DeTable<'_>, path: &Path, notes: &Notes<'_>) -> Option<Audit> {
    if !root.contains_key("audit") {
        return None;
    }
    let mut section = Section::open(root, "audit", notes);
    section.require("file", "give the log's file: file = \"audit.jsonl\"");
    let file = section.string("file");
    let rotate_mb = section.integer("rotate_mb", 0..=1_000_000, "MB");
    let keep = section.integer("keep", 1..=1_000, "files");
    section.finish();
    Some(Audit {
        file: settings::beside(path, &file?.value),
        rotate_octets: rotate_mb.map_or(100, |mb| mb.value as u64) * 1_000_000,
        keep: keep.map_or(10, |keep| keep.value as u32),
    })
}
