//! A connection and what was agreed on over it, but for what every KEEPALIVE touches (see `table`).

use core::net::SocketAddr;

use base::Instant;

use crate::fsm::State;
use crate::negotiate::Agreed;

/// A connection of a peer: being made, or up.
#[derive(Debug)]
pub(crate) struct Conn {
    /// The peer, by its place.
    pub(crate) peer: u32,
    pub(crate) state: State,
    /// Whether we made it.
    pub(crate) outgoing: bool,
    /// Whether TCP is up.
    pub(crate) is_up: bool,
    /// The peer's port.
    pub(crate) remote_port: u16,
    /// Our end, once it is up.
    pub(crate) local: Option<SocketAddr>,
    /// When the DelayOpenTimer (Connect, Active) or the long HoldTimer (OpenSent) expires.
    pub(crate) wait: Instant,
    /// When the SendHoldTimer expires, while the stream takes nothing.
    pub(crate) send_hold: Instant,
    /// When the driver last left a part of what was there unread.
    pub(crate) unread: Instant,
    /// The first part of a message whose rest is on its way.
    pub(crate) input: Vec<u8>,
    /// Messages of the session's own that are to be sent.
    pub(crate) output: Vec<u8>,
    /// What both OPENs come to, from OpenConfirm on.
    pub(crate) agreed: Option<Box<Agreed>>,
}

impl Conn {
    pub(crate) fn new(peer: u32, state: State, outgoing: bool, remote_port: u16) -> Self {
        Self {
            peer,
            state,
            outgoing,
            is_up: false,
            remote_port,
            local: None,
            wait: Instant::FAR_FUTURE,
            send_hold: Instant::FAR_FUTURE,
            unread: Instant::ZERO,
            input: Vec::new(),
            output: Vec::new(),
            agreed: None,
        }
    }

    /// Whether its DelayOpenTimer runs.
    pub(crate) fn is_delaying(&self) -> bool {
        matches!(self.state, State::Connect | State::Active) && self.wait != Instant::FAR_FUTURE
    }
}
