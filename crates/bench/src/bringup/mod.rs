//! `headend bench bringup`: number of tunnels against time, for imitations of the five builds of
//! the published benchmark and for our own designs.
//!
//! Each design is this program with other parts: two daemons, LAC and LNS, and one request per
//! tunnel through the LAC's control socket. Start with `drive`.

pub(super) mod build;
pub(super) mod drive;
mod report;

pub(super) use report::{company, method, remarks, tables};

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use lab::fit;
use lab::history::BringupRun;
use lab::report::{CoreWitness, MachineInfo};
use reactor::limits;

use super::Out;
use build::{BUILDS, Build};
use cli::values::seconds;
use drive::{Run, Wanted};

/// Descriptors of a daemon besides its tunnels' sockets, with a margin.
const DESCRIPTORS: u64 = 16;

/// Draw tunnels against time by the published builds and by ours.
#[derive(Debug, clap::Args)]
pub(super) struct BringupArgs {
    /// Number of tunnels
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=250_000))]
    tunnels: u32,
    /// Seconds after which an unfinished run is stopped; its curve is extrapolated
    #[arg(long = "cap-seconds", value_name = "S", default_value = "60", value_parser = seconds)]
    cap: Duration,
    /// Number of runs of each build that finishes; the fastest run is shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The builds to run [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = named)]
    builds: Vec<&'static Build>,
    /// Measure 400 tunnels for at most 2 seconds each
    #[arg(long, conflicts_with_all = ["tunnels", "cap", "rounds"])]
    quick: bool,
    #[command(flatten)]
    out: Out,
}

fn named(name: &str) -> Result<&'static Build, String> {
    Build::named(name).ok_or_else(|| {
        let names: Vec<&str> = BUILDS.iter().map(|build| build.name).collect();
        format!("there are {}", names.join(", "))
    })
}

impl BringupArgs {
    fn wanted(&self) -> Wanted {
        if self.quick {
            Wanted::QUICK
        } else {
            Wanted {
                tunnels: self.tunnels,
                cap: self.cap,
                rounds: self.rounds,
                budget: Duration::MAX,
            }
        }
    }
}

/// Measures and publishes.
pub(super) fn run(args: &BringupArgs) -> Result<ExitCode> {
    let builds = if args.builds.is_empty() {
        BUILDS.iter().collect()
    } else {
        args.builds.clone()
    };
    let wanted = args.wanted();
    let witness = CoreWitness::start();
    let Measured { runs, left_out } = measure(&builds, wanted)?;
    let mut report = report::report(&runs, wanted, MachineInfo::read_with(witness));
    report.method.extend(left_out);
    args.out.publish(&report)?;
    Ok(ExitCode::SUCCESS)
}

/// The builds that were run.
pub(super) struct Measured {
    /// The best run of each build.
    pub(super) runs: Vec<Run>,
    /// One sentence for each build that this kernel cannot run, with the reason.
    pub(super) left_out: Vec<String>,
}

/// Runs the builds one after another, and repeats those that finish.
///
/// # Errors
/// A build needs more descriptors than the process may have, or could not be run.
pub(super) fn measure(builds: &[&'static Build], wanted: Wanted) -> Result<Measured> {
    let room =
        limits::raise_descriptor_limit()?.saturating_sub(limits::DESCRIPTOR_RESERVE + DESCRIPTORS);
    for build in builds.iter().filter(|build| build.socket_each) {
        ensure!(
            u64::from(wanted.tunnels) <= room,
            "{} takes a descriptor for each tunnel: this process may have {room} for that (ulimit -n)",
            build.name
        );
    }
    let (mut left_out, mut able) = (Vec::new(), Vec::new());
    for &build in builds {
        match build.check() {
            Ok(()) => able.push(build),
            Err(error) => left_out.push(format!("{} was not run: {error}.", build.name)),
        }
    }
    let started = Instant::now();
    let mut runs: Vec<Run> = Vec::new();
    for round in 0..wanted.rounds {
        for (i, build) in able.iter().enumerate() {
            if round > 0 && (!runs[i].finished || started.elapsed() > wanted.budget) {
                continue;
            }
            let place = format!("[{}/{}] {}", i + 1, able.len(), build.name);
            let bar = bar(wanted, place);
            let run = drive::run(build, wanted, &mut |up| bar.set_position(up));
            bar.finish_and_clear();
            let run = run?;
            if round == 0 {
                runs.push(run);
            } else if run.is_faster_than(&runs[i]) {
                runs[i] = run;
            }
        }
    }
    Ok(Measured { runs, left_out })
}

fn bar(wanted: Wanted, name: String) -> ProgressBar {
    let bar = ProgressBar::new(wanted.tunnels.into());
    let cap = wanted.cap.as_secs_f64();
    let template = format!(
        "{{prefix:22}} {{pos}}/{{len}} tunnels [{{wide_bar}}] {{elapsed}} of {cap} s at most"
    );
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(name);
    bar
}

/// A run in the form that the history's chapter uses.
pub(super) fn as_chapter(run: &Run, wanted: Wanted) -> BringupRun {
    let target = u64::from(wanted.tunnels);
    let extrapolated = (!run.finished)
        .then(|| fit::extrapolate(&run.samples, target))
        .flatten();
    BringupRun {
        build: run.build.name.into(),
        label: run.build.label(),
        samples: run.samples.clone(),
        target,
        finished: run.finished,
        extrapolated_s: extrapolated.map(|extrapolation| extrapolation.seconds),
        cpu_s: run.lns.cpu_s + run.lac.cpu_s,
    }
}
