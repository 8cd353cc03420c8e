//! What a speaker tells its owner, and what it remembers of the recent past.

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;
use std::sync::Arc;

use base::Instant;
use wire::bgp::notification::Notification;

use crate::config::PeerSettings;
use crate::end::CloseReason;
use crate::fsm::State;
use crate::peer::PeerId;
use crate::table::ConnId;

/// What the owner of a speaker is to do or should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Connect to a peer, then say [`connected`](crate::Speaker::connected) or
    /// [`connect_failed`](crate::Speaker::connect_failed).
    Connect {
        /// The connection's name from now on.
        conn: ConnId,
        /// The peer.
        remote: SocketAddr,
        /// Our address, where it is configured.
        local: Option<IpAddr>,
        /// [`PeerSettings::transport`] says what TCP is asked for.
        settings: Arc<PeerSettings>,
    },
    /// Give a connection up: its name is not known any more.
    Close {
        /// The connection.
        conn: ConnId,
        /// The last message of the stream, behind what was filled before: a NOTIFICATION, or empty. It is written if
        /// the stream takes it, then the stream is closed.
        last: Vec<u8>,
    },
    /// A session is Established.
    Up {
        /// The peer.
        peer: PeerId,
        /// Its connection.
        conn: ConnId,
    },
    /// A session is not Established any more.
    Down {
        /// The peer.
        peer: PeerId,
        /// Its address: one that came by a network is forgotten with its session.
        remote: core::net::IpAddr,
        /// Why.
        reason: CloseReason,
    },
    /// An UPDATE was not as it should be (RFC 7606); the peer's view has it.
    Malformed {
        /// The peer.
        peer: PeerId,
    },
    /// A dynamic peer is forgotten: its name may be given to another.
    Forgotten {
        /// The peer.
        peer: PeerId,
        /// Its address.
        remote: IpAddr,
    },
}

/// One of the recent happenings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// When.
    pub at: Instant,
    /// The peer's address.
    pub remote: IpAddr,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A machine changed its state.
    State {
        /// From.
        from: State,
        /// To.
        to: State,
        /// The event's name, as the RFC has it.
        event: &'static str,
    },
    /// A NOTIFICATION was sent.
    Sent(Box<Notification>),
    /// A NOTIFICATION was received.
    Received(Box<Notification>),
    /// A session ended.
    Ended(Box<CloseReason>),
    /// A malformed UPDATE was received.
    Malformed,
    /// A connection was refused.
    Refused(crate::discard::Discard),
}

/// The latest happenings: the oldest give way.
#[derive(Debug, Default)]
pub(crate) struct Happenings {
    ring: VecDeque<Happening>,
    pub(crate) dropped: u64,
}

impl Happenings {
    pub(crate) fn push(&mut self, happening: Happening, happenings_max: u32) {
        while self.ring.len() >= happenings_max as usize {
            if self.ring.pop_front().is_none() {
                return;
            }
            self.dropped += 1;
        }
        self.ring.push_back(happening);
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Happening> {
        self.ring.iter()
    }
}
