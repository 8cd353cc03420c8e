//! `headend bench history`: re-runs published scaling failures on this machine, and writes one HTML
//! page about them.

mod capture;
mod filter;
mod gateway;
mod mesh;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab::history::{Chapter, Verdict, chapter_bringup, chapter_poll, page};
use lab::poll::Config;
use lab::report::{CoreWitness, MachineInfo, Report};
use reactor::StoreKind;

use super::bringup::build::Build;
use super::bringup::drive::Wanted;
use super::{bringup, poll};

/// The designs in the first chapter.
const BUILDS: [&str; 6] = ["r2929", "r3031", "r3125", "r3158", "r3181", "default"];

/// Re-run published scaling failures here, and write one HTML page about it.
#[derive(Debug, clap::Args)]
pub(super) struct HistoryArgs {
    /// The page; its figures go next to it [default: bench-results/history/index.html]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Measure with fewer tunnels, descriptors and packets
    #[arg(long)]
    quick: bool,
}

/// What measures a chapter; whether it is quick.
type Measure = fn(bool) -> Result<Chapter>;

/// The chapters in their order, each with its name for the terminal.
const CHAPTERS: [(&str, Measure); 6] = [
    ("tunnel bring-up", bringup_chapter),
    ("poll and epoll", poll_chapter),
    ("home gateway", gateway::chapter),
    ("capture", capture::chapter),
    ("filter", filter::chapter),
    ("full mesh", mesh::chapter),
];

/// Measures and writes the page, anew after each chapter: whatever ends it leaves the chapters before on it.
pub(super) fn run(args: &HistoryArgs) -> Result<ExitCode> {
    let file = args
        .out
        .clone()
        .unwrap_or_else(|| "bench-results/history/index.html".into());
    let directory = file.parent().unwrap_or(Path::new("")).to_owned();
    if !directory.as_os_str().is_empty() {
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
    }
    let witness = CoreWitness::start();
    let start = Instant::now();
    let mut chapters: Vec<Chapter> = Vec::new();
    for (number, (name, measure)) in (1..).zip(CHAPTERS) {
        let mut chapter = measure(args.quick)?;
        if args.quick {
            chapter.verdict = Verdict::withheld();
        }
        chapters.push(chapter);
        write_page(&file, &chapters, &MachineInfo::read())?;
        eprintln!(
            "history {number}/{}: {name}, after {:.0} s",
            CHAPTERS.len(),
            start.elapsed().as_secs_f64()
        );
    }
    let machine = MachineInfo::read_with(witness);
    if !args.quick {
        let company = bringup::company(&machine);
        chapters[0].verdict.remarks.extend(company);
    }
    write_page(&file, &chapters, &machine)?;
    for (number, chapter) in chapters.iter().enumerate() {
        println!(
            "{}. {}: {}",
            number + 1,
            chapter.title,
            chapter.verdict.outcome.words()
        );
        println!("   {}\n", chapter.verdict.why());
    }
    let written = figures(&chapters, machine).write(&directory)?;
    print!("{written}");
    println!(
        "\nThe page: {}",
        fs::canonicalize(&file).unwrap_or(file).display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Writes the page beside its place and moves it there, so that a signal leaves the old page or the new one.
fn write_page(file: &Path, chapters: &[Chapter], machine: &MachineInfo) -> Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".part");
    fs::write(&beside, page(chapters, machine))
        .and_then(|()| fs::rename(&beside, file))
        .with_context(|| format!("cannot write {}", file.display()))
}

fn bringup_chapter(quick: bool) -> Result<Chapter> {
    let builds: Vec<&'static Build> = BUILDS
        .iter()
        .filter_map(|name| Build::named(name))
        .collect();
    let wanted = if quick {
        Wanted::QUICK
    } else {
        // All runs together take less than two minutes, even if every build hits its limit.
        Wanted {
            tunnels: 10_000,
            cap: Duration::from_secs(5),
            rounds: 2,
            budget: Duration::from_secs(12),
        }
    };
    let bringup::Measured { runs, left_out } = bringup::measure(&builds, wanted)?;
    let curves: Vec<_> = runs
        .iter()
        .map(|run| bringup::as_chapter(run, wanted))
        .collect();
    let mut chapter = chapter_bringup(&curves);
    chapter.verdict.remarks.extend(bringup::remarks(&runs));
    chapter.tables.extend(bringup::tables(&runs));
    chapter.method.splice(0..0, bringup::method(wanted));
    chapter.method.extend(left_out);
    Ok(chapter)
}

fn poll_chapter(quick: bool) -> Result<Chapter> {
    let mut config = Config {
        watched: if quick {
            vec![64, 128, 250]
        } else {
            poll::sizes()?
        },
        ready: vec![1],
        stores: vec![StoreKind::Slab],
        ..Config::default()
    };
    if quick {
        config.rounds = 1;
        config.budget = base::Duration::from_millis(1);
    }
    let measured = poll::measure(&config)?;
    let mut chapter = chapter_poll(&poll::rows(&measured));
    chapter.method.splice(0..0, poll::method(&config));
    chapter.method.extend(measured.left_out);
    Ok(chapter)
}

/// The chapters' figures as files.
fn figures(chapters: &[Chapter], machine: MachineInfo) -> Report {
    let mut report = Report::new("history", machine);
    for chapter in chapters {
        report.method.extend(chapter.method.iter().cloned());
        report.tables.extend(chapter.tables.iter().cloned());
        report.charts.extend(chapter.charts.iter().cloned());
    }
    report
}
