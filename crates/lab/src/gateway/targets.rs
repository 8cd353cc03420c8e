//! The targets of the rows.

use super::outcome::{Outcome, RowOutcome};
use super::rows::{Result, mean, median};
use super::run::BROWSER_LEAST;

/// A target, and whether it was reached; `None` if it was not measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The target as text.
    pub what: String,
    /// The name of the engine that it is about; `None` if no engine shaped.
    pub engine: Option<&'static str>,
    /// The result.
    pub found: String,
    /// Whether the result reaches it.
    pub reached: Option<bool>,
}

/// The targets of the rows and of the hosts' shares, for each engine.
#[must_use]
pub fn targets(outcome: &Outcome) -> Vec<Target> {
    let row = outcome.row(5);
    let loss = row.and_then(|row| row.mean(|run| Some(run.loss_percent)));
    let mut targets = vec![target(
        None,
        "row 5: the stream loses at least 50 %".to_owned(),
        loss.map(|loss| (format!("{loss:.1} %"), loss >= 50.0)),
    )];
    if outcome.compares() {
        let engines = outcome.engines.iter().map(|engine| engine.name);
        targets.extend(engines.flat_map(|engine| of_engine(outcome, engine, "")));
    } else {
        // Of several treatments of our own queues, fair is the one that promises equal shares.
        targets.extend(of_engine(outcome, "user", "fair: "));
    }
    targets
}

fn target(engine: Option<&'static str>, what: String, found: Option<(String, bool)>) -> Target {
    let (found, reached) = match found {
        Some((found, reached)) => (found, Some(reached)),
        None => ("not measured".to_owned(), None),
    };
    Target {
        what,
        engine,
        found,
        reached,
    }
}

/// The targets of one engine's rows; `fair` comes before that of the hosts' shares.
fn of_engine(outcome: &Outcome, engine: &'static str, fair: &str) -> Vec<Target> {
    let target = |what, found| target(Some(engine), what, found);
    let figure = |number: u8, figure: &dyn Fn(&Result) -> Option<f64>| {
        let row = outcome.row_of(number, engine);
        row.and_then(|row| row.mean(figure))
    };
    let loss = figure(6, &|result| Some(result.loss_percent));
    let mut targets = vec![target(
        "row 6: the stream loses nothing".to_owned(),
        loss.map(|loss| (format!("{loss:.2} %"), loss == 0.0)),
    )];
    let p99 = |number| figure(number, &|result| result.ping_percentile_ms(0.99));
    let base = figure(2, &|result| result.ping_percentile_ms(0.5));
    for number in [4, 6] {
        let share = figure(number, &|result| result.share);
        targets.push(target(
            format!("row {number}: B gets half of the link"),
            share.map(|share| (format!("{share:.3}"), (0.45..=0.55).contains(&share))),
        ));
        let rows = outcome.row_of(number, engine);
        let rows = rows.zip(outcome.row_of(2, engine));
        targets.push(target(
            format!("row {number}: a page takes at most {PAGE_RATIO_MAX} times that of row 2"),
            rows.and_then(|(row, idle)| page_ratio(row, idle, outcome.browser.as_deref())),
        ));
        let pings = p99(number).zip(base);
        targets.push(target(
            format!("row {number}: 99 % of the pings within 60 ms above the idle line's median"),
            pings.map(|(p99, base)| {
                let above = p99 - base;
                (format!("{above:.1} ms above {base:.1} ms"), above <= 60.0)
            }),
        ));
    }
    let promises = |treatment: &str| engine != "user" || treatment == "fair";
    let mut fairness = outcome.fairness.iter();
    let found = fairness.find(|one| one.engine == engine && promises(&one.treatment));
    targets.push(target(
        format!("{fair}nine connections against one, Jain's index of the hosts at least 0.99"),
        found
            .and_then(|found| mean(&found.jain))
            .map(|jain| (format!("{jain:.4}"), jain >= 0.99)),
    ));
    targets
}

/// Largest permitted ratio of a page's load time to that on the idle line.
const PAGE_RATIO_MAX: f64 = 1.25;

/// The ratio of two rows' page loads, and whether it is small enough. It is the browser's if both
/// rows have enough loads of it, because its page is what a user waits for, and otherwise our own
/// loader's; the text names which. Medians, because a busy machine delays single loads.
fn page_ratio(
    row: &RowOutcome,
    idle: &RowOutcome,
    browser: Option<&str>,
) -> Option<(String, bool)> {
    let loads = |row: &RowOutcome, figure: fn(&Result) -> &Vec<f64>| -> Vec<f64> {
        row.runs.iter().flat_map(figure).copied().collect()
    };
    let browsed = [row, idle].map(|row| loads(row, |run| &run.browser_ms));
    let own = [row, idle].map(|row| loads(row, |run| &run.page_ms));
    let (reader, [loads, of_idle]) = match browser {
        Some(browser) if browsed.iter().all(|loads| loads.len() >= BROWSER_LEAST) => {
            (browser, browsed)
        }
        _ => ("our loader", own),
    };
    let ratio = median(&loads)? / median(&of_idle)?;
    let text = format!(
        "{ratio:.2} times ({reader}, medians of {} and {} loads)",
        loads.len(),
        of_idle.len()
    );
    Some((text, ratio <= PAGE_RATIO_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::rows::Row;

    fn row(page_ms: &[f64], browser_ms: Vec<f64>) -> RowOutcome {
        let mut row = RowOutcome::new(Row::ALL[1], "user");
        row.runs.push(Result {
            page_ms: page_ms.to_vec(),
            browser_ms,
            ..Result::default()
        });
        row
    }

    #[test]
    fn pages_are_judged_by_the_browser_if_it_loaded_enough_of_them() {
        let idle = row(&[100.0; 3], vec![200.0; 20]);
        let slow = row(&[110.0; 3], vec![400.0; 20]);
        let (text, reached) = page_ratio(&slow, &idle, Some("chromium")).expect("both measured");
        assert_eq!(text, "2.00 times (chromium, medians of 20 and 20 loads)");
        assert!(!reached);
        // One load too few, and no browser at all.
        let few = row(&[110.0; 3], vec![400.0; 19]);
        for (row, browser) in [(&few, Some("chromium")), (&slow, None)] {
            let (text, reached) = page_ratio(row, &idle, browser).expect("both measured");
            assert_eq!(text, "1.10 times (our loader, medians of 3 and 3 loads)");
            assert!(reached);
        }
        assert_eq!(page_ratio(&row(&[], Vec::new()), &idle, None), None);
    }

    #[test]
    fn one_load_that_a_busy_machine_delayed_decides_nothing() {
        let idle = row(&[], vec![200.0; 21]);
        let mut loads = vec![210.0; 20];
        loads.push(9_000.0);
        let ratio = page_ratio(&row(&[], loads), &idle, Some("chromium"));
        assert!(ratio.expect("both measured").1);
    }
}
