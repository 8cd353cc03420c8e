use super::*;
use crate::figure::tests::well_formed;
use crate::{Axis, Thinner};

/// Two series; the first loses every tenth packet.
fn chart(kind: Kind, count: u32) -> Chart {
    let (x, y) = (
        Axis::linear("time", "s"),
        Axis::linear("round-trip time", "ms"),
    );
    let mut chart = Chart::new(kind, "Pings <of> \"two\" & more", x, y);
    for (name, base) in [("<one> & only", 20.0), ("two", 35.0)] {
        let mut thinner = Thinner::new();
        for i in 0..count {
            if i % 10 == 9 && base < 30.0 {
                thinner.push_lost(f64::from(i));
            } else {
                thinner.push(f64::from(i), base + f64::from(i * 7919 % 101) / 10.0);
            }
        }
        chart.series.push(thinner.finish(name));
    }
    chart
}

const KINDS: [Kind; 5] = [
    Kind::Line,
    Kind::Steps,
    Kind::Scatter,
    Kind::Cdf,
    Kind::OverTime,
];

#[test]
fn every_kind_is_well_formed_and_bounded_whatever_the_number_of_samples() {
    for kind in KINDS {
        for count in [0, 1, 2, 300, 300_000] {
            let svg = chart(kind, count).to_svg();
            well_formed(&svg);
            assert!(
                !svg.contains("NaN") && !svg.contains("inf"),
                "{kind:?} {count}"
            );
            assert!(
                svg.len() < 400_000,
                "{kind:?} of {count}: {} octets",
                svg.len()
            );
            assert!(svg.contains("Pings &lt;of&gt; &quot;two&quot; &amp; more"));
            assert!(!svg.contains("<one>"));
        }
    }
}

#[test]
fn a_log_axis_and_a_narrow_page_are_drawn_too() {
    for kind in KINDS {
        let mut chart = chart(kind, 400);
        (chart.x.log, chart.y.log) = (true, true);
        well_formed(&chart.to_inline_svg(300.0));
    }
}

#[test]
fn losses_are_marked_counted_and_explained() {
    let svg = chart(Kind::OverTime, 100).to_svg();
    assert!(svg.contains("(10 % lost)") && svg.contains(LOST_KEY));
    assert!(!chart(Kind::Cdf, 100).to_svg().contains(LOST_KEY));
}

#[test]
fn a_spike_among_many_samples_reaches_the_top() {
    let spike = |i: u32| if i == 77_777 { 500.0 } else { 20.0 };
    let points = (0..200_000).map(|i| (f64::from(i), spike(i)));
    let mut chart = chart(Kind::Line, 0);
    chart.series = vec![Series::from_points("one", points, [])];
    let svg = chart.to_svg();
    assert!(svg.contains("highest 500 ms"));
    // The 500 of the axis is where its grid line is; the line of the series goes as high.
    let label = svg
        .lines()
        .find(|l| l.contains(">500</text>"))
        .expect("a label");
    let y = |text: &str| {
        text.split(" y=\"")
            .nth(1)
            .and_then(|t| t.split('"').next()?.parse::<f64>().ok())
    };
    let at = y(label).expect("a place") - 4.2;
    let path = svg
        .lines()
        .find(|l| l.contains("stroke-linejoin"))
        .and_then(|l| l.split(" d=\"").nth(1))
        .expect("a line");
    let places = path.split(['M', 'V', 'L']).filter_map(|part| {
        let last = part.split(' ').next_back()?;
        last.trim_end_matches("\"/>").parse::<f64>().ok()
    });
    let top = places.fold(f64::MAX, f64::min);
    assert!((at - 1.0..at + 0.1).contains(&top), "{top} is not {at}");
}

#[cfg(feature = "png")]
#[test]
fn a_png_has_the_size_and_ink_in_the_data_and_in_the_text() {
    for kind in KINDS {
        let octets = chart(kind, 300).to_png(1.0).expect("a picture");
        let decoder = png::Decoder::new(std::io::Cursor::new(&octets));
        let mut reader = decoder.read_info().expect("a head");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut pixels).expect("pixels");
        assert_eq!((info.width, info.color_type), (860, png::ColorType::Rgba));
        let ink = |rows: std::ops::Range<usize>| {
            let row = info.width as usize * 4;
            let dark = |p: &&[u8]| p[0] < 100 && p[3] == 255;
            pixels[rows.start * row..rows.end * row]
                .chunks_exact(4)
                .filter(dark)
                .count()
        };
        assert!(ink(10..40) > 100, "{kind:?}: the title is there");
        assert!(ink(80..400) > 200, "{kind:?}: the data is there");
    }
}

#[cfg(not(feature = "png"))]
#[test]
fn a_build_that_cannot_write_a_png_says_what_is_missing() {
    let error = chart(Kind::Line, 9).to_png(1.0).expect_err("no writer");
    assert!(error.to_string().contains("feature `png`"), "{error}");
}

#[cfg(feature = "png")]
#[test]
fn a_png_of_no_size_or_of_too_large_a_one_is_refused() {
    for scale in [0.0, -1.0, f64::NAN, 1e3, f64::INFINITY] {
        assert!(
            matches!(
                chart(Kind::Line, 9).to_png(scale),
                Err(crate::PngError::Size { .. })
            ),
            "{scale}"
        );
    }
    assert!(matches!(
        crate::png::svg_to_png("<p>", 1.0),
        Err(crate::PngError::NotSvg)
    ));
}

#[test]
fn outliers_that_crush_the_rest_make_an_axis_logarithmic() {
    let with = |highest: f64| {
        let values = [20.0, 21.0, 22.0, highest].into_iter();
        let points = (0..).map(f64::from).zip(values);
        let mut chart = chart(Kind::OverTime, 0);
        chart.series = vec![Series::from_points("one", points, [])];
        chart
    };
    assert!(with(2000.0).log_if_crushed().y.log);
    assert!(!with(200.0).log_if_crushed().y.log);
    assert!(with(2000.0).to_cdf("").log_if_crushed().x.log);
    let mut below = with(2000.0);
    let points = [(0.0, 0.0)];
    below.series.push(Series::from_points("zero", points, []));
    assert!(!below.log_if_crushed().y.log);
    assert!(!chart(Kind::Line, 0).log_if_crushed().y.log);
}

#[test]
fn units_of_time_follow_what_was_measured() {
    let of = |value: f64, log: bool| {
        let mut chart = chart(Kind::OverTime, 0);
        let points = (1..40).map(|i| (f64::from(i) / 1000.0, value * f64::from(i)));
        chart.series = vec![Series::from_points("one", points, [])];
        chart.y.log = log;
        chart.to_svg()
    };
    let micro = of(0.002, false);
    assert!(micro.contains("round-trip time (\u{b5}s)") && micro.contains("time (ms)"));
    assert!(micro.contains("median 40, 99th percentile 78, highest 78 \u{b5}s"));
    assert!(of(1000.0, false).contains("round-trip time (s)"));
    let log = of(100.0, true);
    assert!(log.contains(">500 ms<") && log.contains(">2 s<"));
    assert!(log.contains("round-trip time (log scale)"));
}

#[test]
fn a_line_is_parted_where_packets_were_lost() {
    let sample = |i: u32| (f64::from(i), 20.0);
    let points = (0..10).chain(20..30).map(sample);
    let mut parted = chart(Kind::OverTime, 0);
    let values = points.clone().map(|(x, _)| (x, x));
    parted.series = vec![Series::from_points("one", values, [15.0])];
    let strokes = |chart: &Chart| {
        let svg = chart.to_svg();
        let path = svg.lines().find(|l| l.contains("stroke-linejoin"));
        path.expect("a line").matches('M').count()
    };
    assert_eq!(strokes(&parted), 2);
    assert_eq!(strokes(&parted.to_cdf("")), 1, "values have no losses");
    parted.series = vec![Series::from_points("one", points, [])];
    assert_eq!(strokes(&parted), 1, "a pause alone parts nothing");
}

#[test]
fn steps_are_drawn_upright_and_level() {
    let mut chart = chart(Kind::Steps, 0);
    let shares = [(0.0, 100.0), (1.0, 40.0), (2.0, 60.0), (3.0, 60.0)];
    chart.series = vec![Series::from_points("one", shares, [])];
    let svg = chart.to_svg();
    let path = svg
        .lines()
        .find(|l| l.contains("stroke-linejoin"))
        .and_then(|l| l.split(" d=\"").nth(1)?.split('"').next())
        .expect("a line");
    let corners: Vec<(&str, &str)> = path[1..]
        .split('L')
        .map(|corner| corner.split_once(' ').expect("two numbers"))
        .collect();
    assert!(corners.len() >= 6, "{path}");
    for pair in corners.windows(2) {
        let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
        assert!(x == to_x || y == to_y, "a slope in {path}");
    }
}

#[test]
fn dense_steps_have_no_slope_and_drop_where_they_do() {
    let burst = |from: f64, y: f64| {
        (0..100_001).map(move |i| (from + f64::from(i) * 4e-7, y - f64::from(i % 2) * 0.1))
    };
    let points = burst(0.0, 100.0)
        .chain([(5.02, 40.0)])
        .chain(burst(9.0, 40.0));
    let mut chart = chart(Kind::Steps, 0);
    chart.series = vec![Series::from_points("one", points.chain([(10.0, 40.0)]), [])];
    let svg = chart.to_svg();
    let path = svg
        .lines()
        .find(|l| l.contains("stroke-linejoin"))
        .and_then(|l| l.split(" d=\"").nth(1)?.split('"').next())
        .expect("a line");
    let places: Vec<(f64, f64)> = path[1..]
        .split('L')
        .map(|place| place.split_once(' ').expect("two numbers"))
        .map(|(x, y)| (x.parse().expect("x"), y.parse().expect("y")))
        .collect();
    assert!(places.len() < 20_000, "{}", places.len());
    for pair in places.windows(2) {
        let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
        assert!(
            to_x - x < 1.0 || (to_y - y).abs() < 1.0,
            "a slope: {pair:?}"
        );
    }
    let (left, right) = (places[0].0, places[places.len() - 1].0);
    let drop = places.iter().find(|place| place.1 > places[0].1 + 50.0);
    let share = (drop.expect("a drop").0 - left) / (right - left);
    assert!((share - 0.502).abs() < 0.002, "{share}");
}

#[test]
fn steps_are_described_by_their_mean_over_time() {
    let mut chart = chart(Kind::Steps, 0);
    let shares = [(0.0, 100.0), (8.0, 40.0), (8.1, 20.0), (10.0, 20.0)];
    chart.series = vec![Series::from_points("one", shares, [])];
    let words = describe(&chart);
    assert!(
        words.contains("one: lowest 20, mean 84.2, highest 100 ms."),
        "{words}"
    );
}

#[test]
fn twelve_series_have_twelve_looks() {
    let mut chart = chart(Kind::Line, 30);
    let one = chart.series[1].clone();
    chart.series = (0..12).map(|_| one.clone()).collect();
    let svg = chart.to_svg();
    let legend = |l: &&str| l.contains("stroke-linejoin") && !l.contains("L16.0");
    let lines: Vec<String> = svg
        .lines()
        .filter(legend)
        .map(|l| l.split(" d=").next().expect("attributes").to_owned())
        .collect();
    let looks: std::collections::HashSet<&String> = lines.iter().collect();
    assert!(looks.len() >= 12, "{looks:?}");
}

/// A chart with the phases "idle" and "load", of which the second one is shaded.
fn phased(kind: Kind) -> Chart {
    let mut chart = chart(kind, 10);
    for (from, to, name) in [(0.0, 5.0, "idle"), (5.0, 20.0, "<load>")] {
        chart.bands.push(crate::Band {
            x: (from, to),
            is_shaded: from > 0.0,
            name: name.to_owned(),
        });
    }
    chart
}

#[test]
fn bands_are_named_shaded_and_widen_the_axis() {
    for kind in KINDS {
        let svg = phased(kind).to_svg();
        well_formed(&svg);
        let is_drawn = kind != Kind::Cdf;
        assert_eq!(svg.contains(">idle</text>"), is_drawn, "{kind:?}");
        assert_eq!(svg.contains(">&lt;load&gt;</text>"), is_drawn, "{kind:?}");
        let shaded = svg.matches("fill-opacity=\"0.12\"").count();
        assert_eq!(shaded, usize::from(is_drawn), "{kind:?}");
    }
    let chart = phased(Kind::OverTime);
    assert_eq!(extent(&chart).0, [0.0, 20.0]);
    let page = crate::Page::new("Phases").with(chart).to_html();
    assert!(page.contains("bands:[[0.0,5.0,\"idle\",false],[5.0,20.0,"));
}

#[test]
fn the_plots_of_a_stack_begin_at_the_same_place() {
    let mut high = phased(Kind::OverTime);
    high.y.label = "delay".to_owned();
    let mut thinner = Thinner::new();
    thinner.push(1.0, 123_456.0);
    high.series.push(thinner.finish("far"));
    let stack = Stack {
        title: "Both <charts>".to_owned(),
        subtitle: String::new(),
        charts: vec![high, phased(Kind::Steps)],
    };
    let svg = stack.to_svg();
    well_formed(&svg);
    // The shade of the second phase begins at the same place in both.
    let starts: Vec<&str> = svg
        .split("fill-opacity=\"0.12\" d=\"M")
        .skip(1)
        .map(|rest| rest.split(' ').next().unwrap())
        .collect();
    assert_eq!(starts.len(), 2);
    assert_eq!(starts[0], starts[1]);
    if crate::CAN_WRITE_PNG {
        assert!(stack.to_png(1.0).unwrap().starts_with(b"\x89PNG"));
    }
}
