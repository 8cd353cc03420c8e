//! Omits invisible points. Of the points in a column of pixels, the first, last, lowest and highest stay; of marks in
//! the same place, one.

use super::{ConnectionGraph, Marks, Packet};
use std::collections::HashSet;

/// Limit of packets in a page, in addition to marks of rare events.
pub const PAGE_PACKETS: usize = 100_000;

/// Points of a line, in pixels and in the order of time: of those in one column, the first, the lowest, the highest
/// and the last.
pub(super) fn line(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut thin: Vec<(f64, f64)> = Vec::new();
    // Where the present column begins in `thin`, and which of its points are the lowest and the highest.
    let mut column: Vec<(f64, f64)> = Vec::with_capacity(8);
    let mut at = f64::NAN;
    for point in points {
        if point.0.floor() != at {
            flush(&mut column, &mut thin);
            at = point.0.floor();
        }
        column.push(point);
        if column.len() >= 64 {
            reduce(&mut column);
        }
    }
    flush(&mut column, &mut thin);
    thin
}

fn flush(column: &mut Vec<(f64, f64)>, thin: &mut Vec<(f64, f64)>) {
    reduce(column);
    thin.append(column);
}

/// Keeps the first, the lowest, the highest and the last, in their order.
fn reduce(column: &mut Vec<(f64, f64)>) {
    if column.len() <= 4 {
        return;
    }
    let by_y = |a: &(usize, &(f64, f64)), b: &(usize, &(f64, f64))| a.1.1.total_cmp(&b.1.1);
    let lowest = column.iter().enumerate().min_by(by_y).map_or(0, |(i, _)| i);
    let highest = column.iter().enumerate().max_by(by_y).map_or(0, |(i, _)| i);
    let keep = [0, lowest, highest, column.len() - 1];
    let mut at = 0;
    column.retain(|_| {
        at += 1;
        keep.contains(&(at - 1))
    });
}

/// Points in pixels, in the order of time, without those in the place of another; places are as small as the limit
/// allows, but the lowest and highest of each column always stay.
pub(super) fn dots(points: &[(f64, f64)], limit: usize) -> Vec<(f64, f64)> {
    let mut size = 0.5;
    loop {
        let mut seen = HashSet::new();
        let mut thin: Vec<_> = points
            .iter()
            .copied()
            .filter(|&(x, y)| seen.insert(((x / size) as i32, (y / size) as i32)))
            .collect();
        if thin.len() <= limit || size > 8.0 {
            if size > 0.5 {
                thin.extend(line(points.iter().copied()));
            }
            return thin;
        }
        size *= 1.5;
    }
}

/// Bars in pixels, each from a lower to a higher y: those of one column that touch, or nearly, become one.
pub(super) fn bars(bars: impl Iterator<Item = (f64, f64, f64)>) -> Vec<(f64, f64, f64)> {
    let mut thin: Vec<(f64, f64, f64)> = Vec::new();
    let mut column: Vec<(f64, f64, f64)> = Vec::new();
    for bar in bars {
        let another = column
            .first()
            .is_some_and(|first| (first.0 * 2.0).floor() != (bar.0 * 2.0).floor());
        if another {
            merge(&mut column);
            thin.append(&mut column);
        }
        column.push(bar);
        if column.len() >= 4096 {
            merge(&mut column);
        }
    }
    merge(&mut column);
    thin.append(&mut column);
    thin
}

fn merge(column: &mut Vec<(f64, f64, f64)>) {
    column.sort_by(|a, b| a.1.total_cmp(&b.1));
    column.dedup_by(|next, bar| {
        let touch = next.1 <= bar.2 + 0.75;
        if touch {
            bar.2 = bar.2.max(next.2);
        }
        touch
    });
}

/// Which packets a page has: all, or, of more than [`PAGE_PACKETS`], those that are marked and, of each few hundred
/// others, the extremes of each direction.
pub(super) fn packets(graph: &ConnectionGraph) -> Vec<usize> {
    let packets = &graph.packets;
    if packets.len() <= PAGE_PACKETS {
        return (0..packets.len()).collect();
    }
    // Each stretch keeps up to 10 packets of each direction.
    let stretch = packets.len().div_ceil(PAGE_PACKETS / 20).max(1);
    let mut kept = Vec::with_capacity(PAGE_PACKETS);
    let mut marked = 0;
    for (start, chunk) in (0..).step_by(stretch).zip(packets.chunks(stretch)) {
        let begin = kept.len();
        for from_a in [true, false] {
            extremes(chunk, start, from_a, &mut kept);
        }
        for (index, packet) in chunk.iter().enumerate() {
            if marked < PAGE_PACKETS && is_rare(packet) {
                kept.push(start + index);
                marked += 1;
            }
        }
        kept[begin..].sort_unstable();
    }
    kept.dedup();
    kept
}

/// Whether the packet must not be omitted.
pub(super) fn is_rare(packet: &Packet) -> bool {
    const RARE: u16 = Marks::RETRANSMITTED.0
        | Marks::OUT_OF_ORDER.0
        | Marks::PROBE.0
        | Marks::KEEP_ALIVE.0
        | Marks::COPY.0
        | Marks::ZERO_WINDOW.0
        | Marks::TRIPLE.0;
    packet.marks.0 & RARE != 0 || packet.flags & 7 != 0
}

fn extremes(chunk: &[Packet], start: usize, from_a: bool, kept: &mut Vec<usize>) {
    let own = || {
        chunk
            .iter()
            .enumerate()
            .filter(move |(_, packet)| packet.from_a() == from_a)
    };
    let values: [fn(&Packet) -> f64; 4] = [
        |packet| f64::from(packet.rtt),
        |packet| match packet.in_flight {
            u32::MAX => f64::NAN,
            octets => f64::from(octets),
        },
        |packet| f64::from(packet.length),
        |packet| f64::from(packet.window),
    ];
    kept.extend(own().next().map(|(index, _)| start + index));
    kept.extend(own().next_back().map(|(index, _)| start + index));
    for value in values {
        let known = || own().filter(|(_, packet)| value(packet).is_finite());
        let by = |a: &(usize, &Packet), b: &(usize, &Packet)| value(a.1).total_cmp(&value(b.1));
        kept.extend(known().min_by(by).map(|(index, _)| start + index));
        kept.extend(known().max_by(by).map(|(index, _)| start + index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_ends_and_extremes_of_each_column() {
        let points = (0..10_000).map(|i| (f64::from(i) / 1000.0, f64::from(i * 7919 % 1009)));
        let thin = line(points.clone());
        assert!(thin.len() <= 40);
        for column in 0..10 {
            let of = |points: Vec<(f64, f64)>| {
                let own = points
                    .into_iter()
                    .filter(|p| p.0.floor() == f64::from(column));
                own.map(|p| p.1)
                    .fold((f64::MAX, f64::MIN), |b, y| (b.0.min(y), b.1.max(y)))
            };
            assert_eq!(of(thin.clone()), of(points.clone().collect()));
        }
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn keeps_dots_within_a_limit_with_their_extremes() {
        let points: Vec<_> = (0..200_000)
            .map(|i| (f64::from(i / 200), f64::from(i * 7919 % 600_011) / 1000.0))
            .collect();
        let thin = dots(&points, 10_000);
        assert!(thin.len() < 15_000);
        let highest = |points: &[(f64, f64)]| points.iter().map(|p| p.1).fold(0.0, f64::max);
        assert_eq!(highest(&thin), highest(&points));
        let few = [(1.0, 1.0), (1.1, 1.1), (90.0, 2.0)];
        assert_eq!(dots(&few, 100).len(), 2);
    }

    #[test]
    fn joins_bars_that_touch() {
        let joined = bars(
            [
                (1.0, 0.0, 10.0),
                (1.1, 10.0, 20.0),
                (1.2, 30.0, 40.0),
                (9.0, 0.0, 1.0),
            ]
            .into_iter(),
        );
        assert_eq!(
            joined,
            [(1.0, 0.0, 20.0), (1.2, 30.0, 40.0), (9.0, 0.0, 1.0)]
        );
    }

    #[test]
    fn keeps_marked_packets_in_a_page() {
        let packet = |index: usize| Packet {
            time: index as i64 * 1000,
            sequence: 0,
            acknowledgment: 0,
            number: index as u32,
            length: 1000 + (index as u32 * 31) % 977,
            window: 65_535,
            in_flight: 10,
            rtt: if index == 123_457 { 99.0 } else { 1.0 },
            flags: 0x10,
            marks: if index % 1000 == 7 {
                Marks::RETRANSMITTED
            } else {
                Marks::FROM_A
            },
        };
        let graph = ConnectionGraph {
            packets: (0..1_000_000).map(packet).collect(),
            ..ConnectionGraph::default()
        };
        let kept = packets(&graph);
        assert!(kept.len() <= 2 * PAGE_PACKETS);
        assert!(kept.is_sorted());
        assert!(kept.contains(&123_457));
        let marked = kept.iter().filter(|index| **index % 1000 == 7).count();
        assert_eq!(marked, 1000);
    }
}
