//! `headend bench timers`: the cost of a timer in each timer store, as the number of timers grows.

use std::process::ExitCode;

use anyhow::Result;
use base::Duration;
use lab::fit;
use lab::plot::{Axis, COLOUR_OURS, Chart, Series, Style};
use lab::report::{Cell, CoreWitness, MachineInfo, Report, Table};
use lab::timers::{self, Config, FLOOR, Row, TimersReport};
use reactor::clock;

use super::Out;
use cli::progress::spinner;

/// The operations, and the heading of each.
const OPERATIONS: [(&str, &str); 4] = [
    ("insert", "Inserting a timer"),
    ("cancel", "Cancelling a timer"),
    ("expire", "Expiring a timer"),
    ("steady", "One expires and one is inserted"),
];

/// Measure insert, cancel and expire in each timer store.
#[derive(Debug, clap::Args)]
pub(super) struct TimersArgs {
    /// Measure up to 1,000 timers, in a second or two
    #[arg(long)]
    quick: bool,
    /// Seed of the deadlines and of the order of cancelling
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    out: Out,
}

impl TimersArgs {
    fn config(&self) -> Config {
        let mut config = Config {
            seed: self.seed,
            ..Config::default()
        };
        if self.quick {
            config.sizes.retain(|&n| n <= 1_000);
            config.budget = Duration::from_millis(20);
            config.operations_min = 2_000;
        }
        config
    }
}

/// Measures and publishes.
pub(super) fn run(args: &TimersArgs) -> Result<ExitCode> {
    let config = args.config();
    let witness = CoreWitness::start();
    let bar = spinner("timers");
    let measured = timers::run(&config, &mut clock::now, &mut |row| {
        bar.set_message(format!("{} {} of {}", row.store, row.operation, row.n));
    });
    bar.finish_and_clear();
    let mut report = Report::new("timers", MachineInfo::read_with(witness));
    report.method = method(&config);
    report.tables = OPERATIONS
        .map(|operation| table(&measured, operation))
        .into();
    report.charts = OPERATIONS
        .map(|operation| chart(&measured, operation).into())
        .into();
    args.out.publish(&report)?;
    Ok(ExitCode::SUCCESS)
}

fn method(config: &Config) -> Vec<String> {
    vec![
        format!(
            "Deadlines are uniform between 1 ms and 60 s from seed {}; the wheel's tick is {} ms.",
            config.seed,
            config.tick.as_nanos() / 1_000_000
        ),
        "Each store is first filled and emptied in a random order, so that it runs in memory as it is after long use."
            .into(),
        "Insert goes from empty to n, cancel from n to empty in random order, expire from n to empty with a stop at each next deadline; n are armed all the time while one expires and one is inserted."
            .into(),
        "An insert marked ~ did not fill the store in its time: it is half of what an insert costs with all n armed, since the walk is half as long on the average."
            .into(),
        "The exponent is that of the nanoseconds against n by least squares over the logarithms: 0 is flat, 1 linear."
            .into(),
        "The floor pushes as many entries to an array and pops them.".into(),
    ]
}

/// The stores of a report, each once, with their rows for one operation.
fn stores<'a>(measured: &'a TimersReport, operation: &str) -> Vec<(&'static str, Vec<&'a Row>)> {
    let mut stores: Vec<(&'static str, Vec<&Row>)> = Vec::new();
    for row in measured.rows.iter().filter(|r| r.operation == operation) {
        match stores.iter_mut().find(|(store, _)| *store == row.store) {
            Some((_, rows)) => rows.push(row),
            None => stores.push((row.store, vec![row])),
        }
    }
    stores
}

fn points(rows: &[&Row]) -> Vec<(f64, f64)> {
    let point = |row: &&Row| (row.n as f64, row.ns_per_op);
    rows.iter().map(point).collect()
}

fn table(measured: &TimersReport, (operation, title): (&str, &str)) -> Table {
    let stores = stores(measured, operation);
    let sizes: Vec<usize> = stores
        .first()
        .map_or_else(Vec::new, |(_, rows)| rows.iter().map(|r| r.n).collect());
    let headings: Vec<String> = sizes
        .iter()
        .map(|n| format!("at {}", lab::plot::number::grouped(*n as f64, 0)))
        .collect();
    let mut columns = vec![("store", "")];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), "ns")));
    columns.push(("exponent", ""));
    let mut table = Table::new(format!("{title}, against the timers armed"), &columns);
    for (store, rows) in &stores {
        let mut name = (*store).to_owned();
        if rows.iter().any(|row| row.extrapolated) {
            let from = rows.iter().find(|row| row.extrapolated).map_or(0, |r| r.n);
            name += &format!(" (~ from {})", lab::plot::number::grouped(from as f64, 0));
        }
        let mut cells: Vec<Cell> = vec![name.into()];
        cells.extend(rows.iter().map(|row| Cell::num(row.ns_per_op, 1)));
        cells.push(
            fit::log_log(&points(rows))
                .map(|law| Cell::num(law.exponent, 2))
                .into(),
        );
        if *store == FLOOR {
            table.floor(cells);
        } else {
            table.row(cells);
        }
    }
    table
}

fn chart(measured: &TimersReport, (operation, title): (&str, &str)) -> Chart {
    let mut chart = Chart::new(
        format!("{title}, against the timers armed"),
        "Lower is faster. A line that rises pays for timers that merely exist.",
        Axis::log("timers armed", ""),
        Axis::log("time per timer", "ns"),
    );
    for (i, (store, rows)) in stores(measured, operation).into_iter().enumerate() {
        let (colour, name) = match store {
            "wheel" => (COLOUR_OURS, "wheel (the default)"),
            FLOOR => (7, "floor: an array"),
            other => (i, other),
        };
        let series = Series::new(name, Style::Solid, colour, points(&rows));
        chart.series.push(if store == "wheel" {
            series.bold()
        } else {
            series
        });
        let guessed: Vec<&Row> = rows.iter().copied().filter(|r| r.extrapolated).collect();
        if !guessed.is_empty() {
            let name = format!("{store}, judged from inserts at n");
            let series = Series::new(name, Style::Dotted, colour, points(&guessed));
            chart.series.push(series);
        }
    }
    chart
}
