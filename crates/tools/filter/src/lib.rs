//! `headend filter`: the rules of subscribers' filters. docs/filter.md is the page.
//!
//! | module | purpose |
//! |---|---|
//! | `check` | faults and unwise rules in a file of filters |
//! | `explain` | which rule decides on a packet, and why |
//! | `question` | the packet in question: words, bytes, or a packet of a capture |
#![forbid(unsafe_code)]

mod check;
mod explain;
mod question;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use filter::Names;

/// Check a file of filter rules, and find the rule that decides on a packet.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Report faults and unwise rules in a file of filters
    Check(check::Args),
    /// Show which rule decides on a packet, and why the rules before it do not match
    Explain(explain::Args),
}

/// Runs the command.
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
