//! Classifiers: they choose a packet's class by its keys.
//!
//! - [`Map`] calculates the class from one key; [`struct@Hash`] spreads packets over classes by several keys. Both follow
//!   `tc`'s flow filter (tc-flow(8)).
//! - [`Filter`] tries rules in order and takes the first that matches, as u32 and flower do.
//!
//! Two things differ from Linux. A key that a packet lacks is always 0; Linux puts the address of a socket or route
//! there, which changes with each start. And both the headers before a tunnel and those within it have keys: `src` is
//! the address that routers see, `tunnel-src` is the address within the tunnel, and `innermost-src` is `tunnel-src`
//! if there is a tunnel and `src` if not.

mod bands;
mod filter;
mod hash;
mod map;
mod matches;

pub use bands::Bands;
pub use filter::Filter;
pub use hash::{Hash, KeySet, UnknownKeys};
pub use map::Map;
pub use matches::{BadPorts, BadPrefix, FlowMatch, Mark, Match, Ports, Prefix};

use core::fmt;
use core::str::FromStr;

use wire::flow::{Dscp, Flow, Keys};

/// A field of a packet that a classifier reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Key {
    /// Source address of the outer header.
    Src,
    /// Destination address of the outer header.
    Dst,
    /// Protocol of the outer header.
    Proto,
    /// Source port of the outer header.
    ProtoSrc,
    /// Destination port of the outer header.
    ProtoDst,
    /// Code point of the outer header, 0 to 63.
    Dscp,
    /// The mark that the packet was given on its way in.
    Mark,
    /// VLAN identifier.
    Vlan,
    /// Source address within the tunnel.
    TunnelSrc,
    /// Destination address within the tunnel.
    TunnelDst,
    /// Protocol within the tunnel.
    TunnelProto,
    /// Source port within the tunnel.
    TunnelProtoSrc,
    /// Destination port within the tunnel.
    TunnelProtoDst,
    /// Source address within the tunnel, or else of the only header.
    InnermostSrc,
    /// Destination address within the tunnel, or else of the only header.
    InnermostDst,
    /// Protocol within the tunnel, or else of the only header.
    InnermostProto,
    /// Source port within the tunnel, or else of the only header.
    InnermostProtoSrc,
    /// Destination port within the tunnel, or else of the only header.
    InnermostProtoDst,
}

impl Key {
    /// Every key, in the order of the enum.
    pub const ALL: [Key; 18] = [
        Key::Src,
        Key::Dst,
        Key::Proto,
        Key::ProtoSrc,
        Key::ProtoDst,
        Key::Dscp,
        Key::Mark,
        Key::Vlan,
        Key::TunnelSrc,
        Key::TunnelDst,
        Key::TunnelProto,
        Key::TunnelProtoSrc,
        Key::TunnelProtoDst,
        Key::InnermostSrc,
        Key::InnermostDst,
        Key::InnermostProto,
        Key::InnermostProtoSrc,
        Key::InnermostProtoDst,
    ];

    /// Its name, as in tc-flow(8) where that has the key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Key::Src => "src",
            Key::Dst => "dst",
            Key::Proto => "proto",
            Key::ProtoSrc => "proto-src",
            Key::ProtoDst => "proto-dst",
            Key::Dscp => "dscp",
            Key::Mark => "mark",
            Key::Vlan => "vlan",
            Key::TunnelSrc => "tunnel-src",
            Key::TunnelDst => "tunnel-dst",
            Key::TunnelProto => "tunnel-proto",
            Key::TunnelProtoSrc => "tunnel-proto-src",
            Key::TunnelProtoDst => "tunnel-proto-dst",
            Key::InnermostSrc => "innermost-src",
            Key::InnermostDst => "innermost-dst",
            Key::InnermostProto => "innermost-proto",
            Key::InnermostProtoSrc => "innermost-proto-src",
            Key::InnermostProtoDst => "innermost-proto-dst",
        }
    }

    /// A packet's value of this key in 32 bits, and 0 where it has none. An IPv4 address gives its bits; an IPv6
    /// address gives the exclusive or of its four words, as in Linux.
    #[must_use]
    #[inline]
    pub fn value(self, keys: &Keys) -> u32 {
        match self {
            Key::Src => folded(keys.outer.source),
            Key::Dst => folded(keys.outer.destination),
            Key::Proto => keys.outer.protocol,
            Key::ProtoSrc => u32::from(keys.outer.source_port),
            Key::ProtoDst => u32::from(keys.outer.destination_port),
            Key::Dscp => u32::from(Dscp::of(keys.traffic_class).value()),
            Key::Mark => keys.mark,
            Key::Vlan => u32::from(keys.vlan),
            Key::TunnelSrc => folded(keys.inner.source),
            Key::TunnelDst => folded(keys.inner.destination),
            Key::TunnelProto => keys.inner.protocol,
            Key::TunnelProtoSrc => u32::from(keys.inner.source_port),
            Key::TunnelProtoDst => u32::from(keys.inner.destination_port),
            Key::InnermostSrc => folded(keys.innermost().source),
            Key::InnermostDst => folded(keys.innermost().destination),
            Key::InnermostProto => keys.innermost().protocol,
            Key::InnermostProtoSrc => u32::from(keys.innermost().source_port),
            Key::InnermostProtoDst => u32::from(keys.innermost().destination_port),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that is no key's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey(String);

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no key {:?}: there are ", self.0)?;
        for (index, key) in Key::ALL.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{key}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownKey {}

impl FromStr for Key {
    type Err = UnknownKey;

    /// Reads a key's name; tc's `vlan-tag` is a `vlan`.
    fn from_str(text: &str) -> Result<Self, UnknownKey> {
        if text == "vlan-tag" {
            return Ok(Key::Vlan);
        }
        let key = Key::ALL.into_iter().find(|key| key.name() == text);
        key.ok_or_else(|| UnknownKey(text.to_owned()))
    }
}

/// An address as two numbers, the first 8 bytes first.
#[inline(always)]
fn halves(address: [u8; 16]) -> [u64; 2] {
    let bits = u128::from_be_bytes(address);
    [(bits >> 64) as u64, bits as u64]
}

/// An address in 32 bits.
#[inline]
fn folded(address: [u8; 16]) -> u32 {
    let [high, low] = halves(address);
    if is_mapped(high, low) {
        return low as u32;
    }
    let both = high ^ low;
    (both >> 32) as u32 ^ both as u32
}

/// Whether these are the halves of an IPv4 address.
#[inline(always)]
fn is_mapped(high: u64, low: u64) -> bool {
    high == 0 && low >> 32 == 0xffff
}

/// Protocol and ports of a header as one number.
#[inline(always)]
fn small(flow: &Flow) -> u64 {
    u64::from(flow.protocol) << 32
        | u64::from(flow.source_port) << 16
        | u64::from(flow.destination_port)
}
