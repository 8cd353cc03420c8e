//! One subscriber: curves, then every field that the daemon sends, as its rows declare them.

use cli::table::{Shown, show};
use control::rows::{Detail, Field, Kind, Unit};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::Theme;
use crate::app::One;
use crate::figures::{bits, micros, per_second, printable, spark};
use crate::pace::Ring;

/// Width of the first column.
const LABEL: usize = 24;

/// Objects that come before the others: what is asked for most often.
const FIRST: [&str; 4] = ["ipv4", "ipv6", "times", "traffic"];

/// The width from which the fields are in two columns.
const WIDE: u16 = 110;

/// Lines above the fields.
const ABOVE: u16 = 6;

pub(super) fn draw(one: &One, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let above = Rect::new(area.x, area.y, area.width, ABOVE.min(area.height));
    super::lines(
        buffer,
        above,
        &curves(one, usize::from(area.width), theme),
        theme,
    );
    let columns = if area.width >= WIDE { 2 } else { 1 };
    let width = usize::from(area.width) / columns;
    let fields = columns_of(fields(one, width, theme), columns, width);
    let below = Rect::new(area.x, area.y + ABOVE, area.width, area.height - ABOVE);
    // The last screen is the lowest place to scroll to.
    let first = one
        .first
        .get()
        .min(fields.len().saturating_sub(usize::from(below.height)));
    one.first.set(first);
    super::lines(buffer, below, &fields[first..], theme);
}

/// The lines in columns side by side, the first half in the first.
fn columns_of(lines: Vec<Line<'static>>, columns: usize, width: usize) -> Vec<Line<'static>> {
    let height = lines.len().div_ceil(columns);
    let mut rows: Vec<Line<'static>> = Vec::new();
    for (i, line) in lines.into_iter().enumerate() {
        match rows.get_mut(i % height) {
            None => rows.push(line),
            Some(row) => {
                let gap = width.saturating_sub(row.width()).max(1);
                row.push_span(Span::raw(" ".repeat(gap)));
                row.spans.extend(line.spans);
            }
        }
    }
    rows
}

fn curves(one: &One, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let name = if one.who.name.is_empty() {
        "(no name yet)".into()
    } else {
        printable(&one.who.name)
    };
    let state = match &one.row {
        Some(row) => match row["ending"].as_str() {
            Some(why) => format!("ending: {}", printable(why)),
            None => show(&row["state"], Shown::Text),
        },
        None if one.is_read => "not connected".into(),
        None => String::new(),
    };
    let curve = |label: &str, ring: &Ring, figure: fn(f64) -> String| {
        let room = width.saturating_sub(30);
        let values = ring.newest(room);
        let newest = values.last().copied().flatten();
        Line::from(vec![
            Span::raw(format!(
                "  {label:<11}{:>13}  ",
                newest.map_or("-".into(), figure)
            )),
            Span::styled(spark(&values, room, theme.is_ascii), theme.graph()),
        ])
    };
    vec![
        Line::from(vec![
            Span::styled(name, theme.heading()),
            Span::raw(format!("  {state}")),
        ]),
        curve("in", &one.rate_in, bits),
        curve("out", &one.rate_out, bits),
        curve("dropped", &one.drops, per_second),
        curve("round trip", &one.round_trip, micros),
    ]
}

fn fields(one: &One, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut page = Page {
        lines: Vec::new(),
        room: width.saturating_sub(LABEL + 3).max(1),
        theme,
    };
    if let Some(row) = &one.row {
        page.object("subscriber", Detail::FIELDS, row);
    }
    if !one.ended.is_empty() {
        page.lines
            .push(Line::styled("EARLIER SESSIONS", theme.heading()));
        page.lines.extend(one.ended.iter().map(ended));
    }
    page.lines
}

fn heading(text: &str, theme: Theme) -> Line<'static> {
    Line::from(Span::styled(text.to_owned(), theme.heading()))
}

/// "2h00m ago, up for 1m00s, User-Request: the peer hung up".
fn ended(row: &Value) -> Line<'static> {
    let mut text = format!("  {} ago", show(&row["ended_s_ago"], Shown::Age));
    if !row["up_s"].is_null() {
        text += &format!(", up for {}", show(&row["up_s"], Shown::Age));
    }
    for (field, before) in [
        ("address", ", address "),
        ("terminate_cause", ", "),
        ("reason", ": "),
    ] {
        if !row[field].is_null() {
            text += before;
            text += &show(&row[field], Shown::Text);
        }
    }
    Line::from(text)
}

/// Lines under headings.
struct Page {
    lines: Vec<Line<'static>>,
    /// Characters of a value that fit on a line.
    room: usize,
    theme: Theme,
}

impl Page {
    /// The plain fields of an object under a heading, and each object within it under its own.
    fn object(&mut self, heading: &str, fields: &[Field], row: &Value) {
        let title = self::heading(&heading.to_uppercase(), self.theme);
        let start = self.lines.len();
        self.lines.push(title);
        self.plain(fields, row);
        if self.lines.len() == start + 1 {
            self.lines.pop();
        }
        let mut fields: Vec<&Field> = fields.iter().collect();
        fields.sort_by_key(|field| {
            FIRST
                .iter()
                .position(|name| *name == field.name)
                .unwrap_or(FIRST.len())
        });
        for field in fields {
            let value = &row[field.name];
            if let Kind::Part(parts) = field.kind
                && value.is_object()
            {
                self.object(
                    &format!("{heading}: {}", words(field.name)).replace("subscriber: ", ""),
                    parts,
                    value,
                );
            }
        }
    }

    fn plain(&mut self, fields: &[Field], row: &Value) {
        for field in fields {
            match field.kind {
                Kind::Part(_) => {}
                Kind::Flat(parts) => self.plain(parts, row),
                _ => self.field(field, &row[field.name]),
            }
        }
        self.undeclared(fields, row);
    }

    /// Fields of a newer daemon, which this program does not know.
    fn undeclared(&mut self, fields: &[Field], row: &Value) {
        let is_known = |name: &String| {
            name == "schema"
                || fields
                    .iter()
                    .any(|field| field.name == name || flat_has(field, name))
        };
        let others = row.as_object().into_iter().flatten();
        for (name, value) in others.filter(|(name, _)| !is_known(name)) {
            self.line(name, show(value, Shown::Text));
        }
    }

    /// A field whose unit is known. The value has the unit, so the name leaves it out.
    fn field(&mut self, field: &Field, value: &Value) {
        let name = field.name;
        match (field.unit, value.as_f64()) {
            (Unit::Micros, Some(us)) => self.line(name.trim_end_matches("_us"), micros(us)),
            (Unit::Seconds, _) => self.line(name.trim_end_matches("_s"), show(value, field.shown)),
            _ => self.line(name, show(value, field.shown)),
        }
    }

    fn line(&mut self, name: &str, value: String) {
        let mut label = words(name);
        let chars: Vec<char> = value.chars().collect();
        // A long list of routes continues below.
        for part in chars.chunks(self.room) {
            let part: String = part.iter().collect();
            self.lines.push(Line::from(vec![
                Span::styled(format!("  {label:<LABEL$}"), self.theme.dim()),
                Span::raw(part),
            ]));
            label.clear();
        }
    }
}

fn flat_has(field: &Field, name: &str) -> bool {
    matches!(field.kind, Kind::Flat(parts) if parts.iter().any(|part| part.name == name))
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}
