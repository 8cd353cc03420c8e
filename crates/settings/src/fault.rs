//! Faults: what is wrong in a file, at which place, and what would be right. No I/O.
//!
//! [`Notes`] collects the faults of one text while it is read. [`Faults`] is the result: sorted by place, at most
//! [`FAULTS_MAX`], and a count of the others.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::ops::Range;
use std::path::Path;

use crate::record::Record;

/// Faults that are kept of one text; [`Faults`] counts the others.
pub const FAULTS_MAX: usize = 100;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// One fault, or one piece of advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it is; `None` if it concerns the file as a whole.
    pub place: Option<Place>,
    /// `link.up`, `first[2].port`, or a section; empty if no key is meant.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What would be right; empty if the message says it.
    pub remedy: String,
    /// The file can be used, but this may not be intended.
    pub is_advice: bool,
}

impl Fault {
    fn write(&self, file: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(file)?;
        if let Some(Place { line, column }) = self.place {
            let colon = if file.is_empty() { "" } else { ":" };
            write!(f, "{colon}{line}:{column}: ")?;
        } else if !file.is_empty() {
            f.write_str(": ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        f.write_str(if self.is_advice { " (advice)" } else { "" })
    }
}

impl fmt::Display for Fault {
    /// `7:4: link.up: what is wrong; what would be right`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write("", f)
    }
}

/// What is wrong and what would be right. One text of both has `; ` between them.
#[derive(Clone, Debug)]
pub struct Words {
    message: String,
    remedy: String,
}

impl From<&str> for Words {
    fn from(text: &str) -> Self {
        let (message, remedy) = text.split_once("; ").unwrap_or((text, ""));
        Self::from((message, remedy))
    }
}

impl From<String> for Words {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&String> for Words {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl<M: Into<String>, R: Into<String>> From<(M, R)> for Words {
    fn from((message, remedy): (M, R)) -> Self {
        Self {
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}

/// The faults or the advice of one file, sorted by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    file: String,
    list: Vec<Fault>,
    more: usize,
}

impl Faults {
    /// One fault of the file at `path` as a whole.
    pub fn whole(path: &Path, key: &str, words: impl Into<Words>) -> Self {
        let notes = Notes::new("");
        notes.whole(key, words);
        notes.faults().of(path)
    }

    /// The same faults, printed with the name of their file.
    #[must_use]
    pub fn of(mut self, path: &Path) -> Self {
        self.file = path.display().to_string();
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are, including those that are not kept.
    pub fn len(&self) -> usize {
        self.list.len() + self.more
    }

    /// The faults that are kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.list.iter()
    }

    /// One line of text for each fault, and one for those that are not kept.
    pub fn lines(&self) -> Vec<String> {
        self.to_string().lines().map(str::to_owned).collect()
    }
}

impl<'f> IntoIterator for &'f Faults {
    type Item = &'f Fault;
    type IntoIter = std::slice::Iter<'f, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Faults {
    /// `FILE:LINE:COLUMN: key: what is wrong; what would be right`, one line for each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.list.iter().enumerate() {
            f.write_str(if i > 0 { "\n" } else { "" })?;
            fault.write(&self.file, f)?;
        }
        if self.more > 0 {
            let colon = if self.file.is_empty() { "" } else { ": " };
            write!(f, "\n{}{colon}and {} more", self.file, self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// Faults with their offsets, which sort them; those beyond [`FAULTS_MAX`] are counted.
#[derive(Debug, Default)]
struct List {
    kept: Vec<(Option<usize>, Fault)>,
    more: usize,
}

impl List {
    fn push(&mut self, at: Option<usize>, fault: Fault) {
        if self.kept.len() >= FAULTS_MAX {
            self.more += 1;
        } else if !self.kept.iter().any(|(_, kept)| *kept == fault) {
            self.kept.push((at, fault));
        }
    }

    fn into_faults(mut self) -> Faults {
        self.kept.sort_by_key(|(at, _)| *at);
        Faults {
            file: String::new(),
            list: self.kept.into_iter().map(|(_, fault)| fault).collect(),
            more: self.more,
        }
    }
}

/// Collects the faults of one text. All its methods take `&self`, so that many sections can note faults in turn.
#[derive(Debug)]
pub struct Notes<'s> {
    pub(crate) source: &'s str,
    /// No fault repeats a value that cannot be read.
    pub(crate) has_secrets: bool,
    /// Offsets where lines start, built at the first fault.
    starts: OnceCell<Vec<usize>>,
    faults: RefCell<List>,
    advice: RefCell<List>,
    /// `None`: nothing is recorded.
    record: Option<RefCell<Record>>,
}

impl<'s> Notes<'s> {
    /// Notes on a text that holds no secrets.
    pub fn new(source: &'s str) -> Self {
        Self {
            source,
            has_secrets: false,
            starts: OnceCell::new(),
            faults: RefCell::default(),
            advice: RefCell::default(),
            record: None,
        }
    }

    /// Notes on a text that may hold secrets: no fault of its syntax repeats a value.
    pub fn with_secrets(source: &'s str) -> Self {
        Self {
            has_secrets: true,
            ..Self::new(source)
        }
    }

    /// The same notes, which also record the keys and values of the text.
    #[must_use]
    pub fn recording(self) -> Self {
        Self {
            record: Some(RefCell::default()),
            ..self
        }
    }

    /// What was recorded so far; empty unless the notes [record](Self::recording).
    pub fn recorded(&self) -> Record {
        let record = self.record.as_ref();
        record.map_or_else(Record::default, |record| record.borrow().clone())
    }

    /// Notes the content of the file that the key `key` of the section `place` names, for a comparison with another
    /// reading.
    pub fn content(&self, place: &str, key: &str, content: &[u8]) {
        self.record(|record| record.content(place, key, content));
    }

    pub(crate) fn records(&self) -> bool {
        self.record.is_some()
    }

    pub(crate) fn record(&self, note: impl FnOnce(&mut Record)) {
        if let Some(record) = &self.record {
            note(&mut record.borrow_mut());
        }
    }

    /// A part of the text.
    pub fn text(&self, range: Range<usize>) -> &'s str {
        &self.source[range]
    }

    /// The line, from 1, of the byte at `offset`.
    pub fn line(&self, offset: usize) -> usize {
        self.place(offset).line
    }

    /// Notes a fault at the byte `offset`.
    pub fn at(&self, offset: usize, key: impl Into<String>, words: impl Into<Words>) {
        self.push(&self.faults, Some(offset), key.into(), words.into());
    }

    /// Notes a fault of the file as a whole.
    pub fn whole(&self, key: impl Into<String>, words: impl Into<Words>) {
        self.push(&self.faults, None, key.into(), words.into());
    }

    /// Notes the faults of another file, which the value at the byte `offset` names. Faults that were only counted there
    /// are counted here.
    pub fn of_file(&self, offset: usize, key: &str, faults: &Faults) {
        for fault in faults {
            let alone = Faults {
                file: faults.file.clone(),
                list: vec![fault.clone()],
                more: 0,
            };
            self.at(offset, key, alone.to_string());
        }
        self.faults.borrow_mut().more += faults.more;
    }

    /// Notes advice at the byte `offset`: the file can be used, but this may not be intended.
    pub fn advise(&self, offset: usize, key: impl Into<String>, words: impl Into<Words>) {
        self.push(&self.advice, Some(offset), key.into(), words.into());
    }

    /// Whether no fault was noted so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many faults were noted so far.
    pub fn len(&self) -> usize {
        let faults = self.faults.borrow();
        faults.kept.len() + faults.more
    }

    /// The faults.
    pub fn faults(self) -> Faults {
        self.faults.into_inner().into_faults()
    }

    /// The value with the advice, or the faults if there are any.
    ///
    /// # Errors
    /// The faults. A value that is missing without a fault is an error of its reader and gives no faults.
    pub fn finish<T>(self, value: Option<T>) -> Result<(T, Faults), Faults> {
        match value {
            Some(value) if self.is_empty() => Ok((value, self.advice.into_inner().into_faults())),
            _ => Err(self.faults()),
        }
    }

    fn push(&self, list: &RefCell<List>, at: Option<usize>, key: String, words: Words) {
        let mut all = list.borrow_mut();
        // A fault that is only counted needs no place.
        let place = at.filter(|_| all.kept.len() < FAULTS_MAX);
        let fault = Fault {
            place: place.map(|at| self.place(at)),
            key,
            message: words.message,
            remedy: words.remedy,
            is_advice: std::ptr::eq(list, &self.advice),
        };
        all.push(at, fault);
    }

    fn place(&self, offset: usize) -> Place {
        let starts = self.starts.get_or_init(|| {
            let ends = self.source.match_indices('\n').map(|(end, _)| end + 1);
            std::iter::once(0).chain(ends).collect()
        });
        let end = char_before(self.source, offset);
        let line = starts.partition_point(|start| *start <= end);
        let before = &self.source[starts[line - 1]..end];
        Place {
            line,
            column: before.chars().count() + 1,
        }
    }
}

/// The start of the character that the byte `at` is in, or the end of the text.
pub(crate) fn char_before(text: &str, at: usize) -> usize {
    let mut start = at.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    start
}
