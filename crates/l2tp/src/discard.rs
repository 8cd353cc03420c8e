//! Reasons to ignore a datagram, and all counters.

use core::fmt;

/// Why a datagram was ignored. Only the counter changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Discard {
    /// The L2TP header does not parse.
    #[error("malformed header")]
    Malformed,
    /// An unsupported version (RFC 2661 3.1).
    #[error("unsupported version")]
    UnsupportedVersion,
    /// A control message for an unknown tunnel.
    #[error("unknown tunnel")]
    UnknownTunnel,
    /// A control message from another address than the tunnel's peer.
    #[error("wrong source address")]
    WrongSource,
    /// A first message that is not an SCCRQ.
    #[error("not a request")]
    NotARequest,
    /// An SCCRQ at an endpoint that accepts none.
    #[error("requests are not accepted here")]
    NotAccepting,
    /// Nr acknowledges a message that was never sent.
    #[error("impossible Nr")]
    ImpossibleNr,
    /// Ns lies beyond the receive window.
    #[error("Ns beyond the window")]
    BeyondWindow,
    /// Too many messages are queued: unacknowledged, or ahead of a missing one.
    /// The peer may retransmit this one; its Nr was used.
    #[error("too many messages wait")]
    Backlog,
    /// The Message Digest is missing or wrong (RFC 3931 4.3).
    #[error("bad message digest")]
    BadDigest,
    /// Our SCCRQ won the tie against this one.
    #[error("lost the tie")]
    LostTie,
    /// There is no room for a half-open tunnel.
    #[error("too many half-open tunnels")]
    HalfOpenLimit,
    /// The source has too many half-open tunnels. The peer may retransmit its SCCRQ.
    #[error("too many half-open tunnels of this source")]
    HalfOpenPerSource,
    /// The table of tunnels is full. The peer gets a StopCCN, and no record is made.
    #[error("too many tunnels")]
    TunnelLimit,
    /// A data message for an unknown session, or with a wrong cookie.
    #[error("data for an unknown session")]
    UnknownSession,
    /// A data message for another peer's tunnel, or with another peer's cookie.
    #[error("data from a wrong source address")]
    DataWrongSource,
    /// A data message of a session that is not established yet.
    #[error("data before the session is established")]
    DataTooEarly,
    /// A data message that arrived after one with a higher sequence number.
    #[error("data out of order")]
    DataOutOfOrder,
}

impl Discard {
    /// Every reason, in the order of their counters.
    pub const ALL: [Self; 18] = [
        Self::Malformed,
        Self::UnsupportedVersion,
        Self::UnknownTunnel,
        Self::WrongSource,
        Self::NotARequest,
        Self::NotAccepting,
        Self::ImpossibleNr,
        Self::BeyondWindow,
        Self::Backlog,
        Self::BadDigest,
        Self::LostTie,
        Self::HalfOpenLimit,
        Self::HalfOpenPerSource,
        Self::TunnelLimit,
        Self::UnknownSession,
        Self::DataWrongSource,
        Self::DataTooEarly,
        Self::DataOutOfOrder,
    ];

    /// The name of its counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "discard_malformed_header",
            Self::UnsupportedVersion => "discard_unsupported_version",
            Self::UnknownTunnel => "discard_unknown_tunnel",
            Self::WrongSource => "discard_wrong_source",
            Self::NotARequest => "discard_not_a_request",
            Self::NotAccepting => "discard_not_accepting",
            Self::ImpossibleNr => "discard_impossible_nr",
            Self::BeyondWindow => "discard_beyond_window",
            Self::Backlog => "discard_backlog",
            Self::BadDigest => "discard_bad_digest",
            Self::LostTie => "discard_lost_tie",
            Self::HalfOpenLimit => "discard_half_open_limit",
            Self::HalfOpenPerSource => "discard_half_open_per_source",
            Self::TunnelLimit => "discard_tunnel_limit",
            Self::UnknownSession => "discard_unknown_session",
            Self::DataWrongSource => "discard_data_wrong_source",
            Self::DataTooEarly => "discard_data_too_early",
            Self::DataOutOfOrder => "discard_data_out_of_order",
        }
    }
}

/// Message types with counters of their own, by number; others share one row.
const MESSAGES: [&str; 30] = [
    "other", "sccrq", "sccrp", "scccn", "stopccn", "other", "hello", "ocrq", "ocrp", "occn",
    "icrq", "icrp", "iccn", "other", "cdn", "wen", "sli", "other", "other", "other", "ack",
    "other", "other", "other", "other", "other", "other", "other", "csun", "csurq",
];

/// Everything an endpoint counts. Plain numbers: counting costs an addition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) discards: [u64; Discard::ALL.len()],
    pub(crate) received: [u64; MESSAGES.len()],
    pub(crate) sent: [u64; MESSAGES.len()],
    pub(crate) zlb_received: u64,
    pub(crate) zlb_sent: u64,
    pub(crate) retransmissions: u64,
    pub(crate) duplicates: u64,
    pub(crate) out_of_order: u64,
    pub(crate) ignored_avps: u64,
    pub(crate) ignored_messages: u64,
    pub(crate) stateless_refusals: u64,
    /// Resumed tunnels that had acknowledged messages before the crash of which nothing is known.
    pub(crate) resumed_with_losses: u64,
    pub(crate) half_open_forgotten: u64,
    pub(crate) half_open_cut_short: u64,
    pub(crate) duplicates_unanswered: u64,
    pub(crate) held_forgotten: u64,
    pub(crate) session_strays: u64,
    /// Sessions in CSUNs and CSURQs that are unknown, or have no updates.
    pub(crate) speeds_ignored: u64,
    pub(crate) data_not_forwarded: u64,
    pub(crate) tunnels_opened: u64,
    pub(crate) tunnels_established: u64,
    pub(crate) tunnels_ended: u64,
    pub(crate) sessions_established: u64,
    pub(crate) sessions_ended: u64,
}

impl Counters {
    pub(crate) fn discard(&mut self, why: Discard) -> Discard {
        self.discards[why as usize] += 1;
        why
    }

    pub(crate) fn count_received(&mut self, number: u16) {
        self.received[row(number)] += 1;
    }

    pub(crate) fn count_sent(&mut self, number: u16) {
        self.sent[row(number)] += 1;
    }

    /// Every counter that has a name, with its value.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (CounterName, u64)> + '_ {
        let plain = [
            ("zlb_received", self.zlb_received),
            ("zlb_sent", self.zlb_sent),
            ("retransmissions", self.retransmissions),
            ("duplicates", self.duplicates),
            ("out_of_order", self.out_of_order),
            ("ignored_avps", self.ignored_avps),
            ("ignored_messages", self.ignored_messages),
            ("stateless_refusals", self.stateless_refusals),
            ("resumed_with_losses", self.resumed_with_losses),
            ("half_open_forgotten", self.half_open_forgotten),
            ("half_open_cut_short", self.half_open_cut_short),
            ("duplicates_unanswered", self.duplicates_unanswered),
            ("held_forgotten", self.held_forgotten),
            ("session_strays", self.session_strays),
            ("speeds_ignored", self.speeds_ignored),
            ("data_not_forwarded", self.data_not_forwarded),
            ("tunnels_opened", self.tunnels_opened),
            ("tunnels_established", self.tunnels_established),
            ("tunnels_ended", self.tunnels_ended),
            ("sessions_established", self.sessions_established),
            ("sessions_ended", self.sessions_ended),
        ];
        let messages = |direction, counts: &'_ [u64; MESSAGES.len()]| {
            let counts = *counts;
            (0..MESSAGES.len())
                .filter(|&i| i == 0 || MESSAGES[i] != "other")
                .map(move |i| (CounterName(direction, MESSAGES[i]), counts[i]))
        };
        plain
            .into_iter()
            .map(|(name, value)| (CounterName("", name), value))
            .chain(messages("received_", &self.received))
            .chain(messages("sent_", &self.sent))
            .chain(
                Discard::ALL
                    .into_iter()
                    .map(|why| (CounterName("", why.name()), self.discards[why as usize])),
            )
    }
}

fn row(number: u16) -> usize {
    let row = usize::from(number);
    if row < MESSAGES.len() && MESSAGES[row] != "other" {
        row
    } else {
        0
    }
}

/// The name of a counter, composed only when it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterName(&'static str, &'static str);

impl fmt::Display for CounterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)?;
        f.write_str(self.1)
    }
}
