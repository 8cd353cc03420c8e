//! The source files of the tree, read once.

use std::path::{Path, PathBuf};

/// Directories that contain our code.
const ROOTS: &[&str] = &[
    "crates", "fuzz", "interop", "oracle", "xtask", "bench", "web", "python",
];

/// A source file.
pub(crate) struct Source {
    /// From the workspace's root, with `/` between the parts.
    pub(crate) path: String,
    /// The whole of it.
    pub(crate) text: String,
}

/// Every source file under the directories that hold code, sorted by path.
///
/// # Errors
/// A file or directory that cannot be read, by name.
pub(crate) fn read(root: &Path) -> Result<Vec<Source>, String> {
    let roots = ROOTS.iter().map(|name| root.join(name));
    load(root, roots, &["rs", "go", "js", "py", "sh"])
}

/// Every page of the tree, sorted by path.
///
/// # Errors
/// A file or directory that cannot be read, by name.
pub(crate) fn pages(root: &Path) -> Result<Vec<Source>, String> {
    load(root, std::iter::once(root.to_owned()), &["md"])
}

fn load(
    root: &Path,
    directories: impl Iterator<Item = PathBuf>,
    endings: &[&str],
) -> Result<Vec<Source>, String> {
    let mut paths = Vec::new();
    for directory in directories.filter(|path| path.is_dir()) {
        walk(&directory, endings, &mut paths)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let path = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            Ok(Source { path, text })
        })
        .collect()
}

fn walk(directory: &Path, endings: &[&str], into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            // Target directories belong to cargo; corpora and dot directories contain no code.
            if name != "target" && name != "corpus" && !name.starts_with('.') {
                walk(&entry.path(), endings, into)?;
            }
        } else if endings
            .iter()
            .any(|ending| name.ends_with(&format!(".{ending}")))
        {
            into.push(entry.path());
        }
    }
    Ok(())
}
