//! `headend bench poll`: the cost of a wait with each poller and descriptor store, as the number of
//! watched descriptors grows.

use std::process::ExitCode;

use anyhow::Result;
use base::Duration;
use lab::history::{PollRow, chapter_poll};
use lab::plot::number::grouped;
use lab::plot::{Axis, COLOUR_OURS, Chart, Series, Style};
use lab::poll::{self, Config, FLOOR, PollReport, Row};
use lab::report::{Cell, CoreWitness, MachineInfo, Report, Table};
use reactor::{StoreKind, limits};

use super::Out;
use cli::progress::spinner;

/// Measure what a wait costs with each poller.
#[derive(Debug, clap::Args)]
pub(super) struct PollArgs {
    /// Measure up to 250 descriptors, in a second or two
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    out: Out,
}

/// Measures and publishes.
pub(super) fn run(args: &PollArgs) -> Result<ExitCode> {
    let mut config = Config {
        watched: sizes()?,
        ..Config::default()
    };
    if args.quick {
        config.watched = vec![64, 128, 250];
        config.budget = Duration::from_millis(1);
        config.rounds = 1;
    }
    let witness = CoreWitness::start();
    let measured = measure(&config)?;
    let chapter = chapter_poll(&rows(&measured));
    let mut report = Report::new("poll", MachineInfo::read_with(witness));
    report.method = method(&config);
    report.method.extend(measured.left_out.iter().cloned());
    report.method.push(format!(
        "{}: {}",
        chapter.verdict.outcome.words(),
        chapter.verdict.why()
    ));
    report.tables = vec![table(&measured), table_calls(&measured)];
    report.charts = chapter.charts;
    report.charts.push(chart_stores(&measured).into());
    args.out.publish(&report)?;
    Ok(ExitCode::SUCCESS)
}

/// The published sizes, those around them, and one near the limit on descriptors.
///
/// # Errors
/// The limit cannot be raised.
pub(super) fn sizes() -> Result<Vec<usize>> {
    let room = limits::raise_descriptor_limit()?.saturating_sub(2 * limits::DESCRIPTOR_RESERVE);
    let mut sizes = vec![64, 250, 384, 1_000, 4_000, 10_000];
    // Far larger sizes take long and show nothing new.
    sizes.push(usize::try_from(room).unwrap_or(usize::MAX).min(40_000));
    sizes.retain(|&size| size as u64 <= room);
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

/// Measures, and reports progress.
///
/// # Errors
/// The kernel refuses a descriptor, or a wait fails.
pub(super) fn measure(config: &Config) -> Result<PollReport> {
    let bar = spinner("poll");
    let measured = poll::run(config, &mut |row| {
        bar.set_message(format!("{} descriptors, {} ready", row.watched, row.ready));
    });
    bar.finish_and_clear();
    Ok(measured?)
}

/// The rows for the history's chapter: one store, so that only the pollers differ.
pub(super) fn rows(measured: &PollReport) -> Vec<PollRow> {
    let taken = |row: &&Row| row.poller == FLOOR || row.store == StoreKind::Slab.name();
    let row = |row: &Row| PollRow {
        poller: row.poller.into(),
        watched: row.watched as u64,
        ready: row.ready as u64,
        ns_per_wait: row.ns_per_wait,
        cpu_ns_per_wait: row.cpu_ns_per_wait,
    };
    let mut rows: Vec<PollRow> = measured.rows.iter().filter(taken).map(row).collect();
    // The floor watches only ready descriptors and does not depend on the number watched, so its
    // minimum is taken.
    let mut floors: Vec<PollRow> = rows.extract_if(.., |row| row.poller == FLOOR).collect();
    floors.sort_by(|a, b| {
        (a.ready, a.ns_per_wait)
            .partial_cmp(&(b.ready, b.ns_per_wait))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    floors.dedup_by_key(|floor| floor.ready);
    rows.extend(floors);
    rows
}

/// How the waits were measured, one sentence each.
pub(super) fn method(config: &Config) -> Vec<String> {
    vec![
        "A turn makes a few descriptors ready, waits for them, finds whose they are, and reads them. The idle ones are UDP sockets; the ready ones lie in the middle of them."
            .into(),
        format!(
            "Each row is measured {} times for {} ms, in turn with the others of its size, and the least is kept: other work on the machine only ever adds.",
            config.rounds,
            config.budget.as_nanos() / 1_000_000
        ),
        "CPU is that of a turn less what making the descriptors ready and reading them takes. The floor is epoll on the ready descriptors alone."
            .into(),
    ]
}

fn table(measured: &PollReport) -> Table {
    let columns = [
        ("poller", ""),
        ("store", ""),
        ("watched", ""),
        ("ready", ""),
        ("time per wait", "ns"),
        ("CPU per wait", "ns"),
    ];
    let mut table = Table::new("Time and CPU per wait", &columns);
    for row in &measured.rows {
        let cells = [
            row.poller.into(),
            row.store.into(),
            row.watched.into(),
            row.ready.into(),
            Cell::num(row.ns_per_wait, 0),
            Cell::num(row.cpu_ns_per_wait, 0),
        ];
        if row.poller == FLOOR {
            table.floor(cells);
        } else {
            table.row(cells);
        }
    }
    table
}

/// System calls by name, for the largest size.
fn table_calls(measured: &PollReport) -> Table {
    let largest = measured
        .rows
        .iter()
        .map(|row| row.watched)
        .max()
        .unwrap_or(0);
    let of_largest = |row: &&Row| row.watched == largest && row.store == StoreKind::Slab.name();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in measured
        .rows
        .iter()
        .filter(of_largest)
        .flat_map(|row| &row.calls_per_wait)
    {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let mut columns = vec![("poller", ""), ("ready", "")];
    columns.extend(names.iter().map(|name| (*name, "")));
    let title = format!(
        "System calls per turn at {} descriptors",
        grouped(largest as f64, 0)
    );
    let mut table = Table::new(title, &columns);
    for row in measured.rows.iter().filter(of_largest) {
        let mut cells: Vec<Cell> = vec![row.poller.into(), row.ready.into()];
        cells.extend(names.iter().map(|name| {
            let call = row.calls_per_wait.iter().find(|(known, _)| known == name);
            Cell::num(call.map_or(0.0, |(_, count)| *count), 2)
        }));
        table.row(cells);
    }
    table
}

/// The cost that the descriptor store adds to epoll when most descriptors are ready.
fn chart_stores(measured: &PollReport) -> Chart {
    let ready = measured.rows.iter().map(|row| row.ready).max().unwrap_or(0);
    let mut chart = Chart::new(
        "What finding the owners of ready descriptors adds",
        format!("epoll, {ready} descriptors ready in each wait, by the store of the descriptors."),
        Axis::log("descriptors watched", ""),
        Axis::log("time per wait", "ns"),
    );
    for (i, store) in StoreKind::ALL.iter().enumerate() {
        let is_it =
            |row: &&Row| row.poller == "epoll" && row.store == store.name() && row.ready == ready;
        let points = measured
            .rows
            .iter()
            .filter(is_it)
            .map(|row| (row.watched as f64, row.ns_per_wait))
            .collect();
        let is_ours = *store == StoreKind::Slab;
        let colour = if is_ours { COLOUR_OURS } else { i };
        let series = Series::new(store.name(), Style::Solid, colour, points);
        chart
            .series
            .push(if is_ours { series.bold() } else { series });
    }
    chart
}
