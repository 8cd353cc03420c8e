//! The RADIUS servers.

use std::net::IpAddr;

use super::{Setting, Work};
use crate::document::Table;
use crate::report::{Fate, Place};

/// A server while its line is read.
struct Server {
    table: Table,
    is_backup: bool,
    why: Vec<&'static str>,
}

impl Work<'_> {
    /// `[radius]` and its servers.
    pub(super) fn servers(&mut self) {
        let timeout = self.number("radius timeout");
        let tries = self.number("radius max-try");
        let fail = [
            ("radius fail-timeout", "dead_time_s"),
            ("radius max-fail", "dead_after"),
        ]
        .map(|(option, key)| (option, key, self.number(option)));
        let mut backups = Vec::new();
        for setting in self.take_all("radius server") {
            if let Some(server) = self.server(&setting) {
                match server.is_backup {
                    true => backups.push(server.table),
                    false => self.import.config.tables.push(server.table),
                }
            }
        }
        self.import.config.tables.extend(backups);
        for (option, key, port) in [
            ("radius auth-server", "authentication", 1812),
            ("radius acct-server", "accounting", 1813),
        ] {
            if let Some(setting) = self.take(option) {
                self.old_server(option, key, port, &setting);
            }
        }
        let has_servers = self.import.config.has("radius.server");
        for (option, key, setting) in [
            ("radius timeout", "timeout_s", timeout),
            ("radius max-try", "transmissions", tries),
        ] {
            let Some((number, at)) = setting else {
                continue;
            };
            if !has_servers {
                let why = "there is no server";
                self.import.report.line(&at, option, Fate::NoEffect, why);
                continue;
            }
            let tables = self.import.config.tables.iter_mut();
            for table in tables.filter(|table| table.path == "radius.server") {
                table.set(key, number, std::slice::from_ref(&at), "");
            }
            let name = format!("radius.server.{key}");
            self.import.report.key(&at, option, &[&name], "");
        }
        for (option, key, setting) in fail {
            let Some((number, at)) = setting else {
                continue;
            };
            if number == 0 || !has_servers {
                let why = "headend has its own default";
                self.import.report.line(&at, option, Fate::NoEffect, why);
                continue;
            }
            let tables = self.import.config.tables.iter_mut();
            for table in tables.filter(|table| table.path == "radius.server") {
                if table.get(key).is_none() {
                    table.set(key, number, std::slice::from_ref(&at), "");
                }
            }
            let name = format!("radius.server.{key}");
            self.import.report.key(&at, option, &[&name], "");
        }
        self.disconnect(has_servers);
    }

    /// `ADDRESS,SECRET,auth-port=N,acct-port=N,...`
    fn server(&mut self, (value, at): &Setting) -> Option<Server> {
        const OPTION: &str = "radius server";
        let mut words = value.split(',').map(str::trim);
        let (Some(address), Some(secret)) = (words.next(), words.next()) else {
            self.import
                .report
                .unknown(at, OPTION, "not of the form ADDRESS,SECRET");
            return None;
        };
        if !is_server(address, secret) {
            self.import.report.unknown(at, OPTION, NO_SERVER);
            return None;
        }
        let from = std::slice::from_ref(at);
        let mut server = Server {
            table: Table::each("radius.server"),
            is_backup: false,
            why: Vec::new(),
        };
        let (mut authentication, mut accounting) = (1812_i64, 1813_i64);
        for word in words {
            let (name, number) = word.split_once('=').unwrap_or((word, "0"));
            let number: i64 = number.parse().unwrap_or(-1);
            match name {
                "auth-port" => authentication = number,
                "acct-port" => accounting = number,
                "max-fail" if number > 0 => server.table.set("dead_after", number, from, ""),
                "fail-timeout" | "fail-time" if number > 0 => {
                    server.table.set("dead_time_s", number, from, "");
                }
                "max-fail" | "fail-timeout" | "fail-time" => {}
                "backup" => server.is_backup = true,
                "req-limit" => server
                    .why
                    .push("req-limit: headend limits requests by itself"),
                "weight" => server.why.push("weight: headend uses servers in order"),
                _ => server.why.push("an option of the server is not known"),
            }
        }
        for (key, port) in [
            ("authentication", authentication),
            ("accounting", accounting),
        ] {
            if (1..=65_535).contains(&port) {
                server
                    .table
                    .set(key, format!("{}:{port}", bracketed(address)), from, "");
            }
        }
        self.keep(&mut server.table, address, secret, at);
        let keys = &[
            "radius.server.authentication",
            "radius.server.accounting",
            "radius.server.secret_file",
        ];
        self.import
            .report
            .key(at, OPTION, keys, &server.why.join("; "));
        Some(server)
    }

    /// The name and the secret of a server.
    fn keep(&mut self, table: &mut Table, address: &str, secret: &str, at: &Place) {
        let from = std::slice::from_ref(at);
        if let Some(file) = self.import.keep_secret("radius", secret) {
            table.set("secret_file", file, from, "");
        }
        table.set("name", address, from, "");
        let note = "accel-ppp does not check it; false only if the server cannot send it";
        table.set("require_message_authenticator", true, &[], note);
    }

    /// `ADDRESS:PORT,SECRET` of older versions.
    fn old_server(&mut self, option: &'static str, key: &str, port: u16, (value, at): &Setting) {
        let Some((address, secret)) = value.split_once(',') else {
            let why = "not of the form ADDRESS:PORT,SECRET";
            return self.import.report.unknown(at, option, why);
        };
        let (address, port) = match address.trim().rsplit_once(':') {
            Some((address, own)) => (address, own.parse().unwrap_or(port)),
            None => (address.trim(), port),
        };
        if !is_server(address, secret.trim()) || port == 0 {
            return self.import.report.unknown(at, option, NO_SERVER);
        }
        let mut table = Table::each("radius.server");
        table.set(
            key,
            format!("{}:{port}", bracketed(address)),
            std::slice::from_ref(at),
            "",
        );
        self.keep(&mut table, address, secret.trim(), at);
        // Two servers need two names.
        table.set(
            "name",
            format!("{address} {key}"),
            std::slice::from_ref(at),
            "",
        );
        self.import.config.tables.push(table);
        self.import
            .report
            .key(at, option, &[&format!("radius.server.{key}")], "");
    }

    /// `dae-server=ADDRESS:PORT,SECRET`
    fn disconnect(&mut self, has_servers: bool) {
        const OPTION: &str = "radius dae-server";
        let Some((value, at)) = self.take(OPTION) else {
            return;
        };
        let mut words = value.split(',').map(str::trim);
        let listen = words.next().unwrap_or_default().to_owned();
        let secret = words.next().unwrap_or_default().to_owned();
        if !has_servers {
            let why = "headend needs a RADIUS server for this";
            return self.import.report.lost(&at, OPTION, why);
        }
        if let Some((senders, at)) = self.take(SENDERS) {
            self.senders(&senders, &secret, &at);
        }
        self.import.config.set("radius", "disconnect", listen, &at);
        let why = "a server signs its requests with its own secret; give another sender a `[[radius.client]]`";
        self.import
            .report
            .key(&at, OPTION, &["radius.disconnect"], why);
    }
}

/// The senders of CoA-Requests.
const SENDERS: &str = "radius dae-allowed";

impl Work<'_> {
    /// `dae-allowed=ADDRESS,NETWORK/LENGTH`: a `[[radius.client]]` for each address that is not a server's.
    fn senders(&mut self, senders: &str, secret: &str, at: &Place) {
        let from = std::slice::from_ref(at);
        for sender in senders.split(',').map(str::trim) {
            let sender = sender.strip_suffix("/32").unwrap_or(sender);
            let report = &mut self.import.report;
            if sender.contains('/') {
                let why = "headend takes addresses: give a `[[radius.client]]` for each sender";
                report.lost(at, SENDERS, why);
                continue;
            }
            let Ok(address) = sender.parse::<IpAddr>() else {
                report.unknown(at, SENDERS, "not an IP address");
                continue;
            };
            let mut tables = self.import.config.tables.iter();
            let is_server = tables.any(|table| {
                table.path == "radius.server" && table.get("name") == Some(&sender.into())
            });
            if is_server {
                let why = "headend answers the requests of its servers";
                self.import.report.line(at, SENDERS, Fate::Kept, why);
                continue;
            }
            let mut table = Table::each("radius.client");
            table.set("address", address.to_string(), from, "");
            if let Some(file) = self.import.keep_secret("dae", secret) {
                table.set("secret_file", file, from, "");
            }
            self.import.config.tables.push(table);
            self.import.report.key(at, SENDERS, &["radius.client"], "");
        }
    }
}

/// What is wrong with a server that is none.
const NO_SERVER: &str = "not an IP address with a secret; headend looks up no names";

/// Whether these are the address and the secret of a server.
fn is_server(address: &str, secret: &str) -> bool {
    address.parse::<IpAddr>().is_ok() && !secret.is_empty()
}

/// An IPv6 address in brackets.
fn bracketed(address: &str) -> String {
    match address.contains(':') {
        true => format!("[{address}]"),
        false => address.to_owned(),
    }
}
