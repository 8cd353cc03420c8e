//! The tables of the deadlines report.

use base::Duration;
use lab::report::{Cell, Table};

use super::Plan;
use super::course::Phase;

/// Goals: the longest time without a KEEPALIVE in seconds, the longest handler and the 99th percentile of answers in
/// milliseconds.
const GAP_S: f64 = 1.3;
const HANDLER_MS: f64 = 20.0;
const ANSWER_MS: f64 = 50.0;

pub(super) fn all(plan: &Plan, phases: &[Phase]) -> Vec<Table> {
    vec![goals(plan, phases), gaps(phases), answers(phases)]
}

fn seconds(span: Duration) -> Cell {
    Cell::num(span.as_secs_f64(), 3)
}

/// The longest gaps of each phase.
fn gaps(phases: &[Phase]) -> Table {
    let mut table = Table::new(
        "Longest time between two messages of a session",
        &[
            ("program", ""),
            ("phase", ""),
            ("until idle", "s"),
            ("outcome", ""),
            ("idle peers up", ""),
            ("lost so far", ""),
            ("KEEPALIVE", "s"),
            ("joiners", "s"),
            ("HELLO", "s"),
            ("LCP echo", "s"),
        ],
    );
    for phase in phases {
        table.row([
            phase.program.clone().into(),
            phase.name.into(),
            Cell::num(phase.seconds, 1),
            phase.outcome.clone().into(),
            u64::from(phase.peers.up).into(),
            u64::from(phase.peers.lost).into(),
            seconds(phase.peers.gap),
            phase
                .joined
                .map_or(Cell::Missing, |joined| seconds(joined.gap)),
            phase.gaps.map_or(Cell::Missing, |gaps| seconds(gaps.hello)),
            phase.gaps.map_or(Cell::Missing, |gaps| seconds(gaps.echo)),
        ]);
    }
    table
}

/// Answers on the control socket, and the longest handlers.
fn answers(phases: &[Phase]) -> Table {
    let mut table = Table::new(
        "Answers of show event, and the longest handler",
        &[
            ("phase", ""),
            ("answers", ""),
            ("median", "ms"),
            ("p99", "ms"),
            ("longest", "ms"),
            ("handlers over 5 ms", ""),
            ("longest handler", ""),
            ("wall", "ms"),
            ("CPU", "ms"),
        ],
    );
    for phase in phases {
        let Some(answers) = phase.answers else {
            continue;
        };
        let longest = phase.longest.clone().unwrap_or_default();
        let has = phase.longest.is_some();
        let number = |value: f64| match has {
            true => Cell::num(value, 1),
            false => Cell::Missing,
        };
        table.row([
            phase.name.into(),
            answers.count.into(),
            Cell::num(answers.median, 2),
            Cell::num(answers.p99, 2),
            Cell::num(answers.max, 2),
            phase.overruns.into(),
            if has {
                longest.handler.into()
            } else {
                Cell::Missing
            },
            number(longest.wall_ms),
            number(longest.cpu_ms),
        ]);
    }
    table
}

/// Each goal beside our result.
fn goals(plan: &Plan, phases: &[Phase]) -> Table {
    let mut table = Table::new(
        "What is to be reached",
        &[
            ("what", ""),
            ("goal", ""),
            ("measured", ""),
            ("in phase", ""),
            ("reached", ""),
        ],
    );
    let ours = || phases.iter().filter(|phase| phase.program == "headend");
    let mut row = |what: &str, goal: String, measured: String, phase: &str, met: bool| {
        let met = if met { "yes" } else { "no" };
        table.row([
            what.into(),
            goal.into(),
            measured.into(),
            phase.into(),
            met.into(),
        ]);
    };
    let lost = ours()
        .map(|phase| phase.peers.lost + phase.joined.map_or(0, |joined| joined.lost))
        .max();
    if let Some(lost) = lost {
        let what = format!("BGP sessions lost, of {}", plan.peers + plan.joiners);
        row(&what, "0".into(), lost.to_string(), "all", lost == 0);
    }
    let gaps: [(&str, fn(&Phase) -> Option<f64>); 3] = [
        ("longest time without a KEEPALIVE", |phase| {
            Some(phase.peers.gap.as_secs_f64())
        }),
        ("longest time without a HELLO", |phase| {
            Some(phase.gaps?.hello.as_secs_f64())
        }),
        ("longest time without an LCP echo", |phase| {
            Some(phase.gaps?.echo.as_secs_f64())
        }),
    ];
    let mut worst = |what: &str, goal: f64, unit: &str, of: &dyn Fn(&Phase) -> Option<f64>| {
        let all = ours().filter_map(|phase| Some((of(phase)?, phase.name)));
        if let Some((value, phase)) = all.max_by(|a, b| a.0.total_cmp(&b.0)) {
            row(
                what,
                format!("{goal} {unit}"),
                format!("{value:.2} {unit}"),
                phase,
                value <= goal,
            );
        }
    };
    for (what, of) in gaps {
        worst(what, GAP_S, "s", &of);
    }
    let wall = |phase: &Phase| {
        Some(
            phase
                .longest
                .as_ref()
                .map_or(5.0, |longest| longest.wall_ms),
        )
    };
    worst("longest handler, wall time", HANDLER_MS, "ms", &wall);
    let cpu = |phase: &Phase| Some(phase.longest.as_ref()?.cpu_ms);
    worst("longest handler, CPU time", HANDLER_MS, "ms", &cpu);
    worst("show event, p99", ANSWER_MS, "ms", &|phase| {
        Some(phase.answers?.p99)
    });
    table
}
