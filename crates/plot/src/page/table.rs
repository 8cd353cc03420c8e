//! Tables of a page: those that it was given, and the summary below each chart.

use crate::chart::{Chart, Series, Summary};
use crate::number::{grouped, short};
use crate::picture::{percent, value_unit};
use crate::svg::escape;
use std::fmt::Write as _;

/// A row of figures for each series, as the chart's [`Summary`] has it.
pub(super) fn write_summary(body: &mut String, chart: &Chart) {
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
    let last_change = match chart.x.unit.as_str() {
        "" => "last change".to_owned(),
        unit => format!("last change, {unit}"),
    };
    let head: &[&str] = match chart.summary {
        Summary::Values => &[
            "series", "samples", "min", "mean", "p50", "p95", "p99", "max",
        ],
        Summary::Packets => &[
            "series", "samples", "lost", "loss", "min", "mean", "p50", "p95", "p99", "max",
        ],
        Summary::Steps => &["series", "start", "end", "min", "mean", "max", &last_change],
    };
    let rows: Vec<Vec<String>> = chart
        .series
        .iter()
        .map(|series| match chart.summary {
            Summary::Values => distribution(series, false, factor),
            Summary::Packets => distribution(series, true, factor),
            Summary::Steps => steps(series, factor),
        })
        .collect();
    let head: Vec<String> = head.iter().map(|&name| name.to_owned()).collect();
    write_table(body, &head, &rows);
    body.push_str("</table></div>\n");
}

fn figure(value: Option<f64>, factor: f64) -> String {
    value.map_or("-".into(), |value| short(value * factor))
}

/// Counts, extremes and percentiles of a series.
fn distribution(series: &Series, has_losses: bool, factor: f64) -> Vec<String> {
    let samples = series.samples();
    let count = |n: u64| grouped(n as f64, 0);
    let [p50, p95, p99] = samples.percentiles();
    let range = samples.range();
    let mut row = vec![series.name.clone(), count(samples.count())];
    if has_losses {
        row.extend([count(samples.lost()), percent(series)]);
    }
    let figures = [
        range.map(|r| r.0),
        samples.mean(),
        p50,
        p95,
        p99,
        range.map(|r| r.1),
    ];
    row.extend(figures.map(|value| figure(value, factor)));
    row
}

/// The first and the last value of steps, their extremes, their mean over x, and where they changed last.
fn steps(series: &Series, factor: f64) -> Vec<String> {
    let samples = series.samples();
    let columns = &samples.columns;
    let (first, last) = (columns.first(), columns.last());
    let values = [
        first.map(|column| column.first),
        last.map(|column| column.last),
        samples.range().map(|r| r.0),
        samples.mean_over_x(),
        samples.range().map(|r| r.1),
    ];
    // Samples of a column are not told apart: it is the x of its first one.
    let pairs = columns.iter().zip(columns.iter().skip(1));
    let mut changes =
        pairs.filter(|(before, column)| before.last != column.first || column.min != column.max);
    let changed = changes.next_back().map(|(_, column)| column.x.0);
    let mut row = vec![series.name.clone()];
    row.extend(values.map(|value| figure(value, factor)));
    row.push(figure(changed, 1.0));
    row
}

/// Head and rows; a column is to the right if each of its cells is a number or nothing.
pub(super) fn write_table(body: &mut String, head: &[String], rows: &[Vec<String>]) {
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
