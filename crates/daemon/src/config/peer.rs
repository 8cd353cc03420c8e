//! The keys that `[l2tp]`, `[lns]` and `[lac]` share. One endpoint serves both roles, so sections that give the same
//! key must agree on its value.

use std::path::Path;

use base::{Duration, Redacted};
use l2tp::Versions;

use settings::Notes;
use settings::secret;
use settings::{At, Section};

/// The shared keys of one section.
#[derive(Default)]
pub(super) struct PeerKeys {
    name: &'static str,
    host_name: Option<At<String>>,
    secret: Option<At<Redacted<Vec<u8>>>>,
    hello_interval: Option<At<Duration>>,
    idle_tunnel: Option<At<Duration>>,
    receive_window: Option<At<i64>>,
    versions: Option<At<Vec<i64>>>,
    hide: Option<At<bool>>,
}

/// Reads the shared keys from a section.
pub(super) fn read(name: &'static str, section: &mut Section, config: &Path) -> PeerKeys {
    // RFC 2661 4.4.3: a name AVP holds at most 255 octets.
    let host_name = section.sized("host_name", 1..=255).map(|host| At {
        value: host.value.to_owned(),
        at: host.at,
    });
    let mut versions = section.integers("versions", 2..=3);
    if let Some(versions) = &mut versions {
        versions.value.sort_unstable();
    }
    PeerKeys {
        name,
        host_name,
        secret: secret::optional(section, config),
        hello_interval: section.seconds("hello_interval_s", 0.0..=86_400.0),
        idle_tunnel: section.seconds("idle_tunnel_s", 0.0..=31_536_000.0),
        receive_window: section.integer("receive_window", 1..=65_535, "messages"),
        versions,
        hide: section.flag("hide"),
    }
}

/// Copies the keys of all sections into `config`, and reports keys on which the sections differ.
pub(super) fn merge(all: &[PeerKeys], config: &mut l2tp::Config, notes: &Notes) {
    if let Some(host) = agree(all, "host_name", |keys| &keys.host_name, notes) {
        config.host_name = host;
    }
    if let Some(interval) = agree(all, "hello_interval_s", |keys| &keys.hello_interval, notes) {
        config.hello_interval = interval;
    }
    if let Some(limit) = agree(all, "idle_tunnel_s", |keys| &keys.idle_tunnel, notes) {
        config.idle_tunnel = limit;
    }
    if let Some(window) = agree(all, "receive_window", |keys| &keys.receive_window, notes) {
        config.receive_window = window as u16;
    }
    if let Some(versions) = agree(all, "versions", |keys| &keys.versions, notes) {
        config.versions = Versions {
            v2: versions.contains(&2),
            v3: versions.contains(&3),
        };
    }
    config.secret = agree(all, "secret", |keys| &keys.secret, notes);
    config.hide = agree(all, "hide", |keys| &keys.hide, notes).unwrap_or(config.hide);
    let hide = all
        .iter()
        .find_map(|keys| Some((keys.name, keys.hide.as_ref().filter(|h| h.value)?)));
    if let (Some((name, hide)), None) = (hide, all.iter().find_map(|keys| keys.secret.as_ref())) {
        let message = "hides AVPs with the secret, and there is none; give secret or secret_file";
        notes.at(hide.at, format!("{name}.hide"), message);
    }
}

fn agree<T: PartialEq + Clone>(
    all: &[PeerKeys],
    key: &str,
    get: impl Fn(&PeerKeys) -> &Option<At<T>>,
    notes: &Notes,
) -> Option<T> {
    let mut given = all
        .iter()
        .filter_map(|keys| Some((keys.name, get(keys).as_ref()?)));
    let (name, first) = given.next()?;
    for (other_name, other) in given {
        if other.value != first.value {
            let line = notes.line(first.at);
            let message = format!(
                "differs from [{name}] in line {line}; one endpoint serves both: give it once, in [l2tp]"
            );
            notes.at(other.at, format!("{other_name}.{key}"), message);
        }
    }
    Some(first.value.clone())
}
