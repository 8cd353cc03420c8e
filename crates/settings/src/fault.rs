//! What is wrong with a configuration, told to the operator who wrote it.

use std::fmt;
use std::path::{Path, PathBuf};

/// One fault: where it is, which key, what is wrong and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line of the file, from 1; none if the fault is the file as a whole.
    pub line: Option<usize>,
    /// `section.key`, or the section, or empty for a fault of the syntax.
    pub key: String,
    /// What is wrong; what would be right.
    pub message: String,
}

/// Every fault of one file, in the order of its lines.
#[derive(Clone, Debug)]
pub struct Faults {
    path: PathBuf,
    list: Vec<Fault>,
}

impl Faults {
    /// The faults of the file at `path`.
    pub fn new(path: &Path, mut list: Vec<Fault>) -> Self {
        list.sort_by_key(|fault| fault.line);
        Self {
            path: path.to_owned(),
            list,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.list.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:", self.path.display())?;
            if let Some(line) = fault.line {
                write!(f, "{line}:")?;
            }
            if !fault.key.is_empty() {
                write!(f, " {}:", fault.key)?;
            }
            write!(f, " {}", fault.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// Collects faults while a file is read, and knows which line a byte is in.
pub struct Notes<'s> {
    source: &'s str,
    list: Vec<Fault>,
    advice: Vec<Fault>,
}

impl<'s> Notes<'s> {
    /// Notes on a file whose text is `source`.
    pub fn new(source: &'s str) -> Self {
        Self {
            source,
            list: Vec::new(),
            advice: Vec::new(),
        }
    }

    /// The line, from 1, of the byte at `offset`.
    pub fn line(&self, offset: usize) -> usize {
        let before = &self.source.as_bytes()[..offset.min(self.source.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    /// Notes a fault at the byte `offset`.
    pub fn at(&mut self, offset: usize, key: impl Into<String>, message: impl Into<String>) {
        let line = Some(self.line(offset));
        self.list.push(Fault {
            line,
            key: key.into(),
            message: message.into(),
        });
    }

    /// Notes a fault of the file as a whole.
    pub fn whole(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.list.push(Fault {
            line: None,
            key: key.into(),
            message: message.into(),
        });
    }

    /// Notes what is no fault at the byte `offset`, and maybe not meant so.
    pub fn advise(&mut self, offset: usize, key: impl Into<String>, message: &str) {
        let line = Some(self.line(offset));
        self.advice.push(Fault {
            line,
            key: key.into(),
            message: format!("{message} (advice)"),
        });
    }

    /// What is no fault of the file at `path`, and maybe not meant so.
    pub fn advice(self, path: &Path) -> Faults {
        Faults::new(path, self.advice)
    }

    /// What was noted, as the faults of the file at `path`.
    pub fn fail(self, path: &Path) -> Faults {
        Faults::new(path, self.list)
    }

    /// How many faults were noted so far.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing was noted so far.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
