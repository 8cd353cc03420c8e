//! A connection and what it negotiated. What every KEEPALIVE touches is stored apart (see `table`).

use core::net::SocketAddr;

use base::Instant;

use crate::fsm::State;
use crate::negotiate::Agreed;

/// A connection of a peer, open or being opened.
#[derive(Debug)]
pub(crate) struct Conn {
    /// The peer's index.
    pub(crate) peer: u32,
    pub(crate) state: State,
    /// Whether we opened it.
    pub(crate) outgoing: bool,
    /// Whether TCP is up.
    pub(crate) is_up: bool,
    /// The peer's port.
    pub(crate) remote_port: u16,
    /// Our end, once TCP is up.
    pub(crate) local: Option<SocketAddr>,
    /// When the DelayOpenTimer (Connect, Active) or the long HoldTimer (OpenSent) expires.
    pub(crate) wait: Instant,
    /// When the SendHoldTimer expires, while the stream accepts no data.
    pub(crate) send_hold: Instant,
    /// When the driver last left input unread.
    pub(crate) unread: Instant,
    /// The first part of an incomplete message.
    pub(crate) input: Vec<u8>,
    /// Messages of the session itself that are to be sent.
    pub(crate) output: Vec<u8>,
    /// What both OPEN messages negotiated, from OpenConfirm on.
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
