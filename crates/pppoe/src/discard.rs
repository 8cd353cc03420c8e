//! Reasons to ignore a frame.

use crate::counters::Counters;

macro_rules! discards {
    ($($(#[$doc:meta])* $name:ident, $counter:ident, $text:literal;)*) => {
        /// Why a frame was ignored. Only a counter changed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
        pub enum Discard {
            $($(#[$doc])* #[error($text)] $name,)*
        }

        impl Discard {
            /// Every reason.
            pub const ALL: &[Discard] = &[$(Self::$name,)*];

            /// The name of its counter.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($counter),)*
                }
            }

            /// Its counter.
            pub(crate) fn counter(self, counters: &mut Counters) -> &mut u64 {
                match self {
                    $(Self::$name => &mut counters.$counter,)*
                }
            }
        }
    };
}

discards! {
    /// Fewer octets than PPPoE's header.
    Short, discard_short, "shorter than the header";
    /// VER or TYPE is not 1 (RFC 2516, section 4).
    Version, discard_version, "VER or TYPE is not 1";
    /// LENGTH is beyond the frame's end.
    Length, discard_length, "LENGTH is beyond the frame's end";
    /// A tag is beyond the packet's end.
    TagLength, discard_tag_length, "a tag is beyond the packet's end";
    /// A CODE that RFC 2516 does not define.
    UnknownCode, discard_unknown_code, "unknown CODE";
    /// Longer than a frame of 1,500 bytes.
    TooLong, discard_too_long, "a Discovery packet of more than 1,500 bytes";
    /// The frame's port was not added.
    UnknownPort, discard_unknown_port, "unknown port";
    /// The source is no station's address.
    Source, discard_source, "the source is not a unicast address";
    /// A packet that must be unicast was broadcast.
    Broadcast, discard_broadcast, "broadcast, and not a PADI";
    /// PADI, PADO or PADR with a SESSION_ID (RFC 2516, sections 5.1 to 5.3).
    SessionNotZero, discard_session_not_zero, "SESSION_ID is not zero";
    /// Session data or a PADT without a SESSION_ID, or with the reserved one.
    SessionReserved, discard_session_reserved, "SESSION_ID is 0 or 0xffff";
    /// PADI or PADR at a port that is not a server.
    NotServer, discard_not_server, "the port is not a server";
    /// The host is blacklisted.
    Blacklisted, discard_blacklisted, "the host is blacklisted";
    /// PADI or PADR with no Service-Name or several (RFC 2516, sections 5.1 and 5.3).
    ServiceCount, discard_service_count, "not exactly one Service-Name";
    /// A PADI for a service that is not offered (RFC 2516, section 5.2: no answer).
    UnknownService, discard_unknown_service, "the service is not offered";
    /// A PADI over `padis_per_s`.
    PadiRate, discard_padi_rate, "too many PADIs";
    /// A PADI over `padis_per_mac_per_s`.
    PadiRatePerMac, discard_padi_rate_per_mac, "too many PADIs of this host";
    /// A PADI over `padis_per_vlan_per_s`.
    PadiRatePerVlan, discard_padi_rate_per_vlan, "too many PADIs of this VLAN";
    /// The PADO delay says not to answer at this number of sessions.
    Busy, discard_busy, "no PADO at this number of sessions";
    /// Too many PADOs wait for their delay.
    DelayedFull, discard_delayed_full, "too many PADOs wait";
    /// A PADR over `padrs_per_s`.
    PadrRate, discard_padr_rate, "too many PADRs";
    /// A PADR over `padrs_per_mac_per_s`.
    PadrRatePerMac, discard_padr_rate_per_mac, "too many PADRs of this host";
    /// A PADR without an AC-Cookie.
    NoCookie, discard_no_cookie, "no AC-Cookie";
    /// A PADR whose AC-Cookie is not one that we gave to this host.
    BadCookie, discard_bad_cookie, "wrong AC-Cookie";
    /// A PADR whose AC-Cookie is older than its lifetime.
    StaleCookie, discard_stale_cookie, "the AC-Cookie is too old";
    /// A PADR while `half_open_max` sessions wait for a first PPP frame.
    HalfOpenLimit, discard_half_open_limit, "too many half-open sessions";
    /// The answer would not fit into a frame: the host's tags are too long.
    AnswerTooLong, discard_answer_too_long, "the answer would be too long";
    /// Too many answers wait to be sent.
    OutboxFull, discard_outbox_full, "too many answers wait";
    /// The endpoint is being shut down.
    ShuttingDown, discard_shutting_down, "shutting down";
    /// Data or a PADT of an unknown session.
    UnknownSession, discard_unknown_session, "unknown session";
    /// Data or a PADT with the session's address and id, but other VLANs.
    WrongVlans, discard_wrong_vlans, "wrong VLANs for the session";
    /// PADO or PADS whose Host-Uniq is not that of a client session.
    UnknownHostUniq, discard_unknown_host_uniq, "unknown Host-Uniq";
    /// PADO or PADS that the client session does not wait for.
    Unexpected, discard_unexpected, "unexpected PADO or PADS";
    /// A PADO without an AC-Name or with an error tag.
    BadOffer, discard_bad_offer, "a PADO without AC-Name or with an error";
    /// A PADO of another access concentrator than the wanted one.
    OtherAc, discard_other_ac, "not the wanted access concentrator";
    /// A PADO without the wanted service.
    OtherService, discard_other_service, "not the wanted service";
    /// A PADS of another station than the PADO.
    OtherPeer, discard_other_peer, "a PADS of another station";
    /// A PADS with the reserved SESSION_ID, or with one that another session of the same station has.
    BadSession, discard_bad_session, "a SESSION_ID that cannot be used";
}

impl From<wire::pppoe::ParseError> for Discard {
    fn from(error: wire::pppoe::ParseError) -> Self {
        use wire::pppoe::ParseError;
        match error {
            ParseError::Short => Self::Short,
            ParseError::Version => Self::Version,
            ParseError::Length => Self::Length,
            ParseError::TagLength => Self::TagLength,
        }
    }
}
