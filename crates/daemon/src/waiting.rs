//! Clients of the control socket that wait for a tunnel, session or subscriber to come up.

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

/// The waiting client for each awaited event.
pub(super) type Waiters = HashMap<WaitFor, Waiter>;
