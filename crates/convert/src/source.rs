//! The text of a source, with the places of its lines. Only [`content`] does I/O.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::report::{Place, Report};

/// Bytes of the largest file.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name in comments and reports.
    pub name: Arc<str>,
    /// Its text. A line that is not UTF-8 is empty.
    pub text: Arc<str>,
    /// The lines that were not UTF-8.
    bad_lines: Vec<usize>,
}

impl Source {
    /// Reads a text. A comment may be in any character set, so a line that starts with one of `comments` is kept.
    pub fn new(name: &str, bytes: &[u8], comments: &[u8]) -> Source {
        let mut text = String::with_capacity(bytes.len());
        let mut bad_lines = Vec::new();
        for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            match std::str::from_utf8(line) {
                Ok(line) => text.push_str(line),
                Err(_) => {
                    let first = line.iter().find(|byte| !byte.is_ascii_whitespace());
                    if !first.is_some_and(|first| comments.contains(first)) {
                        bad_lines.push(number);
                    }
                    text.push('\n');
                }
            }
        }
        let name = name.chars().map(|c| if c.is_control() { '?' } else { c });
        Source {
            name: name.collect::<String>().into(),
            text: text.into(),
            bad_lines,
        }
    }

    /// A place in this file.
    pub fn at(&self, line: usize) -> Place {
        Place {
            file: Arc::clone(&self.name),
            line,
        }
    }

    /// Reports the lines that are not UTF-8.
    pub fn report_bad_lines(&self, report: &mut Report) {
        for line in &self.bad_lines {
            report.unknown(&self.at(*line), "", "the line is not UTF-8");
        }
    }

    /// The lines with their numbers.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// The bytes of a file.
///
/// # Errors
/// The file cannot be read, or is longer than [`FILE_BYTES_MAX`]; with its name.
pub fn content(path: &Path) -> Result<Vec<u8>, String> {
    let name = path.display();
    let file = File::open(path).map_err(|error| format!("{name}: cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("{name}: cannot be read: {error}"))?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(format!(
            "{name}: is longer than {} MiB; that is no configuration",
            FILE_BYTES_MAX >> 20
        ));
    }
    Ok(bytes)
}
