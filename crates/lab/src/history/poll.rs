//! Chapter 2: the router that scans every socket.

use super::published::{self, DROPS_AT_PEERS, EPOLL_SAVED_PERCENT, QUADRATIC_UP_TO_PEERS};
use super::{Chapter, Claim, Ratio, Verdict};
use crate::fit;
use crate::report::{Cell, Table};
use plot::figure::{Axis, Bar, BarChart, BarGroup, COLOUR_OURS, Chart, Series, Style};
use plot::number::{grouped, short};

/// Exponents that count as linear growth.
const LINEAR: std::ops::RangeInclusive<f64> = 0.8..=1.2;

/// Largest absolute exponent that counts as flat.
const FLAT: f64 = 0.2;

/// The exponent is fitted from this share of a curve's largest count onwards.
const TOP: f64 = 0.125;

/// Least number of sizes for a fit.
const SIZES_MIN: usize = 3;

/// Sizes up to this are in the range of the published plot: hundreds of peers.
const PUBLISHED_SIZES_MAX: u64 = 1_000;

/// Below this size, the fixed cost of a wait would distort the fit.
const FITTED_SIZES_MIN: u64 = 64;

/// One measurement: a poller waits on many descriptors, and few of them are ready.
#[derive(Clone, Debug, PartialEq)]
pub struct PollRow {
    /// The poller's name: names starting with `poll` are the old design, `epoll` is ours, and
    /// `floor` is the bare loop, which only the table shows.
    pub poller: String,
    /// Descriptors watched.
    pub watched: u64,
    /// Descriptors ready in each wait.
    pub ready: u64,
    /// Nanoseconds of elapsed time per wait.
    pub ns_per_wait: f64,
    /// Nanoseconds of CPU per wait.
    pub cpu_ns_per_wait: f64,
}

impl PollRow {
    fn is_old(&self) -> bool {
        self.poller.starts_with("poll")
    }

    fn is_floor(&self) -> bool {
        self.poller == "floor"
    }
}

/// The measurements of one poller with the fewest ready descriptors, by number watched.
struct Curve<'a> {
    poller: &'a str,
    rows: Vec<&'a PollRow>,
}

impl Curve<'_> {
    fn is_old(&self) -> bool {
        self.poller.starts_with("poll")
    }

    fn is_epoll(&self) -> bool {
        self.poller == "epoll"
    }

    /// The exponent of time per wait against watched descriptors, over the largest sizes.
    fn exponent(&self) -> Option<f64> {
        let from = self.rows.last()?.watched as f64 * TOP;
        let top = self
            .rows
            .iter()
            .filter(|r| r.watched as f64 >= from)
            .count();
        let skipped = self.rows.len() - top.max(SIZES_MIN).min(self.rows.len());
        exponent(&self.rows[skipped..])
    }

    /// The exponent over the sizes of the published plot.
    fn exponent_as_published(&self) -> Option<f64> {
        let sizes = FITTED_SIZES_MIN..=PUBLISHED_SIZES_MAX;
        let rows: Vec<&PollRow> = self
            .rows
            .iter()
            .copied()
            .filter(|r| sizes.contains(&r.watched))
            .collect();
        exponent(&rows)
    }
}

/// The exponent of time per wait against watched descriptors.
fn exponent(rows: &[&PollRow]) -> Option<f64> {
    if rows.len() < SIZES_MIN {
        return None;
    }
    let points: Vec<_> = rows
        .iter()
        .map(|r| (r.watched as f64, r.ns_per_wait))
        .collect();
    fit::log_log(&points).map(|law| law.exponent)
}

/// One curve per poller, from the rows with the fewest ready descriptors at each size.
fn curves(rows: &[PollRow]) -> Vec<Curve<'_>> {
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for row in rows.iter().filter(|r| !r.is_floor()) {
        let same = |r: &&PollRow| r.poller == row.poller && r.watched == row.watched;
        if rows.iter().filter(same).any(|r| r.ready < row.ready) {
            continue;
        }
        match curves.iter_mut().find(|c| c.poller == row.poller) {
            Some(curve) => curve.rows.push(row),
            None => curves.push(Curve {
                poller: &row.poller,
                rows: vec![row],
            }),
        }
    }
    for curve in &mut curves {
        curve.rows.sort_by_key(|r| r.watched);
    }
    curves
}

/// The chapter on poll and epoll, from waits measured over growing numbers of descriptors.
pub fn chapter_poll(rows: &[PollRow]) -> Chapter {
    let curves = curves(rows);
    Chapter {
        title: "The router that scans every socket".into(),
        source: published::POLL_SOURCE.into(),
        account: account(),
        charts: vec![chart_time(&curves).into(), chart_cpu(rows).into()],
        tables: vec![table(rows)],
        verdict: verdict(&curves, rows),
        old_builds: curves
            .iter()
            .filter(|curve| curve.is_old())
            .map(|curve| curve.poller.to_owned())
            .collect(),
        ratio: ratio(&curves),
        method: method(),
    }
}

/// The time of poll's wait divided by the time of epoll's, at the largest size that both have.
fn ratio(curves: &[Curve<'_>]) -> Option<Ratio> {
    let old = curves.iter().find(|curve| curve.is_old())?;
    let new = curves.iter().find(|curve| curve.is_epoll())?;
    let pairs = old.rows.iter().filter_map(|row| {
        let same = new.rows.iter().find(|other| other.watched == row.watched)?;
        Some((row.watched, row.ns_per_wait / same.ns_per_wait))
    });
    let (watched, ratio) = pairs.max_by_key(|pair| pair.0)?;
    let size = grouped(watched as f64, 0);
    Ratio::new(
        format!("a wait on {size} descriptors"),
        ["poll", "epoll"],
        Some(ratio),
    )
}

fn account() -> Vec<String> {
    [
        format!(
            "A test ran BGP daemons in full mesh on one large server, to represent a network of hundreds or thousands \
             of routers. Each session had a KEEPALIVE every second and a hold time of three seconds. Each daemon \
             waits with poll(). The account plots the time of a poll() call against the number of sockets, and finds \
             linear growth. A mesh of n daemons therefore costs its server CPU in proportion to n\u{b2}. CPU grew \
             quadratically up to {QUADRATIC_UP_TO_PEERS} peers, the server was under stress beyond, and at \
             {DROPS_AT_PEERS} peers sessions dropped."
        ),
        format!(
            "A prototype with epoll reduced the CPU by about {EPOLL_SAVED_PERCENT:.0} %. The maintainers asked for \
             introspection too: which descriptors are watched, for whom, and help for debugging."
        ),
    ]
    .into()
}

fn method() -> Vec<String> {
    [
        "Of the published plot, only its linear growth is known. The dashed line has the published slope and passes \
         through our last measurement of poll.",
        "An exponent is fitted by least squares over the logarithms: 0 is flat, 1 is linear. The exponent of poll is \
         fitted over 64 to 1,000 descriptors, the range of the published plot. The exponent of epoll, and that of \
         poll beyond the published plot, is fitted over the sizes from an eighth of the largest size upwards, and \
         over three sizes at least.",
        "The published saving is that of a whole daemon's CPU. Our saving is that of the wait alone, without the work \
         that a daemon does for ready descriptors.",
    ]
    .map(String::from)
    .into()
}

/// A colour for each curve; epoll has the colour of our own design.
fn colour(curves: &[Curve<'_>], index: usize) -> usize {
    if curves[index].is_epoll() {
        COLOUR_OURS
    } else {
        index % COLOUR_OURS
    }
}

fn chart_time(curves: &[Curve<'_>]) -> Chart {
    let mut chart = Chart::new(
        "Time per wait against descriptors watched",
        "The cost of a wait should depend on ready descriptors, not on watched ones. Few are ready in each wait.",
        Axis::log("descriptors watched", ""),
        Axis::log("time per wait", "ns"),
    );
    let old = curves.iter().enumerate().find(|(_, c)| c.is_old());
    if let Some((i, (first, last))) =
        old.and_then(|(i, c)| Some((i, (c.rows.first()?, c.rows.last()?))))
    {
        let (from, to) = (first.watched as f64, last.watched as f64);
        let points = vec![(from, last.ns_per_wait * from / to), (to, last.ns_per_wait)];
        let name = "poll, published: linear (slope only)";
        chart
            .series
            .push(Series::new(name, Style::Dashed, colour(curves, i), points).marked_at_end());
    }
    for (i, curve) in curves.iter().enumerate() {
        let points = curve
            .rows
            .iter()
            .map(|r| (r.watched as f64, r.ns_per_wait))
            .collect();
        let name = format!("{}, here", curve.poller);
        let series = Series::new(name, Style::Solid, colour(curves, i), points);
        chart.series.push(if curve.is_epoll() {
            series.bold()
        } else {
            series
        });
    }
    chart.notes.push(
        "Dashed: only the slope is published. The line passes through our last measurement of poll."
            .into(),
    );
    chart
}

/// The rows of the size nearest to `wanted`, with the fewest ready descriptors measured there.
fn at_size(rows: &[PollRow], wanted: u64) -> Vec<&PollRow> {
    let Some(size) = rows
        .iter()
        .map(|r| r.watched)
        .min_by_key(|w| w.abs_diff(wanted))
    else {
        return Vec::new();
    };
    let here = || {
        rows.iter()
            .filter(move |r| !r.is_floor() && r.watched == size)
    };
    let ready = here().map(|r| r.ready).min();
    here().filter(|r| Some(r.ready) == ready).collect()
}

fn chart_cpu(rows: &[PollRow]) -> BarChart {
    let mut groups = vec![BarGroup {
        name: "published, a whole BGP daemon".into(),
        bars: vec![
            Bar::new("poll", Style::Dashed, 0, 100.0),
            Bar::new(
                "epoll",
                Style::Dashed,
                COLOUR_OURS,
                100.0 - EPOLL_SAVED_PERCENT,
            ),
        ],
    }];
    let largest = rows.iter().map(|r| r.watched).max().unwrap_or(0);
    let mut seen = Vec::new();
    for wanted in [QUADRATIC_UP_TO_PEERS, DROPS_AT_PEERS, largest] {
        let rows = at_size(rows, wanted);
        let Some(old) = rows.iter().find(|r| r.is_old() && r.cpu_ns_per_wait > 0.0) else {
            continue;
        };
        if seen.contains(&old.watched) {
            continue;
        }
        seen.push(old.watched);
        let bars = rows.iter().enumerate().map(|(i, row)| {
            let colour = if row.poller == "epoll" {
                COLOUR_OURS
            } else {
                i % COLOUR_OURS
            };
            let percent = row.cpu_ns_per_wait * 100.0 / old.cpu_ns_per_wait;
            Bar::new(row.poller.clone(), Style::Solid, colour, percent)
        });
        groups.push(BarGroup {
            name: format!(
                "here, {} descriptors watched, the wait alone",
                grouped(old.watched as f64, 0)
            ),
            bars: bars.collect(),
        });
    }
    BarChart {
        title: "CPU against poll's".into(),
        subtitle: "Shorter is better. Each group is relative to its own first bar.".into(),
        value: Axis::linear("CPU", "% of poll"),
        groups,
        notes: vec![
            "Dashed: published. The saving of a wait alone exceeds the saving of a daemon that also works.".into(),
        ],
    }
}

fn table(rows: &[PollRow]) -> Table {
    let mut table = Table::new(
        "Waits as measured here",
        &[
            ("poller", ""),
            ("watched", ""),
            ("ready", ""),
            ("time per wait", "ns"),
            ("CPU per wait", "ns"),
            ("one wait in each of that many daemons", "\u{b5}s"),
        ],
    );
    for row in rows {
        let cells = [
            row.poller.clone().into(),
            row.watched.into(),
            row.ready.into(),
            Cell::num(row.ns_per_wait, 0),
            Cell::num(row.cpu_ns_per_wait, 0),
            Cell::num(row.cpu_ns_per_wait * row.watched as f64 / 1e3, 0),
        ];
        if row.is_floor() {
            table.floor(cells)
        } else {
            table.row(cells)
        }
    }
    table
}

/// Judges the claims: poll's wait grows linearly, epoll's does not grow, and epoll takes less CPU.
fn verdict(curves: &[Curve<'_>], rows: &[PollRow]) -> Verdict {
    let mut claims = Vec::new();
    for curve in curves.iter().filter(|c| c.is_old()) {
        let exponent = curve.exponent_as_published();
        claims.push(Claim {
            holds: exponent.map(|e| LINEAR.contains(&e)),
            because: match exponent {
                Some(e) if LINEAR.contains(&e) => format!(
                    "The time of a wait with {} grows with the watched descriptors to the power {e:.2}: linear. A \
                     mesh of n such daemons therefore costs n to the power {:.2}.",
                    curve.poller,
                    e + 1.0
                ),
                Some(e) => format!(
                    "The time of a wait with {} grows with the watched descriptors to the power {e:.2}, which is not \
                     linear.",
                    curve.poller
                ),
                None => format!("{} was measured at too few sizes.", curve.poller),
            },
        });
    }
    if claims.is_empty() {
        claims.push(Claim {
            holds: None,
            because: "poll was not measured.".into(),
        });
    }
    for curve in curves.iter().filter(|c| c.is_epoll()) {
        let exponent = curve.exponent();
        claims.push(Claim {
            // A flat curve that falls is flat.
            holds: exponent.map(|e| e < FLAT),
            because: match exponent {
                Some(e) if e < FLAT => {
                    format!(
                        "The time of a wait with {} stays flat (power {e:.2}).",
                        curve.poller
                    )
                }
                Some(e) => format!(
                    "The time of a wait with {} is not flat: its power is {e:.2}.",
                    curve.poller
                ),
                None => format!("{} was measured at too few sizes.", curve.poller),
            },
        });
    }
    claims.push(saving(rows));
    let mut verdict = Verdict::from_claims(claims);
    verdict
        .remarks
        .extend(curves.iter().find(|c| c.is_old()).and_then(beyond));
    verdict.remarks.push(format!(
        "The last chapter runs a mesh of daemons, which is needed to test whether sessions drop at {DROPS_AT_PEERS} \
         peers."
    ));
    verdict
}

/// The cost of a descriptor at sizes far above the published plot.
fn beyond(curve: &Curve<'_>) -> Option<String> {
    let each = |row: &PollRow| row.ns_per_wait / row.watched as f64;
    let (first, last) = (curve.rows.first()?, curve.rows.last()?);
    if last.watched <= PUBLISHED_SIZES_MAX {
        return None;
    }
    let size = |row: &PollRow| grouped(row.watched as f64, 0);
    Some(format!(
        "A wait with {} costs {:.0} ns per descriptor at {} descriptors and {:.0} ns at {}, where the power is {:.2}. \
         Beyond the published sizes a descriptor costs more, as it would if the sockets no longer fit in the caches.",
        curve.poller,
        each(first),
        size(first),
        each(last),
        size(last),
        curve.exponent()?
    ))
    .filter(|_| each(last) > 1.5 * each(first))
}

/// The CPU time that epoll saves at the sizes of the published saving.
fn saving(rows: &[PollRow]) -> Claim {
    let here = at_size(rows, QUADRATIC_UP_TO_PEERS);
    let old = here.iter().find(|r| r.is_old() && r.cpu_ns_per_wait > 0.0);
    let new = here.iter().find(|r| r.poller == "epoll");
    let (Some(old), Some(new)) = (old, new) else {
        return Claim {
            holds: None,
            because: "poll and epoll were not measured at the same size.".into(),
        };
    };
    let saved = 100.0 * (1.0 - new.cpu_ns_per_wait / old.cpu_ns_per_wait);
    let (size, old) = (grouped(old.watched as f64, 0), &old.poller);
    let change = if saved >= 0.0 {
        format!("{} % less", short(saved.round()))
    } else {
        format!("{} % more", short(-saved.round()))
    };
    Claim {
        holds: Some(saved > 5.0),
        because: format!(
            "At {size} descriptors a wait with epoll takes {change} CPU than with {old}; the published figure is \
             {EPOLL_SAVED_PERCENT:.0} % less for a whole daemon."
        ),
    }
}
