//! The lines of `headend trace why --json`: an object for each connection with data, and a summary.

use serde_json::{Map, Value, json};

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

/// The summary's line: connections with and without data, and the numbers of those that lost most time.
#[must_use]
pub fn summary(with_data: u64, without_data: u64, worst: &[u64]) -> Value {
    json!({
        "schema": "trace.why_summary/1",
        "kind": "why_summary",
        "connections": with_data,
        "without_data": without_data,
        "worst": worst,
    })
}
