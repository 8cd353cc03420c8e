//! Commands of words: rules are patterns in which a word in capitals stands for any one word.

use crate::report::{Fate, Place, Report, Rule};

/// A command that matches a rule.
#[derive(Debug)]
pub(crate) struct Match<'w> {
    pub(crate) rule: &'static Rule,
    /// The words that stand for capitals.
    pub(crate) names: Vec<&'w str>,
    /// The words behind the pattern.
    pub(crate) rest: &'w [&'w str],
    /// How many words of the pattern are not in capitals: the more, the better the match.
    pub(crate) literal: usize,
}

/// The rule with the most words that matches the start of `words`.
pub(crate) fn find<'w>(rules: &'static [Rule], words: &'w [&'w str]) -> Option<Match<'w>> {
    let found = rules.iter().filter_map(|rule| {
        let pattern: Vec<&str> = rule.name.split(' ').collect();
        let head = words.get(..pattern.len())?;
        let mut names = Vec::new();
        for (pattern, word) in pattern.iter().zip(head) {
            if pattern.starts_with(|c: char| c.is_ascii_uppercase()) {
                names.push(*word);
            } else if pattern != word {
                return None;
            }
        }
        let literal = pattern.len() - names.len();
        let rest = &words[pattern.len()..];
        Some(Match {
            rule,
            names,
            rest,
            literal,
        })
    });
    found.max_by_key(|found| found.literal)
}

/// Reports a command that is no key, or returns its match. `no COMMAND` of a command that is no key changes nothing.
pub(crate) fn settle<'w>(
    rules: &'static [Rule],
    words: &'w [&'w str],
    at: &Place,
    report: &mut Report,
) -> Option<Match<'w>> {
    if let Some(found) = find(rules, words) {
        if found.rule.fate == Fate::Key {
            return Some(found);
        }
        report.rule(at, found.rule, &found.rest.join(" "));
        return None;
    }
    if let ["no", rest @ ..] = words
        && let Some(found) = find(rules, rest)
    {
        report.line(at, found.rule.name, Fate::Kept, "the option is not set");
        return None;
    }
    report.unknown(at, "", "not a command that headend import knows");
    None
}
