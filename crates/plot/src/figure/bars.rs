//! Groups of horizontal bars.

use super::{Bar, BarChart, Style, number};
use crate::scale::Scale;
use crate::svg::{Anchor, Font, Svg, fill, stroke};

const BAR: f64 = 18.0;
const LABEL: Font = Font::plain(13.0);

pub(super) fn render(chart: &BarChart, width: f64, standalone: bool) -> String {
    let mut svg = Svg::new(width);
    svg.heading(&chart.title, &chart.subtitle, 10.0);

    let bars = || chart.groups.iter().flat_map(|g| &g.bars);
    let names = bars().map(|b| LABEL.width(&b.name)).fold(0.0, f64::max);
    let left = 16.0 + names.min(svg.width * 0.36) + 10.0;
    let valued = bars().filter(|b| b.value.is_some());
    let ends = valued
        .map(|b| LABEL.width(&end_text(b)))
        .fold(0.0, f64::max);
    let room = (svg.width - left - 16.0 - (ends + 22.0).min(svg.width * 0.3)).max(40.0);
    let zero = (!chart.value.log).then_some(0.0);
    let values = bars().filter_map(|b| b.value).chain(zero);
    let scale = Scale::fit(values, &chart.value, (room / 80.0) as usize);

    let top = svg.y;
    let mut rows = Svg::new(svg.width);
    rows.y = top;
    let mut spans = Vec::new();
    for group in &chart.groups {
        if !group.name.is_empty() {
            rows.y += 6.0;
            rows.paragraph(16.0, Font::bold(13.0), &group.name);
        }
        rows.y += 6.0;
        let from = rows.y;
        for bar in &group.bars {
            draw_bar(&mut rows, bar, left, room, &scale);
        }
        spans.push((from, rows.y));
        rows.y += 6.0;
    }
    let bottom = rows.y;
    // Lines stop at the headings, which they would strike through.
    for tick in &scale.ticks {
        let at = left + scale.position(tick.at).unwrap_or(0.0) * room;
        for (from, to) in &spans {
            svg.grid_line((at, *from), (at, *to), tick.label.is_none());
        }
        if let Some(label) = &tick.label {
            svg.text(at, bottom + 10.0, Anchor::Middle, Font::plain(12.0), label);
        }
    }
    svg.append(rows);
    for (from, to) in &spans {
        svg.axis_line((left, *from), (left, *to));
    }
    svg.y = bottom + 14.0;
    draw_caption_and_notes(&mut svg, chart, left + room);
    svg.finish(&chart.title, &description(chart), standalone)
}

/// Draws the caption of the axis, which ends at `right` if it is short enough, and the notes.
fn draw_caption_and_notes(svg: &mut Svg, chart: &BarChart, right: f64) {
    for line in LABEL.wrap(
        &format!("{} \u{2192}", chart.value.caption()),
        svg.width - 32.0,
    ) {
        svg.y += 17.0;
        let (x, y) = (right.max(16.0 + LABEL.width(&line)), svg.y);
        svg.text(x, y, Anchor::End, LABEL, &line);
    }
    svg.y += 4.0;
    for note in &chart.notes {
        svg.y += 4.0;
        svg.paragraph(16.0, Font::muted(12.0), note);
    }
}

/// What is written at a bar's end.
fn end_text(bar: &Bar) -> String {
    match (&bar.text, bar.value) {
        (Some(text), _) => text.clone(),
        (None, Some(value)) => number::short(value),
        (None, None) => "no figure".into(),
    }
}

/// Draws one bar with its name and its value, and moves down.
fn draw_bar(svg: &mut Svg, bar: &Bar, left: f64, room: f64, scale: &Scale) {
    let lines = LABEL.wrap(&bar.name, left - 25.5);
    let height = (lines.len() as f64 * 16.0).max(BAR) + 6.0;
    let middle = svg.y + height / 2.0;
    for (i, line) in lines.iter().enumerate() {
        let y = middle + 4.5 + (i as f64 - (lines.len() - 1) as f64 / 2.0) * 16.0;
        svg.text(left - 9.0, y, Anchor::End, LABEL, line);
    }
    let length = bar
        .value
        .and_then(|v| scale.position(v))
        .map(|p| p.clamp(0.0, 1.0) * room);
    if let Some(length) = length {
        let (opacity, dash) = match bar.style {
            Style::Solid | Style::Points => (1.0, ""),
            Style::Dashed => (0.22, " stroke-dasharray=\"6 4\""),
            Style::Dotted => (0.1, " stroke-dasharray=\"2 3\""),
        };
        let ((f, fill), (s, stroke)) = (fill(bar.colour), stroke(bar.colour));
        svg.raw(&format!(
            "<rect class=\"{f} {s}\" {fill} {stroke} fill-opacity=\"{opacity}\" \
             stroke-width=\"1.5\"{dash} x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
             height=\"{BAR}\"/>",
            middle - BAR / 2.0,
            length.max(0.5),
        ));
    }
    let font = if bar.value.is_some() {
        LABEL
    } else {
        Font::muted(13.0)
    };
    svg.text(
        left + length.unwrap_or(0.0) + 8.0,
        middle + 4.5,
        Anchor::Start,
        font,
        &end_text(bar),
    );
    svg.y += height;
}

/// The picture in words: every bar with its value.
fn description(chart: &BarChart) -> String {
    let mut text = format!("{} Bars show {}.", chart.subtitle, chart.value.caption());
    for group in &chart.groups {
        let bars: Vec<String> = group
            .bars
            .iter()
            .map(|b| format!("{} {}", b.name, end_text(b)))
            .collect();
        text.push_str(&format!(" {}: {}.", group.name, bars.join(", ")));
    }
    text
}
