//! UCI, the format of OpenWrt's `/etc/config`: sections with options. Words may be quoted, also over several lines.
//!
//! Source: the grammar that OpenWrt's documentation of UCI describes.

use convert::{Place, Source};

/// Statements of one file; further ones are reported as not read.
const STATEMENTS_MAX: usize = 100_000;

/// `option NAME VALUE` or `list NAME VALUE`.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) place: Place,
}

/// `config TYPE` with its options. The name of a section means nothing to sqm.
#[derive(Debug, Clone)]
pub(super) struct Section {
    /// Empty before the first `config`.
    pub(super) kind: String,
    pub(super) settings: Vec<Setting>,
}

/// A statement that is none: where, its first word, and why.
pub(super) type Mistake = (Place, String, &'static str);

/// Reads the sections of a file, and what it has that is no statement.
pub(super) fn read(source: &Source) -> (Vec<Section>, Vec<Mistake>) {
    let mut sections: Vec<Section> = Vec::new();
    let mut mistakes = Vec::new();
    let (statements, unclosed) = statements(&source.text);
    for (at, (line, words)) in statements.iter().enumerate() {
        let place = source.at(*line);
        if at == STATEMENTS_MAX {
            mistakes.push((
                place,
                String::new(),
                "the file has more than 100000 statements",
            ));
            break;
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["package", ..] => {}
            ["config", kind] | ["config", kind, _] => sections.push(section(kind)),
            ["option" | "list", name, value] => {
                if sections.is_empty() {
                    sections.push(section(""));
                }
                if let Some(section) = sections.last_mut() {
                    section.settings.push(Setting {
                        name: (*name).to_owned(),
                        value: (*value).to_owned(),
                        place,
                    });
                }
            }
            words => {
                let first = words.first().copied().unwrap_or_default();
                let why = match first {
                    "config" => "a section has a type and at most one name",
                    "option" | "list" => {
                        "an option has a name and one value; quote a value with spaces"
                    }
                    _ => "not a statement: UCI has package, config, option and list",
                };
                mistakes.push((place, first.to_owned(), why));
            }
        }
    }
    if let Some(line) = unclosed {
        let why = "the quotation mark is not closed; the rest of the file is one value";
        mistakes.push((source.at(line), String::new(), why));
    }
    (sections, mistakes)
}

fn section(kind: &str) -> Section {
    Section {
        kind: kind.to_owned(),
        settings: Vec::new(),
    }
}

/// The words of each statement with the line that it starts on, and the line of a quotation mark that is not closed.
fn statements(text: &str) -> (Vec<(usize, Vec<String>)>, Option<usize>) {
    let mut statements = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let (mut line, mut start) = (1, 1);
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\n' | ';' => {
                words.extend(word.take());
                if !words.is_empty() {
                    statements.push((start, std::mem::take(&mut words)));
                }
                line += usize::from(char == '\n');
            }
            '#' => {
                // A comment reaches to the end of the line, which ends the statement too.
                let rest = chars.as_str();
                let end = rest.find('\n').unwrap_or(rest.len());
                chars = rest[end..].chars();
            }
            char if char.is_whitespace() => words.extend(word.take()),
            char => {
                if words.is_empty() && word.is_none() {
                    start = line;
                }
                let word = word.get_or_insert_default();
                match char {
                    '\'' | '"' => {
                        let opened = line;
                        if !quoted(&mut chars, char, word, &mut line) {
                            return (statements, Some(opened));
                        }
                    }
                    '\\' => match chars.next() {
                        Some('\n') => line += 1,
                        Some(char) => word.push(char),
                        None => {}
                    },
                    char => word.push(char),
                }
            }
        }
    }
    words.extend(word);
    if !words.is_empty() {
        statements.push((start, words));
    }
    (statements, None)
}

/// Reads up to the quotation mark `end`. Returns whether there is one.
fn quoted(chars: &mut std::str::Chars<'_>, end: char, word: &mut String, line: &mut usize) -> bool {
    while let Some(char) = chars.next() {
        *line += usize::from(char == '\n');
        match char {
            char if char == end => return true,
            '\\' if end == '"' => {
                let escaped = chars.next();
                *line += usize::from(escaped == Some('\n'));
                word.extend(escaped.filter(|char| *char != '\n'));
            }
            char => word.push(char),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(usize, Vec<String>)> {
        statements(text).0
    }

    #[test]
    fn words_are_quoted_escaped_and_commented() {
        let text = "config queue 'eth 1' # option x y\n\n\toption a \"b\\\"c\"'d'\\ e\noption f g;option h i";
        let found = words(text);
        let expected = [
            (1, vec!["config", "queue", "eth 1"]),
            (3, vec!["option", "a", "b\"cd e"]),
            (4, vec!["option", "f", "g"]),
            (4, vec!["option", "h", "i"]),
        ];
        let expected = expected.map(|(line, words)| {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            (line, words)
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_value_may_have_several_lines_and_an_open_quotation_mark_is_named() {
        let (found, unclosed) = statements("option a 'b\nc'\noption d 'e\noption f g\n");
        assert_eq!(
            found[0],
            (1, vec!["option".into(), "a".into(), "b\nc".into()])
        );
        assert_eq!((found.len(), unclosed), (1, Some(3)));
    }

    #[test]
    fn an_empty_value_is_a_word() {
        assert_eq!(words("option a ''")[0].1.len(), 3);
    }
}
