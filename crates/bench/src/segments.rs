//! `headend bench segments`: the 2005 test harness for segment lists, and the look-up that made the
//! analysis of one capture take 7 hours.

use std::process::ExitCode;

use anyhow::Result;
use base::Duration;
use lab::plot::number::grouped;
use lab::plot::{Axis, COLOUR_OURS, Chart, Series, Style};
use lab::report::{Cell, CoreWitness, MachineInfo, Report, Table};
use lab::segments::{
    self, Case, Config, FLOOR, Row, SEGMENTS_PUBLISHED, SegmentsReport, Subject, agree,
};
use reactor::clock;

use super::Out;
use cli::progress::spinner;

/// Limit of segments of each case on which the lists are compared first; the old lists are too slow
/// for more.
const AGREE_ON_MAX: usize = 3_000;

/// Seed of the segments placed at random.
const SEED: u64 = 2005;

/// Measure the segment lists of 2005 and ours.
#[derive(Debug, clap::Args)]
pub(super) struct SegmentsArgs {
    /// Number of segments; twice and four times as many are measured too [default: 30000, with --quick 300]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    segments: Option<u32>,
    /// Measure each once, in less than a second
    #[arg(long)]
    quick: bool,
    /// Seconds after which a measurement is stopped
    #[arg(long, value_name = "S", default_value_t = 20,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    budget: u64,
    #[command(flatten)]
    out: Out,
}

impl SegmentsArgs {
    fn segments(&self) -> usize {
        let default = if self.quick { 300 } else { SEGMENTS_PUBLISHED };
        self.segments.map_or(default, |segments| segments as usize)
    }

    fn config(&self) -> Config {
        let mut config = Config {
            sizes: [1, 2, 4].map(|times| times * self.segments()).into(),
            budget: Duration::from_secs(self.budget),
            ..Config::default()
        };
        if self.quick {
            config.repeat = Duration::ZERO;
        }
        config
    }
}

/// Compares the lists, measures and publishes.
pub(super) fn run(args: &SegmentsArgs) -> Result<ExitCode> {
    let config = args.config();
    let witness = CoreWitness::start();
    let bar = spinner("segments");
    bar.set_message("holding the lists against each other");
    let held = AGREE_ON_MAX.min(args.segments());
    agree(held, SEED)?;
    let measured = segments::run(&config, &mut clock::now, &mut |row| {
        bar.set_message(format!("{}, {}, {}", row.case, row.list, row.n));
    })?;
    bar.finish_and_clear();
    let mut report = Report::new("segments", MachineInfo::read_with(witness));
    report.method = method(&config, held);
    report.tables = vec![
        harness_table(&measured, &config),
        recovery_table(&measured, &config),
    ];
    let charts = config.cases.iter().map(|&case| chart(&measured, case));
    report.charts = charts.map(Into::into).collect();
    args.out.publish(&report)?;
    Ok(ExitCode::SUCCESS)
}

fn method(config: &Config, held: usize) -> Vec<String> {
    vec![
        format!(
            "Before the clock starts, the lists tell the same of every segment, {} of each case and of as many at random; what each saw while it was timed is compared too.",
            grouped(held as f64, 0)
        ),
        format!(
            "Each is measured again until {} ms were, and the least is kept: other work on the machine only ever adds. After {} s a measurement is given up.",
            config.repeat.as_nanos() / 1_000_000,
            config.budget.as_nanos() / 1_000_000_000
        ),
        "A figure marked ~ is by the power law of the smaller sizes that were measured; without two of them there is none."
            .into(),
        "The exponent is that of the time against the segments by least squares over the logarithms: 1 is a constant cost per segment, 2 a walk over all of them."
            .into(),
        "No overlap: in order, to an empty list. All overlap: the same once more in the same order. Last octet overlaps: as many again behind them, each beginning with the last octet of the one before. Every 100th again: in order to an empty list, each hundredth packet the one two before it once more."
            .into(),
        "The last case's published time from the head is less than this takes at the pace of the published second case, 48 ms. It would fit lists of about a hundred segments."
            .into(),
        "In recovery: in order, from the 100th packet on each is looked up by where it begins, and each 500th is the one 24 before it once more. What was published is of a whole capture of 2.87 million packets. headend trace looks nothing up; with the look-up, ours says whether the octet before was seen."
            .into(),
        "The old lists' nodes stand in one array, so that a step costs less than over nodes allocated one by one. The floor pushes each segment to an array."
            .into(),
    ]
}

/// A row's time like `1.5`, in milliseconds; marked if it was extrapolated.
fn milliseconds(row: &Row) -> Cell {
    match row.seconds {
        None => "not run".into(),
        Some(seconds) if row.extrapolated => format!("~{}", grouped(seconds * 1e3, 0)).into(),
        Some(seconds) => Cell::num(seconds * 1e3, 3),
    }
}

fn exponent(measured: &SegmentsReport, case: Case, list: &str) -> Cell {
    let law = measured.law(case, list);
    law.map(|law| Cell::num(law.exponent, 2)).into()
}

fn headings(config: &Config) -> Vec<String> {
    let heading = |n: &usize| format!("at {}", grouped(*n as f64, 0));
    config.sizes.iter().map(heading).collect()
}

/// Adds the row of a subject, which starts with `cells`.
fn add(table: &mut Table, subject: &Subject, cells: Vec<Cell>) {
    if subject.name == FLOOR {
        table.floor(cells);
    } else {
        table.row(cells);
    }
}

fn harness_table(measured: &SegmentsReport, config: &Config) -> Table {
    let headings = headings(config);
    let published = format!("published at {}", grouped(SEGMENTS_PUBLISHED as f64, 0));
    let mut columns = vec![("case", ""), ("list", "")];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), "ms")));
    columns.push(("exponent", ""));
    columns.push((&published, "ms"));
    let mut table = Table::new("Four cases, against the segments", &columns);
    for case in Case::HARNESS {
        for subject in case.subjects() {
            let mut cells: Vec<Cell> = vec![case.name().into(), subject.name.into()];
            cells.extend(measured.curve(case, subject.name).map(milliseconds));
            cells.push(exponent(measured, case, subject.name));
            let published = subject.published_s.map(|s| Cell::num(s * 1e3, 1));
            cells.push(published.into());
            add(&mut table, &subject, cells);
        }
    }
    table
}

fn recovery_table(measured: &SegmentsReport, config: &Config) -> Table {
    let headings = headings(config);
    let mut columns = vec![("list", "")];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), "ms")));
    columns.push(("exponent", ""));
    columns.push(("published, of a capture", ""));
    let title = "A connection in recovery, against its segments";
    let mut table = Table::new(title, &columns);
    for subject in Case::Recovery.subjects() {
        let mut cells: Vec<Cell> = vec![subject.name.into()];
        let curve = measured.curve(Case::Recovery, subject.name);
        cells.extend(curve.map(milliseconds));
        cells.push(exponent(measured, Case::Recovery, subject.name));
        cells.push(subject.published.into());
        add(&mut table, &subject, cells);
    }
    table
}

fn chart(measured: &SegmentsReport, case: Case) -> Chart {
    let mut chart = Chart::new(
        format!("Segments: {}", case.name()),
        "Lower is faster. Twice as steep is a walk over all segments for each.",
        Axis::log("segments", ""),
        Axis::log("time", "s"),
    );
    for (i, subject) in case.subjects().into_iter().enumerate() {
        let is_ours = subject.name.starts_with("ours");
        let colour = match subject.name {
            FLOOR => 7,
            _ if is_ours => COLOUR_OURS,
            _ => i,
        };
        let points = |extrapolated: bool| -> Vec<(f64, f64)> {
            measured
                .curve(case, subject.name)
                .filter(|row| row.extrapolated == extrapolated)
                .filter_map(|row| Some((row.n as f64, row.seconds?)))
                .collect()
        };
        let (known, guessed) = (points(false), points(true));
        if !guessed.is_empty() {
            let name = format!("{}, extrapolated", subject.name);
            // The extrapolated line starts at the last measured point.
            let line = known.last().copied().into_iter().chain(guessed).collect();
            let series = Series::new(name, Style::Dotted, colour, line);
            chart.series.push(series);
        }
        let series = Series::new(subject.name, Style::Solid, colour, known);
        chart
            .series
            .push(if is_ours { series.bold() } else { series });
        // The published figures for recovery are for a whole capture.
        if let Some(seconds) = subject.published_s.filter(|_| case != Case::Recovery) {
            let name = format!("{}, published", subject.name);
            let point = vec![(SEGMENTS_PUBLISHED as f64, seconds)];
            let series = Series::new(name, Style::Dashed, colour, point);
            chart.series.push(series);
        }
    }
    chart
}
