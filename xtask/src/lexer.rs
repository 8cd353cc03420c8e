//! Splits Rust text into tokens with line numbers: enough to find functions, paths, strings and comments.
//!
//! `syn` gives a syntax tree but no comments, and does not look into macros such as `proptest!`. The checks
//! here need comments, and treat a function in a macro like any other. So this module only splits tokens:
//! comments (including nested ones), strings of every kind, characters as opposed to lifetimes, and everything
//! else one character at a time.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or keyword; a raw identifier without its `r#`.
    Word,
    /// A number, with its suffix.
    Number,
    /// A string of any kind; the text is between its quotes.
    Text,
    /// A character or byte, with its quotes.
    Char,
    /// `'a`
    Lifetime,
    /// A comment with its slashes.
    Comment,
    /// Any other character.
    Mark,
}

/// A token and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind,
    pub(crate) text: &'t str,
    /// From 1.
    pub(crate) line: usize,
}

impl Token<'_> {
    /// Whether this is the mark or word `text`.
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Mark | Kind::Word) && self.text == text
    }
}

/// Every token of `text`, comments included.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
    };
    // A script's first line.
    if text.starts_with("#!/") {
        lexer.pass(text.find('\n').unwrap_or(text.len()));
    }
    std::iter::from_fn(|| lexer.next()).collect()
}

/// The tokens without comments.
pub(crate) fn code(text: &str) -> Vec<Token<'_>> {
    let mut tokens = tokens(text);
    tokens.retain(|token| token.kind != Kind::Comment);
    tokens
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Advances by `length` bytes and returns them.
    fn pass(&mut self, length: usize) -> &'t str {
        let passed = &self.rest()[..length];
        self.line += passed.matches('\n').count();
        self.at += length;
        passed
    }

    fn next(&mut self) -> Option<Token<'t>> {
        let rest = self.rest();
        let blank = rest.len() - rest.trim_start().len();
        self.pass(blank);
        let rest = self.rest();
        let first = rest.chars().next()?;
        let line = self.line;
        // Most tokens are one of these two.
        if first.is_ascii_punctuation() && !"/\"'_".contains(first) {
            self.at += 1;
            return Some(Token {
                kind: Kind::Mark,
                text: &rest[..1],
                line,
            });
        }
        if !"bcr".contains(first) && word(rest) > 0 {
            let text = &rest[..word(rest)];
            self.at += text.len();
            return Some(Token {
                kind: Kind::Word,
                text,
                line,
            });
        }
        let (kind, text) = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            (Kind::Comment, self.pass(length))
        } else if rest.starts_with("/*") {
            (Kind::Comment, self.pass(block_comment(rest)))
        } else if let Some((open, inside, close)) = string(rest) {
            self.pass(open);
            let text = self.pass(inside);
            self.pass(close);
            (Kind::Text, text)
        } else if let Some(length) = character(rest) {
            (Kind::Char, self.pass(length))
        } else if first == '\'' {
            (Kind::Lifetime, self.pass(1 + word(&rest[1..])))
        } else if first.is_ascii_digit() {
            (Kind::Number, self.pass(number(rest)))
        } else if let Some(raw) = rest.strip_prefix("r#").filter(|raw| word(raw) > 0) {
            self.pass(2);
            (Kind::Word, self.pass(word(raw)))
        } else if word(rest) > 0 {
            (Kind::Word, self.pass(word(rest)))
        } else {
            (Kind::Mark, self.pass(first.len_utf8()))
        };
        Some(Token { kind, text, line })
    }
}

/// The length of the name that `rest` starts with.
fn word(rest: &str) -> usize {
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    rest.find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len())
}

/// The length of a number: `1..2` ends before the dots, `1.5e3` and `0x_ff` are one.
fn number(rest: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let whole = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let Some(fraction) = rest[whole..].strip_prefix('.') else {
        return whole;
    };
    if !fraction.starts_with(|c: char| c.is_ascii_digit()) {
        return whole;
    }
    whole + 1 + fraction.find(|c| !is_part(c)).unwrap_or(fraction.len())
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The lengths of a string's opening, content and closing: `"…"`, `b"…"`, `c"…"`, `r#"…"#`, `br"…"`.
fn string(rest: &str) -> Option<(usize, usize, usize)> {
    if !rest.starts_with(['"', 'b', 'c', 'r']) {
        return None;
    }
    let prefix = ["", "b", "c", "r", "br", "cr"].into_iter().find(|prefix| {
        let after = rest.strip_prefix(prefix);
        let after = after.map(|after| {
            if prefix.ends_with('r') {
                after.trim_start_matches('#')
            } else {
                after
            }
        });
        after.is_some_and(|after| after.starts_with('"'))
    })?;
    let quote = rest.find('"')?;
    let open = quote + 1;
    let body = &rest[open..];
    if prefix.ends_with('r') {
        let close = format!("\"{}", &rest[prefix.len()..quote]);
        let inside = body.find(&close).unwrap_or(body.len());
        return Some((open, inside, close.len().min(body.len() - inside)));
    }
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some((open, at, 1)),
            _ => {}
        }
    }
    Some((open, body.len(), 0))
}

/// The length of `'x'`, `'\n'`, `'\u{1f600}'` or `b'x'`; a lifetime has none.
fn character(rest: &str) -> Option<usize> {
    let prefix = usize::from(rest.starts_with("b'"));
    let body = rest[prefix..].strip_prefix('\'')?;
    let mut chars = body.char_indices();
    let (_, first) = chars.next()?;
    if first == '\\' {
        let after = 1 + chars.next()?.1.len_utf8();
        return Some(prefix + 1 + after + body[after..].find('\'')? + 1);
    }
    let (at, second) = chars.next()?;
    (second == '\'').then_some(prefix + 1 + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(Kind, &str, usize)> {
        let token = |token: Token<'static>| (token.kind, token.text, token.line);
        let text: &'static str = String::from(text).leak();
        tokens(text).into_iter().map(token).collect()
    }

    #[test]
    fn a_lifetime_is_no_character() {
        assert_eq!(
            read(r"<'a> 'b' '\'' b'{' '\u{7d}'"),
            [
                (Kind::Mark, "<", 1),
                (Kind::Lifetime, "'a", 1),
                (Kind::Mark, ">", 1),
                (Kind::Char, "'b'", 1),
                (Kind::Char, r"'\''", 1),
                (Kind::Char, "b'{'", 1),
                (Kind::Char, r"'\u{7d}'", 1),
            ]
        );
    }

    #[test]
    fn strings_of_every_kind_are_one_token() {
        assert_eq!(
            read("\"a\\\"{\" b\"}\" r#\"x\"y\"# r\"\\\" br##\"\"#\"## r#fn"),
            [
                (Kind::Text, "a\\\"{", 1),
                (Kind::Text, "}", 1),
                (Kind::Text, "x\"y", 1),
                (Kind::Text, "\\", 1),
                (Kind::Text, "\"#", 1),
                (Kind::Word, "fn", 1),
            ]
        );
    }

    #[test]
    fn comments_nest_and_lines_are_counted() {
        assert_eq!(
            read("/* a /* { */\n */ x // \"y\n\"\n\" 1..2 1.5e3"),
            [
                (Kind::Comment, "/* a /* { */\n */", 1),
                (Kind::Word, "x", 2),
                (Kind::Comment, "// \"y", 2),
                (Kind::Text, "\n", 3),
                (Kind::Number, "1", 4),
                (Kind::Mark, ".", 4),
                (Kind::Mark, ".", 4),
                (Kind::Number, "2", 4),
                (Kind::Number, "1.5e3", 4),
            ]
        );
    }
}
