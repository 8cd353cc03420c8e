//! Segments in flight, in order of their offsets.
//!
//! The newest segments are in a ring. If there are many, older segments move to an ordered tree of chunks, so that
//! finding and inserting one in the middle takes O(log n). Most connections never need the tree.

use super::{Again, FLIGHT_MAX, Insertion, Sent};
use crate::frozen::Codec;
use std::collections::{BTreeMap, VecDeque};

/// Limit of segments in a chunk. The limit in the ring is twice that.
const CHUNK: usize = 256;

#[derive(Debug, Clone, Default)]
pub(super) struct Flight {
    /// The newest, in order.
    ring: VecDeque<Sent>,
    /// Older segments: chunks by the offset of their first byte. No chunk is empty.
    tree: Option<Box<Tree>>,
}

#[derive(Debug, Clone, Default)]
struct Tree {
    chunks: BTreeMap<u64, VecDeque<Sent>>,
    len: usize,
}

impl Flight {
    pub(super) fn len(&self) -> usize {
        self.ring.len() + self.in_tree()
    }

    /// Reads the memory of the oldest segment in the ring, which most packets need.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.ring.front().map_or(0, |sent| sent.first)
    }

    /// Number of segments that are not in the ring.
    pub(super) fn in_tree(&self) -> usize {
        self.tree.as_ref().map_or(0, |tree| tree.len)
    }

    /// The lowest segment.
    pub(super) fn lowest(&self) -> Option<&Sent> {
        let tree = self.tree.as_ref();
        let older = tree.and_then(|tree| tree.chunks.first_key_value());
        older.map_or(&self.ring, |(_, chunk)| chunk).front()
    }

    /// Adds a segment above all others.
    pub(super) fn push(&mut self, sent: Sent) {
        if self.ring.len() >= 2 * CHUNK {
            self.grow();
        }
        self.ring.push_back(sent);
    }

    /// Moves the older half of the ring to the tree.
    #[cold]
    fn grow(&mut self) {
        let tree = self.tree.get_or_insert_default();
        // The chunk gets the exact size, and the ring keeps its room.
        let older: VecDeque<Sent> = self.ring.drain(..CHUNK).collect();
        tree.len += older.len();
        tree.chunks.insert(older[0].first, older);
    }

    /// Removes the lowest segment if it starts below `ack`.
    #[inline]
    pub(super) fn pop_below(&mut self, ack: u64) -> Option<Sent> {
        if self.tree.is_some() {
            return self.pop_tree(ack);
        }
        let sent = *self.ring.front()?;
        if sent.first >= ack {
            return None;
        }
        self.ring.pop_front();
        Some(sent)
    }

    #[inline(never)]
    fn pop_tree(&mut self, ack: u64) -> Option<Sent> {
        let tree = self.tree.as_mut()?;
        let mut entry = tree.chunks.first_entry()?;
        let chunk = entry.get_mut();
        let sent = *chunk.front()?;
        if sent.first >= ack {
            return None;
        }
        chunk.pop_front();
        tree.len -= 1;
        if chunk.is_empty() {
            entry.remove();
            if tree.chunks.is_empty() {
                self.tree = None;
            }
        }
        Some(sent)
    }

    /// Adds data sent at `time` from `first` to `end`, at any place among the others.
    pub(super) fn insert(&mut self, first: u64, end: u64, time: i64, found: &mut Insertion) {
        let mut from = first;
        let ring_first = self.ring.front().map_or(u64::MAX, |sent| sent.first);
        if from < ring_first && self.tree.is_some() {
            from = self.insert_tree(from, end.min(ring_first), end, time, found);
        }
        if from < end {
            insert_into(&mut self.ring, None, from, end, end, time, found);
            while self.ring.len() > 2 * CHUNK {
                self.grow();
            }
        }
    }

    /// Adds its part below the ring, up to `limit`. Returns the end of the part.
    #[inline(never)]
    fn insert_tree(
        &mut self,
        mut from: u64,
        limit: u64,
        end: u64,
        time: i64,
        found: &mut Insertion,
    ) -> u64 {
        let Some(tree) = self.tree.as_mut() else {
            return from;
        };
        while from < limit {
            let below = tree.chunks.range(..=from).next_back().map(|(key, _)| *key);
            let key = match below.or_else(|| tree.chunks.keys().next().copied()) {
                Some(key) => key,
                None => break,
            };
            // The range of this chunk ends where the next one starts.
            let above = tree
                .chunks
                .range(key + 1..)
                .next()
                .map_or_else(|| self.ring.front(), |(_, chunk)| chunk.front())
                .copied();
            let next = above.map_or(limit, |sent| sent.first.min(limit));
            let Some(mut chunk) = tree.chunks.remove(&key) else {
                break;
            };
            let before = chunk.len();
            from = insert_into(&mut chunk, above, from, next, end, time, found);
            tree.len += chunk.len() - before;
            if chunk.len() > 2 * CHUNK {
                let upper = chunk.split_off(chunk.len() / 2);
                tree.chunks.insert(upper[0].first, upper);
            }
            tree.chunks.insert(chunk[0].first, chunk);
        }
        from
    }

    /// The segment at `first` has been sent before.
    pub(super) fn mark_again(&mut self, first: u64) {
        let in_ring = self.ring.front().is_some_and(|sent| sent.first <= first);
        let run = if in_ring {
            Some(&mut self.ring)
        } else {
            let tree = self.tree.as_mut();
            tree.and_then(|tree| tree.chunks.range_mut(..=first).next_back())
                .map(|(_, chunk)| chunk)
        };
        if let Some(run) = run
            && let Ok(at) = run.binary_search_by_key(&first, |sent| sent.first)
        {
            run[at].again += 1;
        }
    }

    /// Whether all data from `first` to `end` is in segments.
    pub(super) fn has(&self, first: u64, end: u64) -> bool {
        let mut from = first;
        let in_ring = self.ring.front().is_some_and(|sent| sent.first <= from);
        if let Some(tree) = &self.tree
            && !in_ring
        {
            let start = tree
                .chunks
                .range(..=from)
                .next_back()
                .map_or(from, |(key, _)| *key);
            for sent in tree.chunks.range(start..).flat_map(|(_, chunk)| chunk) {
                if sent.first > from || from >= end {
                    break;
                }
                from = from.max(sent.end());
            }
        }
        let at = self.ring.partition_point(|sent| sent.end() <= from);
        for sent in self.ring.range(at..) {
            if sent.first > from || from >= end {
                break;
            }
            from = from.max(sent.end());
        }
        from >= end
    }

    pub(super) fn clear(&mut self) {
        self.ring.clear();
        self.tree = None;
    }

    #[inline(always)]
    pub(super) fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let mut count = self.len() as u64;
        codec.unsigned(&mut count);
        if C::READS {
            self.clear();
            if count > FLIGHT_MAX as u64 + 1 {
                codec.fail();
                return;
            }
            for _ in 0..count {
                let mut sent = Sent {
                    first: 0,
                    time: 0,
                    length: 0,
                    again: 0,
                };
                exchange_sent(&mut sent, codec);
                if codec.is_over() {
                    break;
                }
                self.push(sent);
            }
            return;
        }
        let older = self
            .tree
            .iter()
            .flat_map(|tree| tree.chunks.values().flatten());
        for sent in older.chain(&self.ring) {
            codec.room();
            exchange_sent(&mut sent.clone(), codec);
        }
    }
}

#[inline(always)]
fn exchange_sent<C: Codec>(sent: &mut Sent, codec: &mut C) {
    codec.offset(&mut sent.first);
    codec.time(&mut sent.time);
    codec.small(&mut sent.length);
    codec.small(&mut sent.again);
}

/// Adds the part from `from` to `limit` of a segment that ends at `whole_end` to one ordered run. `above` is the
/// segment above the run. Returns the end of the part: `limit`, or the end of a segment that extends beyond it.
fn insert_into(
    run: &mut VecDeque<Sent>,
    above: Option<Sent>,
    mut from: u64,
    limit: u64,
    whole_end: u64,
    time: i64,
    found: &mut Insertion,
) -> u64 {
    let mut at = run.partition_point(|sent| sent.end() <= from);
    while from < limit {
        let Some(sent) = run.get_mut(at) else {
            if let Some(above) = above {
                found.fills_below(above, whole_end);
            }
            run.push_back(piece(from, limit, time));
            return limit;
        };
        if from < sent.first {
            let to = sent.first.min(limit);
            found.fills_below(*sent, whole_end);
            run.insert(at, piece(from, to, time));
            from = to;
            at += 1;
            continue;
        }
        sent.again += 1;
        let again = Again {
            time: sent.time,
            count: sent.again,
        };
        let is_first = found.again.is_none();
        found.again.get_or_insert(again);
        // After the first one, the last segment may be repeated only in part: it keeps its time.
        if is_first || sent.end() <= whole_end {
            sent.time = time;
        }
        found.overlap += (sent.end().min(whole_end) - from) as u32;
        from = sent.end();
        at += 1;
    }
    from
}

impl Insertion {
    /// A new piece is below `above`.
    fn fills_below(&mut self, above: Sent, whole_end: u64) {
        self.fills = true;
        self.above_time = above.time;
        self.before_another |= whole_end < above.end();
    }
}

fn piece(first: u64, end: u64, time: i64) -> Sent {
    Sent {
        first,
        time,
        length: (end - first) as u32,
        again: 0,
    }
}
