//! What the BGP benchmark measures, and for how long: a quick run, a full one, or the sizes asked
//! for.

use base::Duration;

use super::BgpArgs;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Part {
    /// Sessions that only have to be kept
    Passive,
    /// Many sessions that come up at once
    Bringup,
    /// A table from a feeder to a sink
    Table,
    /// A full mesh over TCP
    Mesh,
    /// A full mesh in memory
    Memory,
    /// A hijack over a graph of autonomous systems
    Hijack,
}

impl Part {
    const ALL: [Self; 6] = [
        Self::Passive,
        Self::Bringup,
        Self::Table,
        Self::Mesh,
        Self::Memory,
        Self::Hijack,
    ];
}

/// What is measured, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    pub(super) kept: Vec<u32>,
    pub(super) risen: Vec<u32>,
    pub(super) prefixes: Vec<u32>,
    /// Routers of meshes with one process for each router.
    pub(super) meshes: Vec<u32>,
    /// Routers of meshes over TCP in one process.
    pub(super) emulated: Vec<u32>,
    /// Routers of meshes in memory.
    pub(super) in_memory: Vec<u32>,
    /// Virtual time for which a mesh in memory is kept, in seconds.
    pub(super) virtual_s: u64,
    /// Autonomous systems of a hijack.
    pub(super) hijacks: Vec<u32>,
    /// How long sessions are kept.
    pub(super) keep: Duration,
    /// How often a short measurement is repeated.
    pub(super) rounds: u32,
    /// Longest time that a table may take.
    pub(super) table_max: Duration,
}

impl BgpArgs {
    /// The plan for the command line's options.
    pub(super) fn plan(&self) -> Plan {
        let or = |given: &[u32], default: &[u32]| {
            let sizes = if given.is_empty() { default } else { given };
            let mut sizes = sizes.to_vec();
            sizes.sort_unstable();
            sizes.dedup();
            sizes
        };
        // Each of these lists is short in a quick run.
        let either = |quick: &'static [u32], full: &'static [u32]| {
            if self.quick { quick } else { full }
        };
        let parts = if self.only.is_empty() {
            Part::ALL.to_vec()
        } else {
            self.only.clone()
        };
        Plan {
            parts,
            kept: or(&self.sizes, either(&[25, 50, 100], &[1_000, 2_000, 5_000])),
            risen: or(&self.sizes, either(&[25, 50, 100], &[625, 1_250, 2_500])),
            prefixes: or(
                &self.prefixes,
                either(&[1_000, 2_000, 4_000], &[250_000, 500_000, 1_000_000]),
            ),
            meshes: or(&self.routers, either(&[3, 6], &[10, 20, 40])),
            emulated: or(&self.routers, either(&[6, 12], &[75, 150, 300])),
            in_memory: or(&self.routers, either(&[10, 20, 40], &[250, 500, 1_000])),
            virtual_s: if self.quick { 5 } else { 30 },
            hijacks: or(&self.systems, either(&[100, 200], &[10_000, 75_000])),
            keep: Duration::from_secs(if self.quick { 2 } else { 10 }),
            rounds: if self.quick { 1 } else { 3 },
            table_max: Duration::from_secs(150),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::daemons::Peer;
    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: BgpArgs,
    }

    fn args(line: &str) -> BgpArgs {
        let words = std::iter::once("bgp").chain(line.split_ascii_whitespace());
        Line::try_parse_from(words).unwrap().args
    }

    #[test]
    fn three_sizes_are_measured_and_quick_ones_are_small() {
        let plan = args("").plan();
        assert_eq!(plan.kept, [1_000, 2_000, 5_000]);
        assert_eq!(
            (plan.risen.last(), plan.prefixes.last()),
            (Some(&2_500), Some(&1_000_000))
        );
        assert_eq!(plan.parts, Part::ALL);
        let quick = args("--quick").plan();
        assert!(quick.kept.iter().chain(&quick.risen).all(|&n| n <= 100));
    }

    #[test]
    fn parts_sizes_and_peers_are_as_typed() {
        let args = args("--only table,passive --sizes 20,10,20 --prefixes 7 --against bird,frr");
        let plan = args.plan();
        assert_eq!(plan.parts, [Part::Table, Part::Passive]);
        assert_eq!((plan.kept, plan.prefixes), (vec![10, 20], vec![7]));
        assert_eq!(args.against, [Peer::Bird, Peer::Frr]);
    }
}
