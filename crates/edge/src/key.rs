//! Which subscriber, and how much it sent and received: what packets, accounts and views share.

use base::slab::Key;

/// Names a subscriber; a stale key is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubscriberKey(pub(crate) Key);

impl SubscriberKey {
    /// As a number, for those who are asked about it.
    #[must_use]
    pub fn to_token(self) -> u64 {
        u64::from(self.0.generation) << 32 | u64::from(self.0.index)
    }

    /// The key that such a number names.
    #[must_use]
    pub fn from_token(token: u64) -> Self {
        Self(Key {
            index: token as u32,
            generation: (token >> 32) as u32,
        })
    }
}

/// Packets and octets of IP, both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Packets from the subscriber that went on.
    pub packets_in: u64,
    /// Their octets.
    pub octets_in: u64,
    /// Packets to the subscriber.
    pub packets_out: u64,
    /// Their octets.
    pub octets_out: u64,
    /// Packets of either direction that did not go on.
    pub dropped: u64,
}
