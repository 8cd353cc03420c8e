//! Ethernet addresses and VLAN ids: what identifies a host on an access network.

use core::fmt;
use core::str::FromStr;

/// An Ethernet address (IEEE 802 MAC address).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The address of every station.
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// Whether this is the address of one station: no group, and not all zeros.
    #[must_use]
    pub const fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0 && !matches!(self.0, [0, 0, 0, 0, 0, 0])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A text is not a MAC address, such as `00:53:00:12:34:56`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a MAC address: six pairs of hexadecimal digits, such as 00:53:00:12:34:56")]
pub struct NotAMac;

impl FromStr for Mac {
    type Err = NotAMac;

    /// Parses six pairs of hexadecimal digits with `:` or `-` between them.
    fn from_str(text: &str) -> Result<Self, NotAMac> {
        let mut octets = [0; 6];
        let mut parts = text.split([':', '-']);
        for octet in &mut octets {
            let part = parts.next().ok_or(NotAMac)?;
            if part.len() != 2 || !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(NotAMac);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| NotAMac)?;
        }
        if parts.next().is_some() {
            return Err(NotAMac);
        }
        Ok(Mac(octets))
    }
}

/// The VLAN ids of a frame: none, one, or two (IEEE 802.1Q, 802.1ad).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Vlans([u16; 2]);

impl Vlans {
    /// Bits of a VLAN id.
    const ID: u16 = 0x0fff;
    /// In place of an id: there is none.
    const ABSENT: u16 = 0xffff;
    /// A frame without VLAN tags.
    pub const NONE: Vlans = Vlans([Self::ABSENT; 2]);

    /// A frame with one tag. Only the low 12 bits of `id` count.
    #[must_use]
    pub const fn one(id: u16) -> Self {
        Vlans([id & Self::ID, Self::ABSENT])
    }

    /// A frame with two tags, the outer one first on the wire. Only the low 12 bits of each count.
    #[must_use]
    pub const fn two(outer: u16, inner: u16) -> Self {
        Vlans([outer & Self::ID, inner & Self::ID])
    }

    /// The id of the first tag on the wire.
    #[must_use]
    pub const fn outer(self) -> Option<u16> {
        match self.0[0] {
            Self::ABSENT => None,
            id => Some(id),
        }
    }

    /// The id of the second tag on the wire.
    #[must_use]
    pub const fn inner(self) -> Option<u16> {
        match self.0[1] {
            Self::ABSENT => None,
            id => Some(id),
        }
    }

    /// Whether there is no tag.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.outer().is_none()
    }

    /// Both ids as one number, which differs for different tags.
    #[must_use]
    pub const fn bits(self) -> u32 {
        (self.0[0] as u32) << 16 | self.0[1] as u32
    }
}

impl Default for Vlans {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for Vlans {
    /// `untagged`, `100` or `100.7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.outer(), self.inner()) {
            (None, _) => f.write_str("untagged"),
            (Some(outer), None) => write!(f, "{outer}"),
            (Some(outer), Some(inner)) => write!(f, "{outer}.{inner}"),
        }
    }
}

impl fmt::Debug for Vlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vlans({self})")
    }
}
