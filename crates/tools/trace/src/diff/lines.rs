//! The summary as JSON.

use paths::{AtPoint, Counted, Delay, Findings, OneWay, Way};
use serde_json::{Value, json};

use super::Compared;
use super::page;

/// A direction's name.
pub(super) fn direction(way: Way) -> &'static str {
    match way {
        Way::AToB => "a2b",
        Way::BToA => "b2a",
    }
}

/// Appends the summary's line.
pub(super) fn write(compared: &Compared<'_>, out: &mut String) {
    let found = compared.found;
    let ways =
        Way::ALL.map(|way| one_way(&found.ways[way as usize], &found.clock.delays[way as usize]));
    let [a2b, b2a] = ways;
    let points = [0, 1].map(|at| point(compared, at, &found.points[at]));
    let [a, b] = points;
    let line = json!({
        "schema": "trace.diff/1",
        "kind": "diff",
        "sentence": page::sentence(compared),
        "a": a,
        "b": b,
        "a2b": a2b,
        "b2a": b2a,
        "directions_assumed": found.is_way_assumed,
        "same_capture": compared.same.is_some(),
        "only_difference_ns": found.only_difference,
        "clock": clock(found),
        "rewritten": rewritten(found),
        "mapped_flows": found.mapped,
        "mappings": mappings(found),
        "timestamps_rewritten_flows": found.stamps_rewritten,
        "waiting_max": found.waiting_max,
    });
    out.push_str(&line.to_string());
    out.push('\n');
}

fn point(compared: &Compared<'_>, at: usize, point: &AtPoint) -> Value {
    let capture = &compared.captures[at];
    let counted_by_host = Some(capture.statistics()).filter(|counts| !counts.is_empty());
    json!({
        "file": capture.name,
        "packets": point.packets,
        "not_ip": capture.unread,
        "capture_dropped": counted_by_host.map(|counts| counts.dropped()),
        "first_time": point.time.map(|time| time.0),
        "last_time": point.time.map(|time| time.1),
        "encapsulations": capture.kinds,
        "flows": point.flows,
        "only_flows": point.only_flows,
        "only_packets": point.only.packets,
        "at_edges": point.at_edges,
        "given_up": point.given_up,
        "beyond_flow_limit": point.beyond,
    })
}

fn one_way(way: &OneWay, delay: &Delay) -> Value {
    let [p10, p50, p90, p99, p999] = delay.ranks;
    json!({
        "pairs": way.pairs,
        "bytes": way.bytes,
        "parts": way.parts,
        "flows": way.flows,
        "lost": counted(&way.lost),
        "lost_in_part": way.lost_in_part,
        "only_at_far_point": counted(&way.extra),
        "lost_before": counted(&way.lost_before),
        "late_before": counted(&way.late_before),
        "lost_after": counted(&way.lost_after),
        "needless_retransmissions": counted(&way.needless),
        "duplicated": counted(&way.duplicated),
        "captured_twice": way.copies,
        "reordered": counted(&way.reordered),
        "main_flow": way.main.map(|main| json!({
            "a": main.0.to_string(), "b": main.1.to_string(), "pairs": main.2,
        })),
        "delay": json!({
            "samples": delay.count,
            "least_ns": [delay.least.0, delay.least.1],
            "above_least_p10_ns": p10, "above_least_p50_ns": p50, "above_least_p90_ns": p90,
            "above_least_p99_ns": p99, "above_least_p999_ns": p999,
            "above_least_max_ns": delay.longest,
            "variation_ns": delay.variation,
        }),
    })
}

fn counted(counted: &Counted) -> Value {
    json!({"packets": counted.packets, "bytes": counted.bytes, "first_packet": (counted.first > 0).then_some(counted.first)})
}

fn clock(found: &Findings) -> Value {
    let pieces = found.clock.pieces.iter().map(|piece| {
        json!({
            "from": piece.time.0, "to": piece.time.1,
            "offset_ns": [piece.offset.0, piece.offset.1],
            "drift_ppm": piece.drift * 1e6,
            "drift_bounds_ppm": [piece.drift_bounds.0 * 1e6, piece.drift_bounds.1 * 1e6],
        })
    });
    let steps = found.clock.steps.iter().map(|step| {
        json!({"after": step.time.0, "before": step.time.1, "by_ns": step.by, "error_ns": step.error})
    });
    json!({
        "same": found.clock.is_one,
        "pieces": pieces.collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>(),
        "round_trip_ns": found.clock.round_trip,
        "left_out": found.clock.left_out,
    })
}

fn rewritten(found: &Findings) -> Vec<Value> {
    let changes = found.rewrites.changes.iter().map(|(change, changed)| {
        json!({
            "direction": direction(change.way),
            "field": change.field.name(),
            "from": change.from,
            "to": change.to,
            "packets": changed.packets,
            "first_a": changed.first.0,
            "first_b": changed.first.1,
        })
    });
    changes.collect()
}

fn mappings(found: &Findings) -> Vec<Value> {
    let mappings = found.mappings.iter().map(|mapping| {
        json!({"a": mapping.a.to_string(), "b": mapping.b.to_string(), "sequence_moved": mapping.moved})
    });
    mappings.collect()
}
