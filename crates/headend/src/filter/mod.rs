//! `headend filter`: the rules of subscribers' filters. docs/filter.md is the page.
//!
//! | module | what it is |
//! |---|---|
//! | `check` | what is wrong or unwise in a file of filters |
//! | `explain` | which rule decides on a packet, and why |
//! | `question` | the packet that is asked about: words, octets, or one of a capture |

mod check;
mod explain;
mod question;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;
use filter::Names;

/// Filters: check a file of rules, ask what becomes of a packet.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Say what is wrong or unwise in a file of filters
    Check(check::Args),
    /// Say which rule decides on a packet, and why those before it do not
    Explain(explain::Args),
}

/// Does what the command line says.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let done = match &args.verb {
        Verb::Check(args) => check::run(args),
        Verb::Explain(args) => explain::run(args),
    };
    match done {
        Err(error) if !crate::cli::is_broken_pipe(&error) => {
            eprintln!("headend filter: {error:#}");
            Ok(ExitCode::from(2))
        }
        done => done,
    }
}

/// The names of protocols and services on this machine, from files that are read here and nowhere else. Where there are
/// none, the well-known names remain.
pub(crate) fn names() -> Names {
    let [protocols, services] = ["/etc/protocols", "/etc/services"].map(|path| {
        let text = text_of(Path::new(path));
        text.unwrap_or_default()
    });
    Names::read(&protocols, &services)
}

/// Octets of the longest file that is read.
const FILE_MAX: u64 = 64 << 20;

/// The text of a file.
pub(crate) fn text_of(path: &Path) -> Result<String> {
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
