//! Columns of one direction: the data that one end sent, and what the other end acknowledged.

use std::borrow::Cow;

use crate::{Direction, Episodes, Windows};

use super::Get::{Count, Flag, Maybe, Real, Span, Text, Time};
use super::{Column, Row, average, column, deviation, longest, mean, shortest};

#[rustfmt::skip]
pub(super) const COLUMNS: &[Column] = &[
    column("tunnel", "", "", Text(tunnel),
        "Encapsulation of the sending end's first packet: VLANs, MPLS labels, PPPoE sessions, L2TP sessions and tunnels. The outermost layer is listed first."),
    column("packets", "packets", "total packets", Count(|row| row.this.packets),
        "Packets sent by the sending end."),
    column("ipv6_packets", "packets", "", Count(|row| row.this.ipv6_packets),
        "Packets sent over IPv6."),
    column("last_time", "", "", Time(|row| row.this.last_time),
        "Time of the last packet from the sending end."),
    column("syns", "packets", "SYN/FIN pkts sent", Count(|row| row.this.syns.into()),
        "Packets with the SYN flag."),
    column("fins", "packets", "SYN/FIN pkts sent", Count(|row| row.this.fins.into()),
        "Packets with the FIN flag."),
    column("resets", "packets", "resets sent", Count(|row| row.this.resets.into()),
        "Packets with the RST flag."),
    column("initial_sequence", "", "", Maybe(|row| row.this.syn.map(|syn| u64::from(syn as u32))),
        "Initial sequence number in the sending end's SYN."),
    column("first_sequence", "", "", Maybe(|row| row.this.first_sequence.map(u64::from)),
        "Sequence number of the sending end's first packet."),
    column("moved_syn_fin", "", "", Flag(|row| row.this.bad_behaviour),
        "True if the sending end repeated a SYN or a FIN with a different sequence number."),

    column("ack_packets", "packets", "ack pkts sent", Count(|row| row.this.ack_packets),
        "Packets with the ACK flag."),
    column("pure_acks", "packets", "pure acks sent", Count(|row| row.this.pure_acks),
        "Packets with the ACK flag, but without payload, SYN, FIN or RST."),
    column("sack_packets", "packets", "sack pkts sent", Count(|row| row.this.sack_packets),
        "ACKs with SACK blocks."),
    column("dsack_packets", "packets", "dsack pkts sent", Count(|row| row.this.dsack_packets),
        "ACKs whose first SACK block reports a duplicate (RFC 2883)."),
    column("sack_blocks_max", "blocks", "max sack blks/ack", Count(|row| row.this.sack_blocks_max.into()),
        "Largest number of SACK blocks in one ACK."),
    column("sacks_sent", "packets", "sacks sent", Count(|row| row.this.sacks_sent),
        "Packets with SACK blocks, with or without the ACK flag."),

    column("data_packets", "packets", "actual data pkts", Count(|row| row.this.data_packets),
        "Packets with payload."),
    column("data_bytes", "bytes", "actual data bytes", Count(|row| row.this.data_bytes),
        "Payload bytes, including retransmissions."),
    column("unique_bytes", "bytes", "unique bytes sent", Count(|row| row.this.unique_bytes),
        "Payload bytes, counting each byte of the stream once."),
    column("pushed_packets", "packets", "pushed data pkts", Count(|row| row.this.pushed_packets),
        "Packets with payload and the PSH flag."),
    column("urgent_packets", "packets", "urgent data pkts", Count(|row| row.this.urgent_packets),
        "Packets with payload and the URG flag."),
    column("urgent_bytes", "bytes", "urgent data bytes", Count(|row| row.this.urgent_bytes),
        "Sum of the urgent pointers of packets with payload and the URG flag."),
    column("retransmitted_packets", "packets", "rexmt data pkts", Count(|row| row.this.retransmitted_packets),
        "Retransmitted packets: all packets that repeat sequence numbers already sent, including SYNs and FINs."),
    column("retransmitted_bytes", "bytes", "rexmt data bytes", Count(|row| row.this.retransmitted_bytes),
        "Bytes of sequence space that the retransmitted packets repeat."),
    column("fast_retransmissions", "packets", "", Count(|row| row.this.fast_retransmissions),
        "Retransmitted packets that follow three duplicate ACKs or a SACK of later data."),
    column("spurious_retransmissions", "packets", "", Count(|row| row.this.spurious_retransmissions),
        "Retransmitted packets whose bytes had all been acknowledged already."),
    column("probe_packets", "packets", "zwnd probe pkts", Count(|row| row.this.probe_packets),
        "Zero-window probes: one-byte segments sent while the receiving end's window was zero."),
    column("probe_bytes", "bytes", "zwnd probe bytes", Count(|row| row.this.probe_bytes),
        "Payload bytes of the zero-window probes."),
    column("keep_alives", "packets", "", Count(|row| row.this.keep_alives),
        "Keep-alives (RFC 9293 3.8.4)."),
    column("out_of_order_packets", "packets", "outoforder pkts", Count(|row| row.this.out_of_order_packets),
        "Packets that are out of order in the capture and are not retransmissions."),
    column("hardware_duplicates", "packets", "hardware dups", Count(|row| row.this.hardware_duplicates),
        "Exact copies of a packet that the capture contains within 20 ms, for example from a mirror port."),
    column("truncated_bytes", "bytes", "truncated data", Count(|row| row.this.truncated_bytes),
        "Payload bytes that the capture cut off."),
    column("truncated_packets", "packets", "truncated packets", Count(|row| row.this.truncated_packets),
        "Packets whose payload is not completely in the capture."),
    column("stream_bytes", "bytes", "ttl stream length", Maybe(|row| row.this.stream_length()),
        "Length of the stream from SYN to FIN; absent if the SYN or the FIN is not in the capture."),
    column("missed_bytes", "bytes", "missed data", Maybe(|row| row.this.missed()),
        "Bytes of the stream that are not in the capture; absent if `stream_bytes` is absent."),
    column("unseen_bytes", "bytes", "", Count(|row| row.this.unseen_bytes()),
        "Bytes of sequence space that the receiving end acknowledged and that are not in the capture: the capture lost packets. Data from before the sending end's first packet in the capture does not count."),
    column("unacked_segments", "segments", "", Count(|row| row.this.segments.in_flight() as u64),
        "Segments that no ACK in the capture acknowledges."),
    column("forgotten_segments", "segments", "", Count(|row| row.this.segments.forgotten()),
        "Segments and gaps that headend stopped tracking because too many segments were unacknowledged. headend does not time the retransmissions of segments that it no longer tracks."),

    column("asked_window_scale", "", "req 1323 ws/ts", Flag(|row| row.this.asked_scale),
        "True if the sending end's SYN offered window scaling (RFC 7323)."),
    column("window_scale", "bits", "adv wind scale", Maybe(window_scale),
        "Window scale in use. If only the sending end offered window scaling, the window scale is 0. The window scale is absent if the sending end did not offer window scaling, or if one of the two SYNs is not in the capture. Without a window scale, headend reports windows as they were sent."),
    column("asked_timestamps", "", "req 1323 ws/ts", Flag(|row| row.this.asked_timestamps),
        "True if the sending end sent the time stamp option (RFC 7323)."),
    column("asked_sack", "", "req sack", Flag(|row| row.this.asked_sack),
        "True if the sending end sent the SACK-permitted option (RFC 2018)."),
    column("mss", "bytes", "mss requested", Maybe(|row| known(row.this.mss.into())),
        "Maximum segment size that the sending end announced."),

    column("segment_min", "bytes", "min segm size", Maybe(|row| known(row.this.segment_min.into())),
        "Smallest payload of a packet, not counting packets without payload."),
    column("segment_avg", "bytes", "avg segm size", Real(segment_avg),
        "Mean payload of a packet, not counting packets without payload."),
    column("segment_max", "bytes", "max segm size", Maybe(|row| known(row.this.segment_max.into())),
        "Largest payload of a packet."),

    column("win_adv_min", "bytes", "", Maybe(|row| window_min(&row.this.windows)),
        "Smallest window that the sending end advertised, including 0."),
    column("win_adv_min_nonzero", "bytes", "min win adv", Maybe(|row| known(row.this.windows.min.into())),
        "Smallest window other than 0 that the sending end advertised."),
    column("win_adv_avg", "bytes", "avg win adv", Real(window_avg),
        "Mean of the windows that the sending end advertised. With window scaling, the mean does not include the unscaled windows of the handshake."),
    column("win_adv_max", "bytes", "max win adv", Maybe(|row| {
        let windows = &row.this.windows;
        (windows.count > 0).then_some(windows.max.into())
    }), "Largest window that the sending end advertised."),
    column("zero_win_adv", "packets", "zero win adv", Count(|row| row.this.windows.zero),
        "ACKs that advertise a zero window."),
    column("zero_window_episodes", "episodes", "", Count(|row| row.this.zero_windows.count.into()),
        "Number of periods in which the sending end advertised a zero window."),
    column("zero_window_total_ns", "ns", "", Span(|row| lasted(row, &row.this.zero_windows).map(|both| both.0)),
        "Total time in which the sending end advertised a zero window. A zero-window period lasts from the first ACK with a zero window to the next ACK with a non-zero window, or to the connection's last packet."),
    column("zero_window_longest_ns", "ns", "", Span(|row| lasted(row, &row.this.zero_windows).map(|both| both.1)),
        "Longest period in which the sending end advertised a zero window."),

    column("owin_min_nonzero", "bytes", "min non-zero owin", Maybe(|row| known(row.this.owin.min)),
        "Smallest non-zero number of bytes in flight after a packet of the sending end."),
    column("owin_avg", "bytes", "avg owin", Real(owin_avg),
        "Mean number of bytes in flight, sampled after each packet from the sender; samples of 0 are not counted."),
    column("owin_weighted_avg", "bytes", "wavg owin", Real(owin_weighted),
        "Integral of the bytes in flight over time, divided by the length of the connection. The bytes in flight change with each segment of the sending end and with each ACK of the receiving end."),
    column("owin_max", "bytes", "max owin", Maybe(|row| known(row.this.owin.max)),
        "Largest number of bytes in flight."),
    column("initial_window_bytes", "bytes", "initial window", Count(|row| row.this.initial_bytes),
        "Payload bytes that the sending end sent for the first time before the receiving end acknowledged any payload."),
    column("initial_window_packets", "packets", "initial window", Count(|row| row.this.initial_packets),
        "Packets with payload that the sending end sent before the receiving end acknowledged any payload."),

    column("first_data_time", "", "", Time(|row| row.this.first_data_time),
        "Time of the first packet with payload."),
    column("last_data_time", "", "", Time(|row| row.this.last_data_time),
        "Time of the last packet with payload."),
    column("data_time_ns", "ns", "data xmit time", Span(data_time),
        "Time from `first_data_time` to `last_data_time`; 0 if the time stamps ran backwards."),
    column("idle_max_ns", "ns", "idletime max", Span(|row| row.idle_max),
        "Longest time without a packet from the sending end. If the connection is still open at the end of the capture, the time from the sending end's last packet to the end of the capture also counts."),
    column("throughput", "bytes/s", "throughput", Real(throughput),
        "`unique_bytes` divided by the elapsed time of the connection; absent if the elapsed time is 0."),
    column("stalls", "episodes", "", Count(|row| row.this.stalls.count.into()),
        "Number of stalls. A stall is a period of more than one second without a packet in either direction while data of the sending end is in flight."),
    column("stall_total_ns", "ns", "", Span(|row| lasted(row, &row.this.stalls).map(|both| both.0)),
        "Total length of all stalls."),
    column("stall_longest_ns", "ns", "", Span(|row| lasted(row, &row.this.stalls).map(|both| both.1)),
        "Length of the longest stall."),

    column("rtt_samples", "samples", "RTT samples", Count(|row| row.this.rtt.count),
        "Round-trip samples. A round-trip sample is the time from a segment to the ACK that acknowledges data exactly up to the segment's last byte. Segments that were sent more than once give no round-trip sample."),
    column("rtt_min_ns", "ns", "RTT min", Span(|row| shortest(&row.this.rtt)),
        "Shortest round trip."),
    column("rtt_avg_ns", "ns", "RTT avg", Real(|row| average(&row.this.rtt)),
        "Mean round trip."),
    column("rtt_max_ns", "ns", "RTT max", Span(|row| longest(&row.this.rtt)),
        "Longest round trip."),
    column("rtt_stdev_ns", "ns", "RTT stdev", Real(|row| deviation(&row.this.rtt)),
        "Standard deviation of the round trips; absent with fewer than three samples."),
    column("rtt_p50_ns", "ns", "", Span(|row| percentile(row, 0.5)),
        "50th percentile (median) of the round trips, accurate to 1.6 %."),
    column("rtt_p90_ns", "ns", "", Span(|row| percentile(row, 0.9)),
        "90th percentile of the round trips, accurate to 1.6 %."),
    column("rtt_p99_ns", "ns", "", Span(|row| percentile(row, 0.99)),
        "99th percentile of the round trips, accurate to 1.6 %."),
    column("rtt_handshake_ns", "ns", "RTT from 3WHS", Span(|row| Some(row.this.rtt_handshake).filter(|&time| time > 0)),
        "Round trip of the SYN."),
    column("rtt_full_size", "bytes", "", Maybe(|row| known(row.this.rtt_full_size.into())),
        "Payload size of full-size segments. Full-size segments have the largest size of all segments with a round-trip sample."),
    column("rtt_full_samples", "samples", "RTT full_sz smpls", Count(|row| row.this.rtt_full.count),
        "Round-trip samples of full-size segments."),
    column("rtt_full_min_ns", "ns", "RTT full_sz min", Span(|row| shortest(&row.this.rtt_full)),
        "Shortest round trip of full-size segments."),
    column("rtt_full_avg_ns", "ns", "RTT full_sz avg", Real(|row| average(&row.this.rtt_full)),
        "Mean round trip of full-size segments."),
    column("rtt_full_max_ns", "ns", "RTT full_sz max", Span(|row| longest(&row.this.rtt_full)),
        "Longest round trip of full-size segments."),
    column("rtt_full_stdev_ns", "ns", "RTT full_sz stdev", Real(|row| deviation(&row.this.rtt_full)),
        "Standard deviation of the round trips of full-size segments; absent with fewer than three samples."),
    column("ambiguous_acks", "acks", "ambiguous acks", Count(|row| row.this.rtt_ambiguous.count),
        "ACKs of segments that were sent more than once."),
    column("rtt_ambiguous_min_ns", "ns", "RTT min (last)", Span(|row| shortest(&row.this.rtt_ambiguous)),
        "Shortest time from the last transmission of a retransmitted segment to the segment's ACK."),
    column("rtt_ambiguous_avg_ns", "ns", "RTT avg (last)", Real(|row| average(&row.this.rtt_ambiguous)),
        "Mean time from the last transmission of a retransmitted segment to the segment's ACK."),
    column("rtt_ambiguous_max_ns", "ns", "RTT max (last)", Span(|row| longest(&row.this.rtt_ambiguous)),
        "Longest time from the last transmission of a retransmitted segment to the segment's ACK."),
    column("rtt_ambiguous_stdev_ns", "ns", "RTT sdv (last)", Real(|row| deviation(&row.this.rtt_ambiguous)),
        "Standard deviation of the times from the last transmission of a retransmitted segment to the segment's ACK; absent with fewer than three samples."),

    column("post_loss_acks", "acks", "post-loss acks", Count(|row| row.this.post_loss_acks),
        "ACKs of segments that waited for a retransmission. In the capture, the segment is followed by a retransmission of lower sequence numbers, and then by the segment's ACK."),
    column("cumulative_acks", "segments", "segs cum acked", Count(|row| row.this.cumulative_acks),
        "Segments acknowledged only by the ACK of a later segment."),
    column("duplicate_acks", "acks", "duplicate acks", Count(|row| row.this.duplicate_acks),
        "Duplicate ACKs (RFC 5681) that the receiving end sent for the sending end's data."),
    column("triple_duplicate_acks", "times", "triple dupacks", Count(|row| row.this.triple_duplicate_acks),
        "How often three duplicate ACKs arrived in a row."),
    column("retransmissions_max", "times", "max # retrans", Count(|row| row.this.retransmissions_max.into()),
        "Largest number of retransmissions of one segment."),
    column("retransmission_time_min_ns", "ns", "min retr time", Span(|row| shortest(&row.this.retransmission_times)),
        "Shortest time between two successive transmissions of a segment."),
    column("retransmission_time_avg_ns", "ns", "avg retr time", Real(|row| average(&row.this.retransmission_times)),
        "Mean time between two successive transmissions of a segment."),
    column("retransmission_time_max_ns", "ns", "max retr time", Span(|row| longest(&row.this.retransmission_times)),
        "Longest time between two successive transmissions of a segment."),
    column("retransmission_time_stdev_ns", "ns", "sdv retr time", Real(|row| deviation(&row.this.retransmission_times)),
        "Standard deviation of the times between two successive transmissions of a segment; absent with fewer than three samples."),

    column("ce_packets", "packets", "", Count(|row| row.this.ce_packets),
        "Packets that a router marked \"congestion experienced\" (RFC 3168)."),
    column("ece_packets", "packets", "", Count(|row| row.this.ece_packets),
        "Packets with the ECE flag, not counting SYNs."),
    column("cwr_packets", "packets", "", Count(|row| row.this.cwr_packets),
        "Packets with the CWR flag, not counting SYNs."),
];

/// A number that is absent if it is 0.
fn known(value: u64) -> Option<u64> {
    (value > 0).then_some(value)
}

fn tunnel<'a>(row: &Row<'a>) -> Option<Cow<'a, str>> {
    let layers = row.this.layers.as_str();
    (!layers.is_empty()).then_some(Cow::Borrowed(layers))
}

fn segment_avg(row: &Row<'_>) -> Option<f64> {
    let Direction {
        data_bytes,
        data_packets,
        segment_min,
        segment_max,
        ..
    } = *row.this;
    let bounds = (segment_min.into(), segment_max.into());
    mean(data_bytes as f64, data_packets, bounds)
}

/// Unknown if one of the SYNs is.
fn window_scale(row: &Row<'_>) -> Option<u64> {
    let known = row.connection.syns() == 2 && row.this.asked_scale;
    known.then_some(row.this.scale.into())
}

/// Some windows were zero if ACKs with zero windows were counted, or if the mean of all windows is
/// below the smallest nonzero one.
fn window_min(windows: &Windows) -> Option<u64> {
    let zero = windows.zero > 0
        || u128::from(windows.total) < u128::from(windows.min) * u128::from(windows.count);
    (windows.count > 0).then_some(if zero { 0 } else { windows.min.into() })
}

fn window_avg(row: &Row<'_>) -> Option<f64> {
    let windows = &row.this.windows;
    let bounds = (0.0, windows.max.into());
    mean(windows.total as f64, windows.count, bounds)
}

fn owin_avg(row: &Row<'_>) -> Option<f64> {
    let owin = &row.this.owin;
    mean(
        owin.total as f64,
        owin.count,
        (owin.min as f64, owin.max as f64),
    )
}

/// Limited to the largest amount in flight: if timestamps run backwards, the sum of the intervals
/// exceeds the total time.
fn owin_weighted(row: &Row<'_>) -> Option<f64> {
    let (owin, elapsed) = (&row.this.owin, row.connection.elapsed());
    let weighted = owin.byte_nanoseconds_until(row.connection.last_time) as f64 / elapsed as f64;
    (elapsed > 0 && owin.count > 0).then(|| weighted.min(owin.max as f64))
}

fn data_time(row: &Row<'_>) -> Option<i64> {
    let first = row.this.first_data_time?;
    let last = row.this.last_data_time?;
    Some(last.saturating_sub(first).max(0))
}

fn throughput(row: &Row<'_>) -> Option<f64> {
    let elapsed = row.connection.elapsed();
    (elapsed > 0).then(|| row.this.unique_bytes as f64 / (elapsed as f64 / 1e9))
}

/// How long episodes were in all, and the longest; absent where there was none. One that has not ended lasts until the
/// connection's last packet.
fn lasted(row: &Row<'_>, episodes: &Episodes) -> Option<(i64, i64)> {
    let open = episodes.since.map_or(0, |since| {
        row.connection.last_time.saturating_sub(since).max(0)
    });
    (episodes.count > 0).then(|| {
        (
            episodes.total.saturating_add(open),
            episodes.longest.max(open),
        )
    })
}

/// The middle of a percentile's bucket, which may lie past the longest or before the shortest of all.
fn percentile(row: &Row<'_>, share: f64) -> Option<i64> {
    let times = &row.this.rtt;
    let at = row.this.rtt_percentiles.at(share)?;
    Some(at.max(times.min).min(times.max))
}
