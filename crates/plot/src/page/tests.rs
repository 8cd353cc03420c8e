use super::*;
use crate::figure::tests::well_formed;
use crate::{Axis, Kind, Series, Thinner};

/// Round-trip times that wander, with a spike and some losses.
fn series(name: &str, count: u32, base: f64) -> Series {
    let mut thinner = Thinner::new();
    let mut noise = 12_345_u32;
    for i in 0..count {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let second = f64::from(i) / 100.0;
        if noise >> 24 == 7 {
            thinner.push_lost(second);
        } else {
            let jitter = f64::from(noise >> 16) / 65_536.0;
            let spike = if i == count / 3 { 480.0 } else { 0.0 };
            thinner.push(second, base + jitter * jitter * 9.0 + spike);
        }
    }
    thinner.finish(name)
}

fn chart(kind: Kind, series: Vec<Series>) -> Chart {
    let (x, y) = (
        Axis::linear("time since the start", "s"),
        Axis::linear("round-trip time", "ms"),
    );
    let mut chart = Chart::new(kind, "Round-trip times", x, y);
    if kind != Kind::Steps {
        chart = chart.of_packets();
    }
    chart.series = series;
    chart
}

/// A page with every kind of chart of the same series.
fn page(series: Vec<Series>) -> Page {
    let chart = chart(Kind::OverTime, series);
    let (dots, line) = (
        chart.drawn_as(Kind::Scatter, "Dots"),
        chart.drawn_as(Kind::Line, "A line"),
    );
    let distribution = chart.to_cdf("Distribution");
    Page::new("Pings")
        .with(chart)
        .with(distribution)
        .with(dots)
        .with(line)
}

#[test]
fn a_million_samples_in_four_charts_stay_below_the_limit_and_are_there_once() {
    let html = page(vec![
        series("one", 500_000, 20.0),
        series("two", 500_000, 30.0),
    ])
    .to_html();
    assert!(html.len() < 5_000_000, "{} octets", html.len());
    assert_eq!(html.matches("octets:\"").count(), 2);
    assert!(
        html.contains("498,0") && html.contains("480"),
        "the counts and the spike are in the table"
    );
}

#[test]
fn many_large_series_share_the_limit() {
    let large = series("a", 262_144, 1.0);
    let samples = large.samples().clone();
    let all = (0..12).map(|i| Series::new(format!("{i}"), samples.clone()));
    let html = page(all.collect()).to_html();
    assert!(html.len() < 5_000_000, "{} octets", html.len());
}

#[test]
fn names_cannot_leave_their_places() {
    let evil = "</script><script>alert(1)</script>\"'&@DATA@ \u{2028}";
    let mut hostile = chart(Kind::OverTime, vec![series(evil, 50, 20.0)]);
    hostile.title = evil.into();
    hostile.subtitle = evil.into();
    hostile.x.label = evil.into();
    hostile.y.unit = evil.into();
    hostile.notes.push(evil.into());
    let mut page = Page::new(evil).with(hostile);
    page.subtitle = evil.into();
    page.blocks.push(Block::Heading(evil.into()));
    page.blocks.push(Block::Text(evil.into()));
    page.blocks.push(Block::Lines(evil.into()));
    page.blocks.push(Block::Table {
        head: vec![evil.into()],
        rows: vec![vec![evil.into()]],
    });
    let html = page.to_html();
    assert_eq!(html.matches("<script>").count(), 1);
    assert_eq!(html.matches("</script>").count(), 1);
    assert!(!html.contains("alert(1)</script>"));
    assert!(!html.contains("\"'&@"));
    assert_eq!(html.matches("const PAGE = {").count(), 1);
}

#[test]
fn a_page_asks_for_nothing_and_its_script_is_small() {
    let html = page(vec![series("a", 100, 20.0)]).to_html();
    let html = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    // The library names its home in a comment, and asks for nothing either.
    let html = html.replace("/*! https://github.com/leeoniya/uPlot (v1.6.32) */", "");
    for forbidden in [
        "http:",
        "https:",
        "src=",
        "href=",
        "@import",
        "url(",
        "fetch(",
        "XMLHttp",
        "WebSocket",
        "import(",
    ] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    assert!(html.starts_with("<!doctype html>"));
    let script = html.split("]};\n{\n").nth(1).expect("a script");
    let script = script.split("</script>").next().expect("its end");
    assert!(script.len() < 26_000, "{} octets", script.len());
    assert_eq!(
        html.matches(crate::viewer::UPLOT.lines().nth(1).expect("code"))
            .count(),
        1
    );
}

#[test]
fn a_browser_without_scripts_shows_still_pictures() {
    let html = page(vec![series("a", 100, 20.0)]).to_html();
    let still = |part: &str| {
        let svg = part.split("</noscript>").next().expect("an end");
        well_formed(svg);
        assert!(svg.contains("<title>") && svg.contains("<desc>"));
    };
    let parts: Vec<&str> = html.split("<noscript><div").collect();
    assert_eq!(parts.len(), 5, "one for each chart");
    parts[1..]
        .iter()
        .for_each(|part| still(&format!("<div{part}")));
}

#[test]
fn a_chart_is_described_in_words_and_in_a_table() {
    let html = page(vec![series("host a", 3000, 20.0)]).to_html();
    assert!(html.contains("role=\"img\""));
    assert!(html.contains("host a: 2,9") && html.contains("99th percentile 28."));
    for head in ["samples", "loss", "p50", "p99", "max"] {
        assert!(has_column(&html, head), "{head}");
    }
}

fn has_column(html: &str, head: &str) -> bool {
    html.contains(&format!("<th scope=\"col\" class=\"n\">{head}</th>"))
}

#[test]
fn a_table_has_the_columns_of_its_chart() {
    let shares = [(0.0, 100.0), (1.5, 40.0), (2.5, 60.0), (9.0, 60.0)];
    let mut chart = chart(Kind::Steps, vec![Series::from_points("owner", shares, [])]);
    let steps = Page::new("").with(chart.clone()).to_html();
    for head in ["start", "end", "min", "mean", "max", "last change, s"] {
        assert!(has_column(&steps, head), "{head}");
    }
    let cells = steps.split("<td>owner</td>").nth(1).expect("a row");
    let cells: Vec<&str> = cells.split("<td class=\"n\">").skip(1).collect();
    // 100 for 1.5 s, 40 for 1 s, 60 for 6.5 s.
    let mean = format!("{:.1}", (100.0 * 1.5 + 40.0 + 60.0 * 6.5) / 9.0);
    for (cell, value) in cells.iter().zip(["100<", "60<", "40<", &mean, "100<"]) {
        assert!(cell.starts_with(value), "{cell} for {value}");
    }
    assert!(
        steps.contains("<td class=\"n\">2.5</td></tr>"),
        "the last change"
    );
    assert!(steps.contains("kind:\"steps\""), "it is drawn as steps");
    chart.summary = crate::Summary::Values;
    let values = Page::new("").with(chart).to_html();
    assert!(has_column(&values, "p99"));
    for html in [steps, values] {
        assert!(!has_column(&html, "lost") && !has_column(&html, "loss"));
    }
}

#[test]
fn steps_in_a_page_are_samples_where_they_were_and_stay_below_the_limit() {
    let burst =
        |from: f64| (0..120_000).map(move |i| (from + f64::from(i) * 1e-6, f64::from(i % 7)));
    let points: Vec<(f64, f64)> = burst(0.0).chain([(5.02, 9.0)]).chain(burst(9.0)).collect();
    let series = |name: usize| Series::from_points(name.to_string(), points.iter().copied(), []);
    let html = Page::new("")
        .with(chart(Kind::Steps, (0..4).map(series).collect()))
        .to_html();
    assert!(html.len() < 5_000_000, "{} octets", html.len());
    assert_eq!(
        html.matches(",each:1,").count(),
        4,
        "each column is one sample"
    );
    let steps = data::steps(&series(0).samples().columns, 1_000);
    assert!(steps.len() < 4_100, "{}", steps.len());
    let drop = steps
        .iter()
        .find(|column| column.max == 9.0)
        .expect("the change");
    assert_eq!(drop.x, (5.02, 5.02));
}

#[test]
fn empty_and_extreme_charts_make_a_page() {
    let none = chart(Kind::Line, Vec::new());
    let empty = chart(Kind::Cdf, vec![Series::from_points("", [], [])]);
    let points = [
        (f64::MIN, f64::MAX),
        (f64::MAX, f64::MIN),
        (5e-324, -5e-324),
    ];
    let extreme = Series::from_points("x", points, [f64::MAX, 0.0]);
    let html = page(vec![extreme]).with(none).with(empty).to_html();
    let data = html.split("const PAGE = ").nth(1).expect("data");
    let data = data.split("]};\n{\n").next().expect("a script");
    for number in [":NaN", ":inf", ":-inf"] {
        assert!(!data.contains(number), "{number}");
    }
}

#[test]
fn numbers_are_packed_as_rfc_4648_and_seven_bits_have_it() {
    for (octets, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(data::base64(octets.as_bytes()), text);
    }
    assert_eq!(
        crate::viewer::quoted("a</script>\"\\\n"),
        "\"a\\u003c/script\\u003e\\u0022\\u005c\\u000a\""
    );
}
