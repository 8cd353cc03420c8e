//! The report of an interval as a line of JSON.

use serde_json::{Map, Value, json};
use trace::why::Cause;

use super::ticker::{Report, Slow};
use crate::owners::Owner;

/// Appends the line.
pub(super) fn write(report: &Report, out: &mut String) {
    let worst: Vec<Value> = report.worst.iter().map(connection).collect();
    let line = json!({
        "schema": "trace.why_interval/1",
        "kind": "why_interval",
        "interface": report.interface,
        "from_ns": report.from,
        "until_ns": report.until,
        "captured": report.captured,
        "dropped": report.dropped,
        "dropped_total": report.dropped_total,
        "connections": report.connections,
        "worst": worst,
    });
    out.push_str(&line.to_string());
    out.push('\n');
}

fn connection(slow: &Slow) -> Value {
    let interval = &slow.interval;
    let causes: Map<String, Value> = Cause::all()
        .map(|cause| (cause, interval.times[cause as usize]))
        .filter(|(_, time)| *time > 0)
        .map(|(cause, time)| (cause.rule().name.to_owned(), time.into()))
        .collect();
    json!({
        "first_packet": slow.first_packet,
        "a_address": slow.a.0.to_string(), "a_port": slow.a.1,
        "b_address": slow.b.0.to_string(), "b_port": slow.b.1,
        "a_process": slow.a_owner.as_ref().map(Owner::object),
        "b_process": slow.b_owner.as_ref().map(Owner::object),
        "direction": if interval.from_a { "a2b" } else { "b2a" },
        "span_ns": interval.span,
        "bytes": interval.bytes,
        "bits_per_second": interval.bits_per_second().round() as u64,
        "retransmitted": interval.retransmitted,
        "cause": interval.cause.rule().name,
        "part": interval.part(),
        "sentence": interval.to_string(),
        "causes_ns": causes,
    })
}

#[cfg(test)]
mod tests {
    use super::super::ticker::tests::{report, slow};
    use super::*;

    #[test]
    fn a_line_is_one_object_with_its_schema() {
        let mut out = String::new();
        write(&report(vec![slow(5_000, 870, 1_250_000)]), &mut out);
        assert_eq!(out.lines().count(), 1);
        let line: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(line["schema"], "trace.why_interval/1");
        assert_eq!(
            (&line["dropped"], &line["dropped_total"]),
            (&5.into(), &7.into())
        );
        let worst = &line["worst"][0];
        assert_eq!(worst["bits_per_second"], 10_000_000);
        assert_eq!(worst["b_process"]["name"], "server");
        assert_eq!(
            worst["a_process"],
            json!({"uid": 1000, "pid": null, "name": null})
        );
        let sum: i64 = worst["causes_ns"]
            .as_object()
            .unwrap()
            .values()
            .filter_map(Value::as_i64)
            .sum();
        assert_eq!(sum, worst["span_ns"].as_i64().unwrap());
    }
}
