//! `headend emulate`: thousands of routers in one process, and what becomes of their routes.
//!
//! | module | what it is |
//! |---|---|
//! | `run` | a run: paced, looked at, stepped into |
//! | `control` | what a running emulation answers |
//! | `running` | both kinds of time as commands see them |
//! | `files` | what a run leaves |
//!
//! Exit status: 0 done, or stopped by a signal with results written; 2 something was wrong.
#![forbid(unsafe_code)]

mod control;
mod files;
mod run;
mod running;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Subcommand;
use emulate::{Emulation, Recording, Scenario};
use reactor::PollerKind;
use serde_json::Value;

use running::Running;

use ::control::client::Client;
use ::control::request::Nothing;
use cli::or_exit_2;

/// Emulate routers, in virtual or in real time.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    run: Run,
}

const HELP: &str = "\
DIR gets results.json, events.csv, shares.csv, routers.csv, pictures as SVG, and page.html with all of it.

Examples:
  headend emulate docs/emulate/hijack.toml --out hijack        # then open hijack/page.html
  headend emulate docs/emulate/mesh.toml --control mesh.sock &
  headend show bgp summary --socket mesh.sock --router r7
  headend emulate inject --socket mesh.sock 'kind = \"withdraw\"
  router = \"r1\"
  prefix = \"16.0.0.0/24\"'";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Let an event happen in a running emulation: a section `[[event]]` without its heading
    Inject(Inject),
    /// Say how far a running emulation is
    Progress(Progress),
    /// Check a scenario and run nothing
    Check {
        /// The scenario
        scenario: PathBuf,
    },
    /// Run a recording again, with what was injected
    Replay(Replay),
}

/// What is run, and what it leaves.
#[derive(Debug, clap::Args)]
struct Run {
    /// The scenario
    scenario: Option<PathBuf>,
    #[command(flatten)]
    keep: Keep,
    /// Record the run, with what is injected, to be replayed
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// How threads wait for sockets, where links are over TCP
    #[arg(long, value_enum, default_value = "epoll")]
    poller: Poller,
    /// Answer `show` and `inject` here while it runs
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

/// What waits for readiness.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Poller {
    /// A wait costs what is ready
    Epoll,
    /// A wait costs what is watched, as it was
    Poll,
}

impl From<Poller> for PollerKind {
    fn from(poller: Poller) -> Self {
        match poller {
            Poller::Epoll => PollerKind::Epoll,
            Poller::Poll => PollerKind::PollRebuilt,
        }
    }
}

#[derive(Debug, clap::Args)]
struct Keep {
    /// The directory for results [default: emulate-results and the scenario's name]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the routes of this router, too, as MRT; may be given several times
    #[arg(long, value_name = "ROUTER")]
    mrt: Vec<String>,
    /// The results as JSON on standard output, instead of a summary
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Inject {
    /// The emulation's control socket
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// The event
    event: String,
}

#[derive(Debug, clap::Args)]
struct Progress {
    /// The emulation's control socket
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Replay {
    /// The recording
    recording: PathBuf,
    #[command(flatten)]
    keep: Keep,
}

/// Does what the command line says.
pub fn run(args: &Args) -> Result<ExitCode> {
    let done = match (&args.verb, &args.run.scenario) {
        (Some(Verb::Inject(inject)), _) => inject_event(inject),
        (Some(Verb::Progress(progress)), _) => show_progress(progress),
        (Some(Verb::Check { scenario }), _) => check(scenario),
        (Some(Verb::Replay(replay)), _) => replay_recording(replay),
        (None, Some(scenario)) => run_scenario(scenario, &args.run),
        (None, None) => Err(anyhow!("give a scenario; --help has examples")),
    };
    or_exit_2("emulate", done)
}

fn load(path: &Path) -> Result<Scenario> {
    let text = settings::text_of(path)?;
    Ok(Scenario::load(&text, &path.to_string_lossy())?)
}

fn check(path: &Path) -> Result<ExitCode> {
    let scenario = load(path)?;
    let topology = &scenario.topology;
    let (routers, links, events) = (
        topology.routers.len(),
        topology.links.len(),
        scenario.events.len(),
    );
    println!(
        "{}: ok: {routers} routers, {links} links, {events} events",
        path.display()
    );
    Ok(ExitCode::SUCCESS)
}

fn run_scenario(path: &Path, args: &Run) -> Result<ExitCode> {
    let scenario = load(path)?;
    let directory = args.keep.directory(path);
    let running = run::run(scenario, args.poller.into(), args.control.as_deref())?;
    if let Some(path) = &args.record {
        let text = running.recording().to_json();
        std::fs::write(path, text).with_context(|| format!("{}", path.display()))?;
    }
    files::write(running, &directory, &args.keep.mrt, args.keep.json)
}

fn replay_recording(args: &Replay) -> Result<ExitCode> {
    let path = &args.recording;
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let recording = Recording::from_json(&text);
    let recording = recording.with_context(|| format!("{}: is no recording", path.display()))?;
    let emulation = Emulation::replay(&recording)?;
    files::write(
        Running::Virtual(Box::new(emulation)),
        &args.keep.directory(path),
        &args.keep.mrt,
        args.keep.json,
    )
}

impl Keep {
    fn directory(&self, what: &Path) -> PathBuf {
        let stem = what
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let name = stem.unwrap_or_else(|| "run".into());
        self.out
            .clone()
            .unwrap_or_else(|| Path::new("emulate-results").join(name))
    }
}

fn inject_event(args: &Inject) -> Result<ExitCode> {
    let mut client = Client::connect(&args.socket)?;
    let row: Value = client.one(&control::Verb::Inject(control::Event {
        event: args.event.clone(),
    }))?;
    println!("{}", row["event"].as_str().unwrap_or_default());
    Ok(ExitCode::SUCCESS)
}

fn show_progress(args: &Progress) -> Result<ExitCode> {
    let mut client = Client::connect(&args.socket)?;
    let row: Value = client.one(&control::Verb::Progress(Nothing {}))?;
    println!("{row}");
    Ok(ExitCode::SUCCESS)
}
