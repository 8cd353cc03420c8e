//! `headend bench trace`: the cost of a packet and of a connection in `headend trace`, compared
//! with bare loops that read and parse the same captures, and with other analysers. Start with
//! `course`.
//!
//! | file | contents |
//! |---|---|
//! | `programs` | the programs that read a capture: ours, bare loops, tcptrace and tshark |
//! | `course` | what is measured, in which order |
//! | `child` | a measured process and its resource use |
//! | `store` | the captures, and the temporary directory |
//! | `tables`, `goals`, `charts` | the report |

mod charts;
pub(super) mod child;
mod course;
mod goals;
mod programs;
mod store;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use lab::captures::{Kind, SCALE_MAX, Scale};
use lab::report::{CoreWitness, MachineInfo, Report};

use self::course::{Course, Plan, Results};
use self::programs::Peer;
use self::store::CaptureStore;
use super::{Out, captures};
use cli::progress::spinner;

/// Measure what packets and connections cost `headend trace`, beside bare loops and other analysers.
#[derive(Debug, clap::Args)]
pub(super) struct TraceArgs {
    /// Other analysers to measure in the same run: tcptrace, tshark
    #[arg(long, value_name = "PEERS", value_delimiter = ',')]
    against: Vec<Peer>,
    /// The captures to measure with [default: all that `bench captures --list` prints]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = captures::kind)]
    only: Vec<&'static Kind>,
    /// Size of the captures, relative to the sizes that `bench captures --list` prints; twice and four times that size
    /// are measured too [default: 1]
    #[arg(long, value_name = "F", value_parser = factor)]
    scale: Option<f64>,
    /// Numbers of threads, in addition to one
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "2", value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: Vec<u32>,
    /// Number of runs of each short measurement; the median counts
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Time limit of another analyser for one capture, in seconds
    #[arg(long = "limit", value_name = "S", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    limit_s: u32,
    /// A directory that keeps the captures for later runs [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    captures: Option<PathBuf>,
    /// Measure captures of a few thousand packets once, in a few seconds
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    out: Out,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|&f| Scale::new(f).is_some());
    factor.ok_or_else(|| format!("a scale is a number above 0, at most {SCALE_MAX}"))
}

/// Measures and publishes. Fails if a requested program is missing.
pub(super) fn run(args: &TraceArgs) -> Result<ExitCode> {
    let plan = args.plan();
    let missing: Vec<String> = plan.peers.iter().filter_map(|p| p.missing()).collect();
    if !missing.is_empty() {
        bail!("{}", missing.join("\n"));
    }
    let store = CaptureStore::new(args.captures.as_deref())?;
    let bar = spinner("trace");
    let witness = CoreWitness::start();
    let mut course = Course {
        store: &store,
        bar: &bar,
        plan: &plan,
        results: Results::default(),
    };
    course.run()?;
    let results = course.results;
    bar.finish_and_clear();
    let mut report = Report::new("trace", MachineInfo::read_with(witness));
    report.method = method(&plan, &results);
    report.tables = tables::all(&plan, &results);
    report.charts = charts::all(&plan, &results);
    args.out.publish(&report)?;
    Ok(ExitCode::SUCCESS)
}

fn method(plan: &Plan, results: &Results) -> Vec<String> {
    let mut lines = vec![
        format!(
            "Each capture is written at {} times the size that `headend bench captures --list` tells, at twice and at four times that, and read once before anything is measured, so that it is in memory. Those of long connections grow by longer connections, the others by more of them.",
            plan.factor
        ),
        "Each measurement is a process of its own, started anew, its output thrown away; processor time (user and system) and the largest resident memory are the kernel's account of it, its start included. Packets per second are those of a second of processor time, so that others on the machine weigh less; of one thread, unless it says so."
            .into(),
        match plan.rounds {
            1 => "Each is measured once.".into(),
            rounds => format!(
                "Each figure is the median of {rounds} runs, those of a size taken in turn; what takes longer than 8 s is measured once."
            ),
        },
        "Reading alone and parsing alone are this program's own readers of files and headers in a loop: below them nothing that uses those can be."
            .into(),
        "Growth is the exponent of processor time against packets, fitted over the sizes: 1 is a packet that costs the same however long the capture is."
            .into(),
        "Memory of a connection is the largest resident memory, less that with a capture of one connection, divided by all connections of the capture."
            .into(),
        "Graphs are written to the directory for temporary files. They are not asked for where there are very many connections, since each has two files.".into(),
    ];
    if plan.factor < 1.0 {
        lines.push("What is to be reached is meant for captures at scale 1: on smaller ones, starting the program weighs.".into());
    }
    if !plan.peers.is_empty() {
        let peers: Vec<String> = plan.peers.iter().map(|peer| peer.line()).collect();
        lines.push(format!(
            "The others run as {}, ours beside them with its report of one line a connection. They are measured at rising sizes, from a 64th up, until one takes longer than {} s or twice the size would, by its growth so far; what is marked as extrapolated follows from the largest size that ended and the growth over the last three, taken as 2 at most.",
            peers.join(" and "),
            plan.peer_limit.as_secs()
        ));
    }
    if plan.peers.contains(&Peer::Tshark) {
        lines.push(
            "tshark dissects every protocol that it knows and its TCP dissector analyses sequence numbers; the list of conversations is the report of its that is nearest to a line a connection, and asks for nothing more."
                .into(),
        );
    }
    if cfg!(debug_assertions) {
        lines.push("This build is not optimised, so its figures are not valid.".into());
    }
    lines.extend(results.notes.iter().map(|note| format!("Note: {note}.")));
    lines
}
