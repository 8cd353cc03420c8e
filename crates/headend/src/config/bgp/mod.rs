//! `[bgp]` and its sections: our router, its neighbours, its policies, and what it announces.

mod neighbor;
mod policy;
mod settings;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Duration, Redacted};
use bgp::{DynamicConfig, PeerConfig, SpeakerConfig};
use peering::{Listen, Signature};
use toml::de::DeTable;
use wire::bgp::{PORT, Prefix};

use super::fault::Notes;
use super::reader::{At, Section, set};

pub(crate) use policy::Policies;

/// What the file says of routes.
#[derive(Clone, Debug)]
pub(crate) struct Bgp {
    pub(crate) speaker: SpeakerConfig,
    pub(crate) listen: Vec<Listen>,
    pub(crate) announce: Announce,
    /// Learned routes go to the kernel.
    pub(crate) install: Option<Install>,
    /// How long the end waits for peers to read that we go.
    pub(crate) shutdown_wait: Duration,
}

/// What we announce ourselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Announce {
    /// Always.
    pub(crate) networks: Vec<Prefix>,
    /// The pools' networks.
    pub(crate) pools: bool,
    /// Addresses and networks of subscribers, while they are on line.
    pub(crate) subscribers: bool,
    /// Each is announced in the place of subscribers' routes within it, while there is one.
    pub(crate) aggregates: Vec<Prefix>,
}

/// Where learned routes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Install {
    /// The kernel's routing table.
    pub(crate) table: u32,
    /// The routes' metric.
    pub(crate) metric: u32,
}

impl Bgp {
    /// Who signs, with which key.
    pub(crate) fn signatures(&self) -> Vec<Signature> {
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

/// Reads all of it.
pub(super) fn read<'s>(root: &DeTable<'s>, path: &Path, notes: &mut Notes<'s>) -> Option<Bgp> {
    let table = root.get("bgp")?.get_ref().as_table()?;
    let policies = policy::read(table, path, notes);
    let mut section = Section::open(root, "bgp", notes);
    let asn = own_asn(&mut section);
    let router_id = router_id(&mut section);
    let listen = listen(&mut section);
    let files = settings::Context {
        path,
        policies: &policies,
    };
    let defaults = settings::read(&mut section, &bgp::PeerSettings::default(), &files);
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
    let cluster_id = section.string("cluster_id");
    let cluster_id = cluster_id.and_then(|text| ipv4(&mut section, "cluster_id", &text));
    let mut shutdown_wait = Duration::from_secs(2);
    set(
        section.seconds("shutdown_wait_s", 0.0..=60.0),
        &mut shutdown_wait,
    );
    for key in ["neighbor", "dynamic", "policy", "roas"] {
        section.known(key);
    }
    section.finish();
    let mut speaker = SpeakerConfig::new(asn?, router_id?);
    speaker.cluster_id = cluster_id;
    speaker.restarted = restarted.then_some(Duration::from_secs(180));
    speaker.limits = limits;
    let mut peers: Vec<At<PeerConfig>> = Vec::new();
    Section::each(table, "neighbor", "bgp.neighbor", notes, |mut section| {
        let at = section.at();
        let peer = neighbor::neighbor(&mut section, &defaults, &files);
        if let Some(peer) = &peer
            && let Some(other) = peers.iter().find(|other| other.value.remote == peer.remote)
        {
            let line = section.line(other.at);
            let message = format!(
                "{} is a neighbour already, in line {line}; give it once",
                peer.remote
            );
            section.fault(at, "address", message);
        }
        section.finish();
        peers.extend(peer.map(|value| At { value, at }));
    });
    let mut dynamic: Vec<DynamicConfig> = Vec::new();
    Section::each(table, "dynamic", "bgp.dynamic", notes, |mut section| {
        dynamic.extend(neighbor::dynamic(&mut section, &defaults, &files));
        section.finish();
    });
    speaker.peers = peers.into_iter().map(|peer| peer.value).collect();
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

fn own_asn(section: &mut Section) -> Option<u32> {
    if !section.has("asn") {
        let message = "is missing; give our autonomous system: asn = 65000";
        section.fault(section.at(), "asn", message);
    }
    let asn = section.integer("asn", 1..=i64::from(u32::MAX), "")?;
    if asn.value == 23_456 {
        let message =
            "23456 stands for those that do not fit in two octets (RFC 6793); give our own";
        section.fault(asn.at, "asn", message);
    }
    Some(asn.value as u32)
}

fn router_id(section: &mut Section) -> Option<Ipv4Addr> {
    if !section.has("router_id") {
        let message =
            "is missing; give an address that no other router has: router_id = \"192.0.2.1\"";
        section.fault(section.at(), "router_id", message);
    }
    let text = section.string("router_id")?;
    let id = ipv4(section, "router_id", &text)?;
    if id.is_unspecified() {
        section.fault(text.at, "router_id", "must not be 0.0.0.0 (RFC 6286)");
    }
    Some(id)
}

fn ipv4(section: &mut Section, key: &str, text: &At<String>) -> Option<Ipv4Addr> {
    let id = text.value.parse().ok();
    if id.is_none() {
        let message = format!("\"{}\" is not of the form \"192.0.2.1\"", text.value);
        section.fault(text.at, key, message);
    }
    id
}

fn listen(section: &mut Section) -> Vec<Listen> {
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
    let mut prefixes: Vec<Prefix> = Vec::new();
    for text in section.strings_or_none(key) {
        match prefix(&text.value) {
            Ok(prefix) if prefixes.contains(&prefix) => {
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

/// A prefix whose host bits are 0.
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

/// A file beside the configuration.
fn beside(path: &Path, name: &str) -> PathBuf {
    path.parent().unwrap_or(Path::new(".")).join(name)
}
