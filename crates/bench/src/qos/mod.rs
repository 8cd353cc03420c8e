//! `headend bench qos`: the cost of a packet in the queues, and how accurately they keep their
//! rate.
//!
//! | module | contents |
//! |---|---|
//! | `packets` | packets of many hosts and flows, plain and in tunnels |
//! | `classify` | reading of keys, map and hash |
//! | `queues` | enqueue and dequeue, each discipline alone and in trees |
//! | `rate` | a shaped rate, in virtual time and in real time |
//! | `pass` | forwarding between two interfaces, beside the kernel's bridge |
//! | `kernel` | `headend qos apply`, and classifiers as eBPF programs |
//! | `late` | how late pings leave |
//! | `page` | the page of ten million pings |
//! | `path` | a subscriber's whole path through the edge, with queues and without |
//! | `subscribers` | queues of shaped subscribers |
//! | `scheduled` | scheduler statistics and busy cores |
//! | `wires` | a sender and two wires, each end in a namespace |
//! | `tables` | tables and chart of packets and pages |

mod classify;
mod kernel;
mod late;
mod packets;
mod page;
mod pass;
mod path;
mod queues;
mod rate;
mod scheduled;
mod subscribers;
mod tables;
mod wires;

use std::process::ExitCode;

use anyhow::Result;
use base::Duration;
use lab::plot::number::grouped;
use lab::report::{CoreWitness, MachineInfo, Report};
use reactor::{clock, prefetch};

pub(super) use pass::{PassChildArgs, run as run_pass};
pub(super) use rate::between;

use super::Out;
use cli::progress::spinner;

/// The name of the bare loop in reports.
const FLOOR: &str = "floor";

/// Size in bytes of a buffer in the ring that is larger than the cache.
const BUFFER: usize = 2_048;

/// Measure classifiers, queues, shaped rates, how late pings leave, and a page of pings.
#[derive(Debug, clap::Args)]
pub(super) struct QosArgs {
    /// Measure each once, in a few seconds
    #[arg(long)]
    quick: bool,
    /// Measure only these parts
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    only: Vec<Part>,
    #[command(flatten)]
    out: Out,
}

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Keys and class of a packet
    Classify,
    /// Packets through a queue
    Queues,
    /// Shaped rates
    Rates,
    /// Forwarding between two interfaces
    Forward,
    /// Lateness of pings
    Late,
    /// The page of ten million pings
    Page,
    /// Queues of shaped subscribers
    Subscribers,
    /// The kernel's queues by headend qos apply, and eBPF classifiers; needs root
    Kernel,
}

/// How much is measured.
struct Config {
    /// Numbers of flows.
    flows: [u32; 3],
    /// Time for which each measurement is repeated.
    repeat: Duration,
    /// Number of buffers in the ring that is larger than the cache.
    ring: usize,
    /// How long a rate is measured.
    span: Duration,
    /// How long forwarding is measured.
    span_forward: Duration,
    /// Packets of each stream of pings.
    packets: u32,
    /// Number of pings on the page.
    pings: u64,
}

impl Config {
    fn new(quick: bool) -> Self {
        let flows = [1_024, 4 * 1_024, 16 * 1_024];
        if quick {
            return Self {
                flows,
                repeat: Duration::ZERO,
                ring: 4_096,
                span: Duration::from_millis(500),
                span_forward: Duration::from_millis(100),
                packets: 30,
                pings: 100_000,
            };
        }
        Self {
            flows,
            repeat: Duration::from_millis(50),
            ring: 131_072,
            span: Duration::from_secs(3),
            span_forward: Duration::from_secs(1),
            packets: 250,
            pings: 10_000_000,
        }
    }
}

/// Nanoseconds for each of `count` items, the minimum of all repetitions of `work`.
fn least(config: &Config, count: u64, mut work: impl FnMut()) -> f64 {
    // One unmeasured pass, so that the memory is mapped.
    work();
    let begun = clock::now();
    let mut least = u64::MAX;
    loop {
        let start = clock::now();
        work();
        let end = clock::now();
        least = least.min(end.since(start).as_nanos());
        if end.since(begun) >= config.repeat {
            return least as f64 / count as f64;
        }
    }
}

/// Measures and publishes.
pub(super) fn run(args: &QosArgs) -> Result<ExitCode> {
    let config = Config::new(args.quick);
    let has = |part| args.only.is_empty() || args.only.contains(&part);
    let witness = CoreWitness::start();
    let bar = spinner("qos");
    let told = &mut |what| bar.set_message(what);
    let (mut method, mut tables, mut charts) = (vec![alone(&config)], Vec::new(), Vec::new());
    if has(Part::Classify) {
        tables.push(tables::classify_table(&config, told));
        method.push(of_classifiers(&config));
    }
    if has(Part::Queues) {
        let passed = tables::pass(&config, told)?;
        tables.push(tables::queue_table(&config, &passed));
        charts.push(tables::chart(&config, &passed).into());
        method.push(of_queues());
    }
    if has(Part::Rates) {
        tables.push(rate::table(&config, told)?);
        tables.push(rate::subscriber_table(&config, told)?);
        method.extend(of_rates(&config));
    }
    if has(Part::Forward) {
        tables.push(pass::table(&config, told)?);
        method.push(of_forwarding(&config));
    }
    if has(Part::Late) {
        let (table, permitted) = late::table(&config, told)?;
        tables.push(table);
        method.extend([of_lateness(&config), permitted]);
    }
    if has(Part::Page) {
        bar.set_message("a page of pings");
        tables.push(tables::page_table(&config));
        method.push(of_page(&config));
    }
    if has(Part::Subscribers) {
        tables.push(subscribers::table(&config, told)?);
        method.push(subscribers::method());
        tables.push(path::table(&config, told)?);
        method.push(path::method(&config));
    }
    if has(Part::Kernel) {
        let told = &mut |what| bar.set_message(what);
        tables.push(kernel::apply_table(&config, told));
        tables.push(kernel::program_table(told));
        method.push(of_kernel());
    }
    bar.finish_and_clear();
    let mut report = Report::new("qos", MachineInfo::read_with(witness));
    (report.method, report.tables, report.charts) = (method, tables, charts);
    args.out.publish(&report)?;
    Ok(ExitCode::SUCCESS)
}

fn alone(config: &Config) -> String {
    format!(
        "Packets, queues and page: one thread repeats each measurement for {} ms and keeps the shortest time, because other work on the machine can only add time.",
        config.repeat.as_nanos() / 1_000_000
    )
}

fn of_classifiers(config: &Config) -> String {
    format!(
        "Classifiers: the headers belong to flows of {} hosts, are in random order, {} bytes apart, and are read repeatedly. A second measurement reads them from a ring of {} buffers of {} bytes, {} MiB, which exceeds most caches except in a quick run; while a packet is read, the headers of the {}th packet after it are loaded, as headend qos run does. A third measurement does not load them ahead. The map uses the innermost source address, the hash all keys of both headers. The floor copies the packet's first 64 bytes, or all bytes of a shorter packet.",
        packets::HOSTS,
        packets::HEADERS,
        grouped(config.ring as f64, 0),
        grouped(BUFFER as f64, 0),
        (config.ring * BUFFER) >> 20,
        prefetch::PACKETS
    )
}

fn of_queues() -> String {
    format!(
        "Queues: {} packets of 64 bytes wait at all times. In each step, 32 packets of random flows are enqueued, then 32 are dequeued; none is lost or held back. The floor does the same with a ring of packet ids: packets enter the pool and leave it. With idle flows, {} times as many other flows have sent one packet each before.",
        grouped(queues::WAITING as f64, 0),
        queues::IDLE
    )
}

fn of_rates(config: &Config) -> [String; 3] {
    let seconds = config.span.as_secs_f64();
    [
        format!(
            "Rates of the queue alone: packets of 1,000 bytes always wait. A measurement takes {seconds} s, or a tenth of that in virtual time above 1 Mbit/s. The rate counts the bytes that left between the first departure after the initial burst and the last departure. In real time, a thread polls the queue without a pause. The bucket holds the traffic of one millisecond, so a longer interruption of the thread lowers the rate."
        ),
        format!(
            "Rates between two interfaces: the forwarding engine runs between veth interfaces, as a separate process. The sender offers a quarter more than the rate, in frames of 1,514 bytes (264 at the lowest rate) of 64 flows. The rate is the kernel's count at the far side of what arrives in {seconds} s. The scheduler counts how long the thread that holds the queue waited: it was ready, and other threads had its core. A missed rate is the sender's if less was offered, and other programs' if the thread waited for at least half of the missing time. Otherwise a missed rate is the shaper's."
        ),
        format!(
            "Rates of a subscriber: an LNS without sockets has one shaped subscriber. Packets of the TUN device go through the edge, which queues them; at least {} ms of packets always wait. The bytes are those of IP packets in the datagrams that leave in {seconds} s. In real time, the thread sleeps in the daemon's event loop until the edge's next deadline, and then drains the queue as the daemon does.",
            rate::BACKLOG_MS
        ),
    ]
}

fn of_forwarding(config: &Config) -> String {
    format!(
        "Forwarding: a sender on one core sends as fast as it can to one veth interface; another thread on the other core forwards to a second one, and the kernel counts at the far side for {} s. The thread's processor time includes the kernel's delivery to the far interface, as a veth interface delivers in the time of who sends. The kernel's bridge works in the sender's time: its cost is the time of the sender's core per packet, less that of the sender alone. The floor receives and sends without looking at frames. TCP is one connection; both of its ends are on the sender's core.",
        config.span_forward.as_secs_f64()
    )
}

fn of_lateness(config: &Config) -> String {
    format!(
        "Lateness: {} packets of each stream go to a responder on loopback, one every 10 ms, with the streams evenly spaced. On a busy core runs a thread that never sleeps. headend ping is a separate process, started as a user starts it. A packet's lateness is the kernel's transmit time stamp minus the packet's scheduled time. The floor sleeps until the next packet is due, sends it with one call, and reads the clock when the call has returned.",
        config.packets
    )
}

fn of_kernel() -> String {
    "The kernel's queues: in a network namespace, on a veth interface. apply reads what is there, compares, changes it in one call, and reads it back; the floor only sends the messages. The verifier's time is that of loading the policy's program. Each time is the shortest of three. Programs run 100,000 times on one frame (BPF_PROG_RUN), and the shortest mean of seven counts; the floor is a program of two instructions, for a plain packet, IP in IP and L2TP.".to_owned()
}

fn of_page(config: &Config) -> String {
    format!(
        "The page: {} synthetic pings of four streams, drawn over time, as a distribution, and as a dot for each ping.",
        grouped(config.pings as f64, 0)
    )
}
