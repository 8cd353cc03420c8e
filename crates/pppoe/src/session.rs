//! A session's record, and what its owner sees of it.

use base::slab::Key;
use base::timer::TimerId;
use base::{Duration, Instant};
use wire::pppoe::LineInfo;

use crate::event::Place;
use crate::route::Route;

/// Names a session; a stale key is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(pub(crate) Key);

impl SessionKey {
    /// The session's index in a table. Indexes are small, and are reused.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0.index
    }
}

/// Which side of a session we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The access concentrator.
    Server,
    /// The host.
    Client,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// A client sent a PADI and waits for a PADO.
    Soliciting,
    /// A client sent a PADR and waits for the PADS.
    Requesting,
    /// A server sent the PADS and waits for the first PPP frame. Frames may flow.
    HalfOpen,
    /// Frames flow.
    Established,
    /// The owner ended the session, and the PADT waits. Frames may flow until then.
    Ending,
}

impl Phase {
    /// Whether the session has an id, and frames may flow.
    #[must_use]
    pub const fn carries_data(self) -> bool {
        match self {
            Self::Soliciting | Self::Requesting => false,
            Self::HalfOpen | Self::Established | Self::Ending => true,
        }
    }

    /// A short name for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Soliciting => "soliciting",
            Self::Requesting => "requesting",
            Self::HalfOpen => "half-open",
            Self::Established => "established",
            Self::Ending => "ending",
        }
    }
}

/// No session, in a link of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// A session.
pub(crate) struct Session {
    pub(crate) key: Key,
    pub(crate) route: Route,
    /// 0 while a client has none.
    pub(crate) id: u16,
    pub(crate) role: Role,
    pub(crate) phase: Phase,
    pub(crate) max_payload: u16,
    /// When the record was made; for a session that is up, when it came up.
    pub(crate) since: Instant,
    pub(crate) timer: Option<TimerId>,
    /// The time in the cookie of the PADR that made it: tells a repeated PADR from a new one.
    pub(crate) stamp: u64,
    /// Its line in the table of lines; 0: none.
    pub(crate) line_key: u64,
    /// The sessions of a host form a ring, oldest first. The oldest one holds their number.
    pub(crate) host_next: u32,
    pub(crate) host_before: u32,
    pub(crate) host_count: u32,
    pub(crate) service_name: Box<[u8]>,
    pub(crate) host_uniq: Box<[u8]>,
    pub(crate) line: Option<LineInfo>,
    pub(crate) client: Option<Box<Client>>,
}

/// What only a client session needs.
pub(crate) struct Client {
    pub(crate) ac_name_wanted: Option<Box<[u8]>>,
    /// Of the PADO that was chosen.
    pub(crate) ac_name: Box<[u8]>,
    pub(crate) cookie: Option<Box<[u8]>>,
    pub(crate) relay_session_id: Option<Box<[u8]>>,
    /// PPP-Max-Payload to send.
    pub(crate) max_payload: Option<u16>,
    pub(crate) first_wait: Duration,
    /// The wait after the next packet that is sent.
    pub(crate) wait: Duration,
    pub(crate) wait_max: Duration,
    pub(crate) padis_left: u32,
    pub(crate) padrs_left: u32,
    pub(crate) padrs_each: u32,
    /// Whether a packet waits to be sent.
    pub(crate) is_ready: bool,
    /// Whether its present packet has been sent before.
    pub(crate) has_sent: bool,
    /// Whether an offer was ever accepted.
    pub(crate) had_offer: bool,
}

impl Session {
    pub(crate) fn place(&self) -> Place {
        Place {
            id: self.id,
            route: self.route,
        }
    }
}

/// A session as its owner sees it.
#[derive(Clone, Copy, Debug)]
pub struct SessionView<'a> {
    /// Its key.
    pub key: SessionKey,
    /// SESSION_ID; 0 while a client has none.
    pub id: u16,
    /// The peer. A client that looks for an access concentrator has the broadcast address here.
    pub route: Route,
    /// Which side we are.
    pub role: Role,
    /// How far it is.
    pub phase: Phase,
    /// The service: as the host asked for it, or as the client wants it.
    pub service_name: &'a [u8],
    /// The access concentrator's name; empty while a client has not chosen one.
    pub ac_name: &'a [u8],
    /// Host-Uniq; `None` if the host sent none.
    pub host_uniq: Option<&'a [u8]>,
    /// The line's values, if the host's access node sent them.
    pub line: Option<&'a LineInfo>,
    /// The largest PPP payload in bytes: the limit of MRU and MTU (RFC 2516, section 7; RFC 4638,
    /// section 5.1).
    pub max_payload: u16,
    /// When it came up; before that, when its client began.
    pub since: Instant,
}
