//! `headend`: the binary. Its command line is a verb per crate; the crates do the work.

#![forbid(unsafe_code)]

mod pages;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use daemon::check;
use tool_ctl::{bgp, capture, nat, reload, session, show, tunnel};
use {
    tool_demo as demo, tool_doctor as doctor, tool_emulate as emulate, tool_filter as filter,
    tool_import as import, tool_lab as lab, tool_ping as ping, tool_qos as qos, tool_top as top,
    tool_tour as tour, tool_trace as trace, tool_web as web,
};

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A software broadband edge (L2TP, PPP, RADIUS, BGP), and the lab that measures it.
#[derive(Debug, Parser)]
#[command(name = "headend", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Connect 10,000 subscribers between two daemons on this machine, with traffic, and report the cost
    Demo(demo::DemoArgs),
    /// Measure subscribers, a hijack and a home gateway in ninety seconds, and write one page
    Tour(tour::TourArgs),
    /// Run the daemon
    Run(daemon::RunArgs),
    /// Check a configuration file without starting the daemon
    Check(check::CheckArgs),
    /// Check this host against a configuration, with the command that mends each fault
    Doctor(doctor::DoctorArgs),
    /// Turn the configuration of another daemon into one for headend
    Import(import::ImportArgs),
    /// Make a daemon read its configuration again, and list what applies and what needs a restart
    Reload(reload::ReloadArgs),
    /// Keep what a reload with a timeout applied
    Confirm(reload::ConfirmArgs),
    /// Create and delete tunnels
    Tunnel(tunnel::TunnelArgs),
    /// Create and delete sessions, disconnect subscribers, answer calls
    Session(session::SessionArgs),
    /// Find out who has an external address and port, forward ports
    Nat(nat::NatArgs),
    /// Show the state of a daemon or an emulation
    Show(show::ShowArgs),
    /// Watch a running daemon on a terminal: subscribers, event loop, peers, queues
    Top(top::TopArgs),
    /// Start, stop, reset and refresh BGP peers
    Bgp(bgp::BgpArgs),
    /// Capture a subscriber's packets, inside and outside its tunnel
    Capture(capture::CaptureArgs),
    /// Emulate thousands of BGP routers in virtual or real time: convergence, hijacks, leaks
    Emulate(emulate::EmulateArgs),
    /// Run several ping streams at once; save and compare results
    Ping(ping::Args),
    /// Serve pages and metrics of a running daemon over HTTP
    Web(web::WebArgs),
    /// Check a queueing policy, shape traffic with it, show and draw queues
    Qos(qos::QosArgs),
    /// Check a file of filter rules, and find the rule that decides on a packet
    Filter(filter::FilterArgs),
    /// Analyse TCP connections in captures, with tcptrace's flags, statistics and graphs
    Trace(trace::TraceArgs),
    /// Run experiments with their own hosts and links
    Lab(lab::LabArgs),
    /// Measure performance on this machine, next to baselines and other programs
    Bench(bench::BenchArgs),
    /// Write manual pages: one for each verb, or that of headend to standard output
    Man(pages::ManArgs),
    /// Print completions for a shell: bash, zsh or fish
    Completions(pages::CompletionsArgs),
}

/// Parses the command line and runs the verb.
fn main() -> ExitCode {
    let outcome = match Cli::parse().verb {
        Verb::Demo(args) => demo::run(&args),
        Verb::Tour(args) => tour::run(&args),
        Verb::Run(args) => daemon::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Import(args) => import::run(&args),
        Verb::Reload(args) => reload::run(&args),
        Verb::Confirm(args) => reload::confirm(&args),
        Verb::Tunnel(args) => tunnel::run(&args),
        Verb::Session(args) => session::run(&args),
        Verb::Nat(args) => nat::run(&args),
        Verb::Show(args) => show::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::Bgp(args) => bgp::run(&args),
        Verb::Capture(args) => capture::run(&args),
        Verb::Emulate(args) => emulate::run(&args),
        Verb::Ping(args) => ping::run(&args),
        Verb::Web(args) => web::run(&args),
        Verb::Qos(args) => qos::run(&args),
        Verb::Filter(args) => filter::run(&args),
        Verb::Trace(args) => trace::run(&args),
        Verb::Lab(args) => lab::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Man(args) => pages::man(pages::described(Cli::command()), &args),
        Verb::Completions(args) => pages::completions(&pages::described(Cli::command()), &args),
    };
    cli::finish(outcome)
}
