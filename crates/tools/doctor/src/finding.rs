//! One finding of a check: its state, one sentence, and the command that mends it. No I/O.

use std::fmt;

use serde_json::{Value, json};

/// Name and version of a row of `--json`.
pub(crate) const SCHEMA: &str = "doctor/1";

/// How a finding affects the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// The host has what the configuration asks for.
    Ok,
    /// The daemon runs, but slower or with a part missing.
    Advice,
    /// The daemon does not start, or does not do what the configuration asks for.
    Fault,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Advice => "advice",
            Self::Fault => "fault",
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The check: `tun`, `radius` and so on.
    pub(crate) check: &'static str,
    pub(crate) state: State,
    /// One sentence.
    pub(crate) text: String,
    /// The command that mends it, or the change of a file.
    pub(crate) mend: Option<String>,
}

impl Finding {
    /// The row of `--json`.
    pub(crate) fn row(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "check": self.check,
            "state": self.state.name(),
            "finding": self.text,
            "mend": self.mend,
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (state, check) = (self.state.name(), self.check);
        let text = cli::table::show(&self.text.as_str().into(), cli::table::Shown::Text);
        write!(f, "{state:<6}  {check:<13}  {}", text.replace("\\\"", "\""))?;
        match &self.mend {
            Some(mend) => write!(f, "\n{:23}mend: {mend}", ""),
            None => Ok(()),
        }
    }
}

/// The findings of one check.
#[derive(Debug)]
pub(crate) struct Findings {
    check: &'static str,
    list: Vec<Finding>,
}

impl Findings {
    pub(crate) fn of(check: &'static str) -> Self {
        Self {
            check,
            list: Vec::new(),
        }
    }

    pub(crate) fn ok(&mut self, text: impl Into<String>) {
        self.push(State::Ok, text.into(), None);
    }

    pub(crate) fn advice(&mut self, text: impl Into<String>, mend: impl Into<String>) {
        self.push(State::Advice, text.into(), Some(mend.into()));
    }

    pub(crate) fn fault(&mut self, text: impl Into<String>, mend: impl Into<String>) {
        self.push(State::Fault, text.into(), Some(mend.into()));
    }

    /// A finding without a command: there is nothing to mend, or the sentence says it.
    pub(crate) fn push(&mut self, state: State, text: String, mend: Option<String>) {
        let check = self.check;
        self.list.push(Finding {
            check,
            state,
            text,
            mend,
        });
    }

    pub(crate) fn into_list(self) -> Vec<Finding> {
        self.list
    }
}
