//! accel-ppp: `accel-ppp.conf`, and the chap-secrets file that it names.
//!
//! | file | contents |
//! |---|---|
//! | `rules` | every option and module, and what becomes of it |
//! | `keys` | options that become one key each |
//! | `access` | PPPoE, L2TP and authentication |
//! | `pools` | address pools, prefix pools and name servers |
//! | `servers` | RADIUS |
//! | `users` | chap-secrets |

mod access;
mod keys;
mod pools;
mod rules;
mod servers;
mod users;

use std::collections::BTreeMap;

use crate::document::Value;
use crate::files::{DEPTH_MAX, Files, Source};
use crate::report::{Fate, Place};
use crate::{Import, Rule};

/// Where the main file is on a host that runs accel-ppp.
pub const USUAL: &[&str] = &["/etc/accel-ppp.conf", "/etc/accel-ppp/accel-ppp.conf"];

/// Every option, then every section without keys, then every module.
pub const RULES: [&[Rule]; 3] = [rules::OPTIONS, rules::SECTIONS, rules::MODULES];

/// Characters that start a comment.
const COMMENTS: &[u8] = b"#";

/// The value of an option, and its line.
type Setting = (String, Place);

/// The import while it is made.
struct Work<'f> {
    import: Import,
    files: &'f mut Files,
    /// The modules that are loaded; none known if the file has no list.
    modules: BTreeMap<String, Place>,
    has_modules: bool,
    /// Options that are set once: the first line counts.
    settings: BTreeMap<&'static str, Setting>,
    /// Options that add to a list, in order.
    lists: Vec<(&'static str, Setting)>,
}

/// Reads accel-ppp.conf, which is the first file.
pub fn read(files: &mut Files) -> Import {
    let given = files.given(COMMENTS);
    let name = given.first().map_or("nothing", |main| &main.name);
    let mut work = Work {
        import: Import::new("accel-ppp", name),
        files,
        modules: BTreeMap::new(),
        has_modules: false,
        settings: BTreeMap::new(),
        lists: Vec::new(),
    };
    if let Some(main) = given.first() {
        let mut lines = Vec::new();
        work.lines(main, 0, &mut lines);
        work.modules(&lines);
        work.options(&lines);
    }
    work.finish();
    work.import
}

/// Options of which a file may have several lines.
const LISTS: &[&str] = &[
    "pppoe interface",
    "pppoe vlan-mon",
    "ip-pool RANGE",
    "ip-pool tunnel",
    "ipv6-pool PREFIX",
    "ipv6-pool delegate",
    "ipv6-dns ADDRESS",
    "ipv6-dns dns",
    "ipv6-dns dnssl",
    "radius server",
];

/// The name of a section's header.
fn header(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.split(']').next()?;
    Some(name.trim())
}

/// Older names of options.
const ALIASES: &[(&str, &str)] = &[
    ("pppoe AC-Name", "pppoe ac-name"),
    ("pppoe Service-Name", "pppoe service-name"),
    ("pppoe PADO-Delay", "pppoe pado-delay"),
    ("radius fail-time", "radius fail-timeout"),
];

impl Work<'_> {
    /// The lines that count, with those of the files that `$include` names in their place.
    fn lines(&mut self, file: &Source, depth: usize, all: &mut Vec<Setting>) {
        file.report_bad_lines(&mut self.import.report);
        for (number, line) in file.lines() {
            let (line, at) = (line.trim(), file.at(number));
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some(path) = line.strip_prefix("$include") else {
                all.push((line.to_owned(), at));
                continue;
            };
            let found = match depth {
                DEPTH_MAX.. => Err("files include one another too deeply".to_owned()),
                _ => self.files.find(path.trim(), COMMENTS),
            };
            match found {
                Ok(found) => {
                    let why = "the lines of the file follow";
                    self.import.report.line(&at, "$include", Fate::Kept, why);
                    self.lines(&found, depth + 1, all);
                }
                Err(why) => self.import.report.lost(&at, "$include", &why),
            }
        }
    }

    /// Reads `[modules]`, on which the meaning of other sections depends.
    fn modules(&mut self, lines: &[Setting]) {
        let mut is_in = false;
        for (line, at) in lines {
            if let Some(name) = header(line) {
                is_in = name == "modules";
                self.has_modules |= is_in;
                continue;
            }
            if !is_in {
                continue;
            }
            let name = line.rsplit('/').next().unwrap_or(line).trim();
            let name = name.strip_prefix("lib").unwrap_or(name);
            let name = name.strip_suffix(".so").unwrap_or(name);
            let Some(rule) = rules::MODULES.iter().find(|rule| rule.name == name) else {
                let names: Vec<&str> = rules::MODULES.iter().map(|rule| rule.name).collect();
                self.unknown(at, line, "not a module", &names);
                continue;
            };
            if rule.fate != Fate::Key {
                self.import.report.rule(at, rule, "");
            }
            let earlier = self.modules.insert(name.to_owned(), at.clone());
            if let Some(earlier) = earlier.filter(|_| rule.fate == Fate::Key) {
                let why = "a later line loads it again";
                let report = &mut self.import.report;
                report.line(&earlier, rule.name, Fate::NoEffect, why);
            }
        }
    }

    fn unknown(&mut self, at: &Place, name: &str, what: &str, names: &[&str]) {
        let right = base::nearest(name, names);
        let why = right.map_or(what.to_owned(), |right| {
            format!("{what}; did you mean {right}?")
        });
        // The text of a line that is not known may be a secret.
        self.import.report.unknown(at, "", &why);
    }

    /// Whether a module is loaded, or the file does not say so.
    fn is_loaded(&self, module: &str) -> bool {
        !self.has_modules || self.modules.contains_key(module)
    }

    fn options(&mut self, lines: &[Setting]) {
        let mut section = String::new();
        for (line, at) in lines {
            if let Some(name) = header(line) {
                name.clone_into(&mut section);
                let known = |rule: &Rule| rule.name == section || is_of(rule.name, &section);
                let is_known =
                    section == "modules" || RULES[..2].iter().any(|rules| rules.iter().any(known));
                match is_known {
                    true => {
                        let why = "the start of a section";
                        self.import.report.line(at, "section", Fate::Kept, why);
                    }
                    false => self.unknown(at, name, "not a section", &sections()),
                }
            } else if section != "modules" {
                self.option(&section, line, at);
            }
        }
    }

    fn option(&mut self, section: &str, line: &str, at: &Place) {
        if let Some(rule) = rules::SECTIONS.iter().find(|rule| rule.name == section) {
            return self.import.report.rule(at, rule, "");
        }
        let (option, value) = match line.split_once('=') {
            Some((option, value)) => (option.trim(), Some(value.trim())),
            None => (line, None),
        };
        let Some(rule) = find(section, option, value.is_some()) else {
            let names: Vec<&str> = rules::OPTIONS
                .iter()
                .filter(|rule| is_of(rule.name, section))
                .map(|rule| &rule.name[section.len() + 1..])
                .collect();
            return self.unknown(at, option, "not an option of the section", &names);
        };
        let module = rules::OF_MODULE.iter().find(|(of, _)| *of == section);
        if let Some((_, module)) = module
            && !self.is_loaded(module)
        {
            let why = format!("the module {module} is not loaded");
            return self.import.report.line(at, rule.name, Fate::NoEffect, &why);
        }
        let value = match (value, rule.words) {
            (Some(value), 1) => value,
            (None, 1) => "1",
            (_, _) => line,
        };
        if rule.fate != Fate::Key {
            return self.import.report.rule(at, rule, value);
        }
        // `${option}` is the value of an earlier option of the section.
        let referred = value
            .strip_prefix("${")
            .and_then(|rest| rest.split('}').next());
        let value = match referred.map(|name| self.value_of(section, name)) {
            None => value.to_owned(),
            Some(Some(value)) => value,
            Some(None) => {
                let why = "the option that it refers to is not before it";
                return self.import.report.unknown(at, rule.name, why);
            }
        };
        let setting = (value, at.clone());
        if LISTS.contains(&rule.name) {
            self.lists.push((rule.name, setting));
        } else if self.settings.contains_key(rule.name) {
            let why = "an earlier line sets it, and the first one counts";
            self.import.report.line(at, rule.name, Fate::NoEffect, why);
        } else {
            self.settings.insert(rule.name, setting);
        }
    }

    /// The value of an option that was set before.
    fn value_of(&self, section: &str, option: &str) -> Option<String> {
        let mut settings = self.settings.iter();
        let is_it = |name: &str| {
            let rest = name.strip_prefix(section);
            rest.and_then(|rest| rest.strip_prefix(' ')) == Some(option)
        };
        settings.find_map(|(name, (value, _))| is_it(name).then(|| value.clone()))
    }

    /// Gives options with older names their present ones, unless these are set too.
    fn aliases(&mut self) {
        for (alias, name) in ALIASES {
            let Some((value, at)) = self.take(alias) else {
                continue;
            };
            if self.settings.contains_key(name) {
                let why = "the option with its present name counts";
                self.import.report.line(&at, alias, Fate::NoEffect, why);
            } else {
                self.settings.insert(name, (value, at));
            }
        }
    }

    /// A setting that was not taken yet.
    fn take(&mut self, option: &'static str) -> Option<Setting> {
        self.settings.remove(option)
    }

    /// The lines of a list.
    fn take_all(&mut self, option: &'static str) -> Vec<Setting> {
        let taken = self.lists.extract_if(.., |(name, _)| *name == option);
        taken.map(|(_, setting)| setting).collect()
    }

    /// A number that is not negative.
    fn number(&mut self, option: &'static str) -> Option<(i64, Place)> {
        let (value, at) = self.take(option)?;
        let number = value.parse::<u32>().ok().map(i64::from);
        if number.is_none() {
            self.import
                .report
                .unknown(&at, option, "the value is not a number");
        }
        Some((number?, at))
    }

    /// Whether an option is on.
    fn flag(&mut self, option: &'static str) -> Option<(bool, Place)> {
        let (value, at) = self.take(option)?;
        let word = value.to_ascii_lowercase();
        Some((matches!(&*word, "1" | "yes" | "on" | "true"), at))
    }

    /// Sets a key of which the result has one, and reports the line. A second, different value is lost.
    fn once(&mut self, path: &str, key: &str, value: impl Into<Value>, at: &Place, option: &str) {
        let value = value.into();
        let name = format!("{path}.{key}");
        let table = self.import.config.table(path);
        match table.get(key) {
            Some(old) if *old != value => {
                let why = format!("headend has one {name}; another line sets it");
                self.import.report.lost(at, option, &why);
            }
            _ => {
                table.set(key, value, std::slice::from_ref(at), "");
                self.import.report.key(at, option, &[&name], "");
            }
        }
    }

    fn finish(&mut self) {
        self.aliases();
        self.servers();
        self.access();
        self.pools();
        self.users();
        self.some_pool();
        self.plain_keys();
        self.links();
        self.echoes();
        self.sizes();
        self.defaults();
        // Every rule with a key is taken above; what is left has no place in the result.
        let left = std::mem::take(&mut self.settings).into_iter();
        let lists = std::mem::take(&mut self.lists).into_iter();
        for (option, (_, at)) in left.chain(lists) {
            let why = "the result has no section for it";
            self.import.report.line(&at, option, Fate::NoEffect, why);
        }
    }
}

/// Whether a rule is of a section.
fn is_of(name: &str, section: &str) -> bool {
    name.strip_prefix(section)
        .is_some_and(|rest| rest.starts_with(' '))
}

/// Every section.
fn sections() -> Vec<&'static str> {
    let own = rules::OPTIONS
        .iter()
        .filter_map(|rule| rule.name.split(' ').next());
    let whole = rules::SECTIONS.iter().map(|rule| rule.name);
    own.chain(whole).chain(["modules"]).collect()
}

/// The rule of a line: by its option, else the section's rule for lines without one.
fn find(section: &str, option: &str, has_value: bool) -> Option<&'static Rule> {
    let of = || {
        rules::OPTIONS
            .iter()
            .filter(|rule| is_of(rule.name, section))
    };
    let name = |rule: &Rule| &rule.name[section.len() + 1..];
    let named = of().find(|rule| name(rule) == option);
    // Ranges may have options after commas: `10.0.0.0/24,name=home`.
    let is_plain = !has_value || option.contains([',', '/']);
    named.or_else(|| {
        of().find(|rule| rule.words == 0 && name(rule) == name(rule).to_uppercase() && is_plain)
    })
}
