//! The options of pppd, and what they mean for authentication.

use std::net::Ipv4Addr;

use super::words::{Word, words};
use super::{COMMENTS, End, Work, rules};
use crate::document::Value;
use crate::files::{DEPTH_MAX, Source};
use crate::report::{Fate, Place};

/// Options about the authentication of the LNS's peers.
#[derive(Debug, Default)]
pub(super) struct Auth {
    /// Any method will do.
    pub required: Vec<(Place, &'static str)>,
    /// Nobody is asked.
    pub nobody: Vec<(Place, &'static str)>,
    /// Required methods, in headend's words.
    pub methods: Vec<(&'static str, Place, &'static str)>,
    /// Methods that are not used.
    pub refused: Vec<(&'static str, Place, &'static str)>,
}

/// What the client of a LAC needs.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub remote_name: Option<(String, Place)>,
    pub password: Option<(String, Place)>,
}

impl Work<'_> {
    /// Reads a file of options that another file names.
    pub(super) fn option_file(
        &mut self,
        path: &str,
        end: End,
        at: &Place,
        option: &str,
        depth: usize,
    ) {
        if depth >= DEPTH_MAX {
            return self.import.report.lost(
                at,
                option,
                "files are included more than 8 levels deep",
            );
        }
        match self.files.find(path, COMMENTS) {
            Ok(file) => {
                let why = format!("the options of {}", file.name);
                self.import.report.line(at, option, Fate::Kept, &why);
                self.options(&file, end, depth + 1);
            }
            Err(why) => self.import.report.lost(at, option, &why),
        }
    }

    /// Reads a file of options. A file that was read for this end already has no further effect.
    pub(super) fn options(&mut self, file: &Source, end: End, depth: usize) {
        if !self.used.insert((file.name.to_string(), end == End::Lac)) {
            return;
        }
        file.report_bad_lines(&mut self.import.report);
        let (words, faults) = words(&file.text);
        for (line, why) in faults {
            self.import.report.unknown(&file.at(line), "", why);
        }
        let mut rest = words.as_slice();
        while let Some((word, after)) = rest.split_first() {
            let at = file.at(word.line);
            rest = self.option(word, after, &at, end, depth);
        }
    }

    /// One option; returns the words after it.
    fn option<'w>(
        &mut self,
        word: &Word,
        after: &'w [Word],
        at: &Place,
        end: End,
        depth: usize,
    ) -> &'w [Word] {
        let name = word.text.as_str();
        let Some(rule) = rules::PPPD.iter().find(|rule| rule.name == name) else {
            if self.is_address(name) {
                self.addresses(name, at, end);
                return after;
            }
            // The words behind it may be its values, and these may be secrets.
            self.unknown_option(if word.is_first { name } else { "" }, at, rules::PPPD);
            let next = after.iter().position(|word| word.is_first);
            return &after[next.unwrap_or(after.len())..];
        };
        let Some(values) = after.get(..rule.words) else {
            self.import.report.unknown(at, name, "the value is missing");
            return &[];
        };
        let value = values.first().map_or("", |word| word.text.as_str());
        // The value may be in a later line, which is then accounted for too.
        for word in values.iter().filter(|word| word.line != at.line) {
            let place = Place {
                file: at.file.clone(),
                line: word.line,
            };
            self.import
                .report
                .line(&place, name, Fate::Kept, "the value of the option before");
        }
        if rule.fate == Fate::Key {
            self.key_option(rule.name, value, at, end, depth);
        } else {
            self.import.report.rule(at, rule, value);
            if let ("require-mschap" | "require-mschap-v2" | "require-eap", End::Lns) = (name, end)
            {
                self.auth.required.push((at.clone(), ""));
            }
        }
        &after[rule.words..]
    }

    fn key_option(&mut self, name: &'static str, value: &str, at: &Place, end: End, depth: usize) {
        match (name, end) {
            ("file", _) => self.option_file(value, end, at, name, depth),
            ("call", _) => {
                self.option_file(&format!("/etc/ppp/peers/{value}"), end, at, name, depth)
            }
            ("debug", _) => self.debug(at, name),
            ("mtu", _) => self.number("tun", "mtu", value, at, name),
            ("+ipv6", _) => self.once("ppp", "ipv6", true, at, name),
            ("noipv6", _) => self.once("ppp", "ipv6", false, at, name),
            ("mru", _) => self.number("ppp", "mru", value, at, name),
            ("default-mru", _) => self.once("ppp", "mru", 1500, at, name),
            ("lcp-echo-interval", _) => self.number("ppp", "echo_interval_s", value, at, name),
            ("lcp-echo-failure", _) if value == "0" => {
                self.import.report.line(
                    at,
                    name,
                    Fate::Kept,
                    "0 is pppd's default; headend ends a link after ppp.echo_tries",
                );
            }
            ("lcp-echo-failure", _) => self.number("ppp", "echo_tries", value, at, name),
            ("lcp-max-configure", _) => self.number("ppp", "configure_tries", value, at, name),
            ("lcp-max-failure", _) => self.number("ppp", "failure_tries", value, at, name),
            ("lcp-max-terminate", _) => self.number("ppp", "terminate_tries", value, at, name),
            ("lcp-restart", _) => self.number("ppp", "restart_s", value, at, name),
            ("name" | "user", End::Lac) => self.client_name(value, at, name),
            ("defaultroute", _) => self.default_route(at, name, end),
            ("defaultroute-metric", End::Lac) => {
                self.number("client", "default_route_metric", value, at, name);
            }
            ("remotename", End::Lac) => {
                let old = self
                    .client
                    .remote_name
                    .replace((value.to_owned(), at.clone()));
                self.again(old.map(|(_, place)| place), name);
            }
            ("password", End::Lac) => {
                let old = self.client.password.replace((value.to_owned(), at.clone()));
                self.again(old.map(|(_, place)| place), name);
            }
            ("auth" | "noauth" | "require-chap" | "require-pap", End::Lac) => {
                let (fate, why) = match name {
                    "noauth" => (
                        Fate::Kept,
                        "as a client, headend does not ask the LNS to authenticate itself",
                    ),
                    _ => (
                        Fate::NotSupported,
                        "as a client, headend does not ask the LNS to authenticate itself",
                    ),
                };
                self.import.report.line(at, name, fate, why);
            }
            (_, End::Lac) => self
                .import
                .report
                .line(at, name, Fate::NoEffect, "for an LNS only"),
            (_, End::Lns) => self.lns_option(name, value, at),
        }
    }

    fn lns_option(&mut self, name: &'static str, value: &str, at: &Place) {
        match name {
            "auth" => self.auth.required.push((at.clone(), name)),
            "noauth" => self.auth.nobody.push((at.clone(), name)),
            "require-chap" => self.auth.methods.push(("chap", at.clone(), name)),
            "require-pap" => self.auth.methods.push(("pap", at.clone(), name)),
            "chap-interval" => self.number("ppp", "rechallenge_interval_s", value, at, name),
            "idle" => self.number("ppp", "idle_timeout_s", value, at, name),
            "maxconnect" => self.number("ppp", "session_timeout_s", value, at, name),
            "name" => self.once("ppp", "name", value, at, name),
            "ms-dns" => match value.parse::<Ipv4Addr>() {
                Ok(ip) => {
                    let known = match self.import.config.table("ppp").get("dns") {
                        Some(Value::Texts(known)) => known.len(),
                        _ => 0,
                    };
                    if known < 2 {
                        self.import
                            .config
                            .table("ppp")
                            .add("dns", &ip.to_string(), at);
                        self.import.report.key(at, name, &["ppp.dns"], "");
                    } else {
                        self.import
                            .report
                            .lost(at, name, "a subscriber gets two servers at most");
                    }
                }
                Err(_) => self.import.report.lost(
                    at,
                    name,
                    "not an IPv4 address; headend looks up no names",
                ),
            },
            "defaultroute-metric" => {
                self.import
                    .report
                    .lost(at, name, "an LNS adds no default route");
            }
            _ => self.import.report.line(
                at,
                name,
                Fate::NoEffect,
                "as an LNS, headend does not authenticate itself",
            ),
        }
    }

    pub(super) fn client_name(&mut self, value: &str, at: &Place, option: &str) {
        // The braces would be read as a placeholder for the session's number.
        if value.contains("{n}") {
            return self.import.report.lost(
                at,
                option,
                "headend replaces {n} by the session's number",
            );
        }
        self.once("client", "name", value, at, option);
    }

    pub(super) fn default_route(&mut self, at: &Place, option: &str, end: End) {
        match end {
            End::Lac => self.once("client", "default_route", true, at, option),
            End::Lns => self
                .import
                .report
                .lost(at, option, "an LNS adds no default route"),
        }
    }

    /// Whether this is `LOCAL:REMOTE`, either of which may be missing.
    fn is_address(&self, text: &str) -> bool {
        let is = |part: &str| part.is_empty() || part.parse::<Ipv4Addr>().is_ok();
        text.split_once(':')
            .is_some_and(|(local, remote)| is(local) && is(remote))
    }

    fn addresses(&mut self, text: &str, at: &Place, end: End) {
        let (local, remote) = text.split_once(':').unwrap_or((text, ""));
        if end == End::Lac {
            let why = "as a client, headend takes the address that the LNS assigns";
            return self.import.report.lost(at, "LOCAL:REMOTE", why);
        }
        if !local.is_empty() {
            self.once("ppp", "address", local, at, "LOCAL:");
        }
        if !remote.is_empty() {
            self.import.report.lost(
                at,
                ":REMOTE",
                "subscribers get addresses of pools, users or RADIUS",
            );
        }
        if local.is_empty() && remote.is_empty() {
            self.import
                .report
                .line(at, ":", Fate::Kept, "it names no address");
        }
    }
}
