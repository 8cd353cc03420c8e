//! Checks for banned phrases: `xtask/words.txt` lists them, each with its replacement.
//!
//! Pages (`*.md`) and, in Rust sources, comments and string literals (including `--help`) are checked. Other
//! sources are checked as a whole. A phrase is found across a line break, but not inside a word.
//!
//! `xtask/words-left.txt` holds the number of phrases that each folder still has. The check fails if a folder
//! has more. `cargo xtask words [PATH]` lists each with file and line; `cargo xtask words --write` updates the
//! numbers if their sum has not grown.

use crate::lexer::{self, Kind};
use crate::sources::Source;
use std::collections::BTreeMap;
use std::path::Path;

/// The list of phrases.
const LIST: &str = "xtask/words.txt";

/// The remaining number of phrases, by folder.
const LEFT: &str = "xtask/words-left.txt";

/// The contents of `words.txt`.
#[derive(Debug, Default)]
struct Rules<'t> {
    bans: Vec<(&'t str, &'t str)>,
    /// Path and phrase.
    exempt: Vec<(&'t str, &'t str)>,
}

/// A banned phrase in a text.
#[derive(Debug, PartialEq)]
struct Hit<'t> {
    path: &'t str,
    line: usize,
    phrase: &'t str,
    instead: &'t str,
}

/// Checks that no folder has more phrases than `words-left.txt` allows.
///
/// # Errors
/// One line for each folder with more, for each needless exemption, and for each unreadable line.
pub(crate) fn check(
    root: &Path,
    sources: &[Source],
    pages: &[Source],
) -> Result<String, Vec<String>> {
    let list = read(root, LIST)?;
    let left = read(root, LEFT)?;
    let rules = rules(&list).map_err(|fault| vec![fault])?;
    let (hits, mut faults) = find(&rules, sources.iter().chain(pages));
    let now = by_folder(&hits);
    let allowed = counts(&left);
    for (folder, count) in &now {
        let allowed = allowed.get(folder).copied().unwrap_or_default();
        if *count > allowed {
            faults.push(format!(
                "{folder}: {count} banned phrases, {allowed} are left from before; `cargo xtask words {folder}` lists them"
            ));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let (now, allowed): (usize, usize) = (now.values().sum(), allowed.values().sum());
    let lower = if now < allowed {
        format!("; {LEFT} allows {allowed}, `cargo xtask words --write` lowers it")
    } else {
        String::new()
    };
    Ok(format!(
        "{} phrases are banned, {now} places are left{lower}",
        rules.bans.len()
    ))
}

/// Lists every place below `path`; true if there is none.
pub(crate) fn list(root: &Path, sources: &[Source], pages: &[Source], path: &str) -> bool {
    let outcome = read(root, LIST).and_then(|list| {
        let rules = rules(&list).map_err(|fault| vec![fault])?;
        let (hits, faults) = find(&rules, sources.iter().chain(pages));
        let is_below = |hit: &&Hit<'_>| {
            path.is_empty() || hit.path.starts_with(path) || folder(hit.path) == path
        };
        let hits: Vec<&Hit<'_>> = hits.iter().filter(is_below).collect();
        for hit in &hits {
            println!(
                "{}:{}: {:?}: write {}",
                hit.path, hit.line, hit.phrase, hit.instead
            );
        }
        println!("{} places", hits.len());
        if faults.is_empty() {
            Ok(hits.is_empty())
        } else {
            Err(faults)
        }
    });
    outcome.unwrap_or_else(|faults| refuse(&faults))
}

/// Updates the numbers; true if they could be written.
pub(crate) fn write(root: &Path, sources: &[Source], pages: &[Source]) -> bool {
    let outcome = read(root, LIST).and_then(|list| {
        let rules = rules(&list).map_err(|fault| vec![fault])?;
        let (hits, faults) = find(&rules, sources.iter().chain(pages));
        if !faults.is_empty() {
            return Err(faults);
        }
        let now = by_folder(&hits);
        let before: Option<usize> = read(root, LEFT)
            .ok()
            .map(|left| counts(&left).values().sum());
        let sum: usize = now.values().sum();
        if let Some(before) = before.filter(|before| sum > *before) {
            return Err(vec![format!(
                "{sum} banned phrases are more than the {before} of {LEFT}"
            )]);
        }
        let mut text = String::from(
            "# Banned phrases that are left, by folder; a number may only fall. See words.txt.\n",
        );
        for (folder, count) in &now {
            text.push_str(&format!("{count} {folder}\n"));
        }
        std::fs::write(root.join(LEFT), text).map_err(|error| vec![format!("{LEFT}: {error}")])?;
        println!("{LEFT}: {sum} in {} folders", now.len());
        Ok(true)
    });
    outcome.unwrap_or_else(|faults| refuse(&faults))
}

fn refuse(faults: &[String]) -> bool {
    for fault in faults {
        eprintln!("{fault}");
    }
    false
}

fn read(root: &Path, name: &str) -> Result<String, Vec<String>> {
    std::fs::read_to_string(root.join(name)).map_err(|error| vec![format!("{name}: {error}")])
}

fn rules(list: &str) -> Result<Rules<'_>, String> {
    let mut rules = Rules::default();
    for (index, line) in list.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let fault = || {
            format!(
                "{LIST}:{}: neither `ban PHRASE: INSTEAD` nor `exempt PATH PHRASE: REASON`",
                index + 1
            )
        };
        let (kind, rest) = line.split_once(' ').ok_or_else(fault)?;
        let (what, why) = rest.split_once(": ").ok_or_else(fault)?;
        match kind {
            "ban" => rules.bans.push((what, why)),
            "exempt" => rules.exempt.push(what.split_once(' ').ok_or_else(fault)?),
            _ => return Err(fault()),
        }
    }
    Ok(rules)
}

/// Every place that is not exempt, and a fault for each needless exemption.
fn find<'t>(
    rules: &Rules<'t>,
    sources: impl Iterator<Item = &'t Source>,
) -> (Vec<Hit<'t>>, Vec<String>) {
    let mut used = vec![false; rules.exempt.len()];
    let mut hits = Vec::new();
    for source in sources {
        for hit in in_source(rules, source) {
            let exempt = rules
                .exempt
                .iter()
                .position(|(path, phrase)| hit.path.starts_with(path) && hit.phrase == *phrase);
            match exempt {
                Some(index) => used[index] = true,
                None => hits.push(hit),
            }
        }
    }
    let stale = rules.exempt.iter().zip(used).filter(|(_, used)| !used);
    let faults = stale
        .map(|((path, phrase), _)| {
            format!("{LIST}: the exemption of {path} from {phrase:?} is not needed; remove it")
        })
        .collect();
    (hits, faults)
}

fn in_source<'t>(rules: &Rules<'t>, source: &'t Source) -> Vec<Hit<'t>> {
    let mut prose = Prose::default();
    if source.path.ends_with(".rs") {
        let mut was_comment = false;
        for token in lexer::tokens(&source.text) {
            let is_comment = token.kind == Kind::Comment;
            if is_comment || token.kind == Kind::Text {
                // The lines of a comment form one text; a string is a text by itself.
                if !(was_comment && is_comment) {
                    prose.part();
                }
                prose.add(token.text.trim_start_matches(['/', '!', '*']), token.line);
            }
            was_comment = is_comment;
        }
    } else {
        for (index, line) in source.text.lines().enumerate() {
            if line.trim().is_empty() {
                prose.part();
            }
            prose.add(line.trim_start_matches(['#', '/', '>', ' ']), index + 1);
        }
    }
    let mut hits = Vec::new();
    let lower = prose.text.to_ascii_lowercase();
    for (phrase, instead) in &rules.bans {
        let in_capitals = phrase.chars().all(|c| !c.is_ascii_lowercase());
        let text = if in_capitals { &prose.text } else { &lower };
        for at in places(text, phrase) {
            hits.push(Hit {
                path: &source.path,
                line: prose.line(at),
                phrase,
                instead,
            });
        }
    }
    hits.sort_by_key(|hit| hit.line);
    hits
}

/// Sentences without their line breaks.
#[derive(Default)]
struct Prose {
    text: String,
    /// Where a line starts in the text, and its number.
    lines: Vec<(usize, usize)>,
}

impl Prose {
    fn add(&mut self, text: &str, line: usize) {
        for (index, part) in text.lines().enumerate() {
            self.lines.push((self.text.len(), line + index));
            for word in part.split_whitespace() {
                self.text.push_str(word);
                self.text.push(' ');
            }
        }
    }

    /// Marks that the following text does not continue the sentence.
    fn part(&mut self) {
        self.text.push('\n');
    }

    fn line(&self, at: usize) -> usize {
        let after = self.lines.partition_point(|(start, _)| *start <= at);
        self.lines[..after].last().map_or(1, |(_, line)| *line)
    }
}

/// The positions of `phrase` in `text` as whole words.
fn places<'a>(text: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(phrase)
        .map(|(at, _)| at)
        .filter(move |at| {
            !text[..*at].chars().next_back().is_some_and(joins)
                && !text[at + phrase.len()..].chars().next().is_some_and(joins)
        })
}

/// The folder under which a file's phrases are counted: a crate, a folder of pages, or the root.
fn folder(path: &str) -> &str {
    let depth = match path {
        _ if path.starts_with("crates/tools/") => 3,
        _ if path.starts_with("crates/") || path.starts_with("docs/rfc/") => 2,
        _ => 1,
    };
    let ends = path.match_indices('/').map(|(at, _)| at);
    ends.take(depth).last().map_or(".", |end| &path[..end])
}

fn by_folder<'t>(hits: &[Hit<'t>]) -> BTreeMap<&'t str, usize> {
    let mut counts = BTreeMap::new();
    for hit in hits {
        *counts.entry(folder(hit.path)).or_default() += 1;
    }
    counts
}

/// Reads `NUMBER FOLDER` lines.
fn counts(left: &str) -> BTreeMap<&str, usize> {
    left.lines()
        .filter_map(|line| {
            let (count, folder) = line.split_once(' ')?;
            Some((folder, count.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "# why\nban is told: receives\nban dear: expensive\nban TAKEN: LEASED\n";

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let rules = rules(RULES).unwrap();
        let source = Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let hits = in_source(&rules, &source);
        hits.iter()
            .map(|hit| (hit.line, hit.phrase.to_owned()))
            .collect()
    }

    #[test]
    fn phrases_are_found_in_comments_and_strings_alone() {
        let text = "/// A peer is\n/// told.\nfn dear() {}\nlet a = \"Dear\"; // endear\n";
        assert_eq!(
            found("a.rs", text),
            [(1, "is told".to_owned()), (4, "dear".to_owned())]
        );
    }

    #[test]
    fn a_page_is_looked_at_as_a_whole_and_paragraphs_apart() {
        let text = "A peer is\ntold. It is\n\ntold TAKEN and taken.\n";
        assert_eq!(
            found("a.md", text),
            [(1, "is told".to_owned()), (4, "TAKEN".to_owned())]
        );
    }

    #[test]
    fn an_exemption_holds_for_its_path_and_phrase_and_has_to_be_needed() {
        let text = format!("{RULES}exempt docs/a dear: a letter\nexempt docs/b dear: a letter\n");
        let rules = rules(&text).unwrap();
        let source = |path: &str| Source {
            path: path.to_owned(),
            text: "Dear peer".to_owned(),
        };
        let sources = [source("docs/a.md"), source("docs/c.md")];
        let (hits, faults) = find(&rules, sources.iter());
        assert_eq!(hits.len(), 1, "{hits:?}");
        assert_eq!(hits[0].path, "docs/c.md");
        assert_eq!(faults.len(), 1, "{faults:?}");
    }

    #[test]
    fn phrases_are_counted_by_crate_and_folder() {
        for (path, wanted) in [
            ("README.md", "."),
            ("docs/bgp.md", "docs"),
            ("docs/rfc/2661.md", "docs/rfc"),
            ("crates/l2tp/src/a/b.rs", "crates/l2tp"),
            ("crates/tools/trace/src/a.rs", "crates/tools/trace"),
            ("interop/src/a.rs", "interop"),
        ] {
            assert_eq!(folder(path), wanted);
        }
    }
}
