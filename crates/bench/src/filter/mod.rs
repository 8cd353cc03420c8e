//! `headend bench filter`: the cost of a packet in a subscriber's filter, and the cost of names in
//! log lines.
//!
//! | module | contents |
//! |---|---|
//! | `rules` | rules of many kinds, and packets that match them |
//! | `speed` | nanoseconds per packet against the number of rules |
//! | `lookups` | the filter of 2004 that opens a file per packet, its fix, and ours |

pub(super) mod lookups;
mod rules;
mod speed;

use std::process::ExitCode;

use anyhow::Result;
use base::Duration;
use lab::history::chapter_filter;
use lab::report::{CoreWitness, MachineInfo, Report};

use super::Out;
use cli::progress::spinner;

/// Measure filters against their rules, and the names of log lines.
#[derive(Debug, clap::Args)]
pub(super) struct FilterArgs {
    /// Measure each only briefly
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    out: Out,
}

/// Measures and publishes.
pub(super) fn run(args: &FilterArgs) -> Result<ExitCode> {
    let (repeat, rounds) = match args.quick {
        true => (Duration::from_millis(2), lookups::Rounds::QUICK),
        false => (Duration::from_millis(100), lookups::Rounds::FULL),
    };
    let witness = CoreWitness::start();
    let bar = spinner("filter");
    let measured = speed::measure(repeat, &mut |what| bar.set_message(what))?;
    bar.set_message("names of log lines");
    let lookups = lookups::measure(rounds)?;
    bar.finish_and_clear();
    let chapter = chapter_filter(&lookups.runs, lookups.call_ns, lookups.system_call_ns);
    let mut report = Report::new("filter", MachineInfo::read_with(witness));
    report.method = speed::method(repeat);
    report.method.extend(chapter.method);
    report.method.push(rounds.method());
    report.tables = vec![speed::table(&measured)];
    report.tables.extend(chapter.tables);
    report.charts = vec![speed::chart(&measured).into()];
    report.charts.extend(chapter.charts);
    args.out.publish(&report)?;
    println!(
        "\n{}: {}\n{}",
        chapter.title,
        chapter.verdict.outcome.words(),
        chapter.verdict.why()
    );
    Ok(ExitCode::SUCCESS)
}
