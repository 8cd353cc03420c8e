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
//! | `l2tpns` | another LNS in the LNS's place |
//! | `bulk` | TCP through one session |
//! | `tables` | the report |

pub(super) mod bare;
mod bulk;
mod l2tpns;
pub(crate) mod packets;
pub(crate) mod place;
mod tables;
mod ways;

use std::process::ExitCode;

use anyhow::{Context, Result};
use lab::report::{CoreWitness, MachineInfo, Report};

use self::ways::{Flows, Measured};
use super::Out;
use crate::harness::Bench;
use crate::harness::cores::Cores;
use crate::harness::run::{RunDirectory, temporary};
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
    /// Another LNS to measure in the same run, with mixed flows from the tunnel
    #[arg(long, value_name = "LNS")]
    against: Option<Other>,
    #[command(flatten)]
    out: Out,
}

/// Another LNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Other {
    L2tpns,
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
        directory: RunDirectory::new(temporary())?,
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
    if args.against.is_some() {
        bench.say("l2tpns");
        all.extend(ways::l2tpns(&bench, &place, &args.rates, span)?);
    }
    let bulk = bulk::measure(&bench, &place, &args.ways, span.into())?;
    bench.bar.finish_and_clear();
    bench.cores.leave();
    let mut report = Report::new("forward", MachineInfo::read_with(witness));
    report.method = method(bench.cores.are_apart(), args.against);
    report.tables = tables::all(&all, &bulk);
    args.out.publish(&report)?;
    Ok(ExitCode::SUCCESS)
}

fn method(apart: bool, against: Option<Other>) -> Vec<String> {
    let mut lines = vec![
        "The LNS is a separate process in one network namespace, and its peers are in another. A pair of virtual Ethernet interfaces connects the two. Processor time is the scheduler's count of user and system time for the LNS's process, divided by the number of packets that came out. Packets come out into the TUN device or at the peers' end of the wire; the interfaces count them. The interfaces also count other packets, such as ARP and HELLO, so the report counts at most as many packets as were sent. Processor time includes the kernel's work on a packet in the LNS's own system calls."
            .to_owned(),
        format!(
            "Packets are UDP in IPv4, {} bytes long. In runs with one flow, all packets are one subscriber's, and the sender joins 64 at a time (UDP_SEGMENT). In runs with mixed flows, the packets are those of {} subscribers in turn. Each subscriber has its own tunnel and peer address, so no two successive packets can be joined.",
            packets::LENGTH,
            ways::PEERS
        ),
        "Behind the TUN device, the kernel has no route for the packets and drops them. At the peers' end, no process reads the socket."
            .into(),
        "The bare loop towards the TUN device calls recvmmsg, and write for each packet. The bare loop in the other direction calls read for each packet, and sendmmsg. Each handles 64 datagrams at a time, on a TUN device without offloads, in a separate process in the LNS's place, under the same load. The bare loops pass each datagram to the kernel as a separate message. Our LNS passes all datagrams that one turn has for a peer as one message if GSO can split them again, even if other datagrams come between them. Towards the TUN device, our LNS passes packets of one flow from one turn as one packet (GSO), for up to 64 flows."
            .into(),
        "Bulk traffic is one TCP connection between a client of our LAC and a socket in the LNS's namespace. The LAC and both ends of the connection run on the load generator's core. The processor time is the LNS's; it includes the kernel's work to pass segments up to the socket, or to the peers' end of the wire."
            .into(),
        "The sender sends evenly spaced bursts of 64 packets. If it cannot reach the offered rate, the report counts what it sent.".into(),
    ];
    if let Some(Other::L2tpns) = against {
        lines.push("l2tpns is Debian's package with its default settings, in the LNS's place. A RADIUS server in its namespace accepts all subscribers. l2tpns reads one datagram and writes one packet per system call, on a TUN device without offloads.".into());
    }
    lines.push(if apart {
        "The sender runs on one core and the LNS on another; the cores are the same for all measurements.".into()
    } else {
        "All processes share the machine's only core.".into()
    });
    if cfg!(debug_assertions) {
        lines.push("This build is not optimised, so its figures are not valid.".into());
    }
    lines
}
