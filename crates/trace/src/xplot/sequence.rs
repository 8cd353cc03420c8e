//! The time sequence graph: what one end sent, and what the other acknowledged and had room for.

use super::Options;
use super::pen::{Pen, Token};
use super::plot::Plot;
use crate::segment::Segment;
use crate::verdict::AckKind;

const WHITE: Token = Token::word("white");
const GREEN: Token = Token::word("green");
const YELLOW: Token = Token::word("yellow");
const RED: Token = Token::word("red");
const BLUE: Token = Token::word("blue");
const PINK: Token = Token::word("pink");
const ORANGE: Token = Token::word("orange");
const PURPLE: Token = Token::word("purple");
const MAGENTA: Token = Token::word("magenta");

const ABOVE: Token = Token::word("atext ");
const BELOW: Token = Token::word("btext ");
const RIGHT: Token = Token::word("rtext ");
const DIAMOND: Token = Token::word("diamond ");
const DOT: Token = Token::word("dot ");
const BOX: Token = Token::word("box ");
const UP: Token = Token::word("uarrow ");
const DOWN: Token = Token::word("darrow ");
const UP_TICK: Token = Token::word("utick ");
const DOWN_TICK: Token = Token::word("dtick ");
const ACROSS_TICK: Token = Token::word("htick ");

/// What the last ACK of an end said, for the graph of the other end's data.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastAck {
    /// When, as written; `None` before the first.
    time: Option<Token>,
    number: u32,
    number_text: Token,
    window_end: u32,
    window_end_text: Token,
}

impl LastAck {
    /// Before the first.
    pub(super) fn none() -> LastAck {
        LastAck {
            time: None,
            number: 0,
            number_text: Token::number(0),
            window_end: 0,
            window_end_text: Token::number(0),
        }
    }

    /// The data it acknowledges begins with this number, which it was not known to do.
    pub(super) fn rebase(&mut self, base: u32) {
        self.number_text = Token::number(self.number.wrapping_sub(base));
        self.window_end_text = Token::number(self.window_end.wrapping_sub(base));
    }

    /// A SYN from the other end is as good as an ACK of what comes before it.
    pub(super) fn other_began(&mut self, start: u32, base: u32) {
        self.number = start;
        self.number_text = Token::number(start.wrapping_sub(base));
    }

    /// The window's end moves without an ACK being drawn.
    pub(super) fn moved(&mut self, window_end: u32, base: u32) {
        self.window_end = window_end;
        self.window_end_text = Token::number(window_end.wrapping_sub(base));
    }
}

/// A packet as the graph needs it.
pub(super) struct Look<'a> {
    pub(super) segment: &'a Segment,
    /// It was sent before.
    pub(super) again: bool,
    pub(super) out_of_order: bool,
    pub(super) probe: bool,
    pub(super) copy: bool,
    pub(super) ack: AckKind,
    /// Window in bytes.
    pub(super) window: u32,
    /// When, in microseconds.
    pub(super) time: i64,
    /// The connection's first time.
    pub(super) first_time: i64,
}

fn label(pen: &mut Pen, place: &Token, time: &Token, y: &Token, text: &Token) {
    pen.mark(place, time, y);
    pen.put_line(text);
}

/// Draws what the packet sends, in its sender's graph. `base` is what sequence numbers count from.
pub(super) fn sent(pen: &mut Pen, plot: &Plot, options: &Options, look: &Look<'_>, base: u32) {
    let segment = look.segment;
    let length = segment.payload;
    let time = plot.time(pen, look.time);
    let first = segment.sequence.wrapping_sub(base);
    let (start, end) = (
        Token::number(first),
        Token::number(first.wrapping_add(length)),
    );
    if look.out_of_order | look.again | look.probe {
        marks(pen, options, look, &time, &end);
    }
    pen.colour(&WHITE);
    if segment.flags & 3 != 0 {
        if segment.syn() {
            syn(pen, plot, look, &time, first);
        } else {
            fin(pen, look, &time, first);
        }
    } else if length > 0 {
        if look.copy {
            pen.colour(&BLUE);
        } else if look.again {
            pen.colour(&RED);
        }
        pen.mark(&DOWN, &time, &start);
        if segment.psh() {
            pen.mark_in(&WHITE, &DIAMOND, &time, &end);
            pen.mark_in(&WHITE, &DOT, &time, &end);
        } else {
            pen.mark(&UP, &time, &end);
        }
        pen.line((&time, &start), (&time, &end));
    } else if options.empty_segments {
        pen.mark(&DOWN, &time, &start);
        pen.mark(&UP, &time, &start);
    }
    if segment.cwr() || segment.ce() {
        congestion(pen, segment, &time, &start);
    }
    if length > 0 && segment.urg() && options.urgent {
        pen.colour(&RED);
        label(pen, &ABOVE, &time, &end, &Token::word("U"));
    }
    if segment.rst() {
        pen.mark_in(&MAGENTA, &ABOVE, &time, &start);
        pen.put_line(&Token::word("RST_OUT"));
    }
}

/// Letters above and below what is no plain segment.
#[cold]
fn marks(pen: &mut Pen, options: &Options, look: &Look<'_>, time: &Token, end: &Token) {
    if look.out_of_order && options.out_of_order {
        pen.colour(&PINK);
        label(pen, &ABOVE, time, end, &Token::word("O"));
    }
    if look.again && look.segment.flags & 3 == 0 && options.retransmissions {
        pen.colour(&RED);
        let letter = if look.copy { "HD" } else { "R" };
        label(pen, &ABOVE, time, end, &Token::word(letter));
    }
    if look.probe && options.probes {
        pen.colour(&ORANGE);
        label(pen, &BELOW, time, end, &Token::word("P"));
    }
}

fn colour_of_flag(look: &Look<'_>) -> &'static Token {
    if look.copy {
        &BLUE
    } else if look.again {
        &RED
    } else {
        &ORANGE
    }
}

#[inline(never)]
fn syn(pen: &mut Pen, plot: &Plot, look: &Look<'_>, time: &Token, first: u32) {
    let (start, end) = (Token::number(first), Token::number(first.wrapping_add(1)));
    if look.segment.ack() {
        // Both graphs of a connection then begin at the same time.
        let beginning = plot.time(pen, look.first_time);
        pen.mark_in(&GREEN, &DOT, &beginning, &start);
    }
    pen.colour(colour_of_flag(look));
    pen.mark(&DIAMOND, time, &start);
    let text = match (look.copy, look.again) {
        (true, _) => "HD SYN",
        (false, true) => "R SYN",
        (false, false) => "SYN",
    };
    label(pen, &ABOVE, time, &end, &Token::word(text));
    pen.mark(&UP, time, &end);
    pen.line((time, &start), (time, &end));
}

#[inline(never)]
fn fin(pen: &mut Pen, look: &Look<'_>, time: &Token, first: u32) {
    let length = look.segment.payload;
    let last = first.wrapping_add(length);
    let (start, end) = (Token::number(first), Token::number(last));
    let after = Token::number(last.wrapping_add(1));
    if length > 0 {
        pen.mark(&DOWN, time, &start);
        pen.line((time, &start), (time, &end));
        pen.colour(colour_of_flag(look));
    } else {
        pen.colour(colour_of_flag(look));
        pen.mark(&DOWN, time, &end);
    }
    pen.line((time, &end), (time, &after));
    pen.mark(&BOX, time, &after);
    let text = match (look.copy, look.again) {
        (true, _) => "HD FIN",
        (false, true) => "R FIN",
        (false, false) => "FIN",
    };
    label(pen, &ABOVE, time, &after, &Token::word(text));
}

#[cold]
fn congestion(pen: &mut Pen, segment: &Segment, time: &Token, start: &Token) {
    pen.colour(&YELLOW);
    pen.mark(&DIAMOND, time, start);
    let text = match (segment.cwr(), segment.ce()) {
        (true, true) => "CWR CE",
        (true, false) => "CWR",
        (false, _) => "CE",
    };
    label(pen, &ABOVE, time, start, &Token::word(text));
}

/// Draws that a reset came, in the graph of the end that it came to.
pub(super) fn reset(pen: &mut Pen, plot: &Plot, time: i64, at: u32) {
    let time = plot.time(pen, time);
    pen.mark_in(&MAGENTA, &ABOVE, &time, &Token::number(at));
    pen.put_line(&Token::word("RST_IN"));
}

/// Draws what the packet acknowledges, in the graph of the end that it goes to; `base` is what that one's sequence
/// numbers count from.
pub(super) fn acknowledged(
    pen: &mut Pen,
    plot: &Plot,
    options: &Options,
    look: &Look<'_>,
    last: &mut LastAck,
    base: u32,
) {
    let segment = look.segment;
    let time = plot.time(pen, look.time);
    let number = segment.acknowledgment;
    let window_end = number.wrapping_add(look.window);
    let (same_number, same_window) = (number == last.number, window_end == last.window_end);
    let number_text = if same_number {
        last.number_text
    } else {
        Token::number(number.wrapping_sub(base))
    };
    let window_end_text = if same_window {
        last.window_end_text
    } else {
        Token::number(window_end.wrapping_sub(base))
    };
    if look.window == 0 && options.zero_windows {
        pen.mark_in(&MAGENTA, &ABOVE, &time, &window_end_text);
        pen.put_line(&Token::word("Z"));
    }
    if let Some(last_time) = &last.time {
        pen.colour(&GREEN);
        pen.line((last_time, &last.number_text), (&time, &last.number_text));
        if same_number {
            pen.mark(&DOWN_TICK, &time, &number_text);
            if look.ack == AckKind::Triple && options.triple_duplicates {
                label(pen, &ABOVE, &time, &number_text, &Token::word("3"));
            }
        } else {
            pen.line((&time, &last.number_text), (&time, &number_text));
            if options.rtt_marks {
                dongle(pen, look.ack, &time, &number_text);
            }
        }
        if segment.ece() && !segment.syn() {
            pen.colour(&YELLOW);
            pen.mark(&DIAMOND, &time, &number_text);
        }
        pen.colour(&YELLOW);
        pen.line(
            (last_time, &last.window_end_text),
            (&time, &last.window_end_text),
        );
        if same_window {
            pen.mark(&UP_TICK, &time, &window_end_text);
        } else {
            pen.line((&time, &last.window_end_text), (&time, &window_end_text));
        }
    }
    if options.sacks && !segment.options.sack().is_empty() {
        selective(pen, segment, &time, base);
    }
    *last = LastAck {
        time: Some(time),
        number,
        number_text,
        window_end,
        window_end_text,
    };
}

/// Marks ACKs that measure no round trip.
fn dongle(pen: &mut Pen, ack: AckKind, time: &Token, number: &Token) {
    let colour = match ack {
        AckKind::Ambiguous => &RED,
        AckKind::PostLoss => &BLUE,
        AckKind::None | AckKind::Normal | AckKind::Cumulative | AckKind::Triple => return,
    };
    pen.mark_in(colour, &DIAMOND, time, number);
}

#[cold]
fn selective(pen: &mut Pen, segment: &Segment, time: &Token, base: u32) {
    let blocks = segment.options.sack();
    pen.colour(&PURPLE);
    let mut top: Option<u32> = None;
    for (index, &(left, right)) in (1..).zip(blocks) {
        let (low, high) = (left.wrapping_sub(base), right.wrapping_sub(base));
        let (low, high) = (Token::number(low), Token::number(high));
        pen.line((time, &low), (time, &high));
        pen.mark(&ACROSS_TICK, time, &low);
        pen.mark(&ACROSS_TICK, time, &high);
        if blocks.len() > 1 {
            label(pen, &RIGHT, time, &high, &Token::number(index));
        }
        if top.is_none_or(|top| right.wrapping_sub(top) as i32 > 0) {
            top = Some(right);
        }
    }
    if let Some(top) = top {
        let top = Token::number(top.wrapping_sub(base));
        label(pen, &ABOVE, time, &top, &Token::word("S"));
    }
}
