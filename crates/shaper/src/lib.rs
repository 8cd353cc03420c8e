//! The forwarding engine: what comes to one interface leaves by the other, both ways, each way through a tree of queues
//! and, where one is asked for, a fixed delay.
//!
//! All frames pass, whatever they carry. IP packets are queued; what is no IP (ARP, 802.1X, spanning trees) is let past
//! the queue, since a link is of no use without it. Frames that a local stack left to be cut are cut first, so that
//! queues see packets as the line does. A packet that its queue marks leaves as "congestion experienced".
//!
//! Where one is asked for, a [`Rewrite`] changes packets before they are queued, and one those that leave: the ends of a
//! tunnel, for example.
//!
//! One thread, one reading of the clock for each turn, frames in batches, and no copy between the interfaces. Another
//! thread asks and changes it by [`Control`].
//!
//! Left out: learning who is on which side (all that comes to one side leaves by the other), and several queues of one
//! interface.

#![forbid(unsafe_code)]

mod control;
mod lane;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use base::{Duration, Instant};
use qos::tree::{Overhead, Spec, SpecError, Tree};
use reactor::port::{BATCH, Frames, Port, PortError, PortStats, Received};
use reactor::{Interest, PollerKind, Reactor, StoreKind, Token, Waker, clock};

pub use control::{Control, ControlError, LaneSnapshot, Snapshot};
pub use lane::LaneStats;

use control::Command;
use lane::Lane;

/// The longest wait, after which the stop flag is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Frames that may be on their way behind a queue, for each way with a delay.
const TRAVELLING: u32 = 4_096;

/// What the wakers and ports are known by.
const WAKER: u64 = 2;

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// From the first interface to the second.
    Up,
    /// From the second to the first.
    Down,
}

/// What happens to packets one way.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction {
    /// The queues.
    pub spec: Spec,
    /// What a packet costs on the line beside its own octets.
    pub overhead: Overhead,
    /// How long it takes behind the queues.
    pub delay: Duration,
    /// Packets that may wait in all queues; the queues' own limits should be met first.
    pub packets_max: u32,
    /// Chooses what is hashed where.
    pub seed: u64,
}

/// Changes a frame: says what takes its place, `None` to leave it as it is. What is longer than a slot is cut off. Frames
/// whose checksum a local stack left open are not shown to it.
pub type Rewrite = fn(&[u8]) -> Option<Vec<u8>>;

/// Why an engine cannot be made or ended.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An interface.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A tree of queues that cannot be.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Two interfaces and what is between them.
#[derive(Debug)]
pub struct Engine {
    /// What comes to port `n` goes through lane `n` to the other port.
    ports: [Port; 2],
    lanes: [Lane; 2],
    frames: Frames,
    waker: Arc<Waker>,
    commands: Receiver<Command>,
    control: Control,
    received: Vec<Received>,
    /// Times that a port was found down.
    downs: [u64; 2],
    /// An interface that was said to be down. Its end is not said again: it is looked for.
    down: [bool; 2],
}

impl Engine {
    /// Puts queues between `a` and `b`: `up` for what goes from `a` to `b`, `down` for the other way.
    ///
    /// # Errors
    /// A spec that cannot be, or the system refuses a descriptor.
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
            lanes: [Lane::new(up, now)?, Lane::new(down, now)?],
            frames: Frames::new(limit, mtu),
            control: Control::new(sender, Arc::clone(&waker)),
            waker,
            commands,
            received: Vec::with_capacity(BATCH),
            downs: [0; 2],
            down: [false; 2],
        })
    }

    /// Rewrites what goes `way` before it is queued.
    pub fn rewrite_entering(&mut self, way: Way, rewrite: Rewrite) {
        self.lanes[way as usize].entering = Some(rewrite);
    }

    /// Rewrites what goes `way` when it leaves the queues, before its delay. What was let past them is not shown to it.
    pub fn rewrite_leaving(&mut self, way: Way, rewrite: Rewrite) {
        self.lanes[way as usize].leaving = Some(rewrite);
    }

    /// By which other threads ask and change it while it runs.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Forwards until `stop` is set, which it looks at every 50 ms at least. An interface that goes down loses what is
    /// sent to it until it is up again.
    ///
    /// # Errors
    /// An interface has vanished, or the system failed.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), EngineError> {
        // Without it, waits are longer, and rates as they were asked all the same.
        let _ = clock::wake_precisely();
        let mut watch = Watch::new(&self.ports, &self.waker)?;
        let mut now = clock::now();
        while !stop.load(Ordering::Relaxed) {
            let deadline = self.deadline(now);
            now = watch.reactor.wait(Some(deadline))?;
            self.turn(&mut watch, now)?;
            for (port, _) in self.ports.iter().zip(self.down).filter(|(_, down)| *down) {
                port.mtu()?;
            }
        }
        Ok(())
    }

    /// When there is something to do if nothing comes.
    fn deadline(&self, now: Instant) -> Instant {
        let lanes = self.lanes.iter().filter_map(|lane| lane.next(now));
        lanes
            .min()
            .unwrap_or(Instant::FAR_FUTURE)
            .min(now + LOOK_EVERY)
    }

    fn turn(&mut self, watch: &mut Watch, now: Instant) -> Result<(), EngineError> {
        while let Some(ready) = watch.reactor.next_ready() {
            match ready.user {
                WAKER => self.obey(now),
                port => {
                    let port = port as usize & 1;
                    if ready.readiness.readable() {
                        self.receive(port, now)?;
                    }
                    if ready.readiness.writable() && self.lanes[1 - port].is_blocked() {
                        self.lanes[1 - port].unblock();
                        watch.set_interest(port, Interest::READ)?;
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
                watch.set_interest(to, Interest::BOTH)?;
            }
        }
        Ok(())
    }

    /// Takes in what came to a port.
    fn receive(&mut self, side: usize, now: Instant) -> Result<(), EngineError> {
        self.received.clear();
        match self.ports[side].receive(&mut self.frames, &mut self.received) {
            Ok(_) => {}
            Err(PortError::Down(_)) => {
                self.downs[side] += 1;
                self.down[side] = true;
            }
            Err(error) => return Err(error.into()),
        }
        self.down[side] &= self.received.is_empty();
        let (lane, frames) = (&mut self.lanes[side], &mut self.frames);
        for received in self.received.drain(..) {
            match received {
                Received::Frame(handle) => lane.take(frames, handle, now),
                Received::Large(index) => lane.cut(frames, self.ports[side].large(index), now),
            }
        }
        lane.reclaim(frames);
        Ok(())
    }

    /// Does what other threads asked for.
    fn obey(&mut self, now: Instant) {
        self.waker.clear();
        while let Ok(command) = self.commands.try_recv() {
            // Who asked may have gone.
            match command {
                Command::Replace(way, spec, answer) => {
                    let lane = &mut self.lanes[way as usize];
                    let _ = answer.send(lane.replace(&spec, now));
                    lane.reclaim(&mut self.frames);
                }
                Command::ReplaceBoth(both, answer) => {
                    let _ = answer.send(self.replace_both(&both, now));
                }
                Command::Snapshot(answer) => {
                    let _ = answer.send(self.snapshot());
                }
            }
        }
    }

    /// Changes both ways, or neither.
    fn replace_both(
        &mut self,
        both: &[(Spec, Overhead); 2],
        now: Instant,
    ) -> Result<(), SpecError> {
        // What can be made can be changed to.
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

    /// What it has done so far, and what waits.
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
            frames: self.frames.used(),
            frames_max: self.frames.limit(),
        }
    }
}

/// What an engine waits for.
struct Watch {
    reactor: Reactor,
    ports: [Token; 2],
}

impl Watch {
    fn new(ports: &[Port; 2], waker: &Waker) -> io::Result<Self> {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::default())?;
        let mut watch = |fd: BorrowedFd<'_>, number| {
            let added = reactor.add(fd, "engine", number, Interest::READ);
            added.map_err(io::Error::other)
        };
        watch(waker.as_fd(), WAKER)?;
        let ports = [watch(ports[0].as_fd(), 0)?, watch(ports[1].as_fd(), 1)?];
        Ok(Self { reactor, ports })
    }

    fn set_interest(&mut self, port: usize, interest: Interest) -> io::Result<()> {
        self.reactor.set_interest(self.ports[port], interest)
    }
}

#[cfg(test)]
mod tests;
