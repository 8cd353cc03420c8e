//! Clients that wait for a tunnel, a session or a subscriber to be up.

use hashbrown::HashMap;

use base::Instant;
use base::slab::Key;
use l2tp::{SessionKey, TunnelKey};

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WaitFor {
    Tunnel(TunnelKey),
    Session(SessionKey),
    /// A session of ours as a client, until it is on line.
    Line(SessionKey),
}

/// Who waits, since when, and for which ids.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) client: Key,
    pub(super) ticket: Key,
    pub(super) since: Instant,
    pub(super) tunnel: u32,
    pub(super) session: Option<u32>,
}

/// Who waits for what.
pub(super) type Waiters = HashMap<WaitFor, Waiter>;
