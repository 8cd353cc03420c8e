//! Files, pictures and text of the runs.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use lab::bufferbloat::{self, Account, Grade, Run, Verdict, accounts, document, write_flent};
use plot::Stack;
use tool_ping::files::Target;
use tool_ping::save::save;

use super::args::Task;
use super::course::Ran;

/// Pixels per unit of a picture's width of 860 units.
const PNG_SCALE: f64 = 2.0;

/// The format of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Svg,
    Png,
    Html,
}

/// The output files, opened before the test. With --exec each run has its own result.
pub(super) struct Files {
    results: Vec<Target>,
    flents: Vec<Target>,
    plots: Vec<(Format, Target)>,
}

impl Files {
    /// Opens the files.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub(super) fn open(task: &Task) -> Result<Files> {
        let formats: Vec<Format> = task
            .plots
            .iter()
            .map(|path| format(path))
            .collect::<Result<_>>()?;
        let each = |path: &Option<PathBuf>| -> Vec<PathBuf> {
            match (path, task.exec.is_some()) {
                (None, _) => Vec::new(),
                (Some(path), false) => vec![path.clone()],
                (Some(path), true) => vec![named(path, "before"), named(path, "after")],
            }
        };
        let (results, flents) = (each(&task.output), each(&task.flent));
        let all = results.iter().chain(&flents).chain(&task.plots);
        let mut targets = Target::open_all(all.map(PathBuf::as_path))?.into_iter();
        let mut take = |count: usize| targets.by_ref().take(count).collect::<Vec<Target>>();
        Ok(Files {
            results: take(results.len()),
            flents: take(flents.len()),
            plots: formats.into_iter().zip(take(task.plots.len())).collect(),
        })
    }
}

/// `before-FILE` beside FILE.
fn named(path: &Path, run: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(run);
    name.push("-");
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

fn format(path: &Path) -> Result<Format> {
    let suffix = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    match suffix.to_ascii_lowercase().as_str() {
        "svg" => Ok(Format::Svg),
        "png" if !plot::CAN_WRITE_PNG => {
            bail!("--plot {}: {}", path.display(), plot::PngError::NotBuilt)
        }
        "png" => Ok(Format::Png),
        "html" | "htm" => Ok(Format::Html),
        _ => bail!(
            "--plot {}: a plot's name ends in .svg, .png or .html",
            path.display()
        ),
    }
}

/// Writes all files and prints the result, and each fault but the last one, which ended the test. Without a run it does
/// nothing.
///
/// # Errors
/// The first file that could not be written.
pub(super) fn publish(
    task: &Task,
    files: Files,
    ran: &[(String, Ran)],
    last: Option<&str>,
) -> Result<()> {
    if ran.is_empty() {
        return Ok(());
    }
    let mut written = Ok(());
    let mut runs: Vec<(&str, &Run)> = Vec::new();
    runs.extend(task.compare.iter().map(|(name, run)| (name.as_str(), run)));
    runs.extend(ran.iter().map(|(name, ran)| (name.as_str(), &ran.run)));
    for (target, (_, ran)) in files.results.into_iter().zip(ran) {
        written = written.and(save(target, &ran.outcome));
    }
    for (target, (name, ran)) in files.flents.into_iter().zip(ran) {
        written = written.and(write(target, write_flent(&ran.run, name).as_bytes()));
    }
    for (format, target) in files.plots {
        let octets = match format {
            Format::Html => bufferbloat::page(&runs).to_html().into_bytes(),
            Format::Svg => stack(&runs).to_svg().into_bytes(),
            Format::Png => stack(&runs).to_png(PNG_SCALE)?,
        };
        written = written.and(write(target, &octets));
    }
    for (name, run) in runs.iter().skip(task.compare.len()) {
        let faults = run.faults.iter();
        for fault in faults.filter(|fault| last != Some(fault.as_str())) {
            eprintln!("headend lab: {}{fault}", prefix(ran.len(), name));
        }
    }
    let mut out = std::io::stdout().lock();
    if task.json {
        writeln!(out, "{}", document(&runs, task.exec.as_deref()))?;
    } else {
        out.write_all(text(&runs).as_bytes())?;
    }
    out.flush()?;
    written
}

fn stack(runs: &[(&str, &Run)]) -> Stack {
    bufferbloat::stack(runs)
}

fn prefix(runs: usize, name: &str) -> String {
    match runs {
        1 => String::new(),
        _ => format!("{name}: "),
    }
}

/// Compressed if the file's name says so.
fn write(target: Target, octets: &[u8]) -> Result<()> {
    let is_compressed = target.suffix() == Some("gz");
    target.write(|mut file| {
        if !is_compressed {
            return file.write_all(octets).map(|()| file);
        }
        let mut gzip = GzEncoder::new(file, Compression::default());
        gzip.write_all(octets)?;
        gzip.finish()
    })
}

fn text(runs: &[(&str, &Run)]) -> String {
    let mut text = String::new();
    for (name, run) in runs {
        let accounts = accounts(run);
        let prefix = prefix(runs.len(), name);
        let congestion = match run.congestion.as_str() {
            "" => "the kernels' own congestion control".to_owned(),
            name => format!("congestion control {name}"),
        };
        text += &format!(
            "{prefix}{} ({}), TCP streams in each direction: {}, {congestion}\n",
            run.host, run.address, run.streams
        );
        text += &table(&accounts);
        let verdict = Verdict::of(&accounts);
        text += &format!("{prefix}{}\n", verdict.sentence);
        let is_good = |grade: Option<Grade>| grade.is_none_or(|grade| grade <= Grade::A);
        let is_shaped =
            verdict.grade.is_some() && is_good(verdict.down_grade) && is_good(verdict.up_grade);
        // A line without long queues needs no shaper, and behind one its rates would fall with each run.
        if let Some(set) = verdict.set.as_ref().filter(|_| !is_shaped) {
            let flags: Vec<String> = set
                .split(',')
                .map(|part| format!("--{}", part.replace('=', " ")))
                .collect();
            text += &format!(
                "{prefix}For a shaper, 90 % of the measured rates: headend qos rate {}\n",
                flags.join(" ")
            );
        }
        text.push('\n');
    }
    if let [(one, first), .., (other, last)] = runs {
        let of = |run| {
            let verdict = Verdict::of(&accounts(run));
            let grade = verdict.grade.map_or("-", |grade| grade.name());
            let added = verdict
                .added_ms
                .map_or("-".to_owned(), |ms| format!("{ms:.1}"));
            (grade, added)
        };
        let ((grade, added), (grade_now, added_now)) = (of(first), of(last));
        text += &format!(
            "{one} to {other}: added delay {added} ms to {added_now} ms, grade {grade} to {grade_now}\n"
        );
    }
    text
}

fn table(accounts: &[Account]) -> String {
    let width = accounts.iter().flat_map(|account| &account.pings);
    let width = width
        .map(|delay| delay.name.len())
        .max()
        .unwrap_or(0)
        .max(5);
    let mut text = format!(
        "{:<5} {:<width$} {:>6} {:>5} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}\n",
        "PHASE",
        "PINGS",
        "SENT",
        "LOST",
        "MIN ms",
        "P50 ms",
        "P95 ms",
        "MAX ms",
        "TO p95",
        "FROM p95",
        "DOWN",
        "UP Mbit/s"
    );
    let us = |us: Option<u64>| us.map_or("-".to_owned(), |us| format!("{:.2}", us as f64 / 1e3));
    let signed =
        |us: Option<i64>| us.map_or("-".to_owned(), |us| format!("{:.2}", us as f64 / 1e3));
    let rate =
        |bps: Option<u64>| bps.map_or("-".to_owned(), |bps| format!("{:.2}", bps as f64 / 1e6));
    for account in accounts {
        for delay in &account.pings {
            let line = format!(
                "{:<5} {:<width$} {:>6} {:>5} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}",
                account.kind.name(),
                delay.name,
                delay.sent,
                delay.lost,
                us(delay.min_us),
                us(delay.p50_us),
                us(delay.p95_us),
                us(delay.max_us),
                signed(delay.up_p95_us),
                signed(delay.down_p95_us),
                rate(account.down_bps),
                rate(account.up_bps),
            );
            text += line.trim_end();
            if !account.complete {
                text += "  cut short";
            }
            text.push('\n');
        }
    }
    text
}
