//! `headend trace`: captures to connections, with tcptrace's flags, reports and graphs.
//!
//! | module | what it is |
//! |---|---|
//! | `flags`, `low`, `hi`, `values` | the command line: the table of flags, what was typed, what it means |
//! | `help` | what `-h` prints |
//! | `input` | files and standard input, in order, and the signals that end them |
//! | `pipeline` | the way of a packet on one thread |
//! | `threads` | the same on several |
//! | `capture` | reading all files to their end |
//! | `watch` | who looks at packets as they pass: printing, saving, graphs |
//! | `tally` | what was seen and what was skipped |
//! | `store` | connections that have finished |
//! | `filter` | tcptrace's filter language |
//! | `names` | names of hosts and ports |
//! | `report` | the report at the end |
//! | `columns`, `json`, `parquet`, `part` | connections as tables, and parts of a run |

mod capture;
mod columns;
mod filter;
mod flags;
mod help;
mod hi;
mod input;
mod json;
mod low;
mod names;
mod pipeline;
mod report;
mod store;
mod tally;
mod values;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use jiff::tz::TimeZone;

use hi::HiArgs;
use low::{LowArgs, Usage};
use names::Lookup;
use report::{Paper, Style};

/// TCP connections in captures, with the statistics and graphs of tcptrace.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Flags and files; see `headend trace --help`
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAG|FILE"
    )]
    words: Vec<OsString>,
}

/// Understands the command line and does what it says.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let understood = LowArgs::parse(&args.words).and_then(|low| match low.help {
        Some(_) => Ok(Err(low)),
        None => HiArgs::new(low).map(Ok),
    });
    match understood {
        Ok(Ok(args)) => trace(&args),
        Ok(Err(low)) => {
            let text = low.help.map(help::text).unwrap_or_default();
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
    };
    let mut paper = Paper::new(io::stdout().lock());
    let captured = capture::read(&style, &mut paper)?;
    let (mut results, good) = (captured.results, captured.good);
    style
        .print(&mut results, &mut paper)
        .context("cannot print the report")?;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Local time, by `TZ` or the system's setting.
fn zone() -> TimeZone {
    let named = std::env::var("TZ").ok();
    let named = named.as_deref().and_then(trace::text::zone_without_rule);
    named.unwrap_or_else(TimeZone::system)
}
