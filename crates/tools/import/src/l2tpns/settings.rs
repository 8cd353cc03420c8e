//! The variables of l2tpns that become keys. Several of them make one key, so each is taken when it is needed.

use std::net::Ipv4Addr;

use super::{Setting, Work};
use crate::document::{Table, Value};
use crate::report::{Fate, Place};

/// Octets that l2tpns counts for IP, UDP, L2TP and PPP.
const HEADERS: i64 = 38;

/// The least number of seconds between two Echo-Requests of l2tpns.
const ECHO_S: i64 = 10;

/// Seconds without a packet after which l2tpns ends a session.
const IDLE_ECHO_S: i64 = 240;

impl Work {
    pub(super) fn take_settings(&mut self) {
        let own = self.addresses();
        self.link();
        self.echo();
        self.names();
        self.log();
        self.radius();
        let config = &mut self.import.config;
        let ppp = config.table("ppp");
        if let Some((own, from, note)) = own {
            ppp.set("address", own, &from, note);
        }
        if ppp.get("address").is_none() {
            let why = "not in the source: headend needs an address of its own";
            ppp.set("address", "10.255.255.254", &[], why);
        }
        if ppp.get("authenticate").is_none() {
            ppp.set(
                "authenticate",
                Value::texts(&["pap"]),
                &[],
                "l2tpns's default",
            );
        }
        if !config.has("radius.server") {
            let why = "not in the source: headend needs a RADIUS server or users";
            config.note("users", "file", crate::output::USERS, why);
        }
        if !config.has("pool") {
            let why = "not in the source: give l2tpns's ip_pool on the command line";
            let mut pool = Table::each("pool");
            pool.set("name", "ip_pool", &[], "");
            pool.set("ranges", Value::texts(&["192.0.2.0/24"]), &[], why);
            config.tables.push(pool);
        }
        let tun = config.table("tun");
        if tun.get("name").is_none() {
            tun.set("name", "tun0", &[], "l2tpns's default");
        }
    }

    /// A variable that was not taken yet.
    pub(super) fn take(&mut self, option: &'static str) -> Option<Setting> {
        self.settings.remove(option)
    }

    /// An IPv4 address; 0.0.0.0 is none.
    pub(super) fn address(&mut self, option: &'static str) -> Option<(Ipv4Addr, Place)> {
        let (value, at) = self.take(option)?;
        match value.parse::<Ipv4Addr>() {
            Ok(ip) if ip.is_unspecified() => {
                let why = "0.0.0.0 sets nothing";
                self.import.report.line(&at, option, Fate::Kept, why);
                None
            }
            Ok(ip) => Some((ip, at)),
            Err(_) => {
                let why = "not an IPv4 address";
                self.import.report.unknown(&at, option, why);
                None
            }
        }
    }

    pub(super) fn number(&mut self, option: &'static str) -> Option<(i64, Place)> {
        let (value, at) = self.take(option)?;
        let number = value.parse::<u32>().ok().map(i64::from);
        if number.is_none() {
            let why = "the value is not a number";
            self.import.report.unknown(&at, option, why);
        }
        Some((number?, at))
    }

    /// What l2tpns takes as true; every other word is false.
    pub(super) fn flag(&mut self, option: &'static str) -> Option<(bool, Place)> {
        let (value, at) = self.take(option)?;
        let word = value.to_ascii_lowercase();
        Some((matches!(&*word, "yes" | "true" | "1"), at))
    }

    pub(super) fn kept(&mut self, option: &str, at: &Place) {
        let why = "headend does this without a key";
        self.import.report.line(at, option, Fate::Kept, why);
    }

    /// Sets a key and reports the line.
    pub(super) fn key(
        &mut self,
        path: &str,
        key: &str,
        value: impl Into<Value>,
        at: &Place,
        option: &str,
    ) {
        self.import.config.set(path, key, value, at);
        self.import
            .report
            .key(at, option, &[&format!("{path}.{key}")], "");
    }

    /// `lns.listen`; returns the edge's own address.
    fn addresses(&mut self) -> Option<(String, Vec<Place>, &'static str)> {
        const HOST: &str = "the host must have the address; l2tpns gave it to its device";
        let multi = self.take("bind_multi_address");
        let bind = self.address("bind_address");
        let mut listen = vec!["0.0.0.0:1701".to_owned()];
        let mut own = None;
        let (mut from, mut note) = (Vec::new(), "l2tpns's default");
        if let Some((value, at)) = multi {
            let words = value.split([',', ' ']).filter(|word| !word.is_empty());
            let all: Vec<Option<Ipv4Addr>> = words.map(|word| word.parse().ok()).collect();
            if all.is_empty() || all.contains(&None) {
                let why = "not IPv4 addresses with commas between";
                self.import.report.unknown(&at, "bind_multi_address", why);
            } else {
                let all: Vec<Ipv4Addr> = all.into_iter().flatten().collect();
                listen = all.iter().map(|ip| format!("{ip}:1701")).collect();
                own = Some((all[0], at.clone(), "bind_multi_address"));
                (from, note) = (vec![at], "");
            }
        }
        match (bind, &own) {
            (Some((_, at)), Some(_)) => {
                let why = "bind_multi_address overrides it";
                self.import
                    .report
                    .line(&at, "bind_address", Fate::NoEffect, why);
            }
            (Some((ip, at)), None) => {
                listen = vec![format!("{ip}:1701")];
                own = Some((ip, at.clone(), "bind_address"));
                (from, note) = (vec![at], "");
            }
            (None, _) => {}
        }
        let lns = self.import.config.table("lns");
        lns.set("listen", Value::Texts(listen), &from, note);
        let (tun, peer) = (self.address("iftun_address"), self.address("peer_address"));
        if let Some((_, at, option)) = &own {
            let keys: &[&str] = if tun.is_some() || peer.is_some() {
                &["lns.listen"]
            } else {
                &["lns.listen", "ppp.address"]
            };
            self.import.report.key(at, option, keys, HOST);
        }
        for (setting, option) in [(peer, "peer_address"), (tun, "iftun_address")] {
            let Some((ip, at)) = setting else { continue };
            let is_first = self.import.config.table("ppp").get("address").is_none();
            if is_first {
                self.key("ppp", "address", ip.to_string(), &at, option);
            } else {
                let why = "headend has one address for all subscribers, that of peer_address";
                self.import.report.lost(&at, option, why);
            }
        }
        let is_set = self.import.config.table("ppp").get("address").is_some();
        let own = own.filter(|_| !is_set);
        own.map(|(ip, at, _)| (ip.to_string(), vec![at], ""))
    }

    /// The options of PPP links.
    fn link(&mut self) {
        let (mtu, from, note) = match self.number("l2tp_mtu") {
            Some((mtu, at)) => {
                let keys = &["ppp.mru", "ppp.path_mtu"];
                self.import.report.key(&at, "l2tp_mtu", keys, "");
                // The limits are l2tpns's.
                let mtu = if mtu == 0 { 1500 } else { mtu.clamp(576, 2600) };
                (mtu, vec![at], "")
            }
            None => (1500, Vec::new(), "l2tpns's default"),
        };
        let ppp = self.import.config.table("ppp");
        ppp.set("mru", (mtu - HEADERS).min(1492), &from, note);
        if !from.is_empty() {
            ppp.set("path_mtu", mtu, &from, "");
        }
        for (option, key) in [
            ("ppp_restart_time", "restart_s"),
            ("ppp_max_configure", "configure_tries"),
            ("ppp_max_failure", "failure_tries"),
        ] {
            if let Some((number, at)) = self.number(option) {
                self.key("ppp", key, number, &at, option);
            }
        }
        for option in ["primary_dns", "secondary_dns"] {
            if let Some((ip, at)) = self.address(option) {
                let ppp = self.import.config.table("ppp");
                ppp.add("dns", &ip.to_string(), &at);
                self.import.report.key(&at, option, &["ppp.dns"], "");
            }
        }
        let mut has_ipv6 = false;
        if let Some((value, at)) = self.take("ipv6_prefix") {
            match value.parse::<std::net::Ipv6Addr>() {
                Ok(ip) if ip.is_unspecified() => self.kept("ipv6_prefix", &at),
                Ok(_) => {
                    self.import.config.set("ppp", "ipv6", true, &at);
                    has_ipv6 = true;
                    let why = "ppp.ipv6 is on, but headend derives no addresses from a prefix: give networks in users.toml or RADIUS";
                    self.import.report.lost(&at, "ipv6_prefix", why);
                }
                Err(_) => {
                    let why = "not an IPv6 address";
                    self.import.report.unknown(&at, "ipv6_prefix", why);
                }
            }
        }
        if !has_ipv6 {
            let note = "l2tpns's default, without ipv6_prefix";
            self.import.config.note("ppp", "ipv6", false, note);
        }
    }

    /// Echo-Requests, and how long a session may be silent.
    fn echo(&mut self) {
        const DEFAULT: &str = "l2tpns's default";
        let every = self.number("echo_timeout");
        let silent = self.number("idle_echo_timeout");
        let mut is_always = false;
        let mut from = Vec::new();
        if let Some((is_quiet, at)) = self.flag("ppp_keepalive") {
            let report = &mut self.import.report;
            is_always = !is_quiet;
            if is_quiet {
                let why = "headend sends Echo-Requests also while data arrives";
                report.lost(&at, "ppp_keepalive", why);
            } else {
                report.key(&at, "ppp_keepalive", &["ppp.echo_interval_s"], "");
                from.push(at);
            }
        }
        let interval = match &every {
            Some((_, at)) if is_always => {
                let why = "without ppp_keepalive, l2tpns sends one each 10 s";
                let report = &mut self.import.report;
                report.line(at, "echo_timeout", Fate::NoEffect, why);
                ECHO_S
            }
            Some((seconds, at)) => {
                let keys = &["ppp.echo_interval_s"];
                self.import.report.key(at, "echo_timeout", keys, "");
                from.push(at.clone());
                (*seconds).max(ECHO_S)
            }
            None => ECHO_S,
        };
        let note = if from.is_empty() { DEFAULT } else { "" };
        let ppp = self.import.config.table("ppp");
        ppp.set("echo_interval_s", interval, &from, note);
        let (seconds, from, note) = match silent {
            Some((seconds, at)) => {
                let keys = &["ppp.echo_tries"];
                self.import.report.key(&at, "idle_echo_timeout", keys, "");
                (seconds, vec![at], "this time divided by the interval")
            }
            None => (
                IDLE_ECHO_S,
                Vec::new(),
                "l2tpns's default: 240 s of silence",
            ),
        };
        let ppp = self.import.config.table("ppp");
        let tries = (seconds / interval).clamp(1, 255);
        ppp.set("echo_tries", tries, &from, note);
    }

    /// The server's name and secret, its device, and HELLO.
    fn names(&mut self) {
        let multi = self.take("multi_hostname");
        let host = self.take("hostname");
        let first = multi.map(|(value, at)| {
            let name = value.split([',', '\t']).map(str::trim);
            let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
            let mut names = name.collect::<Vec<_>>().into_iter();
            (names.next().unwrap_or_default(), names.len(), at)
        });
        let name = match (first, host) {
            (Some((name, more, at)), host) => {
                if let Some((_, at)) = host {
                    let why = "multi_hostname overrides it";
                    self.import
                        .report
                        .line(&at, "hostname", Fate::NoEffect, why);
                }
                if more > 0 {
                    let why = "headend has one host name; the first of the list becomes it";
                    self.import.report.lost(&at, "multi_hostname", why);
                }
                Some((name, at, "multi_hostname"))
            }
            (None, host) => host.map(|(name, at)| (name, at, "hostname")),
        };
        if let Some((name, at, option)) = name {
            self.import.config.set("l2tp", "host_name", &*name, &at);
            self.import.config.set("ppp", "name", name, &at);
            let keys = &["l2tp.host_name", "ppp.name"];
            self.import.report.key(&at, option, keys, "");
        }
        if let Some((secret, at)) = self.take("l2tp_secret") {
            let why = "headend also challenges the LAC, which l2tpns does not: every LAC must have the secret";
            if secret.is_empty() {
                self.kept("l2tp_secret", &at);
            } else {
                self.import.secret("l2tp", "l2tp", &secret, &at);
                let keys = &["l2tp.secret_file"];
                self.import.report.key(&at, "l2tp_secret", keys, why);
            }
        }
        if let Some((is_silent, at)) = self.flag("disable_sending_hello") {
            if is_silent {
                self.key(
                    "l2tp",
                    "hello_interval_s",
                    0_i64,
                    &at,
                    "disable_sending_hello",
                );
            } else {
                self.kept("disable_sending_hello", &at);
            }
        }
        if let Some((name, at)) = self.take("tundevicename") {
            self.key("tun", "name", name, &at, "tundevicename");
        }
    }

    fn log(&mut self) {
        let Some((level, at)) = self.number("debug") else {
            return;
        };
        let level = match level {
            0 | 1 => "error",
            2 => "warn",
            3 => "info",
            4 => "debug",
            _ => "trace",
        };
        self.key("log", "level", level, &at, "debug");
    }

    /// A line of `ip_pool`: `NETWORK/LENGTH` or `ADDRESS`, with `BIND:` before it for one of several servers.
    pub(super) fn pool_line(&mut self, text: &str, at: &Place) {
        let option = "pool";
        let report = &mut self.import.report;
        let (server, range) = match text.split_once(':') {
            Some((server, range)) => (Some(server.trim()), range.trim()),
            None => (None, text),
        };
        if let Some(server) = server
            && self
                .settings
                .get("bind_address")
                .is_none_or(|(own, _)| own != server)
        {
            let why = "the line is for a server with another bind_address";
            return report.line(at, option, Fate::NoEffect, why);
        }
        let range = match (range.parse::<Ipv4Addr>(), crate::bgp::network(range)) {
            (Ok(one), _) => one.to_string(),
            (_, Some(network)) if !range.contains(':') => network,
            _ => {
                let why = "not an IPv4 address or network";
                return report.unknown(at, option, why);
            }
        };
        report.key(at, option, &["pool.ranges"], "");
        let tables = &mut self.import.config.tables;
        let known = tables.iter().position(|table| table.path == "pool");
        let known = known.unwrap_or_else(|| {
            let mut pool = Table::each("pool");
            pool.set("name", "ip_pool", &[], "the file's name");
            tables.push(pool);
            tables.len() - 1
        });
        tables[known].add("ranges", &range, at);
    }
}
