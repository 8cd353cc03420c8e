//! What forwards, what it forwards, and one measurement in a process of its own.

use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use base::Duration;
use clap::ValueEnum;
use reactor::namespace::{Namespace, root_command};
use serde::{Deserialize, Serialize};

use super::super::scheduled::{Account, cores, softirqd, stay_on};
use super::super::wires::{Count, Sender, Wires, open_sender};
use super::movers::Moving;
use super::{REACH_BPS, REACH_PPS, tcp};

/// Time until everything runs at its speed.
const SETTLE: Duration = Duration::from_millis(300);

/// What forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Mover {
    /// Nothing: the frames are lost behind the first wire.
    Nothing,
    /// The kernel's bridge.
    Bridge,
    /// The same, with htb at its way out.
    BridgeHtb,
    /// Frames from one port to the other, without a queue.
    Bare,
    /// The engine, with a rate and fair queueing.
    Engine,
}

impl Mover {
    pub(super) const ALL: [Mover; 5] = [
        Self::Nothing,
        Self::Bridge,
        Self::BridgeHtb,
        Self::Bare,
        Self::Engine,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing: the sender alone",
            Self::Bridge => "the kernel's bridge",
            Self::BridgeHtb => "the kernel's bridge and htb",
            Self::Bare => super::super::FLOOR,
            Self::Engine => "headend, htb + fair",
        }
    }

    /// Whether it can be measured with this load: TCP needs an answer, and the bare loop cannot cut.
    pub(super) fn takes(self, load: Load) -> bool {
        match self {
            Self::Nothing => load.frame().is_some(),
            Self::Bare => load != Load::TcpLarge,
            Self::Bridge | Self::BridgeHtb | Self::Engine => true,
        }
    }

    /// Whether it has a thread, which forwards.
    pub(super) fn is_ours(self) -> bool {
        matches!(self, Self::Bare | Self::Engine)
    }
}

/// What is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Load {
    Small,
    Medium,
    Full,
    /// TCP whose packets the stack cuts before they leave.
    TcpCut,
    /// TCP whose packets are left to the interface to cut.
    TcpLarge,
}

impl Load {
    pub(super) const ALL: [Load; 5] = [
        Self::Small,
        Self::Medium,
        Self::Full,
        Self::TcpCut,
        Self::TcpLarge,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Small => "UDP, 100 bytes",
            Self::Medium => "UDP, 600 bytes",
            Self::Full => "UDP, 1,500 bytes",
            Self::TcpCut => "TCP, offloads off",
            Self::TcpLarge => "TCP, offloads on",
        }
    }

    /// Bytes of its frames, if they are sent one by one.
    pub(super) fn frame(self) -> Option<usize> {
        match self {
            Self::Small => Some(114),
            Self::Medium => Some(614),
            Self::Full => Some(1_514),
            Self::TcpCut | Self::TcpLarge => None,
        }
    }

    /// The goal for the engine.
    pub(super) fn reach(self) -> String {
        if self.frame().is_some() {
            format!("{} M/s", REACH_PPS / 1e6)
        } else {
            format!("{} Gbit/s", REACH_BPS / 1e9)
        }
    }
}

/// Results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Passed {
    pub(super) seconds: f64,
    /// Packets that the near interface sent.
    pub(super) sent: u64,
    /// IP packets that arrived at the far interface, and their bytes.
    pub(super) packets: u64,
    pub(super) octets: u64,
    /// Processor time of the thread that forwards, and of the kernel's thread on its core.
    mover_ns: u64,
    /// Processor time of the sender, and of the kernel's thread on its core.
    sender_ns: u64,
}

impl Passed {
    /// Processor time on the sender's core, for each packet that it sent.
    pub(super) fn sender_ns(&self) -> f64 {
        self.sender_ns as f64 / self.sent as f64
    }

    pub(super) fn mover_ns(&self) -> f64 {
        self.mover_ns as f64
    }
}

/// Measure forwarding between two interfaces of namespaces, and print it as JSON.
#[derive(Debug, clap::Args)]
pub(crate) struct PassChildArgs {
    mover: Mover,
    load: Load,
    span_ms: u64,
}

/// Measures one case in a process of its own.
///
/// # Errors
/// Namespaces are not permitted here, or the error of that process.
pub(super) fn measure(mover: Mover, load: Load, span: Duration) -> Result<Passed> {
    let name = |value: Option<clap::builder::PossibleValue>| {
        value.map_or(String::new(), |value| value.get_name().to_owned())
    };
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["bench", "qos-pass-child"])
        .arg(name(mover.to_possible_value()))
        .arg(name(load.to_possible_value()))
        .arg((span.as_nanos() / 1_000_000).to_string())
        .stdin(Stdio::null());
    if Namespace::new().is_err() {
        root_command(&mut command);
    }
    let output = command.output().context("no namespaces")?;
    let said = String::from_utf8_lossy(&output.stderr);
    match serde_json::from_slice(&output.stdout) {
        Ok(passed) if output.status.success() => Ok(passed),
        _ => bail!("{}", said.lines().last().unwrap_or("no answer").trim()),
    }
}

/// Runs the measurement in this process.
pub(crate) fn run(args: &PassChildArgs) -> Result<ExitCode> {
    let passed = pass(args.mover, args.load, Duration::from_millis(args.span_ms))?;
    println!("{}", serde_json::to_string(&passed)?);
    Ok(ExitCode::SUCCESS)
}

fn pass(mover: Mover, load: Load, span: Duration) -> Result<Passed> {
    let wires = Wires::new()?;
    let cores = cores();
    let core = cores.first().copied().context("no core")?;
    let far_core = cores.last().copied().context("no core")?;
    let _off = tcp::prepare(&wires, load)?;
    let moving = Moving::start(&wires, mover, far_core)?;
    let sending = Sending::start(&wires, load, core)?;
    std::thread::sleep(SETTLE.into());
    let at = match mover {
        Mover::Nothing => (&wires.middle, "left"),
        _ => (&wires.far, "eth0"),
    };
    let look = || -> Result<_> {
        let (near, far) = (Count::of(&wires.near, "eth0")?, Count::of(at.0, at.1)?);
        let ran = |thread: i32, core: usize| -> Result<Duration> {
            let own = Account::of(&format!("/proc/self/task/{thread}"));
            let own = own.context("no schedstat")?.ran();
            let kernel = softirqd(core).and_then(|of| Account::of(&of));
            Ok(own + kernel.map_or(Duration::ZERO, Account::ran))
        };
        let sender = ran(sending.thread, core)?;
        let mover = moving.thread.map(|thread| ran(thread, far_core));
        Ok((near, far, sender, mover.transpose()?.unwrap_or_default()))
    };
    let before = look()?;
    std::thread::sleep(span.into());
    let after = look()?;
    sending.end()?;
    moving.end()?;
    Ok(Passed {
        seconds: after.1.at.since(before.1.at).as_secs_f64(),
        sent: after.0.sent - before.0.sent,
        packets: after.1.packets - before.1.packets,
        octets: after.1.octets - before.1.octets,
        sender_ns: after.2.as_nanos() - before.2.as_nanos(),
        mover_ns: after.3.as_nanos() - before.3.as_nanos(),
    })
}

/// The sender, on its core.
struct Sending {
    stop: Arc<AtomicBool>,
    thread: i32,
    threads: Vec<std::thread::JoinHandle<std::io::Result<Result<()>>>>,
}

impl Sending {
    fn start(wires: &Wires, load: Load, core: usize) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = std::sync::mpsc::channel();
        let mut threads = Vec::new();
        let stops = Arc::clone(&stop);
        if let Some(length) = load.frame() {
            let sender = Sender::new(open_sender(wires)?, length, None);
            threads.push(wires.near.spawn("sender", move || {
                stay_on(core);
                let _ = tell.send(reactor::usage::this_thread());
                sender.run(&stops)
            })?);
        } else {
            let (out, taken) = tcp::connect(wires)?;
            threads.push(wires.far.spawn("taker", move || {
                stay_on(core);
                tcp::take(taken)
            })?);
            threads.push(wires.near.spawn("sender", move || {
                stay_on(core);
                let _ = tell.send(reactor::usage::this_thread());
                tcp::send(out, &stops)
            })?);
        }
        let thread = told.recv()?;
        Ok(Self {
            stop,
            thread,
            threads,
        })
    }

    fn end(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let done = thread.join();
            done.map_err(|_| anyhow!("a thread of the sender has panicked"))???;
        }
        Ok(())
    }
}
