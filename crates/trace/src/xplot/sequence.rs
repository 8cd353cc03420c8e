//! The time sequence graph: the segments of one end, and the ACKs and windows of the other.

use super::Options;
use super::line::Zero;
use super::pen::{Ink, Number, Pen, Point, Time, Word};
use super::stroke::{Stroke, What, bits};
use crate::verdict::AckKind;

const WHITE: Word = Word::new("white\n");
const GREEN: Word = Word::new("green\n");
const YELLOW: Word = Word::new("yellow\n");
const RED: Word = Word::new("red\n");
const BLUE: Word = Word::new("blue\n");
const PINK: Word = Word::new("pink\n");
const ORANGE: Word = Word::new("orange\n");
const PURPLE: Word = Word::new("purple\n");
const MAGENTA: Word = Word::new("magenta\n");

const ABOVE: Word = Word::new("atext ");
const BELOW: Word = Word::new("btext ");
const RIGHT: Word = Word::new("rtext ");
const DIAMOND: Word = Word::new("diamond ");
const DOT: Word = Word::new("dot ");
const BOX: Word = Word::new("box ");
const UP: Word = Word::new("uarrow ");
const DOWN: Word = Word::new("darrow ");
const UP_TICK: Word = Word::new("utick ");
const DOWN_TICK: Word = Word::new("dtick ");
const ACROSS_TICK: Word = Word::new("htick ");
const LINE: Word = Word::new("line ");

/// Prefixes of lines, without and with colours.
const WHITE_DOWN: [Word; 2] = [DOWN, Word::new("white\ndarrow ")];
const GREEN_LINE: [Word; 2] = [LINE, Word::new("green\nline ")];
const YELLOW_LINE: [Word; 2] = [LINE, Word::new("yellow\nline ")];

/// The optional parts that are drawn: see [`Options`].
#[derive(Debug, Clone, Copy)]
struct Show {
    colour: bool,
    sacks: bool,
    retransmissions: bool,
    out_of_order: bool,
    zero_windows: bool,
    urgent: bool,
    rtt_marks: bool,
    triple_duplicates: bool,
    empty_segments: bool,
    probes: bool,
}

/// The state of the graph of one end's data.
#[derive(Debug)]
pub(super) struct Sequence {
    show: Show,
    zero: Zero,
    /// Start of the connection, in microseconds.
    began: i64,
    /// Origin of its sequence numbers.
    base: u32,
    /// The other end's last ACK.
    last: Last,
}

/// The fields of an ACK.
#[derive(Debug)]
struct Last {
    /// There was one.
    any: bool,
    time: Time,
    number: u32,
    number_text: Number,
    window_end: u32,
    window_end_text: Number,
    /// Its point, and that of its window's end.
    point: Point,
    window_point: Point,
}

impl Last {
    fn place(&mut self) {
        self.point = Point::new(&self.time, &self.number_text);
        self.window_point = Point::new(&self.time, &self.window_end_text);
    }
}

fn label(ink: &mut Ink, at: usize, place: &Word, point: &Point, text: &str) -> usize {
    let at = ink.mark(at, place, point);
    ink.text(at, text.as_bytes())
}

impl Sequence {
    pub(super) fn new(options: &Options, zero: Zero, began: i64) -> Sequence {
        let nothing = Number::new(0);
        let time = Time::default();
        let point = Point::new(&time, &nothing);
        Sequence {
            show: Show {
                colour: options.colour,
                sacks: options.sacks,
                retransmissions: options.retransmissions,
                out_of_order: options.out_of_order,
                zero_windows: options.zero_windows,
                urgent: options.urgent,
                rtt_marks: options.rtt_marks,
                triple_duplicates: options.triple_duplicates,
                empty_segments: options.empty_segments,
                probes: options.probes,
            },
            zero,
            began,
            base: 0,
            last: Last {
                any: false,
                time,
                number: 0,
                number_text: nothing,
                window_end: 0,
                window_end_text: nothing,
                point,
                window_point: point,
            },
        }
    }

    /// A sequence number relative to the origin.
    #[inline]
    fn number(&self, number: u32) -> Number {
        Number::new(number.wrapping_sub(self.base))
    }

    #[inline]
    pub(super) fn draw(&mut self, pen: &mut Pen, at: usize, stroke: &Stroke) -> usize {
        match stroke.what {
            What::Sent => self.sent(pen, at, stroke),
            What::Ack => self.acknowledged(pen, at, stroke),
            _ => self.rare(pen, at, stroke),
        }
    }

    #[inline(never)]
    fn rare(&mut self, pen: &mut Pen, at: usize, stroke: &Stroke) -> usize {
        match stroke.what {
            What::Sack => self.selective(pen, at, stroke),
            What::ResetIn => {
                let time = pen.clock.time(self.zero.relative(stroke.time));
                let point = Point::new(&time, &self.number(stroke.a));
                let at = self.coloured(&mut pen.ink, at, &MAGENTA, &ABOVE, &point);
                pen.ink.word(at, &Word::new("RST_IN\n"))
            }
            What::Began => {
                self.last.number = stroke.a;
                self.moved(at)
            }
            What::Base => {
                self.base = stroke.a;
                self.moved(at)
            }
            What::Moved => {
                self.last.window_end = stroke.a;
                self.moved(at)
            }
            What::Sent | What::Ack | What::Line | What::Dot | What::Arrow | What::Head => at,
        }
    }

    /// Computes the texts and places of the last ACK again, after its numbers or their style have changed.
    fn moved(&mut self, at: usize) -> usize {
        self.last.number_text = self.number(self.last.number);
        self.last.window_end_text = self.number(self.last.window_end);
        self.last.place();
        at
    }

    /// Sets the colour of everything that follows.
    #[inline]
    fn colour(&self, ink: &mut Ink, at: usize, colour: &Word) -> usize {
        if self.show.colour {
            ink.word(at, colour)
        } else {
            at
        }
    }

    /// A mark in a colour of its own.
    fn coloured(
        &self,
        ink: &mut Ink,
        at: usize,
        colour: &Word,
        command: &Word,
        point: &Point,
    ) -> usize {
        ink.mark_in(at, command, point, self.show.colour.then_some(colour))
    }

    /// Draws the data of a packet.
    #[inline]
    fn sent(&mut self, pen: &mut Pen, at: usize, sent: &Stroke) -> usize {
        let length = sent.b;
        let time = pen.clock.time(self.zero.relative(sent.time));
        let first = sent.a.wrapping_sub(self.base);
        let start = Point::new(&time, &Number::new(first));
        let end = Point::new(&time, &Number::new(first.wrapping_add(length)));
        let colour = usize::from(self.show.colour);
        let ink = &mut *pen.ink;
        let mut at = at;
        if sent.has(bits::OUT_OF_ORDER | bits::AGAIN | bits::PROBE) {
            at = self.marks(ink, at, sent, &end);
        }
        if sent.has(bits::SYN | bits::FIN) {
            at = self.colour(ink, at, &WHITE);
            at = if sent.has(bits::SYN) {
                self.syn(pen, at, sent, &time)
            } else {
                self.fin(ink, at, sent, &time)
            };
        } else if length > 0 {
            if sent.has(bits::COPY | bits::AGAIN) {
                at = self.colour(ink, at, &WHITE);
                let red_or_blue = if sent.has(bits::COPY) { &BLUE } else { &RED };
                at = self.colour(ink, at, red_or_blue);
                at = ink.mark(at, &DOWN, &start);
            } else {
                at = ink.mark(at, &WHITE_DOWN[colour], &start);
            }
            if sent.has(bits::PSH) {
                at = self.coloured(ink, at, &WHITE, &DIAMOND, &end);
                at = self.coloured(ink, at, &WHITE, &DOT, &end);
            } else {
                at = ink.mark(at, &UP, &end);
            }
            at = ink.line(at, &LINE, &start, &end);
        } else if self.show.empty_segments {
            at = ink.mark(at, &WHITE_DOWN[colour], &start);
            at = ink.mark(at, &UP, &start);
        } else {
            at = self.colour(ink, at, &WHITE);
        }
        if sent.has(bits::CWR | bits::CE | bits::URG | bits::RST) {
            at = self.flags(&mut pen.ink, at, sent, (&start, &end));
        }
        at
    }

    /// Draws letters above and below a segment that is not plain.
    #[cold]
    fn marks(&self, ink: &mut Ink, at: usize, sent: &Stroke, end: &Point) -> usize {
        let mut at = at;
        if sent.has(bits::OUT_OF_ORDER) && self.show.out_of_order {
            at = self.colour(ink, at, &PINK);
            at = label(ink, at, &ABOVE, end, "O\n");
        }
        let flag = sent.has(bits::SYN | bits::FIN);
        if sent.has(bits::AGAIN) && !flag && self.show.retransmissions {
            at = self.colour(ink, at, &RED);
            let letter = if sent.has(bits::COPY) { "HD\n" } else { "R\n" };
            at = label(ink, at, &ABOVE, end, letter);
        }
        if sent.has(bits::PROBE) && self.show.probes {
            at = self.colour(ink, at, &ORANGE);
            at = label(ink, at, &BELOW, end, "P\n");
        }
        at
    }

    /// Draws flags other than SYN and FIN.
    #[cold]
    fn flags(
        &self,
        ink: &mut Ink,
        at: usize,
        sent: &Stroke,
        (start, end): (&Point, &Point),
    ) -> usize {
        let mut at = at;
        if sent.has(bits::CWR | bits::CE) {
            at = self.colour(ink, at, &YELLOW);
            at = ink.mark(at, &DIAMOND, start);
            let text = match (sent.has(bits::CWR), sent.has(bits::CE)) {
                (true, true) => "CWR CE\n",
                (true, false) => "CWR\n",
                (false, _) => "CE\n",
            };
            at = label(ink, at, &ABOVE, start, text);
        }
        if sent.b > 0 && sent.has(bits::URG) && self.show.urgent {
            at = self.colour(ink, at, &RED);
            at = label(ink, at, &ABOVE, end, "U\n");
        }
        if sent.has(bits::RST) {
            at = self.coloured(ink, at, &MAGENTA, &ABOVE, start);
            at = ink.text(at, b"RST_OUT\n");
        }
        at
    }

    #[inline(never)]
    fn syn(&self, pen: &mut Pen, at: usize, sent: &Stroke, time: &Time) -> usize {
        let start = self.number(sent.a);
        let end = Point::new(time, &self.number(sent.a.wrapping_add(1)));
        let mut at = at;
        if sent.has(bits::ACK) {
            // Both graphs of a connection then start at the same time.
            let beginning = pen.clock.time(self.zero.relative(self.began));
            let beginning = Point::new(&beginning, &start);
            at = self.coloured(&mut pen.ink, at, &GREEN, &DOT, &beginning);
        }
        let ink = &mut *pen.ink;
        let start = Point::new(time, &start);
        at = self.colour(ink, at, colour_of_flag(sent));
        at = ink.mark(at, &DIAMOND, &start);
        let text = match (sent.has(bits::COPY), sent.has(bits::AGAIN)) {
            (true, _) => "HD SYN\n",
            (false, true) => "R SYN\n",
            (false, false) => "SYN\n",
        };
        at = label(ink, at, &ABOVE, &end, text);
        at = ink.mark(at, &UP, &end);
        ink.line(at, &LINE, &start, &end)
    }

    #[inline(never)]
    fn fin(&self, ink: &mut Ink, at: usize, sent: &Stroke, time: &Time) -> usize {
        let last = sent.a.wrapping_add(sent.b);
        let end = Point::new(time, &self.number(last));
        let after = Point::new(time, &self.number(last.wrapping_add(1)));
        let mut at = at;
        if sent.b > 0 {
            let start = Point::new(time, &self.number(sent.a));
            at = ink.mark(at, &DOWN, &start);
            at = ink.line(at, &LINE, &start, &end);
            at = self.colour(ink, at, colour_of_flag(sent));
        } else {
            at = self.colour(ink, at, colour_of_flag(sent));
            at = ink.mark(at, &DOWN, &end);
        }
        at = ink.line(at, &LINE, &end, &after);
        at = ink.mark(at, &BOX, &after);
        let text = match (sent.has(bits::COPY), sent.has(bits::AGAIN)) {
            (true, _) => "HD FIN\n",
            (false, true) => "R FIN\n",
            (false, false) => "FIN\n",
        };
        label(ink, at, &ABOVE, &after, text)
    }

    /// Draws the acknowledgement of a packet of the other end.
    #[inline]
    fn acknowledged(&mut self, pen: &mut Pen, at: usize, ack: &Stroke) -> usize {
        let time = pen.clock.time(self.zero.relative(ack.time));
        let number = ack.a;
        let window_end = number.wrapping_add(ack.b);
        let same_number = number == self.last.number;
        let same_window = window_end == self.last.window_end;
        let number_text = if same_number {
            self.last.number_text
        } else {
            self.number(number)
        };
        let window_end_text = if same_window {
            self.last.window_end_text
        } else {
            self.number(window_end)
        };
        let point = Point::new(&time, &number_text);
        let window_point = Point::new(&time, &window_end_text);
        let ink = &mut *pen.ink;
        let mut at = at;
        if ack.b == 0 && self.show.zero_windows {
            at = self.coloured(ink, at, &MAGENTA, &ABOVE, &window_point);
            at = ink.word(at, &Word::new("Z\n"));
        }
        if self.last.any {
            let colour = usize::from(self.show.colour);
            if same_number {
                at = ink.line(at, &GREEN_LINE[colour], &self.last.point, &point);
                at = ink.mark(at, &DOWN_TICK, &point);
                if ack.did(AckKind::Triple) && self.show.triple_duplicates {
                    at = label(ink, at, &ABOVE, &point, "3\n");
                }
            } else {
                let corner = Point::new(&time, &self.last.number_text);
                at = ink.line(at, &GREEN_LINE[colour], &self.last.point, &corner);
                at = ink.line(at, &LINE, &corner, &point);
                if self.show.rtt_marks {
                    at = self.dongle(ink, at, ack, &point);
                }
            }
            if ack.bits & (bits::ECE | bits::SYN) == bits::ECE {
                at = self.colour(ink, at, &YELLOW);
                at = ink.mark(at, &DIAMOND, &point);
            }
            let from = &self.last.window_point;
            if same_window {
                at = ink.line(at, &YELLOW_LINE[colour], from, &window_point);
                at = ink.mark(at, &UP_TICK, &window_point);
            } else {
                let corner = Point::new(&time, &self.last.window_end_text);
                at = ink.line(at, &YELLOW_LINE[colour], from, &corner);
                at = ink.line(at, &LINE, &corner, &window_point);
            }
        }
        // Field by field: a value that was just written in pieces is slow to copy.
        let last = &mut self.last;
        last.any = true;
        last.time = time;
        (last.number, last.number_text) = (number, number_text);
        (last.window_end, last.window_end_text) = (window_end, window_end_text);
        last.point.set(&point);
        last.window_point.set(&window_point);
        at
    }

    /// Marks ACKs that measure no round trip.
    fn dongle(&self, ink: &mut Ink, at: usize, ack: &Stroke, point: &Point) -> usize {
        let colour = if ack.did(AckKind::Ambiguous) {
            &RED
        } else if ack.did(AckKind::PostLoss) {
            &BLUE
        } else {
            return at;
        };
        self.coloured(ink, at, colour, &DIAMOND, point)
    }

    /// Draws a SACK block of the ACK before it.
    fn selective(&self, pen: &mut Pen, at: usize, block: &Stroke) -> usize {
        if !self.show.sacks {
            return at;
        }
        let time = pen.clock.time(self.zero.relative(block.time));
        let place = |number| Point::new(&time, &self.number(number));
        let (low, high) = (place(block.a), place(block.b));
        let (index, count) = (block.bits & 0xf, block.bits >> 4);
        let ink = &mut *pen.ink;
        let mut at = at;
        if index == 1 {
            at = self.colour(ink, at, &PURPLE);
        }
        at = ink.line(at, &LINE, &low, &high);
        at = ink.mark(at, &ACROSS_TICK, &low);
        at = ink.mark(at, &ACROSS_TICK, &high);
        if count > 1 {
            at = ink.mark(at, &RIGHT, &high);
            at = ink.number(at, &Number::new(u32::from(index)));
            at = ink.word(at, &Word::new("\n"));
        }
        if index == count {
            at = label(ink, at, &ABOVE, &place(block.c), "S\n");
        }
        at
    }
}

fn colour_of_flag(sent: &Stroke) -> &'static Word {
    if sent.has(bits::COPY) {
        &BLUE
    } else if sent.has(bits::AGAIN) {
        &RED
    } else {
        &ORANGE
    }
}
