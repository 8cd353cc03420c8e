//! A chart of measurements as one still picture.

use crate::chart::{Chart, Kind, Series};
use crate::figure::lines::{Frame, frame};
use crate::number;
use crate::scale::Scale;
use crate::svg::{Anchor, Font, Svg, dash, fill, stroke};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Columns of a line, at most: more than the picture has units across.
const COLUMNS: usize = 2048;

/// Dots of a scatter, at most or so; more of them become one where they touch.
const DOTS: usize = 6000;

/// A line of at most this many points has a marker on each.
const POINTS_MARKED: usize = 20;

/// How high a mark of a lost packet is, and a row of them.
const LOST_HEIGHT: f64 = 7.0;
const LOST_ROW: f64 = 9.0;

pub(crate) fn render(chart: &Chart, width: f64, standalone: bool) -> String {
    let mut svg = Svg::new(width);
    let narrow = svg.width < 600.0;
    let heading = Font::bold(if narrow { 16.0 } else { 18.0 });
    svg.paragraph(16.0, heading, &chart.title);
    svg.y += 3.0;
    svg.paragraph(16.0, Font::muted(13.0), &chart.subtitle);
    svg.y += 8.0;
    let font = Font::plain(13.0);
    svg.paragraph(16.0, font, &format!("\u{2191} {}", chart.y.caption()));
    let (span, heights) = extent(chart);
    let clock = chart.kind == Kind::OverTime && !chart.x.log && chart.x.unit == "s";
    let as_clock = |room| {
        clock
            .then(|| Scale::fit_time(span[0], span[1], room))
            .flatten()
    };
    let fit_x =
        |room| as_clock(room).unwrap_or_else(|| Scale::fit(span.into_iter(), &chart.x, room));
    let fit_y = |room| Scale::fit(heights.into_iter(), &chart.y, room);
    svg.y += lost_rows(chart) as f64 * LOST_ROW;
    let frame = frame(&mut svg, &fit_x, &fit_y);
    let caption = match as_clock(2) {
        Some(_) => format!("{} (h:min:s)", chart.x.label),
        None => chart.x.caption(),
    };
    for (i, series) in chart.series.iter().enumerate() {
        draw(&mut svg, &frame, chart, series, i);
        if chart.kind != Kind::Cdf {
            draw_lost(&mut svg, &frame, chart, i);
        }
    }
    svg.y = frame.top + frame.height + 20.0;
    for line in font.wrap(&format!("{caption} \u{2192}"), frame.width) {
        svg.y += 17.0;
        let y = svg.y;
        svg.text(frame.left + frame.width, y, Anchor::End, font, &line);
    }
    svg.y += 8.0;
    legend(&mut svg, chart);
    for note in &chart.notes {
        svg.y += 4.0;
        svg.paragraph(16.0, Font::muted(12.0), note);
    }
    svg.finish(&chart.title, &describe(chart), standalone)
}

/// The ends of both axes; not a number where there is nothing.
pub(crate) fn extent(chart: &Chart) -> ([f64; 2], [f64; 2]) {
    let (mut xs, mut ys) = ([f64::NAN; 2], [f64::NAN; 2]);
    let widen = |ends: &mut [f64; 2], value: f64, log: bool| {
        if !log || value > 0.0 {
            *ends = [ends[0].min(value), ends[1].max(value)];
        }
    };
    for samples in chart.series.iter().map(Series::samples) {
        if chart.kind == Kind::Cdf {
            for (value, _) in &samples.shares {
                widen(&mut xs, *value, chart.x.log);
            }
            ys = [0.0, 1.0];
            continue;
        }
        for column in &samples.columns {
            widen(&mut xs, column.x.0, chart.x.log);
            widen(&mut xs, column.x.1, chart.x.log);
            widen(&mut ys, column.min, chart.y.log);
            widen(&mut ys, column.max, chart.y.log);
        }
        for lost in &samples.lost {
            widen(&mut xs, lost.x.0, chart.x.log);
            widen(&mut xs, lost.x.1, chart.x.log);
        }
    }
    (xs, ys)
}

/// Where the points of a series are drawn, in order.
fn places(frame: &Frame, chart: &Chart, series: &Series) -> Vec<(f64, f64)> {
    let samples = series.samples();
    let mut points = Vec::new();
    if chart.kind == Kind::Cdf {
        let mut below = 0.0;
        for (value, share) in &samples.shares {
            points.extend([(*value, below), (*value, *share)]);
            below = *share;
        }
    } else {
        let limit = if chart.kind == Kind::Scatter {
            32 * COLUMNS
        } else {
            COLUMNS
        };
        for column in samples.at_most(limit) {
            let (from, to) = column.x;
            let middle = from + (to - from) / 2.0;
            points.push((from, column.first));
            if column.count > 1 {
                points.extend([
                    (middle, column.min),
                    (middle, column.max),
                    (to, column.last),
                ]);
            }
        }
    }
    points.into_iter().filter_map(|p| frame.place(p)).collect()
}

fn draw(svg: &mut Svg, frame: &Frame, chart: &Chart, series: &Series, index: usize) {
    let places = places(frame, chart, series);
    let colour = chart.colour(index);
    let mut path = String::new();
    if chart.kind == Kind::Scatter {
        if places.len() <= 400 {
            for (x, y) in places {
                svg.marker(x, y, colour, false, "");
            }
            return;
        }
        for (x, y) in apart(&places) {
            let _ = write!(path, "M{x:.1} {y:.1}h0");
        }
        let (class, ink) = stroke(colour);
        svg.raw(&format!(
            "<path class=\"{class}\" {ink} fill=\"none\" stroke-width=\"2.4\" stroke-linecap=\"round\" \
             stroke-opacity=\"0.7\" d=\"{path}\"/>"
        ));
        return;
    }
    let mut last: Option<(f64, f64)> = None;
    let end = places.len().saturating_sub(1);
    for (i, (x, y)) in places.iter().copied().enumerate() {
        let command = match last {
            Some((lx, ly)) if (x - lx).hypot(y - ly) < 0.7 && i != end => continue,
            Some(_) => 'L',
            None => 'M',
        };
        let _ = write!(path, "{command}{x:.1} {y:.1}");
        last = Some((x, y));
    }
    let dense = chart.kind != Kind::Cdf && places.len() > 600;
    if !path.is_empty() {
        svg.raw(&line(colour, dense, &path));
    }
    markers(svg, frame, &places, colour, index);
}

/// A line of a colour, with the colour's dash unless it is too dense for one.
fn line(colour: usize, dense: bool, path: &str) -> String {
    let (class, ink) = stroke(colour);
    let dash = match dash(colour) {
        dash if dash.is_empty() || dense => String::new(),
        dash => format!(" stroke-dasharray=\"{dash}\""),
    };
    let width = if dense {
        "1.2\" stroke-opacity=\"0.85"
    } else {
        "2"
    };
    format!(
        "<path class=\"{class}\" {ink} fill=\"none\" stroke-width=\"{width}\" \
         stroke-linejoin=\"round\"{dash} d=\"{path}\"/>"
    )
}

/// Marks each point of a short line, and some of a long one, elsewhere on each series.
fn markers(svg: &mut Svg, frame: &Frame, places: &[(f64, f64)], colour: usize, index: usize) {
    let each = places.len() <= POINTS_MARKED;
    let step = frame.width / 7.0;
    let mut next = frame.left + step * (0.15 + index as f64 * 0.37).fract();
    for &(x, y) in places {
        if frame.holds((x, y)) && (each || x >= next) {
            svg.marker(x, y, colour, false, "");
            next = next.max(x) + step;
        }
    }
}

/// Places without those that others cover.
fn apart(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut size = 1.0;
    loop {
        let mut seen = HashSet::new();
        let of = |v: f64| (v / size).floor() as i64;
        let apart: Vec<_> = places
            .iter()
            .copied()
            .filter(|(x, y)| seen.insert((of(*x), of(*y))))
            .collect();
        if apart.len() <= DOTS || size > 8.0 {
            return apart;
        }
        size *= 1.3;
    }
}

/// Series that have a row of ticks above the picture.
fn lost_rows(chart: &Chart) -> usize {
    let lost = chart.series.iter().filter(|s| s.samples().lost() > 0);
    if chart.kind == Kind::Cdf {
        0
    } else {
        lost.count()
    }
}

/// Draws when packets were lost: ticks above the picture, one row for each series.
fn draw_lost(svg: &mut Svg, frame: &Frame, chart: &Chart, index: usize) {
    let lost = &chart.series[index].samples().lost;
    let below = chart.series[index..]
        .iter()
        .filter(|s| s.samples().lost() > 0);
    let foot = frame.top - 4.0 - (below.count() as f64 - 1.0) * LOST_ROW;
    if lost.is_empty() {
        return;
    }
    let mut path = String::new();
    let mut reached = f64::NEG_INFINITY;
    for span in lost {
        let at = |x| frame.left + frame.along(x).unwrap_or(0.0) * frame.width;
        let (from, to) = (at(span.x.0), at(span.x.1));
        if to - reached < 0.7 {
            continue;
        }
        // A span wider than a tick is a bar.
        if to - from > 1.5 {
            let _ = write!(
                path,
                "M{from:.1} {foot:.1}H{to:.1}v-{LOST_HEIGHT}H{from:.1}z"
            );
        } else {
            let _ = write!(
                path,
                "M{:.1} {foot:.1}h1.4v-{LOST_HEIGHT}h-1.4z",
                from - 0.7
            );
        }
        reached = to;
    }
    let (class, ink) = fill(chart.colour(index));
    svg.raw(&format!("<path class=\"{class}\" {ink} d=\"{path}\"/>"));
}

/// Names each series below the picture with its counts, in as many columns as fit.
fn legend(svg: &mut Svg, chart: &Chart) {
    const SAMPLE: f64 = 44.0;
    let font = Font::plain(13.0);
    let room = svg.width - 32.0;
    let entries: Vec<String> = chart.series.iter().map(entry).collect();
    let widest = entries.iter().map(|e| font.width(e)).fold(0.0, f64::max);
    let columns = (room / (widest + SAMPLE + 24.0)).floor().clamp(1.0, 3.0) as usize;
    let column_width = room / columns as f64;
    let rows = entries.len().div_ceil(columns);
    let top = svg.y;
    let mut lowest = top;
    for (i, entry) in entries.iter().enumerate() {
        if i % rows.max(1) == 0 {
            svg.y = top;
        }
        let x = 16.0 + (i / rows.max(1)) as f64 * column_width;
        let (sample, colour) = (svg.y + 14.0, chart.colour(i));
        if chart.kind != Kind::Scatter {
            let path = format!("M{x:.1} {sample:.1}L{:.1} {sample:.1}", x + SAMPLE - 10.0);
            svg.raw(&line(colour, false, &path));
        }
        svg.marker(x + (SAMPLE - 10.0) / 2.0, sample, colour, false, "");
        for line in font.wrap(entry, column_width - SAMPLE - 8.0) {
            svg.y += 18.0;
            let y = svg.y;
            svg.text(x + SAMPLE, y, Anchor::Start, font, &line);
        }
        svg.y += 3.0;
        lowest = lowest.max(svg.y);
    }
    svg.y = lowest;
    let lost = chart.series.iter().any(|s| s.samples().lost() > 0);
    if lost && chart.kind != Kind::Cdf {
        svg.y += 2.0;
        svg.paragraph(16.0, Font::muted(12.0), LOST_KEY);
    }
}

/// What the marks above the picture are.
pub(crate) const LOST_KEY: &str =
    "Ticks above the picture: when packets were lost, in the colour of their series.";

/// A series' name, and what it lost.
fn entry(series: &Series) -> String {
    let name = if series.name.trim().is_empty() {
        "-"
    } else {
        &series.name
    };
    match series.samples().lost() {
        0 => name.to_owned(),
        _ => format!("{name} ({} lost)", percent(series)),
    }
}

/// The share of packets that were lost, with enough digits not to be 0 or 100 where it is not.
pub(crate) fn percent(series: &Series) -> String {
    let loss = series.samples().loss().unwrap_or(0.0) * 100.0;
    let text = number::grouped(loss, 1);
    match text.as_str() {
        "0.0" if loss > 0.0 => "< 0.1 %".into(),
        "100.0" if loss < 100.0 => "> 99.9 %".into(),
        text => format!("{} %", text.trim_end_matches(".0")),
    }
}

/// The picture in words: axes, and the figures of each series.
pub(crate) fn describe(chart: &Chart) -> String {
    let value = if chart.kind == Kind::Cdf {
        &chart.x
    } else {
        &chart.y
    };
    let mut text = format!(
        "{} Vertical: {}. Horizontal: {}.",
        chart.subtitle,
        chart.y.caption(),
        chart.x.caption()
    );
    for series in &chart.series {
        let samples = series.samples();
        let _ = write!(
            text,
            " {}: {} samples",
            series.name,
            number::grouped(samples.count() as f64, 0)
        );
        if let (Some((low, high)), [Some(median), _, Some(p99)]) =
            (samples.range(), samples.percentiles())
        {
            let [low, median, p99, high] = [low, median, p99, high].map(number::short);
            let _ = write!(
                text,
                ", lowest {low}, median {median}, 99th percentile {p99}, highest {high} {}",
                value.unit
            );
        }
        if samples.lost() > 0 {
            let _ = write!(text, ", {} lost", number::grouped(samples.lost() as f64, 0));
        }
        text.push('.');
    }
    text.replace(" .", ".").trim_start().to_owned()
}

#[cfg(test)]
mod tests;
