//! `[pppoe]`: subscribers on Ethernet interfaces (RFC 2516).

use base::Duration;
use pppoe::{Config, DelayStep, MacPrefix, OverLimit, PortConfig};
use settings::{At, Notes, Section, set};
use toml::de::DeTable;
use wire::pppoe::Mac;

use super::vlans::VlanRange;

/// Longest name of a Linux interface, in bytes.
const NAME_MAX: usize = 15;

/// The settings of `[pppoe]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pppoe {
    /// The settings of the protocol.
    pub config: Config,
    /// The interfaces with subscribers.
    pub interfaces: Vec<Interface>,
}

/// An interface with subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The VLANs whose frames are answered.
    pub vlans: Vec<VlanRange>,
    /// What differs from the other interfaces. Its MTU is the interface's own.
    pub port: PortConfig,
}

impl Interface {
    /// An interface that our client alone uses.
    #[must_use]
    pub fn client(name: &str, vlans: VlanRange) -> Self {
        Self {
            name: name.to_owned(),
            vlans: vec![vlans],
            port: PortConfig {
                server: false,
                ..PortConfig::default()
            },
        }
    }
}

/// Reads `[pppoe]` and each `[[pppoe.interface]]`.
pub(super) fn read(root: &DeTable<'_>, notes: &Notes<'_>, host_name: &str) -> Option<Pppoe> {
    let table = root.get("pppoe")?.get_ref().as_table();
    let mut section = Section::open(root, "pppoe", notes);
    let mut config = Config {
        ac_name: host_name.as_bytes().into(),
        ..Config::default()
    };
    keys(&mut section, &mut config);
    limits(&mut section, &mut config);
    section.known("interface");
    let at = section.at();
    let mut interfaces: Vec<At<Interface>> = Vec::new();
    if let Some(table) = table {
        for mut one in Section::each(table, "interface", "pppoe.interface", notes) {
            if let Some(new) = interface(&mut one, &interfaces) {
                interfaces.push(new);
            }
            one.finish();
        }
    }
    if notes.is_empty() && interfaces.is_empty() {
        let remedy = "is missing; name each interface with subscribers: [[pppoe.interface]] with name = \"eth1\"";
        section.fault(at, "interface", remedy);
    }
    if notes.is_empty()
        && let Err(fault) = config.validate()
    {
        section.fault(at, "", fault.to_string());
    }
    section.finish();
    Some(Pppoe {
        config,
        interfaces: interfaces.into_iter().map(|one| one.value).collect(),
    })
}

/// The keys that describe the service.
fn keys(section: &mut Section<'_>, config: &mut Config) {
    if let Some(name) = section.sized("ac_name", 1..=255) {
        config.ac_name = name.value.as_bytes().into();
    }
    let services = section.list_or_none("services", "internet", service);
    config.services = services.into_iter().map(|name| name.value).collect();
    set(section.flag("any_service"), &mut config.accept_any_service);
    let payload = section.integer("max_payload", 1492..=9_000, "bytes");
    config.max_payload = payload.map_or(config.max_payload, |payload| payload.value as u16);
    let delays = section.list_or_none("pado_delay", "1000:100", delay);
    config.pado_delay = delays.into_iter().map(|step| step.value).collect();
    let blacklist = section.list_or_none("blacklist", "02:00:5e:00:00:00/24", macs);
    config.blacklist = blacklist.into_iter().map(|one| one.value).collect();
    set(
        section.seconds("cookie_lifetime_s", 5.0..=3_600.0),
        &mut config.cookie_lifetime,
    );
    set(
        section.seconds("setup_timeout_s", 1.0..=3_600.0),
        &mut config.setup_timeout,
    );
}

/// The keys that limit what hosts can ask for.
fn limits(section: &mut Section<'_>, config: &mut Config) {
    let limits = &mut config.limits;
    let most = i64::from(u32::MAX);
    for (key, least, unit, value) in [
        ("sessions", 1, "sessions", &mut limits.sessions_max),
        (
            "sessions_per_mac",
            0,
            "sessions",
            &mut limits.sessions_per_mac_max,
        ),
        (
            "sessions_per_line",
            0,
            "sessions",
            &mut limits.sessions_per_line_max,
        ),
        ("half_open", 0, "sessions", &mut limits.half_open_max),
        ("padr_per_s", 0, "", &mut limits.padrs_per_s),
        ("padr_per_mac_per_s", 0, "", &mut limits.padrs_per_mac_per_s),
        ("padi_per_s", 0, "", &mut limits.padis_per_s),
        ("padi_per_mac_per_s", 0, "", &mut limits.padis_per_mac_per_s),
        (
            "padi_per_vlan_per_s",
            0,
            "",
            &mut limits.padis_per_vlan_per_s,
        ),
        ("delayed_pados", 0, "", &mut limits.pados_delayed_max),
        ("unknown_padt_per_s", 0, "", &mut config.unknown_padts_per_s),
    ] {
        if let Some(number) = section.integer(key, least..=most, unit) {
            *value = number.value as u32;
        }
    }
    let choices = [
        ("replace", OverLimit::ReplaceOldest),
        ("refuse", OverLimit::Refuse),
    ];
    set(
        section.choice("over_sessions_per_mac", &choices),
        &mut config.over_mac_limit,
    );
}

fn interface(section: &mut Section<'_>, others: &[At<Interface>]) -> Option<At<Interface>> {
    section.require("name", "give the interface's name: name = \"eth1\"");
    let name = section.parsed("name", interface_name);
    let vlans = section.list("vlans", "100-199", str::parse::<VlanRange>);
    let mut vlans: Vec<_> = vlans.into_iter().map(|one| one.value).collect();
    if vlans.is_empty() {
        vlans.push(VlanRange::UNTAGGED);
    }
    let ac_name = section.sized("ac_name", 1..=255);
    let has_services = section.has("services");
    let services = section.list_or_none("services", "internet", service);
    let services = services.into_iter().map(|name| name.value).collect();
    let name = name?;
    if let Some(other) = others.iter().find(|other| other.value.name == name.value) {
        let line = section.line(other.at);
        let message = format!(
            "{} is given twice, first in line {line}; give it once",
            name.value
        );
        section.fault(name.at, "name", message);
        return None;
    }
    let port = PortConfig {
        ac_name: ac_name.map(|name| name.value.as_bytes().into()),
        services: has_services.then_some(services),
        ..PortConfig::default()
    };
    Some(At {
        value: Interface {
            name: name.value,
            vlans,
            port,
        },
        at: name.at,
    })
}

/// An interface's name that Linux can have.
pub(super) fn interface_name(text: &str) -> Result<String, String> {
    let fits = (1..=NAME_MAX).contains(&text.len());
    match fits && !text.contains(['/', ' ', '\0']) && text != "." && text != ".." {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "\"{text}\" is not an interface's name of 1 to {NAME_MAX} bytes, such as \"eth1\""
        )),
    }
}

pub(super) fn service(text: &str) -> Result<Box<[u8]>, String> {
    match text.len() {
        1..=255 => Ok(text.as_bytes().into()),
        len => Err(format!(
            "a service's name has {len} bytes; it must have 1 to 255"
        )),
    }
}

/// `SESSIONS:MS` or `SESSIONS:never`.
fn delay(text: &str) -> Result<DelayStep, String> {
    let wrong = || {
        format!(
            "\"{text}\" is not a step of the delay; write sessions and milliseconds such as \"1000:100\", or \
             \"60000:never\""
        )
    };
    let (sessions, delay) = text.split_once(':').ok_or_else(wrong)?;
    let from_sessions = sessions.parse().map_err(|_| wrong())?;
    let delay = match delay {
        "never" => None,
        ms => Some(Duration::from_millis(
            ms.parse::<u16>().map_err(|_| wrong())?.into(),
        )),
    };
    Ok(DelayStep {
        from_sessions,
        delay,
    })
}

/// A MAC address, or with `/BITS` all that share its first bits.
fn macs(text: &str) -> Result<MacPrefix, String> {
    let (mac, bits) = match text.split_once('/') {
        Some((mac, bits)) => (mac, bits.parse().ok().filter(|bits| *bits <= 48)),
        None => (text, Some(48)),
    };
    match (mac.parse::<Mac>(), bits) {
        (Ok(mac), Some(bits)) => Ok(MacPrefix::new(mac, bits)),
        _ => Err(format!(
            "\"{text}\" is not a MAC address; write \"02:00:5e:00:00:01\", or \"02:00:5e:00:00:00/24\" for all that share \
             its first 24 bits"
        )),
    }
}
