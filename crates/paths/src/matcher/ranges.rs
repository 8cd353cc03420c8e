//! Matching by ranges of data. Offloads (TSO, GRO) and proxies cut and join segments, so that a packet of one point is
//! several of the other.

use super::Matcher;
use super::flows::{Kept, Ranges};
use super::pending::Entry;
use crate::findings::Sink;
use crate::packet::Point;

/// Waiting packets that are compared with one to see whether segments are cut or joined.
const COMPARED: usize = 32;

/// The value of a sequence number at the start, so that earlier ones have one too.
const START: u64 = 1 << 40;

impl Matcher {
    /// Whether a packet overlaps one that waits at the other point with other bounds.
    pub(super) fn is_cut(&self, entry: &Entry, lane: u32) -> bool {
        let flows = &self.points[0].flows;
        let shared = flows.get(lane);
        let list = match (entry.point, shared.mate) {
            (Point::A, Some(mate)) => self.points[1].flows.get(mate).waiting,
            (Point::B, _) => shared.waiting,
            (Point::A, None) => return false,
        };
        let length = entry.sight.length;
        let overlaps = |slot: u32| {
            let other = self.pending.get(slot);
            let ahead = other.sequence.wrapping_sub(entry.sequence);
            let behind = entry.sequence.wrapping_sub(other.sequence);
            let differs = ahead != 0 || other.sight.length != length;
            other.sight.length > 0 && differs && (ahead < length || behind < other.sight.length)
        };
        let waiting = self.pending.of_flow(&list, COMPARED);
        waiting.into_iter().any(overlaps)
    }

    /// From now on, data of this flow are matched by ranges.
    pub(super) fn match_by_range(&mut self, lane: u32) {
        let mate = self.points[0].flows.get(lane).mate;
        let shared = self.points[0].flows.get_mut(lane);
        let lists = [
            Some(shared.waiting),
            mate.map(|mate| self.points[1].flows.get(mate).waiting),
        ];
        let slots: Vec<u32> = lists
            .into_iter()
            .flatten()
            .flat_map(|list| self.pending.of_flow(&list, usize::MAX))
            .collect();
        let first = slots
            .first()
            .map_or(0, |&slot| self.pending.get(slot).sequence);
        let mut ranges = Ranges {
            reference: (first, START),
            ..Ranges::default()
        };
        for slot in slots {
            let entry = self.pending.get_mut(slot);
            if entry.sight.length == 0 {
                continue;
            }
            let mark = entry.mark;
            if std::mem::take(&mut entry.is_marked)
                && let Ok(found) = self.marks.find_entry(mark, |&other| other == slot)
            {
                found.remove();
            }
            entry.start = ranges.extend(entry.sequence);
            let point = entry.point as usize;
            ranges.sets[point].insert((entry.start, slot));
            ranges.longest[point] = ranges.longest[point].max(entry.sight.length);
        }
        self.points[0].flows.get_mut(lane).ranges = Some(Box::new(ranges));
    }

    /// Matches a packet with data by ranges, or lets it wait. Whether it is a copy.
    pub(super) fn place_by_range<S: Sink>(
        &mut self,
        mut entry: Entry,
        lane: u32,
        sink: &mut S,
    ) -> bool {
        let shared = self.points[0].flows.get_mut(lane);
        let stamps = shared.stamps;
        let Some(ranges) = &mut shared.ranges else {
            return false;
        };
        entry.start = ranges.extend(entry.sequence);
        let other = entry.point.other() as usize;
        let from = entry.start.saturating_sub(u64::from(ranges.longest[other]));
        let overlapping = ranges.sets[other].range((from, 0)..(entry.end(), 0));
        let pending = &self.pending;
        let mut slots: Vec<(bool, u64, u32)> = overlapping
            .map(|&(_, slot)| (slot, pending.get(slot)))
            .filter(|(_, other)| other.end() > entry.start)
            .map(|(slot, other)| {
                let differs = match (entry.sight.stamps, other.sight.stamps) {
                    (Some(a), Some(b)) => a.0 != b.0,
                    _ => false,
                };
                (differs, other.sight.number, slot)
            })
            .filter(|(differs, ..)| !differs || stamps != Kept::Yes)
            .collect();
        // The same time stamp first, then the order of sending.
        slots.sort_unstable();
        let mut left = entry.uncovered();
        for (_, _, slot) in slots {
            if left.is_empty() {
                break;
            }
            self.cover(&entry, slot, lane, &mut left, sink);
        }
        if left.is_empty() {
            return false;
        }
        entry.is_partial = left != [(entry.start, entry.end())];
        entry.left = if entry.is_partial { left } else { Vec::new() };
        if entry.is_partial {
            self.keep(entry, Some(lane));
            return false;
        }
        self.wait(entry, Some(lane), sink)
    }

    /// Matches the common parts of a packet and one that waits.
    fn cover<S: Sink>(
        &mut self,
        entry: &Entry,
        slot: u32,
        lane: u32,
        left: &mut Vec<(u64, u64)>,
        sink: &mut S,
    ) {
        let other = self.pending.get(slot);
        // A match of another part may have let it leave.
        if !other.is_waiting {
            return;
        }
        let theirs = other.uncovered();
        let common = common(left, &theirs);
        let bytes: u64 = common.iter().map(|range| range.1 - range.0).sum();
        if bytes == 0 {
            return;
        }
        // Only where both begin with the same byte are the times those of the same packet.
        let is_head = common[0].0 == entry.start && common[0].0 == other.start;
        let is_part = other.start != entry.start || other.end() != entry.end();
        let rest = without(&theirs, &common);
        *left = without(left, &common);
        let waiting = if rest.is_empty() {
            self.forget(slot)
        } else {
            let other = self.pending.get_mut(slot);
            (other.left, other.is_partial) = (rest, true);
            other.clone()
        };
        self.part_pair(&waiting, entry, lane, (bytes, is_head, is_part), sink);
    }
}

impl Ranges {
    /// A sequence number without wrapping, near the one before.
    fn extend(&mut self, sequence: u32) -> u64 {
        let (number, value) = self.reference;
        let step = sequence.wrapping_sub(number) as i32;
        let value = value.saturating_add_signed(i64::from(step));
        self.reference = (sequence, value);
        value
    }
}

/// The common parts of two sets of ranges.
fn common(one: &[(u64, u64)], other: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
    let parts = pairs.map(|(a, b)| (a.0.max(b.0), a.1.min(b.1)));
    let mut parts: Vec<(u64, u64)> = parts.filter(|part| part.0 < part.1).collect();
    parts.sort_unstable();
    parts
}

/// What is in the first set of ranges and not in the second.
fn without(ranges: &[(u64, u64)], taken: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut left = ranges.to_vec();
    for &(from, to) in taken {
        let parts = left
            .into_iter()
            .flat_map(|(low, high)| [(low, high.min(from)), (low.max(to), high)]);
        left = parts.filter(|part| part.0 < part.1).collect();
    }
    left
}
