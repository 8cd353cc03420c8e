//! A line of a plot that grows to the right, with its label beside its first part that is not zero.

use super::pen::{Pen, Token};
use super::plot::Plot;

/// How a line looks.
pub(super) struct Style {
    colour: Token,
    label: Token,
}

impl Style {
    pub(super) const fn new(colour: &str, label: &str) -> Style {
        Style {
            colour: Token::word(colour),
            label: Token::word(label),
        }
    }
}

/// A line so far.
#[derive(Debug, Default)]
pub(super) struct Line {
    last: Option<Point>,
    labelled: bool,
}

#[derive(Debug)]
struct Point {
    time: i64,
    y: i32,
    time_text: Token,
    y_text: Token,
}

impl Line {
    /// Draws it on to a point; `time` is in microseconds.
    pub(super) fn extend(&mut self, plot: &Plot, pen: &mut Pen, style: &Style, time: i64, y: i32) {
        const DOT: Token = Token::word("dot ");
        if y != 0 && !self.labelled {
            self.label(plot, pen, style, time, y);
        }
        let (time_text, y_text) = (plot.time(pen, time), Token::number(y as u32));
        pen.colour(&style.colour);
        pen.mark(&DOT, &time_text, &y_text);
        if let Some(last) = &self.last {
            pen.line((&time_text, &y_text), (&last.time_text, &last.y_text));
        }
        self.last = Some(Point {
            time,
            y,
            time_text,
            y_text,
        });
    }

    /// Writes the label where the line from its last point to this one is to be.
    #[cold]
    fn label(&mut self, plot: &Plot, pen: &mut Pen, style: &Style, time: i64, y: i32) {
        const LABEL: Token = Token::word("ltext ");
        let Some(last) = &self.last else {
            return;
        };
        let elapsed = time.saturating_sub(last.time).max(0);
        // tcptrace halves seconds and microseconds each for itself.
        let half = elapsed / 2_000_000 * 1_000_000 + elapsed % 1_000_000 / 2;
        let middle = last.y.wrapping_add(y).wrapping_add(1) / 2;
        let at = plot.time(pen, last.time.saturating_add(half));
        pen.mark_in(&style.colour, &LABEL, &at, &Token::number(middle as u32));
        pen.put_line(&style.label);
        self.labelled = true;
    }
}
