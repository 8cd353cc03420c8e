//! Columns of [`crate::details`]: absent unless the analysis was asked for details.

use super::Get::{Maybe, Name, Real, Span, Text};
use super::{Column, Row, average, column, longest, shortest};
use crate::details::{Details, Side, Tls, community_id, version_name};

/// Details of the row's connection.
fn details<'a>(row: &Row<'a>) -> Option<&'a Details> {
    row.connection
        .details
        .as_deref()
        .filter(|details| details.is_noted())
}

/// Details of the row's direction.
fn side<'a>(row: &Row<'a>) -> Option<&'a Side> {
    let details = details(row)?;
    let is_a = core::ptr::eq(row.this, &row.connection.a);
    Some(if is_a { &details.a } else { &details.b })
}

fn tls<'a>(row: &Row<'a>, get: fn(&'a Tls) -> &'a str) -> Option<std::borrow::Cow<'a, str>> {
    let text = get(&details(row)?.tls);
    (!text.is_empty()).then_some(text.into())
}

#[rustfmt::skip]
pub(super) const CONNECTION: &[Column] = &[
    column("community_id", "", "", Name(|row| community_id(6, row.connection.a_end(), row.connection.b_end()).into()),
        "Community ID of the connection, version 1 with seed 0."),
    column("tls_server_name", "", "", Text(|row| tls(row, |tls| &tls.server_name)),
        "Name of the server in the TLS ClientHello (SNI)."),
    column("tls_alpn_offered", "", "", Text(|row| tls(row, |tls| &tls.offered)),
        "Protocols that the TLS ClientHello offers (ALPN), separated by commas."),
    column("tls_alpn_chosen", "", "", Text(|row| tls(row, |tls| &tls.chosen)),
        "Protocol that the TLS ServerHello chooses; TLS 1.3 encrypts it."),
    column("tls_version_offered", "", "", Text(|row| version_name(details(row)?.tls.client_version).map(Into::into)),
        "Highest version that the TLS ClientHello offers."),
    column("tls_version", "", "", Text(|row| version_name(details(row)?.tls.server_version).map(Into::into)),
        "Version that the TLS ServerHello chooses."),
    column("ecn_negotiated", "", "", Text(|row| details(row)?.ecn.negotiated().map(Into::into)),
        "ECN as the handshake negotiated it: `accecn` (RFC 9768), `classic` (RFC 3168) or `none`; absent if the capture lacks a SYN."),
];

#[rustfmt::skip]
pub(super) const DIRECTION: &[Column] = &[
    column("ttl_first", "", "", Maybe(|row| side(row).map(|side| side.ttl[0].into())),
        "TTL or hop limit of the sender's first packet, as captured."),
    column("ttl_min", "", "", Maybe(|row| side(row).map(|side| side.ttl[1].into())),
        "Smallest TTL or hop limit of the sender's packets."),
    column("ttl_max", "", "", Maybe(|row| side(row).map(|side| side.ttl[2].into())),
        "Largest TTL or hop limit of the sender's packets."),
    column("ect0_packets", "packets", "", Maybe(|row| side(row).map(|side| side.codepoints.ect0)),
        "Packets with the ECN codepoint ECT(0)."),
    column("ect1_packets", "packets", "", Maybe(|row| side(row).map(|side| side.codepoints.ect1)),
        "Packets with the ECN codepoint ECT(1), which identifies L4S (RFC 9331)."),
    column("tsval_hz", "Hz", "", Real(|row| side(row)?.stamps.rate_hz()),
        "Rate of the sender's time-stamp clock (RFC 7323), estimated from its first and last time stamp; absent below one second."),
    column("tsval_last", "", "", Maybe(|row| side(row)?.stamps.value().map(u64::from)),
        "Last time stamp (TSval) that the sender sent."),
    column("tsecr_rtt_count", "round trips", "", Maybe(|row| side(row).map(|side| side.stamps.round_trips.count)),
        "Round trips measured by time stamps: from the first packet with a TSval to the first packet that echoes it."),
    column("tsecr_rtt_min_ns", "ns", "", Span(|row| shortest(&side(row)?.stamps.round_trips)),
        "Shortest of these round trips."),
    column("tsecr_rtt_avg_ns", "ns", "", Real(|row| average(&side(row)?.stamps.round_trips)),
        "Mean of these round trips. They include the receiver's delay of ACKs."),
    column("tsecr_rtt_max_ns", "ns", "", Span(|row| longest(&side(row)?.stamps.round_trips)),
        "Longest of these round trips."),
    column("sack_ranges_max", "ranges", "", Maybe(|row| side(row).map(|side| side.board.ranges_max)),
        "Most ranges of the sender's data that were selectively acknowledged at a time. headend keeps 256."),
    column("sack_ranges_forgotten", "ranges", "", Maybe(|row| side(row).map(|side| side.board.forgotten)),
        "Ranges that headend forgot because there were more than 256."),
    column("sack_lost_max", "bytes", "", Maybe(|row| side(row).map(|side| side.board.lost_max)),
        "Most bytes that counted as lost at a time (RFC 6675, IsLost)."),
    column("pipe_max", "bytes", "", Maybe(|row| side(row).map(|side| side.board.pipe_max)),
        "Most bytes in the network during recoveries (RFC 6675, pipe), taken at each ACK with SACK blocks."),
    column("busy_ns", "ns", "", Span(|row| side(row).map(|side| side.shares.busy)),
        "Time with data in flight."),
    column("rwnd_limited_ns", "ns", "", Span(|row| side(row).map(|side| side.shares.rwnd_limited)),
        "Part of `busy_ns` in which the receiver's window had no room for a full-sized segment."),
    column("recovery_ns", "ns", "", Span(|row| side(row).map(|side| side.shares.recovery)),
        "Part of `busy_ns` from a retransmission until all data sent before it was acknowledged."),
];
