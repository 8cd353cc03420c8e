//! The bare loop, the engine and the kernel's bridge.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, bail};
use base::Duration;
use qos::tree::Overhead;
use reactor::namespace::Namespace;
use reactor::port::{BATCH, Frames, Port, Received};
use reactor::{Interest, PollerKind, Reactor, StoreKind, clock, urgency};
use shaper::{Direction, Engine};

use super::super::rate::{Shaper, spec};
use super::super::scheduled::stay_on;
use super::super::wires::{Wires, open};
use super::case::Mover;

/// A rate that nothing reaches here.
const RATE_BPS: u64 = 100_000_000_000;

/// The bridge, and htb at its way out with the same rate.
const BRIDGE: [&str; 4] = [
    "ip link add br0 type bridge",
    "ip link set left master br0",
    "ip link set right master br0",
    "ip link set br0 up",
];
const HTB: [&str; 2] = [
    "tc qdisc add dev right root handle 1: htb default 10",
    "tc class add dev right parent 1: classid 1:10 htb rate 100gbit",
];

/// How long the bare loop waits before it looks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What forwards, until its end.
pub(super) struct Moving {
    stop: Arc<AtomicBool>,
    /// The kernel's id of its thread, if it has one.
    pub(super) thread: Option<i32>,
    working: Option<JoinHandle<std::io::Result<Result<()>>>>,
}

impl Moving {
    /// Starts it; a thread of ours stays on `core`.
    ///
    /// # Errors
    /// The kernel's, or a program is missing.
    pub(super) fn start(wires: &Wires, mover: Mover, core: usize) -> Result<Self> {
        let mut moving = Self {
            stop: Arc::default(),
            thread: None,
            working: None,
        };
        match mover {
            Mover::Nothing => {}
            Mover::Bridge => commands(&wires.middle, &BRIDGE)?,
            Mover::BridgeHtb => {
                commands(&wires.middle, &BRIDGE)?;
                commands(&wires.middle, &HTB)?;
            }
            Mover::Bare => {
                let [left, right] = ["left", "right"].map(|name| open(&wires.middle, name));
                let ports = [left?, right?];
                moving.work(wires, core, move |stop| bare(ports, stop))?;
            }
            Mover::Engine => {
                let mut engine = engine(wires)?;
                moving.work(wires, core, move |stop| Ok(engine.run(stop)?))?;
            }
        }
        Ok(moving)
    }

    fn work(
        &mut self,
        wires: &Wires,
        core: usize,
        work: impl FnOnce(&AtomicBool) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let stop = Arc::clone(&self.stop);
        let (tell, told) = std::sync::mpsc::channel();
        self.working = Some(wires.middle.spawn("forwards", move || {
            stay_on(core);
            urgency::hasten(true);
            // The receiver of this message waits for it.
            let _ = tell.send(reactor::usage::this_thread());
            work(&stop)
        })?);
        self.thread = Some(told.recv()?);
        Ok(())
    }

    /// Ends its thread.
    ///
    /// # Errors
    /// The thread's.
    pub(super) fn end(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(working) = self.working else {
            return Ok(());
        };
        let done = working.join();
        done.map_err(|_| anyhow!("what forwards has panicked"))??
    }
}

fn commands(namespace: &Namespace, lines: &[&str]) -> Result<()> {
    for line in lines {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap_or_default());
        let output = namespace
            .command(command.args(words))?
            .output()
            .with_context(|| (*line).to_owned())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("{line}: {}", said.trim());
        }
    }
    Ok(())
}

/// The engine with the queues that `headend qos run` makes of a rate.
fn engine(wires: &Wires) -> Result<Engine> {
    let direction = Direction {
        spec: spec(Shaper::Htb, RATE_BPS),
        overhead: Overhead::default(),
        delay: Duration::ZERO,
        packets_max: 20_000,
        seed: 1,
    };
    let [left, right] = ["left", "right"].map(|name| open(&wires.middle, name));
    Ok(Engine::new(left?, right?, &direction, &direction)?)
}

/// Sends what one port receives by the other, in both directions, without looking at it.
fn bare(mut ports: [Port; 2], stop: &AtomicBool) -> Result<()> {
    let mut frames = Frames::new(4 * BATCH as u32, 1_500);
    let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::default())?;
    for (port, number) in ports.iter().zip(0..) {
        reactor.add(port, "port", number, Interest::READ)?;
    }
    let (mut received, mut handles) = (Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        reactor.wait(Some(clock::now() + LOOK_EVERY))?;
        while let Some(ready) = reactor.next_ready() {
            let side = ready.user as usize & 1;
            ports[side].receive(&mut frames, &mut received)?;
            // A frame that has to be cut is lost here.
            handles.extend(received.drain(..).filter_map(|received| match received {
                Received::Frame(handle) => Some(handle),
                Received::Large(_) => None,
            }));
            ports[1 - side].send(&frames, &handles)?;
            for handle in handles.drain(..) {
                frames.give_back(handle);
            }
        }
    }
    Ok(())
}
