//! What a person reads when a run fails: the report, the log's text, the capture file.

use std::fmt::{self, Write};

use super::World;
use crate::{LinkStats, NodeId, Record, capture};

/// Names the file that a world dropped by a panic writes its capture to.
const CAPTURE_VAR: &str = "HEADEND_SIM_PCAP";

/// Datagrams, nodes and links that a report shows of each.
const REPORT_DATAGRAMS: usize = 40;
const REPORT_NODES: usize = 20;

/// Payload bytes that are shown in hex.
const HEX_BYTES: usize = 32;

impl World {
    /// The seed, the virtual time, the nodes, the links that did something, and the
    /// last `datagrams` of the log.
    pub fn report(&self, datagrams: usize) -> String {
        let mut text = String::new();
        self.write_report(&mut text, datagrams)
            .expect("a String takes all that is written");
        text
    }

    /// The whole log as text, a line for each datagram: equal for equal runs.
    pub fn log_text(&self) -> String {
        self.log().map(|record| self.line(record) + "\n").collect()
    }

    /// The log as a capture file (pcapng, raw IP, nanoseconds) that tshark reads. Times are
    /// those of sending; each packet's comment says who sent it and what became of it.
    pub fn pcap(&self) -> Vec<u8> {
        capture::pcapng(self.log().map(|record| (record, self.comment(record))))
    }

    fn write_report(&self, text: &mut impl Write, datagrams: usize) -> fmt::Result {
        let Self {
            seed, now, steps, ..
        } = self;
        writeln!(
            text,
            "seed {seed}, {now:?}, {steps} steps, {} under way",
            self.flights.len()
        )?;
        for slot in self.nodes.iter().take(REPORT_NODES) {
            write!(text, "  {}", slot.name)?;
            slot.sockets
                .iter()
                .flatten()
                .try_for_each(|socket| write!(text, " {socket}"))?;
            match slot.deadline {
                Some((at, timer)) => write!(text, ", {timer} due {at:?}")?,
                None => write!(text, ", no deadline")?,
            }
            let inbox = slot.node.inbox();
            write!(text, ", {} events unread", inbox.events)?;
            write!(text, ", {} discarded", inbox.discarded)?;
            if inbox.forgotten > 0 {
                write!(text, ", {} forgotten", inbox.forgotten)?;
            }
            writeln!(text, "{}", if slot.isolated { ", isolated" } else { "" })?;
        }
        if self.nodes.len() > REPORT_NODES {
            writeln!(text, "  and {} more nodes", self.nodes.len() - REPORT_NODES)?;
        }
        let mut links: Vec<_> = self.wires.iter().collect();
        links.sort_unstable_by_key(|(ends, _)| **ends);
        links.retain(|(_, wire)| wire.stats != LinkStats::default() || wire.cut);
        for (ends, wire) in links.iter().take(REPORT_NODES) {
            write!(text, "  {} > {}: ", self.name(ends.0), self.name(ends.1))?;
            writeln!(
                text,
                "{}{}",
                wire.stats,
                if wire.cut { " (now cut)" } else { "" }
            )?;
        }
        if links.len() > REPORT_NODES {
            writeln!(text, "  and {} more links", links.len() - REPORT_NODES)?;
        }
        let shown = datagrams.min(self.log.records().len());
        writeln!(text, "the last {shown} of {} datagrams:", self.log.made())?;
        let skipped = self.log.records().len() - shown;
        self.log()
            .skip(skipped)
            .try_for_each(|record| writeln!(text, "{}", self.line(record)))
    }

    fn line(&self, record: &Record) -> String {
        let Record {
            sent,
            from,
            to,
            bytes,
            ..
        } = record;
        let shown = match self.decoder {
            Some(decode) => decode(bytes),
            None => hex(bytes),
        };
        format!(
            "{sent:?} {from} > {to} {} B [{shown}] {}",
            bytes.len(),
            self.comment(record)
        )
    }

    fn comment(&self, record: &Record) -> String {
        let name = |node: Option<NodeId>, none| match node {
            Some(node) => self.name(node).to_owned(),
            None => String::from(none),
        };
        let from = name(record.from_node, "injected");
        let to = name(record.to_node, "nobody");
        let copy = if record.copy { "copy, " } else { "" };
        format!("{from} > {to}: {copy}{}", record.fate)
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(HEX_BYTES) {
        text.push_str(&format!("{byte:02x}"));
    }
    if bytes.len() > HEX_BYTES {
        text.push_str("..");
    }
    text
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_report(f, REPORT_DATAGRAMS)
    }
}

/// Only what is not zero, since most is.
impl fmt::Display for LinkStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sent", self.sent)?;
        let rest = [
            (self.delivered, "delivered"),
            (self.lost, "lost"),
            (self.cut, "cut"),
            (self.queue_full, "queue full"),
            (self.dropped, "dropped"),
            (self.gone, "gone"),
            (self.duplicated, "duplicated"),
            (self.reordered, "reordered"),
        ];
        rest.iter()
            .filter(|(n, _)| *n > 0)
            .try_for_each(|(n, what)| write!(f, ", {n} {what}"))
    }
}

/// A world that a panic drops says what there was.
impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        eprintln!("{self:?}");
        let Some(path) = std::env::var_os(CAPTURE_VAR) else {
            return;
        };
        let written = std::fs::write(&path, self.pcap());
        let path = path.display();
        match written {
            Ok(()) => eprintln!("the capture is in {path}"),
            Err(e) => eprintln!("no capture in {path}: {e}"),
        }
    }
}
