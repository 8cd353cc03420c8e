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
use base::Duration;
use qos::tree::Overhead;
use reactor::namespace::{Namespace, root_command};
use rustix::thread::gettid;
use shaper::{Control, Direction, Engine, Snapshot};

use super::super::scheduled::{Account, cores, stay_on};
use super::super::wires::{Count, ETHERNET, Sender, Wires, open};
use super::Kept;
use super::alone::{Shaper, spec};

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

/// The engine between `left` and `right`.
fn engine(wires: &Wires, rate_bps: u64) -> Result<Engine> {
    let direction = Direction {
        spec: spec(Shaper::Htb, rate_bps),
        overhead: Overhead::default(),
        delay: Duration::ZERO,
        packets_max: 20_000,
        seed: 1,
    };
    let [left, right] = ["left", "right"].map(|name| open(&wires.middle, name));
    Ok(Engine::new(left?, right?, &direction, &direction)?)
}

/// Frames a second that offer a quarter more than the rate.
fn offered(rate_bps: u64) -> u64 {
    let bits = (frame_length(rate_bps) as u64 - ETHERNET) * 8;
    ((rate_bps + rate_bps / 4) / bits).max(1)
}

fn between(rate_bps: u64, span: Duration) -> Result<Kept> {
    let wires = Wires::new()?;
    let mut engine = engine(&wires, rate_bps)?;
    let control = engine.control();
    let port = open(&wires.near, "eth0")?;
    let sender = Sender::new(port, frame_length(rate_bps), Some(offered(rate_bps)));
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
    arrived: Count,
}

impl Look {
    fn at(control: &Control, thread: &str, far: &Namespace) -> Result<Self> {
        Ok(Self {
            account: Account::of(thread),
            engine: control.snapshot()?,
            arrived: Count::of(far, "eth0")?,
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
