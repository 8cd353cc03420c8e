use super::*;
use crate::gateway::outcome::{Fairness, SCHEMA, Stream};
use crate::gateway::rows::Row;
use crate::gateway::treatment::Link;
use crate::history::Outcome as Judged;
use crate::report::MachineInfo;
use plot::figure::{Figure, Style};

/// Pings ten times a second for 20 s, each with the round trip that `trip` returns for its sending
/// time.
fn pings(trip: impl Fn(f64) -> Option<f64>) -> Vec<(f64, Option<f64>)> {
    let times = (0..200).map(|n| f64::from(n) / 10.0);
    times.map(|at| (at, trip(at))).collect()
}

fn row(number: usize, here: Result) -> RowOutcome {
    let mut row = RowOutcome::new(Row::ALL[number - 1], "user");
    let share = row.published.share;
    row.runs.push(Result { share, ..here });
    row
}

/// A row with the published results.
fn published_row(number: usize) -> RowOutcome {
    let published = Row::ALL[number - 1].published();
    let here = Result {
        loss_percent: published.loss_percent,
        jitter_ms: published.jitter_ms,
        page_ms: published.page_ms.into_iter().collect(),
        pings: pings(|_| (number != 5).then_some(20.0)),
        ..Result::default()
    };
    row(number, here)
}

fn setting(name: &str, trip: impl Fn(f64) -> Option<f64>) -> Setting {
    let stream = |name: &str, pings| Stream {
        name: name.to_owned(),
        pings,
    };
    Setting {
        name: name.to_owned(),
        streams: vec![
            stream("0x00 default", pings(|_| Some(25.0))),
            stream("0x02 default", pings(&trip)),
            stream("0xb8 EF", pings(|_| Some(21.0))),
        ],
    }
}

/// Slow pings in the second of four periods, the first of them without a reply.
fn spiked(at: f64) -> Option<f64> {
    match at {
        5.0..5.2 => None,
        5.2..10.0 => Some(400.0),
        _ => Some(28.0),
    }
}

/// Results that agree with those published.
fn as_published() -> Outcome {
    let experiment = |name, settings| Experiment {
        name,
        title: "an experiment",
        how: Vec::new(),
        settings,
    };
    let fair = |name: &str, share| Fairness::new("user", name.to_owned(), vec![share]);
    let calm = |_| Some(25.0);
    Outcome {
        schema: SCHEMA,
        kind: "headend-home-gateway",
        place: "virtual time",
        link: Link::default(),
        treatment: "fair".to_owned(),
        engines: Vec::new(),
        browser: None,
        seconds: 20,
        seed: 1,
        interrupted: false,
        cut_short: None,
        rows: (1..=6).map(published_row).collect(),
        fairness: vec![fair("fair", 0.5), fair("fq_codel", 0.1), fair("sfq", 0.1)],
        experiments: vec![
            experiment(
                "tunnel",
                vec![
                    setting("outer", |_| Some(470.0)),
                    setting("tunnel keys", calm),
                ],
            ),
            experiment("bands", vec![setting("Linux", calm), setting("DSCP", calm)]),
            experiment(
                "perturb",
                vec![
                    setting("old", spiked),
                    setting("Linux", spiked),
                    setting("ours", calm),
                ],
            ),
        ],
        method: Vec::new(),
        machine: MachineInfo::read(),
    }
}

fn claim(outcome: &Outcome, words: &str) -> (Option<bool>, String) {
    let verdict = chapter_gateway(outcome).verdict;
    let mut claims = verdict.claims.iter();
    let claim = claims.find(|claim| claim.because.contains(words));
    let claim = claim.unwrap_or_else(|| panic!("{words:?} is not in {:?}", verdict.why()));
    (claim.holds, claim.because.clone())
}

#[test]
fn rows_and_experiments_that_went_as_published_are_reproduced() {
    let verdict = chapter_gateway(&as_published()).verdict;
    assert_eq!(verdict.outcome, Judged::Reproduced, "{}", verdict.why());
    for words in [
        "the stream of B loses 69.0 %; the published loss is 69 %.",
        "the stream loses 0 % beside uploads and 0 % beside the flood",
        "a page takes 1,507 ms instead of 490 ms on the idle link, and beside the flood no page arrives.",
        "a page takes 1.09 times as long beside uploads as on the idle link, and 1.00 times beside the flood;",
        "Without the policy an upload of B gets 0.25 of the link against three of A and 0.00 against the flood;",
        "a ping takes 470 ms (median) if queues read the outer header alone, and 25 ms with tunnel keys.",
        "in 1 of 4 periods of its hash, from 0.0 s after a change at the latest.",
        "makes pings wait in 0 of 4 periods.",
        "Against nine uploads of A, one upload of B gets 0.50 of the link with fair queues for hosts, 0.10 with fq_codel",
        "in virtual time",
    ] {
        assert!(
            verdict.why().contains(words),
            "{words:?} is not in {:?}",
            verdict.why()
        );
    }
}

#[test]
fn a_flood_that_loses_little_does_not_reproduce_it_and_rows_are_named() {
    let mut outcome = as_published();
    outcome.rows[4].runs[0].loss_percent = 7.0;
    outcome.rows[3].runs[0].share = Some(0.9);
    let verdict = chapter_gateway(&outcome).verdict;
    assert_eq!(verdict.outcome, Judged::NotReproduced);
    let (holds, because) = claim(&outcome, "Beside the flood the stream");
    assert_eq!(holds, Some(false), "{because}");
    assert_eq!(
        claim(&outcome, "With the policy an upload of B gets 0.90").0,
        Some(false)
    );
}

#[test]
fn several_measurements_are_told_with_their_spread() {
    let mut outcome = as_published();
    let other = Result {
        loss_percent: 79.0,
        ..outcome.rows[4].runs[0].clone()
    };
    outcome.rows[4].runs.push(other);
    let (_, because) = claim(&outcome, "Beside the flood the stream");
    assert!(
        because.contains("loses 74.0 % (69.0 to 79.0);"),
        "{because}"
    );
}

#[test]
fn spikes_in_every_period_or_away_from_the_changes_are_not_those_that_were_published() {
    let mut outcome = as_published();
    outcome.experiments[2].settings[0] = setting("old", |_| Some(400.0));
    assert_eq!(claim(&outcome, "in 4 of 4 periods").0, Some(false));
    let late = |at: f64| {
        Some(if (7.5..9.0).contains(&at) {
            400.0
        } else {
            28.0
        })
    };
    outcome.experiments[2].settings[0] = setting("old", late);
    let (holds, because) = claim(&outcome, "in 1 of 4 periods");
    assert_eq!(holds, Some(false));
    assert!(because.contains("from 2.5 s after a change"), "{because}");
    outcome.experiments[2].settings[2] = setting("ours", spiked);
    assert_eq!(
        claim(&outcome, "makes pings wait in 1 of 4 periods.").0,
        Some(false)
    );
}

#[test]
fn a_jitter_that_falls_a_little_is_not_the_published_fall() {
    let mut outcome = as_published();
    (
        outcome.rows[2].runs[0].jitter_ms,
        outcome.rows[3].runs[0].jitter_ms,
    ) = (2.7, 2.3);
    let (holds, because) = claim(&outcome, "jitter from 2.7 to 2.3 ms");
    assert_eq!(holds, Some(false), "{because}");
}

#[test]
fn nothing_measured_is_nothing_reproduced() {
    let outcome = Outcome {
        rows: Vec::new(),
        fairness: Vec::new(),
        experiments: Vec::new(),
        ..as_published()
    };
    let chapter = chapter_gateway(&outcome);
    assert_eq!(chapter.verdict.outcome, Judged::NotTested);
    assert!(chapter.verdict.claims.iter().all(|c| c.holds.is_none()));
    assert!(chapter.charts.is_empty());
}

#[test]
fn the_published_table_is_dashed_beside_ours_and_lost_pings_are_marked() {
    let chapter = chapter_gateway(&as_published());
    let titles: Vec<&str> = chapter.charts.iter().map(Figure::title).collect();
    assert_eq!(titles.len(), 8, "{titles:?}");
    for chart in &chapter.charts {
        if let Figure::Bars(bars) = chart {
            let mut all = bars.groups.iter().flat_map(|group| &group.bars);
            assert!(all.all(|bar| {
                bar.value.is_none() || (bar.name == "published") == (bar.style == Style::Dashed)
            }));
        }
    }
    let Figure::Lines(flood) = &chapter.charts[1] else {
        panic!("curves")
    };
    let names: Vec<&str> = flood.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "row 5: without policy",
            "row 5: without policy: no reply to 200 of 200",
            "row 6: with policy"
        ]
    );
    let Figure::Lines(perturb) = &chapter.charts[7] else {
        panic!("curves")
    };
    assert_eq!(perturb.series.len(), 3 + 2, "lines, and those with losses");
    let table = chapter.tables[0].to_csv();
    assert!(table.contains("69,69"), "{table}");
    let waits = &chapter.tables[1];
    assert!(waits.columns.iter().any(|column| column.name == "page"));
    let has_browser = waits.columns.iter().any(|column| column.name == "browser");
    assert!(!has_browser, "nothing was measured of it");
}
