//! An experiment as a thread of another command, which sees that replies come and may end it.
//!
//! Its round trips start when the kernel is asked to send, and not when the driver has the packet: queues of this host
//! count too.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow};
use base::{Duration, Instant};
use ping::{Outcome, Plan, StreamPlan};
use reactor::Waker;

use super::collect::Wishes;
use super::engine::Engine;
use super::hi::{From, Task, View};
use super::paper::Paper;

/// Errors that are kept.
const NOTES_MAX: usize = 64;

/// What the command and the experiment share.
pub(super) struct Tap {
    pub(super) stop: Waker,
    pub(super) answered: AtomicU64,
    notes: Mutex<Vec<String>>,
}

impl Tap {
    pub(super) fn note(&self, note: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < NOTES_MAX {
            notes.push(note);
        }
    }
}

/// The streams of an experiment, and where they start from.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The streams; [`Plan::spread`] sets their offsets.
    pub streams: Vec<StreamPlan>,
    /// The destination of each, with the scope of an IPv6 address.
    pub to: Vec<SocketAddr>,
    /// The timeout of a reply.
    pub wait: Duration,
    /// The interface that packets leave by.
    pub interface: Option<String>,
    /// The address that packets are sent from.
    pub source: Option<IpAddr>,
}

/// A running experiment.
pub struct Background {
    thread: JoinHandle<(Outcome, Result<()>)>,
    tap: Arc<Tap>,
    started: Instant,
}

/// What an experiment measured, and what went wrong.
#[derive(Debug)]
pub struct Measured {
    /// The result; also after an error.
    pub outcome: Outcome,
    /// Each error of a stream, once.
    pub notes: Vec<String>,
    /// The error that ended it, for example that the interface has vanished.
    pub ended: Result<()>,
}

impl Background {
    /// Starts the experiment on a thread.
    ///
    /// # Errors
    /// The plan cannot be run, or a socket cannot be opened.
    pub fn start(setup: Setup) -> Result<Background> {
        let plan = Plan::spread(setup.streams, setup.wait);
        plan.check()?;
        let task = Task {
            plan,
            to: setup.to,
            from: From {
                interface: setup.interface,
                source: setup.source,
                ..From::default()
            },
            deadline: None,
            view: View::Json,
            numeric: true,
            date: false,
            output: None,
            plots: Vec::new(),
        };
        let tap = Arc::new(Tap {
            stop: Waker::new()?,
            answered: AtomicU64::new(0),
            notes: Mutex::new(Vec::new()),
        });
        let (said, opened) = mpsc::channel();
        let shared = Arc::clone(&tap);
        let thread = std::thread::Builder::new()
            .name("pings".into())
            .spawn(move || {
                let opened = Paper::start(false)
                    .map_err(anyhow::Error::from)
                    .and_then(|paper| Engine::new(&task, Wishes::Command(shared), paper));
                let mut engine = match opened {
                    Ok(engine) => engine,
                    Err(error) => {
                        // The command waits for this.
                        let _ = said.send(Err(error));
                        return (nothing(&task.plan), Ok(()));
                    }
                };
                let _ = said.send(Ok(engine.started));
                let ended = engine.run();
                (engine.finish().0, ended)
            })?;
        let started = opened
            .recv()
            .map_err(|_| anyhow!("the thread of the pings has ended"))??;
        Ok(Background {
            thread,
            tap,
            started,
        })
    }

    /// The start, from which the result counts its times.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Replies so far.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.tap.answered.load(Ordering::Relaxed)
    }

    /// Whether an error has ended it already.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Sends no more, and waits for outstanding replies.
    #[must_use]
    pub fn finish(self) -> Measured {
        self.tap.stop.wake();
        let (outcome, ended) = self
            .thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut notes = self
            .tap
            .notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Measured {
            outcome,
            notes: std::mem::take(&mut notes),
            ended,
        }
    }
}

/// The result of an experiment that never began.
fn nothing(plan: &Plan) -> Outcome {
    ping::Experiment::new(plan.clone(), Instant::ZERO).finish(0, true)
}
