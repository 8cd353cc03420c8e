//! The order of a run: for each size, the subjects that are compared are measured one after
//! another.

use std::fmt;

use anyhow::Result;
use reactor::PollerKind;

use super::daemons::BgpProgram;
use super::feed::Feed;
use super::mesh::{self, Member};
use super::plan::{Part, Plan};
use super::{Results, bare, emulated, load, passive, relay, whole};
use crate::harness::Bench;

/// A measurement that takes longer than this is not repeated.
const REPEATED_MAX_S: f64 = 3.0;

/// Measures everything in the plan. A failure of one subject is noted and the others continue.
pub(super) fn measure(bench: &Bench, plan: &Plan, others: &[BgpProgram], results: &mut Results) {
    for part in &plan.parts {
        match part {
            Part::Passive => keep(bench, plan, others, results),
            Part::Bringup => rise(bench, plan, others, results),
            Part::Table => pass(bench, plan, others, results),
            Part::Mesh => mesh(bench, plan, others, results),
            Part::Memory => memory(bench, plan, results),
            Part::Hijack => hijack(bench, plan, results),
        }
    }
}

/// The floor, our daemon, and the others.
fn everybody(floor: bare::Kind, others: &[BgpProgram]) -> Vec<BgpProgram> {
    let mut all = vec![BgpProgram::Bare(floor), BgpProgram::Headend];
    all.extend(others.iter().cloned());
    all
}

/// Measures all subjects at each size. A subject that fails is noted and left out of the rest of
/// this part.
fn at_each_size<W: fmt::Display, T>(
    bench: &Bench,
    sizes: &[u32],
    mut everybody: Vec<W>,
    of: &str,
    notes: &mut Vec<String>,
    mut once: impl FnMut(&W, u32) -> Result<T>,
) -> Vec<T> {
    let mut all = Vec::new();
    for &size in sizes {
        everybody.retain(|program| {
            let what = format!("{program}, {} {of}", whole(size));
            bench.say(&what);
            match once(program, size) {
                Ok(found) => all.push(found),
                Err(error) => {
                    notes.push(format!("{what}: {}", one_line(&format!("{error:#}"))));
                    return false;
                }
            }
            true
        });
    }
    all
}

/// Joins the lines of a text.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

fn keep(bench: &Bench, plan: &Plan, others: &[BgpProgram], results: &mut Results) {
    let all = everybody(bare::Kind::Echo, others);
    let once = |program: &BgpProgram, peers| passive::keep(bench, program, peers, plan.keep);
    let notes = &mut results.notes;
    results.kept = at_each_size(bench, &plan.kept, all, "passive peers", notes, once);
}

/// Measures up to `rounds` times, unless one takes long, and keeps the result of median time.
fn median<T>(
    rounds: u32,
    seconds: impl Fn(&T) -> f64,
    mut once: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut all = vec![once()?];
    while all.len() < rounds as usize && seconds(&all[0]) < REPEATED_MAX_S {
        all.push(once()?);
    }
    all.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    let middle = (all.len() - 1) / 2;
    Ok(all.swap_remove(middle))
}

fn rise(bench: &Bench, plan: &Plan, others: &[BgpProgram], results: &mut Results) {
    let all = everybody(bare::Kind::Echo, others);
    let once = |program: &BgpProgram, peers| {
        let rise = || passive::rise(bench, program, peers);
        median(plan.rounds, |risen| risen.seconds, rise)
    };
    let notes = &mut results.notes;
    results.risen = at_each_size(bench, &plan.risen, all, "peers at once", notes, once);
}

fn pass(bench: &Bench, plan: &Plan, others: &[BgpProgram], results: &mut Results) {
    let all = everybody(bare::Kind::Relay, others);
    let mut feed = None;
    let once = |program: &BgpProgram, prefixes| {
        // All subjects of one size get the same table.
        let feed = match feed.take() {
            Some(found @ Feed { .. }) if found.prefixes == prefixes => feed.insert(found),
            _ => feed.insert(Feed::new(prefixes, load::ASN)),
        };
        let pass = || relay::pass(bench, program, feed, plan.table_max);
        median(plan.rounds, |passed| passed.announce.seconds, pass)
    };
    let notes = &mut results.notes;
    results.passed = at_each_size(bench, &plan.prefixes, all, "prefixes", notes, once);
}

fn mesh(bench: &Bench, plan: &Plan, others: &[BgpProgram], results: &mut Results) {
    let mut all = vec![Member::Bare, Member::Headend(PollerKind::Epoll)];
    all.extend(others.iter().filter_map(|program| match program {
        BgpProgram::Frr(path, version) => Some(Member::Frr(path.clone(), version.clone())),
        BgpProgram::Headend | BgpProgram::Bare(_) | BgpProgram::Bird | BgpProgram::Gobgp => None,
    }));
    let spans = [mesh::SETTLE, plan.keep.into()];
    let once = |member: &Member, routers| mesh::keep(bench, member, routers, spans);
    let notes = &mut results.notes;
    let what = "routers in full mesh";
    results.meshed = at_each_size(bench, &plan.meshes, all, what, notes, once);
    let all = vec![Member::Bare, Member::Emulated];
    let emulated = at_each_size(bench, &plan.emulated, all, what, notes, once);
    results.meshed.extend(emulated);
}

fn memory(bench: &Bench, plan: &Plan, results: &mut Results) {
    let once = |_: &&str, routers| {
        let real_s = plan.keep.as_nanos() / 1_000_000_000;
        emulated::mesh(bench, routers, plan.virtual_s, real_s)
    };
    let notes = &mut results.notes;
    let all = vec!["headend, in memory"];
    results.in_memory = at_each_size(bench, &plan.in_memory, all, "routers", notes, once);
}

fn hijack(bench: &Bench, plan: &Plan, results: &mut Results) {
    let once = |_: &&str, systems| {
        let hijack = || emulated::hijack(bench, systems);
        median(plan.rounds, |found| found.hijack.wall_s, hijack)
    };
    let notes = &mut results.notes;
    let all = vec!["headend, a hijack"];
    results.hijacked = at_each_size(bench, &plan.hijacks, all, "systems", notes, once);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_line() {
        assert_eq!(
            one_line("ended: \n a fault\nanother"),
            "ended:; a fault; another"
        );
    }

    #[test]
    fn the_median_is_kept_and_what_takes_long_is_measured_once() {
        let mut seconds = [2.0, 9.0, 1.0].into_iter();
        let found = median(3, |&s| s, || Ok(seconds.next().unwrap())).unwrap();
        assert!((found - 2.0).abs() < 1e-9);
        let mut seconds = [5.0].into_iter();
        assert!(median(3, |&s| s, || Ok(seconds.next().unwrap())).is_ok());
    }
}
