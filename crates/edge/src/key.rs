//! A subscriber's key and its traffic counters, which packets, accounts and views share.

use base::slab::Key;

/// Names a subscriber; a stale key is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubscriberKey(pub(crate) Key);

impl SubscriberKey {
    /// The key as a number, for callers that keep numbers only.
    #[must_use]
    pub fn to_token(self) -> u64 {
        u64::from(self.0.generation) << 32 | u64::from(self.0.index)
    }

    /// The key that a number from [`Self::to_token`] stands for.
    #[must_use]
    pub fn from_token(token: u64) -> Self {
        Self(Key {
            index: token as u32,
            generation: (token >> 32) as u32,
        })
    }
}

/// IP packets and bytes in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Packets from the subscriber that were forwarded.
    pub packets_in: u64,
    /// Their bytes.
    pub octets_in: u64,
    /// Packets forwarded to the subscriber.
    pub packets_out: u64,
    /// Their bytes.
    pub octets_out: u64,
    /// Packets dropped, in either direction.
    pub dropped: u64,
}

/// What the queues of a subscriber dropped and marked in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueueLosses {
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked "congestion experienced" instead of dropped.
    pub marked: u64,
}
