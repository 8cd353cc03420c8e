//! A record: 32 bytes, big-endian, with a CRC.

use std::net::Ipv4Addr;

/// Octets of a record.
pub(crate) const RECORD: usize = 32;

/// What happened to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// It was allocated.
    Allocated = 1,
    /// It was freed.
    Freed = 2,
    /// It was still allocated when a segment started.
    Carried = 3,
    /// It was allocated when the NAT lost its state, and is nobody's from then on.
    Lost = 4,
}

impl Kind {
    fn of(octet: u8) -> Option<Self> {
        match octet {
            1 => Some(Self::Allocated),
            2 => Some(Self::Freed),
            3 => Some(Self::Carried),
            4 => Some(Self::Lost),
            _ => None,
        }
    }

    /// Whether the block is the subscriber's after it.
    #[must_use]
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Allocated | Self::Carried)
    }
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What happened.
    pub kind: Kind,
    /// When, in milliseconds since 1970; 48 bits are stored.
    pub at_ms: u64,
    /// The external address.
    pub external: Ipv4Addr,
    /// The block's first port.
    pub first: u16,
    /// The block's last port.
    pub last: u16,
    /// The subscriber's inside address.
    pub inside: Ipv4Addr,
    /// The caller's name for the subscriber.
    pub tag: u64,
}

/// The order of a sorted segment: external address and first port, then time.
pub(crate) type Order = (u32, u16, u64);

impl Entry {
    pub(crate) fn order(&self) -> Order {
        (self.external.to_bits(), self.first, self.at_ms)
    }

    pub(crate) fn has(&self, external: Ipv4Addr, port: u16) -> bool {
        self.external == external && (self.first..=self.last).contains(&port)
    }

    /// The octets: external address, ports, 6 of time, kind, one of zero, inside address, tag, CRC.
    pub(crate) fn encode(&self) -> [u8; RECORD] {
        let mut octets = [0; RECORD];
        octets[..4].copy_from_slice(&self.external.octets());
        octets[4..6].copy_from_slice(&self.first.to_be_bytes());
        octets[6..8].copy_from_slice(&self.last.to_be_bytes());
        octets[8..14].copy_from_slice(&self.at_ms.to_be_bytes()[2..]);
        octets[14] = self.kind as u8;
        octets[16..20].copy_from_slice(&self.inside.octets());
        octets[20..28].copy_from_slice(&self.tag.to_be_bytes());
        let sum = crc(&octets[..28]);
        octets[28..].copy_from_slice(&sum.to_be_bytes());
        octets
    }

    /// The time of a record that may be damaged.
    pub(crate) fn time_of(octets: &[u8; RECORD]) -> u64 {
        let time = [
            0, 0, octets[8], octets[9], octets[10], octets[11], octets[12], octets[13],
        ];
        u64::from_be_bytes(time)
    }

    /// Whether a record that may be damaged is of a block that was allocated before.
    pub(crate) fn is_carried(octets: &[u8; RECORD]) -> bool {
        octets[14] == Kind::Carried as u8
    }

    /// The external address and first port of a record that may be damaged.
    pub(crate) fn block_of(octets: &[u8; RECORD]) -> (u32, u16) {
        let address = u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]]);
        (address, u16::from_be_bytes([octets[4], octets[5]]))
    }

    /// Whether a record that may be damaged is of this external port.
    pub(crate) fn is_at(octets: &[u8; RECORD], external: Ipv4Addr, port: u16) -> bool {
        let word = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
        octets[..4] == external.octets() && (word(4)..=word(6)).contains(&port)
    }

    /// `None` if the CRC is wrong, or the kind is unknown.
    pub(crate) fn decode(octets: &[u8; RECORD]) -> Option<Self> {
        let long = |at: usize| {
            u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
        };
        let word = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
        if long(28) != crc(&octets[..28]) || octets[15] != 0 {
            return None;
        }
        Some(Self {
            kind: Kind::of(octets[14])?,
            at_ms: u64::from(word(8)) << 32 | u64::from(long(10)),
            external: long(0).into(),
            first: word(4),
            last: word(6),
            inside: long(16).into(),
            tag: u64::from(long(20)) << 32 | u64::from(long(24)),
        })
    }
}

/// CRC-32 (IEEE 802.3), by table.
pub(crate) fn crc(octets: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            let mut value = at as u32;
            let mut bit = 0;
            while bit < 8 {
                value = match value & 1 {
                    1 => value >> 1 ^ 0xedb8_8320,
                    _ => value >> 1,
                };
                bit += 1;
            }
            table[at] = value;
            at += 1;
        }
        table
    };
    !octets.iter().fold(u32::MAX, |sum, &octet| {
        TABLE[((sum ^ u32::from(octet)) & 0xff) as usize] ^ sum >> 8
    })
}
