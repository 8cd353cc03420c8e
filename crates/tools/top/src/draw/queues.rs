//! The queues of a shaper, as a tree.

use control::rows::QosWay;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Theme;
use super::table::{Column, Table, left, right};
use crate::app::Queues;
use crate::figures::{bits, count, gauge, octets, percent, printable, short};

const COLUMNS: &[Column] = &[
    left("QUEUE", 20, 0),
    right("RATE b/s", 8, 0),
    right("PACKETS/S", 9, 72),
    right("BACKLOG", 8, 0),
    right("DROPS/S", 7, 0),
    right("MARKS/S", 7, 72),
    right("DROPPED", 11, 0),
];

pub(super) fn draw(queues: &Queues, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let Some(run) = &queues.run else {
        return;
    };
    let above = [
        way(queues, 0, "up", &run.up, theme),
        way(queues, 1, "down", &run.down, theme),
        Line::from(format!(
            "buffer     {} of {} frames",
            count(run.frames.into()),
            count(run.frames_max.into())
        )),
    ];
    super::lines(buffer, area, &above, theme);
    let top = area.y + above.len() as u16;
    let area = Rect::new(area.x, top, area.width, area.height - above.len() as u16);
    let table = Table::new(COLUMNS, area.width);
    table.head(buffer, area, theme, None);
    let visible = queues
        .cursor
        .visible(queues.keys(), usize::from(area.height) - 1);
    let selected = queues.cursor.index(queues.keys());
    let rows = queues
        .lines
        .iter()
        .enumerate()
        .skip(visible.start)
        .take(visible.len());
    for (y, (i, line)) in (area.y + 1..).zip(rows) {
        let node = &line.node;
        let plain = |text: String| (text, Style::new());
        let rate = |of: fn(&crate::app::QueueRates) -> f64| {
            line.rates
                .as_ref()
                .map_or("-".into(), |rates| short(of(rates)))
        };
        let name = match &node.name {
            Some(name) => format!("{} {}", printable(name), printable(&node.handle)),
            None => format!("{} {}", printable(&node.kind), printable(&node.handle)),
        };
        let indent = 2 * line.depth;
        let start = if line.depth == 0 {
            format!("{}: ", printable(&node.way))
        } else {
            String::new()
        };
        let is_dropping = line.rates.is_some_and(|rates| rates.drops > 0.0);
        let drops = if is_dropping {
            theme.bad()
        } else {
            theme.text()
        };
        let cells = [
            plain(format!("{:indent$}{start}{name}", "")),
            plain(rate(|rates| rates.octets * 8.0)),
            plain(rate(|rates| rates.packets)),
            plain(octets(node.sums.backlog as f64)),
            (rate(|rates| rates.drops), drops),
            plain(rate(|rates| rates.marks)),
            plain(count(node.sums.drops)),
        ];
        let style = if selected == Some(i) {
            theme.selected()
        } else {
            Style::new()
        };
        table.row(buffer, y, &cells, style);
    }
}

/// A direction: its rate of its limit, and what it drops.
fn way(queues: &Queues, i: usize, name: &str, way: &QosWay, theme: Theme) -> Line<'static> {
    let rates = queues.ways[i];
    let mut spans = vec![Span::styled(format!("{name:<11}"), theme.heading())];
    let now = rates.map_or("-".into(), |rates| bits(rates.octets));
    spans.push(Span::raw(format!("{now:>12}")));
    if let Some(limit) = way.rate_bps {
        let share = rates.map_or(0.0, |rates| rates.octets * 8.0 / limit.max(1) as f64);
        spans.push(Span::raw(" "));
        spans.push(Span::styled(
            gauge(share, 16, theme.is_ascii),
            theme.graph(),
        ));
        spans.push(Span::raw(format!(
            " {:>5} of {}",
            percent(share),
            bits(limit as f64 / 8.0)
        )));
    }
    if let Some(rates) = rates.filter(|rates| rates.drops > 0.0) {
        let text = format!(", drops {}/s", short(rates.drops));
        spans.push(Span::styled(text, theme.bad()));
    }
    Line::from(spans)
}
