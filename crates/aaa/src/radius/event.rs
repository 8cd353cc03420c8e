//! What became of a request, where a datagram is to go, and why one was ignored.

use core::fmt;
use core::net::SocketAddr;

use wire::radius::ParseError;

use crate::Profile;

/// What a server is for.
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

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::Accounting => "accounting",
        }
    }
}

/// What the owner should know. Each token that was taken comes back exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It may come in.
    Accepted {
        /// The owner's.
        token: u64,
        /// What it gets.
        profile: Box<Profile>,
        /// Reply-Message: what it may be told.
        message: Option<Box<str>>,
    },
    /// It may not.
    Rejected {
        /// The owner's.
        token: u64,
        /// Who says so.
        why: Rejection,
        /// Reply-Message: what it may be told.
        message: Option<Box<str>>,
    },
    /// Nobody said whether it may.
    Failed {
        /// The owner's.
        token: u64,
        /// Why not.
        why: Failure,
    },
    /// A server has the record.
    Recorded {
        /// The owner's.
        token: u64,
    },
    /// No server took the record; it is to be tried again later.
    RecordFailed {
        /// The owner's.
        token: u64,
        /// Why not.
        why: Failure,
    },
    /// A server gave no sign of life for too long: others are asked.
    ServerDead {
        /// Its place in the configuration.
        server: usize,
        /// What for.
        purpose: Purpose,
    },
    /// A dead server answered.
    ServerUp {
        /// Its place in the configuration.
        server: usize,
        /// What for.
        purpose: Purpose,
    },
}

/// Who refused a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The server: Access-Reject.
    #[error("rejected by the server")]
    Server,
    /// The server asks for more (Access-Challenge), which PAP and CHAP cannot give: a rejection (RFC 2865, section
    /// 4.4).
    #[error("the server asks for more, which cannot be asked of the subscriber")]
    Challenge,
    /// It grants a Service-Type that is not there (RFC 2865, section 5.6).
    #[error("the server grants Service-Type {0}, which is not here")]
    Service(u32),
    /// It grants a Framed-Protocol that is not there (RFC 2865, section 5.7).
    #[error("the server grants Framed-Protocol {0}, which is not here")]
    Protocol(u32),
    /// An attribute's value has an impossible length (RFC 2865, section 5), or says what cannot be given.
    #[error("attribute {0} of the server's reply cannot be honoured")]
    Attribute(u8),
}

/// Why nobody answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No server answered.
    #[error("no server answered")]
    NoAnswer,
    /// It waited for too long behind others.
    #[error("too many requests wait for the servers")]
    Overloaded,
    /// There were replies, but whoever sent them does not know the secret.
    #[error("replies with a bad authenticator (secret wrong?)")]
    BadAuthenticator,
    /// There were replies with a Message-Authenticator that is not theirs.
    #[error("replies with a bad Message-Authenticator (secret wrong?)")]
    BadSignature,
    /// There were replies without Message-Authenticator.
    #[error("replies without Message-Authenticator (the server must be told to send it)")]
    Unsigned,
}

/// Why a request was not taken; no event will come for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many wait already.
    #[error("too many requests wait for the servers")]
    Full,
    /// No server has that purpose.
    #[error("no server is configured for it")]
    NoServer,
    /// A value that no attribute has room for.
    #[error("a name, password or challenge is too long")]
    TooLong,
    /// Octets that are no record.
    #[error("not a record: {0}")]
    Malformed(ParseError),
}

/// Where a datagram is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The server's place in the configuration.
    pub server: usize,
    /// From which socket: 0, 1, … The owner opens one when it is first named. All servers may share it, and then each
    /// needs one for each address family; or each server has its own.
    pub socket: u32,
    /// The server's address.
    pub peer: SocketAddr,
}

/// Why a datagram was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discard {
    /// Its source is no server.
    UnknownServer,
    /// Its lengths are impossible (RFC 2865, section 3).
    Malformed(ParseError),
    /// It is no reply to what is sent there.
    Code(u8),
    /// No request has this identifier on this socket: it is late, or twice.
    UnknownId,
    /// It is not from who knows the secret, or for an older request.
    BadAuthenticator,
    /// Its Message-Authenticator is wrong.
    BadSignature,
    /// It has no Message-Authenticator, and must have one.
    Unsigned,
}

impl Discard {
    /// How many reasons a server's counters have.
    pub const REASONS: usize = 6;

    /// The words for a server's counters, in their order.
    pub const NAMES: [&'static str; Self::REASONS] = [
        "malformed",
        "unexpected code",
        "unknown identifier",
        "bad authenticator",
        "bad Message-Authenticator",
        "no Message-Authenticator",
    ];

    /// Its place among a server's counters; none if it is from no server.
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
