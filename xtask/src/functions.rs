//! How long a function may be: 70 lines, from `fn` to its closing brace.
//!
//! A longer one needs a reason in a comment directly above it: `// long: REASON`. A total table of states and
//! events is such a reason. `xtask/long-functions.txt` lists functions that still have to be split. A line of
//! it that matches no long function is a fault, so the list can only get shorter.

use crate::lexer::{self, Kind, Token};
use crate::sources::Source;
use std::path::Path;

/// The longest a function may be without a reason.
const LINES_MAX: usize = 70;

/// The list of functions that still have to be split, as `file.rs::name`.
const LIST: &str = "xtask/long-functions.txt";

/// A function of the tree.
#[derive(Debug, PartialEq)]
pub(crate) struct Function<'t> {
    pub(crate) name: &'t str,
    /// The line of `fn`.
    pub(crate) line: usize,
    /// From `fn` to the closing brace.
    pub(crate) lines: usize,
    /// The reason in `// long:` above it.
    reason: Option<&'t str>,
    /// Whether it has an attribute `#[test]`.
    pub(crate) is_test: bool,
}

/// Checks every function's length.
///
/// # Errors
/// One line for each function that is too long, that has a needless reason, or that is listed but no longer too
/// long.
pub(crate) fn check(root: &Path, sources: &[Source]) -> Result<String, Vec<String>> {
    let list = std::fs::read_to_string(root.join(LIST))
        .map_err(|error| vec![format!("{LIST}: {error}")])?;
    check_against(&list, sources)
}

fn check_against(list: &str, sources: &[Source]) -> Result<String, Vec<String>> {
    let mut listed: Vec<(&str, bool)> = list
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| (line, false))
        .collect();
    let mut faults = Vec::new();
    let (mut count, mut reasons) = (0, 0);
    for source in sources.iter().filter(|source| source.path.ends_with(".rs")) {
        let file = source.path.rsplit('/').next().unwrap_or_default();
        for function in functions(&source.text) {
            count += 1;
            let Function { name, lines, .. } = function;
            let place = format!("{}:{}", source.path, function.line);
            match (lines > LINES_MAX, function.reason) {
                (true, Some("")) => faults.push(format!("{place}: // long: gives no reason")),
                (true, Some(_)) => reasons += 1,
                (true, None) => {
                    let own = format!("{file}::{name}");
                    match listed.iter_mut().find(|(name, _)| *name == own) {
                        Some((_, used)) => *used = true,
                        None => faults.push(format!(
                            "{place}: {name} has {lines} lines, {LINES_MAX} is the most; split it, or write \
                             `// long: REASON` above it"
                        )),
                    }
                }
                (false, Some(_)) => faults.push(format!(
                    "{place}: {name} has {lines} lines and needs no `// long:`"
                )),
                (false, None) => {}
            }
        }
    }
    let stale = listed.iter().filter(|(_, used)| !used);
    faults.extend(stale.map(|(name, _)| {
        format!("{LIST}: {name} is not too long any more, or not there; remove the line")
    }));
    if faults.is_empty() {
        let listed = listed.len();
        Ok(format!(
            "{count} functions; longer than {LINES_MAX} lines: {reasons} with a reason, {listed} in {LIST}"
        ))
    } else {
        Err(faults)
    }
}

/// The functions with a body in a Rust source, including those in macros and inside other functions.
pub(crate) fn functions(text: &str) -> Vec<Function<'_>> {
    of(&lexer::tokens(text))
}

/// The functions among the tokens of a source.
pub(crate) fn of<'t>(tokens: &[Token<'t>]) -> Vec<Function<'t>> {
    let starts = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.kind == Kind::Word && token.text == "fn");
    starts
        .filter_map(|(at, start)| {
            let after = &tokens[at + 1..];
            // A macro writes `fn $name`.
            let name = after.iter().find(|token| !token.is("$"))?;
            if name.kind != Kind::Word {
                return None;
            }
            let end = end(after)?;
            let above = above(&tokens[..at]);
            let reason = above
                .iter()
                .filter(|token| token.kind == Kind::Comment)
                .find_map(|token| token.text.strip_prefix("// long:"));
            let is_test = above
                .windows(3)
                .any(|three| three[0].is("[") && three[1].is("test") && three[2].is("]"));
            Some(Function {
                name: name.text,
                line: start.line,
                lines: end + 1 - start.line,
                reason: reason.map(str::trim),
                is_test,
            })
        })
        .collect()
}

/// The comments, attributes and words such as `pub` that belong to the following item.
fn above<'a, 't>(before: &'a [Token<'t>]) -> &'a [Token<'t>] {
    let mut start = before.len();
    let mut depth = 0;
    for (at, token) in before.iter().enumerate().rev() {
        match token.text {
            _ if token.kind != Kind::Mark => {}
            "]" | ")" => depth += 1,
            "[" | "(" if depth > 0 => depth -= 1,
            "{" | "}" | ";" | "," | "(" | "[" if depth == 0 => break,
            _ => {}
        }
        start = at;
    }
    &before[start..]
}

/// The line of the brace that closes the body; `None` for a function without a body.
fn end(after: &[Token<'_>]) -> Option<usize> {
    // Depth of brackets of every kind, and whether one of them is the body's brace.
    let (mut depth, mut in_body) = (0, false);
    let mut before = "";
    for token in after.iter().filter(|token| token.kind != Kind::Comment) {
        if token.kind == Kind::Mark {
            match token.text {
                "{" => {
                    // In `Array<{ N }>` a brace does not open the body.
                    in_body |= depth == 0 && before != "<";
                    depth += 1;
                }
                "(" | "[" => depth += 1,
                ")" | "]" => depth -= 1,
                "}" => {
                    depth -= 1;
                    if depth == 0 && in_body {
                        return Some(token.line);
                    }
                }
                ";" if depth == 0 => return None,
                _ => {}
            }
            if depth < 0 {
                return None;
            }
        }
        before = token.text;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: String) -> Vec<Source> {
        vec![Source {
            path: "crates/a/src/b.rs".to_owned(),
            text,
        }]
    }

    fn function(above: &str, lines: usize) -> String {
        format!(
            "{above}pub(crate) fn f<'a>(x: [u8; 2]) -> u8 {{{}}}\n",
            "\n".repeat(lines - 1)
        )
    }

    #[test]
    fn a_function_over_the_limit_needs_a_reason_or_a_line_in_the_list() {
        assert!(check_against("", &source(function("", LINES_MAX))).is_ok());
        let long = || function("", LINES_MAX + 1);
        assert_eq!(check_against("", &source(long())).unwrap_err().len(), 1);
        assert!(check_against("# why\nb.rs::f\n", &source(long())).is_ok());
        let reason = "// long: a total table\n#[inline]\n/// Docs.\n";
        assert!(check_against("", &source(function(reason, LINES_MAX + 1))).is_ok());
        let silent = "// long:\n";
        assert!(check_against("", &source(function(silent, LINES_MAX + 1))).is_err());
    }

    #[test]
    fn a_reason_or_a_line_that_is_not_needed_is_a_fault() {
        let reason = "// long: a total table\n";
        assert!(check_against("", &source(function(reason, LINES_MAX))).is_err());
        assert!(check_against("b.rs::f", &source(function("", LINES_MAX))).is_err());
        assert!(check_against("b.rs::g", &source(String::new())).is_err());
    }

    #[test]
    fn a_reason_belongs_to_the_next_function_alone() {
        let text = format!(
            "// long: a table\nfn g() {{}}\n{}",
            function("", LINES_MAX + 1)
        );
        assert_eq!(check_against("", &source(text)).unwrap_err().len(), 2);
    }

    #[test]
    fn braces_in_strings_characters_and_types_close_nothing() {
        let text = "fn a() -> A<{ 1 }> where X: Y {\n'}'; \"}\"; // }\n let f: fn(u8) -> u8;\n}\ntrait T { fn b(&self); }\n";
        let found = functions(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].name, found[0].line, found[0].lines), ("a", 1, 4));
    }

    #[test]
    fn tests_are_known_in_macros_too() {
        let text = "proptest! {\n #[test]\n fn a(x in 0..2) { f(); }\n}\n#[test] // why\n#[cfg(x)]\nfn b() {}\nfn c() {}";
        let found: Vec<(&str, bool)> = functions(text)
            .iter()
            .map(|function| (function.name, function.is_test))
            .collect();
        assert_eq!(found, [("a", true), ("b", true), ("c", false)]);
    }
}
