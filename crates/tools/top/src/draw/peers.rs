//! BGP peers.

use cli::table::age;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Theme;
use super::overview::{margin_style, rate};
use super::table::{Column, Table, left, right};
use crate::app::{App, PeerOrder};
use crate::figures::{count, printable, short};

const COLUMNS: &[Column] = &[
    left("NEIGHBOR", 15, 0),
    right("AS", 10, 0),
    left("STATE", 11, 0),
    right("UP/DOWN", 7, 0),
    right("PFX IN", 9, 0),
    right("PFX OUT", 9, 72),
    right("MSG IN/S", 8, 84),
    right("MSG OUT/S", 9, 84),
    left("NAME", 16, 110),
];

/// The column of an order.
fn column(order: PeerOrder) -> usize {
    let title = match order {
        PeerOrder::Address => "NEIGHBOR",
        PeerOrder::State => "STATE",
        PeerOrder::Since => "UP/DOWN",
        PeerOrder::Prefixes => "PFX IN",
        PeerOrder::Messages => "MSG IN/S",
    };
    let found = COLUMNS.iter().position(|column| column.title == title);
    found.unwrap_or(0)
}

pub(super) fn draw(app: &App, buffer: &mut Buffer, area: Rect, theme: Theme) {
    if !app.peers.is_read() {
        return;
    }
    let above = above(app, theme);
    super::lines(buffer, area, &above, theme);
    let top = area.y + above.len() as u16;
    let area = Rect::new(area.x, top, area.width, area.height - above.len() as u16);
    let peers = &app.peers;
    let table = Table::new(COLUMNS, area.width);
    table.head(buffer, area, theme, Some(column(peers.order)));
    let visible = peers
        .cursor
        .visible(peers.keys(), usize::from(area.height) - 1);
    let selected = peers.cursor.index(peers.keys());
    let rows = peers
        .shown()
        .enumerate()
        .skip(visible.start)
        .take(visible.len());
    for (y, (i, peer)) in (area.y + 1..).zip(rows) {
        let row = &peer.row;
        let plain = |text: String| (text, Style::new());
        let state = match row.state.as_str() {
            "Established" => theme.good(),
            "Idle" => theme.bad(),
            _ => theme.warning(),
        };
        let cells = [
            plain(printable(&row.address)),
            plain(row.asn.map_or("-".into(), |asn| asn.to_string())),
            (printable(&row.state), state),
            plain(row.since_s.map_or("never".into(), age)),
            plain(count(row.prefixes_in)),
            plain(count(row.prefixes_out)),
            plain(peer.rate_in.map_or("-".into(), short)),
            plain(peer.rate_out.map_or("-".into(), short)),
            plain(row.name.as_deref().map_or(String::new(), printable)),
        ];
        let style = if selected == Some(i) {
            theme.selected()
        } else {
            Style::new()
        };
        table.row(buffer, y, &cells, style);
    }
}

fn above(app: &App, theme: Theme) -> Vec<Line<'static>> {
    let summary = &app.peers.summary;
    let families: Vec<String> = summary
        .prefixes
        .iter()
        .map(|(family, number)| format!("{} {}", count(*number), printable(family)))
        .collect();
    let mut first = vec![
        Span::styled(printable(&summary.router_id), theme.heading()),
        Span::raw(format!(
            "  AS {}, {} of {} established, prefixes: {}",
            summary.asn,
            count(summary.established),
            count(summary.peers),
            if families.is_empty() {
                "none".into()
            } else {
                families.join(", ")
            }
        )),
    ];
    if summary.deferring {
        first.push(Span::styled(
            ", waiting for routes after a restart",
            theme.warning(),
        ));
    }
    let mut lines = vec![Line::from(first)];
    if let Some(bgp) = app.pace.last().and_then(|now| now.bgp.as_ref()) {
        let updates = |of: fn(&control::rows::NowBgp) -> u64| {
            rate(
                app.pace
                    .rate(|now| now.bgp.as_ref().map_or(0.0, |bgp| of(bgp) as f64)),
            )
        };
        let mut line = Line::from(format!(
            "updates in {}, out {}",
            updates(|bgp| bgp.updates_in),
            updates(|bgp| bgp.updates_out)
        ));
        if let Some(margin) = bgp.hold_margin_s {
            line.push_span(Span::raw(", least hold margin "));
            line.push_span(Span::styled(
                format!("{margin:.1} s"),
                margin_style(margin, theme),
            ));
        }
        lines.push(line);
    }
    lines
}
