//! Packets that are larger than a link's MTU: fragments of IPv4 (RFC 791 sections 2.3 and 3.2), or an error to the
//! sender (RFC 1191, RFC 8200 section 5). RFC 3931 section 4.1.4 asks for the same before a tunnel.
//!
//! Left out: reassembly, which the destination does, and packets of many segments (GSO), which are split before.

use wire::checksum;
use wire::ip::Header;

/// How a packet fits into an MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fit {
    /// It fits.
    Whole,
    /// Send it in fragments of at most this many bytes: [`split`].
    Split(u16),
    /// Drop it, and send its sender an error with this MTU (RFC 1191 section 4, RFC 4443 section 3.2).
    TooBig(u16),
}

/// The MTU of a link for this version of IP. Values below the IP minimum (68 bytes, RFC 791; 1280, RFC 8200 section 5)
/// are treated as the minimum; the layer below must fragment. A tunnel fragments its outer packets, and a PPP peer
/// accepts 1500 bytes whatever its MRU (RFC 1661 section 6.1).
#[inline]
#[must_use]
pub const fn usable_mtu(version: u8, mtu: u16) -> u16 {
    match version {
        4 if mtu < 68 => 68,
        4 => mtu,
        _ if mtu < 1280 => 1280,
        _ => mtu,
    }
}

/// How a packet of `length` bytes with this header fits into `mtu`. The length is [`Header::total_length`]; for a
/// packet of many segments, the length of one segment.
#[inline]
#[must_use]
pub const fn fit(header: &Header, length: u32, mtu: u16) -> Fit {
    let mtu = usable_mtu(header.version, mtu);
    if length <= mtu as u32 {
        Fit::Whole
    } else if header.dont_fragment {
        Fit::TooBig(mtu)
    } else {
        Fit::Split(mtu)
    }
}

/// A fragment: its own header, and content that is still in the packet.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    header: [u8; 60],
    header_length: u8,
    /// The bytes behind the header.
    pub content: &'a [u8],
}

impl Piece<'_> {
    /// The fragment's IPv4 header, of 20 to 60 octets.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header[..usize::from(self.header_length)]
    }

    /// Octets of the whole fragment.
    #[must_use]
    pub fn length(&self) -> usize {
        self.header().len() + self.content.len()
    }

    /// Writes the fragment to the start of `out` and returns its length. `None` if it does not fit; then nothing is
    /// written.
    pub fn write(&self, out: &mut [u8]) -> Option<usize> {
        let out = out.get_mut(..self.length())?;
        let (header, content) = out.split_at_mut(self.header().len());
        header.copy_from_slice(self.header());
        content.copy_from_slice(self.content);
        Some(self.length())
    }
}

/// Splits an IPv4 packet into fragments of at most `mtu` bytes (RFC 791 section 3.2). Each fragment but the last is as
/// long as possible. Options whose copied flag is not set are in the first one only. A fragment is split like a
/// datagram. A packet that fits gives one piece.
///
/// There are no pieces of a packet that is not IPv4, or that must not be fragmented and does not fit (see [`fit`]), and
/// none beyond the largest offset (see [`check::addresses`](crate::check::addresses)).
#[must_use]
pub fn split<'a>(header: &Header, packet: &'a [u8], mtu: u16) -> Pieces<'a> {
    let mtu = usable_mtu(4, mtu);
    whole(header, packet)
        .filter(|_| !matches!(fit(header, header.total_length, mtu), Fit::TooBig(_)))
        .map_or(Pieces::NONE, |(head, content)| {
            let mut first = [0; 60];
            first[..head.len()].copy_from_slice(head);
            Pieces {
                header: first,
                header_length: head.len() as u8,
                content,
                offset: header.fragment_offset,
                is_last: first[6] & MORE == 0,
                mtu,
                done: false,
            }
        })
}

/// The flag "more fragments" in its byte.
const MORE: u8 = 0x20;

/// The IPv4 header and what follows it. AH counts as content, which [`Header::header_length`] does not.
fn whole<'a>(header: &Header, packet: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let packet = packet.get(..header.total_length as usize)?;
    let first = *packet.first().filter(|first| **first >> 4 == 4)?;
    let length = usize::from(first & 0x0f) * 4;
    packet.split_at_checked(length).filter(|_| length >= 20)
}

/// Fragments, from the first to the last. See [`split`].
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    header: [u8; 60],
    header_length: u8,
    content: &'a [u8],
    /// Bytes of the datagram before `content`.
    offset: u16,
    /// Whether the packet is the end of its datagram.
    is_last: bool,
    mtu: u16,
    done: bool,
}

impl<'a> Pieces<'a> {
    const NONE: Pieces<'a> = Pieces {
        header: [0; 60],
        header_length: 0,
        content: &[],
        offset: 0,
        is_last: false,
        mtu: 0,
        done: true,
    };

    /// Changes the header to that of fragments other than the first.
    fn drop_options(&mut self) {
        let length = copied_options(&mut self.header, self.header_length);
        self.header_length = length;
        self.header[0] = 0x40 | (length / 4);
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.done {
            return None;
        }
        let length = usize::from(self.header_length);
        // An MTU of 68 leaves eight octets behind the longest header.
        let room = usize::from(self.mtu) - length;
        let (content, is_end) = match self.content.split_at_checked(room & !7) {
            Some((content, rest)) if self.content.len() > room => {
                self.content = rest;
                (content, false)
            }
            _ => (self.content, true),
        };
        let mut piece = Piece {
            header: self.header,
            header_length: self.header_length,
            content,
        };
        let more = !(is_end && self.is_last);
        let flags = u16::from_be_bytes([self.header[6], self.header[7]]) & 0xc000;
        let more = u16::from(more) << 13;
        let flags = flags | more | (self.offset >> 3);
        let head = &mut piece.header[..length];
        head[2..4].copy_from_slice(&((length + content.len()) as u16).to_be_bytes());
        head[6..8].copy_from_slice(&flags.to_be_bytes());
        head[10..12].fill(0);
        let sum = !checksum::sum(head);
        head[10..12].copy_from_slice(&sum.to_be_bytes());
        match self.offset.checked_add(content.len() as u16) {
            Some(offset) if !is_end => self.offset = offset,
            _ => self.done = true,
        }
        if !self.done {
            self.drop_options();
        }
        Some(piece)
    }
}

/// Moves the options to copy to the front, pads them with "end of options" to a multiple of four bytes, and returns the
/// length of the header. Options from the first one with an impossible length on are not copied.
fn copied_options(header: &mut [u8; 60], length: u8) -> u8 {
    let mut to = 20;
    let mut at = 20;
    let end = usize::from(length);
    while at < end {
        let size = match (header[at], header[..end].get(at + 1)) {
            (0, _) => break,
            (1, _) => 1,
            (_, Some(&size)) if size >= 2 && at + usize::from(size) <= end => usize::from(size),
            _ => break,
        };
        if header[at] & 0x80 != 0 {
            header.copy_within(at..at + size, to);
            to += size;
        }
        at += size;
    }
    let padded = to.next_multiple_of(4);
    header[to..padded].fill(0);
    padded as u8
}

#[cfg(test)]
mod tests;
