//! The kinds of calls that a peer accepts, from its SCCRQ or SCCRP.

use wire::l2tp::{Attribute, Message, Version};

use crate::config::Pseudowire;

/// Pseudowires (RFC 3931 5.4.3) and outgoing calls (RFC 2661 4.4.3) that a peer
/// offers, as bits.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Offers(u8);

const OUTGOING_CALLS: u8 = 1 << 7;

impl Offers {
    /// Parses the capabilities in the peer's first message.
    pub(crate) fn from_message(message: &Message<'_>) -> Self {
        match message.version() {
            Version::V2 => {
                let bearers = message.u32(Attribute::BearerCapabilities).unwrap_or(0);
                let outgoing = if bearers == 0 { 0 } else { OUTGOING_CALLS };
                Self(bit(Pseudowire::Ppp) | outgoing)
            }
            Version::V3 => {
                let list = message.get(Attribute::PseudowireCapabilitiesList);
                let numbers = list.unwrap_or(&[]).chunks_exact(2);
                let known = numbers.filter_map(|pair| {
                    Pseudowire::from_number(u16::from_be_bytes([pair[0], pair[1]]))
                });
                Self(known.map(bit).fold(OUTGOING_CALLS, |bits, bit| bits | bit))
            }
        }
    }

    /// As one octet of a snapshot.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// From [`Offers::bits`]; `None` if a bit has no meaning.
    pub(crate) fn from_bits(bits: u8) -> Option<Self> {
        let all = [Pseudowire::Vlan, Pseudowire::Ethernet, Pseudowire::Ppp];
        let known = all.into_iter().map(bit).fold(OUTGOING_CALLS, |a, b| a | b);
        (bits & !known == 0).then_some(Self(bits))
    }

    /// Whether calls of this kind may be requested: the peer "MUST have" offered them (RFC 2661 6.9, RFC 3931
    /// 5.4.4).
    pub(crate) fn takes(self, pseudowire: u16) -> bool {
        Pseudowire::from_number(pseudowire).is_some_and(|kind| self.0 & bit(kind) != 0)
    }

    /// Whether the peer places calls.
    pub(crate) fn places_calls(self) -> bool {
        self.0 & OUTGOING_CALLS != 0
    }
}

const fn bit(kind: Pseudowire) -> u8 {
    match kind {
        Pseudowire::Vlan => 1,
        Pseudowire::Ethernet => 1 << 1,
        Pseudowire::Ppp => 1 << 2,
    }
}
