//! `headend qos`: the operator's policy file and the queues of interfaces. docs/qos.md is the page.
//!
//! | module | what it is |
//! |---|---|
//! | `check` | what is wrong or unwise in a policy |
//! | `graph` | trees of queues as text, pictures and pages |
//! | `system` | what Linux says of an interface |
//!
//! Exit status: 0 done, 2 something was wrong.

mod check;
mod graph;
mod system;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;

/// Queues: check a policy, draw trees.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Say what is wrong or unwise in a policy file
    Check(check::Args),
    /// Draw the queues of a policy or of an interface, each discipline, class and filter once
    Graph(graph::Args),
}

/// Does what the command line says.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let done = match &args.verb {
        Verb::Check(args) => check::run(args),
        Verb::Graph(args) => graph::run(args),
    };
    match done {
        Err(error) if !crate::cli::is_broken_pipe(&error) => {
            eprintln!("headend qos: {error:#}");
            Ok(ExitCode::from(2))
        }
        done => done,
    }
}

/// Octets of the longest file that is read.
const FILE_MAX: u64 = 64 << 20;

/// The text of a file.
fn text_of(path: &Path) -> Result<String> {
    use std::io::Read;
    let mut octets = Vec::new();
    let name = || path.display().to_string();
    let file = std::fs::File::open(path).with_context(name)?;
    file.take(FILE_MAX + 1)
        .read_to_end(&mut octets)
        .with_context(name)?;
    anyhow::ensure!(
        octets.len() as u64 <= FILE_MAX,
        "{}: is longer than 64 MiB",
        path.display()
    );
    String::from_utf8(octets).with_context(|| format!("{}: is not text", path.display()))
}
