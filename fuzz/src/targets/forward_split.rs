//! Packets from a TUN device: any bytes are opened, split, and joined again without loss.
//!
//! An input is an octet of `How`, then a virtio header and a packet.

use forward::join::{Joiner, Options};
use forward::split::{Opened, Segments, open};
use wire::checksum::{fold, sum};
use wire::ip::Header;
use wire::virtio;

use super::forward_checks::{
    cut, is_head_right, is_right, normal, open_checksum, places, repair_lengths,
};

/// How to use the input, from its first octet.
struct How(u8);

impl How {
    /// Whether lengths, the header checksum and the open checksum are corrected.
    fn is_mended(&self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the virtio header names the packet's own checksum field.
    fn is_in_place(&self) -> bool {
        self.0 & 2 != 0
    }

    /// Octets reserved before each segment.
    fn headroom(&self) -> usize {
        usize::from(self.0 >> 2)
    }
}

/// Takes an input as described above.
///
/// # Panics
/// If a segment is not a packet or has a wrong checksum, if segments do not add up to the original, or if they
/// change when joined and split again.
pub fn target(data: &[u8]) {
    let Some((&how, octets)) = data.split_first() else {
        return;
    };
    let how = How(how);
    let mut octets = octets.to_vec();
    let mut is_mended = false;
    if let Some((head, packet)) = octets.split_first_chunk_mut::<{ virtio::LENGTH }>() {
        if how.is_mended() {
            repair_lengths(packet);
            is_mended = open_checksum(packet).is_some();
        }
        if let Some(places) = places(packet).filter(|_| how.is_in_place()) {
            let header = virtio::Header::parse(head).expect("so many octets");
            let offset = places.checksum - places.transport;
            let header = header.with_open_checksum(places.transport as u16, offset as u16);
            *head = header.emit();
        }
    }
    let before = octets.clone();
    match open(&mut octets) {
        Err(_) => {}
        Ok(Opened::One(packet)) => check_one(&before, packet),
        Ok(Opened::Several(segments)) => {
            check_several(&before[virtio::LENGTH..], &segments, is_mended, &how);
        }
    }
}

/// Checks that an unsplit packet is unchanged except for its completed checksum.
fn check_one(before: &[u8], packet: &[u8]) {
    let header = virtio::Header::parse(before).expect("it was opened");
    let before = &before[virtio::LENGTH..];
    if !header.needs_checksum() {
        return assert_eq!(packet, before);
    }
    let start = usize::from(header.checksum_start);
    let at = start + usize::from(header.checksum_offset);
    assert_eq!(packet[..at], before[..at]);
    assert_eq!(packet[at + 2..], before[at + 2..]);
    // The field held the sum of the other summed data, a pseudo header's.
    if (at - start).is_multiple_of(2) {
        let besides = u16::from_be_bytes([before[at], before[at + 1]]);
        let total = u64::from(besides) + u64::from(sum(&packet[start..]));
        assert_eq!(fold(total), 0xffff);
    }
}

fn check_several(packet: &[u8], segments: &Segments<'_>, is_mended: bool, how: &How) {
    let whole = Header::read(packet).expect("it was read before");
    let packet = &packet[..whole.total_length as usize];
    assert_eq!(*segments.ip(), whole);
    let of_whole = places(packet).expect("TCP or UDP");
    let mut pieces = Vec::new();
    let mut content = Vec::new();
    for n in 0..segments.count() {
        let mut piece = Vec::new();
        let length = segments.append(n, &mut piece);
        assert_eq!((length, segments.length(n)), (Some(piece.len()), length));
        let mut other = vec![0; piece.len()];
        assert_eq!(segments.write(n, &mut other), length);
        assert_eq!(other, piece);
        let header = Header::read(&piece).expect("a segment is a packet");
        assert_eq!(header.total_length as usize, piece.len());
        assert!(is_head_right(&piece) && piece.len() <= segments.length_max());
        assert!(!is_mended || is_right(&piece), "segment {n}: {piece:02x?}");
        if of_whole.is_tcp() {
            let at = of_whole.transport + 4;
            let number =
                |octets: &[u8]| u32::from_be_bytes(std::array::from_fn(|n| octets[at + n]));
            let expected = number(packet).wrapping_add(content.len() as u32);
            assert_eq!(number(&piece), expected);
        }
        content.extend_from_slice(&piece[of_whole.payload..]);
        pieces.push(piece);
    }
    assert_eq!(content, packet[of_whole.payload..]);
    assert_eq!(segments.length(segments.count()), None);
    let layout = segments.layout(how.headroom());
    let mut all = vec![0xee; layout.octets()];
    assert_eq!(segments.write_all(how.headroom(), &mut all), Some(layout));
    for (n, piece) in pieces.iter().enumerate() {
        let place = layout.range(n).expect("it is one of them");
        let (front, octets) = all[place].split_at(how.headroom());
        assert!(octets == piece && front.iter().all(|&octet| octet == 0xee));
    }
    check_joined(&pieces);
}

/// Checks that segments are the same after they are joined and split again.
fn check_joined(pieces: &[Vec<u8>]) {
    let mut joiner = Joiner::new(Options {
        lanes: 1,
        udp: true,
    });
    let mut again = Vec::new();
    let mut emit = |octets: &[u8]| again.extend(cut(octets).0);
    for piece in pieces {
        joiner.push(piece, &mut emit);
    }
    joiner.flush(&mut emit);
    let normals = |packets: &[Vec<u8>]| -> Vec<Vec<u8>> {
        packets.iter().map(|packet| normal(packet)).collect()
    };
    assert_eq!(normals(&again), normals(pieces));
}
