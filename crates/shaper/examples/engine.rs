//! What the forwarding engine does on this machine: frames a second between two interfaces, and rates as they were asked.
//!
//! ```text
//! cargo run --release -p headend-shaper --example engine -- [SECONDS [calls]]
//! ```
//!
//! Everything is in network namespaces that are gone afterwards; it takes root, or leave to make them. A sender on a
//! thread of its own shares the processors with the engine. With `calls`, the engine receives and sends by recvmmsg and
//! sendmmsg in place of rings. `headend bench qos` measures the same beside the kernel's bridge.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{Duration, Instant};
use qos::fifo::Limit;
use qos::tbf;
use qos::tree::{Overhead, Spec, TbfSpec};
use reactor::clock;
use reactor::namespace::{Namespace, become_root_in_user_namespace, veth};
use reactor::port::offloads::OffloadsOff;
use reactor::port::{BATCH, Cut, Frames, Io, Port, PortOptions};
use shaper::{Direction, Engine, EngineError, take_piece};
use wire::segment::{Kind, Segments};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Frames that the sender leaves to the kernel to cut.
const RUN: usize = 16;

/// A run: what is offered, and what is asked of the queue.
struct Case {
    name: &'static str,
    /// Bytes of each frame.
    frame: usize,
    /// Frames a second that are sent; `None`: as many as go.
    offered: Option<u64>,
    /// Bits a second of IP packets.
    rate_bps: Option<u64>,
    /// Bytes of the shaper's bucket.
    burst: u32,
}

const CASES: [Case; 5] = [
    Case {
        name: "114-octet frames",
        frame: 114,
        offered: None,
        rate_bps: None,
        burst: 0,
    },
    Case {
        name: "1514-octet frames",
        frame: 1_514,
        offered: None,
        rate_bps: None,
        burst: 0,
    },
    Case {
        name: "1 Mbit/s of 5",
        frame: 1_514,
        offered: Some(5_000_000 / 12_000),
        rate_bps: Some(1_000_000),
        burst: 3_000,
    },
    Case {
        name: "100 Mbit/s of 500",
        frame: 1_514,
        offered: Some(500_000_000 / 12_000),
        rate_bps: Some(100_000_000),
        burst: 15_000,
    },
    Case {
        name: "1 Gbit/s of all",
        frame: 1_514,
        offered: None,
        rate_bps: Some(1_000_000_000),
        burst: 250_000,
    },
];

/// The bucket's first burst, and what the queue held, are over by then.
const SETTLE: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).map_or(Ok(3), |text| text.parse());
    let io = match std::env::args().nth(2).as_deref() {
        Some("calls") => Io::Calls,
        _ => Io::Rings,
    };
    let Ok(seconds @ 1..=60) = seconds else {
        eprintln!("usage: engine [SECONDS, 1 to 60 [calls]]");
        return ExitCode::from(2);
    };
    if Namespace::new().is_err()
        && let Err(error) = become_root_in_user_namespace()
    {
        eprintln!("{error}");
        return ExitCode::from(2);
    }
    for case in &CASES {
        match run(case, io, Duration::from_secs(seconds)) {
            Ok(line) => println!("{:<20} {line}", case.name),
            Err(error) => {
                eprintln!("{}: {error}", case.name);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn direction(case: &Case) -> Direction {
    let fifo = Spec::Fifo(Limit::Packets(1_000));
    let spec = match case.rate_bps {
        None => fifo,
        Some(rate_bps) => Spec::Tbf(TbfSpec {
            options: tbf::Options {
                rate_bps,
                burst: case.burst,
                peak: None,
            },
            child: Box::new(fifo),
        }),
    };
    Direction {
        spec,
        overhead: Overhead::default(),
        delay: Duration::ZERO,
        packets_max: 2_000,
        seed: 1,
    }
}

fn run(case: &Case, io: Io, span: Duration) -> Result<String, Failure> {
    let (a, b, middle) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
    for namespace in [&a, &b, &middle] {
        namespace.set("ipv6/conf/default/disable_ipv6", "1")?;
    }
    veth((&a, "eth0"), (&middle, "left"))?;
    veth((&b, "eth0"), (&middle, "right"))?;
    let ends = [
        (&a, "eth0"),
        (&b, "eth0"),
        (&middle, "left"),
        (&middle, "right"),
    ];
    for (namespace, name) in ends {
        namespace.netlink()?.set_up(name, true)?;
    }
    for (namespace, name) in ends {
        namespace
            .netlink()?
            .wait_until_running(name, Duration::from_secs(5))?;
    }
    let options = PortOptions {
        recv_buffer_bytes: Some(16 << 20),
        bypass_queue: true,
        io,
        ..PortOptions::default()
    };
    let open = |name| middle.run(|| Port::open(name, &options));
    let (left, right) = (open("left")??, open("right")??);
    // The kernel cuts the sender's runs of frames, if they pass the queue discipline.
    let _off = a.run(|| OffloadsOff::new("eth0"))??;
    let near = a.run(|| Port::open("eth0", &PortOptions::default()))??;
    let mut engine = Engine::new(left, right, &direction(case), &direction(case))?;
    let control = engine.control();
    let stop = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stop);
    let working = middle.spawn("engine", move || -> Result<Duration, EngineError> {
        engine.run(&stops)?;
        Ok(reactor::usage::thread_cpu())
    })?;
    let (frame, offered) = (frame(case.frame), case.offered);
    let stops = Arc::clone(&stop);
    let sending = a.spawn("sender", move || send(near, &frame, offered, &stops))?;
    std::thread::sleep(SETTLE.into());
    let first = control.snapshot()?;
    std::thread::sleep(span.into());
    let last = control.snapshot()?;
    stop.store(true, Ordering::Relaxed);
    let cpu = working.join().map_err(|_| "the engine has panicked")???;
    let sent = sending.join().map_err(|_| "the sender has panicked")???;
    let took = last.taken.since(first.taken).as_secs_f64();
    let passed = last.up.statistics.sent_packets - first.up.statistics.sent_packets;
    let octets = last.up.statistics.sent_bytes - first.up.statistics.sent_bytes;
    let rate = octets as f64 * 8.0 / took;
    let off = case.rate_bps.map_or(String::new(), |asked| {
        format!(", {:+.3} % off", (rate / asked as f64 - 1.0) * 100.0)
    });
    let missed = last.ports[0].missed;
    let share = cpu.as_secs_f64() / (took + SETTLE.as_secs_f64());
    Ok(format!(
        "{:>9.0} frames/s {:>8.2} Mbit/s{off}; of a core's time {:>9.0} frames/s {:>8.2} Mbit/s; busy {:.0} %; sent {sent}, not read in time {missed}",
        passed as f64 / took,
        rate / 1e6,
        passed as f64 / took / share,
        rate / 1e6 / share,
        share * 100.0,
    ))
}

/// A UDP datagram in a frame of `length` bytes.
fn frame(length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend(((length - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend([0x0f, 0xa0, 0x13, 0x88]);
    frame.extend(((length - 34) as u16).to_be_bytes());
    frame.resize(length, 0);
    frame
}

/// [`RUN`] copies of a datagram as one frame that the kernel cuts.
fn run_of(frames: &mut Frames, frame: &[u8]) -> Option<u32> {
    let size = frame.len() - 42;
    let mut whole = frame.to_vec();
    whole.resize(42 + RUN * size, 0);
    // A checksum of 0 would mean that there is none.
    whole[40] = 1;
    let segments = Segments::new(&whole, Kind::Udp, size as u16).ok()?;
    take_piece(frames, &segments, Cut::Udp(size as u16), (0, RUN))
}

fn send(
    mut port: Port,
    frame: &[u8],
    offered: Option<u64>,
    stop: &AtomicBool,
) -> Result<u64, Failure> {
    let mut frames = Frames::new(BATCH as u32, 1_500);
    let mut handles = Vec::new();
    if offered.is_none() {
        handles.extend((0..BATCH / RUN).filter_map(|_| run_of(&mut frames, frame)));
    }
    while let Some(handle) = frames.take().filter(|_| offered.is_some()) {
        frames.fill(handle, |room| {
            room[..frame.len()].copy_from_slice(frame);
            frame.len()
        });
        handles.push(handle);
    }
    let begin = clock::now();
    while !stop.load(Ordering::Relaxed) {
        let due = offered.map_or(u64::MAX, |each| {
            due(begin, each).saturating_sub(port.stats().sent)
        });
        let batch = due.min(handles.len() as u64) as usize;
        if batch == 0 {
            std::thread::sleep(std::time::Duration::from_micros(500));
        }
        port.send(&frames, &handles[..batch])?;
    }
    Ok(port.stats().sent)
}

/// Frames that should have been sent by now.
fn due(begin: Instant, each_second: u64) -> u64 {
    let span = u128::from(clock::now().since(begin).as_nanos());
    (span * u128::from(each_second) / 1_000_000_000) as u64
}
