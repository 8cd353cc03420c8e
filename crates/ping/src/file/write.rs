//! Writes a result file.

use std::io::{self, Write};

use serde::Serialize;

use super::{FORMAT, SCHEMA, VERSION};
use crate::outcome::{Dues, Outcome, StreamOutcome};
use crate::sample::Sample;

/// Text is passed on in blocks of about this size.
const PIECE: usize = 64 * 1024;

/// Writes a result.
///
/// # Errors
/// The error of `out`.
pub fn write<W: Write>(outcome: &Outcome, out: W) -> io::Result<()> {
    let mut paper = Paper {
        out,
        text: Vec::with_capacity(PIECE + 64),
    };
    paper.text(&format!(
        "{{\"format\":\"{FORMAT}\",\n\"version\":{VERSION},\n\"schema\":\"{SCHEMA}\",\n\"tool\":"
    ));
    paper.json(&outcome.tool)?;
    for (key, value) in [
        ("started_unix_ns", outcome.started_unix_ns),
        ("duration_ns", outcome.duration.as_nanos()),
        ("wait_ns", outcome.wait.as_nanos()),
        ("ignored_replies", outcome.ignored_replies),
    ] {
        paper.text(&format!(",\n\"{key}\":{value}"));
    }
    paper.text(&format!(
        ",\n\"interrupted\":{},\n\"streams\":[",
        outcome.interrupted
    ));
    for (number, stream) in outcome.streams.iter().enumerate() {
        paper.text(if number == 0 { "\n" } else { ",\n" });
        paper.stream(stream)?;
    }
    paper.text("]}\n");
    paper.flush()
}

struct Paper<W> {
    out: W,
    text: Vec<u8>,
}

impl<W: Write> Paper<W> {
    fn text(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn json<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        serde_json::to_writer(&mut self.text, value).map_err(io::Error::from)
    }

    fn stream(&mut self, stream: &StreamOutcome) -> io::Result<()> {
        self.text("{\"plan\":");
        self.json(&stream.plan)?;
        self.text(",\n\"summary\":");
        self.json(&stream.summary)?;
        self.text(",\n\"samples\":{");
        let samples = || stream.samples.iter();
        let dues = || {
            let mut dues = Dues::new(&stream.runs, stream.plan.interval);
            samples().map(move |_| dues.next_due())
        };
        let mut before = 0;
        let deltas = dues().map(|due| due - std::mem::replace(&mut before, due));
        self.column("\"due_delta_ns\"", deltas)?;
        let late = samples().zip(dues()).map(|(sample, due)| {
            let due = i64::try_from(due).unwrap_or(i64::MAX);
            sample.sent_ns().saturating_sub(due)
        });
        self.column(",\n\"late_ns\"", late)?;
        let rtt = |sample: &Sample| match sample.rtt() {
            Some(rtt) => rtt.as_nanos() as i64,
            None => -1,
        };
        self.column(",\n\"rtt_ns\"", samples().map(rtt))?;
        self.column(",\n\"ttl\"", samples().map(|sample| sample.ttl()))?;
        self.column(",\n\"tos\"", samples().map(|sample| sample.tos()))?;
        self.column(",\n\"flags\"", samples().map(|sample| sample.flags()))?;
        if let Some(one_ways) = &stream.one_ways {
            self.column(",\n\"up_ns\"", one_ways.iter().map(|way| way.up_ns))?;
            self.column(",\n\"turn_ns\"", one_ways.iter().map(|way| way.turn_ns))?;
            self.column(",\n\"count\"", one_ways.iter().map(|way| way.count))?;
        }
        self.text("}}");
        Ok(())
    }

    fn column<N: itoa::Integer>(
        &mut self,
        key: &str,
        numbers: impl Iterator<Item = N>,
    ) -> io::Result<()> {
        self.text(key);
        self.text(":[");
        let mut digits = itoa::Buffer::new();
        let mut comma: &[u8] = b"";
        for number in numbers {
            self.text.extend_from_slice(comma);
            self.text
                .extend_from_slice(digits.format(number).as_bytes());
            comma = b",";
            if self.text.len() >= PIECE {
                self.flush()?;
            }
        }
        self.text("]");
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        self.out.flush()
    }
}
