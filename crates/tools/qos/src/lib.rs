//! `headend qos`: checks and runs the operator's policy file, and shows the queues of interfaces. See docs/qos.md.
//!
//! | module | purpose |
//! |---|---|
//! | `apply` | a policy compiled to the kernel's own queues, and its removal |
//! | `check` | faults and unwise settings in a policy |
//! | `run` | a policy in force between two interfaces |
//! | `explain` | the keys, the rule and the class of a frame |
//! | `show` | the queues of a running shaper as text |
//! | `rate` | other rates for a running shaper |
//! | `hosts` | the hosts that use the line of a running shaper |
//! | `import` | queues of other programs as a policy file |
//! | `graph` | trees of queues as text, pictures and pages |
//! | `running`, `rows` | requests to a running shaper, and its rows |
//! | `rates` | rates from the counters of two readings |
//! | `system` | the state of an interface in Linux |
//!
//! Exit status: 0 success, 1 if `explain` finds that two engines differ, 2 failure.
#![forbid(unsafe_code)]

mod apply;
mod check;
mod explain;
mod graph;
mod hosts;
pub mod import;
mod rate;
mod rates;
mod rows;
mod run;
mod running;
mod show;
mod system;

pub use apply::measure;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// Check a queueing policy, shape traffic with it, show and draw queues.
#[derive(Debug, clap::Args)]
pub struct QosArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Report faults and unwise settings in a policy file
    Check(check::QosCheckArgs),
    /// Shape an interface with the kernel's own queues, as a policy says; `remove` restores what was there
    Apply(apply::ApplyArgs),
    /// Remove what `apply` made, and restore the queues that were there before
    Remove(apply::RemoveArgs),
    /// Shape both directions between two interfaces until SIGINT or SIGTERM; SIGHUP reloads the policy
    Run(run::QosRunArgs),
    /// Show the keys, the rule and the class of a frame, from our engine and from an eBPF program in the kernel
    Explain(explain::QosExplainArgs),
    /// Show the queues of a running `headend qos run`, with the names of tc
    Show(show::QosShowArgs),
    /// Reload the policy of a running `headend qos run`; no packet is lost or reordered
    Reload(Reload),
    /// Change the rates of a running `headend qos run` until the next reload; no packet is lost or reordered
    Rate(rate::RateArgs),
    /// Show the hosts that use the line of a running `headend qos run` most
    Hosts(hosts::HostsArgs),
    /// Turn OpenWrt's sqm configuration, or queues of tc, into a policy file
    Import(import::QosImportArgs),
    /// Draw the queues of a policy, an interface or a running shaper
    Graph(graph::QosGraphArgs),
    #[command(hide = true, name = run::keeper::VERB)]
    KeepOffloadsOff(run::keeper::KeeperArgs),
}

/// Reload the policy of a running shaper.
#[derive(Debug, clap::Args)]
struct Reload {
    #[command(flatten)]
    control: running::Control,
}

impl Reload {
    fn run(&self) -> Result<ExitCode> {
        let reloaded = match self.control.connect()?.reload() {
            Ok(reloaded) => reloaded,
            Err(faults) => {
                // In the same format as `check`.
                eprintln!("{faults:#}");
                return Ok(ExitCode::from(2));
            }
        };
        for line in &reloaded.advice {
            eprintln!("{line}");
        }
        println!("{}: in force", reloaded.file);
        Ok(ExitCode::SUCCESS)
    }
}

/// Runs the command.
pub fn run(args: &QosArgs) -> Result<ExitCode> {
    let done = match &args.verb {
        Verb::Check(args) => check::run(args),
        Verb::Apply(args) => apply::apply(args),
        Verb::Remove(args) => apply::remove(args),
        Verb::Run(args) => run::run(args),
        Verb::Explain(args) => explain::run(args),
        Verb::Show(args) => show::run(args),
        Verb::Reload(args) => args.run(),
        Verb::Rate(args) => rate::run(args),
        Verb::Hosts(args) => hosts::run(args),
        Verb::Import(args) => import::run(args),
        Verb::Graph(args) => graph::run(args),
        Verb::KeepOffloadsOff(args) => run::keeper::run(args),
    };
    cli::or_exit_2("qos", done)
}

/// `text` without control characters, which a terminal might interpret.
fn printable(text: &str) -> String {
    let show = |char: char| if char.is_control() { ' ' } else { char };
    text.chars().map(show).collect()
}
