//! Reads the configuration again while the daemon runs, on SIGHUP or on request.
//!
//! The new file is compared with the configuration in force, key by key. `config::effect` knows which keys apply at
//! once, which apply to new tunnels and sessions, and which need a restart. If the file has a fault, nothing changes.
//! A reload with a timeout is undone unless it is confirmed. Start reading at [`on_request`].

use std::net::IpAddr;
use std::sync::Arc;

use base::Duration;
use settings::Difference;
use wire::bgp::Prefix;

use super::core::Core;
use super::log;
use super::running::Waiting;
use super::sockets::End;
use crate::config::effect::{self, Effect};
use crate::config::{self, FiltersFile, Role, Settings};
use control::reply::{Code, Refusal};
use control::rows;

/// Changes that the log lists; it counts the others.
const LOGGED_MAX: usize = 100;

/// The rows about a reload.
pub(super) struct Report {
    pub(super) changes: Vec<rows::ReloadChange>,
    pub(super) summary: rows::Reload,
}

/// What could not be applied: the start of the keys, and why.
type Failures = Vec<(&'static str, String)>;

/// Reads the file again because a signal asks for it.
pub(super) fn on_signal(core: &mut Core) {
    tracing::info!("SIGHUP: reading {} again", core.running.path.display());
    if let Err(refusal) = reload(core, None) {
        for line in refusal.message.lines() {
            tracing::error!("{line}");
        }
        tracing::error!("SIGHUP: no setting was changed");
    }
}

/// Reads the file again because a client asks for it. With a timeout, the reload is undone then unless it is confirmed.
///
/// # Errors
/// The faults of the file, one a line, or why no reload is possible now. Nothing changed.
pub(super) fn on_request(core: &mut Core, timeout: Option<Duration>) -> Result<Report, Refusal> {
    tracing::info!(
        "headend reload: reading {} again",
        core.running.path.display()
    );
    reload(core, timeout)
}

/// Keeps what the last reload applied.
///
/// # Errors
/// No reload waits for its confirmation.
pub(super) fn confirm(core: &mut Core) -> Result<(), Refusal> {
    if core.running.waiting.take().is_none() {
        let message = "no reload waits for a confirmation";
        return Err(Refusal::new(Code::Refused, message));
    }
    tracing::info!("the reload is confirmed");
    Ok(())
}

/// Undoes a reload that was not confirmed in time.
pub(super) fn handle_timeout(core: &mut Core) {
    let now = core.now;
    let due = |waiting: &mut Waiting| waiting.until <= now;
    if let Some(waiting) = core.running.waiting.take_if(due) {
        let seconds = waiting.timeout.as_secs_f64();
        tracing::warn!("no \"headend confirm\" came within {seconds} s: undoing the reload");
        apply(core, *waiting.before);
    }
}

fn reload(core: &mut Core, timeout: Option<Duration>) -> Result<Report, Refusal> {
    if core.stop_at.is_some() {
        return Err(Refusal::new(Code::Refused, "the daemon is shutting down"));
    }
    if let Some(left) = core.running.undo_in(core.now) {
        let message = format!(
            "the last reload is undone in {:.0} s unless it is confirmed; say \"headend confirm\", or wait for that",
            left.as_secs_f64().ceil()
        );
        return Err(Refusal::new(Code::Refused, message));
    }
    let new = config::load(&core.running.path)
        .map_err(|faults| Refusal::new(Code::Refused, faults.to_string()))?;
    log::advice(&new.advice);
    let before = timeout.map(|_| Box::new(core.running.settings.clone()));
    let mut report = apply(core, new);
    if let (Some(timeout), Some(before)) = (timeout, before) {
        let until = core.now + timeout;
        report.summary.undo_in_s = Some(timeout.as_secs_f64());
        core.running.waiting = Some(Waiting {
            before,
            until,
            timeout,
        });
    }
    core.running.count += u64::from(!report.changes.is_empty());
    Ok(report)
}

/// Applies what can be applied of `new`, and reports each key whose value differs from the one in force.
fn apply(core: &mut Core, mut new: Settings) -> Report {
    let differences = core.running.settings.record.differences(&new.record);
    let failures = parts(core, &new, &differences);
    let mut changes = Vec::with_capacity(differences.len());
    for one in &differences {
        let change = change(one, &differences, &failures);
        // The keys of such a section say it all.
        if one.is_section() && change.effect == "applied" {
            continue;
        }
        if matches!(&*change.effect, "restart" | "failed") {
            new.record.set(one.key.clone(), one.old.clone());
        }
        changes.push(change);
    }
    let count = |what: &[&str]| {
        let is_one = |change: &&rows::ReloadChange| what.contains(&&*change.effect);
        changes.iter().filter(is_one).count()
    };
    let summary = rows::Reload {
        schema: rows::Reload::SCHEMA.into(),
        file: core.running.path.display().to_string(),
        applied: count(&["applied", "applied-to-new"]),
        restart: count(&["restart"]),
        failed: count(&["failed"]),
        undo_in_s: None,
        advice: new.advice.lines(),
    };
    core.running.settings = new;
    write_log(&changes, &summary);
    Report { changes, summary }
}

fn change(one: &Difference, all: &[Difference], failures: &Failures) -> rows::ReloadChange {
    let key = one.key.to_string();
    let failure = failures.iter().find(|(start, _)| key.starts_with(start));
    let failure = failure.map(|(_, text)| text.clone());
    let effect = match effect::of(one, all) {
        Effect::Restart => "restart",
        Effect::Now | Effect::New if failure.is_some() => "failed",
        Effect::Now => "applied",
        Effect::New => "applied-to-new",
    };
    let content = one.is_hidden().then(|| match one.new {
        Some(ref new) if new.is_secret() => "another secret".to_owned(),
        _ => "the content of the file has changed".to_owned(),
    });
    let text = |value: &Option<settings::Value>| value.as_ref().map(ToString::to_string);
    rows::ReloadChange {
        schema: rows::ReloadChange::SCHEMA.into(),
        old: text(&one.old),
        new: text(&one.new),
        effect: effect.into(),
        note: failure.or(content),
        key,
    }
}

fn write_log(changes: &[rows::ReloadChange], summary: &rows::Reload) {
    for change in changes.iter().take(LOGGED_MAX) {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "default".into());
        let (key, effect) = (&change.key, &change.effect);
        let note = change.note.as_ref();
        let note = note.map_or_else(String::new, |note| format!(" ({note})"));
        let line = format!(
            "{key}: {} -> {}: {effect}{note}",
            value(&change.old),
            value(&change.new)
        );
        match &**effect {
            "restart" | "failed" => tracing::warn!("{line}"),
            _ => tracing::info!("{line}"),
        }
    }
    if changes.len() > LOGGED_MAX {
        tracing::info!("and {} more changes", changes.len() - LOGGED_MAX);
    }
    tracing::info!(
        applied = summary.applied,
        restart = summary.restart,
        failed = summary.failed,
        "configuration reloaded"
    );
}

/// Applies each part of a configuration. Returns what failed.
fn parts(core: &mut Core, new: &Settings, differences: &[Difference]) -> Failures {
    let mut failed = Failures::new();
    let appears = |name: &str| {
        let is_it = |one: &Difference| one.key.place.is_empty() && one.key.key == name;
        let all = differences.iter();
        all.filter(|one| is_it(one))
            .any(|one| one.old.is_none() || one.new.is_none())
    };
    if !appears("lns") && !appears("lac") {
        let endpoint = core.edge.endpoint_mut();
        endpoint.set_config(new.l2tp.clone(), core.now);
    }
    for (end, name, role) in [(End::Lns, "lns", &new.lns), (End::Lac, "lac", &new.lac)] {
        let is_it = |one: &Difference| one.key.place == name && one.key.key == "listen";
        if let Some(role) = role
            && !appears(name)
            && differences.iter().any(is_it)
        {
            failed.extend(listen(core, end, role));
        }
    }
    if new.log.level != core.running.settings.log.level {
        log::set_level(new.log.level);
        core.edge.filters_mut().set_logs(log::logs_packets());
    }
    let subscribers = &new.subscribers;
    let file = subscribers.users.as_ref();
    core.authority
        .set_users(file.map(|file| Arc::clone(&file.users)));
    let none = FiltersFile::default();
    if let Err(faults) = filters(subscribers.filters.as_ref().unwrap_or(&none), core) {
        failed.push(("filter.file", faults.join("; ")));
    }
    if let (Some(radius), Some(new)) = (core.authority.radius_mut(), &subscribers.radius) {
        failed.extend(radius.reload(new, &mut core.reactor, core.now));
    }
    if !appears("ppp") {
        edge(core, new);
    }
    if core.edge.config().terminate {
        let own = vec![core.edge.config().address];
        let pools = subscribers.pools.clone();
        match core.edge.pools_mut().reload(pools, own) {
            Ok(()) => {
                // The routes of removed pools stay, since their addresses may still be held.
                let networks = pool_networks(&subscribers.pools);
                let networks = networks.iter().map(|one| (one.address(), one.len()));
                let networks: Vec<(IpAddr, u8)> = networks.collect();
                if let Some(keeper) = &mut core.inside.keeper {
                    keeper.want_routes(&networks, core.now);
                }
            }
            Err(faults) => {
                let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
                failed.push(("pool", faults.join("; ")));
            }
        }
    }
    if let (Some(dialler), Some(client)) = (&mut core.client, &subscribers.client) {
        dialler.reload(client.clone());
    }
    if let (Some(routes), Some(bgp)) = (&mut core.routes, &new.bgp) {
        routes.reload(bgp, pool_networks(&subscribers.pools), core.now);
    }
    failed
}

/// Listens on other addresses.
fn listen(core: &mut Core, end: End, role: &Role) -> Option<(&'static str, String)> {
    let key = match end {
        End::Lns => "lns.listen",
        End::Lac => "lac.listen",
    };
    let Core {
        edge,
        sockets,
        reactor,
        running,
        ..
    } = core;
    if running.event.shards > 1 {
        let why = "needs a restart, because [event] shards is above 1";
        return Some((key, why.to_owned()));
    }
    let tunnels = |socket| edge.endpoint().tunnels_on(socket);
    let done = sockets.reload(end, &role.listen, tunnels, &running.event, reactor);
    let (address, error) = done.err()?;
    Some((key, format!("cannot listen on {address}: {error}")))
}

/// Applies the configuration of subscribers. What depends on a section that needs a restart stays as it is.
fn edge(core: &mut Core, new: &Settings) {
    let old = core.edge.config();
    let accounting = match (core.authority.radius(), &new.subscribers.radius) {
        (Some(_), Some(radius)) => radius.accounts(),
        (Some(_), None) => old.accounting,
        (None, _) => false,
    };
    let tells_networks = match (&core.routes, &new.bgp) {
        (Some(_), Some(bgp)) => bgp.announce.subscribers,
        (Some(_), None) => old.tells_networks,
        (None, _) => false,
    };
    let config = edge::Config {
        accounting,
        tells_networks,
        ..new.subscribers.edge.clone()
    };
    core.edge.set_config(config, core.now);
}

/// The networks that the pools cover.
pub(super) fn pool_networks(pools: &[aaa::pools::Spec]) -> Vec<Prefix> {
    let ranges = pools.iter().flat_map(|pool| &pool.ranges);
    let networks = ranges.flat_map(|range| range.networks());
    networks
        .map(|network| Prefix::of(network.address(), network.length()))
        .collect()
}

/// Takes over the filters. A connected subscriber keeps the filter that it has.
///
/// # Errors
/// The faults, one line each; the filters are unchanged.
pub(super) fn filters(file: &FiltersFile, core: &mut Core) -> Result<(), Vec<String>> {
    let set = config::parse_filters(&file.path, &file.text, core.edge.filters().set())?;
    core.edge.filters_mut().replace(set);
    Ok(())
}
