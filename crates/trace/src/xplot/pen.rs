//! Text written fast: words and numbers as tokens of a fixed size, which are copied whole.

/// Room of a token.
const ROOM: usize = 24;

/// A short text; behind it stands a line feed, which does not count. It is kept in words, the first octet in the
/// lowest, because octets written one by one are slow to read together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    low: u128,
    high: u64,
    length: u8,
}

impl Token {
    /// A fixed word of at most 15 octets.
    pub(super) const fn word(word: &str) -> Token {
        let word = word.as_bytes();
        assert!(word.len() < 16, "a token's word is short");
        let (mut low, mut at) = (b'\n' as u128, word.len());
        while at > 0 {
            at -= 1;
            low = low << 8 | word[at] as u128;
        }
        Token {
            low,
            high: 0,
            length: word.len() as u8,
        }
    }

    /// Without its last octet.
    pub(super) const fn bare(mut self) -> Token {
        self.length = self.length.saturating_sub(1);
        self
    }

    /// A number in decimal.
    #[inline]
    pub(super) fn number(number: u32) -> Token {
        let (high, low) = (number / 100_000_000, number % 100_000_000);
        let digits = digits(low);
        let zeros = match high {
            0 => 2 + (digits.trailing_zeros() / 8).min(7),
            1..10 => 1,
            _ => 0,
        };
        let two = u64::from(high / 10) | u64::from(high % 10) << 8;
        let text = u128::from(two | 0x3030) | u128::from(digits | ZEROS) << 16;
        Token {
            low: (text | u128::from(b'\n') << 80) >> (8 * zeros),
            high: 0,
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

/// Room for the text of one packet in one file: 40 lines at most, of less than 100 octets.
const SIZE: usize = 1 << 13;

/// Writes lines of one packet, before they are appended to a file.
#[derive(Debug)]
pub(super) struct Pen {
    octets: Box<[u8; SIZE + ROOM]>,
    length: usize,
    /// Colours are written.
    colour: bool,
    /// The last time written, in microseconds.
    time: i64,
    time_text: Token,
    /// Its second, as "seconds.", with nothing behind.
    second: u32,
    second_text: Token,
}

impl Pen {
    pub(super) fn new(colour: bool) -> Pen {
        Pen {
            octets: Box::new([0; SIZE + ROOM]),
            length: 0,
            colour,
            time: 0,
            time_text: Token::word("0.000000 "),
            second: 0,
            second_text: Token {
                low: 0x2e30,
                high: 0,
                length: 2,
            },
        }
    }

    /// What was written, which is forgotten.
    #[inline]
    pub(super) fn take(&mut self) -> &[u8] {
        let length = core::mem::take(&mut self.length);
        &self.octets[..length]
    }

    #[inline]
    pub(super) fn put(&mut self, token: &Token) {
        let at = self.length & (SIZE - 1);
        self.octets[at..at + 16].copy_from_slice(&token.low.to_le_bytes());
        self.length = at + usize::from(token.length);
    }

    /// A token that [`Pen::time`] made: a long one.
    #[inline]
    pub(super) fn put_time(&mut self, token: &Token) {
        let at = self.length & (SIZE - 1);
        self.octets[at..at + 16].copy_from_slice(&token.low.to_le_bytes());
        self.octets[at + 16..at + ROOM].copy_from_slice(&token.high.to_le_bytes());
        self.length = at + usize::from(token.length);
    }

    /// The token and the line feed behind it.
    #[inline]
    pub(super) fn put_line(&mut self, token: &Token) {
        self.put(token);
        self.length += 1;
    }

    #[inline]
    pub(super) fn space(&mut self) {
        let at = self.length & (SIZE - 1);
        self.octets[at] = b' ';
        self.length = at + 1;
    }

    /// A time in microseconds, as seconds with six decimals and a space behind.
    #[inline]
    pub(super) fn time(&mut self, time: i64) -> Token {
        if time != self.time {
            self.time = time;
            self.time_text = self.new_time(time);
        }
        self.time_text
    }

    #[inline]
    fn new_time(&mut self, time: i64) -> Token {
        let second = time.div_euclid(1_000_000) as u32;
        if second != self.second {
            self.second = second;
            let mut text = Token::number(second);
            let room = 8 * u32::from(text.length);
            text.low = text.low & !(0xff << room) | u128::from(b'.') << room;
            text.length += 1;
            self.second_text = text;
        }
        let second = self.second_text;
        let decimals = (digits(time.rem_euclid(1_000_000) as u32) | ZEROS) >> 16;
        let decimals = u128::from(decimals | u64::from(b' ') << 48);
        let length = u32::from(second.length);
        Token {
            low: second.low | decimals << (8 * length),
            high: (decimals >> 8 >> (120 - 8 * length)) as u64,
            length: second.length + 7,
        }
    }

    /// Everything from here on has this colour.
    #[inline]
    pub(super) fn colour(&mut self, colour: &Token) {
        if self.colour {
            self.put_line(colour);
        }
    }

    /// A command with one point.
    #[inline]
    pub(super) fn mark(&mut self, command: &Token, time: &Token, y: &Token) {
        self.put(command);
        self.put_time(time);
        self.put_line(y);
    }

    /// The same in a colour of its own.
    pub(super) fn mark_in(&mut self, colour: &Token, command: &Token, time: &Token, y: &Token) {
        self.put(command);
        self.put_time(time);
        self.put(y);
        if self.colour {
            self.space();
            self.put(colour);
        }
        self.feed();
    }

    /// A line from one point to another.
    #[inline]
    pub(super) fn line(&mut self, from: (&Token, &Token), to: (&Token, &Token)) {
        const LINE: Token = Token::word("line ");
        self.put(&LINE);
        self.put_time(from.0);
        self.put(from.1);
        self.space();
        self.put_time(to.0);
        self.put_line(to.1);
    }

    /// Ends the line.
    pub(super) fn feed(&mut self) {
        let at = self.length & (SIZE - 1);
        self.octets[at] = b'\n';
        self.length = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(token: &Token) -> String {
        let octets: Vec<u8> = (token.low.to_le_bytes().into_iter())
            .chain(token.high.to_le_bytes())
            .take(usize::from(token.length))
            .collect();
        String::from_utf8(octets).expect("digits are UTF-8")
    }

    #[test]
    fn writes_every_length_of_number() {
        let mut number = 1_u64;
        while number <= u64::from(u32::MAX) {
            for number in [number - 1, number, number + 1, number * 3, number * 9 + 7] {
                let number = number as u32;
                let token = Token::number(number);
                assert_eq!(text(&token), number.to_string());
                let behind = token.low >> (8 * u32::from(token.length));
                assert_eq!(behind as u8, b'\n');
            }
            number *= 10;
        }
        assert_eq!(text(&Token::number(u32::MAX)), "4294967295");
    }

    #[test]
    fn writes_times_with_six_decimals() {
        let mut pen = Pen::new(true);
        for (time, written) in [
            (0, "0.000000 "),
            (1, "0.000001 "),
            (999_999, "0.999999 "),
            (1_000_000, "1.000000 "),
            (1_234_567_890_123_456, "1234567890.123456 "),
            (1_234_567_890_000_056, "1234567890.000056 "),
            (59_120_034, "59.120034 "),
        ] {
            assert_eq!(text(&pen.time(time)), written);
        }
    }

    #[test]
    fn leaves_colours_out_of_monochrome_plots() {
        let red = Token::word("red");
        for (colour, written) in [
            (true, "red\ndot 0.000005 7 red\n"),
            (false, "dot 0.000005 7\n"),
        ] {
            let mut pen = Pen::new(colour);
            pen.colour(&red);
            let time = pen.time(5);
            pen.mark_in(&red, &Token::word("dot "), &time, &Token::number(7));
            assert_eq!(pen.take(), written.as_bytes());
        }
    }
}
