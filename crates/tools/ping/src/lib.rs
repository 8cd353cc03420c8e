//! `headend ping`: several ping streams at once, whose results can be saved and compared.
//!
//! | module | purpose |
//! |---|---|
//! | `low`, `hi` | the flags, and the plan made of them |
//! | `spec`, `streams` | the settings of one stream, and a file of streams |
//! | `resolve` | hosts to addresses, streams to a plan |
//! | `sockets`, `packets` | the socket of each stream; composing packets and matching replies to streams |
//! | `engine`, `collect` | the event loop: sends packets when due; records replies and transmit times |
//! | `paper`, `screen` | ping's text, and the live view on a terminal, each with its own thread |
//! | `save`, `files` | result files: plain, gzip, zstd; each written completely or not at all |
//! | `plots`, `draw`, `words` | values of `--plot`; results as charts; labels of streams |
//! | `show`, `compare` | `headend ping show` |
//! | `respond`, `serve` | `headend ping --responder`, and the load service beside it (`--load`) |
//! | [`background`] | an experiment as a thread of another command |
//!
//! Exit status: 0 every stream got a reply, 1 some stream got none, 2 error.
#![forbid(unsafe_code)]

pub mod background;
mod collect;
mod compare;
mod draw;
mod engine;
pub mod files;
mod hi;
mod low;
mod packets;
mod paper;
mod plots;
pub mod resolve;
mod respond;
pub mod save;
mod screen;
pub mod serve;
mod show;
mod sockets;
pub mod spec;
mod streams;
mod words;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use ping::{Outcome, text};

use collect::Wishes;
use engine::Engine;
use hi::{HiArgs, Task, View};
pub use low::Args;
use paper::Paper;
use plots::Files;

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let done = match HiArgs::new(args) {
        Ok(HiArgs::Ping(task)) => measure(*task),
        Ok(HiArgs::Respond(address, load)) => respond::run(address, load),
        Ok(HiArgs::Show(show)) => show::run(show),
        Err(error) => Err(error),
    };
    done.or_else(|error| {
        if cli::is_broken_pipe(&error) {
            return Err(error);
        }
        eprintln!("headend ping: {error:#}");
        Ok(ExitCode::from(2))
    })
}

/// Runs the streams, and prints and saves the result.
fn measure(task: Task) -> Result<ExitCode> {
    let wishes = Wishes::new()?;
    let files = Files::open(task.output.as_deref(), &task.plots)?;
    let paper = Paper::start(matches!(task.view, View::Text | View::Quiet))?;
    let mut engine = Engine::new(&task, wishes, paper)?;
    engine.open()?;
    let ended = engine.run();
    let (outcome, paper) = engine.finish();
    // The result is saved even after an error; the first error is reported.
    let kept = files.write(&[("", &outcome)]);
    let printed = print(&task, &outcome, paper).context("cannot print");
    ended.and(kept).and(printed)?;
    Ok(match outcome.all_answered() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

fn print(task: &Task, outcome: &Outcome, paper: Paper) -> Result<()> {
    paper.finish()?;
    let mut out = BufWriter::new(io::stdout().lock());
    if task.view == View::Json {
        serde_json::to_writer(&mut out, &compare::summary(outcome)).map_err(io::Error::from)?;
        writeln!(out)?;
    } else if task.view == View::Csv {
        writeln!(out, "{}", text::CSV_HEAD)?;
        for stream in &outcome.streams {
            text::csv(stream, "", &mut out)?;
        }
    } else {
        for stream in &outcome.streams {
            write!(
                out,
                "\n{}",
                text::closing(&stream.plan.name, &stream.summary)
            )?;
        }
    }
    out.flush()?;
    let (kept, sent) = outcome.streams.iter().fold((0, 0), |(kept, sent), stream| {
        (
            kept + stream.kept() as u64,
            sent + stream.summary.transmitted,
        )
    });
    if kept < sent {
        eprintln!(
            "headend ping: the samples of {kept} of {sent} packets were kept (--samples); all were counted"
        );
    }
    Ok(())
}

/// Whether standard output is a terminal.
fn is_watched() -> bool {
    io::stdout().is_terminal()
}
