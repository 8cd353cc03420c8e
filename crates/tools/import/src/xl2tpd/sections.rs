//! The sections and options of xl2tpd.conf.

use std::net::Ipv4Addr;

use super::{COMMENTS, End, Work};
use crate::Table;
use crate::files::Source;
use crate::report::{Fate, Place};

/// The section that a line is in.
#[derive(Clone, Debug)]
enum Section {
    /// Before the first header.
    None,
    Global,
    Lns(String),
    Lac,
    /// A header that is not known: its lines are not either.
    Unknown,
}

/// An option with its value and place.
struct Setting<'t> {
    name: &'static str,
    value: &'t str,
    at: &'t Place,
}

impl Work<'_> {
    /// Reads xl2tpd.conf.
    pub(super) fn sections(&mut self, file: &Source) {
        self.used.insert((file.name.to_string(), false));
        file.report_bad_lines(&mut self.import.report);
        let mut section = Section::None;
        for (number, line) in file.lines() {
            let line = line.trim();
            let at = file.at(number);
            if line.is_empty() || COMMENTS.contains(&line.as_bytes()[0]) {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                section = self.header(rest, &at);
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                self.import
                    .report
                    .unknown(&at, "", "not of the form OPTION = VALUE");
                continue;
            };
            let name = name
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .to_ascii_lowercase();
            match super::rules::XL2TPD.iter().find(|rule| rule.name == name) {
                Some(rule) if rule.fate != Fate::Key => {
                    self.import.report.rule(&at, rule, value.trim());
                    self.aside(&section, rule.name, value.trim(), &at);
                }
                Some(rule) => {
                    let setting = Setting {
                        name: rule.name,
                        value: value.trim(),
                        at: &at,
                    };
                    self.setting(&section, &setting);
                }
                None => self.unknown_option(&name, &at, super::rules::XL2TPD),
            }
        }
    }

    /// Reports an option that is not in the table, with the nearest one that is.
    pub(super) fn unknown_option(&mut self, name: &str, at: &Place, rules: &[crate::Rule]) {
        // What follows the first other character may be a value, and that may be a secret.
        let is_name = |c: char| c.is_alphanumeric() || " +-_".contains(c);
        let name = name.split(|c| !is_name(c)).next().unwrap_or_default();
        let names: Vec<&str> = rules.iter().map(|rule| rule.name).collect();
        let why = match base::nearest(name, &names) {
            Some(right) => format!("not an option; did you mean {right}?"),
            None => "not an option".to_owned(),
        };
        self.import.report.unknown(at, name, &why);
    }

    /// Reports an option that a later line gives again.
    pub(super) fn again(&mut self, old: Option<Place>, option: &str) {
        if let Some(old) = old {
            let why = "a later line gives it again";
            self.import.report.line(&old, option, Fate::NoEffect, why);
        }
    }

    fn header(&mut self, rest: &str, at: &Place) -> Section {
        let Some((inside, _)) = rest.split_once(']') else {
            self.import
                .report
                .unknown(at, "[", "the section's header has no ]");
            return Section::Unknown;
        };
        let (kind, name) = inside
            .trim()
            .split_once(char::is_whitespace)
            .unwrap_or((inside.trim(), ""));
        let name = if name.trim().is_empty() {
            "default"
        } else {
            name.trim()
        };
        let option = format!("[{}]", kind.to_ascii_lowercase());
        match kind.to_ascii_lowercase().as_str() {
            "global" => {
                self.import
                    .report
                    .line(at, &option, Fate::Kept, "its options follow");
                Section::Global
            }
            "lns" => {
                self.import.report.key(at, &option, &["lns", "ppp"], "");
                self.ends[0] = true;
                Section::Lns(name.to_owned())
            }
            "lac" => {
                self.import.report.key(at, &option, &["lac"], "");
                self.ends[1] = true;
                Section::Lac
            }
            _ => {
                self.import.report.unknown(
                    at,
                    &option,
                    "the sections are [global], [lns NAME] and [lac NAME]",
                );
                Section::Unknown
            }
        }
    }

    /// What an option that is no key itself still changes in the result.
    fn aside(&mut self, section: &Section, name: &str, value: &str, at: &Place) {
        let first = value.split('-').next().unwrap_or_default().trim();
        if let (Section::Lns(_), "local ip range", Ok(_)) =
            (section, name, first.parse::<Ipv4Addr>())
        {
            self.import.config.set("ppp", "address", first, at);
        }
    }

    fn setting(&mut self, section: &Section, setting: &Setting<'_>) {
        let Setting { name, value, at } = *setting;
        match (section, name) {
            (Section::Global, "listen-addr") => {
                if let Some(ip) = self.host(value, at, name) {
                    let old = self.address.replace(ip);
                    self.again(old.map(|(_, place)| place), name);
                }
            }
            (Section::Global, "port") => match value.parse() {
                Ok(port) => {
                    let old = self.port.replace((port, at.clone()));
                    self.again(old.map(|(_, place)| place), name);
                }
                Err(_) => self
                    .import
                    .report
                    .unknown(at, name, "the value is not a port"),
            },
            (Section::Global, "auth file") => {
                let old = self.auth_file.replace((value.to_owned(), at.clone()));
                self.again(old.map(|(_, place)| place), name);
            }
            (Section::Global, "max retries") => {
                self.number("l2tp", "retransmit_tries", value, at, name)
            }
            (Section::Global, "cap backoff") => {
                self.number("l2tp", "retransmit_cap_s", value, at, name)
            }
            (
                _,
                "debug avp" | "debug network" | "debug packet" | "debug state" | "debug tunnel"
                | "ppp debug",
            ) => match self.flag(setting) {
                Some(true) => self.debug(at, name),
                Some(false) => self.kept(setting),
                None => {}
            },
            (Section::Lns(_) | Section::Lac, _) => self.peer(section, setting),
            _ => self
                .import
                .report
                .unknown(at, name, "the option does not belong to this section"),
        }
    }

    /// An option of a `lns` or `lac` section.
    fn peer(&mut self, section: &Section, setting: &Setting<'_>) {
        let Setting { name, value, at } = *setting;
        let end = if matches!(section, Section::Lac) {
            End::Lac
        } else {
            End::Lns
        };
        match name {
            "hostname" => self.once("l2tp", "host_name", value, at, name),
            "tunnel rws" => self.number("l2tp", "receive_window", value, at, name),
            "challenge" => match self.flag(setting) {
                Some(true) => self.wants_secret.push(at.clone()),
                Some(false) => self.kept(setting),
                None => {}
            },
            "hidden bit" => match self.flag(setting) {
                Some(true) => self.hides.push(at.clone()),
                Some(false) => self.kept(setting),
                None => {}
            },
            "pppoptfile" => self.option_file(value, end, at, name, 0),
            "name" if end == End::Lac => self.client_name(value, at, name),
            "name" => self.once("ppp", "name", value, at, name),
            "defaultroute" => match (self.flag(setting), end) {
                (Some(true), _) => self.default_route(at, name, end),
                (Some(false), _) => self.kept(setting),
                (None, _) => {}
            },
            _ => match section {
                Section::Lns(section) => self.lns(section, setting),
                _ => self.lac(setting),
            },
        }
    }

    fn lns(&mut self, section: &str, setting: &Setting<'_>) {
        let Setting { name, value, at } = *setting;
        match name {
            "ip range" => self.range(section, "ranges", setting),
            "no ip range" => self.range(section, "excluded", setting),
            "assign ip" => match self.flag(setting) {
                Some(false) => {
                    self.import.report.key(
                        at,
                        name,
                        &["pool"],
                        "the section's ranges become no pool",
                    );
                    self.pool(section).entries.push(crate::document::Entry {
                        key: "left out".into(),
                        value: false.into(),
                        from: vec![at.clone()],
                        note: String::new(),
                    });
                }
                Some(true) => self.kept(setting),
                None => {}
            },
            "local ip" => {
                if self.host(value, at, name).is_some() {
                    self.once("ppp", "address", value, at, name);
                }
            }
            _ => self.authentication(setting),
        }
    }

    /// `require ...` and `refuse ...` of a LNS.
    fn authentication(&mut self, setting: &Setting<'_>) {
        let Some(flag) = self.flag(setting) else {
            return;
        };
        let place = setting.at.clone();
        let auth = &mut self.auth;
        match (setting.name, flag) {
            ("require auth" | "require authentication", true) => {
                auth.required.push((place, setting.name))
            }
            ("require auth" | "require authentication", false) => {
                auth.nobody.push((place, setting.name))
            }
            ("refuse auth" | "refuse authentication", true) => {
                auth.nobody.push((place, setting.name))
            }
            ("require chap", true) => auth.methods.push(("chap", place, setting.name)),
            ("require pap", true) => auth.methods.push(("pap", place, setting.name)),
            ("refuse chap", true) => auth.refused.push(("chap", place, setting.name)),
            ("refuse pap", true) => auth.refused.push(("pap", place, setting.name)),
            _ => self.kept(setting),
        }
    }

    /// The rest of the options of a `lac` section: there, headend is authenticated and authenticates nobody.
    fn lac(&mut self, setting: &Setting<'_>) {
        let Setting { name, value, at } = *setting;
        match name {
            "local ip" | "ip range" | "no ip range" | "assign ip" => {
                self.import.report.lost(
                    at,
                    name,
                    "as a client, headend takes the address that the LNS assigns",
                );
            }
            "require chap" | "require pap" | "require auth" | "require authentication"
                if !value.eq_ignore_ascii_case("no") =>
            {
                self.import.report.lost(
                    at,
                    name,
                    "as a client, headend does not ask the LNS to authenticate itself",
                );
            }
            "refuse chap" | "refuse pap" if !value.eq_ignore_ascii_case("no") => {
                self.import.report.lost(
                    at,
                    name,
                    "as a client, headend answers CHAP and PAP, as the LNS asks",
                );
            }
            _ => self.kept(setting),
        }
    }

    /// An address or a range of a pool.
    fn range(&mut self, section: &str, key: &str, setting: &Setting<'_>) {
        let Setting { name, value, at } = *setting;
        let parts: Vec<&str> = value.splitn(2, '-').map(str::trim).collect();
        let ips: Vec<Ipv4Addr> = parts.iter().filter_map(|part| part.parse().ok()).collect();
        let text = match ips[..] {
            [one] if parts.len() == 1 => one.to_string(),
            [first, last] if first == last => first.to_string(),
            [first, last] => format!("{first}-{last}"),
            _ => {
                let why =
                    "not an IPv4 address or two with a dash between; headend looks up no names";
                return self.import.report.lost(at, name, why);
            }
        };
        let table = self.pool(section);
        table.add(key, &text, at);
        if key == "ranges" {
            table.set(
                "skip_ends",
                false,
                &[],
                "xl2tpd assigns addresses that end in .0 and .255 too",
            );
        }
        self.import
            .report
            .key(at, name, &[&format!("pool.{key}")], "");
    }

    /// The pool of a section.
    fn pool(&mut self, section: &str) -> &mut Table {
        let tables = &mut self.import.config.tables;
        let is = |table: &Table| table.path == "pool" && table.get("name") == Some(&section.into());
        if let Some(at) = tables.iter().position(is) {
            return &mut tables[at];
        }
        let mut table = Table::each("pool");
        table.set("name", section, &[], "the section's name");
        let at = tables.len();
        tables.push(table);
        &mut tables[at]
    }

    fn host(&mut self, value: &str, at: &Place, name: &str) -> Option<(String, Place)> {
        match value.parse::<Ipv4Addr>() {
            Ok(ip) => Some((ip.to_string(), at.clone())),
            Err(_) => {
                self.import
                    .report
                    .lost(at, name, "not an IPv4 address; headend looks up no names");
                None
            }
        }
    }

    fn flag(&mut self, setting: &Setting<'_>) -> Option<bool> {
        match setting.value.to_ascii_lowercase().as_str() {
            "yes" | "y" | "true" | "1" => Some(true),
            "no" | "n" | "false" | "0" => Some(false),
            _ => {
                self.import.report.unknown(
                    setting.at,
                    setting.name,
                    "the value is neither yes nor no",
                );
                None
            }
        }
    }

    fn kept(&mut self, setting: &Setting<'_>) {
        self.import.report.line(
            setting.at,
            setting.name,
            Fate::Kept,
            "headend does this without a key",
        );
    }
}
