//! Reads a part file record by record.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::frame::{self, Error, Kind};
use super::{CONNECTION, FLOW, Fault, Header};

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    Connection,
    Flow,
}

/// A record of the present block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) kind: RecordKind,
    pub(super) first_packet: u64,
    /// Start and end of its bytes in the block.
    start: usize,
    end: usize,
}

/// Bytes of a record's header: kind, number of its first packet, length.
const HEAD: usize = 13;

pub(super) struct Reader {
    path: PathBuf,
    pub(super) header: Header,
    frames: frame::Reader<File>,
    /// Where the next record of the block begins.
    next: usize,
    records: u64,
    connections: u64,
    flows: u64,
    /// The present record.
    record: Option<Record>,
    over: bool,
}

impl Reader {
    /// Opens a part and reads its head.
    pub(super) fn open(path: &Path) -> Result<Reader, Fault> {
        let fault = |error| fault(path, error);
        let file = File::open(path).map_err(|error| fault(Error::Io(error)))?;
        let mut frames = frame::Reader::new(file).map_err(fault)?;
        let kind = frames.next().map_err(fault)?;
        let broken = fault(Error::Octets("no head of a part", frames.body_start()));
        if kind != Kind::Header {
            return Err(broken);
        }
        let Ok(header) = serde_json::from_slice::<Header>(frames.body()) else {
            return Err(broken);
        };
        if let Some(what) = header.fault() {
            return Err(Fault::Other {
                path: path.to_owned(),
                what,
            });
        }
        Ok(Reader {
            path: path.to_owned(),
            header,
            next: frames.body().len(),
            frames,
            records: 0,
            connections: 0,
            flows: 0,
            record: None,
            over: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The present record.
    pub(super) fn record(&self) -> Option<Record> {
        self.record
    }

    /// The present record's bytes.
    pub(super) fn octets(&self, record: Record) -> &[u8] {
        let body = self.frames.body();
        body.get(record.start..record.end).unwrap_or_default()
    }

    /// The present record is not valid.
    pub(super) fn broken(&self, what: &'static str) -> Fault {
        let start = self.record.map_or(0, |record| record.start - HEAD);
        let offset = self.frames.body_start() + start as u64;
        fault(&self.path, Error::Octets(what, offset))
    }

    /// Goes to the next record; there is none at the end of the part.
    pub(super) fn advance(&mut self) -> Result<(), Fault> {
        while !self.over && self.next >= self.frames.body().len() {
            self.next_block()?;
        }
        let before = self.record.map(|record| record.first_packet);
        self.record = None;
        if self.over {
            return Ok(());
        }
        let start = self.next;
        let Some(record) = parse(self.frames.body(), start) else {
            let offset = self.frames.body_start() + start as u64;
            return Err(fault(&self.path, Error::Octets("no record", offset)));
        };
        self.next = record.end;
        self.record = Some(record);
        if before.is_some_and(|before| before >= record.first_packet) {
            return Err(self.broken("a record out of order"));
        }
        self.records += 1;
        match record.kind {
            RecordKind::Connection => self.connections += 1,
            RecordKind::Flow => self.flows += 1,
        }
        Ok(())
    }

    fn next_block(&mut self) -> Result<(), Fault> {
        let kind = self
            .frames
            .next()
            .map_err(|error| fault(&self.path, error))?;
        self.next = 0;
        let what = match kind {
            Kind::Records => return Ok(()),
            Kind::Header => "a second head",
            Kind::End => {
                self.over = true;
                let summary = &self.header.summary;
                let told = (summary.connections, summary.flows);
                if self.frames.body() == self.records.to_le_bytes()
                    && told == (self.connections, self.flows)
                {
                    return Ok(());
                }
                "fewer or more records than it tells of"
            }
        };
        let offset = self.frames.body_start();
        Err(fault(&self.path, Error::Octets(what, offset)))
    }
}

/// The record that begins at `start`.
fn parse(body: &[u8], start: usize) -> Option<Record> {
    let (head, rest) = body.get(start..)?.split_at_checked(HEAD)?;
    let kind = match head[0] {
        CONNECTION => RecordKind::Connection,
        FLOW => RecordKind::Flow,
        _ => return None,
    };
    let first_packet = u64::from_le_bytes(head[1..9].try_into().ok()?);
    let length = u32::from_le_bytes(head[9..].try_into().ok()?) as usize;
    let start = start + HEAD;
    (length <= rest.len()).then_some(Record {
        kind,
        first_packet,
        start,
        end: start + length,
    })
}

fn fault(path: &Path, error: Error) -> Fault {
    let path = path.to_owned();
    match error {
        Error::Io(error) => Fault::Io { path, error },
        Error::Octets(what, offset) => Fault::Octets { path, what, offset },
    }
}
