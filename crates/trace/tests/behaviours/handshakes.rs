//! Handshakes that are repeated, crossed, or begin again.

use crate::support::{ACK, End::*, RST, SYN, Script, options};

/// SYN, SYN-ACK with 9,000, SYN-ACK with `second`, and then the handshake and 10,000 bytes with `used`.
fn two_syn_acks(second: u32, used: u32, before: bool) -> Script {
    let mut script = Script::starting_at(1_000, used);
    script.flags(A, SYN);
    script.flags(B, SYN | ACK).sequence = 9_000;
    if before {
        script.flags(B, SYN | ACK).sequence = second;
        script.segments.last_mut().unwrap().acknowledgment = 1_001;
    }
    script.ack_of(A, 1);
    if !before {
        let mut stray = script.segments[1];
        stray.sequence = second;
        stray.id += 100;
        stray.time = script.time;
        script.segments.push(stray);
        script.wait(1);
    }
    for at in 0..10 {
        script.octets(B, 1 + at * 1_000, 1_001 + at * 1_000);
    }
    script.ack_of(A, 10_001);
    script
}

#[test]
fn a_syn_ack_with_another_number_leaves_the_stream_as_it_was() {
    for second in [400, 2_000_000_000, 9_500] {
        for (used, before) in [(9_000, true), (second, true), (9_000, false)] {
            let b = two_syn_acks(second, used, before).connection().b;
            let which = format!("{second}, {used} counts, before the ACK: {before}");
            assert_eq!(b.unique_bytes, 10_000, "{which}");
            assert_eq!(
                (b.retransmitted_packets, b.out_of_order_packets),
                (0, 0),
                "{which}"
            );
            assert_eq!((b.syns, b.bad_behaviour), (2, true), "{which}");
            assert_eq!(b.syn.map(|syn| syn as u32), Some(used), "{which}");
            assert_eq!(b.initial_bytes, 10_000, "{which}");
            assert_eq!(b.owin.max, 10_000, "{which}");
        }
    }
}

#[test]
fn a_reset_and_a_syn_sent_again_are_what_they_were() {
    let mut script = Script::new();
    script.flags(A, SYN).options = options(&[2, 4, 5, 180]);
    let mut again = script.segments[0];
    again.time += 1_000_000_000;
    script.wait(1_000);
    again.id += 1;
    script.segments.push(again);
    script.flags(B, RST | ACK);
    let a = script.connection().a;
    assert_eq!((a.syns, a.retransmitted_packets, a.mss), (2, 1, 1_460));
}
