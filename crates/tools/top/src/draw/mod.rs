//! Draws the state: a module per view, between two lines at the top and one at the bottom.

mod event_loop;
mod help;
mod one;
mod overview;
mod peers;
mod queues;
mod subscribers;
mod table;

use cli::table::age;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::app::{App, Link, PeerOrder};
use crate::figures::{count, printable};
use crate::view::View;

/// The smallest screen that a view fits on.
const WIDTH_MIN: u16 = 60;
const HEIGHT_MIN: u16 = 16;

/// Where the screen is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// On a terminal.
    Live,
    /// As text, without what only keys need.
    Printed,
}

/// The styles. Without colours, headings are bold and the selection is reversed.
#[derive(Clone, Copy, Debug)]
struct Theme {
    is_coloured: bool,
    is_ascii: bool,
}

impl Theme {
    fn colour(self, colour: Color) -> Style {
        if self.is_coloured {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    fn heading(self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    fn graph(self) -> Style {
        self.colour(Color::Green)
    }

    fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn good(self) -> Style {
        self.colour(Color::Green)
    }

    fn warning(self) -> Style {
        self.colour(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn text(self) -> Style {
        Style::new()
    }
}

/// Draws the whole screen.
pub(crate) fn screen(app: &App, buffer: &mut Buffer, frame: Frame) {
    let theme = Theme {
        is_coloured: app.settings.is_coloured,
        is_ascii: app.settings.is_ascii,
    };
    let area = *buffer.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        return too_small(buffer, area);
    }
    tabs(app, buffer, theme);
    // What is wrong may take more than a line.
    let lines = folded(&status(app, theme), area.width);
    for (y, line) in (1..).zip(&lines) {
        put(buffer, y, line);
    }
    let top = 1 + lines.len() as u16;
    let body = Rect::new(0, top, area.width, area.height - 1 - top);
    if app.is_help {
        help::draw(buffer, body, theme);
    } else {
        view(app, buffer, body, theme);
    }
    if frame == Frame::Live {
        put(buffer, area.height - 1, &hints(app, theme));
    }
}

fn view(app: &App, buffer: &mut Buffer, body: Rect, theme: Theme) {
    match app.view {
        View::Overview => overview::draw(app, buffer, body, theme),
        View::Subscribers => match &app.one {
            Some(one) => one::draw(one, buffer, body, theme),
            None => subscribers::draw(app, buffer, body, theme),
        },
        View::Loop => event_loop::draw(app, buffer, body, theme),
        View::Peers => peers::draw(app, buffer, body, theme),
        View::Queues => queues::draw(&app.queues, buffer, body, theme),
    }
}

fn too_small(buffer: &mut Buffer, area: Rect) {
    let lines = [
        format!("{}x{} is too small", area.width, area.height),
        format!("top needs {WIDTH_MIN}x{HEIGHT_MIN}"),
        "q quits".to_owned(),
    ];
    for (y, line) in (0..area.height).zip(lines) {
        put(buffer, y, &Line::from(line));
    }
}

fn tabs(app: &App, buffer: &mut Buffer, theme: Theme) {
    let mut spans = Vec::new();
    for (number, view) in (1..).zip(View::ALL) {
        let style = if view == app.view {
            theme.selected()
        } else {
            theme.text()
        };
        spans.push(Span::styled(format!(" {number} {} ", view.title()), style));
    }
    let tabs = Line::from(spans);
    put(buffer, 0, &tabs);
    let uptime = match (app.view, app.pace.last(), &app.queues.run) {
        (View::Queues, _, Some(run)) => Some(run.uptime_s),
        (View::Queues, _, None) | (_, None, _) => None,
        (_, Some(now), _) => Some(now.uptime_s),
    };
    let every = format!("every {}s", app.settings.interval.as_secs_f64());
    let right = match uptime {
        Some(uptime) => format!("up {}, {every}", age(uptime)),
        None => every,
    };
    let width = right.chars().count() as u16;
    let left = buffer.area().width.saturating_sub(width);
    if usize::from(left) > tabs.width() {
        buffer.set_stringn(left, 0, &right, width.into(), theme.dim());
    }
}

/// A line of one style as at most three that fit, broken at spaces where there are any.
fn folded<'a>(line: &Line<'a>, width: u16) -> Vec<Line<'a>> {
    const LINES_MAX: usize = 3;
    let width = usize::from(width);
    let text: String = line
        .spans
        .iter()
        .map(|span| span.content.as_ref())
        .collect();
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one line at least");
        let together = last.chars().count() + 1 + word.chars().count();
        if last.is_empty() {
            word.clone_into(last);
        } else if together <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.truncate(LINES_MAX);
    lines
        .into_iter()
        .map(|text| Line::styled(text, line.style))
        .collect()
}

/// What is wrong, or what the view lists.
fn status<'a>(app: &App, theme: Theme) -> Line<'a> {
    let (text, style) = match (&app.link, &app.refusal, app.overdue()) {
        (Link::Gone(reason), ..) => (format!("no connection: {}", printable(reason)), theme.bad()),
        (_, Some(reason), _) => (format!("refused: {}", printable(reason)), theme.warning()),
        (_, _, Some(waits)) => (
            format!("no reply for {} s", waits.as_secs()),
            theme.warning(),
        ),
        (Link::Waiting, None, None) => ("connecting".to_owned(), theme.dim()),
        (Link::Up, None, None) if app.is_paused => {
            ("PAUSED: space continues".to_owned(), theme.warning())
        }
        (Link::Up, None, None) => (summary(app), theme.dim()),
    };
    Line::styled(text, style)
}

fn summary(app: &App) -> String {
    let reversed = |is_reversed| if is_reversed { ", reversed" } else { "" };
    match app.view {
        View::Overview | View::Loop => String::new(),
        View::Subscribers => match &app.one {
            Some(_) => "Esc returns to the list".to_owned(),
            None => {
                let list = &app.subscribers;
                let order = format!("by {}{}", list.order.title(), reversed(list.is_reversed));
                let shown = count(list.shown().len() as u64);
                let of = count(app.total());
                match (list.is_of_all(), app.is_cut()) {
                    (true, true) => format!("the first {shown} of {of}, {order}"),
                    // The list of the new order has not arrived yet.
                    (false, true) => format!("{shown} of {of}, {order} among these"),
                    (_, false) => format!("{shown} of {of}, {order}"),
                }
            }
        },
        View::Peers => {
            let (peers, all) = (&app.peers, app.peers.summary.peers);
            let order = if peers.order == PeerOrder::Since && !peers.is_reversed {
                "latest change first".to_owned()
            } else {
                format!("by {}{}", peers.order.title(), reversed(peers.is_reversed))
            };
            format!(
                "{} of {} peers, {order}",
                count(peers.shown().len() as u64),
                count(all)
            )
        }
        View::Queues => app.queues.run.as_ref().map_or(String::new(), |run| {
            format!(
                "{}, loaded {} ago; {} and {}",
                printable(&run.policy),
                age(run.policy_age_s),
                printable(&run.lan.name),
                printable(&run.wan.name)
            )
        }),
    }
}

/// The last line: the filter that is being typed, or keys.
fn hints<'a>(app: &App, theme: Theme) -> Line<'a> {
    let filter = match &app.one {
        Some(_) => "",
        None => app.filter().unwrap_or_default(),
    };
    if app.is_typing {
        return Line::from(vec![
            Span::styled("filter: ", theme.heading()),
            Span::raw(printable(filter)),
            Span::styled(" ", theme.selected()),
            Span::styled("  Enter keeps it, Esc removes it", theme.dim()),
        ]);
    }
    let mut spans = Vec::new();
    if !filter.is_empty() {
        spans.push(Span::styled(
            format!("filter: {}  ", printable(filter)),
            theme.warning(),
        ));
    }
    let keys: &[(&str, &str)] = match (app.view, &app.one) {
        (View::Subscribers, None) => &[("Enter", "open"), ("/", "filter"), ("< >", "sort")],
        (View::Subscribers, Some(_)) => &[("Esc", "back"), ("Up Down", "scroll")],
        (View::Peers, _) => &[("/", "filter"), ("< >", "sort")],
        _ => &[],
    };
    let common = [
        ("1-5", "views"),
        ("space", "pause"),
        ("h", "help"),
        ("q", "quit"),
    ];
    for (key, what) in keys.iter().chain(&common) {
        spans.push(Span::styled(format!("{key} "), theme.heading()));
        spans.push(Span::raw(format!("{what}  ")));
    }
    Line::from(spans)
}

/// Writes a line of the screen.
fn put(buffer: &mut Buffer, y: u16, line: &Line<'_>) {
    let width = buffer.area().width;
    buffer.set_line(0, y, line, width);
}

/// Writes lines into `area`, from the top; if there are more, the last line says how many.
fn lines(buffer: &mut Buffer, area: Rect, lines: &[Line<'_>], theme: Theme) {
    let height = usize::from(area.height);
    let is_cut = lines.len() > height;
    let shown = if is_cut { height - 1 } else { lines.len() };
    for (y, line) in (area.y..).zip(&lines[..shown]) {
        put(buffer, y, line);
    }
    if is_cut {
        let more = format!("{} more lines", lines.len() - shown);
        put(
            buffer,
            area.y + shown as u16,
            &Line::styled(more, theme.dim()),
        );
    }
}

/// The characters of a screen, without styles.
pub(crate) fn text(buffer: &Buffer) -> String {
    let area = buffer.area();
    let mut text = String::new();
    for y in 0..area.height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..area.width {
            // A wide character takes two cells, of which the second is empty.
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = Span::raw(symbol).width().saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
