//! The targets of the rows.

use super::outcome::Outcome;
use super::rows::{Result, mean};

/// A target, and whether it was reached; `None` if it was not measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The target as text.
    pub what: String,
    /// The result.
    pub found: String,
    /// Whether the result reaches it.
    pub reached: Option<bool>,
}

/// The targets of the rows, and of `fair` between the hosts.
#[must_use]
pub fn targets(outcome: &Outcome) -> Vec<Target> {
    let figure = |number: u8, figure: &dyn Fn(&Result) -> Option<f64>| {
        outcome.row(number).and_then(|row| row.mean(figure))
    };
    let mut targets = Vec::new();
    let mut add = |what: String, found: Option<(String, bool)>| {
        let (found, reached) = match found {
            Some((found, reached)) => (found, Some(reached)),
            None => ("not measured".to_owned(), None),
        };
        targets.push(Target {
            what,
            found,
            reached,
        });
    };
    let loss = |number| figure(number, &|result| Some(result.loss_percent));
    add(
        "row 5: the stream loses at least 50 %".to_owned(),
        loss(5).map(|loss| (format!("{loss:.1} %"), loss >= 50.0)),
    );
    add(
        "row 6: the stream loses nothing".to_owned(),
        loss(6).map(|loss| (format!("{loss:.2} %"), loss == 0.0)),
    );
    let page = |number| figure(number, &Result::page_mean_ms);
    let p99 = |number| figure(number, &|result| result.ping_percentile_ms(0.99));
    let base = figure(2, &|result| result.ping_percentile_ms(0.5));
    for number in [4, 6] {
        let share = figure(number, &|result| result.share);
        add(
            format!("row {number}: B gets half of the link"),
            share.map(|share| (format!("{share:.3}"), (0.45..=0.55).contains(&share))),
        );
        let pages = page(number).zip(page(2));
        add(
            format!("row {number}: a page takes at most 1.25 times that of row 2"),
            pages.map(|(page, idle)| {
                let ratio = page / idle;
                (format!("{ratio:.2} times"), ratio <= 1.25)
            }),
        );
        let pings = p99(number).zip(base);
        add(
            format!("row {number}: 99 % of the pings within 60 ms above the idle line's median"),
            pings.map(|(p99, base)| {
                let above = p99 - base;
                (format!("{above:.1} ms above {base:.1} ms"), above <= 60.0)
            }),
        );
    }
    let fair = outcome.fairness.iter().find(|one| one.treatment == "fair");
    add(
        "fair: nine connections against one, Jain's index of the hosts at least 0.99".to_owned(),
        fair.and_then(|fair| mean(&fair.jain))
            .map(|jain| (format!("{jain:.4}"), jain >= 0.99)),
    );
    targets
}
