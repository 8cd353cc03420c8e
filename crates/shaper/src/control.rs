//! Asking and changing an engine from another thread.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use base::Instant;
use qos::tree::{Node, Overhead, Spec, SpecError};
use qos::{Backlog, Statistics};
use reactor::Waker;
use reactor::port::PortStats;

use super::{LaneStats, Way};

/// How long an engine may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What an engine is asked.
#[derive(Debug)]
pub(super) enum Command {
    Replace(Way, Box<Spec>, Sender<Result<(), SpecError>>),
    ReplaceBoth(Box<[(Spec, Overhead); 2]>, Sender<Result<(), SpecError>>),
    Snapshot(Sender<Snapshot>),
}

/// Why an engine was not asked or did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The engine has ended.
    #[error("the engine has ended")]
    Ended,
    /// The engine does not answer: it is not running.
    #[error("the engine does not answer")]
    Silent,
    /// The queues cannot be; those that are there stay.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// What an engine has done, and what waits in it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When this was.
    pub taken: Instant,
    /// From the first interface to the second.
    pub up: LaneSnapshot,
    /// From the second to the first.
    pub down: LaneSnapshot,
    /// Both interfaces.
    pub ports: [PortStats; 2],
    /// How often each interface was found down.
    pub downs: [u64; 2],
    /// Slots for frames in use.
    pub frames: u32,
    /// Slots that there are.
    pub frames_max: u32,
}

/// One way of a [`Snapshot`].
#[derive(Debug, Clone)]
pub struct LaneSnapshot {
    /// Every discipline and class, each after what is above it.
    pub nodes: Vec<Node>,
    /// What all of them together have done.
    pub statistics: Statistics,
    /// What waits in them.
    pub backlog: Backlog,
    /// Frames behind them, on their way.
    pub travelling: usize,
    /// What else was counted.
    pub stats: LaneStats,
}

/// A way to speak to an engine that runs on another thread.
#[derive(Debug, Clone)]
pub struct Control {
    sender: Sender<Command>,
    waker: Arc<Waker>,
}

impl Control {
    pub(super) fn new(sender: Sender<Command>, waker: Arc<Waker>) -> Self {
        Self { sender, waker }
    }

    /// Changes the queues of one way, without losing or reordering what waits in them.
    ///
    /// # Errors
    /// The queues cannot be, or the engine does not run.
    pub fn replace(&self, way: Way, spec: &Spec) -> Result<(), ControlError> {
        let (answer, answers) = channel();
        let command = Command::Replace(way, Box::new(spec.clone()), answer);
        Ok(self.ask(command, &answers)??)
    }

    /// Changes the queues of both ways at one moment, up first, and what a packet costs on the line; packets that wait
    /// already keep their length. Nothing is lost or reordered.
    ///
    /// # Errors
    /// The queues of either way cannot be: both are as before. Or the engine does not run.
    pub fn replace_both(&self, both: [(Spec, Overhead); 2]) -> Result<(), ControlError> {
        let (answer, answers) = channel();
        let command = Command::ReplaceBoth(Box::new(both), answer);
        Ok(self.ask(command, &answers)??)
    }

    /// What it has done so far, and what waits.
    ///
    /// # Errors
    /// The engine does not run.
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
