//! `router bgp`: l2tpns announces its pools and its sessions' routes, and takes no routes.

use std::net::IpAddr;

use super::{Block, Work};
use crate::bgp;
use crate::document::{Table, Value};
use crate::report::{Fate, Place};

/// Neighbours that l2tpns holds.
const NEIGHBOURS_MAX: usize = 2;

/// What the block says.
#[derive(Debug, Default)]
pub(super) struct Bgp {
    asn: Option<(i64, Place)>,
    peers: Vec<(String, Table)>,
}

impl Work {
    pub(super) fn router(&mut self, words: &[&str], at: &Place) {
        let report = &mut self.import.report;
        self.block = Block::Top;
        let asn = match words {
            [asn] => asn.parse::<u16>().ok().filter(|asn| *asn != 0),
            _ => None,
        };
        let Some(asn) = asn else {
            return report.unknown(at, "router bgp", "not the number of an AS, 1 to 65535");
        };
        if let Some((_, old)) = self.bgp.asn.replace((i64::from(asn), at.clone())) {
            let why = "a later line gives it again";
            report.take_back(&old, "bgp.asn", Fate::NoEffect, why);
        }
        report.key(at, "router bgp", &["bgp.asn"], "");
        self.block = Block::Bgp;
    }

    pub(super) fn no_neighbour(&mut self, words: &[&str], at: &Place) {
        let known = words.first().and_then(|name| self.peer(name));
        let report = &mut self.import.report;
        let Some(known) = known else {
            return report.unknown(at, "no neighbour", "there is no such neighbour before it");
        };
        let (_, table) = self.bgp.peers.remove(known);
        for entry in &table.entries {
            for place in &entry.from {
                let key = table.name_of(entry);
                let why = "a later line removes the neighbour";
                report.take_back(place, &key, Fate::NoEffect, why);
            }
        }
        let why = "the neighbour is removed";
        report.line(at, "no neighbour", Fate::Kept, why);
    }

    pub(super) fn neighbour(&mut self, option: &str, names: &[&str], values: &[&str], at: &Place) {
        let report = &mut self.import.report;
        if self.block != Block::Bgp {
            let why = "not in router bgp; l2tpns ignores it";
            return report.line(at, option, Fate::NoEffect, why);
        }
        let name = names.first().copied().unwrap_or_default();
        if name.parse::<IpAddr>().is_err() {
            return report.lost(at, option, "not an address; headend looks up no names");
        }
        let first = option.ends_with("remote-as");
        let known = match self.peer(name) {
            Some(known) => known,
            None if !first => {
                let why = "remote-as must be first; l2tpns ignores it";
                return self.import.report.line(at, option, Fate::NoEffect, why);
            }
            None if self.bgp.peers.len() == NEIGHBOURS_MAX => {
                let why = "l2tpns has two neighbours at most";
                return self.import.report.line(at, option, Fate::NoEffect, why);
            }
            None => {
                let table = Table::each("bgp.neighbor");
                self.bgp.peers.push((name.to_owned(), table));
                self.bgp.peers.len() - 1
            }
        };
        let numbers: Vec<i64> = values.iter().filter_map(|word| word.parse().ok()).collect();
        let source = values.first().and_then(|word| word.parse::<IpAddr>().ok());
        let source = source.map(|source| source.to_string());
        let settings: Vec<(&str, Value)> = match (option.rsplit(' ').next(), &*numbers, source) {
            (Some("remote-as"), [asn], _) => {
                vec![("address", name.into()), ("remote_asn", (*asn).into())]
            }
            (Some("timers"), [keepalive, hold], _) => {
                vec![
                    ("keepalive_s", (*keepalive).into()),
                    ("hold_time_s", (*hold).into()),
                ]
            }
            (Some("update-source"), _, Some(source)) => vec![("local_address", source.into())],
            _ => {
                if self.bgp.peers[known].1.entries.is_empty() {
                    self.bgp.peers.remove(known);
                }
                return self.import.report.unknown(at, option, "not a value of it");
            }
        };
        let table = &mut self.bgp.peers[known].1;
        let mut keys = Vec::new();
        for (key, value) in settings {
            table.set(key, value, std::slice::from_ref(at), "");
            keys.push(format!("bgp.neighbor.{key}"));
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.import.report.key(at, option, &keys, "");
    }

    fn peer(&self, name: &str) -> Option<usize> {
        self.bgp.peers.iter().position(|(known, _)| known == name)
    }

    /// Writes the section. Needs the settings, which were taken before.
    pub(super) fn take_bgp(&mut self) {
        let hops = [
            (
                "ipv4",
                "nexthop_address",
                self.settings.remove("nexthop_address"),
            ),
            (
                "ipv6",
                "nexthop6_address",
                self.settings.remove("nexthop6_address"),
            ),
        ];
        let bgp = std::mem::take(&mut self.bgp);
        let Some((asn, at)) = bgp.asn else {
            for (_, option, setting) in hops {
                if let Some((_, place)) = setting {
                    let why = "without router bgp, nothing is announced";
                    self.import.report.line(&place, option, Fate::NoEffect, why);
                }
            }
            return;
        };
        let export = self.next_hops(hops);
        let has_ipv6 = self.import.config.table("ppp").get("ipv6") == Some(&true.into());
        let listen = self.import.config.table("lns").get("listen").cloned();
        let config = &mut self.import.config;
        config.set("bgp", "asn", asn, &at);
        let own = match listen {
            Some(Value::Texts(all)) => all
                .first()
                .and_then(|one| one.strip_suffix(":1701").map(str::to_owned)),
            _ => None,
        };
        if let Some(own) = own.filter(|own| own != "0.0.0.0") {
            let note = "bind_address; l2tpns uses the address of its cluster's interface";
            config.note("bgp", "router_id", own, note);
        }
        let why = "l2tpns accepts no connections of BGP";
        config.note("bgp", "listen", Value::Texts(Vec::new()), why);
        let announce = Value::texts(&["pools", "subscribers"]);
        config.note("bgp", "announce", announce, "as l2tpns does");
        config.note("bgp", "import", "deny", "l2tpns takes no routes");
        config.note("bgp", "export", export, "all that is announced");
        if has_ipv6 {
            let families = Value::texts(&["ipv4", "ipv6"]);
            config.note("bgp", "families", families, "with ipv6_prefix");
        }
        for (key, value) in [("keepalive_s", 60_i64), ("hold_time_s", 180)] {
            config.note("bgp", key, value, "l2tpns's default");
        }
        config
            .tables
            .extend(bgp.peers.into_iter().map(|(_, table)| table));
        bgp::router_id(&mut self.import, &at, "router bgp");
    }

    /// The policy that sets the next hops, or the one that changes nothing.
    fn next_hops(&mut self, hops: [(&str, &str, Option<super::Setting>); 2]) -> &'static str {
        const NAME: &str = "l2tpns next hop";
        let (mut terms, mut from) = (Vec::new(), Vec::new());
        for (family, option, setting) in hops {
            let Some((value, place)) = setting else {
                continue;
            };
            let is_right = match value.parse() {
                Ok(IpAddr::V4(_)) => family == "ipv4",
                Ok(IpAddr::V6(_)) => family == "ipv6",
                Err(_) => false,
            };
            if !is_right {
                self.import.report.unknown(&place, option, "not an address");
                continue;
            }
            let key = "bgp.policy.term.set_next_hop";
            self.import.report.key(&place, option, &[key], "");
            let mut term = bgp::term("accept", &place);
            term.set("family", family, &[], "");
            term.set("set_next_hop", value, std::slice::from_ref(&place), "");
            bgp::then_last(&mut term);
            terms.push(term);
            from.push(place);
        }
        let Some(place) = from.first().cloned() else {
            return "accept";
        };
        terms.push(bgp::term("accept", &place));
        bgp::add_policy(&mut self.import.config, NAME, &from, terms);
        NAME
    }
}
