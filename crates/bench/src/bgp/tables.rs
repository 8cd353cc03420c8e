//! The tables of the BGP report.

use lab::report::{Cell, Table};

use super::daemons::BgpProgram;
use super::load::Seen;
use super::mesh::Member;
use super::relay::Passed;
use super::{Results, goals};

/// All tables that have rows, the goals first.
pub(super) fn all(results: &Results) -> Vec<Table> {
    let tables = [
        goals::table(results),
        kept(results),
        risen(results),
        passed(results),
        meshed(results),
        in_memory(results),
        hijacked(results),
    ];
    tables
        .into_iter()
        .filter(|table| !table.rows.is_empty())
        .collect()
}

fn add(table: &mut Table, program: &BgpProgram, cells: Vec<Cell>) {
    if matches!(program, BgpProgram::Bare(_)) {
        table.floor(cells);
    } else {
        table.row(cells);
    }
}

/// Received NOTIFICATIONs as text.
fn notifications(seen: &Seen) -> Cell {
    let all = seen.notifications.iter();
    let words: Vec<String> = all
        .map(|((code, subcode), count)| format!("{count} of {code}/{subcode}"))
        .collect();
    if words.is_empty() {
        Cell::Missing
    } else {
        words.join(", ").into()
    }
}

fn percent(value: Option<f64>) -> Cell {
    value.map_or(Cell::Missing, |percent| Cell::num(percent, 1))
}

fn kept(results: &Results) -> Table {
    let mut table = Table::new(
        "Passive peers, KEEPALIVEs each second, hold time 3 s",
        &[
            ("program", ""),
            ("peers", ""),
            ("up at the end", ""),
            ("lost", ""),
            ("notifications", ""),
            ("CPU of a core", "%"),
            ("CPU per peer and second", "us"),
            ("wake-ups per s", ""),
            ("memory per peer", "bytes"),
            ("process before the first", "bytes"),
            ("KEEPALIVEs to a peer per s", ""),
            ("load's CPU", "%"),
            ("load late by at most", "ms"),
            ("others' share of the cores", "%"),
        ],
    );
    for kept in &results.kept {
        let cells = vec![
            kept.program.to_string().into(),
            u64::from(kept.peers).into(),
            u64::from(kept.up).into(),
            u64::from(kept.seen.lost).into(),
            notifications(&kept.seen),
            Cell::num(kept.cpu_percent, 2),
            Cell::num(kept.each_us, 2),
            Cell::num(kept.waits, 0),
            Cell::num(kept.memory_bytes, 0),
            kept.empty_bytes.into(),
            Cell::num(kept.keepalives, 2),
            Cell::num(kept.load_percent, 1),
            Cell::num(kept.seen.late_max.as_secs_f64() * 1e3, 1),
            percent(kept.others_percent),
        ];
        add(&mut table, &kept.program, cells);
    }
    table
}

fn risen(results: &Results) -> Table {
    let mut table = Table::new(
        "Peers at once",
        &[
            ("program", ""),
            ("peers", ""),
            ("up", ""),
            ("failed", ""),
            ("lost", ""),
            ("to the last one", "s"),
            ("per s", ""),
            ("CPU per peer", "us"),
            ("others' share of the cores", "%"),
        ],
    );
    for risen in &results.risen {
        let cells = vec![
            risen.program.to_string().into(),
            u64::from(risen.peers).into(),
            u64::from(risen.up).into(),
            u64::from(risen.seen.failed).into(),
            u64::from(risen.seen.lost).into(),
            Cell::num(risen.seconds, 3),
            Cell::num(f64::from(risen.up) / risen.seconds.max(1e-9), 0),
            Cell::num(risen.cpu_us, 1),
            percent(risen.others_percent),
        ];
        add(&mut table, &risen.program, cells);
    }
    table
}

fn passed(results: &Results) -> Table {
    let mut table = Table::new(
        "A table from feeder to sink, then withdrawn",
        &[
            ("program", ""),
            ("prefixes", ""),
            ("sets", ""),
            ("arrived", ""),
            ("to the last one", "s"),
            ("CPU", "s"),
            ("CPU per prefix", "ns"),
            ("UPDATEs to the sink", ""),
            ("withdrawn", ""),
            ("to the last one gone", "s"),
            ("CPU of that", "s"),
            ("told again", ""),
            ("never sent", ""),
            ("most memory", "bytes"),
            ("process before", "bytes"),
            ("others' share of the cores", "%"),
        ],
    );
    for passed in &results.passed {
        let was_withdrawn = passed.arrived == passed.prefixes;
        let withdrawn = |cell: Cell| if was_withdrawn { cell } else { Cell::Missing };
        let cells = vec![
            passed.program.to_string().into(),
            u64::from(passed.prefixes).into(),
            u64::from(passed.sets).into(),
            u64::from(passed.arrived).into(),
            Cell::num(passed.announce.seconds, 3),
            Cell::num(passed.announce.cpu_s, 3),
            Cell::num(each_ns(passed), 0),
            passed.announce.updates.into(),
            withdrawn(u64::from(passed.left).into()),
            withdrawn(Cell::num(passed.withdraw.seconds, 3)),
            withdrawn(Cell::num(passed.withdraw.cpu_s, 3)),
            passed.again.into(),
            passed.strange.into(),
            passed.peak_bytes.into(),
            passed.empty_bytes.into(),
            percent(passed.others_percent),
        ];
        add(&mut table, &passed.program, cells);
    }
    table
}

fn meshed(results: &Results) -> Table {
    let mut table = Table::new(
        "Full mesh over TCP, KEEPALIVEs each second, hold time 3 s",
        &[
            ("program", ""),
            ("routers", ""),
            ("endpoints", ""),
            ("up at the end", ""),
            ("lost", ""),
            ("connections up after", "s"),
            ("CPU of a core", "%"),
            ("CPU per endpoint and second", "us"),
            ("wake-ups of a process per s", ""),
            ("memory", "MB"),
            ("others' share of the cores", "%"),
        ],
    );
    for meshed in &results.meshed {
        let cells = vec![
            meshed.member.to_string().into(),
            u64::from(meshed.routers).into(),
            meshed.endpoints.into(),
            meshed.up.into(),
            meshed.lost.into(),
            Cell::num(meshed.up_s, 2),
            Cell::num(meshed.cpu_percent, 1),
            Cell::num(meshed.each_us, 2),
            Cell::num(meshed.waits, 0),
            Cell::num(meshed.memory_bytes as f64 / 1e6, 1),
            percent(meshed.others_percent),
        ];
        if meshed.member == Member::Bare {
            table.floor(cells);
        } else {
            table.row(cells);
        }
    }
    table
}

fn in_memory(results: &Results) -> Table {
    let mut table = Table::new(
        "Full mesh in memory, KEEPALIVEs each second, hold time 3 s",
        &[
            ("routers", ""),
            ("endpoints", ""),
            ("up at the end", ""),
            ("lost", ""),
            ("all up after", "s"),
            ("virtual over real time", "x"),
            ("CPU per endpoint and second", "ns"),
            ("CPU of a core in real time", "%"),
            ("memory per endpoint", "bytes"),
            ("others' share of the cores", "%"),
        ],
    );
    for found in &results.in_memory {
        table.row([
            u64::from(found.routers).into(),
            found.mesh.endpoints.into(),
            found.mesh.up.into(),
            found.mesh.lost.into(),
            Cell::num(found.mesh.up_s, 2),
            Cell::num(found.times_real(), 1),
            Cell::num(found.each_ns(), 1),
            Cell::num(found.held_percent(), 2),
            Cell::num(found.each_bytes(), 0),
            percent(found.others_percent),
        ]);
    }
    table
}

fn hijacked(results: &Results) -> Table {
    let mut table = Table::new(
        "A hijack over a graph of autonomous systems, in virtual time",
        &[
            ("systems", ""),
            ("links", ""),
            ("wall time", "s"),
            ("of it to build the graph", "s"),
            ("CPU", "s"),
            ("virtual time", "s"),
            ("UPDATEs", ""),
            ("converged after", "s"),
            ("believe the hijacker", "%"),
            ("most memory", "MB"),
            ("others' share of the cores", "%"),
        ],
    );
    for found in &results.hijacked {
        let hijack = &found.hijack;
        table.row([
            u64::from(found.routers).into(),
            hijack.links.into(),
            Cell::num(hijack.wall_s, 2),
            Cell::num(hijack.built_s, 2),
            Cell::num(hijack.cpu_s, 2),
            Cell::num(hijack.inside_s, 1),
            hijack.updates.into(),
            hijack
                .convergence_s
                .map_or(Cell::Missing, |s| Cell::num(s, 3)),
            Cell::num(hijack.deceived * 100.0, 1),
            Cell::num(hijack.peak_bytes as f64 / 1e6, 1),
            percent(found.others_percent),
        ]);
    }
    table
}

/// Processor time for each prefix that arrived.
fn each_ns(passed: &Passed) -> f64 {
    passed.announce.cpu_s * 1e9 / f64::from(passed.arrived.max(1))
}
