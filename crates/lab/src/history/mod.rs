//! The page that re-runs published scaling failures. It shows the published account, the old design
//! re-run here, our own design, and a verdict whether the account was reproduced.
//!
//! A [`Chapter`] is one published account. Its builder takes only measurements, so every word of
//! the verdict follows from figures and can be tested. [`page`] puts the chapters into one
//! self-contained HTML file.
//!
//! Left out: taking the measurements, which the benchmarks do.

mod bringup;
mod capture;
mod document;
mod filter;
mod gateway;
mod hero;
mod mesh;
mod page;
mod poll;
pub mod published;

pub use bringup::{BringupRun, chapter_bringup};
pub use capture::{Whole, chapter_capture};
pub use document::document;
pub use filter::{FilterRun, Names, chapter_filter};
pub use gateway::chapter_gateway;
pub use mesh::{MeshRow, Waiting, chapter_mesh};
pub use page::page;
pub use poll::{PollRow, chapter_poll};

use crate::report::Table;
use plot::figure::Figure;
use serde::Serialize;

/// Whether the central claim of a published account held here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The figures of this machine confirm the claim.
    Reproduced,
    /// The figures of this machine contradict the claim.
    NotReproduced,
    /// The central claim could not be tested.
    NotTested,
    /// No verdict: a quick run only draws charts.
    NotJudged,
}

impl Outcome {
    /// The outcome in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "Reproduced",
            Self::NotReproduced => "Not reproduced",
            Self::NotTested => "Not tested",
            Self::NotJudged => "No verdict",
        }
    }
}

/// The outcome of a chapter, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether the central claim held.
    pub outcome: Outcome,
    /// The central claim, then the other claims that were measured.
    pub claims: Vec<Claim>,
    /// Further remarks, one sentence each.
    pub remarks: Vec<String>,
}

impl Verdict {
    /// Judges the account by the first claim, its central one. The other claims are listed as further measurements: on
    /// a noisy machine, some detail differs in most runs, and that does not refute the account.
    pub fn from_claims(claims: Vec<Claim>) -> Self {
        let outcome = match claims.first().and_then(|claim| claim.holds) {
            Some(true) => Outcome::Reproduced,
            Some(false) => Outcome::NotReproduced,
            None => Outcome::NotTested,
        };
        Self {
            outcome,
            claims,
            remarks: Vec::new(),
        }
    }

    /// A quick run's missing verdict.
    #[must_use]
    pub fn withheld() -> Self {
        Self {
            outcome: Outcome::NotJudged,
            claims: vec![Claim {
                holds: None,
                because: "A quick run measures too little for a verdict.".into(),
            }],
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

/// One claim of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// Whether it held; `None` if it could not be tested.
    pub holds: Option<bool>,
    /// A sentence with the measured figures.
    pub because: String,
}

/// The cost of the old design compared with the new one, if both were measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// What is measured, and the size at which the designs are compared.
    pub at: String,
    /// The old design.
    pub old: String,
    /// The new design.
    pub new: String,
    /// The old design's figure divided by the new one's.
    pub ratio: f64,
}

impl Ratio {
    /// `None` if the figure is missing or is not a number above zero.
    fn new(at: impl Into<String>, [old, new]: [&str; 2], ratio: Option<f64>) -> Option<Self> {
        let ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0)?;
        Some(Self {
            at: at.into(),
            old: old.into(),
            new: new.into(),
            ratio,
        })
    }

    /// The comparison in a few words.
    fn of(&self) -> String {
        format!("{}: {} against {}", self.at, self.old, self.new)
    }
}

/// One published account, re-run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chapter {
    /// The chapter's heading.
    pub title: String,
    /// The source, e.g. `FRRouting issue 12852, 2023`.
    pub source: String,
    /// A summary of the publication, in paragraphs.
    pub account: Vec<String>,
    /// Charts: published figures dashed, the re-run solid, ours thick.
    pub charts: Vec<Figure>,
    /// The tables.
    pub tables: Vec<Table>,
    /// The verdict and its reasons.
    pub verdict: Verdict,
    /// The old designs that were re-run.
    pub old_builds: Vec<String>,
    /// The old design compared with the new one, for the chart at the top of the page.
    pub ratio: Option<Ratio>,
    /// How it was measured and drawn, one sentence each; the benchmark adds its own.
    pub method: Vec<String>,
}

#[cfg(test)]
mod tests;
