//! The measurements of the third chapter: the home gateway, in virtual time.

use anyhow::Result;
use lab::gateway::engine::Engine;
use lab::gateway::outcome::{Fairness, Outcome, RowOutcome, SCHEMA};
use lab::gateway::rows::{BULK_CONNECTIONS, Load, Row};
use lab::gateway::run::{Place, Plan};
use lab::gateway::stop::Stop;
use lab::gateway::treatment::{Link, Treatment};
use lab::history::{Chapter, chapter_gateway};
use lab::report::MachineInfo;

use cli::progress::spinner;

/// The first seed; further seeds follow by one.
const SEED: u64 = 1;

/// Number of A's connections that compete with one of B.
const NINE: usize = 9;

/// The chapter's results.
///
/// # Errors
/// Disciplines that cannot be combined.
pub(super) fn chapter(quick: bool) -> Result<Chapter> {
    let (seconds, seeds) = if quick { (10, 1) } else { (20, 5) };
    let outcome = outcome(seconds, seeds)?;
    let mut chapter = chapter_gateway(&outcome);
    chapter.method.extend(outcome.method);
    Ok(chapter)
}

fn outcome(seconds: u64, seeds: u64) -> Result<Outcome> {
    let bar = spinner("history");
    let plan = |seed| Plan {
        place: Place::Model,
        link: Link::default(),
        treatment: Treatment::Fair,
        seconds,
        engine: Engine::User,
        settle: 0,
        seed,
        stop: Stop::default(),
    };
    let mut rows: Vec<RowOutcome> = Row::ALL
        .into_iter()
        .map(|row| RowOutcome::new(row, Engine::User.name()))
        .collect();
    for row in &mut rows {
        bar.set_message(format!("row {} of the home gateway", row.row.number));
        for seed in SEED..SEED + seeds {
            let mut run = plan(seed).probe(row.row)?;
            if row.row.load != Load::None {
                let share = plan(seed).share(row.row.load, BULK_CONNECTIONS, row.row.shaped)?;
                (run.share, run.goodput_bps) = (Some(share.0), Some(share.1));
            }
            row.runs.push(run);
        }
    }
    bar.set_message("queues of the home gateway");
    let mut fairness = Vec::new();
    for treatment in [Treatment::Fair, Treatment::FqCodel, Treatment::Sfq] {
        let name = treatment.name().to_owned();
        let shares = (SEED..SEED + seeds).map(|seed| {
            let plan = Plan {
                treatment: treatment.clone(),
                ..plan(seed)
            };
            Ok(plan.share(Load::Bulk, NINE, true)?.0)
        });
        fairness.push(Fairness::new("user", name, shares.collect::<Result<_>>()?));
    }
    let first = plan(SEED);
    // Long enough for several changes of the hash, in a quick run too.
    let changes = Plan {
        seconds: 20,
        ..plan(SEED)
    };
    let experiments = vec![first.tunnel()?, first.bands()?, changes.perturb()?];
    bar.finish_and_clear();
    Ok(Outcome {
        schema: SCHEMA,
        kind: "headend-home-gateway",
        place: "virtual time",
        link: first.link,
        treatment: first.treatment.name().to_owned(),
        engines: Vec::new(),
        browser: None,
        seconds,
        seed: SEED,
        interrupted: false,
        cut_short: None,
        rows,
        fairness,
        experiments,
        method: method(&first, seeds),
        machine: MachineInfo::read(),
    })
}

fn method(plan: &Plan, seeds: u64) -> Vec<String> {
    let Link {
        up_bps,
        down_bps,
        fifo_packets,
        delay_ns,
    } = plan.link;
    vec![
        format!(
            "The link: {} kbit/s up and {} kbit/s down of Ethernet frames, a FIFO of {fifo_packets} packets in each direction, {:.0} ms each way. The policy \
             shapes to 96 % of it and serves hosts alike, then flows, with controlled delay.",
            up_bps / 1_000,
            down_bps / 1_000,
            delay_ns as f64 / 1e6
        ),
        format!(
            "The load settles for 5 s, then {} s are measured. Rows and shares are means over {seeds} seed{}, of which the first one's pings are drawn; the \
             experiments are of that one. The model's TCP is Reno with selective acknowledgements.",
            plan.seconds,
            if seeds == 1 { "" } else { "s" }
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_run_comes_out_the_same_again() {
        let [once, again] = [(); 2].map(|()| outcome(2, 1).unwrap());
        assert_eq!(
            (once.rows, once.experiments),
            (again.rows, again.experiments)
        );
    }
}
