//! `headend bench forward`: the cost in the LNS of a packet of 100 bytes from a tunnel to the TUN
//! device, and back. It is compared with bare loops that only receive and write, or read and send.
//! A second part measures bulk TCP through one session. Start with `ways`.
//!
//! | file | contents |
//! |---|---|
//! | `place` | namespaces, the LNS in one of them, interface counters |
//! | `packets` | the packets and their sender |
//! | `bare` | the bare loops |
//! | `ways` | one measurement |
//! | `bulk` | TCP through one session |
//! | `tables` | the report |

pub(super) mod bare;
mod bulk;
mod packets;
mod place;
mod tables;
mod ways;

use std::process::ExitCode;

use anyhow::{Context, Result};
use lab::report::{CoreWitness, MachineInfo, Report};

use self::ways::{Flows, Measured};
use super::Out;
use crate::harness::Bench;
use crate::harness::cores::Cores;
use crate::harness::home::{Home, temporary};
use cli::progress::spinner;

/// Measure what packets cost an LNS, both ways.
#[derive(Debug, clap::Args)]
pub(super) struct ForwardArgs {
    /// Offered packets per second
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "100000,300000,1000000", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rates: Vec<u64>,
    /// Measure only these directions
    #[arg(
        long,
        value_name = "DIRECTION,...",
        value_delimiter = ',',
        default_value = "in,out"
    )]
    ways: Vec<Way>,
    /// Seconds of each measurement
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    span: f64,
    #[command(flatten)]
    out: Out,
}

/// The direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub(super) enum Way {
    /// From the tunnel to the TUN device.
    In,
    /// From the TUN device to the tunnel.
    Out,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::In => "in",
            Way::Out => "out",
        }
    }
}

/// Measures and publishes.
pub(super) fn run(args: &ForwardArgs) -> Result<ExitCode> {
    let place = place::Place::new(ways::PEERS).context(
        "packets are measured in network namespaces with a TUN device: run this as root",
    )?;
    let bench = Bench {
        home: Home::new(temporary())?,
        cores: Cores::take(),
        bar: spinner("forward"),
    };
    let witness = CoreWitness::start();
    let mut all: Vec<Measured> = Vec::new();
    let span = base::Duration::from_nanos((args.span.clamp(0.01, 60.0) * 1e9) as u64);
    for &way in &args.ways {
        for flows in [Flows::One, Flows::Mixed] {
            bench.say(format!("{}, {}", ways::words(way), flows.name()));
            all.extend(ways::ours(&bench, &place, way, flows, &args.rates, span)?);
            all.extend(ways::bare(&bench, &place, way, flows, &args.rates, span)?);
        }
    }
    let bulk = bulk::measure(&bench, &place, &args.ways, span.into())?;
    bench.bar.finish_and_clear();
    bench.cores.leave();
    let mut report = Report::new("forward", MachineInfo::read_with(witness));
    report.method = method(bench.cores.are_apart());
    report.tables = tables::all(&all, &bulk);
    args.out.publish(&report)?;
    Ok(ExitCode::SUCCESS)
}

fn method(apart: bool) -> Vec<String> {
    let mut lines = vec![
        "The LNS is a process of its own in a network namespace, its peers are in another, with a pair of virtual Ethernet interfaces between them. Processor time is the scheduler's account of the LNS's process, user and system, over the packets that came out: into the TUN device, or at the peers' end of the wire, by the interfaces' own counts. It includes what the kernel does with a packet in the LNS's own system call."
            .to_owned(),
        format!(
            "Packets are UDP in IPv4 of {} octets. Runs of one flow are of one subscriber and leave the sender joined, 64 at a time (UDP_SEGMENT); mixed flows are of {} subscribers in turn, each with a tunnel and a peer's address of its own, so that no two that follow each other can be joined.",
            packets::LENGTH,
            ways::PEERS
        ),
        "Into the TUN device the kernel has no route on for them, and drops them there; at the peers' end nobody reads the socket."
            .into(),
        "The bare loops are recvmmsg and a write for each packet, and a read for each packet and sendmmsg, of 64 datagrams, on a TUN device without offloads, in a process of its own in the LNS's place, under the same load. They hand the kernel each datagram as a message of its own; ours hands it as one what a turn has for one peer and GSO can cut again, whatever stands between."
            .into(),
        "Bulk is one TCP connection between a client of a LAC of ours, on the load's core with both of the connection's ends, and a socket beside the LNS; its processor time is the LNS's, in which the kernel takes segments up to the socket, or to the peers' end of the wire."
            .into(),
        "The sender sends bursts of 64 evenly spaced; where it cannot send as many as are offered, what it sent counts.".into(),
    ];
    lines.push(if apart {
        "The sender is on one core and the LNS on another, the same ones for all.".into()
    } else {
        "There is one core, which all share.".into()
    });
    if cfg!(debug_assertions) {
        lines.push("This is a build without optimisation: its figures say nothing.".into());
    }
    lines
}
