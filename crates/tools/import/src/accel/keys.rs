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
    ("ppp mru", "ppp", "mru", Number),
    ("ppp lcp-echo-failure", "ppp", "echo_tries", Number),
    ("ppp lcp-echo-interval", "ppp", "echo_interval_s", Number),
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
    ("pppoe ppp-max-mtu", "pppoe", "max_payload", Number),
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

/// A rate in kbit/s, as headend writes it.
pub(super) fn rate(text: &str) -> Option<String> {
    let number: u64 = text.trim().parse().ok()?;
    Some(match number {
        0 => "none".to_owned(),
        number => format!("{number}kbit"),
    })
}
