//! Options that become one key each, and the keys of links that follow from several.

use super::Work;
use crate::document::Value;
use crate::report::Fate;

/// How a value is written in the result.
#[derive(Clone, Copy)]
enum Form {
    Number,
    Text,
    Flag,
}

use Form::{Flag, Number, Text};

/// Options, each with its section and key.
const PLAIN: &[(&str, &str, &str, Form)] = &[
    ("ppp mtu", "tun", "mtu", Number),
    ("auth challenge-name", "ppp", "name", Text),
    ("auth interval", "ppp", "rechallenge_interval_s", Number),
    ("auth timeout", "ppp", "authentication_timeout_s", Number),
    ("ppp max-configure", "ppp", "configure_tries", Number),
    ("ppp max-failure", "ppp", "failure_tries", Number),
    ("ppp max-terminate", "ppp", "terminate_tries", Number),
    ("ppp timeout", "ppp", "restart_s", Number),
    ("common session-timeout", "ppp", "session_timeout_s", Number),
    ("pppoe session-timeout", "ppp", "session_timeout_s", Number),
    ("l2tp session-timeout", "ppp", "session_timeout_s", Number),
    ("l2tp host-name", "l2tp", "host_name", Text),
    ("l2tp hello-interval", "l2tp", "hello_interval_s", Number),
    ("l2tp timeout", "l2tp", "setup_timeout_s", Number),
    ("l2tp rtimeout", "l2tp", "retransmit_first_s", Number),
    ("l2tp rtimeout-cap", "l2tp", "retransmit_cap_s", Number),
    ("l2tp retransmit", "l2tp", "retransmit_tries", Number),
    ("l2tp recv-window", "l2tp", "receive_window", Number),
    ("radius nas-identifier", "radius", "nas_identifier", Text),
    ("radius nas-ip-address", "radius", "nas_address", Text),
    ("radius acct-delay-time", "radius", "acct_delay_time", Flag),
    (
        "radius acct-interim-interval",
        "ppp",
        "interim_interval_s",
        Number,
    ),
    ("ipv6-dhcp pref-lifetime", "ipv6", "preferred_s", Number),
    ("ipv6-dhcp valid-lifetime", "ipv6", "valid_s", Number),
    (
        "ipv6-nd MaxRtrAdvInterval",
        "ipv6",
        "advertise_interval_s",
        Number,
    ),
    (
        "ipv6-nd AdvDefaultLifetime",
        "ipv6",
        "router_lifetime_s",
        Number,
    ),
];

/// Options of `[pppoe]`, of which there is a section only with interfaces.
const PPPOE: &[(&str, &str, &str, Form)] = &[
    ("pppoe ac-name", "pppoe", "ac_name", Text),
    ("pppoe accept-blank-service", "pppoe", "any_service", Flag),
    ("pppoe cookie-timeout", "pppoe", "cookie_lifetime_s", Number),
    ("pppoe padi-limit", "pppoe", "padi_per_s", Number),
];

impl Work<'_> {
    /// Options that become one key each.
    pub(super) fn plain_keys(&mut self) {
        let has_pppoe = self.import.config.has("pppoe.interface");
        let pppoe = if has_pppoe { PPPOE } else { &[] };
        for (option, path, key, form) in PLAIN.iter().chain(pppoe) {
            match form {
                Number => {
                    if let Some((number, at)) = self.number(option) {
                        self.once(path, key, number, &at, option);
                    }
                }
                Flag => {
                    if let Some((is_on, at)) = self.flag(option) {
                        self.once(path, key, is_on, &at, option);
                    }
                }
                Text => {
                    if let Some((text, at)) = self.take(option) {
                        self.once(path, key, text, &at, option);
                    }
                }
            }
        }
    }

    /// The keys of links, and what accel-ppp does without an option.
    pub(super) fn links(&mut self) {
        if let Some((number, at)) = self.number("common max-sessions") {
            match number {
                0 => {
                    let why = "0 sets no limit";
                    self.import
                        .report
                        .line(&at, "common max-sessions", Fate::Kept, why);
                }
                number => self.once("ppp", "subscribers", number, &at, "common max-sessions"),
            }
        }
        if let Some((word, at)) = self.take("ppp pcomp") {
            self.once("ppp", "compress_headers", word == "allow", &at, "ppp pcomp");
        }
        if let Some((word, at)) = self.take("ppp ipv6") {
            self.once("ppp", "ipv6", word != "deny", &at, "ppp ipv6");
        }
        if let Some((level, at)) = self.number("log level") {
            let level = match level {
                0 | 1 => "error",
                2 => "warn",
                3 => "info",
                4 => "debug",
                _ => "trace",
            };
            self.once("log", "level", level, &at, "log level");
        }
        if let Some((rates, at)) = self.take("shaper rate-limit") {
            let (down, up) = rates.split_once('/').unwrap_or((&rates, &rates));
            match (rate(down), rate(up)) {
                (Some(down), Some(up)) => {
                    self.once("queue.default", "rate_down", down, &at, "shaper rate-limit");
                    self.once("queue.default", "rate_up", up, &at, "shaper rate-limit");
                }
                _ => {
                    let why = "not of the form DOWN/UP in kbit/s";
                    self.import.report.unknown(&at, "shaper rate-limit", why);
                }
            }
        }
        if let Some(at) = self.modules.get("net-snmp").cloned() {
            self.once("snmp", "agentx", "/var/agentx/master", &at, "net-snmp");
        }
        let ppp = self.import.config.table("ppp");
        if ppp.get("ipv6").is_none() {
            ppp.set("ipv6", false, &[], "accel-ppp's default");
        }
        if ppp.get("address").is_none() {
            let why = "not in the source: headend needs an address of its own";
            ppp.set("address", "10.255.255.254", &[], why);
        }
        if ppp.get("authenticate").is_none() {
            let both = Value::texts(&["chap", "pap"]);
            ppp.set(
                "authenticate",
                both,
                &[],
                "the source loads no module that headend has",
            );
        }
        let tun = self.import.config.table("tun");
        if tun.get("name").is_none() {
            tun.set("name", "headend%d", &[], "not in the source");
        }
    }
}

impl Work<'_> {
    /// The Echo-Requests of LCP. accel-ppp ends a link at the first time for a further Echo-Request when more than
    /// `lcp-echo-failure` have no reply; with `lcp-echo-timeout`, also not before the peer was silent for that long.
    pub(super) fn echoes(&mut self) {
        const INTERVAL: &str = "ppp lcp-echo-interval";
        let interval = self.number(INTERVAL);
        let interval_s = interval.as_ref().map_or(0, |(number, _)| *number);
        match interval {
            Some((number, at)) => self.once("ppp", "echo_interval_s", number, &at, INTERVAL),
            None => {
                let ppp = self.import.config.table("ppp");
                ppp.set(
                    "echo_interval_s",
                    Value::Number(0),
                    &[],
                    "accel-ppp's default: none",
                );
            }
        }
        let failure = self.number("ppp lcp-echo-failure");
        let timeout = self.number("ppp lcp-echo-timeout");
        if interval_s == 0 {
            for (option, setting) in [
                ("ppp lcp-echo-failure", &failure),
                ("ppp lcp-echo-timeout", &timeout),
            ] {
                if let Some((_, at)) = setting {
                    let why = "without an interval there are no Echo-Requests";
                    self.import.report.line(at, option, Fate::NoEffect, why);
                }
            }
            return;
        }
        let silent_s = timeout.as_ref().map_or(0, |(number, _)| *number);
        let least = failure.as_ref().map_or(0, |(number, _)| *number) + 1;
        let tries = least.max((silent_s + interval_s - 1) / interval_s).min(255);
        let mut from = Vec::new();
        for (option, setting) in [
            ("ppp lcp-echo-failure", failure),
            ("ppp lcp-echo-timeout", timeout),
        ] {
            if let Some((_, at)) = setting {
                self.import.report.key(&at, option, &["ppp.echo_tries"], "");
                from.push(at);
            }
        }
        let note = match from.is_empty() {
            true => "accel-ppp's default: a link ends after the first one",
            false => "",
        };
        self.import
            .config
            .table("ppp")
            .set("echo_tries", tries, &from, note);
    }

    /// `ppp.mru`: the smallest of the option and the limits of accel-ppp. Without the option it is the largest possible:
    /// 1,492 for PPPoE, 1,420 for L2TP alone.
    pub(super) fn sizes(&mut self) {
        const TUNNEL: &str = "l2tp ppp-max-mtu";
        let has_pppoe = self.import.config.has("pppoe.interface");
        let has_l2tp = self.import.config.has("lns");
        let tunnel = self.number(TUNNEL);
        if let Some((_, at)) = &tunnel
            && (has_pppoe || !has_l2tp)
        {
            let why = "headend has one `ppp.mru`, also for PPPoE";
            self.import.report.lost(at, TUNNEL, why);
        }
        let mut tunnel = tunnel.filter(|_| has_l2tp && !has_pppoe);
        if let Some((_, at)) = tunnel.take_if(|(number, _)| *number == 0) {
            let why = "0 sets no limit";
            self.import.report.line(&at, TUNNEL, Fate::Kept, why);
        }
        let mut known = Vec::new();
        for option in ["ppp mru", "ppp max-mtu"] {
            match self.number(option) {
                Some((0, at)) => {
                    let why = "0 sets no limit";
                    self.import.report.line(&at, option, Fate::Kept, why);
                }
                Some((number, at)) => known.push((number, option, vec![at])),
                None => {}
            }
        }
        match (has_pppoe, has_l2tp, tunnel) {
            (true, ..) => known.push((1492, "", Vec::new())),
            (false, true, Some((number, at))) => known.push((number, TUNNEL, vec![at])),
            (false, true, None) => known.push((1420, "", Vec::new())),
            (false, false, _) => {}
        }
        let Some((number, option, from)) = known.iter().min_by_key(|one| one.0).cloned() else {
            return;
        };
        let note = match option {
            "" => "accel-ppp's largest MRU here",
            _ => "",
        };
        self.import
            .config
            .table("ppp")
            .set("mru", number, &from, note);
        for (_, one, from) in known {
            let Some(at) = from.first() else { continue };
            match one == option {
                true => self.import.report.key(at, one, &["ppp.mru"], ""),
                false => {
                    let why = "a smaller limit counts";
                    self.import.report.line(at, one, Fate::NoEffect, why);
                }
            }
        }
    }

    /// What accel-ppp does without an option, if headend does otherwise.
    pub(super) fn defaults(&mut self) {
        const NOTE: &str = "accel-ppp's default";
        let config = &mut self.import.config;
        let mut set = |path: &str, key: &str, value: Value| {
            let tables = config.tables.iter_mut().filter(|table| table.path == path);
            for table in tables {
                if table.get(key).is_none() {
                    table.set(key, value.clone(), &[], NOTE);
                }
            }
        };
        set("ppp", "failure_tries", Value::Number(10));
        set("radius.server", "timeout_s", Value::Number(3));
        set("ipv6", "valid_s", Value::Number(2_592_000));
        set("ipv6", "preferred_s", Value::Number(604_800));
        set("pppoe", "ac_name", "accel-ppp".into());
        set("pppoe", "cookie_lifetime_s", Value::Number(5));
        if config.has("lns") {
            let l2tp = config.table("l2tp");
            for (key, value) in [
                ("host_name", Value::from("accel-ppp")),
                ("receive_window", Value::Number(16)),
                ("retransmit_cap_s", Value::Number(16)),
            ] {
                if l2tp.get(key).is_none() {
                    l2tp.set(key, value, &[], NOTE);
                }
            }
        }
        // Named services are offered to hosts that ask for any only if an option says so.
        let tables = self.import.config.tables.iter_mut();
        for table in tables.filter(|table| table.path == "pppoe") {
            let is_named =
                matches!(table.get("services"), Some(Value::Texts(names)) if !names.is_empty());
            if is_named && table.get("any_service").is_none() {
                table.set("any_service", false, &[], NOTE);
            }
        }
    }
}

/// A rate in kbit/s, as headend writes it.
pub(super) fn rate(text: &str) -> Option<String> {
    let number: u64 = text.trim().parse().ok()?;
    Some(match number {
        0 => "none".to_owned(),
        number => format!("{number}kbit"),
    })
}
