//! The document `lab.bufferbloat/1`: verdict and accounts for readers, and the runs themselves.

use serde::{Deserialize, Serialize};

use super::account::{Account, accounts};
use super::run::Run;
use super::verdict::Verdict;

/// The schema of the document.
pub const SCHEMA: &str = "lab.bufferbloat/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    /// The command between two runs.
    exec: Option<&'a str>,
    runs: Vec<Judged<'a>>,
}

#[derive(Serialize)]
struct Judged<'a> {
    name: &'a str,
    verdict: Verdict,
    accounts: Vec<Account>,
    run: &'a Run,
}

#[derive(Deserialize)]
struct Found {
    schema: String,
    runs: Vec<FoundRun>,
}

/// What is computed from a run is computed again.
#[derive(Deserialize)]
struct FoundRun {
    name: String,
    run: Run,
}

/// Why a file is no document.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no JSON, or a key is wrong.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It has another schema.
    #[error("its schema is {0:?}; {SCHEMA} is read")]
    Schema(String),
    /// Columns of a stream differ in length.
    #[error("{0}: its columns differ in length")]
    Columns(String),
    /// More phases or streams than 4,096.
    #[error("it has more than {STREAMS_MAX} phases or streams")]
    TooMany,
    /// It lasts longer than a day.
    #[error("its phases or rates are later than a day after its start")]
    TooLong,
    /// It has no run.
    #[error("it has no run")]
    Empty,
    /// A time or a number of a flent file is not usable.
    #[error("{0}")]
    Flent(String),
}

/// The document of named runs, as JSON.
///
/// # Panics
/// Never: all values can be written as JSON.
#[must_use]
pub fn document(runs: &[(&str, &Run)], exec: Option<&str>) -> String {
    let runs = runs.iter().map(|(name, run)| {
        let accounts = accounts(run);
        Judged {
            name,
            verdict: Verdict::of(&accounts),
            accounts,
            run,
        }
    });
    let document = Document {
        schema: SCHEMA,
        exec,
        runs: runs.collect(),
    };
    serde_json::to_string(&document).expect("numbers, texts and lists are JSON")
}

/// The runs of a document, each with its name.
///
/// # Errors
/// It is no document of this schema.
pub fn read(text: &str) -> Result<Vec<(String, Run)>, ReadError> {
    let found: Found = serde_json::from_str(text)?;
    if found.schema != SCHEMA {
        return Err(ReadError::Schema(found.schema));
    }
    for FoundRun { run, .. } in &found.runs {
        check(run)?;
    }
    let runs: Vec<(String, Run)> = found
        .runs
        .into_iter()
        .map(|found| (found.name, found.run))
        .collect();
    match runs.is_empty() {
        true => Err(ReadError::Empty),
        false => Ok(runs),
    }
}

/// Longest run that is read, and most streams of pings or of load.
const US_MAX: u64 = 86_400_000_000;
const STREAMS_MAX: usize = 4_096;

/// Whether the columns of a run are equally long, and its times and counts are within limits.
pub(super) fn check(run: &Run) -> Result<(), ReadError> {
    let streams = [
        run.pings.len(),
        run.load.down_bps.len(),
        run.load.up_bps.len(),
    ];
    let is_many =
        run.phases.len() > STREAMS_MAX || streams.iter().any(|count| *count > STREAMS_MAX);
    if is_many {
        return Err(ReadError::TooMany);
    }
    let phases = run.phases.iter().map(|phase| phase.to_us);
    let last = phases.chain(run.load.at_us.iter().copied()).max();
    if last.is_some_and(|last| last > US_MAX) {
        return Err(ReadError::TooLong);
    }
    let broken = run.pings.iter().find(|pings| !pings.is_whole());
    if let Some(pings) = broken {
        return Err(ReadError::Columns(pings.name.clone()));
    }
    match run.load.is_whole() {
        true => Ok(()),
        false => Err(ReadError::Columns("load".to_owned())),
    }
}
