//! The tables of the report.

use lab::report::{Cell, Table};

use super::ways::Measured;
use super::{Arrival, Way};
use crate::harness::costs::{median_by, range_by};
use crate::harness::server::LnsProgram;

/// Goal for a packet, relative to the bare loop.
const GOAL: f64 = 1.2;

/// Both protocols as text.
pub(super) fn name(arrival: Arrival) -> &'static str {
    match arrival {
        Arrival::Pppoe => "PPPoE to L2TP",
        Arrival::L2tp => "L2TP to L2TP",
    }
}

fn words(way: Way) -> &'static str {
    match way {
        Way::Up => "to the LNS",
        Way::Down => "from the LNS",
    }
}

/// The rounds of one program in one case.
struct Rounds {
    runs: Vec<Measured>,
}

impl Rounds {
    fn first(&self) -> &Measured {
        &self.runs[0]
    }

    /// The round of median cost.
    fn median(&self) -> &Measured {
        median_by(&self.runs, Measured::ns).unwrap_or(self.first())
    }

    fn is_of(&self, one: &Measured) -> bool {
        let own = self.first();
        own.program == one.program && self.is_case(one)
    }

    fn is_case(&self, one: &Measured) -> bool {
        let own = self.first();
        (own.arrival, own.way, own.sessions) == (one.arrival, one.way, one.sessions)
    }
}

fn rounds(all: &[Measured]) -> Vec<Rounds> {
    let mut grouped: Vec<Rounds> = Vec::new();
    for &one in all {
        match grouped.iter_mut().find(|group| group.is_of(&one)) {
            Some(group) => group.runs.push(one),
            None => grouped.push(Rounds { runs: vec![one] }),
        }
    }
    grouped
}

/// The cost in the same case of the bare loop, in nanoseconds.
fn floor(all: &[Rounds], of: &Rounds) -> Option<f64> {
    let bare = all
        .iter()
        .find(|other| other.first().program == LnsProgram::Bare && other.is_case(of.first()))?;
    Some(bare.median().ns())
}

/// All tables, the goals first.
pub(super) fn all(measured: &[Measured]) -> Vec<Table> {
    let all = rounds(measured);
    vec![goals(&all), costs(&all)]
}

fn goals(all: &[Rounds]) -> Table {
    let mut table = Table::new(
        "To reach",
        &[
            ("session", ""),
            ("way", ""),
            ("sessions", ""),
            ("CPU each", "ns"),
            ("bare loop", "ns"),
            ("of the bare loop", "x"),
            ("to reach", "x"),
            ("reached", ""),
        ],
    );
    let ours = |group: &&Rounds| group.first().program == LnsProgram::Headend;
    for group in all.iter().filter(ours) {
        let Some(bare) = floor(all, group) else {
            continue;
        };
        let one = group.median();
        let times = one.ns() / bare.max(1e-9);
        table.row([
            Cell::from(name(one.arrival)),
            words(one.way).into(),
            u64::from(one.sessions).into(),
            Cell::num(one.ns(), 0),
            Cell::num(bare, 0),
            Cell::num(times, 2),
            Cell::num(GOAL, 1),
            if times <= GOAL { "yes" } else { "no" }.into(),
        ]);
    }
    table
}

fn costs(all: &[Rounds]) -> Table {
    let mut table = Table::new(
        "Packets of 100 octets in switched sessions",
        &[
            ("program", ""),
            ("session", ""),
            ("way", ""),
            ("sessions", ""),
            ("sent per s", ""),
            ("lost", "%"),
            ("CPU each", "ns"),
            ("lowest", "ns"),
            ("highest", "ns"),
            ("of a core", "%"),
            ("waits per s", ""),
            ("others' share of the cores", "%"),
        ],
    );
    for group in all {
        let one = group.median();
        let (low, high) = range_by(&group.runs, Measured::ns).unwrap_or_default();
        let seconds = one.sent.seconds.max(1e-9);
        let cells = [
            Cell::from(one.program.name()),
            name(one.arrival).into(),
            words(one.way).into(),
            u64::from(one.sessions).into(),
            Cell::num(one.sent.packets as f64 / seconds, 0),
            Cell::num(one.lost_percent(), 2),
            Cell::num(one.ns(), 0),
            Cell::num(low, 0),
            Cell::num(high, 0),
            Cell::num(one.cpu_us / 1e4 / seconds, 0),
            Cell::num(one.waits / seconds, 0),
            one.others_percent
                .map_or(Cell::Missing, |percent| Cell::num(percent, 1)),
        ];
        match one.program {
            LnsProgram::Bare => table.floor(cells),
            _ => table.row(cells),
        };
    }
    table
}
