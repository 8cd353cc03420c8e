//! Members about QUIC of a UDP flow.

use crate::quic::Quic;

use super::{integer, key, maybe, text};

/// Adds the members. Of a flow that is not QUIC, all but `quic` are absent.
pub(super) fn members(line: &mut Vec<u8>, quic: Option<&Quic>) {
    key(line, "quic");
    super::flag(line, quic.is_some());
    let Some(quic) = quic else {
        return;
    };
    key(line, "quic_version");
    text(line, &format!("0x{:08x}", quic.version));
    for (name, value) in [
        (
            "quic_original_destination_id",
            &quic.original_destination_id,
        ),
        ("quic_client_id", &quic.client_id),
        ("quic_server_id", &quic.server_id),
        ("tls_server_name", &quic.server_name),
        ("tls_alpn_offered", &quic.alpn_offered),
    ] {
        key(line, name);
        maybe(
            line,
            Some(value).filter(|value| !value.is_empty()),
            |line, value| text(line, value),
        );
    }
    for (name, value) in [
        ("quic_retry", quic.retried),
        ("quic_version_negotiation", quic.negotiated_version),
    ] {
        key(line, name);
        super::flag(line, value);
    }
    for (name, value) in [
        ("quic_answer_ns", quic.answer()),
        ("quic_handshake_ns", quic.handshake()),
    ] {
        key(line, name);
        maybe(line, value, integer);
    }
    for (side, (spin, codepoints)) in ["a2b", "b2a"]
        .into_iter()
        .zip(quic.spin.iter().zip(quic.codepoints))
    {
        let round_trips = spin.round_trips();
        for (name, value) in [
            ("short_packets", spin.packets),
            ("spin_edges", spin.edges),
            ("spin_rtt_count", round_trips.count),
            ("ect1_packets", codepoints[0]),
            ("ect0_packets", codepoints[1]),
            ("ce_packets", codepoints[2]),
        ] {
            key(line, &format!("{side}_{name}"));
            integer(line, value);
        }
        let sampled = (round_trips.count > 0).then_some(round_trips);
        for (name, value) in [
            ("spin_rtt_min_ns", sampled.map(|times| times.min)),
            ("spin_rtt_max_ns", sampled.map(|times| times.max)),
            (
                "spin_rtt_avg_ns",
                sampled.map(|times| times.sum / times.count.cast_signed()),
            ),
        ] {
            key(line, &format!("{side}_{name}"));
            maybe(line, value, integer);
        }
    }
}
