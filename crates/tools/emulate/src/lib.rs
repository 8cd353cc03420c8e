//! `headend emulate`: thousands of BGP routers in one process, and the spread of their routes.
//!
//! | module | purpose |
//! |---|---|
//! | `run` | a run with its pacing, its clients and its progress bar |
//! | `control` | replies of a running emulation |
//! | `running` | one interface to virtual and real time |
//! | `files` | the files that a run writes |
//!
//! Exit status: 0 done, or stopped by a signal with results written; 2 failure.
#![forbid(unsafe_code)]

mod control;
mod files;
mod run;
mod running;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::Subcommand;
use emulate::{Emulation, Recording, Scenario, with_value};
use reactor::PollerKind;
use serde_json::Value;

use running::Running;

use ::control::client::Client;
use ::control::request::Nothing;
use ::control::rows::EmulateProgress;
use cli::or_exit_2;
use cli::table::{block, columns};

/// Emulate routers, in virtual or in real time.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = HELP)]
pub struct EmulateArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    run: Run,
}

const HELP: &str = "\
The run writes results.json, events.csv, shares.csv, outcomes.csv, routers.csv, charts as SVG, and page.html to DIR.

Examples:
  headend emulate docs/emulate/hijack.toml --out hijack        # then open hijack/page.html
  headend emulate docs/emulate/mesh.toml --socket mesh.sock &
  headend show bgp summary --socket mesh.sock --router r7
  headend emulate inject --socket mesh.sock 'kind = \"withdraw\"
  router = \"r1\"
  prefix = \"16.0.0.0/24\"'";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Inject an event into a running emulation: the keys of an [[event]] section, without the heading
    Inject(Inject),
    /// Show the progress of a running emulation
    Progress(Progress),
    /// Check a scenario file without running it
    Check(Check),
    /// Replay a recorded run, with the events that were injected
    Replay(Replay),
}

/// Which scenario runs, and which files it writes.
#[derive(Debug, clap::Args)]
struct Run {
    /// The scenario file
    scenario: Option<PathBuf>,
    /// Use this seed, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Use this value, in place of the scenario's: for example links.delay_ms=50 or event.0.at_s=3; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    keep: Keep,
    /// Write a recording for `emulate replay`: the scenario and each injected event
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// How threads wait for sockets, if links are over TCP
    #[arg(long, value_enum, default_value = "epoll")]
    poller: Poller,
    /// Serve the control protocol on this socket during the run, for `show` and `inject`
    #[arg(long, alias = "control", value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// The system call that waits for ready descriptors.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Poller {
    /// The cost of a wait grows with the ready descriptors
    Epoll,
    /// The cost of a wait grows with the watched descriptors; a baseline for comparison
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
    /// The directory for the result files [default: emulate-results/ and the scenario's name]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write the routes of this router as MRT; may be repeated
    #[arg(long, value_name = "ROUTER")]
    mrt: Vec<String>,
    /// Print results.json instead of a summary
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Inject {
    /// The emulation's control socket
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// The event, as TOML keys
    event: String,
    /// Print the event as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Progress {
    /// The emulation's control socket
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Print the progress as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Check {
    /// The scenario file
    scenario: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Replay {
    /// The recording
    recording: PathBuf,
    #[command(flatten)]
    keep: Keep,
}

/// Runs the command.
pub fn run(args: &EmulateArgs) -> Result<ExitCode> {
    let done = match (&args.verb, &args.run.scenario) {
        (Some(Verb::Inject(inject)), _) => inject_event(inject),
        (Some(Verb::Progress(progress)), _) => show_progress(progress),
        (Some(Verb::Check(args)), _) => check(args),
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

/// Counts of a scenario: routers, links, events.
fn counts(scenario: &Scenario) -> [usize; 3] {
    let topology = &scenario.topology;
    [
        topology.routers.len(),
        topology.links.len(),
        scenario.events.len(),
    ]
}

fn check(args: &Check) -> Result<ExitCode> {
    let path = &args.scenario;
    if !args.json {
        let scenario = load(path)?;
        let [routers, links, events] = counts(&scenario);
        println!(
            "{}: ok: {routers} routers, {links} links, {events} events",
            path.display()
        );
        for line in scenario.advice.lines() {
            println!("{line}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let file = path.to_string_lossy();
    let (found, faults, advice) = match Scenario::load(&settings::text_of(path)?, &file) {
        Ok(scenario) => {
            let advice = scenario.advice.lines();
            (Some(counts(&scenario)), Vec::new(), advice)
        }
        Err(faults) => (None, faults.lines(), Vec::new()),
    };
    let count = |at: usize| found.map(|counts| counts[at]);
    let document = serde_json::json!({
        "schema": "emulate.check/1",
        "file": file,
        "usable": found.is_some(),
        "routers": count(0),
        "links": count(1),
        "events": count(2),
        "faults": faults,
        "advice": advice,
    });
    println!("{document:#}");
    Ok(match found {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::from(2),
    })
}

fn run_scenario(path: &Path, args: &Run) -> Result<ExitCode> {
    let text = changed(settings::text_of(path)?, args)?;
    let scenario = Scenario::load(&text, &path.to_string_lossy())?;
    for line in scenario.advice.lines() {
        eprintln!("headend emulate: {line}");
    }
    let directory = args.keep.directory(path);
    let running = run::run(scenario, args.poller.into(), args.socket.as_deref())?;
    if let Some(path) = &args.record {
        let text = running.recording().to_json();
        std::fs::write(path, text).with_context(|| format!("{}", path.display()))?;
    }
    files::write(running, &directory, &args.keep.mrt, args.keep.json)
}

/// The scenario with the seed and the values of the command line.
fn changed(mut text: String, args: &Run) -> Result<String> {
    for given in &args.set {
        let Some((key, value)) = given.split_once('=') else {
            bail!("--set {given}: give KEY=VALUE, for example links.delay_ms=50");
        };
        text = with_value(&text, key.trim(), value.trim())
            .map_err(|error| anyhow!("--set {error}"))?;
    }
    match args.seed {
        Some(seed) => Ok(with_value(&text, "seed", &seed.to_string())?),
        None => Ok(text),
    }
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
    match args.json {
        true => println!("{row}"),
        false => println!("{}", row["event"].as_str().unwrap_or_default()),
    }
    Ok(ExitCode::SUCCESS)
}

fn show_progress(args: &Progress) -> Result<ExitCode> {
    let mut client = Client::connect(&args.socket)?;
    let row: Value = client.one(&control::Verb::Progress(Nothing {}))?;
    if args.json {
        println!("{row}");
        return Ok(ExitCode::SUCCESS);
    }
    let columns = columns(&EmulateProgress::TYPE);
    block(&columns, &row, &mut std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
