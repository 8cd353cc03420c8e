//! Chapter 6: the full mesh of routers. Chapter 2 measures only the waits of such a router.

use super::published::{self, DROPS_AT_PEERS, EPOLL_SAVED_PERCENT, QUADRATIC_UP_TO_PEERS};
use super::{Chapter, Claim, Ratio, Verdict};
use crate::fit;
use crate::report::{Cell, Table};
use plot::figure::{Axis, Bar, BarChart, BarGroup, COLOUR_OURS, Chart, Series, Style};
use plot::number::{grouped, short};

/// Exponents that count as quadratic growth.
const QUADRATIC: std::ops::RangeInclusive<f64> = 1.7..=2.5;

/// Least saving in percent that counts as one.
const SAVING_MIN_PERCENT: f64 = 5.0;

/// Least number of sizes for a fit.
const SIZES_MIN: usize = 3;

/// How the routers of a mesh wait for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// One process for each router over TCP, using poll on a set that is rebuilt for each call: the
    /// old design.
    Poll,
    /// One process for each router over TCP, with epoll.
    Epoll,
    /// All routers in one process, over links in memory.
    Memory,
    /// No routers: bare loops over as many TCP connections.
    Bare,
}

impl Waiting {
    const ALL: [Self; 4] = [Self::Poll, Self::Epoll, Self::Memory, Self::Bare];

    fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll, a process each",
            Self::Epoll => "epoll, a process each",
            Self::Memory => "in memory, one process",
            Self::Bare => "bare loops",
        }
    }

    fn colour(self) -> usize {
        match self {
            Self::Poll => 0,
            Self::Epoll => 2,
            Self::Memory => COLOUR_OURS,
            Self::Bare => 7,
        }
    }
}

/// Results of a mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshRow {
    /// How its routers wait.
    pub waiting: Waiting,
    /// Number of routers.
    pub routers: u64,
    /// Session ends that were up at the end.
    pub up: u64,
    /// Session ends that were lost during the measurement.
    pub lost: u64,
    /// Processor time of all processes, in percent of one core.
    pub cpu_percent: f64,
    /// Waits of a process per second; `None` if no process waits.
    pub waits: Option<f64>,
}

impl MeshRow {
    fn endpoints(&self) -> u64 {
        self.routers * self.routers.saturating_sub(1)
    }

    /// Whether every session was up all the time.
    fn is_whole(&self) -> bool {
        self.up == self.endpoints() && self.lost == 0
    }

    /// Processor time of one session end per second, in microseconds.
    fn each_us(&self) -> f64 {
        self.cpu_percent * 1e4 / self.up.max(1) as f64
    }

    /// Processor time of a process between two waits, in microseconds.
    fn wake_us(&self) -> Option<f64> {
        let all = self.waits? * self.routers as f64;
        (all > 0.0).then(|| self.cpu_percent * 1e4 / all)
    }
}

/// The rows of one kind, by number of routers.
fn curve(rows: &[MeshRow], waiting: Waiting) -> Vec<&MeshRow> {
    let mut curve: Vec<_> = rows.iter().filter(|row| row.waiting == waiting).collect();
    curve.sort_by_key(|row| row.routers);
    curve
}

/// The exponent of processor time against routers, over meshes whose sessions all stayed up.
fn exponent(curve: &[&MeshRow]) -> Option<f64> {
    let whole = curve.iter().filter(|row| row.is_whole());
    let points: Vec<_> = whole
        .map(|row| (row.routers as f64, row.cpu_percent))
        .collect();
    if points.len() < SIZES_MIN {
        return None;
    }
    fit::log_log(&points).map(|law| law.exponent)
}

/// The chapter on the full mesh, from meshes of growing size on `cores` cores.
pub fn chapter_mesh(rows: &[MeshRow], cores: usize) -> Chapter {
    Chapter {
        title: "The full mesh on one machine".into(),
        source: published::POLL_SOURCE.into(),
        account: account(),
        charts: vec![
            chart_cpu(rows).into(),
            chart_wake(rows).into(),
            chart_saving(rows).into(),
        ],
        tables: vec![table(rows)],
        verdict: verdict(rows, cores),
        old_builds: rows
            .iter()
            .find(|row| row.waiting == Waiting::Poll)
            .map(|_| "poll".to_owned())
            .into_iter()
            .collect(),
        ratio: ratio(rows),
        method: method(),
    }
}

/// The processor time of daemons with poll, divided by the processor time of daemons with epoll.
fn ratio(rows: &[MeshRow]) -> Option<Ratio> {
    let (old, new) = largest_pair(rows)?;
    Ratio::new(
        format!("a mesh of {} routers", old.routers),
        ["poll", "epoll"],
        Some(old.cpu_percent / new.cpu_percent),
    )
}

fn account() -> Vec<String> {
    [
        format!(
            "This chapter re-runs the other half of the second chapter's account: BGP daemons in full mesh on one \
             server of 16 cores. Each pair of daemons had a session, with a KEEPALIVE every second and a hold time \
             of three seconds. The server's CPU grew quadratically up to {QUADRATIC_UP_TO_PEERS} peers, and the \
             server was under stress beyond. At {DROPS_AT_PEERS} peers sessions dropped, because daemons sent their \
             KEEPALIVEs too late. With epoll the CPU was about {EPOLL_SAVED_PERCENT:.0} % less."
        ),
        "Such a mesh has two costs: work and waste. The work: a mesh of n routers has about n\u{b2} session ends, and \
         each of them sends and receives every second, however its router waits. The waste: a wait that looks at all \
         n descriptors of a daemon costs more with each descriptor. While each router is a process and each session \
         is a TCP connection, the work can be made cheap, but not flat. Routers that are values in one process, with \
         links in memory, need neither system calls nor context switches for the work."
            .to_owned(),
    ]
    .into()
}

fn method() -> Vec<String> {
    [
        "Of the published CPU curve, only its quadratic growth is known. The dashed line has the published slope, \
         passes through our last measurement with poll that kept all sessions, and ends where sessions dropped.",
        "An exponent is fitted by least squares over the logarithms, over the meshes that lost no session.",
        "Time per wake-up is the processor time of a process from one sleep to the next: the wait, and the work for \
         ready descriptors.",
    ]
    .map(String::from)
    .into()
}

/// A line for each kind that has results.
fn lines(rows: &[MeshRow], figure: impl Fn(&MeshRow) -> Option<f64>) -> Vec<Series> {
    let all = Waiting::ALL.into_iter().map(|waiting| {
        let rows = curve(rows, waiting);
        let points = rows.iter();
        let points = points.filter_map(|row| Some((row.routers as f64, figure(row)?)));
        let name = format!("{}, here", waiting.name());
        let line = Series::new(name, Style::Solid, waiting.colour(), points.collect());
        if waiting == Waiting::Memory {
            line.bold()
        } else {
            line
        }
    });
    all.filter(|line| !line.points.is_empty()).collect()
}

fn chart_cpu(rows: &[MeshRow]) -> Chart {
    let mut chart = Chart::new(
        "CPU of a full mesh against its number of routers",
        "All routers of a mesh together, KEEPALIVE every second, hold time 3 s. Lower is better.",
        Axis::log("routers", ""),
        Axis::log("CPU", "% of a core"),
    );
    let old = curve(rows, Waiting::Poll);
    if let Some(last) = old.iter().rfind(|row| row.is_whole()) {
        let at = |routers: f64| {
            let ratio = routers / last.routers as f64;
            (routers, last.cpu_percent * ratio * ratio)
        };
        let from = old.first().map_or(last.routers, |row| row.routers) as f64;
        let points = vec![at(from), at(DROPS_AT_PEERS as f64)];
        let name = "poll, published: quadratic (slope and end only)";
        chart
            .series
            .push(Series::new(name, Style::Dashed, Waiting::Poll.colour(), points).marked_at_end());
    }
    chart.series.extend(lines(rows, |row| {
        Some(row.cpu_percent).filter(|cpu| *cpu > 0.0)
    }));
    chart.notes.push(
        "Dashed: only the slope is published, and that sessions dropped at 384 peers. The line passes through our \
         last mesh with poll that kept all sessions."
            .into(),
    );
    for row in rows.iter().filter(|row| !row.is_whole()) {
        chart.notes.push(format!(
            "{} with {} routers: {} of {} session ends up, {} lost.",
            row.waiting.name(),
            row.routers,
            grouped(row.up as f64, 0),
            grouped(row.endpoints() as f64, 0),
            grouped(row.lost as f64, 0)
        ));
    }
    chart
}

fn chart_wake(rows: &[MeshRow]) -> Chart {
    let mut chart = Chart::new(
        "Processor time from one sleep to the next",
        "One router's process: a wait, and the work for ready descriptors. Flat is good.",
        Axis::log("routers", ""),
        Axis::log("time per wake-up", "us"),
    );
    chart.series = lines(rows, |row| match row.waiting {
        Waiting::Poll | Waiting::Epoll => row.wake_us(),
        // These have no process for each router.
        Waiting::Memory | Waiting::Bare => None,
    });
    chart
}

/// The largest mesh whose sessions all stayed up both with poll and with epoll.
fn largest_pair(rows: &[MeshRow]) -> Option<(&MeshRow, &MeshRow)> {
    let whole = |waiting| {
        let rows = curve(rows, waiting).into_iter();
        rows.filter(|row| row.is_whole() && row.cpu_percent > 0.0)
    };
    let mut pairs = whole(Waiting::Poll).filter_map(|old| {
        let new = whole(Waiting::Epoll).find(|new| new.routers == old.routers)?;
        Some((old, new))
    });
    pairs.next_back()
}

fn chart_saving(rows: &[MeshRow]) -> BarChart {
    let published = |name: &str, colour, percent| Bar::new(name, Style::Dashed, colour, percent);
    let mut groups = vec![BarGroup {
        name: "published, a whole BGP daemon".into(),
        bars: vec![
            published("poll", Waiting::Poll.colour(), 100.0),
            published(
                "epoll",
                Waiting::Epoll.colour(),
                100.0 - EPOLL_SAVED_PERCENT,
            ),
        ],
    }];
    if let Some((old, _)) = largest_pair(rows) {
        let same = rows.iter().filter(|row| row.routers == old.routers);
        let bars = same.map(|row| {
            let percent = row.cpu_percent * 100.0 / old.cpu_percent;
            Bar::new(
                row.waiting.name(),
                Style::Solid,
                row.waiting.colour(),
                percent,
            )
        });
        groups.push(BarGroup {
            name: format!("here, a mesh of {} routers", old.routers),
            bars: bars.collect(),
        });
    }
    BarChart {
        title: "CPU of a mesh against poll's".into(),
        subtitle: "Shorter is better. Each group is relative to its own first bar.".into(),
        value: Axis::linear("CPU", "% of poll"),
        groups,
        notes: vec!["Dashed: published.".into()],
    }
}

fn table(rows: &[MeshRow]) -> Table {
    let mut table = Table::new(
        "Full meshes as measured here",
        &[
            ("routers wait with", ""),
            ("routers", ""),
            ("session ends", ""),
            ("up at the end", ""),
            ("lost", ""),
            ("CPU of a core", "%"),
            ("CPU per end and second", "\u{b5}s"),
            ("wake-ups of a process per s", ""),
            ("CPU per wake-up", "\u{b5}s"),
        ],
    );
    for row in rows {
        let cells = [
            row.waiting.name().into(),
            row.routers.into(),
            row.endpoints().into(),
            row.up.into(),
            row.lost.into(),
            Cell::num(row.cpu_percent, 1),
            Cell::num(row.each_us(), 3),
            row.waits.map(|waits| Cell::num(waits, 0)).into(),
            row.wake_us().map(|us| Cell::num(us, 2)).into(),
        ];
        if row.waiting == Waiting::Bare {
            table.floor(cells);
        } else {
            table.row(cells);
        }
    }
    table
}

/// Judges the claims: CPU time grows quadratically, sessions drop in the end, and epoll takes less.
fn verdict(rows: &[MeshRow], cores: usize) -> Verdict {
    let old = curve(rows, Waiting::Poll);
    let mut verdict = Verdict::from_claims(vec![growth(&old), drops(&old, cores), saving(rows)]);
    verdict.remarks.extend(work(rows));
    verdict.remarks.extend(memory(rows));
    verdict
}

fn growth(old: &[&MeshRow]) -> Claim {
    let exponent = exponent(old);
    let holds = exponent.map(|e| QUADRATIC.contains(&e));
    Claim {
        holds,
        because: match (exponent, holds) {
            (Some(e), Some(true)) => {
                format!(
                    "With poll the CPU of a mesh grows with its routers to the power {e:.2}: quadratically."
                )
            }
            (Some(e), _) => {
                format!(
                    "With poll the CPU of a mesh grows with its routers to the power {e:.2}, which is not quadratic."
                )
            }
            (None, _) => "Too few meshes with poll kept all their sessions.".into(),
        },
    }
}

fn drops(old: &[&MeshRow], cores: usize) -> Claim {
    let all = 100.0 * cores as f64;
    let Some(last) = old.last() else {
        return Claim {
            holds: None,
            because: "poll was not measured.".into(),
        };
    };
    match old.iter().find(|row| !row.is_whole()) {
        Some(row) => Claim {
            holds: Some(true),
            because: format!(
                "With poll a mesh of {} routers did not keep its sessions on {cores} cores ({} of {} ends up, {} \
                 lost). The account reports lost sessions at {DROPS_AT_PEERS} peers on 16 cores.",
                row.routers,
                grouped(row.up as f64, 0),
                grouped(row.endpoints() as f64, 0),
                grouped(row.lost as f64, 0)
            ),
        },
        None => Claim {
            holds: None,
            because: format!(
                "With poll no session was lost up to {} routers, which take {} % of the {cores} cores. The size at \
                 which sessions dropped in the account, {DROPS_AT_PEERS} peers on 16 cores, was not reached.",
                last.routers,
                short((last.cpu_percent * 100.0 / all).round())
            ),
        },
    }
}

fn saving(rows: &[MeshRow]) -> Claim {
    let Some((old, new)) = largest_pair(rows) else {
        return Claim {
            holds: None,
            because: "No mesh kept all sessions both with poll and with epoll.".into(),
        };
    };
    let saved = 100.0 * (1.0 - new.cpu_percent / old.cpu_percent);
    let change = if saved >= 0.0 {
        format!("{} % less", short(saved.round()))
    } else {
        format!("{} % more", short(-saved.round()))
    };
    Claim {
        holds: Some(saved > SAVING_MIN_PERCENT),
        because: format!(
            "A mesh of {} routers takes {change} CPU with epoll than with poll; the published figure is \
             {EPOLL_SAVED_PERCENT:.0} % less.",
            old.routers
        ),
    }
}

/// The part of the work that any design over TCP has.
fn work(rows: &[MeshRow]) -> Option<String> {
    let (_, new) = largest_pair(rows)?;
    let mut bare = curve(rows, Waiting::Bare).into_iter();
    let bare = bare.find(|row| row.routers == new.routers && row.cpu_percent > 0.0)?;
    Some(format!(
        "Per session end and second, bare loops over as many TCP connections take {:.1} \u{b5}s, and our daemon with \
         epoll takes {:.1} \u{b5}s.",
        bare.each_us(),
        new.each_us()
    ))
}

/// Our cost with all routers in one process.
fn memory(rows: &[MeshRow]) -> Option<String> {
    let last = *curve(rows, Waiting::Memory).last()?;
    let lost = match last.lost {
        0 => "no session was lost".to_owned(),
        n => format!("{} session ends were lost", grouped(n as f64, 0)),
    };
    Some(format!(
        "In memory, a mesh of {} routers with {} session ends takes {:.1} % of one core in real time, {:.3} \u{b5}s \
         per session end and second; {lost}.",
        grouped(last.routers as f64, 0),
        grouped(last.endpoints() as f64, 0),
        last.cpu_percent,
        last.each_us()
    ))
}

#[cfg(test)]
mod tests;
