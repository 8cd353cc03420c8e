//! Checks that every key accepted by a file reader is in the documentation page for that file.
//!
//! Tests beside the readers check the opposite: each key in a page's example is accepted. This check reads
//! string literals in the readers' sources:
//! - the first argument of a reader's method, such as `section.flag("sticky")`, is a key;
//! - if a function opens exactly one section (`Section::open(root, "ppp", …)`), and the page's examples must
//!   have every key, the key must be in an example below that section's header, `[ppp]`;
//! - if a function calls such a method with a variable, each literal in its lists that looks like a key counts
//!   as one;
//! - fields of a struct that derives `Deserialize` are keys, and so are the arms of a `match key`.
//!
//! A page has a key if the key is a word of a code block or between backticks.

use crate::lexer::{self, Kind, Token};
use crate::sources::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A kind of file, or a part of one, that people write: the sources that read it, and the page that describes it. A
/// source belongs to the first of [`FILES`] that names it.
struct Files {
    /// Parts of the readers' paths.
    readers: &'static [&'static str],
    page: &'static str,
    /// Whether the page's examples must have every key, in its section.
    by_section: bool,
}

const FILES: &[Files] = &[
    Files {
        readers: &["/daemon/src/config/bgp/policy.rs"],
        page: "docs/bgp.md",
        by_section: false,
    },
    Files {
        readers: &["/daemon/src/config/"],
        page: "docs/configuration.md",
        by_section: true,
    },
    Files {
        readers: &["/aaa/src/users/read.rs", "/aaa/src/users/read/"],
        page: "docs/users.md",
        by_section: false,
    },
    Files {
        readers: &["/emulate/src/scenario/"],
        page: "docs/emulate.md",
        by_section: false,
    },
    Files {
        readers: &["/qos/src/policy/"],
        page: "docs/qos-policy.md",
        by_section: false,
    },
    Files {
        readers: &[
            "/ping/streams.rs",
            "/ping/src/streams.rs",
            "/ping/src/streams/",
        ],
        page: "docs/ping.md",
        by_section: false,
    },
];

/// Methods of the readers whose first argument is a key.
const METHODS: &[&str] = &[
    "choice",
    "choices",
    "each",
    "flag",
    "integer",
    "integers",
    "known",
    "number",
    "one_or_more",
    "one_or_more_integers",
    "pair",
    "parsed",
    "seconds",
    "several",
    "span",
    "string",
    "strings",
    "strings_or_none",
    "table",
    "tables",
    "text",
];

/// Functions that open a section.
const OPENERS: &[&str] = &["open", "open_each", "each"];

/// A key, and where it is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    name: String,
    /// The section, if the source shows it.
    section: Option<String>,
    place: String,
}

/// Checks every reader's keys against its page.
///
/// # Errors
/// One line for each key that is missing from the page, and each missing reader or page.
pub(crate) fn check(root: &Path, sources: &[Source]) -> Result<String, Vec<String>> {
    let mut faults = Vec::new();
    let mut count = 0;
    for (index, files) in FILES.iter().enumerate() {
        let text = match std::fs::read_to_string(root.join(files.page)) {
            Ok(text) => text,
            Err(error) => {
                faults.push(format!("{}: {error}", files.page));
                continue;
            }
        };
        let mut page = Page::read(&text);
        if !files.by_section {
            page.sections.clear();
        }
        let readers = sources.iter().filter(|source| {
            let reads = |files: &Files| files.readers.iter().any(|part| source.path.contains(part));
            let is_reader = FILES.iter().position(reads) == Some(index);
            is_reader && !source.path.ends_with("/tests.rs") && !source.path.contains("/tests/")
        });
        let keys: BTreeSet<Key> = readers
            .flat_map(|source| keys(&source.path, &source.text))
            .collect();
        if keys.is_empty() {
            faults.push(format!(
                "{}: no source with its keys; xtask/src/keys.rs names {:?}",
                files.page, files.readers
            ));
        }
        let mut missing = BTreeSet::new();
        for key in &keys {
            if !page.has(key) && missing.insert((&key.section, &key.name)) {
                let section = key
                    .section
                    .as_ref()
                    .map(|name| format!("[{name}] "))
                    .unwrap_or_default();
                faults.push(format!(
                    "{}: {section}{} is not in {}",
                    key.place, key.name, files.page
                ));
            }
        }
        let names: BTreeSet<_> = keys.iter().map(|key| (&key.section, &key.name)).collect();
        count += names.len();
    }
    if faults.is_empty() {
        Ok(format!("{count} keys in {} pages", FILES.len()))
    } else {
        Err(faults)
    }
}

/// The keys that a reader's source reads, without those in its tests.
fn keys(path: &str, text: &str) -> Vec<Key> {
    let tokens = lexer::code(text);
    let tests = tokens
        .windows(4)
        .position(|four| four[0].is("cfg") && four[1].is("(") && four[2].is("test"))
        .unwrap_or(tokens.len());
    let tokens = &tokens[..tests];
    let starts: Vec<usize> = (0..tokens.len())
        .filter(|at| tokens[*at].is("fn"))
        .collect();
    let mut found = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(tokens.len());
        function(path, &tokens[*start..end], &mut found);
    }
    fields(path, tokens, &mut found);
    found
}

fn function(path: &str, tokens: &[Token<'_>], into: &mut Vec<Key>) {
    let sections = sections(tokens);
    let section = match sections.as_slice() {
        [one] => Some((*one).to_owned()),
        _ => None,
    };
    let mut add = |token: &Token<'_>, section: Option<String>| {
        into.push(Key {
            name: token.text.to_owned(),
            section,
            place: format!("{path}:{}", token.line),
        });
    };
    let mut by_variable = false;
    for at in 3..tokens.len() {
        let [dot, method, bracket, first] = &tokens[at - 3..=at] else {
            continue;
        };
        if !dot.is(".") || !METHODS.contains(&method.text) || !bracket.is("(") {
            continue;
        }
        match first.kind {
            Kind::Text if looks_like_key(first.text) => add(first, section.clone()),
            Kind::Word => by_variable = true,
            _ => {}
        }
    }
    let matches_key = tokens
        .windows(3)
        .any(|three| three[0].is("match") && three[1].is("key") && three[2].is("{"));
    // The open brackets, each with the number of its tokens so far.
    let mut open: Vec<(&str, usize)> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        let is_arm = next.is_some_and(|next| next.is("=") || next.is("|"));
        // `["a", "b"]` and `[("a", …), ("b", …)]` are lists of keys.
        let is_listed = match open.as_slice() {
            [.., ("[", _)] => true,
            [.., ("[", _), ("(", first)] => *first == 0,
            _ => false,
        };
        let is_key = token.kind == Kind::Text && looks_like_key(token.text);
        if is_key && (by_variable && is_listed || matches_key && is_arm) {
            add(token, None);
        }
        if let Some((_, tokens)) = open.last_mut() {
            *tokens += 1;
        }
        match token.text {
            _ if token.kind != Kind::Mark => {}
            "(" | "[" | "{" => open.push((token.text, 0)),
            ")" | "]" | "}" => drop(open.pop()),
            _ => {}
        }
    }
}

/// The sections that a function opens with a literal name.
fn sections<'t>(tokens: &[Token<'t>]) -> Vec<&'t str> {
    let mut names = Vec::new();
    for at in 3..tokens.len() {
        let opens = tokens[at].is("(")
            && OPENERS.contains(&tokens[at - 1].text)
            && tokens[at - 2].is(":")
            && tokens[at - 3].is(":");
        if opens {
            // The last literal of the call is the displayed name: `each(root, "pool", "pool", …)`.
            let arguments = tokens[at + 1..].iter().take(8);
            let mut literals = arguments.filter(|token| token.kind == Kind::Text);
            names.extend(literals.next_back().map(|token| token.text));
        }
    }
    names
}

/// Fields of structs that derive `Deserialize`.
fn fields(path: &str, tokens: &[Token<'_>], into: &mut Vec<Key>) {
    let derives = (0..tokens.len())
        .filter(|at| tokens[*at].is("Deserialize") && *at > 0 && !tokens[*at - 1].is(":"));
    for at in derives {
        let item = &tokens[at..];
        let Some(start) = item
            .iter()
            .position(|token| token.is("struct") || token.is("enum") || token.is(";"))
        else {
            continue;
        };
        if !item[start].is("struct") {
            continue;
        }
        let body = item[start..]
            .iter()
            .skip_while(|token| !token.is("{"))
            .take_while(|token| !token.is("}"));
        let body: Vec<&Token<'_>> = body.collect();
        for three in body.windows(3) {
            let starts =
                three[0].is("{") || three[0].is(",") || three[0].is("]") || three[0].is("pub");
            if starts && three[1].kind == Kind::Word && three[2].is(":") {
                into.push(Key {
                    name: three[1].text.to_owned(),
                    section: None,
                    place: format!("{path}:{}", three[1].line),
                });
            }
        }
    }
}

/// Lower case with underscores, as every key is written.
fn looks_like_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The words of a page's code: all of them, and by section of its examples.
struct Page<'t> {
    words: BTreeSet<&'t str>,
    sections: BTreeMap<&'t str, BTreeSet<&'t str>>,
}

impl<'t> Page<'t> {
    fn read(text: &'t str) -> Page<'t> {
        let mut page = Page {
            words: BTreeSet::new(),
            sections: BTreeMap::new(),
        };
        let mut in_code = false;
        let mut section = "";
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
                section = "";
            } else if in_code {
                page.words.extend(words(line));
                let line = line.trim();
                if let Some(head) = line.strip_prefix('[') {
                    section = head
                        .trim_start_matches('[')
                        .split(']')
                        .next()
                        .unwrap_or_default();
                }
                page.sections
                    .entry(section)
                    .or_default()
                    .extend(words(line));
            } else {
                let spans = line.split('`').skip(1).step_by(2);
                page.words.extend(spans.flat_map(words));
            }
        }
        page
    }

    fn has(&self, key: &Key) -> bool {
        let section = key
            .section
            .as_deref()
            .and_then(|name| self.sections.get(name));
        match section {
            Some(words) => words.contains(key.name.as_str()),
            None => self.words.contains(key.name.as_str()),
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, Option<String>)> {
        keys("a.rs", text)
            .into_iter()
            .map(|key| (key.name, key.section))
            .collect()
    }

    fn key(name: &str, section: Option<&str>) -> (String, Option<String>) {
        (name.to_owned(), section.map(str::to_owned))
    }

    #[test]
    fn a_literal_argument_is_a_key_of_the_section_that_its_function_opens() {
        let text = "fn a() { let mut s = Section::open(root, \"ppp\", notes); s.string(\"name\"); s.fault(at, \"no\"); }\n\
                    fn b(s: Section) { s.flag(\"ipv6\"); }\n\
                    #[cfg(test)] mod tests { fn c() { s.flag(\"never\"); } }";
        assert_eq!(found(text), [key("name", Some("ppp")), key("ipv6", None)]);
    }

    #[test]
    fn keys_in_a_list_fields_and_arms_are_found() {
        let text = "fn a() { for (key, to) in [(\"tunnels\", 1), (\"sessions\", 2)] { s.integer(key, 1..=2); } }";
        assert_eq!(found(text), [key("tunnels", None), key("sessions", None)]);
        let text = "fn a() { match key { \"name\" => f(\"other\"), \"pool\" | \"range\" => {} } }";
        assert_eq!(
            found(text),
            [key("name", None), key("pool", None), key("range", None)]
        );
        let text = "#[derive(Debug, Deserialize)] #[serde(x)] struct A { host: String, #[serde(default)] udp: Option<u16>, }";
        assert_eq!(found(text), [key("host", None), key("udp", None)]);
    }

    #[test]
    fn a_page_has_a_key_in_code_and_in_its_section() {
        let page = Page::read(
            "`mtu` of\n```toml\n[ppp]\nname = 1 # c\n[[pool]]\nranges = 2\n```\nprose\n",
        );
        let has = |name: &str, section: Option<&str>| {
            page.has(&Key {
                name: name.to_owned(),
                section: section.map(str::to_owned),
                place: String::new(),
            })
        };
        assert!(
            has("mtu", None)
                && has("name", None)
                && has("name", Some("ppp"))
                && has("ranges", Some("pool"))
        );
        assert!(
            !has("prose", None) && !has("name", Some("pool")) && !has("address_v6", Some("ppp"))
        );
    }
}
