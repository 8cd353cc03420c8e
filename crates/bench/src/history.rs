//! `headend bench history`: re-runs published scaling failures on this machine, and writes one HTML
//! page about them.

mod capture;
mod filter;
mod gateway;
mod mesh;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cli::interrupt::{self, AtEnd};
use lab::history::{Chapter, Verdict, chapter_bringup, chapter_poll, document, page};
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
    /// Print the JSON file instead of the verdicts; after a signal, with the chapters finished by then
    #[arg(long)]
    json: bool,
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
    let file = fs::canonicalize(&directory)
        .map(|directory| directory.join(file.file_name().unwrap_or_default()))
        .unwrap_or(file);
    let json_file = file.with_file_name("history.json");
    let names = CHAPTERS.map(|(name, _)| name);
    let page_name = file.to_string_lossy();
    let finished = Arc::new(Mutex::new(document(&names, &[], &page_name)));
    // A signal leaves the page of the chapters that are finished, and prints their JSON.
    let _at_end = args.json.then(|| print_at_end(&finished)).transpose()?;
    let witness = CoreWitness::start();
    let start = Instant::now();
    let mut chapters: Vec<Chapter> = Vec::new();
    for (number, (name, measure)) in (1..).zip(CHAPTERS) {
        let mut chapter = measure(args.quick)?;
        if args.quick {
            chapter.verdict = Verdict::withheld();
        }
        chapters.push(chapter);
        let json = document(&names, &chapters, &page_name);
        // A signal waits meanwhile: the page, the file and the printed object have the same chapters.
        let mut finished = lock(&finished);
        write_page(&file, &chapters, &MachineInfo::read())?;
        replace(&json_file, &json)?;
        *finished = json;
        drop(finished);
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
    let json = document(&names, &chapters, &page_name);
    replace(&json_file, &json)?;
    let written = figures(&chapters, machine).write(&directory)?;
    if args.json {
        print!("{json}");
    } else {
        print_verdicts(&chapters);
        println!(
            "{written}\nThe page: {page_name}\nIts verdicts and ratios: {}",
            json_file.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the chapters' JSON when a signal ends the run.
fn print_at_end(finished: &Arc<Mutex<String>>) -> Result<AtEnd> {
    let finished = Arc::clone(finished);
    interrupt::at_end(move || {
        let mut out = std::io::stdout().lock();
        // If nobody reads any more, there is nobody to report it to.
        let _ = out.write_all(lock(&finished).as_bytes());
        let _ = out.flush();
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn print_verdicts(chapters: &[Chapter]) {
    for (number, chapter) in (1..).zip(chapters) {
        println!(
            "{number}. {}: {}",
            chapter.title,
            chapter.verdict.outcome.words()
        );
        println!("   {}\n", chapter.verdict.why());
    }
}

/// Writes the page of these chapters.
fn write_page(file: &Path, chapters: &[Chapter], machine: &MachineInfo) -> Result<()> {
    replace(file, &page(chapters, machine))
}

/// Writes a file beside its place and moves it there, so that a signal leaves the old file or the new one.
fn replace(file: &Path, text: &str) -> Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".part");
    fs::write(&beside, text)
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
    let mut report = Report::new("history figures", machine);
    for chapter in chapters {
        report.method.extend(chapter.method.iter().cloned());
        report.tables.extend(chapter.tables.iter().cloned());
        report.charts.extend(chapter.charts.iter().cloned());
    }
    report
}
