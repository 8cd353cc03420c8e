//! The decoded segments of a shard, which can be sorted by flow.

use wire::packet::{Layer, Packet};

use super::machine::AHEAD;
use crate::segment::Segment;

/// The decoded segments of a shard. The room is reused.
#[derive(Default)]
pub(crate) struct Decoded {
    /// Hash and segment. Only the first `len` are in use.
    segments: Vec<(u64, Segment)>,
    len: usize,
    layers: Stacks,
    order: Order,
}

/// Segments, and their order by flow.
pub(crate) struct Sorted<'a> {
    pub(crate) segments: &'a mut [(u64, Segment)],
    pub(crate) layers: &'a Stacks,
    /// Hash and index of each segment.
    pub(crate) order: &'a [(u64, u32)],
}

/// Encapsulations of the segments that have any.
#[derive(Default)]
pub(crate) struct Stacks {
    /// Index of the segment, and where its encapsulations end in `items`. They begin where those before them end.
    ends: Vec<(u32, u32)>,
    items: Vec<Layer>,
}

impl Stacks {
    fn push(&mut self, at: usize, layers: &[Layer]) {
        self.items.extend_from_slice(layers);
        self.ends.push((at as u32, self.items.len() as u32));
    }

    fn clear(&mut self) {
        self.ends.clear();
        self.items.clear();
    }

    /// The encapsulations at a place of `ends`.
    fn place(&self, place: usize) -> &[Layer] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before].1);
        &self.items[start as usize..self.ends[place].1 as usize]
    }

    /// Those of a segment.
    #[inline]
    pub(crate) fn of(&self, at: usize) -> &[Layer] {
        if self.ends.is_empty() {
            return &[];
        }
        let place = self.ends.binary_search_by_key(&(at as u32), |end| end.0);
        place.map_or(&[], |place| self.place(place))
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &[Layer])> {
        let ends = self.ends.iter().enumerate();
        ends.map(|(place, &(at, _))| (at as usize, self.place(place)))
    }
}

impl Decoded {
    /// Removes all segments and keeps the room.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.layers.clear();
    }

    /// Number of segments.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Hash and segment of each, and their encapsulations.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut [(u64, Segment)], &Stacks) {
        (&mut self.segments[..self.len], &self.layers)
    }

    /// The segments, and their order by flow.
    pub(crate) fn sorted(&mut self) -> Sorted<'_> {
        let segments = &mut self.segments[..self.len];
        Sorted {
            order: self.order.sort(segments.iter().map(|(hash, _)| *hash)),
            segments,
            layers: &self.layers,
        }
    }

    /// The segment that was added last.
    #[inline]
    pub(crate) fn last(&self) -> Option<&(u64, Segment)> {
        self.segments.get(self.len.checked_sub(1)?)
    }

    /// Where to write the next segment; [`Decoded::add`] then adds it.
    #[inline(always)]
    pub(crate) fn place(&mut self) -> &mut (u64, Segment) {
        if self.len == self.segments.len() {
            self.grow();
        }
        &mut self.segments[self.len]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let room = (2 * self.len).max(AHEAD);
        self.segments.resize(room, Default::default());
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, packet: &Packet<'_>) {
        if !packet.layers.is_empty() {
            self.layers.push(self.len, packet.layers.as_slice());
        }
        self.len += 1;
    }

    /// Like [`Decoded::add`], with the encapsulations themselves.
    pub(crate) fn add_in(&mut self, layers: &[Layer]) {
        if !layers.is_empty() {
            self.layers.push(self.len, layers);
        }
        self.len += 1;
    }

    /// Changes the clock of the segments from the index `from` on.
    pub(crate) fn set_clock(&mut self, from: usize, clock: i64) {
        for (_, segment) in &mut self.segments[from..self.len] {
            segment.clock = clock;
        }
    }

    /// Adds the segments of another, in the order of their numbers.
    pub(crate) fn merge(&mut self, other: &Decoded) {
        if other.len == 0 {
            return;
        }
        let late = other.layers.iter().map(|(at, own)| (self.len + at, own));
        let layers: Vec<(usize, Vec<Layer>)> = (self.layers.iter().chain(late))
            .map(|(at, own)| (at, own.to_vec()))
            .collect();
        self.segments.truncate(self.len);
        self.segments
            .extend_from_slice(&other.segments[..other.len]);
        self.len = self.segments.len();
        let mut order: Vec<usize> = (0..self.len).collect();
        order.sort_by_key(|&at| self.segments[at].1.number);
        self.segments = order.iter().map(|&at| self.segments[at]).collect();
        let mut places = vec![0; order.len()];
        for (place, at) in order.into_iter().enumerate() {
            places[at] = place;
        }
        let mut layers: Vec<(usize, Vec<Layer>)> = layers
            .into_iter()
            .map(|(at, own)| (places[at], own))
            .collect();
        layers.sort_by_key(|(at, _)| *at);
        self.layers.clear();
        for (at, own) in layers {
            self.layers.push(at, &own);
        }
    }
}

/// Sorts segments by flow, and keeps those of a flow in order.
#[derive(Default)]
struct Order {
    sorted: Vec<(u64, u32)>,
    /// Sorted by the lower half of the key only.
    half: Vec<(u64, u32)>,
}

/// The lowest bit of the hash that segments are sorted by. The shards of several threads differ in higher bits, and the
/// analyser's table uses the lowest and the highest ones.
const KEY: u32 = 40;

/// Bits that one pass sorts by. There are two passes.
const DIGIT: u32 = 8;

impl Order {
    /// Hash and index of each in their order.
    fn sort(&mut self, hashes: impl ExactSizeIterator<Item = u64> + Clone) -> &[(u64, u32)] {
        let low = |hash: u64| (hash >> KEY) as usize & ((1 << DIGIT) - 1);
        let high = |hash: u64| (hash >> (KEY + DIGIT)) as usize & ((1 << DIGIT) - 1);
        let mut places = [[0u32; 1 << DIGIT]; 2];
        for hash in hashes.clone() {
            places[0][low(hash)] += 1;
            places[1][high(hash)] += 1;
        }
        for places in &mut places {
            let mut sum = 0;
            for place in places {
                sum += std::mem::replace(place, sum);
            }
        }
        self.half.resize(hashes.len(), (0, 0));
        self.sorted.resize(hashes.len(), (0, 0));
        for (at, hash) in hashes.enumerate() {
            let place = &mut places[0][low(hash)];
            self.half[*place as usize] = (hash, at as u32);
            *place += 1;
        }
        for &(hash, at) in &self.half {
            let place = &mut places[1][high(hash)];
            self.sorted[*place as usize] = (hash, at);
            *place += 1;
        }
        &self.sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_flow_is_in_one_piece_and_in_order(hashes in prop::collection::vec(0u64..40, 0..300)) {
            let hashes: Vec<u64> = hashes.iter().map(|hash| hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let mut order = Order::default();
            // Twice, as the room is reused.
            order.sort(hashes.iter().copied().rev());
            let sorted = order.sort(hashes.iter().copied());
            let mut expected: Vec<(u64, u32)> = hashes.iter().copied().zip(0..).collect();
            expected.sort_by_key(|(hash, _)| hash >> KEY & 0xffff);
            prop_assert_eq!(sorted, &expected[..]);
        }
    }
}
