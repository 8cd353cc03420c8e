//! The configuration in force, and the previous one while a reload waits for its confirmation.
//! `reload` replaces both.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::slab::Key;
use base::{Duration, Instant};

use super::loader::Loader;
use crate::config::{Event, Settings};

/// The configuration in force, and a reload that waits for its confirmation.
pub(super) struct Running {
    /// The configuration file.
    pub(super) path: PathBuf,
    /// Keys that need a restart have the values of the start in its record.
    pub(super) settings: Arc<Settings>,
    /// The event loop, as it was started.
    pub(super) event: Event,
    /// Reloads that changed something, without those that were undone.
    pub(super) count: u64,
    pub(super) waiting: Option<Waiting>,
    /// Reads configurations on a thread.
    pub(super) loader: Loader,
    /// The reload in progress.
    pub(super) pending: Option<Pending>,
}

/// A reload whose configuration is being read and prepared.
pub(super) struct Pending {
    pub(super) asker: Asker,
    /// The reload is undone after this time unless it is confirmed.
    pub(super) timeout: Option<Duration>,
    pub(super) since: Instant,
    /// Whether a signal asked for another one meanwhile.
    pub(super) again: bool,
}

impl Pending {
    pub(super) fn new(asker: Asker, timeout: Option<Duration>, since: Instant) -> Self {
        Self {
            asker,
            timeout,
            since,
            again: false,
        }
    }
}

/// Who asked for a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Signal,
    /// A control client, with the id of its request.
    Client {
        client: Key,
        id: u64,
    },
    /// The time for the confirmation of a reload is up.
    Undo,
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Asker::Signal => "SIGHUP",
            Asker::Client { .. } => "\"headend reload\"",
            Asker::Undo => "a reload that was not confirmed",
        })
    }
}

/// A reload that is undone unless it is confirmed in time.
pub(super) struct Waiting {
    pub(super) before: Arc<Settings>,
    pub(super) until: Instant,
    pub(super) timeout: Duration,
}

impl Running {
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(path: &Path, settings: Settings) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            event: settings.event,
            settings: Arc::new(settings),
            count: 0,
            waiting: None,
            loader: Loader::new()?,
            pending: None,
        })
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

    /// When the last reload is undone, unless it is confirmed. `None` once that has started.
    pub(super) fn undo_at(&self) -> Option<Instant> {
        let waiting = self.waiting.as_ref().filter(|_| !self.is_undoing());
        waiting.map(|waiting| waiting.until)
    }

    /// How long until the last reload is undone, zero while that is in progress.
    pub(super) fn undo_in(&self, now: Instant) -> Option<Duration> {
        let waiting = self.waiting.as_ref();
        waiting.map(|waiting| waiting.until.since(now))
    }

    /// Whether the last reload is being undone.
    pub(super) fn is_undoing(&self) -> bool {
        let pending = self.pending.as_ref();
        pending.is_some_and(|pending| pending.asker == Asker::Undo)
    }
}
