//! The verdict on the published claims about bring-up.

use super::{BringupRun, Runs, standing};
use crate::history::published::{self, named};
use crate::history::{Claim, Verdict};
use plot::number::{grouped, human_seconds, short};

/// Two times within this factor of each other are taken as equal.
const TIE: f64 = 1.05;

/// Exponents above this count as superlinear growth.
const SUPERLINEAR: f64 = 1.2;

/// Judges by the overall gain. The order of the builds and the growth of the list builds are further claims.
pub(super) fn verdict(runs: &Runs<'_>) -> Verdict {
    let mut claims = vec![gain(runs)];
    let orders = published::SLOWER_THAN.iter();
    claims.extend(orders.map(|(slow, fast)| order(runs, slow, fast)));
    claims.extend(["r2929", "r3031"].map(|build| growth(runs, build)));
    let mut verdict = Verdict::from_claims(claims);
    verdict.remarks.extend(stopped(runs));
    verdict.remarks.extend(ours(runs));
    verdict
}

/// The runs with an extrapolated time, and how far they came.
fn stopped(runs: &Runs<'_>) -> Option<String> {
    let is_stopped = |run: &&&BringupRun| !run.finished && run.seconds().is_some();
    let words: Vec<String> = runs
        .0
        .iter()
        .filter(is_stopped)
        .map(|run| {
            format!(
                "{} ({} tunnels)",
                named(&run.build),
                grouped(run.reached() as f64, 0)
            )
        })
        .collect();
    (!words.is_empty()).then(|| {
        format!(
            "Stopped before the end, so that their times are extrapolated: {}.",
            words.join(", ")
        )
    })
}

/// The claim that `slow` took longer than `fast`.
fn order(runs: &Runs<'_>, slow: &str, fast: &str) -> Claim {
    let ratio = runs.ratio(slow, fast);
    let builds = [slow, fast];
    let [slow, fast] = builds.map(named);
    let mut because = match ratio {
        Some(r) if r > TIE => format!("{slow} took {} times as long as {fast}.", short(r)),
        Some(r) if r >= 1.0 / TIE => format!(
            "{slow} and {fast} took the same time within 5 % (ratio {r:.2}), though {slow} was \
             published as the slower."
        ),
        Some(r) => format!(
            "{slow} took {} times as long as {fast}, though it was published as the slower.",
            short(r)
        ),
        None => format!(
            "{slow} and {fast} could not be compared: {}.",
            lacking(runs, builds)
        ),
    };
    let end = |build| published::build(build).and_then(|(_, build)| build.end);
    if let Some((slow, fast)) = end(builds[0]).zip(end(builds[1])) {
        let published = short(slow.seconds / fast.seconds);
        because += &format!(" The published ratio is {published}.");
    }
    Claim {
        holds: ratio.map(|r| r > TIE),
        because,
    }
}

/// The claim that a build with sorted lists slows down as tunnels come up.
fn growth(runs: &Runs<'_>, build: &str) -> Claim {
    let exponent = runs.get(build).and_then(BringupRun::exponent);
    let holds = exponent.map(|e| e >= SUPERLINEAR);
    let because = match exponent {
        Some(e) => {
            let judged = if e >= SUPERLINEAR {
                "faster than linearly"
            } else {
                "not clearly faster than linearly"
            };
            format!(
                "The time of {} grows with the tunnels to the power {e:.2}, {judged}.",
                named(build)
            )
        }
        None => format!(
            "How {} grows is not known: too little of it was run.",
            named(build)
        ),
    };
    Claim { holds, because }
}

/// The claim that the last build is faster than the first by the published factor.
fn gain(runs: &Runs<'_>) -> Claim {
    let ratio = runs.ratio("r2929", "r3181");
    let wanted = published::FIRST_TO_LAST_MIN;
    let because = match ratio {
        Some(r) => format!(
            "{} takes {} times as long as {}; the published gain is ten-fold, and at least {wanted}-fold by the \
             published times.",
            named("r2929"),
            short(r),
            named("r3181")
        ),
        None => format!(
            "{} and {} were not both measured.",
            named("r2929"),
            named("r3181")
        ),
    };
    Claim {
        holds: ratio.map(|r| r >= wanted),
        because,
    }
}

/// For information: our own design compared with the last of the published builds.
fn ours(runs: &Runs<'_>) -> Option<String> {
    let timed = |r: &&BringupRun| Some((r.target, r.seconds()?));
    let (target, seconds) = runs.0.iter().filter(|r| r.is_ours()).find_map(timed)?;
    let last = runs.get("r3181")?.seconds()?;
    Some(format!(
        "headend's own design has {} tunnels up in {}; the last of the published builds, re-run \
         here, takes {}.",
        grouped(target as f64, 0),
        human_seconds(seconds),
        human_seconds(last)
    ))
}

/// Which of two builds lacks a time, and why.
fn lacking(runs: &Runs<'_>, builds: [&str; 2]) -> String {
    let without = builds
        .iter()
        .filter(|b| runs.get(b).and_then(BringupRun::seconds).is_none());
    let words: Vec<String> = without
        .map(|b| format!("{} was {}", named(b), standing(runs.get(b))))
        .collect();
    words.join(" and ")
}
