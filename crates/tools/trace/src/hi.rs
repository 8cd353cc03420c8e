//! The meaning of the command line.

use std::path::PathBuf;

use trace::Options;
use trace::text::LongOptions;

use super::filter::Filter;
use super::low::{LowArgs, Usage};
use trace::columns::{DETAILED, PLAIN, Table};

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
    /// Chosen columns as separated values.
    Columns(String),
}

/// The command line, checked and interpreted.
pub(super) struct HiArgs {
    pub(super) low: LowArgs,
    pub(super) report: Report,
    pub(super) options: LongOptions,
    pub(super) filter: Option<Filter>,
    pub(super) analysis: Options,
    /// The columns of `--json`, `--parquet` and [`Report::Columns`].
    pub(super) table: Choice,
}

/// A table of columns.
pub(super) enum Choice {
    Fixed(&'static Table),
    Chosen(Table),
}

impl std::ops::Deref for Choice {
    type Target = Table;

    fn deref(&self) -> &Table {
        match self {
            Choice::Fixed(table) => table,
            Choice::Chosen(table) => table,
        }
    }
}

impl HiArgs {
    /// Interprets the command line.
    ///
    /// # Errors
    /// It contradicts itself or lacks a file.
    pub(super) fn new(mut low: LowArgs) -> Result<HiArgs, Usage> {
        if low.files.is_empty() && low.live.is_none() {
            return Err(Usage(
                "name at least one file, - for standard input, or an interface with --live (see --help)"
                    .into(),
            ));
        }
        refuse_live(&low)?;
        let standard = |path: &&PathBuf| path.as_os_str() == "-" || path.as_os_str() == "stdin";
        if low.files.iter().filter(standard).count() > 1 {
            return Err(Usage("standard input can be read only once".into()));
        }
        if low.last > 0 && low.first > low.last {
            return Err(Usage(format!(
                "-B{} begins after -E{} ends",
                low.first, low.last
            )));
        }
        refuse(&low)?;
        refuse_with_why(&low)?;
        // xplot's files have no place for the band with causes.
        low.html |= low.why && low.graphs.any() && !low.svg;
        if (low.svg || low.html) && !low.graphs.any() {
            low.graphs.time_sequence = true;
        }
        let filter = match &low.filter {
            Some(text) => Some(Filter::parse(text).map_err(|why| Usage(why.to_string()))?),
            None => None,
        };
        let report = report(&low)?;
        let table = table(&low, &report)?;
        let analysis = Options {
            details: low.details || table.needs_details(),
            interval_ns: low.intervals.unwrap_or(0),
            ..analysis(&low)
        };
        Ok(HiArgs {
            report,
            table,
            options: LongOptions {
                rtt: low.rtt,
                owin: low.owin,
            },
            filter,
            analysis,
            low,
        })
    }

    /// Whether standard output is for data, JSON or a part, so that text must not be written to it.
    pub(super) fn is_data(&self) -> bool {
        matches!(self.report, Report::Json | Report::Columns(_))
            || self.low.part.is_some()
            || self.low.why
    }

    /// How many threads to paint graphs on.
    pub(super) fn painters(&self) -> usize {
        self.analysis.workers()
    }

    /// The settings that must be the same in all parts of a run.
    pub(super) fn settings(&self) -> Vec<(String, String)> {
        let low = &self.low;
        let analysis = &self.analysis;
        [
            ("--idle", analysis.idle_ns.to_string()),
            ("--idle-closed", analysis.idle_closed_ns.to_string()),
            ("-B", analysis.first_packet.to_string()),
            ("-E", analysis.last_packet.to_string()),
            ("-u", low.udp.to_string()),
            ("--realm", low.realm.to_string()),
            ("--checksum", low.checksum.to_string()),
            ("--resync", low.resync.to_string()),
            ("--details", analysis.details.to_string()),
            ("--intervals", analysis.interval_ns.to_string()),
            ("why", low.why.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Whether `-o` and `-i` select the connection of that number.
    pub(super) fn chosen(&self, number: u64) -> bool {
        (self.low.only.is_empty() || self.low.only.has(number)) && !self.low.ignored.has(number)
    }

    /// Whether `--oUDP` and `--iUDP` select the UDP flow of that number.
    pub(super) fn chosen_flow(&self, number: u64) -> bool {
        (self.low.only_udp.is_empty() || self.low.only_udp.has(number))
            && !self.low.ignored_udp.has(number)
    }
}

/// Refuses flags that exclude each other.
fn refuse(low: &LowArgs) -> Result<(), Usage> {
    let parts = match (low.part, low.merge) {
        (Some(_), true) => return Err(Usage("choose --part or --merge".into())),
        (Some(_), false) => "--part, which writes what --merge reports",
        (None, true) => "--merge, which sees no packets",
        (None, false) => return Ok(()),
    };
    let flags = [
        ("graphs", low.graphs.any() || low.svg || low.html),
        (
            "-p, -P and --dump_packet_data",
            low.print_all || low.print || low.print_data,
        ),
        ("-e", low.contents),
        ("-Z", low.rtt_dump),
        ("-O", low.save.is_some()),
        ("--continuous", low.continuous),
        ("--parquet", low.part.is_some() && low.parquet.is_some()),
    ];
    match flags.into_iter().find(|flag| flag.1) {
        Some((flag, _)) => Err(Usage(format!("{flag} cannot be combined with {parts}"))),
        None => Ok(()),
    }
}

/// Refuses flags that contradict a capture of an interface, or that need one.
fn refuse_live(low: &LowArgs) -> Result<(), Usage> {
    if let Some(name) = &low.live {
        let with = [
            ("files", !low.files.is_empty()),
            ("--part and --merge", low.part.is_some() || low.merge),
            ("--every without why", low.every.is_some() && !low.why),
        ];
        return match with.into_iter().find(|flag| flag.1) {
            Some((flag, _)) => Err(Usage(format!(
                "{flag} cannot be combined with --live {name}"
            ))),
            None => Ok(()),
        };
    }
    let without = [
        ("--duration", low.duration.is_some()),
        ("--every", low.every.is_some()),
        ("--snaplen", low.snap.is_some()),
        ("--promiscuous", low.promiscuous),
        ("--ring", low.ring.is_some()),
        ("--write", low.write.is_some()),
    ];
    match without.into_iter().find(|flag| flag.1) {
        Some((flag, _)) => Err(Usage(format!("{flag} needs --live"))),
        None => Ok(()),
    }
}

/// Refuses what `why` cannot do.
fn refuse_with_why(low: &LowArgs) -> Result<(), Usage> {
    let values = low.csv || low.tsv || low.separator.is_some();
    let flags = [
        ("--csv, --tsv and --sv", values),
        ("--parquet", low.parquet.is_some()),
        ("--columns", low.columns.is_some()),
        ("--details", low.details),
        ("--intervals", low.intervals.is_some()),
        ("-f", low.filter.is_some()),
        ("-c", low.complete),
        ("--continuous", low.continuous),
    ];
    match flags.into_iter().find(|flag| low.why && flag.1) {
        Some((flag, _)) => Err(Usage(format!("{flag} cannot be combined with why"))),
        None => Ok(()),
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
        Some(separator) if low.columns.is_some() => Report::Columns(separator),
        // As in tcptrace, separated values are a form of the long report.
        Some(separator) if !low.brief => Report::Values(separator),
        _ if low.brief => Report::Brief,
        _ => Report::Long,
    })
}

/// The columns to write, and whether anything writes them.
fn table(low: &LowArgs, report: &Report) -> Result<Choice, Usage> {
    let rows = *report == Report::Json || low.parquet.is_some() || low.part.is_some();
    let columns = rows || matches!(report, Report::Columns(_));
    for (flag, given, used, needed) in [
        (
            "--columns",
            low.columns.is_some(),
            columns,
            "--json, --parquet, --csv, --tsv or --sv",
        ),
        (
            "--details",
            low.details,
            columns,
            "--json, --parquet or --columns",
        ),
        (
            "--intervals",
            low.intervals.is_some(),
            rows,
            "--json or --parquet",
        ),
    ] {
        if given && !used {
            return Err(Usage(format!("{flag} needs {needed}")));
        }
    }
    Ok(match &low.columns {
        Some(list) => {
            let table = Table::parse(list);
            Choice::Chosen(table.map_err(|why| Usage(format!("--columns: {why}")))?)
        }
        None if low.details => Choice::Fixed(&DETAILED),
        None => Choice::Fixed(&PLAIN),
    })
}

fn analysis(low: &LowArgs) -> Options {
    Options {
        memory: low.memory,
        idle_ns: low.idle,
        idle_closed_ns: low.idle_closed.min(low.idle),
        first_packet: low.first,
        last_packet: if low.last == 0 { u64::MAX } else { low.last },
        part: low.part,
        tunnels_apart: low.realm,
        checksums: low.checksum,
        threads: low.threads,
        resync: low.resync,
        why: low.why,
        recent: (low.why || low.json) && low.live.is_some(),
        ..Options::default()
    }
}
