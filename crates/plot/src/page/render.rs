//! A page as text.

use super::table::{write_summary, write_table};
use super::{Block, Page, data};
use crate::chart::{Chart, Kind};
use crate::figure::{Figure, WIDTH_DEFAULT, WIDTH_NARROW};
use crate::picture::{self, LOST_KEY, Place, describe};
use crate::svg::{dash, escape, fill, hollow, shape, stroke};
use crate::viewer;
use std::fmt::Write as _;

const PAGE: &str = include_str!("page.html");
/// The page's own script, after the viewer's.
const SCRIPT: [&str; 2] = [include_str!("samples.js"), include_str!("chart.js")];

/// Octets of a page beside its script and styles, at most.
const OCTETS_MAX: usize = 4_900_000;

/// How to use a chart, below the first one.
const HELP: &str = "Wheel, pinch or a drag over a range zooms, a drag with Shift (or one finger, when zoomed) moves, a \
                    double click shows all. Keys: arrows read values, Shift and arrows move, + and - zoom, 0 shows \
                    all. A click on a name hides or shows it.";

impl Page {
    /// The page as one HTML document that needs no other file and asks for none; below 5 MB for its charts, whatever
    /// their number of samples.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut body = String::new();
        let mut charts = Vec::new();
        for block in &self.blocks {
            match block {
                Block::Heading(text) => {
                    let _ = writeln!(body, "<h2>{}</h2>", escape(text));
                }
                Block::Text(text) => {
                    let _ = writeln!(body, "<p>{}</p>", escape(text));
                }
                Block::Lines(text) => {
                    let _ = writeln!(body, "<pre class=\"lines\">{}</pre>", escape(text));
                }
                Block::Lead(text) => {
                    let _ = writeln!(body, "<p class=\"lead\">{}</p>", escape(text));
                }
                Block::Drawing { wide, narrow } => write_pictures(&mut body, wide, narrow),
                Block::Chart(chart) => {
                    write_chart(&mut body, chart, charts.len());
                    charts.push(&**chart);
                }
                Block::Figure(figure) => write_figure(&mut body, figure),
                Block::Table { head, rows } => {
                    body.push_str("<div class=\"scroll\"><table>\n");
                    write_table(&mut body, head, rows);
                    body.push_str("</table></div>\n");
                }
            }
        }
        let data = data::object(&charts, OCTETS_MAX.saturating_sub(body.len()));
        let subtitle = match self.subtitle.as_str() {
            "" => String::new(),
            text => format!("<p class=\"sub\">{}</p>\n", escape(text)),
        };
        let mut page = String::with_capacity(body.len() + data.len() + 100_000);
        // Pieces stand between at signs; text that was put in is not looked at again.
        for (i, piece) in PAGE.split('@').enumerate() {
            match piece {
                _ if i % 2 == 0 => page.push_str(piece),
                "TITLE" => page.push_str(&escape(&self.title)),
                "SUBTITLE" => page.push_str(&subtitle),
                "STYLE" => page.push_str(&viewer::style()),
                "BODY" => page.push_str(&body),
                "UPLOT" => page.push_str(viewer::UPLOT),
                "LOOKS" => page.push_str(&viewer::looks()),
                "DATA" => page.push_str(&data),
                _ => page.push_str(&viewer::script(&SCRIPT)),
            }
        }
        page
    }
}

fn write_chart(body: &mut String, chart: &Chart, index: usize) {
    let (title, words) = (escape(&chart.title), escape(&describe(chart)));
    let _ = writeln!(
        body,
        "<section class=\"chart\" id=\"chart-{index}\">\n<h2>{title}</h2>"
    );
    if !chart.subtitle.is_empty() {
        let _ = writeln!(body, "<p class=\"sub\">{}</p>", escape(&chart.subtitle));
    }
    let log = if chart.kind == Kind::Cdf {
        chart.x.log
    } else {
        chart.y.log
    };
    let _ = write!(
        body,
        "<div class=\"bar\"><button type=\"button\" data-do=\"in\" aria-label=\"Zoom in\">+</button>\
         <button type=\"button\" data-do=\"out\" aria-label=\"Zoom out\">\u{2212}</button>\
         <button type=\"button\" data-do=\"reset\">Show all</button>\
         <button type=\"button\" data-do=\"log\" aria-pressed=\"{log}\">Log scale</button>\
         <p class=\"state\"></p></div>\n\
         <div class=\"view\" tabindex=\"0\" role=\"application\" aria-label=\"{title}\" \
         aria-roledescription=\"chart\" aria-description=\"{words}\"></div><div class=\"read\" \
         role=\"status\"></div>\n\
         <noscript><div class=\"still\">{}</div></noscript>\n\
         <div class=\"legend\" role=\"group\" aria-label=\"Series\">\n",
        picture::render(chart, WIDTH_DEFAULT, Place::Below),
    );
    for (i, series) in chart.series.iter().enumerate() {
        let sample = sample(chart.colour(i), chart.kind != Kind::Scatter);
        let _ = writeln!(
            body,
            "<button type=\"button\" data-series=\"{i}\" aria-pressed=\"true\">{sample}<span>{}</span></button>",
            escape(&series.name)
        );
    }
    body.push_str("</div>\n");
    let lost = chart.series.iter().any(|s| s.samples().lost() > 0);
    if lost && chart.kind != Kind::Cdf {
        let _ = writeln!(body, "<p class=\"note script\">{LOST_KEY}</p>");
    }
    for note in &chart.notes {
        let _ = writeln!(body, "<p class=\"note script\">{}</p>", escape(note));
    }
    if index == 0 {
        let _ = writeln!(body, "<p class=\"help\">{HELP}</p>");
    }
    write_summary(body, chart);
    body.push_str("</section>\n");
}

/// How a series is drawn, as a small picture.
fn sample(look: usize, lined: bool) -> String {
    let mut svg = String::from(
        "<svg class=\"hc\" width=\"34\" height=\"14\" viewBox=\"0 0 34 14\" aria-hidden=\"true\">",
    );
    if lined {
        let ((class, ink), dash) = (stroke(look), dash(look));
        let _ = write!(
            svg,
            "<path class=\"{class}\" {ink} stroke-width=\"2\" stroke-dasharray=\"{}\" d=\"M0 7H34\"/>",
            if dash.is_empty() { "none" } else { dash }
        );
    }
    let ((f, inside), (s, edge)) = (fill(look), stroke(look));
    let (f, inside) = if hollow(look) {
        ("hollow".into(), "fill=\"#ffffff\"".into())
    } else {
        (f, inside)
    };
    let _ = write!(
        svg,
        "<path class=\"{f} {s}\" {inside} {edge} stroke-width=\"1.5\" d=\"{}\"/></svg>",
        shape(look, 17.0, 7.0)
    );
    svg
}

fn write_figure(body: &mut String, figure: &Figure) {
    let [wide, narrow] = [WIDTH_DEFAULT, WIDTH_NARROW].map(|width| figure.to_inline_svg(width));
    write_pictures(body, &wide, &narrow);
}

/// A picture twice, of which the style sheet shows one: text scales with a picture, so that one drawn for a screen could
/// not be read on a phone.
fn write_pictures(body: &mut String, wide: &str, narrow: &str) {
    let _ = writeln!(
        body,
        "<figure><div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div></figure>"
    );
}
