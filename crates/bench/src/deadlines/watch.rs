//! The observers of a deadlines run.
//!
//! Idle BGP peers record the time between messages, and a control client records the time of each answer. Each observer
//! has a thread of its own. The kernel wakes these threads before the threads of the load.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::Result;
use base::Duration;
use control::client::Client;
use control::request::{Do, Nothing};
use std::net::SocketAddr;

use crate::bgp::load::{Load, Pace};

/// How often the peers' thread publishes its counts.
const PUBLISHED: Duration = Duration::from_millis(50);

/// Longest time that the sessions may take to come up.
const UP_MAX: Duration = Duration::from_secs(60);

/// Pause between two questions.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// Idle peers with a hold time of 3 s, which send and expect a KEEPALIVE each second.
pub(super) struct Peers {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    is_open: AtomicBool,
    up: AtomicU32,
    lost: AtomicU32,
    /// Nanoseconds.
    gap: AtomicU64,
}

/// What the peers noted in a phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noted {
    pub(super) up: u32,
    /// Sessions lost since the start.
    pub(super) lost: u32,
    pub(super) gap: Duration,
}

impl Peers {
    /// Opens `count` sessions, and returns when they are up.
    pub(super) fn open(server: SocketAddr, count: u32) -> Self {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            reactor::urgency::hasten(false);
            let mut load = Load::new(server, count, 3)?;
            load.open(Pace::Spread, UP_MAX)?;
            load.take_gap();
            own.is_open.store(true, Ordering::Release);
            while !own.stop.load(Ordering::Acquire) {
                load.keep(PUBLISHED)?;
                own.up.store(load.up(), Ordering::Relaxed);
                own.lost.store(load.seen.lost, Ordering::Relaxed);
                let gap = load.take_gap().as_nanos();
                own.gap.fetch_max(gap, Ordering::Relaxed);
            }
            Ok(())
        });
        while !shared.is_open.load(Ordering::Acquire) && !thread.is_finished() {
            std::thread::sleep(PAUSE);
        }
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// What was noted since the last call.
    pub(super) fn take(&self) -> Noted {
        std::thread::sleep(2 * std::time::Duration::from(PUBLISHED));
        Noted {
            up: self.shared.up.load(Ordering::Relaxed),
            lost: self.shared.lost.load(Ordering::Relaxed),
            gap: Duration::from_nanos(self.shared.gap.swap(0, Ordering::Relaxed)),
        }
    }

    /// Ends the sessions.
    ///
    /// # Errors
    /// The kernel's error that ended the thread before.
    pub(super) fn end(mut self) -> Result<()> {
        self.shared.stop.store(true, Ordering::Release);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(_)) | None => Ok(()),
        }
    }
}

/// A client that asks `show event cpu` again and again, each time over a new connection.
pub(super) struct Asker {
    times: Arc<Mutex<Vec<f64>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How long answers took, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Answers {
    pub(super) count: usize,
    pub(super) median: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Answers {
    pub(super) fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (times.len() as f64 * share).ceil() as usize;
            times.get(place.saturating_sub(1)).copied()
        };
        Self {
            count: times.len(),
            median: at(0.5).unwrap_or(0.0),
            p99: at(0.99).unwrap_or(0.0),
            max: times.last().copied().unwrap_or(0.0),
        }
    }
}

impl Asker {
    /// Starts to ask at this control socket.
    pub(super) fn start(socket: PathBuf) -> Self {
        let times = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (own, own_stop) = (Arc::clone(&times), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            reactor::urgency::hasten(false);
            while !own_stop.load(Ordering::Acquire) {
                let start = Instant::now();
                let answered = Client::connect(&socket)
                    .and_then(|mut client| client.rows(&Do::ShowEventCpu(Nothing {}), |_| Ok(())));
                let took = start.elapsed().as_secs_f64() * 1e3;
                // No answer counts as the longest one.
                let took = if answered.is_ok() {
                    took
                } else {
                    f64::INFINITY
                };
                own.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(took);
                std::thread::sleep(PAUSE);
            }
        });
        Self {
            times,
            stop,
            thread: Some(thread),
        }
    }

    /// The answers since the last call.
    pub(super) fn take(&self) -> Answers {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        Answers::of(std::mem::take(&mut *times))
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_of_the_sorted_times() {
        let times: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let answers = Answers::of(times);
        assert_eq!((answers.count, answers.median), (200, 100.0));
        assert_eq!((answers.p99, answers.max), (198.0, 200.0));
        assert_eq!(Answers::of(Vec::new()), Answers::default());
    }
}
