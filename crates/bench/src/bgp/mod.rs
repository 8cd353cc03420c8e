//! `headend bench bgp`: what sessions and tables cost a BGP daemon, compared with bare loops over
//! as many TCP connections, and with other daemons. The load generators have no code in common with
//! the daemon's codec. Start with `course`.
//!
//! | file | contents |
//! |---|---|
//! | `plan`, `course` | what is measured for how long, and in which order |
//! | `passive` | idle established sessions, and many sessions that come up at once |
//! | `mesh` | a full mesh over TCP, of many processes or one |
//! | `emulated` | a full mesh in memory, and a hijack over a graph of autonomous systems |
//! | `relay` | a table from a feeder to a sink, and its withdrawal |
//! | `daemons` | the subjects, each with its configuration |
//! | `bare` | the bare loops |
//! | `octets`, `session`, `load`, `feed`, `usage` | the load generators |
//! | `tables`, `goals`, `charts` | the report |

pub(super) mod bare;
mod charts;
mod course;
mod daemons;
pub(super) mod emulated;
mod feed;
mod goals;
mod load;
pub(super) mod mesh;
mod octets;
mod passive;
mod plan;
mod relay;
mod session;
mod tables;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use lab::plot::number::grouped;
use lab::report::{CoreWitness, MachineInfo, Report};

use self::daemons::{Peer, Who};
use self::emulated::{Hijacked, InMemory};
use self::mesh::Meshed;
use self::passive::{Kept, Risen};
use self::plan::{Part, Plan};
use self::relay::Passed;
use super::Out;
use super::harness::{Bench, sandbox};
use crate::harness::cores::Cores;
use crate::harness::home::{Home, temporary};
use cli::progress::spinner;

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
    /// The namespaces are made, and the files go here
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
    /// What could not be measured, and why.
    notes: Vec<String>,
}

/// Measures and publishes. Fails unless every session of ours came up and stayed up, and every
/// prefix arrived.
pub(super) fn run(args: &BgpArgs) -> Result<ExitCode> {
    let (others, missing) = daemons::others(&args.against, args.frr.as_deref());
    if !others.is_empty() && args.inside.is_none() {
        return sandbox::outside();
    }
    for note in &missing {
        eprintln!("headend: {note}");
    }
    let home = Home::new(args.inside.clone().unwrap_or_else(temporary))?;
    if args.inside.is_some() {
        home.end_with_stdin();
        sandbox::ip("link set lo up")?;
    }
    let bench = Bench {
        home,
        cores: Cores::take(),
        bar: spinner("bgp"),
    };
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

fn method(bench: &Bench, plan: &Plan, others: &[Who], results: &Results) -> Vec<String> {
    let mut lines = vec![
        "The load is the benchmark's own process, which speaks BGP with octets of its own and none of this program's codec; who is measured is a process of its own, new for each measurement, that takes any peer of 127.0.0.0/8 and accepts and passes on all routes. Processor time is the scheduler's account of all its threads, in nanoseconds; memory is counted page by page."
            .to_owned(),
        format!(
            "Passive peers: each has a TCP connection from an address of its own, a hold time of 3 s, and a KEEPALIVE per second in both directions. They start one after another over at least 2 s, so that the timers of both sides are spread; the measurement takes {} s and starts 2 s after the last. The bare loop waits with epoll and returns every message, so it reads and writes as many KEEPALIVEs; its memory per peer is that of its table of descriptors.",
            plan.keep.as_secs_f64()
        ),
        "Peers at once: every connection is started before the first reply is read, with a hold time of 90 s; the time is from the first connect to the last session confirmed by the other side's KEEPALIVE. If a daemon's listen backlog is short, the kernel retries after a second, which counts as the daemon's time."
            .into(),
        "Table: a feeder and a sink in ASes of their own. All messages are encoded in advance; the time is from the feeder's first byte to the last prefix at the sink, which counts each prefix once; then the whole table is withdrawn. A set has an AS path of three to six, up to eight communities, a MED in a quarter, and one to eighteen prefixes, six in the mean. The bare loop passes on the same bytes. Memory is the peak of the process."
            .into(),
        format!(
            "Full mesh: a TCP connection between each two routers, each router with an address of its own, KEEPALIVEs each second, hold time 3 s, on all cores; once all connections are there and 4 s later, {} s are measured. What is up and what was lost is read off the kernel's table of connections: an endpoint is lost when its connection is no longer the same one. The bare loops are pairs of processes, with a timer and epoll, over as many connections.",
            plan.keep.as_secs_f64()
        ),
        format!(
            "Routers in memory: a full mesh in one process, of real state machines and real octets, links of 1 ms, KEEPALIVEs each second, hold time 3 s. Once all sessions are up and 2 s later, {} s of virtual time are run as fast as they go, then {} s at the machine's pace, on one core. Memory is resident memory gained since before the first router. The hijack is over a random graph of customers, peers and providers, links of 20 to 30 ms: the owner announces its prefix after 2 s, the hijacker the same after 5 s; wall time is of all of it, graph and sessions included.",
            plan.virtual_s,
            plan.keep.as_secs_f64()
        ),
        format!(
            "Tables and peers at once are measured {} times where one takes less than 3 s, and the report has the one of median time.",
            plan.rounds
        ),
    ];
    lines.push(if bench.cores.are_apart() {
        "The load is on one core and who is measured on another, the same ones for all; a daemon with threads shares its core among them.".into()
    } else {
        "There is one core, which load and daemon share.".into()
    });
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(ToString::to_string).collect();
        lines.push(format!(
            "All of it ran in namespaces of its own, as root in them. {}: FRR without zebra, BIRD without a kernel table, each else as it comes but for the peers and, at FRR, an advertisement interval of 0 s; FRR gathers routes for a second before it sends any (coalesce-time).",
            names.join(", ")
        ));
    }
    if cfg!(debug_assertions) {
        lines.push("This is a build without optimisation: its figures say nothing.".into());
    }
    lines.extend(results.notes.iter().map(|note| format!("Note: {note}.")));
    lines
}

/// A number with thousands separators.
fn whole(n: u32) -> String {
    grouped(n.into(), 0)
}
