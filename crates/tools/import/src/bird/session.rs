//! `protocol bgp`, `template bgp` and their channels.

use std::net::IpAddr;

use super::syntax::Statement;
use super::{Work, filter, rules};
use crate::bgp;
use crate::document::{Table, Value};
use crate::pattern::{self, Match};
use crate::report::{Fate, Place};

/// A session or a template.
#[derive(Clone, Debug)]
pub(super) struct Session {
    table: Table,
    asn: Option<(i64, Place)>,
    families: Vec<(&'static str, Place)>,
    /// The next hop to announce, by family.
    next_hops: Vec<(&'static str, String, Place)>,
    /// The filters by direction and family.
    filters: Vec<(&'static str, &'static str, filter::Policy, Place)>,
}

impl Work<'_> {
    pub(super) fn session(
        &mut self,
        option: &str,
        words: &[&str],
        statement: &Statement,
        at: &Place,
    ) {
        let is_template = option == "template bgp";
        let (name, parent) = match &words[2..] {
            [] => (None, None),
            ["from", parent] => (None, Some(*parent)),
            [name] => (Some(*name), None),
            [name, "from", parent] => (Some(*name), Some(*parent)),
            _ => {
                return self.import.report.unknown(
                    at,
                    option,
                    "write NAME from TEMPLATE, both of which may be missing",
                );
            }
        };
        let mut session = Session {
            table: Table::each("bgp.neighbor"),
            asn: None,
            families: Vec::new(),
            next_hops: Vec::new(),
            filters: Vec::new(),
        };
        if let Some(parent) = parent {
            match self.templates.get(parent) {
                Some(template) => session = template.clone(),
                None => self
                    .import
                    .report
                    .lost(at, option, "there is no such template"),
            }
        }
        if let Some(name) = name.filter(|_| !is_template) {
            session
                .table
                .set("name", name, std::slice::from_ref(at), "");
        }
        for inner in statement.block.iter().flatten() {
            self.statement(&mut session, inner);
        }
        self.import.report.key(at, option, &["bgp.neighbor"], "");
        if is_template {
            self.templates
                .insert(name.unwrap_or_default().to_owned(), session);
        } else {
            self.finish_session(session, at);
        }
    }

    fn statement(&mut self, session: &mut Session, inner: &Statement) {
        let at = self.at(inner);
        let words: Vec<String> = inner
            .words()
            .into_iter()
            .map(|word| self.value(word))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some(found) = pattern::settle(rules::BGP, &words, &at, &mut self.import.report) else {
            let why = "in a block that is not carried over";
            let known = pattern::find(rules::BGP, &words).map(|found| found.rule.fate);
            return self.inside(inner, known.unwrap_or(Fate::NotSupported), why);
        };
        match found.rule.name {
            "ipv4" => self.channel(session, inner, "ipv4", &at),
            "ipv6" => self.channel(session, inner, "ipv6", &at),
            "local" => self.local(session, found.rest, &at),
            "neighbor" => self.neighbor(session, found.rest, &at),
            "password" => {
                let secret = found.rest.first().copied().unwrap_or_default();
                let name = match session.table.get("name") {
                    Some(Value::Text(name)) => name.clone(),
                    _ => "peer".into(),
                };
                if let Some(file) = self.import.keep_secret(&format!("bgp-{name}"), secret) {
                    session
                        .table
                        .set("secret_file", file, std::slice::from_ref(&at), "");
                    self.import
                        .report
                        .key(&at, "password", &["bgp.neighbor.secret_file"], "");
                } else {
                    self.import
                        .report
                        .unknown(&at, "password", "the value is missing");
                }
                self.inside(inner, Fate::NotSupported, "TCP MD5 is the only method");
            }
            "rr cluster id" => {
                let value = found.rest.first().copied().unwrap_or_default();
                self.import.config.set("bgp", "cluster_id", value, &at);
                self.import
                    .report
                    .key(&at, "rr cluster id", &["bgp.cluster_id"], "");
            }
            _ => self.simple(session, &found, &at),
        }
    }

    /// A statement that is one key with one value.
    fn simple(&mut self, session: &mut Session, found: &Match<'_>, at: &Place) {
        let option = found.rule.name;
        let value = found.rest.first().copied().unwrap_or_default();
        let number = || {
            value
                .parse::<u32>()
                .ok()
                .map(|number| Value::Number(number.into()))
        };
        let flag = || match value {
            "" | "on" | "yes" | "true" => Some(Value::Flag(true)),
            "off" | "no" | "false" => Some(Value::Flag(false)),
            _ => None,
        };
        let set = match option {
            "allow local as" if value.is_empty() => Some(("allow_own_asn", Some(Value::Number(1)))),
            "allow local as" => Some(("allow_own_asn", number())),
            "connect delay time" => Some(("idle_hold_s", number())),
            "connect retry time" => Some(("connect_retry_s", number())),
            "description" => Some(("name", (!value.is_empty()).then(|| value.into()))),
            "disabled" => Some((
                "enabled",
                flag().map(|flag| Value::Flag(flag == Value::Flag(false))),
            )),
            "enable extended messages" => Some(("extended_messages", flag())),
            "enable route refresh" => Some(("refresh", flag())),
            "enforce first as" => Some(("enforce_first_as", flag())),
            "graceful restart time" => Some(("restart_time_s", number())),
            "graceful restart" if value == "aware" => {
                Some(("graceful_restart", Some(Value::Flag(true))))
            }
            "graceful restart" => Some(("graceful_restart", flag())),
            "hold time" => Some(("hold_time_s", number())),
            "keepalive time" => Some(("keepalive_s", number())),
            "local role" => Some((
                "role",
                Some(value.replace('_', "-").replace("rs-server", "rs").into()),
            )),
            "multihop" if value.is_empty() => Some(("ttl", Some(Value::Number(64)))),
            "multihop" => Some(("ttl", number())),
            "passive" => Some(("passive", flag())),
            "require roles" => Some(("role_strict", flag())),
            "rr client" => Some(("route_reflector_client", flag())),
            "source address" => Some((
                "local_address",
                value.parse::<IpAddr>().ok().map(|_| value.into()),
            )),
            "ttl security" if matches!(value, "off" | "no") => None,
            "ttl security" => Some(("ttl_security_hops", Some(Value::Number(1)))),
            _ => None,
        };
        match set {
            Some((key, Some(value))) => {
                session.table.set(key, value, std::slice::from_ref(at), "");
                self.import
                    .report
                    .key(at, option, &[&format!("bgp.neighbor.{key}")], "");
            }
            Some((_, None)) => {
                self.import
                    .report
                    .unknown(at, option, "the value has the wrong form")
            }
            None => self
                .import
                .report
                .line(at, option, Fate::Kept, "it is off by default"),
        }
    }

    /// `local [IP] [port N] [as ASN]`.
    fn local(&mut self, session: &mut Session, rest: &[&str], at: &Place) {
        let mut keys = Vec::new();
        let mut rest = rest;
        while let Some((word, after)) = rest.split_first() {
            rest = after;
            let next = after.first().copied().unwrap_or_default();
            match *word {
                "as" => {
                    rest = after.get(1..).unwrap_or_default();
                    if let Ok(asn) = next.parse::<u32>() {
                        session.asn = Some((asn.into(), at.clone()));
                        keys.push("bgp.asn");
                    }
                }
                "port" => {
                    rest = after.get(1..).unwrap_or_default();
                    if let Ok(port) = next.parse::<u16>() {
                        let listen = [format!("0.0.0.0:{port}"), format!("[::]:{port}")];
                        self.import
                            .config
                            .set("bgp", "listen", Value::texts(&listen), at);
                        keys.push("bgp.listen");
                    }
                }
                ip if ip.parse::<IpAddr>().is_ok() => {
                    session
                        .table
                        .set("local_address", ip, std::slice::from_ref(at), "");
                    keys.push("bgp.neighbor.local_address");
                }
                _ => {
                    return self.import.report.unknown(
                        at,
                        "local",
                        "write local ADDRESS port NUMBER as ASN",
                    );
                }
            }
        }
        self.import.report.key(at, "local", &keys, "");
    }

    /// `neighbor [IP | range PREFIX] [port N] [as ASN | internal | external]`.
    fn neighbor(&mut self, session: &mut Session, rest: &[&str], at: &Place) {
        let from = std::slice::from_ref(at);
        let mut keys = Vec::new();
        let mut rest = rest;
        while let Some((word, after)) = rest.split_first() {
            let next = after.first().copied().unwrap_or_default();
            let takes = matches!(*word, "range" | "port" | "as");
            rest = if takes {
                after.get(1..).unwrap_or_default()
            } else {
                after
            };
            let set: Option<(&'static str, Value)> = match *word {
                "range" => bgp::network(next).map(|prefix| ("prefix", prefix.into())),
                "port" => next
                    .parse::<u16>()
                    .ok()
                    .map(|port| ("port", Value::Number(port.into()))),
                "as" => next
                    .parse::<u32>()
                    .ok()
                    .map(|asn| ("remote_asn", Value::Number(asn.into()))),
                kind @ ("internal" | "external") => Some(("remote_asn", kind.into())),
                ip => ip.parse::<IpAddr>().ok().map(|_| ("address", ip.into())),
            };
            let Some((key, value)) = set else {
                return self.import.report.unknown(at, "neighbor", "write neighbor ADDRESS port NUMBER as ASN; headend has no sessions by interface");
            };
            session.table.set(key, value, from, "");
            keys.push(format!("bgp.neighbor.{key}"));
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.import.report.key(at, "neighbor", &keys, "");
    }

    fn channel(
        &mut self,
        session: &mut Session,
        statement: &Statement,
        family: &'static str,
        at: &Place,
    ) {
        session.families.retain(|(known, _)| *known != family);
        session.families.push((family, at.clone()));
        self.import
            .report
            .key(at, family, &["bgp.neighbor.families"], "");
        for inner in statement.block.iter().flatten() {
            let at = self.at(inner);
            let words: Vec<String> = inner
                .words()
                .into_iter()
                .map(|word| self.value(word))
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let Some(found) = pattern::settle(rules::CHANNEL, &words, &at, &mut self.import.report)
            else {
                self.inside(
                    inner,
                    Fate::NotSupported,
                    "in a block that is not carried over",
                );
                continue;
            };
            self.channel_option(session, &found, inner, family, at);
        }
    }

    /// A statement of a channel that becomes a key.
    fn channel_option(
        &mut self,
        session: &mut Session,
        found: &Match<'_>,
        inner: &Statement,
        family: &'static str,
        at: Place,
    ) {
        let value = found.rest.first().copied().unwrap_or_default();
        let option = found.rule.name;
        match option {
            "import" | "export" => {
                let direction = if option == "import" {
                    "import"
                } else {
                    "export"
                };
                // The own AS, which is known from a statement before.
                self.prepends = session.asn.as_ref().map(|(asn, _)| *asn).or(self.asn);
                let policy = self.policy(found.rest, inner, &at);
                session
                    .filters
                    .retain(|(d, f, ..)| (*d, *f) != (direction, family));
                session.filters.push((direction, family, policy, at));
            }
            "import limit" | "receive limit" => self.limit(session, found.rest, &at, option),
            "next hop address" if value.parse::<IpAddr>().is_ok() => {
                session.next_hops.retain(|(known, ..)| *known != family);
                session
                    .next_hops
                    .push((family, value.to_owned(), at.clone()));
                let keys = ["bgp.policy.term.set_next_hop"];
                self.import.report.key(&at, option, &keys, "");
            }
            "next hop address" => self.import.report.unknown(&at, option, "not an address"),
            "next hop self" | "next hop keep" => {
                let key = if option == "next hop self" {
                    "next_hop_self"
                } else {
                    "next_hop_unchanged"
                };
                session.table.set(
                    key,
                    !matches!(value, "off" | "no"),
                    std::slice::from_ref(&at),
                    "",
                );
                self.import
                    .report
                    .key(&at, option, &[&format!("bgp.neighbor.{key}")], "");
            }
            _ => {
                let keys: &[&str] = match value {
                    "on" | "yes" | "" => &["add_path_receive", "add_path_send"],
                    "rx" => &["add_path_receive"],
                    "tx" => &["add_path_send"],
                    _ => &[],
                };
                for key in keys {
                    session.table.add(key, family, &at);
                }
                let keys: Vec<String> = keys
                    .iter()
                    .map(|key| format!("bgp.neighbor.{key}"))
                    .collect();
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                self.import.report.key(&at, option, &keys, "");
            }
        }
    }

    fn limit(&mut self, session: &mut Session, rest: &[&str], at: &Place, option: &str) {
        match rest {
            [most, "action", "warn" | "block", ..] if most.parse::<u32>().is_ok() => {
                self.import
                    .report
                    .lost(at, option, "headend ends the session at its limit");
            }
            [most, ..] => match most.parse::<u32>() {
                Ok(most) => {
                    session.table.set(
                        "prefixes_max",
                        i64::from(most),
                        std::slice::from_ref(at),
                        "",
                    );
                    self.import
                        .report
                        .key(at, option, &["bgp.neighbor.prefixes_max"], "");
                }
                Err(_) if *most == "off" => {
                    self.import
                        .report
                        .line(at, option, Fate::Kept, "no limit by default")
                }
                Err(_) => self
                    .import
                    .report
                    .unknown(at, option, "the value is not a number"),
            },
            [] => self
                .import
                .report
                .unknown(at, option, "the value is missing"),
        }
    }

    fn finish_session(&mut self, mut session: Session, at: &Place) {
        self.first_bgp.get_or_insert_with(|| at.clone());
        if let Some((asn, place)) = &session.asn {
            match self.asn {
                None => {
                    self.asn = Some(*asn);
                    self.import.config.set("bgp", "asn", *asn, place);
                }
                Some(own) if own != *asn => {
                    session
                        .table
                        .set("local_asn", *asn, std::slice::from_ref(place), "");
                }
                Some(_) => {}
            }
        }
        if session.table.get("prefix").is_some() {
            session.table.path = "bgp.dynamic".into();
            session.table.entries.retain(|entry| {
                !matches!(
                    &*entry.key,
                    "name" | "port" | "passive" | "local_address" | "address"
                )
            });
        }
        let families: Vec<&'static str> =
            session.families.iter().map(|(family, _)| *family).collect();
        let places: Vec<Place> = session.families.iter().map(|(_, at)| at.clone()).collect();
        if !families.is_empty() {
            session
                .table
                .set("families", Value::texts(&families), &places, "");
        }
        self.directions(&mut session, &families);
        self.import.config.tables.push(session.table);
    }

    /// Sets `import` and `export`.
    fn directions(&mut self, session: &mut Session, families: &[&'static str]) {
        let remote = session.table.get("remote_asn");
        let is_internal = remote == Some(&"internal".into())
            || self
                .asn
                .is_some_and(|asn| remote == Some(&Value::Number(asn)));
        for direction in ["import", "export"] {
            // Without a filter, BIRD imports from internal peers and exports nothing.
            let absent = if is_internal && direction == "import" {
                filter::Policy::accept()
            } else {
                filter::Policy::deny()
            };
            let filters: Vec<(&str, filter::Policy)> = families
                .iter()
                .map(|family| {
                    let found = session
                        .filters
                        .iter()
                        .find(|(d, f, ..)| (*d, *f) == (direction, *family));
                    let mut policy =
                        found.map_or(absent.clone(), |(_, _, policy, _)| policy.clone());
                    let mut hops = session.next_hops.iter();
                    if direction == "export"
                        && let Some((_, ip, at)) = hops.find(|(known, ..)| known == family)
                    {
                        policy = policy.with_next_hop(ip, at);
                    }
                    (*family, policy)
                })
                .collect();
            let from: Vec<Place> = session
                .filters
                .iter()
                .filter(|(d, ..)| *d == direction)
                .map(|(.., at)| at.clone())
                .collect();
            let name = filter::add(&mut self.import.config, &filters, &from);
            let note = if from.is_empty() {
                "BIRD's default"
            } else {
                ""
            };
            session.table.set(direction, name, &from, note);
        }
    }
}
