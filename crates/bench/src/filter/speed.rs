//! Nanoseconds per packet, against the number of rules and the position of the rule that decides.

use std::hint::black_box;

use anyhow::{Result, ensure};
use base::Duration;
use filter::{Direction, Filter, FilterSet, Hits};
use lab::plot::number::grouped;
use lab::plot::{Axis, COLOUR_OURS, Chart, Series, Style};
use lab::report::{Cell, Table};
use reactor::clock;
use wire::ip::Header;

use super::rules::{Course, PACKETS, Packets, Traffic, only};

/// Numbers of rules; where there is a goal, with the nanoseconds that a packet may take.
const SIZES: [(usize, Option<u32>); 8] = [
    (1, Some(20)),
    (4, None),
    (16, None),
    (20, Some(30)),
    (64, None),
    (256, None),
    (1_000, Some(100)),
    (4_000, None),
];

/// Largest number of rules for which the linear search is measured.
const WALK_MAX: usize = 1_000;

/// Cost of a packet in a filter of that many rules, in nanoseconds above the floor.
pub(super) struct Row {
    rules: usize,
    reach: Option<u32>,
    v4: f64,
    mixed: f64,
    last: f64,
    none: f64,
    walk: Option<f64>,
    load_us: f64,
    octets: usize,
}

/// All results.
pub(super) struct Measured {
    rows: Vec<Row>,
    /// The bare loop: packets are read, without a filter.
    floor_v4: f64,
    floor_mixed: f64,
    /// A subscriber may have a filter but has none.
    off: f64,
}

/// Nanoseconds per packet, the minimum of all repetitions.
fn least(repeat: Duration, mut work: impl FnMut()) -> f64 {
    // One unmeasured pass, so that the memory is mapped.
    work();
    let begun = clock::now();
    let mut least = u64::MAX;
    loop {
        let start = clock::now();
        work();
        let end = clock::now();
        least = least.min(end.since(start).as_nanos());
        if end.since(begun) >= repeat {
            return least as f64 / PACKETS as f64;
        }
    }
}

/// Reads packets and does nothing else.
fn floor(repeat: Duration, packets: &Packets) -> f64 {
    least(repeat, || {
        for packet in packets.iter() {
            black_box(&Header::read(packet));
        }
    })
}

/// Reads packets, matches them if there is a filter, and counts them.
fn judged(repeat: Duration, packets: &Packets, set: &FilterSet, filter: Option<&Filter>) -> f64 {
    let hits = Hits::new(set);
    let filter = black_box(filter);
    let spent = least(repeat, || {
        for packet in packets.iter() {
            let read = Header::read(packet);
            if let (Ok(header), Some(filter)) = (&read, filter) {
                let verdict = filter.matches(header, Direction::In);
                hits.count(filter, verdict);
                black_box(verdict);
            }
            black_box(&read);
        }
    });
    black_box(hits);
    spent
}

/// Reads packets and tries one rule after another.
fn walked(repeat: Duration, packets: &Packets, filter: &Filter) -> f64 {
    let rules = filter.rules(Direction::In);
    least(repeat, || {
        for packet in packets.iter() {
            if let Ok(header) = &Header::read(packet) {
                black_box(rules.iter().position(|rule| rule.matches(header)));
            }
        }
    })
}

/// Measures all sizes.
pub(super) fn measure(repeat: Duration, told: &mut dyn FnMut(String)) -> Result<Measured> {
    let mut course = Course::new(1_000);
    let set = course.set("default accept")?;
    let [v4, mixed] = [Traffic::V4, Traffic::Mixed].map(|traffic| course.packets(traffic));
    let mut measured = Measured {
        rows: Vec::new(),
        floor_v4: floor(repeat, &v4),
        floor_mixed: floor(repeat, &mixed),
        off: judged(repeat, &v4, &set, None),
    };
    for (rules, reach) in SIZES {
        told(format!("{} rules", grouped(rules as f64, 0)));
        measured.rows.push(row(repeat, rules, reach)?);
    }
    Ok(measured)
}

fn row(repeat: Duration, rules: usize, reach: Option<u32>) -> Result<Row> {
    let mut course = Course::new(rules);
    let start = clock::now();
    let set = course.set("default deny")?;
    let load_us = clock::now().since(start).as_nanos() as f64 / 1e3;
    let filter = only(&set)?;
    let strange = course.packets(Traffic::Strange);
    // The last of all these rules matches every packet.
    let matched = Course::new(rules - 1).set("accept ip")?;
    let last = only(&matched)?;
    ensure!(
        strange.decided(last)[rules - 1] == PACKETS,
        "the last rule does not decide"
    );
    let [v4, mixed] = [Traffic::V4, Traffic::Mixed].map(|traffic| course.packets(traffic));
    // The floor is measured with the same packets, in alternation.
    let over = |packets: &Packets, set: &FilterSet, filter: &Filter| {
        let floor = floor(repeat, packets);
        (judged(repeat, packets, set, Some(filter)) - floor).max(0.0)
    };
    let walk = (rules <= WALK_MAX).then(|| {
        let floor = floor(repeat, &v4);
        (walked(repeat, &v4, filter) - floor).max(0.0)
    });
    Ok(Row {
        rules,
        reach,
        v4: over(&v4, &set, filter),
        mixed: over(&mixed, &set, filter),
        last: over(&strange, &matched, last),
        none: over(&strange, &set, filter),
        walk,
        load_us,
        octets: filter.octets(),
    })
}

/// How the measurement was done.
pub(super) fn method(repeat: Duration) -> Vec<String> {
    vec![
        format!(
            "Rules: of ten kinds in turn, with addresses, prefixes, ports, ranges, flags and ICMP types at random, a fifth of \
             them IPv6. Packets: {} in buffers of 128 octets, each for one of the rules at random; or strange to all of them, \
             so that the last rule decides, or none. One thread; each is measured again for {} ms, and the least is kept: \
             other work on the machine only ever adds.",
            grouped(PACKETS as f64, 0),
            repeat.as_nanos() / 1_000_000
        ),
        "The floor goes over the packets and reads each header. What a filter costs is what judging and counting add to the floor of \
         the same packets, measured right before. Off is the same loop with no filter where one may be."
            .into(),
        "The walk holds a packet against one rule after another, and is the meaning that the compiled form is tested against.".into(),
    ]
}

/// The table of results.
pub(super) fn table(measured: &Measured) -> Table {
    let mut table = Table::new(
        "A packet in a filter, over reading its header, against the number of rules",
        &[
            ("rules", ""),
            ("to reach", "ns"),
            ("IPv4", "ns"),
            ("IPv4 and IPv6", "ns"),
            ("the last decides", "ns"),
            ("none does", "ns"),
            ("a walk", "ns"),
            ("read and compile", "us"),
            ("tables", "octets"),
        ],
    );
    table.floor([
        "floor: the header read".into(),
        Cell::Missing,
        Cell::num(measured.floor_v4, 1),
        Cell::num(measured.floor_mixed, 1),
    ]);
    table.row([
        "off".into(),
        Cell::num(0.0, 0),
        Cell::num((measured.off - measured.floor_v4).max(0.0), 1),
    ]);
    for row in &measured.rows {
        table.row([
            row.rules.into(),
            row.reach.map(|ns| Cell::num(f64::from(ns), 0)).into(),
            Cell::num(row.v4, 1),
            Cell::num(row.mixed, 1),
            Cell::num(row.last, 1),
            Cell::num(row.none, 1),
            row.walk.map(|ns| Cell::num(ns, 1)).into(),
            Cell::num(row.load_us, 0),
            row.octets.into(),
        ]);
    }
    table
}

/// A column of the chart.
type Column = fn(&Row) -> Option<f64>;

/// The chart.
pub(super) fn chart(measured: &Measured) -> Chart {
    let mut chart = Chart::new(
        "A packet in a filter",
        "Lower is faster. A walk is as steep as the rules are many.",
        Axis::log("rules", ""),
        Axis::log("time over reading the header", "ns"),
    );
    let columns: [(&str, usize, Column); 4] = [
        ("IPv4", COLOUR_OURS, |row| Some(row.v4)),
        ("IPv4 and IPv6", 1, |row| Some(row.mixed)),
        ("the last decides", 2, |row| Some(row.last)),
        ("a walk over the rules, IPv4", 0, |row| row.walk),
    ];
    for (name, colour, of) in columns {
        let points = measured
            .rows
            .iter()
            .filter_map(|row| Some((row.rules as f64, of(row)?)));
        let series = Series::new(name, Style::Solid, colour, points.collect());
        chart.series.push(series);
    }
    let goals = measured
        .rows
        .iter()
        .filter_map(|row| Some((row.rules as f64, f64::from(row.reach?))));
    chart
        .series
        .push(Series::new("to reach", Style::Dashed, 7, goals.collect()));
    chart
}
