//! `headend trace why` on paths of known cause, with a Linux kernel as sender and receiver. See [`crate::paths`].

use crate::paths::{self, Judged, Path};
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::path::Path as Place;

/// Paths that one guest records: its memory has the captures of one path, and its time is limited.
const PATHS_A_GUEST: usize = 25;

/// Seed and rounds of the big run. `HEADEND_WHY` has others, to tune rules: `1:2` for seed 1 and two rounds, and `1:2:1/4`
/// for the first quarter of these paths, so that runs in several directories share the work.
const SEED: u64 = 20_261_128;
const ROUNDS: u64 = 4;

/// Parts of the cases that have to be right, and that may be wrong.
const RIGHT_MIN: f64 = 0.90;
const WRONG_MAX: f64 = 0.03;

fn verdicts(bench: &Bench<'_>, paths: &[Path]) -> Result<Vec<Judged>> {
    for some in paths.chunks(PATHS_A_GUEST) {
        paths::record(bench, some)?;
    }
    judge_all(bench.headend, &bench.directory, paths)
}

/// Judges the captures in `directory`, and writes `verdicts.txt` there.
fn judge_all(headend: &Place, directory: &Place, paths: &[Path]) -> Result<Vec<Judged>> {
    let (mut judged, mut text) = (Vec::new(), String::new());
    for path in paths {
        writeln!(text, "{path:?}")?;
        for one in paths::judge(headend, directory, path)? {
            writeln!(text, "{}", one.line())?;
            judged.push(one);
        }
    }
    std::fs::write(directory.join("verdicts.txt"), text)?;
    Ok(judged)
}

/// A few paths whose cause leaves no doubt.
pub(crate) fn says_what_slows_a_path(bench: &Bench<'_>) -> Result<()> {
    for one in verdicts(bench, &paths::fast())? {
        ensure!(one.is_right(), "{}", one.line());
        ensure!(
            one.agrees_on_window() != Some(false),
            "the window: {}",
            one.line()
        );
        ensure!(
            one.agrees_on_busy() != Some(false),
            "busy time: {}",
            one.line()
        );
    }
    Ok(())
}

/// The confusion matrix over many paths.
pub(crate) fn verdicts_on_many_paths(bench: &Bench<'_>) -> Result<()> {
    let paths = match std::env::var("HEADEND_WHY") {
        Err(_) => paths::of_seed(SEED, ROUNDS),
        Ok(words) => of(&words)?,
    };
    report(&verdicts(bench, &paths)?)
}

/// The matrix of a run's captures in `directory`, again. True if enough verdicts are right.
///
/// # Errors
/// The paths of `seed` are not all there.
pub(crate) fn judge_again(headend: &str, directory: &str, seed: &str) -> Result<bool> {
    report(&judge_all(
        headend.as_ref(),
        directory.as_ref(),
        &of(seed)?,
    )?)?;
    Ok(true)
}

fn of(words: &str) -> Result<Vec<Path>> {
    let (seed, rounds) = words.split_once(':').context("SEED:ROUNDS")?;
    let Some((rounds, part)) = rounds.split_once(':') else {
        return Ok(paths::of_seed(seed.parse()?, rounds.parse()?));
    };
    let (part, parts) = part.split_once('/').context("SEED:ROUNDS:PART/PARTS")?;
    let (part, parts): (usize, usize) = (part.parse()?, parts.parse()?);
    let all = paths::of_seed(seed.parse()?, rounds.parse()?);
    let size = all.len().div_ceil(parts.max(1)).max(1);
    let some = all.chunks(size).nth(part.wrapping_sub(1));
    Ok(some.context("PART is 1 to PARTS")?.to_vec())
}

fn report(judged: &[Judged]) -> Result<()> {
    for one in judged.iter().filter(|one| !one.is_right()) {
        println!("{}", one.line());
    }
    println!("{}", paths::matrix(judged));
    let part = |count: usize| count as f64 / judged.len() as f64;
    let right = part(judged.iter().filter(|one| one.is_right()).count());
    let wrong = part(judged.iter().filter(|one| one.is_wrong()).count());
    ensure!(
        right >= RIGHT_MIN && wrong <= WRONG_MAX,
        "{:.1} % are right and {:.1} % wrong",
        right * 100.0,
        wrong * 100.0
    );
    Ok(())
}
