use super::*;
use crate::fit;
use crate::report::MachineInfo;

/// A run in which `n` tunnels take `factor * n^exponent` seconds, stopped after `cap` tunnels.
fn run(build: &str, factor: f64, exponent: f64, cap: u64) -> BringupRun {
    let samples: Vec<_> = (0..=cap)
        .step_by(50)
        .map(|n| (factor * (n as f64).powf(exponent), n))
        .collect();
    let finished = cap >= 10_000;
    BringupRun {
        build: build.into(),
        label: "made <of> parts".into(),
        extrapolated_s: if finished {
            None
        } else {
            fit::extrapolate(&samples, 10_000).map(|e| e.seconds)
        },
        samples,
        target: 10_000,
        finished,
        cpu_s: 1.5,
    }
}

/// Synthetic runs that behave as published.
fn as_published() -> Vec<BringupRun> {
    vec![
        run("r2929", 1e-8, 2.6, 4_000),
        run("r3031", 6e-7, 2.0, 10_000),
        run("r3125", 3e-7, 2.0, 10_000),
        run("r3158", 3.6e-7, 2.0, 10_000),
        run("r3181", 3e-4, 1.05, 10_000),
        run("default", 3e-5, 1.0, 10_000),
    ]
}

/// Synthetic waits: poll costs `slope` ns per descriptor plus a fixed cost, epoll only the fixed
/// cost.
fn waits(slope: f64) -> Vec<PollRow> {
    let mut rows = Vec::new();
    for (poller, per_descriptor) in [("poll-rebuilt", slope), ("epoll", 0.0)] {
        for watched in [16u64, 64, 250, 1_000, 4_000, 16_000] {
            let ns = 300.0 + per_descriptor * watched as f64;
            rows.push(PollRow {
                poller: poller.into(),
                watched,
                ready: 4,
                ns_per_wait: ns,
                cpu_ns_per_wait: ns,
            });
        }
    }
    rows
}

#[test]
fn a_bring_up_in_the_published_order_with_superlinear_lists_is_reproduced() {
    let verdict = chapter_bringup(&as_published()).verdict;
    assert_eq!(verdict.outcome, Outcome::Reproduced, "{}", verdict.why());
    for words in [
        "sorted list + poll (r3031) took 2 times as long as red-black tree + poll (r3125).",
        "The time of sorted list + poll + config id (r2929) grows with the tunnels to the power 2.60, faster than linearly.",
        "red-black tree + poll with a kept set (r3158) took 1.2 times as long as red-black tree + poll (r3125).",
        "so that their times are extrapolated: sorted list + poll + config id (r2929) (4,000 tunnels).",
        "headend's own design has 10,000 tunnels up in 300 ms",
    ] {
        assert!(
            verdict.why().contains(words),
            "{words:?} is not in {:?}",
            verdict.why()
        );
    }
}

#[test]
fn a_build_out_of_order_is_named_and_leaves_the_central_claim() {
    let mut runs = as_published();
    runs[3] = run("r3158", 2e-7, 2.0, 10_000);
    let verdict = chapter_bringup(&runs).verdict;
    assert_eq!(verdict.outcome, Outcome::Reproduced);
    assert!(verdict.why().contains(
        "(r3158) took 0.667 times as long as red-black tree + poll (r3125), though it was published as the slower."
    ));
    runs[3] = run("r3158", 3.05e-7, 2.0, 10_000);
    let verdict = chapter_bringup(&runs).verdict;
    assert!(
        verdict.why().contains("the same time within 5 %"),
        "{}",
        verdict.why()
    );
}

#[test]
fn lists_that_grow_linearly_do_not_reproduce_the_growth() {
    let mut runs = as_published();
    runs[1] = run("r3031", 6e-3, 1.0, 10_000);
    let verdict = chapter_bringup(&runs).verdict;
    let growth = "(r3031) grows with the tunnels to the power 1.00, not clearly";
    let claim = verdict
        .claims
        .iter()
        .find(|claim| claim.because.contains(growth));
    assert_eq!(claim.and_then(|claim| claim.holds), Some(false));
}

#[test]
fn builds_that_gain_too_little_do_not_reproduce_the_account() {
    let mut runs = as_published();
    runs[0] = run("r2929", 2e-7, 2.0, 10_000);
    let verdict = chapter_bringup(&runs).verdict;
    assert_eq!(verdict.outcome, Outcome::NotReproduced);
    assert!(
        verdict.claims[0]
            .because
            .starts_with("sorted list + poll + config id (r2929) takes")
    );
}

#[test]
fn a_build_that_was_not_run_cannot_be_reproduced_in_full() {
    let mut runs = as_published();
    runs.remove(0);
    let verdict = chapter_bringup(&runs).verdict;
    assert_eq!(verdict.outcome, Outcome::NotTested);
    assert!(verdict.why().contains(
        "(r3031) could not be compared: sorted list + poll + config id (r2929) was not run."
    ));
}

#[test]
fn nothing_measured_is_not_tested_and_still_a_chapter() {
    let chapter = chapter_bringup(&[]);
    assert_eq!(chapter.verdict.outcome, Outcome::NotTested);
    assert_eq!(
        chapter.charts.len(),
        1,
        "no shapes without the reference build"
    );
    let chapter = chapter_poll(&[]);
    assert_eq!(chapter.verdict.outcome, Outcome::NotTested);
    assert!(chapter.verdict.why().contains("poll was not measured."));
}

#[test]
fn a_run_without_time_or_samples_is_said_to_have_stopped() {
    let mut runs = as_published();
    runs[0].samples = vec![(0.0, 0), (60.0, 0)];
    runs[0].extrapolated_s = None;
    let chapter = chapter_bringup(&runs);
    assert_eq!(chapter.verdict.outcome, Outcome::NotTested);
    assert!(chapter.tables[1].to_text().contains("stopped at 0 tunnels"));
    assert!(
        chapter
            .verdict
            .why()
            .contains("How sorted list + poll + config id (r2929) grows is not known")
    );
}

#[test]
fn published_curves_are_dashed_re_runs_full_estimates_dotted_and_ours_bold() {
    use plot::figure::Style;
    let chapter = chapter_bringup(&as_published());
    let Figure::Lines(chart) = &chapter.charts[0] else {
        panic!("curves")
    };
    let of = |style| -> Vec<&str> {
        chart
            .series
            .iter()
            .filter(|s| s.style == style)
            .map(|s| s.name.as_str())
            .collect()
    };
    assert_eq!(
        of(Style::Dashed),
        [
            "sorted list + poll + config id (r2929), published",
            "sorted list + poll (r3031), published",
            "red-black tree + poll (r3125), published",
            "red-black tree + epoll (r3181), published"
        ]
    );
    assert_eq!(
        of(Style::Dotted),
        ["sorted list + poll + config id (r2929), extrapolated"]
    );
    assert_eq!(of(Style::Solid).len(), 6);
    let bold: Vec<&str> = chart
        .series
        .iter()
        .filter(|s| s.bold)
        .map(|s| s.name.as_str())
        .collect();
    assert_eq!(bold, ["headend: made <of> parts"]);
    assert!(
        chart
            .notes
            .iter()
            .any(|n| n.contains("r3158 was published without a figure"))
    );
}

#[test]
fn a_smaller_target_is_said_beside_the_chart() {
    let mut runs = as_published();
    for run in &mut runs {
        run.target = 2_000;
    }
    let chapter = chapter_bringup(&runs);
    let Figure::Lines(chart) = &chapter.charts[0] else {
        panic!("curves")
    };
    assert!(
        chart
            .notes
            .iter()
            .any(|n| n.contains("asked for 2,000 tunnels"))
    );
}

#[test]
fn linear_poll_and_flat_epoll_are_reproduced_with_their_exponents() {
    let verdict = chapter_poll(&waits(12.0)).verdict;
    assert_eq!(verdict.outcome, Outcome::Reproduced, "{}", verdict.why());
    assert!(
        verdict.why().contains("to the power 0.89: linear"),
        "{}",
        verdict.why()
    );
    assert!(
        verdict
            .why()
            .contains("The time of a wait with epoll stays flat (power 0.00).")
    );
    assert!(
        verdict
            .why()
            .contains("At 250 descriptors a wait with epoll takes 91 % less CPU")
    );
}

#[test]
fn a_poll_that_stays_flat_is_not_what_was_published() {
    let verdict = chapter_poll(&waits(0.001)).verdict;
    assert_eq!(verdict.outcome, Outcome::NotReproduced);
    assert!(verdict.why().contains("which is not linear"));
}

#[test]
fn curves_are_of_the_fewest_ready_and_the_table_has_every_row_and_the_floor() {
    let mut rows = waits(12.0);
    rows.extend(
        waits(0.0)
            .into_iter()
            .map(|row| PollRow { ready: 32, ..row }),
    );
    rows.push(PollRow {
        poller: "floor".into(),
        watched: 4,
        ready: 4,
        ns_per_wait: 500.0,
        cpu_ns_per_wait: 500.0,
    });
    let chapter = chapter_poll(&rows);
    assert_eq!(
        chapter.verdict.outcome,
        Outcome::Reproduced,
        "{}",
        chapter.verdict.why()
    );
    let Figure::Lines(chart) = &chapter.charts[0] else {
        panic!("curves")
    };
    let names: Vec<&str> = chart.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "poll, published: linear (slope only)",
            "poll-rebuilt, here",
            "epoll, here"
        ]
    );
    assert_eq!(chapter.tables[0].rows.len(), rows.len());
    assert!(chapter.tables[0].rows.last().unwrap().floor);
}

#[test]
fn an_epoll_that_gets_faster_is_flat() {
    let mut rows = waits(12.0);
    for row in rows.iter_mut().filter(|row| row.poller == "epoll") {
        row.ns_per_wait = 900.0 / (row.watched as f64).powf(0.3);
    }
    let verdict = chapter_poll(&rows).verdict;
    assert!(
        verdict
            .why()
            .contains("The time of a wait with epoll stays flat (power -0.30)."),
        "{}",
        verdict.why()
    );
}

#[test]
fn the_page_opens_with_the_ratios_and_a_quick_run_gives_no_verdict() {
    let mut chapters = [chapter_bringup(&as_published()), chapter_poll(&waits(12.0))];
    let whole = page(&chapters, &MachineInfo::read());
    assert!(whole.contains("<p class=\"quote\">On this machine 2 old designs cost "));
    assert!(whole.contains("10,000 tunnels: sorted list + poll against"));
    assert_eq!(
        whole.matches("<div class=\"verdict reproduced\">").count(),
        2
    );
    for chapter in &mut chapters {
        chapter.verdict = Verdict::withheld();
    }
    let quick = page(&chapters, &MachineInfo::read());
    assert!(quick.contains("No verdict") && !quick.contains("Reproduced"));
    assert!(!quick.contains("Further measurements") && !quick.contains("class=\"quote\""));
    assert!(
        quick.contains("10,000 tunnels: sorted list + poll against"),
        "it draws"
    );
}

#[test]
fn the_json_has_a_row_for_each_finished_chapter() {
    let chapters = [
        chapter_bringup(&as_published()),
        chapter_poll(&waits(12.0)),
        chapter_poll(&[]),
    ];
    let names = ["tunnel bring-up", "poll and epoll", "nothing"];
    let read = |count| -> serde_json::Value {
        serde_json::from_str(&document(&names, &chapters[..count], "out/index.html")).unwrap()
    };
    let whole = read(3);
    assert_eq!(whole["schema"], "bench.history/1");
    assert_eq!(whole["complete"], true);
    let first = &whole["chapters"][0];
    assert_eq!(first["name"], "tunnel bring-up");
    assert_eq!(first["old_builds"].as_array().unwrap().len(), 5);
    assert_eq!(
        first["old_builds"][1], "sorted list + poll (r3031)",
        "{first}"
    );
    assert_eq!(
        (&first["at"], &first["old"], &first["new"]),
        (
            &"10,000 tunnels".into(),
            &"sorted list + poll".into(),
            &"made <of> parts".into()
        )
    );
    let ratio = first["ratio"].as_f64().unwrap();
    assert!((ratio - 200.0).abs() < 1.0, "{ratio}");
    assert_eq!(first["verdict"], "reproduced");
    assert_eq!(first["page"], "out/index.html#chapter-1");
    let second = &whole["chapters"][1];
    assert_eq!(second["old_builds"], serde_json::json!(["poll-rebuilt"]));
    assert_eq!(second["page"], "out/index.html#chapter-2");
    let third = &whole["chapters"][2];
    assert_eq!(third["old_builds"], serde_json::json!([]));
    assert!(third["ratio"].is_null() && third["new"].is_null());
    assert_eq!(third["verdict"], "not_tested");
    // An interrupted run.
    let part = read(1);
    assert_eq!(part["complete"], false);
    assert_eq!(part["chapters"].as_array().unwrap().len(), 1);
    assert_eq!(part["chapters"][0], *first);
}

#[test]
fn the_page_asks_nothing_of_the_network_and_runs_nothing() {
    let chapters = [chapter_bringup(&as_published()), chapter_poll(&waits(12.0))];
    let page = page(&chapters, &MachineInfo::read());
    let rest = page
        .replace("xmlns=\"http://www.w3.org/2000/svg\"", "")
        .replace("href=\"#", "");
    for forbidden in [
        "http:", "https:", "//", "href", "src=", "url(", "@import", "<script", "<link",
    ] {
        assert!(!rest.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn the_page_escapes_what_it_is_given() {
    let mut chapter = chapter_bringup(&as_published());
    chapter.title = "<b>&".into();
    chapter.account = vec!["<script>".into()];
    chapter.verdict.remarks = vec!["a < b".into()];
    let page = page(&[chapter], &MachineInfo::read());
    assert!(!page.contains("<b>") && !page.contains("<script>") && !page.contains("made <of>"));
    assert!(page.contains("&lt;b&gt;&amp;") && page.contains("a &lt; b"));
}

#[test]
fn the_page_leads_with_every_verdict_and_serves_dark_narrow_and_print() {
    let chapters = [
        chapter_bringup(&as_published()),
        chapter_poll(&waits(0.001)),
    ];
    let page = page(&chapters, &MachineInfo::read());
    let head = page.split("<section").next().unwrap();
    assert!(head.contains("\u{2714} Reproduced") && head.contains("\u{2718} Not reproduced"));
    for words in [
        "prefers-color-scheme:dark",
        "max-width:640px",
        "@media print",
        "name=\"viewport\"",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(
        page.matches("<svg xmlns").count(),
        10,
        "five pictures, wide and narrow"
    );
}

#[test]
fn published_figures_are_those_of_the_accounts() {
    use published::*;
    let ends: Vec<_> = BUILDS
        .iter()
        .map(|b| (b.name, b.end.map(|e| (e.seconds, e.tunnels))))
        .collect();
    let wanted = [
        ("r2929", Some((10_800.0, 7_000))),
        ("r3031", Some((3_600.0, 8_500))),
        ("r3125", Some((1_800.0, 10_000))),
        ("r3158", None),
        ("r3181", Some((1_440.0, 10_000))),
    ];
    assert_eq!(ends, wanted);
    assert!(
        SLOWER_THAN
            .iter()
            .all(|(a, b)| build(a).is_some() && build(b).is_some())
    );
    assert!(build(BRINGUP_REFERENCE).is_some_and(|(_, b)| b.end.is_some()));
}
