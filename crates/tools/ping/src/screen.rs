//! The live view: one line per stream. A separate thread redraws it ten times a second.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ping::text::Millis;
use ping::{Live, Plan};

/// Time between two redraws.
const PERIOD: Duration = Duration::from_millis(100);
/// Maximum packets in a sparkline.
pub(super) const RECENT_MAX: usize = 40;
/// Columns reserved for a sparkline, if the terminal has them, before optional figures are shown.
const RECENT_MIN: usize = 16;
const NAME_MIN: usize = 8;
const NAME_MAX: usize = 32;
/// Number of streams whose last error is shown.
const NOTES_MAX: usize = 4;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const MISSING: char = '×';

struct Shared {
    streams: Mutex<Vec<Live>>,
    /// The last error of each stream that had one, newest last.
    notes: Mutex<Vec<(u32, String)>>,
    over: AtomicBool,
}

/// The live view. Dropping it draws it once more and leaves it on the screen.
pub(super) struct Screen {
    shared: Arc<Shared>,
    drawer: Option<JoinHandle<()>>,
}

impl Screen {
    /// Starts drawing.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(plan: &Plan) -> io::Result<Screen> {
        let names: Vec<String> = plan
            .streams
            .iter()
            .map(|stream| clean(&stream.name))
            .collect();
        let shared = Arc::new(Shared {
            streams: Mutex::new(vec![Live::default(); names.len()]),
            notes: Mutex::new(Vec::new()),
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

    /// Shows a stream's error, in place of its previous one.
    pub(super) fn note(&self, stream: u32, text: &str) {
        let notes = self.shared.notes.lock();
        let mut notes = notes.unwrap_or_else(PoisonError::into_inner);
        notes.retain(|note| note.0 != stream);
        if notes.len() >= NOTES_MAX {
            notes.remove(0);
        }
        notes.push((stream, text.to_owned()));
    }

    /// Updates the shown state of a stream. Skipped while the view is being drawn, so that the caller never blocks.
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
            // The thread does not panic; if it did, there would be nothing left to draw.
            let _ = drawer.join();
        }
    }
}

impl Shared {
    fn draw(&self, names: &[String]) {
        let mut drawn: Vec<usize> = Vec::new();
        loop {
            let is_last = self.over.load(Ordering::Acquire);
            let streams = self.streams.lock();
            let streams = streams.unwrap_or_else(PoisonError::into_inner).clone();
            let notes = self.notes.lock();
            let notes = notes.unwrap_or_else(PoisonError::into_inner).clone();
            let size = terminal_size();
            let lines = picture(names, &streams, &notes, size);
            let text = drawn_over(&drawn, &lines, size.0);
            drawn = lines.iter().map(|line| line.chars().count()).collect();
            let mut out = io::stdout().lock();
            // If the terminal has gone, the signal that follows is handled elsewhere.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            drop(out);
            if is_last {
                return;
            }
            thread::park_timeout(PERIOD);
        }
    }
}

/// Columns and rows of the terminal; 80 by 24 if unknown.
fn terminal_size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}

/// A column of figures.
struct Column {
    head: &'static str,
    width: usize,
    value: fn(&Live) -> String,
}

const COLUMNS: [Column; 5] = [
    Column {
        head: "sent",
        width: 7,
        value: |live| live.transmitted.to_string(),
    },
    Column {
        head: "loss",
        width: 6,
        value: |live| {
            let settled = live.received + live.missing;
            let loss = live.missing as f64 * 100.0 / settled.max(1) as f64;
            format!("{loss:.1}%")
        },
    },
    Column {
        head: "last ms",
        width: 8,
        value: |live| figure(live.last_ns),
    },
    Column {
        head: "p50 ms",
        width: 8,
        value: |live| figure(live.p50_p99_ns.map(|both| both[0])),
    },
    Column {
        head: "p99 ms",
        width: 8,
        value: |live| figure(live.p50_p99_ns.map(|both| both[1])),
    },
];

type Count = (&'static str, fn(&Live) -> u64);

/// Counts and their headings; a count is shown once some stream has one.
const COUNTS: [Count; 4] = [
    ("late", |live| live.late),
    ("dup", |live| live.duplicates),
    ("reord", |live| live.reordered),
    ("errors", |live| live.errors),
];
const COUNT_WIDTH: usize = 7;

/// The lines of the view for a terminal of `columns` by `rows`. No line is longer, and there are fewer lines than rows.
fn picture(
    names: &[String],
    streams: &[Live],
    notes: &[(u32, String)],
    (columns, rows): (usize, usize),
) -> Vec<String> {
    let room = rows.saturating_sub(3 + notes.len()).max(1);
    let shown = if streams.len() > room {
        room - 1
    } else {
        streams.len()
    };
    let widest = names.iter().take(shown).map(|name| name.chars().count());
    let figures: usize = COLUMNS.iter().map(|column| column.width + 1).sum();
    let name_max = columns
        .saturating_sub(2 + figures)
        .clamp(NAME_MIN, NAME_MAX);
    let width = widest.max().unwrap_or(0).clamp(6, name_max);
    let mut left = columns.saturating_sub(width + 2 + figures);
    let counts: Vec<_> = COUNTS
        .into_iter()
        .filter(|(_, count)| streams.iter().any(|live| count(live) > 0))
        .filter(|_| {
            let fits = left > RECENT_MIN + COUNT_WIDTH;
            left -= if fits { COUNT_WIDTH + 1 } else { 0 };
            fits
        })
        .collect();
    let sparks = left.min(RECENT_MAX);
    let mut lines = vec![format!("{:width$}  {:sparks$}", "stream", "")];
    for column in &COLUMNS {
        let _ = write!(lines[0], " {:>1$}", column.head, column.width);
    }
    for (head, _) in &counts {
        let _ = write!(lines[0], " {head:>COUNT_WIDTH$}");
    }
    for (name, live) in names.iter().zip(streams).take(shown) {
        let name: String = name.chars().take(width).collect();
        let mut line = format!("{name:width$}  ");
        spark(&live.recent, sparks, &mut line);
        for column in &COLUMNS {
            let _ = write!(line, " {:>1$}", (column.value)(live), column.width);
        }
        for (_, count) in &counts {
            let _ = write!(line, " {:>COUNT_WIDTH$}", count(live));
        }
        lines.push(line);
    }
    if shown < streams.len() {
        lines.push(format!("... and {} more streams", streams.len() - shown));
    }
    for (stream, note) in notes {
        let name = names.get(*stream as usize).map_or("", String::as_str);
        lines.push(format!("{name}: {}", clean(note)));
    }
    for line in &mut lines {
        // A wrapped line would occupy two rows, and the next drawing would start in the wrong place.
        *line = line.chars().take(columns).collect();
    }
    lines
}

/// The output that draws lines over the previous ones, whose lengths are `drawn`. If the terminal has become narrower,
/// some of those now occupy two rows.
fn drawn_over(drawn: &[usize], lines: &[String], columns: usize) -> String {
    let rows = |length: &usize| length.div_ceil(columns.max(1)).max(1);
    let up: usize = drawn.iter().map(rows).sum();
    let mut text = String::new();
    if up > 0 {
        let _ = write!(text, "\x1b[{up}A\r");
    }
    for line in lines {
        let _ = writeln!(text, "\x1b[K{line}");
    }
    // If there are fewer lines than before, erase the rest.
    text.push_str("\x1b[J");
    text
}

/// Nanoseconds as milliseconds, with as many digits as fit.
fn figure(ns: Option<u64>) -> String {
    match ns {
        None => "-".to_owned(),
        // Cut, as all other digits are.
        Some(ns) if ns >= 100_000_000 => format!("{}.{}", ns / 1_000_000, ns / 100_000 % 10),
        Some(ns) => Millis(ns).to_string(),
    }
}

/// A bar per packet, newest on the right. The scale runs from the shortest round trip to the longest, and at least to
/// twice the shortest, so that small variations look small.
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

/// Removes control characters, which a terminal might interpret.
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
            last_ns: Some(20_100_000),
            p50_p99_ns: Some([20_000_999, 120_099_999]),
            recent,
            ..Live::default()
        }
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("host-{number}")).collect()
    }

    #[test]
    fn lines_fit_the_terminal() {
        let streams = vec![live(vec![Some(1_000); 50]); 40];
        for columns in [1, 30, 70, 80, 100, 300] {
            let lines = picture(&names(40), &streams, &[], (columns, 24));
            assert_eq!(lines.len(), 22);
            assert!(lines.iter().all(|line| line.chars().count() <= columns));
        }
        let lines = picture(&names(40), &streams, &[], (80, 24));
        assert_eq!(lines[21], "... and 20 more streams");
        let figures = "      10  12.5%   20.100   20.000    120.0";
        assert!(lines[1].ends_with(figures), "{}", lines[1]);
        assert!(lines[0].ends_with(" sent   loss  last ms   p50 ms   p99 ms"));
        assert_eq!(lines[1].matches('▁').count(), 80 - 7 - 2 - 42);
        assert_eq!(picture(&names(1), &streams[..1], &[], (80, 1)).len(), 2);
        let long = vec!["a".repeat(50)];
        let line = &picture(&long, &streams[..1], &[], (60, 24))[1];
        assert_eq!(line, &format!("{}  {figures}", "a".repeat(16)));
    }

    #[test]
    fn counts_come_with_the_first_and_troubles_stand_below() {
        let mut streams = vec![live(vec![]); 2];
        streams[1].errors = 3;
        streams[0].duplicates = 1;
        let notes = [(1, "From 192.0.2.1 \x1b[2Jicmp_seq=3".to_owned())];
        let lines = picture(&names(2), &streams, &notes, (100, 24));
        assert!(lines[0].ends_with("p99 ms     dup  errors"), "{}", lines[0]);
        assert!(lines[2].ends_with("120.0       0       3"), "{}", lines[2]);
        assert_eq!(lines[3], "host-1: From 192.0.2.1 [2Jicmp_seq=3");
        // Lines that do not fit are left out, except the newest error.
        let lines = picture(&names(2), &streams, &notes, (60, 24));
        assert!(lines[0].ends_with("p99 ms"), "{}", lines[0]);
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn lines_are_drawn_over_those_before() {
        let lines = ["ab".to_owned(), "c".to_owned()];
        assert_eq!(drawn_over(&[], &lines, 80), "\x1b[Kab\n\x1b[Kc\n\x1b[J");
        let text = drawn_over(&[80, 0, 81], &lines, 80);
        assert!(text.starts_with("\x1b[4A\r\x1b[Kab\n"), "{text:?}");
    }

    #[test]
    fn a_stream_s_trouble_is_its_last_and_only_some_are_shown() {
        let shared = Arc::new(Shared {
            streams: Mutex::default(),
            notes: Mutex::default(),
            over: AtomicBool::new(true),
        });
        let drawer = None;
        let screen = Screen {
            shared: Arc::clone(&shared),
            drawer,
        };
        for stream in 0..6 {
            screen.note(stream, "a");
        }
        screen.note(3, "b");
        let notes = shared.notes.lock().unwrap();
        let found: Vec<(u32, &str)> = notes.iter().map(|note| (note.0, &*note.1)).collect();
        assert_eq!(found, [(2, "a"), (4, "a"), (5, "a"), (3, "b")]);
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
