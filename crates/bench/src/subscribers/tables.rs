//! The tables of the subscriber report.

use lab::report::{Cell, Table};

use super::lns::Kind;
use super::wave::Waves;

/// Goal: subscribers that connect per second.
const RATE_GOAL: f64 = 20_000.0;

/// Goal: processor time of one subscriber, in microseconds.
const COST_GOAL_US: f64 = 50.0;

/// Goal: memory of one subscriber with its tunnel, in bytes.
const MEMORY_GOAL: f64 = 2_000.0;

/// All tables, the goals first.
pub(super) fn all(waves: &[Waves]) -> Vec<Table> {
    vec![
        goals(waves),
        costs(waves),
        memory(waves),
        work(waves, "System calls for a subscriber", "", |accounts| {
            &accounts.calls
        }),
        work(
            waves,
            "The loop's time for a subscriber",
            "us",
            |accounts| &accounts.handlers_us,
        ),
    ]
}

fn name(waves: &Waves) -> Cell {
    waves
        .kind
        .map_or_else(|| "bare loop".to_owned(), Kind::name)
        .into()
}

fn add(table: &mut Table, waves: &Waves, cells: Vec<Cell>) {
    if waves.kind.is_none() {
        table.floor(cells);
    } else {
        table.row(cells);
    }
}

/// The goals, and whether they were reached.
fn goals(all: &[Waves]) -> Table {
    let mut table = Table::new(
        "To reach",
        &[
            ("subscribers", ""),
            ("what", ""),
            ("measured", ""),
            ("to reach", ""),
            ("reached", ""),
        ],
    );
    for waves in all.iter().filter(|waves| waves.subscribers >= 10_000) {
        let (Some(kind), Some(run)) = (waves.kind, waves.median()) else {
            continue;
        };
        let rate = f64::from(run.wave.up) / run.wave.seconds.max(1e-9);
        let mut row = |what: &str, measured: f64, goal: f64, reached: bool| {
            table.row([
                u64::from(waves.subscribers).into(),
                Cell::from(format!("{}: {what}", kind.name())),
                Cell::num(measured, 1),
                Cell::num(goal, 0),
                if reached { "yes" } else { "no" }.into(),
            ]);
        };
        row("connected per second", rate, RATE_GOAL, rate >= RATE_GOAL);
        let cost = run.cpu_us;
        row("CPU, us", cost, COST_GOAL_US, cost <= COST_GOAL_US);
        let memory = run.memory_bytes;
        row("memory, bytes", memory, MEMORY_GOAL, memory <= MEMORY_GOAL);
    }
    table
}

fn costs(all: &[Waves]) -> Table {
    let mut table = Table::new(
        "Subscribers from nothing to IP",
        &[
            ("program", ""),
            ("subscribers", ""),
            ("connected", ""),
            ("CPU each", "us"),
            ("lowest", "us"),
            ("highest", "us"),
            ("of the bare loop", "x"),
            ("time", "s"),
            ("connected per s", ""),
            ("datagrams to the LNS", ""),
            ("from it", ""),
            ("answers of RADIUS", ""),
            ("retransmissions", ""),
            ("dropped", ""),
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
            .find(|other| other.kind.is_none() && other.subscribers == waves.subscribers);
        let floor = bare
            .and_then(Waves::median)
            .filter(|_| waves.kind.is_some());
        let up = f64::from(run.wave.up.max(1));
        let mut cells = vec![name(waves), u64::from(waves.subscribers).into()];
        cells.extend([
            u64::from(run.complete).into(),
            Cell::num(run.cpu_us, 2),
            Cell::num(low, 2),
            Cell::num(high, 2),
            floor.map_or(Cell::Missing, |bare| {
                Cell::num(run.cpu_us / bare.cpu_us.max(1e-9), 2)
            }),
            Cell::num(run.wave.seconds, 3),
            Cell::num(f64::from(run.wave.up) / run.wave.seconds.max(1e-9), 0),
            Cell::num(run.wave.sent.0 as f64 / up, 2),
            Cell::num(run.wave.received.0 as f64 / up, 2),
            Cell::num(run.asked as f64 / up, 2),
            run.wave.retransmissions.into(),
            run.drops.into(),
            Cell::num(run.load_us, 2),
            run.others_percent
                .map_or(Cell::Missing, |percent| Cell::num(percent, 1)),
        ]);
        add(&mut table, waves, cells);
    }
    table
}

fn memory(all: &[Waves]) -> Table {
    let mut table = Table::new(
        "Memory, with its tunnel and session",
        &[
            ("program", ""),
            ("subscribers", ""),
            ("each", "bytes"),
            ("one more", "bytes"),
            ("process before the first", "bytes"),
        ],
    );
    for waves in all.iter().filter(|waves| waves.kind.is_some()) {
        let Some(run) = waves.median() else { continue };
        let smaller = all
            .iter()
            .rev()
            .find(|other| other.kind == waves.kind && other.subscribers < waves.subscribers);
        let more = smaller.and_then(|smaller| {
            let gained = |waves: &Waves| {
                let each = waves.median()?.memory_bytes;
                Some(each * f64::from(waves.subscribers))
            };
            let between = f64::from(waves.subscribers - smaller.subscribers);
            Some((gained(waves)? - gained(smaller)?) / between)
        });
        table.row([
            name(waves),
            u64::from(waves.subscribers).into(),
            Cell::num(run.memory_bytes, 0),
            more.map_or(Cell::Missing, |bytes| Cell::num(bytes, 0)),
            run.empty_bytes.into(),
        ]);
    }
    table
}

/// The LNS's own counters, by name.
fn work(
    all: &[Waves],
    title: &str,
    unit: &str,
    of: impl Fn(&crate::harness::server::LoopCounters) -> &Vec<(String, f64)>,
) -> Table {
    let mut names: Vec<String> = Vec::new();
    for run in all.iter().filter_map(Waves::median) {
        for (name, value) in of(&run.accounts) {
            if *value >= 0.000_5 && !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    let mut columns = vec![("program", ""), ("subscribers", "")];
    columns.extend(names.iter().map(|name| (name.as_str(), unit)));
    columns.push(("all", unit));
    let mut table = Table::new(title, &columns);
    for waves in all {
        let Some(run) = waves.median() else { continue };
        let counted = of(&run.accounts);
        if counted.is_empty() {
            continue;
        }
        let mut cells = vec![name(waves), u64::from(waves.subscribers).into()];
        cells.extend(names.iter().map(|name| {
            let found = counted.iter().find(|(other, _)| other == name);
            Cell::num(found.map_or(0.0, |(_, value)| *value), 3)
        }));
        cells.push(Cell::num(counted.iter().map(|(_, value)| value).sum(), 3));
        add(&mut table, waves, cells);
    }
    table
}
