//! The tables of the tunnels report.

use lab::report::{Cell, Table};

use super::Results;
use super::goals;
use super::hello::Hello;
use super::setup::{Run, SetUp, number};
use crate::harness::server::{LnsProgram, LoopCounters};

/// All tables, the goals first.
pub(super) fn all(results: &Results) -> Vec<Table> {
    let mut tables = vec![
        goals::table(results),
        set_up(&results.set_ups),
        calls(
            "System calls for a tunnel set up",
            results.set_ups.iter().filter_map(|s| {
                let run = s.median()?;
                Some((label(s.program, s), s.tunnels, &run.accounts, s.program))
            }),
        ),
        loop_time(results),
        memory(&results.set_ups),
        storm(results),
        hello(
            "HELLOs answered, L2TPv3",
            &results.answered,
            "datagrams answered",
        ),
        hello(
            "HELLOs originated, L2TPv3",
            &results.originated,
            "acknowledged",
        ),
        calls(
            "System calls for a HELLO",
            [
                ("answered", &results.answered),
                ("originated", &results.originated),
            ]
            .into_iter()
            .flat_map(|(what, all)| all.iter().map(move |h| (what, h)))
            .map(|(what, h)| {
                let label = format!("{}, {what}", h.program.name());
                (label, h.tunnels, &h.accounts, h.program)
            }),
        ),
        idle(results),
    ];
    if !results.against.is_empty() {
        tables.extend([against(results), against_hello(results)]);
    }
    tables
}

fn label(program: LnsProgram, set_up: &SetUp) -> String {
    format!("{}, L2TPv{}", program.name(), number(set_up.version))
}

fn percent(value: Option<f64>) -> Cell {
    value.map_or(Cell::Missing, |value| Cell::num(value, 1))
}

/// A ratio, if there is a base to compare with.
fn ratio(value: f64, base: Option<f64>) -> Cell {
    match base.filter(|base| *base > 0.0) {
        Some(base) => Cell::num(value / base, 2),
        None => Cell::Missing,
    }
}

/// Median cost per tunnel of `program`, for the same version and size.
pub(super) fn median_us(all: &[SetUp], program: LnsProgram, like: &SetUp) -> Option<f64> {
    let same =
        |s: &&SetUp| s.program == program && s.version == like.version && s.tunnels == like.tunnels;
    all.iter().find(same)?.median().map(|run| run.cpu_us)
}

fn set_up(all: &[SetUp]) -> Table {
    let mut table = Table::new(
        "Tunnels set up, 64 at a time from distinct addresses",
        &[
            ("program", ""),
            ("tunnels", ""),
            ("up", ""),
            ("CPU per tunnel", "us"),
            ("lowest", "us"),
            ("highest", "us"),
            ("of the bare loop", "x"),
            ("time", "s"),
            ("tunnels per s", ""),
            ("peer's retransmissions", ""),
            ("dropped", ""),
            ("load's CPU per tunnel", "us"),
            ("others' share of the cores", "%"),
        ],
    );
    for set_up in all {
        let (Some(run), Some((low, high))) = (set_up.median(), set_up.range_us()) else {
            continue;
        };
        let is_bare = set_up.program == LnsProgram::Bare;
        let floor = median_us(all, LnsProgram::Bare, set_up).filter(|_| !is_bare);
        let mut cells = vec![
            Cell::from(label(set_up.program, set_up)),
            count(set_up.tunnels),
        ];
        cells.extend([
            count(run.wave.up),
            Cell::num(run.cpu_us, 2),
            Cell::num(low, 2),
            Cell::num(high, 2),
            ratio(run.cpu_us, floor),
            Cell::num(run.wave.seconds, 3),
            Cell::num(f64::from(run.wave.up) / run.wave.seconds.max(1e-9), 0),
            run.wave.retransmissions.into(),
            run.drops.into(),
            Cell::num(run.load_us, 2),
            percent(run.others_percent),
        ]);
        add(&mut table, is_bare, cells);
    }
    table
}

fn count(n: u32) -> Cell {
    u64::from(n).into()
}

fn add(table: &mut Table, is_floor: bool, cells: Vec<Cell>) {
    if is_floor {
        table.floor(cells);
    } else {
        table.row(cells);
    }
}

/// System calls by name; `rows` are a label, a size, the counts and the subject.
fn calls<'a>(
    title: &str,
    rows: impl Iterator<Item = (String, u32, &'a LoopCounters, LnsProgram)> + Clone,
) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for (_, _, accounts, _) in rows.clone() {
        let used = accounts.calls.iter().filter(|(_, n)| *n >= 0.000_5);
        for (name, _) in used {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    names.sort_unstable();
    let mut columns = vec![("program", ""), ("tunnels", "")];
    columns.extend(names.iter().map(|name| (*name, "")));
    columns.push(("all", ""));
    let mut table = Table::new(title, &columns);
    for (label, tunnels, accounts, program) in rows {
        let mut cells = vec![Cell::from(label), count(tunnels)];
        cells.extend(names.iter().map(|name| {
            let found = accounts.calls.iter().find(|(other, _)| other == name);
            Cell::num(found.map_or(0.0, |(_, n)| *n), 3)
        }));
        let total = accounts.calls.iter().map(|(_, n)| n).sum();
        cells.push(Cell::num(total, 3));
        add(&mut table, program == LnsProgram::Bare, cells);
    }
    table
}

/// Our loop's time by kind of work.
fn loop_time(results: &Results) -> Table {
    let ours = || {
        let ours = results
            .set_ups
            .iter()
            .filter(|s| s.program == LnsProgram::Headend);
        ours.filter_map(|s| Some((s, s.median()?)))
    };
    let mut names: Vec<&str> = Vec::new();
    for (_, run) in ours() {
        for (name, _) in &run.accounts.handlers_us {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let mut columns = vec![("program", ""), ("tunnels", "")];
    columns.extend(names.iter().map(|name| (*name, "us")));
    let mut table = Table::new(
        "Where the LNS's loop spent its time, for a tunnel set up",
        &columns,
    );
    for (set_up, run) in ours() {
        let mut cells = vec![
            Cell::from(label(set_up.program, set_up)),
            count(set_up.tunnels),
        ];
        cells.extend(names.iter().map(|name| {
            let all = run.accounts.handlers_us.iter();
            let found = all.into_iter().find(|(other, _)| other == name);
            found.map_or(Cell::Missing, |(_, us)| Cell::num(*us, 2))
        }));
        table.row(cells);
    }
    table
}

/// The run with the least memory shows best what tunnels need; in the others the receive batch was
/// fuller.
fn lightest(set_up: &SetUp) -> Option<&Run> {
    let runs = set_up.runs.iter();
    runs.min_by(|a, b| a.memory_bytes.total_cmp(&b.memory_bytes))
}

fn memory(all: &[SetUp]) -> Table {
    let mut table = Table::new(
        "Memory of an established tunnel",
        &[
            ("program", ""),
            ("tunnels", ""),
            ("for a tunnel", "bytes"),
            ("for one more", "bytes"),
            ("with none", "kB"),
        ],
    );
    let mut before: Option<(&SetUp, f64)> = None;
    let mut ours: Vec<&SetUp> = all
        .iter()
        .filter(|s| s.program == LnsProgram::Headend)
        .collect();
    ours.sort_by_key(|s| (number(s.version), s.tunnels));
    for set_up in ours {
        let Some(run) = lightest(set_up) else {
            continue;
        };
        let total = run.memory_bytes * f64::from(set_up.tunnels);
        let previous = before.filter(|(other, _)| other.version == set_up.version);
        let more = previous
            .map(|(other, gained)| (total - gained) / f64::from(set_up.tunnels - other.tunnels));
        before = Some((set_up, total));
        table.row([
            Cell::from(label(set_up.program, set_up)),
            count(set_up.tunnels),
            Cell::num(run.memory_bytes, 0),
            more.map_or(Cell::Missing, |more| Cell::num(more, 0)),
            Cell::num(run.empty_bytes as f64 / 1e3, 0),
        ]);
    }
    table
}

fn storm(results: &Results) -> Table {
    let mut table = Table::new(
        "A storm: every SCCRQ at once, L2TPv3",
        &[
            ("SCCRQs", ""),
            ("receive buffer asked for", "bytes"),
            ("what the LNS says it got", ""),
            ("up", ""),
            ("failed", ""),
            ("time", "s"),
            ("peer's retransmissions", ""),
            ("dropped by the kernel", ""),
            ("CPU per tunnel", "us"),
            ("others' share of the cores", "%"),
        ],
    );
    for storm in &results.storms {
        let run = &storm.run;
        let asked = storm.asked_bytes.map_or("the default".into(), Cell::from);
        table.row([
            count(storm.tunnels),
            asked,
            Cell::from(storm.buffer.clone()),
            count(run.wave.up),
            count(run.wave.failed),
            Cell::num(run.wave.seconds, 3),
            run.wave.retransmissions.into(),
            run.drops.into(),
            Cell::num(run.cpu_us, 2),
            percent(run.others_percent),
        ]);
    }
    table
}

fn hello(title: &str, all: &[Hello], answered: &str) -> Table {
    let mut table = Table::new(
        title,
        &[
            ("program", ""),
            ("tunnels", ""),
            ("sent", ""),
            (answered, ""),
            ("per s", ""),
            ("of a core", "%"),
            ("CPU each", "us"),
            ("of the bare loop", "x"),
            ("wake-ups per s", ""),
            ("others' share of the cores", "%"),
        ],
    );
    for hello in all {
        let is_bare = hello.program == LnsProgram::Bare;
        let floor = all
            .iter()
            .find(|other| other.program == LnsProgram::Bare && other.tunnels == hello.tunnels)
            .map(Hello::each_us)
            .filter(|_| !is_bare);
        add(
            &mut table,
            is_bare,
            vec![
                Cell::from(hello.program.name()),
                count(hello.tunnels),
                hello.sent.into(),
                hello.answered.into(),
                Cell::num(hello.sent as f64 / hello.spent.seconds.max(1e-9), 0),
                Cell::num(hello.spent.percent(), 2),
                Cell::num(hello.each_us(), 2),
                ratio(hello.each_us(), floor),
                Cell::num(hello.spent.waits / hello.spent.seconds.max(1e-9), 0),
                percent(hello.others_percent),
            ],
        );
    }
    table
}

fn idle(results: &Results) -> Table {
    let mut table = Table::new(
        "At rest: tunnels that are up, and no HELLO due",
        &[
            ("tunnels", ""),
            ("for", "s"),
            ("of a core", "%"),
            ("wake-ups per s", ""),
            ("others' share of the cores", "%"),
        ],
    );
    for idle in &results.idle {
        table.row([
            count(idle.tunnels),
            Cell::num(idle.spent.seconds, 1),
            Cell::num(idle.spent.percent(), 4),
            Cell::num(idle.spent.waits / idle.spent.seconds.max(1e-9), 2),
            percent(idle.others_percent),
        ]);
    }
    table
}

/// Sorted by size, our own results first for each.
pub(super) fn by_size<T>(all: &[T], key: impl Fn(&T) -> (u32, LnsProgram)) -> Vec<&T> {
    let mut sorted: Vec<&T> = all.iter().collect();
    sorted.sort_by_key(|row| {
        let (tunnels, program) = key(row);
        (tunnels, program != LnsProgram::Headend)
    });
    sorted
}

fn against(results: &Results) -> Table {
    let mut table = Table::new(
        "Other LNSs: tunnels set up, L2TPv2, 64 at a time",
        &[
            ("program", ""),
            ("tunnels", ""),
            ("up", ""),
            ("CPU per tunnel", "us"),
            ("of ours", "x"),
            ("time", "s"),
            ("retransmissions to it", ""),
            ("memory for a tunnel", "bytes"),
            ("of our memory", "x"),
            ("others' share of the cores", "%"),
        ],
    );
    for set_up in by_size(&results.against, |s| (s.tunnels, s.program)) {
        let Some(run) = set_up.median() else { continue };
        let ours = results
            .against
            .iter()
            .find(|s| s.program == LnsProgram::Headend && s.tunnels == set_up.tunnels)
            .filter(|_| set_up.program != LnsProgram::Headend)
            .and_then(SetUp::median);
        table.row([
            Cell::from(set_up.program.name()),
            count(set_up.tunnels),
            count(run.wave.up),
            Cell::num(run.cpu_us, 1),
            ratio(run.cpu_us, ours.map(|run| run.cpu_us)),
            Cell::num(run.wave.seconds, 3),
            run.wave.retransmissions.into(),
            Cell::num(run.memory_bytes, 0),
            ratio(run.memory_bytes, ours.map(|run| run.memory_bytes)),
            percent(run.others_percent),
        ]);
    }
    table
}

fn against_hello(results: &Results) -> Table {
    let mut table = Table::new(
        "Other LNSs: HELLOs answered, L2TPv2",
        &[
            ("program", ""),
            ("tunnels", ""),
            ("sent per s", ""),
            ("sent", ""),
            ("answered", ""),
            ("of a core", "%"),
            ("CPU each", "us"),
            ("of ours", "x"),
            ("others' share of the cores", "%"),
        ],
    );
    for hello in by_size(&results.against_hello, |h| (h.tunnels, h.program)) {
        let ours = results
            .against_hello
            .iter()
            .find(|h| h.program == LnsProgram::Headend && h.tunnels == hello.tunnels)
            .filter(|_| hello.program != LnsProgram::Headend);
        table.row([
            Cell::from(hello.program.name()),
            count(hello.tunnels),
            count(hello.rate),
            hello.sent.into(),
            hello.answered.into(),
            Cell::num(hello.spent.percent(), 2),
            Cell::num(hello.each_us(), 2),
            ratio(hello.each_us(), ours.map(Hello::each_us)),
            percent(hello.others_percent),
        ]);
    }
    table
}
