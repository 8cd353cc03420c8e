//! The goals of the BGP benchmark, and whether this run reached them.

use lab::plot::number::grouped;
use lab::report::{Cell, Table};

use super::daemons::BgpProgram;
use super::mesh::Member;
use super::plan::{Part, Plan};
use super::{Results, whole};

/// Numbers of passive peers, each with the percentage of a core that they may take.
const KEPT: [(u32, f64); 2] = [(1_000, 2.5), (5_000, 12.0)];
/// Memory of an idle peer, in bytes.
const MEMORY_BYTES: f64 = 8_000.0;
/// Number of peers that connect at once, and the seconds that may take.
const RISEN: (u32, f64) = (2_500, 2.0);
/// Prefixes of the table, seconds until the sink has it, and seconds until it is withdrawn.
const TABLE: (u32, f64, f64) = (1_000_000, 0.8, 0.3);
/// Peak memory meanwhile, in bytes.
const TABLE_BYTES: f64 = 110e6;

/// Routers of a mesh over TCP, and microseconds of processor time that an endpoint may take per
/// second.
const MESH: (u32, f64) = (300, 16.0);
/// Routers of a mesh in memory, percent of a core in real time, virtual time over real time, memory
/// of an endpoint in bytes.
const MEMORY: (u32, f64, f64, f64) = (1_000, 10.0, 10.0, 1_000.0);
/// Autonomous systems of a hijack, and its wall time in seconds.
const HIJACK: [(u32, f64); 2] = [(10_000, 1.0), (75_000, 10.0)];

/// Whether, in each part of the plan, every session of ours came up and stayed up, and every prefix
/// arrived and left exactly once.
pub(super) fn all_is_whole(plan: &Plan, results: &Results) -> bool {
    let is_ours = |program: &BgpProgram| *program == BgpProgram::Headend;
    let mut kept = results
        .kept
        .iter()
        .filter(|k| is_ours(&k.program))
        .peekable();
    let mut risen = results
        .risen
        .iter()
        .filter(|r| is_ours(&r.program))
        .peekable();
    let mut passed = results
        .passed
        .iter()
        .filter(|p| is_ours(&p.program))
        .peekable();
    plan.parts.iter().all(|part| match part {
        Part::Passive => kept.peek().is_some() && kept.all(|k| k.up == k.peers),
        Part::Bringup => risen.peek().is_some() && risen.all(|r| r.up == r.peers),
        Part::Table => {
            let is_whole = |p: &super::Passed| {
                let all = p.arrived == p.prefixes && p.left == p.prefixes;
                all && p.again == 0 && p.strange == 0
            };
            passed.peek().is_some() && passed.all(is_whole)
        }
        Part::Mesh => {
            let is_ours =
                |m: &&super::Meshed| matches!(m.member, Member::Headend(_) | Member::Emulated);
            let mut meshed = results.meshed.iter().filter(is_ours).peekable();
            meshed.peek().is_some() && meshed.all(super::Meshed::is_whole)
        }
        Part::Memory => {
            let mut found = results.in_memory.iter().peekable();
            found.peek().is_some() && found.all(super::InMemory::is_whole)
        }
        Part::Hijack => !results.hijacked.is_empty(),
    })
}

/// The rows of the goals.
struct Rows(Table);

impl Rows {
    fn at_most(&mut self, what: String, unit: &str, goal: f64, measured: f64, decimals: usize) {
        self.add(
            what,
            unit,
            ("<=", measured <= goal),
            [goal, measured],
            decimals,
        );
    }

    fn add(
        &mut self,
        what: String,
        unit: &str,
        (sign, reached): (&str, bool),
        [goal, measured]: [f64; 2],
        decimals: usize,
    ) {
        self.0.row([
            Cell::from(what),
            format!("{sign} {} {unit}", grouped(goal, decimals)).into(),
            format!("{} {unit}", grouped(measured, decimals)).into(),
            if reached { "yes" } else { "no" }.into(),
        ]);
    }
}

/// Each goal beside our result, for the sizes that were measured.
pub(super) fn table(results: &Results) -> Table {
    let columns = [
        ("what", ""),
        ("goal", ""),
        ("measured", ""),
        ("reached", ""),
    ];
    let mut rows = Rows(Table::new("To reach", &columns));
    sessions(results, &mut rows);
    tables(results, &mut rows);
    meshes(results, &mut rows);
    rows.0
}

fn sessions(results: &Results, rows: &mut Rows) {
    let kept = results.kept.iter();
    for kept in kept.filter(|k| k.program == BgpProgram::Headend && k.up == k.peers) {
        if let Some((_, goal)) = KEPT.iter().find(|(peers, _)| *peers == kept.peers) {
            let peers = whole(kept.peers);
            let what = format!("{peers} passive peers, of a core");
            rows.at_most(what, "%", *goal, kept.cpu_percent, 1);
            let what = format!("memory of each of {peers} idle peers");
            rows.at_most(what, "bytes", MEMORY_BYTES, kept.memory_bytes, 0);
        }
    }
    let mut risen = results.risen.iter();
    let is_it = |r: &&super::Risen| {
        r.program == BgpProgram::Headend && (r.peers, r.up) == (RISEN.0, RISEN.0)
    };
    if let Some(risen) = risen.find(is_it) {
        let what = format!("{} peers at once", whole(risen.peers));
        rows.at_most(what, "s", RISEN.1, risen.seconds, 2);
    }
}

fn tables(results: &Results, rows: &mut Rows) {
    let is_it = |p: &&super::Passed| {
        p.program == BgpProgram::Headend && (p.prefixes, p.arrived) == (TABLE.0, TABLE.0)
    };
    let Some(passed) = results.passed.iter().find(is_it) else {
        return;
    };
    let prefixes = whole(passed.prefixes);
    let what = format!("{prefixes} prefixes, feeder to sink");
    rows.at_most(what, "s", TABLE.1, passed.announce.seconds, 2);
    let what = format!("{prefixes} prefixes, most memory");
    rows.at_most(what, "bytes", TABLE_BYTES, passed.peak_bytes as f64, 0);
    if passed.left == passed.arrived {
        let what = format!("{prefixes} prefixes withdrawn");
        rows.at_most(what, "s", TABLE.2, passed.withdraw.seconds, 2);
    }
}

fn meshes(results: &Results, rows: &mut Rows) {
    let ours = results
        .meshed
        .iter()
        .filter(|m| matches!(m.member, Member::Headend(_) | Member::Emulated));
    for meshed in ours.filter(|m| m.routers >= MESH.0 && m.is_whole()) {
        let what = format!(
            "{} routers over TCP, an endpoint's second",
            whole(meshed.routers)
        );
        rows.at_most(what, "us", MESH.1, meshed.each_us, 1);
    }
    let is_it = |m: &&super::InMemory| m.routers == MEMORY.0 && m.is_whole();
    if let Some(found) = results.in_memory.iter().find(is_it) {
        let what = |what: &str| format!("{} routers in memory, {what}", whole(found.routers));
        rows.at_most(
            what("of a core in real time"),
            "%",
            MEMORY.1,
            found.held_percent(),
            1,
        );
        let fast = found.times_real();
        let is_fast = (">=", fast >= MEMORY.2);
        rows.add(
            what("virtual over real time"),
            "x",
            is_fast,
            [MEMORY.2, fast],
            1,
        );
        rows.at_most(
            what("memory of an endpoint"),
            "bytes",
            MEMORY.3,
            found.each_bytes(),
            0,
        );
    }
    for found in &results.hijacked {
        if let Some((_, goal)) = HIJACK.iter().find(|(systems, _)| *systems == found.routers) {
            let what = format!("a hijack over {} systems", whole(found.routers));
            rows.at_most(what, "s", *goal, found.hijack.wall_s, 2);
        }
    }
}
