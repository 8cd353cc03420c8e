//! The header of a part, and the check that parts belong together.

use serde::{Deserialize, Serialize};

use crate::columns::Summary;

/// Version of the file format and of the frozen connections. Parts of another version are refused.
pub(super) const VERSION: u32 = 4;

/// The largest number of parts of a run. A merge opens them all.
pub const PARTS_MAX: u32 = 4096;

/// Faulty files that a header names.
const FAULTS_MAX: usize = 16;

/// The head of a part file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    format: u32,
    program: String,
    /// Seed of the hashes that assign flows to parts.
    pub seed: u64,
    /// K, from 0.
    pub part: u32,
    /// N.
    pub parts: u32,
    /// Names and values of all settings that change the results; the same in all parts.
    pub settings: Vec<(String, String)>,
    /// The files that were read, in order. They may have other names on other machines.
    pub files: Vec<String>,
    /// Counts of the whole input and of this part.
    pub summary: Summary,
    /// What was wrong with the capture files, one text for each faulty file.
    pub faults: Vec<String>,
}

impl Header {
    /// The header of part `part`, from 0, of `parts`.
    #[must_use]
    pub fn new(
        part: u32,
        parts: u32,
        settings: Vec<(String, String)>,
        files: Vec<String>,
        summary: Summary,
    ) -> Header {
        Header {
            format: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            seed: 0,
            part,
            parts,
            settings,
            files,
            summary,
            faults: Vec::new(),
        }
    }

    /// Notes what was wrong with the capture files, so that a merge can report it.
    pub fn note_faults(&mut self, faults: impl Iterator<Item = String>) {
        self.faults = faults.take(FAULTS_MAX).collect();
    }

    /// A fault of this part by itself, without comparing it with other parts.
    pub(super) fn fault(&self) -> Option<String> {
        let ours = env!("CARGO_PKG_VERSION");
        if self.format != VERSION || self.program != ours {
            return Some(format!(
                "written by version {} (format {}), this is {ours} (format {VERSION})",
                self.program, self.format
            ));
        }
        if self.part >= self.parts || self.parts > PARTS_MAX {
            return Some(format!("claims to be part {} of {}", self.part, self.parts));
        }
        None
    }

    /// Why the two are not parts of one run.
    pub(super) fn difference(&self, first: &Header) -> Option<String> {
        if self.parts != first.parts {
            return Some(format!(
                "one of {} parts, but the first file is one of {}",
                self.parts, first.parts
            ));
        }
        if self.seed != first.seed {
            return Some("its flows were chosen with another seed".to_owned());
        }
        if self.settings != first.settings {
            let pairs = self.settings.iter().zip(&first.settings);
            let differs = pairs.clone().find(|(mine, theirs)| mine != theirs);
            return Some(match differs {
                Some(((name, mine), (_, theirs))) => {
                    format!("made with {name} {mine}, the first part with {theirs}")
                }
                None => "made with other settings than the first part".to_owned(),
            });
        }
        if self.files.len() != first.files.len() {
            return Some(format!(
                "of a capture in {} files, the first part's is in {}",
                self.files.len(),
                first.files.len()
            ));
        }
        let (name, mine, theirs) = self.summary.difference(&first.summary)?;
        Some(format!(
            "of another capture than the first part: {name} {mine}, there {theirs}"
        ))
    }
}
