//! The RADIUS servers of l2tpns, which share a secret, and the methods of authentication.

use std::net::Ipv4Addr;

use super::{Setting, Work};
use crate::document::{Table, Value};
use crate::report::{Fate, Place};

/// A server with the port of its requests, and the lines that say so.
type Server = (Ipv4Addr, i64, Vec<Place>);

/// An option and its line.
type Line = (&'static str, Place);

impl Work {
    /// `[radius]` and its servers.
    pub(super) fn radius(&mut self) {
        self.methods();
        let secret = self.take("radius_secret");
        let accounting = self.flag("radius_accounting");
        let (servers, mut lines) = self.servers();
        let dae = self.number("radius_dae_port");
        let interim = self.number("radius_interim");
        let is_whole = |secret: &&Setting| !secret.0.is_empty() && !servers.is_empty();
        let Some((secret, secret_at)) = secret.as_ref().filter(is_whole).cloned() else {
            let why = "headend needs a RADIUS server and its secret for this";
            lines.extend(dae.map(|(_, at)| ("radius_dae_port", at)));
            lines.extend(interim.map(|(_, at)| ("radius_interim", at)));
            lines.extend(accounting.map(|(_, at)| ("radius_accounting", at)));
            lines.extend(secret.map(|(_, at)| ("radius_secret", at)));
            for (option, at) in lines {
                self.import.report.lost(&at, option, why);
            }
            return;
        };
        let kept = self.import.keep_secret("radius", &secret);
        let file = kept.unwrap_or_default();
        let records = accounting.as_ref().filter(|(is_on, _)| *is_on);
        for (number, (ip, port, from)) in servers.into_iter().enumerate() {
            let mut server = Table::each("radius.server");
            let name = ["primary", "secondary"][number.min(1)];
            server.set("name", name, &[], "");
            server.set("authentication", format!("{ip}:{port}"), &from, "");
            if let Some((_, at)) = records {
                let from = std::slice::from_ref(at);
                server.set("accounting", format!("{ip}:{}", port + 1), from, "");
            }
            server.set("secret_file", &*file, std::slice::from_ref(&secret_at), "");
            let note = "l2tpns does not check it; false only if the server cannot send it";
            server.set("require_message_authenticator", true, &[], note);
            self.import.config.tables.push(server);
        }
        let report = &mut self.import.report;
        for (option, at) in &lines {
            report.key(at, option, &["radius.server.authentication"], "");
        }
        let keys = &["radius.server.secret_file"];
        report.key(&secret_at, "radius_secret", keys, "");
        self.records(accounting, interim);
        self.disconnect(dae);
    }

    /// The servers and their ports. The secondary server takes the port of the first one if it has none.
    fn servers(&mut self) -> (Vec<Server>, Vec<Line>) {
        let (mut servers, mut lines) = (Vec::new(), Vec::new());
        let mut port = 1812;
        for (option, port_option) in [
            ("primary_radius", "primary_radius_port"),
            ("secondary_radius", "secondary_radius_port"),
        ] {
            let own = self.number(port_option);
            let server = self.address(option);
            let mut from = Vec::new();
            match own {
                Some((number, at)) if (0..65_535).contains(&number) => {
                    port = if number == 0 { port } else { number };
                    if server.is_some() {
                        lines.push((port_option, at.clone()));
                        from.push(at);
                    } else {
                        let why = "the server is not set";
                        let report = &mut self.import.report;
                        report.line(&at, port_option, Fate::NoEffect, why);
                    }
                }
                Some((_, at)) => {
                    let why = "not a port with another one behind it";
                    self.import.report.unknown(&at, port_option, why);
                }
                None => {}
            }
            if let Some((ip, at)) = server {
                lines.push((option, at.clone()));
                from.push(at);
                servers.push((ip, port, from));
            }
        }
        (servers, lines)
    }

    /// Accounting, with the servers.
    fn records(&mut self, accounting: Option<(bool, Place)>, interim: Option<(i64, Place)>) {
        let is_on = accounting.as_ref().is_some_and(|(is_on, _)| *is_on);
        if let Some((_, at)) = accounting {
            if is_on {
                let keys = &["radius.server.accounting"];
                self.import.report.key(&at, "radius_accounting", keys, "");
            } else {
                self.kept("radius_accounting", &at);
            }
        }
        if let Some((seconds, at)) = interim {
            if is_on && seconds > 0 {
                self.key("ppp", "interim_interval_s", seconds, &at, "radius_interim");
            } else {
                let why = "without radius_accounting, or with 0, there are no interim records";
                let report = &mut self.import.report;
                report.line(&at, "radius_interim", Fate::Kept, why);
            }
        }
    }

    fn disconnect(&mut self, dae: Option<(i64, Place)>) {
        let (port, at) = match dae {
            Some((port, at)) => (if port == 0 { 3799 } else { port }, Some(at)),
            None => (3799, None),
        };
        let value = format!("0.0.0.0:{port}");
        match at {
            Some(at) => self.key("radius", "disconnect", value, &at, "radius_dae_port"),
            None => {
                let config = &mut self.import.config;
                config.note("radius", "disconnect", value, "l2tpns's default");
            }
        }
    }

    /// `ppp.authenticate`.
    fn methods(&mut self) {
        let Some((value, at)) = self.take("radius_authtypes") else {
            return;
        };
        let mut methods: Vec<&str> = Vec::new();
        let words = value
            .split([' ', '\t', ','])
            .filter(|word| !word.is_empty());
        for word in words {
            let word = word.to_ascii_lowercase();
            let known = ["chap", "pap"]
                .into_iter()
                .find(|name| name.starts_with(&word));
            let Some(known) = known else {
                let why = "the methods are chap and pap";
                self.import.report.unknown(&at, "radius_authtypes", why);
                return;
            };
            if !methods.contains(&known) {
                methods.push(known);
            }
        }
        if methods.is_empty() {
            let why = "without a method, l2tpns takes pap";
            self.import
                .report
                .line(&at, "radius_authtypes", Fate::Kept, why);
        } else {
            let methods = Value::texts(&methods);
            self.key("ppp", "authenticate", methods, &at, "radius_authtypes");
        }
    }
}
