//! Every statistic of a connection that does not depend on initial sequence numbers or on
//! encapsulation, by name.

use std::collections::BTreeMap;
use trace::{Connection, Direction, Times};

pub(crate) type Statistics = BTreeMap<String, i128>;

/// Of both directions and the whole.
pub(crate) fn of(connection: &Connection) -> Statistics {
    let mut all = Statistics::new();
    all.insert("packets".into(), connection.packets.into());
    all.insert("elapsed".into(), connection.elapsed().into());
    all.insert("complete".into(), connection.is_complete().into());
    for (end, direction) in [("a", &connection.a), ("b", &connection.b)] {
        for (name, value) in counts(direction) {
            all.insert(format!("{end}.{name}"), value);
        }
        for (name, times) in times(direction) {
            all.insert(format!("{end}.{name}.count"), times.count.into());
            all.insert(format!("{end}.{name}.min"), times.min.into());
            all.insert(format!("{end}.{name}.max"), times.max.into());
            all.insert(format!("{end}.{name}.sum"), times.sum.into());
            all.insert(format!("{end}.{name}.squares"), times.squares as i128);
        }
    }
    all
}

/// The sets of times in a direction.
pub(crate) fn times(d: &Direction) -> [(&'static str, &Times); 4] {
    [
        ("rtt", &d.rtt),
        ("rtt_full", &d.rtt_full),
        ("rtt_ambiguous", &d.rtt_ambiguous),
        ("retransmission_times", &d.retransmission_times),
    ]
}

// long: a list of every counter
fn counts(d: &Direction) -> Vec<(&'static str, i128)> {
    macro_rules! numbers {
        ($($($part:ident).+),* $(,)?) => { vec![$((stringify!($($part).+), i128::from(d.$($part).+))),*] };
    }
    let mut all = numbers![
        packets,
        ack_packets,
        window,
        data_bytes,
        data_packets,
        unique_bytes,
        idle_max,
        pure_acks,
        pushed_packets,
        segment_max,
        segment_min,
        cumulative_acks,
        syns,
        fins,
        resets,
        sack_packets,
        dsack_packets,
        sack_blocks_max,
        sacks_sent,
        retransmitted_packets,
        retransmitted_bytes,
        spurious_retransmissions,
        fast_retransmissions,
        probe_packets,
        probe_bytes,
        keep_alives,
        out_of_order_packets,
        hardware_duplicates,
        asked_scale,
        asked_timestamps,
        asked_sack,
        scale,
        mss,
        urgent_packets,
        urgent_bytes,
        initial_bytes,
        initial_packets,
        data_acked,
        truncated_bytes,
        truncated_packets,
        rtt_handshake,
        rtt_last,
        rtt_full_size,
        post_loss_acks,
        duplicate_acks,
        triple_duplicate_acks,
        retransmissions_max,
        ce_packets,
        ece_packets,
        cwr_packets,
        bad_behaviour,
        owin.max,
        owin.min,
        owin.total,
        owin.count,
        windows.max,
        windows.min,
        windows.total,
        windows.count,
        windows.zero,
        zero_windows.count,
        zero_windows.total,
        zero_windows.longest,
        stalls.count,
        stalls.total,
        stalls.longest,
    ];
    all.push((
        "owin.weight",
        d.owin.byte_nanoseconds_until(i64::MAX) as i128,
    ));
    all.push(("in_flight", d.segments.in_flight() as i128));
    all.push(("stream", d.stream_length().map_or(-1, i128::from)));
    all.push(("missed", d.missed().map_or(-1, i128::from)));
    all.push(("p50", d.rtt_percentiles.at(0.5).map_or(-1, i128::from)));
    all
}
