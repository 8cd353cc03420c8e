//! `headend trace diff`: two captures of one path. The crate `paths` matches the packets.
//!
//! | file | what it does |
//! |---|---|
//! | `diff/args` | the command line |
//! | `diff/read` | reads both captures in step |
//! | `diff/kept` | the lost packets that the outputs list |
//! | `diff/page` | the report as text |
//! | `diff/lines` | the report as JSON |
//! | `diff/table` | packets as a Parquet file |
//! | `diff/picture` | the page |

mod args;
mod kept;
mod lines;
mod page;
mod picture;
mod read;
mod table;

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use paths::{Config, Findings, Matcher};

use super::low::Usage;
use super::progress::Progress;
use args::Args;
pub(super) use args::HELP;
use kept::Kept;
use read::Capture;

/// Everything that an output needs.
struct Compared<'a> {
    captures: &'a [Capture; 2],
    found: &'a Findings,
    kept: &'a Kept,
    /// B is the same capture as A, with times that are later by this many nanoseconds.
    same: Option<i64>,
    /// Both captures have one clock, and are of two points.
    one_clock: bool,
    /// Longest wait of a packet, in nanoseconds.
    wait: i64,
}

/// Runs the command line, without `diff`.
///
/// # Errors
/// A file cannot be read or written, or the captures share no packets.
pub(super) fn run(words: &[OsString]) -> Result<ExitCode> {
    let args = match Args::parse(words) {
        Ok(args) => args,
        Err(Usage(why)) => {
            eprintln!("headend trace diff: {why}");
            return Ok(ExitCode::from(2));
        }
    };
    if args.help {
        io::stdout().write_all(HELP.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    diff(&args)
}

fn diff(args: &Args) -> Result<ExitCode> {
    let mut captures = match &args.files[..] {
        [one] => {
            let [a, b] = read::interfaces(one)?;
            [Capture::open(one, Some(a))?, Capture::open(one, Some(b))?]
        }
        files => [
            Capture::open(&files[0], None)?,
            Capture::open(&files[1], None)?,
        ],
    };
    let one_clock = args.same_clock || args.files.len() == 1;
    let seed = RandomState::new().hash_one(0);
    let fit = read::align(&mut captures, seed).inspect_err(|_| {
        captures.iter().for_each(|capture| {
            capture.report_faults();
        });
    })?;
    let same = match args.files.len() {
        1 => None,
        _ => read::shift_of_copy(&captures)?,
    };
    let wait = args.wait.unwrap_or(Config::WAIT);
    let matcher = Matcher::new(Config {
        seed,
        wait,
        waiting_max: Config::WAITING_MAX,
        one_clock,
        one_file: args.files.len() == 1,
        differences: fit.aligned.differences,
        centre: fit.aligned.centre,
        first: fit.first,
    });
    let size = captures.iter().map(|capture| capture.size).sum();
    let progress = Progress::new(!args.quiet, size, false, 30.0);
    let table = args.parquet.as_ref().map(|path| {
        let table = table::Table::create(path);
        table.with_context(|| format!("cannot write {}", path.display()))
    });
    let mut kept = Kept::new(args.json, args.html.is_some(), table.transpose()?);
    let found = read::compare(&mut captures, fit.depth, matcher, &mut kept, &progress)?;
    progress.finish();
    kept.finish()?;
    // Both report their faults.
    let good = captures.each_ref().map(Capture::report_faults);
    read::report_losses(&captures, args.files.len());
    let compared = Compared {
        captures: &captures,
        found: &found,
        kept: &kept,
        same,
        one_clock,
        wait,
    };
    let mut text = String::new();
    match args.json {
        true => lines::write(&compared, &mut text),
        false => page::write(&compared, &mut text),
    }
    io::stdout().lock().write_all(text.as_bytes())?;
    if let Some(path) = &args.html {
        let page = picture::page(&compared).to_html();
        std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("headend: wrote {}", path.display());
    }
    Ok(match good {
        [true, true] => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
