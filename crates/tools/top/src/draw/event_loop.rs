//! The event loop: its busy share by handler, timers, and calls that took too long.

use cli::table::age;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Theme;
use super::overview::{below, margin_style, rate};
use super::table::{Column, Table, left, right};
use crate::app::App;
use crate::figures::{count, micros, per_second, percent, printable, short, spark};
use crate::pace::Series;

const COLUMNS: &[Column] = &[
    left("HANDLER", 16, 0),
    right("BUSY", 6, 0),
    left("", 16, 96),
    right("CALLS/S", 8, 0),
    right("MEAN", 8, 0),
    right("LONGEST", 8, 0),
    right("CALLS", 14, 72),
];

/// Lines of overruns and shards that are kept free for them, where there are any.
const BELOW_MAX: usize = 6;

pub(super) fn draw(app: &App, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let above = above(app, usize::from(area.width), theme);
    super::lines(buffer, area, &above, theme);
    let mut below = overruns(app, theme);
    below.extend(shards(app, theme));
    let room = usize::from(area.height).saturating_sub(above.len() + 1);
    let rows = app.event_loop.handlers.len();
    // Handlers that do nothing give way to overruns.
    let least = room.saturating_sub(below.len().min(BELOW_MAX));
    let height = rows.min(least);
    let top = area.y + above.len() as u16;
    let part = Rect::new(area.x, top, area.width, height as u16 + 1);
    handlers(app, buffer, part, theme);
    let top = part.y + part.height;
    let rest = Rect::new(
        area.x,
        top,
        area.width,
        (area.y + area.height).saturating_sub(top),
    );
    if rest.height > 0 {
        super::lines(buffer, rest, &below, theme);
    }
}

fn above(app: &App, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let pace = &app.pace;
    let room = width.saturating_sub(32).min(120);
    let line = |label: &str, figure: String, series: Series, style: Style| {
        let values = pace.ring(series).newest(room);
        Line::from(vec![
            Span::styled(format!("{label:<14}"), theme.heading()),
            Span::styled(format!("{figure:>14}  "), style),
            Span::styled(spark(&values, room, theme.is_ascii), theme.graph()),
        ])
    };
    let busy = pace.rate(|now| now.event_loop.busy_s);
    let late = pace.quantile(0.99, |now| Some(&now.event_loop.lateness));
    let mut lines = vec![
        line(
            "BUSY",
            busy.map_or("-".into(), percent),
            Series::Busy,
            busy.filter(|busy| *busy > 0.9)
                .map_or(theme.text(), |_| theme.bad()),
        ),
        line(
            "LATENESS P99",
            late.map_or("-".into(), below),
            Series::Lateness,
            theme.text(),
        ),
    ];
    if let Some(margin) = pace.last().and_then(|now| now.bgp.as_ref()?.hold_margin_s) {
        lines.push(line(
            "HOLD MARGIN",
            format!("{margin:.1} s"),
            Series::Margin,
            margin_style(margin, theme),
        ));
    }
    let overruns = pace.last().map_or(0, |now| now.event_loop.overruns);
    let now = pace.rate(|now| now.event_loop.overruns as f64);
    lines.push(Line::from(vec![
        Span::styled(format!("{:<14}", "OVERRUNS"), theme.heading()),
        Span::raw(format!("{:>14}  {} now", count(overruns), rate(now))),
    ]));
    if let Some(timers) = &app.event_loop.rows.timers {
        let next = match (timers.next_ms, &timers.next_timer) {
            (Some(ms), Some(name)) => {
                format!(
                    ", next {} in {}",
                    printable(name),
                    micros(ms.max(0.0) * 1e3)
                )
            }
            _ => String::new(),
        };
        lines.push(Line::from(vec![
            Span::styled(format!("{:<14}", "TIMERS"), theme.heading()),
            Span::raw(format!(
                "{:>14}  since the start: late p99 {}, max {}{next}",
                format!("{} armed", count(timers.armed)),
                micros(timers.late_p99_us),
                micros(timers.late_max_us)
            )),
        ]));
    }
    lines
}

fn handlers(app: &App, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let table = Table::new(COLUMNS, area.width);
    table.head(buffer, area, theme, Some(1));
    let rows = app
        .event_loop
        .handlers
        .iter()
        .take(usize::from(area.height) - 1);
    for (y, (handler, share, calls)) in (area.y + 1..).zip(rows) {
        let plain = |text: String| (text, Style::new());
        let bar = share.map_or(String::new(), |share| {
            crate::figures::gauge(share, 16, theme.is_ascii)
        });
        let cells = [
            plain(printable(&handler.name)),
            plain(share.map_or("-".into(), percent)),
            (bar, theme.graph()),
            plain(calls.map_or("-".into(), short)),
            plain(micros(handler.mean_us)),
            plain(micros(handler.longest_us)),
            plain(count(handler.calls)),
        ];
        table.row(buffer, y, &cells, Style::new());
    }
}

fn overruns(app: &App, theme: Theme) -> Vec<Line<'static>> {
    let rows = &app.event_loop.rows.overruns;
    if rows.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Line::styled("OVERRUNS, newest first", theme.heading())];
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by(|a, b| a.s_ago.total_cmp(&b.s_ago));
    for row in rows {
        let mut text = format!(
            "  {:>6} ago  {:<16} {:>8}, CPU {}",
            age(row.s_ago),
            printable(&row.handler),
            micros(row.wall_ms * 1e3),
            micros(row.cpu_ms * 1e3)
        );
        if let (Some(timer), Some(late)) = (&row.timer, row.timer_late_ms) {
            text += &format!(", {} {} late", printable(timer), micros(late * 1e3));
        }
        if !row.waiting.is_empty() {
            text += &format!(", kept waiting: {}", printable(&row.waiting));
        }
        lines.push(Line::from(text));
    }
    lines
}

/// The threads that forward packets; one alone is the event loop itself.
fn shards(app: &App, theme: Theme) -> Vec<Line<'static>> {
    let shards = &app.event_loop.shards;
    if shards.len() < 2 {
        return Vec::new();
    }
    let mut lines = vec![Line::styled("THREADS", theme.heading())];
    for shard in shards {
        let rate = |rate: Option<f64>| rate.map_or("-".into(), per_second);
        lines.push(Line::from(format!(
            "  {:>2}  CPU {:>6}, packets in {}, out {}, dropped {}, handed to thread 0 {}",
            shard.number,
            shard.busy.map_or("-".into(), percent),
            rate(shard.packets_in),
            rate(shard.packets_out),
            rate(shard.discarded),
            rate(shard.left)
        )));
    }
    lines
}
