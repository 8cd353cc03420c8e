//! The directory of a command's page and pictures. Files that an earlier run of the command wrote are replaced, others
//! never.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Bytes of a file that are searched for [`MARK`]; a page is below 5 MB.
const SEARCHED: u64 = 6_000_000;

/// A directory that may be written.
#[derive(Debug)]
pub struct ResultsDirectory(PathBuf);

impl ResultsDirectory {
    /// Makes the directory if there is none. `names` are the files to write; the first is the page, which has the text
    /// `mark` if the command `whose` wrote it.
    ///
    /// # Errors
    /// The directory has files of these names that the command did not write, or it cannot be made.
    pub fn open(directory: &Path, names: &[&str], mark: &str, whose: &str) -> Result<Self> {
        let shown = directory.display();
        fs::create_dir_all(directory).with_context(|| format!("cannot make {shown}"))?;
        let place = Self(std::path::absolute(directory)?);
        let page = names.first().map(|page| place.path(page));
        let is_ours = page.is_some_and(|page| has_mark(&page, mark));
        for name in names {
            let path = place.path(name);
            if path.symlink_metadata().is_ok() && !is_ours {
                bail!(
                    "{} exists, and no {whose} wrote it; give another directory: --out DIR",
                    path.display()
                );
            }
        }
        Ok(place)
    }

    /// The path of one of the files.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file beside its place and moves it there, so that a link is replaced and not followed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(name);
        let draft = self.path(&format!(".{name}.{}", std::process::id()));
        let written = fs::File::create_new(&draft)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&draft, &path));
        if written.is_err() {
            // The first error is the one that counts.
            let _ = fs::remove_file(&draft);
        }
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Whether this page has the text `mark`.
fn has_mark(page: &Path, mark: &str) -> bool {
    let is_file = page.symlink_metadata().is_ok_and(|meta| meta.is_file());
    let mut text = Vec::new();
    let read = is_file
        && fs::File::open(page)
            .is_ok_and(|file| file.take(SEARCHED).read_to_end(&mut text).is_ok());
    read && text.windows(mark.len()).any(|part| part == mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "written by headend tour";

    fn open(directory: &Path) -> Result<ResultsDirectory> {
        ResultsDirectory::open(directory, &["tour.html", "tour.png"], MARK, "tour")
    }

    /// A directory of one test, removed at its end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("headend-results-{}-{name}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_second_run_replaces_the_first() {
        let scratch = Scratch::new("again");
        for text in ["one", "two"] {
            let place = open(&scratch.0).unwrap();
            let page = format!("<p>{MARK}: {text}</p>");
            place.write("tour.html", page.as_bytes()).unwrap();
            place.write("tour.png", text.as_bytes()).unwrap();
        }
        assert_eq!(
            fs::read_to_string(scratch.0.join("tour.png")).unwrap(),
            "two"
        );
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 2);
    }

    #[test]
    fn files_of_others_are_refused_and_links_are_not_followed() {
        let scratch = Scratch::new("others");
        let place = open(&scratch.0).unwrap();
        for (name, text) in [("tour.html", "<p>mine</p>"), ("tour.png", "mine")] {
            fs::write(scratch.0.join(name), text).unwrap();
            let error = open(&scratch.0).unwrap_err().to_string();
            assert!(
                error.contains(name) && error.contains("--out DIR"),
                "{error}"
            );
            fs::remove_file(scratch.0.join(name)).unwrap();
        }
        let aim = scratch.0.join("aim");
        fs::write(&aim, MARK).unwrap();
        std::os::unix::fs::symlink(&aim, scratch.0.join("tour.html")).unwrap();
        assert!(open(&scratch.0).is_err());
        place.write("tour.html", b"new").unwrap();
        assert_eq!(fs::read_to_string(aim).unwrap(), MARK);
    }
}
