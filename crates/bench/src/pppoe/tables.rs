//! The tables of the report.

use lab::report::{Cell, Table};

use super::wave::{Flood, Waves};
use crate::harness::server::LoopCounters;
use crate::subscribers::lns::Proof;

/// Goal: hosts that connect per second.
const RATE_GOAL: f64 = 15_000.0;
/// Goal: processor time of one host, in microseconds.
const COST_GOAL_US: f64 = 65.0;
/// Goal: memory of one host, in bytes.
const MEMORY_GOAL: f64 = 2_200.0;
/// Goal: processor time during a flood, in percent of a core.
const FLOOD_GOAL_PERCENT: f64 = 25.0;

/// All tables, the goals first.
pub(super) fn all(waves: &[Waves], floods: &[Flood]) -> Vec<Table> {
    vec![
        goals(waves, floods),
        costs(waves),
        memory(waves),
        flood(floods),
        work(waves, "System calls for a host", "", |accounts| {
            &accounts.calls
        }),
        work(waves, "The loop's time for a host", "us", |accounts| {
            &accounts.handlers_us
        }),
    ]
}

fn name(waves: &Waves) -> &'static str {
    match waves.proof {
        Some(Proof::Chap) => "CHAP, RADIUS, IPv4 and IPv6",
        Some(Proof::Pap) => "PAP, RADIUS, IPv4 and IPv6",
        None => "bare loop",
    }
}

fn add(table: &mut Table, waves: &Waves, cells: Vec<Cell>) {
    match waves.proof {
        None => table.floor(cells),
        Some(_) => table.row(cells),
    };
}

fn share(percent: Option<f64>) -> Cell {
    percent.map_or(Cell::Missing, |percent| Cell::num(percent, 1))
}

/// The goals, and whether they were reached.
fn goals(all: &[Waves], floods: &[Flood]) -> Table {
    let columns = ["hosts", "what", "measured", "to reach", "reached"].map(|name| (name, ""));
    let mut table = Table::new("To reach", &columns);
    let mut row = |hosts: u16, what: String, measured: f64, goal: f64, reached: bool| {
        table.row([
            u64::from(hosts).into(),
            Cell::from(what),
            Cell::num(measured, 1),
            Cell::num(goal, 0),
            if reached { "yes" } else { "no" }.into(),
        ]);
    };
    for waves in all.iter().filter(|waves| waves.proof.is_some()) {
        let Some(run) = waves.median() else {
            continue;
        };
        let (hosts, name) = (waves.hosts, name(waves));
        let rate = f64::from(run.wave.up) / run.wave.seconds.max(1e-9);
        let (cost, memory) = (run.cpu_us, run.memory_bytes);
        let what = |what: &str| format!("{name}: {what}");
        row(
            hosts,
            what("connected per second"),
            rate,
            RATE_GOAL,
            rate >= RATE_GOAL,
        );
        row(
            hosts,
            what("CPU, us"),
            cost,
            COST_GOAL_US,
            cost <= COST_GOAL_US,
        );
        row(
            hosts,
            what("memory, bytes"),
            memory,
            MEMORY_GOAL,
            memory <= MEMORY_GOAL,
        );
    }
    for flood in floods {
        let Some(hosts) = flood.sessions else {
            continue;
        };
        let percent = flood.cpu_percent;
        let is_in = percent <= FLOOD_GOAL_PERCENT;
        let what = "flood of PADIs: CPU, % of a core".to_owned();
        row(hosts, what, percent, FLOOD_GOAL_PERCENT, is_in);
        let lost = flood.flooded.echoes - flood.flooded.replies.min(flood.flooded.echoes);
        let what = "flood of PADIs: echoes of established sessions lost".to_owned();
        row(hosts, what, lost as f64, 0.0, lost == 0);
    }
    table
}

fn costs(all: &[Waves]) -> Table {
    let mut table = Table::new(
        "Hosts from PADI to IPv4 and a delegated prefix",
        &[
            ("program", ""),
            ("hosts", ""),
            ("connected", ""),
            ("CPU each", "us"),
            ("lowest", "us"),
            ("highest", "us"),
            ("of the bare loop", "x"),
            ("time", "s"),
            ("connected per s", ""),
            ("frames to it", ""),
            ("from it", ""),
            ("answers of RADIUS", ""),
            ("sent again", ""),
            ("load's CPU each", "us"),
            ("others' share of the cores", "%"),
        ],
    );
    for waves in all {
        let (Some(run), Some((low, high))) = (waves.median(), waves.range_us()) else {
            continue;
        };
        let bare = all
            .iter()
            .find(|other| other.proof.is_none() && other.hosts == waves.hosts);
        let floor = bare
            .and_then(Waves::median)
            .filter(|_| waves.proof.is_some());
        let up = f64::from(run.wave.up.max(1));
        let cells = vec![
            name(waves).into(),
            u64::from(waves.hosts).into(),
            u64::from(run.wave.up).into(),
            Cell::num(run.cpu_us, 2),
            Cell::num(low, 2),
            Cell::num(high, 2),
            floor.map_or(Cell::Missing, |bare| {
                Cell::num(run.cpu_us / bare.cpu_us.max(1e-9), 2)
            }),
            Cell::num(run.wave.seconds, 3),
            Cell::num(up / run.wave.seconds.max(1e-9), 0),
            Cell::num(run.wave.sent.0 as f64 / up, 2),
            Cell::num(run.wave.received.0 as f64 / up, 2),
            Cell::num(run.asked as f64 / up, 2),
            run.wave.retransmissions.into(),
            Cell::num(run.load_us, 2),
            share(run.others_percent),
        ];
        add(&mut table, waves, cells);
    }
    table
}

fn memory(all: &[Waves]) -> Table {
    let mut table = Table::new(
        "Memory of a host with its session",
        &[
            ("program", ""),
            ("hosts", ""),
            ("each", "bytes"),
            ("process before the first", "bytes"),
        ],
    );
    for waves in all.iter().filter(|waves| waves.proof.is_some()) {
        if let Some(run) = waves.median() {
            table.row([
                name(waves).into(),
                u64::from(waves.hosts).into(),
                Cell::num(run.memory_bytes, 0),
                run.empty_bytes.into(),
            ]);
        }
    }
    table
}

fn flood(floods: &[Flood]) -> Table {
    let mut table = Table::new(
        "A flood of PADIs beside established sessions",
        &[
            ("program", ""),
            ("sessions", ""),
            ("PADIs per s", ""),
            ("PADOs per s", ""),
            ("CPU", "% of a core"),
            ("CPU of a PADI", "us"),
            ("echoes", ""),
            ("replies", ""),
            ("others' share of the cores", "%"),
        ],
    );
    for one in floods {
        let Flood { flooded, .. } = one;
        let seconds = flooded.seconds.max(1e-9);
        let mut cells: Vec<Cell> = match one.sessions {
            Some(sessions) => vec!["headend".into(), u64::from(sessions).into()],
            None => vec!["bare receive loop".into(), Cell::Missing],
        };
        let rate = flooded.padis as f64 / seconds;
        cells.extend([
            Cell::num(rate, 0),
            Cell::num(flooded.pados as f64 / seconds, 0),
            Cell::num(one.cpu_percent, 1),
            Cell::num(one.cpu_percent * 1e4 / rate.max(1e-9), 2),
            flooded.echoes.into(),
            flooded.replies.into(),
            share(one.others_percent),
        ]);
        match one.sessions {
            Some(_) => table.row(cells),
            None => table.floor(cells),
        };
    }
    table
}

/// The daemon's own counters, by name.
fn work(
    all: &[Waves],
    title: &str,
    unit: &str,
    of: impl Fn(&LoopCounters) -> &Vec<(String, f64)>,
) -> Table {
    let mut names: Vec<String> = Vec::new();
    for run in all.iter().filter_map(Waves::median) {
        for (name, value) in of(&run.accounts) {
            if *value >= 0.000_5 && !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    let mut columns = vec![("program", ""), ("hosts", "")];
    columns.extend(names.iter().map(|name| (name.as_str(), unit)));
    columns.push(("all", unit));
    let mut table = Table::new(title, &columns);
    for waves in all.iter().filter(|waves| waves.proof.is_some()) {
        let Some(run) = waves.median() else { continue };
        let counted = of(&run.accounts);
        let mut cells: Vec<Cell> = vec![name(waves).into(), u64::from(waves.hosts).into()];
        cells.extend(names.iter().map(|name| {
            let found = counted.iter().find(|(other, _)| other == name);
            Cell::num(found.map_or(0.0, |(_, value)| *value), 3)
        }));
        cells.push(Cell::num(counted.iter().map(|(_, value)| value).sum(), 3));
        table.row(cells);
    }
    table
}
