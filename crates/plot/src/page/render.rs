//! A page as text.

use super::{Block, Page, data};
use crate::chart::{Chart, Kind};
use crate::figure::{Figure, STYLE_SHEET, WIDTH_DEFAULT, WIDTH_NARROW};
use crate::number;
use crate::picture::{self, LOST_KEY, Place, describe, percent, value_unit};
use crate::svg::{dash, escape, fill, hollow, shape, stroke};
use std::fmt::Write as _;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// The script's parts, in an order in which each knows those before it.
const SCRIPT: [&str; 4] = [
    include_str!("numbers.js"),
    include_str!("samples.js"),
    include_str!("picture.js"),
    include_str!("chart.js"),
];

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
        let mut page = String::with_capacity(body.len() + data.len() + 40_000);
        // Pieces stand between at signs; text that was put in is not looked at again.
        for (i, piece) in PAGE.split('@').enumerate() {
            match piece {
                _ if i % 2 == 0 => page.push_str(piece),
                "TITLE" => page.push_str(&escape(&self.title)),
                "SUBTITLE" => page.push_str(&subtitle),
                "STYLE" => {
                    page.push_str(STYLE);
                    page.push_str(STYLE_SHEET);
                }
                "BODY" => page.push_str(&body),
                "DATA" => page.push_str(&data),
                _ => write_script(&mut page),
            }
        }
        page
    }
}

/// The script without its comments, and without spaces and ends of lines that part nothing.
///
/// Each of its statements ends with a semicolon, and no template has another one in it.
fn write_script(page: &mut String) {
    page.push_str("{\n");
    let lines = SCRIPT.iter().flat_map(|part| part.lines()).map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    let mut before = lines.next().unwrap_or_default();
    write_squeezed(page, before);
    for line in lines {
        let (end, start) = (before.chars().next_back(), line.chars().next());
        if !end.is_some_and(parts) && !start.is_some_and(parts) {
            page.push('\n');
        }
        write_squeezed(page, line);
        before = line;
    }
    page.push_str("}\n");
}

/// Whether a character is an end of its neighbours.
fn parts(c: char) -> bool {
    "{}()[],;:=<>?&|!*+-%/".contains(c)
}

/// One line without the spaces beside its punctuation, but for those in quotes.
fn write_squeezed(page: &mut String, line: &str) {
    let sign = |c: char| c == '+' || c == '-';
    let (mut quote, mut before) = (None, '\n');
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match quote {
            Some(open) if c == open && before != '\\' => quote = None,
            None if "\"'`".contains(c) => quote = Some(c),
            None if c == ' ' => {
                let next = rest.peek().copied().unwrap_or(' ');
                if (parts(before) || parts(next)) && !(sign(before) && sign(next)) {
                    continue;
                }
            }
            None if c == '}' && page.ends_with(';') => {
                page.pop();
            }
            _ => {}
        }
        page.push(c);
        before = c;
        // The shorter word means the same to a script that runs.
        if quote.is_none() && page.ends_with("const ") {
            page.truncate(page.len() - "const ".len());
            page.push_str("let ");
        }
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
         <div class=\"view\"><canvas tabindex=\"0\" role=\"application\" aria-label=\"{title}\" \
         aria-roledescription=\"chart\" aria-description=\"{words}\">{words}</canvas><div class=\"read\" \
         role=\"status\"></div></div>\n\
         <noscript><div class=\"still\">{}</div></noscript>\n\
         <div class=\"legend\" role=\"group\" aria-label=\"Series\">\n",
        picture::render(chart, WIDTH_DEFAULT, Place::Below),
    );
    for (i, series) in chart.series.iter().enumerate() {
        let sample = sample(chart.colour(i), chart.kind != Kind::Scatter);
        let _ = writeln!(
            body,
            "<button type=\"button\" aria-pressed=\"true\">{sample}<span>{}</span></button>",
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

/// A row of figures for each series.
fn write_summary(body: &mut String, chart: &Chart) {
    let (value, factor, unit) = value_unit(chart);
    let unit = match unit {
        "" => value.label.clone(),
        unit => format!("{} in {unit}", value.label),
    };
    let _ = writeln!(
        body,
        "<div class=\"scroll\"><table><caption>All samples: {}</caption>",
        escape(&unit)
    );
    let head = [
        "series", "samples", "lost", "loss", "min", "mean", "p50", "p95", "p99", "max",
    ];
    let rows: Vec<Vec<String>> = chart
        .series
        .iter()
        .map(|series| {
            let samples = series.samples();
            let count = |n: u64| number::grouped(n as f64, 0);
            let figure = |v: Option<f64>| v.map_or("-".into(), |v| number::short(v * factor));
            let [p50, p95, p99] = samples.percentiles();
            let range = samples.range();
            let figures = [
                range.map(|r| r.0),
                samples.mean(),
                p50,
                p95,
                p99,
                range.map(|r| r.1),
            ];
            let mut row = vec![
                series.name.clone(),
                count(samples.count()),
                count(samples.lost()),
                percent(series),
            ];
            row.extend(figures.map(figure));
            row
        })
        .collect();
    write_table(body, &head.map(String::from), &rows);
    body.push_str("</table></div>\n");
}

/// Head and rows; a column is to the right if each of its cells is a number or nothing.
fn write_table(body: &mut String, head: &[String], rows: &[Vec<String>]) {
    let numeric = |text: &str| {
        let text = text.trim_end_matches(" %");
        text.chars()
            .all(|c| c.is_ascii_digit() || "+-.,<> \u{2212}".contains(c))
    };
    let right: Vec<&str> = (0..head.len())
        .map(|i| {
            let cells = rows.iter().filter_map(|row| row.get(i));
            if i > 0 && cells.clone().count() > 0 && cells.clone().all(|c| numeric(c)) {
                " class=\"n\""
            } else {
                ""
            }
        })
        .collect();
    body.push_str("<thead><tr>");
    for (name, class) in head.iter().zip(&right) {
        let _ = write!(body, "<th scope=\"col\"{class}>{}</th>", escape(name));
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        body.push_str("<tr>");
        for (cell, class) in row.iter().zip(&right) {
            let _ = write!(body, "<td{class}>{}</td>", escape(cell));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody>");
}

fn write_figure(body: &mut String, figure: &Figure) {
    let (wide, narrow) = (
        figure.to_inline_svg(WIDTH_DEFAULT),
        figure.to_inline_svg(WIDTH_NARROW),
    );
    let _ = writeln!(
        body,
        "<figure><div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div></figure>"
    );
}
