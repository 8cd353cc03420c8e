//! Checks the pages of `docs/rfc`: everything they name must exist.
//!
//! A page has one or more tables with the columns `section`, `implemented in` and `tested by`, and possibly
//! others. Text in backticks is checked, prose is not:
//! - implemented in: `crates/l2tp/src/tunnel/mod.rs`, or the end of a path that matches one source, or
//!   `l2tp::tunnel::Tunnel`, which that crate must define. The source must name the RFC, such as "RFC 2661":
//!   the one in the row's section, otherwise the page's.
//! - tested by: `crate::path::test_name` or `file.rs::test_name`, a function with `#[test]` of that name in that crate
//!   or file, or an interop test that `interop/src/cases/mod.rs` runs.
//!
//! A row must name a test, or state why it has none: "left out", "not tested" or "no behaviour".

use crate::cargo::Member;
use crate::functions;
use crate::lexer::{self, Kind};
use crate::sources::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The phrases of which a row without a test must contain one.
const EXCUSES: &[&str] = &["left out", "not tested", "no behaviour"];

/// Reads every page and checks what it names.
///
/// # Errors
/// One line, with page and line number, for each name that does not exist.
pub(crate) fn check(
    root: &Path,
    members: &[Member],
    sources: &[Source],
) -> Result<String, Vec<String>> {
    let pages = pages(root).map_err(|error| vec![format!("docs/rfc: {error}")])?;
    let tree = Tree::new(root, members, sources);
    let mut faults = Vec::new();
    let mut tests = 0;
    for (name, text) in &pages {
        let rows = rows(text);
        if rows.is_empty() {
            faults.push(format!(
                "docs/rfc/{name}: no table with the columns section, implemented in, tested by"
            ));
        }
        for row in rows {
            tests += spans(row.tested_by).len();
            faults.extend(
                tree.faults_of(&row, name.trim_end_matches(".md"))
                    .map(|fault| format!("docs/rfc/{name}:{}: {fault}", row.line)),
            );
        }
    }
    if faults.is_empty() {
        Ok(format!("{} pages name {tests} tests", pages.len()))
    } else {
        Err(faults)
    }
}

fn pages(root: &Path) -> std::io::Result<Vec<(String, String)>> {
    let directory = root.join("docs/rfc");
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "md") {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            pages.push((name, std::fs::read_to_string(&path)?));
        }
    }
    pages.sort();
    Ok(pages)
}

/// A row of a table with our columns.
#[derive(Debug, PartialEq)]
struct Row<'a> {
    line: usize,
    whole: &'a str,
    section: &'a str,
    implemented_in: &'a str,
    tested_by: &'a str,
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut columns: Option<(usize, usize, usize)> = None;
    for (index, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else {
            columns = None;
            continue;
        };
        let is_rule = cells
            .iter()
            .all(|cell| cell.chars().all(|c| "-: ".contains(c)));
        let place = |name: &str| {
            cells
                .iter()
                .position(|cell| cell.eq_ignore_ascii_case(name))
        };
        match columns {
            _ if is_rule => {}
            Some((section, implemented_in, tested_by)) => rows.push(Row {
                line: index + 1,
                whole: line,
                section: cells.get(section).copied().unwrap_or_default(),
                implemented_in: cells.get(implemented_in).copied().unwrap_or_default(),
                tested_by: cells.get(tested_by).copied().unwrap_or_default(),
            }),
            None => {
                columns = place("section")
                    .zip(place("implemented in"))
                    .zip(place("tested by"))
                    .map(|((section, implemented_in), tested_by)| {
                        (section, implemented_in, tested_by)
                    })
            }
        }
    }
    rows
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.trim_end();
    Some(
        inner
            .strip_suffix('|')
            .unwrap_or(inner)
            .split('|')
            .map(str::trim)
            .collect(),
    )
}

/// The texts between backticks.
fn spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The packages whose documentation has code that `cargo test --doc` runs.
pub(crate) fn crates_with_examples<'m>(
    members: &'m [Member],
    root: &Path,
    sources: &[Source],
) -> Vec<&'m str> {
    let has_examples = |member: &&Member| {
        let directory = member.directory.strip_prefix(root);
        let directory = directory.unwrap_or(&member.directory).join("src").join("");
        let prefix = directory.to_string_lossy().into_owned();
        sources
            .iter()
            .any(|source| source.path.starts_with(&prefix) && has_example(&source.text))
    };
    let found = members.iter().filter(has_examples);
    found.map(|member| member.package.as_str()).collect()
}

/// Whether a documentation comment has a block of code that is not marked as something else.
fn has_example(text: &str) -> bool {
    // A README whose examples are tested.
    if text.contains("#[doc = include_str!(\"../README.md\")]") {
        return true;
    }
    let mut in_block = false;
    for line in text.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or(line.strip_prefix("//!"));
        let Some(fence) = comment.and_then(|comment| comment.trim().strip_prefix("```")) else {
            continue;
        };
        if !in_block && !["text", "toml", "sh", "json", "ignore", "console"].contains(&fence) {
            return true;
        }
        in_block = !in_block;
    }
    false
}

/// The list of interop tests.
const CASES: &str = "interop/src/cases/mod.rs";

struct Tree<'a> {
    root: &'a Path,
    members: &'a [Member],
    sources: &'a [Source],
    /// The names that each source defines, by its path.
    defined: BTreeMap<&'a str, Defined<'a>>,
}

/// Names in a source.
struct Defined<'a> {
    items: BTreeSet<&'a str>,
    tests: BTreeSet<&'a str>,
}

impl<'a> Defined<'a> {
    fn read(text: &'a str) -> Defined<'a> {
        const KINDS: &[&str] = &[
            "fn", "struct", "enum", "trait", "type", "const", "static", "mod", "union",
        ];
        let mut tokens = lexer::tokens(text);
        let tests = functions::of(&tokens).into_iter();
        tokens.retain(|token| token.kind != Kind::Comment);
        let items = tokens
            .windows(2)
            .filter(|pair| pair[1].kind == Kind::Word && KINDS.contains(&pair[0].text))
            .map(|pair| pair[1].text);
        Defined {
            items: items.collect(),
            tests: tests
                .filter(|function| function.is_test)
                .map(|function| function.name)
                .collect(),
        }
    }
}

impl<'a> Tree<'a> {
    fn new(root: &'a Path, members: &'a [Member], sources: &'a [Source]) -> Tree<'a> {
        let rust = sources.iter().filter(|source| source.path.ends_with(".rs"));
        Tree {
            root,
            members,
            sources,
            defined: rust
                .map(|source| (source.path.as_str(), Defined::read(&source.text)))
                .collect(),
        }
    }

    fn faults_of<'r>(
        &'r self,
        row: &'r Row<'r>,
        page: &'r str,
    ) -> impl Iterator<Item = String> + 'r {
        let rfc = row.section.strip_prefix("RFC ").map_or(page, |section| {
            let end = section.find(|c: char| !c.is_ascii_digit());
            &section[..end.unwrap_or(section.len())]
        });
        let implemented = spans(row.implemented_in)
            .into_iter()
            .filter_map(move |span| self.fault_in_source(span, rfc));
        let tested = spans(row.tested_by)
            .into_iter()
            .filter_map(|span| self.fault_in_test(span));
        let words = row.whole.to_lowercase();
        let silent =
            spans(row.tested_by).is_empty() && !EXCUSES.iter().any(|excuse| words.contains(excuse));
        let untested = silent.then(|| format!("no test, and none of {EXCUSES:?}"));
        implemented.chain(tested).chain(untested)
    }

    fn fault_in_source(&self, span: &str, rfc: &str) -> Option<String> {
        let files = if span.ends_with(".rs") {
            let files = self.files(span);
            if files.is_empty() {
                return Some(format!("no source file {span}"));
            }
            files
        } else {
            let (krate, path) = span.split_once("::")?;
            let item = path
                .rsplit("::")
                .next()
                .unwrap_or(path)
                .trim_end_matches("()");
            let Some(mut files) = self.crate_files(krate) else {
                return Some(format!("{span}: no crate {krate}"));
            };
            files.retain(|source| {
                let defined = self.defined.get(source.path.as_str());
                defined.is_some_and(|defined| defined.items.contains(item))
                    || modules(source).contains(&item)
            });
            if files.is_empty() {
                return Some(format!("{span}: crate {krate} defines no {item}"));
            }
            files
        };
        let is_cited = files.iter().any(|source| cites(&source.text, rfc));
        let path = &files.first()?.path;
        (!is_cited).then(|| format!("{span}: {path} does not name RFC {rfc}"))
    }

    fn fault_in_test(&self, span: &str) -> Option<String> {
        let Some((place, test)) = span.rsplit_once("::") else {
            return Some(format!(
                "{span}: neither crate::path::test nor file.rs::test"
            ));
        };
        if place.ends_with(".rs") {
            let files = self.files(place);
            if files.is_empty() {
                return Some(format!("{span}: no source file {place}"));
            }
            let found = files.iter().any(|source| self.has_test(source, test));
            return (!found).then(|| format!("{span}: no such test"));
        }
        let mut parts = place.split("::");
        let krate = parts.next().unwrap_or_default();
        let path: Vec<&str> = parts.collect();
        let Some(files) = self.crate_files(krate) else {
            return Some(format!("{span}: no crate {krate}"));
        };
        // An inline module extends a file's path, so the test's path starts with the file's own modules.
        let found = files.iter().any(|source| {
            let fits = path.is_empty() || path.starts_with(&modules(source));
            fits && self.has_test(source, test)
        });
        (!found).then(|| format!("{span}: no such test"))
    }

    fn has_test(&self, source: &Source, test: &str) -> bool {
        let defined = self.defined.get(source.path.as_str());
        let is_test = defined.is_some_and(|defined| defined.tests.contains(test));
        is_test || self.is_case(source, test)
    }

    /// Whether this is an interop test in the list of cases.
    fn is_case(&self, source: &Source, test: &str) -> bool {
        let Some(inside) = source.path.strip_prefix("interop/src/cases/") else {
            return false;
        };
        let run = format!(
            "{}::{test}",
            inside.trim_end_matches(".rs").replace('/', "::")
        );
        let mut cases = self.sources.iter().filter(|source| source.path == CASES);
        cases.any(|cases| has_word(&cases.text, &run))
    }

    fn files(&self, end: &str) -> Vec<&Source> {
        let suffix = format!("/{end}");
        self.sources
            .iter()
            .filter(|source| source.path == end || source.path.ends_with(&suffix))
            .collect()
    }

    fn crate_files(&self, krate: &str) -> Option<Vec<&Source>> {
        let member = self
            .members
            .iter()
            .find(|member| member.name.replace('-', "_") == krate)?;
        let directory = member
            .directory
            .strip_prefix(self.root)
            .unwrap_or(&member.directory)
            .join("");
        let prefix = directory.to_string_lossy().into_owned();
        Some(
            self.sources
                .iter()
                .filter(|source| source.path.starts_with(&prefix))
                .collect(),
        )
    }
}

/// The modules that a file's path implies: `src/tunnel/tests.rs` is `tunnel`, `tests`.
fn modules(source: &Source) -> Vec<&str> {
    let inside = ["/src/", "/tests/", "/examples/", "/benches/"]
        .iter()
        .find_map(|part| source.path.split_once(part))
        .map_or(source.path.as_str(), |(_, inside)| inside);
    let mut parts: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
    // A crate's tests in one binary.
    if parts.first() == Some(&"all") {
        parts.remove(0);
    }
    if parts
        .last()
        .is_some_and(|last| ["lib", "main", "mod"].contains(last))
    {
        parts.pop();
    }
    parts
}

/// Whether a text names an RFC: `RFC 2661`, or in a list, `RFCs 2661 and 3931`.
fn cites(text: &str, rfc: &str) -> bool {
    text.match_indices(rfc).any(|(at, _)| {
        let before = text[..at].char_indices().rev().take(60).last();
        let before = &text[before.map_or(at, |(start, _)| start)..at];
        let between = before.rfind("RFC").map(|start| &before[start + 3..]);
        between.is_some_and(|between| !between.contains(['.', ';', ')', '"']))
            && !text[at + rfc.len()..].starts_with(|c: char| c.is_ascii_digit())
    })
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let joins = |c: char| c.is_alphanumeric() || c == '_';
        !text[..at].chars().next_back().is_some_and(joins)
            && !text[at + word.len()..].chars().next().is_some_and(joins)
    })
}

#[cfg(test)]
mod tests;
