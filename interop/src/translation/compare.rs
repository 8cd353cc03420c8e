//! The lines of both translators, step by step. Where the RFCs ask for what conntrack does not do, or leave a choice, the
//! step names the difference, and each of the two has to behave as the difference says.

use super::{Line, kernel};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;

/// What one translator does with the packet of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It lets the packet pass.
    Passes,
    Drops,
}
use Does::{Drops, Passes};

/// A difference that is to be there.
struct Difference {
    name: &'static str,
    /// Why ours behaves as it does.
    reason: &'static str,
    conntrack: Does,
    ours: Does,
}

pub(super) const FILTERING: &str = "filtering";
pub(super) const HAIRPINNING: &str = "hairpinning";
pub(super) const WINDOW: &str = "window";
pub(super) const REASSEMBLY: &str = "reassembly";
pub(super) const NO_PORTS: &str = "no ports";
pub(super) const CHECKSUM: &str = "wrong checksum";
pub(super) const DAMAGED_QUOTE: &str = "damaged quote";
pub(super) const SOURCE_QUENCH: &str = "source quench";
pub(super) const INBOUND_REFRESH: &str = "inbound refresh";
pub(super) const UDP_TIMEOUT: &str = "UDP time-out";
pub(super) const ICMP_TIMEOUT: &str = "ICMP time-out";
pub(super) const OPENING_TIMEOUT: &str = "opening time-out";
pub(super) const CLOSING_TIMEOUT: &str = "closing time-out";
pub(super) const RESET_TIMEOUT: &str = "reset time-out";
pub(super) const HALF_CLOSED_TIMEOUT: &str = "half-closed time-out";
pub(super) const ESTABLISHED_TIMEOUT: &str = "established time-out";

const fn differs(
    name: &'static str,
    conntrack: Does,
    ours: Does,
    reason: &'static str,
) -> Difference {
    Difference {
        name,
        reason,
        conntrack,
        ours,
    }
}

/// Every difference; docs/nat.md has the same table.
const DIFFERENCES: &[Difference] = &[
    differs(FILTERING, Drops, Passes, "RFC 4787 REQ-8, RFC 5382 REQ-3"),
    differs(HAIRPINNING, Drops, Passes, "RFC 4787 REQ-9"),
    differs(
        WINDOW,
        Drops,
        Passes,
        "RFC 7857 section 2, figure 1: flags alone",
    ),
    differs(REASSEMBLY, Drops, Passes, "RFC 4787 REQ-14"),
    differs(
        NO_PORTS,
        Passes,
        Drops,
        "RFC 6888 section 1: sharing needs ports",
    ),
    differs(
        CHECKSUM,
        Drops,
        Passes,
        "RFC 3022 section 4.1: adjusted; the receiver verifies it",
    ),
    differs(DAMAGED_QUOTE, Passes, Drops, "RFC 5508 REQ-3a"),
    differs(SOURCE_QUENCH, Passes, Drops, "RFC 5508 REQ-10c"),
    differs(INBOUND_REFRESH, Passes, Drops, "RFC 4787 REQ-6a"),
    differs(UDP_TIMEOUT, Drops, Passes, "RFC 4787 REQ-5"),
    differs(ICMP_TIMEOUT, Drops, Passes, "RFC 5508 REQ-2"),
    differs(OPENING_TIMEOUT, Drops, Passes, "RFC 5382 REQ-5"),
    differs(CLOSING_TIMEOUT, Drops, Passes, "RFC 5382 REQ-5"),
    differs(RESET_TIMEOUT, Drops, Passes, "RFC 7857 section 2.2"),
    differs(
        HALF_CLOSED_TIMEOUT,
        Drops,
        Passes,
        "RFC 7857 section 2, figure 1",
    ),
    differs(ESTABLISHED_TIMEOUT, Passes, Drops, "RFC 5382 REQ-5"),
];

/// Compares what the kernel has written down with our lines. Returns how often each difference was seen, `same` for steps
/// without one.
///
/// # Errors
/// All steps whose outcomes differ otherwise than they are to.
pub(crate) fn compare(theirs: &str, ours: &[Line]) -> Result<BTreeMap<&'static str, usize>> {
    let theirs = kernel::read(theirs)?;
    ensure!(
        theirs.len() == ours.len(),
        "{} lines and {}",
        theirs.len(),
        ours.len()
    );
    let (mut seen, mut faults) = (BTreeMap::new(), Vec::new());
    for (theirs, ours) in theirs.iter().zip(ours) {
        ensure!(
            theirs.step == ours.step,
            "'{}' and '{}'",
            theirs.step,
            ours.step
        );
        match judge(theirs, ours) {
            Ok(name) => *seen.entry(name).or_insert(0) += 1,
            Err(fault) => faults.push(format!("{fault:#}")),
        }
    }
    if faults.is_empty() {
        return Ok(seen);
    }
    bail!(
        "{} of {} steps:\n{}",
        faults.len(),
        ours.len(),
        faults.join("\n")
    )
}

fn judge(theirs: &Line, ours: &Line) -> Result<&'static str> {
    let both = || {
        format!(
            "step {}\n  conntrack: {}\n  ours:      {}",
            ours.step, theirs.outcome, ours.outcome
        )
    };
    // A checksum that was wrong before stays wrong, so that the receiver drops the packet.
    let is_wrong = ours.outcome.contains("WRONG");
    ensure!(is_wrong == (ours.difference == CHECKSUM), "{}", both());
    if ours.difference.is_empty() {
        ensure!(theirs.outcome == ours.outcome, "{}", both());
        return Ok("same");
    }
    let difference = DIFFERENCES.iter().find(|one| one.name == ours.difference);
    let difference = difference.with_context(|| format!("no difference is {}", ours.difference))?;
    let does = |line: &Line| if line.outcome == "-" { Drops } else { Passes };
    ensure!(
        (does(theirs), does(ours)) == (difference.conntrack, difference.ours),
        "{} ({}): not as expected\n{}",
        difference.name,
        difference.reason,
        both()
    );
    Ok(difference.name)
}

/// The differences that no step has shown.
pub(crate) fn unseen(seen: &BTreeMap<&'static str, usize>) -> Vec<&'static str> {
    let names = DIFFERENCES.iter().map(|one| one.name);
    names.filter(|name| !seen.contains_key(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(difference: &str, outcome: &str) -> Line {
        Line {
            step: "1 a".to_owned(),
            difference: difference.to_owned(),
            outcome: outcome.to_owned(),
        }
    }

    #[test]
    fn a_step_without_a_difference_has_the_same_outcome() {
        assert_eq!(judge(&line("", "x"), &line("", "x")).unwrap(), "same");
        assert!(judge(&line("", "x"), &line("", "-")).is_err());
        assert!(judge(&line("", "WRONG"), &line("", "WRONG")).is_err());
    }

    /// Ours as its own oracle: only the steps that are to differ are faults.
    #[test]
    fn every_expected_difference_and_no_other_step_is_missed_if_both_are_ours() {
        for schedule in super::super::Schedule::ALL {
            let ours = super::super::play_ours(schedule).unwrap();
            let text: String = ours
                .iter()
                .map(|line| format!("{}\t{}\t{}\n", line.step, line.difference, line.outcome))
                .collect();
            let expected = ours
                .iter()
                .filter(|line| !line.difference.is_empty())
                .count();
            assert!(expected > 0, "{schedule:?}");
            let faults = compare(&text, &ours).unwrap_err().to_string();
            let first = format!("{expected} of {} steps", ours.len());
            assert!(faults.starts_with(&first), "{faults}");
        }
    }

    #[test]
    fn a_difference_that_is_gone_is_a_fault() {
        let name = FILTERING;
        assert_eq!(judge(&line(name, "-"), &line(name, "x")).unwrap(), name);
        assert!(judge(&line(name, "x"), &line(name, "x")).is_err());
        assert!(judge(&line(name, "-"), &line(name, "-")).is_err());
    }
}
