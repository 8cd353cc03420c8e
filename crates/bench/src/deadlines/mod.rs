//! `headend bench deadlines`: how late a daemon keeps its deadlines under its heaviest load.
//!
//! A thousand idle BGP peers and fifty subscribers record the time between two messages of the daemon. A control client
//! records the time of its answers. Meanwhile, a table arrives, peers join, policies change, and subscribers connect
//! and disconnect. Start with `course`.
//!
//! | file | contents |
//! |---|---|
//! | `course` | the phases of a run |
//! | `subjects` | the daemons and their configurations |
//! | `watch`, `lines` | the observers: idle peers, the control client, subscribers |
//! | `feeder`, `joiners` | the load |
//! | `tables` | the report |

mod course;
mod feeder;
mod joiners;
mod lines;
mod subjects;
mod tables;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use lab::report::{CoreWitness, MachineInfo, Report};

use self::course::Phase;
use super::Out;
use super::harness::{Bench, sandbox};
use crate::bgp::daemons::{self, BgpProgram, Peer};
use crate::bgp::feed::{Feed, PREFIXES_MAX};

/// Measure how late deadlines are kept while the daemon does its heaviest work.
#[derive(Debug, clap::Args)]
pub(super) struct DeadlinesArgs {
    /// Other daemons to measure in the same run, in their own network namespace: frr, bird
    #[arg(long, value_name = "PEERS", value_delimiter = ',')]
    against: Vec<Peer>,
    /// Prefixes of the table [default: 1000000; quick: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(PREFIXES_MAX)))]
    prefixes: Option<u32>,
    /// Idle peers with a hold time of 3 s [default: 1000; quick: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    peers: Option<u32>,
    /// Peers that join at once [default: 200; quick: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=250))]
    joiners: Option<u32>,
    /// Tunnels and subscribers that come at once [default: 10000; quick: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=30_000))]
    subscribers: Option<u32>,
    /// Measure a small load, in half a minute
    #[arg(long)]
    quick: bool,
    /// Run in the namespaces of this process, and write the files here
    #[arg(long, value_name = "DIR", hide = true)]
    inside: Option<PathBuf>,
    #[command(flatten)]
    out: Out,
}

/// The sizes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    prefixes: u32,
    peers: u32,
    joiners: u32,
    subscribers: u32,
}

impl DeadlinesArgs {
    fn plan(&self) -> Plan {
        let usual = match self.quick {
            true => Plan {
                prefixes: 20_000,
                peers: 50,
                joiners: 10,
                subscribers: 200,
            },
            false => Plan {
                prefixes: 1_000_000,
                peers: 1_000,
                joiners: 200,
                subscribers: 10_000,
            },
        };
        Plan {
            prefixes: self.prefixes.unwrap_or(usual.prefixes),
            peers: self.peers.unwrap_or(usual.peers),
            joiners: self.joiners.unwrap_or(usual.joiners),
            subscribers: self.subscribers.unwrap_or(usual.subscribers),
        }
    }
}

/// Measures and publishes. Fails unless our daemon kept every session.
pub(super) fn run(args: &DeadlinesArgs) -> Result<ExitCode> {
    let (others, mut notes) = daemons::others(&args.against, None);
    let inside = args.inside.as_deref();
    if !others.is_empty() && inside.is_none() {
        return sandbox::outside();
    }
    let bench = Bench::with_others("deadlines", &notes, inside)?;
    let witness = CoreWitness::start();
    let plan = args.plan();
    let feed = Arc::new(Feed::new(plan.prefixes, feeder::ASN));
    let mut phases: Vec<Phase> = Vec::new();
    for program in std::iter::once(BgpProgram::Headend).chain(others) {
        match course::measure(&bench, &program, &plan, &feed) {
            Ok((measured, others)) => {
                phases.extend(measured);
                if let Some(percent) = others {
                    notes.push(format!(
                        "{program}: other processes used {percent:.1} % of the cores"
                    ));
                }
            }
            Err(error) => notes.push(format!("{program}: {error:#}")),
        }
    }
    bench.bar.finish_and_clear();
    bench.cores.leave();
    let mut report = Report::new("deadlines", MachineInfo::read_with(witness));
    report.method = method(&bench, &plan, &notes);
    report.tables = tables::all(&plan, &phases);
    args.out.publish(&report)?;
    let ours = phases.iter().filter(|phase| phase.program == "headend");
    let is_whole =
        |phase: &Phase| phase.peers.lost == 0 && phase.joined.is_none_or(|joined| joined.lost == 0);
    let (count, whole) = (
        ours.clone().count(),
        ours.filter(|phase| is_whole(phase)).count(),
    );
    Ok(if count > 0 && count == whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn method(bench: &Bench, plan: &Plan, notes: &[String]) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{} idle peers have a hold time of 3 s. They send a KEEPALIVE each second, and expect one. They are sent no routes. A thread of high priority reads them and notes the longest time between two messages of a session; times that still run at the end of a phase count.",
            plan.peers
        ),
        format!(
            "A feeder announces {} prefixes, six to an attribute set on average. {} joiners connect at once; each reads until it has every prefix. Soft-in: the daemon asks the feeder for the table again. Policy reload: SIGHUP after the feeder's import policy has changed.",
            plan.prefixes, plan.joiners
        ),
        format!(
            "Fifty subscribers of our daemon note the time between two LCP Echo-Requests of a session, and fifty tunnels without sessions the time between two HELLOs; both are due each second. {} more come at once, each through its own tunnel; their LAC then vanishes. As many come through one tunnel, which their LAC closes.",
            plan.subscribers
        ),
        "A control client asks show event cpu over a new connection, 10 ms after each answer. A phase ends when the daemon has used less than a fifth of its core for a second; its idle time is part of the phase."
            .to_owned(),
        "A handler's wall time runs from its start to its end. Its CPU time is the time of these in which the thread ran. Only calls of more than 5 ms are listed."
            .to_owned(),
    ];
    lines.push(if bench.cores.are_apart() {
        "The daemon runs on one core, all observers and loads on another.".into()
    } else {
        "The daemon and the load share the machine's only core.".into()
    });
    if cfg!(debug_assertions) {
        lines.push("This build is not optimised, so its figures are not valid.".into());
    }
    lines.extend(notes.iter().map(|note| format!("Note: {note}.")));
    lines
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: DeadlinesArgs,
    }

    #[test]
    fn the_full_load_is_the_published_one_and_a_quick_one_is_small() {
        let plan = |line: &[&str]| Line::try_parse_from(line).unwrap().args.plan();
        let full = plan(&["deadlines"]);
        assert_eq!((full.prefixes, full.peers), (1_000_000, 1_000));
        assert_eq!((full.joiners, full.subscribers), (200, 10_000));
        let quick = plan(&["deadlines", "--quick", "--joiners", "3"]);
        assert_eq!((quick.prefixes, quick.joiners), (20_000, 3));
    }
}
