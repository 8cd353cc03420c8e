//! `headend`: the binary. Its command line is a verb per crate; the crates do the work.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use daemon::check;
use tool_ctl::{bgp, capture, session, show, tunnel};
use {tool_demo as demo, tool_emulate as emulate, tool_filter as filter, tool_lab as lab};
use {tool_ping as ping, tool_qos as qos, tool_trace as trace};

/// An L2TP access concentrator and network server, and the lab that proves it.
#[derive(Debug, Parser)]
#[command(name = "headend", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Bring up ten thousand subscribers between two daemons on this machine, with traffic, and report what it took
    Demo(demo::Args),
    /// Run the daemon
    Run(daemon::Args),
    /// Check a configuration file and open nothing
    Check(check::Args),
    /// Create and delete tunnels
    Tunnel(tunnel::Args),
    /// Create, delete, drop and answer sessions
    Session(session::Args),
    /// Show what the daemon holds and does
    Show(show::Args),
    /// Start, stop, reset and refresh peers of the BGP speaker
    Bgp(bgp::Args),
    /// Write what passes of a subscriber to a file, inside and outside of its tunnel
    Capture(capture::Args),
    /// Emulate routers by the thousand, in virtual or real time: convergence, hijacks, leaks
    Emulate(emulate::Args),
    /// Several ping streams at once: ping's flags and text, kept, compared
    Ping(ping::Args),
    /// Queues: check a policy, shape by it between two interfaces, show and draw queues
    Qos(qos::Args),
    /// Filters: check a file of rules, ask which rule decides on a packet
    Filter(filter::Args),
    /// TCP connections in captures: tcptrace's flags, statistics and graphs
    Trace(trace::Args),
    /// Experiments with hosts and links of their own
    Lab(lab::Args),
    /// Measure curves on this machine, beside what they are compared to
    Bench(bench::Args),
}

/// Parses the command line and does what it says.
fn main() -> ExitCode {
    let outcome = match Cli::parse().verb {
        Verb::Demo(args) => demo::run(&args),
        Verb::Run(args) => daemon::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Tunnel(args) => tunnel::run(&args),
        Verb::Session(args) => session::run(&args),
        Verb::Show(args) => show::run(&args),
        Verb::Bgp(args) => bgp::run(&args),
        Verb::Capture(args) => capture::run(&args),
        Verb::Emulate(args) => emulate::run(&args),
        Verb::Ping(args) => ping::run(&args),
        Verb::Qos(args) => qos::run(&args),
        Verb::Filter(args) => filter::run(&args),
        Verb::Trace(args) => trace::run(&args),
        Verb::Lab(args) => lab::run(&args),
        Verb::Bench(args) => bench::run(&args),
    };
    cli::finish(outcome)
}
