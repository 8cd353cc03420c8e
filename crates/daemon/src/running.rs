//! The configuration in force, and the previous one while a reload waits for its confirmation.
//! `reload` replaces both.

use std::path::{Path, PathBuf};

use base::{Duration, Instant};

use crate::config::{Event, Settings};

/// The configuration in force, and a reload that waits for its confirmation.
pub(super) struct Running {
    /// The configuration file.
    pub(super) path: PathBuf,
    /// Keys that need a restart have the values of the start in its record.
    pub(super) settings: Settings,
    /// The event loop, as it was started.
    pub(super) event: Event,
    /// Reloads that changed something, without those that were undone.
    pub(super) count: u64,
    pub(super) waiting: Option<Waiting>,
}

/// A reload that is undone unless it is confirmed in time.
pub(super) struct Waiting {
    pub(super) before: Box<Settings>,
    pub(super) until: Instant,
    pub(super) timeout: Duration,
}

impl Running {
    pub(super) fn new(path: &Path, settings: Settings) -> Self {
        Self {
            path: path.to_owned(),
            event: settings.event,
            settings,
            count: 0,
            waiting: None,
        }
    }

    /// Largest number of control clients.
    pub(super) fn clients_max(&self) -> usize {
        self.settings.control.clients
    }

    /// How long a shutdown waits for peers.
    pub(super) fn shutdown_wait(&self) -> Duration {
        let bgp = super::routes::patience(self.settings.bgp.as_ref());
        self.settings.shutdown_wait.max(bgp)
    }

    /// When the last reload is undone, unless it is confirmed.
    pub(super) fn undo_at(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|waiting| waiting.until)
    }

    /// How long until then.
    pub(super) fn undo_in(&self, now: Instant) -> Option<Duration> {
        self.undo_at().map(|at| at.since(now))
    }
}
