//! The record of a control connection, and its rows for `show`.
//!
//! Implements parts of RFC 3931, section 5.4.1.

use base::slab::Key;
use base::timer::TimerId;
use base::{Instant, Route};
use wire::l2tp::Version;

use crate::end::TunnelEnd;
use crate::pool::NIL;
use crate::reliable::Reliable;

pub(crate) mod fsm;
mod offers;

pub use fsm::TunnelState;
pub(crate) use offers::Offers;

/// Names a tunnel; a stale key is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TunnelKey(pub(crate) Key);

impl TunnelKey {
    /// Its place: less than the largest number of concurrent tunnels so far, and reused after its end.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0.index
    }
}

/// The phases of a tunnel after its state machine has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is in use.
    No,
    /// Our StopCCN is unacknowledged.
    StopSent,
    /// Closed, and kept to acknowledge late duplicates.
    Held,
}

/// One control connection. Small, because there may be 100,000.
pub(crate) struct Tunnel {
    pub(crate) key: Key,
    pub(crate) route: Route,
    pub(crate) reliable: Reliable,
    /// The armed timer and its deadline.
    pub(crate) timer: Option<(TimerId, Instant)>,
    /// When a HELLO, the end of set-up or the end of the hold is due.
    pub(crate) idle_deadline: Instant,
    /// When an established tunnel without sessions is closed; `FAR_FUTURE` if it has sessions or may stay.
    pub(crate) empty_deadline: Instant,
    pub(crate) last_heard: Instant,
    pub(crate) created: Instant,
    pub(crate) up: Option<Instant>,
    pub(crate) local_id: u32,
    pub(crate) remote_id: u32,
    pub(crate) peer: u32,
    pub(crate) peer_prev: u32,
    pub(crate) peer_next: u32,
    pub(crate) first_session: u32,
    pub(crate) sessions: u32,
    pub(crate) config_id: u32,
    /// Hash of the body of the peer's SCCRQ, to recognise a retransmission.
    pub(crate) request_hash: u32,
    pub(crate) received: u32,
    pub(crate) sent: u32,
    pub(crate) retransmissions: u32,
    pub(crate) duplicates: u32,
    pub(crate) version: Version,
    /// The number of its secret.
    pub(crate) keys: u16,
    pub(crate) state: TunnelState,
    pub(crate) ending: Ending,
    pub(crate) originated: bool,
    /// Whether it is in the table of requests.
    pub(crate) in_requests: bool,
    /// Whether it is in the queue of tunnels with something to send.
    pub(crate) ready: bool,
    /// Sessions with an unanswered ICRQ or OCRQ: ties are possible.
    pub(crate) calls_unanswered: u32,
    /// Whether sessions wait for the tunnel to open.
    pub(crate) sessions_wait: bool,
    /// The kinds of calls that the peer accepts.
    pub(crate) offers: Offers,
    pub(crate) peer_host: Box<str>,
    /// State of the set-up; freed when the tunnel is up.
    pub(crate) setup: Option<Box<Setup>>,
    /// Message authentication of L2TPv3.
    pub(crate) auth: Option<Box<Auth>>,
}

/// State of a tunnel's set-up.
#[derive(Default)]
pub(crate) struct Setup {
    /// The challenge that we sent.
    pub(crate) challenge: Option<[u8; 16]>,
    /// The tie breaker that we sent.
    pub(crate) tie_breaker: Option<u64>,
    /// Our Host Name, if it is not the configuration's.
    pub(crate) host_name: Option<Box<str>>,
    /// The Host Name that the peer must give.
    pub(crate) peer_name: Option<Box<str>>,
}

/// The nonces of an authenticated L2TPv3 control connection.
#[derive(Default)]
pub(crate) struct Auth {
    pub(crate) local_nonce: [u8; 16],
    /// Whether the peer has our nonce; before that, ours counts as empty.
    pub(crate) told: bool,
    /// The peer's nonce; empty until the peer has sent it.
    pub(crate) remote_nonce: Box<[u8]>,
}

impl Auth {
    /// Our nonce, as far as the peer has received it.
    pub(crate) fn local(&self) -> &[u8] {
        if self.told { &self.local_nonce } else { &[] }
    }
}

impl Tunnel {
    /// A tunnel with the secret that has the number `keys`.
    pub(crate) fn new(key: Key, route: Route, version: Version, keys: u16, now: Instant) -> Self {
        Self {
            key,
            keys,
            route,
            reliable: Reliable::new(),
            timer: None,
            idle_deadline: Instant::FAR_FUTURE,
            empty_deadline: Instant::FAR_FUTURE,
            last_heard: now,
            created: now,
            up: None,
            local_id: 0,
            remote_id: 0,
            peer: NIL,
            peer_prev: NIL,
            peer_next: NIL,
            first_session: NIL,
            sessions: 0,
            config_id: 0,
            request_hash: 0,
            received: 0,
            sent: 0,
            retransmissions: 0,
            duplicates: 0,
            version,
            state: TunnelState::Idle,
            ending: Ending::No,
            originated: false,
            in_requests: false,
            ready: false,
            calls_unanswered: 0,
            sessions_wait: false,
            offers: Offers::default(),
            peer_host: Box::default(),
            setup: None,
            auth: None,
        }
    }

    /// Whether it is kept only for late duplicates.
    pub(crate) fn is_held(&self) -> bool {
        self.ending == Ending::Held
    }

    /// Opened by a peer and not yet established, or refused and not yet settled.
    pub(crate) fn is_half_open(&self) -> bool {
        !self.originated && self.up.is_none() && self.ending != Ending::Held
    }

    pub(crate) fn view(&self) -> TunnelView<'_> {
        TunnelView {
            key: TunnelKey(self.key),
            id: self.local_id,
            remote_id: self.remote_id,
            version: self.version,
            state: self.state,
            closing: self.ending != Ending::No,
            originated: self.originated,
            route: self.route,
            host_name: &self.peer_host,
            config_id: (self.config_id != 0).then_some(self.config_id),
            sessions: self.sessions,
            created: self.created,
            up: self.up,
            last_heard: self.last_heard,
            peer_window: self.reliable.peer_window(),
            cwnd: self.reliable.cwnd(),
            next_ns: self.reliable.next_ns(),
            oldest_ns: self.reliable.oldest_ns(),
            nr: self.reliable.nr(),
            outstanding: u16::try_from(self.reliable.outstanding()).unwrap_or(u16::MAX),
            received: self.received,
            sent: self.sent,
            retransmissions: self.retransmissions,
            duplicates: self.duplicates,
        }
    }
}

/// A tunnel as `show` sees it.
#[derive(Clone, Copy, Debug)]
pub struct TunnelView<'a> {
    /// Its key.
    pub key: TunnelKey,
    /// The id that we assigned: 16 bits in v2, 32 in v3.
    pub id: u32,
    /// The id that the peer assigned; 0 while unknown.
    pub remote_id: u32,
    /// Protocol version.
    pub version: Version,
    /// State by the RFC's name; `Idle` while it is closing.
    pub state: TunnelState,
    /// Whether our StopCCN is unacknowledged.
    pub closing: bool,
    /// Whether we sent the SCCRQ.
    pub originated: bool,
    /// The peer's address and port, our address, the socket.
    pub route: Route,
    /// The peer's Host Name.
    pub host_name: &'a str,
    /// Config id, if those are enabled.
    pub config_id: Option<u32>,
    /// Sessions in it.
    pub sessions: u32,
    /// When the first message was sent or received.
    pub created: Instant,
    /// When it was established.
    pub up: Option<Instant>,
    /// When the last message or frame of the peer arrived.
    pub last_heard: Instant,
    /// The peer's Receive Window Size, in messages.
    pub peer_window: u16,
    /// Congestion window, in messages.
    pub cwnd: u16,
    /// Ns of our next message.
    pub next_ns: u16,
    /// Ns of our oldest message that is not acknowledged, or of the next one.
    pub oldest_ns: u16,
    /// Ns of the peer's next message.
    pub nr: u16,
    /// Unacknowledged messages, sent or not; saturates at 65,535.
    pub outstanding: u16,
    /// Control messages received, including duplicates.
    pub received: u32,
    /// Control messages sent, including retransmissions.
    pub sent: u32,
    /// Retransmissions.
    pub retransmissions: u32,
    /// Duplicates received.
    pub duplicates: u32,
}

/// The history of a tunnel that ended.
#[derive(Clone, Debug)]
pub struct EndedTunnel {
    /// The id that we had assigned.
    pub id: u32,
    /// The id that the peer had assigned.
    pub remote_id: u32,
    /// Protocol version.
    pub version: Version,
    /// Addresses.
    pub route: Route,
    /// The peer's Host Name.
    pub host_name: Box<str>,
    /// When it started.
    pub created: Instant,
    /// When it was established, if ever.
    pub up: Option<Instant>,
    /// When it ended.
    pub ended: Instant,
    /// Why.
    pub reason: TunnelEnd,
}
