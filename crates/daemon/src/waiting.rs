//! Clients of the control socket that wait for a tunnel, session or subscriber to come up, and tunnels that were
//! opened for one session.

use hashbrown::HashMap;

use base::Instant;
use base::slab::Key;
use l2tp::{SessionKey, TunnelKey};

/// The event that a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WaitFor {
    Tunnel(TunnelKey),
    Session(SessionKey),
    /// One of our own client sessions connects.
    Line(SessionKey),
}

/// A waiting client, the start of its wait, and the ids to report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) client: Key,
    pub(super) ticket: Key,
    pub(super) since: Instant,
    pub(super) tunnel: u32,
    pub(super) session: Option<u32>,
}

/// Tunnels that were opened for one session. If that session fails before it is up, its tunnel is closed.
#[derive(Default)]
pub(super) struct OpenedFor {
    /// By the event that shows that the session is up. Each entry belongs to a live session, so the limit on sessions
    /// bounds them.
    tunnels: HashMap<WaitFor, TunnelKey>,
    /// Those whose session has failed, to be closed in this turn.
    failed: Vec<TunnelKey>,
}

impl OpenedFor {
    pub(super) fn insert(&mut self, session: WaitFor, tunnel: TunnelKey) {
        self.tunnels.insert(session, tunnel);
    }

    /// The session is up: from here on its tunnel stays.
    pub(super) fn up(&mut self, session: WaitFor) {
        if !self.tunnels.is_empty() {
            self.tunnels.remove(&session);
        }
    }

    /// The session ended; it failed if it was never up.
    pub(super) fn down(&mut self, session: SessionKey) {
        if self.tunnels.is_empty() {
            return;
        }
        let up = [WaitFor::Session(session), WaitFor::Line(session)];
        let tunnels = up.iter().filter_map(|what| self.tunnels.remove(what));
        self.failed.extend(tunnels);
    }

    /// The next tunnel whose session has failed.
    pub(super) fn next_failed(&mut self) -> Option<TunnelKey> {
        self.failed.pop()
    }
}

/// The waiting client for each awaited event.
pub(super) type Waiters = HashMap<WaitFor, Waiter>;
