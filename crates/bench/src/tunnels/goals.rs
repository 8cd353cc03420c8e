//! The goals for tunnels, and whether this run reached them.

use lab::plot::number::grouped;
use lab::report::{Cell, Table};
use wire::l2tp::Version;

use super::Results;
use super::hello::Hello;
use super::setup::{Run, SetUp, number};
use super::storm::Storm;
use crate::harness::server::LnsProgram;

/// Number of SCCRQs in the storm.
const STORM: u32 = 10_000;
/// Goal: processor time of a tunnel, in microseconds.
const SET_UP_US: f64 = 10.0;
/// Goal: cost at the slowest size relative to the fastest.
const FLAT: f64 = 1.3;
/// Goal: memory of a tunnel, in bytes.
const MEMORY_BYTES: f64 = 1000.0;
/// Goal: time of a storm in seconds, with and without forced buffers.
const STORM_S: [f64; 2] = [0.5, 3.0];
/// Goal: cost of answered HELLOs relative to a bare loop.
const ANSWERED: f64 = 1.3;
/// Goal: cost of originated HELLOs, in percent of a core.
const ORIGINATED_PERCENT: f64 = 6.0;
/// Goal: cost when idle, in percent of a core.
const IDLE_PERCENT: f64 = 0.1;

/// Whether every tunnel to our LNS came up.
pub(super) fn all_came_up(results: &Results) -> bool {
    let set_ups = results.set_ups.iter().chain(&results.against);
    let ours = set_ups.filter(|s| s.program == LnsProgram::Headend);
    let waves = ours.flat_map(|s| &s.runs).map(|run| &run.wave);
    let storms = results.storms.iter().map(|storm| &storm.run.wave);
    waves.chain(storms).all(|wave| wave.up == wave.asked)
}

/// A row for each goal.
struct Rows(Table);

impl Rows {
    fn add(&mut self, what: &str, tunnels: u32, goal: String, measured: String, met: bool) {
        let met = if met { "yes" } else { "no" };
        self.0.row([
            Cell::from(what),
            u64::from(tunnels).into(),
            goal.into(),
            measured.into(),
            met.into(),
        ]);
    }
}

/// Each goal beside our result.
pub(super) fn table(results: &Results) -> Table {
    let columns = [
        ("what", ""),
        ("at", "tunnels"),
        ("goal", ""),
        ("measured", ""),
        ("reached", ""),
    ];
    let mut rows = Rows(Table::new("What is to be reached", &columns));
    for version in [Version::V2, Version::V3] {
        set_up(version, &results.set_ups, &mut rows);
    }
    storms(&results.storms, &mut rows);
    hellos(results, &mut rows);
    rows.0
}

fn set_up(version: Version, all: &[SetUp], rows: &mut Rows) {
    let v = number(version);
    let ours: Vec<(&SetUp, &Run)> = all
        .iter()
        .filter(|s| s.program == LnsProgram::Headend && s.version == version)
        .filter_map(|s| Some((s, s.median()?)))
        .collect();
    for (set_up, run) in &ours {
        rows.add(
            &format!("CPU per tunnel set up, L2TPv{v}"),
            set_up.tunnels,
            format!("<= {SET_UP_US} us"),
            format!("{:.2} us", run.cpu_us),
            run.cpu_us <= SET_UP_US,
        );
    }
    let costs = || ours.iter().map(|(_, run)| run.cpu_us);
    let ends = (costs().reduce(f64::min), costs().reduce(f64::max));
    let ((Some(low), Some(high)), Some((last, run))) = (ends, ours.last()) else {
        return;
    };
    rows.add(
        &format!("Flat over all sizes, L2TPv{v}"),
        last.tunnels,
        format!("<= {FLAT}x"),
        format!("{:.2}x", high / low),
        high <= low * FLAT,
    );
    rows.add(
        &format!("Memory of an established tunnel, L2TPv{v}"),
        last.tunnels,
        format!("<= {MEMORY_BYTES} bytes"),
        format!("{} bytes", grouped(run.memory_bytes, 0)),
        run.memory_bytes <= MEMORY_BYTES,
    );
}

fn storms(all: &[Storm], rows: &mut Rows) {
    let within = all.iter().filter(|s| s.tunnels <= STORM);
    let largest = within.clone().map(|s| s.tunnels).max();
    for storm in within.filter(|s| Some(s.tunnels) == largest) {
        let wave = &storm.run.wave;
        let forced = storm.is_forced();
        let (what, limit_s, resent) = if forced {
            (
                "A storm, receive buffer forced",
                STORM_S[0],
                "nothing resent",
            )
        } else {
            (
                "A storm, receive buffer not forced",
                STORM_S[1],
                "none lost",
            )
        };
        let up = wave.up == wave.asked;
        rows.add(
            what,
            storm.tunnels,
            format!("all up, < {limit_s} s, {resent}"),
            format!(
                "{} up, {:.3} s, {} resent",
                grouped(wave.up.into(), 0),
                wave.seconds,
                grouped(wave.retransmissions as f64, 0)
            ),
            up && wave.seconds < limit_s && (!forced || wave.retransmissions == 0),
        );
    }
}

fn hellos(results: &Results, rows: &mut Rows) {
    if let Some(hello) = ours(&results.answered).next_back() {
        let bare = results
            .answered
            .iter()
            .find(|other| other.program == LnsProgram::Bare && other.tunnels == hello.tunnels);
        let ratio = hello.each_us() / bare.map_or(f64::NAN, Hello::each_us);
        rows.add(
            &format!("{} HELLO/s answered", grouped(hello.rate.into(), 0)),
            hello.tunnels,
            format!("<= {ANSWERED}x the bare loop"),
            format!("{ratio:.2}x, {:.2} % of a core", hello.spent.percent()),
            ratio <= ANSWERED && hello.answered == hello.sent,
        );
    }
    if let Some(hello) = ours(&results.originated).next_back() {
        let percent = hello.spent.percent();
        rows.add(
            &format!("{} HELLO/s originated", grouped(hello.rate.into(), 0)),
            hello.tunnels,
            format!("<= {ORIGINATED_PERCENT} % of a core"),
            format!("{percent:.2} % of a core"),
            percent <= ORIGINATED_PERCENT && hello.answered > 0,
        );
    }
    if let Some(idle) = results.idle.last() {
        let percent = idle.spent.percent();
        rows.add(
            "At rest",
            idle.tunnels,
            format!("<= {IDLE_PERCENT} % of a core"),
            format!("{percent:.4} % of a core"),
            percent <= IDLE_PERCENT,
        );
    }
}

fn ours(all: &[Hello]) -> impl DoubleEndedIterator<Item = &Hello> {
    all.iter()
        .filter(|hello| hello.program == LnsProgram::Headend)
}
