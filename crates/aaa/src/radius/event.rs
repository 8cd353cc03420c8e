//! Events of a client: outcomes of requests, destinations of datagrams, and why a datagram was ignored.

use core::fmt;
use core::net::SocketAddr;

use base::Duration;
use wire::radius::ParseError;

use super::queue::LeftOut;
use crate::Profile;

/// A server's purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Access-Requests.
    Authentication,
    /// Accounting-Requests.
    Accounting,
}

impl Purpose {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Authentication, Self::Accounting];

    /// The purpose's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::Accounting => "accounting",
        }
    }
}

/// An event for the owner. Each accepted token is returned exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The subscriber may connect.
    Accepted {
        /// The owner's token.
        token: u64,
        /// The settings of its session.
        profile: Box<Profile>,
        /// Reply-Message: a text for the subscriber.
        message: Option<Box<str>>,
        /// Attributes about queues whose values cannot be read.
        left_out: Vec<LeftOut>,
    },
    /// The subscriber may not connect.
    Rejected {
        /// The owner's token.
        token: u64,
        /// The reason.
        why: Rejection,
        /// Reply-Message: a text for the subscriber.
        message: Option<Box<str>>,
    },
    /// The server asks the subscriber for more, by EAP (RFC 3579, section 2.6): send it the Request, and authenticate its
    /// Response with the state.
    Challenged {
        /// The owner's token.
        token: u64,
        /// An EAP packet. The owner checks it.
        request: Box<[u8]>,
        /// What the next request must contain.
        state: Box<[u8]>,
        /// Session-Timeout: how long the subscriber has to answer before the Request is sent again.
        wait: Option<Duration>,
    },
    /// No server decided.
    Failed {
        /// The owner's token.
        token: u64,
        /// The reason.
        why: Failure,
    },
    /// A server has stored the record.
    Recorded {
        /// The owner's token.
        token: u64,
    },
    /// No server stored the record; retry it later.
    RecordFailed {
        /// The owner's token.
        token: u64,
        /// The reason.
        why: Failure,
    },
    /// A server has not replied for too long; other servers are asked.
    ServerDead {
        /// Its index in the configuration.
        server: usize,
        /// Its purpose.
        purpose: Purpose,
    },
    /// A dead server replied.
    ServerUp {
        /// Its index in the configuration.
        server: usize,
        /// Its purpose.
        purpose: Purpose,
    },
}

/// Why a subscriber was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The server: Access-Reject.
    #[error("rejected by the server")]
    Server,
    /// The server sent an Access-Challenge, which PAP and CHAP cannot answer, or by EAP one without a packet: treated as a
    /// rejection (RFC 2865, section 4.4).
    #[error("the server asks for more, which cannot be asked of the subscriber")]
    Challenge,
    /// It accepted an MS-CHAP response without MS-CHAP2-Success, so the subscriber would not trust us.
    #[error("the server's reply has no MS-CHAP2-Success")]
    NoSuccess,
    /// It grants an unavailable Service-Type (RFC 2865, section 5.6).
    #[error("the server grants Service-Type {0}, which is not here")]
    Service(u32),
    /// It grants an unavailable Framed-Protocol (RFC 2865, section 5.7).
    #[error("the server grants Framed-Protocol {0}, which is not here")]
    Protocol(u32),
    /// An attribute's value has an invalid length (RFC 2865, section 5), or cannot be honoured.
    #[error("attribute {0} of the server's reply cannot be honoured")]
    Attribute(u8),
    /// Its tunnels are of a kind that is not here, or lead to no address (RFC 2868, section 3.1).
    #[error("none of the tunnels of the server's reply can be opened here")]
    Tunnel,
    /// A value about queues cannot be read, and the configuration is strict about it.
    #[error("{0} of the server's reply cannot be read")]
    Queue(&'static str),
}

/// Why no server decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No server answered; the replies that were ignored are counted.
    #[error("no server answered{0}")]
    NoAnswer(Ignored),
    /// It waited too long for an identifier.
    #[error("too many requests wait for the servers")]
    Overloaded,
    /// No server is configured for it any more.
    #[error("no server is configured for it")]
    NoServer,
}

/// The ignored replies to one request, by the index of their [`Discard`]; each count stops at 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ignored([u8; Discard::REASONS]);

impl Ignored {
    /// Counts a reply.
    pub fn count(&mut self, why: Discard) {
        if let Some(index) = why.index() {
            self.0[index] = self.0[index].saturating_add(1);
        }
    }

    /// Whether every server was silent.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0 == [0; Discard::REASONS]
    }
}

impl fmt::Display for Ignored {
    /// `: 2 replies had a wrong Response Authenticator (is the secret right?)`, and nothing if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.0.into_iter().zip(Discard::OF_REPLIES);
        let mut before = ": ";
        for (count, (one, many, hint)) in texts.filter(|(count, _)| *count > 0) {
            match count {
                1 => write!(f, "{before}1 reply {one}{hint}")?,
                _ => write!(f, "{before}{count} replies {many}{hint}")?,
            }
            before = ", ";
        }
        Ok(())
    }
}

/// Why a request was refused; no event will follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many requests are waiting.
    #[error("too many requests wait for the servers")]
    Full,
    /// No server is configured for that purpose.
    #[error("no server is configured for it")]
    NoServer,
    /// A value does not fit its attribute.
    #[error("a name, password or challenge is too long")]
    TooLong,
    /// The bytes are not a record.
    #[error("not a record: {0}")]
    Malformed(ParseError),
}

/// The destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The server's index in the configuration.
    pub server: usize,
    /// The socket to send from: 0, 1, … The owner opens a socket when it is first named. All servers may share
    /// a socket, which then needs one instance per address family; or each server has its own.
    pub socket: u32,
    /// The server's address.
    pub peer: SocketAddr,
}

/// Why a datagram was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discard {
    /// Its source is not a configured server.
    UnknownServer,
    /// Its lengths are invalid (RFC 2865, section 3).
    Malformed(ParseError),
    /// Its code is not a reply to what is sent to that address.
    Code(u8),
    /// No request has this identifier on this socket: the reply is late or repeated.
    UnknownId,
    /// Its sender does not know the secret, or it answers an older request.
    BadAuthenticator,
    /// Its Message-Authenticator is wrong.
    BadSignature,
    /// It has no Message-Authenticator, which is required.
    Unsigned,
}

impl Discard {
    /// The number of reasons in a server's counters.
    pub const REASONS: usize = 6;

    /// The names of a server's discard counters, in order.
    pub const NAMES: [&'static str; Self::REASONS] = [
        "malformed",
        "unexpected code",
        "unknown identifier",
        "bad authenticator",
        "bad Message-Authenticator",
        "no Message-Authenticator",
    ];

    /// How [`Ignored`] describes one reply and several, and a hint, in the same order.
    const OF_REPLIES: [(&'static str, &'static str, &'static str); Self::REASONS] = [
        ("was malformed", "were malformed", ""),
        ("had an unexpected code", "had an unexpected code", ""),
        ("had an unknown identifier", "had an unknown identifier", ""),
        (
            "had a wrong Response Authenticator",
            "had a wrong Response Authenticator",
            " (is the secret right?)",
        ),
        (
            "had a wrong Message-Authenticator",
            "had a wrong Message-Authenticator",
            " (is the secret right?)",
        ),
        (
            "had no Message-Authenticator",
            "had no Message-Authenticator",
            " (configure the server to send it)",
        ),
    ];

    /// Its index in a server's counters; `None` if it belongs to no server.
    #[must_use]
    pub const fn index(self) -> Option<usize> {
        match self {
            Self::UnknownServer => None,
            Self::Malformed(_) => Some(0),
            Self::Code(_) => Some(1),
            Self::UnknownId => Some(2),
            Self::BadAuthenticator => Some(3),
            Self::BadSignature => Some(4),
            Self::Unsigned => Some(5),
        }
    }
}

impl fmt::Display for Discard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownServer => f.write_str("from no server"),
            Self::Malformed(error) => write!(f, "malformed: {error}"),
            Self::Code(code) => write!(f, "unexpected code {code}"),
            Self::UnknownId | Self::BadAuthenticator | Self::BadSignature | Self::Unsigned => {
                f.write_str(self.index().map_or("", |index| Self::NAMES[index]))
            }
        }
    }
}

impl core::error::Error for Discard {}
