//! What the thread does for a reload: everything that needs no state of the loop.

use std::path::PathBuf;
use std::sync::Arc;

use aaa::pools::NewPools;
use aaa::prefixes::NewPrefixPools;
use bgp::SpeakerConfig;
use edge::FilterChange;
use filter::FilterSet;
use settings::Difference;

use crate::config::effect::{self, Effect};
use crate::config::{self, Settings};
use control::rows;

/// Which configuration is wanted.
pub(crate) enum Wanted {
    /// That of the file.
    File(PathBuf),
    /// This one, which was in force before.
    Before(Arc<Settings>),
}

/// The configuration in force, which the wanted one is compared with.
pub(crate) struct InForce {
    pub(crate) settings: Arc<Settings>,
    pub(crate) filters: Arc<FilterSet>,
    /// Paths of the edge, each with counters of its own.
    pub(crate) paths: usize,
    /// The edge's own addresses.
    pub(crate) own: Vec<std::net::Ipv4Addr>,
    /// Whether the edge has pools.
    pub(crate) terminates: bool,
}

/// A preparation.
pub(crate) struct Order {
    pub(crate) wanted: Wanted,
    pub(crate) in_force: InForce,
}

/// A key whose value differs, with the row about it as it is if nothing fails.
pub(crate) struct Changed {
    pub(crate) difference: Difference,
    pub(crate) row: rows::ReloadChange,
}

/// A configuration that is ready to be applied.
pub(crate) struct Prepared {
    /// Keys that need a restart have the values in force in its record.
    pub(crate) settings: Settings,
    pub(crate) changed: Vec<Changed>,
    /// Sections of the whole file that appear or go.
    pub(crate) sections: Vec<String>,
    /// Whether the listen addresses of the LNS and of the LAC differ.
    pub(crate) listens: [bool; 2],
    /// The advice of the file, a line each.
    pub(crate) advice: Vec<String>,
    /// Or why they cannot be applied.
    pub(crate) filters: Result<FilterChange, String>,
    /// `None` without pools; or why they cannot be applied.
    pub(crate) pools: Result<Option<NewPools>, String>,
    /// The same for prefix pools.
    pub(crate) prefix_pools: Result<Option<NewPrefixPools>, String>,
    /// Shares what is equal with the configuration in force.
    pub(crate) speaker: Option<SpeakerConfig>,
}

/// Reads, checks, compares and compiles.
pub(super) fn prepare(order: Order) -> Result<Box<Prepared>, String> {
    let Order { wanted, in_force } = order;
    let mut settings = match wanted {
        Wanted::File(path) => config::load(&path).map_err(|faults| faults.to_string())?,
        Wanted::Before(settings) => Settings::clone(&settings),
    };
    let old = &in_force.settings;
    if let (Some(new), Some(old)) = (&mut settings.bgp, &old.bgp) {
        new.speaker.share(&old.speaker);
    }
    let differences = old.record.differences(&settings.record);
    let is_listen = |place: &str| {
        let is_it = |one: &Difference| one.key.place == place && one.key.key == "listen";
        differences.iter().any(is_it)
    };
    let listens = [is_listen("lns"), is_listen("lac")];
    let whole = |one: &&Difference| one.key.place.is_empty();
    let sections: Vec<Difference> = differences.iter().filter(whole).cloned().collect();
    let appears = |one: &&Difference| one.old.is_none() || one.new.is_none();
    let names = sections.iter().filter(appears);
    let names = names.map(|one| one.key.key.clone()).collect();
    let all = differences.into_iter();
    let changed: Vec<Changed> = all.filter_map(|one| changed(one, &sections)).collect();
    for one in changed.iter().filter(|one| one.row.effect == "restart") {
        let Difference { key, old, .. } = &one.difference;
        settings.record.set(key.clone(), old.clone());
    }
    Ok(Box::new(Prepared {
        filters: filters(&settings, &in_force),
        pools: pools(&settings, &in_force),
        prefix_pools: prefix_pools(&settings, &in_force),
        speaker: settings.bgp.as_ref().map(|bgp| bgp.speaker.clone()),
        advice: settings.advice.lines(),
        settings,
        changed,
        sections: names,
        listens,
    }))
}

/// The row about a key; `None` for a section whose keys say it all.
fn changed(difference: Difference, sections: &[Difference]) -> Option<Changed> {
    let one = &difference;
    let effect = match effect::of(one, sections) {
        Effect::Restart => "restart",
        Effect::Now if one.is_section() => return None,
        Effect::Now => "applied",
        Effect::New => "applied-to-new",
    };
    let content = one.is_hidden().then(|| match one.new {
        Some(ref new) if new.is_secret() => "another secret".to_owned(),
        _ => "the content of the file has changed".to_owned(),
    });
    let text = |value: &Option<settings::Value>| value.as_ref().map(ToString::to_string);
    let row = rows::ReloadChange {
        schema: rows::ReloadChange::SCHEMA.into(),
        key: one.key.to_string(),
        old: text(&one.old),
        new: text(&one.new),
        effect: effect.into(),
        note: content,
    };
    Some(Changed { difference, row })
}

fn filters(new: &Settings, in_force: &InForce) -> Result<FilterChange, String> {
    let file = new.subscribers.filters.as_ref();
    let none = FilterSet::default();
    let set = file.map_or(&none, |file| &*file.set);
    let set = set.after(&in_force.filters).map_err(|fault| {
        let path = file.map(|file| file.path.display().to_string());
        format!("{}:{fault}", path.unwrap_or_default())
    })?;
    Ok(FilterChange::new(set, &in_force.filters, in_force.paths))
}

fn pools(new: &Settings, in_force: &InForce) -> Result<Option<NewPools>, String> {
    if !in_force.terminates {
        return Ok(None);
    }
    let old = &in_force.settings.subscribers.pools;
    let specs = new.subscribers.pools.clone();
    let made = NewPools::new(specs, in_force.own.clone(), |spec| old.contains(spec));
    made.map(Some).map_err(|faults| joined(&faults))
}

fn prefix_pools(new: &Settings, in_force: &InForce) -> Result<Option<NewPrefixPools>, String> {
    if !in_force.terminates {
        return Ok(None);
    }
    let old = &in_force.settings.subscribers.prefix_pools;
    let specs = new.subscribers.prefix_pools.clone();
    let made = NewPrefixPools::new(specs, |spec| old.contains(spec));
    made.map(Some).map_err(|faults| joined(&faults))
}

fn joined(faults: &[impl ToString]) -> String {
    let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    faults.join("; ")
}
