//! `headend bench subscribers`: the cost of a subscriber in an LNS, in time and memory, from
//! nothing to an IP address. This includes L2TP's tunnel and session, LCP, CHAP or PAP, IPCP and
//! IPv6CP. A bare loop that exchanges as many datagrams is the comparison. Start with `wave`.
//!
//! | file | contents |
//! |---|---|
//! | `lns` | the LNS that is measured, and its users |
//! | `load` | the clients |
//! | `radius` | the RADIUS server that the LNS asks |
//! | `wave` | one wave of subscribers, and its cost |
//! | `floor` | the bare loop's load |
//! | `tables` | the report |

mod floor;
pub(super) mod lns;
pub(super) mod load;
pub(super) mod radius;
mod tables;
mod wave;

use std::process::ExitCode;

use anyhow::Result;
use lab::report::{CoreWitness, MachineInfo, Report};

use self::lns::{By, Kind, Proof};
use self::wave::{Run, Waves};
use super::Out;
use crate::harness::Bench;
use crate::harness::cores::Cores;
use crate::harness::run::{RunDirectory, temporary};
use cli::progress::spinner;

/// Measure what subscribers cost an LNS, from nothing to IP.
#[derive(Debug, clap::Args)]
pub(super) struct SubscribersArgs {
    /// Numbers of subscribers
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=500_000))]
    sizes: Vec<u32>,
    /// Authentication protocols
    #[arg(
        long,
        value_name = "PROTOCOL,...",
        value_delimiter = ',',
        default_value = "chap,pap"
    )]
    proofs: Vec<Proof>,
    /// Sources that authenticate the subscribers
    #[arg(
        long,
        value_name = "SOURCE,...",
        value_delimiter = ',',
        default_value = "users,radius"
    )]
    by: Vec<By>,
    /// Open IPv6 in addition to IPv4
    #[arg(long)]
    ipv6: bool,
    /// Number of subscribers that connect at the same time
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    window: u32,
    /// Number of rounds at the largest size; smaller sizes get more
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Measure with a few hundred subscribers, in a few seconds
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    out: Out,
}

impl SubscribersArgs {
    fn sizes(&self) -> Vec<u32> {
        let default: &[u32] = if self.quick {
            &[50, 200]
        } else {
            &[1_000, 10_000, 100_000]
        };
        let mut sizes = if self.sizes.is_empty() {
            default.to_vec()
        } else {
            self.sizes.clone()
        };
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Number of rounds; short measurements are repeated more often.
    fn rounds(&self, subscribers: u32) -> u32 {
        match (self.quick, subscribers) {
            (true, _) => 1,
            (_, ..=1_000) => 3 * self.rounds,
            (_, ..=10_000) => 2 * self.rounds - 1,
            _ => self.rounds,
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for &by in &self.by {
            kinds.extend(self.proofs.iter().map(|&proof| Kind {
                proof,
                by,
                ipv6: false,
            }));
        }
        let first = kinds.first().copied().filter(|_| self.ipv6);
        kinds.extend(first.map(|kind| Kind { ipv6: true, ..kind }));
        kinds
    }
}

/// Measures and publishes. Fails unless every subscriber connected.
pub(super) fn run(args: &SubscribersArgs) -> Result<ExitCode> {
    let bench = Bench {
        directory: RunDirectory::new(temporary())?,
        cores: Cores::take(),
        bar: spinner("subscribers"),
    };
    let witness = CoreWitness::start();
    let mut all = Vec::new();
    for subscribers in args.sizes() {
        measure(&bench, args, subscribers, &mut all)?;
    }
    bench.bar.finish_and_clear();
    bench.cores.leave();
    let mut report = Report::new("subscribers", MachineInfo::read_with(witness));
    report.method = method(args, bench.cores.are_apart());
    report.tables = tables::all(&all);
    args.out.publish(&report)?;
    let is_complete = |waves: &Waves| {
        let mut runs = waves.runs.iter();
        runs.all(|run| run.complete == waves.subscribers)
    };
    Ok(if all.iter().all(is_complete) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Waves of one size, each kind in turn.
fn measure(
    bench: &Bench,
    args: &SubscribersArgs,
    subscribers: u32,
    all: &mut Vec<Waves>,
) -> Result<()> {
    let rounds = args.rounds(subscribers);
    for round in 1..=rounds {
        for (n, kind) in args.kinds().into_iter().enumerate() {
            let what = kind.name();
            bench.say(format!(
                "{subscribers} subscribers, {what}, {round} of {rounds}"
            ));
            let run = wave::ours(bench, kind, subscribers, args.window)?;
            if n == 0 {
                let bare = wave::bare(bench, subscribers, args.window, &run.wave)?;
                file(all, None, subscribers, bare);
            }
            file(all, Some(kind), subscribers, run);
        }
    }
    Ok(())
}

/// Adds a wave to the others of its kind.
fn file(all: &mut Vec<Waves>, kind: Option<Kind>, subscribers: u32, run: Run) {
    let same = |waves: &&mut Waves| waves.kind == kind && waves.subscribers == subscribers;
    match all.iter_mut().find(same) {
        Some(found) => found.runs.push(run),
        None => all.push(Waves {
            kind,
            subscribers,
            runs: vec![run],
        }),
    }
}

fn method(args: &SubscribersArgs, apart: bool) -> Vec<String> {
    let mut lines = vec![
        "The load generator runs clients of this program's own edge, in the benchmark's process. The LNS is a separate process, started anew for each wave. The LNS has a users file with as many users as subscribers, or asks a RADIUS server. The RADIUS server is a thread of the benchmark's process, on the load generator's core, and accepts every request with a valid authenticator. The RADIUS server and both ends of L2TP receive joined datagrams (GRO). Processor time is the scheduler's count for the LNS's process, in nanoseconds."
            .to_owned(),
        format!(
            "Subscribers connect {} at a time, each through its own L2TPv2 tunnel from its own address in 127.0.0.0/8. The exchange is SCCRQ to SCCCN, ICRQ to ICCN, LCP, CHAP with MD5 or PAP, and IPCP with an address from a pool. Above 60,000 subscribers, the LNS has two listen addresses, because L2TPv2's ids have 16 bits. Waves of all kinds alternate; the table shows the wave of median cost.",
            args.window
        ),
        "A subscriber is connected when its IPCP is open. At the end, all requested subscribers must be connected, with IPv6CP if it is measured, and the LNS must report the same number of sessions."
            .into(),
        "The bare loop receives with recvmmsg, answers with sendmmsg and waits with ppoll. For each subscriber, it receives and sends as many datagrams as the first kind of the same round, of the same mean length and from the same addresses. The bare loop answers each datagram of a subscriber before the next one is sent. It passes each datagram to the kernel as a separate message. Our LNS and its clients pass all datagrams of one turn to the same peer as one message (GSO)."
            .into(),
        "Memory is the resident memory gained since before the first subscriber, counted page by page: the subscriber, its session and its tunnel. The LNS has read its users before that."
            .into(),
    ];
    lines.push(if apart {
        "The load generator runs on one core and the LNS on another; the cores are the same for all measurements.".into()
    } else {
        "The load generator and the LNS share the machine's only core.".into()
    });
    if cfg!(debug_assertions) {
        lines.push("This build is not optimised, so its figures are not valid.".into());
    }
    lines
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: SubscribersArgs,
    }

    fn args(line: &str) -> SubscribersArgs {
        let words = std::iter::once("subscribers").chain(line.split_ascii_whitespace());
        Line::try_parse_from(words).unwrap().args
    }

    #[test]
    fn three_sizes_are_measured_by_chap_and_pap_and_ipv6_only_where_asked_for() {
        assert_eq!(args("").sizes(), [1_000, 10_000, 100_000]);
        assert_eq!(args("--sizes 20,10,20").sizes(), [10, 20]);
        assert!(args("--quick").sizes().iter().all(|&n| n <= 200));
        let kinds = |line: &str| {
            let kinds = args(line).kinds().into_iter();
            kinds.map(Kind::name).collect::<Vec<_>>()
        };
        let proofs = ["CHAP, users file, IPv4", "PAP, users file, IPv4"];
        assert_eq!(kinds("--by users"), proofs);
        let with = [
            "CHAP, RADIUS, IPv4",
            "CHAP, users file, IPv4",
            "CHAP, RADIUS, IPv4 and IPv6",
        ];
        assert_eq!(kinds("--proofs chap --by radius,users --ipv6"), with);
    }
}
