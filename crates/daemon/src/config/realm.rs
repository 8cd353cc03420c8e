//! `[[realm]]` and `[throttle]`: what is different for the users of a realm, and waits after failed logins.

use std::sync::Arc;

use aaa::radius::ServerConfig;
use aaa::realm::{self, Method, Realm, Realms};
use aaa::throttle::ThrottleConfig;
use settings::{Notes, Section, set};
use toml::de::DeTable;

/// What realms may name; `None` if the configuration has a fault there.
pub(super) struct Known<'a> {
    pub(super) servers: &'a [ServerConfig],
    pub(super) pools: Option<&'a [&'a str]>,
    pub(super) filters: Option<&'a [&'a str]>,
}

/// Reads all realms.
pub(super) fn read(root: &DeTable<'_>, notes: &Notes<'_>, known: &Known<'_>) -> Arc<Realms> {
    let mut realms: Vec<Realm> = Vec::new();
    for mut section in Section::each(root, "realm", "realm", notes) {
        let at = section.at();
        if realms.len() == realm::REALMS_MAX {
            let message = format!("is the realm beyond {}; give fewer", realm::REALMS_MAX);
            section.fault(at, "name", message);
        }
        let realm = one(&mut section, known);
        let is_same = |other: &Realm| other.name.eq_ignore_ascii_case(&realm.name);
        if realms.iter().any(is_same) {
            let message = format!("\"{}\" is given twice; give each realm once", realm.name);
            section.fault(at, "name", message);
        }
        realms.push(realm);
        section.finish();
    }
    Arc::new(Realms::new(realms))
}

fn one(section: &mut Section<'_>, known: &Known<'_>) -> Realm {
    let mut realm = Realm::default();
    section.require(
        "name",
        "give the realm's name, or \"*\" for all others: name = \"example.net\"",
    );
    let name = section.parsed("name", |text| match text.contains(['@', '\\']) {
        true => Err("is no realm; write it without \"@\" and user"),
        false => Ok(text.to_owned()),
    });
    if let Some(name) = name {
        realm.name = name.value.into();
    }
    set(section.flag("strip"), &mut realm.strip);
    for server in section.strings("servers").unwrap_or_default() {
        let place = (known.servers.iter()).position(|one| *one.name == *server.value);
        match place {
            Some(place) => *realm.servers.get_or_insert(0) |= 1 << place,
            None => {
                let message = format!(
                    "there is no [[radius.server]] with name = \"{}\"",
                    server.value
                );
                section.fault(server.at, "servers", message);
            }
        }
    }
    let methods = [
        ("chap", Method::Chap),
        ("pap", Method::Pap),
        ("mschapv2", Method::MsChapV2),
        ("eap", Method::Eap),
    ];
    realm.methods = section
        .choices("authenticate", &methods)
        .unwrap_or_default();
    realm.pool = named(section, "pool", known.pools);
    realm.filter = named(section, "filter", known.filters);
    realm.isolate = section.flag("isolate").map(|isolate| isolate.value);
    realm
}

/// The name of something that exists.
fn named(section: &mut Section<'_>, key: &'static str, known: Option<&[&str]>) -> Option<Box<str>> {
    let name = section.string(key)?;
    if known.is_some_and(|all| !all.contains(&&*name.value)) {
        section.fault(
            name.at,
            key,
            format!("there is no {key} \"{}\"", name.value),
        );
    }
    Some(name.value.into())
}

/// Reads `[throttle]`. `None` without that section: nobody waits.
pub(super) fn throttle(root: &DeTable<'_>, notes: &Notes<'_>) -> Option<ThrottleConfig> {
    let is_given = root.contains_key("throttle");
    let mut section = Section::open(root, "throttle", notes);
    let mut config = ThrottleConfig::default();
    if let Some(failures) = section.integer("failures", 1..=1_000, "") {
        config.failures = failures.value as u16;
    }
    set(section.seconds("delay_s", 0.1..=3_600.0), &mut config.delay);
    set(
        section.seconds("delay_max_s", 1.0..=86_400.0),
        &mut config.delay_max,
    );
    set(
        section.seconds("forget_s", 1.0..=604_800.0),
        &mut config.forget,
    );
    section.finish();
    is_given.then_some(config)
}
