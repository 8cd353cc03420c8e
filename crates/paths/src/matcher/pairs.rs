//! What a matched packet says, and what a packet without counterpart says.

use wire::tcp::Flags;

use super::Matcher;
use super::flows::{Early, Flow};
use super::pending::Entry;
use crate::clock::{Clock, Way};
use crate::findings::{Change, Field, Findings, Lost, Pair, Sink};
use crate::packet::{FlowKey, Point, Sight};
use crate::track::Counted;

/// Packets of an unknown flow that left early and are still listed once its counterpart is known.
const EARLY_MAX: usize = 8;

/// Two packets of one transmission, by point.
struct Two<'a> {
    a: &'a Sight,
    b: &'a Sight,
}

impl Two<'_> {
    fn difference(&self) -> i64 {
        self.b.time.saturating_sub(self.a.time)
    }

    /// At the point nearer to the sender, and at the other.
    fn ordered(&self, way: Way) -> (&Sight, &Sight) {
        match way {
            Way::AToB => (self.a, self.b),
            Way::BToA => (self.b, self.a),
        }
    }
}

impl Matcher {
    /// A whole packet was matched. `is_sure` says that no other transmission could be meant.
    pub(super) fn pair<S: Sink>(
        &mut self,
        waiting: &Entry,
        entry: &Entry,
        lane: u32,
        is_sure: bool,
        sink: &mut S,
    ) {
        let bytes = u64::from(entry.sight.length);
        self.part_pair(waiting, entry, lane, (bytes, is_sure, false), sink);
    }

    /// A packet or a part of a segment was matched: its bytes, whether the times are those of the same packet, and whether the
    /// bounds of the segments differ.
    pub(super) fn part_pair<S: Sink>(
        &mut self,
        waiting: &Entry,
        entry: &Entry,
        lane: u32,
        (bytes, is_sure, is_part): (u64, bool, bool),
        sink: &mut S,
    ) {
        let two = match entry.point {
            Point::A => Two {
                a: &entry.sight,
                b: &waiting.sight,
            },
            Point::B => Two {
                a: &waiting.sight,
                b: &entry.sight,
            },
        };
        let difference = two.difference();
        let way = self.way(lane, &two);
        // A packet for many receivers may come from a device between the points, which has sent it to both.
        let from_between = two.a.key.has_many_receivers() && two.a.hop_limit == two.b.hop_limit;
        if is_sure && !from_between {
            self.times.add(way, two.a.time, two.b.time);
            self.recent[way as usize].add(difference);
            self.set_differences();
        }
        let is_first = self.ways.iter().all(|way| way.pairs == 0);
        self.only_difference = match is_first {
            true => Some(difference),
            false => self.only_difference.filter(|&only| only == difference),
        };
        self.advance(&two);
        let (near, far) = two.ordered(way);
        let is_late = self.note_shared(lane, &two, (near.number, far.number), is_part);
        let found = &mut self.ways[way as usize];
        found.pairs += 1;
        found.bytes += bytes;
        found.parts += u64::from(is_part);
        if is_late && !is_part {
            found.reordered.add(far.number, bytes);
        }
        let numbers = (two.a.number, two.b.number);
        self.rewritten(way, near, far, numbers);
        sink.pair(&Pair {
            way,
            numbers,
            times: (two.a.time, two.b.time),
            bytes,
            keys: (two.a.key, two.b.key),
            is_part,
        });
        for one in [waiting, entry] {
            let flows = &mut self.points[one.point as usize].flows;
            flows.get_mut(one.flow).remember(one.full, one.sight.time);
        }
        self.late_losses(lane, way, sink);
        for point in [Point::A, Point::B] {
            self.expire(point, sink);
        }
    }

    /// What a matched packet shows of its flow. Whether it arrived after a packet that was sent later: `numbers` are those
    /// at the point that it passed first, and at the other one.
    #[inline]
    fn note_shared(
        &mut self,
        lane: u32,
        two: &Two<'_>,
        numbers: (u64, u64),
        is_part: bool,
    ) -> bool {
        let shared = self.points[0].flows.get_mut(lane);
        shared.difference = Some(two.difference());
        shared.pairs += 1;
        if let (Some(a), Some(b)) = (two.a.stamps, two.b.stamps) {
            shared.stamps.note(a.0 == b.0);
        }
        if two.a.id != 0 && two.b.id != 0 && !is_part {
            shared.ids.note(two.a.id == two.b.id);
        }
        let is_late = numbers.1 > shared.highest[1] && numbers.0 < shared.highest[0];
        shared.highest[0] = shared.highest[0].max(numbers.0);
        shared.highest[1] = shared.highest[1].max(numbers.1);
        is_late
    }

    /// The captures have been matched up to these packets.
    #[inline]
    fn advance(&mut self, two: &Two<'_>) {
        for (point, sight) in self.points.iter_mut().zip([two.a, two.b]) {
            let before = point.matched.map_or(sight.time, |matched| matched.0);
            point.matched = Some((sight.time, before));
            point.ahead = 0;
        }
    }

    /// Sets what the recent differences say about the next packets. Packets from A to B have larger differences than those
    /// from B to A; a difference between them makes both directions be read at their sender's side first.
    #[inline]
    fn set_differences(&mut self) {
        let [there, back] = [self.recent[0].bounds(), self.recent[1].bounds()];
        if let Some(all) = super::wider(there, back) {
            self.differences = all;
        }
        self.centre = match (there, back) {
            (Some(there), Some(back)) => there.0 / 2 + back.1 / 2,
            (Some(there), None) => there.0,
            (None, Some(back)) => back.1.saturating_add(1),
            (None, None) => self.centre,
        };
    }

    /// Which way the packets of a flow go.
    fn way(&mut self, lane: u32, two: &Two<'_>) -> Way {
        let flows = &self.points[0].flows;
        if let Some(way) = flows.get(lane).way {
            return way;
        }
        let reverse = flows.get(lane).reverse;
        let reverse = reverse.and_then(|reverse| flows.get(reverse).way);
        let [there, back] = self.recent.map(|recent| recent.bounds().is_some());
        let is_known = self.config.centre.is_some() || there && back;
        let centre = is_known.then_some(self.centre);
        let by_time = |bound: i64| match two.difference() >= bound {
            true => Way::AToB,
            false => Way::BToA,
        };
        let of_hosts = self.way_of_hosts(&two.a.key);
        let by_number = match two.a.number < two.b.number {
            true => Way::AToB,
            false => Way::BToA,
        };
        let way = match (reverse, two.a.hop_limit.cmp(&two.b.hop_limit), centre) {
            (Some(reverse), ..) => reverse.reversed(),
            _ if self.config.one_file => by_number,
            // A router lowers it.
            (None, std::cmp::Ordering::Greater, _) => Way::AToB,
            (None, std::cmp::Ordering::Less, _) => Way::BToA,
            // Few packets so far bound the delays only loosely: other flows of these hosts tell more than the time does.
            (None, std::cmp::Ordering::Equal, centre) => match (of_hosts, centre) {
                (Some(way), _) => way,
                (None, Some(centre)) => by_time(centre),
                (None, None) => {
                    self.is_way_assumed |= !self.config.one_clock;
                    by_time(0)
                }
            },
        };
        self.points[0].flows.get_mut(lane).way = Some(way);
        let key = &two.a.key;
        if self.hosts.len() < super::HOSTS_MAX && !key.has_many_receivers() {
            self.hosts.insert((key.source, key.destination), way);
        }
        way
    }

    /// Which way other flows between these addresses go.
    fn way_of_hosts(&self, key: &FlowKey) -> Option<Way> {
        let own = self.hosts.get(&(key.source, key.destination)).copied();
        let other = || self.hosts.get(&(key.destination, key.source)).copied();
        own.or_else(|| other().map(Way::reversed))
    }

    /// Compares the fields that a path may rewrite.
    #[inline]
    fn rewritten(&mut self, way: Way, near: &Sight, far: &Sight, numbers: (u64, u64)) {
        let mut add = |field: Field, from: u32, to: u32| {
            if from != to {
                let change = Change {
                    way,
                    field,
                    from,
                    to,
                };
                self.rewrites.add(change, numbers);
            }
        };
        if near.hop_limit != far.hop_limit {
            let hops = near.hop_limit.wrapping_sub(far.hop_limit);
            add(Field::Hops, 0, hops.into());
        }
        if near.traffic_class != far.traffic_class {
            let (from, to) = (u32::from(near.traffic_class), u32::from(far.traffic_class));
            add(Field::Dscp, from >> 2, to >> 2);
            add(Field::Ecn, from & 3, to & 3);
        }
        if !near.has(Flags::SYN) {
            return;
        }
        let ecn = |sight: &Sight| u32::from(sight.flags & (Flags::ECE.0 | Flags::CWR.0)) >> 6;
        add(Field::EcnSetup, ecn(near), ecn(far));
        add(Field::Mss, near.mss.into(), far.mss.into());
        let scale = |sight: &Sight| sight.scale.map_or(255, u32::from);
        add(Field::WindowScale, scale(near), scale(far));
        add(
            Field::SackPermitted,
            near.sack_permitted.into(),
            far.sack_permitted.into(),
        );
        let stamps = |sight: &Sight| u32::from(sight.stamps.is_some());
        add(Field::Timestamps, stamps(near), stamps(far));
    }

    /// When a packet should be at the other point, by its clock: at the earliest and at the latest.
    fn expected(&self, point: Point, time: i64) -> (i64, i64) {
        let (least, most) = self.differences;
        match point {
            Point::A => (time.saturating_add(least), time.saturating_add(most)),
            Point::B => (time.saturating_sub(most), time.saturating_sub(least)),
        }
    }

    /// Whether the other capture does not cover the time at which a packet should be there.
    pub(super) fn is_beyond(&self, entry: &Entry) -> bool {
        let other = &self.points[entry.point.other() as usize];
        let (earliest, latest) = self.expected(entry.point, entry.sight.time);
        let Some((first, last)) = other.found.time else {
            return true;
        };
        // Before the first match, packets that were sent earlier than the other capture began do not wait.
        let early = other.matched.is_none() && latest < first;
        early || (other.has_ended && earliest > last)
    }

    /// Whether a packet without counterpart may only be outside of the other capture.
    fn is_at_edge(&self, entry: &Entry) -> bool {
        let other = &self.points[entry.point.other() as usize];
        let (earliest, latest) = self.expected(entry.point, entry.sight.time);
        let Some((first, last)) = other.found.time else {
            return true;
        };
        earliest < first || (other.has_ended && latest > last)
    }

    /// Counts a copy of a packet at the far point that the path or the far capture made. False at the near point, where
    /// it may still have a counterpart.
    pub(super) fn is_repeated(&mut self, entry: &Entry, way: Way) -> bool {
        let far = match way {
            Way::AToB => Point::B,
            Way::BToA => Point::A,
        };
        if entry.point != far {
            return false;
        }
        let bytes = u64::from(entry.sight.length);
        self.ways[way as usize]
            .duplicated
            .add(entry.sight.number, bytes);
        true
    }

    /// Gives up packets that have waited too long.
    #[inline]
    pub(super) fn expire<S: Sink>(&mut self, point: Point, sink: &mut S) {
        let Some((last, before)) = self.points[point as usize].matched else {
            return;
        };
        while let Some(slot) = self.pending.oldest(point) {
            let time = self.pending.get(slot).sight.time;
            // After a silence, the packet that ends it is much later than the last matched one. A single packet may have a
            // wrong time.
            let age = |now: i64| now.saturating_sub(time);
            if age(last).min(age(before)) <= self.config.wait {
                return;
            }
            let entry = self.forget(slot);
            self.lose(&entry, sink);
        }
    }

    /// A packet has no counterpart.
    #[cold]
    pub(super) fn lose<S: Sink>(&mut self, entry: &Entry, sink: &mut S) {
        let lane = self.lane(entry.point, entry.flow);
        let way = lane.and_then(|lane| self.points[0].flows.get(lane).way);
        if entry.is_copy
            && let Some(way) = way
            && self.is_repeated(entry, way)
        {
            return;
        }
        if self.is_captured_again(entry) {
            if let Some(way) = way {
                self.ways[way as usize].copies += 1;
            }
            return;
        }
        let left: u64 = entry
            .uncovered()
            .iter()
            .map(|range| range.1 - range.0)
            .sum();
        let bytes = match entry.is_partial {
            true => left,
            false => u64::from(entry.sight.length),
        };
        let flow = self.points[entry.point as usize].flows.get_mut(entry.flow);
        if flow.mate.is_none() {
            if flow.early.len() < EARLY_MAX {
                flow.early.push(Early {
                    number: entry.sight.number,
                    time: entry.sight.time,
                    length: entry.sight.length,
                });
            }
            flow.left_early += 1;
            return;
        }
        if self.is_at_edge(entry) {
            self.points[entry.point as usize].found.at_edges += 1;
            return;
        }
        if let Some(way) = way {
            let lost = Lost {
                way,
                point: entry.point,
                number: entry.sight.number,
                time: entry.sight.time,
                bytes,
                is_partial: entry.is_partial,
                key: entry.sight.key,
            };
            self.count_lost(&lost, sink);
        }
    }

    fn count_lost<S: Sink>(&mut self, lost: &Lost, sink: &mut S) {
        let found = &mut self.ways[lost.way as usize];
        let near = match lost.way {
            Way::AToB => Point::A,
            Way::BToA => Point::B,
        };
        if lost.point != near {
            found.extra.add(lost.number, lost.bytes);
            return;
        }
        found.lost.add(lost.number, lost.bytes);
        found.lost_in_part += u64::from(lost.is_partial);
        sink.lost(lost);
    }

    /// Packets of a flow that left before its counterpart was known were lost, too.
    #[inline]
    fn late_losses<S: Sink>(&mut self, lane: u32, way: Way, sink: &mut S) {
        let mate = self.points[0].flows.get(lane).mate;
        for (point, flow) in [(Point::A, Some(lane)), (Point::B, mate)] {
            let Some(flow) = flow else { continue };
            let flow = self.points[point as usize].flows.get_mut(flow);
            if flow.left_early == 0 {
                continue;
            }
            let (early, key) = (std::mem::take(&mut flow.early), flow.key);
            let unlisted = flow.left_early.saturating_sub(early.len() as u64);
            flow.left_early = 0;
            self.points[point as usize].found.given_up += unlisted;
            for early in early {
                let entry_time = self.expected(point, early.time);
                let first = self.points[point.other() as usize].found.time;
                if first.is_some_and(|first| entry_time.0 < first.0) {
                    self.points[point as usize].found.at_edges += 1;
                    continue;
                }
                let lost = Lost {
                    way,
                    point,
                    number: early.number,
                    time: early.time,
                    bytes: early.length.into(),
                    is_partial: false,
                    key,
                };
                self.count_lost(&lost, sink);
            }
        }
    }

    /// Adds a flow's counts to the result.
    pub(super) fn fold(&mut self, point: Point, at: u32) {
        let lane = self.lane(point, at);
        let way = lane.and_then(|lane| self.points[0].flows.get(lane).way);
        let Some(way) = way else {
            self.count_only(point, at);
            return;
        };
        let flow = self.points[point as usize].flows.get(at);
        let found = &mut self.ways[way as usize];
        let is_near = (way == Way::AToB) == (point == Point::A);
        match is_near {
            true => {
                found.lost_before.join(&flow.track.lost_before);
                found.late_before.join(&flow.track.late_before);
            }
            false => {
                found.lost_after.join(&flow.track.lost_after);
                found.needless.join(&flow.track.needless);
            }
        }
        // A's flow has what both share.
        if point == Point::A {
            found.flows += 1;
            self.stamps_rewritten += u64::from(flow.stamps == super::Kept::No);
            if found.main.is_none_or(|main| main.2 < flow.pairs)
                && let Some(mate) = flow.mate
            {
                let mate = self.points[1].flows.get(mate).key;
                found.main = Some((flow.key, mate, flow.pairs));
            }
        }
    }

    /// A flow that the other point did not see.
    fn count_only(&mut self, point: Point, at: u32) {
        let point = &mut self.points[point as usize];
        let flow: &Flow = point.flows.get(at);
        let found = &mut point.found;
        found.only_flows += 1;
        let first = flow.early.first().map_or(0, |early| early.number);
        found.only.join(&Counted {
            packets: flow.packets,
            bytes: flow.bytes,
            first,
        });
        if found.only_main.is_none_or(|main| main.1 < flow.packets) {
            found.only_main = Some((flow.key, flow.packets));
        }
    }

    /// The result.
    pub(super) fn collect(mut self) -> Findings {
        for point in [Point::A, Point::B] {
            let flows = self.points[point as usize].flows.used();
            let flows: Vec<u32> = flows.map(|flow| flow.0).collect();
            for flow in flows {
                self.fold(point, flow);
            }
        }
        self.rewrites.settle();
        let [mut a, mut b] = self.points.map(|point| {
            let mut found = point.found;
            found.flows = point.flows.total;
            found
        });
        for point in [&mut a, &mut b] {
            if point.packets == 0 {
                point.time = None;
            }
        }
        let mut found = Findings {
            points: [a, b],
            ways: self.ways,
            clock: Clock::default(),
            rewrites: self.rewrites,
            mappings: self.mappings,
            mapped: self.mapped,
            stamps_rewritten: self.stamps_rewritten,
            is_way_assumed: self.is_way_assumed,
            only_difference: self.only_difference,
            waiting_max: self.waiting_max,
        };
        let offset = match self.config.one_clock {
            true => Some(0),
            false => found.one_point(),
        };
        found.clock = self.times.fit(offset);
        found
    }
}
