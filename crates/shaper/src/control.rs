//! Requests to a running engine from another thread.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use base::Instant;
use qos::tree::{Node, Overhead, Spec, SpecError};
use qos::{Backlog, Statistics};
use reactor::Waker;
use reactor::port::PortStats;

use super::{HostBytes, LaneStats, Way};

/// The longest time for an engine's answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request to an engine.
#[derive(Debug)]
pub(super) enum Command {
    Replace(Way, Box<Spec>, Sender<Result<(), SpecError>>),
    ReplaceBoth(Box<[(Spec, Overhead); 2]>, Sender<Result<(), SpecError>>),
    Hosts(Sender<[Option<HostBytes>; 2]>),
    Snapshot(Sender<Snapshot>),
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The engine has ended.
    #[error("the engine has ended")]
    Ended,
    /// The engine does not answer: it is not running.
    #[error("the engine does not answer")]
    Silent,
    /// The queues cannot be made; the engine keeps those it has.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// An engine's counters and backlogs.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The time of the snapshot.
    pub taken: Instant,
    /// From the first interface to the second.
    pub up: LaneSnapshot,
    /// From the second to the first.
    pub down: LaneSnapshot,
    /// Both interfaces.
    pub ports: [PortStats; 2],
    /// How often each interface was found down.
    pub downs: [u64; 2],
    /// How often a call on each interface failed that a working interface answers.
    pub faults: [u64; 2],
    /// Why the last of them failed.
    pub fault: Option<String>,
    /// Slots for frames in use.
    pub frames: u32,
    /// Slots for frames in all.
    pub frames_max: u32,
}

/// One way of a [`Snapshot`].
#[derive(Debug, Clone)]
pub struct LaneSnapshot {
    /// Every discipline and class, parents first.
    pub nodes: Vec<Node>,
    /// Counters of all queues together.
    pub statistics: Statistics,
    /// Their backlog.
    pub backlog: Backlog,
    /// Frames that have left the queues and are in the delay.
    pub travelling: usize,
    /// Further counters.
    pub stats: LaneStats,
}

/// A handle to an engine that runs on another thread.
#[derive(Debug, Clone)]
pub struct Control {
    sender: Sender<Command>,
    waker: Arc<Waker>,
}

impl Control {
    pub(super) fn new(sender: Sender<Command>, waker: Arc<Waker>) -> Self {
        Self { sender, waker }
    }

    /// Replaces the queues of one way, without losing or reordering packets.
    ///
    /// # Errors
    /// The queues cannot be made, or the engine is not running.
    pub fn replace(&self, way: Way, spec: &Spec) -> Result<(), ControlError> {
        let (answer, answers) = channel();
        let command = Command::Replace(way, Box::new(spec.clone()), answer);
        Ok(self.ask(command, &answers)??)
    }

    /// Replaces the queues and the link overhead of both ways at once, up first. Packets that wait already keep their
    /// length. None is lost or reordered.
    ///
    /// # Errors
    /// The queues of either way cannot be made: both are unchanged then. Or the engine is not running.
    pub fn replace_both(&self, both: [(Spec, Overhead); 2]) -> Result<(), ControlError> {
        let (answer, answers) = channel();
        let command = Command::ReplaceBoth(Box::new(both), answer);
        Ok(self.ask(command, &answers)??)
    }

    /// What each host sent up and received down since the last call. A call starts the count, which goes on for
    /// 5 s; until then it is `None`.
    ///
    /// # Errors
    /// The engine is not running.
    pub fn hosts(&self) -> Result<[Option<HostBytes>; 2], ControlError> {
        let (answer, answers) = channel();
        self.ask(Command::Hosts(answer), &answers)
    }

    /// Its counters and backlogs.
    ///
    /// # Errors
    /// The engine is not running.
    pub fn snapshot(&self) -> Result<Snapshot, ControlError> {
        let (answer, answers) = channel();
        self.ask(Command::Snapshot(answer), &answers)
    }

    fn ask<T>(&self, command: Command, answers: &Receiver<T>) -> Result<T, ControlError> {
        self.sender.send(command).map_err(|_| ControlError::Ended)?;
        self.waker.wake();
        answers.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => ControlError::Silent,
            RecvTimeoutError::Disconnected => ControlError::Ended,
        })
    }
}
