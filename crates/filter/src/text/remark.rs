//! What is wrong or unwise in a text of filters, told to the operator who wrote it.

use std::fmt;

use super::Word;

/// One fault or piece of advice: where, which word, what, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Line of the text, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The word that it is about.
    pub word: String,
    /// What is wrong.
    pub message: String,
    /// What would be right; may be empty.
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

/// Everything there is to say about a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// What makes it unusable.
    pub faults: Vec<Remark>,
    /// What may be meant, but is unwise.
    pub advice: Vec<Remark>,
}

/// A fault whose line is not known yet.
#[derive(Debug)]
pub(crate) struct Wrong(Remark);

/// A word of that line is wrong.
pub(crate) fn wrong(word: &Word, message: impl Into<String>, right: impl Into<String>) -> Wrong {
    wrong_part(word, &word.text, message, right)
}

/// A part of a word is wrong, as of a list.
pub(crate) fn wrong_part(
    word: &Word,
    part: &str,
    message: impl Into<String>,
    right: impl Into<String>,
) -> Wrong {
    /// Characters of a word that are repeated.
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

/// `did you mean X?`, if a known word is near, or else which ones there are.
pub(crate) fn meant(typed: &str, known: &[&str], or: &str) -> String {
    match base::nearest(typed, known) {
        Some(near) => format!("did you mean {near}?"),
        None => or.to_owned(),
    }
}
