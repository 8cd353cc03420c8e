//! A subscriber's queue: what it is while it has one flow, and while it has several.

use qos::fair::turns::Turns;

use crate::packets::Chain;
use crate::spec::Fairness;

/// A subscriber's queue: one cache line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Queue {
    pub(super) members: Members,
    /// Distinguishes its hosts and flows from those of other subscribers.
    salt: u32,
    /// The caller's name for the subscriber.
    pub(crate) owner: u32,
    pub(crate) packets: u32,
    /// Bytes on the line.
    pub(crate) octets: u32,
    /// The number of its template.
    pub(crate) template: u16,
    /// That of its first packet, so that no packet overtakes another of its flow when the template changes.
    pub(super) fairness: Fairness,
}

const _: () = assert!(size_of::<Queue>() == 64);

#[derive(Debug, Clone, Copy)]
pub(super) enum Members {
    /// No packets, or packets of one flow that have not been late.
    Solo(Solo),
    Many(Many),
}

impl Default for Members {
    fn default() -> Self {
        Self::Solo(Solo::default())
    }
}

/// The only flow of a queue. What happens to it is what would happen to it as the only flow of the only host.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Solo {
    pub(super) hash: u64,
    pub(super) chain: Chain,
    pub(super) deficit: i32,
    /// Whether it has used its first turn.
    pub(super) is_old: bool,
    pub(super) has_sent: bool,
}

/// Hosts and flows with entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Many {
    /// The hosts.
    pub(super) turns: Turns,
    /// A host that had the most bytes when it last grew.
    pub(super) heaviest: u32,
    /// The flow for all flows that found the table full. While it exists, new flows use it, so that no packet
    /// overtakes another of its flow.
    pub(super) shared: u32,
    /// The places of its first hosts and flows.
    pub(super) group: u32,
    /// Flows with an entry.
    pub(super) flows: u16,
    /// The places of its group that are used: a bit for each flow, then for each host.
    pub(super) used: u8,
    /// Whether its hosts and flows are in the tables.
    pub(super) is_indexed: bool,
}

impl Queue {
    pub(crate) fn new(salt: u32, owner: u32, template: u16) -> Self {
        Self {
            salt,
            owner,
            template,
            ..Self::default()
        }
    }

    #[inline]
    pub(super) fn salt(&self) -> u64 {
        u64::from(self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[inline]
    pub(super) fn remove(&mut self, packets: u32, octets: u32) {
        self.packets -= packets;
        self.octets -= octets;
    }
}

impl Many {
    /// Takes the first free of `count` places from `first` on.
    #[inline]
    pub(super) fn take(&mut self, first: u32, count: u32) -> Option<u32> {
        let at = (self.used >> first).trailing_ones();
        (at < count).then(|| {
            self.used |= 1 << (first + at);
            at
        })
    }
}
