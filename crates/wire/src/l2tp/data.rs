//! Data messages: RFC 2661 3.1 and, over UDP, RFC 3931 4.1.2.1 with the
//! cookie of 4.1 and the Default L2-Specific Sublayer of 4.6.

use super::header::{FLAG_L, FLAG_O, FLAG_P, FLAG_S, ParseError, Version};

/// Octets before the cookie of a v3 data message over UDP.
pub const DATA_V3_HEADER_LEN: usize = 8;

/// Octets of the Default L2-Specific Sublayer, RFC 3931 4.6.
pub const SUBLAYER_LEN: usize = 4;

/// A v2 data message. Each optional field records whether its flag was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataV2<'a> {
    /// The recipient's Tunnel ID.
    pub tunnel: u16,
    /// The recipient's Session ID.
    pub session: u16,
    /// L bit: the Length field is present.
    pub with_length: bool,
    /// P bit: preferential treatment in local queues.
    pub priority: bool,
    /// S bit: Ns and Nr; Nr is to be ignored on receipt.
    pub sequence: Option<(u16, u16)>,
    /// O bit: Offset Size, the octets of padding before the payload.
    pub offset: Option<u16>,
    /// The PPP frame, without flags and FCS.
    pub payload: &'a [u8],
}

impl<'a> DataV2<'a> {
    pub(super) fn parse(flags: u16, datagram: &'a [u8]) -> Result<Self, ParseError> {
        let with_length = flags & FLAG_L != 0;
        let mut at = 2;
        let (message, short) = if with_length {
            let length = usize::from(next_u16(datagram, &mut at).ok_or(ParseError::Truncated)?);
            let message = datagram.get(..length).ok_or(ParseError::Truncated)?;
            (message, ParseError::BadLength)
        } else {
            (datagram, ParseError::Truncated)
        };
        let mut next = || next_u16(message, &mut at).ok_or(short);
        let tunnel = next()?;
        let session = next()?;
        let sequence = if flags & FLAG_S != 0 {
            Some((next()?, next()?))
        } else {
            None
        };
        let offset = if flags & FLAG_O != 0 {
            Some(next()?)
        } else {
            None
        };
        let start = at + usize::from(offset.unwrap_or(0));
        Ok(DataV2 {
            tunnel,
            session,
            with_length,
            priority: flags & FLAG_P != 0,
            sequence,
            offset,
            payload: message.get(start..).ok_or(ParseError::BadOffset)?,
        })
    }

    /// Length of the header in octets, including the offset padding, as [`DataV2::emit`] writes it.
    #[must_use]
    pub fn header_len(&self) -> usize {
        6 + 2 * usize::from(self.with_length)
            + 4 * usize::from(self.sequence.is_some())
            + self.offset.map_or(0, |pad| 2 + usize::from(pad))
    }

    /// Appends header and payload; the offset padding is zeros.
    ///
    /// A message too long for the Length field is sent without that field.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let length = u16::try_from(self.header_len() + self.payload.len()).ok();
        let length = length.filter(|_| self.with_length);
        let mut flags = u16::from(Version::V2.number());
        for (set, flag) in [
            (length.is_some(), FLAG_L),
            (self.sequence.is_some(), FLAG_S),
            (self.offset.is_some(), FLAG_O),
            (self.priority, FLAG_P),
        ] {
            flags |= if set { flag } else { 0 };
        }
        out.reserve(self.header_len() + self.payload.len());
        out.extend_from_slice(&flags.to_be_bytes());
        if let Some(length) = length {
            out.extend_from_slice(&length.to_be_bytes());
        }
        out.extend_from_slice(&self.tunnel.to_be_bytes());
        out.extend_from_slice(&self.session.to_be_bytes());
        if let Some((ns, nr)) = self.sequence {
            out.extend_from_slice(&ns.to_be_bytes());
            out.extend_from_slice(&nr.to_be_bytes());
        }
        if let Some(offset) = self.offset {
            out.extend_from_slice(&offset.to_be_bytes());
            out.resize(out.len() + usize::from(offset), 0);
        }
        out.extend_from_slice(self.payload);
    }
}

/// Reads the two octets at `at` and advances `at` past them.
fn next_u16(message: &[u8], at: &mut usize) -> Option<u16> {
    let &field = message.get(*at..)?.first_chunk()?;
    *at += 2;
    Some(u16::from_be_bytes(field))
}

/// A v3 data message over UDP. Only the session's owner knows how long the cookie and the sublayer after the
/// Session ID are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataV3<'a> {
    /// The recipient's Session ID.
    pub session: u32,
    /// Cookie, L2-Specific Sublayer and frame.
    pub rest: &'a [u8],
}

impl<'a> DataV3<'a> {
    pub(super) fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let Some((header, rest)) = datagram.split_first_chunk::<DATA_V3_HEADER_LEN>() else {
            return Err(ParseError::Truncated);
        };
        let session = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        Ok(DataV3 { session, rest })
    }

    /// Splits [`DataV3::rest`] into the cookie and the remaining octets.
    ///
    /// `cookie_len` is 0, 4 or 8: the length of the cookie that the recipient assigned (RFC 3931 5.4.4). `None`
    /// if the message is shorter.
    #[must_use]
    pub fn cookie(&self, cookie_len: usize) -> Option<(&'a [u8], &'a [u8])> {
        self.rest.split_at_checked(cookie_len)
    }
}

/// The Default L2-Specific Sublayer, RFC 3931 4.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sublayer {
    /// The 24-bit Sequence Number, present when the S bit is set.
    pub sequence: Option<u32>,
}

impl Sublayer {
    /// Splits the sublayer from the frame after it; `None` if there are fewer than [`SUBLAYER_LEN`] octets.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<(Self, &[u8])> {
        let (&word, frame) = octets.split_first_chunk::<SUBLAYER_LEN>()?;
        let word = u32::from_be_bytes(word);
        let sequence = (word & 0x4000_0000 != 0).then_some(word & 0x00ff_ffff);
        Some((Sublayer { sequence }, frame))
    }

    /// The encoded sublayer; the sequence number is taken modulo 2^24.
    #[must_use]
    pub fn emit(self) -> [u8; SUBLAYER_LEN] {
        self.sequence
            .map_or(0, |n| 0x4000_0000 | n & 0x00ff_ffff)
            .to_be_bytes()
    }
}

/// The most octets that [`write_data_v2`] and [`write_data_v3`] write.
pub const DATA_HEADER_MAX: usize = DATA_V3_HEADER_LEN + 8 + SUBLAYER_LEN;

/// Writes the shortest header of a v2 data message, with Ns if given; returns its length in octets.
pub fn write_data_v2(
    out: &mut [u8; DATA_HEADER_MAX],
    tunnel: u16,
    session: u16,
    sequence: Option<u16>,
) -> usize {
    let flags = if sequence.is_some() { FLAG_S } else { 0 } | u16::from(Version::V2.number());
    let words = [flags, tunnel, session, sequence.unwrap_or(0), 0];
    for (place, word) in out.chunks_exact_mut(2).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    if sequence.is_some() { 10 } else { 6 }
}

/// Writes everything before the frame of a v3 data message over UDP; returns its length in octets. `cookie` has
/// at most 8 octets.
pub fn write_data_v3(
    out: &mut [u8; DATA_HEADER_MAX],
    session: u32,
    cookie: &[u8],
    sublayer: Option<Sublayer>,
) -> usize {
    out[..4].copy_from_slice(&(u32::from(Version::V3.number()) << 16).to_be_bytes());
    out[4..DATA_V3_HEADER_LEN].copy_from_slice(&session.to_be_bytes());
    let mut length = DATA_V3_HEADER_LEN + cookie.len();
    out[DATA_V3_HEADER_LEN..length].copy_from_slice(cookie);
    if let Some(sublayer) = sublayer {
        out[length..length + SUBLAYER_LEN].copy_from_slice(&sublayer.emit());
        length += SUBLAYER_LEN;
    }
    length
}

/// Appends a v3 data message over UDP: session header, the recipient's `cookie` (0, 4 or 8 octets), the
/// sublayer if the recipient requested it, and the frame.
pub fn emit_data_v3(
    out: &mut Vec<u8>,
    session: u32,
    cookie: &[u8],
    sublayer: Option<Sublayer>,
    frame: &[u8],
) {
    out.reserve(DATA_V3_HEADER_LEN + cookie.len() + SUBLAYER_LEN + frame.len());
    out.extend_from_slice(&u32::to_be_bytes(u32::from(Version::V3.number()) << 16));
    out.extend_from_slice(&session.to_be_bytes());
    out.extend_from_slice(cookie);
    if let Some(sublayer) = sublayer {
        out.extend_from_slice(&sublayer.emit());
    }
    out.extend_from_slice(frame);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l2tp::{Packet, parse};

    fn v2(datagram: &[u8]) -> Result<DataV2<'_>, ParseError> {
        match parse(datagram)? {
            Packet::DataV2(data) => Ok(data),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_part_of_a_v2_header_is_refused() {
        let all = [0x4b, 2, 0, 14, 0, 1, 0, 2, 0, 3, 0, 4, 0, 0];
        assert!(v2(&all).is_ok());
        for len in 0..all.len() {
            assert_eq!(v2(&all[..len]), Err(ParseError::Truncated), "{len} octets");
        }
        let without_length = [0x0b, 2, 0, 1, 0, 2, 0, 3, 0, 4, 0, 0];
        assert!(v2(&without_length).is_ok());
        for len in 0..without_length.len() {
            assert_eq!(
                v2(&without_length[..len]),
                Err(ParseError::Truncated),
                "{len} octets"
            );
        }
    }

    #[test]
    fn a_v2_length_bounds_the_payload() {
        let datagram = [0x40, 2, 0, 10, 0, 1, 0, 2, 0xaa, 0xbb, 0xcc];
        assert_eq!(
            v2(&datagram).map(|data| data.payload),
            Ok(&[0xaa, 0xbb][..])
        );
    }

    #[test]
    fn a_v2_length_smaller_than_its_header_is_refused() {
        for length in 0..14 {
            let datagram = [0x4b, 2, 0, length, 0, 1, 0, 2, 0, 3, 0, 4, 0, 0];
            assert_eq!(v2(&datagram), Err(ParseError::BadLength), "Length {length}");
        }
    }

    #[test]
    fn a_v2_offset_past_the_end_is_refused() {
        let with_offset = |offset| [0x02, 2, 0, 1, 0, 2, 0, offset, 0, 0];
        assert_eq!(v2(&with_offset(2)).map(|data| data.payload), Ok(&[][..]));
        assert_eq!(v2(&with_offset(3)), Err(ParseError::BadOffset));
    }

    #[test]
    fn a_v2_message_too_long_for_its_length_goes_without_one() {
        let payload = vec![0; 65_530];
        let data = DataV2 {
            with_length: true,
            payload: &payload,
            ..DataV2::default()
        };
        let mut out = Vec::new();
        data.emit(&mut out);
        assert_eq!(out.len(), 6 + payload.len());
        assert_eq!(
            v2(&out),
            Ok(DataV2 {
                with_length: false,
                ..data
            })
        );
    }

    #[test]
    fn a_v3_message_shorter_than_cookie_or_sublayer_is_refused() {
        let Ok(Packet::DataV3(data)) = parse(&[0, 3, 0, 0, 0, 0, 0, 1, 9, 9, 9]) else {
            panic!("a v3 data message")
        };
        assert_eq!(data.cookie(0), Some((&[][..], &[9, 9, 9][..])));
        assert_eq!(data.cookie(4), None);
        assert_eq!(Sublayer::parse(data.rest), None);
        assert_eq!(parse(&[0, 3, 0, 0, 0, 0, 0]), Err(ParseError::Truncated));
    }

    #[test]
    fn a_sequence_number_counts_modulo_2_to_the_24() {
        let sublayer = Sublayer {
            sequence: Some(0x0100_0005),
        };
        assert_eq!(sublayer.emit(), [0x40, 0, 0, 5]);
    }

    #[test]
    fn a_sequence_number_without_the_s_bit_is_ignored() {
        let read = Sublayer::parse(&[0xbf, 1, 2, 3]);
        assert_eq!(read, Some((Sublayer { sequence: None }, &[][..])));
    }
}
