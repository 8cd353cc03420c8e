//! The peer settings that may be given in `[bgp]`, as defaults for all peers, or for each neighbour.

use std::path::Path;

use base::Duration;
use bgp::PeerSettings;
use bgp::config::{PrefixLimit, Transport};
use bgp::rib::NextHopRule;
use wire::bgp::{Families, FamilyId, Role};

use super::Policies;
use settings::secret;
use settings::{At, Section, set};

/// The values that the reader needs besides the section itself.
pub(super) struct Context<'a> {
    pub(super) path: &'a Path,
    pub(super) policies: &'a Policies,
}

const ROLES: [(&str, Role); 5] = [
    ("provider", Role::Provider),
    ("rs", Role::RouteServer),
    ("rs-client", Role::RouteServerClient),
    ("customer", Role::Customer),
    ("peer", Role::Peer),
];

/// Reads the section's keys. Settings that the section does not give are taken from `base`.
pub(super) fn read(
    section: &mut Section,
    base: &PeerSettings,
    context: &Context<'_>,
) -> PeerSettings {
    let mut settings = base.clone();
    times(section, &mut settings);
    for (key, flag) in [
        ("passive", &mut settings.passive),
        ("enabled", &mut settings.enabled),
        ("refresh", &mut settings.refresh),
        ("extended_messages", &mut settings.extended_messages),
        ("role_strict", &mut settings.role_strict),
        ("enforce_first_as", &mut settings.enforce_first_as),
        (
            "collision_detect_established",
            &mut settings.collision_detect_established,
        ),
        ("route_reflector_client", &mut settings.is_client),
        ("damp_oscillations", &mut settings.damp_oscillations),
    ] {
        set(section.flag(key), flag);
    }
    if let Some(asn) = section.integer("local_asn", 1..=i64::from(u32::MAX), "") {
        settings.local_asn = Some(asn.value as u32);
    }
    if let Some(count) = section.integer("allow_own_asn", 0..=10, "times") {
        settings.allow_own = count.value as u8;
    }
    for (key, families) in [
        ("families", &mut settings.families),
        ("add_path_receive", &mut settings.add_path_receive),
        ("add_path_send", &mut settings.add_path_send),
    ] {
        if let Some(chosen) =
            section.choices(key, &FamilyId::ALL.map(|family| (family.key(), family)))
        {
            *families = chosen.into_iter().fold(Families::NONE, Families::with);
        }
    }
    next_hop(section, &mut settings);
    if let Some(number) = section.integer("add_path_count", 0..=65_535, "paths") {
        settings.add_path_count = number.value as u16;
    }
    if let Some(role) = section.choice("role", &ROLES) {
        settings.role = Some(role.value);
    }
    for (key, policy) in [
        ("import", &mut settings.import),
        ("export", &mut settings.export),
    ] {
        if let Some(name) = section.string(key) {
            match context.policies.find(&name.value) {
                Ok(found) => *policy = found.or_else(|| policy.take()),
                Err(message) => section.fault(name.at, key, message),
            }
        }
    }
    graceful(section, &mut settings);
    transport(section, context.path, &mut settings.transport);
    prefix_limit(section, &mut settings);
    if settings.role_strict && settings.role.is_none() {
        section.fault(section.at(), "role_strict", "needs role beside it");
    }
    settings
}

fn next_hop(section: &mut Section, settings: &mut PeerSettings) {
    let own = section.flag("next_hop_self");
    let unchanged = section.flag("next_hop_unchanged");
    if let (Some(At { value: true, .. }), Some(At { value: true, at })) = (&own, &unchanged) {
        section.fault(
            *at,
            "next_hop_unchanged",
            "says the opposite of next_hop_self; give one",
        );
    }
    for (flag, rule) in [(own, NextHopRule::Own), (unchanged, NextHopRule::Unchanged)] {
        match flag.map(|flag| flag.value) {
            Some(true) => settings.next_hop = rule,
            Some(false) if settings.next_hop == rule => settings.next_hop = NextHopRule::Standard,
            Some(false) | None => {}
        }
    }
}

fn times(section: &mut Section, settings: &mut PeerSettings) {
    if let Some(hold) = section.integer("hold_time_s", 0..=65_535, "seconds") {
        if (1..=2).contains(&hold.value) {
            let message = "must be 0 (none) or at least 3 (RFC 4271, 4.2)";
            section.fault(hold.at, "hold_time_s", message);
        }
        settings.hold_time_s = hold.value as u16;
    }
    if let Some(keepalive) = section.integer("keepalive_s", 1..=21_845, "seconds") {
        settings.keepalive_s = Some(keepalive.value as u16);
    }
    if let Some(hold) = section.seconds("send_hold_s", 1.0..=86_400.0) {
        settings.send_hold = Some(hold.value);
    }
    let day_s = 86_400.0;
    let interval = &mut settings.advertisement_interval;
    for (key, range_s, to) in [
        ("connect_retry_s", 0.1..=day_s, &mut settings.connect_retry),
        ("idle_hold_s", 0.0..=day_s, &mut settings.idle_hold),
        ("idle_hold_max_s", 0.0..=day_s, &mut settings.idle_hold_max),
        ("advertisement_interval_s", 0.0..=3_600.0, interval),
    ] {
        set(section.seconds(key, range_s), to);
    }
    if let Some(delay) = section.seconds("delay_open_s", 0.1..=240.0) {
        settings.delay_open = Some(delay.value);
    }
}

fn graceful(section: &mut Section, settings: &mut PeerSettings) {
    let on = section.flag("graceful_restart");
    let time = section.integer("restart_time_s", 1..=4_095, "seconds");
    let stale = section.seconds("stale_time_s", 1.0..=86_400.0);
    let forwarding = section.flag("preserve_forwarding");
    if on.as_ref().is_some_and(|on| !on.value) {
        settings.graceful_restart = None;
        return;
    }
    let mut graceful = settings.graceful_restart.unwrap_or_default();
    if let Some(time) = time {
        graceful.restart_time_s = time.value as u16;
    }
    set(stale, &mut graceful.stale_max);
    set(forwarding, &mut graceful.forwarding);
    settings.graceful_restart = Some(graceful);
}

fn transport(section: &mut Section, path: &Path, transport: &mut Transport) {
    if let Some(key) = secret::optional(section, path) {
        if key.value.reveal().len() > reactor::tcp::MD5_KEY_MAX {
            let message = format!(
                "must have at most {} octets for TCP",
                reactor::tcp::MD5_KEY_MAX
            );
            section.fault(key.at, "secret", message);
        }
        transport.md5 = Some(key.value);
    }
    let ttl = section.integer("ttl", 1..=255, "");
    let hops = section.integer("ttl_security_hops", 1..=254, "hops");
    if let (Some(_), Some(hops)) = (&ttl, &hops) {
        section.fault(
            hops.at,
            "ttl_security_hops",
            "sends with 255, so that ttl says something else; give one",
        );
    }
    if let Some(ttl) = ttl {
        transport.ttl = Some(ttl.value as u8);
    }
    if let Some(hops) = hops {
        *transport = Transport::gtsm(transport.md5.take(), hops.value as u8);
    }
}

fn prefix_limit(section: &mut Section, settings: &mut PeerSettings) {
    let most = section.integer("prefixes_max", 1..=100_000_000, "prefixes");
    let again = section.seconds("prefixes_restart_s", 1.0..=86_400.0);
    let restart_after: Option<Duration> = again.as_ref().map(|again| again.value);
    match (most, again, &mut settings.prefix_limit) {
        (Some(most), _, limit) => {
            *limit = Some(PrefixLimit {
                prefixes_max: most.value as u32,
                restart_after,
            });
        }
        (None, Some(_), Some(limit)) => limit.restart_after = restart_after,
        (None, Some(again), None) => {
            section.fault(
                again.at,
                "prefixes_restart_s",
                "needs prefixes_max beside it",
            );
        }
        (None, None, _) => {}
    }
}
