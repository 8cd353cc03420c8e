//! `headend trace`: TCP connections in captures, with tcptrace's flags, reports and graphs. The `trace` crate has the
//! analysis itself.
//!
//! | module | what it does |
//! |---|---|
//! | `flags`, `low`, `hi`, `values` | the command line: the table of flags, the words typed, their meaning |
//! | `help` | the texts of `-h` and `--help` |
//! | `capture`, `stop`, `progress` | reads the files until they end or a signal comes, and shows progress |
//! | `live` | captures an interface, and reports at intervals |
//! | `watch` | observers of packets: printing, saving, warnings, graphs |
//! | `files` | the many files that observers write |
//! | `written` | the names of these files, for the message at the end |
//! | `absent` | connections that the command line names and that the capture lacks |
//! | `painters` | paints plot files on several threads |
//! | `filter` | tcptrace's filter language |
//! | `names` | names of hosts and ports |
//! | `results`, `report` | the connections found, and the report of them |
//! | `parquet` | connections as Parquet; [`trace::json`] writes them as JSON |
//! | `twin` | `headend trace twin`: a congested path, and its flows again under another queue |
//! | `why` | `headend trace why`: what the senders waited for |
//! | `diff` | `headend trace diff`: two captures of one path |
//!
//! Start reading at [`run`].
#![forbid(unsafe_code)]

mod absent;
mod capture;
mod diff;
mod files;
mod filter;
mod flags;
mod help;
mod hi;
mod live;
mod low;
mod names;
mod owners;
mod painters;
mod parquet;
mod progress;
mod report;
mod results;
#[cfg(test)]
#[path = "../../../trace/src/columns/samples.rs"]
mod samples;
mod stop;
#[cfg(test)]
#[path = "../../../trace/src/part/temporary.rs"]
mod temporary;
mod twin;
mod values;
mod watch;
mod why;
mod written;

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use jiff::tz::TimeZone;
use trace::FileReport;
use trace::part::{Header, Merge};

use capture::Captured;
use hi::HiArgs;
use low::{LowArgs, Usage};
use names::Lookup;
use report::{Paper, Style};
use results::{Results, Source};

/// TCP connections in captures, with the statistics and graphs of tcptrace.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct TraceArgs {
    /// Flags and files; see `headend trace --help`
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAG|FILE"
    )]
    words: Vec<OsString>,
}

/// All flags, for manual pages and shell completions.
#[must_use]
pub fn flags() -> Vec<clap::Arg> {
    help::described()
}

/// Runs the command line.
///
/// # Errors
/// No file can be read, or a file or standard output cannot be written.
pub fn run(args: &TraceArgs) -> Result<ExitCode> {
    if let Some((first, rest)) = args.words.split_first()
        && first == "twin"
    {
        return twin::run(rest);
    }
    if let Some((first, rest)) = args.words.split_first()
        && first == "diff"
    {
        return diff::run(rest);
    }
    let (why, words) = match args.words.split_first() {
        Some((first, rest)) if first == "why" => (true, rest),
        _ => (false, &args.words[..]),
    };
    let understood = LowArgs::parse(words).map(|low| LowArgs { why, ..low });
    let understood = understood.and_then(|low| match low.help {
        Some(_) => Ok(Err(low)),
        None => HiArgs::new(low).map(Ok),
    });
    match understood {
        Ok(Ok(args)) => trace(&args),
        Ok(Err(low)) => {
            let text = match low.why {
                true => help::WHY.to_owned(),
                false => low.help.map(help::text).unwrap_or_default(),
            };
            io::stdout().write_all(text.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(Usage(why)) => {
            eprintln!("headend trace: {why}");
            Ok(ExitCode::from(2))
        }
    }
}

fn trace(args: &HiArgs) -> Result<ExitCode> {
    let low = &args.low;
    let names = Lookup::new(low.host_names, low.port_names, low.short_names);
    let zone = zone();
    let style = Style {
        args,
        names: &names,
        zone: &zone,
        loss: Cell::default(),
    };
    let mut paper = Paper::new(io::stdout().lock());
    if low.merge {
        let merged = merge(&style, &mut paper)?;
        let results = merged.results;
        match low.why {
            true => why::print(&style, &results, &mut paper)?,
            false => style.print(&results, &mut paper)?,
        }
        let absent = absent::report(args, &results.summary);
        return Ok(status(!absent && merged.good));
    }
    let captured = capture::read(&style, &mut paper)?;
    match low.part {
        Some(part) => write_part(args, part, &captured.results, &mut paper)?,
        None if low.why => why::print(&style, &captured.results, &mut paper)?,
        None if low.continuous => paper.flush()?,
        None => style.print(&captured.results, &mut paper)?,
    }
    if let Some(counts) = &captured.counts {
        eprintln!("headend: {}", counts.sentence());
        if low.json && !low.quiet {
            paper.text().push_str(&counts.line());
            paper.flush()?;
        }
    }
    let shown = low.part.is_none() && !low.continuous;
    let absent = shown && absent::report(args, &captured.results.summary);
    Ok(status(captured.good && !absent))
}

/// The exit status.
fn status(good: bool) -> ExitCode {
    match good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// `--part`: writes the results as a part, for `--merge`.
fn write_part<W: Write>(
    args: &HiArgs,
    (part, parts): (u32, u32),
    results: &Results,
    paper: &mut Paper<W>,
) -> Result<()> {
    let Source::Read { files, found, .. } = &results.source else {
        return Ok(());
    };
    let summary = results.summary.clone();
    let mut header = Header::new(part, parts, args.settings(), files.clone(), summary);
    header.note_faults(found.files().iter().filter_map(FileReport::fault));
    match &args.low.part_file {
        Some(path) => {
            let file = File::create(path).map(BufWriter::new);
            let file = file.with_context(|| format!("cannot write {}", path.display()))?;
            results.source.write_part(file, &header)
        }
        None if io::stdout().is_terminal() => {
            bail!(
                "a part is binary and standard output is a terminal: give --part-file, or redirect it"
            )
        }
        None => results.source.write_part(paper.out()?, &header),
    }
}

/// `--merge`: reports the parts of a run as one run.
fn merge<W: Write>(style: &Style<'_>, paper: &mut Paper<W>) -> Result<Captured> {
    let low = &style.args.low;
    let merge = Merge::open(&low.files)?;
    let mut summary = merge.summary().clone();
    if low.udp && summary.udp.is_none() {
        bail!("-u: these parts were written without -u");
    }
    for flag in ["--details", "--intervals"] {
        let asked = match flag {
            "--details" => style.args.analysis.details.to_string(),
            _ => style.args.analysis.interval_ns.to_string(),
        };
        let has = merge.setting(flag).unwrap_or_default();
        if asked != has && !matches!(asked.as_str(), "false" | "0") {
            bail!("{flag}: these parts were written with {flag} {has}, not {asked}");
        }
    }
    if !low.udp {
        (summary.udp, summary.flows, summary.flows_beyond) = (None, 0, 0);
    }
    if summary.is_limited() {
        eprintln!("headend: memory ran out in a part: the report may differ from that of one run");
    }
    let faulty = merge.faulty();
    for (path, fault) in &faulty {
        eprintln!(
            "headend: {}: made from a faulty capture: {fault}",
            path.display()
        );
    }
    capture::announce(style, merge.files(), paper)?;
    let source = Source::Parts {
        paths: low.files.clone(),
        files: merge.files().len(),
    };
    Ok(Captured {
        results: Results {
            source,
            summary,
            processes: None,
        },
        good: faulty.is_empty(),
        counts: None,
    })
}

/// The local time zone, by `TZ` or the system's setting. Without a database of zones, the rule in `TZ` itself.
fn zone() -> TimeZone {
    TimeZone::try_system().unwrap_or_else(|_| {
        let named = std::env::var("TZ").ok();
        let named = named.as_deref().and_then(trace::text::zone_without_rule);
        named.unwrap_or(TimeZone::UTC)
    })
}
