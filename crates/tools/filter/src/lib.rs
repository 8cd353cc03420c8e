//! `headend filter`: tools for subscribers' filter rules. docs/filter.md describes the rules; the
//! `filter` crate implements them.
//!
//! | module | contents |
//! |---|---|
//! | `check` | reports faults in a file of filters, and advice |
//! | `explain` | reports which rule decides on a packet, and why |
//! | `question` | parses the packet asked about: words, bytes, or one of a capture |
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
pub struct FilterArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Report faults and unwise rules in a file of filters
    Check(check::FilterCheckArgs),
    /// Show which rule decides on a packet, and why the rules before it do not match
    Explain(explain::FilterExplainArgs),
}

/// Runs the subcommand.
pub fn run(args: &FilterArgs) -> Result<ExitCode> {
    let done = match &args.verb {
        Verb::Check(args) => check::run(args),
        Verb::Explain(args) => explain::run(args),
    };
    cli::or_exit_2("filter", done)
}

/// The names of protocols and services on this machine. If it has none, the well-known names
/// remain.
fn names() -> Names {
    let [protocols, services] = settings::network_names();
    Names::read(&protocols, &services)
}
