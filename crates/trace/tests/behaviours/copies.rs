//! Tests that copies of packets from a mirror are distinguished from retransmissions that look the same.

use crate::support::{ACK, End::*, SYN, Script, options};
use trace::Segment;

const US: i64 = 1_000;

/// The last packet once more, `after` nanoseconds later.
fn again(script: &mut Script, after: i64) -> &mut Segment {
    let mut copy = *script.segments.last().unwrap();
    copy.time += after;
    copy.number += 1;
    script.time = script.time.max(copy.time) + 1_000 * US;
    script.segments.push(copy);
    script.segments.last_mut().unwrap()
}

/// A script of these packets.
fn of(segments: Vec<Segment>) -> Script {
    let mut script = Script::new();
    script.segments = segments;
    script
}

/// All packets of the script have this identification.
fn with_id(mut script: Script, id: u16) -> Script {
    for segment in &mut script.segments {
        segment.id = id;
    }
    script
}

#[test]
fn five_timeouts_of_a_sender_with_a_constant_id_are_five_retransmissions() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    for doubled in 0..5 {
        again(&mut script, (400_000 * US) << doubled);
    }
    script.wait(19);
    script.ack(B);
    for id in [0, 7] {
        let script = with_id(of(script.segments.clone()), id);
        let a = script.connection().a;
        assert_eq!(
            (a.retransmitted_packets, a.hardware_duplicates),
            (5, 0),
            "id {id}"
        );
        assert_eq!((a.rtt.max, a.rtt_ambiguous.count), (20_000_000, 1));
    }
}

#[test]
fn a_retransmission_with_its_old_id_a_second_later_is_no_copy() {
    let mut script = Script::begun();
    script.data(A, 1_000);
    again(&mut script, 1_015_000 * US);
    script.ack(B);
    let a = script.connection().a;
    assert_eq!((a.retransmitted_packets, a.hardware_duplicates), (1, 0));
}

#[test]
fn with_counting_ids_copies_come_within_twenty_milliseconds() {
    for (after, copies) in [(5, 1), (19_000, 1), (-6_400, 1), (20_100, 0), (557_000, 0)] {
        let mut script = Script::begun();
        script.data(A, 1_000);
        // The answer comes before the copy.
        script.ack(B).time -= 995 * US;
        let mut copy = script.segments[3];
        copy.time += after * US;
        script.segments.push(copy);
        let a = script.connection().a;
        let counts = (a.hardware_duplicates, a.retransmitted_packets);
        assert_eq!(counts, (copies, 1 - copies), "{after} us");
    }
}

/// Every packet twice, 5 us apart, in groups of this many.
fn mirrored(group: usize) -> Script {
    let mut script = Script::begun();
    for _ in 0..22 {
        script.data(A, 1_000);
        script.data(A, 1_000);
        script.data(A, 1_000);
        script.ack(B);
    }
    script.close();
    script.segments[0].options = options(&[4, 2]);
    script.segments[1].options = options(&[4, 2]);
    let mut twice = Vec::new();
    let mut time = script.segments[0].time;
    let from_one = |a: &Segment, b: &Segment| a.from_low == b.from_low;
    for burst in script
        .segments
        .chunk_by(from_one)
        .flat_map(|run| run.chunks(group))
    {
        time += 300 * US;
        for part in [burst, burst] {
            for segment in part {
                time += 5 * US;
                twice.push(Segment {
                    time,
                    number: twice.len() as u64 + 1,
                    ..*segment
                });
            }
        }
    }
    of(twice)
}

#[test]
fn every_packet_of_a_mirror_is_a_copy_whatever_the_id() {
    for group in [1, 3] {
        for id in [None, Some(0), Some(7)] {
            let mut script = mirrored(group);
            if let Some(id) = id {
                script = with_id(script, id);
            }
            let connection = script.connection();
            for direction in [&connection.a, &connection.b] {
                let which = format!("id {id:?}, in groups of {group}");
                assert_eq!(
                    direction.hardware_duplicates * 2,
                    direction.packets,
                    "{which}"
                );
                assert_eq!(direction.retransmitted_packets, 0, "{which}");
                assert_eq!(direction.duplicate_acks, 0, "{which}");
            }
            assert_eq!(connection.a.unique_bytes, 66_000);
        }
    }
}

#[test]
fn a_fast_retransmission_on_a_quick_network_is_no_copy_if_the_id_is_constant() {
    let mut script = Script::begun();
    for _ in 0..4 {
        script.data(A, 1_000);
    }
    for _ in 0..3 {
        script.ack_of(B, 1);
    }
    script.octets(A, 1, 1_001);
    // 50 us between two packets: the whole takes 400 us.
    let start = script.segments[3].time;
    for (at, segment) in script.segments.iter_mut().skip(3).enumerate() {
        segment.time = start + at as i64 * 50 * US;
    }
    for id in [0, 7] {
        let script = with_id(of(script.segments.clone()), id);
        let a = script.connection().a;
        assert_eq!(
            (a.retransmitted_packets, a.hardware_duplicates),
            (1, 0),
            "id {id}"
        );
        assert_eq!(
            (a.duplicate_acks, a.fast_retransmissions),
            (3, 1),
            "id {id}"
        );
    }
}

#[test]
fn three_duplicate_acks_ask_for_a_segment_and_a_mirror_copies_the_answer() {
    let mut script = Script::begun();
    for _ in 0..4 {
        script.data(A, 1_000);
    }
    for _ in 0..3 {
        script.ack_of(B, 1);
    }
    // The sender counts, but its fast retransmission has the identification of the first transmission.
    let mut kept = script.segments[3];
    kept.time = script.time;
    script.segments.push(kept);
    again(&mut script, 5 * US);
    let a = script.connection().a;
    assert_eq!((a.retransmitted_packets, a.hardware_duplicates), (1, 1));
    assert_eq!(a.fast_retransmissions, 1);
}

#[test]
fn a_syn_needs_no_id_to_be_a_copy_within_twenty_milliseconds() {
    for (after, copies) in [(2_600, 1), (1_000_000, 0)] {
        let mut script = Script::new();
        script.flags(A, SYN);
        script.flags(B, SYN | ACK).id = 0;
        again(&mut script, after * US);
        script.ack(A);
        let b = script.connection().b;
        assert_eq!(b.hardware_duplicates, copies, "{after} us");
        assert_eq!(b.retransmitted_packets, 1 - copies, "{after} us");
    }
}
