//! l2tpns: `startup-config`, `ip_pool` and `users`.
//!
//! | file | contents |
//! |---|---|
//! | `rules` | every variable and command, and what becomes of it |
//! | `settings` | the variables |
//! | `servers` | the variables of RADIUS |
//! | `lists` | access lists, which become packet filters |
//! | `routes` | the neighbours of BGP |

mod lists;
mod routes;
mod rules;
mod servers;
mod settings;

use std::collections::BTreeMap;
use std::path::Path;

use crate::files::{Files, Source};
use crate::pattern;
use crate::report::{Fate, Place};
use crate::{Import, Rule};

/// Where the main file is on a host that runs l2tpns.
pub const USUAL: &[&str] = &["/etc/l2tpns/startup-config"];

/// Every variable, then every other command.
pub const RULES: [&[Rule]; 2] = [rules::VARIABLES, rules::COMMANDS];

/// Characters that start a comment.
const COMMENTS: &[u8] = b"#!";

/// What the commands of a line belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Top,
    Bgp,
    /// The number of an access list.
    List(usize),
    /// A list whose header was refused; l2tpns refuses its rules too.
    NoList,
    /// After `quit`.
    End,
}

/// The value of a variable, and its line.
type Setting = (String, Place);

/// The import while it is made.
struct Work {
    import: Import,
    block: Block,
    settings: BTreeMap<&'static str, Setting>,
    lists: Vec<lists::List>,
    bgp: routes::Bgp,
}

/// Reads startup-config, which is the first file, and the two other files of its folder.
pub fn read(files: &mut Files) -> Import {
    let given = files.given(COMMENTS);
    let name = given
        .first()
        .map_or("nothing", |main| &main.name)
        .to_owned();
    let mut work = Work {
        import: Import::new("l2tpns", &name),
        block: Block::Top,
        settings: BTreeMap::new(),
        lists: Vec::new(),
        bgp: routes::Bgp::default(),
    };
    work.import.head.push_str(
        "\nl2tpns ends the older session of a user who opens another; headend does so only with sessions in users.toml.",
    );
    let mut rest = given.iter();
    if let Some(main) = rest.next() {
        work.startup(main);
    }
    let mut has = [false; 2];
    for file in rest {
        let is_pool = file_name(file).contains("pool");
        has[usize::from(is_pool)] = true;
        work.side_file(file, is_pool);
    }
    for (path, is_pool) in [("/etc/l2tpns/users", false), ("/etc/l2tpns/ip_pool", true)] {
        if !has[usize::from(is_pool)]
            && let Ok(file) = files.find(path, COMMENTS)
        {
            work.side_file(&file, is_pool);
        }
    }
    work.finish();
    work.import
}

fn file_name(file: &Source) -> String {
    let name = Path::new(&*file.name).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Work {
    fn startup(&mut self, file: &Source) {
        file.report_bad_lines(&mut self.import.report);
        for (number, line) in file.lines() {
            let words = words(line);
            if words.is_empty() {
                continue;
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            self.command(&words, &file.at(number));
        }
    }

    fn command(&mut self, words: &[&str], at: &Place) {
        let report = &mut self.import.report;
        if self.block == Block::End {
            let why = "l2tpns reads nothing after quit";
            return report.line(at, "", Fate::NoEffect, why);
        }
        if let ["set", rest @ ..] = words {
            self.block = Block::Top;
            return self.set(rest, at);
        }
        let Some(found) = pattern::settle(rules::COMMANDS, words, at, report) else {
            match words {
                ["quit"] => self.block = Block::End,
                ["exit"] => self.block = Block::Top,
                _ => {}
            }
            return;
        };
        let (rule, rest) = (found.rule, found.rest);
        match rule.name {
            "permit" | "deny" => self.list_rule(rule.name, rest, at),
            "ip access-list standard" | "ip access-list extended" => {
                self.list(rest, rule.name.ends_with("extended"), at);
            }
            "no ip access-list" => self.no_list(rest, at),
            "router bgp" => self.router(rest, at),
            "no neighbour" => self.no_neighbour(rest, at),
            _ => self.neighbour(rule.name, &found.names, rest, at),
        }
    }

    fn set(&mut self, words: &[&str], at: &Place) {
        let report = &mut self.import.report;
        let Some(name) = words.first() else {
            return report.unknown(at, "set", "not of the form set VARIABLE VALUE");
        };
        let Some(rule) = rules::VARIABLES.iter().find(|rule| rule.name == *name) else {
            let names: Vec<&str> = rules::VARIABLES.iter().map(|rule| rule.name).collect();
            let why = match base::nearest(name, &names) {
                Some(right) => format!("not a variable; did you mean {right}?"),
                None => "not a variable".to_owned(),
            };
            return report.unknown(at, name, &why);
        };
        let [_, value] = words else {
            return report.unknown(at, rule.name, "not of the form set VARIABLE VALUE");
        };
        if rule.fate != Fate::Key {
            return report.rule(at, rule, value);
        }
        let setting = ((*value).to_owned(), at.clone());
        if let Some((_, old)) = self.settings.insert(rule.name, setting) {
            let why = "a later line sets it again";
            report.line(&old, rule.name, Fate::NoEffect, why);
        }
    }

    /// `ip_pool`, or the users of the command line.
    fn side_file(&mut self, file: &Source, is_pool: bool) {
        file.report_bad_lines(&mut self.import.report);
        for (number, line) in file.lines() {
            let text = line.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let at = file.at(number);
            if is_pool {
                self.pool_line(text, &at);
            } else {
                let why = "headend has no telnet command line; its control socket is for its owner";
                self.import.report.line(&at, "user", Fate::NoEffect, why);
            }
        }
    }

    fn finish(&mut self) {
        self.take_settings();
        self.take_lists();
        self.take_bgp();
    }
}

/// The words of a command, as l2tpns's command line reads them: a `#` starts a comment, also inside quotes.
fn words(line: &str) -> Vec<String> {
    let text = line.split('#').next().unwrap_or_default().trim();
    let mut words = Vec::new();
    if text.starts_with('!') {
        return words;
    }
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (c, quote) {
            ('\\', _) => word
                .get_or_insert_default()
                .push(rest.next().unwrap_or('\\')),
            (c, Some(open)) if c == open => {
                words.extend(word.take());
                quote = None;
            }
            ('"' | '\'', None) => {
                words.extend(word.take());
                word = Some(String::new());
                quote = Some(c);
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_have_quotes_and_comments() {
        assert_eq!(words("set a \"b c\" # d"), ["set", "a", "b c"]);
        assert_eq!(words("set a ''"), ["set", "a", ""]);
        assert_eq!(words("set a \"b#c\""), ["set", "a", "b"]);
        assert_eq!(words(" ! set a b"), [""; 0]);
    }
}
