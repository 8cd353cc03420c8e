//! `headend bench switched`: the cost to the daemon of a packet of 100 bytes in a session that is handed over to an LNS,
//! in both directions, by number of sessions. Sessions arrive by PPPoE or by L2TP and leave by L2TP. It is compared with
//! bare loops that receive and send with the same calls. Start with `ways`.
//!
//! | file | contents |
//! |---|---|
//! | `place` | the namespaces, the wires, and the daemon that is measured |
//! | `ends` | both ends of the sessions: the hosts or their LAC, and the LNS |
//! | `load` | the sender |
//! | `bare` | the bare loops |
//! | `ways` | one measurement |
//! | `tables` | the report |

pub(super) mod bare;
mod ends;
mod load;
mod place;
mod tables;
mod ways;

use std::process::ExitCode;

use anyhow::Result;
use base::Duration;
use lab::report::{CoreWitness, MachineInfo, Report};

use self::place::Place;
use self::ways::{Case, Measured};
use super::Out;
use crate::harness::Bench;
use crate::harness::cores::Cores;
use crate::harness::run::{RunDirectory, temporary};
use cli::progress::spinner;

/// Measure what packets of switched sessions cost the daemon, both ways; needs root.
#[derive(Debug, clap::Args)]
pub(super) struct SwitchedArgs {
    /// Numbers of sessions
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,64,4096", value_parser = clap::value_parser!(u16).range(1..=30_000))]
    sizes: Vec<u16>,
    /// How sessions arrive
    #[arg(
        long,
        value_name = "PROTOCOL,...",
        value_delimiter = ',',
        default_value = "pppoe,l2tp"
    )]
    access: Vec<Arrival>,
    /// Offered packets per second
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rate: u64,
    /// Seconds of each measurement
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    span: f64,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    #[command(flatten)]
    out: Out,
}

/// How sessions arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Arrival {
    Pppoe,
    L2tp,
}

/// The direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Way {
    /// From the subscribers to the LNS.
    Up,
    /// From the LNS to the subscribers.
    Down,
}

/// Measures and publishes. Fails unless packets passed in every case.
pub(super) fn run(args: &SwitchedArgs) -> Result<ExitCode> {
    let place = Place::new()?;
    let bench = Bench {
        directory: RunDirectory::new(temporary())?,
        cores: Cores::take(),
        bar: spinner("switched"),
    };
    let witness = CoreWitness::start();
    let span = Duration::from_nanos((args.span.clamp(0.01, 60.0) * 1e9) as u64);
    let mut all: Vec<Measured> = Vec::new();
    for &arrival in &args.access {
        for &sessions in &args.sizes {
            let case = Case {
                arrival,
                sessions,
                rate: args.rate,
                span,
            };
            for round in 1..=args.rounds {
                bench.say(format!(
                    "{}, {sessions} sessions, {round} of {}",
                    tables::name(arrival),
                    args.rounds
                ));
                all.extend(ways::ours(&bench, &place, case)?);
                all.extend(ways::bare(&bench, &place, case)?);
            }
        }
    }
    bench.bar.finish_and_clear();
    bench.cores.leave();
    let has_passed = all.iter().all(|one| one.passed > 0);
    let mut report = Report::new("switched", MachineInfo::read_with(witness));
    report.method = method(bench.cores.are_apart());
    report.tables = tables::all(&all);
    args.out.publish(&report)?;
    Ok(if has_passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn method(apart: bool) -> Vec<String> {
    let mut lines = vec![
        "The daemon is a separate process in a network namespace. The hosts, or a LAC with their sessions, are in a second one, and the LNS is in a third. Pairs of virtual Ethernet interfaces connect them. The load's process is both ends of all sessions: PPPoE hosts or an L2TP LAC, and the LNS. The daemon hands sessions over by their line, before PPP, in one tunnel."
            .to_owned(),
        format!(
            "A packet is a PPP frame with UDP in IPv4, {} bytes from its IP header on. Successive packets belong to the sessions in turn. The sender sends evenly spaced bursts of 64, each packet as a message of its own, so that the kernel joins none of them on the way to the daemon.",
            crate::forward::packets::LENGTH
        ),
        "Processor time is the scheduler's count of user and system time for the daemon's process, divided by the number of packets that came out. The interface at the other end counts them. At that end, no process reads the socket. The figure is the round of median cost."
            .into(),
        "The bare loop is a separate process in the daemon's place, under the same load. It receives up to 64 packets with a call (recvmmsg), replaces their header by a fixed one of the same length, and sends them with sendmmsg. It opens the same sockets with the same options as the daemon and has the same batches: towards the LNS or a LAC, both pass datagrams of one length to the kernel as one message (GSO). It looks up no session, counts nothing and checks nothing."
            .into(),
    ];
    lines.push(if apart {
        "The sender runs on one core and the daemon on another; the cores are the same for all measurements.".into()
    } else {
        "All processes share the machine's only core.".into()
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
        args: SwitchedArgs,
    }

    #[test]
    fn three_sizes_are_measured_for_both_protocols() {
        let args = Line::try_parse_from(["switched"]).unwrap().args;
        assert_eq!(args.sizes, [1, 64, 4_096]);
        assert_eq!(args.access, [Arrival::Pppoe, Arrival::L2tp]);
        assert!(Line::try_parse_from(["switched", "--sizes", "0"]).is_err());
    }
}
