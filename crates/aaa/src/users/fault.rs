//! What is wrong with a users file.

use core::fmt;

/// One fault: where, which key, what, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Line of the text, from 1.
    pub line: usize,
    /// `user[2].pool`: the key of the second user; empty where no key is meant.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub right: String,
}

impl fmt::Display for Fault {
    /// `7: user[2].pool: what is wrong; what would be right`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}; {}", self.message, self.right)
    }
}
