//! Faults and warnings about a text of filters, for the operator who wrote it.

use std::fmt;

use super::Word;

/// One fault or warning: place, word, what is wrong, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Line of the text, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The word it concerns.
    pub word: String,
    /// What is wrong.
    pub message: String,
    /// What would be valid instead; may be empty.
    pub right: String,
}

impl fmt::Display for Remark {
    /// `7:4: prot: what is wrong; what would be right`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}: {}",
            self.line, self.column, self.word, self.message
        )?;
        if !self.right.is_empty() {
            write!(f, "; {}", self.right)?;
        }
        Ok(())
    }
}

/// All faults and warnings about a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Faults that make it unusable.
    pub faults: Vec<Remark>,
    /// Warnings about valid but unwise text.
    pub advice: Vec<Remark>,
}

/// A fault whose line is not yet known.
#[derive(Debug)]
pub(crate) struct Wrong(Remark);

/// A word of that line is wrong.
pub(crate) fn wrong(word: &Word, message: impl Into<String>, right: impl Into<String>) -> Wrong {
    wrong_part(word, &word.text, message, right)
}

/// Part of a word is wrong, such as an item of a list.
pub(crate) fn wrong_part(
    word: &Word,
    part: &str,
    message: impl Into<String>,
    right: impl Into<String>,
) -> Wrong {
    /// The most characters of a word that a message repeats.
    const SHOWN: usize = 80;
    let shown = |char: char| if char.is_control() { '?' } else { char };
    Wrong(Remark {
        line: 0,
        column: word.column,
        word: part.chars().take(SHOWN).map(shown).collect(),
        message: message.into(),
        right: right.into(),
    })
}

impl Wrong {
    pub(crate) fn at(mut self, line: usize) -> Remark {
        self.0.line = line;
        self.0
    }
}

/// `did you mean X?` if a known word is similar, otherwise the list of known words.
pub(crate) fn meant(typed: &str, known: &[&str], or: &str) -> String {
    match base::nearest(typed, known) {
        Some(near) => format!("did you mean {near}?"),
        None => or.to_owned(),
    }
}
