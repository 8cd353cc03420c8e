use super::*;

fn results() -> Results {
    let share = |at_s, owner, deceived| Share {
        at_s,
        owner,
        deceived,
        without: 1.0 - owner - deceived,
    };
    let event = |label: &str, kind, at_s| EventResult {
        label: label.to_owned(),
        kind,
        at_s,
        last_step_s: at_s,
        convergence_s: (kind != "start").then_some(0.5),
        quiet_after_s: None,
        updates: 3,
        changes: 2,
    };
    let shares = vec![
        share(2.0, 0.5, 0.0),
        share(2.5, 1.0, 0.0),
        share(5.0, 0.75, 0.25),
        share(5.5, 0.5, 0.5),
    ];
    Results {
        title: "a test".to_owned(),
        seed: 1,
        routers: 2,
        links: 1,
        endpoints_up: 2,
        sessions_lost: 0,
        malformed: 0,
        end_s: 10.0,
        messages: 9,
        updates: 6,
        events: vec![
            event("sessions come up", "start", 0.0),
            event("a, \"the\" first", "announce", 2.0),
            event("b hijacks", "hijack", 5.0),
        ],
        addresses: vec![AddressResult {
            address: "16.0.0.0".to_owned(),
            prefixes: vec!["16.0.0.0/24".to_owned()],
            owner_asn: 1,
            hijackers: vec![2],
            leakers: Vec::new(),
            path_lengths: vec![1, 1],
            deceived_max: 0.5,
            mean: mean(&shares, 10.0),
            shares,
        }],
        activity: Activity {
            span_s: 1.0,
            updates: vec![0, 0, 3],
            changes: vec![0, 0, 2],
        },
        per_router: vec![RouterResult {
            name: "r1".to_owned(),
            asn: 1,
            updates_sent: 6,
            updates_received: 0,
            changes: 1,
        }],
        outcomes: Vec::new(),
        outcomes_left_out: 0,
    }
}

#[test]
fn means_are_over_time() {
    let mean = results().addresses[0].mean.unwrap();
    // 0.5 s, 2.5 s, 0.5 s and 4.5 s of the 8 s from the first route to the end.
    let owner = (0.5 * 0.5 + 1.0 * 2.5 + 0.75 * 0.5 + 0.5 * 4.5) / 8.0;
    let deceived = (0.25 * 0.5 + 0.5 * 4.5) / 8.0;
    assert!((mean.owner - owner).abs() < 1e-12, "{mean:?}");
    assert!((mean.deceived - deceived).abs() < 1e-12, "{mean:?}");
    assert_eq!(super::mean(&[], 10.0), None);
}

#[test]
fn tables_quote_what_would_break_a_row() {
    let text = results().events_csv();
    let rows: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(rows[2], "\"a, \"\"the\"\" first\",announce,2,2,0.5,,3,2");
    assert_eq!(rows.len(), 5);
    assert_eq!(results().shares_csv().lines().count(), 5);
    assert_eq!(results().routers_csv().lines().nth(1), Some("r1,1,6,0,1"));
}

#[test]
fn what_an_event_did_is_shown_closely() {
    let titles: Vec<String> = results()
        .charts()
        .into_iter()
        .map(|chart| chart.title)
        .collect();
    assert_eq!(
        titles,
        [
            "Where routes to 16.0.0.0 lead",
            "Routes to 16.0.0.0 after a, \"the\" first",
            "Routes to 16.0.0.0 after b hijacks",
            "How long the paths are",
            "UPDATEs and changes of best routes",
            "UPDATEs by router",
        ]
    );
    let charts = results().charts();
    let deceived = charts[2].series[1].samples();
    assert_eq!(deceived.range(), Some((25.0, 50.0)));
}

#[test]
fn what_is_shown_closely_ends_before_the_next_event() {
    let mut results = results();
    // A chart may end when nothing changes any more, or when the next event starts.
    for convergence_s in [0.6, 4.0] {
        results.events[1].convergence_s = Some(convergence_s);
        let charts = results.charts();
        let deceived = charts[1].series[1].samples();
        assert_eq!(deceived.range(), Some((0.0, 0.0)), "{convergence_s}");
    }
}

#[test]
fn pictures_of_equal_titles_have_files_of_their_own() {
    let mut results = results();
    let again = results.addresses[0].clone();
    results.addresses.push(again);
    let mut names: Vec<String> = results.svgs().into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"routes-to-16-0-0-0-after-b-hijacks-2".to_owned()));
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn activity_is_drawn_as_steps_of_few_spans() {
    let mut results = results();
    results.activity.updates = vec![1; 301];
    results.activity.changes = vec![0; 301];
    let charts = results.charts();
    let activity = charts
        .iter()
        .find(|chart| chart.title.starts_with("UPDATEs and"));
    let activity = activity.expect("it is always drawn");
    assert_eq!(activity.subtitle, "Counted in spans of 3 s");
    let sent = activity.series[0].samples();
    assert_eq!((sent.count(), sent.range()), (101 + 1, Some((1.0, 1.0))));
}

#[test]
fn a_step_of_a_rate_begins_where_the_one_before_ends() {
    let steps = charts::rates(&[3; 1_000], 7, 0.03);
    assert!(steps.windows(2).all(|pair| pair[0].0 < pair[1].0));
    // One step for every seven spans, and the end of the last one, which has six spans.
    assert_eq!(steps.len(), 143 + 1);
    assert_eq!((steps[142].0, steps[143].0), (994.0 * 0.03, 1000.0 * 0.03));
    assert_eq!(steps[142].1, steps[143].1);
}

#[test]
fn pictures_have_names_of_files_and_the_page_needs_no_other() {
    for (name, svg) in results().svgs() {
        assert!(
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
            "{name}"
        );
        assert!(svg.starts_with("<svg"), "{name}");
    }
    let page = results().to_html();
    assert!(page.starts_with("<!doctype html>") && page.contains("b hijacks"));
    assert!(page.contains("kind:\"steps\"") && page.contains(">last change, s<"));
    assert!(!page.contains(">lost<"), "shares of routers are not lost");
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"));
}
