//! Matches the packets of two points.
//!
//! | file | contents |
//! |---|---|
//! | `mod` | a packet's course: its flow, its counterpart, or the wait for it |
//! | `lanes` | which flow at one point is which at the other |
//! | `ranges` | matching by ranges of data, where segments were cut or joined |
//! | `pairs` | what a matched packet and one without counterpart say |
//! | `flows`, `pending` | the tables |
//!
//! Packets of known flows are matched by a hash of sequence number, length and flags, and, where several transmissions
//! fit, by time stamps, identification and time. Where lengths differ between the points, they are matched by ranges.

mod flows;
mod lanes;
mod pairs;
mod pending;
mod ranges;

use hashbrown::{HashMap, HashTable};
use wire::tcp::Flags;

use crate::clock::{Times, Way};
use crate::findings::{AtPoint, Findings, Mapping, OneWay, Rewrites, Sink};
use crate::packet::{Mix, Point, Sight};
use crate::track::Sent;
use flows::{Flows, Kept};
use lanes::Orphan;
use pending::{Entry, Pending};

/// Without time stamps and identification, copies of a packet follow within this time.
const COPY_SPAN: i64 = 5_000_000;

/// The same, with them.
const COPY_SPAN_DISTINCT: i64 = 1_000_000_000;

/// Waiting packets of an unknown flow that are compared with the next one.
const COMPARED: usize = 16;

/// Waiting packets that may look the same. Further ones are given up.
const SAME_MAX: usize = 1024;

/// Packets read from one capture without a match after which the other one is read too, whatever the clocks say.
const AHEAD_MAX: u64 = 1 << 16;

/// A comparison's settings.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Seed of all hashes.
    pub seed: u64,
    /// How long a packet waits for its counterpart, in ns.
    pub wait: i64,
    /// Packets of each point that may wait. At the limit the oldest one is given up and counted.
    pub waiting_max: u32,
    /// The captures have the same clock.
    pub one_clock: bool,
    /// The captures are of one file, whose order says which point saw a packet first.
    pub one_file: bool,
    /// Difference of the times (B less A) of the first packets that both captures have, at least and at most.
    pub differences: (i64, i64),
    /// A difference between those of packets from A to B and those of packets from B to A, if both were seen.
    pub centre: Option<i64>,
    /// Times of the first packets of the captures.
    pub first: [i64; 2],
}

impl Config {
    /// How long a packet waits for its counterpart, in nanoseconds.
    pub const WAIT: i64 = 5_000_000_000;
    /// Packets of each point that may wait.
    pub const WAITING_MAX: u32 = 1 << 20;
}

/// Source and destination.
type Hosts = ([u8; 16], [u8; 16]);

/// Pairs of addresses whose direction is kept.
const HOSTS_MAX: usize = 1 << 16;

/// Least and largest difference of the times of recent pairs.
#[derive(Debug, Clone, Copy, Default)]
struct Recent {
    now: Option<(i64, i64)>,
    before: Option<(i64, i64)>,
    count: u32,
}

impl Recent {
    /// Pairs after which the older half is forgotten.
    const HALF: u32 = 512;

    #[inline]
    fn add(&mut self, difference: i64) {
        if self.count == Self::HALF {
            self.before = self.now.take();
            self.count = 0;
        }
        self.now = wider(self.now, Some((difference, difference)));
        self.count += 1;
    }

    fn bounds(&self) -> Option<(i64, i64)> {
        wider(self.now, self.before)
    }
}

fn wider(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        _ => one.or(other),
    }
}

/// What became of a packet of a known flow.
enum Settled {
    Matched,
    /// It is still to be matched, by ranges of data.
    ByRange,
    /// It has no counterpart so far.
    Not,
}

/// What is known of a point.
struct AtOne {
    flows: Flows,
    found: AtPoint,
    /// Times of the latest two matched packets.
    matched: Option<(i64, i64)>,
    has_ended: bool,
    /// Packets read since the last match.
    ahead: u64,
}

/// Matches packets. Feed it with [`Matcher::see`] in the order that [`Matcher::next`] asks for.
pub struct Matcher {
    config: Config,
    seed: Mix,
    points: [AtOne; 2],
    pending: Pending,
    /// Waiting packets by mark.
    marks: HashTable<u32>,
    /// Prints of packets of unknown flows: two generations.
    orphans: [HashMap<u64, Orphan>; 2],
    /// By direction.
    recent: [Recent; 2],
    /// The direction between two addresses of A.
    hosts: HashMap<Hosts, Way>,
    /// Of all directions: least, largest, and one between the directions.
    differences: (i64, i64),
    centre: i64,
    times: Times,
    ways: [OneWay; 2],
    rewrites: Rewrites,
    mappings: Vec<Mapping>,
    mapped: u64,
    stamps_rewritten: u64,
    is_way_assumed: bool,
    /// The difference of the times of all pairs, while they have only one.
    only_difference: Option<i64>,
    waiting_max: u64,
}

impl Matcher {
    /// A matcher for captures that were aligned by [`Align`](crate::Align).
    #[must_use]
    pub fn new(config: Config) -> Matcher {
        let point = |first: i64| AtOne {
            flows: Flows::new(config.seed),
            found: AtPoint {
                time: Some((first, first)),
                ..AtPoint::default()
            },
            matched: None,
            has_ended: false,
            ahead: 0,
        };
        Matcher {
            config,
            seed: Mix(config.seed),
            points: config.first.map(point),
            pending: Pending::default(),
            marks: HashTable::new(),
            orphans: [HashMap::new(), HashMap::new()],
            recent: [Recent::default(); 2],
            hosts: HashMap::new(),
            differences: config.differences,
            centre: config.centre.unwrap_or(config.differences.0),
            times: Times::default(),
            ways: [OneWay::default(); 2],
            rewrites: Rewrites::default(),
            mappings: Vec::new(),
            mapped: 0,
            stamps_rewritten: 0,
            is_way_assumed: false,
            only_difference: None,
            waiting_max: 0,
        }
    }

    /// Which capture to read next, by the times of their next packets. A packet at its sender's side comes first.
    #[must_use]
    #[inline]
    pub fn next(&self, a: i64, b: i64) -> Point {
        let first = match a.saturating_add(self.centre) <= b {
            true => Point::A,
            false => Point::B,
        };
        let ahead = self.points[first as usize].ahead;
        // A clock may have been stepped: the other capture shows it.
        match ahead >= AHEAD_MAX && self.points[first.other() as usize].ahead < ahead {
            true => first.other(),
            false => first,
        }
    }

    /// Takes the next packet of a capture.
    pub fn see<S: Sink>(&mut self, point: Point, sight: &Sight, sink: &mut S) {
        let at = &mut self.points[point as usize];
        at.found.packets += 1;
        if let Some(time) = &mut at.found.time {
            time.1 = time.1.max(sight.time);
        }
        let Some(flow) = at.flows.find_or_add(&sight.key) else {
            at.found.beyond += 1;
            return;
        };
        let own = at.flows.get_mut(flow);
        own.last_time = sight.time;
        own.packets += 1;
        own.bytes += u64::from(sight.length);
        if own.mate.is_none() {
            self.seek(point, flow, sight, sink);
        }
        let mut entry = Entry::new(sight, point, flow, self.seed);
        let is_copy = match self.lane(point, flow) {
            Some(lane) => {
                self.mark(&mut entry, lane);
                self.place(entry, lane, sink)
            }
            None => self.wait(entry, None, sink),
        };
        if sight.is_tcp() && !is_copy {
            self.track(point, flow, sight);
        }
        if self.points[point as usize].flows.is_crowded() {
            self.sweep(point);
        }
    }

    /// A's flow, by which both points' flow is known.
    #[inline]
    fn lane(&self, point: Point, flow: u32) -> Option<u32> {
        let mate = self.points[point as usize].flows.get(flow).mate?;
        Some(match point {
            Point::A => flow,
            Point::B => mate,
        })
    }

    /// Sets the mark of an entry of a known flow.
    fn mark(&self, entry: &mut Entry, lane: u32) {
        let flows = &self.points[entry.point as usize].flows;
        let flow = flows.get(entry.flow);
        let back = flow.reverse.map_or(0, |reverse| flows.get(reverse).shift);
        entry.set_mark(lane, (flow.shift, back), self.seed);
    }

    /// Matches a packet of a known flow, or lets it wait. Whether it is a copy.
    fn place<S: Sink>(&mut self, mut entry: Entry, lane: u32, sink: &mut S) -> bool {
        match self.settle(&entry, lane, sink) {
            Settled::Matched => return entry.is_copy,
            Settled::ByRange => return self.place_by_range(entry, lane, sink),
            Settled::Not => {}
        }
        if entry.sight.has(Flags::SYN) && self.renew(&mut entry, sink) {
            return false;
        }
        let lane = self.lane(entry.point, entry.flow);
        self.wait(entry, lane, sink)
    }

    /// Matches a packet of a known flow with a waiting one, unless its flow is matched by ranges.
    fn settle<S: Sink>(&mut self, entry: &Entry, lane: u32, sink: &mut S) -> Settled {
        let has_data = entry.sight.is_tcp() && entry.sight.length > 0;
        if has_data && self.points[0].flows.get(lane).ranges.is_some() {
            return Settled::ByRange;
        }
        if let Some((slot, is_sure)) = self.counterpart(entry, lane) {
            let waiting = self.take(slot);
            self.pair(&waiting, entry, lane, is_sure, sink);
            return Settled::Matched;
        }
        if has_data && self.is_cut(entry, lane) {
            self.match_by_range(lane);
            return Settled::ByRange;
        }
        Settled::Not
    }

    /// The waiting packet that fits best, and whether no other one could be meant.
    fn counterpart(&self, entry: &Entry, lane: u32) -> Option<(u32, bool)> {
        let shared = self.points[0].flows.get(lane);
        let mut best: Option<(u32, (u32, bool, i64))> = None;
        let (mut several, mut are_alike) = (false, true);
        for &slot in self.marks.iter_hash(entry.mark) {
            let other = self.pending.get(slot);
            if other.mark != entry.mark || other.point == entry.point {
                continue;
            }
            let Some(score) = score(entry, other, shared.stamps, shared.ids) else {
                continue;
            };
            let difference = match entry.point {
                Point::A => other.sight.time.saturating_sub(entry.sight.time),
                Point::B => entry.sight.time.saturating_sub(other.sight.time),
            };
            let away = match shared.difference {
                Some(usual) => difference.saturating_sub(usual).saturating_abs(),
                // The one that has waited longest.
                None => i64::try_from(other.sight.number).unwrap_or(i64::MAX),
            };
            // A copy is matched only after what it is a copy of.
            let rank = (score, !self.is_captured_again(other), away.saturating_neg());
            several |= best.is_some();
            are_alike &= best.is_none_or(|(_, highest)| (rank.0, rank.1) == (highest.0, highest.1));
            if best.is_none_or(|(_, highest)| rank > highest) {
                best = Some((slot, rank));
            }
        }
        let is_sure = |score: u32| !several || score >= SCORE_DISTINCT && !are_alike;
        best.map(|(slot, rank)| (slot, is_sure(rank.0)))
    }

    /// Removes a waiting packet from all tables.
    fn take(&mut self, slot: u32) -> Entry {
        let entry = self.pending.get(slot);
        let (point, flow, mark, is_marked) = (entry.point, entry.flow, entry.mark, entry.is_marked);
        if is_marked && let Ok(found) = self.marks.find_entry(mark, |&other| other == slot) {
            found.remove();
        }
        let flow = self.points[point as usize].flows.get_mut(flow);
        self.pending.remove(slot, &mut flow.waiting);
        self.pending.get(slot).clone()
    }

    /// Lets a packet wait for its counterpart. Whether it is a copy.
    fn wait<S: Sink>(&mut self, mut entry: Entry, lane: Option<u32>, sink: &mut S) -> bool {
        let point = entry.point;
        entry.is_copy |= self.is_copy(&entry);
        if entry.is_copy {
            let flow = self.points[point as usize].flows.get_mut(entry.flow);
            flow.note_alike(entry.full);
        }
        let way = lane.and_then(|lane| self.points[0].flows.get(lane).way);
        if entry.is_copy && way.is_some_and(|way| self.is_repeated(&entry, way)) {
            return true;
        }
        let is_copy = self.is_captured_again(&entry);
        if self.is_beyond(&entry) {
            self.points[point as usize].found.at_edges += 1;
            return is_copy;
        }
        self.points[point as usize].ahead += 1;
        if self.is_too_common(&entry) {
            self.points[point as usize].found.given_up += 1;
            return is_copy;
        }
        self.keep(entry, lane);
        let waiting = self.pending.count(Point::A) + self.pending.count(Point::B);
        self.waiting_max = self.waiting_max.max(u64::from(waiting));
        if self.pending.count(point) > self.config.waiting_max
            && let Some(slot) = self.pending.oldest(point)
        {
            self.forget(slot);
            self.points[point as usize].found.given_up += 1;
        }
        self.expire(point, sink);
        is_copy
    }

    /// Whether so many waiting packets look like this one that looking through them would take too long.
    fn is_too_common(&self, entry: &Entry) -> bool {
        entry.mark != 0 && self.marks.iter_hash(entry.mark).nth(SAME_MAX).is_some()
    }

    /// Enters a packet into the tables.
    fn keep(&mut self, mut entry: Entry, lane: Option<u32>) -> u32 {
        let (mark, point) = (entry.mark, entry.point);
        let by_range = lane.filter(|&lane| {
            let has_data = entry.sight.is_tcp() && entry.sight.length > 0;
            has_data && self.points[0].flows.get(lane).ranges.is_some()
        });
        entry.is_marked = lane.is_some() && by_range.is_none();
        let (is_marked, start, length) = (entry.is_marked, entry.start, entry.sight.length);
        let flow = self.points[point as usize].flows.get_mut(entry.flow);
        let slot = self.pending.insert(entry, &mut flow.waiting);
        if is_marked {
            let pending = &self.pending;
            self.marks
                .insert_unique(mark, slot, |&other| pending.get(other).mark);
        }
        if let Some(lane) = by_range
            && let Some(ranges) = &mut self.points[0].flows.get_mut(lane).ranges
        {
            ranges.sets[point as usize].insert((start, slot));
            let longest = &mut ranges.longest[point as usize];
            *longest = (*longest).max(length);
        }
        slot
    }

    /// Removes a waiting packet, also from the ranges of its flow.
    fn forget(&mut self, slot: u32) -> Entry {
        let entry = self.take(slot);
        if !entry.is_marked
            && let Some(lane) = self.lane(entry.point, entry.flow)
            && let Some(ranges) = &mut self.points[0].flows.get_mut(lane).ranges
        {
            ranges.sets[entry.point as usize].remove(&(entry.start, slot));
        }
        entry
    }

    /// Whether a packet that looks the same was seen at this point shortly before.
    fn is_copy(&self, entry: &Entry) -> bool {
        let span = match entry.is_distinct() {
            true => COPY_SPAN_DISTINCT,
            false => COPY_SPAN,
        };
        let flow = self.points[entry.point as usize].flows.get(entry.flow);
        if flow.is_recent(entry.full, entry.sight.time, span) {
            return true;
        }
        let same = |slot: u32| {
            let other = self.pending.get(slot);
            other.point == entry.point
                && other.full == entry.full
                && entry
                    .sight
                    .time
                    .saturating_sub(other.sight.time)
                    .saturating_abs()
                    <= span
        };
        match flow.mate {
            Some(_) => self.marks.iter_hash(entry.mark).any(|&slot| same(slot)),
            None => self.pending.latest(&flow.waiting, COMPARED).any(same),
        }
    }

    /// Whether the capture repeats an earlier packet, and not its sender. Transmissions of the same data within one tick of
    /// the time stamps differ only by their identification, which IPv6 lacks.
    #[inline]
    fn is_captured_again(&self, entry: &Entry) -> bool {
        let comes_twice = || {
            let flows = &self.points[entry.point as usize].flows;
            flows.get(entry.flow).comes_twice()
        };
        entry.is_copy && (entry.sight.id != 0 || comes_twice())
    }

    /// Notes, for losses before and after the point, what TCP shows there.
    #[inline]
    fn track(&mut self, point: Point, flow: u32, sight: &Sight) {
        let flows = &mut self.points[point as usize].flows;
        let own = flows.get_mut(flow);
        if sight.length > 0 {
            let start = sight
                .sequence
                .wrapping_add(u32::from(sight.has(Flags::SYN)));
            let range = (start, start.wrapping_add(sight.length));
            let sent = Sent {
                number: sight.number,
                time: sight.time,
                stamp: sight.stamps.map(|stamps| stamps.0),
                id: sight.id,
            };
            own.track.data(sent, range);
        }
        if sight.has(Flags::ACK)
            && let Some(reverse) = own.reverse
        {
            let track = &mut flows.get_mut(reverse).track;
            track.acknowledge(sight.acknowledgment, sight.sack);
        }
    }

    /// A capture has ended.
    pub fn end<S: Sink>(&mut self, point: Point, sink: &mut S) {
        self.points[point as usize].has_ended = true;
        self.expire(point.other(), sink);
    }

    /// Ends the comparison: no packet waits any longer.
    #[must_use]
    pub fn finish<S: Sink>(mut self, sink: &mut S) -> Findings {
        for point in [Point::A, Point::B] {
            self.points[point as usize].has_ended = true;
        }
        for point in [Point::A, Point::B] {
            while let Some(slot) = self.pending.oldest(point) {
                let entry = self.forget(slot);
                self.lose(&entry, sink);
            }
        }
        self.collect()
    }
}

/// The least score of packets whose time stamps or identification are the same.
const SCORE_DISTINCT: u32 = 2;

/// How well two packets with the same mark fit; `None` if they are different transmissions.
#[inline]
fn score(one: &Entry, other: &Entry, stamps: Kept, ids: Kept) -> Option<u32> {
    let mut score = 0;
    if let (Some(a), Some(b)) = (one.sight.stamps, other.sight.stamps) {
        match a.0 == b.0 {
            true => score += 4,
            false if stamps == Kept::Yes => return None,
            false => {}
        }
    }
    if one.sight.id != 0 && other.sight.id != 0 {
        match one.sight.id == other.sight.id {
            true => score += 2,
            false if ids == Kept::Yes => return None,
            false => {}
        }
    }
    score +=
        u32::from(one.sight.window == other.sight.window && one.sight.sack == other.sight.sack);
    Some(score)
}
