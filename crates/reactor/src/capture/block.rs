//! A block of a capture ring as bytes: its frames with lengths, times, VLAN tags and interfaces (packet(7),
//! `linux/if_packet.h`, TPACKET_V3).
//!
//! This is a pure function of the bytes. The kernel wrote them, but a fault there must not become one here: each offset
//! is checked, and the frames of a block are at most as many as fit it.

/// `struct tpacket_block_desc`: version, offset of private data, status, number of frames, offset of the first.
const COUNT: usize = 12;
const FIRST: usize = 16;

/// `struct tpacket3_hdr`, and after it `struct sockaddr_ll`.
const HEADER: usize = 48;
const ADDRESS: usize = 20;

/// `ETH_P_8021Q`.
const VLAN: u16 = 0x8100;

/// A frame in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'b> {
    /// The captured bytes, without the VLAN tag that the kernel removed.
    pub bytes: &'b [u8],
    /// Length on the link in bytes, without that tag.
    pub length: u32,
    /// When the kernel saw it, in nanoseconds since 1970.
    pub time_ns: i64,
    /// The VLAN tag that the kernel removed: TPID and TCI.
    pub tag: Option<[u8; 4]>,
    /// Index of its interface.
    pub interface: u32,
    /// Link type of its interface (`ARPHRD_ETHER` and others).
    pub hardware: u16,
    /// Its EtherType, or what the kernel has in its place.
    pub protocol: u16,
    /// To whom it was sent (`PACKET_HOST`, `PACKET_OUTGOING` and others).
    pub kind: u8,
    /// The sender's link-layer address, as far as it is at most 8 bytes.
    pub address: [u8; 8],
    /// Length of that address.
    pub address_length: u8,
}

/// The frames of a block.
#[derive(Clone, Debug)]
pub(super) struct Frames<'b> {
    block: &'b [u8],
    /// Where the next one starts.
    at: usize,
    /// Frames that are still to come.
    left: u32,
    /// A frame reached beyond the block, so that the rest cannot be read.
    is_broken: bool,
}

impl<'b> Frames<'b> {
    pub(super) fn of(block: &'b [u8]) -> Self {
        let (count, first) = (word(block, COUNT), word(block, FIRST));
        Self {
            block,
            at: first.map_or(usize::MAX, |at| at as usize),
            left: count.unwrap_or(0),
            is_broken: false,
        }
    }

    /// Frames of the block that could not be read, once the others have been returned.
    pub(super) fn unreadable(&self) -> u32 {
        if self.is_broken { self.left } else { 0 }
    }

    fn read(&self) -> Option<(Frame<'b>, usize)> {
        let head = self
            .block
            .get(self.at..)?
            .split_at_checked(HEADER + ADDRESS)?
            .0;
        let number = |at: usize| word(head, at);
        let short = |at: usize| half(head, at);
        let (next, snapped, status) = (number(0)?, number(12)? as usize, number(20)?);
        let start = self.at.checked_add(usize::from(short(24)?))?;
        let bytes = self.block.get(start..start.checked_add(snapped)?)?;
        let seconds = i64::from(number(4)?);
        let is_tagged = status & libc::TP_STATUS_VLAN_VALID != 0;
        let tag = is_tagged.then_some((number(32)? as u16, short(36)?));
        let (_, address) = head.split_at(HEADER);
        let frame = Frame {
            bytes,
            length: number(16)?,
            time_ns: seconds * 1_000_000_000 + i64::from(number(8)?),
            tag: tag.map(|(tci, tpid)| {
                let is_named = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                let tpid = if is_named { tpid } else { VLAN };
                let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
                [a, b, c, d]
            }),
            protocol: half(address, 2)?.to_be(),
            interface: word(address, 4)?,
            hardware: half(address, 8)?,
            kind: address[10],
            address_length: address[11],
            address: *address.get(12..)?.first_chunk()?,
        };
        Some((frame, next as usize))
    }
}

impl<'b> Iterator for Frames<'b> {
    type Item = Frame<'b>;

    fn next(&mut self) -> Option<Frame<'b>> {
        if self.left == 0 || self.is_broken {
            return None;
        }
        let Some((frame, next)) = self.read() else {
            self.is_broken = true;
            return None;
        };
        self.left -= 1;
        // Frames never overlap their own headers, so that no block has more frames than fit it.
        match self.at.checked_add(next) {
            Some(at) if next >= HEADER => self.at = at,
            _ => self.at = usize::MAX,
        }
        Some(frame)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Offset of a frame from its header.
    const MAC: usize = 82;

    /// TPID and TCI.
    type Tag = (u16, u16);

    /// A block as the kernel lays it out: each frame with its payload and, perhaps, a VLAN tag.
    fn block(frames: &[(&[u8], Option<Tag>)]) -> Vec<u8> {
        let mut block = vec![0; 48];
        let put = |block: &mut Vec<u8>, at: usize, bytes: &[u8]| {
            block[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(&mut block, COUNT, &(frames.len() as u32).to_ne_bytes());
        put(&mut block, FIRST, &48_u32.to_ne_bytes());
        for (number, (bytes, tag)) in frames.iter().enumerate() {
            let at = block.len();
            let length = (MAC + bytes.len()).next_multiple_of(16);
            block.resize(at + length, 0);
            let next = if number + 1 == frames.len() {
                0
            } else {
                length
            };
            let mut status = libc::TP_STATUS_USER;
            if let Some((tpid, tci)) = tag {
                status |= libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
                put(&mut block, at + 32, &u32::from(*tci).to_ne_bytes());
                put(&mut block, at + 36, &tpid.to_ne_bytes());
            }
            let words = [
                next as u32,
                1_700_000_000,
                number as u32,
                bytes.len() as u32,
            ];
            for (place, word) in words.into_iter().enumerate() {
                put(&mut block, at + 4 * place, &word.to_ne_bytes());
            }
            put(&mut block, at + 16, &1_500_u32.to_ne_bytes());
            put(&mut block, at + 20, &status.to_ne_bytes());
            put(&mut block, at + 24, &(MAC as u16).to_ne_bytes());
            put(&mut block, at + HEADER + 2, &0x0800_u16.to_be_bytes());
            put(&mut block, at + HEADER + 4, &7_u32.to_ne_bytes());
            put(
                &mut block,
                at + HEADER + 8,
                &libc::ARPHRD_ETHER.to_ne_bytes(),
            );
            block[at + HEADER + 10] = libc::PACKET_OUTGOING;
            put(&mut block, at + MAC, bytes);
        }
        block
    }

    #[test]
    fn frames_have_their_bytes_times_and_tags() {
        let bytes = block(&[
            (b"first", None),
            (b"", None),
            (b"third", Some((0x88a8, 0x6005))),
        ]);
        let mut frames = Frames::of(&bytes);
        let first = frames.next().unwrap();
        assert_eq!((first.bytes, first.length), (&b"first"[..], 1_500));
        assert_eq!((first.protocol, first.interface), (0x0800, 7));
        assert_eq!((first.hardware, first.kind), (1, libc::PACKET_OUTGOING));
        assert_eq!(first.tag, None);
        assert_eq!(frames.next().unwrap().bytes, b"");
        let third = frames.next().unwrap();
        // IEEE 802.1Q 9.6: TPID, then priority 3 and VLAN 5.
        assert_eq!(third.tag, Some([0x88, 0xa8, 0x60, 5]));
        assert_eq!(third.time_ns, 1_700_000_000_000_000_002);
        assert_eq!((frames.next(), frames.unreadable()), (None, 0));
    }

    #[test]
    fn a_frame_beyond_the_block_ends_it_and_the_rest_is_counted() {
        let whole = block(&[(b"first", None), (b"second", None), (b"third", None)]);
        let second = 48 + (MAC + 5).next_multiple_of(16);
        for (at, value) in [
            (second, 8_u32),
            (second, u32::MAX),
            (second + 12, 1 << 20),
            (second + 12, u32::MAX),
        ] {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
            let mut frames = Frames::of(&bytes);
            let count = frames.by_ref().count() as u32;
            assert!((1..=2).contains(&count));
            assert_eq!(count + frames.unreadable(), 3);
        }
    }

    proptest! {
        #[test]
        fn any_block_ends(mut bytes in prop::collection::vec(any::<u8>(), 0..2_000), first in 0..64_u32) {
            if let Some(place) = bytes.get_mut(FIRST..FIRST + 4) {
                place.copy_from_slice(&first.to_ne_bytes());
            }
            prop_assert!(Frames::of(&bytes).count() <= bytes.len() / HEADER + 1);
        }

        #[test]
        fn any_change_of_a_good_block_ends(at in 0..300_usize, value in any::<u8>()) {
            let mut bytes = block(&[(b"one", None), (b"two", Some((0x8100, 1))), (b"three", None)]);
            if let Some(place) = bytes.get_mut(at) {
                *place = value;
            }
            let count = Frames::of(&bytes).count();
            prop_assert!(count <= bytes.len() / HEADER);
        }
    }
}
