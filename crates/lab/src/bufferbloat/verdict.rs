//! The result in one sentence, and rates for a shaper.

use serde::Serialize;

use super::account::{Account, Delay};
use super::grade::{Grade, SOURCE};
use super::run::Kind;

/// The share of a measured rate that a shaper is set to. OpenWrt's guide to SQM recommends 80 to 95 percent.
const SHAPER_PERCENT: u64 = 90;
/// From this share of lost pings on, the sentence says so.
const LOSS_SAID: f64 = 0.01;
/// Above this share of lost pings the answered ones say too little for a grade.
const LOSS_MAX: f64 = 0.2;

/// The verdict on a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The median round trip of the idle phase, in milliseconds.
    pub idle_ms: Option<f64>,
    /// What downloads add to it at the 95th percentile.
    pub down_added_ms: Option<f64>,
    /// What uploads add.
    pub up_added_ms: Option<f64>,
    /// What both together add.
    pub both_added_ms: Option<f64>,
    /// What is graded: the mean of downloads and uploads, or the one that was measured.
    pub added_ms: Option<f64>,
    /// The grade.
    pub grade: Option<Grade>,
    /// The grade of downloads alone.
    pub down_grade: Option<Grade>,
    /// The grade of uploads alone.
    pub up_grade: Option<Grade>,
    /// Where the thresholds come from.
    pub grade_source: &'static str,
    /// Rates for a shaper: 90 % of what was measured, as `up=18mbit,down=90mbit`.
    pub set: Option<String>,
    /// The sentence.
    pub sentence: String,
}

impl Verdict {
    /// The verdict on the accounts of a run's phases; its first ping stream counts.
    #[must_use]
    pub fn of(accounts: &[Account]) -> Verdict {
        let account = |kind| accounts.iter().find(|account| account.kind == kind);
        let delay = |kind| account(kind).and_then(|account| account.pings.first());
        let idle_us = delay(Kind::Idle).and_then(|delay| delay.p50_us);
        let added = |kind| {
            let loaded = delay(kind)?.p95_us?;
            Some((loaded as f64 - idle_us? as f64) / 1e3)
        };
        let (down, up, both) = (added(Kind::Down), added(Kind::Up), added(Kind::Both));
        let added_ms = match (down, up) {
            (Some(down), Some(up)) => Some(f64::midpoint(down, up)),
            (one, other) => one.or(other).or(both),
        };
        let rate = |kind, of: fn(&Account) -> Option<u64>| {
            let phases = [account(kind), account(Kind::Both)];
            phases.into_iter().flatten().find_map(of)
        };
        let is_lossy = |kind| delay(kind).is_some_and(|delay| loss(delay) > LOSS_MAX);
        let is_lossy = Kind::ALL.into_iter().any(is_lossy);
        let grade = |added: Option<f64>| added.filter(|_| !is_lossy).map(Grade::of);
        let down_bps = rate(Kind::Down, |account| account.down_bps);
        let up_bps = rate(Kind::Up, |account| account.up_bps);
        let mut verdict = Verdict {
            idle_ms: idle_us.map(|us| us as f64 / 1e3),
            down_added_ms: down,
            up_added_ms: up,
            both_added_ms: both,
            added_ms,
            grade: grade(added_ms),
            down_grade: grade(down),
            up_grade: grade(up),
            grade_source: SOURCE,
            set: set(up_bps, down_bps),
            sentence: String::new(),
        };
        let losses = Kind::ALL.map(|kind| (kind, delay(kind).map_or(0.0, loss)));
        verdict.sentence = verdict.say((down_bps, up_bps), &losses);
        verdict
    }

    fn say(
        &self,
        (down_bps, up_bps): (Option<u64>, Option<u64>),
        losses: &[(Kind, f64)],
    ) -> String {
        let Some(idle_ms) = self.idle_ms else {
            return "No verdict: no ping was answered while the link was idle.".to_owned();
        };
        let idle = format!("{} ms idle", ms(idle_ms));
        let added = |added: Option<f64>, words: &str, rate: Option<u64>| {
            let rate = rate.map(|bps| format!(" at {}", megabits(bps)));
            added.map(|added| {
                format!(
                    "+{} ms {words}{}",
                    ms(added.max(0.0)),
                    rate.unwrap_or_default()
                )
            })
        };
        let mut parts: Vec<String> = [
            added(self.down_added_ms, "while downloading", down_bps),
            added(self.up_added_ms, "while uploading", up_bps),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() {
            parts.extend(added(self.both_added_ms, "under load both ways", None));
        }
        let lost: Vec<String> = losses
            .iter()
            .filter(|(_, loss)| *loss >= LOSS_SAID)
            .map(|(kind, loss)| {
                format!(
                    "{:.0} % of the pings lost in phase {}",
                    loss * 100.0,
                    kind.name()
                )
            })
            .collect();
        let lost = match lost.is_empty() {
            true => String::new(),
            false => format!("; {}", lost.join(", ")),
        };
        let Some(grade) = self.grade else {
            return match self.added_ms {
                None => format!("No verdict: {idle}, but no delay under load was measured{lost}."),
                Some(_) => format!("No verdict: {idle}{lost}."),
            };
        };
        format!("Grade {grade}: {idle}, {}{lost}.", parts.join(" and "))
    }
}

fn loss(delay: &Delay) -> f64 {
    match delay.sent {
        0 => 0.0,
        sent => delay.lost as f64 / sent as f64,
    }
}

/// Milliseconds with three digits or so.
fn ms(ms: f64) -> String {
    match ms {
        ms if ms < 9.995 => format!("{ms:.2}"),
        ms if ms < 99.95 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

/// A rate in Mbit/s with three digits or so.
pub(super) fn megabits(bps: u64) -> String {
    let rate = bps as f64 / 1e6;
    match rate {
        rate if rate < 9.995 => format!("{rate:.2} Mbit/s"),
        rate if rate < 99.95 => format!("{rate:.1} Mbit/s"),
        rate => format!("{rate:.0} Mbit/s"),
    }
}

/// Both rates for a shaper, as far as they are known.
fn set(up_bps: Option<u64>, down_bps: Option<u64>) -> Option<String> {
    let part = |name: &str, bps: Option<u64>| {
        let bps = bps? / 100 * SHAPER_PERCENT;
        Some(format!("{name}={}", shaper_rate(bps)?))
    };
    let parts: Vec<String> = [part("up", up_bps), part("down", down_bps)]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| parts.join(","))
}

/// A rate with three digits, rounded down, as `headend qos` reads it.
fn shaper_rate(bps: u64) -> Option<String> {
    let kbit = bps / 1_000;
    if kbit == 0 {
        return None;
    }
    let step = 10_u64.pow(kbit.ilog10().saturating_sub(2));
    let kbit = kbit / step * step;
    Some(match kbit {
        ..1_000 => format!("{kbit}kbit"),
        _ if kbit.is_multiple_of(1_000) => format!("{}mbit", kbit / 1_000),
        _ => format!("{}mbit", kbit as f64 / 1e3),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_for_a_shaper_are_rounded_down_and_readable() {
        for (measured, text) in [
            (20_000_000, "18mbit"),
            (100_123_456, "90.1mbit"),
            (10_444_000, "9.39mbit"),
            (1_000_000, "900kbit"),
            (1_234_567_890, "1110mbit"),
            (1_500, "1kbit"),
        ] {
            let set = set(Some(measured), None).unwrap();
            assert_eq!(set, format!("up={text}"));
            let read = qos::units::rate(text).unwrap();
            assert!(read <= measured / 10 * 9, "{text}");
        }
        assert_eq!(set(None, Some(1_000)), None);
        assert_eq!(
            set(Some(2_000_000), Some(20_000_000)).as_deref(),
            Some("up=1.8mbit,down=18mbit")
        );
    }
}
