//! Session ids that we assign: O(1), hard to guess, and reused as late as possible, so that a host with a stale session
//! rarely hits a new one.
//!
//! Ids are unique over all ports while fewer than 65,534 sessions have one. After that, several hosts share an id:
//! the host's address distinguishes them.
//!
//! Implements parts of RFC 2516, sections 4 and 5.4.

use std::collections::VecDeque;

use wire::pppoe::SESSION_RESERVED;

use crate::random::Random;

/// How many random ids are tried for a host when every id is in use.
const TRIES: u32 = 64;

/// All ids. New ones are allocated first, in random order; then released ones, oldest first.
pub(crate) struct Ids {
    order: Order,
    /// How much of `order` has been used.
    started: u32,
    returned: VecDeque<u16>,
    /// Sessions by id. Allocated at first use.
    uses: Vec<u16>,
}

impl Ids {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self {
            order: Order::new(random),
            started: 0,
            returned: VecDeque::new(),
            uses: Vec::new(),
        }
    }

    /// Assigns an id that is not `taken` for this host; `None` if none was found.
    pub(crate) fn take(&mut self, random: &mut Random, taken: impl Fn(u16) -> bool) -> Option<u16> {
        if self.uses.is_empty() {
            self.uses.resize(1 << 16, 0);
        }
        let id = self.unused(&taken).or_else(|| {
            (0..TRIES)
                .map(|_| 1 + random.below(u32::from(SESSION_RESERVED) - 1) as u16)
                .find(|&id| !taken(id))
        })?;
        self.uses[usize::from(id)] += 1;
        Some(id)
    }

    /// An id that no session has. The host may have one of them as a client; it is then left for later.
    fn unused(&mut self, taken: &impl Fn(u16) -> bool) -> Option<u16> {
        for _ in 0..TRIES {
            let id = self.begin().or_else(|| self.returned.pop_front())?;
            if !taken(id) {
                return Some(id);
            }
            self.returned.push_back(id);
        }
        None
    }

    fn begin(&mut self) -> Option<u16> {
        while let Ok(place) = u16::try_from(self.started) {
            self.started += 1;
            let id = self.order.at(place);
            if id != 0 && id != SESSION_RESERVED {
                return Some(id);
            }
        }
        None
    }

    /// A session with this id ended.
    pub(crate) fn release(&mut self, id: u16) {
        let uses = &mut self.uses[usize::from(id)];
        debug_assert!(*uses > 0, "the id was assigned");
        *uses = uses.saturating_sub(1);
        if *uses == 0 {
            self.returned.push_back(id);
        }
    }
}

/// A random permutation of all 16-bit numbers: a Feistel network over two octets.
struct Order([u32; 6]);

impl Order {
    fn new(random: &mut Random) -> Self {
        Self(core::array::from_fn(|_| random.u64() as u32))
    }

    /// The number at position `place`.
    fn at(&self, place: u16) -> u16 {
        let [mut left, mut right] = place.to_be_bytes();
        for key in self.0 {
            let mixed = (u32::from(right) ^ key).wrapping_mul(0x9e37_79b1) ^ key.rotate_left(16);
            let mixed = mixed.wrapping_mul(0x85eb_ca6b) >> 24;
            (left, right) = (right, left ^ mixed as u8);
        }
        u16::from_be_bytes([left, right])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_unique_until_all_are_in_use_and_reused_last() {
        let mut random = Random::new([7; 32]);
        let mut ids = Ids::new(&mut random);
        let mut seen = HashSet::new();
        for _ in 0..65_534 {
            assert!(seen.insert(ids.take(&mut random, |_| false).unwrap()));
        }
        assert!(!seen.contains(&0) && !seen.contains(&SESSION_RESERVED));
        // Every id is in use: another host shares one.
        let shared = ids.take(&mut random, |_| false).unwrap();
        assert_eq!(ids.take(&mut random, |_| true), None);
        ids.release(shared);
        for id in [500, 40] {
            ids.release(id);
        }
        assert_eq!(ids.take(&mut random, |_| false), Some(500));
        assert_eq!(ids.take(&mut random, |_| false), Some(40));
    }

    #[test]
    fn an_id_of_a_client_session_of_the_same_host_is_left_out() {
        let mut random = Random::new([7; 32]);
        let mut ids = Ids::new(&mut random);
        let first = ids.take(&mut random, |_| false).unwrap();
        for _ in 0..65_533 {
            ids.take(&mut random, |_| false).unwrap();
        }
        ids.release(first);
        let other = ids.take(&mut random, |id| id == first).unwrap();
        assert_ne!(other, first);
        assert_eq!(ids.take(&mut random, |_| false), Some(first));
    }
}
