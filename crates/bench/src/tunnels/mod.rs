//! `headend bench tunnels`: the cost in an LNS of setting up, holding and keeping alive tunnels. It
//! is compared with bare loops that receive and send the same datagrams, and with other LNSs. Start
//! with `course`.
//!
//! | file | contents |
//! |---|---|
//! | `plan`, `course` | the measurements, their lengths and their order |
//! | `setup` | tunnels set up 64 at a time: processor time and memory for each |
//! | `storm` | all SCCRQs at once |
//! | `hello` | HELLOs answered and originated, and idle tunnels |
//! | `server` | our LNS, and the counters of any measured process |
//! | `peers` | xl2tpd and l2tpns |
//! | `bare` | the bare loops |
//! | `run`, `sandbox`, `cores` | child processes, namespaces, binding to cores |
//! | `tables`, `goals`, `charts` | the report |

pub(super) mod bare;
mod charts;
mod course;
mod goals;
mod hello;
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
use super::harness::{Bench, Cores, RunDirectory, run, sandbox};
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
    /// Run in the namespaces of this process, and write the files here
    #[arg(long, value_name = "DIR", hide = true)]
    inside: Option<PathBuf>,
    #[command(flatten)]
    out: Out,
}

/// All results.
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
    /// Measurements that failed, and why.
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
    let place = args.inside.clone().unwrap_or_else(run::temporary);
    let directory = RunDirectory::new(place)?;
    if args.inside.is_some() {
        sandbox::ready(&directory)?;
    }
    let bench = Bench {
        directory,
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
        "The load generator is this program's own LAC, in the benchmark's process. The LNS or the bare loop is a separate process, started anew for each wave. Processor time is the scheduler's count for that process, in nanoseconds."
            .to_owned(),
        format!(
            "The LAC sets up {} tunnels at a time, each from its own address in 127.0.0.0/8. Waves of all kinds alternate. The table shows the median wave of {} (up to 1,000 tunnels), of {} (up to 10,000) or of {}. Above 60,000 tunnels, L2TPv2 uses two listen addresses, because its ids have 16 bits.",
            setup::WINDOW,
            plan.rounds(1_000),
            plan.rounds(10_000),
            plan.rounds
        ),
        "The bare loop receives with recvmmsg, answers with sendmmsg and waits with ppoll. For each tunnel, it receives two datagrams and sends two, of the same sizes and between the same addresses as the tunnels of that version. On loopback, the kernel counts the delivery of a datagram as the sender's time, not the receiver's."
            .into(),
        "Memory is the resident memory gained since before the first tunnel, counted page by page."
            .into(),
        format!(
            "Answered HELLOs: the LAC sends {} HELLOs per second, evenly spaced, over all tunnels in turn. The bare loop for answered HELLOs uses blocking recvfrom and sendto. The LNS and the bare loop are measured alternately; the table shows the median of {} measurements of each. Originated HELLOs: the HELLO interval makes the same number of HELLOs due per second. The bare loop for originated HELLOs sends the due datagrams every 8 ms and reads the replies. The table shows medians here too.",
            plan.hello_rate, plan.hello_rounds
        ),
        "In a storm, the LAC sends every SCCRQ before it reads the first answer. A tunnel is up when both ends report it as up; with another LNS, only our LAC's report counts."
            .into(),
    ];
    lines.push(if bench.cores.are_apart() {
        "The load generator runs on one core and the LNS or the bare loop on another; the cores are the same for all measurements.".into()
    } else {
        "The load generator and the LNS share the machine's only core.".into()
    });
    if !plan.peers.is_empty() {
        lines.push(
            "All measurements ran in separate network namespaces, as root in these namespaces. The other LNSs are Debian's builds with their default settings except for the addresses, and use L2TPv2."
                .into(),
        );
    }
    if cfg!(debug_assertions) {
        lines.push("This build is not optimised, so its figures are not valid.".into());
    }
    lines.extend(results.notes.iter().map(|note| format!("Note: {note}.")));
    lines
}
