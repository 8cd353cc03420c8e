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
    last: Option<(i64, i32)>,
    labelled: bool,
}

impl Line {
    /// Draws it on to a point; `time` is in microseconds.
    pub(super) fn extend(&mut self, plot: &Plot, pen: &mut Pen, style: &Style, time: i64, y: i32) {
        const LABEL: Token = Token::word("ltext ");
        const DOT: Token = Token::word("dot ");
        if let Some((last_time, last_y)) = self.last
            && !self.labelled
            && y != 0
        {
            let elapsed = time.saturating_sub(last_time).max(0);
            // tcptrace halves seconds and microseconds each for itself.
            let half = elapsed / 2_000_000 * 1_000_000 + elapsed % 1_000_000 / 2;
            let middle = last_y.wrapping_add(y).wrapping_add(1) / 2;
            let at = plot.time(pen, last_time.saturating_add(half));
            pen.mark_in(&style.colour, &LABEL, &at, &Token::number(middle as u32));
            pen.put_line(&style.label);
            self.labelled = true;
        }
        pen.colour(&style.colour);
        let (here, height) = (plot.time(pen, time), Token::number(y as u32));
        pen.mark(&DOT, &here, &height);
        if let Some((last_time, last_y)) = self.last {
            let (there, last_height) = (plot.time(pen, last_time), Token::number(last_y as u32));
            pen.line((&here, &height), (&there, &last_height));
        }
        self.last = Some((time, y));
    }
}
