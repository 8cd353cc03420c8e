//! What the tunnels benchmark measures, and for how long: a quick run, a full one, or the sizes
//! asked for.

use base::Duration;

use super::TunnelsArgs;
use super::peers::Peer;

/// What is measured, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) sizes: Vec<u32>,
    /// Waves of each kind at the largest size; smaller sizes get more.
    pub(super) rounds: u32,
    pub(super) storms: Vec<u32>,
    pub(super) hello_rate: u32,
    /// Length of one measurement of HELLOs.
    pub(super) hello_span: Duration,
    /// Number of measurements of HELLOs.
    pub(super) hello_rounds: u32,
    pub(super) idle_span: Duration,
    pub(super) peers: Vec<Peer>,
    /// Largest size at which peers are measured.
    pub(super) peer_size_max: u32,
    pub(super) peer_hello_rate: u32,
    pub(super) peer_span: Duration,
}

impl TunnelsArgs {
    /// The plan for the command line's options.
    pub(super) fn plan(&self) -> Plan {
        let (sizes, storms): (&[u32], &[u32]) = if self.quick {
            (&[50, 100, 200], &[200])
        } else {
            (&[1_000, 10_000, 100_000], &[1_000, 10_000, 50_000])
        };
        let mut sizes = if self.sizes.is_empty() {
            sizes.to_vec()
        } else {
            self.sizes.clone()
        };
        sizes.sort_unstable();
        sizes.dedup();
        let full = Plan {
            sizes,
            rounds: 3,
            storms: storms.to_vec(),
            hello_rate: 10_000,
            hello_span: Duration::from_secs(2),
            hello_rounds: 5,
            idle_span: Duration::from_secs(10),
            peers: self.against.clone(),
            peer_size_max: u32::MAX,
            peer_hello_rate: 1_000,
            peer_span: Duration::from_secs(3),
        };
        if !self.quick {
            return full;
        }
        Plan {
            rounds: 1,
            hello_rate: 1_000,
            hello_span: Duration::from_millis(200),
            hello_rounds: 1,
            idle_span: Duration::from_millis(200),
            peer_size_max: 100,
            peer_hello_rate: 200,
            peer_span: Duration::from_millis(200),
            ..full
        }
    }
}

impl Plan {
    /// Waves of each kind at a size; short ones are repeated more often.
    pub(super) fn rounds(&self, tunnels: u32) -> u32 {
        if tunnels <= 1_000 {
            6 * self.rounds - 5
        } else if tunnels <= 10_000 {
            2 * self.rounds - 1
        } else {
            self.rounds
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: TunnelsArgs,
    }

    fn plan(line: &str) -> Plan {
        let words = std::iter::once("tunnels").chain(line.split_ascii_whitespace());
        Line::try_parse_from(words).unwrap().args.plan()
    }

    #[test]
    fn sizes_are_sorted_and_quick_is_small() {
        assert_eq!(plan("--sizes 20,10,20").sizes, [10, 20]);
        assert_eq!(plan("").sizes, [1_000, 10_000, 100_000]);
        assert!(plan("--quick").sizes.iter().all(|&n| n <= 200));
        assert_eq!(plan("--quick").rounds(50), 1);
        assert_eq!(
            [1_000, 10_000, 100_000].map(|n| plan("").rounds(n)),
            [13, 5, 3]
        );
    }

    #[test]
    fn peers_are_named_with_commas_and_others_are_refused() {
        let both = plan("--against xl2tpd,l2tpns").peers;
        assert_eq!(both, [Peer::Xl2tpd, Peer::L2tpns]);
        assert!(Line::try_parse_from(["tunnels", "--against", "mpd5"]).is_err());
    }
}
