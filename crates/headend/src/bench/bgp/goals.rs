//! What is to be reached, and whether this run reached it.

use lab::plot::number::grouped;
use lab::report::{Cell, Table};

use super::daemons::Who;
use super::mesh::Member;
use super::plan::{Part, Plan};
use super::{Results, whole};

/// Passive peers, and the percent of a core that they may take.
const KEPT: [(u32, f64); 2] = [(1_000, 2.5), (5_000, 12.0)];
/// Memory of an idle peer, in octets.
const MEMORY_BYTES: f64 = 8_000.0;
/// Peers at once, and the seconds that they may take.
const RISEN: (u32, f64) = (2_500, 2.0);
/// The table, the seconds to the sink, and those of the withdrawal.
const TABLE: (u32, f64, f64) = (1_000_000, 0.8, 0.3);
/// The most memory meanwhile, in octets.
const TABLE_BYTES: f64 = 110e6;

/// Whether every session of ours came up and stayed and every prefix arrived and left, once, in each part of the plan.
pub(super) fn all_is_whole(plan: &Plan, results: &Results) -> bool {
    let is_ours = |who: &Who| *who == Who::Headend;
    let mut kept = results.kept.iter().filter(|k| is_ours(&k.who)).peekable();
    let mut risen = results.risen.iter().filter(|r| is_ours(&r.who)).peekable();
    let mut passed = results.passed.iter().filter(|p| is_ours(&p.who)).peekable();
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
            let is_ours = |m: &&super::Meshed| matches!(m.member, Member::Headend(_));
            let mut meshed = results.meshed.iter().filter(is_ours).peekable();
            meshed.peek().is_some() && meshed.all(super::Meshed::is_whole)
        }
    })
}

/// Each goal beside what was measured of ours, where it was measured at that size.
pub(super) fn table(results: &Results) -> Table {
    let columns = [
        ("what", ""),
        ("goal", ""),
        ("measured", ""),
        ("reached", ""),
    ];
    let mut table = Table::new("To reach", &columns);
    let mut row = |what: String, unit: &str, goal: f64, measured: f64, decimals: usize| {
        table.row([
            Cell::from(what),
            format!("<= {} {unit}", grouped(goal, decimals)).into(),
            format!("{} {unit}", grouped(measured, decimals)).into(),
            if measured <= goal { "yes" } else { "no" }.into(),
        ]);
    };
    let kept = results
        .kept
        .iter()
        .filter(|k| k.who == Who::Headend && k.up == k.peers);
    for kept in kept {
        if let Some((_, goal)) = KEPT.iter().find(|(peers, _)| *peers == kept.peers) {
            let peers = whole(kept.peers);
            row(
                format!("{peers} passive peers, of a core"),
                "%",
                *goal,
                kept.cpu_percent,
                1,
            );
            row(
                format!("memory of each of {peers} idle peers"),
                "bytes",
                MEMORY_BYTES,
                kept.memory_bytes,
                0,
            );
        }
    }
    let mut risen = results.risen.iter();
    if let Some(risen) =
        risen.find(|r| r.who == Who::Headend && (r.peers, r.up) == (RISEN.0, RISEN.0))
    {
        let what = format!("{} peers at once", whole(risen.peers));
        row(what, "s", RISEN.1, risen.seconds, 2);
    }
    let is_it =
        |p: &&super::Passed| p.who == Who::Headend && (p.prefixes, p.arrived) == (TABLE.0, TABLE.0);
    if let Some(passed) = results.passed.iter().find(is_it) {
        let prefixes = whole(passed.prefixes);
        row(
            format!("{prefixes} prefixes, feeder to sink"),
            "s",
            TABLE.1,
            passed.announce.seconds,
            2,
        );
        row(
            format!("{prefixes} prefixes, most memory"),
            "bytes",
            TABLE_BYTES,
            passed.peak_bytes as f64,
            0,
        );
        if passed.left == passed.arrived {
            let what = format!("{prefixes} prefixes withdrawn");
            row(what, "s", TABLE.2, passed.withdraw.seconds, 2);
        }
    }
    table
}
