//! `headend filter`: the rules of subscribers' filters. docs/filter.md is the page.
//!
//! | module | what it is |
//! |---|---|
//! | `check` | what is wrong or unwise in a file of filters |
//! | `explain` | which rule decides on a packet, and why |
//! | `question` | the packet that is asked about: words, octets, or one of a capture |
#![forbid(unsafe_code)]

mod check;
mod explain;
mod question;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use filter::Names;

/// Filters: check a file of rules, ask what becomes of a packet.
#[derive(Debug, clap::Args)]
pub struct Args {
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
pub fn run(args: &Args) -> Result<ExitCode> {
    let done = match &args.verb {
        Verb::Check(args) => check::run(args),
        Verb::Explain(args) => explain::run(args),
    };
    cli::or_exit_2("filter", done)
}

/// The names of protocols and services on this machine. Where it has none, the well-known names remain.
fn names() -> Names {
    let [protocols, services] = settings::network_names();
    Names::read(&protocols, &services)
}
