//! The files of a source: those on the command line, and those that they name. This module does I/O.
//!
//! A file that another file names is taken from the command line if a file there has the same name; else from the
//! folder of the first file; else from the place that it names, if the first file is in its usual place: for
//! `/srv/old/etc/xl2tpd/xl2tpd.conf`, the file `/etc/ppp/options` is `/srv/old/etc/ppp/options`. The files of this
//! host are therefore never mixed with those of another.

use std::path::{Path, PathBuf};

pub(crate) use convert::Source;
use convert::source::content;

/// Files that one import reads.
pub(crate) const FILES_MAX: usize = 256;

/// How deep files may include files.
pub(crate) const DEPTH_MAX: usize = 8;

/// The files of one import.
#[derive(Debug)]
pub struct Files {
    given: Vec<(PathBuf, Vec<u8>)>,
    /// What stands for `/` in paths that files name; `None`: nothing is read but what was given.
    root: Option<PathBuf>,
    /// The folder of the first file; `None` for files in memory.
    folder: Option<PathBuf>,
    read: usize,
}

impl Files {
    /// Reads the files of a command line. `usual` is where the first one is on a running host.
    ///
    /// # Errors
    /// A file that cannot be read, with its name.
    pub fn open(paths: &[PathBuf], usual: &[&str]) -> Result<Files, String> {
        if paths.len() > FILES_MAX {
            return Err(format!("more than {FILES_MAX} files; give fewer"));
        }
        let mut given = Vec::new();
        for path in paths {
            given.push((path.clone(), content(path)?));
        }
        let first = paths.first().cloned().unwrap_or_default();
        let whole = std::path::absolute(&first).unwrap_or_default();
        let mut roots = [&first, &whole].into_iter();
        let root = roots.find_map(|path| usual.iter().find_map(|usual| root_of(path, usual)));
        let read = given.len();
        let folder = first.parent().map(Path::to_owned);
        Ok(Files {
            given,
            root,
            folder,
            read,
        })
    }

    /// Files that are in memory; files that these name and that are not among them do not exist.
    pub fn of(files: &[(&str, &[u8])]) -> Files {
        let given = files.iter().take(FILES_MAX);
        let given = given.map(|(name, bytes)| (PathBuf::from(name), bytes.to_vec()));
        Files {
            given: given.collect(),
            root: None,
            folder: None,
            read: 0,
        }
    }

    /// The files of the command line.
    pub(crate) fn given(&self, comments: &[u8]) -> Vec<Source> {
        let given = self.given.iter();
        let given =
            given.map(|(path, bytes)| Source::new(&path.to_string_lossy(), bytes, comments));
        given.collect()
    }

    /// A file that another file names.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub(crate) fn find(&mut self, path: &str, comments: &[u8]) -> Result<Source, String> {
        if self.read >= FILES_MAX {
            return Err(format!("more than {FILES_MAX} files are included"));
        }
        self.read += 1;
        let name = Path::new(path)
            .file_name()
            .ok_or("the path names no file")?;
        let same_name = |(given, _): &&(PathBuf, Vec<u8>)| given.file_name() == Some(name);
        if let Some((given, bytes)) = self.given.iter().find(same_name) {
            return Ok(Source::new(&given.to_string_lossy(), bytes, comments));
        }
        let beside = self.folder.as_ref().map(|folder| folder.join(name));
        let named = self.root.as_ref().and_then(|root| {
            let relative = path.strip_prefix('/')?;
            Some(root.join(relative))
        });
        let missing = || "the file was not found; give it on the command line".to_owned();
        let mut candidates = beside.into_iter().chain(named);
        let found = candidates.find(|path| path.is_file()).ok_or_else(missing)?;
        Ok(Source::new(
            &found.to_string_lossy(),
            &content(&found)?,
            comments,
        ))
    }
}

impl Files {
    /// The files that `path` names, in order; its last part may have the wildcards `*` and `?`. A path that is relative
    /// starts in the folder of the first file.
    ///
    /// # Errors
    /// Why they cannot be had. Wildcards that match nothing are no error.
    pub(crate) fn find_all(&mut self, path: &str, comments: &[u8]) -> Result<Vec<Source>, String> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if folder.contains(['*', '?', '[']) || name.contains('[') {
            return Err(
                "headend import follows the wildcards * and ? in the last part only".into(),
            );
        }
        if !name.contains(['*', '?']) {
            let beside = self.folder.as_ref().map(|own| own.join(path));
            let beside = beside.filter(|file| !path.starts_with('/') && file.is_file());
            return match beside {
                Some(file) => Ok(vec![self.read(&file, comments)?]),
                None => Ok(vec![self.find(path, comments)?]),
            };
        }
        let matches = |file: &Path| {
            let own = file.file_name().unwrap_or_default().to_string_lossy();
            is_match(name.as_bytes(), own.as_bytes())
        };
        let given = self.given.iter().skip(1).filter(|(file, _)| matches(file));
        let given =
            given.map(|(file, bytes)| Source::new(&file.to_string_lossy(), bytes, comments));
        let given: Vec<Source> = given.collect();
        // Also files in memory count: files that include many others could be read very often.
        self.read += given.len();
        if self.read > FILES_MAX {
            return Err(format!("more than {FILES_MAX} files are included"));
        }
        if !given.is_empty() {
            return Ok(given);
        }
        let folder = match (folder.strip_prefix('/'), &self.root, &self.folder) {
            (Some(below), Some(root), _) => root.join(below),
            (None, _, Some(own)) if !path.starts_with('/') => own.join(folder),
            _ => return Err("the files were not found; give them on the command line".into()),
        };
        let entries = std::fs::read_dir(&folder)
            .map_err(|error| format!("{}: cannot be read: {error}", folder.display()))?;
        let mut files: Vec<PathBuf> = entries
            .take(4 * FILES_MAX)
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|file| matches(file) && file.is_file())
            .collect();
        files.sort();
        files.iter().map(|file| self.read(file, comments)).collect()
    }

    /// Reads one more file.
    fn read(&mut self, file: &Path, comments: &[u8]) -> Result<Source, String> {
        if self.read >= FILES_MAX {
            return Err(format!("more than {FILES_MAX} files are included"));
        }
        self.read += 1;
        Ok(Source::new(
            &file.to_string_lossy(),
            &content(file)?,
            comments,
        ))
    }
}

/// Whether the name matches a pattern with `*` for any text and `?` for any byte.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    // Where the last star was, and how much of the name it stands for so far.
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match &mut star {
                Some((after, from)) => {
                    *from += 1;
                    (at, in_name) = (*after + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// What stands for `/` if `first` is the file that is usually `usual`.
fn root_of(first: &Path, usual: &str) -> Option<PathBuf> {
    let text = first.to_str()?;
    let root = text.strip_suffix(usual)?;
    Some(PathBuf::from(if root.is_empty() { "/" } else { root }))
}

#[cfg(test)]
mod tests {
    use super::is_match;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, right) in [
            ("*.conf", "a.conf", true),
            ("*.conf", "a.conf.old", false),
            ("p*-?.c*", "peer-1.conf", true),
            ("*a*b", "xaxbxab", true),
            ("?", "", false),
            ("*", "", true),
        ] {
            assert_eq!(
                is_match(pattern.as_bytes(), name.as_bytes()),
                right,
                "{pattern} {name}"
            );
        }
    }
}
