//! The page that re-runs published scaling failures: what was published, the
//! old design here, ours beside it, and whether it was reproduced.
//!
//! A [`Chapter`] is one published account. Its builder takes measured data
//! alone, so that every word of the verdict follows from figures and can be
//! tested. [`page`] sets the chapters as one HTML file that needs no other.
//!
//! Left out: taking the measurements, which is the benchmarks' part.

mod bringup;
mod capture;
mod filter;
mod gateway;
mod mesh;
mod page;
mod poll;
pub mod published;

pub use bringup::{BringupRun, chapter_bringup};
pub use capture::{Whole, chapter_capture};
pub use filter::{FilterRun, Names, chapter_filter};
pub use gateway::chapter_gateway;
pub use mesh::{MeshRow, Waiting, chapter_mesh};
pub use page::page;
pub use poll::{PollRow, chapter_poll};

use crate::report::Table;
use plot::figure::Figure;
use serde::Serialize;

/// Whether a published account held here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything it claims that was tested held.
    Reproduced,
    /// Some of it held; the rest did not, or could not be tested.
    PartlyReproduced,
    /// Nothing of it held, or nothing could be tested.
    NotReproduced,
}

impl Outcome {
    /// The outcome in two words at most.
    pub fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "Reproduced",
            Self::PartlyReproduced => "Partly reproduced",
            Self::NotReproduced => "Not reproduced",
        }
    }
}

/// The outcome of a chapter, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether the account held.
    pub outcome: Outcome,
    /// What the outcome follows from.
    pub claims: Vec<Claim>,
    /// What a reader should know beside the claims, a sentence each.
    pub remarks: Vec<String>,
}

impl Verdict {
    /// Weighs claims: all must hold for [`Outcome::Reproduced`], one for [`Outcome::PartlyReproduced`].
    ///
    /// A claim that could not be tested counts as one that did not hold.
    pub fn from_claims(claims: Vec<Claim>) -> Self {
        let held = claims.iter().filter(|c| c.holds == Some(true)).count();
        let outcome = match held {
            0 => Outcome::NotReproduced,
            n if n == claims.len() => Outcome::Reproduced,
            _ => Outcome::PartlyReproduced,
        };
        Self {
            outcome,
            claims,
            remarks: Vec::new(),
        }
    }

    /// The reasons in one paragraph, for a terminal.
    pub fn why(&self) -> String {
        let claims = self.claims.iter().map(|c| c.because.as_str());
        let sentences: Vec<&str> = claims
            .chain(self.remarks.iter().map(String::as_str))
            .collect();
        sentences.join(" ")
    }
}

/// One thing that an account claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// Whether it held; `None` if it could not be tested.
    pub holds: Option<bool>,
    /// A sentence with the measured figures.
    pub because: String,
}

/// One published account, re-run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chapter {
    /// The chapter's heading.
    pub title: String,
    /// What is cited, e.g. `FRRouting issue 12852, 2023`.
    pub source: String,
    /// What was published, in our words, a paragraph each.
    pub account: Vec<String>,
    /// Pictures: published dashed, re-run in full, ours thick.
    pub charts: Vec<Figure>,
    /// The figures.
    pub tables: Vec<Table>,
    /// Whether it held, and why.
    pub verdict: Verdict,
    /// How it was measured and drawn, a sentence each; the benchmark adds its own.
    pub method: Vec<String>,
}

#[cfg(test)]
mod tests;
