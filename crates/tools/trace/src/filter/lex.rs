//! The words of a filter.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Op;

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Op(Op),
    Not,
    Open,
    Close,
    Number(u64),
    /// A number with a sign in front.
    Negative(u64),
    Truth(bool),
    Text(String),
    Address(IpAddr),
    Name(String),
    End,
}

/// Words and their positions; the last is [`Token::End`].
///
/// # Errors
/// A fault and its position.
pub(super) fn words(text: &str) -> Result<Vec<(usize, Token)>, (usize, String)> {
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        let rest = &text[at..];
        if rest.is_empty() {
            words.push((at, Token::End));
            return Ok(words);
        }
        // A sign belongs to a number where a value has to come.
        let value = !matches!(
            words.last(),
            Some((
                _,
                Token::Close
                    | Token::Number(_)
                    | Token::Negative(_)
                    | Token::Truth(_)
                    | Token::Text(_)
                    | Token::Address(_)
                    | Token::Name(_)
            ))
        );
        let (token, length) = word(rest, value).map_err(|why| (at, why))?;
        words.push((at, token));
        at += length;
    }
}

/// Signs, the longer ones first.
const SIGNS: [(&str, Token); 20] = [
    ("&&", Token::Op(Op::And)),
    ("||", Token::Op(Op::Or)),
    (">=", Token::Op(Op::GreaterEqual)),
    ("<=", Token::Op(Op::LessEqual)),
    ("==", Token::Op(Op::Equal)),
    ("!=", Token::Op(Op::NotEqual)),
    (">", Token::Op(Op::Greater)),
    ("<", Token::Op(Op::Less)),
    ("=", Token::Op(Op::Equal)),
    ("!", Token::Not),
    ("~", Token::Not),
    ("&", Token::Op(Op::BitAnd)),
    ("|", Token::Op(Op::BitOr)),
    ("+", Token::Op(Op::Plus)),
    ("-", Token::Op(Op::Minus)),
    ("*", Token::Op(Op::Times)),
    ("/", Token::Op(Op::Divide)),
    ("%", Token::Op(Op::Modulo)),
    ("(", Token::Open),
    (")", Token::Close),
];

fn word(rest: &str, value: bool) -> Result<(Token, usize), String> {
    if let Some(text) = rest.strip_prefix('"') {
        let end = text.find('"').ok_or("this text has no end")?;
        return Ok((Token::Text(text[..end].to_owned()), end + 2));
    }
    if let Some((address, length)) = address(rest) {
        return Ok((Token::Address(address), length));
    }
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = |text: &str| {
        let number = text.parse::<u64>();
        number.map_err(|_| "this number is too large".to_owned())
    };
    let count = digits(rest);
    if count > 0 {
        return Ok((Token::Number(number(&rest[..count])?), count));
    }
    if let Some(behind) = rest.strip_prefix('-') {
        let count = digits(behind);
        if value && count > 0 {
            return Ok((Token::Negative(number(&behind[..count])?), count + 1));
        }
        let mut letters = behind.chars();
        let short = letters.next().map(|letter| letter.to_ascii_lowercase());
        let alone = !letters.next().is_some_and(of_name);
        match short {
            Some('a') if !value && alone => return Ok((Token::Op(Op::And), 2)),
            Some('o') if !value && alone => return Ok((Token::Op(Op::Or), 2)),
            _ => {}
        }
    }
    for (sign, token) in &SIGNS {
        if rest.starts_with(sign) {
            return Ok((token.clone(), sign.len()));
        }
    }
    name(rest)
}

fn of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

fn name(rest: &str) -> Result<(Token, usize), String> {
    let length = rest.find(|c: char| !of_name(c)).unwrap_or(rest.len());
    let name = &rest[..length];
    if length == 0 {
        let sign = rest.chars().next().unwrap_or(' ');
        return Err(format!("'{sign}' means nothing here"));
    }
    let token = match name {
        "TRUE" => Token::Truth(true),
        "FALSE" => Token::Truth(false),
        _ if name.eq_ignore_ascii_case("not") => Token::Not,
        _ if name.eq_ignore_ascii_case("and") => Token::Op(Op::And),
        _ if name.eq_ignore_ascii_case("or") => Token::Op(Op::Or),
        _ => Token::Name(name.to_owned()),
    };
    Ok((token, length))
}

/// An address at the front.
fn address(rest: &str) -> Option<(IpAddr, usize)> {
    let length = rest
        .find(|c: char| !(c.is_ascii_hexdigit() || c == ':' || c == '.'))
        .unwrap_or(rest.len());
    let text = &rest[..length];
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(|v6| (v6.into(), length));
    }
    text.parse::<Ipv4Addr>().ok().map(|v4| (v4.into(), length))
}
