//! `[bgp]` and its subsections: the local BGP speaker, its neighbours, its policies and the routes that it originates.

mod neighbor;
mod policy;
mod speaker;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use base::{Duration, Redacted};
use bgp::{DynamicConfig, PeerConfig, PeerSettings, SpeakerConfig};
use peering::{Listen, Signature};
use toml::de::DeTable;
use wire::bgp::{PORT, Prefix};

use settings::Notes;
use settings::{At, Section, set};

pub(crate) use policy::Policies;

/// The BGP settings of the configuration file.
#[derive(Clone, Debug)]
pub struct Bgp {
    pub speaker: SpeakerConfig,
    pub listen: Vec<Listen>,
    pub announce: Announce,
    /// Where to install learned routes. `None`: the kernel gets none.
    pub install: Option<Install>,
    /// How long a shutdown waits for peers to read the final NOTIFICATION.
    pub shutdown_wait: Duration,
}

/// The routes that the daemon originates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Announce {
    /// Networks that are always announced.
    pub networks: Vec<Prefix>,
    /// Whether to announce the networks of the address pools.
    pub pools: bool,
    /// Whether to announce the addresses and networks of subscribers while they are connected.
    pub subscribers: bool,
    /// Aggregates. While an aggregate covers any subscriber route, it is announced in place of those routes.
    pub aggregates: Vec<Prefix>,
}

/// Where learned routes are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Install {
    /// The number of the kernel's routing table.
    pub table: u32,
    /// The metric of installed routes.
    pub metric: u32,
}

impl Bgp {
    /// Whether we advertise to any peer that our forwarding state survives a restart (graceful restart).
    pub fn preserves(&self) -> bool {
        let peers = self.speaker.peers.iter().map(|peer| &peer.settings);
        let mut all = peers.chain(self.speaker.dynamic.iter().map(|dynamic| &dynamic.settings));
        all.any(|settings| {
            settings
                .graceful_restart
                .is_some_and(|graceful| graceful.forwarding)
        })
    }

    /// How long routes of an earlier run stay in the kernel for peers that keep theirs meanwhile; zero if we advertise to
    /// none that our forwarding state survives a restart.
    pub fn restart_time(&self) -> Duration {
        let peers = self.speaker.peers.iter().map(|peer| &peer.settings);
        let all = peers.chain(self.speaker.dynamic.iter().map(|dynamic| &dynamic.settings));
        let graceful = all.filter_map(|settings| settings.graceful_restart);
        let forwarding = graceful.filter(|graceful| graceful.forwarding);
        let longest = forwarding.map(|graceful| graceful.restart_time_s).max();
        Duration::from_secs(longest.unwrap_or(0).into())
    }

    /// The peers whose TCP connections are signed, each with its key.
    pub fn signatures(&self) -> Vec<Signature> {
        let whole = |ip: IpAddr| (ip, if ip.is_ipv4() { 32 } else { 128 });
        let peers = self.speaker.peers.iter();
        let peers = peers.map(|peer| (whole(peer.remote), &peer.settings));
        let networks = self.speaker.dynamic.iter();
        let networks = networks.map(|dynamic| {
            (
                (dynamic.prefix.address(), dynamic.prefix.len()),
                &dynamic.settings,
            )
        });
        let signed = peers.chain(networks).filter_map(|(network, settings)| {
            let key: &Redacted<Vec<u8>> = settings.transport.md5.as_ref()?;
            let key = Arc::new(key.clone());
            Some(Signature { network, key })
        });
        signed.collect()
    }
}

/// Reads the whole section.
pub(super) fn read(root: &DeTable<'_>, path: &Path, notes: &Notes<'_>) -> Option<Bgp> {
    let table = root.get("bgp")?.get_ref().as_table()?;
    let policies = policy::read(table, path, notes);
    let mut section = Section::open(root, "bgp", notes);
    let asn = own_asn(&mut section);
    let router_id = router_id(&mut section);
    let listen = listen(&mut section);
    let files = speaker::Context {
        path,
        policies: &policies,
    };
    let defaults = speaker::read(&mut section, &PeerSettings::default(), &files);
    let mut announce = announce(&mut section);
    let install = section.flag("install").is_some_and(|flag| flag.value);
    let kernel = Install {
        table: number(&mut section, "install_table", 254),
        metric: number(&mut section, "install_metric", 200),
    };
    let restarted = section.flag("restarted").is_some_and(|flag| flag.value);
    let mut limits = bgp::config::Limits::default();
    if let Some(most) = section.integer("dynamic_max", 1..=1_000_000, "peers") {
        limits.dynamic_peers_max = most.value as u32;
    }
    let events = section.integer("events_max", 16..=1_000_000, "events");
    limits.recent_events_max = events.map(|events| events.value as u32);
    let cluster_id = section.from_text("cluster_id", "an IPv4 address", "192.0.2.1");
    let cluster_id = cluster_id.map(|id| id.value);
    let mut shutdown_wait = Duration::from_secs(2);
    set(
        section.seconds("shutdown_wait_s", 0.0..=60.0),
        &mut shutdown_wait,
    );
    for key in ["neighbor", "dynamic", "policy", "roas"] {
        section.known(key);
    }
    section.finish();
    let peers = neighbors(table, &defaults, &files, notes);
    let mut dynamic: Vec<DynamicConfig> = Vec::new();
    for mut section in Section::each(table, "dynamic", "bgp.dynamic", notes) {
        dynamic.extend(neighbor::dynamic(&mut section, &defaults, &files));
        section.finish();
    }
    let mut speaker = SpeakerConfig::new(asn?, router_id?);
    speaker.cluster_id = cluster_id;
    speaker.restarted = restarted.then_some(Duration::from_secs(180));
    speaker.limits = limits;
    speaker.peers = peers;
    speaker.dynamic = dynamic;
    speaker.roas = policies.roas();
    if notes.is_empty()
        && let Err(fault) = speaker.check()
    {
        notes.whole(format!("bgp.{}", fault.key), fault.why);
    }
    announce.aggregates.sort_unstable();
    Some(Bgp {
        speaker,
        listen,
        announce,
        install: install.then_some(kernel),
        shutdown_wait,
    })
}

/// Reads each `[[bgp.neighbor]]`. No two may have one address.
fn neighbors(
    table: &DeTable<'_>,
    defaults: &PeerSettings,
    files: &speaker::Context<'_>,
    notes: &Notes<'_>,
) -> Vec<PeerConfig> {
    let mut peers = Vec::new();
    let mut places: HashMap<IpAddr, usize> = HashMap::new();
    for mut section in Section::each(table, "neighbor", "bgp.neighbor", notes) {
        let at = section.at();
        let peer = neighbor::neighbor(&mut section, defaults, files);
        if let Some(peer) = &peer
            && let other = *places.entry(peer.remote).or_insert(at)
            && other != at
        {
            let line = section.line(other);
            let message = format!(
                "{} is a neighbour already, in line {line}; give it once",
                peer.remote
            );
            section.fault(at, "address", message);
        }
        section.finish();
        peers.extend(peer);
    }
    peers
}

fn own_asn(section: &mut Section) -> Option<u32> {
    section.require("asn", "give our autonomous system: asn = 65000");
    let asn = section.integer("asn", 1..=i64::from(u32::MAX), "")?;
    if asn.value == 23_456 {
        let message =
            "23456 stands for those that do not fit in two octets (RFC 6793); give our own";
        section.fault(asn.at, "asn", message);
    }
    Some(asn.value as u32)
}

fn router_id(section: &mut Section) -> Option<Ipv4Addr> {
    let remedy = "give an address that no other router has: router_id = \"192.0.2.1\"";
    section.require("router_id", remedy);
    let id: At<Ipv4Addr> = section.from_text("router_id", "an IPv4 address", "192.0.2.1")?;
    if id.value.is_unspecified() {
        section.fault(id.at, "router_id", "must not be 0.0.0.0 (RFC 6286)");
    }
    Some(id.value)
}

fn listen(section: &mut Section) -> Vec<Listen> {
    section.known("listen");
    if !section.has("listen") {
        let any = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::from([0_u16; 8])];
        let listen = |ip| Listen {
            address: SocketAddr::new(ip, PORT),
            is_optional: true,
        };
        return any.into_iter().map(listen).collect();
    }
    let mut listen: Vec<Listen> = Vec::new();
    for text in section.strings_or_none("listen") {
        let port = text.value.parse::<SocketAddr>();
        let plain = text.value.parse::<IpAddr>();
        let address = match (port, plain) {
            (Ok(address), _) => address,
            (_, Ok(ip)) => SocketAddr::new(ip, PORT),
            _ => {
                let message = format!(
                    "\"{}\" is not an IP address, with or without a port; write it like \"192.0.2.1\" or \"127.0.0.1:1790\"",
                    text.value
                );
                section.fault(text.at, "listen", message);
                continue;
            }
        };
        if listen
            .iter()
            .any(|other| other.address == address && address.port() != 0)
        {
            section.fault(
                text.at,
                "listen",
                format!("{address} is given twice; give it once"),
            );
        }
        listen.push(Listen {
            address,
            is_optional: false,
        });
    }
    listen
}

fn announce(section: &mut Section) -> Announce {
    let what = section.choices("announce", &[("pools", true), ("subscribers", false)]);
    let what = what.unwrap_or_default();
    Announce {
        networks: prefixes(section, "networks"),
        pools: what.contains(&true),
        subscribers: what.contains(&false),
        aggregates: prefixes(section, "aggregates"),
    }
}

fn prefixes(section: &mut Section, key: &'static str) -> Vec<Prefix> {
    let mut prefixes = Vec::new();
    let mut known = HashSet::new();
    for text in section.strings_or_none(key) {
        match prefix(&text.value) {
            Ok(prefix) if !known.insert(prefix) => {
                section.fault(
                    text.at,
                    key,
                    format!("{prefix} is given twice; give it once"),
                );
            }
            Ok(prefix) => prefixes.push(prefix),
            Err(message) => section.fault(text.at, key, message),
        }
    }
    prefixes
}

/// Parses a prefix and requires its host bits to be 0.
fn prefix(text: &str) -> Result<Prefix, String> {
    let wrong = || format!("\"{text}\" is not a prefix; write it like \"198.51.100.0/24\"");
    let prefix: Prefix = text.parse().map_err(|_| wrong())?;
    let address = text
        .split('/')
        .next()
        .and_then(|ip| ip.parse::<IpAddr>().ok());
    if address == Some(prefix.address()) {
        Ok(prefix)
    } else {
        Err(format!(
            "\"{text}\" has bits behind its length; write \"{prefix}\""
        ))
    }
}

fn number(section: &mut Section, key: &'static str, default: u32) -> u32 {
    let number = section.integer(key, 1..=i64::from(u32::MAX), "");
    number.map_or(default, |number| number.value as u32)
}

#[cfg(test)]
mod tests {
    use bgp::RemoteAsn;

    use super::*;
    use crate::config::{Faults, Settings, parse};

    fn read(text: &str) -> Result<Settings, Faults> {
        parse(Path::new("/nowhere/headend.toml"), text.as_bytes())
    }

    const CONTROL: &str = "[control]\nsocket = \"/run/headend.sock\"\n";
    const ROUTER: &str = "[bgp]\nasn = 65000\nrouter_id = \"192.0.2.1\"\n";

    fn faults(rest: &str) -> String {
        read(&[CONTROL, rest].concat()).unwrap_err().to_string()
    }

    fn example(with: &str) -> String {
        let page = include_str!("../../../../../docs/configuration.md");
        let part = page.split("```toml\n").find(|part| part.contains(with));
        part.unwrap().split("```").next().unwrap().to_owned()
    }

    #[test]
    fn the_smallest_configuration_is_taken() {
        let bgp = read(&example("listen = [\"127.0.0.1:1790\"]"))
            .unwrap()
            .bgp
            .unwrap();
        assert_eq!((bgp.speaker.asn, bgp.speaker.peers.len()), (65_000, 0));
        let dynamic = &bgp.speaker.dynamic[0];
        assert_eq!(dynamic.remote_asn, RemoteAsn::Any);
        assert_eq!(dynamic.prefix.to_string(), "127.0.0.0/8");
        let settings = &dynamic.settings;
        assert_eq!((settings.hold_time_s, settings.passive), (3, true));
        assert!(settings.import.is_some() && settings.export.is_some());
    }

    #[test]
    fn every_key_that_is_documented_is_taken_with_its_default() {
        let shown = example("restarted = false").replace("roas = ", "# roas = ");
        // Keys that exclude other keys, and keys whose documented value is an example instead of the default.
        let given = [
            "ttl = 64",
            "secret = ",
            "role = ",
            "delay_open_s",
            "local_asn",
            "prefixes_max",
            "prefixes_restart_s",
            "cluster_id",
            "events_max",
            "import = ",
            "export = ",
            "add_path_receive",
            "add_path_send",
            "keepalive_s",
            "send_hold_s",
            "ttl_security_hops",
            "networks = ",
            "announce = ",
            "aggregates = ",
        ];
        let of_given = |line: &&str| given.iter().any(|key| line.starts_with(key));
        let plain: Vec<&str> = shown.lines().filter(|line| !of_given(line)).collect();
        let bgp = read(&[CONTROL, &plain.join("\n")].concat())
            .unwrap()
            .bgp
            .unwrap();
        assert_eq!(*bgp.speaker.peers[0].settings, bgp::PeerSettings::default());
        let smallest = read(&[CONTROL, ROUTER].concat()).unwrap().bgp.unwrap();
        assert_eq!(
            bgp.listen
                .iter()
                .map(|listen| listen.address)
                .collect::<Vec<_>>(),
            smallest
                .listen
                .iter()
                .map(|listen| listen.address)
                .collect::<Vec<_>>()
        );
        assert_eq!(
            (bgp.announce, bgp.install, bgp.shutdown_wait),
            (smallest.announce, smallest.install, smallest.shutdown_wait)
        );
        for line in shown.lines().filter(of_given) {
            read(
                &[CONTROL, ROUTER, "prefixes_max = 7\n", line]
                    .concat()
                    .replace("prefixes_max = 7\nprefixes_max", "prefixes_max"),
            )
            .unwrap_or_else(|faults| panic!("{line}: {faults}"));
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_what_would_be_right() {
        let told =
            faults("[bgp]\nasn = 0\nlisetn = []\n[[bgp.neighbor]]\naddress = \"192.0.2.0/24\"\n");
        for part in [
            ":4:7: bgp.asn: 0 is out of range",
            ":5:1: bgp.lisetn: unknown key; did you mean listen?",
            "bgp.router_id: is missing",
            ":6:1: bgp.neighbor[1].remote_asn: is missing",
            ":7:11: bgp.neighbor[1].address: \"192.0.2.0/24\" is not a host's address",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
        let twice = "[[bgp.neighbor]]\naddress = \"192.0.2.7\"\nremote_asn = 1\n".repeat(2);
        let told = faults(&[ROUTER, &twice].concat());
        assert!(
            told.contains("192.0.2.7 is a neighbour already, in line 6"),
            "{told}"
        );
    }

    #[test]
    fn the_first_as_is_enforced_unless_a_peer_s_section_turns_that_off() {
        let peers = "[[bgp.neighbor]]\naddress = \"192.0.2.7\"\nremote_asn = 1\nenforce_first_as = false\n\
                     [[bgp.neighbor]]\naddress = \"192.0.2.8\"\nremote_asn = 1\n";
        let bgp = read(&[CONTROL, ROUTER, peers].concat())
            .unwrap()
            .bgp
            .unwrap();
        let enforced = |at: usize| bgp.speaker.peers[at].settings.enforce_first_as;
        assert_eq!([0, 1].map(enforced), [false, true]);
    }

    #[test]
    fn policies_are_read_whole_and_their_faults_have_lines() {
        let policy = "[[bgp.policy]]\nname = \"in\"\n[[bgp.policy.term]]\nprefix = \"10.0.0.0/8 le 24\"\nthen = \"accept\"\n";
        let peer = "[[bgp.neighbor]]\naddress = \"192.0.2.7\"\nremote_asn = 1\nimport = \"in\"\n";
        let bgp = read(&[CONTROL, ROUTER, policy, peer].concat())
            .unwrap()
            .bgp
            .unwrap();
        assert!(bgp.speaker.peers[0].settings.import.is_some());
        assert!(bgp.speaker.peers[0].settings.export.is_none(), "RFC 8212");
        let told = faults(&[ROUTER, policy, &peer.replace("\"in\"", "\"im\"")].concat());
        assert!(
            told.contains("there is no policy \"im\"; did you mean \"in\"?"),
            "{told}"
        );
        let told = faults(&[ROUTER, &policy.replace("le 24", "le 33")].concat());
        assert!(
            told.contains(":9:10: bgp.policy[1].term[1].prefix: "),
            "{told}"
        );
        let told = faults(&[ROUTER, &policy.replace("prefix", "prefx")].concat());
        assert!(
            told.contains(":9:1: bgp.policy[1].term[1].prefx: unknown key; did you mean prefix?"),
            "{told}"
        );
    }

    #[test]
    fn all_faults_of_policies_are_reported_at_once() {
        let policies = "[[bgp.policy]]\nname = \"in\"\n[[bgp.policy.term]]\nprefix = [\"10.0.0.0/8\", \"10.0.0.0/8 le 33\"]\n\
                        orign = \"igp\"\nset_med = \"7\"\nthen = \"acept\"\n\
                        [[bgp.policy]]\nname = \"in\"\n[[bgp.policy.term]]\ncommunity = \"1:99999\"\norigin = \"ipg\"\n\
                        [[bgp.policy]]\nterm = 7\n";
        let told = faults(&[ROUTER, policies].concat());
        let lines: Vec<&str> = told
            .lines()
            .map(|line| line.trim_start_matches("/nowhere/headend.toml:"))
            .collect();
        assert_eq!(
            lines,
            [
                "9:25: bgp.policy[1].term[1].prefix: \"10.0.0.0/8 le 33\" is not a prefix with lengths; \
                 write PREFIX, PREFIX le N, PREFIX ge N or PREFIX ge N le M",
                "10:1: bgp.policy[1].term[1].orign: unknown key; did you mean origin?",
                "11:11: bgp.policy[1].term[1].set_med: is a string; \
                 it must be an integer, without quotes or unit: set_med = 7",
                "12:8: bgp.policy[1].term[1].then: \"acept\" is not known; did you mean \"accept\"?",
                "14:8: bgp.policy[2].name: \"in\" is taken; give another name",
                "16:13: bgp.policy[2].term[1].community: \"1:99999\" is not a community; \
                 write it like 64496:14 or no-export",
                "17:10: bgp.policy[2].term[1].origin: \"ipg\" is not known; did you mean \"igp\"?",
                "18:1: bgp.policy[3].name: is missing; \
                 give the name that neighbours use: name = \"customers\"",
                "19:8: bgp.policy[3].term: is an integer; \
                 write each as a section of its own: [[bgp.policy[3].term]]",
            ]
        );
    }

    #[test]
    fn a_reference_to_a_faulty_policy_is_no_second_fault() {
        let policy = "[[bgp.policy]]\nname = \"in\"\n[[bgp.policy.term]]\nprefx = \"10.0.0.0/8\"\n";
        let peer = "[[bgp.neighbor]]\naddress = \"192.0.2.7\"\nremote_asn = 1\nimport = \"in\"\nexport = \"on\"\n";
        let told = faults(&[ROUTER, policy, peer].concat());
        assert_eq!(told.lines().count(), 2, "{told}");
        assert!(
            told.contains(":9:1: bgp.policy[1].term[1].prefx: "),
            "{told}"
        );
        assert!(
            told.contains("there is no policy \"on\"; did you mean \"in\"?"),
            "{told}"
        );
    }

    #[test]
    fn each_value_of_a_term_is_taken_alone_and_in_a_list() {
        let term = "prefix = \"10.0.0.0/8\"\nas_path_contains = [1, 2]\norigin_as = 3\nas_path_length = 3\n\
                    origin = [\"igp\", \"egp\"]\nrpki = \"valid\"\nfamily = \"ipv4\"\nset_community = []\nprepend = 2\n\
                    remove_med = true\n";
        let policy = format!("[[bgp.policy]]\nname = \"in\"\n[[bgp.policy.term]]\n{term}");
        read(&[CONTROL, ROUTER, &policy].concat()).unwrap();
        for (right, wrong) in [
            ("= 3", "= \"3..1\""),
            ("[1, 2]", "[1, -2]"),
            ("prepend = 2", "prepend = 256"),
        ] {
            let told = faults(&[ROUTER, &policy.replacen(right, wrong, 1)].concat());
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }

    #[test]
    fn lines_of_authorisations_are_prefix_longest_and_asn() {
        let roa = |line| super::policy::roa(line).map(|roa| roa.map(|roa| (roa.len_max, roa.asn)));
        assert_eq!(
            roa("198.51.100.0/24, 25, AS64500 # ours"),
            Ok(Some((25, 64_500)))
        );
        assert_eq!(roa("  # nothing"), Ok(None));
        assert!(
            roa("198.51.100.0/24,23,1")
                .unwrap_err()
                .contains("24 to 32")
        );
        assert!(
            roa("198.51.100.7/24,24,1")
                .unwrap_err()
                .contains("198.51.100.0/24")
        );
    }
}
