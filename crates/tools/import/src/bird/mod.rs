//! BIRD 2: the BGP parts of `bird.conf`, with the static routes and the kernel protocol.
//!
//! | file | contents |
//! |---|---|
//! | `rules` | every statement and what becomes of it |
//! | `syntax` | statements and blocks |
//! | `filter` | filters that have a counterpart |
//! | `session` | protocols and templates of BGP, and their channels |

mod filter;
mod rules;
mod session;
mod syntax;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::document::Table;
use crate::files::{DEPTH_MAX, Files, Source};
use crate::pattern;
use crate::report::{Fate, Place};
use crate::{Import, Rule, bgp};
use syntax::Statement;

/// Where the main file is on a host that runs BIRD.
pub const USUAL: &[&str] = &["/etc/bird/bird.conf", "/etc/bird.conf"];

/// The statements outside of blocks, in `protocol bgp`, and in a channel.
pub const RULES: [&[Rule]; 3] = [rules::TOP, rules::BGP, rules::CHANNEL];

const COMMENTS: &[u8] = b"#";

/// The import while it is made.
struct Work<'f> {
    import: Import,
    files: &'f mut Files,
    file: Source,
    /// The files that include the present one, and it.
    open: Vec<Arc<str>>,
    /// The files that were included.
    included: BTreeSet<Arc<str>>,
    defines: BTreeMap<String, Vec<String>>,
    filters: BTreeMap<String, Vec<Statement>>,
    /// The filters that a channel names.
    used: BTreeSet<String>,
    templates: BTreeMap<String, session::Session>,
    asn: Option<i64>,
    /// The AS that a filter of the present session may prepend.
    prepends: Option<i64>,
    first_bgp: Option<Place>,
}

/// Reads the files one after the other, as if they were one.
pub fn read(files: &mut Files) -> Import {
    let given = files.given(COMMENTS);
    let name = given
        .first()
        .map_or("nothing", |main| &main.name)
        .to_owned();
    let Some(first) = given.first().cloned() else {
        return Import::new("bird", &name);
    };
    let mut work = Work {
        import: Import::new("bird", &name),
        files,
        file: first,
        open: Vec::new(),
        included: BTreeSet::new(),
        defines: BTreeMap::new(),
        filters: BTreeMap::new(),
        used: BTreeSet::new(),
        templates: BTreeMap::new(),
        asn: None,
        prepends: None,
        first_bgp: None,
    };
    for file in given {
        if !work.included.contains(&file.name) {
            work.whole(file);
        }
    }
    work.finish();
    work.import
}

impl Work<'_> {
    /// Reads a file and those that it includes.
    fn whole(&mut self, file: Source) {
        file.report_bad_lines(&mut self.import.report);
        let (mut statements, faults) = syntax::statements(&file.text);
        for (line, why) in faults {
            self.import.report.unknown(&file.at(line), "", why);
        }
        syntax::stamp(&mut statements, &file.name);
        self.open.push(Arc::clone(&file.name));
        let before = std::mem::replace(&mut self.file, file);
        for statement in &statements {
            self.top(statement);
        }
        self.file = before;
        self.open.pop();
    }

    fn include(&mut self, words: &[&str], at: &Place) {
        let option = "include";
        let &[path] = words else {
            return self
                .import
                .report
                .unknown(at, option, "write include \"FILE\";");
        };
        if self.open.len() >= DEPTH_MAX {
            let why = "files are included more than 8 levels deep";
            return self.import.report.lost(at, option, why);
        }
        let files = match self.files.find_all(path, COMMENTS) {
            Ok(files) => files,
            Err(why) => return self.import.report.lost(at, option, &why),
        };
        let cycle = files.iter().find(|file| self.open.contains(&file.name));
        if let Some(file) = cycle {
            let chain: Vec<&str> = self.open.iter().map(|name| &**name).collect();
            let why = format!(
                "the files include each other: {}, {}",
                chain.join(", "),
                file.name
            );
            return self.import.report.lost(at, option, &why);
        }
        let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
        let why = match names.len() {
            0 => "no file matches".to_owned(),
            1..=4 => format!("the statements of {}", names.join(", ")),
            many => format!("the statements of {many} files"),
        };
        self.import.report.line(at, option, Fate::Kept, &why);
        for file in files {
            self.included.insert(Arc::clone(&file.name));
            self.whole(file);
        }
    }

    fn at(&self, statement: &Statement) -> Place {
        match &statement.file {
            Some(file) => Place {
                file: Arc::clone(file),
                line: statement.line,
            },
            None => self.file.at(statement.line),
        }
    }

    fn top(&mut self, statement: &Statement) {
        let at = self.at(statement);
        let words = statement.words();
        let Some(found) = pattern::settle(rules::TOP, &words, &at, &mut self.import.report) else {
            let why = "in a block that is not carried over";
            let fate =
                pattern::find(rules::TOP, &words).map_or(Fate::Unknown, |found| found.rule.fate);
            return self.inside(statement, fate, why);
        };
        match found.rule.name {
            "include" => self.include(found.rest, &at),
            "router id" => {
                let value = self.value(found.rest.first().copied().unwrap_or_default());
                self.import.config.set("bgp", "router_id", value, &at);
                self.import
                    .report
                    .key(&at, "router id", &["bgp.router_id"], "");
            }
            "define" => match found.rest {
                [name, "=", value @ ..] => {
                    let value = value.iter().map(|&word| self.value(word)).collect();
                    self.defines.insert((*name).to_owned(), value);
                    self.import.report.line(
                        &at,
                        "define",
                        Fate::Kept,
                        "its value stands where the name is used",
                    );
                }
                _ => self
                    .import
                    .report
                    .unknown(&at, "define", "write define NAME = VALUE"),
            },
            "filter NAME" => {
                let name = found.names[0].to_owned();
                self.import.report.line(
                    &at,
                    "filter NAME",
                    Fate::Kept,
                    "see the channels that use it",
                );
                let body = statement.block.clone().unwrap_or_default();
                self.filters.insert(name, body);
            }
            "protocol static" => self.routes(statement, &at),
            "protocol kernel" => self.kernel(statement, &at),
            option => self.session(option, &words, statement, &at),
        }
    }

    /// Reports every statement of a block.
    fn inside(&mut self, statement: &Statement, fate: Fate, why: &str) {
        for inner in statement.block.iter().flatten() {
            let at = self.at(inner);
            self.import.report.line(&at, "", fate, why);
            self.inside(inner, fate, why);
        }
    }

    /// A word, or what a definition gives for it.
    fn value(&self, word: &str) -> String {
        match self.defines.get(word).map(Vec::as_slice) {
            Some([one]) => one.clone(),
            _ => word.to_owned(),
        }
    }

    fn routes(&mut self, statement: &Statement, at: &Place) {
        self.import
            .report
            .line(at, "protocol static", Fate::Kept, "its routes follow");
        for inner in statement.block.iter().flatten() {
            let at = self.at(inner);
            let words = inner.words();
            match words.as_slice() {
                ["route", prefix, ..] => match bgp::network(&self.value(prefix)) {
                    Some(prefix) => {
                        self.import
                            .config
                            .table("bgp")
                            .add("networks", &prefix, &at);
                        self.import.report.key(&at, "route", &["bgp.networks"], "");
                        self.inside(inner, Fate::NotSupported, "headend's networks have no attributes of their own; set them in a policy");
                    }
                    None => {
                        self.import
                            .report
                            .lost(&at, "route", "not a prefix like 198.51.100.0/24")
                    }
                },
                ["ipv4" | "ipv6", ..] => {
                    self.import.report.line(
                        &at,
                        "channel",
                        Fate::Kept,
                        "headend has one routing table",
                    );
                    self.inside(inner, Fate::NoEffect, "headend has one routing table");
                }
                ["disabled"] => self.import.report.lost(
                    &at,
                    "disabled",
                    "the routes of the protocol are in bgp.networks; remove them there",
                ),
                _ => {
                    self.import.report.line(
                        &at,
                        "",
                        Fate::NoEffect,
                        "headend announces its networks at all times",
                    );
                    self.inside(
                        inner,
                        Fate::NoEffect,
                        "headend announces its networks at all times",
                    );
                }
            }
        }
    }

    fn kernel(&mut self, statement: &Statement, at: &Place) {
        self.import
            .report
            .line(at, "protocol kernel", Fate::Kept, "its statements follow");
        for inner in statement.block.iter().flatten() {
            let at = self.at(inner);
            let words = inner.words();
            let number = |text: &str| self.value(text).parse::<u32>().ok().map(i64::from);
            match words.as_slice() {
                ["kernel", "table", table] if number(table).is_some() => {
                    let table = number(table).unwrap_or_default();
                    self.import.config.set("bgp", "install_table", table, &at);
                    self.import
                        .report
                        .key(&at, "kernel table", &["bgp.install_table"], "");
                }
                ["metric", metric] if number(metric).is_some() => {
                    let metric = number(metric).unwrap_or_default();
                    self.import.config.set("bgp", "install_metric", metric, &at);
                    self.import
                        .report
                        .key(&at, "metric", &["bgp.install_metric"], "");
                }
                ["ipv4" | "ipv6"] => {
                    self.import
                        .report
                        .line(&at, "channel", Fate::Kept, "its statements follow");
                    for inner in inner.block.iter().flatten() {
                        self.kernel_channel(inner);
                    }
                }
                ["scan", ..] => self.import.report.line(
                    &at,
                    "scan time",
                    Fate::NoEffect,
                    "the kernel reports its changes",
                ),
                _ => {
                    self.import.report.lost(
                        &at,
                        "",
                        "headend only installs its best routes in the kernel",
                    );
                    self.inside(
                        inner,
                        Fate::NotSupported,
                        "headend only installs its best routes in the kernel",
                    );
                }
            }
        }
    }

    fn kernel_channel(&mut self, inner: &Statement) {
        let at = self.at(inner);
        match inner.words().as_slice() {
            ["export", "all"] => {
                let bgp = self.import.config.table("bgp");
                match bgp.entries.iter_mut().find(|entry| entry.key == "install") {
                    Some(install) => install.from.push(at.clone()),
                    None => bgp.set("install", true, std::slice::from_ref(&at), ""),
                }
                self.import.report.key(&at, "export", &["bgp.install"], "");
            }
            ["export", "none"] => {
                self.import
                    .report
                    .line(&at, "export", Fate::Kept, "bgp.install is off by default")
            }
            ["import", "none"] => self.import.report.line(
                &at,
                "import",
                Fate::Kept,
                "headend learns no routes from the kernel",
            ),
            _ => {
                self.import.report.lost(
                    &at,
                    "",
                    "headend installs all its best routes in the kernel, or none; see bgp.install",
                );
                self.inside(
                    inner,
                    Fate::NotSupported,
                    "headend has no filter for the kernel",
                );
            }
        }
    }

    fn finish(&mut self) {
        for (name, body) in std::mem::take(&mut self.filters) {
            if !self.used.contains(&name) {
                let block = Statement {
                    block: Some(body),
                    ..Statement::default()
                };
                self.inside(&block, Fate::NoEffect, "no channel uses the filter");
            }
        }
        let Some(at) = self.first_bgp.clone() else {
            let is_out = |table: &mut Table| table.path == "bgp";
            let out: Vec<Table> = self.import.config.tables.extract_if(.., is_out).collect();
            for (entry, table) in out
                .iter()
                .flat_map(|table| table.entries.iter().map(move |entry| (entry, table)))
            {
                for place in &entry.from {
                    self.import.report.take_back(
                        place,
                        &table.name_of(entry),
                        Fate::NoEffect,
                        "without a protocol bgp",
                    );
                }
            }
            return;
        };
        bgp::router_id(&mut self.import, &at, "protocol bgp");
    }
}
