//! Reads the configuration again while the daemon runs, on SIGHUP or on request.
//!
//! The new file is compared with the configuration in force, key by key. `config::effect` knows which keys apply at
//! once, which apply to new tunnels and sessions, and which need a restart. If the file has a fault, nothing changes.
//! A reload with a timeout is undone unless it is confirmed.
//!
//! Reading and comparing are done by the `loader`'s thread; here the result is applied, without waiting for anything.
//! Start reading at [`on_request`] and [`finish`].

use std::net::IpAddr;
use std::sync::Arc;

use base::Duration;
use base::slab::Key;
use reactor::Slice;
use wire::bgp::Prefix;

use super::audit;
use super::core::Core;
use super::loader::{Changed, InForce, Loader, Order, Prepared, Wanted};
use super::log;
use super::running::{Asker, Pending, Waiting};
use super::sockets::End;
use crate::config::{self, Role, Settings};
use control::reply::{Code, Refusal};
use control::rows;

/// Addresses that are moved between two looks at the clock.
const ADDRESSES: usize = 4_096;

/// Changes that the log lists; it counts the others.
const LOGGED_MAX: usize = 100;

/// The rows about a reload.
pub(super) struct Report {
    pub(super) changes: Vec<rows::ReloadChange>,
    pub(super) summary: rows::Reload,
}

/// A client's reload that is finished.
pub(super) struct Answer {
    pub(super) client: Key,
    pub(super) id: u64,
    pub(super) result: Result<Report, Refusal>,
}

/// What could not be applied: the start of the keys, and why.
type Failures = Vec<(&'static str, String)>;

/// Reads the file again because a signal asks for it: at once, or after the reload that is in progress.
pub(super) fn on_signal(core: &mut Core) {
    if let Some(pending) = &mut core.running.pending {
        pending.again = true;
        tracing::info!("SIGHUP: a reload is in progress; the next one follows it");
        return;
    }
    tracing::info!("SIGHUP: reading {} again", core.running.path.display());
    // A service manager that sent the signal waits for both messages, even if no reload is possible.
    core.supervisor.reloading();
    if let Err(refusal) = begin(core, Asker::Signal, None) {
        refused(&refusal);
        core.supervisor.reloaded(Some(&refusal.message), core.now);
    }
}

fn refused(refusal: &Refusal) {
    for line in refusal.message.lines() {
        tracing::error!("{line}");
    }
    tracing::error!("SIGHUP: no setting was changed");
}

/// Reads the file again because a client asks for it; [`finish`] returns the answer. With a timeout, the reload is
/// undone then unless it is confirmed.
///
/// # Errors
/// Why no reload is possible now. Nothing changed.
pub(super) fn on_request(
    core: &mut Core,
    (client, id): (Key, u64),
    timeout: Option<Duration>,
) -> Result<(), Refusal> {
    let path = core.running.path.display().to_string();
    begin(core, Asker::Client { client, id }, timeout)?;
    core.supervisor.reloading();
    tracing::info!("headend reload: reading {path} again");
    Ok(())
}

/// Keeps what the last reload applied.
///
/// # Errors
/// No reload waits for its confirmation.
pub(super) fn confirm(core: &mut Core) -> Result<(), Refusal> {
    let is_undone = core.running.is_undoing();
    let Some(waiting) = core.running.waiting.take_if(|_| !is_undone) else {
        let message = match is_undone {
            true => "the time is up: the reload is being undone",
            false => "no reload waits for a confirmation",
        };
        return Err(Refusal::new(Code::Refused, message));
    };
    core.running.loader.free(Box::new(waiting));
    tracing::info!("the reload is confirmed");
    Ok(())
}

/// Undoes a reload that was not confirmed in time. Returns the answer to a client, if that could be done at once.
pub(super) fn handle_timeout(core: &mut Core) -> Option<Answer> {
    let due = core.running.undo_at().is_some_and(|at| at <= core.now);
    let waiting = core.running.waiting.as_ref().filter(|_| due)?;
    let seconds = waiting.timeout.as_secs_f64();
    tracing::warn!("no \"headend confirm\" came within {seconds} s: undoing the reload");
    let before = Arc::clone(&waiting.before);
    core.running.pending = Some(Pending::new(Asker::Undo, None, core.now));
    core.supervisor.reloading();
    let order = |core: &Core| Order {
        wanted: Wanted::Before(Arc::clone(&before)),
        in_force: in_force(core),
    };
    if let Err(error) = core.running.loader.prepare(order(core)) {
        tracing::warn!(%error, "no thread can be started; undoing the reload without one");
        let prepared = Loader::prepare_here(order(core));
        return end(core, prepared);
    }
    None
}

/// Whether changed pools have free addresses or remembered prefixes to move.
pub(super) fn has_work(core: &Core) -> bool {
    core.edge.pools().has_work() || core.edge.prefixes().has_work()
}

/// Moves free addresses and remembered prefixes of changed pools, until the slice is over. Returns whether more are left.
pub(super) fn work(core: &mut Core, slice: Slice) -> bool {
    let pools = core.edge.pools_mut();
    let mut more = pools.has_work();
    while more && !slice.is_over() {
        more = pools.work(ADDRESSES);
    }
    let gone = pools.take_gone();
    let prefixes = core.edge.prefixes_mut();
    let mut more_prefixes = prefixes.has_work();
    while more_prefixes && !slice.is_over() {
        more_prefixes = prefixes.work(ADDRESSES);
    }
    let gone_prefixes = prefixes.take_gone();
    for gone in gone.into_iter().chain(gone_prefixes) {
        core.running.loader.free(gone);
    }
    more || more_prefixes
}

fn in_force(core: &Core) -> InForce {
    let config = core.edge.config();
    InForce {
        settings: Arc::clone(&core.running.settings),
        filters: Arc::clone(core.edge.filters().set()),
        paths: core.edge.filters().paths(),
        own: vec![config.address],
        terminates: config.terminate,
    }
}

/// Starts a reload.
fn begin(core: &mut Core, asker: Asker, timeout: Option<Duration>) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(Code::Refused, message));
    if core.stop_at.is_some() {
        return refuse("the daemon is shutting down".into());
    }
    if let Some(left) = core.running.undo_in(core.now) {
        return refuse(format!(
            "the last reload is undone in {:.0} s unless it is confirmed; say \"headend confirm\", or wait for that",
            left.as_secs_f64().ceil()
        ));
    }
    if let Some(pending) = &core.running.pending {
        return refuse(format!(
            "a reload is in progress: {} asked for it {:.1} s ago, and the files are still being read; nothing else was started",
            pending.asker,
            core.now.since(pending.since).as_secs_f64()
        ));
    }
    let order = Order {
        wanted: Wanted::File(core.running.path.clone()),
        in_force: in_force(core),
    };
    if let Err(error) = core.running.loader.prepare(order) {
        return refuse(format!("no thread can be started: {error}"));
    }
    core.running.pending = Some(Pending::new(asker, timeout, core.now));
    Ok(())
}

/// Applies the configuration that the thread has prepared. Returns the answer to the client that asked for it.
pub(super) fn finish(core: &mut Core) -> Option<Answer> {
    let prepared = core.running.loader.take()?;
    end(core, prepared)
}

/// Gives up the reload in progress, because the daemon ends. Returns the answer to the client that asked for it.
pub(super) fn abandon(core: &mut Core) -> Option<Answer> {
    let pending = core.running.pending.take()?;
    let message = "the daemon is shutting down; no setting was changed";
    tracing::info!("the reload in progress is given up");
    pending
        .asker
        .answer(Err(Refusal::new(Code::Refused, message)))
}

fn end(core: &mut Core, prepared: Result<Box<Prepared>, String>) -> Option<Answer> {
    let Some(pending) = core.running.pending.take() else {
        // It was given up.
        core.running.loader.free(Box::new(prepared));
        return None;
    };
    let result = match prepared {
        Ok(prepared) => Ok(applied(core, *prepared, &pending)),
        Err(faults) => Err(Refusal::new(Code::Refused, faults)),
    };
    match (&pending.asker, &result) {
        (Asker::Signal, Err(refusal)) => refused(refusal),
        (Asker::Client { .. }, Err(refusal)) => {
            let first = refusal.message.lines().next().unwrap_or_default();
            tracing::info!("headend reload: no setting was changed: {first}");
        }
        _ => {}
    }
    let refusal = result.as_ref().err().map(|refusal| &*refusal.message);
    core.supervisor.reloaded(refusal, core.now);
    let answer = pending.asker.answer(result);
    if pending.again {
        on_signal(core);
    }
    answer
}

impl Asker {
    fn answer(&self, result: Result<Report, Refusal>) -> Option<Answer> {
        match *self {
            Asker::Client { client, id } => Some(Answer { client, id, result }),
            Asker::Signal | Asker::Undo => None,
        }
    }
}

/// Applies what was prepared, and arms the undo. Advice is about the file, so that an undo has none.
fn applied(core: &mut Core, prepared: Prepared, pending: &Pending) -> Report {
    let is_undo = matches!(pending.asker, Asker::Undo);
    if !is_undo {
        log::advice(&prepared.settings.advice);
    }
    let before = Arc::clone(&core.running.settings);
    let mut report = apply(core, prepared);
    if is_undo {
        core.running.waiting = None;
    } else {
        core.running.count += u64::from(!report.changes.is_empty());
    }
    if let Some(timeout) = pending.timeout {
        report.summary.undo_in_s = Some(timeout.as_secs_f64());
        core.running.waiting = Some(Waiting {
            before,
            until: core.now + timeout,
            timeout,
        });
    } else {
        core.running.loader.free(Box::new(before));
    }
    report
}

/// Applies what can be applied of a configuration, and reports each key whose value differs from the one in force.
fn apply(core: &mut Core, mut new: Prepared) -> Report {
    let failures = parts(core, &mut new);
    let Prepared {
        mut settings,
        changed,
        advice,
        ..
    } = new;
    let mut changes = Vec::with_capacity(changed.len());
    for Changed {
        difference,
        mut row,
    } in changed
    {
        let failure = failures
            .iter()
            .find(|(start, _)| row.key.starts_with(start));
        if let Some((_, why)) = failure
            && row.effect != "restart"
        {
            settings.record.set(difference.key, difference.old);
            (row.effect, row.note) = ("failed".into(), Some(why.clone()));
        }
        changes.push(row);
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
        advice,
    };
    core.running.settings = Arc::new(settings);
    write_log(&changes, &summary);
    Report { changes, summary }
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
fn parts(core: &mut Core, prepared: &mut Prepared) -> Failures {
    let mut failed = Failures::new();
    let Prepared {
        settings: new,
        sections,
        listens,
        ..
    } = &*prepared;
    let appears = |name: &str| sections.iter().any(|section| section == name);
    if !appears("lns") && !appears("lac") {
        let endpoint = core.edge.endpoint_mut().l2tp_mut();
        endpoint.set_config(new.l2tp.clone(), core.now);
    }
    if !appears("pppoe")
        && let Some(pppoe) = &new.pppoe
    {
        core.reload_pppoe(pppoe);
    }
    let ends = [(End::Lns, "lns", &new.lns), (End::Lac, "lac", &new.lac)];
    for ((end, name, role), differs) in ends.into_iter().zip(listens) {
        if let Some(role) = role
            && !appears(name)
            && *differs
        {
            failed.extend(listen(core, end, role));
        }
    }
    if new.log.level != core.running.settings.log.level {
        log::set_level(new.log.level);
        core.edge.filters_mut().set_logs(log::logs_packets());
    }
    let file = new.subscribers.users.as_ref();
    let users = file.map(|file| Arc::clone(&file.users));
    audit::reopen(new.audit.as_ref());
    core.authority.set_users(users);
    core.authority.set_rules(&new.subscribers);
    if let (Some(radius), Some(new)) = (core.authority.radius_mut(), &new.subscribers.radius) {
        failed.extend(radius.reload(new, &mut core.reactor, core.now));
    }
    if !appears("ppp") {
        edge(core, new);
    }
    if let (Some(dialler), Some(client)) = (&mut core.client, &new.subscribers.client) {
        dialler.reload(client.clone());
    }
    failed.extend(filters_and_pools(core, prepared));
    let new = &prepared.settings;
    if let (Some(translation), Some(nat)) = (&mut core.translation, &new.subscribers.nat) {
        failed.extend(translation.reload(&mut core.edge, nat, core.now));
    }
    if let (Some(routes), Some(bgp)) = (&mut core.routes, &new.bgp)
        && let Some(speaker) = prepared.speaker.take()
    {
        let networks = announced_networks(&new.subscribers);
        routes.reload(bgp, speaker, networks, core.now);
    }
    failed
}

/// Takes over the filters and pools that were made ready, and lets the thread free those before. A connected
/// subscriber keeps the filter that it has.
fn filters_and_pools(core: &mut Core, prepared: &mut Prepared) -> Failures {
    let mut failed = Failures::new();
    let none = || Err(String::new());
    match std::mem::replace(&mut prepared.filters, none()) {
        Ok(change) => {
            let before = core.edge.filters_mut().apply(change);
            core.running.loader.free(Box::new(before));
        }
        Err(why) => failed.push(("filter.file", why)),
    }
    match std::mem::replace(&mut prepared.prefix_pools, Ok(None)) {
        Ok(Some(pools)) => core.edge.prefixes_mut().replace(pools),
        Ok(None) => {}
        Err(why) => failed.push(("prefix_pool", why)),
    }
    match std::mem::replace(&mut prepared.pools, Ok(None)) {
        Ok(Some(pools)) => {
            core.edge.pools_mut().replace(pools);
            // The routes of removed pools stay, since their addresses may still be held.
            let networks = pool_networks(&prepared.settings.subscribers);
            let networks = networks.iter().map(|one| (one.address(), one.len()));
            let networks: Vec<(IpAddr, u8)> = networks.collect();
            if let Some(keeper) = &mut core.inside.keeper {
                keeper.want_routes(&networks, core.now);
            }
        }
        Ok(None) => {}
        Err(why) => failed.push(("pool", why)),
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
    let tunnels = |socket| edge.endpoint().l2tp().tunnels_on(socket);
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
        // Interfaces need a restart.
        interfaces: Arc::clone(&old.interfaces),
        accounting,
        tells_networks,
        ..new.subscribers.edge.clone()
    };
    core.edge.set_config(config, core.now);
}

/// The networks that the pools cover, and the external addresses of the translation.
fn pool_networks(subscribers: &crate::config::Subscribers) -> Vec<Prefix> {
    let ranges = subscribers.pools.iter().flat_map(|pool| &pool.ranges);
    let networks = ranges.flat_map(|range| range.networks());
    let prefixes = subscribers.prefix_pools.iter();
    let prefixes = prefixes.flat_map(|pool| pool.ranges.iter().copied());
    let networks = networks
        .chain(prefixes)
        .map(|network| Prefix::of(network.address(), network.length()));
    let externals = subscribers.nat.iter().flat_map(config::Nat::networks);
    let externals = externals.map(|(address, length)| Prefix::of(address, length));
    networks.chain(externals).collect()
}

/// Those that BGP announces as pools: without networks whose addresses are all translated, which nobody outside can reach.
pub(super) fn announced_networks(subscribers: &config::Subscribers) -> Vec<Prefix> {
    let mut networks = pool_networks(subscribers);
    if let Some(nat) = &subscribers.nat {
        networks.retain(|network| !nat.hides(network.address(), network.len()));
    }
    networks
}
