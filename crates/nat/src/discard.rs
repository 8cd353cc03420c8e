//! Reasons to drop a packet, and counters.

use core::ops::Add;

/// Why the NAT dropped a packet. The packet is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u8)]
pub enum Discard {
    /// Not IPv4.
    #[error("not IPv4")]
    Version,
    /// A protocol without ports that the NAT knows: only TCP, UDP and ICMP are translated.
    #[error("a protocol that is not translated")]
    Protocol,
    /// The transport header is not complete.
    #[error("transport header cut short")]
    Cut,
    /// An ICMP message that is neither a query nor an error that the NAT supports (RFC 5508 REQ-10, REQ-11).
    #[error("an ICMP message that is not translated")]
    IcmpType,
    /// An ICMP error with a wrong checksum, or one that quotes a damaged header (RFC 5508 REQ-3).
    #[error("a damaged ICMP error")]
    IcmpDamaged,
    /// From outside, or an ICMP error, and there is no mapping.
    #[error("no mapping")]
    NoMapping,
    /// A TCP segment from inside without a mapping that is not a SYN.
    #[error("a TCP segment without a connection")]
    NotSyn,
    /// From a remote host that the filter does not admit.
    #[error("filtered")]
    Filtered,
    /// The subscriber is not known, or has left.
    #[error("unknown subscriber")]
    Subscriber,
    /// The subscriber has as many mappings as it may have.
    #[error("the subscriber's mappings are used up")]
    SubscriberMappings,
    /// The subscriber makes mappings faster than it may.
    #[error("the subscriber makes mappings too fast")]
    SubscriberRate,
    /// The subscriber has as many blocks as it may have, and no port is free in them.
    #[error("the subscriber's port blocks are used up")]
    SubscriberBlocks,
    /// The subscriber's external address has no free block (RFC 7857 section 4).
    #[error("no block is free at the subscriber's external address")]
    AddressUsedUp,
    /// No external address has a free block.
    #[error("the pool is used up")]
    PoolUsedUp,
    /// There are as many mappings as there may be.
    #[error("the table of mappings is full")]
    MappingsFull,
    /// There are as many connections as there may be, of the mapping or of all.
    #[error("the table of connections is full")]
    SessionsFull,
    /// The caller has not taken the events of earlier allocations.
    #[error("the log is behind")]
    LogBehind,
    /// A fragment without its datagram's first one, and no room to wait.
    #[error("a fragment out of order, and no room to keep it")]
    FragmentsFull,
    /// From inside, and its source is an external address: a mapping of it would lead back to the NAT.
    #[error("an external address as an inside one")]
    Source,
    /// From one subscriber to the external port of another, which the settings forbid.
    #[error("hairpinning is off")]
    Hairpinning,
}

impl Discard {
    /// How many reasons there are.
    pub const COUNT: usize = 20;

    /// Every reason, in the order of [`Counters::discards`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::Version,
        Self::Protocol,
        Self::Cut,
        Self::IcmpType,
        Self::IcmpDamaged,
        Self::NoMapping,
        Self::NotSyn,
        Self::Filtered,
        Self::Subscriber,
        Self::SubscriberMappings,
        Self::SubscriberRate,
        Self::SubscriberBlocks,
        Self::AddressUsedUp,
        Self::PoolUsedUp,
        Self::MappingsFull,
        Self::SessionsFull,
        Self::LogBehind,
        Self::FragmentsFull,
        Self::Source,
        Self::Hairpinning,
    ];

    /// Whether no mapping could be made for want of resources: the sender may be sent an ICMP error, code 1 (RFC 6888
    /// REQ-11b) or 13 (RFC 5508 REQ-8).
    #[must_use]
    pub const fn is_shortage(self) -> bool {
        matches!(
            self,
            Self::SubscriberMappings
                | Self::SubscriberRate
                | Self::SubscriberBlocks
                | Self::AddressUsedUp
                | Self::PoolUsedUp
                | Self::MappingsFull
                | Self::SessionsFull
                | Self::LogBehind
        )
    }
}

/// Counters since the start, and levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets translated from inside to outside.
    pub outbound: u64,
    /// Packets translated from outside to inside.
    pub inbound: u64,
    /// Packets from inside to inside, through external addresses.
    pub hairpinned: u64,
    /// Packets to exempt destinations.
    pub untouched: u64,
    /// Mappings made.
    pub mappings_made: u64,
    /// Blocks allocated.
    pub blocks_allocated: u64,
    /// Ports that were free at once because too many waited ([`crate::Limits::held_ports_max`]).
    pub unheld_ports: u64,
    /// Fragmented datagrams whose entry gave way to a newer one.
    pub fragmented_evicted: u64,
    /// Fragments that waited and whose first fragment never came.
    pub fragments_lost: u64,
    /// Remote addresses that were not recorded, because the table of sessions was full.
    pub peers_unrecorded: u64,
    /// Commands of FTP whose address was translated.
    pub ftp_rewritten: u64,
    /// Commands of FTP that were left as they were: not understood, split over segments, out of order, of another address, or
    /// without a mapping.
    pub ftp_left: u64,
    /// Control connections of FTP that are not followed, because as many as may be are.
    pub ftp_untracked: u64,
    /// Control connections of FTP that are followed now.
    pub ftp_controls: u32,
    /// Mappings now.
    pub mappings: u32,
    /// Connections and remote addresses beyond the first of each mapping, now.
    pub sessions: u32,
    /// Subscribers now.
    pub subscribers: u32,
    /// Dropped packets by reason, in the order of [`Discard::ALL`].
    pub discards: [u64; Discard::COUNT],
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let mut discards = self.discards;
        for (sum, more) in discards.iter_mut().zip(other.discards) {
            *sum += more;
        }
        Self {
            outbound: self.outbound + other.outbound,
            inbound: self.inbound + other.inbound,
            hairpinned: self.hairpinned + other.hairpinned,
            untouched: self.untouched + other.untouched,
            mappings_made: self.mappings_made + other.mappings_made,
            blocks_allocated: self.blocks_allocated + other.blocks_allocated,
            unheld_ports: self.unheld_ports + other.unheld_ports,
            fragmented_evicted: self.fragmented_evicted + other.fragmented_evicted,
            fragments_lost: self.fragments_lost + other.fragments_lost,
            peers_unrecorded: self.peers_unrecorded + other.peers_unrecorded,
            ftp_rewritten: self.ftp_rewritten + other.ftp_rewritten,
            ftp_left: self.ftp_left + other.ftp_left,
            ftp_untracked: self.ftp_untracked + other.ftp_untracked,
            ftp_controls: self.ftp_controls + other.ftp_controls,
            mappings: self.mappings + other.mappings,
            sessions: self.sessions + other.sessions,
            subscribers: self.subscribers + other.subscribers,
            discards,
        }
    }
}
