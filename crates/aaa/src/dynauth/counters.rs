//! Reasons to ignore a datagram, and the counters of requests and replies.

use wire::radius::{ParseError, code};

use super::Cause;

/// Why a datagram was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DynauthDiscard {
    /// Its source is not a configured client.
    #[error("from no client")]
    UnknownClient,
    /// Its lengths are invalid.
    #[error("malformed: {0}")]
    Malformed(ParseError),
    /// It is not a request of RFC 5176.
    #[error("unexpected code {0}")]
    Code(u8),
    /// Its authenticator is wrong: the sender does not know the secret.
    #[error("bad authenticator")]
    BadAuthenticator,
    /// Its Message-Authenticator is wrong.
    #[error("bad Message-Authenticator")]
    BadSignature,
    /// It has no Message-Authenticator, which is required.
    #[error("no Message-Authenticator")]
    NoSignature,
    /// Its Event-Timestamp is outside the window, or as old as a request that was forgotten.
    #[error("stale Event-Timestamp")]
    Stale,
    /// It has no Event-Timestamp, which is required.
    #[error("no Event-Timestamp")]
    NoTimestamp,
    /// It repeats a request that has not been answered yet.
    #[error("a repetition of what is being done")]
    InProgress,
    /// Too many requests are not answered yet.
    #[error("too many requests")]
    Busy,
}

/// Counters of requests and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DynauthCounters {
    /// New requests that were accepted: Disconnect-Requests and CoA-Requests.
    pub requests: u64,
    /// Of those, CoA-Requests.
    pub changes: u64,
    /// Disconnect-ACK.
    pub acks: u64,
    /// Disconnect-NAK.
    pub naks: u64,
    /// CoA-ACK.
    pub change_acks: u64,
    /// CoA-NAK.
    pub change_naks: u64,
    /// Disconnect-NAK and CoA-NAK by Error-Cause, in the order of [`Cause::ALL`].
    pub causes: [u64; Cause::ALL.len()],
    /// Replies sent again for repeated requests.
    pub repeated: u64,
    /// [`DynauthDiscard::UnknownClient`].
    pub unknown_client: u64,
    /// [`DynauthDiscard::Malformed`] and [`DynauthDiscard::Code`].
    pub malformed: u64,
    /// [`DynauthDiscard::BadAuthenticator`], [`DynauthDiscard::BadSignature`] and [`DynauthDiscard::NoSignature`].
    pub unauthentic: u64,
    /// [`DynauthDiscard::Stale`] and [`DynauthDiscard::NoTimestamp`].
    pub stale: u64,
    /// [`DynauthDiscard::InProgress`].
    pub in_progress: u64,
    /// [`DynauthDiscard::Busy`].
    pub busy: u64,
}

impl DynauthCounters {
    pub(super) fn discard(&mut self, why: DynauthDiscard) {
        *match why {
            DynauthDiscard::UnknownClient => &mut self.unknown_client,
            DynauthDiscard::Malformed(_) | DynauthDiscard::Code(_) => &mut self.malformed,
            DynauthDiscard::BadAuthenticator
            | DynauthDiscard::BadSignature
            | DynauthDiscard::NoSignature => &mut self.unauthentic,
            DynauthDiscard::Stale | DynauthDiscard::NoTimestamp => &mut self.stale,
            DynauthDiscard::InProgress => &mut self.in_progress,
            DynauthDiscard::Busy => &mut self.busy,
        } += 1;
    }

    pub(super) fn accept(&mut self, request: u8) {
        self.requests += 1;
        self.changes += u64::from(request == code::COA_REQUEST);
    }

    /// Counts a reply to a request with this code.
    pub(super) fn reply(&mut self, request: u8, cause: Option<Cause>) {
        *match (request == code::COA_REQUEST, cause) {
            (false, None) => &mut self.acks,
            (false, Some(_)) => &mut self.naks,
            (true, None) => &mut self.change_acks,
            (true, Some(_)) => &mut self.change_naks,
        } += 1;
        if let Some(cause) = cause {
            self.causes[cause.place()] += 1;
        }
    }
}
