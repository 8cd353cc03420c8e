//! The lines of `headend trace why --json`: an object for each connection with data and, with `-u`, for each UDP flow,
//! and a summary.

use serde_json::{Map, Value, json};

use crate::quic::{Move, Numbers, Quic, Spin};
use crate::udp::Sent;
use crate::udp::report::Report as Flow;
use crate::udp::sequence::{Protocol, Stream};
use crate::udp::traffic::{Dns, Sender};
use crate::why::findings::{End, Finding, Unit};
use crate::why::{Cause, Report, Share, Side};

/// A connection's line.
#[must_use]
pub fn connection(report: &Report) -> Value {
    let mut line = json!({
        "schema": "trace.why/1",
        "kind": "why",
        "connection": report.number,
        "a_address": report.a.0.to_string(), "a_port": report.a.1,
        "b_address": report.b.0.to_string(), "b_port": report.b.1,
        "elapsed_ns": report.life,
        "rtt_to_a_ns": report.to_a,
        "rtt_to_b_ns": report.to_b,
        "main": report.main().map(Side::name),
        "findings": {"a": findings(&report.findings.a), "b": findings(&report.findings.b)},
        "loss_response": {"a": response(&report.findings.a), "b": response(&report.findings.b)},
    });
    for each in &report.sides {
        line[each.name()] = side(each);
    }
    line
}

fn side(side: &Side) -> Value {
    let verdict = &side.verdict;
    let causes: Map<String, Value> = Cause::all()
        .filter(|cause| side.shares[*cause as usize].time > 0)
        .map(|cause| {
            let share = share(&side.shares[cause as usize]);
            (cause.rule().name.to_owned(), share)
        })
        .collect();
    json!({
        "bytes": side.bytes,
        "sentence": verdict.to_string(),
        "cause": verdict.cause.rule().name,
        "part": verdict.part(),
        "confidence": verdict.confidence.name(),
        "vantage": verdict.vantage.name(),
        "contradicted_by": verdict.cause.rule().contradicted_by,
        "cannot_see": verdict.vantage.cannot_see(),
        "causes": causes,
    })
}

fn findings(end: &End) -> Value {
    let seen = Finding::all().map(|finding| (finding.description(), end.seen(finding)));
    let seen: Map<String, Value> = seen
        .filter(|(_, seen)| seen.count > 0)
        .map(|(description, seen)| {
            let mut value = json!({
                "count": seen.count,
                "packet": (seen.first > 0).then_some(seen.first),
            });
            if description.unit != Unit::None {
                value[description.unit.name()] = seen.value.into();
                value["largest_at_packet"] = (seen.packet > 0).then_some(seen.packet).into();
            }
            (description.name.to_owned(), value)
        })
        .collect();
    Value::Object(seen)
}

/// How the end answers losses.
fn response(end: &End) -> Value {
    json!({
        "losses": end.response.count,
        "remaining": end.response.mean(),
        "like": end.response.like(),
    })
}

fn share(share: &Share) -> Value {
    json!({
        "time_ns": share.time,
        "spans": share.spans,
        "longest_ns": share.longest,
        "longest_until_packet": share.packet,
    })
}

/// A UDP flow's line.
#[must_use]
pub fn flow(report: &Flow<'_>) -> Value {
    let (flow, traffic) = (report.flow, report.traffic);
    let [(a, a_port), (b, b_port)] = report.ends();
    json!({
        "schema": "trace.why_udp/1",
        "kind": "why_udp",
        "flow": flow.number,
        "a_address": a.to_string(), "a_port": a_port,
        "b_address": b.to_string(), "b_port": b_port,
        "elapsed_ns": flow.elapsed(),
        "lost_ns": report.lost(),
        "protocol": report.protocol,
        "sentence": report.sentence,
        "not_visible": report.not_visible,
        "a2b": sender(&flow.a, &traffic.a),
        "b2a": sender(&flow.b, &traffic.b),
        "last_sender": if traffic.last_from_a { "a" } else { "b" },
        "dns": traffic.dns.as_ref().map(dns),
        "quic": flow.quic.as_deref().map(quic),
    })
}

fn sender(sent: &Sent, sender: &Sender) -> Value {
    let (silence, packet) = sender.silence;
    json!({
        "packets": sent.packets,
        "bytes": sent.bytes,
        "silence_ns": silence,
        "silence_until_packet": (packet > 0).then_some(packet),
        "streams": sender.streams.iter().map(stream).collect::<Vec<_>>(),
    })
}

fn stream(stream: &Stream) -> Value {
    let (gap, packet) = stream.gap_max;
    let jitter = stream.jitter.mean_and_max();
    let payload_type = match stream.protocol {
        Protocol::Rtp(kind) => Some(kind),
        _ => None,
    };
    json!({
        "protocol": stream.protocol.name(),
        "stream": format!("0x{:08x}", stream.stream),
        "payload_type": payload_type,
        "packets": stream.packets,
        "expected": stream.expected(),
        "lost": stream.lost(),
        "lost_in_a_row": gap,
        "lost_in_a_row_until_packet": (packet > 0).then_some(packet),
        "outage_ns": payload_type.map(|_| stream.outage.0),
        "out_of_order": stream.reordered,
        "duplicates": stream.duplicates,
        "restarts": stream.restarts,
        "jitter_mean_ns": jitter.map(|jitter| jitter.0),
        "jitter_max_ns": jitter.map(|jitter| jitter.1),
    })
}

fn dns(dns: &Dns) -> Value {
    let times = dns.times();
    let sampled = (times.count > 0).then_some(times);
    json!({
        "questions": dns.questions,
        "unanswered": dns.unanswered(),
        "repeated": dns.repeated,
        "answered": dns.answered,
        "answer_min_ns": sampled.map(|times| times.min),
        "answer_avg_ns": dns.mean(),
        "answer_max_ns": sampled.map(|times| times.max),
        "slowest_packet": sampled.map(|_| dns.slowest.1),
    })
}

fn quic(quic: &Quic) -> Value {
    json!({
        "version": format!("0x{:08x}", quic.version),
        "server_name": (!quic.server_name.is_empty()).then_some(&quic.server_name),
        "handshake_ns": quic.handshake(),
        "answer_ns": quic.answer(),
        "reply_ns": quic.reply(),
        "server_data_ns": quic.server_data(),
        "repeated_hellos": quic.repeats(),
        "first_repeat_ns": quic.first_repeat(),
        "retry": quic.retried,
        "version_negotiation": quic.negotiated_version,
        "early_packets": quic.early_packets,
        "greased_packets": quic.greased,
        "client_initials": numbers(&quic.initials[0], quic.started),
        "server_initials": numbers(&quic.initials[1], quic.started),
        "moves": quic.move_count,
        "moved": quic.moves.iter().map(moved).collect::<Vec<_>>(),
        "client_spin": spin(&quic.spin[0]),
        "server_spin": spin(&quic.spin[1]),
    })
}

fn moved(moved: &Move) -> Value {
    json!({
        "address": moved.address.to_string(), "port": moved.port,
        "packet": moved.packet,
        "after_ns": moved.after,
        "silence_ns": moved.silence,
    })
}

fn numbers(numbers: &Numbers, started: i64) -> Value {
    json!({
        "packets": numbers.packets,
        "missing": numbers.missing(),
        "duplicates": numbers.duplicates,
        "out_of_order": numbers.reordered,
        "retransmitted": numbers.retransmitted,
        "first_retransmission_ns": numbers.retransmitted_after(started),
    })
}

/// Round trips by the spin bit are absent unless the end seems to spin.
fn spin(spin: &Spin) -> Value {
    let believed = spin.median();
    let times = believed.map(|_| spin.round_trips());
    json!({
        "packets": spin.packets,
        "edges": spin.edges,
        "rtt_count": times.as_ref().map(|times| times.count),
        "rtt_min_ns": times.as_ref().map(|times| times.min),
        "rtt_median_ns": believed.map(|believed| believed.0),
        "rtt_max_ns": times.as_ref().map(|times| times.max),
        "too_short": believed.map(|believed| believed.1),
    })
}

/// What the report's first sentence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Main {
    /// A UDP flow, not a connection.
    pub is_udp: bool,
    /// Its number.
    pub number: u64,
    /// Time that it lost, in nanoseconds.
    pub lost: i64,
}

/// The summary's line: connections with and without data, and the numbers of those that lost most time. With `-u`, also
/// the number of UDP flows, and the numbers of the worst. `main` is what the first sentence is about.
#[must_use]
pub fn summary(
    (with_data, without_data): (u64, u64),
    worst: &[u64],
    udp: Option<(u64, &[u64])>,
    main: Option<Main>,
) -> Value {
    let main = main.map(|main| {
        let kind = if main.is_udp { "why_udp" } else { "why" };
        json!({"kind": kind, "number": main.number, "lost_ns": main.lost})
    });
    json!({
        "schema": "trace.why_summary/1",
        "kind": "why_summary",
        "connections": with_data,
        "without_data": without_data,
        "worst": worst,
        "udp_flows": udp.map(|(flows, _)| flows),
        "worst_udp": udp.map(|(_, worst)| worst),
        "main": main,
    })
}
