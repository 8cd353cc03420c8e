//! The engine between two interfaces: a sender on one side offers a quarter more than the rate, and
//! on the other side the kernel counts what arrives.
//!
//! ```text
//! sender ---- [ engine ] ---- an interface without a host
//! ```
//!
//! It runs as a process of its own, in temporary network namespaces. Sender and engine have a core
//! each if there are two.

use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use anyhow::{Context, Result, anyhow, bail};
use base::{Duration, Instant};
use qos::tree::Overhead;
use reactor::clock;
use reactor::namespace::{Namespace, root_command, veth};
use reactor::port::{BATCH, Frames, Port, PortOptions};
use rustix::thread::gettid;
use shaper::{Control, Direction, Engine, Snapshot};

use super::super::scheduled::{Account, cores, stay_on};
use super::Kept;
use super::alone::{Shaper, spec};

/// Number of flows of the sender.
const FLOWS: u16 = 64;

/// Size of Ethernet's header in bytes, which does not count here.
const ETHERNET: u64 = 14;

/// Time until the burst is over and the queue is full.
const SETTLE: Duration = Duration::from_millis(300);

/// Measure a rate between two interfaces of namespaces, and print it as JSON.
#[derive(Debug, clap::Args)]
pub(crate) struct RateBetweenArgs {
    rate_bps: u64,
    span_ms: u64,
}

/// Measures one rate in a process of its own.
///
/// # Errors
/// Namespaces are not permitted here, or the error of that process.
pub(super) fn measure(rate_bps: u64, span: Duration) -> Result<Kept> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["bench", "qos-child"])
        .arg(rate_bps.to_string())
        .arg((span.as_nanos() / 1_000_000).to_string())
        .stdin(Stdio::null());
    if Namespace::new().is_err() {
        root_command(&mut command);
    }
    let output = command.output().context("no namespaces")?;
    let said = String::from_utf8_lossy(&output.stderr);
    match serde_json::from_slice(&output.stdout) {
        Ok(kept) if output.status.success() => Ok(kept),
        _ => bail!("{}", said.lines().last().unwrap_or("no answer").trim()),
    }
}

/// Runs the measurement in this process.
pub(crate) fn run(args: &RateBetweenArgs) -> Result<ExitCode> {
    let span = Duration::from_millis(args.span_ms);
    let kept = between(args.rate_bps, span)?;
    println!("{}", serde_json::to_string(&kept)?);
    Ok(ExitCode::SUCCESS)
}

/// Size of a frame in bytes. Frames are small at a low rate, so that one frame more or less does
/// not matter.
fn frame_length(rate_bps: u64) -> usize {
    if rate_bps < 10_000_000 { 264 } else { 1_514 }
}

/// Namespaces of the sender, the engine and the far interface.
struct Wires {
    near: Namespace,
    middle: Namespace,
    far: Namespace,
}

impl Wires {
    fn new() -> Result<Self> {
        let wires = Self {
            near: Namespace::new()?,
            middle: Namespace::new()?,
            far: Namespace::new()?,
        };
        let Self { near, middle, far } = &wires;
        for namespace in [near, middle, far] {
            // Without IPv6 the kernel sends no packets of its own. A kernel that lacks IPv6 sends
            // none anyway.
            let _ = namespace.set("ipv6/conf/default/disable_ipv6", "1");
        }
        veth((near, "eth0"), (middle, "left"))?;
        veth((far, "eth0"), (middle, "right"))?;
        let ends = [
            (near, "eth0"),
            (middle, "left"),
            (middle, "right"),
            (far, "eth0"),
        ];
        for (namespace, name) in ends {
            namespace.netlink()?.set_up(name, true)?;
        }
        for (namespace, name) in ends {
            let patience = Duration::from_secs(5);
            namespace.netlink()?.wait_until_running(name, patience)?;
        }
        Ok(wires)
    }

    fn engine(&self, rate_bps: u64) -> Result<Engine> {
        let direction = Direction {
            spec: spec(Shaper::Htb, rate_bps),
            overhead: Overhead::default(),
            delay: Duration::ZERO,
            packets_max: 20_000,
            seed: 1,
        };
        let [left, right] = ["left", "right"].map(|name| open(&self.middle, name));
        Ok(Engine::new(left?, right?, &direction, &direction)?)
    }
}

fn open(namespace: &Namespace, name: &str) -> Result<Port> {
    let options = PortOptions {
        recv_buffer_bytes: Some(16 << 20),
        bypass_queue: true,
        ..PortOptions::default()
    };
    Ok(namespace.run(|| Port::open(name, &options))??)
}

fn between(rate_bps: u64, span: Duration) -> Result<Kept> {
    let wires = Wires::new()?;
    let mut engine = wires.engine(rate_bps)?;
    let control = engine.control();
    let sender = Sender::new(open(&wires.near, "eth0")?, rate_bps);
    let cores = cores();
    let (core_engine, core_sender) = (cores.last().copied(), cores.first().copied());
    let stop = Arc::new(AtomicBool::new(false));
    let (tell, told) = mpsc::channel();
    let working = wires.middle.spawn("engine", {
        let stop = Arc::clone(&stop);
        move || {
            core_engine.into_iter().for_each(stay_on);
            // The receiver of this message waits for it.
            let _ = tell.send(gettid().as_raw_nonzero());
            engine.run(&stop)
        }
    })?;
    let sending = wires.near.spawn("sender", {
        let stop = Arc::clone(&stop);
        move || {
            core_sender.into_iter().for_each(stay_on);
            sender.run(&stop)
        }
    })?;
    let thread = format!("/proc/self/task/{}", told.recv()?);
    std::thread::sleep(SETTLE.into());
    let before = Look::at(&control, &thread, &wires.far);
    std::thread::sleep(span.into());
    let after = Look::at(&control, &thread, &wires.far);
    stop.store(true, Ordering::Relaxed);
    working
        .join()
        .map_err(|_| anyhow!("the engine has panicked"))???;
    sending
        .join()
        .map_err(|_| anyhow!("the sender has panicked"))???;
    Ok(Look::compare(&before?, &after?, rate_bps))
}

/// All counters at one moment.
struct Look {
    account: Option<Account>,
    engine: Snapshot,
    arrived: Arrived,
}

impl Look {
    fn at(control: &Control, thread: &str, far: &Namespace) -> Result<Self> {
        Ok(Self {
            account: Account::of(thread),
            engine: control.snapshot()?,
            arrived: far.run(arrived)??,
        })
    }

    fn compare(before: &Self, after: &Self, rate_bps: u64) -> Kept {
        let per_second = |octets: u64, span: Duration| octets as f64 * 8.0 / span.as_secs_f64();
        let [was, is] = [before, after].map(|look| look.engine.ports[0]);
        let missed = is.missed - was.missed;
        let came = is.received - was.received + missed;
        let packet = frame_length(rate_bps) as u64 - ETHERNET;
        let looked = after.engine.taken.since(before.engine.taken);
        let span = after.arrived.at.since(before.arrived.at);
        let waited = after.account.zip(before.account);
        Kept {
            rate_bps,
            measured_bps: per_second(after.arrived.octets - before.arrived.octets, span),
            span,
            offered_bps: Some(per_second(came * packet, looked)),
            waited: waited.map(|(after, before)| after.waited_since(before)),
            absent: None,
            missed,
        }
    }
}

/// Counters of the far interface.
struct Arrived {
    at: Instant,
    /// Of IP packets.
    octets: u64,
}

fn arrived() -> Result<Arrived> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let at = clock::now();
    let octets = octets_of("eth0", &text).context("no eth0 in /proc/net/dev")?;
    Ok(Arrived { at, octets })
}

/// Bytes received by an interface, without Ethernet's headers (proc(5): `net/dev`).
fn octets_of(name: &str, text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
    let mut numbers = line
        .split_ascii_whitespace()
        .map_while(|n| n.parse::<u64>().ok());
    let (octets, packets) = (numbers.next()?, numbers.next()?);
    octets.checked_sub(packets * ETHERNET)
}

/// Sends frames of several flows in turn, at a rate.
struct Sender {
    port: Port,
    frames: Frames,
    handles: Vec<u32>,
    each_second: u64,
}

impl Sender {
    fn new(port: Port, rate_bps: u64) -> Self {
        let length = frame_length(rate_bps);
        let bits = (length as u64 - ETHERNET) * 8;
        let mut frames = Frames::new(u32::from(FLOWS), 1_500);
        let mut handles = Vec::new();
        while let Some(handle) = frames.take() {
            let frame = frame(length, handles.len() as u16);
            frames.fill(handle, |room| {
                room[..length].copy_from_slice(&frame);
                length
            });
            handles.push(handle);
        }
        Self {
            port,
            frames,
            handles,
            each_second: ((rate_bps + rate_bps / 4) / bits).max(1),
        }
    }

    fn run(mut self, stop: &AtomicBool) -> Result<()> {
        let begin = clock::now();
        let mut next = 0;
        while !stop.load(Ordering::Relaxed) {
            let span = u128::from(clock::now().since(begin).as_nanos());
            let due = (span * u128::from(self.each_second) / 1_000_000_000) as u64;
            let batch = due.saturating_sub(self.port.stats().sent).min(BATCH as u64) as usize;
            if batch == 0 {
                std::thread::sleep(std::time::Duration::from_micros(100));
                continue;
            }
            let end = self.handles.len().min(next + batch);
            let sent = self.port.send(&self.frames, &self.handles[next..end])?;
            next = (next + sent) % self.handles.len();
        }
        Ok(())
    }
}

/// A UDP datagram of a flow, in a frame of `length` octets.
fn frame(length: usize, flow: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend(((length - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend((4_000 + flow).to_be_bytes());
    frame.extend([0x13, 0x88]);
    frame.extend(((length - 34) as u16).to_be_bytes());
    frame.resize(length, 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::flow::Keys;

    #[test]
    fn octets_are_counted_without_ethernet_s_headers() {
        let text =
            "Inter-|   Receive\n face |bytes    packets errs\n    lo:  9 9 0\n  eth0: 3028 2 0 0\n";
        assert_eq!(octets_of("eth0", text), Some(3_000));
        assert_eq!(octets_of("eth", text), None);
        assert_eq!(octets_of("eth0", "eth0: many\n"), None);
    }

    #[test]
    fn each_frame_is_of_a_flow_of_its_own() {
        let keys = |flow| Keys::read_frame(&frame(264, flow));
        assert_ne!(keys(1), keys(2));
        assert_eq!(keys(1).innermost().source_port, 4_001);
    }
}
