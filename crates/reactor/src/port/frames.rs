//! Slots for frames that wait.

use super::Cut;

/// Bytes before a received frame: room to put a VLAN tag back, and such that the IP header is aligned to a cache
/// line.
const HEADROOM: usize = 50;

/// Bytes of a slot, for frames of common size and for jumbo frames.
const SMALL: usize = 2_048;
const JUMBO: usize = 10_240;

/// No slot.
const NONE: u32 = u32::MAX;

/// Slots for frames that are yet to be cut; their handles have the highest bit.
const LARGE_MAX: usize = 128;
const LARGE: u32 = 1 << 31;

/// Bytes of such a slot: the longest IP packet, and Ethernet's header.
const LARGE_BYTES: usize = 65_535 + 14;

/// A checksum that is not computed yet. It covers the bytes from `start` on, and belongs `offset` bytes after
/// `start`, where the pseudo-header's sum is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpenChecksum {
    /// The start of the covered bytes in the frame.
    pub start: u16,
    /// The place of the checksum, counted from there.
    pub offset: u16,
}

/// How the interface is to cut a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Uncut {
    /// The kind and size of the segments.
    pub cut: Cut,
    /// Whether the frame's IP header is IPv6's.
    pub is_v6: bool,
    /// Whether only the first segment keeps TCP's flag CWR.
    pub has_cwr: bool,
    /// Bytes of all headers.
    pub headers: u16,
    /// The checksum of each segment.
    pub checksum: OpenChecksum,
}

/// A slot of a frame that is yet to be cut.
#[derive(Debug, Default)]
struct LargeSlot {
    /// Allocated on first use.
    octets: Vec<u8>,
    length: usize,
    uncut: Option<Uncut>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The start of the frame.
    start: u16,
    length: u16,
    checksum: Option<OpenChecksum>,
    /// The next free slot.
    next: u32,
}

/// Slots for frames, named by handles. All have the same size, except those of frames that are yet to be cut. Memory is
/// used only as far as slots ever were.
#[derive(Debug)]
pub struct Frames {
    octets: Vec<u8>,
    slots: Vec<Slot>,
    size: usize,
    free: u32,
    limit: u32,
    used: u32,
    large: Vec<LargeSlot>,
    large_free: Vec<u32>,
}

impl Frames {
    /// Slots for `limit` frames of links with an MTU of `mtu` bytes; jumbo frames of up to 10,000 bytes.
    #[must_use]
    pub fn new(limit: u32, mtu: u32) -> Self {
        // Room for two more VLAN tags.
        let small = SMALL - HEADROOM - 14 - 8;
        let size = if mtu as usize <= small { SMALL } else { JUMBO };
        let limit = limit.clamp(1, LARGE - 1);
        Self {
            // Zeroed memory, which the system allocates on the first write.
            octets: vec![0; limit as usize * size],
            slots: Vec::new(),
            size,
            free: NONE,
            limit,
            used: 0,
            large: Vec::new(),
            large_free: Vec::new(),
        }
    }

    /// Bytes of the longest frame that fits a slot.
    #[must_use]
    pub fn frame_max(&self) -> usize {
        self.size - HEADROOM
    }

    /// Slots in use.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Slots in all.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Takes a slot, with an empty frame; `None` if all are in use.
    pub fn take(&mut self) -> Option<u32> {
        let slot = Slot {
            start: HEADROOM as u16,
            length: 0,
            checksum: None,
            next: NONE,
        };
        let handle = if self.free == NONE {
            let handle = u32::try_from(self.slots.len()).ok()?;
            if handle >= self.limit {
                return None;
            }
            self.slots.push(slot);
            handle
        } else {
            let handle = self.free;
            let place = &mut self.slots[handle as usize];
            self.free = place.next;
            *place = slot;
            handle
        };
        self.used += 1;
        Some(handle)
    }

    /// Takes a slot for a frame that the interface is to cut, which `fill` writes: it gets the room and returns the
    /// bytes used. `None` if all such slots are in use, or `fill` returns none.
    pub fn take_uncut(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Option<(usize, Uncut)>,
    ) -> Option<u32> {
        if self.large_free.is_empty() && self.large.len() < LARGE_MAX {
            self.large_free.push(self.large.len() as u32);
            self.large.push(LargeSlot::default());
        }
        let index = *self.large_free.last()?;
        let slot = &mut self.large[index as usize];
        slot.octets.resize(LARGE_BYTES, 0);
        let (length, uncut) = fill(&mut slot.octets)?;
        slot.length = length.min(LARGE_BYTES);
        slot.uncut = Some(uncut);
        self.large_free.pop();
        Some(index | LARGE)
    }

    /// How the interface is to cut the frame in a slot.
    #[must_use]
    pub fn uncut(&self, handle: u32) -> Option<Uncut> {
        (handle & LARGE != 0)
            .then(|| self.large[(handle & !LARGE) as usize].uncut)
            .flatten()
    }

    /// Frees a slot. Free each handle once.
    pub fn give_back(&mut self, handle: u32) {
        if handle & LARGE != 0 {
            self.large_free.push(handle & !LARGE);
            return;
        }
        self.slots[handle as usize].next = self.free;
        self.free = handle;
        self.used -= 1;
    }

    /// The frame in a slot.
    #[must_use]
    pub fn get(&self, handle: u32) -> &[u8] {
        if handle & LARGE != 0 {
            let slot = &self.large[(handle & !LARGE) as usize];
            return &slot.octets[..slot.length];
        }
        let slot = self.slots[handle as usize];
        let start = handle as usize * self.size + usize::from(slot.start);
        &self.octets[start..start + usize::from(slot.length)]
    }

    /// The frame in a slot, to change it in place.
    pub fn get_mut(&mut self, handle: u32) -> &mut [u8] {
        if handle & LARGE != 0 {
            let slot = &mut self.large[(handle & !LARGE) as usize];
            return &mut slot.octets[..slot.length];
        }
        let slot = self.slots[handle as usize];
        let start = handle as usize * self.size + usize::from(slot.start);
        &mut self.octets[start..start + usize::from(slot.length)]
    }

    /// Writes a frame into a slot: `fill` gets the room and returns the bytes used. More bytes than the room count as
    /// none.
    pub fn fill(&mut self, handle: u32, fill: impl FnOnce(&mut [u8]) -> usize) {
        let room = self.room(handle);
        let length = fill(room).min(room.len());
        self.set(handle, length, None);
    }

    /// The open checksum of the frame in a slot. [`super::Port::send`] leaves it to the interface, which computes it.
    #[must_use]
    pub fn open_checksum(&self, handle: u32) -> Option<OpenChecksum> {
        if handle & LARGE != 0 {
            return self.uncut(handle).map(|uncut| uncut.checksum);
        }
        self.slots[handle as usize].checksum
    }

    /// Takes the open checksum of the frame in a slot, which the caller then computes. A frame that is yet to be cut
    /// keeps it.
    pub fn close_checksum(&mut self, handle: u32) -> Option<OpenChecksum> {
        if handle & LARGE != 0 {
            return None;
        }
        self.slots[handle as usize].checksum.take()
    }

    /// Stores a received frame, which fits.
    pub(super) fn store(&mut self, handle: u32, bytes: &[u8], checksum: Option<OpenChecksum>) {
        self.room(handle)[..bytes.len()].copy_from_slice(bytes);
        self.set(handle, bytes.len(), checksum);
    }

    fn room(&mut self, handle: u32) -> &mut [u8] {
        let range = self.range(handle);
        &mut self.octets[range]
    }

    /// The part of a slot that frames are received into, as a range of [`Frames::octets`].
    pub(super) fn range(&self, handle: u32) -> std::ops::Range<usize> {
        let start = handle as usize * self.size;
        start + HEADROOM..start + self.size
    }

    /// All slots.
    pub(super) fn octets(&mut self) -> &mut [u8] {
        &mut self.octets
    }

    /// Records what was received into a slot.
    pub(super) fn set(&mut self, handle: u32, length: usize, checksum: Option<OpenChecksum>) {
        let slot = &mut self.slots[handle as usize];
        slot.start = HEADROOM as u16;
        // Slots are smaller than 64 KiB.
        slot.length = length.min(self.size - HEADROOM) as u16;
        slot.checksum = checksum;
    }

    /// Puts a VLAN tag (IEEE 802.1Q), which the kernel removed, back after the addresses.
    pub(super) fn insert_tag(&mut self, handle: u32, tag: [u8; 4]) {
        let slot = &mut self.slots[handle as usize];
        if slot.length < 12 || slot.start < 4 {
            return;
        }
        slot.start -= 4;
        slot.length += 4;
        if let Some(checksum) = &mut slot.checksum {
            checksum.start = checksum.start.saturating_add(4);
        }
        let frame = self.get_mut(handle);
        frame.copy_within(4..16, 0);
        frame[12..16].copy_from_slice(&tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_limited_and_used_again() {
        let mut frames = Frames::new(2, 1500);
        let (a, b) = (frames.take().unwrap(), frames.take().unwrap());
        assert_eq!(frames.take(), None);
        frames.fill(a, |room| {
            room[..3].copy_from_slice(b"one");
            3
        });
        frames.fill(b, |room| {
            room[..5].copy_from_slice(b"other");
            5
        });
        assert_eq!((frames.get(a), frames.get(b)), (&b"one"[..], &b"other"[..]));
        frames.give_back(a);
        assert_eq!(frames.used(), 1);
        let again = frames.take().unwrap();
        assert_eq!(again, a);
        assert!(frames.get(again).is_empty());
        assert_eq!(frames.get(b), b"other");
    }

    #[test]
    fn jumbo_frames_have_larger_slots() {
        assert!(Frames::new(1, 1500).frame_max() >= 1500 + 14 + 8);
        assert!(Frames::new(1, 9000).frame_max() >= 9000 + 14 + 8);
        let mut frames = Frames::new(1, 1500);
        let handle = frames.take().unwrap();
        frames.fill(handle, |_| usize::MAX);
        assert_eq!(frames.get(handle).len(), frames.frame_max());
    }

    #[test]
    fn frames_yet_to_be_cut_have_slots_of_their_own() {
        let mut frames = Frames::new(1, 1500);
        let small = frames.take().unwrap();
        let uncut = Uncut {
            cut: Cut::Tcp(1_000),
            is_v6: false,
            has_cwr: false,
            headers: 54,
            checksum: OpenChecksum {
                start: 34,
                offset: 16,
            },
        };
        let mut large = Vec::new();
        while let Some(handle) = frames.take_uncut(|room| {
            room[..9].copy_from_slice(b"yet uncut");
            Some((9, uncut))
        }) {
            large.push(handle);
        }
        assert_eq!((large.len(), frames.used()), (LARGE_MAX, 1));
        assert_eq!(frames.get(large[5]), b"yet uncut");
        assert_eq!(
            (frames.uncut(large[5]), frames.uncut(small)),
            (Some(uncut), None)
        );
        assert_eq!(frames.close_checksum(large[5]), None);
        frames.give_back(large[5]);
        assert_eq!(frames.take_uncut(|_| None), None);
        assert_eq!(frames.take_uncut(|_| Some((0, uncut))), Some(large[5]));
        assert!(frames.get(large[5]).is_empty());
    }

    #[test]
    fn a_tag_goes_behind_the_addresses_and_moves_nothing_behind_it() {
        let mut frames = Frames::new(1, 1500);
        let handle = frames.take().unwrap();
        frames.room(handle)[..16].copy_from_slice(b"destinsource\x08\x00IP");
        let open = OpenChecksum {
            start: 34,
            offset: 16,
        };
        frames.set(handle, 16, Some(open));
        frames.insert_tag(handle, [0x81, 0, 0x20, 7]);
        assert_eq!(
            frames.get(handle),
            b"destinsource\x81\x00\x20\x07\x08\x00IP"
        );
        assert_eq!(frames.open_checksum(handle).unwrap().start, 38);
    }
}
