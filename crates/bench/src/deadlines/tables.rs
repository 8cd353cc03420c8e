//! Makes the tables of the deadlines report. Start reading at [`all`].

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

/// A row for each goal.
struct Goals<'a> {
    table: Table,
    /// The phases of our daemon.
    ours: Vec<&'a Phase>,
}

impl Goals<'_> {
    fn row(&mut self, what: &str, [goal, measured]: [String; 2], phase: &str, met: bool) {
        let met = if met { "yes" } else { "no" };
        let cells = [
            what.into(),
            goal.into(),
            measured.into(),
            phase.into(),
            met.into(),
        ];
        self.table.row(cells);
    }

    /// The phase with the largest value, beside the goal.
    fn worst(&mut self, what: &str, (goal, unit): (f64, &str), of: impl Fn(&Phase) -> Option<f64>) {
        let all = self
            .ours
            .iter()
            .filter_map(|phase| Some((of(phase)?, phase.name)));
        if let Some((value, phase)) = all.max_by(|a, b| a.0.total_cmp(&b.0)) {
            let text = [format!("{goal} {unit}"), format!("{value:.2} {unit}")];
            self.row(what, text, phase, value <= goal);
        }
    }
}

/// Each goal beside our result.
fn goals(plan: &Plan, phases: &[Phase]) -> Table {
    let columns = [
        ("what", ""),
        ("goal", ""),
        ("measured", ""),
        ("in phase", ""),
        ("reached", ""),
    ];
    let mut goals = Goals {
        table: Table::new("What is to be reached", &columns),
        ours: phases
            .iter()
            .filter(|phase| phase.program == "headend")
            .collect(),
    };
    let lost = |phase: &&Phase| phase.peers.lost + phase.joined.map_or(0, |joined| joined.lost);
    if let Some(lost) = goals.ours.iter().map(lost).max() {
        let what = format!("BGP sessions lost, of {}", plan.peers + plan.joiners);
        goals.row(&what, ["0".into(), lost.to_string()], "all", lost == 0);
    }
    goals.worst("longest time without a KEEPALIVE", (GAP_S, "s"), |phase| {
        Some(phase.peers.gap.as_secs_f64())
    });
    goals.worst("longest time without a HELLO", (GAP_S, "s"), |phase| {
        Some(phase.gaps?.hello.as_secs_f64())
    });
    goals.worst("longest time without an LCP echo", (GAP_S, "s"), |phase| {
        Some(phase.gaps?.echo.as_secs_f64())
    });
    goals.worst("longest handler, wall time", (HANDLER_MS, "ms"), |phase| {
        // Shorter calls are not listed.
        Some(
            phase
                .longest
                .as_ref()
                .map_or(5.0, |longest| longest.wall_ms),
        )
    });
    goals.worst("longest handler, CPU time", (HANDLER_MS, "ms"), |phase| {
        Some(phase.longest_cpu)
    });
    goals.worst("show event, p99", (ANSWER_MS, "ms"), |phase| {
        Some(phase.answers?.p99)
    });
    goals.table
}
