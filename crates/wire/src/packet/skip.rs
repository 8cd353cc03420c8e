//! Why a frame has no readable IP packet.

use std::fmt;

use crate::link::LinkType;

/// Why a frame has no IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Skip {
    /// Another payload, by EtherType: ARP, LLDP, PPPoE discovery.
    NotIp {
        /// EtherType.
        ethertype: u16,
    },
    /// Another payload over PPP, such as LCP.
    NotIpPpp {
        /// PPP protocol number.
        protocol: u16,
    },
    /// Another payload over IEEE 802.2 LLC, such as spanning tree.
    NotIpLlc {
        /// Destination service access point.
        dsap: u8,
    },
    /// Another payload, by BSD protocol family.
    NotIpFamily {
        /// Protocol family (AF_*).
        family: u32,
    },
    /// The captured or sent bytes end inside a header.
    Truncated,
    /// A header contradicts itself.
    BadHeader,
    /// This link type is not supported.
    UnknownLink(LinkType),
    /// More encapsulations than [`LAYERS_MAX`](super::LAYERS_MAX).
    TooDeep,
}

impl Skip {
    /// The number of kinds: one more than the largest [`kind`](Self::kind).
    pub const KINDS: usize = 8;

    /// The name of each kind, by [`kind`](Self::kind).
    pub const NAMES: [&'static str; Self::KINDS] = [
        "not IP",
        "not IP in PPP",
        "not IP in LLC",
        "not an IP family",
        "truncated",
        "bad header",
        "unknown link type",
        "too many encapsulations",
    ];

    /// An index for counters, without the details.
    #[must_use]
    pub fn kind(self) -> usize {
        match self {
            Skip::NotIp { .. } => 0,
            Skip::NotIpPpp { .. } => 1,
            Skip::NotIpLlc { .. } => 2,
            Skip::NotIpFamily { .. } => 3,
            Skip::Truncated => 4,
            Skip::BadHeader => 5,
            Skip::UnknownLink(_) => 6,
            Skip::TooDeep => 7,
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES[self.kind()];
        match *self {
            Skip::NotIp { ethertype } => write!(f, "{name}: EtherType {ethertype:#06x}"),
            Skip::NotIpPpp { protocol } => write!(f, "{name}: protocol {protocol:#06x}"),
            Skip::NotIpLlc { dsap } => write!(f, "{name}: DSAP {dsap:#04x}"),
            Skip::NotIpFamily { family } => write!(f, "{name}: {family}"),
            Skip::UnknownLink(link) => write!(f, "{name} {link}"),
            Skip::Truncated | Skip::BadHeader | Skip::TooDeep => f.write_str(name),
        }
    }
}

impl std::error::Error for Skip {}
