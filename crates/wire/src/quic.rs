//! QUIC packet headers, as far as they are not protected (RFC 8999, 9000 17, 9369 3).
//!
//! Left out: what is under header protection (packet numbers, key phase), and the frames of other packets than Initial
//! ones.

/// QUIC version 1 (RFC 9000) and version 2 (RFC 9369).
pub const VERSION_1: u32 = 1;
/// See [`VERSION_1`].
pub const VERSION_2: u32 = 0x6b33_43cf;

/// The longest connection ID of these versions (RFC 9000 17.2).
pub const ID_MAX: usize = 20;

/// The type of a packet with a long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It starts a connection.
    Initial,
    /// Data of the client before the handshake.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// The server wants a proof of the client's address.
    Retry,
    /// The server lists its versions.
    VersionNegotiation,
    /// The packet is of another version, whose types are unknown.
    Unknown,
}

/// A long header (RFC 9000 17.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Long<'a> {
    /// The packet's type.
    pub kind: Kind,
    /// The version; 0 in a version negotiation.
    pub version: u32,
    /// The receiver's connection ID.
    pub destination: &'a [u8],
    /// The sender's connection ID.
    pub source: &'a [u8],
    /// Octets before the packet number; 0 if the packet has none, or the version is unknown.
    pub number_at: usize,
    /// Octets of the whole packet; further packets may follow in the datagram.
    pub length: usize,
}

/// A packet of QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// With a long header.
    Long(Long<'a>),
    /// With a short header, of an established connection (RFC 9000 17.3).
    Short {
        /// The latency spin bit (RFC 9000 17.4).
        spin: bool,
    },
}

impl<'a> Packet<'a> {
    /// Reads the packet that a datagram, or the rest of one, begins with. `None` if it cannot be QUIC.
    #[must_use]
    pub fn parse(octets: &'a [u8]) -> Option<Packet<'a>> {
        const LONG: u8 = 0x80;
        const FIXED: u8 = 0x40;
        const SPIN: u8 = 0x20;
        let &first = octets.first()?;
        if first & LONG != 0 {
            return long(first, octets).map(Packet::Long);
        }
        let spin = first & SPIN != 0;
        (first & FIXED != 0 && octets.len() > 1).then_some(Packet::Short { spin })
    }
}

fn long(first: u8, octets: &[u8]) -> Option<Long<'_>> {
    let version = u32::from_be_bytes(*octets.get(1..)?.first_chunk()?);
    let (destination, rest) = identifier(octets.get(5..)?)?;
    let (source, rest) = identifier(rest)?;
    let mut long = Long {
        kind: kind(version, first),
        version,
        destination,
        source,
        number_at: 0,
        length: octets.len(),
    };
    if !matches!(long.kind, Kind::VersionNegotiation | Kind::Unknown) && first & 0x40 == 0 {
        return None;
    }
    let rest = match long.kind {
        Kind::Initial => {
            let (length, rest) = varint(rest)?;
            rest.get(usize::try_from(length).ok()?..)?
        }
        Kind::ZeroRtt | Kind::Handshake => rest,
        Kind::Retry | Kind::VersionNegotiation | Kind::Unknown => return Some(long),
    };
    let (length, rest) = varint(rest)?;
    long.number_at = octets.len() - rest.len();
    // A capture may have cut the datagram.
    let end = (long.number_at as u64).saturating_add(length);
    long.length = usize::try_from(end).ok()?.min(octets.len());
    Some(long)
}

fn kind(version: u32, first: u8) -> Kind {
    let types = [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry];
    let code = usize::from(first >> 4 & 3);
    match version {
        0 => Kind::VersionNegotiation,
        VERSION_1 => types[code],
        // RFC 9369 3.2: Retry is 0, Initial 1.
        VERSION_2 => types[(code + 3) % 4],
        _ => Kind::Unknown,
    }
}

fn identifier(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = octets.split_first()?;
    let length = usize::from(length);
    (length <= ID_MAX).then(|| rest.split_at_checked(length))?
}

/// A number of one to eight octets (RFC 9000 16), and the octets after it.
#[must_use]
pub fn varint(octets: &[u8]) -> Option<(u64, &[u8])> {
    let &first = octets.first()?;
    let (head, rest) = octets.split_at_checked(1 << (first >> 6))?;
    let value = head
        .iter()
        .fold(0, |sum, &octet| sum << 8 | u64::from(octet));
    let bits = 8 * head.len() as u32 - 2;
    Some((value & (u64::MAX >> (64 - bits)), rest))
}

/// A piece of the cryptographic handshake: its offset and its octets (RFC 9000 19.6).
pub type Crypto<'a> = (u64, &'a [u8]);

/// The CRYPTO frames of an Initial packet's payload, up to the first frame that is malformed or that no Initial packet has.
#[derive(Debug, Clone)]
pub struct CryptoFrames<'a> {
    payload: &'a [u8],
}

impl<'a> CryptoFrames<'a> {
    /// The frames of a payload.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> CryptoFrames<'a> {
        CryptoFrames { payload }
    }

    /// After the last frame: whether the whole payload was one of an Initial packet (RFC 9000 12.4).
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.payload.is_empty()
    }
}

impl<'a> Iterator for CryptoFrames<'a> {
    type Item = Crypto<'a>;

    fn next(&mut self) -> Option<Crypto<'a>> {
        loop {
            let (&kind, rest) = self.payload.split_first()?;
            self.payload = match kind {
                // PADDING and PING.
                0 | 1 => rest,
                2 | 3 => acknowledgment(kind, rest)?,
                6 => {
                    let (offset, rest) = varint(rest)?;
                    let (length, rest) = varint(rest)?;
                    let (octets, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                    self.payload = rest;
                    return Some((offset, octets));
                }
                0x1c => close(rest)?,
                _ => return None,
            }
        }
    }
}

/// Skips a CONNECTION_CLOSE frame: error, frame type and reason (RFC 9000 19.19).
fn close(octets: &[u8]) -> Option<&[u8]> {
    let (_error, rest) = varint(octets)?;
    let (_kind, rest) = varint(rest)?;
    let (length, rest) = varint(rest)?;
    rest.get(usize::try_from(length).ok()?..)
}

/// Skips an ACK frame (RFC 9000 19.3).
fn acknowledgment(kind: u8, octets: &[u8]) -> Option<&[u8]> {
    let (_largest, rest) = varint(octets)?;
    let (_delay, rest) = varint(rest)?;
    let (ranges, rest) = varint(rest)?;
    // The first range, then a gap and a range each; with ECN, three counts.
    let numbers = ranges
        .checked_mul(2)?
        .checked_add(if kind == 3 { 4 } else { 1 })?;
    if numbers > rest.len() as u64 {
        return None;
    }
    (0..numbers).try_fold(rest, |rest, _| varint(rest).map(|(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_those_of_rfc_9000_appendix_a() {
        for (octets, expected) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            assert_eq!(varint(octets), Some((expected, &[][..])));
            assert_eq!(varint(&octets[..octets.len() - 1]), None);
        }
    }

    #[test]
    fn the_headers_of_rfc_9001_appendix_a_are_read() {
        let client = [
            0xc0, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0, 0, 0x44, 0x9e,
            0x7b, 0x9a, 0xec, 0x34,
        ];
        let Some(Packet::Long(long)) = Packet::parse(&client) else {
            panic!("a long header")
        };
        assert_eq!(
            (long.kind, long.version, long.number_at),
            (Kind::Initial, 1, 18)
        );
        assert_eq!(
            long.destination,
            [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]
        );
        let retry = [
            0xff, 0, 0, 0, 1, 0, 8, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5, 0x74,
        ];
        let Some(Packet::Long(long)) = Packet::parse(&retry) else {
            panic!("a long header")
        };
        assert_eq!((long.kind, long.source.len()), (Kind::Retry, 8));
        assert_eq!(
            Packet::parse(&[0x61, 1]),
            Some(Packet::Short { spin: true })
        );
        assert_eq!(Packet::parse(&[0x21, 1]), None);
    }

    #[test]
    fn frames_of_a_handshake_are_found_among_others() {
        let payload = [
            0, 1, 6, 0, 2, b'a', b'b', 2, 0, 0, 0, 0, 6, 2, 1, b'c', 0, 0x1c, 10, 6, 2, b'n', b'o',
            // STREAM, which no Initial packet has.
            8, 6, 0, 0,
        ];
        let mut frames = CryptoFrames::new(&payload[..23]);
        assert_eq!(
            frames.by_ref().collect::<Vec<_>>(),
            [(0, &b"ab"[..]), (2, b"c")]
        );
        assert!(frames.is_whole());
        for wrong in [&payload[..22], &payload[..27]] {
            let mut frames = CryptoFrames::new(wrong);
            assert_eq!(frames.by_ref().count(), 2);
            assert!(!frames.is_whole());
        }
    }

    proptest! {
        #[test]
        fn no_octets_cause_a_panic(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(Packet::Long(long)) = Packet::parse(&octets) {
                prop_assert!(long.length <= octets.len() && long.number_at <= long.length.max(long.number_at));
            }
            CryptoFrames::new(&octets).for_each(drop);
        }
    }
}
