//! Fast formatting: words, numbers and points are tokens of a fixed size, which are copied whole. The caller keeps the
//! position of the next byte, so that it stays in a register.

/// A fixed text of at most 16 bytes, the first in the lowest byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    octets: u128,
    length: u8,
}

impl Word {
    pub(super) const fn new(text: &str) -> Word {
        let text = text.as_bytes();
        assert!(text.len() <= 16, "a word is short");
        let (mut octets, mut at) = (0, text.len());
        while at > 0 {
            at -= 1;
            octets = octets << 8 | text[at] as u128;
        }
        Word {
            octets,
            length: text.len() as u8,
        }
    }
}

/// A number in decimal with a space behind, which does not count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    octets: u128,
    length: u8,
}

impl Number {
    #[inline]
    pub(super) fn new(number: u32) -> Number {
        let (high, low) = (number / 100_000_000, number % 100_000_000);
        let digits = digits(low);
        let zeros = match high {
            0 => 2 + (digits.trailing_zeros() / 8).min(7),
            1..10 => 1,
            _ => 0,
        };
        let two = u64::from(high / 10) | u64::from(high % 10) << 8;
        let text = u128::from(two | 0x3030) | u128::from(digits | ZEROS) << 16;
        let text = text | u128::from(b' ') << 80;
        Number {
            // Sequence numbers are long.
            octets: if zeros == 0 {
                text
            } else {
                text >> (8 * zeros)
            },
            length: (10 - zeros) as u8,
        }
    }
}

/// Eight times the digit 0.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The eight decimal digits of a number below 10^8, one an octet, the first in the lowest.
#[inline]
fn digits(number: u32) -> u64 {
    let (high, low) = (u64::from(number / 10_000), u64::from(number % 10_000));
    let fours = high | low << 32;
    let hundreds = (fours * 10_486) >> 20 & 0x7f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = (twos * 103) >> 10 & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}

/// A time as seconds with six decimals, and a space behind, which does not count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Time {
    low: u128,
    high: u64,
    length: u8,
}

/// A time and a number, and a space behind, which does not count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    low: u128,
    high: u128,
    length: u8,
}

impl Point {
    #[inline]
    pub(super) fn new(time: &Time, y: &Number) -> Point {
        // The space between them counts here.
        let length = u32::from(time.length) + 1;
        let (low, high) = match length {
            // Times of the present era have this many digits.
            18 => (time.low, u128::from(time.high) | y.octets << 16),
            0..16 => {
                let room = 8 * length;
                (time.low | y.octets << room, y.octets >> (128 - room))
            }
            _ => {
                let room = 8 * (length - 16);
                (time.low, u128::from(time.high) | y.octets << room)
            }
        };
        Point {
            low,
            high,
            length: length as u8 + y.length,
        }
    }

    #[inline]
    pub(super) fn set(&mut self, to: &Point) {
        self.low = to.low;
        self.high = to.high;
        self.length = to.length;
    }
}

/// Writes times; most are in the second of the one before.
#[derive(Debug)]
pub(super) struct Clock {
    /// The last time written, in microseconds.
    time: i64,
    text: Time,
    second: u32,
    /// The second, with a point behind.
    second_text: u128,
    second_length: u8,
}

impl Clock {
    fn new() -> Clock {
        let mut clock = Clock {
            time: 0,
            text: Time::default(),
            second: 0,
            second_text: u128::from(u16::from_le_bytes(*b"0.")),
            second_length: 2,
        };
        clock.text = clock.new_time(0);
        clock
    }

    /// A time in microseconds.
    #[inline]
    pub(super) fn time(&mut self, time: i64) -> Time {
        if time != self.time {
            self.time = time;
            self.text = self.new_time(time);
        }
        self.text
    }

    #[inline]
    fn new_time(&mut self, time: i64) -> Time {
        let second = time.div_euclid(1_000_000) as u32;
        if second != self.second {
            self.new_second(second);
        }
        let decimals = (digits(time.rem_euclid(1_000_000) as u32) | ZEROS) >> 16;
        let decimals = decimals | u64::from(b' ') << 48;
        let length = u32::from(self.second_length);
        let (low, high) = match length {
            11 => (u128::from(decimals) << 88, decimals >> 40),
            _ => {
                let decimals = u128::from(decimals);
                let room = 8 * length;
                (decimals << room, (decimals >> 8 >> (120 - room)) as u64)
            }
        };
        Time {
            low: self.second_text | low,
            high,
            length: self.second_length + 6,
        }
    }

    #[inline(never)]
    fn new_second(&mut self, second: u32) {
        self.second = second;
        let number = Number::new(second);
        let room = 8 * u32::from(number.length);
        self.second_text = number.octets & !(0xff << room) | u128::from(b'.') << room;
        self.second_length = number.length + 1;
    }
}

/// Bytes that are gathered before they are written to a file.
const SIZE: usize = 1 << 17;

/// Largest number of bytes that one write may overshoot.
const BEYOND: usize = 32;

/// Room for text. Every method takes the position to write at and returns the position after the
/// text it wrote.
#[derive(Debug)]
pub(super) struct Ink([u8; SIZE + BEYOND]);

impl Ink {
    /// Largest position at which the text of some strokes may start.
    pub(super) const FULL: usize = SIZE - (1 << 14);

    #[inline]
    pub(super) fn word(&mut self, at: usize, word: &Word) -> usize {
        let at = at & (SIZE - 1);
        self.0[at..at + 16].copy_from_slice(&word.octets.to_le_bytes());
        at + usize::from(word.length)
    }

    /// A number without the space.
    #[inline]
    pub(super) fn number(&mut self, at: usize, number: &Number) -> usize {
        let at = at & (SIZE - 1);
        self.0[at..at + 16].copy_from_slice(&number.octets.to_le_bytes());
        at + usize::from(number.length)
    }

    /// A time without the space.
    #[inline]
    pub(super) fn time(&mut self, at: usize, time: &Time) -> usize {
        let at = at & (SIZE - 1);
        self.0[at..at + 16].copy_from_slice(&time.low.to_le_bytes());
        self.0[at + 16..at + 24].copy_from_slice(&time.high.to_le_bytes());
        at + usize::from(time.length)
    }

    /// A point and a space.
    #[inline]
    pub(super) fn point(&mut self, at: usize, point: &Point) -> usize {
        let at = at & (SIZE - 1);
        self.0[at..at + 16].copy_from_slice(&point.low.to_le_bytes());
        self.0[at + 16..at + 32].copy_from_slice(&point.high.to_le_bytes());
        at + usize::from(point.length) + 1
    }

    /// A point at the end of a line.
    #[inline]
    pub(super) fn last(&mut self, at: usize, point: &Point) -> usize {
        let behind = self.point(at, point);
        self.0[(behind - 1) & (SIZE - 1)] = b'\n';
        behind
    }

    /// A command with one point.
    #[inline]
    pub(super) fn mark(&mut self, at: usize, command: &Word, point: &Point) -> usize {
        let at = self.word(at, command);
        self.last(at, point)
    }

    /// The same in a colour of its own, a word with a line feed.
    pub(super) fn mark_in(
        &mut self,
        at: usize,
        command: &Word,
        point: &Point,
        colour: Option<&Word>,
    ) -> usize {
        let Some(colour) = colour else {
            return self.mark(at, command, point);
        };
        let at = self.word(at, command);
        let at = self.point(at, point);
        self.word(at, colour)
    }

    /// A line from one point to another.
    #[inline]
    pub(super) fn line(&mut self, at: usize, command: &Word, from: &Point, to: &Point) -> usize {
        let at = self.word(at, command);
        let at = self.point(at, from);
        self.last(at, to)
    }

    /// Any text, cut where there is no room for it.
    pub(super) fn text(&mut self, at: usize, text: &[u8]) -> usize {
        let room = &mut self.0[at..];
        let length = text.len().min(room.len());
        room[..length].copy_from_slice(&text[..length]);
        at + length
    }

    /// The text before that position.
    pub(super) fn written(&self, at: usize) -> &[u8] {
        &self.0[..at]
    }
}

/// What writing text takes: one for each thread that paints.
#[derive(Debug)]
pub struct Pen {
    pub(super) ink: Box<Ink>,
    pub(super) clock: Clock,
}

impl Default for Pen {
    fn default() -> Pen {
        Pen {
            ink: Box::new(Ink([0; SIZE + BEYOND])),
            clock: Clock::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Ink) -> usize) -> String {
        let mut pen = Pen::default();
        let end = write(&mut pen.ink);
        String::from_utf8(pen.ink.written(end).to_vec()).expect("digits are UTF-8")
    }

    #[test]
    fn writes_every_length_of_number() {
        let mut number = 1_u64;
        while number <= u64::from(u32::MAX) {
            for number in [number - 1, number, number + 1, number * 3, number * 9 + 7] {
                let number = number as u32;
                let token = Number::new(number);
                assert_eq!(text(|ink| ink.number(0, &token)), number.to_string());
                let behind = token.octets >> (8 * u32::from(token.length));
                assert_eq!(behind, u128::from(b' '));
            }
            number *= 10;
        }
        let most = Number::new(u32::MAX);
        assert_eq!(text(|ink| ink.number(0, &most)), "4294967295");
    }

    #[test]
    fn writes_times_with_six_decimals_and_points_of_any_length() {
        let mut clock = Clock::new();
        for (time, written) in [
            (0, "0.000000"),
            (1, "0.000001"),
            (999_999, "0.999999"),
            (1_000_000, "1.000000"),
            (1_234_567_890_123_456, "1234567890.123456"),
            (1_234_567_890_000_056, "1234567890.000056"),
            (12_345_678_000_056, "12345678.000056"),
            (1_234_567_000_056, "1234567.000056"),
            (59_120_034, "59.120034"),
        ] {
            let time = clock.time(time);
            assert_eq!(text(|ink| ink.time(0, &time)), written);
            for number in [0, 17, 1_234_567_890] {
                let point = Point::new(&time, &Number::new(number));
                let line = format!("dot {written} {number}\n");
                assert_eq!(text(|ink| ink.mark(0, &Word::new("dot "), &point)), line);
            }
        }
    }

    #[test]
    fn text_that_is_too_long_is_cut() {
        let long = vec![b'x'; 2 * SIZE];
        assert_eq!(text(|ink| ink.text(5, &long)).len(), SIZE + BEYOND);
    }
}
