//! What is wrong or unwise in a policy, told to the operator who wrote it.

use core::fmt;

/// One fault or piece of advice: where, which key, what, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Line of the text, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// `link.up`, `first[2].port`; empty for a fault of the syntax.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub right: String,
}

impl fmt::Display for Remark {
    /// `7:4: link.up: what is wrong; what would be right`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}", self.message)?;
        if !self.right.is_empty() {
            write!(f, "; {}", self.right)?;
        }
        Ok(())
    }
}

/// Collects faults and advice while a text is read.
#[derive(Debug)]
pub(super) struct Remarks<'s> {
    text: &'s str,
    faults: Vec<(usize, Remark)>,
    advice: Vec<(usize, Remark)>,
}

impl<'s> Remarks<'s> {
    pub(super) fn new(text: &'s str) -> Self {
        Self {
            text,
            faults: Vec::new(),
            advice: Vec::new(),
        }
    }

    /// Something that makes the policy unusable, at the byte `at`.
    pub(super) fn fault(
        &mut self,
        at: usize,
        key: &str,
        message: impl Into<String>,
        right: impl Into<String>,
    ) {
        let remark = self.remark(at, key, message.into(), right.into());
        self.faults.push((at, remark));
    }

    /// Something that may be meant, but is unwise.
    pub(super) fn advise(
        &mut self,
        at: usize,
        key: &str,
        message: impl Into<String>,
        right: impl Into<String>,
    ) {
        let remark = self.remark(at, key, message.into(), right.into());
        self.advice.push((at, remark));
    }

    /// Whether there is no fault so far.
    pub(super) fn is_faultless(&self) -> bool {
        self.faults.is_empty()
    }

    /// The line of the byte `at`, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.position(at).0
    }

    /// Faults and advice, each in the order of the text.
    pub(super) fn sorted(mut self) -> (Vec<Remark>, Vec<Remark>) {
        self.faults.sort_by_key(|(at, _)| *at);
        self.advice.sort_by_key(|(at, _)| *at);
        let remarks = |list: Vec<(usize, Remark)>| list.into_iter().map(|(_, remark)| remark);
        (
            remarks(self.faults).collect(),
            remarks(self.advice).collect(),
        )
    }

    fn remark(&self, at: usize, key: &str, message: String, right: String) -> Remark {
        let (line, column) = self.position(at);
        Remark {
            line,
            column,
            key: key.to_owned(),
            message,
            right,
        }
    }

    fn position(&self, at: usize) -> (usize, usize) {
        let mut end = at.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[..end];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |place| place + 1);
        (line, before[start..].chars().count() + 1)
    }
}
