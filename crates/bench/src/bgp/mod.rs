//! `headend bench bgp`: what sessions and tables cost a BGP daemon, compared with bare loops over
//! as many TCP connections, and with other daemons. The load generators have no code in common with
//! the daemon's codec. Start with `course`.
//!
//! | file | contents |
//! |---|---|
//! | `plan`, `course` | the measurements, their lengths and their order |
//! | `passive` | idle established sessions, and many sessions that come up at once |
//! | `mesh` | a full mesh over TCP, of many processes or one |
//! | `emulated` | a full mesh in memory, and a hijack over a graph of autonomous systems |
//! | `relay` | a table from a feeder to a sink, and its withdrawal |
//! | `daemons` | the subjects, each with its configuration |
//! | `commands` | the command lines that `daemons` and `mesh` share |
//! | `bare` | the bare loops |
//! | `octets`, `session`, `load`, `feed`, `usage` | the load generators |
//! | `tables`, `goals`, `charts` | the report |

pub(super) mod bare;
mod charts;
pub(super) mod commands;
mod course;
pub(super) mod daemons;
pub(super) mod emulated;
pub(super) mod feed;
mod goals;
pub(super) mod load;
pub(super) mod mesh;
pub(super) mod octets;
mod passive;
mod plan;
mod relay;
pub(super) mod session;
mod tables;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use lab::plot::number::grouped;
use lab::report::{CoreWitness, MachineInfo, Report};

use self::daemons::{BgpProgram, Peer};
use self::emulated::{Hijacked, InMemory};
use self::mesh::Meshed;
use self::passive::{Kept, Risen};
use self::plan::{Part, Plan};
use self::relay::Passed;
use super::Out;
use super::harness::{Bench, sandbox};

/// Measure what sessions and tables cost a BGP daemon, beside bare loops and other daemons.
#[derive(Debug, clap::Args)]
pub(super) struct BgpArgs {
    /// Other daemons to measure in the same run, in their own network namespace: frr, bird, gobgp
    #[arg(long, value_name = "PEERS", value_delimiter = ',')]
    against: Vec<Peer>,
    /// The bgpd of another FRR version, to measure too
    #[arg(long, value_name = "FILE")]
    frr: Option<PathBuf>,
    /// Measure only these parts
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    only: Vec<Part>,
    /// Numbers of passive peers
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=15_000))]
    sizes: Vec<u32>,
    /// Numbers of prefixes
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=i64::from(feed::PREFIXES_MAX)))]
    prefixes: Vec<u32>,
    /// Numbers of routers of a mesh
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=1_000))]
    routers: Vec<u32>,
    /// Numbers of autonomous systems in the hijack
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(50..=100_000))]
    systems: Vec<u32>,
    /// Measure with few peers and prefixes, in a few seconds
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
    kept: Vec<Kept>,
    risen: Vec<Risen>,
    passed: Vec<Passed>,
    meshed: Vec<Meshed>,
    in_memory: Vec<InMemory>,
    hijacked: Vec<Hijacked>,
    /// Measurements that failed, and why.
    notes: Vec<String>,
}

/// Measures and publishes. Fails unless every session of ours came up and stayed up, and every
/// prefix arrived.
pub(super) fn run(args: &BgpArgs) -> Result<ExitCode> {
    let (others, missing) = daemons::others(&args.against, args.frr.as_deref());
    let inside = args.inside.as_deref();
    if !others.is_empty() && inside.is_none() {
        return sandbox::outside();
    }
    let bench = Bench::with_others("bgp", &missing, inside)?;
    let witness = CoreWitness::start();
    let plan = args.plan();
    let mut results = Results {
        notes: missing,
        ..Results::default()
    };
    course::measure(&bench, &plan, &others, &mut results);
    bench.bar.finish_and_clear();
    bench.cores.leave();
    let mut report = Report::new("bgp", MachineInfo::read_with(witness));
    report.method = method(&bench, &plan, &others, &results);
    report.tables = tables::all(&results);
    report.charts = charts::all(&results);
    args.out.publish(&report)?;
    Ok(if goals::all_is_whole(&plan, &results) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn method(bench: &Bench, plan: &Plan, others: &[BgpProgram], results: &Results) -> Vec<String> {
    let mut lines = vec![
        "The load generator is the benchmark's own process; it has its own BGP encoder and shares no code with this program's codec. The measured daemon is a separate process, started anew for each measurement. It accepts any peer from 127.0.0.0/8, and imports and exports all routes. Processor time is the scheduler's count for all threads of the daemon, in nanoseconds. Memory is counted page by page."
            .to_owned(),
        format!(
            "Passive peers: each peer has a TCP connection from its own address, a hold time of 3 s, and one KEEPALIVE per second in each direction. The peers connect one after another over at least 2 s, so that the timers of both sides are spread. The measurement starts 2 s after the last session and takes {} s. The bare loop waits with epoll and echoes every message, so it reads and writes the same number of KEEPALIVEs. Its memory per peer is an entry in its table of connections.",
            plan.keep.as_secs_f64()
        ),
        "Peers at once: the load generator starts every connection before it reads the first reply; the hold time is 90 s. The time runs from the first connect until the daemon's KEEPALIVE has confirmed the last session. If a daemon's listen backlog is short, the kernel retries the connection after a second; this second counts as the daemon's time."
            .into(),
        "Table: the feeder and the sink each have their own AS. All messages are encoded in advance. The time runs from the feeder's first byte until the last prefix is at the sink, which counts each prefix once. Then the feeder withdraws the whole table. An attribute set has an AS path of three to six AS numbers and up to eight communities; a quarter of the sets have a MED. One to eighteen prefixes share a set, six on average. The bare loop forwards the same bytes. Memory is the peak of the daemon's process."
            .into(),
        format!(
            "Full mesh: each pair of routers has a TCP connection, and each router has its own address. The routers send KEEPALIVEs every second, have a hold time of 3 s, and may use all cores. The measurement starts 4 s after the last connection and takes {} s. For all subjects alike, the kernel's table of connections shows which session ends are up or lost. A session end is lost if its connection has gone or was replaced by another. The bare loops are pairs of processes with a timer and epoll, over the same number of connections.",
            plan.keep.as_secs_f64()
        ),
        format!(
            "Routers in memory: one process emulates a full mesh with real state machines and encoded messages, over links of 1 ms. KEEPALIVEs are sent every second; the hold time is 3 s. The measurement starts 2 s after the last session is up. The emulation runs {} s of virtual time as fast as possible, then {} s in real time, on one core. Memory is the resident memory gained since before the first router. The hijack runs over a random graph of customers, peers and providers, with links of 20 to 30 ms. The owner announces its prefix after 2 s, and the hijacker announces the same prefix after 5 s. The hijack's wall time covers the whole run, including the graph and the sessions.",
            plan.virtual_s,
            plan.keep.as_secs_f64()
        ),
        format!(
            "Tables, peers at once and the hijack are measured {} times if one measurement takes less than 3 s. The report shows the measurement of median time.",
            plan.rounds
        ),
    ];
    lines.push(if bench.cores.are_apart() {
        "The load generator runs on one core and the measured daemon on another; the cores are the same for all daemons. All threads of a daemon share its core.".into()
    } else {
        "The load generator and the daemon share the machine's only core.".into()
    });
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(ToString::to_string).collect();
        lines.push(format!(
            "All measurements ran in separate network namespaces, as root in these namespaces. Other daemons: {}. FRR runs without zebra, and BIRD without a kernel table. Otherwise each daemon has its default settings, except for the peers and, with FRR, an advertisement interval of 0 s. FRR gathers routes for a second before it sends any (coalesce-time).",
            names.join(", ")
        ));
    }
    if cfg!(debug_assertions) {
        lines.push("This build is not optimised, so its figures are not valid.".into());
    }
    lines.extend(results.notes.iter().map(|note| format!("Note: {note}.")));
    lines
}

/// A number with thousands separators.
fn whole(n: u32) -> String {
    grouped(n.into(), 0)
}
