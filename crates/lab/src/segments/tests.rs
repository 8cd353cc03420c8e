use super::*;
use base::{Duration, Instant};
use proptest::prelude::*;

fn lists() -> [Box<dyn SegmentList>; 3] {
    [
        Box::new(Linked::new(End::Head, End::Head)),
        Box::new(Linked::new(End::Tail, End::Tail)),
        Box::new(Ours::default()),
    ]
}

/// A clock that advances by the same step at each reading.
fn stepping(step: Duration) -> impl FnMut() -> Instant {
    let mut now = Instant::ZERO;
    move || {
        now += step;
        now
    }
}

/// The expected result for a segment, from one mark for each byte.
fn by_octets(seen: &mut [bool], first: u64, length: u32) -> Overlap {
    let first = first as usize;
    let end = first + length as usize;
    let above = seen.iter().rposition(|&seen| seen).unwrap_or(0);
    let new = (first..end).filter(|&octet| !seen[octet]);
    let overlap = Overlap {
        octets: length - new.clone().count() as u32,
        fills: new.clone().any(|octet| octet < above),
    };
    seen[first..end].fill(true);
    overlap
}

proptest! {
    #[test]
    fn every_list_tells_what_marks_for_each_octet_tell(
        segments in prop::collection::vec((1_u64..600, 1_u32..60), 1..200),
    ) {
        let mut seen = vec![false; 700];
        let mut lists = lists();
        for (k, &(first, length)) in segments.iter().enumerate() {
            let expected = by_octets(&mut seen, first, length);
            for list in &mut lists {
                let found = list.insert(first, length, k as i64);
                prop_assert_eq!(found, expected, "{} of segment {}", list.name(), k);
            }
        }
    }

    #[test]
    fn look_ups_from_either_end_tell_the_same(
        segments in prop::collection::vec((1_u64..600, 1_u32..60), 1..100),
    ) {
        let mut head = Linked::new(End::Tail, End::Head);
        let mut tail = Linked::new(End::Head, End::Tail);
        let mut ours = Ours::default();
        for &(first, length) in &segments {
            for list in [&mut head as &mut dyn SegmentList, &mut tail, &mut ours] {
                list.insert(first, length, 0);
            }
        }
        for first in 0..700 {
            prop_assert_eq!(head.ended_at(first), tail.ended_at(first));
            prop_assert!(!head.ended_at(first) || ours.ended_at(first), "the octet was seen");
        }
    }
}

#[test]
fn all_lists_agree_on_every_case_and_at_random() {
    for seed in 0..4 {
        agree(1_500, seed).unwrap();
    }
}

/// A list's totals for the timed packets of a case: bytes seen before, segments that fill a gap.
fn totals(case: Case, n: usize) -> [(u64, u64); 3] {
    let load = case.load(n);
    lists().map(|mut list| {
        for packet in &load.before {
            list.insert(packet.first, packet.length, packet.time_ns);
        }
        let mut totals = (0, 0);
        for packet in &load.timed {
            let found = list.insert(packet.first, packet.length, packet.time_ns);
            totals.0 += u64::from(found.octets);
            totals.1 += u64::from(found.fills);
        }
        totals
    })
}

#[test]
fn each_case_overlaps_as_its_name_says() {
    let n = 1_000;
    assert_eq!(totals(Case::NoOverlap, n), [(0, 0); 3]);
    assert_eq!(totals(Case::AllOverlapping, n), [(1_460_000, 0); 3]);
    // The first of them has no predecessor.
    assert_eq!(totals(Case::LastOctet, n), [(999, 0); 3]);
    assert_eq!(totals(Case::EveryHundredth, n), [(10 * 1_460, 0); 3]);
    // The 100th and the 600th.
    assert_eq!(totals(Case::Recovery, n), [(2 * 1_460, 0); 3]);
}

#[test]
fn in_recovery_each_packet_follows_another() {
    let load = Case::Recovery.load(1_200);
    for mut list in lists() {
        for (k, packet) in load.timed.iter().enumerate() {
            list.insert(packet.first, packet.length, packet.time_ns);
            assert_eq!(list.ended_at(packet.first), k > 0, "{} {k}", list.name());
        }
    }
}

fn config(sizes: &[usize]) -> Config {
    Config {
        sizes: sizes.to_vec(),
        repeat: Duration::ZERO,
        ..Config::default()
    }
}

#[test]
fn every_list_is_measured_in_every_case_at_every_size() {
    let mut heard = 0;
    let mut clock = stepping(Duration::from_micros(1));
    let report = run(&config(&[0, 100, 200]), &mut clock, &mut |_| heard += 1).unwrap();
    assert_eq!(report.rows.len(), (4 * 4 + 7) * 2);
    assert_eq!(heard, report.rows.len());
    for row in &report.rows {
        assert!(row.seconds > Some(0.0) && !row.extrapolated, "{row:?}");
    }
}

#[test]
fn what_would_exceed_the_budget_is_judged_from_the_smaller_sizes() {
    // The clock is read after each block of packets, so time is linear in size: 2, 4 and 8 ms. The
    // last exceeds the limit.
    let config = Config {
        cases: vec![Case::NoOverlap],
        budget: Duration::from_millis(6),
        ..config(&[64, 192, 448])
    };
    let mut clock = stepping(Duration::from_millis(1));
    let report = run(&config, &mut clock, &mut |_| {}).unwrap();
    for subject in Case::NoOverlap.subjects() {
        let rows: Vec<&Row> = report.curve(Case::NoOverlap, subject.name).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].seconds, Some(0.002));
        assert_eq!(rows[1].seconds, Some(0.004));
        let extrapolated = rows.iter().map(|row| row.extrapolated);
        assert!(extrapolated.eq([false, false, true]), "{rows:?}");
        assert!(rows[2].seconds > Some(0.006), "{rows:?}");
    }
}

#[test]
fn without_two_smaller_sizes_what_exceeds_the_budget_has_no_figure() {
    let config = Config {
        cases: vec![Case::NoOverlap],
        budget: Duration::from_millis(1),
        ..config(&[640])
    };
    let mut clock = stepping(Duration::from_millis(1));
    let report = run(&config, &mut clock, &mut |_| {}).unwrap();
    assert!(report.rows.iter().all(|row| row.seconds.is_none()));
    assert!(report.rows.iter().all(|row| row.extrapolated));
}
