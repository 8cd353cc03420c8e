//! What a log records of a NAT.

use std::net::Ipv4Addr;

use base::Instant;

use crate::discard::Discard;
use crate::pool::Protocol;

/// A forwarded port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forward {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// The external address.
    pub external: Ipv4Addr,
    /// The external port.
    pub external_port: u16,
    /// The inside address.
    pub inside: Ipv4Addr,
    /// The inside port.
    pub inside_port: u16,
    /// The caller's name for the subscriber whose block has the port; 0 for a port below the blocks.
    pub tag: u64,
    /// When it lapses; `None` for never.
    pub until: Option<Instant>,
}

/// A range of external ports of one subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block {
    /// The caller's name for the subscriber.
    pub tag: u64,
    /// The subscriber's inside address.
    pub inside: Ipv4Addr,
    /// The external address.
    pub external: Ipv4Addr,
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

/// What a log records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A block was allocated to a subscriber.
    BlockAllocated(Block, Instant),
    /// A subscriber's block is free again.
    BlockFreed(Block, Instant),
    /// A port is forwarded now; `tag` is 0 if no subscriber asked for it.
    ForwardAdded(Forward, Instant),
    /// A port is not forwarded any more.
    ForwardRemoved(Forward, Instant),
    /// A packet of this subscriber found no free block. There is no further such event until a block was allocated.
    PoolUsedUp {
        /// The caller's name for the subscriber.
        tag: u64,
        /// Its inside address.
        inside: Ipv4Addr,
        /// When.
        at: Instant,
    },
    /// This subscriber reached one of its limits. There is no further such event of it until one of its mappings ended.
    SubscriberLimit {
        /// The caller's name for the subscriber.
        tag: u64,
        /// Its inside address.
        inside: Ipv4Addr,
        /// Which limit.
        why: Discard,
        /// When.
        at: Instant,
    },
}
