//! GoBGP: `gobgpd.conf` in TOML or YAML. Where a policy applies that cannot be translated, the direction is closed.
//!
//! | file | contents |
//! |---|---|
//! | `policy` | sets and policies |
//! | `rules` | every setting and what becomes of it |
//! | `tree` | TOML and YAML as paths with values |

mod policy;
mod rules;
mod tree;

use std::collections::BTreeMap;

use crate::document::{Table, Value};
use crate::files::{Files, Source};
use crate::report::{Fate, Place};
use crate::{Import, Rule, bgp};
use tree::{Part, Scalar, Setting};

/// Where the main file is on a host that runs GoBGP.
pub const USUAL: &[&str] = &["/etc/gobgpd.conf", "/etc/gobgp/gobgpd.conf"];

/// Every setting.
pub const RULES: &[Rule] = rules::ALL;

const COMMENTS: &[u8] = b"#";

/// The settings that list the policies of import and export.
const LISTS: [&str; 2] = [
    "global.apply-policy.config.import-policy-list",
    "global.apply-policy.config.export-policy-list",
];

/// A neighbour, a group or a network of dynamic neighbours.
#[derive(Clone, Debug)]
struct Peer {
    table: Table,
    group: Option<String>,
    name: String,
    families: Vec<&'static str>,
    places: Vec<Place>,
    /// A family that headend does not have was named.
    has_others: bool,
    adds_paths: [Option<Place>; 2],
}

/// The import while it is made.
struct Work {
    import: Import,
    peers: BTreeMap<(String, usize), Peer>,
    asn: Option<Place>,
    port: Option<(i64, Place)>,
    addresses: Option<(Vec<String>, Place)>,
    policies: policy::Policies,
}

/// Reads the first file.
pub fn read(files: &mut Files) -> Import {
    let given = files.given(COMMENTS);
    let name = given
        .first()
        .map_or("nothing", |main| &main.name)
        .to_owned();
    let mut work = Work {
        import: Import::new("gobgp", &name),
        peers: BTreeMap::new(),
        asn: None,
        port: None,
        addresses: None,
        policies: policy::Policies::default(),
    };
    for file in &given {
        work.file(file);
    }
    work.finish();
    work.import
}

impl Work {
    fn file(&mut self, file: &Source) {
        file.report_bad_lines(&mut self.import.report);
        // A file that is YAML has a line "global:"; one that is TOML has a header in brackets.
        let is_yaml = file
            .text
            .lines()
            .any(|line| line.trim_end().ends_with(':') && !line.trim_start().starts_with('#'));
        let read = if is_yaml {
            tree::yaml(&file.text)
        } else {
            tree::toml(&file.text)
        };
        match read {
            Ok(all) => {
                for setting in &all {
                    self.setting(setting, &file.at(setting.line));
                }
            }
            Err((line, why)) => self.import.report.unknown(&file.at(line), "", &why),
        }
    }

    // long: it finds the rule of a path, and the peer that the path belongs to
    fn setting(&mut self, setting: &Setting, at: &Place) {
        let keys: Vec<&str> = setting
            .path
            .iter()
            .filter_map(|part| match part {
                Part::Key(key) => Some(key.as_str()),
                Part::Item(_) => None,
            })
            .collect();
        let name = keys.join(".");
        let name = name
            .strip_prefix("peer-groups.")
            .map_or(name.clone(), |rest| format!("neighbors.{rest}"));
        let fits = |rule: &&Rule| {
            name == rule.name
                || name
                    .strip_prefix(rule.name)
                    .is_some_and(|rest| rest.starts_with('.'))
        };
        let found = rules::ALL
            .iter()
            .filter(fits)
            .max_by_key(|rule| rule.name.len());
        let Some(rule) = found.filter(|rule| rule.fate != Fate::Key || rule.name == name) else {
            return self.import.report.unknown(
                at,
                "",
                "not a setting of GoBGP that headend import knows",
            );
        };
        let list = setting
            .path
            .first()
            .map_or(String::new(), |part| match part {
                Part::Key(key) => key.clone(),
                Part::Item(_) => String::new(),
            });
        let item = setting.path.iter().find_map(|part| match part {
            Part::Item(number) => Some(*number),
            Part::Key(_) => None,
        });
        if list == "defined-sets" || list == "policy-definitions" {
            return self.policies.keep(rule.name, setting, at);
        }
        if let Some(direction) = LISTS.iter().position(|list| *list == rule.name)
            && let Scalar::Texts(names) = &setting.value
        {
            if names.is_empty() {
                let why = "the list is empty";
                return self.import.report.line(at, rule.name, Fate::Kept, why);
            }
            return self.policies.list(direction, names, at);
        }
        if rule.fate != Fate::Key {
            let text = match &setting.value {
                Scalar::Flag(flag) => flag.to_string(),
                _ => String::new(),
            };
            self.import.report.rule(at, rule, &text);
            let is_empty = setting.value == Scalar::Texts(Vec::new());
            if rule.name.ends_with("port-policy-list") && !is_empty {
                self.close(rule.name, &list, item, at);
            }
            return;
        }
        if list == "global" || list == "zebra" {
            self.global(rule.name, &setting.value, at);
        } else {
            let peer = self
                .peers
                .entry((list.clone(), item.unwrap_or(0)))
                .or_insert_with(|| Peer {
                    table: Table::each(if list == "dynamic-neighbors" {
                        "bgp.dynamic"
                    } else {
                        "bgp.neighbor"
                    }),
                    group: None,
                    name: String::new(),
                    families: Vec::new(),
                    places: Vec::new(),
                    has_others: false,
                    adds_paths: [None, None],
                });
            let short = rule
                .name
                .split_once('.')
                .map_or(rule.name, |(_, rest)| rest);
            Self::neighbor(&mut self.import, peer, short, rule.name, &setting.value, at);
        }
    }

    /// Where a policy applies that is not translated, nothing is exchanged.
    fn close(&mut self, name: &str, list: &str, item: Option<usize>, at: &Place) {
        let direction = if name.contains("import") {
            "import"
        } else {
            "export"
        };
        let from = std::slice::from_ref(at);
        let note = "the policy is not translated";
        match self.peers.get_mut(&(list.to_owned(), item.unwrap_or(0))) {
            Some(peer) if list != "global" => peer.table.set(direction, "deny", from, note),
            _ => self
                .import
                .config
                .table("bgp")
                .set(direction, "deny", from, note),
        }
    }

    fn global(&mut self, option: &str, value: &Scalar, at: &Place) {
        let (key, value): (&str, Value) = match (option, value) {
            ("global.config.as", Scalar::Number(asn)) => {
                self.asn = Some(at.clone());
                ("asn", (*asn).into())
            }
            ("global.config.router-id", Scalar::Text(id)) => ("router_id", id.as_str().into()),
            ("global.config.port", Scalar::Number(port)) => {
                self.port = Some((*port, at.clone()));
                return self.import.report.key(at, option, &["bgp.listen"], "");
            }
            ("global.config.local-address-list", Scalar::Texts(all)) => {
                self.addresses = Some((all.clone(), at.clone()));
                return self.import.report.key(at, option, &["bgp.listen"], "");
            }
            ("zebra.config.enabled", Scalar::Flag(flag)) => ("install", (*flag).into()),
            (option, Scalar::Text(text)) if option.contains("default-") => {
                let key = if option.contains("import") {
                    "import"
                } else {
                    "export"
                };
                if self.import.config.table("bgp").get(key) == Some(&"deny".into()) {
                    return self.import.report.line(
                        at,
                        option,
                        Fate::NoEffect,
                        "a policy applies that is not translated",
                    );
                }
                (
                    key,
                    if text == "accept-route" {
                        "accept"
                    } else {
                        "deny"
                    }
                    .into(),
                )
            }
            _ => {
                return self
                    .import
                    .report
                    .unknown(at, option, "the value has the wrong type");
            }
        };
        self.import.config.set("bgp", key, value, at);
        self.import
            .report
            .key(at, option, &[&format!("bgp.{key}")], "");
    }

    fn neighbor(
        import: &mut Import,
        peer: &mut Peer,
        short: &str,
        option: &str,
        value: &Scalar,
        at: &Place,
    ) {
        let number = || match value {
            Scalar::Number(number) => Some(Value::Number(*number)),
            _ => None,
        };
        let text = || match value {
            Scalar::Text(text) => Some(Value::Text(text.clone())),
            _ => None,
        };
        let flag = || match value {
            Scalar::Flag(flag) => Some(Value::Flag(*flag)),
            _ => None,
        };
        let (key, set) = match short {
            "config.prefix" => (
                "prefix",
                match value {
                    Scalar::Text(text) => bgp::network(text).map(Value::Text),
                    _ => None,
                },
            ),
            "config.neighbor-address" => ("address", text()),
            "config.peer-as" => ("remote_asn", number()),
            "config.local-as" => ("local_asn", number()),
            "config.description" => ("name", text()),
            "config.admin-down" => (
                "enabled",
                flag().map(|flag| Value::Flag(flag == Value::Flag(false))),
            ),
            "as-path-options.config.allow-own-as" => ("allow_own_asn", number()),
            "timers.config.connect-retry" => ("connect_retry_s", number()),
            "timers.config.hold-time" => ("hold_time_s", number()),
            "timers.config.idle-hold-time-after-reset" => ("idle_hold_s", number()),
            "timers.config.keepalive-interval" => ("keepalive_s", number()),
            "timers.config.minimum-advertisement-interval" => {
                ("advertisement_interval_s", number())
            }
            "transport.config.local-address" => ("local_address", text()),
            "transport.config.passive-mode" => ("passive", flag()),
            "transport.config.remote-port" => ("port", number()),
            "transport.config.ttl" | "ebgp-multihop.config.multihop-ttl" => ("ttl", number()),
            "ttl-security.config.ttl-min" => (
                "ttl_security_hops",
                match value {
                    Scalar::Number(least @ 1..=255) => Some(Value::Number(256 - least)),
                    _ => None,
                },
            ),
            "graceful-restart.config.enabled" => ("graceful_restart", flag()),
            "graceful-restart.config.restart-time" => ("restart_time_s", number()),
            "route-reflector.config.route-reflector-client" => ("route_reflector_client", flag()),
            "afi-safis.prefix-limit.config.max-prefixes" => ("prefixes_max", number()),
            _ => return Self::neighbor_more(import, peer, short, option, value, at),
        };
        let Some(set) = set else {
            return import
                .report
                .unknown(at, option, "the value has the wrong type");
        };
        let name = format!("{}.{key}", peer.table.path);
        peer.table.set(key, set, std::slice::from_ref(at), "");
        import.report.key(at, option, &[&name], "");
    }

    /// Settings that are more than one key and one value.
    fn neighbor_more(
        import: &mut Import,
        peer: &mut Peer,
        short: &str,
        option: &str,
        value: &Scalar,
        at: &Place,
    ) {
        let from = std::slice::from_ref(at);
        match (short, value) {
            ("config.auth-password", Scalar::Text(secret)) => {
                Self::password(import, peer, option, secret, at);
            }
            ("config.peer-group", Scalar::Text(name)) => {
                peer.group = Some(name.clone());
                let why = "the group's settings are in the result";
                import.report.line(at, option, Fate::Kept, why);
            }
            ("config.peer-group-name", Scalar::Text(name)) => {
                peer.name.clone_from(name);
                let why = "its settings are those of its members";
                import.report.line(at, option, Fate::Kept, why);
            }
            ("route-reflector.config.route-reflector-cluster-id", Scalar::Text(id)) => {
                import.config.set("bgp", "cluster_id", id.as_str(), at);
                import.report.key(at, option, &["bgp.cluster_id"], "");
            }
            ("afi-safis.config.afi-safi-name", Scalar::Text(name)) => {
                Self::family(import, peer, option, name, at);
            }
            (_, Scalar::Flag(true)) if short.ends_with("add-paths.config.receive") => {
                peer.adds_paths[0] = Some(at.clone());
                import
                    .report
                    .key(at, option, &["bgp.neighbor.add_path_receive"], "");
            }
            (_, Scalar::Number(0)) if short.ends_with("add-paths.config.send-max") => {
                let why = "0 sends no further paths, as without it";
                import.report.line(at, option, Fate::Kept, why);
            }
            (_, Scalar::Number(most)) if short.ends_with("add-paths.config.send-max") => {
                peer.adds_paths[1] = Some(at.clone());
                peer.table.set("add_path_count", *most, from, "");
                import
                    .report
                    .key(at, option, &["bgp.neighbor.add_path_send"], "");
            }
            ("ebgp-multihop.config.enabled" | "ttl-security.config.enabled", Scalar::Flag(_)) => {
                import
                    .report
                    .line(at, option, Fate::Kept, "see the value beside it");
            }
            (short, Scalar::Text(text)) if short.contains("default-") => {
                let key = if short.contains("import") {
                    "import"
                } else {
                    "export"
                };
                Self::default_policy(import, peer, (key, option), text, at);
            }
            (_, Scalar::Flag(false)) => {
                import
                    .report
                    .line(at, option, Fate::Kept, "it is off by default")
            }
            _ => import
                .report
                .unknown(at, option, "the value has the wrong type"),
        }
    }

    /// The password of a session, which goes to a file of its own.
    fn password(import: &mut Import, peer: &mut Peer, option: &str, secret: &str, at: &Place) {
        let name = match peer.table.get("address") {
            Some(Value::Text(address)) => format!("bgp-{address}"),
            _ => "bgp-peer".into(),
        };
        let Some(file) = import.keep_secret(&name, secret) else {
            return import.report.line(at, option, Fate::Kept, "it is empty");
        };
        let from = std::slice::from_ref(at);
        peer.table.set("secret_file", file, from, "");
        import
            .report
            .key(at, option, &["bgp.neighbor.secret_file"], "");
    }

    /// An address family of a peer.
    fn family(import: &mut Import, peer: &mut Peer, option: &str, name: &str, at: &Place) {
        let family = match name {
            "ipv4-unicast" => "ipv4",
            "ipv6-unicast" => "ipv6",
            _ => {
                peer.has_others = true;
                let why = "headend has the families ipv4-unicast and ipv6-unicast";
                return import.report.lost(at, option, why);
            }
        };
        if !peer.families.contains(&family) {
            peer.families.push(family);
        }
        peer.places.push(at.clone());
        import
            .report
            .key(at, option, &["bgp.neighbor.families"], "");
    }

    /// What becomes of routes that no policy decides on; `key` is `import` or `export`.
    fn default_policy(
        import: &mut Import,
        peer: &mut Peer,
        (key, option): (&'static str, &str),
        text: &str,
        at: &Place,
    ) {
        if peer.table.get(key) != Some(&"deny".into()) {
            let policy = if text == "accept-route" {
                "accept"
            } else {
                "deny"
            };
            peer.table.set(key, policy, std::slice::from_ref(at), "");
        }
        let path = format!("bgp.neighbor.{key}");
        import.report.key(at, option, &[&path], "");
    }

    fn finish(&mut self) {
        let peers = std::mem::take(&mut self.peers);
        for ((list, _), peer) in &peers {
            if list == "peer-groups" {
                continue;
            }
            let mut peer = peer.clone();
            let is_group = |((list, _), other): &(&(String, usize), &Peer)| {
                list == "peer-groups" && Some(&other.name) == peer.group.as_ref()
            };
            if let Some((_, group)) = peers.iter().find(is_group) {
                peer.table.inherit(&group.table);
                for (own, of_group) in peer.adds_paths.iter_mut().zip(&group.adds_paths) {
                    *own = own.take().or_else(|| of_group.clone());
                }
                if peer.families.is_empty() && !peer.has_others {
                    peer.families.clone_from(&group.families);
                    peer.places.clone_from(&group.places);
                }
            }
            if list == "dynamic-neighbors" {
                peer.table.entries.retain(|entry| {
                    !matches!(
                        &*entry.key,
                        "name" | "port" | "passive" | "local_address" | "address"
                    )
                });
            }
            let families = if peer.families.is_empty() {
                vec!["ipv4"]
            } else {
                peer.families.clone()
            };
            if !peer.families.is_empty() {
                peer.table
                    .set("families", Value::texts(&families), &peer.places, "");
            }
            for (key, place) in ["add_path_receive", "add_path_send"]
                .into_iter()
                .zip(&peer.adds_paths)
            {
                if let Some(place) = place {
                    peer.table.set(
                        key,
                        Value::texts(&families),
                        std::slice::from_ref(place),
                        "",
                    );
                }
            }
            self.import.config.tables.push(peer.table);
        }
        let Some(at) = self.asn.clone() else {
            return self.unused_policies();
        };
        for direction in ["import", "export"] {
            let table = self.import.config.table("bgp");
            if table.get(direction).is_none() {
                table.set(direction, "accept", &[], "GoBGP's default");
            }
        }
        self.finish_policies();
        self.listen();
        bgp::router_id(&mut self.import, &at, "global.config.as");
    }

    fn listen(&mut self) {
        let (port, addresses) = (self.port.take(), self.addresses.take());
        let places: Vec<Place> = port
            .iter()
            .map(|(_, at)| at)
            .chain(addresses.iter().map(|(_, at)| at))
            .cloned()
            .collect();
        if places.is_empty() {
            return;
        }
        let number = port.map_or(179, |(port, _)| port);
        let addresses = addresses.map_or_else(
            || vec!["0.0.0.0".to_owned(), "::".to_owned()],
            |(all, _)| all,
        );
        let listen = |ip: &String| {
            if ip.contains(':') {
                format!("[{ip}]:{number}")
            } else {
                format!("{ip}:{number}")
            }
        };
        let all: Vec<String> = addresses
            .iter()
            .filter(|_| number >= 0)
            .map(listen)
            .collect();
        self.import
            .config
            .table("bgp")
            .set("listen", Value::Texts(all), &places, "");
    }
}
