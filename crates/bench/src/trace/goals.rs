//! The goals of the analyser, and whether this run reached them.

use lab::report::{Cell, Table};

use super::course::{MANY, Measured, Plan, Results};
use super::programs::TraceProgram;

/// Goal: packets per second of one core, in millions, by capture.
const RATES: [(&str, f64); 5] = [
    ("clean", 12.0),
    ("oneway-sack", 8.0),
    ("twoway-drops", 8.0),
    (MANY, 3.0),
    ("mixed", 5.0),
];
/// Goal: processor time in seconds, at scale 1, for the capture that was published as taking hours.
const HOURS: (&str, f64) = ("oneway-loss", 0.4);
/// Captures whose cost per packet must not depend on their length, and the tolerance for that.
const FLAT: [&str; 3] = ["oneway-loss", "oneway-sack", "twoway-drops"];
const FLAT_MAX: f64 = 1.1;
/// Goal: memory of a connection, in bytes.
const MEMORY_BYTES: f64 = 512.0;
/// Goal: speed of two threads relative to one.
const TWO_THREADS: f64 = 1.7;
/// Goal: rate with graphs relative to the rate without.
const GRAPHS: f64 = 0.5;

/// Goal: processor time of `why` relative to the analysis alone.
const WHY: f64 = 1.25;

/// A row for each goal.
struct Rows(Table);

impl Rows {
    fn add(&mut self, what: &str, at: &Measured, goal: String, measured: String, reached: bool) {
        let reached = if reached { "yes" } else { "no" };
        self.0.row([
            at.kind.into(),
            at.packets.into(),
            Cell::from(what),
            goal.into(),
            measured.into(),
            reached.into(),
        ]);
    }
}

/// Each goal beside our result.
pub(super) fn table(plan: &Plan, results: &Results) -> Table {
    let columns = [
        ("capture", ""),
        ("packets", ""),
        ("what", ""),
        ("to reach", ""),
        ("measured", ""),
        ("reached", ""),
    ];
    let mut rows = Rows(Table::new("What is to be reached", &columns));
    for kind in &plan.kinds {
        let Some(one) = results.at(TraceProgram::Quiet, kind, plan.factor) else {
            continue;
        };
        time(plan, one, &mut rows);
        if FLAT.contains(kind)
            && let Some(exponent) = results.exponent(TraceProgram::Quiet, kind)
        {
            rows.add(
                "flat",
                one,
                format!("<= {FLAT_MAX:.2}, the exponent of CPU"),
                format!("{exponent:.2}"),
                exponent <= FLAT_MAX,
            );
        }
        if let Some(bytes) = held_bytes(results, one) {
            rows.add(
                "memory of a connection",
                one,
                format!("<= {MEMORY_BYTES} octets"),
                format!("{bytes:.0} octets"),
                bytes <= MEMORY_BYTES,
            );
        }
        why(results, kind, &mut rows);
        if let Some(two) = results.at(TraceProgram::Threads(2), kind, plan.factor) {
            let gain = one.elapsed_s() / two.elapsed_s().max(1e-9);
            rows.add(
                "two threads",
                two,
                format!(">= {TWO_THREADS}x one"),
                format!("{gain:.2}x"),
                gain >= TWO_THREADS,
            );
        }
        for (program, what) in [
            (TraceProgram::Sequences, "graphs, -S"),
            (TraceProgram::Graphs, "graphs, -G"),
        ] {
            if let Some(with) = results.at(program, kind, plan.factor) {
                let share = with.packets_per_s() / one.packets_per_s();
                rows.add(
                    what,
                    with,
                    format!(">= {GRAPHS}x without"),
                    format!("{share:.2}x"),
                    share >= GRAPHS,
                );
            }
        }
    }
    rows.0
}

/// `why` beside the analysis alone, at each size.
fn why(results: &Results, kind: &str, rows: &mut Rows) {
    for with in results.of(TraceProgram::Why, kind) {
        if let Some(without) = results.at(TraceProgram::Quiet, kind, with.factor) {
            let ratio = with.cpu_s() / without.cpu_s().max(1e-9);
            rows.add(
                "why",
                with,
                format!("<= {WHY:.2}x CPU of -q"),
                format!("{ratio:.2}x"),
                ratio <= WHY,
            );
        }
    }
}

fn time(plan: &Plan, one: &Measured, rows: &mut Rows) {
    if one.kind == HOURS.0 {
        let limit_s = HOURS.1 * plan.factor;
        rows.add(
            "CPU",
            one,
            format!("< {} s", short(limit_s)),
            format!("{:.3} s", one.cpu_s()),
            one.cpu_s() < limit_s,
        );
    }
    if let Some((_, goal)) = RATES.iter().find(|(kind, _)| *kind == one.kind) {
        let rate = one.packets_per_s() / 1e6;
        rows.add(
            "packets per s of a core",
            one,
            format!(">= {goal} M"),
            format!("{rate:.2} M"),
            rate >= *goal,
        );
    }
}

fn short(value: f64) -> String {
    lab::plot::number::short(value)
}

/// Memory per connection in the capture of many connections.
pub(super) fn held_bytes(results: &Results, one: &Measured) -> Option<f64> {
    let connections = one.connections.filter(|n| *n > 1)?;
    let held = one
        .median()
        .resident_bytes
        .saturating_sub(results.one_connection_bytes?);
    Some(held as f64 / connections as f64)
}
