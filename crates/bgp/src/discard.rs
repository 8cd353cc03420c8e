//! Input that was ignored, and its counters.

/// Why a connection or input was ignored. Nothing changed except the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Discard {
    /// The connection does not exist any more.
    #[error("unknown connection")]
    UnknownConnection,
    /// No peer is configured with that address or network.
    #[error("unknown peer")]
    UnknownPeer,
    /// The peer is in Idle: stopped, or held in Idle after failures (RFC 4271, section 8.2.2).
    #[error("the peer is idle")]
    PeerIdle,
    /// The peer has two connections already.
    #[error("the peer has two connections already")]
    TooManyConnections,
    /// The limit of the network or of the speaker for dynamic peers is reached.
    #[error("too many dynamic peers")]
    DynamicLimit,
}

impl Discard {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 5] = [
        Self::UnknownConnection,
        Self::UnknownPeer,
        Self::PeerIdle,
        Self::TooManyConnections,
        Self::DynamicLimit,
    ];

    /// The name of its counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownConnection => "discard_unknown_connection",
            Self::UnknownPeer => "discard_unknown_peer",
            Self::PeerIdle => "discard_peer_idle",
            Self::TooManyConnections => "discard_too_many_connections",
            Self::DynamicLimit => "discard_dynamic_limit",
        }
    }
}

/// What a speaker ignored, counted by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discards([u32; Discard::ALL.len()]);

impl Discards {
    /// How often.
    #[must_use]
    pub const fn get(&self, reason: Discard) -> u32 {
        self.0[reason as usize]
    }

    pub(crate) const fn count(&mut self, reason: Discard) -> Discard {
        let slot = &mut self.0[reason as usize];
        *slot = slot.wrapping_add(1);
        reason
    }
}
