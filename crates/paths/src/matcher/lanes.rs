//! Which flow at one point is which flow at the other: found by prints of their packets.

use super::pending::Entry;
use super::{AtOne, Matcher, Settled};
use crate::findings::{MAPPINGS_MAX, Mapping, Sink};
use crate::packet::{FlowKey, Point, Sight};
use crate::prints::{Print, Strength, prints};

/// Prints in a generation. When it is full, the older one is forgotten.
const PRINTS_MAX: usize = 1 << 18;

/// Packets of an unknown flow whose prints are all kept; of later ones, those of every sixteenth are.
const PRINTED: u32 = 256;

/// Idle flows leave after this time without packets, in waits.
const IDLE_WAITS: i64 = 12;

/// A print that waits for the other point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Orphan {
    point: Point,
    flow: u32,
    key: FlowKey,
    sequence: u32,
    /// Other packets have the same print.
    is_ambiguous: bool,
}

impl Matcher {
    /// Looks for the counterpart of an unknown flow by one of its packets.
    #[cold]
    pub(super) fn seek<S: Sink>(&mut self, point: Point, flow: u32, sight: &Sight, sink: &mut S) {
        let own = self.points[point as usize].flows.get_mut(flow);
        own.printed += 1;
        let keep = own.printed <= PRINTED || own.printed.is_multiple_of(16);
        for print in prints(sight, self.seed).into_iter().flatten() {
            if let Some(other) = self.orphan(print.value).copied()
                && other.point != point
                && self.propose(point, flow, sight, print, &other)
            {
                let shift = sight.sequence.wrapping_sub(other.sequence);
                let (a, b, shift) = match point {
                    Point::A => (flow, other.flow, shift.wrapping_neg()),
                    Point::B => (other.flow, flow, shift),
                };
                let shift = if sight.is_tcp() { shift } else { 0 };
                self.join(a, b, shift, sink);
                return;
            }
            if keep {
                self.post(point, flow, sight, print);
            }
        }
    }

    fn orphan(&self, value: u64) -> Option<&Orphan> {
        let [now, before] = &self.orphans;
        now.get(&value).or_else(|| before.get(&value))
    }

    /// Keeps a print for the other point.
    fn post(&mut self, point: Point, flow: u32, sight: &Sight, print: Print) {
        let known = self.orphan(print.value);
        let differs = |known: &Orphan| {
            known.point == point
                && (known.flow != flow || known.sequence != sight.sequence)
                && self.points[point as usize]
                    .flows
                    .get(known.flow)
                    .mate
                    .is_none()
        };
        let orphan = Orphan {
            point,
            flow,
            key: sight.key,
            sequence: sight.sequence,
            is_ambiguous: known.is_some_and(differs),
        };
        if self.orphans[0].len() >= PRINTS_MAX {
            self.orphans.swap(0, 1);
            self.orphans[0].clear();
        }
        self.orphans[0].insert(print.value, orphan);
    }

    /// Whether a print is evidence enough that two flows are one.
    fn propose(
        &mut self,
        point: Point,
        flow: u32,
        sight: &Sight,
        print: Print,
        other: &Orphan,
    ) -> bool {
        let theirs = self.points[other.point as usize].flows.get(other.flow);
        if theirs.key != other.key || !theirs.is_used || other.is_ambiguous {
            return false;
        }
        if theirs.mate == Some(flow) {
            return false;
        }
        let moved = sight.is_tcp() && sight.sequence != other.sequence;
        let is_strong = print.strength == Strength::Strong;
        // Packets of one millisecond have the same time stamps, and a part of a cut segment may have the length of another
        // one: which two packets these are is as unsure as how far the sequence numbers were moved.
        if is_strong && !moved {
            return true;
        }
        if theirs.mate.is_some() && !is_strong {
            return false;
        }
        let own = self.points[point as usize].flows.get(flow);
        let reverse = own
            .reverse
            .map(|reverse| self.points[point as usize].flows.get(reverse));
        let mates =
            reverse.is_some_and(|reverse| reverse.mate == theirs.reverse && reverse.mate.is_some());
        if !moved && (mates || own.key.shares_an_end(&theirs.key)) {
            return true;
        }
        let shift = sight.sequence.wrapping_sub(other.sequence);
        let proposal = (other.flow, shift, print.value);
        let before = own.proposal;
        self.points[point as usize].flows.get_mut(flow).proposal = Some(proposal);
        before.is_some_and(|before| {
            (before.0, before.1) == (proposal.0, proposal.1) && before.2 != proposal.2
        })
    }

    /// Makes flow `a` of A and flow `b` of B one flow. Their waiting packets are matched.
    fn join<S: Sink>(&mut self, a: u32, b: u32, shift: u32, sink: &mut S) {
        self.part(Point::A, a);
        self.part(Point::B, b);
        let [at_a, at_b] = &mut self.points;
        let (one, other) = (at_a.flows.get_mut(a), at_b.flows.get_mut(b));
        (one.mate, other.mate, other.shift) = (Some(b), Some(a), shift);
        if one.key != other.key || shift != 0 {
            self.mapped += 1;
            if self.mappings.len() < MAPPINGS_MAX {
                self.mappings.push(Mapping {
                    a: one.key,
                    b: other.key,
                    moved: shift,
                });
            }
        }
        let reverse = (one.reverse, other.reverse);
        self.replay(a, b, sink);
        // Packets without data of the other direction were marked without this shift.
        if shift != 0
            && let (Some(a), Some(b)) = reverse
            && self.points[0].flows.get(a).mate == Some(b)
        {
            self.replay(a, b, sink);
        }
    }

    /// Takes a flow from its counterpart: its addresses and ports are now those of another.
    fn part(&mut self, point: Point, flow: u32) {
        let Some(mate) = self.points[point as usize].flows.get_mut(flow).mate.take() else {
            return;
        };
        let other = &mut self.points[point.other() as usize];
        other.flows.get_mut(mate).mate = None;
        let lane = match point {
            Point::A => flow,
            Point::B => mate,
        };
        let lane = self.points[0].flows.get_mut(lane);
        // What is left of the old pair waits as packets of unknown flows do.
        (lane.ranges, lane.difference, lane.highest) = (None, None, [0; 2]);
    }

    /// Marks the waiting packets of two flows that are one, and matches them.
    fn replay<S: Sink>(&mut self, a: u32, b: u32, sink: &mut S) {
        for (point, flow) in [(Point::A, a), (Point::B, b)] {
            let list = self.points[point as usize].flows.get(flow).waiting;
            for slot in self.pending.of_flow(&list, usize::MAX) {
                let entry = self.pending.get(slot);
                // Each match lets packets leave that have waited too long.
                let is_here = entry.is_waiting && (entry.point, entry.flow) == (point, flow);
                if !is_here || entry.is_partial {
                    continue;
                }
                let mut entry = self.forget(slot);
                self.mark(&mut entry, a);
                match self.settle(&entry, a, sink) {
                    Settled::Matched => {}
                    Settled::ByRange => {
                        self.place_by_range(entry, a, sink);
                    }
                    Settled::Not => {
                        self.keep(entry, Some(a));
                    }
                }
            }
        }
    }

    /// A SYN without counterpart in a known flow: another connection may have the ports now. Whether it was matched.
    pub(super) fn renew<S: Sink>(&mut self, entry: &mut Entry, sink: &mut S) -> bool {
        let (point, flow) = (entry.point, entry.flow);
        let before = self.points[point as usize].flows.get(flow).mate;
        let sight = entry.sight;
        self.seek(point, flow, &sight, sink);
        let Some(lane) = self.lane(point, flow) else {
            return false;
        };
        self.mark(entry, lane);
        if before == self.points[point as usize].flows.get(flow).mate {
            return false;
        }
        let Some((slot, is_sure)) = self.counterpart(entry, lane) else {
            return false;
        };
        let waiting = self.take(slot);
        self.pair(&waiting, entry, lane, is_sure, sink);
        true
    }

    /// Removes flows of a point that have been idle, and their counterparts.
    #[cold]
    pub(super) fn sweep(&mut self, point: Point) {
        let idle = self.config.wait.saturating_mul(IDLE_WAITS);
        let is_idle = |at: &AtOne, flow: u32| {
            let flow = at.flows.get(flow);
            let now = at.found.time.map_or(0, |time| time.1);
            flow.waiting.count == 0 && now.saturating_sub(flow.last_time) > idle
        };
        let [at_a, at_b] = &self.points;
        let (own, others) = match point {
            Point::A => (at_a, at_b),
            Point::B => (at_b, at_a),
        };
        let flows = own.flows.used().filter(|(at, flow)| {
            is_idle(own, *at) && flow.mate.is_none_or(|mate| is_idle(others, mate))
        });
        let flows: Vec<(u32, Option<u32>)> = flows.map(|(at, flow)| (at, flow.mate)).collect();
        for (flow, mate) in flows {
            self.fold(point, flow);
            if let Some(mate) = mate {
                self.fold(point.other(), mate);
                self.points[point.other() as usize].flows.remove(mate);
            }
            self.points[point as usize].flows.remove(flow);
        }
        self.points[point as usize].flows.swept();
    }
}
