use super::*;

fn chart() -> Chart {
    let mut chart = Chart::new(
        "Time & \"tunnels\" <up>",
        "What a stranger should look at.",
        Axis::log("time", "s"),
        Axis::linear("tunnels up", ""),
    );
    let ours = (0..2000)
        .map(|i| (0.001 * f64::from(i), f64::from(i) * 5.0))
        .collect();
    chart.series = vec![
        Series::new(
            "published",
            Style::Dashed,
            0,
            vec![(0.1, 1.0), (1440.0, 10_000.0)],
        ),
        Series::new("ours", Style::Solid, COLOUR_OURS, ours).bold(),
        Series::new(
            "<estimate>",
            Style::Dotted,
            1,
            vec![(10.0, 100.0), (900.0, 10_000.0)],
        ),
        Series::new(
            "single runs",
            Style::Points,
            2,
            vec![(3.0, 10.0), (4.0, 20.0)],
        ),
    ];
    chart.notes = vec!["Only the end point is published.".into()];
    chart
}

fn bars() -> BarChart {
    BarChart {
        title: "CPU per wait".into(),
        subtitle: "Relative to poll.".into(),
        value: Axis::linear("CPU", "%"),
        groups: vec![BarGroup {
            name: "250 watched & more".into(),
            bars: vec![
                Bar::new("poll", Style::Solid, 0, 100.0),
                Bar::new("epoll", Style::Dashed, 1, 33.0).labelled("a third"),
                Bar::missing("io_uring", 2, "not run"),
            ],
        }],
        notes: Vec::new(),
    }
}

/// Checks that tags nest and close; returns how many elements of each name there are.
pub(crate) fn well_formed(svg: &str) -> std::collections::HashMap<String, usize> {
    let (mut open, mut seen) = (Vec::new(), std::collections::HashMap::new());
    for tag in svg.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(|c| c.is_ascii_alphabetic())
            .collect();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else {
            *seen.entry(name.clone()).or_default() += 1;
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?} left open");
    seen
}

#[test]
fn a_chart_is_well_formed_and_carries_title_description_and_escaped_text() {
    let svg = chart().to_svg();
    well_formed(&svg);
    assert!(svg.contains("<title>Time &amp; &quot;tunnels&quot; &lt;up&gt;</title>"));
    assert!(svg.contains("<desc>What a stranger"));
    assert!(svg.contains("viewBox=\"0 0 860 "));
    assert!(svg.contains("time (s, log scale)"));
    assert!(svg.contains("Only the end point is published."));
}

#[test]
fn a_picture_refers_to_nothing_outside_of_itself() {
    for svg in [chart().to_svg(), bars().to_svg()] {
        let rest = svg.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for forbidden in ["http", "href", "url(", "@import", "<script", " id="] {
            assert!(!rest.contains(forbidden), "{forbidden}");
        }
    }
}

#[test]
fn each_style_has_its_own_dash_and_estimates_are_never_drawn_as_full_lines() {
    let svg = chart().to_svg();
    assert!(svg.contains("stroke-dasharray=\"9 5\""));
    assert!(svg.contains("stroke-dasharray=\"2 4\""));
    let svg = bars().to_svg();
    assert!(svg.contains("stroke-dasharray=\"6 4\""));
}

#[test]
fn a_line_of_many_points_is_thinned_and_keeps_its_ends() {
    let mut chart = chart();
    chart.x = Axis::linear("time", "s");
    chart.series = vec![Series::new(
        "dense",
        Style::Solid,
        0,
        (0..100_000).map(|i| (f64::from(i), f64::from(i))).collect(),
    )];
    let svg = chart.to_svg();
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    assert!(svg.contains("dense: 99,999 s, 99,999"));
}

#[test]
fn values_without_a_place_are_left_out_rather_than_drawn() {
    let mut chart = chart();
    chart.series = vec![Series::new(
        "gaps",
        Style::Solid,
        0,
        vec![
            (0.0, 1.0),
            (1.0, 1.0),
            (2.0, f64::NAN),
            (3.0, 5.0),
            (f64::INFINITY, 9.0),
        ],
    )];
    let svg = chart.to_svg();
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    well_formed(&svg);
}

#[test]
fn empty_charts_and_hostile_names_are_drawn_without_a_panic() {
    let empty = Chart::new("", "", Axis::log("", ""), Axis::log("", ""));
    well_formed(&empty.to_svg());
    let mut odd = chart();
    odd.series[0].name = "\u{0}\u{1b}[31m]]><&\u{ffff}".repeat(40);
    odd.series[0].points = vec![(f64::MAX, f64::MIN_POSITIVE), (5e-324, f64::MAX)];
    odd.series[0].colour = usize::MAX;
    let svg = Figure::from(odd).to_inline_svg(-5.0);
    well_formed(&svg);
    assert!(svg.chars().all(|c| c == '\n' || !c.is_control()));
    let mut none = bars();
    none.groups.clear();
    well_formed(&none.to_svg());
}

#[test]
fn a_bar_without_a_value_says_why_and_the_description_holds_every_figure() {
    let svg = bars().to_svg();
    well_formed(&svg);
    assert!(svg.contains(">not run</text>"));
    assert!(svg.contains("250 watched &amp; more: poll 100, epoll a third, io_uring not run."));
}

#[test]
fn an_inline_picture_leaves_style_and_size_to_its_page() {
    let svg = Figure::from(chart()).to_inline_svg(WIDTH_NARROW);
    assert!(!svg.contains("<style>"));
    assert!(svg.contains("viewBox=\"0 0 420 "));
    assert!(!svg.contains("class=\"hc\" width="));
}

#[test]
fn numbers_read_as_people_write_them() {
    use number::*;
    assert_eq!(grouped(1_234_567.891, 1), "1,234,567.9");
    assert_eq!(grouped(-0.0004, 2), "0.00");
    assert_eq!(grouped(-1234.0, 0), "-1,234");
    assert_eq!(short(0.012345), "0.0123");
    assert_eq!(short(12_345.6), "12,346");
    assert_eq!(short(2.0), "2");
    assert_eq!(short(3.2e-7), "3.2\u{d7}10\u{207b}\u{2077}");
    assert_eq!(log_tick(1e9), "10\u{2079}");
    let spans = [4.2e-8, 3.5e-4, 0.35, 1.25, 1440.0, 10_800.0, 11_100.0, 1e7];
    let spans: Vec<String> = spans.into_iter().map(human_seconds).collect();
    let wanted = [
        "42 ns",
        "350 \u{b5}s",
        "350 ms",
        "1.25 s",
        "24 min",
        "3 h",
        "3 h 5 min",
        "116 days",
    ];
    assert_eq!(spans, wanted);
}
