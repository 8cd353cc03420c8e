//! A chart of measurements as one still picture.

mod lines;
mod lost;
mod words;

use crate::chart::{Chart, Kind, Series};
use crate::figure::lines::{Frame, frame};
use crate::scale::Scale;
use crate::svg::{Anchor, Font, Svg, dash, hollow, stroke};
use std::cell::RefCell;
pub(crate) use words::{LOST_KEY, describe, percent, value_unit};

/// Stands where samples would.
const EMPTY: &str = "no sample";

/// Where a picture stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a file of its own.
    Alone,
    /// In a page that has the style sheet.
    Inline,
    /// In such a page below a heading and a sentence, which it does not repeat.
    Below,
}

/// Charts over the same horizontal axis, one below the other in one picture, their plots aligned.
#[derive(Clone, Debug)]
pub struct Stack {
    /// What the picture shows, in a few words.
    pub title: String,
    /// Sentences below the title, a line for each; may be empty.
    pub subtitle: String,
    /// The charts from the top down; the title of each stands above it.
    pub charts: Vec<Chart>,
}

impl Stack {
    /// The picture as a complete SVG document that needs no other file and follows a dark colour scheme.
    pub fn to_svg(&self) -> String {
        let width = crate::figure::WIDTH_DEFAULT;
        // The widest labels decide where all plots begin.
        let lefts = self.charts.iter().map(|chart| {
            let mut svg = Svg::new(width);
            panel(&mut svg, chart)
        });
        let left = lefts.fold(0.0, f64::max);
        let mut svg = Svg::new(width);
        svg.heading(&self.title, &self.subtitle, 6.0);
        svg.frame_left = left;
        svg.frame_tall = 270.0;
        for chart in &self.charts {
            svg.y += 6.0;
            svg.heading(&chart.title, &chart.subtitle, 4.0);
            panel(&mut svg, chart);
        }
        let words: Vec<String> = self.charts.iter().map(describe).collect();
        svg.finish(&self.title, &words.join(" "), true)
    }

    /// The picture as a PNG, light, `scale` pixels for each of its 860 units of width.
    ///
    /// # Errors
    /// When the picture would be larger than a PNG of ours may be.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>, crate::PngError> {
        crate::png::svg_to_png(&self.to_svg(), scale)
    }
}

pub(crate) fn render(chart: &Chart, width: f64, place: Place) -> String {
    let mut svg = Svg::new(width);
    if place != Place::Below {
        svg.heading(&chart.title, &chart.subtitle, 8.0);
    }
    panel(&mut svg, chart);
    svg.finish(&chart.title, &describe(chart), place == Place::Alone)
}

/// Draws a chart below what is there, and returns where its plot begins.
fn panel(svg: &mut Svg, chart: &Chart) -> f64 {
    let (frame, caption) = axes(svg, chart);
    if chart.kind != Kind::Cdf {
        bands(svg, &frame, chart);
    }
    for (index, series) in chart.series.iter().enumerate() {
        let bins = lines::draw(svg, &frame, chart, index);
        if chart.kind != Kind::Cdf && series.samples().lost() > 0 {
            lost::draw(svg, &frame, chart, index, bins.as_ref());
        }
    }
    if chart.series.iter().all(|s| s.samples().count() == 0) {
        let (x, y) = (
            frame.left + frame.width / 2.0,
            frame.top + frame.height / 2.0,
        );
        svg.text(x, y, Anchor::Middle, Font::muted(14.0), EMPTY);
    }
    svg.y = frame.top + frame.height + 20.0;
    let font = Font::plain(13.0);
    for line in font.wrap(&format!("{caption} \u{2192}"), frame.width) {
        svg.y += 17.0;
        let y = svg.y;
        svg.text(frame.left + frame.width, y, Anchor::End, font, &line);
    }
    svg.y += 8.0;
    legend(svg, chart);
    for note in &chart.notes {
        svg.y += 4.0;
        svg.paragraph(16.0, Font::muted(12.0), note);
    }
    frame.left
}

/// Shades bands, and names those that have room for their name.
fn bands(svg: &mut Svg, frame: &Frame, chart: &Chart) {
    let font = Font::muted(12.0);
    for band in &chart.bands {
        let ends = [band.x.0, band.x.1].map(|x| frame.along(x).map(|at| at.clamp(0.0, 1.0)));
        let [Some(from), Some(to)] = ends else {
            continue;
        };
        let (x, width) = (frame.left + from * frame.width, (to - from) * frame.width);
        let (top, tall) = (frame.top, frame.height);
        if band.is_shaded {
            svg.raw(&format!(
                "<path class=\"muted\" fill=\"#55595f\" fill-opacity=\"0.12\" \
                 d=\"M{x:.1} {top:.1}h{width:.1}v{tall:.1}h-{width:.1}z\"/>"
            ));
        }
        if font.width(&band.name) + 4.0 <= width {
            let middle = x + width / 2.0;
            svg.text(middle, top + 15.0, Anchor::Middle, font, &band.name);
        }
    }
}

/// Draws the axes below the vertical one's caption, and returns the horizontal one's.
fn axes(svg: &mut Svg, chart: &Chart) -> (Frame, String) {
    let (span, heights) = extent(chart);
    let timed = matches!(chart.kind, Kind::OverTime | Kind::Steps | Kind::Scatter);
    let clock = timed && !chart.x.log && chart.x.unit == "s";
    let clock = clock && Scale::fit_time(span[0], span[1], 2).is_some();
    let shown = RefCell::new(chart.x.clone());
    let fit_x = |room| {
        let as_clock = clock.then(|| Scale::fit_time(span[0], span[1], room));
        as_clock.flatten().unwrap_or_else(|| {
            let (scale, axis) = Scale::fit_units(span, &chart.x, room);
            shown.replace(axis);
            scale
        })
    };
    let fit_y = |room| Scale::fit_units(heights, &chart.y, room).0;
    let caption = Scale::fit_units(heights, &chart.y, 6).1.caption();
    svg.paragraph(16.0, Font::plain(13.0), &format!("\u{2191} {caption}"));
    svg.y += lost::rows(chart) as f64 * lost::ROW;
    let frame = frame(svg, &fit_x, &fit_y);
    let caption = if clock {
        format!("{} (h:min:s)", chart.x.label)
    } else {
        shown.borrow().caption()
    };
    (frame, caption)
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
    if chart.kind != Kind::Cdf {
        for band in &chart.bands {
            widen(&mut xs, band.x.0, chart.x.log);
            widen(&mut xs, band.x.1, chart.x.log);
        }
    }
    (xs, ys)
}

/// A line of a look, with its dash unless it is too dense for one.
fn line(look: usize, dense: bool, path: &str) -> String {
    let (class, ink) = stroke(look);
    let dash = match dash(look) {
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

/// Names each series below the picture with its counts, in as many columns as fit.
fn legend(svg: &mut Svg, chart: &Chart) {
    const SAMPLE: f64 = 44.0;
    let font = Font::plain(13.0);
    let room = svg.width - 32.0;
    let entries: Vec<String> = chart.series.iter().map(words::entry).collect();
    let lines = |entry: &str, columns: usize| {
        let lines = font.wrap(entry, room / columns as f64 - SAMPLE - 8.0).len();
        // A broken name is worth some height.
        18.0 * lines as f64 + if lines > 1 { 15.0 } else { 3.0 }
    };
    // As many columns as make the legend lowest.
    let height = |columns: &usize| {
        let rows = entries.len().div_ceil(*columns).max(1);
        let columns = entries.chunks(rows).map(|entries| {
            let heights = entries.iter().map(|entry| lines(entry, *columns));
            heights.sum::<f64>()
        });
        columns.fold(0.0, f64::max)
    };
    let words = entries.iter().flat_map(|entry| entry.split_whitespace());
    let widest = words.map(|word| font.width(word)).fold(100.0, f64::max);
    let most = ((room / (widest + SAMPLE + 16.0)) as usize).clamp(1, 4);
    let columns = (1..=most).min_by(|a, b| height(a).total_cmp(&height(b)));
    let columns = columns.unwrap_or(1);
    let column_width = room / columns as f64;
    let rows = entries.len().div_ceil(columns);
    let top = svg.y;
    let mut lowest = top;
    for (i, entry) in entries.iter().enumerate() {
        if i % rows.max(1) == 0 {
            svg.y = top;
        }
        let x = 16.0 + (i / rows.max(1)) as f64 * column_width;
        let (sample, look) = (svg.y + 14.0, chart.colour(i));
        if chart.kind != Kind::Scatter {
            let path = format!("M{x:.1} {sample:.1}L{:.1} {sample:.1}", x + SAMPLE - 10.0);
            svg.raw(&line(look, false, &path));
        }
        let middle = x + (SAMPLE - 10.0) / 2.0;
        svg.marker(middle, sample, look, hollow(look), "");
        for line in font.wrap(entry, column_width - SAMPLE - 8.0) {
            svg.y += 18.0;
            let y = svg.y;
            svg.text(x + SAMPLE, y, Anchor::Start, font, &line);
        }
        svg.y += 3.0;
        lowest = lowest.max(svg.y);
    }
    svg.y = lowest;
    if lost::rows(chart) > 0 {
        svg.y += 2.0;
        svg.paragraph(16.0, Font::muted(12.0), LOST_KEY);
    }
}

#[cfg(test)]
mod tests;
