//! The logs of the translation, written by a thread: the store that `headend nat who` searches, IPFIX, and syslog.
//!
//! The loop passes batches of events and never waits: if the thread is behind by [`WAITING_MAX`] events, further ones are
//! lost, counted, and reported once. Start with [`Log::push`]; the thread is in `writer`.

mod send;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};

use anyhow::Result;
use nat::Event;

use crate::config::NatLog;
use writer::Writer;

/// Events that wait for the thread: 2.6 s of 100,000 blocks/s, while the disk is slow.
const WAITING_MAX: u64 = 262_144;
/// How long the end of the daemon waits for the thread.
const END_MAX: std::time::Duration = std::time::Duration::from_secs(3);

/// An event with the name of its subscriber, which is empty if it has left.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) event: Event,
    pub(super) name: Box<[u8]>,
}

/// A message to the thread.
enum Task {
    Write(Vec<Item>),
    Set(Box<NatLog>),
}

/// Counters that the thread and the loop share.
#[derive(Debug, Default)]
struct Shared {
    /// Events on their way to the thread.
    waiting: AtomicU64,
    lost: AtomicU64,
    stored: AtomicU64,
    /// Records that the store could not take and that wait for it.
    unstored: AtomicU64,
    store_lost: AtomicU64,
    ipfix_messages: AtomicU64,
    ipfix_failed: AtomicU64,
    syslog_lines: AtomicU64,
    syslog_failed: AtomicU64,
}

/// The logs, as the loop sees them.
pub(in super::super) struct Log {
    shared: Arc<Shared>,
    tasks: Option<Sender<Task>>,
    ended: Receiver<()>,
    /// The directory of the store.
    pub(in super::super) store: Option<PathBuf>,
    is_losing: bool,
}

/// Counters for `show nat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Counts {
    /// Events that found the thread too far behind.
    pub(in super::super) lost: u64,
    /// Events on their way to the thread.
    pub(in super::super) waiting: u64,
    /// Records in the store.
    pub(in super::super) stored: u64,
    /// Records that wait because the store cannot be written.
    pub(in super::super) unstored: u64,
    /// Records that the store lost.
    pub(in super::super) store_lost: u64,
    pub(in super::super) ipfix_messages: u64,
    pub(in super::super) ipfix_failed: u64,
    pub(in super::super) syslog_lines: u64,
    pub(in super::super) syslog_failed: u64,
}

impl Log {
    /// Opens the store, and starts the thread.
    ///
    /// # Errors
    /// The store or a socket cannot be opened, or the kernel starts no thread.
    pub(super) fn start(settings: &NatLog) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let (tasks, its_tasks) = mpsc::channel();
        let (its_end, ended) = mpsc::channel();
        let mut writer = Writer::open(settings, Arc::clone(&shared))?;
        let run = move || {
            writer.run(&its_tasks);
            let _ = its_end.send(());
        };
        std::thread::Builder::new()
            .name("nat log".into())
            .spawn(run)?;
        Ok(Self {
            shared,
            tasks: Some(tasks),
            ended,
            store: settings.store.clone(),
            is_losing: false,
        })
    }

    /// Passes events to the thread.
    pub(super) fn push(&mut self, items: Vec<Item>) {
        let count = items.len() as u64;
        let waiting = self.shared.waiting.load(Relaxed);
        let is_full = waiting + count > WAITING_MAX;
        let task = Task::Write(items);
        let is_sent = !is_full && {
            self.shared.waiting.fetch_add(count, Relaxed);
            self.tasks
                .as_ref()
                .is_some_and(|tasks| tasks.send(task).is_ok())
        };
        if !is_sent {
            self.shared.lost.fetch_add(count, Relaxed);
        }
        match (is_sent, self.is_losing) {
            (false, false) => {
                tracing::error!("nat log: events are lost, because the log is too slow")
            }
            (true, true) => {
                let lost = self.shared.lost.load(Relaxed);
                tracing::warn!(lost, "nat log: no events are lost any more");
            }
            _ => {}
        }
        self.is_losing = !is_sent;
    }

    /// Uses other settings. The store's directory stays.
    pub(super) fn set(&self, settings: &NatLog) {
        if let Some(tasks) = &self.tasks {
            let _ = tasks.send(Task::Set(Box::new(settings.clone())));
        }
    }

    /// Writes what waits, records that all blocks are nobody's, and ends the thread.
    pub(in super::super) fn end(&mut self) {
        self.tasks = None;
        if self.ended.recv_timeout(END_MAX).is_err() {
            tracing::error!("nat log: it could not be written to its end in time");
        }
    }

    pub(in super::super) fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        let shared = &*self.shared;
        Counts {
            lost: of(&shared.lost),
            waiting: of(&shared.waiting),
            stored: of(&shared.stored),
            unstored: of(&shared.unstored),
            store_lost: of(&shared.store_lost),
            ipfix_messages: of(&shared.ipfix_messages),
            ipfix_failed: of(&shared.ipfix_failed),
            syslog_lines: of(&shared.syslog_lines),
            syslog_failed: of(&shared.syslog_failed),
        }
    }
}

#[cfg(test)]
mod tests;
