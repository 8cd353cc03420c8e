//! Finds a connection's graphs by the number of its first packet.

use hashbrown::HashMap;

/// Connections found without hashing.
const NEAR: usize = 1 << 12;

/// The place of a connection that is not drawn.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Places by first packet.
#[derive(Debug)]
pub(crate) struct Places {
    all: HashMap<u64, u32, foldhash::fast::FixedState>,
    /// The last few thousand, so that most need no hashing.
    near: Box<[(u64, u32)]>,
}

impl Places {
    pub(crate) fn new() -> Places {
        Places {
            all: HashMap::default(),
            near: vec![(u64::MAX, NOWHERE); NEAR].into(),
        }
    }

    /// The place of a connection, if it has had a packet.
    #[inline]
    pub(crate) fn get(&mut self, first_packet: u64) -> Option<u32> {
        let near = self.near[first_packet as usize % NEAR];
        if near.0 == first_packet {
            return Some(near.1);
        }
        self.seek(first_packet)
    }

    #[inline(never)]
    fn seek(&mut self, first_packet: u64) -> Option<u32> {
        let place = *self.all.get(&first_packet)?;
        self.near[first_packet as usize % NEAR] = (first_packet, place);
        Some(place)
    }

    /// A connection has had its first packet.
    pub(crate) fn insert(&mut self, first_packet: u64, place: u32) {
        self.all.insert(first_packet, place);
        self.near[first_packet as usize % NEAR] = (first_packet, place);
    }

    /// A connection has finished.
    pub(crate) fn remove(&mut self, first_packet: u64) -> Option<u32> {
        let near = &mut self.near[first_packet as usize % NEAR];
        if near.0 == first_packet {
            *near = (u64::MAX, NOWHERE);
        }
        self.all.remove(&first_packet)
    }
}
