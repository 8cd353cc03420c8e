//! The record of a session, and its rows for `show`.

use base::Instant;
use base::slab::Key;
use base::timer::TimerId;
use wire::l2tp::Version;

use crate::cause::PppCause;
use crate::end::SessionEnd;
use crate::pool::NIL;
use crate::tunnel::TunnelKey;

mod call;
pub(crate) mod fsm;

pub use call::{Call, CallDetails, Cookie, Direction, Proxy};
pub use fsm::{Role, SessionState};

/// Names a session; a stale key is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(pub(crate) Key);

impl SessionKey {
    /// Its index: less than the largest number of concurrent sessions so far, and reused after its end.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0.index
    }
}

/// One session.
pub(crate) struct Session {
    pub(crate) key: Key,
    /// Its tunnel's index.
    pub(crate) tunnel: u32,
    /// The neighbours in the tunnel's list.
    pub(crate) prev: u32,
    pub(crate) next: u32,
    pub(crate) local_id: u32,
    pub(crate) remote_id: u32,
    pub(crate) role: Role,
    pub(crate) state: SessionState,
    /// Whether it is in the table of remote ids.
    pub(crate) in_remote: bool,
    /// Whether an ICRQ or OCRQ was sent or accepted, so that the peer needs a CDN.
    pub(crate) announced: bool,
    pub(crate) version: Version,
    /// The timer of its set-up or of its end, and when it is due.
    pub(crate) timer: Option<(TimerId, Instant)>,
    pub(crate) created: Instant,
    pub(crate) up: Option<Instant>,
    pub(crate) pseudowire: u16,
    pub(crate) local_cookie: Cookie,
    pub(crate) remote_cookie: Cookie,
    /// Whether the peer wants the default L2-specific sublayer (RFC 3931 4.6).
    pub(crate) sublayer: bool,
    /// Whether we asked for that sublayer.
    pub(crate) local_sublayer: bool,
    /// The lowest data sequence number that is not too late.
    pub(crate) expected_sequence: u32,
    /// Whether any number of the peer's data is taken next: a crash has lost the expected one.
    pub(crate) any_sequence: bool,
    /// The next sequence number of our data.
    pub(crate) sent_sequence: u32,
    /// Whether the peer wants sequence numbers on data.
    pub(crate) sequencing: bool,
    /// Whether we number frames only because the LNS does, and only while it does.
    pub(crate) sequencing_by_peer: bool,
    /// Session Tie Breaker that we sent; 0 for none (RFC 3931 5.4.4).
    pub(crate) tie_breaker: u64,
    /// Details from the set-up, if any.
    pub(crate) details: Option<Box<CallDetails>>,
    /// What our CDN says about the end of PPP.
    pub(crate) cause: Option<Box<PppCause>>,
}

impl Session {
    pub(crate) fn new(key: Key, tunnel: u32, version: Version, role: Role, now: Instant) -> Self {
        Self {
            key,
            tunnel,
            prev: NIL,
            next: NIL,
            local_id: 0,
            remote_id: 0,
            role,
            state: SessionState::Idle,
            in_remote: false,
            announced: false,
            version,
            timer: None,
            created: now,
            up: None,
            pseudowire: crate::Pseudowire::Ppp.number(),
            local_cookie: Cookie::NONE,
            remote_cookie: Cookie::NONE,
            sublayer: false,
            local_sublayer: false,
            expected_sequence: 0,
            any_sequence: false,
            sent_sequence: 0,
            sequencing: false,
            sequencing_by_peer: false,
            tie_breaker: 0,
            details: None,
            cause: None,
        }
    }

    pub(crate) fn view(&self, tunnel: TunnelKey, tunnel_id: u32) -> SessionView<'_> {
        SessionView {
            key: SessionKey(self.key),
            tunnel,
            tunnel_id,
            id: self.local_id,
            remote_id: self.remote_id,
            version: self.version,
            role: self.role,
            state: self.state,
            pseudowire: self.pseudowire,
            local_cookie: self.local_cookie,
            remote_cookie: self.remote_cookie,
            sublayer: self.sublayer,
            sequencing: self.sequencing,
            next_sent: self.sent_sequence,
            next_expected: self.expected_sequence,
            created: self.created,
            up: self.up,
            details: self.details.as_deref(),
        }
    }
}

/// A session as `show` sees it.
#[derive(Clone, Copy, Debug)]
pub struct SessionView<'a> {
    /// Its key.
    pub key: SessionKey,
    /// Its tunnel.
    pub tunnel: TunnelKey,
    /// Our id of its tunnel.
    pub tunnel_id: u32,
    /// The id that we assigned: 16 bits, unique in its tunnel, in v2; 32 bits,
    /// unique in the endpoint, in v3.
    pub id: u32,
    /// The id that the peer assigned; 0 while unknown.
    pub remote_id: u32,
    /// Protocol version.
    pub version: Version,
    /// Which of the four state tables it follows.
    pub role: Role,
    /// State by the RFC's name.
    pub state: SessionState,
    /// Pseudowire type number; 7, PPP, in v2.
    pub pseudowire: u16,
    /// The cookie in the peer's data messages.
    pub local_cookie: Cookie,
    /// The cookie in our data messages.
    pub remote_cookie: Cookie,
    /// Whether the default L2-specific sublayer is in our data messages.
    pub sublayer: bool,
    /// Whether our data messages are numbered.
    pub sequencing: bool,
    /// The number of our next data message, if they are numbered here.
    pub next_sent: u32,
    /// The lowest number of a data message that is not too late.
    pub next_expected: u32,
    /// When it started.
    pub created: Instant,
    /// When it was established.
    pub up: Option<Instant>,
    /// Numbers, speeds and proxy AVPs, if any.
    pub details: Option<&'a CallDetails>,
}

/// The history of a session that ended.
#[derive(Clone, Debug)]
pub struct EndedSession {
    /// The id that we had assigned.
    pub id: u32,
    /// The id that the peer had assigned.
    pub remote_id: u32,
    /// Our id of its tunnel.
    pub tunnel_id: u32,
    /// Protocol version.
    pub version: Version,
    /// When it started.
    pub created: Instant,
    /// When it was established, if ever.
    pub up: Option<Instant>,
    /// When it ended.
    pub ended: Instant,
    /// Why.
    pub reason: SessionEnd,
}
