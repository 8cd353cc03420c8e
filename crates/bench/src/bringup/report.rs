//! Tables and charts of bring-ups.

use lab::fit;
use lab::history::{BringupRun, Claim, Verdict, chapter_bringup};
use lab::plot::number::grouped;
use lab::plot::{Axis, COLOUR_OURS, Chart, Series, Style};
use lab::report::{Cell, MachineInfo, Report, Table};

use super::as_chapter;
use super::build::DEFAULT;
use super::drive::{Run, Side, Waits, Wanted};

/// Percentage of the cores that other processes may use before the ranking of the builds is in
/// doubt.
const OTHERS_PERCENT_MAX: f64 = 10.0;

/// The whole report of the runs.
pub(super) fn report(runs: &[Run], wanted: Wanted, machine: MachineInfo) -> Report {
    let curves: Vec<BringupRun> = runs.iter().map(|run| as_chapter(run, wanted)).collect();
    // The history chapter draws only our default design; its variants have a chart of their own.
    let told: Vec<BringupRun> = curves
        .iter()
        .filter(|run| is_published(run) || run.build == DEFAULT.name)
        .cloned()
        .collect();
    let chapter = chapter_bringup(&told);
    let mut verdict = chapter.verdict;
    verdict.remarks.extend(remarks(runs));
    verdict.remarks.extend(company(&machine));
    let mut report = Report::new("bringup", machine);
    report.method = method(wanted);
    report.method.extend(chapter.method);
    report.tables = vec![table_times(runs, wanted)];
    report.tables.extend(tables(runs));
    report.tables.push(table_verdict(&verdict));
    report.charts = chapter.charts;
    report.charts.extend(chart_ours(&curves).map(Into::into));
    report
}

fn is_published(run: &BringupRun) -> bool {
    lab::history::published::build(&run.build).is_some()
}

/// Our results beside the published claims, one sentence each.
pub(crate) fn remarks(runs: &[Run]) -> Vec<String> {
    let waits = |name: &str| {
        let run = runs.iter().find(|run| run.build.name == name)?;
        Some(run.lac.waits?.count / run.up().max(1) as f64)
    };
    let mut remarks = Vec::new();
    if let Some((kept, rebuilt)) = waits("r3158").zip(waits("r3125")) {
        remarks.push(format!(
            "r3158 was slower as published because it polled more often, with fewer descriptors ready in each; \
             here the LAC waits {kept:.2} times per tunnel with r3158 and {rebuilt:.2} times with r3125."
        ));
    }
    let has = |name: &str| runs.iter().any(|run| run.build.name == name);
    if has("r3031") && has("r3125") {
        remarks.push(
            "The sorted list of timers weighs less here than as published: a tunnel of ours arms one timer, for the \
             earliest of its deadlines, and poll takes most of the time of both r3031 and r3125."
                .into(),
        );
    }
    if runs.iter().any(|run| run.build.socket_each) {
        remarks.push(
            "With a socket per tunnel the kernel has a cost of its own, which no event library takes away: the LNS's \
             sockets share one address and port, and it walks over them for each tunnel's first datagram."
                .into(),
        );
    }
    remarks
}

/// A sentence if other work on the machine affected the times.
pub(crate) fn company(machine: &MachineInfo) -> Option<String> {
    let others = machine.others?.others_percent;
    (others > OTHERS_PERCENT_MAX).then(|| {
        format!(
            "Others used {others:.0} % of the cores meanwhile: builds that are close to each other may stand in the \
             wrong order, and should be run again on a quiet machine."
        )
    })
}

/// How the runs were made, one sentence each.
pub(crate) fn method(wanted: Wanted) -> Vec<String> {
    vec![
        format!(
            "Each run starts two daemons, LAC and LNS, on 127.0.0.1 and asks the LAC for {} L2TPv3 tunnels through its control socket, a request for each tunnel; \
             the number of requests under way follows the rate, 256 at most. A run ends when all are up, or after {} s. \
             Of up to {} runs of a build that gets through, in turn with the others, the fastest is shown: other work on the machine only ever adds.",
            grouped(wanted.tunnels.into(), 0),
            wanted.cap.as_secs_f64(),
            wanted.rounds
        ),
        "The builds are this program with other parts: timers in a sorted list walked from its head or in a tree, descriptors found by a walk over a list or in a tree, \
         poll with its set built again for each call or kept, or epoll; the config id probed on both sides; a connected socket for each tunnel."
            .into(),
        "Whatever else made the published builds slow is not in them here: datagrams are read in batches, peers are few, and L2TP itself is today's."
            .into(),
        "Time runs from the first request; a tunnel counts when the LAC reports it up. Processor time is the kernel's count for each daemon up to then."
            .into(),
    ]
}

/// The costs of the runs.
pub(crate) fn tables(runs: &[Run]) -> [Table; 2] {
    [table_costs(runs), table_calls(runs)]
}

/// When a quarter, half and all of the tunnels were up, the rate, and how the time grows.
fn table_times(runs: &[Run], wanted: Wanted) -> Table {
    let all = u64::from(wanted.tunnels);
    let sizes = [all / 4, all / 2, all];
    let headings = sizes.map(|size| format!("to {}", grouped(size as f64, 0)));
    let mut columns = vec![("build", ""), ("made of", ""), ("up", "")];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), "s")));
    columns.extend([
        ("rate", "1/s"),
        ("exponent", ""),
        ("extrapolated", "s"),
        ("between", "s"),
        ("failed and asked again", ""),
    ]);
    let mut table = Table::new("Bring-up: time", &columns);
    for run in runs {
        let end = (!run.finished)
            .then(|| fit::extrapolate(&run.samples, all))
            .flatten();
        let mut cells: Vec<Cell> = vec![
            run.build.name.into(),
            run.build.label().into(),
            run.up().into(),
        ];
        cells.extend(sizes.map(|size| run.seconds_to(size).map(|s| Cell::num(s, 3)).into()));
        cells.extend([
            Cell::num(run.up() as f64 / run.seconds().max(1e-9), 0),
            fit::growth(&run.samples, 0.25)
                .map(|law| Cell::num(law.exponent, 2))
                .into(),
            end.map(|end| Cell::num(end.seconds, 1)).into(),
            end.map(|end| format!("{:.1} and {:.1}", end.span.0, end.span.1))
                .into(),
            run.failures.values().sum::<u64>().into(),
        ]);
        table.row(cells);
    }
    table
}

/// The cost of a tunnel on each side.
fn table_costs(runs: &[Run]) -> Table {
    let columns = [
        ("build", ""),
        ("side", ""),
        ("CPU per tunnel", "\u{b5}s"),
        ("waits per tunnel", ""),
        ("ready per wait", ""),
        ("ready of watched", "%"),
        ("calls per tunnel", ""),
        ("memory", "MB"),
    ];
    let mut table = Table::new("Bring-up: what a tunnel costs", &columns);
    for (run, name, side) in sides(runs) {
        let up = run.up().max(1) as f64;
        let calls: f64 = side.calls.iter().map(|(_, count)| count).sum();
        let waits = side.waits;
        table.row([
            run.build.name.into(),
            name.into(),
            Cell::num(side.cpu_s * 1e6 / up, 1),
            waits.map(|waits| Cell::num(waits.count / up, 2)).into(),
            waits
                .map(|waits| Cell::num(waits.ready / waits.count.max(1.0), 2))
                .into(),
            waits.map(ready_of_watched).into(),
            (!side.calls.is_empty())
                .then(|| Cell::num(calls / up, 2))
                .into(),
            side.rss_bytes
                .map(|rss| Cell::num(rss as f64 / 1e6, 1))
                .into(),
        ]);
    }
    table
}

/// In percent; the daemon reports it to a thousandth.
fn ready_of_watched(waits: Waits) -> Cell {
    if waits.ready_to_watched < 0.001 {
        "< 0.1".into()
    } else {
        format!("{:.1}", 100.0 * waits.ready_to_watched).into()
    }
}

/// The system calls of each side, by name.
fn table_calls(runs: &[Run]) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for (.., side) in sides(runs) {
        for (name, count) in &side.calls {
            if *count > 0.0 && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let mut columns = vec![("build", ""), ("side", "")];
    columns.extend(names.iter().map(|name| (*name, "")));
    let mut table = Table::new("Bring-up: system calls per tunnel", &columns);
    for (run, name, side) in sides(runs) {
        let up = run.up().max(1) as f64;
        let mut cells: Vec<Cell> = vec![run.build.name.into(), name.into()];
        cells.extend(names.iter().map(|name| {
            let call = side.calls.iter().find(|(known, _)| known == name);
            call.map(|(_, count)| Cell::num(count / up, 3)).into()
        }));
        table.row(cells);
    }
    table
}

fn sides(runs: &[Run]) -> impl Iterator<Item = (&Run, &'static str, &Side)> {
    runs.iter()
        .flat_map(|run| [(run, "LNS", &run.lns), (run, "LAC", &run.lac)])
}

/// Whether each published claim was reproduced.
fn table_verdict(verdict: &Verdict) -> Table {
    let title = format!(
        "Bring-up: the published account is: {}",
        verdict.outcome.words()
    );
    let mut table = Table::new(title, &[("claim", ""), ("because", "")]);
    for Claim { holds, because } in &verdict.claims {
        let held = match holds {
            Some(true) => "held",
            Some(false) => "did not hold",
            None => "not tested",
        };
        table.row([held.into(), because.as_str().into()]);
    }
    for remark in &verdict.remarks {
        table.row(["".into(), remark.as_str().into()]);
    }
    table
}

/// Our own design beside variants with one part changed.
fn chart_ours(curves: &[BringupRun]) -> Option<Chart> {
    let ours: Vec<&BringupRun> = curves.iter().filter(|run| !is_published(run)).collect();
    if ours.len() < 2 {
        return None;
    }
    let mut chart = Chart::new(
        "Our own design, and with one part changed",
        "Further left is faster.",
        Axis::linear("time", "s"),
        Axis::linear("tunnels up", ""),
    );
    for (i, run) in ours.into_iter().enumerate() {
        let points = run.samples.iter().map(|(s, up)| (*s, *up as f64)).collect();
        let name = format!("{}: {}", run.build, run.label);
        chart.series.push(if run.build == DEFAULT.name {
            Series::new(name, Style::Solid, COLOUR_OURS, points).bold()
        } else {
            Series::new(name, Style::Solid, i, points)
        });
    }
    Some(chart)
}
