//! The names of files that observers wrote, for the message at the end.

use std::path::{Path, PathBuf};

/// Names that the message has. More are only counted.
const NAMES_MAX: usize = 10;

/// Files that were written.
#[derive(Debug, Default)]
pub(super) struct Written {
    names: Vec<String>,
    count: u64,
}

impl Written {
    /// Counts a complete file.
    pub(super) fn add(&mut self, name: &str) {
        self.count += 1;
        if self.names.len() < NAMES_MAX {
            self.names.push(name.to_owned());
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the files of another observer.
    pub(super) fn join(&mut self, other: Written) {
        let room = NAMES_MAX - self.names.len();
        self.count += other.count;
        self.names.extend(other.names.into_iter().take(room));
    }

    /// The message for standard error; `None` if there are no files.
    pub(super) fn message(&self, directory: Option<&PathBuf>) -> Option<String> {
        let names = match directory.filter(|path| path.as_path() != Path::new(".")) {
            Some(path) => {
                let names = self.names.iter().map(|name| path.join(name));
                names.map(|path| path.display().to_string()).collect()
            }
            None => self.names.clone(),
        };
        let more = self.count - names.len() as u64;
        let names = names.join(", ");
        match (self.count, more) {
            (0, _) => None,
            (_, 0) => Some(format!("wrote {names}")),
            (count, more) => Some(format!("wrote {count} files: {names} and {more} more")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_files_are_named_and_the_rest_are_counted() {
        let mut written = Written::default();
        assert_eq!(written.message(None), None);
        written.add("a2b_tsg.xpl");
        let mut others = Written::default();
        (0..12).for_each(|number| others.add(&format!("{number}.dat")));
        let graphs = PathBuf::from("graphs");
        assert_eq!(
            written.message(Some(&graphs)).as_deref(),
            Some("wrote graphs/a2b_tsg.xpl")
        );
        written.join(others);
        let text = written.message(None).unwrap();
        assert_eq!(
            text,
            "wrote 13 files: a2b_tsg.xpl, 0.dat, 1.dat, 2.dat, 3.dat, 4.dat, 5.dat, 6.dat, 7.dat, 8.dat and 3 more"
        );
    }
}
