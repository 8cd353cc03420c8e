//! The report as JSON: an object for each connection with data, and a summary.

use serde_json::{Map, Value, json};
use trace::why::findings::{End, Finding, Unit};
use trace::why::{Cause, Share};

use super::{Side, Slow, Summary};

/// Appends a connection's line.
pub(super) fn write(slow: &Slow, out: &mut String) {
    let sides: Map<String, Value> = slow.sides.iter().map(side).collect();
    let mut line = json!({
        "schema": "trace.why/1",
        "kind": "why",
        "connection": slow.number,
        "a_address": slow.a.0.to_string(), "a_port": slow.a.1,
        "b_address": slow.b.0.to_string(), "b_port": slow.b.1,
        "elapsed_ns": slow.life,
        "rtt_to_a_ns": known(slow.to_a),
        "rtt_to_b_ns": known(slow.to_b),
        "findings": {"a": findings(&slow.findings.a), "b": findings(&slow.findings.b)},
        "loss_response": {"a": response(&slow.findings.a), "b": response(&slow.findings.b)},
    });
    if let Some(object) = line.as_object_mut() {
        object.extend(sides);
    }
    push(&line, out);
}

fn known(time: i64) -> Option<i64> {
    (time > 0).then_some(time)
}

fn side(side: &Side) -> (String, Value) {
    let verdict = &side.verdict;
    let causes: Map<String, Value> = Cause::all()
        .filter(|cause| side.shares[*cause as usize].time > 0)
        .map(|cause| {
            let share = share(&side.shares[cause as usize]);
            (cause.rule().name.to_owned(), share)
        })
        .collect();
    let value = json!({
        "bytes": side.bytes,
        "sentence": verdict.to_string(),
        "cause": verdict.cause.rule().name,
        "part": verdict.part(),
        "confidence": verdict.confidence.name(),
        "vantage": verdict.vantage.name(),
        "contradicted_by": verdict.cause.rule().contradicted_by,
        "cannot_see": verdict.vantage.cannot_see(),
        "causes": causes,
    });
    let name = if verdict.from_a { "a2b" } else { "b2a" };
    (name.to_owned(), value)
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

/// Appends the summary's line.
pub(super) fn write_summary(summary: &Summary, out: &mut String) {
    let worst: Vec<u64> = summary.worst.iter().map(|slow| slow.number).collect();
    let line = json!({
        "schema": "trace.why_summary/1",
        "kind": "why_summary",
        "connections": summary.with_data,
        "without_data": summary.without_data,
        "worst": worst,
    });
    push(&line, out);
}

fn push(line: &Value, out: &mut String) {
    out.push_str(&line.to_string());
    out.push('\n');
}
