//! Parses rules as operators write them: one per line, first match decides.
//!
//! ```text
//! filter residential
//! in
//!     deny tcp from any to any port 25 log
//!     accept ip from 10.0.0.0/8 to any
//! out
//!     accept tcp from any to any established
//!     default deny log
//! ```

mod advice;
mod line;
mod remark;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use advice::advise;
pub use remark::{Remark, Remarks};
pub(crate) use remark::{Wrong, meant, wrong};
pub(crate) use values::{FLAGS, flag_bits, icmp_type, number};

use crate::rule::Rule;
use crate::{Direction, FILTERS_MAX, Names, RULES_MAX, RULES_OF_ALL_MAX};

/// The longest Filter-Id that fits a RADIUS attribute, in octets (RFC 2865 5).
const NAME_MAX: usize = 253;
/// The most faults reported.
const FAULTS_MAX: usize = 50;

/// One direction as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    /// Line of `in` or `out`.
    pub(crate) line: usize,
    pub(crate) rules: Vec<Rule>,
    /// The rule for packets that no other rule matches. An implicit default has `line` 0, and its `text` says
    /// so.
    pub(crate) default: Rule,
}

/// A filter as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// By [`Direction`]; `None` if not filtered.
    pub(crate) directions: [Option<Written>; 2],
}

/// A word of a line, and the column where it starts, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) column: usize,
}

/// The words of a line without its comment; a list continues after its comma.
pub(crate) fn words(line: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let line = line.split('#').next().unwrap_or("");
    let mut is_apart = true;
    for (column, char) in (1..).zip(line.chars()) {
        if char.is_whitespace() {
            is_apart = true;
            continue;
        }
        match words.last_mut() {
            Some(word) if !is_apart || word.text.ends_with(',') || char == ',' => {
                word.text.push(char);
            }
            _ => words.push(Word {
                text: char.into(),
                column,
            }),
        }
        is_apart = false;
    }
    words
}

/// Parses a file of filters, and collects all of its faults.
pub(crate) fn parse(text: &str, names: &Names) -> (Vec<Source>, Remarks) {
    let mut reader = Reader {
        names,
        filters: Vec::new(),
        direction: None,
        rules: 0,
        remarks: Remarks::default(),
    };
    for (index, line) in text.lines().enumerate() {
        let words = words(line);
        let Some(first) = words.first() else {
            continue;
        };
        if let Err(wrong) = reader.line(index + 1, first, &words) {
            reader.remarks.faults.push(wrong.at(index + 1));
            if reader.remarks.faults.len() >= FAULTS_MAX {
                break;
            }
        }
    }
    (reader.filters, reader.remarks)
}

struct Reader<'n> {
    names: &'n Names,
    filters: Vec<Source>,
    /// The direction of the following rules.
    direction: Option<Direction>,
    rules: usize,
    remarks: Remarks,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, first: &Word, words: &[Word]) -> Result<(), Wrong> {
        match first.text.as_str() {
            "filter" => self.filter(number, words),
            "in" => self.section(number, Direction::In, words),
            "out" => self.section(number, Direction::Out, words),
            "default" => self.default(number, words),
            _ => self.rule(number, first, words),
        }
    }

    fn filter(&mut self, line: usize, words: &[Word]) -> Result<(), Wrong> {
        self.direction = None;
        let name = match words {
            [_, name] => name,
            [first, ..] => return Err(wrong(first, "a filter has one name", "filter NAME")),
            [] => return Ok(()),
        };
        if name.text.len() > NAME_MAX || name.text.chars().any(char::is_control) {
            let right = format!("at most {NAME_MAX} octets, no control characters");
            return Err(wrong(name, "cannot be a Filter-Id", right));
        }
        let first = self.filters.iter().find(|filter| filter.name == name.text);
        if let Some(first) = first {
            let message = format!("there is a filter of this name at line {}", first.line);
            return Err(wrong(name, message, "another name"));
        }
        if self.filters.len() >= FILTERS_MAX {
            let message = format!("more than {FILTERS_MAX} filters");
            return Err(wrong(name, message, "fewer"));
        }
        self.filters.push(Source {
            name: name.text.clone(),
            line,
            directions: [None, None],
        });
        Ok(())
    }

    fn section(&mut self, line: usize, direction: Direction, words: &[Word]) -> Result<(), Wrong> {
        self.direction = None;
        let first = &words[0];
        if let Some(more) = words.get(1) {
            let message = format!("follows '{direction}', which stands alone on its line");
            return Err(wrong(more, message, "a line of its own"));
        }
        let Some(filter) = self.filters.last_mut() else {
            let message = "rules without a filter";
            return Err(wrong(first, message, "filter NAME, on a line before"));
        };
        let place = &mut filter.directions[direction as usize];
        if let Some(there) = place {
            let message = format!("filter {} has this at line {}", filter.name, there.line);
            return Err(wrong(first, message, "all rules of a direction there"));
        }
        *place = Some(Written {
            line,
            rules: Vec::new(),
            default: line::default(false, false, 0),
        });
        self.direction = Some(direction);
        Ok(())
    }

    fn open(&mut self, first: &Word) -> Result<&mut Written, Wrong> {
        let direction = self.direction;
        let filter = self.filters.last_mut();
        direction
            .zip(filter)
            .and_then(|(direction, filter)| filter.directions[direction as usize].as_mut())
            .ok_or_else(|| {
                let message = "a rule of no direction";
                let right =
                    "'in' (from the subscriber) or 'out' (to the subscriber), on a line before";
                wrong(first, message, right)
            })
    }

    fn default(&mut self, line: usize, words: &[Word]) -> Result<(), Wrong> {
        let first = &words[0];
        let written = self.open(first)?;
        if written.default.line != 0 {
            let message = format!("there is a default at line {}", written.default.line);
            return Err(wrong(first, message, "one default, at the end"));
        }
        let right = "default deny, or default accept; 'log' may follow";
        let Some(action) = words.get(1) else {
            return Err(wrong(first, "says nothing", right));
        };
        let is_accept = line::action(action)?;
        let is_log = match &words[2..] {
            [] => false,
            [log] if log.text == "log" => true,
            [more, ..] => return Err(wrong(more, "is too much", right)),
        };
        written.default = line::default(is_accept, is_log, line);
        Ok(())
    }

    fn rule(&mut self, number: usize, first: &Word, words: &[Word]) -> Result<(), Wrong> {
        let names = self.names;
        let rule = line::rule(number, words, names)?;
        let total = self.rules;
        let written = self.open(first)?;
        if written.default.line != 0 {
            let message = format!("comes after the default at line {}", written.default.line);
            return Err(wrong(first, message, "rules first, the default last"));
        }
        if written.rules.len() >= RULES_MAX || total >= RULES_OF_ALL_MAX {
            let message = "too many rules";
            let right = format!(
                "{RULES_MAX} in a direction, {RULES_OF_ALL_MAX} in a file; lists of addresses and ports count as one"
            );
            return Err(wrong(first, message, right));
        }
        written.rules.push(rule);
        self.rules += 1;
        Ok(())
    }
}
