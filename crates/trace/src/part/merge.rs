//! Joins all parts: repeatedly takes the record with the lowest first packet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use crate::connection::Connection;
use crate::udp::Flow;

use super::reader::{Reader, Record, RecordKind};
use super::{Fault, Header, flow, is_mine};
use crate::columns::Summary;

/// A connection or flow of a merged run.
pub enum Item<'a> {
    /// A connection, with its number, and the file its first packet is in.
    Connection(&'a Connection, &'a str),
    /// A UDP flow, with its number, and the file its first packet is in.
    Flow(&'a Flow, &'a str),
}

/// Joins the parts of a run.
pub struct Merge {
    parts: Vec<Reader>,
    /// The parts that have a record, by its first packet.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    summary: Summary,
    /// The part whose record was returned last.
    given: Option<usize>,
    last: Option<u64>,
    connection: Connection,
    flow: Option<Flow>,
    connections: u64,
    flows: u64,
}

impl Merge {
    /// Opens all parts of a run, in any order.
    ///
    /// # Errors
    /// One cannot be read, one is missing or given twice, or they are not parts of one run.
    pub fn open(paths: &[PathBuf]) -> Result<Merge, Fault> {
        let mut parts: Vec<Reader> = Vec::new();
        for path in paths {
            let part = Reader::open(path)?;
            if let Some(what) = objection(&part.header, &parts) {
                let path = path.clone();
                return Err(Fault::Other { path, what });
            }
            parts.push(part);
        }
        complete(&parts)?;
        let mut summary = Summary::default();
        if let Some((first, rest)) = parts.split_first() {
            summary = first.header.summary.clone();
            for part in rest {
                summary.add(&part.header.summary);
            }
            if summary.tcp != summary.tcp_seen {
                let (path, seen) = (first.path().to_owned(), summary.tcp_seen);
                let what = format!(
                    "its capture has {seen} TCP packets, but all parts together {}",
                    summary.tcp
                );
                return Err(Fault::Other { path, what });
            }
        }
        let mut merge = Merge {
            parts,
            order: BinaryHeap::new(),
            summary,
            given: None,
            last: None,
            connection: Connection::default(),
            flow: None,
            connections: 0,
            flows: 0,
        };
        for at in 0..merge.parts.len() {
            merge.advance(at)?;
        }
        Ok(merge)
    }

    /// Counts of the whole run.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The capture files, with their names in the first part.
    #[must_use]
    pub fn files(&self) -> &[String] {
        let first = self.parts.first();
        first.map_or(&[], |part| &part.header.files)
    }

    /// The value of a setting that all parts share.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&str> {
        let settings = self.parts.first()?.header.settings.iter();
        let mut found = settings.filter(|(other, _)| other == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The parts that were made from a faulty capture, and the first fault of each.
    #[must_use]
    pub fn faulty(&self) -> Vec<(PathBuf, String)> {
        let parts = self.parts.iter();
        let faulty = parts.filter_map(|part| {
            let fault = part.header.faults.first()?;
            Some((part.path().to_owned(), fault.clone()))
        });
        faulty.collect()
    }

    /// The next connection or flow in the order of their first packets.
    ///
    /// # Errors
    /// A part is truncated, corrupt, or not of this run.
    #[expect(
        clippy::should_implement_trait,
        reason = "an item borrows from the merge, so this is no iterator"
    )]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Fault> {
        if let Some(at) = self.given.take() {
            self.advance(at)?;
        }
        let Some(Reverse((first_packet, at))) = self.order.pop() else {
            return Ok(None);
        };
        let part = &self.parts[at];
        if self.last == Some(first_packet) {
            return Err(part.broken("a packet that begins something in two parts"));
        }
        self.last = Some(first_packet);
        self.given = Some(at);
        let Some(record) = part.record() else {
            return Ok(None);
        };
        match record.kind {
            RecordKind::Connection => self.thaw_connection(at, record).map(Some),
            RecordKind::Flow => self.thaw_flow(at, record).map(Some),
        }
    }

    fn thaw_connection(&mut self, at: usize, record: Record) -> Result<Item<'_>, Fault> {
        let (part, connection) = (&self.parts[at], &mut self.connection);
        let thawed = connection.thaw(part.octets(record));
        if thawed.is_err() || connection.first_packet != record.first_packet {
            return Err(part.broken("no connection"));
        }
        let header = &part.header;
        let file = file(header, connection.key.hash(header.seed), connection.file);
        let file = file.ok_or_else(|| part.broken("another part's connection"))?;
        self.connections += 1;
        connection.number = self.connections;
        Ok(Item::Connection(connection, file))
    }

    fn thaw_flow(&mut self, at: usize, record: Record) -> Result<Item<'_>, Fault> {
        let part = &self.parts[at];
        let flow = flow::thaw(part.octets(record), record.first_packet);
        let mut flow = flow.ok_or_else(|| part.broken("no UDP flow"))?;
        let header = &part.header;
        let file = file(header, flow.key.hash(header.seed), flow.file);
        let file = file.ok_or_else(|| part.broken("another part's UDP flow"))?;
        self.flows += 1;
        flow.number = self.flows;
        Ok(Item::Flow(self.flow.insert(flow), file))
    }

    fn advance(&mut self, at: usize) -> Result<(), Fault> {
        let part = &mut self.parts[at];
        part.advance()?;
        if let Some(record) = part.record() {
            self.order.push(Reverse((record.first_packet, at)));
        }
        Ok(())
    }
}

/// The file's name; `None` if the flow does not belong to this part, or there is no such file.
fn file(header: &Header, hash: u64, file: u32) -> Option<&str> {
    let mine = is_mine(hash, header.part, header.parts);
    let name = header.files.get(file as usize)?;
    mine.then_some(name)
}

/// Why a part does not go with those before it.
fn objection(header: &Header, parts: &[Reader]) -> Option<String> {
    let first = parts.first()?;
    header.difference(&first.header).or_else(|| {
        let same = parts.iter().find(|part| part.header.part == header.part)?;
        let (part, parts) = (header.part, header.parts);
        let path = same.path().display();
        Some(format!("part {part} of {parts}, as {path} is"))
    })
}

/// Whether all parts are there.
fn complete(parts: &[Reader]) -> Result<(), Fault> {
    let count = parts.first().map_or(0, |part| part.header.parts);
    let missing: Vec<String> = (0..count)
        .filter(|&at| parts.iter().all(|part| part.header.part != at))
        .map(|at| format!("{at}/{count}"))
        .take(10)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Fault::Missing {
        given: parts.len(),
        parts: count,
        missing: missing.join(", "),
    })
}
