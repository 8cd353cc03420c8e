//! Forwarding between two interfaces: packets and bits a second of the engine, beside a bare loop
//! and the kernel's bridge, with and without the kernel's htb.
//!
//! | module | contents |
//! |---|---|
//! | `case` | what forwards, what it forwards, and one measurement in a process of its own |
//! | `movers` | the bare loop, the engine, the kernel's bridge |
//! | `tcp` | one TCP connection |

mod case;
mod movers;
mod tcp;

use anyhow::Result;
use lab::report::{Cell, Table};

pub(crate) use case::{PassChildArgs, run};

use super::Config;
use case::{Load, Mover, Passed, measure};

/// Goals: packets and bits a second of a core.
const REACH_PPS: f64 = 800_000.0;
const REACH_BPS: f64 = 5e9;

/// Measures every load with everything that forwards.
///
/// # Errors
/// This program cannot be started again.
pub(super) fn table(config: &Config, told: &mut dyn FnMut(String)) -> Result<Table> {
    let columns = [
        ("load", ""),
        ("forwarded by", ""),
        ("arrived", "M/s"),
        ("arrived", "Gbit/s"),
        ("lost", "%"),
        ("a packet on its core", "ns"),
        ("a packet on the sender's core", "ns"),
        ("of a core's time", "M/s"),
        ("of a core's time", "Gbit/s"),
        ("to reach", ""),
    ];
    let mut table = Table::new("Forwarding between two interfaces", &columns);
    for load in Load::ALL {
        // The cost of a packet for its sender, if nothing forwards it.
        let mut alone_ns = f64::NAN;
        for mover in Mover::ALL {
            if !mover.takes(load) {
                continue;
            }
            told(format!("{}, {}", load.name(), mover.name()));
            let names: [Cell; 2] = [load.name().into(), mover.name().into()];
            match measure(mover, load, config.span_forward) {
                Ok(passed) => {
                    if mover == Mover::Nothing {
                        alone_ns = passed.sender_ns();
                    }
                    let cells = names
                        .into_iter()
                        .chain(cells(&passed, mover, load, alone_ns));
                    if mover == Mover::Bare {
                        table.floor(cells);
                    } else {
                        table.row(cells);
                    }
                }
                Err(error) => {
                    let missing = std::iter::repeat_n(Cell::Missing, columns.len() - 3);
                    let why = format!("not measured: {error:#}").into();
                    table.row(names.into_iter().chain(missing).chain([why]));
                }
            }
        }
    }
    Ok(table)
}

fn cells(passed: &Passed, mover: Mover, load: Load, alone_ns: f64) -> Vec<Cell> {
    let is_frames = load.frame().is_some();
    let (packets, octets) = (passed.packets as f64, passed.octets as f64);
    let beside = passed.sender_ns() - alone_ns;
    // The kernel forwards on the core of the sender.
    let each_ns = if mover.is_ours() {
        Some(passed.mover_ns() / packets)
    } else {
        (mover != Mover::Nothing).then_some(beside)
    };
    let each_ns = each_ns.filter(|ns| is_frames || mover.is_ours() && ns.is_finite());
    let of_core = |count: f64| each_ns.map(|ns| count / (packets * ns));
    let reach = (mover == Mover::Engine).then(|| load.reach());
    let lost = (1.0 - packets / passed.sent as f64) * 100.0;
    vec![
        is_frames
            .then(|| Cell::num(packets / passed.seconds / 1e6, 3))
            .into(),
        Cell::num(octets * 8.0 / passed.seconds / 1e9, 2),
        is_frames.then(|| Cell::num(lost.max(0.0), 1)).into(),
        each_ns
            .filter(|_| is_frames && mover.is_ours())
            .map(|ns| Cell::num(ns, 0))
            .into(),
        (is_frames && mover != Mover::Nothing)
            .then(|| Cell::num(beside, 0))
            .into(),
        of_core(packets)
            .filter(|_| is_frames)
            .map(|each| Cell::num(each * 1e3, 3))
            .into(),
        of_core(octets * 8.0).map(|bits| Cell::num(bits, 2)).into(),
        reach.into(),
    ]
}
