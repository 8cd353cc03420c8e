//! Explains UDP flows. The files are read once more for them, so that a capture without UDP costs nothing.

use serde_json::{Value, json};
use trace::capture::Error;
use trace::json::why::flow;
use trace::udp::report::{Report, Weight};
use trace::udp::{Datagram, Flows};
use trace::{Plan, Seen, Watch};
use wire::udp::Udp;

/// Flows that are kept, and flows that the page lists.
const FLOWS_MAX: usize = 1 << 16;
const LISTED: usize = 500;

pub(crate) struct Explain(Flows);

impl Watch for Explain {
    const FINISHED: bool = false;
    type Error = Error;

    fn other(&mut self, seen: &Seen<'_, '_>) {
        if let Ok(udp) = Udp::parse(seen.packet) {
            let (number, time) = (seen.number, seen.record.time_ns);
            let datagram = Datagram::new(number, time, seen.packet, &udp, seen.realm);
            let codepoint = seen.packet.traffic_class & 3;
            self.0.packet_with(&datagram, udp.payload, codepoint);
        }
    }
}

impl Explain {
    pub(crate) fn new(plan: Plan) -> Explain {
        let mut flows = Flows::new(plan.seed(), FLOWS_MAX);
        flows.explain();
        Explain(flows)
    }

    /// The flows as an object: the lines of the worst, their number, and packets of flows that are not kept.
    pub(crate) fn answer(&self) -> String {
        let Explain(flows) = self;
        let mut reports: Vec<(Weight, Report<'_>)> = (flows.flows().iter())
            .filter_map(Report::new)
            .map(|report| (report.weight(), report))
            .collect();
        reports.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let lines = reports.iter().take(LISTED).map(|(_, report)| flow(report));
        let object = json!({
            "flows": flows.flows().len(),
            "beyond": flows.beyond(),
            "lines": lines.collect::<Vec<Value>>(),
        });
        object.to_string()
    }
}
