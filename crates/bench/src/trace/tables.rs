//! The tables of the analyser report.

use lab::plot::number::grouped;
use lab::report::{Cell, Table};

use super::course::{Measured, ONE_THREAD, Plan, Results};
use super::goals;
use super::programs::{Peer, TraceProgram};

/// Largest exponent used to extrapolate: one pass over all segments for each packet. A larger
/// measured exponent is caused by data that no longer fit into the caches.
const GROWTH_MAX: f64 = 2.0;

/// All tables, the goals first.
pub(super) fn all(plan: &Plan, results: &Results) -> Vec<Table> {
    let mut tables = vec![
        goals::table(plan, results),
        sizes(plan, results),
        asked(plan, results),
    ];
    if !plan.peers.is_empty() {
        tables.push(against(plan, results));
    }
    tables
}

fn millions(value: f64) -> Cell {
    Cell::num(value / 1e6, 2)
}

fn exponent(value: Option<f64>) -> Cell {
    value.map(|value| Cell::num(value, 2)).into()
}

/// Cost of packets at each size, beyond the bare loops.
fn sizes(plan: &Plan, results: &Results) -> Table {
    let mut table = Table::new(
        "Time and memory by size, one thread",
        &[
            ("capture", ""),
            ("packets", ""),
            ("size", "octets"),
            ("program", ""),
            ("CPU", "s"),
            ("lowest", "s"),
            ("highest", "s"),
            ("packets per s of CPU", "million"),
            ("CPU per packet", "ns"),
            ("growth", ""),
            ("time", "s"),
            ("memory", "MB"),
            ("memory of a connection", "octets"),
        ],
    );
    for kind in &plan.kinds {
        for program in ONE_THREAD {
            let growth = results.exponent(program, kind);
            for one in results.of(program, kind) {
                let costs = || one.runs.iter().map(|run| run.cpu_s);
                let cells = [
                    one.kind.into(),
                    one.packets.into(),
                    one.bytes.into(),
                    program.name().into(),
                    Cell::num(one.cpu_s(), 3),
                    Cell::num(costs().fold(f64::INFINITY, f64::min), 3),
                    Cell::num(costs().fold(0.0, f64::max), 3),
                    millions(one.packets_per_s()),
                    Cell::num(1e9 / one.packets_per_s(), 1),
                    exponent(growth),
                    Cell::num(one.elapsed_s(), 3),
                    Cell::num(one.median().resident_bytes as f64 / 1e6, 1),
                    goals::held_bytes(results, one)
                        .filter(|_| program == TraceProgram::Quiet)
                        .map(|bytes| Cell::num(bytes, 0))
                        .into(),
                ];
                if program.is_floor() {
                    table.floor(cells);
                } else {
                    table.row(cells);
                }
            }
        }
    }
    table
}

/// The extra cost of reports and graphs, and the gain from threads.
fn asked(plan: &Plan, results: &Results) -> Table {
    let mut table = Table::new(
        "Reports, graphs and threads",
        &[
            ("capture", ""),
            ("packets", ""),
            ("program", ""),
            ("CPU", "s"),
            ("CPU of -q's", "x"),
            ("time", "s"),
            ("faster than -q", "x"),
            ("packets per s of time", "million"),
            ("memory", "MB"),
        ],
    );
    let mut programs = vec![
        TraceProgram::Quiet,
        TraceProgram::Brief,
        TraceProgram::Long,
        TraceProgram::Sequences,
        TraceProgram::Graphs,
    ];
    programs.extend(plan.threads.iter().map(|n| TraceProgram::Threads(*n)));
    for kind in &plan.kinds {
        let Some(quiet) = results.at(TraceProgram::Quiet, kind, plan.factor) else {
            continue;
        };
        let measured = programs
            .iter()
            .filter_map(|program| results.at(*program, kind, plan.factor));
        for one in measured {
            let elapsed_s = one.elapsed_s().max(1e-9);
            table.row([
                one.kind.into(),
                one.packets.into(),
                one.program.name().into(),
                Cell::num(one.cpu_s(), 3),
                Cell::num(one.cpu_s() / quiet.cpu_s().max(1e-9), 2),
                Cell::num(elapsed_s, 3),
                Cell::num(quiet.elapsed_s() / elapsed_s, 2),
                millions(one.packets as f64 / elapsed_s),
                Cell::num(one.median().resident_bytes as f64 / 1e6, 1),
            ]);
        }
    }
    table
}

/// Another analyser at the size at which ours is compared.
pub(super) struct Reached<'a> {
    /// The largest size that it finished.
    pub(super) largest: &'a Measured,
    pub(super) exponent: Option<f64>,
    /// Processor time for as many packets as ours read.
    pub(super) cpu_s: Option<f64>,
    pub(super) is_measured: bool,
}

/// Processor time of a peer for as many packets as `ours`, measured or extrapolated.
pub(super) fn reached<'a>(
    results: &'a Results,
    peer: Peer,
    ours: &Measured,
) -> Option<Reached<'a>> {
    let program = TraceProgram::Peer(peer);
    let largest = results
        .of(program, ours.kind)
        .max_by(|a, b| a.factor.total_cmp(&b.factor))?;
    let is_measured = largest.factor == ours.factor;
    let exponent = results.exponent(program, ours.kind);
    let reach = ours.packets as f64 / largest.packets as f64;
    let cpu_s = match exponent {
        _ if is_measured => Some(largest.cpu_s()),
        Some(exponent) => Some(largest.cpu_s() * reach.powf(exponent.clamp(1.0, GROWTH_MAX))),
        None => None,
    };
    Some(Reached {
        largest,
        exponent,
        cpu_s,
        is_measured,
    })
}

fn against(plan: &Plan, results: &Results) -> Table {
    let mut table = Table::new(
        "Beside other analysers",
        &[
            ("capture", ""),
            ("packets", ""),
            ("program", ""),
            ("CPU", "s"),
            ("which is", ""),
            ("packets per s of CPU", "million"),
            ("of ours", "x"),
            ("growth", ""),
            ("memory", "MB"),
            ("memory of ours", "x"),
        ],
    );
    for kind in &plan.kinds {
        let Some(ours) = results.at(TraceProgram::Brief, kind, plan.factor) else {
            continue;
        };
        let memory = ours.median().resident_bytes as f64;
        table.row([
            (*kind).into(),
            ours.packets.into(),
            ours.program.name().into(),
            Cell::num(ours.cpu_s(), 3),
            "measured".into(),
            millions(ours.packets_per_s()),
            Cell::num(1.0, 1),
            exponent(results.exponent(TraceProgram::Quiet, kind)),
            Cell::num(memory / 1e6, 1),
            Cell::num(1.0, 1),
        ]);
        for peer in &plan.peers {
            add_peer(&mut table, results, *peer, ours);
        }
    }
    table
}

/// Adds the row of another analyser on the capture of `ours`.
fn add_peer(table: &mut Table, results: &Results, peer: Peer, ours: &Measured) {
    let packets = ours.packets;
    let Some(found) = reached(results, peer, ours) else {
        table.row([ours.kind.into(), packets.into(), peer.name().into()]);
        return;
    };
    let standing = match found.is_measured {
        true => "measured".to_owned(),
        false => format!(
            "~ from {} packets, {:.3} s",
            grouped(found.largest.packets as f64, 0),
            found.largest.cpu_s()
        ),
    };
    let resident = found.largest.median().resident_bytes as f64;
    // Memory is not extrapolated.
    let memory = ours.median().resident_bytes as f64;
    let memory_ratio = found.is_measured.then(|| Cell::num(resident / memory, 1));
    let cpu = |cell: &dyn Fn(f64) -> Cell| Cell::from(found.cpu_s.map(cell));
    table.row([
        ours.kind.into(),
        packets.into(),
        peer.name().into(),
        cpu(&|s| Cell::num(s, 3)),
        standing.into(),
        cpu(&|s| millions(packets as f64 / s.max(1e-9))),
        cpu(&|s| Cell::num(s / ours.cpu_s().max(1e-9), 1)),
        exponent(found.exponent),
        Cell::num(resident / 1e6, 1),
        memory_ratio.into(),
    ]);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::child::Used;
    use super::*;

    const KIND: &str = "oneway-loss";

    fn measured(program: TraceProgram, factor: f64, cpu_s: f64) -> Measured {
        Measured {
            program,
            kind: KIND,
            factor,
            packets: (factor * 1e6) as u64,
            bytes: 1,
            connections: None,
            runs: vec![Used {
                seconds: cpu_s,
                cpu_s,
                resident_bytes: 1_000_000,
            }],
        }
    }

    fn results(all: Vec<Measured>) -> (Plan, Results) {
        let plan = Plan {
            kinds: vec![KIND],
            factor: 1.0,
            rounds: 1,
            threads: Vec::new(),
            peers: vec![Peer::Tcptrace],
            peer_limit: Duration::from_secs(1),
        };
        let results = Results {
            all,
            ..Results::default()
        };
        (plan, results)
    }

    #[test]
    fn a_peer_that_did_not_get_there_is_extrapolated_with_its_growth_and_marked() {
        let tcptrace = TraceProgram::Peer(Peer::Tcptrace);
        let mut all = vec![measured(TraceProgram::Brief, 1.0, 0.5)];
        all.extend([0.125, 0.25, 0.5].map(|n| measured(tcptrace, n, 20.0 * n * n * n)));
        let (plan, results) = results(all);
        let rows = against(&plan, &results).rows;
        let cells: Vec<String> = rows[1].cells.iter().map(Cell::shown).collect();
        let expected = [
            KIND,
            "1,000,000",
            "tcptrace",
            "10.000",
            "~ from 500,000 packets, 2.500 s",
            "0.10",
            "20.0",
            "3.00",
            "1.0",
            "-",
        ];
        assert_eq!(cells, expected);
    }

    #[test]
    fn a_peer_that_got_there_is_measured_and_one_that_never_ended_has_no_figures() {
        let all = vec![
            measured(TraceProgram::Brief, 1.0, 0.5),
            measured(TraceProgram::Peer(Peer::Tcptrace), 1.0, 2.0),
        ];
        let (mut plan, results) = results(all);
        plan.peers.push(Peer::Tshark);
        let rows = against(&plan, &results).rows;
        assert_eq!(rows[1].cells[4], Cell::from("measured"));
        assert_eq!(rows[1].cells[6].shown(), "4.0");
        assert_eq!(rows[2].cells.len(), 3);
    }

    #[test]
    fn goals_are_those_of_the_size_they_are_meant_for() {
        let all = [1.0, 2.0, 4.0].map(|n| measured(TraceProgram::Quiet, n, 0.39 * n));
        let (plan, results) = results(all.into());
        let rows = goals::table(&plan, &results).rows;
        let words: Vec<String> = rows.iter().map(|row| row.cells[4].shown()).collect();
        assert_eq!(words, ["0.390 s", "1.00"]);
        assert!(rows.iter().all(|row| row.cells[5] == Cell::from("yes")));
    }
}
