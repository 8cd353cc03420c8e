//! The row of the state of the whole daemon.
//!
//! It is built from counts that are kept up to date: nothing here walks over subscribers, sessions, tunnels or peers. So
//! it costs the same with 100,000 subscribers.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::{SystemTime, UNIX_EPOCH};

use aaa::accounting::TerminateCause;
use aaa::radius::views::RoundTrips;
use base::Duration;
use edge::{Discard, PathCounts, Phase, Refusal};
use reactor::{Lateness, usage};

use super::{micros, rounded, seconds};
use crate::core::Core;
use control::rows;

/// The least upper bound of a class of lateness that is shown apart: smaller ones say nothing about a loop.
pub(crate) const LATENESS_MIN: Duration = Duration::from_nanos(1_024);

/// The time of day, in seconds since 1970.
pub(super) fn wall_s() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

pub(super) fn row(core: &mut Core) -> rows::Now {
    let bgp = bgp(core);
    let core = &*core;
    rows::Now {
        schema: rows::Now::SCHEMA.into(),
        at_s: rounded(wall_s()),
        uptime_s: seconds(core.now.since(core.started)),
        subscribers: subscribers(core),
        tunnels: tunnels(core),
        pools: pools(core),
        prefix_pools: prefix_pools(core),
        radius: core.authority.radius().map(|radius| {
            let totals = radius.client().totals();
            rows::NowRadius {
                outstanding: totals.outstanding as u64,
                waiting: totals.waiting as u64,
                failed: totals.failed,
                round_trips: round_trips(&totals.round_trips),
                round_trips_us: micros(totals.round_trips.total()),
            }
        }),
        traffic: traffic(core),
        event_loop: event_loop(core),
        bgp,
        rss_bytes: usage::resident_bytes().unwrap_or(0),
    }
}

fn subscribers(core: &Core) -> rows::NowSubscribers {
    let counts = core.edge.counts();
    let by_state = Phase::ALL.map(|phase| {
        let count = core.edge.subscribers_in(phase);
        (phase.name().to_owned(), u64::from(count))
    });
    let ended = TerminateCause::ALL.map(|cause| (cause.name().to_owned(), counts.ends.of(cause)));
    let refused = Refusal::ALL.map(|why| (why.name().to_owned(), counts.refusals.of(why)));
    rows::NowSubscribers {
        by_state: by_state.into(),
        by_version: [
            ("ipv4", counts.versions.ipv4),
            ("ipv6", counts.versions.ipv6),
            ("both", counts.versions.both),
        ]
        .map(|(version, count)| (version.to_owned(), count.into()))
        .into(),
        came_up: counts.up,
        ended: ended.into(),
        refused: refused.into(),
    }
}

fn tunnels(core: &Core) -> rows::NowTunnels {
    let counts = core.edge.endpoint().l2tp().counts();
    let by_state = [
        ("opening", counts.tunnels - counts.established),
        ("established", counts.established),
        ("closing", counts.closing),
    ];
    rows::NowTunnels {
        by_state: by_state
            .map(|(state, count)| (state.to_owned(), count.into()))
            .into(),
        sessions: counts.sessions_established.into(),
        retransmissions: core.edge.endpoint().l2tp().retransmissions(),
    }
}

fn pools(core: &Core) -> Vec<rows::NowPool> {
    let pool = |pool: aaa::pools::PoolView<'_>| rows::NowPool {
        name: pool.name.to_owned(),
        size: pool.size.into(),
        used: pool.used.into(),
    };
    core.edge.pools().views().map(pool).collect()
}

fn prefix_pools(core: &Core) -> Vec<rows::NowPool> {
    let pool = |pool: aaa::prefixes::PrefixPoolView<'_>| rows::NowPool {
        name: pool.name.to_owned(),
        size: pool.size,
        used: pool.used.into(),
    };
    core.edge.prefixes().views().map(pool).collect()
}

/// The packets of all paths.
pub(crate) fn packets(core: &Core) -> PathCounts {
    core.edge
        .path_counts()
        .fold(PathCounts::default(), |mut sum, path| {
            sum.packets_in += path.packets_in;
            sum.octets_in += path.octets_in;
            sum.packets_out += path.packets_out;
            sum.octets_out += path.octets_out;
            sum
        })
}

fn traffic(core: &Core) -> rows::NowTraffic {
    let sum = packets(core);
    rows::NowTraffic {
        packets_in: sum.packets_in,
        octets_in: sum.octets_in,
        packets_out: sum.packets_out,
        octets_out: sum.octets_out,
        dropped: dropped(core)
            .map(|(why, count)| (why.to_owned(), count))
            .collect(),
    }
}

/// Dropped packets and ignored frames, by reason.
pub(crate) fn dropped(core: &Core) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    let others = core.shards.sum();
    let written = core.inside.written().with(others.written);
    let around = [
        (
            "udp_send_dropped",
            core.sockets.dropped + others.send_dropped,
        ),
        ("tun_refused", written.refused),
        ("tun_missing", core.inside.nowhere + others.nowhere),
    ];
    let edge = Discard::all().map(|why| (why.name(), core.edge.discarded(why)));
    edge.chain(around)
}

fn event_loop(core: &Core) -> rows::NowLoop {
    let waits = core.reactor.wait_stats();
    let handlers = core.reactor.handler_stats().iter();
    let late = core.reactor.lateness();
    rows::NowLoop {
        waited_s: precise(waits.waited),
        busy_s: precise(waits.busy()),
        handlers_s: handlers
            .map(|handler| (handler.name.to_owned(), precise(handler.total)))
            .collect(),
        lateness: lateness(late),
        lateness_us: micros(late.total()),
        overruns: core.reactor.overrun_count(),
    }
}

fn bgp(core: &mut Core) -> Option<rows::NowBgp> {
    let now = core.now;
    let routes = core.routes.as_deref_mut()?;
    let margin = routes.speaker.hold_margin(now);
    let summary = routes.speaker.summary();
    let rib = routes.speaker.rib();
    let prefixes = wire::bgp::Families::ALL.iter();
    Some(rows::NowBgp {
        peers: summary.peers as u64,
        established: summary.established.into(),
        prefixes: prefixes.map(|family| rib.counts(family).0 as u64).sum(),
        updates_in: summary.updates_in,
        updates_out: summary.updates_out,
        hold_margin_s: margin.map(seconds),
    })
}

/// Seconds with their microseconds: two rows a second apart are compared.
fn precise(span: Duration) -> f64 {
    (span.as_nanos() / 1_000) as f64 / 1e6
}

fn round_trips(trips: &RoundTrips) -> BTreeMap<String, u64> {
    trips
        .classes()
        .map(|(bound, count)| (named(bound), count))
        .collect()
}

fn lateness(late: &Lateness) -> BTreeMap<String, u64> {
    late.classes_from(LATENESS_MIN)
        .map(|(bound, count)| (named(bound.map(micros)), count))
        .collect()
}

/// The key of a class by its upper bound in microseconds.
fn named(bound: Option<impl Display>) -> String {
    bound.map_or_else(|| "inf".to_owned(), |bound| bound.to_string())
}
