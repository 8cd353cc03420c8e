//! Charts as SVG.

use super::axis::{Axis, Unit};
use super::chart::{Chart, Data, Look, Series};
use super::{bands, thin};
use crate::why::Cause;
use core::fmt::Write;

const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 700.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 25.0;
const TOP: f64 = 95.0;
const BOTTOM: f64 = 60.0;

/// Height of the strip with causes.
const BAND: f64 = 10.0;

/// Limit of dots and marks of a series; beyond it, neighbours share a place.
const DOTS_MAX: usize = 20_000;

/// Appends formatted text; writing to a string cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        let _ = write!($out, $($text)*);
    }};
}

/// The text, escaped for XML and without the characters that XML forbids.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            character if character.is_control() => safe.push(' '),
            character => safe.push(character),
        }
    }
    safe
}

/// A coordinate with one decimal at most.
pub(super) fn coordinate(out: &mut String, value: f64) {
    let tenths = (value * 10.0).round().clamp(-1e7, 1e7) as i64;
    if tenths < 0 {
        out.push('-');
    }
    put!(out, "{}", tenths.abs() / 10);
    if tenths % 10 != 0 {
        put!(out, ".{}", tenths.abs() % 10);
    }
}

/// Where a value lies in pixels.
struct Scale {
    x: Axis,
    y: Axis,
}

impl Scale {
    fn x(&self, value: f64) -> f64 {
        LEFT + (value - self.x.low) / (self.x.high - self.x.low) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let height = HEIGHT - TOP - BOTTOM;
        HEIGHT - BOTTOM - (value - self.y.low) / (self.y.high - self.y.low) * height
    }
}

/// Opens a picture of this size.
pub(super) fn open(out: &mut String, width: f64, height: f64, title: &str, subtitle: &str) {
    put!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"Helvetica,Arial,sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"30\" font-size=\"20\" font-weight=\"bold\">{title}</text>\n\
         <text x=\"{LEFT}\" y=\"50\" fill=\"#555\">{subtitle}</text>\n",
        title = escape(title),
        subtitle = escape(subtitle),
    );
}

/// Draws a chart.
pub(super) fn draw(chart: &Chart) -> String {
    let (x, y, above) = chart.bounds();
    // Where the lowest is not far from 0, the axis begins there.
    let low = if y.0 >= 0.0 && y.0 < y.1 * 0.7 {
        0.0
    } else {
        y.0
    };
    let (x_margin, y_margin) = ((x.1 - x.0) * 0.01, (y.1 - low) * 0.03);
    let y_low = if low == 0.0 { 0.0 } else { low - y_margin };
    let scale = Scale {
        x: Axis::new(Unit::Seconds, x.0.min(0.0) - x_margin, x.1 + x_margin, 10),
        y: Axis::new(chart.y_unit, y_low, y.1 + y_margin, 8),
    };
    let mut out = String::with_capacity(1 << 16);
    open(&mut out, WIDTH, HEIGHT, &chart.title, &chart.subtitle);
    axes(&mut out, chart, &scale);
    put!(
        out,
        "<clipPath id=\"plot\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/></clipPath>\n\
         <g clip-path=\"url(#plot)\">\n",
        WIDTH - LEFT - RIGHT,
        HEIGHT - TOP - BOTTOM
    );
    if chart.series.is_empty() {
        put!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"18\">nothing to show</text>\n",
            WIDTH / 2.0,
            HEIGHT / 2.0
        );
    }
    for series in &chart.series {
        draw_series(&mut out, series, &scale);
    }
    draw_bands(&mut out, chart, &scale);
    out.push_str("</g>\n");
    causes(&mut out, chart);
    legend(&mut out, &chart.series, above);
    out.push_str("</svg>\n");
    out
}

fn axes(out: &mut String, chart: &Chart, scale: &Scale) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for (value, label) in scale.x.ticks() {
        let mut x = String::new();
        coordinate(&mut x, scale.x(value));
        put!(
            out,
            "<path d=\"M{x} {TOP}V{bottom}\" stroke=\"#e4e4e4\"/><text x=\"{x}\" y=\"{}\" \
             text-anchor=\"middle\">{label}</text>\n",
            bottom + 20.0
        );
    }
    for (value, label) in scale.y.ticks() {
        let mut y = String::new();
        coordinate(&mut y, scale.y(value));
        put!(
            out,
            "<path d=\"M{LEFT} {y}H{right}\" stroke=\"#e4e4e4\"/><text x=\"{}\" y=\"{y}\" dy=\".35em\" \
             text-anchor=\"end\">{label}</text>\n",
            LEFT - 8.0
        );
    }
    put!(
        out,
        "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#555\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">time since the connection's first packet ({})</text>\n\
         <text transform=\"translate(22 {}) rotate(-90)\" text-anchor=\"middle\">{} ({})</text>\n",
        (LEFT + right) / 2.0,
        HEIGHT - 15.0,
        scale.x.unit.0,
        (TOP + bottom) / 2.0,
        chart.y_name,
        scale.y.unit.0
    );
}

fn draw_series(out: &mut String, series: &Series, scale: &Scale) {
    let (look, path) = match &series.data {
        Data::Bars(bars) => ("stroke-width=\"1.6\"", path_of_bars(bars, scale)),
        Data::Points(points) => match series.look {
            Look::Dots => (
                "stroke-width=\"3\" stroke-linecap=\"round\"",
                path_of_marks(points, series.look, scale),
            ),
            Look::Cross | Look::Triangle | Look::Square | Look::Ring => (
                "stroke-width=\"1.6\"",
                path_of_marks(points, series.look, scale),
            ),
            Look::DashedSteps => (
                "stroke-width=\"1.4\" stroke-dasharray=\"6 3\"",
                path_of_steps(points, scale),
            ),
            Look::Steps => ("stroke-width=\"1.4\"", path_of_steps(points, scale)),
            Look::Line => ("stroke-width=\"1.4\"", path_of_line(points, scale)),
        },
    };
    put!(
        out,
        "<path fill=\"none\" stroke=\"{}\" {look} d=\"{path}\"/>\n",
        series.colour
    );
}

/// A strip at the foot of the plot: what the sender waited for.
fn draw_bands(out: &mut String, chart: &Chart, scale: &Scale) {
    let foot = HEIGHT - BOTTOM - BAND;
    let mut last = f64::NEG_INFINITY;
    for &(from, to, cause) in &chart.bands {
        let (x, end) = (scale.x(from), scale.x(to));
        // Of spans within a pixel, the first is drawn.
        if end < last + 0.5 {
            continue;
        }
        last = end;
        put!(out, "<rect x=\"");
        coordinate(out, x);
        put!(out, "\" y=\"{foot}\" width=\"");
        coordinate(out, (end - x).max(0.5));
        put!(
            out,
            "\" height=\"{BAND}\" fill=\"{}\"><title>{}, {:.3} s to {:.3} s</title></rect>\n",
            bands::colour(cause),
            cause.rule().name,
            from,
            to
        );
    }
}

fn causes(out: &mut String, chart: &Chart) {
    let mut x = LEFT;
    for cause in Cause::all().filter(|cause| chart.bands.iter().any(|band| band.2 == *cause)) {
        let name = cause.rule().name;
        put!(
            out,
            "<rect x=\"{x}\" y=\"84\" width=\"8\" height=\"8\" fill=\"{}\"/>\
             <text x=\"{}\" y=\"92\" font-size=\"11\">{name}</text>\n",
            bands::colour(cause),
            x + 11.0
        );
        x += 22.0 + name.len() as f64 * 6.2;
    }
}

fn path_of_bars(bars: &[(f64, f64, f64)], scale: &Scale) -> String {
    let mut path = String::new();
    // y grows downwards in a picture.
    let bars = bars
        .iter()
        .map(|bar| (scale.x(bar.0), scale.y(bar.2), scale.y(bar.1)));
    for bar in thin::bars(bars) {
        move_to(&mut path, bar.0, bar.1);
        path.push('v');
        coordinate(&mut path, (bar.2 - bar.1).max(1.0));
    }
    path
}

fn path_of_marks(points: &[(f64, f64)], look: Look, scale: &Scale) -> String {
    let mut path = String::new();
    let pixels: Vec<_> = pixels(points, scale).collect();
    for point in thin::dots(&pixels, DOTS_MAX) {
        mark(&mut path, look, point);
    }
    path
}

fn path_of_line(points: &[(f64, f64)], scale: &Scale) -> String {
    let mut path = String::new();
    for (x, y) in thin::line(pixels(points, scale)) {
        if path.is_empty() {
            move_to(&mut path, x, y);
        } else {
            path.push('L');
            coordinate(&mut path, x);
            path.push(' ');
            coordinate(&mut path, y);
        }
    }
    path
}

fn path_of_steps(points: &[(f64, f64)], scale: &Scale) -> String {
    let mut path = String::new();
    let mut last = f64::NAN;
    for (x, y) in thin::line(pixels(points, scale)) {
        if last.is_nan() {
            move_to(&mut path, x, y);
        } else {
            if y == last {
                continue;
            }
            path.push('H');
            coordinate(&mut path, x);
            path.push('V');
            coordinate(&mut path, y);
        }
        last = y;
    }
    if let Some(end) = points.last() {
        path.push('H');
        coordinate(&mut path, scale.x(end.0));
    }
    path
}

/// The points in the coordinates of the picture.
fn pixels(points: &[(f64, f64)], scale: &Scale) -> impl Iterator<Item = (f64, f64)> {
    points
        .iter()
        .map(|point| (scale.x(point.0), scale.y(point.1)))
}

fn move_to(path: &mut String, x: f64, y: f64) {
    path.push('M');
    coordinate(path, x);
    path.push(' ');
    coordinate(path, y);
}

/// A mark, or a dot.
fn mark(path: &mut String, look: Look, (x, y): (f64, f64)) {
    let (dx, dy, shape) = match look {
        Look::Cross => (-3.5, -3.5, "l7 7m0-7l-7 7"),
        Look::Triangle => (0.0, -4.5, "l4.5 8h-9z"),
        Look::Square => (-3.0, -3.0, "h6v6h-6z"),
        Look::Ring => (-4.5, 0.0, "a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0"),
        Look::Line | Look::Steps | Look::DashedSteps | Look::Dots => (0.0, 0.0, "h0"),
    };
    move_to(path, x + dx, y + dy);
    path.push_str(shape);
}

fn legend(out: &mut String, series: &[Series], above: bool) {
    let mut x = LEFT;
    for series in series {
        let colour = series.colour;
        let mut path = String::new();
        match (&series.data, series.look) {
            (Data::Bars(_), _) => put!(path, "M{} 66v16", x + 8.0),
            (_, look) if look.is_mark() || look == Look::Dots => {
                mark(&mut path, look, (x + 8.0, 74.0));
            }
            _ => put!(path, "M{x} 74h18"),
        }
        let dash = if series.look == Look::DashedSteps {
            " stroke-dasharray=\"6 3\""
        } else {
            ""
        };
        let width = if series.look == Look::Dots { 5 } else { 2 };
        let outside = if above && series.look == Look::DashedSteps {
            " (above the picture)"
        } else {
            ""
        };
        put!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-linecap=\"round\"{dash}/><text x=\"{}\" y=\"78\">{}{outside}</text>\n",
            x + 24.0,
            escape(&series.name)
        );
        x += 44.0 + (series.name.len() + outside.len()) as f64 * 6.9;
    }
}
