//! `headend qos`: the operator's policy file and the queues of interfaces. docs/qos.md is the page.
//!
//! | module | what it is |
//! |---|---|
//! | `check` | what is wrong or unwise in a policy |
//! | `run` | a policy in force between two interfaces |
//! | `show` | the queues of a running one as text |
//! | `graph` | trees of queues as text, pictures and pages |
//! | `running`, `rows` | asking a running one, and what it tells |
//! | `rates` | how fast counters rise |
//! | `screen` | text that is shown again and again |
//! | `system` | what Linux says of an interface |
//!
//! Exit status: 0 done, 2 something was wrong.
#![forbid(unsafe_code)]

mod check;
mod graph;
mod rates;
mod rows;
mod run;
mod running;
mod screen;
mod show;
mod system;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// Queues: check a policy, shape by it, look at queues.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Say what is wrong or unwise in a policy file
    Check(check::Args),
    /// Shape what passes between two interfaces, both ways, until SIGINT or SIGTERM; SIGHUP reads the policy anew
    Run(run::Args),
    /// Show the queues of a running `headend qos run`, under the names of tc
    Show(show::Args),
    /// Have a running `headend qos run` read its policy anew; no packet is lost or overtaken
    Reload(Reload),
    /// Draw the queues of a policy, an interface or a running shaper, each discipline, class and filter once
    Graph(graph::Args),
    #[command(hide = true, name = run::keeper::VERB)]
    KeepOffloadsOff(run::keeper::Args),
}

/// Have a running shaper read its policy anew.
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
                // As check prints them.
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

/// Does what the command line says.
pub fn run(args: &Args) -> Result<ExitCode> {
    let done = match &args.verb {
        Verb::Check(args) => check::run(args),
        Verb::Run(args) => run::run(args),
        Verb::Show(args) => show::run(args),
        Verb::Reload(args) => args.run(),
        Verb::Graph(args) => graph::run(args),
        Verb::KeepOffloadsOff(args) => run::keeper::run(args),
    };
    cli::or_exit_2("qos", done)
}

/// `text` without control characters, which a terminal might obey.
fn printable(text: &str) -> String {
    let show = |char: char| if char.is_control() { ' ' } else { char };
    text.chars().map(show).collect()
}
