//! What the history records: the series, and their numbers now.

use base::{Duration, Instant};
use edge::{Phase, Refusal};
use reactor::usage;

use super::now;
use crate::core::Core;
use crate::history::{Classes, Histogram, Kind, Reading, Series};

/// Reasons to refuse and to drop whose series are recorded apart; the sums have the others too.
const REFUSALS: [Refusal; 4] = [
    Refusal::Rejected,
    Refusal::NoServer,
    Refusal::NoAddress,
    Refusal::Timeout,
];
const DROPS: [&str; 6] = [
    "spoofed",
    "filtered",
    "no_route",
    "not_open",
    "backlog",
    "udp_send_dropped",
];

/// Handlers whose time is recorded.
const HANDLERS_MAX: usize = 24;

/// The series of this daemon, and its first reading.
pub(crate) fn series(core: &mut Core) -> (Vec<Series>, Reading) {
    let mut all = Vec::new();
    walk(core, &mut |name, kind, _| {
        let name = name.text();
        all.push(Series { name, kind });
    });
    let reading = read(core, all.len());
    (all, reading)
}

/// The numbers of all series now.
pub(crate) fn read(core: &mut Core, series: usize) -> Reading {
    let mut numbers = Vec::with_capacity(series);
    let mut reading = walk(core, &mut |_, _, number| numbers.push(number));
    // A later version of a library may open another handler: it is in none of the series.
    numbers.resize(series, f64::NAN);
    reading.numbers = numbers;
    reading
}

/// The name of a series, in two parts so that reading it makes no text.
#[derive(Clone, Copy)]
struct Name(&'static str, &'static str);

impl Name {
    fn text(self) -> String {
        let Self(field, key) = self;
        if key.is_empty() {
            field.to_owned()
        } else {
            format!("{field}.{key}")
        }
    }
}

/// Calls `take` with each series and its number, always in the same order. The histograms are in the result.
fn walk(core: &mut Core, take: &mut dyn FnMut(Name, Kind, f64)) -> Reading {
    subscribers(core, take);
    let round_trips = radius(core, take);
    traffic(core, take);
    let lateness = event_loop(core, take);
    bgp(core, take);
    let rss = usage::resident_bytes().unwrap_or(0);
    take(Name("rss_bytes", ""), Kind::Gauge, rss as f64);
    Reading {
        numbers: Vec::new(),
        round_trips,
        lateness,
    }
}

fn subscribers(core: &Core, take: &mut dyn FnMut(Name, Kind, f64)) {
    for phase in Phase::ALL {
        let count = core.edge.subscribers_in(phase);
        let name = Name("subscribers.by_state", phase.name());
        take(name, Kind::Gauge, count.into());
    }
    let counts = core.edge.counts();
    for (field, count) in [
        ("subscribers.came_up", counts.up),
        ("subscribers.ended", counts.down),
        ("subscribers.refused", counts.refusals.total()),
    ] {
        take(Name(field, ""), Kind::Rate, count as f64);
    }
    for why in REFUSALS {
        let name = Name("subscribers.refused", why.name());
        take(name, Kind::Rate, counts.refusals.of(why) as f64);
    }
    let pools = core.edge.pools().views();
    let (size, used) = pools.fold((0, 0), |(size, used), pool| {
        (size + u64::from(pool.size), used + u64::from(pool.used))
    });
    take(Name("pools", "size"), Kind::Gauge, size as f64);
    take(Name("pools", "used"), Kind::Gauge, used as f64);
}

fn radius(core: &Core, take: &mut dyn FnMut(Name, Kind, f64)) -> Classes {
    let totals = core
        .authority
        .radius()
        .map(|radius| radius.client().totals());
    let number = |of: fn(aaa::radius::views::Totals) -> u64| {
        totals.map_or(f64::NAN, |totals| of(totals) as f64)
    };
    let outstanding = number(|totals| totals.outstanding as u64);
    take(Name("radius.outstanding", ""), Kind::Gauge, outstanding);
    take(
        Name("radius.failed", ""),
        Kind::Rate,
        number(|totals| totals.failed),
    );
    for (key, percent) in [("p50", 50), ("p99", 99)] {
        let kind = Kind::Quantile(Histogram::RoundTrips, percent);
        take(Name("radius.round_trips", key), kind, f64::NAN);
    }
    totals.map_or_else(Vec::new, |totals| {
        let classes = totals.round_trips.classes();
        classes
            .map(|(bound, count)| (bound.map_or(f64::INFINITY, |bound| bound as f64), count))
            .collect()
    })
}

fn traffic(core: &Core, take: &mut dyn FnMut(Name, Kind, f64)) {
    let packets = now::packets(core);
    for (field, count) in [
        ("traffic.packets_in", packets.packets_in),
        ("traffic.octets_in", packets.octets_in),
        ("traffic.packets_out", packets.packets_out),
        ("traffic.octets_out", packets.octets_out),
    ] {
        take(Name(field, ""), Kind::Rate, count as f64);
    }
    let (mut all, mut apart) = (0, [0; DROPS.len()]);
    for (why, count) in now::dropped(core) {
        all += count;
        if let Some(place) = DROPS.iter().position(|&name| name == why) {
            apart[place] += count;
        }
    }
    take(Name("traffic.dropped", ""), Kind::Rate, all as f64);
    for (why, count) in DROPS.into_iter().zip(apart) {
        take(Name("traffic.dropped", why), Kind::Rate, count as f64);
    }
}

fn event_loop(core: &Core, take: &mut dyn FnMut(Name, Kind, f64)) -> Classes {
    let busy = core.reactor.wait_stats().busy().as_secs_f64();
    take(Name("event_loop.busy_s", ""), Kind::Rate, busy);
    let late = Kind::Quantile(Histogram::Lateness, 99);
    take(Name("event_loop.lateness", "p99"), late, f64::NAN);
    for handler in core.reactor.handler_stats().iter().take(HANDLERS_MAX) {
        let name = Name("event_loop.handlers_s", handler.name);
        take(name, Kind::Rate, handler.total.as_secs_f64());
    }
    let micros = |bound: Duration| bound.as_nanos() as f64 / 1_000.0;
    let classes = core.reactor.lateness().classes_from(now::LATENESS_MIN);
    classes
        .map(|(bound, count)| (bound.map_or(f64::INFINITY, micros), count))
        .collect()
}

fn bgp(core: &mut Core, take: &mut dyn FnMut(Name, Kind, f64)) {
    let now: Instant = core.now;
    let speaker = core.routes.as_deref_mut().map(|routes| &mut routes.speaker);
    let (summary, margin) = match speaker {
        Some(speaker) => (Some(speaker.summary()), speaker.hold_margin(now)),
        None => (None, None),
    };
    let number = |of: fn(bgp::speaker::SummaryView) -> u64| {
        summary.map_or(f64::NAN, |summary| of(summary) as f64)
    };
    let established = number(|summary| summary.established.into());
    take(Name("bgp.established", ""), Kind::Gauge, established);
    let updates = [
        ("bgp.updates_in", number(|summary| summary.updates_in)),
        ("bgp.updates_out", number(|summary| summary.updates_out)),
    ];
    for (field, count) in updates {
        take(Name(field, ""), Kind::Rate, count);
    }
    let margin = margin.map_or(f64::NAN, Duration::as_secs_f64);
    take(Name("bgp.hold_margin_s", ""), Kind::Least, margin);
}
