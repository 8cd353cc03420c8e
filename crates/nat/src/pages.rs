//! Which mapping each port of a block has.
//!
//! A page is for one protocol and one block: one word per port with its mapping, then one bit per port that is taken. A
//! packet to an external port reads one word here; only a new mapping reads the bits. Pages of all blocks are in chunks of
//! 8 MiB, so that the system can back them by large pages of memory; a page that is free again is used by the next block
//! of its size.

/// No index.
pub(crate) const NONE: u32 = u32::MAX;
/// Words of a chunk: a power of two. The largest page has 67,584.
const CHUNK: usize = 1 << 21;

/// Called with each range of memory that the NAT reserves, before it is used. See [`crate::Nat::on_reserve`].
pub type Reserve = fn(*const u8, usize);

/// A page of a block.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed(2))]
pub(crate) struct Page {
    /// Its first word, in all chunks; [`NONE`] without a page.
    start: u32,
    /// Ports that are taken.
    used: u16,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            start: NONE,
            used: 0,
        }
    }
}

impl Page {
    /// The word of a port.
    #[inline]
    pub(crate) fn slot(&self, place: u32) -> Option<u32> {
        (self.start != NONE).then(|| self.start + place)
    }
}

/// The pages of all blocks.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    chunks: Vec<Vec<u32>>,
    /// By the number of words, pages that are not in use: blocks have three sizes at most.
    free: Vec<(u32, Vec<u32>)>,
    reserve: Option<Reserve>,
}

/// Words of a page for as many ports.
const fn words(count: u32) -> u32 {
    count + count.div_ceil(32)
}

impl Pages {
    pub(crate) fn on_reserve(&mut self, reserve: Reserve) {
        self.reserve = Some(reserve);
        for chunk in &self.chunks {
            reserve(chunk.as_ptr().cast(), chunk.capacity() * 4);
        }
    }

    #[inline]
    fn word(&self, at: u32) -> u32 {
        let chunk = self.chunks.get(at as usize / CHUNK);
        let word = chunk.and_then(|chunk| chunk.get(at as usize % CHUNK));
        word.copied().unwrap_or(0)
    }

    #[inline]
    fn word_mut(&mut self, at: u32) -> &mut u32 {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    /// The mapping of a port, by [`Page::slot`].
    #[inline]
    pub(crate) fn mapping(&self, slot: u32) -> Option<u32> {
        self.word(slot).checked_sub(1)
    }

    /// A place that is not taken, from this one on, of a page with `count` ports.
    #[inline]
    pub(crate) fn free_place(&self, page: &Page, count: u32, start: u32) -> Option<u32> {
        if page.start == NONE {
            return Some(start);
        }
        if u32::from(page.used) == count {
            return None;
        }
        let bits = page.start + count;
        let words = count.div_ceil(32);
        let mut word = start / 32;
        let mut mask = u32::MAX << (start % 32);
        for _ in 0..=words {
            let free = !self.word(bits + word) & mask;
            if free != 0 {
                let place = word * 32 + free.trailing_zeros();
                // The last word has bits behind the last port.
                if place < count {
                    return Some(place);
                }
            }
            mask = u32::MAX;
            word = if word + 1 == words { 0 } else { word + 1 };
        }
        None
    }

    /// Gives a place that is free to a mapping.
    #[inline]
    pub(crate) fn take(&mut self, page: &mut Page, count: u32, place: u32, mapping: u32) {
        if page.start == NONE {
            page.start = self.add(words(count));
        }
        *self.word_mut(page.start + place) = mapping + 1;
        *self.word_mut(page.start + count + place / 32) |= 1 << (place % 32);
        page.used += 1;
    }

    /// Takes a place back. Returns whether it was taken.
    pub(crate) fn release(&mut self, page: &mut Page, count: u32, place: u32) -> bool {
        if page.start == NONE || self.word(page.start + place) == 0 {
            return false;
        }
        *self.word_mut(page.start + place) = 0;
        *self.word_mut(page.start + count + place / 32) &= !(1 << (place % 32));
        page.used -= 1;
        if page.used == 0 {
            let start = core::mem::take(page).start;
            match self.free.iter_mut().find(|(size, _)| *size == words(count)) {
                Some((_, free)) => free.push(start),
                None => self.free.push((words(count), vec![start])),
            }
        }
        true
    }

    /// A mapping of a page, while it has any.
    pub(crate) fn any(&self, page: &Page, count: u32) -> Option<u32> {
        if page.start == NONE {
            return None;
        }
        let bits = page.start + count;
        let word = (0..count.div_ceil(32)).find(|&word| self.word(bits + word) != 0)?;
        let place = word * 32 + self.word(bits + word).trailing_zeros();
        self.mapping(page.start + place)
    }

    /// A page of zeros.
    #[cold]
    fn add(&mut self, words: u32) -> u32 {
        let free = self.free.iter_mut().find(|(size, _)| *size == words);
        if let Some(start) = free.and_then(|(_, free)| free.pop()) {
            return start;
        }
        let has_room = self
            .chunks
            .last()
            .is_some_and(|chunk| chunk.len() + words as usize <= CHUNK);
        if !has_room {
            let chunk: Vec<u32> = Vec::with_capacity(CHUNK);
            if let Some(reserve) = self.reserve {
                reserve(chunk.as_ptr().cast(), CHUNK * 4);
            }
            self.chunks.push(chunk);
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let chunk = self.chunks.last_mut().expect("one was added");
        let start = before + chunk.len();
        chunk.resize(chunk.len() + words as usize, 0);
        start as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_page_has_what_a_map_has(
            count in 16_u32..100,
            steps in prop::collection::vec((any::<bool>(), any::<u32>()), 1..300),
        ) {
            let mut pages = Pages::default();
            let (mut page, mut map) = (Page::default(), BTreeMap::new());
            for (number, (is_taken, random)) in steps.into_iter().enumerate() {
                let start = random % count;
                if is_taken {
                    let found = pages.free_place(&page, count, start);
                    let wanted = (start..count).chain(0..start).find(|at| !map.contains_key(at));
                    prop_assert_eq!(found, wanted);
                    if let Some(place) = found {
                        pages.take(&mut page, count, place, number as u32);
                        map.insert(place, number as u32);
                    }
                } else {
                    prop_assert_eq!(pages.release(&mut page, count, start), map.remove(&start).is_some());
                }
                for place in 0..count {
                    let mapping = page.slot(place).and_then(|slot| pages.mapping(slot));
                    prop_assert_eq!(mapping, map.get(&place).copied());
                }
                let any = pages.any(&page, count);
                prop_assert_eq!(any.is_some(), !map.is_empty());
                prop_assert!(any.is_none_or(|one| map.values().any(|&other| one == other)));
            }
        }
    }

    #[test]
    fn pages_of_freed_blocks_are_used_again() {
        let mut pages = Pages::default();
        let mut one = Page::default();
        pages.take(&mut one, 512, 7, 1);
        let slot = one.slot(7);
        assert!(pages.release(&mut one, 512, 7));
        assert_eq!(one.slot(7), None);
        let mut two = Page::default();
        pages.take(&mut two, 512, 7, 2);
        assert_eq!(two.slot(7), slot);
    }
}
