//! A line of a plot that grows to the right, with its label at its first part that is not zero.

use super::pen::{Number, Pen, Point, Word};

/// Style of a line.
#[derive(Debug)]
pub(super) struct Style {
    /// The text before its next dot, without and with colours.
    dot: [Word; 2],
    /// The colour alone.
    colour: Word,
    label: Word,
}

impl Style {
    /// `dot` is its colour, a line feed and "dot "; `colour` and `label` end with a line feed.
    const fn new(dot: &str, colour: &str, label: &str) -> Style {
        Style {
            dot: [Word::new("dot "), Word::new(dot)],
            colour: Word::new(colour),
            label: Word::new(label),
        }
    }
}

/// Round trips.
pub(super) static ROUND_TRIPS: [Style; 1] = [Style::new("red\ndot ", "red\n", "rtt\n")];

/// Throughput: over some packets, and since the beginning.
pub(super) static THROUGHPUT: [Style; 2] = [
    Style::new("red\ndot ", "red\n", "inst. tput\n"),
    Style::new("blue\ndot ", "blue\n", "avg. tput\n"),
];

/// Bytes in flight, the window, and averages by packets and by time.
pub(super) static OUTSTANDING: [Style; 4] = [
    Style::new("red\ndot ", "red\n", "owin\n"),
    Style::new("yellow\ndot ", "yellow\n", "rwin\n"),
    Style::new("blue\ndot ", "blue\n", "avg owin\n"),
    Style::new("green\ndot ", "green\n", "wavg owin\n"),
];

/// Sizes of segments, and their average.
pub(super) static SIZES: [Style; 2] = [
    Style::new("red\ndot ", "red\n", "segsize\n"),
    Style::new("blue\ndot ", "blue\n", "avg segsize\n"),
];

/// The state of a line.
#[derive(Debug, Default)]
pub(super) struct Line {
    last: Option<Last>,
    labelled: bool,
}

#[derive(Debug)]
struct Last {
    time: i64,
    y: i32,
    point: Point,
}

impl Line {
    /// Draws it on to a point; `time` is in microseconds, not before `zero`.
    #[inline]
    pub(super) fn extend(
        &mut self,
        (pen, at): (&mut Pen, usize),
        (style, colour): (&Style, bool),
        zero: Zero,
        time: i64,
        y: i32,
    ) -> usize {
        const LINE: Word = Word::new("line ");
        let mut at = at;
        if y != 0 && !self.labelled {
            at = self.label((pen, at), (style, colour), zero, time, y);
        }
        let time_text = pen.clock.time(zero.relative(time));
        let point = Point::new(&time_text, &Number::new(y as u32));
        let ink = &mut *pen.ink;
        at = ink.mark(at, &style.dot[usize::from(colour)], &point);
        if let Some(last) = &self.last {
            at = ink.line(at, &LINE, &point, &last.point);
        }
        self.last = Some(Last { time, y, point });
        at
    }

    /// Writes the label at the place of the line from the last point to this one.
    #[cold]
    fn label(
        &mut self,
        (pen, at): (&mut Pen, usize),
        (style, colour): (&Style, bool),
        zero: Zero,
        time: i64,
        y: i32,
    ) -> usize {
        const LABEL: Word = Word::new("ltext ");
        let Some(last) = &self.last else {
            return at;
        };
        let elapsed = time.saturating_sub(last.time).max(0);
        // tcptrace halves seconds and microseconds separately.
        let half = elapsed / 2_000_000 * 1_000_000 + elapsed % 1_000_000 / 2;
        let middle = last.y.wrapping_add(y).wrapping_add(1) / 2;
        let there = zero.relative(last.time.saturating_add(half));
        let point = Point::new(&pen.clock.time(there), &Number::new(middle as u32));
        self.labelled = true;
        let at = (pen.ink).mark_in(at, &LABEL, &point, colour.then_some(&style.colour));
        pen.ink.word(at, &style.label)
    }
}

/// Origin of the times of a file, in microseconds; 0 for none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Zero(pub(super) i64);

impl Zero {
    /// A time as the file shows it. A time before the file's first is shown as the first.
    #[inline]
    pub(super) fn relative(self, time: i64) -> i64 {
        if self.0 == 0 {
            time
        } else {
            time.saturating_sub(self.0).max(0)
        }
    }
}
