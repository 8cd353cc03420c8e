//! Rows of the event loop and of the process.

use base::{Duration, Instant};
use reactor::{DescriptorInfo, SysCounts, usage};

use super::{Rows, Step, micros, rounded, seconds};
use crate::core::Core;
use crate::health::Trouble;
use crate::sockets::End;
use control::rows;

pub(super) fn waits(core: &Core, out: &mut Rows) {
    let stats = core.reactor.wait_stats();
    out.push(&rows::Waits {
        schema: rows::Waits::SCHEMA,
        poller: core.reactor.poller().name(),
        descriptors: core.reactor.store().name(),
        watched: core.reactor.watched() as u64,
        waits: stats.waits,
        empty: stats.empty,
        ready: stats.ready,
        stale: stats.stale,
        refused: stats.refused,
        ready_per_wait: rounded(stats.ready as f64 / stats.waits.max(1) as f64),
        ready_to_watched: rounded(stats.ready_ratio()),
        waits_per_s: rounded(stats.waits_per_second()),
        waited_s: seconds(stats.waited),
        busy_s: seconds(stats.busy()),
    });
}

/// Descriptors in one step. With one descriptor per step, each step would walk the list again.
const DESCRIPTORS: usize = 256;

pub(super) fn descriptors(core: &Core, cursor: u32, out: &mut Rows) -> Step {
    let mut page: Vec<DescriptorInfo> = Vec::with_capacity(DESCRIPTORS);
    let next = core
        .reactor
        .descriptors(cursor.cast_signed(), DESCRIPTORS, &mut page);
    for info in &page {
        out.push(&rows::Descriptor {
            schema: rows::Descriptor::SCHEMA,
            fd: info.token.fd(),
            owner: info.owner,
            interest: &info.interest,
            wakeups: info.wakeups,
        });
    }
    next.map_or(Step::End, |next| Step::From(next.cast_unsigned()))
}

pub(super) fn timers(core: &Core, out: &mut Rows) {
    let late = core.reactor.lateness();
    let routes = core
        .routes
        .as_ref()
        .and_then(|routes| routes.poll_timeout());
    let both = [core.edge.poll_timeout(), routes];
    let next = both.into_iter().flatten().min();
    let until = |at: Instant| (at.as_nanos() as f64 - core.now.as_nanos() as f64) / 1e6;
    out.push(&rows::Timers {
        schema: rows::Timers::SCHEMA,
        store: core.timers.name(),
        armed: core.edge.endpoint().l2tp().counts().timers.into(),
        next_ms: next.map(|(at, _)| rounded(until(at))),
        next_timer: next.map(|(_, name)| name),
        fired: late.count(),
        late_mean_us: micros(late.mean()),
        late_p99_us: micros(late.quantile(0.99)),
        late_max_us: micros(late.max()),
    });
    for (below, timers) in late.buckets() {
        let below_us = (below != Duration::MAX).then(|| micros(below));
        out.push(&rows::LatenessClass {
            schema: rows::LatenessClass::SCHEMA,
            below_us,
            timers,
        });
    }
}

pub(super) fn cpu(core: &Core, out: &mut Rows) {
    for handler in core.reactor.handler_stats() {
        out.push(&rows::Handler {
            schema: rows::Handler::SCHEMA,
            name: handler.name,
            calls: handler.calls,
            total_us: micros(handler.total),
            mean_us: micros(handler.mean()),
            longest_us: micros(handler.longest),
        });
    }
    let ms = |span: Duration| rounded(span.as_nanos() as f64 / 1e6);
    for overrun in core.reactor.overruns().rev() {
        out.push(&rows::Overrun {
            schema: rows::Overrun::SCHEMA,
            handler: overrun.handler,
            s_ago: seconds(core.now.since(overrun.at)),
            wall_ms: ms(overrun.wall),
            cpu_ms: ms(overrun.cpu),
            calls: overrun.calls,
            waiting: overrun.waiting_text(),
            timer: overrun.timer.map(|(name, _)| name),
            timer_late_ms: overrun.timer.map(|(_, late)| ms(late)),
        });
    }
    for (name, calls) in SysCounts::of_this_thread().iter() {
        out.push(&rows::SysCall {
            schema: rows::SysCall::SCHEMA,
            name,
            calls,
        });
    }
}

pub(super) fn server(core: &Core, clients: usize, out: &mut Rows) {
    let used = usage::of_this_process();
    let counts = core.edge.endpoint().l2tp().counts();
    out.push(&rows::Server {
        schema: rows::Server::SCHEMA.into(),
        pid: std::process::id(),
        uptime_s: seconds(core.now.since(core.started)),
        user_us: used.user.as_nanos() / 1000,
        system_us: used.system.as_nanos() / 1000,
        rss_bytes: usage::resident_bytes().unwrap_or(0),
        rss_max_bytes: used.resident_bytes_max,
        lns: core.sockets.addresses(End::Lns),
        lac: core.sockets.addresses(End::Lac),
        bgp: core
            .routes
            .as_ref()
            .map_or(Vec::new(), |routes| routes.listening()),
        tunnels: counts.tunnels.into(),
        established: counts.established.into(),
        opening: (counts.tunnels - counts.established).into(),
        closing: counts.closing.into(),
        held: counts.held.into(),
        sessions: counts.sessions.into(),
        sessions_established: counts.sessions_established.into(),
        peers: counts.peers.into(),
        timers: counts.timers.into(),
        sockets: core.sockets.len() as u64,
        clients: clients as u64,
        reloads: core.running.count,
        undo_in_s: core.running.undo_in(core.now).map(seconds),
        faults: core.health.faults() + core.shards.sum().faults,
        sources: sources(core),
    });
}

/// The descriptors that have failed.
fn sources(core: &Core) -> Vec<rows::ServerSource> {
    let row = |trouble: &Trouble| rows::ServerSource {
        name: trouble.name.clone(),
        state: trouble.state.name().into(),
        faults: trouble.faults,
        since_s: seconds(core.now.since(trouble.since)),
        next_try_s: trouble.next_try().map(|at| seconds(at.since(core.now))),
        reason: trouble.reason.clone(),
    };
    core.health.troubles().into_iter().map(row).collect()
}
