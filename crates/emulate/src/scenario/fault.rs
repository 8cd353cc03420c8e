//! What is wrong with a scenario, told to whoever wrote it.

use std::fmt;

/// One fault: where it is, which key, what is wrong and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    /// The scenario's file, as it was named to [`Scenario::load`](crate::Scenario::load).
    pub file: String,
    /// Line of the file, from 1; none if the fault is the file as a whole.
    pub line: Option<usize>,
    /// `section.key`, or the section, or empty for a fault of the syntax.
    pub key: String,
    /// What is wrong; what would be right.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        if !self.key.is_empty() {
            write!(f, " {}:", self.key)?;
        }
        write!(f, " {}", self.message)
    }
}

/// Collects faults while a file is read, and knows which line an octet is in.
pub(crate) struct Notes<'s> {
    file: &'s str,
    source: &'s str,
    list: Vec<Fault>,
}

/// Faults that are told of one file at most; what follows is seldom a fault of its own.
const FAULTS_MAX: usize = 100;

impl<'s> Notes<'s> {
    pub(crate) fn new(file: &'s str, source: &'s str) -> Self {
        Self {
            file,
            source,
            list: Vec::new(),
        }
    }

    /// Notes a fault at the octet `offset`.
    pub(crate) fn at(&mut self, offset: usize, key: impl Into<String>, message: impl Into<String>) {
        let before = &self.source.as_bytes()[..offset.min(self.source.len())];
        let line = 1 + before.iter().filter(|&&octet| octet == b'\n').count();
        self.push(Some(line), key.into(), message.into());
    }

    /// Notes a fault of the file as a whole.
    pub(crate) fn whole(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.push(None, key.into(), message.into());
    }

    fn push(&mut self, line: Option<usize>, key: String, message: String) {
        if self.list.len() < FAULTS_MAX {
            self.list.push(Fault {
                file: self.file.to_owned(),
                line,
                key,
                message,
            });
        }
    }

    /// Whether nothing was noted so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What was noted, in the order of lines.
    pub(crate) fn into_faults(mut self) -> Vec<Fault> {
        self.list.sort_by_key(|fault| fault.line);
        self.list
    }
}
