//! The kernel's queues: how long `headend qos apply` takes, and what an emitted classifier costs a packet. Needs root.

use bpf::{Options, emit};
use lab::report::{Cell, Table};
use qos::classifier::Classifier;
use qos::classify::{FlowMatch, Key, KeySet, Map, Match, Ports};
use reactor::bpf::{Context, LoadError, Program, ProgramKind};
use tool_qos::measure::{self, Times};

use super::packets::{self, HEADERS, Kind};
use super::{Config, FLOOR};

/// Goals: milliseconds of `apply` for hosts, for the largest tree, and for a change of one class; nanoseconds of a
/// program over an empty one.
const HOSTS_MS: f64 = 50.0;
const TREE_MS: f64 = 2_000.0;
const CHANGE_MS: f64 = 5.0;
const PROGRAM_NS: f64 = 15.0;

const HOSTS: [u32; 3] = [16, 64, 256];
const CLASSES: [u16; 3] = [625, 2_500, 10_000];

/// Times that a program runs in one measurement, and measurements of which the shortest counts.
const RUNS: u32 = 100_000;
const REPEATED: usize = 7;

/// A row's name, and how it is read from the times.
type Step = (&'static str, fn(&Times) -> f64, Option<f64>);

/// The time of `apply`: hosts with rules, then trees of classes.
pub(super) fn apply_table(config: &Config, told: &mut dyn FnMut(String)) -> Table {
    let columns = [
        ("what", ""),
        ("step", ""),
        ("at n", "ms"),
        ("at 4n", "ms"),
        ("at 16n", "ms"),
        ("to reach", "ms"),
    ];
    let mut table = Table::new("headend qos apply, without the process's start", &columns);
    let hosts: [Step; 4] = [
        ("floor: the messages alone", |times| times.floor_ms, None),
        ("the verifier's time", |times| times.load_ms, None),
        (
            "all",
            |times| times.load_ms + times.apply_ms,
            Some(HOSTS_MS),
        ),
        ("one class changed", |times| times.change_ms, None),
    ];
    told("apply of hosts".to_owned());
    let name = format!("hosts with a class and a rule, n = {}", HOSTS[0]);
    let measured = HOSTS.map(|hosts| least(config, || measure::hosts(hosts)));
    rows(&mut table, &name, &measured, &hosts);
    let trees: [Step; 4] = [
        ("floor: the messages alone", |times| times.floor_ms, None),
        ("all", |times| times.apply_ms, Some(TREE_MS)),
        (
            "floor: one class changed",
            |times| times.floor_change_ms,
            None,
        ),
        (
            "one class changed",
            |times| times.change_ms,
            Some(CHANGE_MS),
        ),
    ];
    told("apply of trees".to_owned());
    let name = format!("classes of htb, n = {}", CLASSES[0]);
    let measured = CLASSES.map(|classes| least(config, || measure::classes(classes)));
    rows(&mut table, &name, &measured, &trees);
    table
}

/// The shortest time of each step, or why there is none.
fn least(
    config: &Config,
    mut work: impl FnMut() -> anyhow::Result<Times>,
) -> Result<Times, String> {
    let mut least = work().map_err(|error| format!("not measured: {error:#}"))?;
    let more = if config.repeat.as_nanos() == 0 { 0 } else { 2 };
    for _ in 0..more {
        let times = work().map_err(|error| format!("not measured: {error:#}"))?;
        least = Times {
            objects: times.objects,
            load_ms: least.load_ms.min(times.load_ms),
            apply_ms: least.apply_ms.min(times.apply_ms),
            change_ms: least.change_ms.min(times.change_ms),
            floor_ms: least.floor_ms.min(times.floor_ms),
            floor_change_ms: least.floor_change_ms.min(times.floor_change_ms),
        };
    }
    Ok(least)
}

/// A row for each step; a row with the reason if the kernel could not be asked.
fn rows(table: &mut Table, name: &str, measured: &[Result<Times, String>; 3], steps: &[Step]) {
    if let Some(why) = measured.iter().find_map(|one| one.as_ref().err()) {
        table.row([name.into(), why.as_str().into()]);
        return;
    }
    for (step, read, reach) in steps {
        let mut cells: Vec<Cell> = vec![name.into(), (*step).into()];
        let times = measured.iter().flatten();
        cells.extend(times.map(|times| Cell::num(read(times), 2)));
        match step.starts_with(FLOOR) {
            true => table.floor(cells),
            false => {
                cells.extend(reach.map(|reach| Cell::num(reach, 0)));
                table.row(cells);
            }
        }
    }
}

/// What a program costs over an empty one, for three kinds of packets.
pub(super) fn program_table(told: &mut dyn FnMut(String)) -> Table {
    let columns = [
        ("classifier", ""),
        ("packet", ""),
        ("at n", "ns"),
        ("at 4n", "ns"),
        ("at 16n", "ns"),
        ("to reach", "ns"),
    ];
    let title = "A classifier as an eBPF program, over an empty program (BPF_PROG_RUN)";
    let mut table = Table::new(title, &columns);
    // `r0 = 0; exit`.
    let empty = [0xb7, 0x95].map(|code| u64::from_ne_bytes([code, 0, 0, 0, 0, 0, 0, 0]));
    let empty = match Program::load(ProgramKind::Classifier, "empty", &empty) {
        Ok(program) => program,
        Err(error) => {
            table.row(["all".into(), not_loaded(&error).into()]);
            return table;
        }
    };
    let floor = frames().map(|(_, frame)| run_ns(&empty, &frame));
    table.floor(
        ["an empty program".into(), "floor: each kind".into()]
            .into_iter()
            .chain(floor.map(|ns| Cell::num(ns, 0))),
    );
    for (name, of) in subjects() {
        told(name.to_owned());
        let programs = [1, 4, 16].map(|size| {
            let program =
                emit(&of(size), &Options::default()).map_err(|error| error.to_string())?;
            let kind = ProgramKind::Classifier;
            Program::load(kind, "bench", program.instructions()).map_err(|error| not_loaded(&error))
        });
        if let Some(why) = programs.iter().find_map(|one| one.as_ref().err()) {
            table.row([name.into(), why.as_str().into()]);
            continue;
        }
        for ((packet, frame), floor) in frames().into_iter().zip(floor) {
            let programs = programs.iter().flatten();
            let cells = programs.map(|program| Cell::num(run_ns(program, &frame) - floor, 1));
            let cells = [name.into(), packet.into()].into_iter().chain(cells);
            table.row(cells.chain([Cell::num(PROGRAM_NS, 0)]));
        }
    }
    table
}

fn not_loaded(error: &LoadError) -> String {
    let text = error.to_string();
    format!("not measured: {}", text.lines().next().unwrap_or_default())
}

/// Plain, in IP, in L2TP, and in VXLAN, each behind an Ethernet header.
fn frames() -> [(&'static str, Vec<u8>); 4] {
    let frame = |kind| {
        let mut octets = [0; HEADERS];
        let length = packets::write(kind, 7, &mut octets);
        [
            &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..],
            &octets[..length],
        ]
        .concat()
    };
    [
        ("IPv4, UDP", frame(Kind::Udp4)),
        ("IP in IP", frame(Kind::Ipip)),
        ("L2TP", frame(Kind::L2tp)),
        ("VXLAN", frame(Kind::Vxlan)),
    ]
}

/// A classifier's name, and how it is made for a size.
type Subject = (&'static str, fn(u16) -> Classifier);

/// Sizes are numbers of keys or rules; the map has one size.
fn subjects() -> [Subject; 5] {
    [
        ("map of src", |_| {
            Classifier::Map(Map::new(Key::Src).and(15))
        }),
        ("map of innermost-src", |_| {
            Classifier::Map(Map::new(Key::InnermostSrc).and(15))
        }),
        ("hash of n keys (n = 1)", |size| Classifier::Hash {
            keys: KeySet::of(&Key::ALL[..usize::from(size)]),
            divisor: 1_024,
            seed: 5,
            baseclass: 1,
        }),
        ("n rules by outer port (n = 1)", |size| {
            let outer = |n| Match {
                outer: ports(n),
                ..Match::default()
            };
            Classifier::Rules((0..size).map(|n| (outer(n), 3)).collect())
        }),
        ("n rules by innermost port (n = 1)", |size| {
            let innermost = |n| Match {
                innermost: ports(n),
                ..Match::default()
            };
            Classifier::Rules((0..size).map(|n| (innermost(n), 3)).collect())
        }),
    ]
}

/// TCP to one port.
fn ports(n: u16) -> FlowMatch {
    FlowMatch {
        proto: Some(6),
        proto_dst: Some(Ports::one(n + 1)),
        ..FlowMatch::default()
    }
}

/// The shortest mean time of a run.
fn run_ns(program: &Program, frame: &[u8]) -> f64 {
    let runs = (0..REPEATED).filter_map(|_| {
        let outcome = program.run(frame, Context::default(), RUNS).ok()?;
        Some(outcome.run_ns)
    });
    runs.min().map_or(f64::NAN, f64::from)
}
