//! `[nat]`: translation of subscribers' IPv4 addresses (docs/nat.md).

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};

use nat::{
    Config, ConfigError, Deterministic, Exempt, Filtering, Protocol, Range, Share, TIMEOUT_MAX,
};
use settings::{Notes, Section, set};
use toml::de::DeTable;

/// The most port forwardings in the configuration.
const FORWARDS_MAX: usize = 4_096;

/// The settings of `[nat]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nat {
    /// The inside addresses that are translated.
    pub inside: Vec<Range>,
    /// The settings of the translation. Seed and number of subscribers are set at the start.
    pub config: Config,
    /// `[[nat.forward]]`
    pub forwards: Vec<Forward>,
    /// `[nat.log]`
    pub log: Log,
}

impl Nat {
    /// The networks of the external addresses, each with the length of its prefix.
    pub fn networks(&self) -> impl Iterator<Item = (IpAddr, u8)> + '_ {
        let networks = self.config.externals.iter().flat_map(Range::networks);
        networks.map(|(address, length)| (address.into(), length))
    }

    /// Whether each of so many cores has a part of the port blocks.
    ///
    /// # Errors
    /// How many have one, and what to change.
    pub(super) fn check_for(&self, cores: u16) -> Result<(), ConfigError> {
        let last = cores
            .checked_sub(1)
            .and_then(|last| Share::new(last, cores));
        last.map_or(Ok(()), |last| self.config.share(last).check())
    }

    /// Whether all addresses of a network are translated.
    #[must_use]
    pub fn hides(&self, network: IpAddr, length: u8) -> bool {
        let IpAddr::V4(first) = network else {
            return false;
        };
        let rest = u32::MAX.checked_shr(length.into()).unwrap_or(0);
        let range = Range::new(first, Ipv4Addr::from_bits(first.to_bits() | rest));
        range.is_some_and(|range| self.inside.iter().any(|inside| inside.contains(&range)))
    }
}

/// A port that is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Forward {
    /// TCP or UDP.
    pub protocol: Protocol,
    pub external: SocketAddrV4,
    pub inside: SocketAddrV4,
}

/// Where port blocks are recorded.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Log {
    /// The directory of the log that `headend nat who` searches.
    pub store: Option<PathBuf>,
    /// Days that the store keeps.
    pub days: u32,
    /// The IPFIX collector.
    pub ipfix: Option<SocketAddr>,
    /// The observation domain in IPFIX messages.
    pub ipfix_domain: u32,
    /// The syslog server.
    pub syslog: Option<SocketAddr>,
    /// Our name in syslog lines.
    pub host: String,
}

/// Reads `[nat]`, each `[[nat.forward]]`, and `[nat.log]`. `edge` are the settings of the edge that translates.
pub(super) fn read(
    root: &DeTable<'_>,
    path: &Path,
    notes: &Notes<'_>,
    (host_name, edge): (&str, &edge::Config),
) -> Option<Nat> {
    if !root.contains_key("nat") {
        return None;
    }
    let mut section = Section::open(root, "nat", notes);
    if !root.contains_key("ppp") {
        let message =
            "is of no use without [ppp]; give [ppp] with address = \"10.255.0.1\", the edge's own";
        notes.at(section.at(), "nat", message);
    }
    let inside = addresses(&mut section, "inside", "100.64.0.0/10");
    let external = addresses(&mut section, "external", "203.0.113.0/28");
    let mut config = Config::new(external, [0; 3]);
    ports(&mut section, &inside, &mut config);
    limits(&mut section, &mut config);
    config.limits.subscribers_max = edge.subscribers_max;
    behaviour(&mut section, &mut config);
    timeouts(&mut section, &mut config);
    let log = log(&mut section, path, host_name);
    let has_lists = !inside.is_empty() && !config.externals.is_empty();
    if has_lists {
        check(&section, &config, &inside, edge.address);
    }
    let forwards = forwards(&mut section, &config, &inside);
    section.finish();
    has_lists.then_some(Nat {
        inside,
        config,
        forwards,
        log,
    })
}

/// Reads a list of addresses that must be there.
fn addresses(section: &mut Section<'_>, key: &'static str, example: &'static str) -> Vec<Range> {
    section.require(key, &format!("give addresses: {key} = [\"{example}\"]"));
    let range = |text: &str| {
        let wrong = |why| format!("\"{text}\" is {why}; write it as \"{example}\"");
        text.parse::<Range>().map_err(wrong)
    };
    let ranges = section.list(key, example, range);
    ranges.into_iter().map(|range| range.value).collect()
}

/// Reads how ports are divided.
fn ports(section: &mut Section<'_>, inside: &[Range], config: &mut Config) {
    let mode = section.choice("mode", &[("dynamic", false), ("deterministic", true)]);
    let factor = section.integer("dynamic_factor", 0..=1_000, "shares");
    if let Some(first) = section.integer("first_port", 1_024..=65_520, "") {
        config.port_first = first.value as u16;
    }
    if let Some(ports) = section.integer("block_ports", 16..=64_512, "ports") {
        config.block_ports = ports.value as u16;
    }
    if mode.is_some_and(|mode| mode.value) {
        config.deterministic = Some(Deterministic {
            inside: inside.to_vec(),
            dynamic: factor.map_or(0, |factor| factor.value as u16),
        });
    } else if let Some(factor) = factor {
        let message =
            "has no effect in dynamic mode; write mode = \"deterministic\", or leave it out";
        section.fault(factor.at, "dynamic_factor", message);
    }
}

/// Reads limits.
fn limits(section: &mut Section<'_>, config: &mut Config) {
    let limits = &mut config.limits;
    let most = 1 << 24;
    for (key, range, unit, value) in [
        (
            "mappings_per_subscriber",
            1..=most,
            "mappings",
            &mut limits.mappings_per_subscriber,
        ),
        (
            "new_mappings_per_s",
            0..=1_000_000,
            "mappings",
            &mut limits.new_per_second,
        ),
        (
            "sessions_per_mapping",
            1..=most,
            "sessions",
            &mut limits.sessions_per_mapping,
        ),
        (
            "mappings",
            1_000..=most,
            "mappings",
            &mut limits.mappings_max,
        ),
        (
            "sessions",
            1_000..=most,
            "sessions",
            &mut limits.sessions_max,
        ),
    ] {
        if let Some(number) = section.integer(key, range, unit) {
            *value = number.value as u32;
        }
    }
    if let Some(blocks) = section.integer("blocks_per_subscriber", 1..=4_096, "blocks") {
        limits.blocks_per_subscriber = blocks.value as u16;
    }
}

/// Reads which packets are translated, and who may send to a mapping.
fn behaviour(section: &mut Section<'_>, config: &mut Config) {
    let filtering = [
        ("endpoint-independent", Filtering::EndpointIndependent),
        ("address-dependent", Filtering::AddressDependent),
    ];
    set(
        section.choice("filtering", &filtering),
        &mut config.filtering,
    );
    set(section.flag("hairpinning"), &mut config.hairpinning);
    set(section.flag("soft_pairing"), &mut config.soft_pairing);
    set(section.flag("ftp"), &mut config.ftp);
    let exempt = section.list_or_none("exempt", "10.0.0.0/8", exempt);
    config.exempt = exempt.into_iter().map(|one| one.value).collect();
}

/// A destination that is not translated: addresses, or addresses with ports.
fn exempt(text: &str) -> Result<Exempt, String> {
    let wrong = || {
        format!(
            "\"{text}\" is no destination; write it as \"10.0.0.0/8\", \"192.0.2.53:53\" or \"192.0.2.53:5000-5010\""
        )
    };
    let (addresses, ports) = match text.split_once(':') {
        None => (text, None),
        Some((addresses, ports)) => {
            let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
            let port = |text: &str| text.parse::<u16>().map_err(|_| wrong());
            (addresses, Some((port(first)?, port(last)?)))
        }
    };
    let addresses = addresses.parse().map_err(|_| wrong())?;
    match ports.is_some_and(|(first, last)| last < first) {
        true => Err(wrong()),
        false => Ok(Exempt { addresses, ports }),
    }
}

/// Reads idle times. The least ones are those of RFC 4787, 5382, 5508 and 7857.
fn timeouts(section: &mut Section<'_>, config: &mut Config) {
    let times = &mut config.timeouts;
    let longest_s = TIMEOUT_MAX as f64;
    for (key, least_s, to) in [
        ("udp_timeout_s", 120.0, &mut times.udp),
        ("icmp_timeout_s", 60.0, &mut times.icmp),
        ("tcp_timeout_s", 7_440.0, &mut times.tcp_established),
        ("tcp_opening_timeout_s", 6.0, &mut times.tcp_opening),
        ("tcp_closing_timeout_s", 240.0, &mut times.tcp_closing),
        ("hold_s", 0.0, &mut config.hold),
    ] {
        set(section.seconds(key, least_s..=longest_s), to);
    }
    let refreshes = section.flag("inbound_refreshes");
    set(refreshes, &mut config.timeouts.inbound_refreshes);
}

/// Reports settings that contradict each other.
fn check(section: &Section<'_>, config: &Config, inside: &[Range], own: Ipv4Addr) {
    let place = |key| section.place(key).unwrap_or(section.at());
    if let Err(why) = config.check() {
        let key = match why {
            ConfigError::NoExternals | ConfigError::ManyExternals(_) | ConfigError::Overlap(..) => {
                "external"
            }
            ConfigError::PortFirst(_) => "first_port",
            ConfigError::BlockPorts(_) | ConfigError::FewBlocks(..) => "block_ports",
            ConfigError::Compression(..) => "mode",
            ConfigError::Timeout(..) | ConfigError::Limit | ConfigError::Fixed => "",
        };
        section.fault(place(key), key, why.to_string());
    }
    for external in &config.externals {
        if let Some(one) = inside.iter().find(|one| one.overlaps(external)) {
            let message = format!(
                "{external} and the inside addresses {one} overlap; an address is inside or external"
            );
            section.fault(place("external"), "external", message);
        }
        if external.position(own.to_bits()).is_some() {
            let message = format!("{external} has {own}, which is [ppp] address; leave it out");
            section.fault(place("external"), "external", message);
        }
    }
}

/// Reads each `[[nat.forward]]`.
fn forwards(section: &mut Section<'_>, config: &Config, inside: &[Range]) -> Vec<Forward> {
    let mut all: Vec<Forward> = Vec::new();
    for mut one in section.tables("forward") {
        let at = one.at();
        if all.len() == FORWARDS_MAX {
            one.fault(
                at,
                "",
                format!("is the port beyond {FORWARDS_MAX}; give fewer"),
            );
        }
        let Some(forward) = forward(&mut one, config, inside) else {
            one.finish();
            continue;
        };
        let is_same = |known: &&Forward| known.protocol == forward.protocol;
        let mut known = all.iter().filter(is_same);
        if known
            .clone()
            .any(|known| known.external == forward.external)
        {
            let message = format!("{} is forwarded already; leave out one", forward.external);
            one.fault(at, "external", message);
        } else if let Some(known) = known.find(|known| known.inside == forward.inside) {
            let message = format!(
                "{} is forwarded from {} already, and can have one external port",
                forward.inside, known.external
            );
            one.fault(at, "inside", message);
        }
        all.push(forward);
        one.finish();
    }
    all
}

fn forward(section: &mut Section<'_>, config: &Config, inside: &[Range]) -> Option<Forward> {
    section.require("protocol", "give the protocol: protocol = \"tcp\"");
    let protocols = [("tcp", Protocol::Tcp), ("udp", Protocol::Udp)];
    let protocol = section.choice("protocol", &protocols);
    let remedy = "give an external address and port: external = \"203.0.113.1:80\"";
    section.require("external", remedy);
    let external = section.from_text("external", "an address and port", "203.0.113.1:80");
    let remedy = "give the subscriber's address and port: inside = \"100.64.0.7:8080\"";
    section.require("inside", remedy);
    let own = section.from_text("inside", "an address and port", "100.64.0.7:8080");
    let (protocol, external, own) = (protocol?.value, external?, own?);
    let (external, at): (SocketAddrV4, usize) = (external.value, external.at);
    let has = |ranges: &[Range], address: &Ipv4Addr| {
        let mut ranges = ranges.iter();
        ranges.any(|range| range.position(address.to_bits()).is_some())
    };
    if !config.externals.is_empty() && !has(&config.externals, external.ip()) {
        let message = format!("{} is not one of [nat] external", external.ip());
        section.fault(at, "external", message);
    }
    if external.port() == 0 || external.port() >= config.port_first {
        let last = config.port_first - 1;
        let message = format!(
            "port {} cannot be forwarded here: ports from 1 to {last} can, and [nat] first_port makes them more",
            external.port()
        );
        section.fault(at, "external", message);
    }
    let (own, at): (SocketAddrV4, usize) = (own.value, own.at);
    if !inside.is_empty() && !has(inside, own.ip()) {
        let message = format!("{} is not one of [nat] inside", own.ip());
        section.fault(at, "inside", message);
    }
    Some(Forward {
        protocol,
        external,
        inside: own,
    })
}

/// Reads `[nat.log]`.
fn log(section: &mut Section<'_>, path: &Path, host_name: &str) -> Log {
    let printable = |one: &char| one.is_ascii_graphic();
    let mut log = Log {
        days: natlog::Settings::default().days,
        host: host_name.chars().filter(printable).collect(),
        ..Log::default()
    };
    section.known("log");
    let Some(mut section) = section.table("log") else {
        if let Some(at) = section.place("log") {
            section.fault(at, "log", "is no section; write it as [nat.log]");
        }
        return log;
    };
    let store = section.string("store");
    log.store = store.map(|store| settings::beside(path, &store.value));
    if let Some(days) = section.integer("days", 1..=3_650, "days") {
        log.days = days.value as u32;
    }
    let ipfix = section.from_text("ipfix", "an address and port", "192.0.2.9:4739");
    log.ipfix = ipfix.map(|ipfix| ipfix.value);
    if let Some(domain) = section.integer("ipfix_domain", 0..=i64::from(u32::MAX), "") {
        log.ipfix_domain = domain.value as u32;
    }
    let syslog = section.from_text("syslog", "an address and port", "192.0.2.9:514");
    log.syslog = syslog.map(|syslog| syslog.value);
    section.finish();
    log
}

#[cfg(test)]
mod tests;
