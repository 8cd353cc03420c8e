//! `--live IFACE`: the frames of an interface, analysed as they pass, and with `why` a report at intervals.
//!
//! | file | what it does |
//! |---|---|
//! | `live` | opens the interface, gives up privileges, and reports the counts at the end |
//! | `live/source` | the interface as a source of packets for the analyser |
//! | `live/frames` | frames as a capture file would have them |
//! | `live/ticker` | what senders waited for in each interval |
//! | `live/processes` | the processes that the host's own connections belong to |
//! | `live/learning` | these processes, kept for the report at the end |
//! | `live/text`, `live/lines` | the report of an interval as text and as JSON |

mod frames;
mod learning;
mod lines;
mod processes;
mod source;
mod text;
mod ticker;

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use reactor::capture::{Capture, CaptureOptions, CaptureStats};
use serde_json::json;
use trace::Captures;

use super::hi::HiArgs;
use super::stop::Stop;
use source::{Interface, Meter};

pub(super) use ticker::Ticker;

/// The interval of `why` if none is given, in nanoseconds.
const EVERY: i64 = 5_000_000_000;

/// A capture that has been opened.
pub(super) struct Opened {
    pub(super) captures: Captures,
    pub(super) ticker: Option<Ticker>,
    pub(super) counts: Counts,
}

/// The counts of a capture, during it and after.
pub(super) struct Counts {
    name: String,
    meter: Arc<Meter>,
}

/// Opens the interface `name`, and gives up the privileges for it.
///
/// # Errors
/// The interface cannot be captured, or a file cannot be written.
pub(super) fn open(args: &HiArgs, name: &str, stop: &Arc<Stop>) -> Result<Opened> {
    let low = &args.low;
    let defaults = CaptureOptions::default();
    let options = CaptureOptions {
        snap: low.snap,
        is_promiscuous: low.promiscuous,
        ring_bytes: low.ring.map_or(defaults.ring_bytes, |bytes| bytes as usize),
    };
    let start = source::wall();
    let capture = Capture::open(name, &options).map_err(|error| anyhow!("{name}: {error}"))?;
    let meter = Arc::new(Meter::default());
    let names = low.why || low.json;
    let ticker = match names {
        true => Some(Ticker::new(args, &capture, start, Arc::clone(&meter))),
        false => None,
    };
    // Names of processes are for `why` and JSON only.
    let dropped = match names {
        true => reactor::drop_capabilities_but_to_read_processes(),
        false => reactor::drop_capabilities(),
    };
    dropped.context("cannot give up privileges")?;
    let interface = Interface::new(low, capture, Arc::clone(&meter), Arc::clone(stop))?;
    let captures = Captures::from_source(name, Box::new(interface), args.analysis.clone());
    Ok(Opened {
        captures,
        ticker,
        counts: Counts {
            name: name.to_owned(),
            meter,
        },
    })
}

impl Counts {
    /// The counts in one sentence.
    pub(super) fn sentence(&self) -> String {
        let CaptureStats {
            captured,
            dropped,
            unreadable,
        } = self.meter.stats();
        let mut text = format!(
            "{}: {captured} frames captured, {dropped} dropped by the kernel",
            self.name
        );
        if dropped > 0 {
            text.push_str(" because the ring was full (see --ring and --snaplen)");
        }
        if unreadable > 0 {
            text.push_str(&format!(", {unreadable} unreadable"));
        }
        text
    }

    /// The counts as a line of JSON.
    pub(super) fn line(&self) -> String {
        let stats = self.meter.stats();
        let line = json!({
            "schema": "trace.capture/1",
            "kind": "capture",
            "interface": self.name,
            "captured": stats.captured,
            "dropped": stats.dropped,
            "unreadable": stats.unreadable,
        });
        format!("{line}\n")
    }
}
