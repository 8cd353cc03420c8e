//! What the command line means.

use std::path::PathBuf;

use trace::text::LongOptions;

use super::filter::Filter;
use super::low::{LowArgs, Usage};
use super::pipeline::Plan;

/// How connections are reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    /// Not at all.
    Nothing,
    Brief,
    Long,
    /// Separated values.
    Values(String),
    Json,
}

/// The command line, understood.
pub(super) struct HiArgs {
    pub(super) low: LowArgs,
    pub(super) report: Report,
    pub(super) options: LongOptions,
    pub(super) filter: Option<Filter>,
    pub(super) plan: Plan,
    /// Octets of finished connections kept in memory.
    pub(super) finished_memory: u64,
}

impl HiArgs {
    /// Makes sense of what was typed.
    ///
    /// # Errors
    /// What makes none.
    pub(super) fn new(mut low: LowArgs) -> Result<HiArgs, Usage> {
        if low.files.is_empty() {
            return Err(Usage(
                "name at least one file, or - for standard input (see --help)".into(),
            ));
        }
        let standard = |path: &&PathBuf| path.as_os_str() == "-" || path.as_os_str() == "stdin";
        if low.files.iter().filter(standard).count() > 1 {
            return Err(Usage("standard input can be read but once".into()));
        }
        if low.last > 0 && low.first > low.last {
            return Err(Usage(format!(
                "-B{} begins after -E{} ends",
                low.first, low.last
            )));
        }
        if (low.svg || low.html) && !low.graphs.any() {
            low.graphs.time_sequence = true;
        }
        let filter = match &low.filter {
            Some(text) => Some(Filter::parse(text).map_err(|why| Usage(why.to_string()))?),
            None => None,
        };
        let plan = plan(&low);
        Ok(HiArgs {
            report: report(&low)?,
            options: LongOptions {
                rtt: low.rtt,
                owin: low.owin,
            },
            filter,
            plan,
            finished_memory: low.memory / 8,
            low,
        })
    }

    /// Whether standard output is for data alone: JSON, or a part.
    pub(super) fn is_data(&self) -> bool {
        self.report == Report::Json || self.low.part.is_some() && self.low.part_file.is_none()
    }

    /// Whether a connection of that number is among those asked for with `-o` and `-i`.
    pub(super) fn chosen(&self, number: u64) -> bool {
        (self.low.only.is_empty() || self.low.only.has(number)) && !self.low.ignored.has(number)
    }

    /// The same for UDP flows.
    pub(super) fn chosen_flow(&self, number: u64) -> bool {
        (self.low.only_udp.is_empty() || self.low.only_udp.has(number))
            && !self.low.ignored_udp.has(number)
    }
}

fn report(low: &LowArgs) -> Result<Report, Usage> {
    let separators = [
        low.csv.then(|| ",".to_owned()),
        low.tsv.then(|| "\t".to_owned()),
        low.separator.clone(),
    ];
    let mut separators = separators.into_iter().flatten();
    let separator = separators.next();
    if separators.next().is_some() {
        return Err(Usage("choose one of --csv, --tsv and --sv".into()));
    }
    if low.json && separator.is_some() {
        return Err(Usage("choose --json or separated values".into()));
    }
    Ok(match separator {
        _ if low.quiet => Report::Nothing,
        _ if low.json => Report::Json,
        // As in tcptrace, separated values are a form of the long report.
        Some(separator) if !low.brief => Report::Values(separator),
        _ if low.brief => Report::Brief,
        _ => Report::Long,
    })
}

fn plan(low: &LowArgs) -> Plan {
    let (part, parts) = low.part.unwrap_or((1, 1));
    let config = trace::Config {
        // Parts have to agree on whose a flow is; nobody else has to, and then nobody should be able to guess.
        seed: if parts > 1 { 0 } else { guess_proof() },
        idle: low.idle,
        idle_closed: low.idle_closed.min(low.idle),
        memory: low.memory - low.memory / 8,
        ..trace::Config::default()
    };
    Plan {
        config,
        first: low.first,
        last: if low.last == 0 { u64::MAX } else { low.last },
        part: (part - 1, parts),
        realm: low.realm,
    }
}

/// A number that differs from run to run.
pub(super) fn guess_proof() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}
