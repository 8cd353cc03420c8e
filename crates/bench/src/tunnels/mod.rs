//! `headend bench tunnels`: the cost in an LNS of setting up, holding and keeping alive tunnels. It
//! is compared with bare loops that receive and send the same datagrams, and with other LNSs. Start
//! with `course`.
//!
//! | file | contents |
//! |---|---|
//! | `plan`, `course` | what is measured for how long, and in which order |
//! | `setup` | tunnels set up 64 at a time: processor time and memory for each |
//! | `storm` | all SCCRQs at once |
//! | `hello` | HELLOs answered and originated, and idle tunnels |
//! | `server` | our LNS, and the counters of any measured process |
//! | `peers` | xl2tpd and l2tpns |
//! | `bare`, `load` | the bare loops, and their load |
//! | `home`, `sandbox`, `cores` | child processes, namespaces, binding to cores |
//! | `tables`, `goals`, `charts` | the report |

pub(super) mod bare;
mod charts;
mod course;
mod goals;
mod hello;
mod load;
mod peers;
mod plan;
pub(super) mod setup;
mod storm;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use lab::report::{CoreWitness, MachineInfo, Report};

use self::hello::{Hello, Idle};
use self::peers::Peer;
use self::plan::Plan;
use self::setup::SetUp;
use self::storm::Storm;
use super::Out;
use super::harness::{Bench, Cores, Home, home, sandbox};
use cli::progress::spinner;

/// Measure what tunnels cost an LNS, beside bare loops and other LNSs.
#[derive(Debug, clap::Args)]
pub(super) struct TunnelsArgs {
    /// Other LNSs to measure in the same run, in their own network namespace: xl2tpd, l2tpns
    #[arg(long, value_name = "PEERS", value_delimiter = ',')]
    against: Vec<Peer>,
    /// Numbers of tunnels
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=250_000))]
    sizes: Vec<u32>,
    /// Measure with a few hundred tunnels, in a few seconds
    #[arg(long)]
    quick: bool,
    /// The namespaces are made, and the files go here
    #[arg(long, value_name = "DIR", hide = true)]
    inside: Option<PathBuf>,
    #[command(flatten)]
    out: Out,
}

/// All that was measured.
#[derive(Debug, Default)]
struct Results {
    /// Results of our LNS and the bare loop.
    set_ups: Vec<SetUp>,
    storms: Vec<Storm>,
    answered: Vec<Hello>,
    originated: Vec<Hello>,
    idle: Vec<Idle>,
    /// Results of our LNS and the peers, at the peers' sizes.
    against: Vec<SetUp>,
    against_hello: Vec<Hello>,
    /// What could not be measured, and why.
    notes: Vec<String>,
}

/// Measures and publishes. Fails unless every tunnel of ours came up.
pub(super) fn run(args: &TunnelsArgs) -> Result<ExitCode> {
    let mut plan = args.plan();
    let missing: Vec<String> = plan.peers.iter().filter_map(|p| p.missing()).collect();
    plan.peers.retain(|peer| peer.missing().is_none());
    if !plan.peers.is_empty() && args.inside.is_none() {
        return sandbox::outside();
    }
    for note in &missing {
        eprintln!("headend: {note}");
    }
    let directory = args.inside.clone().unwrap_or_else(home::temporary);
    let home = Home::new(directory)?;
    if args.inside.is_some() {
        sandbox::ready(&home)?;
    }
    let bench = Bench {
        home,
        cores: Cores::take(),
        bar: spinner("tunnels"),
    };
    let witness = CoreWitness::start();
    let mut results = Results {
        notes: missing,
        ..Results::default()
    };
    course::measure(&bench, &plan, &mut results)?;
    bench.bar.finish_and_clear();
    bench.cores.leave();
    let mut report = Report::new("tunnels", MachineInfo::read_with(witness));
    report.method = method(&bench, &plan, &results);
    report.tables = tables::all(&results);
    report.charts = charts::all(&results);
    args.out.publish(&report)?;
    Ok(if goals::all_came_up(&results) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn method(bench: &Bench, plan: &Plan, results: &Results) -> Vec<String> {
    let mut lines = vec![
        "The load is this program's own LAC, in the benchmark's process; who answers is a process of its own, new for each wave. Processor time is the scheduler's account of that process, in nanoseconds."
            .to_owned(),
        format!(
            "Tunnels are set up {} at a time, each from an address of its own in 127.0.0.0/8; waves of the kinds take turns, and the table has the median one of {} (to 1,000 tunnels), {} (to 10,000) or {}. L2TPv2 above 60,000 tunnels goes to two listen addresses, because its ids have 16 bits.",
            setup::WINDOW,
            plan.rounds(1_000),
            plan.rounds(10_000),
            plan.rounds
        ),
        "The bare loop receives with recvmmsg, answers with sendmmsg and waits with ppoll: two datagrams in and two out for a tunnel, of the sizes and between the addresses that the tunnels of that version have. What the sender pays for delivery on loopback, the receiver does not."
            .into(),
        "Memory is resident memory gained since before the first tunnel, counted page by page."
            .into(),
        format!(
            "Answered HELLOs arrive one by one, {} per second evenly spaced, over all tunnels in turn. Their bare loop uses blocking recvfrom and sendto; both are measured in turn, and the table has the median of {} measurements each. Originated HELLOs have an interval at which as many are due per second; their bare loop sends the due datagrams every 8 ms and reads the replies. The table has the medians here too.",
            plan.hello_rate, plan.hello_rounds
        ),
        "A storm is every SCCRQ sent before the first answer is read. A tunnel is up when both ends say so; a peer is taken by our end's word."
            .into(),
    ];
    lines.push(if bench.cores.are_apart() {
        "The load is on one core and who answers on another, the same ones for all.".into()
    } else {
        "There is one core, which load and server share.".into()
    });
    if !plan.peers.is_empty() {
        lines.push(
            "All of it ran in network namespaces of its own, as root in them. Peers are as Debian builds them, with their configuration as it comes but for addresses, over L2TPv2."
                .into(),
        );
    }
    if cfg!(debug_assertions) {
        lines.push("This is a build without optimisation: its figures say nothing.".into());
    }
    lines.extend(results.notes.iter().map(|note| format!("Note: {note}.")));
    lines
}
