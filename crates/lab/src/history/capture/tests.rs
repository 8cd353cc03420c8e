use super::*;
use crate::history::Outcome;
use crate::segments::Row;
use plot::figure::Figure;

/// Synthetic lists: each takes `factor * n^exponent` seconds for n packets, measured up to
/// `measured_to`.
fn lists(laws: &[(&'static str, f64, f64, usize)]) -> SegmentsReport {
    let mut rows = Vec::new();
    for &(list, factor, exponent, measured_to) in laws {
        for n in [5_000, 10_000, 20_000, 200_000] {
            rows.push(Row {
                case: Case::Recovery.name(),
                list,
                n,
                seconds: Some(factor * (n as f64).powf(exponent)),
                extrapolated: n > measured_to,
            });
        }
    }
    SegmentsReport { rows }
}

/// Lists that behave as published.
fn as_published() -> SegmentsReport {
    lists(&[
        ("inserted and looked up from the head", 2e-9, 2.0, 20_000),
        ("inserted from the head, not looked up", 1e-7, 1.0, 200_000),
        (
            "inserted from the head, looked up from the tail",
            1.4e-7,
            1.0,
            200_000,
        ),
        ("inserted and looked up from the tail", 7e-8, 1.0, 200_000),
        ("ours", 1e-8, 1.0, 200_000),
        ("floor", 1e-9, 1.0, 200_000),
    ])
}

const WHOLE: Whole = Whole {
    packets: 2_876_000,
    bytes: 302_000_000,
    connections: 9,
    cpu_s: 0.3,
};

#[test]
fn lists_that_walk_as_published_are_reproduced_and_extrapolated_to_the_capture() {
    let chapter = chapter_capture(&as_published(), Some(WHOLE));
    let why = chapter.verdict.why();
    assert_eq!(chapter.verdict.outcome, Outcome::Reproduced, "{why}");
    for words in [
        "to the power 2.00: quadratic.",
        // 2e-9 * 200,000^2 = 80 s per connection; 2.87 million packets make 14.35 connections.
        "busy for 19.1 min here",
        "Inserting from the tail too reduces the lists' time to 1/2 of what it was; the published figure is 1/1.97",
        "take 1.40 times as long as without a look-up; the published factor is 1.39.",
        "takes 300 ms of processor time for a capture like the published one (302 Mbyte, 2,876,000 packets, 9 connections).",
    ] {
        assert!(why.contains(words), "{words:?} is not in {why:?}");
    }
}

#[test]
fn a_walk_from_the_head_that_is_linear_is_not_what_was_published() {
    let mut measured = as_published();
    for row in &mut measured.rows[..4] {
        row.seconds = Some(row.n as f64 * 1e-6);
    }
    let verdict = chapter_capture(&measured, None).verdict;
    assert_eq!(verdict.outcome, Outcome::NotReproduced);
    assert!(verdict.why().contains("which is not quadratic"));
}

#[test]
fn a_growth_that_no_list_can_have_is_not_extrapolated_and_the_page_says_so() {
    let mut laws = as_published();
    for row in &mut laws.rows[..4] {
        row.seconds = Some(1e-12 * (row.n as f64).powi(3));
    }
    let chapter = chapter_capture(&laws, Some(WHOLE));
    let words = "because the exponent over all measured numbers of packets is not from 0.8 to 2.6: \
                 inserted and looked up from the head (3.00).";
    let why = chapter.verdict.why();
    assert_eq!(chapter.verdict.outcome, Outcome::NotReproduced, "{why}");
    assert!(why.contains(words), "{why}");
    assert!(!why.contains("By extrapolation"), "{why}");
    assert!(
        why.contains("The gain of looking up from the tail is not known"),
        "{why}"
    );
    for chart in &chapter.charts {
        let (notes, dotted) = match chart {
            Figure::Lines(chart) => {
                let styles = chart.series.iter().map(|series| series.style);
                (
                    &chart.notes,
                    styles.filter(|style| *style == Style::Dotted).count(),
                )
            }
            Figure::Bars(chart) => {
                let of_head = |bar: &&plot::figure::Bar| {
                    bar.name.starts_with("inserted and looked up from the head")
                };
                let bars = chart.groups[1].bars.iter();
                (&chart.notes, bars.filter(of_head).count())
            }
        };
        assert!(notes.iter().any(|note| note.contains(words)), "{notes:?}");
        assert_eq!(dotted, 0);
    }
    assert_eq!(chapter.ratio, None, "no ratio without its time");
}

#[test]
fn nothing_measured_is_nothing_reproduced() {
    let nothing = SegmentsReport { rows: Vec::new() };
    let chapter = chapter_capture(&nothing, None);
    assert_eq!(chapter.verdict.outcome, Outcome::NotTested);
    assert!(chapter.verdict.claims.iter().all(|c| c.holds.is_none()));
}

#[test]
fn what_was_not_measured_is_dotted_and_what_was_published_dashed() {
    let chapter = chapter_capture(&as_published(), Some(WHOLE));
    let Figure::Lines(chart) = &chapter.charts[0] else {
        panic!("curves")
    };
    let of = |style| {
        let series = chart.series.iter().filter(move |s| s.style == style);
        series.map(|s| s.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of(Style::Dashed), ["published: 7 h for the capture"]);
    assert_eq!(
        of(Style::Dotted),
        ["inserted and looked up from the head, extrapolated"]
    );
    let Figure::Bars(bars) = &chapter.charts[1] else {
        panic!("bars")
    };
    let styles = bars.groups.iter().map(|group| group.bars[0].style);
    let expected = [Style::Dashed, Style::Dotted, Style::Solid];
    assert_eq!(styles.collect::<Vec<_>>(), expected);
}

#[test]
fn the_published_versions_are_those_that_the_lists_are_made_after() {
    for walk in &WALKS {
        let subjects = Case::Recovery.subjects();
        let subject = subjects.iter().find(|subject| subject.name == walk.subject);
        let wording = subject.and_then(|subject| subject.published).unwrap();
        let figure = walk.wording.split(',').next().unwrap();
        assert!(wording.contains(figure), "{wording:?} lacks {figure:?}");
    }
}
