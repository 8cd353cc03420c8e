//! The live view: a line for each stream, redrawn ten times a second by a thread of its own.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ping::{Live, Plan};

/// Time between two drawings.
const PERIOD: Duration = Duration::from_millis(100);
/// Packets in a sparkline at most.
pub(super) const RECENT_MAX: usize = 40;
/// Columns that the figures take, after name and sparkline.
const FIGURES: usize = 67;
const NAME_MAX: usize = 32;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const MISSING: char = '×';

struct Shared {
    streams: Mutex<Vec<Live>>,
    over: AtomicBool,
}

/// The view; it is drawn a last time and left standing when this is dropped.
pub(super) struct Screen {
    shared: Arc<Shared>,
    drawer: Option<JoinHandle<()>>,
}

impl Screen {
    /// Begins to draw.
    ///
    /// # Errors
    /// No thread is to be had.
    pub(super) fn start(plan: &Plan) -> io::Result<Screen> {
        let names: Vec<String> = plan
            .streams
            .iter()
            .map(|stream| clean(&stream.name))
            .collect();
        let shared = Arc::new(Shared {
            streams: Mutex::new(vec![Live::default(); names.len()]),
            over: AtomicBool::new(false),
        });
        let drawer = {
            let shared = Arc::clone(&shared);
            let drawer = thread::Builder::new().name("screen".into());
            drawer.spawn(move || shared.draw(&names))?
        };
        Ok(Screen {
            shared,
            drawer: Some(drawer),
        })
    }

    /// Gives a stream's state to be shown; left out when it is being drawn just now, so that nobody waits.
    pub(super) fn update(&self, stream: usize, live: &mut Live) {
        if let Ok(mut streams) = self.shared.streams.try_lock()
            && let Some(place) = streams.get_mut(stream)
        {
            std::mem::swap(place, live);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        if let Some(drawer) = self.drawer.take() {
            drawer.thread().unpark();
            // It does not panic; if it did, there is nothing left to draw.
            let _ = drawer.join();
        }
    }
}

impl Shared {
    fn draw(&self, names: &[String]) {
        let mut drawn = 0;
        loop {
            let is_last = self.over.load(Ordering::Acquire);
            let streams = self.streams.lock();
            let streams = streams.unwrap_or_else(PoisonError::into_inner).clone();
            let (columns, rows) = terminal_size();
            let (text, lines) = picture(names, &streams, columns, rows, drawn);
            drawn = lines;
            let mut out = io::stdout().lock();
            // A terminal that is gone is noticed by the signal that comes with it.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            drop(out);
            if is_last {
                return;
            }
            thread::park_timeout(PERIOD);
        }
    }
}

/// Columns and rows of the terminal, or those of an old one.
fn terminal_size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}

/// What is written to draw all streams over the `drawn` lines drawn before, and how many lines that makes.
fn picture(
    names: &[String],
    streams: &[Live],
    columns: usize,
    rows: usize,
    drawn: usize,
) -> (String, usize) {
    let widest = names.iter().map(|name| name.chars().count()).max();
    let width = widest.unwrap_or(0).clamp(6, NAME_MAX);
    let sparks = columns.saturating_sub(width + FIGURES + 2).min(RECENT_MAX);
    let mut lines = vec![format!(
        "{:width$}  {:sparks$} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9}  ms",
        "stream", "", "sent", "received", "loss", "last", "p50", "p99"
    )];
    let room = rows.saturating_sub(3).max(1);
    let shown = if streams.len() > room {
        room - 1
    } else {
        streams.len()
    };
    for (name, live) in names.iter().zip(streams).take(shown) {
        let name: String = name.chars().take(NAME_MAX).collect();
        let mut line = format!("{name:width$}  ");
        spark(&live.recent, sparks, &mut line);
        let settled = live.received + live.missing;
        let loss = live.missing as f64 * 100.0 / settled.max(1) as f64;
        let [p50, p99] = match live.p50_p99_ns {
            Some(both) => both.map(Some),
            None => [None; 2],
        };
        let _ = write!(
            line,
            " {:>9} {:>9} {loss:>6.1}% {:>9} {:>9} {:>9}",
            live.transmitted,
            live.received,
            figure(live.last_ns),
            figure(p50),
            figure(p99)
        );
        lines.push(line);
    }
    if shown < streams.len() {
        lines.push(format!("... and {} more streams", streams.len() - shown));
    }
    let mut text = String::new();
    if drawn > 0 {
        let _ = write!(text, "\x1b[{drawn}A\r");
    }
    for line in &lines {
        // A line that is wrapped would be two to draw over.
        text.push_str("\x1b[K");
        text.extend(line.chars().take(columns));
        text.push('\n');
    }
    (text, lines.len())
}

/// Nanoseconds as milliseconds with the digits that there is room for.
fn figure(ns: Option<u64>) -> String {
    match ns {
        None => "-".to_owned(),
        Some(ns) if ns >= 100_000_000 => format!("{:.1}", ns as f64 / 1e6),
        Some(ns) => format!("{:.3}", ns as f64 / 1e6),
    }
}

/// Bars from the shortest round trip to the longest, at least to twice the shortest, so that what hardly varies looks
/// like that; newest to the right.
fn spark(recent: &[Option<u64>], width: usize, text: &mut String) {
    let recent = &recent[recent.len().saturating_sub(width)..];
    let times = || recent.iter().flatten().copied();
    let low = times().min().unwrap_or(0);
    let high = times()
        .max()
        .unwrap_or(0)
        .max(low.saturating_mul(2))
        .max(low + 1);
    text.extend(std::iter::repeat_n(' ', width - recent.len()));
    text.extend(recent.iter().map(|time| match time {
        None => MISSING,
        Some(ns) => BARS[((ns - low) as u128 * 7 / (high - low) as u128) as usize],
    }));
}

/// Without what a terminal would take for a command.
fn clean(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(recent: Vec<Option<u64>>) -> Live {
        Live {
            transmitted: 10,
            received: 7,
            missing: 1,
            duplicates: 0,
            last_ns: Some(20_100_000),
            p50_p99_ns: Some([20_000_000, 120_000_000]),
            recent,
        }
    }

    #[test]
    fn lines_fit_the_terminal_and_are_drawn_over_those_before() {
        let names: Vec<String> = (0..40).map(|number| format!("host-{number}")).collect();
        let streams = vec![live(vec![Some(1_000); 50]); 40];
        let (text, lines) = picture(&names, &streams, 100, 24, 7);
        assert!(text.starts_with("\x1b[7A\r\x1b[Kstream "));
        assert_eq!((lines, text.matches('\n').count()), (22, 22));
        assert!(text.contains("... and 20 more streams"));
        for line in text.lines().map(|line| line.replace("\x1b[7A\r", "")) {
            let shown = line.replace("\x1b[K", "");
            assert!(shown.chars().count() <= 100, "{shown}");
        }
        let (narrow, _) = picture(&names, &streams, 30, 24, 0);
        let longest = narrow
            .lines()
            .map(|line| line.replace("\x1b[K", "").chars().count());
        assert_eq!(longest.max(), Some(30));
        let line = text.lines().nth(1).unwrap();
        let loss = "        10         7   12.5%    20.100    20.000     120.0";
        assert!(line.ends_with(loss), "{line}");
    }

    #[test]
    fn a_sparkline_shows_queues_and_losses_and_not_noise() {
        let mut text = String::new();
        let recent = [Some(100), Some(103), None, Some(200), Some(150)];
        spark(&recent, 6, &mut text);
        assert_eq!(text, " ▁▁×█▄");
        text.clear();
        spark(&[None; 3], 2, &mut text);
        spark(&[], 2, &mut text);
        spark(&[Some(0), Some(u64::MAX)], 2, &mut text);
        assert_eq!(text, "××  ▁█");
    }
}
