//! The list of subscribers.

use cli::table::age;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Theme;
use super::table::{Column, Table, left, right};
use crate::app::{App, Order};
use crate::figures::{micros, printable, short};

const COLUMNS: &[Column] = &[
    left("NAME", 12, 0),
    left("STATE", 8, 0),
    left("ADDRESS", 15, 76),
    left("LINK PREFIX", 24, 160),
    left("DELEGATED", 24, 160),
    right("TUNNEL", 10, 104),
    right("SESSION", 10, 104),
    right("AGE", 6, 0),
    right("RTT", 7, 0),
    right("DROPS/S", 7, 0),
    right("IN b/s", 6, 0),
    right("OUT b/s", 7, 0),
];

/// The column of an order.
fn column(order: Order) -> usize {
    let title = match order {
        Order::Name => "NAME",
        Order::Age => "AGE",
        Order::RoundTrip => "RTT",
        Order::Drops => "DROPS/S",
        Order::Rate => "OUT b/s",
    };
    let found = COLUMNS.iter().position(|column| column.title == title);
    found.unwrap_or(0)
}

pub(super) fn draw(app: &App, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let list = &app.subscribers;
    let table = Table::new(COLUMNS, area.width);
    table.head(buffer, area, theme, Some(column(list.order)));
    if list.is_read() && list.keys().is_empty() {
        let text = if list.received() == 0 && app.total() == 0 {
            "no subscribers"
        } else {
            "no subscriber matches the filter; Esc removes the filter"
        };
        buffer.set_stringn(0, area.y + 1, text, area.width.into(), theme.dim());
        return;
    }
    let visible = list
        .cursor
        .visible(list.keys(), usize::from(area.height) - 1);
    let selected = list.cursor.index(list.keys());
    let rows = list
        .shown()
        .enumerate()
        .skip(visible.start)
        .take(visible.len());
    for (y, (i, row)) in (area.y + 1..).zip(rows) {
        let rate = |rate: Option<f64>| rate.map_or("-".into(), |rate| short(rate * 8.0));
        let plain = |text: String| (text, Style::new());
        let known = &row.row;
        let state = match known.state.as_str() {
            "up" => theme.good(),
            "ending" => theme.bad(),
            _ => theme.warning(),
        };
        let drops = match row.drops {
            Some(drops) if drops > 0.0 => (short(drops), theme.bad()),
            Some(drops) => plain(short(drops)),
            None => plain("-".into()),
        };
        let name = if known.name.is_empty() {
            "-".into()
        } else {
            printable(&known.name)
        };
        let cells = [
            plain(name),
            (printable(&known.state), state),
            plain(known.address.as_deref().map_or("-".into(), printable)),
            plain(known.prefix.as_deref().map_or("-".into(), printable)),
            plain(known.delegated.as_deref().map_or("-".into(), printable)),
            plain(known.tunnel.to_string()),
            plain(known.session.to_string()),
            plain(age(known.up_s.unwrap_or(known.age_s))),
            plain(known.echo_rtt_us.map_or("-".into(), micros)),
            drops,
            plain(rate(row.rate_in)),
            plain(rate(row.rate_out)),
        ];
        let style = if selected == Some(i) {
            theme.selected()
        } else {
            Style::new()
        };
        table.row(buffer, y, &cells, style);
    }
}
