//! Everything that an endpoint counts.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        /// Everything that an endpoint counts since it was made. Plain numbers: counting costs an addition.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Every counter with its name.
            pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// PADI packets received.
    received_padi;
    /// PADO packets received.
    received_pado;
    /// PADR packets received.
    received_padr;
    /// PADS packets received.
    received_pads;
    /// PADT packets received.
    received_padt;
    /// PADI packets sent.
    sent_padi;
    /// PADO packets sent.
    sent_pado;
    /// PADR packets sent.
    sent_padr;
    /// PADS packets sent.
    sent_pads;
    /// PADT packets sent.
    sent_padt;
    /// Client packets sent again.
    retransmissions;
    /// PADRs that repeat one that was answered; the host got the same PADS.
    padrs_repeated;
    /// PADRs refused for their Service-Name.
    refused_service;
    /// PADRs refused at `sessions_max`.
    refused_sessions;
    /// PADRs refused at `sessions_per_mac_max`.
    refused_per_mac;
    /// PADRs refused at `sessions_per_line_max`.
    refused_per_line;
    /// PADRs refused because no session id was free for the host.
    refused_no_id;
    /// PADRs refused while the endpoint was being shut down.
    refused_shutting_down;
    /// PADTs sent for data of an unknown session.
    unknown_answered;
    /// Sessions that came up, in either role.
    sessions_up;
    /// Sessions that ended, also those that never came up.
    sessions_down;
    /// Sessions of hosts that sent no PPP frame in time.
    setup_timeouts;
    /// Sessions replaced by a newer one of their host.
    replaced;
    /// Frames ignored: shorter than the header.
    discard_short;
    /// Frames ignored: VER or TYPE is not 1.
    discard_version;
    /// Frames ignored: LENGTH is beyond the frame's end.
    discard_length;
    /// Frames ignored: a tag is beyond the packet's end.
    discard_tag_length;
    /// Frames ignored: unknown CODE.
    discard_unknown_code;
    /// Frames ignored: a Discovery packet of more than 1,500 bytes.
    discard_too_long;
    /// Frames ignored: unknown port.
    discard_unknown_port;
    /// Frames ignored: the source is not a unicast address.
    discard_source;
    /// Frames ignored: broadcast, and not a PADI.
    discard_broadcast;
    /// Frames ignored: SESSION_ID is not zero.
    discard_session_not_zero;
    /// Frames ignored: SESSION_ID is 0 or 0xffff.
    discard_session_reserved;
    /// Frames ignored: the port is not a server.
    discard_not_server;
    /// Frames ignored: the host is blacklisted.
    discard_blacklisted;
    /// Frames ignored: not exactly one Service-Name.
    discard_service_count;
    /// Frames ignored: the service is not offered.
    discard_unknown_service;
    /// Frames ignored: too many PADIs.
    discard_padi_rate;
    /// Frames ignored: too many PADIs of this host.
    discard_padi_rate_per_mac;
    /// Frames ignored: too many PADIs of this VLAN.
    discard_padi_rate_per_vlan;
    /// Frames ignored: no PADO at this number of sessions.
    discard_busy;
    /// Frames ignored: too many PADOs wait.
    discard_delayed_full;
    /// Frames ignored: too many PADRs.
    discard_padr_rate;
    /// Frames ignored: too many PADRs of this host.
    discard_padr_rate_per_mac;
    /// Frames ignored: no AC-Cookie.
    discard_no_cookie;
    /// Frames ignored: wrong AC-Cookie.
    discard_bad_cookie;
    /// Frames ignored: the AC-Cookie is too old.
    discard_stale_cookie;
    /// Frames ignored: too many half-open sessions.
    discard_half_open_limit;
    /// Frames ignored: the answer would be too long.
    discard_answer_too_long;
    /// Frames ignored: too many answers wait.
    discard_outbox_full;
    /// Frames ignored: shutting down.
    discard_shutting_down;
    /// Frames ignored: unknown session.
    discard_unknown_session;
    /// Frames ignored: wrong VLANs for the session.
    discard_wrong_vlans;
    /// Frames ignored: unknown Host-Uniq.
    discard_unknown_host_uniq;
    /// Frames ignored: unexpected PADO or PADS.
    discard_unexpected;
    /// Frames ignored: a PADO without AC-Name or with an error.
    discard_bad_offer;
    /// Frames ignored: not the wanted access concentrator.
    discard_other_ac;
    /// Frames ignored: not the wanted service.
    discard_other_service;
    /// Frames ignored: a PADS of another station.
    discard_other_peer;
    /// Frames ignored: a SESSION_ID that cannot be used.
    discard_bad_session;
}
