//! Text written fast: words and numbers as tokens of a fixed size, which are copied whole.

/// Room of a token.
const ROOM: usize = 24;

/// A short text; behind it stands a line feed, which does not count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    octets: [u8; ROOM],
    length: u8,
}

impl Token {
    /// A fixed word of at most 23 octets.
    pub(super) const fn word(word: &str) -> Token {
        let (word, mut octets, mut at) = (word.as_bytes(), [b'\n'; ROOM], 0);
        assert!(word.len() < ROOM, "a token's word is short");
        while at < word.len() {
            octets[at] = word[at];
            at += 1;
        }
        Token {
            octets,
            length: word.len() as u8,
        }
    }

    /// Without its last octet.
    pub(super) fn bare(mut self) -> Token {
        self.length = self.length.saturating_sub(1);
        self
    }

    /// A number in decimal.
    #[inline]
    pub(super) fn number(number: u32) -> Token {
        let (high, low) = (number / 100_000_000, number % 100_000_000);
        let digits = digits(low);
        let mut text = [b'\n'; ROOM + 10];
        text[0] = (high / 10) as u8 + b'0';
        text[1] = (high % 10) as u8 + b'0';
        text[2..10].copy_from_slice(&(digits | 0x3030_3030_3030_3030).to_le_bytes());
        let zeros = match high {
            0 => 2 + ((digits.trailing_zeros() / 8) as usize).min(7),
            1..10 => 1,
            _ => 0,
        };
        let mut octets = [0; ROOM];
        octets.copy_from_slice(&text[zeros..zeros + ROOM]);
        Token {
            octets,
            length: (10 - zeros) as u8,
        }
    }
}

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
    /// The last second written, as "seconds.".
    second: u32,
    second_text: Token,
}

impl Pen {
    pub(super) fn new(colour: bool) -> Pen {
        Pen {
            octets: Box::new([0; SIZE + ROOM]),
            length: 0,
            colour,
            second: 0,
            second_text: Token::word("0."),
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
        self.octets[at..at + ROOM].copy_from_slice(&token.octets);
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
        let second = time.div_euclid(1_000_000) as u32;
        if second != self.second {
            self.second = second;
            let mut text = Token::number(second);
            text.octets[usize::from(text.length)] = b'.';
            text.length += 1;
            self.second_text = text;
        }
        let decimals = digits(time.rem_euclid(1_000_000) as u32) | 0x3030_3030_3030_3030;
        let decimals = decimals >> 16 | u64::from(b' ') << 48;
        let mut text = self.second_text;
        let at = usize::from(text.length).min(ROOM - 8);
        text.octets[at..at + 8].copy_from_slice(&decimals.to_le_bytes());
        text.length += 7;
        text
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
        self.put(time);
        self.put_line(y);
    }

    /// The same in a colour of its own.
    pub(super) fn mark_in(&mut self, colour: &Token, command: &Token, time: &Token, y: &Token) {
        self.put(command);
        self.put(time);
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
        self.put(from.0);
        self.put(from.1);
        self.space();
        self.put(to.0);
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

    fn text(token: &Token) -> &str {
        core::str::from_utf8(&token.octets[..usize::from(token.length)]).expect("digits are UTF-8")
    }

    #[test]
    fn writes_every_length_of_number() {
        let mut number = 1_u64;
        while number <= u64::from(u32::MAX) {
            for number in [number - 1, number, number + 1, number * 3, number * 9 + 7] {
                let number = number as u32;
                let token = Token::number(number);
                assert_eq!(text(&token), number.to_string());
                assert_eq!(token.octets[usize::from(token.length)], b'\n');
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
