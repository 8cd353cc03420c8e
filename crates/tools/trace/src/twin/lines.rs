//! The report as one JSON object.

use serde_json::{Value, json};
use twin::path::{Estimate, FLOW_SEGMENTS, Loss};
use twin::{Figures, Twin};

use super::{Report, Side, text};

/// The name and version of the form.
const SCHEMA: &str = "trace.twin/1";

/// The whole report.
pub(super) fn document(report: &Report) -> Value {
    json!({
        "schema": SCHEMA,
        "sentence": text::sentence(report),
        "policy": report.policy.name(),
        "seed": report.seed,
        "packets": report.packets,
        "packets_beyond": report.beyond,
        "directions": report.sides.iter().map(side).collect::<Vec<_>>(),
    })
}

fn side(side: &Side) -> Value {
    let mut object = json!({
        "direction": side.direction.name(),
        "flows": side.found.len(),
        "connections": side.found.iter().map(|found| found.connection).collect::<Vec<_>>(),
    });
    match &side.twin {
        Ok(twin) => {
            object["path"] = path(twin);
            object["captured"] = figures(&twin.captured);
            object["twin"] = figures(&twin.figures);
            object["error"] = json!({
                "goodput": twin.error.goodput,
                "rtt_p50": twin.error.rtt[0],
                "rtt_p90": twin.error.rtt[1],
                "rtt_p99": twin.error.rtt[2],
                "loss": twin.error.loss,
                "worst_goodput": twin.error.worst_goodput,
                "worst_seconds": twin.error.worst_seconds,
                "is_small": twin.error.is_small(),
            });
            let promise = side.promise.as_ref();
            object["promise"] = promise.map_or(Value::Null, |promise| figures(&promise.figures));
        }
        Err(error) => {
            object["refused"] = json!(error.to_string());
            object["largest_flow"] = json!(side.reason);
            let flows = side.found.iter().map(|found| &found.flow);
            let flows = flows.filter(|flow| flow.segments() >= FLOW_SEGMENTS);
            object["captured"] = figures(&Figures::of(&flows.collect::<Vec<_>>()));
        }
    }
    object
}

fn path(twin: &Twin) -> Value {
    let path = &twin.path;
    let (kind, share, bucket) = match path.loss {
        Loss::None => ("none", 0.0, None),
        Loss::DropTail => ("drop_tail", 0.0, None),
        Loss::Early(share) => ("early", share, None),
        Loss::Policer(bucket) => ("policer", 0.0, Some(bucket)),
    };
    let bases = path.bases.iter().map(|base| estimate(*base, 1e6));
    json!({
        "rate_bps": estimate(path.rate_bps, 1.0),
        "windows": path.windows,
        "base_rtt_ms": bases.collect::<Vec<_>>(),
        "buffer_bytes": path.buffer.map(|buffer| estimate(buffer.bytes, 1.0)),
        "buffer_ms": path.buffer.map(|buffer| estimate(buffer.time, 1e6)),
        "most_queued_bytes": path.most_queued,
        "loss": kind,
        "loss_share": share,
        "bucket_bytes": bucket,
        "lost_segments": path.losses.0,
        "segments": path.losses.1,
        "cross_bps": estimate(path.cross_bps, 1.0),
        "congested": path.congested,
        "congestion_control": twin.algorithm.name(),
        "window_after_loss": twin.evidence.remained.map(|remained| remained.0),
        "reductions": twin.evidence.remained.map_or(0, |remained| remained.1),
    })
}

fn estimate(estimate: Estimate, unit: f64) -> Value {
    json!({
        "value": estimate.value / unit,
        "low": estimate.low / unit,
        "high": estimate.high / unit,
    })
}

fn figures(figures: &Figures) -> Value {
    let flows = figures.flows.iter().map(|flow| {
        json!({"goodput_bps": flow.goodput_bps, "seconds": flow.seconds, "bytes": flow.bytes})
    });
    json!({
        "goodput_bps": figures.goodput_bps,
        "seconds": figures.seconds,
        "rtt_p50_ms": figures.rtt_ms[0],
        "rtt_p90_ms": figures.rtt_ms[1],
        "rtt_p99_ms": figures.rtt_ms[2],
        "loss": figures.loss,
        "flows": flows.collect::<Vec<_>>(),
    })
}
