//! `headend bench`: benchmarks that compare this program with bare loops, with other programs or
//! with published results. Each prints text and writes JSON, CSV and SVG files.
//!
//! To read one benchmark, start with its module head.
//!
//! | module | subject |
//! |---|---|
//! | `timers` | the cost of a timer in each store |
//! | `poll` | the cost of a wait with each poller |
//! | `bringup` | number of tunnels against time, for the published benchmark's builds and for ours |
//! | `tunnels` | the cost of a tunnel in an LNS, beside bare loops and other LNSs |
//! | `subscribers` | the cost of a subscriber in an LNS from nothing to IP, beside a bare loop |
//! | `pppoe` | the cost of a PPPoE host from PADI to IPv4 and IPv6, and of a flood of PADIs, beside bare loops |
//! | `nat` | the cost of a translated packet and of a new mapping, beside a bare loop |
//! | `coa` | the cost of a CoA-Request that changes a connected subscriber, beside a bare loop |
//! | `bgp` | the cost of sessions and tables in a BGP daemon, beside bare loops and other daemons |
//! | `deadlines` | how late KEEPALIVEs and answers are while a daemon does its heaviest work, beside other daemons |
//! | `forward` | the cost of a packet in an LNS from a tunnel to the TUN device and back, beside bare loops |
//! | `qos` | the cost of a packet in classifiers and queues, the accuracy of shaped rates, the lateness of pings |
//! | `filter` | the cost of a packet in a subscriber's filter, and of names in log lines |
//! | `segments` | the segment lists of 2005, and ours |
//! | `captures` | writes the captures that other benchmarks read; measures nothing |
//! | `trace` | the cost of a packet and of a connection in the analyser, beside bare loops and other analysers |
//! | `diff` | the cost of a pair of packets when two captures are compared, beside bare loops |
//! | `harness` | shared by all benchmarks: processes, namespaces, cores, the account of a server |
//! | `history` | the page that re-runs published scaling failures |
#![forbid(unsafe_code)]

mod bgp;
mod bringup;
mod captures;
mod coa;
mod deadlines;
mod diff;
mod filter;
mod forward;
mod harness;
mod history;
mod nat;
mod poll;
mod pppoe;
mod qos;
mod segments;
mod subscribers;
mod switched;
mod timers;
mod trace;
mod tunnels;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use lab::report::Report;

/// Measure performance on this machine.
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Insert, cancel and expire in each timer store, by number of timers
    Timers(timers::TimersArgs),
    /// Time and CPU of a wait with each poller, by number of descriptors
    Poll(poll::PollArgs),
    /// Tunnels over time: the builds of the published benchmark, and ours
    Bringup(bringup::BringupArgs),
    /// Cost for an LNS to set up, hold and keep alive a tunnel, next to bare loops and other LNSs
    Tunnels(tunnels::TunnelsArgs),
    /// A bare loop that `tunnels` measures
    #[command(hide = true)]
    TunnelsBare(tunnels::bare::TunnelsBareArgs),
    /// Cost for an LNS to connect a subscriber, in time and memory, next to a bare loop
    Subscribers(subscribers::SubscribersArgs),
    /// Cost for the daemon to connect a PPPoE host, and of a flood of PADIs, next to bare loops; needs root
    Pppoe(pppoe::PppoeArgs),
    /// A bare loop that `pppoe` measures
    #[command(hide = true)]
    PppoeBare(pppoe::bare::PppoeBareArgs),
    /// CoA-Requests that change rates of connected subscribers, by their number, next to a bare loop
    Coa(coa::CoaArgs),
    /// Cost of a translated packet and of a new mapping (NAT), by number of mappings, next to a bare loop
    Nat(nat::NatArgs),
    /// Cost of sessions and tables for a BGP daemon, next to bare loops and other daemons
    Bgp(bgp::BgpArgs),
    /// How late deadlines are kept under the heaviest work, next to other daemons
    Deadlines(deadlines::DeadlinesArgs),
    /// A bare loop that `bgp` measures
    #[command(hide = true)]
    BgpBare(bgp::bare::BgpBareArgs),
    /// An emulation that `bgp` measures
    #[command(hide = true)]
    BgpEmulate(bgp::emulated::child::EmulatedChildArgs),
    /// Cost of packets for an LNS between tunnel and TUN device, next to bare loops; needs root
    Forward(forward::ForwardArgs),
    /// A bare loop that `forward` measures
    #[command(hide = true)]
    ForwardBare(forward::bare::ForwardBareArgs),
    /// Cost of packets of sessions that are handed over to an LNS, next to bare loops; needs root
    Switched(switched::SwitchedArgs),
    /// A bare loop that `switched` measures
    #[command(hide = true)]
    SwitchedBare(switched::bare::SwitchedBareArgs),
    /// Cost of a packet by number of filter rules, next to the filter of 2004 that opens a file per packet
    Filter(filter::FilterArgs),
    /// The segment lists of 2005 and ours, in the four cases of the 2005 harness and in recovery
    Segments(segments::SegmentsArgs),
    /// Classifiers and queues by number of flows, shaped rates, lateness of pings, a page of ten million pings
    Qos(qos::QosArgs),
    /// A rate between two interfaces, which `qos` measures
    #[command(hide = true)]
    QosChild(qos::between::RateBetweenArgs),
    /// Forwarding between two interfaces, which `qos` measures
    #[command(hide = true)]
    QosPassChild(qos::PassChildArgs),
    /// Cost of packets and connections for `headend trace`, next to bare loops and other analysers
    Trace(trace::TraceArgs),
    /// Pairs of packets per second when two captures are compared, next to a bare loop
    Diff(diff::DiffArgs),
    /// A bare loop that `trace` measures, or a program that it runs
    #[command(hide = true)]
    TraceChild(trace::child::TraceChildArgs),
    /// Write captures that are hard to analyse, as input for analysers
    Captures(captures::CapturesArgs),
    /// Re-run published scaling failures here, and write one HTML page with the verdicts
    History(history::HistoryArgs),
}

/// Where the files of a benchmark go.
#[derive(Clone, Debug, clap::Args)]
struct Out {
    /// The directory for the JSON, CSV and SVG files [default: bench-results/ and the name of the benchmark]
    #[arg(short = 'o', long = "out", value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print the JSON file instead of the tables
    #[arg(long)]
    json: bool,
}

impl Out {
    /// Writes the files of `report`, and prints its tables or its JSON.
    fn publish(&self, report: &Report) -> Result<()> {
        if !self.json {
            report.publish(self.dir.as_deref())?;
            return Ok(());
        }
        let dir = self.dir.clone().unwrap_or_else(|| report.default_dir());
        let written = report.write(&dir)?;
        // The first file is the one that has everything.
        if let Some((_, file)) = written.files.first() {
            print!("{}", std::fs::read_to_string(file)?);
        }
        Ok(())
    }
}

/// Runs the benchmark.
pub fn run(args: &BenchArgs) -> Result<ExitCode> {
    match &args.verb {
        Verb::Timers(args) => timers::run(args),
        Verb::Poll(args) => poll::run(args),
        Verb::Bringup(args) => bringup::run(args),
        Verb::Tunnels(args) => tunnels::run(args),
        Verb::TunnelsBare(args) => tunnels::bare::run(args),
        Verb::Subscribers(args) => subscribers::run(args),
        Verb::Pppoe(args) => pppoe::run(args),
        Verb::PppoeBare(args) => pppoe::bare::run(args),
        Verb::Coa(args) => coa::run(args),
        Verb::Nat(args) => nat::run(args),
        Verb::Bgp(args) => bgp::run(args),
        Verb::Deadlines(args) => deadlines::run(args),
        Verb::BgpBare(args) => bgp::bare::run(args),
        Verb::BgpEmulate(args) => bgp::emulated::child::run(args),
        Verb::Forward(args) => forward::run(args),
        Verb::ForwardBare(args) => forward::bare::run(args),
        Verb::Switched(args) => switched::run(args),
        Verb::SwitchedBare(args) => switched::bare::run(args),
        Verb::Filter(args) => filter::run(args),
        Verb::Segments(args) => segments::run(args),
        Verb::Qos(args) => qos::run(args),
        Verb::QosChild(args) => qos::between::run(args),
        Verb::QosPassChild(args) => qos::run_pass(args),
        Verb::Trace(args) => trace::run(args),
        Verb::Diff(args) => diff::run(args),
        Verb::TraceChild(args) => trace::child::run(args),
        Verb::Captures(args) => captures::run(args),
        Verb::History(args) => history::run(args),
    }
}
