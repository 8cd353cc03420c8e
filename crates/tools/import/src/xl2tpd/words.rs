//! pppd's words: options files and secrets files are words between white space, with quotes, backslashes and comments.

/// A word and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The word without its quotes.
    pub(super) text: String,
    /// The line that it starts in, from 1.
    pub(super) line: usize,
    /// Whether it is the first word of its line.
    pub(super) is_first: bool,
}

/// Bytes of the longest word; pppd's own limit is 1024.
const WORD_MAX: usize = 1024;

/// The words of a text. A word that is too long, or whose quote is not closed, is an error in its line.
pub(super) fn words(text: &str) -> (Vec<Word>, Vec<(usize, &'static str)>) {
    let (mut words, mut faults) = (Vec::new(), Vec::new());
    let mut line = 1;
    let mut is_first = true;
    let mut rest = text.chars().peekable();
    while let Some(&c) = rest.peek() {
        match c {
            '\n' => {
                line += 1;
                is_first = true;
                rest.next();
            }
            c if c.is_whitespace() => {
                rest.next();
            }
            '#' => while rest.next_if(|c| *c != '\n').is_some() {},
            _ => {
                let start = line;
                let (text, closed) = word(&mut rest, &mut line);
                if closed && text.is_empty() && !matches!(c, '"' | '\'') {
                    // A backslash at the end of a line joins it with the next.
                    continue;
                }
                if !closed {
                    faults.push((start, "a quote is not closed"));
                } else if text.len() > WORD_MAX {
                    faults.push((start, "the word is longer than 1024 bytes"));
                } else {
                    words.push(Word {
                        text,
                        line: start,
                        is_first,
                    });
                }
                // An open quote has taken the end of its line.
                is_first = !closed;
            }
        }
    }
    (words, faults)
}

/// One word, and whether its quotes are closed.
fn word(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, line: &mut usize) -> (String, bool) {
    let mut text = String::new();
    let mut quote = None;
    while let Some(&c) = rest.peek() {
        if quote.is_none() && (c.is_whitespace() || c == '#') {
            break;
        }
        rest.next();
        match (c, quote) {
            ('\n', Some(_)) => {
                // A quoted word ends with its line in practice: a forgotten quote must not swallow the file.
                *line += 1;
                return (text, false);
            }
            ('\\', _) => match rest.next() {
                Some('\n') => *line += 1,
                Some(c) => text.push(escaped(c, rest)),
                None => return (text, false),
            },
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            (c, _) => text.push(c),
        }
    }
    (text, quote.is_none())
}

/// The character that `\c` stands for; also `\123`, in octal.
fn escaped(c: char, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> char {
    match c {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        's' => ' ',
        't' => '\t',
        '0'..='7' => {
            let mut number = c.to_digit(8).unwrap_or(0);
            for _ in 0..2 {
                let digit = rest.next_if(|c| c.is_digit(8)).and_then(|c| c.to_digit(8));
                let Some(digit) = digit else { break };
                number = number * 8 + digit;
            }
            char::from_u32(number & 0xff).unwrap_or('\0')
        }
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        words(text).0.into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_have_quotes_escapes_and_comments() {
        assert_eq!(
            texts("mtu 1410 # \"x\nuser 'a b'"),
            ["mtu", "1410", "user", "a b"]
        );
        assert_eq!(
            texts(r#"ann * "the \"cat\"" \101b"#),
            ["ann", "*", "the \"cat\"", "Ab"]
        );
        assert_eq!(texts("connect \\\n x"), ["connect", "x"]);
    }

    #[test]
    fn an_open_quote_costs_its_line_only() {
        let (words, faults) = words("user \"ann\nmtu 1400\n");
        assert_eq!(faults, [(1, "a quote is not closed")]);
        let last = &words[2];
        assert_eq!((&*last.text, last.line, words.len()), ("1400", 2, 3));
    }
}
