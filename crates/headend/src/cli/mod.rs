//! The command line: what was typed, what it means, then run.
//!
//! Exit status: 0 done, 1 failed, 2 wrong usage. Results go to standard output,
//! everything else to standard error.

mod bgp;
mod capture;
mod check;
pub(crate) mod create;
pub(crate) mod pace;
mod session;
mod show;
mod subscriber;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod tunnel;
pub(crate) mod values;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::control::DEFAULT_SOCKET;
use crate::control::client::Client;
use crate::{bench, daemon, demo, emulate, filter, lab, ping, qos, trace};

/// An L2TP access concentrator and network server, and the lab that proves it.
#[derive(Debug, Parser)]
#[command(name = "headend", version, about, max_term_width = 100)]
pub(crate) struct Cli {
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

/// Which daemon is meant.
#[derive(Clone, Debug, clap::Args)]
struct Socket {
    /// The daemon's control socket
    #[arg(long = "socket", global = true, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    path: PathBuf,
}

impl Socket {
    fn connect(&self) -> Result<Client> {
        Client::connect(Path::new(&self.path))
    }
}

/// Parses the command line and does what it says.
pub(crate) fn main() -> ExitCode {
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
    match outcome {
        Ok(code) => code,
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("headend: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What becomes of a verb whose faults are told with exit status 2.
pub(crate) fn or_exit_2(verb: &str, done: Result<ExitCode>) -> Result<ExitCode> {
    match done {
        Err(error) if !is_broken_pipe(&error) => {
            eprintln!("headend {verb}: {error:#}");
            Ok(ExitCode::from(2))
        }
        done => done,
    }
}

pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
