//! Parses TOML and explains its syntax faults: which key, what is wrong with the line, what would be right. No I/O.

use std::ops::Range;

use toml::de::DeTable;

use crate::fault::{FAULTS_MAX, Notes, Words, char_before};

/// The document of the noted text, if its syntax has no fault.
pub fn document<'s>(notes: &Notes<'s>) -> Option<DeTable<'s>> {
    part(notes, 0..notes.source.len(), 0)
}

/// A part of the noted text as a document of its own, if its syntax has no fault. `before` is how many sections of a
/// list stand before the part: with 6, its first `[[user]]` is `user[7]`.
pub fn part<'s>(notes: &Notes<'s>, range: Range<usize>, before: usize) -> Option<DeTable<'s>> {
    let (start, text) = (range.start, &notes.source[range]);
    let (root, errors) = DeTable::parse_recoverable(text);
    let is_faultless = errors.is_empty();
    for error in errors {
        let at = char_before(text, error.span().map_or(0, |span| span.start));
        // The first line of the parser's message has none of the text's values.
        let message = error.message().lines().next().unwrap_or("is no TOML");
        if notes.len() < FAULTS_MAX {
            let (key, words) = explain(text, at, message, before, notes.has_secrets);
            notes.at(start + at, key, words);
        } else {
            notes.at(start + at, "", message);
        }
    }
    is_faultless.then(|| root.into_inner())
}

/// The key, and the words, of a fault that the parser found at the byte `at`.
fn explain(text: &str, at: usize, message: &str, before: usize, secret: bool) -> (String, Words) {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or("").trim();
    let is_duplicate = message == "duplicate key";
    let given_twice = ("is given twice", "give it once");
    if let Some(header) = line.strip_prefix('[') {
        let name = header_name(header);
        if is_duplicate {
            return (name.to_owned(), given_twice.into());
        }
        // A line that begins with a bracket may be a part of a secret.
        let name = if secret { "NAME" } else { name };
        let right = format!("write a section as [{name}] or [[{name}]]");
        return (String::new(), (message, right).into());
    }
    let Some((key, value)) = line.split_once('=') else {
        let right = "write each line as KEY = VALUE, or # before a comment";
        return (String::new(), (message, right).into());
    };
    let (key, value) = (key.trim(), value.trim());
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if key.is_empty() || key.len() > 64 || !key.chars().all(is_bare) {
        let right = "write KEY = VALUE, with a key of letters, digits, _ and -";
        return (String::new(), (message, right).into());
    }
    let path = match section_of(&text[..start], before) {
        Some(section) => format!("{section}.{key}"),
        None => key.to_owned(),
    };
    if is_duplicate {
        return (path, given_twice.into());
    }
    (path, of_value(key, value, message, secret))
}

/// What is wrong with a value that cannot be parsed. A value of a text with secrets is not repeated.
fn of_value(key: &str, value: &str, message: &str, secret: bool) -> Words {
    let quoted = |text: &str| match secret {
        true => format!("{key} = \"TEXT\""),
        false => format!("{key} = \"{text}\""),
    };
    if value.is_empty() {
        return ("has no value", format!("write {key} = VALUE")).into();
    }
    if value.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '/')) {
        let bare = value.split('#').next().unwrap_or(value).trim();
        let wrong = "neither a number nor true nor false, and text stands in quotes";
        let message = match secret {
            true => format!("is {wrong}"),
            false => format!("{bare} is {wrong}"),
        };
        return (message, format!("write {}", quoted(bare))).into();
    }
    if value.starts_with("\"\"\"") || value.starts_with("'''") {
        let right = format!("write it on one line: {}", quoted("TEXT"));
        return ("is text of several lines", right).into();
    }
    if value.matches('"').count() % 2 == 1 {
        let right = format!(
            "write {}, and \\\" for a quote in it",
            quoted(value.trim_matches('"'))
        );
        return (
            "has a quote that does not end, or one within the text",
            right,
        )
            .into();
    }
    let right = "write text in quotes, a number, true, false, or a list in [ ]";
    (message, right).into()
}

/// The section that is open after `text`, as faults name it: `link`, `first[2]`.
fn section_of(text: &str, before: usize) -> Option<String> {
    let lines = text.lines().map(str::trim);
    let headers: Vec<&str> = lines.filter(|line| line.starts_with('[')).collect();
    let last = headers.last()?;
    let name = header_name(last);
    if !last.starts_with("[[") {
        return Some(name.to_owned());
    }
    let same = headers.iter().filter(|header| header_name(header) == name);
    Some(format!("{name}[{}]", before + same.count()))
}

/// The name in a line such as `[[ first ]] # a comment`.
fn header_name(line: &str) -> &str {
    let end = line.find(']').unwrap_or(line.len());
    line[..end].trim_matches(['[', ' '])
}

#[cfg(test)]
mod tests {
    use crate::{Notes, document};

    /// The faults of a text that is no TOML.
    fn faults(text: &str) -> Vec<String> {
        let notes = Notes::new(text);
        assert!(document(&notes).is_none());
        notes.faults().lines()
    }

    #[test]
    fn text_without_quotes_is_shown_with_quotes() {
        assert_eq!(
            faults("[link]\nup = 2.3mbit # or so\n"),
            [
                "2:9: link.up: 2.3mbit is neither a number nor true nor false, and text stands in quotes; write up = \"2.3mbit\""
            ]
        );
        let text = "[link]\nup = \"1mbit\"\n[[first]]\nport = 22\n[[first]]\ndscp = ef\n";
        let found = faults(text);
        assert!(
            found[0].starts_with("6:8: first[2].dscp: ef is "),
            "{found:?}"
        );
        assert!(found[0].ends_with("; write dscp = \"ef\""), "{found:?}");
    }

    #[test]
    fn every_fault_of_the_syntax_says_what_would_be_right() {
        for (text, place, right) in [
            (
                "[link]\nup = \"1mbit\"\nup = \"2mbit\"\n",
                "3:1: link.up: is given twice",
                "give it once",
            ),
            (
                "[link\nup = 1\n",
                "1:6: ",
                "write a section as [link] or [[link]]",
            ),
            (
                "[link]\nup = \"10mbit\n",
                "2:13: link.up: has a quote that does not end",
                "write up = \"10mbit\", and \\\" for a quote in it",
            ),
            (
                "[link]\nup =\n",
                "2:5: link.up: has no value",
                "write up = VALUE",
            ),
            (
                "[link]\nup\n",
                "2:3: ",
                "write each line as KEY = VALUE, or # before a comment",
            ),
            (
                "[link]\nup = [\"1mbit\"\n",
                "",
                "write text in quotes, a number, true, false, or a list in [ ]",
            ),
            (
                "up = \u{e9}\n",
                "1:6: up: \u{e9} is ",
                "write up = \"\u{e9}\"",
            ),
        ] {
            let found = faults(text);
            assert!(found[0].starts_with(place), "{found:?}");
            assert!(
                found
                    .iter()
                    .any(|fault| fault.ends_with(&format!("; {right}"))),
                "{found:?}"
            );
        }
    }
}
