//! Tables and chart of the results for packets and pages.

use anyhow::Result;
use lab::plot::number::grouped;
use lab::plot::{Axis, COLOUR_OURS, Chart, Series, Style};
use lab::report::{Cell, Table};

use super::{Config, FLOOR, classify, page, queues};

/// Goal: packets per second through a tree, in millions.
const REACH_MPPS: f64 = 6.0;

/// `at 1,024` for each number of flows.
fn headings(config: &Config) -> [String; 3] {
    config
        .flows
        .map(|flows| format!("at {}", grouped(f64::from(flows), 0)))
}

/// The cost of a packet's keys and class.
pub(super) fn classify_table(config: &Config, told: &mut dyn FnMut(String)) -> Table {
    let headings = headings(config);
    let mut columns = vec![("packets", ""), ("what", "")];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), "ns")));
    columns.extend([
        ("in the ring", "ns"),
        ("not loaded ahead", "ns"),
        ("to reach", "ns"),
    ]);
    let mut table = Table::new("Keys and class of a packet, against the flows", &columns);
    for mix in &classify::MIXES {
        told(format!("keys of {}", mix.name));
        let measured = classify::run(config, mix);
        for (step, what) in classify::STEPS.iter().enumerate() {
            let mut cells: Vec<Cell> = vec![mix.name.into(), (*what).into()];
            cells.extend(measured.iter().map(|column| Cell::num(column[step], 1)));
            if step == 0 {
                table.floor(cells);
            } else {
                cells.push(Cell::num(mix.reach_ns, 0));
                table.row(cells);
            }
        }
    }
    table
}

/// The cost of a packet in one of the queues, in nanoseconds.
pub(super) struct Passed {
    name: &'static str,
    at: [f64; 3],
    /// With the smallest number of flows, and many more idle ones.
    idle: f64,
}

/// Measures every queue.
///
/// # Errors
/// A packet that did not leave.
pub(super) fn pass(config: &Config, told: &mut dyn FnMut(String)) -> Result<Vec<Passed>> {
    let mut passed = Vec::new();
    for subject in queues::subjects() {
        told(subject.name.to_owned());
        let mut at = [0.0; 3];
        for (ns, &flows) in at.iter_mut().zip(&config.flows) {
            *ns = queues::run(config, &subject, flows, false)?;
        }
        let idle = queues::run(config, &subject, config.flows[0], true)?;
        passed.push(Passed {
            name: subject.name,
            at,
            idle,
        });
    }
    Ok(passed)
}

/// Millions per second, from nanoseconds each.
fn millions(ns: f64) -> f64 {
    1e3 / ns
}

/// Results in packets per second.
pub(super) fn queue_table(config: &Config, passed: &[Passed]) -> Table {
    let headings = headings(config);
    let mut columns = vec![("queue", "")];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), "M/s")));
    columns.extend([
        ("with idle flows", "M/s"),
        ("to reach", "M/s"),
        ("a packet", "ns"),
        ("of the floor's time", "x"),
    ]);
    let title = "Packets through a queue, against the flows";
    let mut table = Table::new(title, &columns);
    let floor = passed.first().map_or(f64::NAN, |floor| floor.at[0]);
    for Passed { name, at, idle } in passed {
        let mut cells: Vec<Cell> = vec![(*name).into()];
        cells.extend(at.map(|ns| Cell::num(millions(ns), 2)));
        cells.push(Cell::num(millions(*idle), 2));
        let is_tree = name.starts_with("htb");
        cells.push(is_tree.then_some(Cell::num(REACH_MPPS, 0)).into());
        cells.push(Cell::num(at[0], 1));
        cells.push(Cell::num(at[0] / floor, 2));
        if *name == FLOOR {
            table.floor(cells);
        } else {
            table.row(cells);
        }
    }
    table
}

/// The costs of a page of pings.
pub(super) fn page_table(config: &Config) -> Table {
    let taken = page::run(config.pings);
    let columns = [
        ("what", ""),
        ("measured", ""),
        ("to reach, of 10,000,000", ""),
    ];
    let title = format!("A page of {} pings", grouped(config.pings as f64, 0));
    let mut table = Table::new(title, &columns);
    table.row([
        "samples taken in, s".into(),
        Cell::num(taken.thin_s, 2),
        Cell::Missing,
    ]);
    table.row([
        "page written, all in all, s".into(),
        Cell::num(taken.all_s, 2),
        "below 5".into(),
    ]);
    table.row([
        "page, MB".into(),
        Cell::num(taken.megabytes, 2),
        "below 5".into(),
    ]);
    table
}

/// Time against flows.
pub(super) fn chart(config: &Config, passed: &[Passed]) -> Chart {
    let mut chart = Chart::new(
        "Packets through a queue",
        "Lower is faster. A line that rises pays for flows.",
        Axis::log("flows", ""),
        Axis::log("time per packet", "ns"),
    );
    for (i, Passed { name, at, .. }) in passed.iter().enumerate() {
        let is_ours = *name == "htb + fair";
        let colour = match *name {
            FLOOR => 7,
            _ if is_ours => COLOUR_OURS,
            _ => i,
        };
        let points = config.flows.iter().zip(at);
        let points = points.map(|(&flows, &ns)| (f64::from(flows), ns)).collect();
        let series = Series::new(*name, Style::Solid, colour, points);
        chart
            .series
            .push(if is_ours { series.bold() } else { series });
    }
    chart
}
