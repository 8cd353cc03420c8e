//! Lines and points over two axes.

use super::{Chart, Marks, Series, Style, number};
use crate::scale::Scale;
use crate::svg::{Anchor, Font, Svg, stroke};

/// Markers on one line, at most or so, if it has more than [`POINTS_MARKED`] points.
const MARKERS_PER_LINE: f64 = 9.0;
/// A line of at most this many points has a marker on each.
const POINTS_MARKED: usize = 20;

/// The rectangle that the data is drawn into, in user units.
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    x: Scale,
    y: Scale,
}

impl Frame {
    /// Where a point is drawn; `None` if an axis has no place for it.
    pub(crate) fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        let (x, y) = (self.x.position(x)?, self.y.position(y)?);
        Some((
            self.left + x * self.width,
            self.top + (1.0 - y) * self.height,
        ))
    }

    /// How far along the horizontal axis a value is, 0 to 1 inside.
    pub(crate) fn along(&self, x: f64) -> Option<f64> {
        self.x.position(x)
    }

    /// Whether a placed point lies inside.
    pub(crate) fn holds(&self, (x, y): (f64, f64)) -> bool {
        let margin = 1.0;
        (self.left - margin..=self.left + self.width + margin).contains(&x)
            && (self.top - margin..=self.top + self.height + margin).contains(&y)
    }
}

pub(super) fn render(chart: &Chart, width: f64, standalone: bool) -> String {
    let mut svg = Svg::new(width);
    svg.heading(&chart.title, &chart.subtitle, 8.0);
    let y_font = Font::plain(13.0);
    svg.paragraph(16.0, y_font, &format!("\u{2191} {}", chart.y.caption()));
    let frame = axes(&mut svg, chart);
    for (i, series) in chart.series.iter().enumerate() {
        draw_line(&mut svg, &frame, series);
        draw_markers(&mut svg, &frame, chart, i);
    }
    svg.y = frame.top + frame.height + 20.0;
    for line in y_font.wrap(&format!("{} \u{2192}", chart.x.caption()), frame.width) {
        svg.y += 17.0;
        let y = svg.y;
        svg.text(frame.left + frame.width, y, Anchor::End, y_font, &line);
    }
    svg.y += 8.0;
    legend(&mut svg, chart);
    for note in &chart.notes {
        svg.y += 4.0;
        svg.paragraph(16.0, Font::muted(12.0), note);
    }
    svg.finish(&chart.title, &description(chart), standalone)
}

/// Chooses a scale with at most so many ticks or so.
type Fit<'a> = &'a dyn Fn(usize) -> Scale;

/// The scales of a chart's points.
fn axes(svg: &mut Svg, chart: &Chart) -> Frame {
    let points = || chart.series.iter().flat_map(|s| &s.points);
    let fit_x = |room| Scale::fit(points().map(|p| p.0), &chart.x, room);
    let fit_y = |room| Scale::fit(points().map(|p| p.1), &chart.y, room);
    frame(svg, &fit_x, &fit_y)
}

/// Chooses the scales, each for at most so many ticks, then draws the grid, the axes and their ticks.
pub(crate) fn frame(svg: &mut Svg, fit_x: Fit<'_>, fit_y: Fit<'_>) -> Frame {
    let font = Font::plain(12.0);
    let height = (svg.width * 0.44).clamp(250.0, svg.frame_tall);
    let y = fit_y((height / 42.0) as usize);
    let label_width = |scale: &Scale| {
        let labels = scale.ticks.iter().filter_map(|t| t.label.as_deref());
        labels.map(|l| font.width(l)).fold(0.0, f64::max)
    };
    let left = (16.0 + label_width(&y) + 8.0).max(svg.frame_left);
    let width = svg.width - left - 28.0;
    let mut room = 12;
    let mut x = fit_x(room);
    while room > 2
        && x.ticks.iter().filter(|t| t.label.is_some()).count() as f64 * (label_width(&x) + 16.0)
            > width
    {
        room -= 1;
        x = fit_x(room);
    }
    let frame = Frame {
        left,
        top: svg.y + 16.0,
        width,
        height,
        x,
        y,
    };
    let (right, bottom) = (frame.left + frame.width, frame.top + frame.height);
    for tick in &frame.y.ticks {
        let at = bottom - frame.y.position(tick.at).unwrap_or(0.0) * frame.height;
        svg.grid_line((frame.left, at), (right, at), tick.label.is_none());
        if let Some(label) = &tick.label {
            svg.text(frame.left - 7.0, at + 4.2, Anchor::End, font, label);
        }
    }
    for tick in &frame.x.ticks {
        let at = frame.left + frame.x.position(tick.at).unwrap_or(0.0) * frame.width;
        svg.grid_line((at, frame.top), (at, bottom), tick.label.is_none());
        if let Some(label) = &tick.label {
            svg.axis_line((at, bottom), (at, bottom + 5.0));
            svg.text(at, bottom + 19.0, Anchor::Middle, font, label);
        }
    }
    svg.axis_line((frame.left, bottom), (right, bottom));
    svg.axis_line((frame.left, frame.top), (frame.left, bottom));
    frame
}

fn dash(style: Style) -> &'static str {
    match style {
        Style::Solid | Style::Points => "",
        Style::Dashed => " stroke-dasharray=\"9 5\"",
        Style::Dotted => " stroke-dasharray=\"2 4\"",
    }
}

fn line_element(series: &Series, path: &str) -> String {
    let (class, ink) = stroke(series.colour);
    let width = if series.bold { 3.4 } else { 2.0 };
    format!(
        "<path class=\"{class}\" {ink} fill=\"none\" stroke-width=\"{width}\" \
         stroke-linejoin=\"round\"{} d=\"{path}\"/>",
        dash(series.style),
    )
}

/// Draws a series' line, cut off at the frame; points closer than a line's width are merged.
fn draw_line(svg: &mut Svg, frame: &Frame, series: &Series) {
    if series.style == Style::Points {
        return;
    }
    let mut path = String::new();
    let mut last: Option<(f64, f64)> = None;
    let end = series.points.len().saturating_sub(1);
    for (i, point) in series.points.iter().enumerate() {
        let Some((x, y)) = frame.place(*point) else {
            last = None;
            continue;
        };
        let (x, y) = (x - frame.left, y - frame.top);
        let command = match last {
            Some((lx, ly)) if (x - lx).hypot(y - ly) < 1.0 && i != end => continue,
            Some(_) => 'L',
            None => 'M',
        };
        // Far outside is as good as infinity, and keeps the numbers short.
        let far = |v: f64| v.clamp(-1e5, 1e5);
        path.push_str(&format!("{command}{:.1} {:.1}", far(x), far(y)));
        last = Some((x, y));
    }
    if path.is_empty() {
        return;
    }
    // A nested picture cuts the line off without needing an id for a clip path.
    svg.raw(&format!(
        "<svg x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" overflow=\"hidden\">{}</svg>",
        frame.left,
        frame.top,
        frame.width + 2.0,
        frame.height,
        line_element(series, &path),
    ));
}

/// Draws the markers of series `index`; the last point always has one.
fn draw_markers(svg: &mut Svg, frame: &Frame, chart: &Chart, index: usize) {
    let series = &chart.series[index];
    let hollow = matches!(series.style, Style::Dashed | Style::Dotted);
    // Each series begins elsewhere, so that markers of lines that coincide do not.
    let step = (frame.width + frame.height) / MARKERS_PER_LINE;
    let mut walked = step * (index as f64 * 0.37).fract();
    let mut last: Option<(f64, f64)> = None;
    let each = series.style == Style::Points || series.points.len() <= POINTS_MARKED;
    let end = series
        .points
        .iter()
        .rposition(|p| frame.place(*p).is_some());
    for (i, point) in series.points.iter().enumerate() {
        let Some(at) = frame.place(*point) else {
            continue;
        };
        walked += last.map_or(0.0, |(x, y)| (at.0 - x).hypot(at.1 - y));
        last = Some(at);
        let spread = series.marks == Marks::Spread && (each || walked >= step);
        let due = spread || end == Some(i);
        if !due || !frame.holds(at) {
            continue;
        }
        walked = 0.0;
        let (x, y) = (number::short(point.0), number::short(point.1));
        let hover = format!(
            "{}: {x} {}, {y} {}",
            series.name, chart.x.unit, chart.y.unit
        );
        svg.marker(at.0, at.1, series.colour, hollow, hover.trim_end());
    }
}

/// Names each series below the picture, in as many columns as fit.
fn legend(svg: &mut Svg, chart: &Chart) {
    const SAMPLE: f64 = 44.0;
    let font = Font::plain(13.0);
    let room = svg.width - 32.0;
    let widest = chart
        .series
        .iter()
        .map(|s| font.width(&s.name))
        .fold(0.0, f64::max);
    let columns = (room / (widest + SAMPLE + 24.0)).floor().clamp(1.0, 4.0) as usize;
    let column_width = room / columns as f64;
    let rows = chart.series.len().div_ceil(columns);
    let top = svg.y;
    let mut lowest = top;
    for column in 0..columns {
        svg.y = top;
        for series in chart.series.iter().skip(column * rows).take(rows) {
            let x = 16.0 + column as f64 * column_width;
            let sample = svg.y + 14.0;
            if series.style != Style::Points {
                let (from, to) = (x, x + SAMPLE - 10.0);
                svg.raw(&line_element(
                    series,
                    &format!("M{from:.1} {sample:.1}L{to:.1} {sample:.1}"),
                ));
            }
            let hollow = matches!(series.style, Style::Dashed | Style::Dotted);
            svg.marker(x + (SAMPLE - 10.0) / 2.0, sample, series.colour, hollow, "");
            let name = if series.name.is_empty() {
                "-"
            } else {
                &series.name
            };
            for line in font.wrap(name, column_width - SAMPLE - 8.0) {
                svg.y += 18.0;
                let y = svg.y;
                svg.text(x + SAMPLE, y, Anchor::Start, font, &line);
            }
            svg.y += 3.0;
        }
        lowest = lowest.max(svg.y);
    }
    svg.y = lowest;
}

/// The picture in words: axes, and where each series ends.
fn description(chart: &Chart) -> String {
    let mut text = format!(
        "{} Vertical: {}. Horizontal: {}.",
        chart.subtitle,
        chart.y.caption(),
        chart.x.caption()
    );
    for series in &chart.series {
        let kind = match series.style {
            Style::Solid | Style::Points => "measured",
            Style::Dashed => "published",
            Style::Dotted => "extrapolated",
        };
        text.push_str(&match series.points.last() {
            Some((x, y)) => format!(
                " {} ({kind}) ends at {} {}, {} {}.",
                series.name,
                number::short(*x),
                chart.x.unit,
                number::short(*y),
                chart.y.unit
            ),
            None => format!(" {} has no values.", series.name),
        });
    }
    text.replace(" ,", ",").replace(" .", ".")
}
