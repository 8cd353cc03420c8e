//! Formats a plot file: strokes in, text out.

use super::Options;
use super::line::{Line, Style, Zero};
use super::pen::{Ink, Number, Pen, Point, Word};
use super::sequence::Sequence;
use super::stroke::{Stroke, What};
use super::timeline::TimeLine;

/// Strokes painted between two looks at how full the pen is; even, since some come in pairs.
const FEW: usize = 16;

/// The state of a file. Its owner formats its strokes in order.
#[derive(Debug)]
pub struct Page {
    /// Its head, until that is formatted.
    head: String,
    graph: Graph,
}

#[derive(Debug)]
enum Graph {
    Sequence(Box<Sequence>),
    Lines(Box<Lines>),
    TimeLine(TimeLine),
}

/// A graph of lines over time.
#[derive(Debug)]
struct Lines {
    zero: Zero,
    colour: bool,
    styles: &'static [Style],
    lines: Box<[Line]>,
}

impl Page {
    pub(super) fn sequence(head: String, options: &Options, zero: Zero, began: i64) -> Page {
        Page {
            head,
            graph: Graph::Sequence(Box::new(Sequence::new(options, zero, began))),
        }
    }

    pub(super) fn time_line(head: String, options: &Options, zero: Zero, began: i64) -> Page {
        Page {
            head,
            graph: Graph::TimeLine(TimeLine::new(options.colour, zero, began)),
        }
    }

    pub(super) fn lines(
        head: String,
        options: &Options,
        zero: Zero,
        styles: &'static [Style],
    ) -> Page {
        Page {
            head,
            graph: Graph::Lines(Box::new(Lines {
                zero,
                colour: options.colour,
                styles,
                lines: styles.iter().map(|_| Line::default()).collect(),
            })),
        }
    }

    /// Writes what the strokes draw and gives it to `out`, in pieces of at most 128 KiB unless titles are longer.
    /// `last` ends the file.
    pub fn paint(
        &mut self,
        strokes: &[Stroke],
        last: bool,
        pen: &mut Pen,
        mut out: impl FnMut(&[u8]),
    ) {
        let mut at = 0;
        if !self.head.is_empty() {
            let head = core::mem::take(&mut self.head);
            if head.len() > Ink::FULL {
                out(head.as_bytes());
            } else {
                at = pen.ink.text(at, head.as_bytes());
            }
        }
        for few in strokes.chunks(FEW) {
            if at > Ink::FULL {
                out(pen.ink.written(at));
                at = 0;
            }
            at = self.graph.draw(few, pen, at);
        }
        if last {
            at = pen.ink.word(at, &Word::new("go\n"));
        }
        if at > 0 {
            out(pen.ink.written(at));
        }
    }
}

impl Graph {
    #[inline]
    fn draw(&mut self, strokes: &[Stroke], pen: &mut Pen, at: usize) -> usize {
        let mut at = at;
        match self {
            Graph::Sequence(sequence) => {
                for stroke in strokes {
                    at = sequence.draw(pen, at, stroke);
                }
            }
            Graph::Lines(lines) => {
                for stroke in strokes {
                    at = lines.draw(pen, at, stroke);
                }
            }
            Graph::TimeLine(graph) => {
                for pair in strokes.chunks_exact(2) {
                    at = graph.draw(pen, at, &pair[0], &pair[1]);
                }
            }
        }
        at
    }
}

impl Lines {
    fn draw(&mut self, pen: &mut Pen, at: usize, stroke: &Stroke) -> usize {
        if stroke.what == What::Dot {
            const DOT: Word = Word::new("dot ");
            const YELLOW: Word = Word::new("yellow\n");
            let time = pen.clock.time(self.zero.relative(stroke.time));
            let point = Point::new(&time, &Number::new(stroke.a));
            return (pen.ink).mark_in(at, &DOT, &point, self.colour.then_some(&YELLOW));
        }
        let which = usize::from(stroke.bits);
        let (Some(line), Some(style)) = (self.lines.get_mut(which), self.styles.get(which)) else {
            return at;
        };
        let (time, y) = (stroke.time, stroke.a as i32);
        line.extend((pen, at), (style, self.colour), self.zero, time, y)
    }
}
