//! Reads from a crate's sources which of its top-level modules uses which other one.

use crate::lexer::{self, Kind, Token};
use crate::sources::Source;
use std::collections::{BTreeMap, BTreeSet};

/// One module's use of another, and its first place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arrow<'s> {
    pub(super) from: &'s str,
    pub(super) to: &'s str,
    pub(super) path: &'s str,
    pub(super) line: usize,
}

/// The modules that the crate's root declares, except test modules.
pub(super) fn modules<'s>(files: &[&'s Source]) -> Vec<&'s str> {
    let roots = files.iter().filter(|file| inside(file).is_empty());
    let mut modules: Vec<&str> = roots
        .flat_map(|root| {
            let tokens = without_tests(&lexer::code(&root.text));
            let declared = |at: usize| {
                let depth_0 = tokens[..at].iter().fold(0_i32, |depth, token| {
                    depth + i32::from(token.is("{")) - i32::from(token.is("}"))
                }) == 0;
                (tokens[at].is("mod") && depth_0).then(|| tokens.get(at + 1).map(|name| name.text))
            };
            (0..tokens.len())
                .filter_map(declared)
                .flatten()
                .collect::<Vec<_>>()
        })
        .collect();
    modules.sort_unstable();
    modules.dedup();
    modules
}

/// Every use between two of them, deduplicated and sorted.
pub(super) fn arrows<'s>(files: &[&'s Source]) -> Vec<Arrow<'s>> {
    let modules = modules(files);
    let exports = exports(files, &modules);
    let tests = test_modules(files);
    let mut found: BTreeMap<(&str, &str), Arrow<'s>> = BTreeMap::new();
    for file in files {
        let here = inside(file);
        let Some(from) = here.first().copied() else {
            continue;
        };
        if !modules.contains(&from) || tests.iter().any(|test| here.starts_with(test)) {
            continue;
        }
        let tokens = without_tests(&lexer::code(&file.text));
        for (path, line) in paths(&tokens, &here) {
            let Some(first) = path.first().copied() else {
                continue;
            };
            let to = if modules.contains(&first) {
                first
            } else if let Some(module) = exports.get(first) {
                module
            } else {
                continue;
            };
            if to != from {
                let path = file.path.as_str();
                let arrow = Arrow {
                    from,
                    to,
                    path,
                    line,
                };
                found.entry((from, to)).or_insert(arrow);
            }
        }
    }
    found.into_values().collect()
}

/// The modules that a file's path implies: `src/tunnel/id.rs` is `tunnel`, `id`; a root has none.
fn inside(file: &Source) -> Vec<&str> {
    let (_, inside) = file.path.split_once("/src/").unwrap_or_default();
    let mut parts: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
    let last = parts.last().copied();
    if last == Some("mod") || (parts.len() == 1 && matches!(last, Some("lib" | "main"))) {
        parts.pop();
    }
    parts
}

/// The names that the root re-exports, each with its module.
fn exports<'s>(files: &[&'s Source], modules: &[&str]) -> BTreeMap<&'s str, &'s str> {
    let mut exports = BTreeMap::new();
    for root in files.iter().filter(|file| inside(file).is_empty()) {
        let tokens = without_tests(&lexer::code(&root.text));
        for at in (0..tokens.len()).filter(|at| tokens[*at].is("use")) {
            let mut leaves = Vec::new();
            tree(&tokens, at + 1, &[], &mut leaves);
            for (path, alias) in leaves {
                let mut parts = path
                    .iter()
                    .copied()
                    .filter(|part| !["crate", "self"].contains(part));
                if let (Some(first), Some(last)) = (parts.next(), path.last())
                    && modules.contains(&first)
                {
                    exports.insert(alias.unwrap_or(last), first);
                }
            }
        }
    }
    exports
}

/// The modules that are only for tests: `#[cfg(test)] mod tests;` and the like.
fn test_modules<'s>(files: &[&'s Source]) -> BTreeSet<Vec<&'s str>> {
    let mut found = BTreeSet::new();
    for file in files {
        let tokens = lexer::code(&file.text);
        let kept: BTreeSet<&str> = declared(&without_tests(&tokens)).collect();
        for name in declared(&tokens).filter(|name| !kept.contains(name)) {
            let mut module = inside(file);
            module.push(name);
            found.insert(module);
        }
    }
    found
}

fn declared<'a, 's>(tokens: &'a [Token<'s>]) -> impl Iterator<Item = &'s str> + use<'a, 's> {
    tokens
        .windows(3)
        .filter(|three| three[0].is("mod") && three[2].is(";"))
        .map(|three| three[1].text)
}

/// The tokens without items under `#[cfg(test)]`.
fn without_tests<'s>(tokens: &[Token<'s>]) -> Vec<Token<'s>> {
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if is_test_attribute(&tokens[at..]) {
            at = item_end(tokens, at);
        } else {
            kept.push(*token);
            at += 1;
        }
    }
    kept
}

/// Whether this is `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn is_test_attribute(tokens: &[Token<'_>]) -> bool {
    let start = ["#", "[", "cfg", "("];
    tokens.len() > start.len()
        && start.iter().zip(tokens).all(|(text, token)| token.is(text))
        && tokens[start.len()..]
            .iter()
            .take_while(|token| !token.is("]") && !token.is("not"))
            .any(|token| token.is("test"))
}

/// Where the item with the attribute at `at` ends.
fn item_end(tokens: &[Token<'_>], mut at: usize) -> usize {
    let mut depth = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        if token.kind != Kind::Mark {
            continue;
        }
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" if depth == 1 => return at,
            "}" | ")" | "]" => depth -= 1,
            ";" | "," if depth == 0 => return at,
            _ => {}
        }
    }
    at
}

/// Every path that starts with `crate`, `super` or `self`, from the crate's root, with its line.
fn paths<'s>(tokens: &[Token<'s>], here: &[&'s str]) -> Vec<(Vec<&'s str>, usize)> {
    let mut found = Vec::new();
    // Modules inside the file, each with the depth of its brace.
    let mut nested: Vec<(&str, usize)> = Vec::new();
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        let is_joined = at > 1 && tokens[at - 1].is(":") && tokens[at - 2].is(":");
        match token.text {
            "{" if token.kind == Kind::Mark => {
                depth += 1;
                if at > 1 && tokens[at - 2].is("mod") {
                    nested.push((tokens[at - 1].text, depth));
                }
            }
            "}" if token.kind == Kind::Mark => {
                nested.retain(|(_, of)| *of != depth);
                depth -= 1;
            }
            "crate" | "super" | "self" if token.kind == Kind::Word && !is_joined => {
                let mut start: Vec<&str> = Vec::new();
                if token.text != "crate" {
                    start.extend(here.iter().chain(nested.iter().map(|(name, _)| name)));
                }
                if token.text == "super" {
                    start.pop();
                }
                let mut next = at + 1;
                while follows(tokens, next, "super") {
                    start.pop();
                    next += 3;
                }
                if tokens.get(next).is_some_and(|token| token.is(":"))
                    && tokens.get(next + 1).is_some_and(|token| token.is(":"))
                {
                    let mut leaves = Vec::new();
                    tree(tokens, next + 2, &start, &mut leaves);
                    found.extend(leaves.into_iter().map(|(path, _)| (path, token.line)));
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether `::name` is at `at`.
fn follows(tokens: &[Token<'_>], at: usize, name: &str) -> bool {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.is(text));
    is(at, ":") && is(at + 1, ":") && is(at + 2, name)
}

/// A path, and its name from `as`.
type Leaf<'s> = (Vec<&'s str>, Option<&'s str>);

/// Reads `a::b`, `a::{b, c::d}`, `a::*` at `at`, and returns where it ends.
fn tree<'s>(
    tokens: &[Token<'s>],
    mut at: usize,
    prefix: &[&'s str],
    into: &mut Vec<Leaf<'s>>,
) -> usize {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.is(text));
    let mut path = prefix.to_vec();
    loop {
        if is(at, "{") {
            at += 1;
            while at < tokens.len() && !is(at, "}") {
                at = tree(tokens, at, &path, into).max(at + 1);
                if is(at, ",") {
                    at += 1;
                }
            }
            return at + 1;
        }
        let Some(token) = tokens.get(at).filter(|token| token.kind == Kind::Word) else {
            // `*`, or the generics of a call: the path ends before them.
            into.push((path, None));
            return at + usize::from(is(at, "*"));
        };
        if token.text != "self" {
            path.push(token.text);
        }
        at += 1;
        if is(at, ":") && is(at + 1, ":") {
            at += 2;
            continue;
        }
        let alias = is(at, "as").then(|| tokens.get(at + 1)).flatten();
        into.push((path, alias.map(|alias| alias.text)));
        return at + if alias.is_some() { 2 } else { 0 };
    }
}
