//! Invariants of a connection's statistics, whatever its packets were.

use trace::{Connection, Direction, Episodes, Finished, Times};

/// The connections, thawed.
///
/// # Panics
/// If a frozen connection does not thaw, or differs afterwards.
pub(super) fn thawed(finished: &[Finished]) -> Vec<Connection> {
    let thaw = |finished: &Finished| {
        let mut connection = Connection::default();
        connection
            .thaw(&finished.octets)
            .expect("what was frozen thaws");
        assert_eq!(connection.first_packet, finished.first_packet);
        let mut again = Vec::new();
        connection.freeze(&mut again);
        assert_eq!(again, &finished.octets[..], "frozen again it is the same");
        connection
    };
    finished.iter().map(thaw).collect()
}

/// Checks that counters agree with each other, and bounds with means.
///
/// # Panics
/// If they do not.
pub(super) fn check(connection: &Connection) {
    let (a, b) = (&connection.a, &connection.b);
    assert_eq!(connection.packets, a.packets + b.packets);
    assert!(a.packets > 0, "end a sent the first packet");
    assert!(connection.elapsed() >= 0);
    for direction in [a, b] {
        counts(direction);
        bytes(direction);
        bounds(direction);
    }
}

fn counts(d: &Direction) {
    assert_eq!(d.last_time.is_some(), d.packets > 0);
    for part in [
        d.data_packets,
        d.ack_packets,
        d.ipv6_packets,
        d.ce_packets,
        d.cwr_packets,
        d.ece_packets,
        d.sacks_sent,
        u64::from(d.syns),
        u64::from(d.fins),
        u64::from(d.resets),
    ] {
        assert!(part <= d.packets);
    }
    assert!(d.pure_acks <= d.ack_packets);
    assert!(d.windows.zero <= d.ack_packets);
    assert!(d.dsack_packets <= d.sack_packets && d.sack_packets <= d.sacks_sent);
    assert!(d.sack_blocks_max <= 4);
    for part in [
        d.pushed_packets,
        d.urgent_packets,
        d.truncated_packets,
        d.initial_packets,
    ] {
        assert!(part <= d.data_packets);
    }
    // A packet is at most one of these.
    let kinds = d.retransmitted_packets
        + d.out_of_order_packets
        + d.probe_packets
        + d.keep_alives
        + d.hardware_duplicates;
    assert!(kinds <= d.packets);
    assert!(d.spurious_retransmissions + d.fast_retransmissions <= d.retransmitted_packets);
    assert!(u64::from(d.retransmissions_max) <= d.retransmitted_packets);
    assert!(d.retransmission_times.count <= d.retransmitted_packets);
    assert!(d.triple_duplicate_acks * 3 <= d.duplicate_acks);
}

fn bytes(d: &Direction) {
    assert!(d.unique_bytes <= d.data_bytes);
    assert!(d.initial_bytes <= d.data_bytes);
    assert!(d.truncated_bytes <= d.data_bytes);
    assert_eq!(d.probe_bytes, d.probe_packets);
    let flags = u64::from(d.syns) + u64::from(d.fins);
    assert!(d.retransmitted_bytes <= d.data_bytes + flags);
    assert!(d.retransmitted_bytes >= d.retransmitted_packets);
    if let Some(missed) = d.missed() {
        assert!(Some(missed) <= d.stream_length());
    }
    assert!(u64::from(d.segment_min) * d.data_packets <= d.data_bytes);
    assert!(u64::from(d.segment_max) * d.data_packets >= d.data_bytes);
}

fn bounds(d: &Direction) {
    let windows = &d.windows;
    assert!(windows.min <= windows.max);
    assert!(windows.total <= u64::from(windows.max) * windows.count);
    let owin = &d.owin;
    assert!(owin.min <= owin.max);
    assert!(owin.min * owin.count <= owin.total && owin.total <= owin.max * owin.count);
    for times in [
        &d.rtt,
        &d.rtt_full,
        &d.rtt_ambiguous,
        &d.retransmission_times,
    ] {
        order(times);
    }
    assert!(d.rtt_full.count <= d.rtt.count);
    assert!(d.idle_max >= 0 && d.rtt_handshake >= 0 && d.rtt_last >= 0);
    episodes(&d.zero_windows);
    episodes(&d.stalls);
    let counted: u64 = d
        .rtt_percentiles
        .buckets()
        .iter()
        .map(|&(_, times)| u64::from(times))
        .sum();
    assert_eq!(counted, d.rtt.count);
    let mut below = 0;
    for share in [0.0, 0.5, 0.9, 0.99, 1.0] {
        let at = d.rtt_percentiles.at(share).unwrap_or(0);
        assert!(at >= below);
        below = at;
    }
}

fn order(times: &Times) {
    assert!(times.min >= 0);
    if times.count > 0 && times.sum < i64::MAX {
        // The mean and the bounds are rounded to floats.
        let slack = times.max as f64 * 1e-12;
        assert!(times.min as f64 - slack <= times.mean());
        assert!(times.mean() <= times.max as f64 + slack);
    }
    assert!(times.deviation() >= 0.0);
}

fn episodes(episodes: &Episodes) {
    assert!(0 <= episodes.longest && episodes.longest <= episodes.total);
    assert!(episodes.since.is_none() || episodes.count > 0);
}
