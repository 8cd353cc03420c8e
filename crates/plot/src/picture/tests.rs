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

const KINDS: [Kind; 4] = [Kind::Line, Kind::Scatter, Kind::Cdf, Kind::OverTime];

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
        crate::svg_to_png("<p>", 1.0),
        Err(crate::PngError::NotSvg(_))
    ));
}
