//! The commands of `router bgp`: the speaker, its neighbours and their groups.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::policy::Reference;
use super::{Block, Work};
use crate::bgp;
use crate::document::{Table, Value};
use crate::pattern::Match;
use crate::report::{Fate, Place};

/// A neighbour or a group.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub name: String,
    pub is_group: bool,
    pub group: Option<String>,
    pub first: Place,
    /// Its section, without what the group gives.
    pub table: Table,
    /// Whether a family is on, by the line that says so.
    pub active: BTreeMap<&'static str, (bool, Place)>,
    /// The policies by direction and family.
    pub policies: BTreeMap<(&'static str, &'static str), (Reference, Place)>,
}

const IPV4: &str = "ipv4";

pub(super) const FAMILIES: &str = "headend has the families ipv4 unicast and ipv6 unicast";

impl Work {
    fn family(&self) -> &'static str {
        match self.block {
            Block::Family(family) => family,
            _ => IPV4,
        }
    }

    fn peer(&mut self, name: &str, at: &Place) -> &mut Peer {
        if let Some(found) = self.peers.iter().position(|peer| peer.name == name) {
            return &mut self.peers[found];
        }
        let mut table = Table::each("bgp.neighbor");
        let is_group = name.parse::<IpAddr>().is_err();
        if !is_group {
            table.set("address", name, std::slice::from_ref(at), "");
        }
        self.peers.push(Peer {
            name: name.to_owned(),
            is_group,
            group: None,
            first: at.clone(),
            table,
            active: BTreeMap::new(),
            policies: BTreeMap::new(),
        });
        self.peers.last_mut().expect("a peer was pushed")
    }

    /// A command of the table that becomes a key.
    pub(super) fn bgp(&mut self, found: &Match<'_>, at: &Place) {
        let option = found.rule.name;
        if let Some(name) = found.names.first()
            && option.contains("neighbor PEER")
        {
            return self.neighbor(name, found, at);
        }
        let value = found.rest.first().copied().unwrap_or_default();
        match option {
            "address-family" => self.address_family(found.rest, at),
            "bgp router-id" => self.speaker("router_id", value.into(), at, option),
            "bgp cluster-id" => self.speaker("cluster_id", value.into(), at, option),
            "bgp graceful-restart" => self.speaker("graceful_restart", true.into(), at, option),
            "bgp graceful-restart-disable" => {
                self.speaker("graceful_restart", false.into(), at, option)
            }
            "bgp graceful-restart preserve-fw-state" => {
                self.speaker("preserve_forwarding", true.into(), at, option);
            }
            "bgp graceful-restart restart-time" => self.number("restart_time_s", value, at, option),
            "bgp graceful-restart stalepath-time" => self.number("stale_time_s", value, at, option),
            "bgp listen limit" => self.number("dynamic_max", value, at, option),
            "bgp listen range" => match found.rest {
                [prefix, "peer-group", group] => {
                    self.ranges
                        .push(((*prefix).to_owned(), (*group).to_owned(), at.clone()));
                }
                _ => self
                    .import
                    .report
                    .unknown(at, option, "write PREFIX peer-group NAME"),
            },
            "timers bgp" => match found.rest {
                [keepalive, hold, ..] => {
                    self.number("keepalive_s", keepalive, at, option);
                    self.number("hold_time_s", hold, at, option);
                }
                _ => self
                    .import
                    .report
                    .unknown(at, option, "write KEEPALIVE HOLD-TIME"),
            },
            "no bgp default ipv4-unicast" => {
                self.default_ipv4 = false;
                self.import
                    .report
                    .key(at, option, &["bgp.neighbor.families"], "");
            }
            "no bgp ebgp-requires-policy" => {
                self.needs_policy = false;
                for key in ["import", "export"] {
                    self.import.config.set("bgp", key, "accept", at);
                }
                self.import
                    .report
                    .key(at, option, &["bgp.import", "bgp.export"], "");
            }
            "network" => self.network(found.rest, at, option),
            _ => self
                .import
                .report
                .unknown(at, option, "the command is not known here"),
        }
    }

    fn speaker(&mut self, key: &str, value: Value, at: &Place, option: &str) {
        self.import.config.set("bgp", key, value, at);
        self.import
            .report
            .key(at, option, &[&format!("bgp.{key}")], "");
    }

    fn number(&mut self, key: &str, text: &str, at: &Place, option: &str) {
        match text.parse::<i64>() {
            Ok(number) => self.speaker(key, number.into(), at, option),
            Err(_) => self
                .import
                .report
                .unknown(at, option, "the value is not a number"),
        }
    }

    fn network(&mut self, rest: &[&str], at: &Place, option: &str) {
        let [prefix, more @ ..] = rest else { return };
        let Some(prefix) = bgp::network(prefix) else {
            return self
                .import
                .report
                .lost(at, option, "not a prefix like 198.51.100.0/24");
        };
        self.import.config.table("bgp").add("networks", &prefix, at);
        match more {
            [] => self.import.report.key(at, option, &["bgp.networks"], ""),
            _ => self.import.report.lost(
                at,
                option,
                "the network is announced, but without the route-map or the options behind it",
            ),
        }
    }

    fn address_family(&mut self, rest: &[&str], at: &Place) {
        let family = match rest {
            ["ipv4"] | ["ipv4", "unicast"] => IPV4,
            ["ipv6"] | ["ipv6", "unicast"] => "ipv6",
            _ => {
                self.import.report.lost(at, "address-family", FAMILIES);
                self.block = Block::LostFamily;
                return;
            }
        };
        self.import
            .report
            .line(at, "address-family", Fate::Kept, "its commands follow");
        self.block = Block::Family(family);
    }

    /// Without the policy that the source has, a direction exchanges nothing.
    pub(super) fn close(&mut self, peer: &str, direction: &str, at: &Place) {
        if let Some(direction) = direction_of(direction) {
            let family = self.family();
            let peer = self.peer(peer, at);
            peer.policies
                .insert((direction, family), (Reference::Deny, at.clone()));
        }
    }

    fn neighbor(&mut self, name: &str, found: &Match<'_>, at: &Place) {
        let family = self.family();
        let option = found.rule.name;
        let value = found.rest.first().copied().unwrap_or_default();
        let flag = |key: &'static str, value: bool| Some((key, Value::Flag(value)));
        let number = |key: &'static str, text: &str| {
            Some((key, Value::Number(text.parse::<u32>().ok()?.into())))
        };
        let short = option
            .trim_start_matches("no ")
            .trim_start_matches("neighbor PEER ");
        let set: Option<(&str, Value)> = match short {
            "remote-as" => number("remote_asn", value).or_else(|| {
                ["external", "internal"]
                    .contains(&value)
                    .then(|| ("remote_asn", value.into()))
            }),
            "description" => Some(("name", found.rest.join(" ").into())),
            "advertisement-interval" => number("advertisement_interval_s", value),
            "allowas-in" => number("allow_own_asn", if value.is_empty() { "3" } else { value }),
            "ebgp-multihop" => number("ttl", if value.is_empty() { "255" } else { value }),
            "ttl-security hops" => number("ttl_security_hops", value),
            "attribute-unchanged next-hop" => flag("next_hop_unchanged", true),
            "delayopen" => number("delay_open_s", value),
            "graceful-restart" => flag("graceful_restart", true),
            "graceful-restart-disable" => flag("graceful_restart", false),
            "next-hop-self" => flag("next_hop_self", true),
            "passive" => flag("passive", true),
            "port" => number("port", value),
            "route-reflector-client" => flag("route_reflector_client", true),
            "shutdown" => flag("enabled", false),
            "timers connect" => number("connect_retry_s", value),
            "addpath-tx-all-paths" => Some(("add_path_send", Value::texts(&[family]))),
            "update-source" if value.parse::<IpAddr>().is_ok() => {
                Some(("local_address", value.into()))
            }
            _ => return self.neighbor_more(name, short, found, at),
        };
        let Some((key, value)) = set else {
            return self
                .import
                .report
                .unknown(at, option, "the value has the wrong form");
        };
        let peer = self.peer(name, at);
        peer.table.set(key, value, std::slice::from_ref(at), "");
        self.import
            .report
            .key(at, option, &[&format!("bgp.neighbor.{key}")], "");
    }

    /// Commands that are more than one key and one value.
    fn neighbor_more(&mut self, name: &str, short: &str, found: &Match<'_>, at: &Place) {
        let family = self.family();
        let (option, rest) = (found.rule.name, found.rest);
        let from = std::slice::from_ref(at);
        match (short, rest) {
            ("activate", _) => {
                let is_on = !option.starts_with("no ");
                self.peer(name, at)
                    .active
                    .insert(family, (is_on, at.clone()));
                self.import
                    .report
                    .key(at, option, &["bgp.neighbor.families"], "");
            }
            ("password", _) => {
                let file = self
                    .import
                    .keep_secret(&format!("bgp-{name}"), &rest.join(" "));
                if let Some(file) = file {
                    self.peer(name, at).table.set("secret_file", file, from, "");
                    self.import
                        .report
                        .key(at, option, &["bgp.neighbor.secret_file"], "");
                }
            }
            ("peer-group", []) => {
                self.peer(name, at).is_group = true;
                self.import
                    .report
                    .line(at, option, Fate::Kept, "the settings of its members");
            }
            ("peer-group", [group, ..]) => {
                self.peer(name, at).group = Some((*group).to_owned());
                self.import.report.key(at, option, &["bgp.neighbor"], "");
            }
            ("update-source", _) => {
                self.import.report.lost(
                    at,
                    option,
                    "headend takes a source address, not an interface",
                );
            }
            ("local-as" | "local-role" | "timers", _) => self.values(name, short, found, at),
            ("maximum-prefix", [most, more @ ..]) => self.maximum(name, most, more, at, option),
            ("route-map NAME" | "prefix-list NAME", [direction, ..]) => {
                let list = found.names.get(1).copied().unwrap_or_default().to_owned();
                let reference = match short {
                    "route-map NAME" => Reference::Map(list),
                    _ => Reference::List(list),
                };
                self.policy(name, direction, reference, at, option);
            }
            _ => self
                .import
                .report
                .unknown(at, option, "the value has the wrong form"),
        }
    }

    /// Commands with several values, or with a value of their own kind.
    fn values(&mut self, name: &str, short: &str, found: &Match<'_>, at: &Place) {
        let (option, from) = (found.rule.name, std::slice::from_ref(at));
        match (short, found.rest) {
            ("local-as", [asn, ..]) => match asn.parse::<u32>() {
                Ok(asn) => {
                    self.peer(name, at)
                        .table
                        .set("local_asn", i64::from(asn), from, "");
                    self.import
                        .report
                        .key(at, option, &["bgp.neighbor.local_asn"], "");
                }
                Err(_) => self
                    .import
                    .report
                    .unknown(at, option, "not the number of an AS"),
            },
            ("local-role", [role, more @ ..]) => {
                let role = if *role == "rs-server" { "rs" } else { role };
                self.peer(name, at).table.set("role", role, from, "");
                if more.contains(&"strict-mode") {
                    self.peer(name, at).table.set("role_strict", true, from, "");
                }
                self.import
                    .report
                    .key(at, option, &["bgp.neighbor.role"], "");
            }
            ("timers", [keepalive, hold]) => {
                match (keepalive.parse::<u16>(), hold.parse::<u16>()) {
                    (Ok(keepalive), Ok(hold)) => {
                        let table = &mut self.peer(name, at).table;
                        table.set("keepalive_s", i64::from(keepalive), from, "");
                        table.set("hold_time_s", i64::from(hold), from, "");
                        let keys = ["bgp.neighbor.keepalive_s", "bgp.neighbor.hold_time_s"];
                        self.import.report.key(at, option, &keys, "");
                    }
                    _ => self
                        .import
                        .report
                        .unknown(at, option, "the values are not numbers"),
                }
            }
            _ => {
                let why = "the value has the wrong form";
                self.import.report.unknown(at, option, why);
            }
        }
    }

    fn maximum(&mut self, name: &str, most: &str, more: &[&str], at: &Place, option: &str) {
        let Ok(most) = most.parse::<u32>() else {
            return self
                .import
                .report
                .unknown(at, option, "the value is not a number");
        };
        if more.contains(&"warning-only") {
            return self.import.report.lost(
                at,
                option,
                "headend ends the session at its limit; it does not only warn",
            );
        }
        let from = std::slice::from_ref(at);
        self.peer(name, at)
            .table
            .set("prefixes_max", i64::from(most), from, "");
        let mut keys = vec!["bgp.neighbor.prefixes_max"];
        let minutes = more
            .iter()
            .position(|word| *word == "restart")
            .and_then(|at| more.get(at + 1));
        if let Some(minutes) = minutes.and_then(|minutes| minutes.parse::<u16>().ok()) {
            let seconds = i64::from(minutes) * 60;
            self.peer(name, at)
                .table
                .set("prefixes_restart_s", seconds, from, "");
            keys.push("bgp.neighbor.prefixes_restart_s");
        }
        self.import.report.key(at, option, &keys, "");
    }

    fn policy(
        &mut self,
        name: &str,
        direction: &str,
        reference: Reference,
        at: &Place,
        option: &str,
    ) {
        let family = self.family();
        let Some(direction) = direction_of(direction) else {
            return self
                .import
                .report
                .unknown(at, option, "the direction is neither in nor out");
        };
        let peer = self.peer(name, at);
        let old = peer.policies.get(&(direction, family));
        let is_second = old.is_some_and(|(old, _)| *old != reference);
        let reference = if is_second {
            Reference::Deny
        } else {
            reference
        };
        peer.policies
            .insert((direction, family), (reference, at.clone()));
        if is_second {
            let why = "headend has one policy in each direction, and cannot join a prefix list and a route-map; the direction is \"deny\"";
            self.import.report.lost(at, option, why);
        } else {
            self.import
                .report
                .key(at, option, &[&format!("bgp.neighbor.{direction}")], "");
        }
    }

    /// Writes the neighbours, with what their groups give.
    pub(super) fn finish_peers(&mut self) {
        let peers = std::mem::take(&mut self.peers);
        for (prefix, group, at) in std::mem::take(&mut self.ranges) {
            let option = "bgp listen range";
            match (
                bgp::network(&prefix),
                peers.iter().find(|peer| peer.name == group),
            ) {
                (Some(prefix), Some(group)) => {
                    let mut peer = group.clone();
                    peer.table.path = "bgp.dynamic".into();
                    peer.table.entries.retain(|entry| {
                        entry.key != "passive"
                            && entry.key != "port"
                            && entry.key != "local_address"
                            && entry.key != "name"
                    });
                    peer.table
                        .set("prefix", prefix, std::slice::from_ref(&at), "");
                    self.finish_peer(peer);
                    self.import
                        .report
                        .key(&at, option, &["bgp.dynamic.prefix"], "");
                }
                _ => self.import.report.lost(
                    &at,
                    option,
                    "the prefix is not one, or there is no such group",
                ),
            }
        }
        for peer in peers.iter().filter(|peer| !peer.is_group) {
            let mut peer = peer.clone();
            if let Some(group) = &peer.group {
                match peers
                    .iter()
                    .find(|other| other.is_group && other.name == *group)
                {
                    Some(group) => {
                        peer.table.inherit(&group.table);
                        for (family, active) in &group.active {
                            peer.active.entry(family).or_insert_with(|| active.clone());
                        }
                        for (key, policy) in &group.policies {
                            peer.policies.entry(*key).or_insert_with(|| policy.clone());
                        }
                    }
                    None => self.import.report.lost(
                        &peer.first,
                        "neighbor PEER peer-group",
                        "there is no such group",
                    ),
                }
            }
            self.finish_peer(peer);
        }
    }

    fn finish_peer(&mut self, mut peer: Peer) {
        let is_on =
            |family: &str, default: bool| peer.active.get(family).map_or(default, |(on, _)| *on);
        let on: Vec<&'static str> = [(IPV4, self.default_ipv4), ("ipv6", false)]
            .into_iter()
            .filter(|(family, default)| is_on(family, *default))
            .map(|(family, _)| family)
            .collect();
        let places: Vec<Place> = peer.active.values().map(|(_, at)| at.clone()).collect();
        if on.is_empty() {
            let why = "the neighbour has no family of headend's; it is left out";
            for entry in &peer.table.entries {
                for place in &entry.from {
                    self.import.report.take_back(
                        place,
                        &peer.table.name_of(entry),
                        Fate::NotSupported,
                        why,
                    );
                }
            }
            return;
        }
        if on != [IPV4] || !places.is_empty() {
            let note = if places.is_empty() {
                "FRR's default"
            } else {
                ""
            };
            peer.table.set("families", Value::texts(&on), &places, note);
        }
        for direction in ["import", "export"] {
            self.direction(&mut peer, direction, &on);
        }
        self.import.config.tables.push(peer.table);
    }
}

fn direction_of(word: &str) -> Option<&'static str> {
    match word {
        "in" => Some("import"),
        "out" => Some("export"),
        _ => None,
    }
}
