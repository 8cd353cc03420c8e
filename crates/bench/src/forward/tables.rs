//! The tables of the forwarding report.

use lab::report::{Cell, Table};

use super::bulk::Bulk;
use super::ways::{Flows, Measured, words};
use crate::harness::server::LnsProgram;

/// Goal for a packet in a run of one flow, in nanoseconds.
const RUN_GOAL_NS: f64 = 1_500.0;

/// Goal for a packet of mixed flows, relative to the bare loop.
const MIXED_GOAL: f64 = 1.25;

/// Goal for bulk TCP, in Gbit per second of the LNS's processor time.
const BULK_GOAL_GBIT: f64 = 5.0;

/// All tables, the goals first.
pub(super) fn all(measured: &[Measured], bulk: &[Bulk]) -> Vec<Table> {
    vec![goals(measured), costs(measured), tcp(bulk)]
}

fn tcp(bulk: &[Bulk]) -> Table {
    let mut table = Table::new(
        "TCP in bulk through one session",
        &[
            ("way", ""),
            ("per CPU-second of the LNS", "Gbit"),
            ("to reach", "Gbit"),
            ("reached", ""),
            ("per second", "Gbit"),
            ("of a core", "%"),
            ("others' share of the cores", "%"),
        ],
    );
    for one in bulk {
        let gbit = one.bits / 1e9;
        let each = gbit / (one.cpu_us / 1e6).max(1e-9);
        let seconds = one.seconds.max(1e-9);
        table.row([
            words(one.way).into(),
            Cell::num(each, 2),
            Cell::num(BULK_GOAL_GBIT, 0),
            if each >= BULK_GOAL_GBIT { "yes" } else { "no" }.into(),
            Cell::num(gbit / seconds, 2),
            Cell::num(one.cpu_us / 1e4 / seconds, 0),
            one.others_percent
                .map_or(Cell::Missing, |percent| Cell::num(percent, 1)),
        ]);
    }
    table
}

/// The bare loop under the same load.
fn floor<'a>(all: &'a [Measured], of: &Measured) -> Option<&'a Measured> {
    let same = |m: &&Measured| {
        m.program == LnsProgram::Bare
            && m.way == of.way
            && m.flows == of.flows
            && m.offered == of.offered
    };
    all.iter().find(same)
}

fn goals(all: &[Measured]) -> Table {
    let mut table = Table::new(
        "To reach",
        &[
            ("way", ""),
            ("packets", ""),
            ("offered per s", ""),
            ("CPU each", "ns"),
            ("to reach", "ns"),
            ("reached", ""),
        ],
    );
    for one in all.iter().filter(|one| one.program == LnsProgram::Headend) {
        let goal = match one.flows {
            Flows::One => Some(RUN_GOAL_NS),
            Flows::Mixed => floor(all, one).map(|bare| bare.ns() * MIXED_GOAL),
        };
        let Some(goal) = goal else { continue };
        let reached = one.ns() <= goal;
        table.row([
            words(one.way).into(),
            one.flows.name().into(),
            one.offered.into(),
            Cell::num(one.ns(), 0),
            Cell::num(goal, 0),
            if reached { "yes" } else { "no" }.into(),
        ]);
    }
    table
}

fn costs(all: &[Measured]) -> Table {
    let mut table = Table::new(
        "Packets of 100 octets",
        &[
            ("program", ""),
            ("way", ""),
            ("packets", ""),
            ("offered per s", ""),
            ("sent per s", ""),
            ("passed per s", ""),
            ("lost", "%"),
            ("CPU each", "ns"),
            ("of the bare loop", "x"),
            ("of a core", "%"),
            ("waits per s", ""),
            ("others' share of the cores", "%"),
        ],
    );
    for one in all {
        let seconds = one.sent.seconds.max(1e-9);
        let sent = one.sent.packets.max(1) as f64;
        let is_bare = one.program == LnsProgram::Bare;
        let bare = floor(all, one).filter(|_| !is_bare);
        let cells = [
            Cell::from(one.program.name()),
            words(one.way).into(),
            one.flows.name().into(),
            one.offered.into(),
            Cell::num(sent / seconds, 0),
            Cell::num(one.passed as f64 / seconds, 0),
            Cell::num(one.lost_percent(), 2),
            Cell::num(one.ns(), 0),
            bare.map_or(Cell::Missing, |bare| {
                Cell::num(one.ns() / bare.ns().max(1e-9), 2)
            }),
            Cell::num(one.cpu_us / 1e4 / seconds, 0),
            Cell::num(one.waits / seconds, 0),
            one.others_percent
                .map_or(Cell::Missing, |percent| Cell::num(percent, 1)),
        ];
        if is_bare {
            table.floor(cells);
        } else {
            table.row(cells);
        }
    }
    table
}
