//! chap-secrets: name, server, password, address, rates.

use std::net::Ipv4Addr;

use super::keys::rate;
use super::{COMMENTS, Work};
use crate::document::Table;
use crate::files::Source;
use crate::report::{Fate, Place};

/// The file that accel-ppp reads without the option.
const USUAL: &str = "/etc/ppp/chap-secrets";

/// The most users of the result.
const USERS_MAX: usize = 1 << 20;

impl Work<'_> {
    pub(super) fn users(&mut self) {
        let named = self.take("chap-secrets chap-secrets");
        let module = self.modules.get("chap-secrets").cloned();
        if named.is_some() || module.is_some() {
            let path = named.as_ref().map_or(USUAL, |(path, _)| path);
            let found = self.files.find(path, COMMENTS);
            let lines = [
                (&named.map(|(_, at)| at), "chap-secrets chap-secrets"),
                (&module, "chap-secrets"),
            ];
            for (at, option) in lines {
                let Some(at) = at else { continue };
                match &found {
                    Ok(_) => self.import.report.key(at, option, &["users.file"], ""),
                    Err(why) => self.import.report.lost(at, option, why),
                }
            }
            if let Ok(file) = found {
                self.secrets(&file);
            }
        }
        let authenticates =
            self.import.config.table("ppp").get("authenticate") != Some(&"nobody".into());
        let has_users = !self.import.users.tables.is_empty();
        if authenticates && (has_users || !self.has_authentication()) {
            let note = if has_users {
                ""
            } else {
                "not in the source: headend needs a RADIUS server or users"
            };
            self.import
                .config
                .note("users", "file", crate::output::USERS, note);
        }
    }

    /// A pool, if nobody could get an address otherwise.
    pub(super) fn some_pool(&mut self) {
        let mut users = self.import.users.tables.iter();
        let has_address = users.any(|user| user.get("address").is_some());
        if self.import.config.has("pool") || self.has_authentication() || has_address {
            return;
        }
        let why = "not in the source: headend needs addresses for subscribers";
        let mut pool = Table::each("pool");
        pool.set("name", "default", &[], "");
        pool.set("ranges", crate::Value::texts(&["192.0.2.0/24"]), &[], why);
        self.import.config.tables.push(pool);
    }

    /// Whether a RADIUS server authenticates users.
    fn has_authentication(&self) -> bool {
        let mut tables = self.import.config.tables.iter();
        tables.any(|table| table.path == "radius.server" && table.get("authentication").is_some())
    }

    fn secrets(&mut self, file: &Source) {
        file.report_bad_lines(&mut self.import.report);
        let is_open = self.import.config.table("ppp").get("authenticate") == Some(&"nobody".into());
        for (number, line) in file.lines() {
            let at = file.at(number);
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if is_open {
                let why = "with `noauth` or `any-login`, nobody is authenticated";
                self.import.report.line(&at, "user", Fate::NoEffect, why);
            } else {
                self.user(&words(line), &at);
            }
        }
    }

    fn user(&mut self, words: &[String], at: &Place) {
        let [name, _server, password, rest @ ..] = words else {
            let why = "not of the form NAME SERVER PASSWORD ADDRESS RATES";
            return self.import.report.unknown(at, "user", why);
        };
        if self.import.users.tables.len() == USERS_MAX {
            return self
                .import
                .report
                .lost(at, "user", "headend reads 1048576 users at most");
        }
        let from = std::slice::from_ref(at);
        let mut user = Table::each("user");
        user.set("name", name.as_str(), from, "");
        user.set("password", password.as_str(), from, "");
        let mut keys = vec!["user.name"];
        let mut why = "";
        match rest.first().map(String::as_str) {
            None | Some("*") => {}
            Some(text) if text.parse::<Ipv4Addr>().is_ok() => {
                user.set("address", text, from, "");
                keys.push("user.address");
            }
            Some(pool) => {
                user.set("pool", pool, from, "");
                keys.push("user.pool");
            }
        }
        if let Some(rates) = rest.get(1) {
            let (down, up) = rates.split_once('/').unwrap_or((rates, rates));
            match (rate(down), rate(up)) {
                (Some(down), Some(up)) => {
                    user.set("rate_down", down, from, "");
                    user.set("rate_up", up, from, "");
                    keys.extend(["user.rate_down", "user.rate_up"]);
                }
                _ => why = "the rates are not numbers in kbit/s",
            }
        }
        self.import.users.tables.push(user);
        self.import.report.key(at, "user", &keys, why);
    }
}

/// Words with spaces between, and with quotes around them.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
