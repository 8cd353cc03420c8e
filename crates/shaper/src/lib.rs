//! The forwarding engine: a frame that arrives at one interface leaves by the other. Each way has a tree of queues
//! and, if asked for, a fixed delay.
//!
//! All frames pass. IP packets are queued. Other frames (ARP, 802.1X, spanning tree) bypass the queue, since a link
//! does not work without them. Frames that a local stack left to be segmented are segmented first, so that queues see
//! packets as the line does; if the other port keeps large frames, several packets that take a millisecond at most stay in one
//! piece, which counts with the length of all its packets on the line. A packet that its queue marks leaves as "congestion experienced".
//!
//! A [`Rewrite`] can change packets before they are queued, and another one after they leave the queue: the ends of a
//! tunnel, for example.
//!
//! It uses one thread, reads the clock once per turn, moves frames in batches, and copies none between the
//! interfaces. Other threads query and change it through [`Control`]. Start with [`Engine`].
//!
//! Left out: learning which host is on which side (all frames from one side leave by the other), and several queues
//! of one interface.

#![forbid(unsafe_code)]

mod control;
mod hosts;
mod lane;
mod watch;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use base::{Duration, Instant};
use qos::tree::{Overhead, Spec, SpecError, Tree};
use reactor::port::{BATCH, Frames, Port, PortError, PortStats, Received};
use reactor::{Waker, clock, prefetch};

pub use control::{Control, ControlError, LaneSnapshot, Snapshot};
pub use hosts::{HOSTS_MAX, HostBytes};
pub use lane::{LaneStats, take_piece};

use control::Command;
use lane::Lane;
use watch::{WAKER, Watch};

/// The longest wait before the stop flag is checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Frames in the delay, for each way with a delay.
const TRAVELLING: u32 = 4_096;

/// The direction of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// From the first interface to the second.
    Up,
    /// From the second to the first.
    Down,
}

/// The queues, overhead and delay of one way.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction {
    /// The queues.
    pub spec: Spec,
    /// The link layer's overhead of each packet.
    pub overhead: Overhead,
    /// The delay after the queues.
    pub delay: Duration,
    /// Packets that may wait in all queues; the queues' own limits should be lower.
    pub packets_max: u32,
    /// Chooses the hash functions.
    pub seed: u64,
}

/// Changes a frame: returns its replacement, or `None` to keep it. A replacement longer than a slot is truncated.
/// Frames whose checksum a local stack left open are not passed to it.
pub type Rewrite = fn(&[u8]) -> Option<Vec<u8>>;

/// Why an engine cannot be made, or why it ended.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An interface failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A tree of queues cannot be made.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Two interfaces with queues between them.
#[derive(Debug)]
pub struct Engine {
    /// Frames from port `n` go through lane `n` to the other port.
    ports: [Port; 2],
    lanes: [Lane; 2],
    frames: Frames,
    waker: Arc<Waker>,
    commands: Receiver<Command>,
    control: Control,
    received: Vec<Received>,
    /// How often each port was found down.
    downs: [u64; 2],
    /// Whether an interface was reported down. The kernel does not report the end of that, so the engine checks.
    down: [bool; 2],
    /// How often a call on each port failed that a working interface answers.
    faults: [u64; 2],
    /// Why the last of them failed.
    fault: Option<String>,
}

impl Engine {
    /// Puts queues between `a` and `b`: `up` for frames from `a` to `b`, `down` for the other way.
    ///
    /// # Errors
    /// A spec does not fit together, or the system refuses a descriptor.
    pub fn new(a: Port, b: Port, up: &Direction, down: &Direction) -> Result<Self, EngineError> {
        let now = clock::now();
        let mtu = a.mtu()?.max(b.mtu()?);
        let mut limit = 4 * BATCH as u32;
        for direction in [up, down] {
            limit = limit.saturating_add(direction.packets_max);
            if direction.delay > Duration::ZERO {
                limit = limit.saturating_add(TRAVELLING);
            }
        }
        let waker = Arc::new(Waker::new()?);
        let (sender, commands) = channel();
        Ok(Self {
            ports: [a, b],
            lanes: [
                Lane::new(Way::Up, up, now)?,
                Lane::new(Way::Down, down, now)?,
            ],
            frames: Frames::new(limit, mtu),
            control: Control::new(sender, Arc::clone(&waker)),
            waker,
            commands,
            received: Vec::with_capacity(BATCH),
            downs: [0; 2],
            down: [false; 2],
            faults: [0; 2],
            fault: None,
        })
    }

    /// Rewrites the packets of `way` before they are queued.
    pub fn rewrite_entering(&mut self, way: Way, rewrite: Rewrite) {
        self.lanes[way as usize].entering = Some(rewrite);
    }

    /// Rewrites the packets of `way` when they leave the queues, before the delay. Frames that bypass the queues are
    /// not passed to it.
    pub fn rewrite_leaving(&mut self, way: Way, rewrite: Rewrite) {
        self.lanes[way as usize].leaving = Some(rewrite);
    }

    /// The handle by which other threads query and change the engine while it runs.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Forwards until `stop` is set, which it checks every 50 ms at least. Frames to an interface that is down are
    /// lost until it is up again.
    ///
    /// A failed call is tried again: at once, then after 10 ms, 20 ms and so on, at most 1 s. Meanwhile frames wait
    /// with the kernel.
    ///
    /// # Errors
    /// An interface has vanished, or calls failed for about ten seconds.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), EngineError> {
        // If this fails, waits are longer; rates hold all the same.
        let _ = clock::wake_precisely();
        let mut watch = Watch::new(&self.ports, &self.waker)?;
        let mut now = clock::now();
        while !stop.load(Ordering::Relaxed) {
            let deadline = self.deadline(now);
            now = watch.wait(deadline)?;
            self.turn(&mut watch, now)?;
            for (port, _) in self.ports.iter().zip(self.down).filter(|(_, down)| *down) {
                // The next turn tries again after other errors.
                if let Err(error @ PortError::Gone(_)) = port.mtu() {
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// When to wake up if no frame arrives.
    fn deadline(&self, now: Instant) -> Instant {
        let lanes = self.lanes.iter().filter_map(|lane| lane.next(now));
        lanes
            .min()
            .unwrap_or(Instant::FAR_FUTURE)
            .min(now + LOOK_EVERY)
    }

    fn turn(&mut self, watch: &mut Watch, now: Instant) -> Result<(), EngineError> {
        while let Some(ready) = watch.next_ready() {
            match ready.user {
                WAKER => self.obey(now),
                port => {
                    let port = port as usize & 1;
                    if ready.readiness.readable() && !watch.is_resting(port) {
                        self.receive(port, watch, now)?;
                    }
                    if ready.readiness.writable() && self.lanes[1 - port].is_blocked() {
                        self.lanes[1 - port].unblock();
                        watch.want_room(port, false);
                    }
                }
            }
        }
        for side in 0..2 {
            let lane = &mut self.lanes[side];
            let to = 1 - side;
            lane.release(&mut self.frames, now);
            let was_blocked = lane.is_blocked();
            match lane.send(&mut self.ports[to], &mut self.frames) {
                Ok(()) => {}
                Err(PortError::Down(_)) => {
                    self.downs[to] += 1;
                    self.down[to] = true;
                    lane.lose(&mut self.frames);
                }
                Err(error) => return Err(error.into()),
            }
            if lane.is_blocked() && !was_blocked {
                watch.want_room(to, true);
            }
        }
        Ok(watch.settle(now)?)
    }

    /// Takes the frames that arrived at a port.
    fn receive(&mut self, side: usize, watch: &mut Watch, now: Instant) -> Result<(), EngineError> {
        self.received.clear();
        match self.ports[side].receive(&mut self.frames, &mut self.received) {
            Ok(_) => watch.works(side),
            Err(PortError::Down(_)) => {
                self.downs[side] += 1;
                self.down[side] = true;
            }
            Err(PortError::Other(name, error)) => {
                self.faults[side] += 1;
                self.fault = Some(error.to_string());
                if !watch.rests(side, now) {
                    return Err(PortError::Other(name, error).into());
                }
            }
            Err(error) => return Err(error.into()),
        }
        self.down[side] &= self.received.is_empty();
        let (lane, frames) = (&mut self.lanes[side], &mut self.frames);
        for (at, received) in self.received.iter().enumerate() {
            if let Some(&Received::Frame(later)) = self.received.get(at + prefetch::PACKETS) {
                prefetch::headers(frames.get(later));
            }
            match *received {
                Received::Frame(handle) => lane.take(frames, handle, now),
                Received::Large(index) => {
                    let large = self.ports[side].large(index);
                    let out = &self.ports[1 - side];
                    let segment_max = large.cut.and_then(|cut| out.segment_max(cut));
                    lane.cut(frames, large, segment_max, now);
                }
            }
        }
        lane.reclaim(frames);
        Ok(())
    }

    /// Serves the requests of other threads.
    fn obey(&mut self, now: Instant) {
        self.waker.clear();
        while let Ok(command) = self.commands.try_recv() {
            // The requester may have ended.
            match command {
                Command::Replace(way, spec, answer) => {
                    let lane = &mut self.lanes[way as usize];
                    let _ = answer.send(lane.replace(&spec, now));
                    lane.reclaim(&mut self.frames);
                }
                Command::ReplaceBoth(both, answer) => {
                    let _ = answer.send(self.replace_both(&both, now));
                }
                Command::Hosts(answer) => {
                    let [up, down] = &mut self.lanes;
                    let _ = answer.send([up.take_hosts(now), down.take_hosts(now)]);
                }
                Command::Snapshot(answer) => {
                    let _ = answer.send(self.snapshot());
                }
            }
        }
    }

    /// Replaces the queues of both ways, or of neither.
    fn replace_both(
        &mut self,
        both: &[(Spec, Overhead); 2],
        now: Instant,
    ) -> Result<(), SpecError> {
        // A spec that can be made can also be changed to.
        for (spec, _) in both {
            Tree::new(spec, 0, now)?;
        }
        for (lane, (spec, overhead)) in self.lanes.iter_mut().zip(both) {
            lane.replace(spec, now)?;
            lane.set_overhead(*overhead);
            lane.reclaim(&mut self.frames);
        }
        Ok(())
    }

    /// Its counters and backlogs.
    #[must_use]
    pub fn snapshot(&mut self) -> Snapshot {
        for port in &mut self.ports {
            port.drops();
        }
        let [up, down] = [&self.lanes[0], &self.lanes[1]].map(Lane::snapshot);
        let stats: [PortStats; 2] = [self.ports[0].stats(), self.ports[1].stats()];
        Snapshot {
            taken: clock::now(),
            up,
            down,
            ports: stats,
            downs: self.downs,
            faults: self.faults,
            fault: self.fault.clone(),
            frames: self.frames.used(),
            frames_max: self.frames.limit(),
        }
    }
}

#[cfg(test)]
mod tests;
