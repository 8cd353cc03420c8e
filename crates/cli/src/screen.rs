//! Shows text repeatedly: redraws it on a terminal, and prints one block after the other elsewhere.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Where the text is shown.
#[derive(Debug)]
pub struct Screen {
    is_terminal: bool,
    /// Number of lines currently drawn.
    drawn: usize,
    blocks: usize,
}

impl Default for Screen {
    fn default() -> Self {
        Self::new()
    }
}

impl Screen {
    /// Standard output.
    #[must_use]
    pub fn new() -> Self {
        Self {
            is_terminal: io::stdout().is_terminal(),
            drawn: 0,
            blocks: 0,
        }
    }

    /// Whether that is a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Shows `text`.
    ///
    /// # Errors
    /// The output is closed.
    pub fn show(&mut self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.is_terminal {
            let (columns, rows) = size();
            let (drawing, lines) = picture(text, columns, rows, self.drawn);
            self.drawn = lines;
            out.write_all(drawing.as_bytes())?;
        } else {
            if self.blocks > 0 {
                out.write_all(b"\n")?;
            }
            self.blocks += 1;
            out.write_all(text.as_bytes())?;
        }
        out.flush()
    }
}

/// Columns and rows of the terminal; 80 by 24 if unknown.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}

/// The output that draws `text` over the `drawn` lines of the previous drawing, and the new number of lines.
fn picture(text: &str, columns: usize, rows: usize, drawn: usize) -> (String, usize) {
    let all = text.lines().count();
    let room = rows.saturating_sub(1).max(2);
    let shown = if all > room { room - 1 } else { all };
    let mut out = String::new();
    if drawn > 0 {
        let _ = write!(out, "\x1b[{drawn}A\r");
    }
    let more = (shown < all).then(|| format!("... {} more lines", all - shown));
    for line in text.lines().take(shown).chain(more.as_deref()) {
        // A wrapped line would occupy two rows, and the next drawing would start in the wrong place.
        out.extend(line.chars().take(columns));
        out.push_str("\x1b[K\n");
    }
    // Erase the rest of a longer previous drawing.
    out.push_str("\x1b[J");
    (out, shown + usize::from(more.is_some()))
}

/// Moments at equal intervals; missed ones are skipped.
#[derive(Debug)]
pub struct Beat {
    next: Instant,
    every: Duration,
}

impl Beat {
    /// A sequence whose first moment is `every` from now.
    #[must_use]
    pub fn new(every: Duration) -> Self {
        Self {
            next: Instant::now() + every,
            every,
        }
    }

    /// The time until the next moment.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Waits for the next moment.
    pub fn wait(&mut self) {
        std::thread::sleep(self.left());
        let now = Instant::now();
        while self.next <= now {
            self.next += self.every;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_the_terminal_is_cut_and_what_was_drawn_is_drawn_over() {
        let text = "one is long\ntwo\nthree\nfour\n";
        let (drawing, lines) = picture(text, 5, 24, 0);
        assert_eq!(lines, 4);
        assert!(drawing.starts_with("one i\x1b[K\ntwo\x1b[K\n"), "{drawing}");
        let (drawing, lines) = picture(text, 80, 4, 4);
        assert_eq!(lines, 3);
        assert!(drawing.starts_with("\x1b[4A\rone is long"), "{drawing}");
        assert!(
            drawing.ends_with("two\x1b[K\n... 2 more lines\x1b[K\n\x1b[J"),
            "{drawing:?}"
        );
        let (_, lines) = picture(text, 80, 0, 0);
        assert_eq!(lines, 2, "a terminal of no size");
    }
}
