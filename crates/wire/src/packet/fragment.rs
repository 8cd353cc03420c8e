//! The place of a fragment in its IP packet (RFC 791 3.1, RFC 8200 4.5). Left out: the reassembly. Start reading at
//! [`Packet::piece`].

use super::{Fragment, Packet};
use crate::ip::{FRAGMENT, extension_length, is_extension};

/// A fragment's part of the payload of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The identification, of 16 bits for IPv4 and of 32 bits for IPv6.
    pub id: u32,
    /// Offset of its first octet.
    pub offset: u32,
    /// Octets as sent.
    pub length: u32,
    /// Further fragments follow this one.
    pub more: bool,
    /// The captured bytes.
    pub octets: &'a [u8],
    /// Offset, in the IP packet, of the octet that names the protocol (IPv4) or the fragment header (IPv6).
    pub next_header: usize,
}

impl<'a> Packet<'a> {
    /// The place of a fragment. `None` if it is not a fragment, or if headers precede the transport header in the
    /// fragmented part, so that its later fragments do not show their protocol.
    #[must_use]
    pub fn piece(&self) -> Option<Piece<'a>> {
        let piece = match (self.fragment, self.version) {
            (Fragment::Whole, _) => return None,
            (_, 4) => ipv4(self.network)?,
            _ => ipv6(self.network)?,
        };
        (piece.octets.len() == self.transport.len()).then_some(piece)
    }
}

fn ipv4(network: &[u8]) -> Option<Piece<'_>> {
    let head = network.first_chunk::<20>()?;
    let header = usize::from(head[0] & 0x0f) * 4;
    let total = u16::from_be_bytes([head[2], head[3]]);
    let flags = u16::from_be_bytes([head[6], head[7]]);
    Some(Piece {
        id: u16::from_be_bytes([head[4], head[5]]).into(),
        offset: u32::from(flags & 0x1fff) * 8,
        length: u32::from(total).checked_sub(header as u32)?,
        more: flags & 0x2000 != 0,
        octets: network.get(header..).unwrap_or(&[]),
        next_header: 9,
    })
}

fn ipv6(network: &[u8]) -> Option<Piece<'_>> {
    let (head, mut octets) = network.split_first_chunk::<40>()?;
    let mut length = u32::from(u16::from_be_bytes([head[4], head[5]]));
    let mut protocol = head[6];
    let mut next_header = 6;
    while is_extension(protocol) {
        let header = octets.first_chunk::<8>()?;
        let size = extension_length(protocol, header[1]);
        let at = network.len() - octets.len();
        octets = octets.get(size..)?;
        length = length.checked_sub(size as u32)?;
        if protocol == FRAGMENT {
            let place = u16::from_be_bytes([header[2], header[3]]);
            return Some(Piece {
                id: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
                offset: u32::from(place & 0xfff8),
                length,
                more: place & 1 != 0,
                octets,
                next_header,
            });
        }
        (protocol, next_header) = (header[0], at);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkType;
    use crate::packet::decode;

    fn decoded(link: LinkType, bytes: &[u8]) -> Packet<'_> {
        let mut packet = Packet::new();
        decode(link, bytes, bytes.len() as u32, &mut packet).unwrap();
        packet
    }

    /// Asserts the place of a fragment that others follow.
    fn assert_piece(
        packet: &Packet<'_>,
        (id, offset, length): (u32, u32, u32),
        octets: &[u8],
        next_header: usize,
    ) {
        let piece = Piece {
            id,
            offset,
            length,
            more: true,
            octets,
            next_header,
        };
        assert_eq!(packet.piece(), Some(piece));
    }

    #[test]
    fn fragments_of_ipv4_have_a_place() {
        let mut bytes = vec![0x46, 0, 0, 40, 0x12, 0x34, 0x20, 0x02, 64, 6, 0, 0];
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 1]);
        bytes.extend([7; 12]);
        let packet = decoded(LinkType::IPV4, &bytes);
        assert_piece(&packet, (0x1234, 16, 16), &[7; 12], 9);
        bytes[6] = 0;
        bytes[7] = 0;
        assert_eq!(decoded(LinkType::IPV4, &bytes).piece(), None);
    }

    #[test]
    fn fragments_of_ipv6_have_a_place_after_the_extension_headers() {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 8 + 8 + 24, 0, 64];
        bytes.extend([1; 32]);
        bytes.extend([FRAGMENT, 0, 1, 4, 0, 0, 0, 0]);
        bytes.extend([6, 0, 0x10, 0x01, 0xde, 0xad, 0xbe, 0xef]);
        bytes.extend([9; 24]);
        let packet = decoded(LinkType::IPV6, &bytes);
        assert_piece(&packet, (0xdead_beef, 0x1000, 24), &[9; 24], 40);
        // The first fragment has destination options before its transport header.
        bytes[48] = 60;
        bytes[50..52].copy_from_slice(&[0, 1]);
        bytes[56..64].copy_from_slice(&[6, 0, 1, 4, 0, 0, 0, 0]);
        let packet = decoded(LinkType::IPV6, &bytes);
        assert_eq!((packet.protocol, packet.piece()), (6, None));
    }
}
