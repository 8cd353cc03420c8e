//! UDP flows, and the columns of [`trace::udp::columns`] as Arrow arrays.

use std::collections::HashMap;

use arrow_schema::Field;
use trace::udp::columns::{ALL, Get};
use trace::udp::report::Report;
use trace::udp::{Datagram, FLOWS_MAX, Flow, Flows};
use trace::{Error, Finished, Seen, Summary, Watch};
use wire::udp::Udp;

use crate::rows::{Kind, Value, Values, signed};

/// Reads the UDP packets of a capture. Nothing is kept of TCP connections.
pub(crate) struct Explain(Flows);

impl Explain {
    /// The seed of the hashes should be unpredictable.
    pub(crate) fn new(seed: u64) -> Explain {
        let mut flows = Flows::new(seed, FLOWS_MAX);
        flows.explain();
        Explain(flows)
    }

    /// The counts of a run, with those of the flows.
    pub(crate) fn summary(&self, counts: &Summary) -> Summary {
        Summary {
            udp: Some(self.0.packets()),
            flows: self.0.flows().len() as u64,
            flows_beyond: self.0.beyond(),
            ..counts.clone()
        }
    }

    pub(crate) fn into_flows(self) -> Vec<Flow> {
        self.0.into_flows()
    }
}

impl Watch for Explain {
    type Error = Error;

    fn set_file(&mut self, file: u32) {
        self.0.set_file(file);
    }

    fn other(&mut self, seen: &Seen<'_, '_>) {
        if let Ok(udp) = Udp::parse(seen.packet) {
            let (number, time) = (seen.number, seen.record.time_ns);
            let datagram = Datagram::new(number, time, seen.packet, &udp, seen.realm);
            let codepoint = seen.packet.traffic_class & 3;
            self.0.packet_with(&datagram, udp.payload, codepoint);
        }
    }

    fn finished(&mut self, _finished: Vec<Finished>, _end: i64) -> Result<Vec<Finished>, Error> {
        Ok(Vec::new())
    }
}

/// All fields, in order. The metadata of each has its description.
pub(crate) fn fields() -> Vec<Field> {
    let columns = ALL.iter().map(|column| {
        let absent = column.get.may_be_absent();
        let about = HashMap::from([("description".to_owned(), column.doc.clone())]);
        Field::new(&column.name, kind(column.get).data_type(), absent).with_metadata(about)
    });
    columns.collect()
}

fn kind(get: Get) -> Kind {
    match get {
        Get::Count(_) | Get::Maybe(_) | Get::Span(_) | Get::Side(..) | Get::End(..) => {
            Kind::Integer
        }
        Get::Moment(_) => Kind::Time,
        Get::Flag(_) => Kind::Flag,
        Get::Text(_) => Kind::Text,
    }
}

/// The columns of those indexes, empty.
pub(crate) fn empty(chosen: &[usize], rows: usize) -> Vec<Values> {
    let chosen = chosen.iter().map(|&at| kind(ALL[at].get));
    chosen.map(|kind| Values::new(kind, rows)).collect()
}

/// Adds a flow to the columns of those indexes; returns how many rows.
pub(crate) fn push(chosen: &[usize], flow: &Flow, values: &mut [Values]) -> usize {
    let Some(report) = Report::new(flow) else {
        return 0;
    };
    for (&at, values) in chosen.iter().zip(values) {
        values.push(match ALL[at].get {
            Get::Count(get) => Value::Integer(Some(signed(get(&report)))),
            Get::Maybe(get) => Value::Integer(get(&report).map(signed)),
            Get::Span(get) => Value::Integer(get(&report)),
            Get::Moment(get) => Value::Integer(Some(get(&report))),
            Get::Flag(get) => Value::Flag(get(&report)),
            Get::Text(get) => {
                let text = get(&report);
                values.push(Value::Text(text.as_deref()));
                continue;
            }
            Get::End(end, get) => {
                let quic = report.flow.quic.as_deref();
                Value::Integer(quic.and_then(|quic| get(quic, end)).map(signed))
            }
            Get::Side(from_a, get) => Value::Integer(get(&report.side(from_a)).map(signed)),
        });
    }
    1
}
