//! `headend bench pppoe`: the cost of a PPPoE host to the daemon, from PADI to an IPv4 address and a delegated IPv6
//! prefix, and the cost of a flood of PADIs. A bare loop that exchanges as many frames is the comparison. Start with
//! `wave`.
//!
//! | file | contents |
//! |---|---|
//! | `place` | the namespaces, the wire, and the daemon that is measured |
//! | `frames` | Ethernet's header and the MAC addresses of the hosts |
//! | `dhcp` | a host's DHCPv6 messages |
//! | `hosts` | the load |
//! | `bare` | the bare loop and its load |
//! | `wave` | one wave of hosts, one flood, and their cost |
//! | `tables` | the report |
//!
//! The RADIUS server is that of `subscribers`.

pub(super) mod bare;
mod dhcp;
pub(crate) mod frames;
mod hosts;
mod place;
mod tables;
mod wave;

use std::process::ExitCode;

use anyhow::Result;
use base::Duration;
use lab::report::{CoreWitness, MachineInfo, Report};

use self::place::Place;
use self::wave::{Flood, Run, Waves};
use super::Out;
use crate::harness::Bench;
use crate::harness::cores::Cores;
use crate::harness::run::{RunDirectory, temporary};
use crate::subscribers::lns::Proof;
use cli::progress::spinner;

/// Measure what PPPoE hosts cost the daemon, from PADI to IPv4 and IPv6; needs root.
#[derive(Debug, clap::Args)]
pub(super) struct PppoeArgs {
    /// Numbers of hosts
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=60_000))]
    sizes: Vec<u16>,
    /// Authentication protocols
    #[arg(
        long,
        value_name = "PROTOCOL,...",
        value_delimiter = ',',
        default_value = "chap"
    )]
    proofs: Vec<Proof>,
    /// Number of hosts that connect at the same time
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    window: u32,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// PADIs per second of the flood
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    flood: u32,
    /// Measure with a few hundred hosts, in a few seconds
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    out: Out,
}

impl PppoeArgs {
    fn sizes(&self) -> Vec<u16> {
        match (self.sizes.is_empty(), self.quick) {
            (false, _) => self.sizes.clone(),
            (true, false) => vec![15_000, 30_000, 60_000],
            (true, true) => vec![50, 100, 200],
        }
    }

    /// Sessions beside the flood, and its length.
    fn flooded(&self) -> (u16, Duration) {
        match self.quick {
            true => (100, Duration::from_millis(500)),
            false => (2_000, Duration::from_secs(5)),
        }
    }
}

/// Measures and publishes. Fails unless every host connected and no established session lost a packet.
pub(super) fn run(args: &PppoeArgs) -> Result<ExitCode> {
    let place = Place::new()?;
    let bench = Bench {
        directory: RunDirectory::new(temporary())?,
        cores: Cores::take(),
        bar: spinner("pppoe"),
    };
    let witness = CoreWitness::start();
    let mut all = Vec::new();
    for hosts in args.sizes() {
        measure(&bench, &place, args, hosts, &mut all)?;
    }
    let floods = floods(&bench, &place, args)?;
    bench.bar.finish_and_clear();
    bench.cores.leave();
    let mut report = Report::new("pppoe", MachineInfo::read_with(witness));
    report.method = method(args, bench.cores.are_apart());
    report.tables = tables::all(&all, &floods);
    args.out.publish(&report)?;
    let is_complete = |waves: &Waves| {
        let mut runs = waves.runs.iter();
        runs.all(|run| run.wave.up == u32::from(waves.hosts))
    };
    let is_complete = all.iter().all(is_complete) && floods.iter().all(Flood::is_complete);
    Ok(if is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Waves of one size, each kind in turn.
fn measure(
    bench: &Bench,
    place: &Place,
    args: &PppoeArgs,
    hosts: u16,
    all: &mut Vec<Waves>,
) -> Result<()> {
    for round in 1..=args.rounds {
        for (n, &proof) in args.proofs.iter().enumerate() {
            bench.say(format!("{hosts} hosts, {round} of {}", args.rounds));
            let run = wave::ours(bench, place, proof, hosts, args.window)?;
            if n == 0 {
                let bare = wave::bare(bench, place, hosts, args.window, &run.wave)?;
                file(all, None, hosts, bare);
            }
            file(all, Some(proof), hosts, run);
        }
    }
    Ok(())
}

fn floods(bench: &Bench, place: &Place, args: &PppoeArgs) -> Result<Vec<Flood>> {
    let (sessions, span) = args.flooded();
    let mut floods = Vec::new();
    for round in 1..=args.rounds {
        bench.say(format!("flood, {round} of {}", args.rounds));
        floods.extend(wave::floods(bench, place, sessions, (args.flood, span))?);
    }
    Ok(floods)
}

/// Adds a wave to the others of its kind.
fn file(all: &mut Vec<Waves>, proof: Option<Proof>, hosts: u16, run: Run) {
    let same = |waves: &&mut Waves| waves.proof == proof && waves.hosts == hosts;
    match all.iter_mut().find(same) {
        Some(found) => found.runs.push(run),
        None => all.push(Waves {
            proof,
            hosts,
            runs: vec![run],
        }),
    }
}

fn method(args: &PppoeArgs, apart: bool) -> Vec<String> {
    let (sessions, span) = args.flooded();
    let mut lines = vec![
        "The daemon is in a network namespace, the hosts in another, with a veth pair between them. The load runs the hosts as clients of this program's own edge, each with its own MAC address, on one packet socket. The daemon is a separate process, started anew for each wave. A RADIUS server authenticates the hosts: a thread of the load's process, on the load's core. Processor time is the scheduler's count for the daemon's process, in nanoseconds.".to_owned(),
        format!(
            "Hosts connect {} at a time. The exchange is PADI to PADS, LCP, authentication, IPCP with an address from a pool, IPv6CP, a Router Advertisement with a /64 from a pool, and Solicit, Advertise, Request and Reply of DHCPv6 for a /56 from a pool. A host is connected when it has its IPv4 address and its delegated prefix. The daemon's limits on rates of PADI and PADR and on half-open sessions are off. The table shows the wave of median cost.",
            args.window
        ),
        "The bare loop receives on the same kind of socket with recvmmsg, answers with sendmmsg and waits with epoll. For each host, it receives and sends as many frames as the wave of the same round, of the same mean length. It answers each frame of a host before the next one is sent.".into(),
        "Memory is the resident memory gained since before the first host.".into(),
        format!(
            "The flood lasts {} s and has {} PADIs per second, each from another MAC address, at a daemon with default limits and {sessions} sessions. Meanwhile the sessions send 1,000 LCP Echo-Requests per second in turn, and each must be answered. The bare loop receives the same PADIs and answers none.",
            span.as_secs_f64(),
            args.flood
        ),
    ];
    lines.push(if apart {
        "The load runs on one core and the daemon on another; the cores are the same for all measurements. The kernel delivers a frame on the core that sent it.".into()
    } else {
        "The load and the daemon share the machine's only core.".into()
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
        args: PppoeArgs,
    }

    fn args(line: &str) -> PppoeArgs {
        let words = std::iter::once("pppoe").chain(line.split_ascii_whitespace());
        Line::try_parse_from(words).unwrap().args
    }

    #[test]
    fn three_sizes_double_up_to_those_of_one_interface() {
        assert_eq!(args("").sizes(), [15_000, 30_000, 60_000]);
        assert_eq!(args("--sizes 20,10").sizes(), [20, 10]);
        assert!(args("--quick").sizes().iter().all(|&n| n <= 200));
        assert_eq!(args("").flood, 100_000);
    }
}
