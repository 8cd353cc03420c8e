//! The time line graph: segments as arrows between two lines, time running down.

use super::pen::{Pen, Token};
use super::plot::Plot;
use crate::segment::Segment;

const LEFT: Token = Token::word("40");
const RIGHT: Token = Token::word("60");

/// A packet as the graph needs it.
pub(super) struct Look<'a> {
    pub(super) segment: &'a Segment,
    pub(super) from_a: bool,
    /// When, in microseconds.
    pub(super) time: i64,
    /// The connection's first time.
    pub(super) first_time: i64,
    /// The sender's last round trip, in microseconds.
    pub(super) round_trip: i64,
    pub(super) window: u32,
    pub(super) again: bool,
    pub(super) copy: bool,
    /// What the sender's and the other end's sequence numbers count from.
    pub(super) bases: (u32, u32),
}

/// Makes room beside the lines for the segments' texts.
pub(super) fn begin(pen: &mut Pen, plot: &Plot, time: i64) {
    for x in [Token::word("0"), Token::word("100")] {
        pen.put(&Token::word("invisible "));
        point(pen, plot, &x, time);
        pen.feed();
    }
}

/// A point: time runs down, so it is negative.
fn point(pen: &mut Pen, plot: &Plot, x: &Token, time: i64) {
    pen.put(x);
    pen.put(&Token::word(" -"));
    let time = plot.bare_time(pen, time);
    pen.put_time(&time);
}

fn line(pen: &mut Pen, plot: &Plot, from: (&Token, i64), to: (&Token, i64)) {
    pen.put(&Token::word("line "));
    point(pen, plot, from.0, from.1);
    pen.space();
    point(pen, plot, to.0, to.1);
    pen.feed();
}

/// Draws a packet. Captured at one end, its time at the other is guessed from a third of the round trip.
pub(super) fn draw(pen: &mut Pen, plot: &Plot, look: &Look<'_>) {
    const SYN_FIN_RST: u16 = 7;
    let third = look.round_trip / 3;
    let there = if look.from_a {
        look.time.saturating_add(third)
    } else {
        look.time.saturating_sub(third).max(0)
    };
    line(pen, plot, (&LEFT, look.first_time), (&LEFT, there));
    line(pen, plot, (&RIGHT, look.first_time), (&RIGHT, there));
    let colour = if look.segment.flags & SYN_FIN_RST != 0 {
        Token::word("orange")
    } else if look.from_a {
        Token::word("green")
    } else {
        Token::word("yellow")
    };
    pen.colour(&colour);
    let (arrow, x, time) = if look.from_a {
        line(pen, plot, (&LEFT, look.time), (&RIGHT, there));
        (Token::word("rarrow "), &RIGHT, there)
    } else {
        line(pen, plot, (&RIGHT, there), (&LEFT, look.time));
        (Token::word("larrow "), &LEFT, look.time)
    };
    pen.put(&arrow);
    point(pen, plot, x, time);
    pen.feed();
    pen.colour(&Token::word("white"));
    let (place, x, time) = if look.from_a {
        (Token::word("ltext "), &LEFT, look.time)
    } else {
        (Token::word("rtext "), &RIGHT, there)
    };
    pen.put(&place);
    point(pen, plot, x, time);
    pen.feed();
    describe(pen, look);
}

/// What the segment says, in a line.
fn describe(pen: &mut Pen, look: &Look<'_>) {
    let segment = look.segment;
    for (set, text) in [
        (segment.syn(), "SYN "),
        (segment.fin(), "FIN "),
        (segment.rst(), "RST "),
        (segment.psh(), "PSH "),
        (segment.urg(), "URG "),
    ] {
        if set {
            pen.put(&Token::word(text));
        }
    }
    let (own, other) = look.bases;
    pen.put(&Token::number(segment.sequence.wrapping_sub(own)));
    pen.put(&Token::word(":"));
    pen.put(&Token::number(segment.end().wrapping_sub(own)));
    pen.put(&Token::word("("));
    pen.put(&Token::number(segment.payload));
    pen.put(&Token::word(") "));
    if segment.ack() {
        pen.put(&Token::word("ack "));
        pen.put(&Token::number(segment.acknowledgment.wrapping_sub(other)));
        pen.space();
    }
    pen.put(&Token::word("win "));
    pen.put(&Token::number(look.window));
    pen.space();
    for (set, text) in [(look.again, "R "), (look.copy, "HD ")] {
        if set {
            pen.put(&Token::word(text));
        }
    }
    pen.feed();
}
