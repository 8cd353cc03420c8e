//! The rates of a policy, changed while it is in force. The file stays as it is.

use super::{Policy, build};
use crate::tree::{Spec, SpecError, Tree};
use crate::units::Rate;
use base::Instant;

/// Why a policy cannot have a rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// The policy does not shape this direction, so there is no rate to change.
    #[error(
        "{0}: the policy does not shape this direction; give link.{0} in its file and reload it"
    )]
    Unshaped(&'static str),
    /// A single packet would take longer than a second.
    #[error("{way}: at {} a packet of {packet} octets takes more than 1 s; give {} or more", Rate(*rate_bps), Rate(*least_bps))]
    TooLow {
        /// The direction.
        way: &'static str,
        /// The rate that was asked for.
        rate_bps: u64,
        /// Length of the longest packet, in bytes on the line.
        packet: u32,
        /// The lowest rate.
        least_bps: u64,
    },
    /// The rate is above what the file says about the line.
    #[error("{way}: {} is more than the line carries ({}, link.line_{way}): packets would queue where they cannot be ordered", Rate(*rate_bps), Rate(*line_bps))]
    AboveLine {
        /// The direction.
        way: &'static str,
        /// The rate that was asked for.
        rate_bps: u64,
        /// The line's own rate.
        line_bps: u64,
    },
    /// The rate is above [`RATE_MAX`].
    #[error("{way}: {} is more than {}, the highest rate", Rate(*rate_bps), Rate(RATE_MAX))]
    TooHigh {
        /// The direction.
        way: &'static str,
        /// The rate that was asked for.
        rate_bps: u64,
    },
    /// The queues cannot be made for this rate.
    #[error("{0}: {1}")]
    Spec(&'static str, SpecError),
}

/// The highest rate that can be set in a running policy, in bits per second.
pub const RATE_MAX: u64 = 1_000_000_000_000;

impl Policy {
    /// The rate of the line itself, in bits per second, if the file has `line_up` or `line_down`.
    #[must_use]
    pub fn line_bps(&self, is_up: bool) -> Option<u64> {
        self.link.lines[usize::from(!is_up)]
    }

    /// The lowest rate that [`Policy::with_rates`] accepts, in bits per second: the longest packet takes a second.
    #[must_use]
    pub fn least_bps(&self) -> u64 {
        u64::from(self.overhead().on_line(self.mtu())) * 8
    }

    /// This policy with other rates in bits per second, up and down; `None` keeps one.
    ///
    /// # Errors
    /// A direction is not shaped, or cannot have this rate.
    pub fn with_rates(&self, rates: [Option<u64>; 2]) -> Result<Self, RateError> {
        let mut changed = self.clone();
        for (is_up, rate_bps) in [true, false].into_iter().zip(rates) {
            let Some(rate_bps) = rate_bps else { continue };
            self.check_rate(is_up, rate_bps)?;
            let link = &mut changed.link;
            let rate = if is_up { &mut link.up } else { &mut link.down };
            if let Some(rate) = rate {
                rate.value = rate_bps;
            }
            let spec = build::spec(&changed, is_up);
            Tree::new(&spec, 0, Instant::ZERO)
                .map_err(|error| RateError::Spec(name(is_up), error))?;
        }
        Ok(changed)
    }

    fn check_rate(&self, is_up: bool, rate_bps: u64) -> Result<(), RateError> {
        let way = name(is_up);
        let rate = if is_up { self.link.up } else { self.link.down };
        if rate.is_none() || self.shape.template.is_none() {
            return Err(RateError::Unshaped(way));
        }
        let least_bps = self.least_bps();
        if rate_bps < least_bps {
            return Err(RateError::TooLow {
                way,
                rate_bps,
                packet: self.overhead().on_line(self.mtu()),
                least_bps,
            });
        }
        if let Some(line_bps) = self.line_bps(is_up).filter(|line| rate_bps > *line) {
            return Err(RateError::AboveLine {
                way,
                rate_bps,
                line_bps,
            });
        }
        if rate_bps > RATE_MAX {
            return Err(RateError::TooHigh { way, rate_bps });
        }
        Ok(())
    }

    /// Warnings about the rates in force, one per line: guarantees that come to more than the link.
    #[must_use]
    pub fn rate_advice(&self) -> Vec<String> {
        let ways = [true, false].into_iter();
        let specs = ways.map(|is_up| (is_up, build::spec(self, is_up)));
        specs
            .filter_map(|(is_up, spec)| {
                let Spec::Htb(spec) = spec else { return None };
                let (link, below) = spec.classes.split_first()?;
                let is_sure = |minor| minor != build::REST;
                let sure = below
                    .iter()
                    .filter(|class| class.parent == Some(link.minor) && is_sure(class.minor));
                let sure: u64 = sure.map(|class| class.rate_bps).sum();
                (sure > link.rate_bps).then(|| {
                    format!(
                        "{}: the guaranteed rates come to {} of {} (advice)",
                        name(is_up),
                        Rate(sure),
                        Rate(link.rate_bps)
                    )
                })
            })
            .collect()
    }
}

fn name(is_up: bool) -> &'static str {
    if is_up { "up" } else { "down" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Policy {
        Policy::parse(text).expect("a policy").0
    }

    #[test]
    fn a_rate_changes_and_the_rest_stays() {
        let text = |up: &str| {
            format!(
                "[link]\nup = \"{up}\"\ndown = \"20mbit\"\n[[class]]\nname = \"work\"\nrate = \"30%\"\nport = 22\n"
            )
        };
        let changed = policy(&text("10mbit")).with_rates([Some(4_000_000), None]);
        let (changed, direct) = (changed.expect("a policy"), policy(&text("4mbit")));
        assert_eq!(changed.up_spec(), direct.up_spec());
        assert_eq!(changed.down_spec(), direct.down_spec());
        assert_eq!(changed.rate_advice(), Vec::<String>::new());
    }

    #[test]
    fn an_impossible_rate_is_refused_with_its_reason() {
        let policy =
            policy("[link]\ndown = \"20mbit\"\nline_down = \"25mbit\"\noverhead = \"none\"\n");
        let refused = |rates| policy.with_rates(rates).expect_err("refused").to_string();
        assert!(refused([Some(1_000_000), None]).starts_with("up: the policy does not shape"));
        assert_eq!(
            refused([None, Some(0)]),
            "down: at 0bit a packet of 1500 octets takes more than 1 s; give 12Kbit or more"
        );
        assert!(refused([None, Some(26_000_000)]).contains("more than the line carries (25Mbit"));
        assert!(policy.with_rates([None, Some(12_000)]).is_ok());
        let free = super::tests::policy("[link]\ndown = \"20mbit\"\n");
        let error = free
            .with_rates([None, Some(u64::MAX)])
            .expect_err("refused");
        assert!(matches!(error, RateError::TooHigh { .. }));
        let plain = super::tests::policy("[link]\nup = \"1mbit\"\n[shape]\ntemplate = \"none\"\n");
        assert_eq!(
            plain.with_rates([Some(2_000_000), None]).err(),
            Some(RateError::Unshaped("up"))
        );
    }

    #[test]
    fn guarantees_beyond_a_lower_rate_are_named() {
        let policy = policy(
            "[link]\nup = \"10mbit\"\n[[class]]\nname = \"a\"\nrate = \"4mbit\"\nport = 1\n[[class]]\nname = \"b\"\nrate = \"4mbit\"\nport = 2\n",
        );
        let lower = policy
            .with_rates([Some(5_000_000), None])
            .expect("a policy");
        assert_eq!(
            lower.rate_advice(),
            ["up: the guaranteed rates come to 8Mbit of 5Mbit (advice)"]
        );
    }
}
