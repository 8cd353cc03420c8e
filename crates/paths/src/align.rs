//! Finds a first set of packets that two captures share, so that they can be read in step.
//!
//! The clocks may differ by any time, and one capture may start long after the other. So the first packets of each
//! capture are kept by their prints, and every packet of the other one is looked up. The packets found are believed
//! where several have nearly the same difference of times.

use std::cmp::Ordering;

use hashbrown::HashMap;

use crate::packet::{FlowKey, Mix, Point, Sight};
use crate::prints::{Strength, prints};

/// Packets of each capture whose prints are kept.
pub const HEAD: u64 = 1 << 16;

/// Packets found after which no more are looked for.
const ENOUGH: usize = 512;

/// Packets of each capture, after the first one found, that are looked at.
const BEYOND: u64 = 4096;

/// Differences of times within this are those of one path and one clock.
const CLUSTER: i64 = 2_000_000_000;

/// Packets with one strong print within this time, in nanoseconds, are copies of one packet.
const COPY_SPAN: i64 = 5_000_000;

/// Packets of each capture without a match after which a caller should tell.
pub const TELL_AFTER: u64 = 1000;

#[derive(Debug, Clone, Copy)]
struct Known {
    sight: Sight,
    is_ambiguous: bool,
}

#[derive(Debug, Clone, Copy)]
struct Hit {
    a: Sight,
    b: Sight,
    is_strong: bool,
}

impl Hit {
    fn difference(&self) -> i64 {
        self.b.time.saturating_sub(self.a.time)
    }
}

/// How two captures fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aligned {
    /// Difference of the times (B less A) of shared packets: at least and at most.
    pub differences: (i64, i64),
    /// A difference between those of both directions.
    pub centre: Option<i64>,
    /// Shared packets that were found.
    pub packets: usize,
}

/// The nearest thing to a match of captures that do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Best {
    /// These packets look alike, but too few do. Numbers at A and B.
    Packets(usize, (u64, u64)),
    /// Both have this flow, but no packet of it is the same.
    Flow(FlowKey),
    /// Nothing.
    Nothing,
}

/// Looks for shared packets.
pub struct Align {
    seed: Mix,
    heads: [HashMap<u64, Known>; 2],
    flows: [HashMap<FlowKey, ()>; 2],
    counts: [u64; 2],
    first: [Option<i64>; 2],
    hits: Vec<Hit>,
    /// Counts at the first hit.
    found_at: Option<[u64; 2]>,
}

impl Align {
    /// `seed` is that of all hashes.
    #[must_use]
    pub fn new(seed: u64) -> Align {
        Align {
            seed: Mix(seed),
            heads: [HashMap::new(), HashMap::new()],
            flows: [HashMap::new(), HashMap::new()],
            counts: [0; 2],
            first: [None; 2],
            hits: Vec::new(),
            found_at: None,
        }
    }

    /// Takes the next packet of a capture.
    pub fn see(&mut self, point: Point, sight: &Sight) {
        let own = point as usize;
        self.counts[own] += 1;
        self.first[own].get_or_insert(sight.time);
        let keep = self.counts[own] <= HEAD;
        if keep {
            self.flows[own].insert(sight.key, ());
        }
        let mut hit = None;
        for print in prints(sight, self.seed).into_iter().flatten() {
            if let Some(known) = self.heads[point.other() as usize].get_mut(&print.value) {
                if !known.is_ambiguous && hit.is_none() {
                    let (a, b) = match point {
                        Point::A => (*sight, known.sight),
                        Point::B => (known.sight, *sight),
                    };
                    let shares = a.key.shares_an_end(&b.key);
                    hit = Some(Hit {
                        a,
                        b,
                        is_strong: print.strength == Strength::Strong || shares,
                    });
                }
                // It is the counterpart of one packet only.
                known.is_ambiguous = true;
            }
            if keep {
                // A packet that has a counterpart is none of another one.
                let known = self.heads[own].entry(print.value).or_insert(Known {
                    sight: *sight,
                    is_ambiguous: hit.is_some(),
                });
                // A capture on several interfaces has each packet twice: any of the copies will do.
                let later = sight.time.saturating_sub(known.sight.time).saturating_abs();
                let is_copy = print.strength == Strength::Strong && later <= COPY_SPAN;
                known.is_ambiguous |= known.sight.number != sight.number && !is_copy;
            }
        }
        if let Some(hit) = hit
            && self.hits.len() < ENOUGH
        {
            self.found_at.get_or_insert(self.counts);
            self.hits.push(hit);
        }
    }

    /// Whether enough packets were found, or none will be believed beyond those there are.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        let Some(at) = self.found_at else {
            return false;
        };
        let further = |point: usize| self.counts[point].saturating_sub(at[point]);
        self.hits.len() >= ENOUGH || (further(0) >= BEYOND && further(1) >= BEYOND)
    }

    /// Packets of a capture that were looked at.
    #[must_use]
    pub fn count(&self, point: Point) -> u64 {
        self.counts[point as usize]
    }

    /// Time of the first packet of a capture.
    #[must_use]
    pub fn first(&self, point: Point) -> Option<i64> {
        self.first[point as usize]
    }

    /// How the captures fit, if enough packets are shared.
    #[must_use]
    pub fn result(&self) -> Option<Aligned> {
        let hits = self.cluster();
        let strong = hits.iter().filter(|hit| hit.is_strong).count();
        // One packet is enough for captures of a few packets.
        let few = self.counts.iter().copied().min().unwrap_or(0);
        let needed = if few < 16 { 1 } else { 3 };
        if strong < needed && hits.len() < 2 * needed {
            return None;
        }
        let differences = hits.iter().map(Hit::difference);
        let least = differences.clone().min()?;
        let most = differences.max()?;
        Some(Aligned {
            differences: (least, most),
            centre: centre(&hits),
            packets: hits.len(),
        })
    }

    /// The hits within the time span that has most of them.
    fn cluster(&self) -> Vec<Hit> {
        let mut hits = self.hits.clone();
        hits.sort_by_key(Hit::difference);
        let (mut best, mut from) = (0..0, 0);
        for to in 0..hits.len() {
            while hits[to]
                .difference()
                .saturating_sub(hits[from].difference())
                > CLUSTER
            {
                from += 1;
            }
            if to + 1 - from > best.len() {
                best = from..to + 1;
            }
        }
        hits[best].to_vec()
    }

    /// The nearest thing to a match.
    #[must_use]
    pub fn best(&self) -> Best {
        if let Some(hit) = self.hits.first() {
            return Best::Packets(self.hits.len(), (hit.a.number, hit.b.number));
        }
        let [a, b] = &self.flows;
        let shared = a.keys().filter(|key| b.contains_key(*key));
        let least = shared.min_by_key(|key| {
            (
                key.source,
                key.source_port,
                key.destination,
                key.destination_port,
            )
        });
        least.map_or(Best::Nothing, |key| Best::Flow(*key))
    }
}

/// A difference between those of packets from A to B, which are larger, and those of packets from B to A.
fn centre(hits: &[Hit]) -> Option<i64> {
    // Of a connection, the direction with the larger differences is that from A to B. A router's hop tells it more surely.
    let mut flows: HashMap<FlowKey, Vec<i64>> = HashMap::new();
    for hit in hits {
        flows.entry(hit.a.key).or_default().push(hit.difference());
    }
    let middles: HashMap<FlowKey, i64> = flows
        .into_iter()
        .map(|(key, mut differences)| {
            differences.sort_unstable();
            (key, differences[differences.len() / 2])
        })
        .collect();
    // The differences of packets from A to B (true) and from B to A, in order.
    let mut seen = Vec::new();
    for hit in hits {
        let order = match hit.a.hop_limit.cmp(&hit.b.hop_limit) {
            Ordering::Equal => {
                let own = middles.get(&hit.a.key);
                let other = middles.get(&hit.a.key.reversed());
                own.zip(other).map(|(own, other)| own.cmp(other))
            }
            by_hop => Some(by_hop),
        };
        match order {
            Some(Ordering::Greater) => seen.push((hit.difference(), true)),
            Some(Ordering::Less) => seen.push((hit.difference(), false)),
            _ => {}
        }
    }
    seen.sort_unstable();
    // A few packets may be matched wrongly: the bound that most packets agree with has the fewest on its wrong side.
    let backs = seen.iter().filter(|one| !one.1).count();
    let mut wrong = backs;
    let mut best: Option<(usize, i64, i64)> = None;
    for pair in seen.windows(2) {
        wrong = match pair[0].1 {
            true => wrong + 1,
            false => wrong - 1,
        };
        let gap = pair[1].0.saturating_sub(pair[0].0);
        if best.is_none_or(|(least, widest, _)| (wrong, -gap) < (least, -widest)) {
            best = Some((wrong, gap, pair[0].0.saturating_add(gap / 2)));
        }
    }
    best.filter(|_| backs > 0 && backs < seen.len())
        .map(|(_, _, centre)| centre)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(number: u64, port: u16, difference: i64) -> Hit {
        let key = FlowKey {
            source: [1; 16],
            destination: [2; 16],
            source_port: 1000,
            destination_port: port,
            protocol: 17,
        };
        let sight = |time| Sight {
            number,
            time,
            key: if port == 0 { key.reversed() } else { key },
            hop_limit: 64,
            ..Sight::default()
        };
        let mut hit = Hit {
            a: sight(0),
            b: sight(difference),
            is_strong: true,
        };
        if port == 0 {
            hit.a.key = FlowKey {
                source_port: 80,
                destination_port: 1000,
                ..hit.a.key
            };
            hit.b.key = hit.a.key;
        }
        hit
    }

    /// From A to B 0.2 to 14 ms, from B to A 0.1 ms; a packet of each direction is matched wrongly.
    #[test]
    fn the_bound_between_the_directions_is_below_the_shortest_delay() {
        let mut hits: Vec<Hit> = (0..100)
            .map(|at| hit(at, 80, 200_000 + 138_000 * at as i64))
            .collect();
        hits.extend((0..6).map(|at| hit(at, 0, -100_000 - 10_000 * at as i64)));
        hits.push(hit(7, 80, -7_000_000));
        hits.push(hit(8, 0, 9_000_000));
        let centre = centre(&hits).unwrap();
        assert!((-100_000..=200_000).contains(&centre), "{centre}");
        assert_eq!(super::centre(&hits[..100]), None);
    }

    #[test]
    fn a_packet_is_the_counterpart_of_one_other_only() {
        let mut align = Align::new(1);
        let at = |number: u64, time: i64| Sight {
            number,
            time,
            key: hit(1, 80, 0).a.key,
            length: 4,
            body: 77,
            ..Sight::default()
        };
        // Two datagrams with the same content, each seen at both points.
        align.see(Point::A, &at(1, 0));
        align.see(Point::B, &at(1, 10));
        align.see(Point::A, &at(2, 50_000_000));
        align.see(Point::B, &at(2, 50_000_010));
        assert_eq!(align.hits.len(), 1);
        assert_eq!(align.hits[0].difference(), 10);
    }
}
