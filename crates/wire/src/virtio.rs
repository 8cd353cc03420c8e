//! The header that virtio places before a packet, and Linux before one on a TUN device. It describes a checksum
//! left open and a packet to be split into several (virtio 1.3, 5.1.6; `linux/virtio_net.h`). Start reading at
//! [`Header`].
//!
//! Numbers are in the machine's native byte order, the default of a TUN device. Left out: the fields for
//! receive-side coalescing, hash reports and tunnels.

/// Octets of the header.
pub const LENGTH: usize = 10;
/// Offset of the flags in the header; 0 means that the packet is complete.
pub const FLAGS: usize = 0;

const NEEDS_CHECKSUM: u8 = 1;
const ECN: u8 = 0x80;

/// What a packet left for segmentation is split into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Gso {
    /// The packet is not split.
    #[default]
    None,
    /// TCP segments over IPv4.
    TcpV4,
    /// TCP segments over IPv6.
    TcpV6,
    /// UDP datagrams, over either version.
    Udp,
    /// Another kind, such as one UDP datagram in fragments (3).
    Other(u8),
}

impl Gso {
    /// The kind with that number, ignoring the ECN bit.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        match code & !ECN {
            0 => Self::None,
            1 => Self::TcpV4,
            4 => Self::TcpV6,
            5 => Self::Udp,
            other => Self::Other(other),
        }
    }

    /// Its number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::TcpV4 => 1,
            Self::TcpV6 => 4,
            Self::Udp => 5,
            Self::Other(code) => code & !ECN,
        }
    }
}

/// The header (`struct virtio_net_hdr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Header {
    /// All flags as received; see [`Header::needs_checksum`].
    pub flags: u8,
    /// What the packet is split into.
    pub gso: Gso,
    /// The TCP segment has CWR set, which belongs only to the first segment (RFC 3168 6.1.2).
    pub ecn: bool,
    /// Octets of all headers, as a hint.
    pub header_length: u16,
    /// Octets of payload in every segment but the last.
    pub segment_size: u16,
    /// Offset at which the checksummed range starts.
    pub checksum_start: u16,
    /// Offset of the checksum field after `checksum_start`.
    pub checksum_offset: u16,
}

impl Header {
    /// Reads the header at the start of `octets`; `None` if they are shorter than [`LENGTH`].
    #[inline]
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let octets = octets.first_chunk::<LENGTH>()?;
        let word = |at: usize| u16::from_ne_bytes([octets[at], octets[at + 1]]);
        Some(Self {
            flags: octets[0],
            gso: Gso::from_code(octets[1]),
            ecn: octets[1] & ECN != 0,
            header_length: word(2),
            segment_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        })
    }

    /// Its octets.
    #[inline]
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut octets = [0; LENGTH];
        octets[0] = self.flags;
        octets[1] = self.gso.code() | if self.ecn { ECN } else { 0 };
        octets[2..4].copy_from_slice(&self.header_length.to_ne_bytes());
        octets[4..6].copy_from_slice(&self.segment_size.to_ne_bytes());
        octets[6..8].copy_from_slice(&self.checksum_start.to_ne_bytes());
        octets[8..10].copy_from_slice(&self.checksum_offset.to_ne_bytes());
        octets
    }

    /// Whether the checksum must still be completed: its field holds the sum of the pseudo header.
    #[must_use]
    pub const fn needs_checksum(&self) -> bool {
        self.flags & NEEDS_CHECKSUM != 0
    }

    /// Requests that the checksum be completed.
    #[must_use]
    pub const fn with_open_checksum(mut self, start: u16, offset: u16) -> Self {
        self.flags |= NEEDS_CHECKSUM;
        self.checksum_start = start;
        self.checksum_offset = offset;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of `linux/virtio_net.h`.
    #[test]
    fn a_header_has_its_octets_and_back() {
        let header = Header {
            gso: Gso::TcpV6,
            ecn: true,
            header_length: 60,
            segment_size: 1440,
            ..Header::default()
        }
        .with_open_checksum(40, 16);
        let words: Vec<u8> = [60_u16, 1440, 40, 16]
            .into_iter()
            .flat_map(u16::to_ne_bytes)
            .collect();
        let octets = header.emit();
        assert_eq!(octets[..2], [1, 0x84]);
        assert_eq!(octets[2..], words);
        assert_eq!(Header::parse(&octets), Some(header));
        assert!(header.needs_checksum());
        assert_eq!(Header::default().emit(), [0; LENGTH]);
    }

    #[test]
    fn every_kind_and_flag_survives_and_too_few_octets_are_none() {
        for code in 0..=u8::MAX {
            let mut octets = [0, code, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
            octets[0] = code.reverse_bits();
            let header = Header::parse(&octets).unwrap();
            assert_eq!(header.emit(), octets[..LENGTH]);
            assert_eq!(header.needs_checksum(), octets[0] & 1 != 0);
            assert_eq!(Header::parse(&octets[..LENGTH - 1]), None);
        }
        let known = [
            (0, Gso::None),
            (1, Gso::TcpV4),
            (3, Gso::Other(3)),
            (4, Gso::TcpV6),
            (5, Gso::Udp),
        ];
        for (code, gso) in known {
            assert_eq!(Gso::from_code(code), gso);
        }
    }
}
