//! `[[prefix_pool]]` and `[ipv6]`: subscribers' IPv6 prefixes, Router Advertisements and DHCPv6.

use std::net::Ipv6Addr;

use aaa::Prefix;
use aaa::prefixes::{PrefixPools, PrefixSpec};
use base::Duration;
use edge::v6::{self, SEARCH_OCTETS_MAX, SERVERS_MAX};
use settings::{At, Notes, Section, set};
use toml::de::DeTable;

use super::subscribers::prefix;

/// The longest lifetime, in seconds; a greater one means no end (RFC 8415, section 7.7).
const LIFETIME_MAX: i64 = 31_536_000;

/// Reads `[[prefix_pool]]`.
pub(super) fn prefix_pools(root: &DeTable<'_>, notes: &Notes<'_>) -> Vec<PrefixSpec> {
    let mut specs = Vec::new();
    let mut places = Vec::new();
    for mut section in Section::each(root, "prefix_pool", "prefix_pool", notes) {
        places.push(section.at());
        let mut spec = PrefixSpec {
            sticky: true,
            ..PrefixSpec::default()
        };
        section.require("name", "give the pool a name: name = \"homes\"");
        if let Some(name) = section.string("name") {
            spec.name = name.value.into();
        }
        section.require("ranges", "give networks: ranges = [\"2001:db8::/40\"]");
        spec.ranges = networks(&mut section, "ranges");
        section.require("length", "give the length of its prefixes: length = 56");
        if let Some(length) = section.integer("length", 1..=128, "bits") {
            spec.length = length.value as u8;
        }
        spec.excluded = networks(&mut section, "excluded");
        set(section.flag("sticky"), &mut spec.sticky);
        section.finish();
        specs.push(spec);
    }
    if notes.is_empty()
        && let Err(faults) = PrefixPools::new(0).reload(specs.clone())
    {
        for fault in faults {
            let at = places.get(fault.pool).copied().unwrap_or(0);
            let key = format!("prefix_pool[{}].{}", fault.pool + 1, fault.key);
            notes.at(at, key, fault.to_string());
        }
    }
    specs
}

fn networks(section: &mut Section<'_>, key: &'static str) -> Vec<Prefix> {
    let network = |text: &str| {
        let network = prefix(text).filter(|network| network.address().is_ipv6());
        network.ok_or_else(|| {
            format!(
                "\"{text}\" is no IPv6 network; write it as \"2001:db8::/40\", without bits behind its length"
            )
        })
    };
    let networks = section.list(key, "2001:db8::/40", network);
    networks.into_iter().map(|network| network.value).collect()
}

/// Reads `[ipv6]`.
pub(super) fn settings(
    root: &DeTable<'_>,
    notes: &Notes<'_>,
    pools: &[PrefixSpec],
    own: [u8; 4],
) -> v6::Settings {
    let mut settings = v6::Settings {
        duid: v6::duid(own),
        ..v6::Settings::default()
    };
    let mut section = Section::open(root, "ipv6", notes);
    set(section.flag("advertise"), &mut settings.advertise);
    set(section.flag("dhcp"), &mut settings.dhcp);
    let named = [
        ("link_pool", 1..=128, &mut settings.pool),
        ("delegated_pool", 1..=127, &mut settings.delegated_pool),
        ("address_pool", 128..=128, &mut settings.address_pool),
    ];
    for (key, lengths, to) in named {
        let Some(name) = section.string(key) else {
            continue;
        };
        match pools.iter().find(|pool| *pool.name == *name.value) {
            None => {
                let message = format!(
                    "there is no prefix pool \"{}\"; give [[prefix_pool]] with that name",
                    name.value
                );
                section.fault(name.at, key, message);
            }
            Some(pool) if !lengths.contains(&pool.length) => {
                let message = format!(
                    "\"{}\" has prefixes of length {}; it needs a length from {} to {}",
                    name.value,
                    pool.length,
                    lengths.start(),
                    lengths.end()
                );
                section.fault(name.at, key, message);
            }
            Some(_) => *to = Some(name.value.into()),
        }
    }
    names(&mut section, &mut settings);
    times(&mut section, &mut settings);
    if let Some(preference) = section.integer("preference", 0..=255, "") {
        settings.preference = preference.value as u8;
    }
    set(section.flag("rapid_commit"), &mut settings.rapid_commit);
    set(
        section.flag("interim_on_change"),
        &mut settings.interim_on_change,
    );
    section.finish();
    settings
}

/// Reads name servers and the search list.
fn names(section: &mut Section<'_>, settings: &mut v6::Settings) {
    let server = |text: &str| {
        let wrong = |_| format!("\"{text}\" is no IPv6 address; write it as \"2001:db8::53\"");
        text.parse::<Ipv6Addr>().map_err(wrong)
    };
    let servers = section.list("dns", "2001:db8::53", server);
    if let Some(beyond) = servers.get(SERVERS_MAX) {
        let message = format!("has more than {SERVERS_MAX} name servers; give fewer");
        section.fault(beyond.at, "dns", message);
    }
    settings.dns = servers.into_iter().map(|server| server.value).collect();
    let name = |text: &str| {
        let mut out = Vec::new();
        let encoded = wire::dns::encode(text, &mut out);
        encoded.map_err(|why| format!("\"{text}\" has {why}"))?;
        Ok::<_, String>(out)
    };
    let mut search = Vec::new();
    for At { value, at } in section.list("search", "example.net", name) {
        if search.len() + value.len() > SEARCH_OCTETS_MAX {
            let message = format!("has more than {SEARCH_OCTETS_MAX} bytes of names; give fewer");
            section.fault(at, "search", message);
            break;
        }
        search.extend(value);
    }
    settings.search = search.into();
}

/// Reads intervals and lifetimes.
fn times(section: &mut Section<'_>, settings: &mut v6::Settings) {
    // RFC 4861, section 6.2.1: MaxRtrAdvInterval is 4 to 1,800 seconds.
    if let Some(interval) = section.seconds("advertise_interval_s", 4.0..=1_800.0) {
        settings.interval = interval.value;
    }
    let at_least = settings.interval.as_millis().div_ceil(1_000);
    let lifetime = section.integer("router_lifetime_s", 0..=9_000, "seconds");
    settings.router_lifetime_s = match &lifetime {
        Some(lifetime) => lifetime.value as u16,
        // RFC 4861, section 6.2.1: three intervals.
        None => (3 * at_least).min(9_000) as u16,
    };
    if let Some(lifetime) = lifetime
        && (1..at_least as i64).contains(&lifetime.value)
    {
        let message = format!(
            "{} s is less than advertise_interval_s; give 0, or at least {at_least}",
            lifetime.value
        );
        section.fault(lifetime.at, "router_lifetime_s", message);
    }
    let valid = section.integer("valid_s", 60..=LIFETIME_MAX, "seconds");
    let preferred = section.integer("preferred_s", 60..=LIFETIME_MAX, "seconds");
    if let Some(valid) = &valid {
        settings.valid_s = valid.value as u32;
        settings.preferred_s = settings.valid_s / 2;
    }
    if let Some(preferred) = preferred {
        if preferred.value > i64::from(settings.valid_s) {
            let message = format!(
                "{} s is above valid_s, which is {} s; give that or less",
                preferred.value, settings.valid_s
            );
            section.fault(preferred.at, "preferred_s", message);
        }
        settings.preferred_s = preferred.value as u32;
    }
    debug_assert!(settings.interval >= Duration::from_secs(4));
}

/// Reports sections that have no effect.
pub(super) fn advise(
    root: &DeTable<'_>,
    notes: &Notes<'_>,
    edge: &edge::Config,
    pools: &[PrefixSpec],
) {
    if !notes.is_empty() {
        return;
    }
    let at = |name: &str| root.get(name).map_or(0, |value| value.span().start);
    if !edge.ipv6 && !pools.is_empty() {
        let message = "has no effect: [ppp] ipv6 = false offers no IPv6";
        notes.advise(at("prefix_pool"), "prefix_pool", message);
        return;
    }
    let v6 = &edge.v6;
    let is_default = v6.pool.is_some() || v6.delegated_pool.is_some() || v6.address_pool.is_some();
    if !pools.is_empty()
        && !is_default
        && !root.contains_key("users")
        && !root.contains_key("radius")
    {
        let message =
            "has no effect: no subscriber uses it; give [ipv6] with link_pool or delegated_pool";
        notes.advise(at("prefix_pool"), "prefix_pool", message);
    }
}
