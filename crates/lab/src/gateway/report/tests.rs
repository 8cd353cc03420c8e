//! The report of a run with several engines.

use super::{engines, page, tables};
use crate::gateway::outcome::{EngineOutcome, Fairness, Outcome, RowOutcome, SCHEMA};
use crate::gateway::rows::{Result, Row};
use crate::gateway::treatment::Link;
use crate::report::MachineInfo;

fn row(number: usize, engine: &'static str, ping_ms: f64) -> RowOutcome {
    let mut row = RowOutcome::new(Row::ALL[number - 1], engine);
    row.runs.push(Result {
        page_ms: vec![10.0 * ping_ms],
        pings: vec![(0.0, Some(ping_ms)), (0.1, Some(ping_ms))],
        share: Some(0.5),
        ..Result::default()
    });
    row
}

/// Rows 2, 5 and 6 by two engines; the second fails in row 6.
fn compared() -> Outcome {
    let mut failed = RowOutcome::new(Row::ALL[5], "cake");
    failed.failed = Some("engine cake: tc: no memory".to_owned());
    let engine = |name, lacks: &[&str]| EngineOutcome {
        name,
        how: vec![format!("{name}: somehow.")],
        lacks: lacks.iter().map(|&lack| lack.to_owned()).collect(),
    };
    Outcome {
        schema: SCHEMA,
        kind: "headend-home-gateway",
        place: "namespaces",
        link: Link::default(),
        treatment: "fair".to_owned(),
        engines: vec![engine("user", &[]), engine("cake", &["no ack filter"])],
        browser: None,
        seconds: 1,
        seed: 1,
        interrupted: false,
        cut_short: None,
        rows: vec![
            row(2, "user", 20.0),
            row(2, "cake", 21.0),
            row(5, "user", 480.0),
            row(6, "user", 24.0),
            failed,
        ],
        fairness: vec![
            Fairness::new("user", "fair".to_owned(), vec![0.5]),
            Fairness::new("cake", "cake".to_owned(), vec![0.25]),
        ],
        experiments: Vec::new(),
        method: Vec::new(),
        machine: MachineInfo::read(),
    }
}

/// The lines of all tables as CSV.
fn lines(outcome: &Outcome) -> Vec<String> {
    let tables = tables(outcome);
    let lines = tables.iter().flat_map(|table| {
        let csv = table.to_csv();
        csv.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    lines.collect()
}

#[test]
fn each_engine_has_a_row_of_its_own_and_a_column_of_targets() {
    let lines = lines(&compared());
    let of_row = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!(of_row("2,nothing,user,"), 2);
    assert_eq!(of_row("2,nothing,cake,"), 2);
    assert_eq!(of_row("5,8.2 Mbit/s UDP,no,"), 2);
    let jain = lines
        .iter()
        .find(|line| line.contains("Jain's index of the hosts at least"));
    let jain = jain.expect("the target");
    assert!(
        jain.contains("yes: 1.0000") && jain.contains("NO: 0.8"),
        "{jain}"
    );
    // Each target has one line, and the engines are columns.
    let page = |line: &&String| line.starts_with("row 6: a page takes");
    assert_eq!(lines.iter().filter(page).count(), 1);
}

#[test]
fn a_row_that_did_not_finish_is_marked_and_explained() {
    let outcome = compared();
    assert!(
        lines(&outcome)
            .iter()
            .any(|line| line.starts_with("6*,8.2 Mbit/s UDP,cake,"))
    );
    let said = engines(&outcome).join("\n");
    assert!(said.contains("Row 6* (cake) did not finish: engine cake: tc: no memory."));
    assert!(said.contains("cake here: no ack filter."), "{said}");
    assert!(page(&outcome).contains("did not finish"));
}

#[test]
fn a_run_of_our_own_shaper_alone_names_no_engine() {
    let mut outcome = compared();
    outcome.engines.truncate(1);
    outcome.rows.retain(|row| row.engine != Some("cake"));
    let lines = lines(&outcome);
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("6,8.2 Mbit/s UDP,yes,"))
    );
    assert!(!page(&outcome).contains("The column \"policy\""));
}
