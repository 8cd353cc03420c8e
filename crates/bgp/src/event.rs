//! Events for the owner of a speaker, and a log of recent events for operators.

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

/// What the owner of a speaker has to do or should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Connect to a peer, then call [`connected`](crate::Speaker::connected) or
    /// [`connect_failed`](crate::Speaker::connect_failed).
    Connect {
        /// The connection's identifier from now on.
        conn: ConnId,
        /// The peer.
        remote: SocketAddr,
        /// Our address, if it is configured.
        local: Option<IpAddr>,
        /// [`PeerSettings::transport`] has the TCP options.
        settings: Arc<PeerSettings>,
    },
    /// Close a connection: its identifier is not known any more.
    Close {
        /// The connection.
        conn: ConnId,
        /// The last message of the stream, after all that was filled before: a NOTIFICATION, or empty. Write it if the
        /// stream accepts it, then close the stream.
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
        /// Its address. A dynamic peer is forgotten with its session.
        remote: core::net::IpAddr,
        /// The reason.
        reason: CloseReason,
    },
    /// A malformed UPDATE was received (RFC 7606); the peer's view has it, or
    /// [`past_neighbor`](crate::Speaker::past_neighbor) after a dynamic peer is forgotten.
    Malformed {
        /// The peer.
        peer: PeerId,
        /// Its address.
        remote: IpAddr,
    },
    /// A dynamic peer was forgotten: its identifier may be reused.
    Forgotten {
        /// The peer.
        peer: PeerId,
        /// Its address.
        remote: IpAddr,
    },
}

/// A recent event, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentEvent {
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
    /// A state machine changed its state.
    State {
        /// From.
        from: State,
        /// To.
        to: State,
        /// The event's name in the RFC.
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

impl What {
    /// Cuts off data of NOTIFICATIONs beyond [`DATA_MAX`].
    fn shorten(&mut self) {
        let notification = match self {
            Self::Sent(notification) | Self::Received(notification) => notification,
            Self::Ended(reason) => match &mut **reason {
                CloseReason::Received(notification) | CloseReason::Fault(notification) => {
                    notification
                }
                CloseReason::Closed
                | CloseReason::ConnectFailed
                | CloseReason::HoldTimer
                | CloseReason::SendHoldTimer
                | CloseReason::Shutdown(_)
                | CloseReason::Reset(_)
                | CloseReason::Deconfigured
                | CloseReason::ConfigurationChanged
                | CloseReason::PrefixLimit { .. }
                | CloseReason::Collision
                | CloseReason::PeerRestarted
                | CloseReason::StateMachine(_)
                | CloseReason::ConnectRetryTimer => return,
            },
            Self::State { .. } | Self::Malformed | Self::Refused(_) => return,
        };
        if notification.data.len() > DATA_MAX {
            notification.data.truncate(DATA_MAX);
            notification.data.shrink_to_fit();
        }
    }
}

/// How many events are stored for each peer, unless the number is configured.
const EVENTS_PER_PEER: usize = 16;
/// The least and the most events that are stored then.
const EVENTS: core::ops::RangeInclusive<usize> = 1_024..=65_536;
/// The octets of a NOTIFICATION's data that an event keeps: enough for the longest text (RFC 9003). Peers choose the
/// rest, up to 64 KiB, and there are many events.
const DATA_MAX: usize = 256;

/// The latest events: new ones replace the oldest.
#[derive(Debug, Default)]
pub(crate) struct RecentEvents {
    ring: VecDeque<RecentEvent>,
    pub(crate) dropped: u64,
}

impl RecentEvents {
    /// How many events are stored for that many peers.
    pub(crate) fn room_for(peers: usize) -> u32 {
        let room = peers.saturating_mul(EVENTS_PER_PEER);
        room.clamp(*EVENTS.start(), *EVENTS.end()) as u32
    }

    pub(crate) fn push(&mut self, mut recent: RecentEvent, recent_events_max: u32) {
        recent.what.shorten();
        while self.ring.len() >= recent_events_max as usize {
            if self.ring.pop_front().is_none() {
                return;
            }
            self.dropped += 1;
        }
        self.ring.push_back(recent);
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &RecentEvent> {
        self.ring.iter()
    }
}
