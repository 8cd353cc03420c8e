//! The measurements of the fourth chapter: the segment lists of 2005, and the full analysis of a
//! capture like the published one.

use std::io::Cursor;

use anyhow::{Context, Result};
use base::Duration;
use lab::captures::{Scale, named};
use lab::history::{Chapter, Whole, chapter_capture};
use lab::plot::number::grouped;
use lab::segments::{self, Case, Config, agree};
use reactor::{clock, usage};
use trace::{Captures, Options};

use cli::progress::spinner;

/// The capture that resembles the published one.
const LIKE: &str = "oneway-loss";

/// Number of segments of each case on which the lists are first compared.
const AGREE_ON: usize = 1_000;
const SEED: u64 = 2005;

/// The chapter's measurements.
///
/// # Errors
/// Lists that give different results for the same segments, or a capture that cannot be read.
pub(super) fn chapter(quick: bool) -> Result<Chapter> {
    let (sizes, budget_ms, factor): (&[usize], _, _) = if quick {
        (&[500, 1_000, 2_000, 4_000], 100, 0.01)
    } else {
        (&[5_000, 10_000, 20_000, 40_000, 200_000], 1_500, 0.5)
    };
    let config = Config {
        cases: vec![Case::Recovery],
        sizes: sizes.to_vec(),
        budget: Duration::from_millis(budget_ms),
        repeat: Duration::from_millis(budget_ms / 40),
    };
    let bar = spinner("history");
    bar.set_message("lists of segments");
    agree(AGREE_ON, SEED)?;
    let measured = segments::run(&config, &mut clock::now, &mut |row| {
        bar.set_message(format!("{}, {} packets", row.list, row.n));
    })?;
    bar.set_message(format!("the capture {LIKE}"));
    let whole = whole(Scale::new(factor).context("no such scale")?)?;
    bar.finish_and_clear();
    let mut chapter = chapter_capture(&measured, Some(whole));
    chapter.method.extend(method(&config, &whole));
    Ok(chapter)
}

fn method(config: &Config, whole: &Whole) -> Vec<String> {
    vec![
        format!(
            "Before any list is timed, all must give the same result for every segment: {} of each case of `headend bench segments`, and as many random ones. Each measurement is repeated for {} ms and the minimum is kept; a measurement that would take longer than {} s is not started.",
            grouped(AGREE_ON as f64, 0),
            config.repeat.as_nanos() / 1_000_000,
            config.budget.as_secs_f64()
        ),
        format!(
            "The capture is the one that `headend bench captures` calls {LIKE}: {} packets that one end of {} connections sent. It is read from memory, on one thread, and the time is the processor's.",
            grouped(whole.packets as f64, 0),
            whole.connections
        ),
    ]
}

/// Analyses a capture like the published one, from its bytes to its connections.
fn whole(scale: Scale) -> Result<Whole> {
    let kind = named(LIKE).context(LIKE)?;
    let mut file = Vec::new();
    kind.write(scale, &mut file, &mut |_| {})?;
    let bytes = file.len() as u64;
    let options = Options {
        threads: Some(1),
        ..Options::default()
    };
    let before = usage::thread_cpu();
    let found = Captures::from_reader(LIKE, Cursor::new(file), options).read()?;
    let spent = usage::thread_cpu().as_nanos() - before.as_nanos();
    Ok(Whole {
        packets: found.summary().packets,
        bytes,
        connections: found.summary().connections,
        cpu_s: spent as f64 / 1e9,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_like_the_published_one_has_a_few_long_connections() {
        let whole = whole(Scale::new(0.001).unwrap()).unwrap();
        assert_eq!(whole.connections, 9);
        assert!((2_500..3_500).contains(&whole.packets), "{whole:?}");
        assert!(whole.bytes > 100 * whole.packets);
    }
}
