//! The time line graph: segments as arrows between two vertical lines, with time downwards.

use super::line::Zero;
use super::pen::{Ink, Number, Pen, Time, Word};
use super::stroke::{Stroke, bits};

/// Makes room beside the lines for the segments' texts. Times count from the first packet.
pub(super) const ROOM: &str = "invisible 0 -0.000000\ninvisible 100 -0.000000\n";

/// The graph.
#[derive(Debug)]
pub(super) struct TimeLine {
    colour: bool,
    zero: Zero,
    /// When the connection began, in microseconds.
    began: i64,
    began_text: Option<Time>,
}

/// From one point to another; time runs down, so it is negative. `words` stand before and between, each ends with -.
fn line(ink: &mut Ink, at: usize, words: (&Word, &Word), from: &Time, to: &Time) -> usize {
    let at = ink.word(at, words.0);
    let at = ink.time(at, from);
    let at = ink.word(at, words.1);
    let at = ink.time(at, to);
    feed(ink, at)
}

fn point(ink: &mut Ink, at: usize, word: &Word, time: &Time) -> usize {
    let at = ink.word(at, word);
    let at = ink.time(at, time);
    feed(ink, at)
}

fn feed(ink: &mut Ink, at: usize) -> usize {
    ink.word(at, &Word::new("\n"))
}

const TO_LEFT: Word = Word::new(" 40 -");
const TO_RIGHT: Word = Word::new(" 60 -");
const LINE_LEFT: Word = Word::new("line 40 -");
const LINE_RIGHT: Word = Word::new("line 60 -");

impl TimeLine {
    pub(super) fn new(colour: bool, zero: Zero, began: i64) -> TimeLine {
        TimeLine {
            colour,
            zero,
            began,
            began_text: None,
        }
    }

    /// Draws a packet: its arrow and the rest of it.
    pub(super) fn draw(
        &mut self,
        pen: &mut Pen,
        at: usize,
        arrow: &Stroke,
        head: &Stroke,
    ) -> usize {
        let mut time = |time| pen.clock.time(self.zero.relative(time));
        let from_a = arrow.has(bits::FROM_A);
        let began = *self.began_text.get_or_insert_with(|| time(self.began));
        let (here, there) = (time(arrow.time), time(head.time));
        let ink = &mut *pen.ink;
        let mut at = line(ink, at, (&LINE_LEFT, &TO_LEFT), &began, &there);
        at = line(ink, at, (&LINE_RIGHT, &TO_RIGHT), &began, &there);
        if self.colour {
            let colour = if arrow.has(bits::SYN | bits::FIN | bits::RST) {
                Word::new("orange\n")
            } else if from_a {
                Word::new("green\n")
            } else {
                Word::new("yellow\n")
            };
            at = ink.word(at, &colour);
        }
        if from_a {
            at = line(ink, at, (&LINE_LEFT, &TO_RIGHT), &here, &there);
            at = point(ink, at, &Word::new("rarrow 60 -"), &there);
        } else {
            at = line(ink, at, (&LINE_RIGHT, &TO_LEFT), &there, &here);
            at = point(ink, at, &Word::new("larrow 40 -"), &here);
        }
        if self.colour {
            at = ink.word(at, &Word::new("white\n"));
        }
        at = if from_a {
            point(ink, at, &Word::new("ltext 40 -"), &here)
        } else {
            point(ink, at, &Word::new("rtext 60 -"), &there)
        };
        describe(ink, at, arrow, head)
    }
}

/// The text of a segment.
fn describe(ink: &mut Ink, at: usize, arrow: &Stroke, head: &Stroke) -> usize {
    let mut at = at;
    for (bit, text) in [
        (bits::SYN, Word::new("SYN ")),
        (bits::FIN, Word::new("FIN ")),
        (bits::RST, Word::new("RST ")),
        (bits::PSH, Word::new("PSH ")),
        (bits::URG, Word::new("URG ")),
    ] {
        if arrow.has(bit) {
            at = ink.word(at, &text);
        }
    }
    at = ink.number(at, &Number::new(arrow.a));
    at = ink.word(at, &Word::new(":"));
    at = ink.number(at, &Number::new(arrow.b));
    at = ink.word(at, &Word::new("("));
    at = ink.number(at, &Number::new(arrow.c));
    at = ink.word(at, &Word::new(") "));
    if arrow.has(bits::ACK) {
        at = ink.word(at, &Word::new("ack "));
        at = ink.number(at, &Number::new(head.a));
        at = ink.word(at, &Word::new(" "));
    }
    at = ink.word(at, &Word::new("win "));
    at = ink.number(at, &Number::new(head.b));
    at = ink.word(at, &Word::new(" "));
    for (bit, text) in [
        (bits::AGAIN, Word::new("R ")),
        (bits::COPY, Word::new("HD ")),
    ] {
        if arrow.has(bit) {
            at = ink.word(at, &text);
        }
    }
    feed(ink, at)
}
