//! The order of a run: subjects that are compared are measured in turns.

use anyhow::{Context, Result};
use base::Duration;
use lab::generator::Sizes;
use wire::l2tp::Version;

use super::peers::Peer;
use super::plan::Plan;
use super::setup::SetUp;
use super::{Bench, Results, hello, setup, storm};
use crate::harness::server::{LnsProgram, Setup};

/// Measures everything in the plan, our LNS first.
///
/// # Errors
/// A measurement of ours failed; a failure of a peer is only noted.
pub(super) fn measure(bench: &Bench, plan: &Plan, results: &mut Results) -> Result<()> {
    bench.say("how long the datagrams are");
    let sizes = [Version::V2, Version::V3].map(|version| setup::sizes(bench, version));
    let [(v2, _), (v3, hello)] = {
        let [v2, v3] = sizes;
        [v2?, v3?]
    };
    for &tunnels in &plan.sizes {
        set_up(bench, plan, tunnels, [v2, v3], &hello, results)?;
    }
    for &tunnels in &plan.storms {
        for asked in [None, Some(storm::MODEST_BYTES)] {
            bench.say(format!("{tunnels} SCCRQs at once"));
            results.storms.push(storm::storm(bench, tunnels, asked)?);
        }
    }
    for &tunnels in &plan.sizes {
        bench.say(format!("HELLOs originated over {tunnels} tunnels"));
        let (rate, window) = (plan.hello_rate, plan.hello_span);
        let ours = hello::originated(bench, tunnels, rate, window, plan.hello_rounds)?;
        let bare = || hello::originated_bare(bench, tunnels, rate, window, &hello);
        let bare = (0..plan.hello_rounds)
            .map(|_| bare())
            .collect::<Result<_>>()?;
        let medians = [bare, ours].into_iter().filter_map(hello::median);
        results.originated.extend(medians);
    }
    for &peer in &plan.peers {
        against(bench, plan, peer, results);
    }
    Ok(())
}

/// Waves of one size, in turn. The last wave's tunnels are then measured idle, and after that with
/// HELLOs to answer.
fn set_up(
    bench: &Bench,
    plan: &Plan,
    tunnels: u32,
    sizes: [Sizes; 2],
    hello: &Sizes,
    results: &mut Results,
) -> Result<()> {
    let rounds = plan.rounds(tunnels);
    for round in 1..=rounds {
        for (version, sizes) in [Version::V2, Version::V3].into_iter().zip(sizes) {
            let v = setup::number(version);
            bench.say(format!(
                "{tunnels} tunnels of L2TPv{v} set up, {round} of {rounds}"
            ));
            let bare = setup::bare(bench, tunnels, &sizes)?;
            setup::file(
                &mut results.set_ups,
                LnsProgram::Bare,
                version,
                tunnels,
                bare,
            );
            let (mut lns, mut load, run) = setup::ours(bench, version, tunnels, &Setup::default())?;
            setup::file(
                &mut results.set_ups,
                LnsProgram::Headend,
                version,
                tunnels,
                run,
            );
            if round < rounds || version == Version::V2 {
                continue;
            }
            bench.say(format!("{tunnels} tunnels at rest"));
            let idle = hello::idle(&lns, &mut load, plan.idle_span)?;
            results.idle.push(idle);
            bench.say(format!("HELLOs answered over {tunnels} tunnels"));
            let (rate, span) = (plan.hello_rate, plan.hello_span);
            let (mut ours, mut bare) = (Vec::new(), Vec::new());
            for _ in 0..plan.hello_rounds {
                ours.push(hello::answered(&mut lns, &mut load, rate, span)?);
                bare.push(hello::answered_bare(bench, tunnels, rate, span, hello)?);
            }
            let medians = [bare, ours].into_iter().filter_map(hello::median);
            results.answered.extend(medians);
        }
    }
    Ok(())
}

/// A peer and our LNS, at the sizes that the peer can handle. A failure of the peer is noted and
/// the run continues.
fn against(bench: &Bench, plan: &Plan, peer: Peer, results: &mut Results) {
    for &tunnels in peer.sizes() {
        if tunnels > plan.peer_size_max {
            continue;
        }
        let name = peer.program().name();
        bench.say(format!("{name}: {tunnels} tunnels"));
        match against_at(bench, plan, peer, tunnels, results) {
            Ok(true) => {}
            Ok(false) => {
                let note = format!("{name} did not bring all {tunnels} tunnels up in its time");
                results.notes.push(note);
                return;
            }
            Err(error) => {
                let note = format!("{name} at {tunnels} tunnels: {error:#}");
                results.notes.push(note);
                return;
            }
        }
    }
}

/// Measures at one size; returns whether at least 99 % of the peer's tunnels came up.
fn against_at(
    bench: &Bench,
    plan: &Plan,
    peer: Peer,
    tunnels: u32,
    results: &mut Results,
) -> Result<bool> {
    let version = Version::V2;
    let (rate, span) = (plan.peer_hello_rate, plan.peer_span);
    let is_known = |s: &SetUp| s.program == LnsProgram::Headend && s.tunnels == tunnels;
    if !results.against.iter().any(is_known) {
        let (mut lns, mut load, run) = setup::ours(bench, version, tunnels, &Setup::default())?;
        setup::file(
            &mut results.against,
            LnsProgram::Headend,
            version,
            tunnels,
            run,
        );
        let hello = hello::answered(&mut lns, &mut load, rate, span)?;
        results.against_hello.push(hello);
    }
    let server = peer.start(bench)?;
    let mut load = setup::generator(&server, version, tunnels)?;
    let cap = Duration::from_secs(60);
    let run = setup::wave(&server, &mut load, tunnels, setup::WINDOW, cap)?;
    // A peer that assigns one id twice loses that tunnel only.
    let nearly_all_up = u64::from(run.wave.up) * 100 >= u64::from(tunnels) * 99;
    setup::file(&mut results.against, peer.program(), version, tunnels, run);
    if nearly_all_up {
        let hello = hello::answered_by(peer.program(), &server, &mut load, rate, span);
        results.against_hello.push(hello.context("HELLOs")?);
    }
    Ok(nearly_all_up)
}
