//! The results of an analysis.

use capfile::{Effect, Fault, Faults, Gap, OpenError, Statistics};
use std::io;

use super::Error;
use super::store::Store;
use crate::columns::Summary;
use crate::connection::Connection;

/// The results of an analysis: connections in the order of their first packets, counts, and a report for each file.
#[derive(Debug)]
pub struct Findings {
    pub(super) store: Store,
    pub(super) summary: Summary,
    pub(super) files: Vec<FileReport>,
}

/// Places with skipped bytes that [`FileReport::lines`] lists.
const GAPS_MAX: usize = 8;

/// Errors and faults of one capture file, and what its capture lost.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FileReport {
    /// Its name, as it was given.
    pub name: String,
    /// Its size in bytes, if it is a regular file.
    pub size: Option<u64>,
    /// Why it could not be opened, or could not be read to its end.
    pub error: Option<FileError>,
    /// The first fault of its contents, and the fault's offset in the file (after decompression).
    pub first_fault: Option<(u64, Fault)>,
    /// All faults of its contents, how many of each, and their effect.
    pub faults: Vec<(Fault, u64, Effect)>,
    /// The first 16 places where bytes were skipped after a fault.
    pub gaps: Vec<Gap>,
    /// How many such places there are, and their bytes together.
    pub skipped: (u64, u64),
    /// What the capturing host counted; only pcapng files say it.
    pub statistics: Statistics,
}

/// Why a capture file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be opened, or is not a capture.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The operating system reported an error while it was read.
    #[error(transparent)]
    Read(#[from] io::Error),
}

impl FileReport {
    /// The report of a file's contents.
    #[must_use]
    pub fn of(name: &str, faults: &Faults) -> FileReport {
        let mut report = FileReport {
            name: name.to_owned(),
            ..FileReport::default()
        };
        report.set_faults(faults, false);
        report
    }

    /// Whether the whole file was read and nothing was wrong with it.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.error.is_none() && self.faults.is_empty()
    }

    /// The error or the first fault, in one line with the file's name.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let name = &self.name;
        if let Some(error) = &self.error {
            return Some(format!("{name}: {error}"));
        }
        let (offset, first) = self.first_fault?;
        Some(format!("{name}: first fault at octet {offset}: {first}"))
    }

    /// How many packets the capture itself dropped, in one line with the file's name; `None` if none, or if the file does
    /// not say.
    #[must_use]
    pub fn loss(&self) -> Option<String> {
        let counts = &self.statistics;
        let dropped = counts.dropped();
        let by = [
            ("interface", counts.dropped_by_interface),
            ("operating system", counts.dropped_by_system),
        ];
        let by = by.into_iter().filter_map(|(who, count)| {
            let count = count.filter(|&count| count > 0)?;
            Some(format!("the {who} dropped {count}"))
        });
        let by = by.collect::<Vec<_>>().join(", ");
        let received = counts.received.map_or(String::new(), |count| {
            format!(" (the interface received {count})")
        });
        let packets = if dropped == 1 { "packet" } else { "packets" };
        (dropped > 0).then(|| {
            format!(
                "{}: the capture lost {dropped} {packets}: {by}{received}; a packet that the capture lost looks like \
                 one that the path lost",
                self.name
            )
        })
    }

    /// What is wrong with the file, and what its capture lost, as sentences that begin with its name.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let name = &self.name;
        let mut lines: Vec<String> = (self.error.iter())
            .map(|error| format!("{name}: {error}"))
            .collect();
        if let Some((offset, first)) = self.first_fault {
            lines.push(format!("{name}: first fault at octet {offset}: {first}"));
        }
        lines.extend(self.faults.iter().map(|(fault, count, effect)| {
            let effect = match effect {
                Effect::Kept => "the packet was kept",
                Effect::Skipped => "skipped",
                Effect::Resumed => "the reading resumed at the next record found",
                Effect::Ended => "the rest of the file was not read",
            };
            format!("{name}: {count} x {fault} ({effect})")
        }));
        for Gap { offset, length } in self.gaps.iter().take(GAPS_MAX) {
            lines.push(format!("{name}: skipped {length} octets at octet {offset}"));
        }
        let (count, octets) = self.skipped;
        if count > GAPS_MAX as u64 {
            lines.push(format!(
                "{name}: skipped {octets} octets in {count} places in all"
            ));
        }
        lines.extend(self.loss());
        lines
    }

    /// Notes the faults of the contents. If a signal `interrupted` a pipe, its sudden end is not a fault.
    pub(crate) fn set_faults(&mut self, faults: &Faults, interrupted: bool) {
        let each = faults.iter();
        self.faults = each
            .map(|(fault, count)| (fault, count, faults.effect(fault)))
            .filter(|&(fault, ..)| !(interrupted && fault == Fault::Truncated))
            .collect();
        self.gaps = faults.gaps().to_vec();
        self.skipped = (faults.gap_count(), faults.skipped_bytes());
        self.first_fault = faults.first().filter(|_| !self.faults.is_empty());
    }
}

impl Findings {
    /// Counts of packets and connections.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The capture files in the order they were read; [`Connection::file`] is an index into them.
    #[must_use]
    pub fn files(&self) -> &[FileReport] {
        &self.files
    }

    /// Whether nothing was wrong with any file.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.files.iter().all(FileReport::is_good)
    }

    /// How many connections there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there are no connections.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of connections that are in a temporary file, because they exceeded
    /// [`Options::memory`](crate::Options::memory).
    #[must_use]
    pub fn spilled(&self) -> u64 {
        self.store.spilled()
    }

    /// Connections that finished first and are not listed, because a capture of an interface exceeded
    /// [`Options::memory`](crate::Options::memory).
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.store.forgotten()
    }

    /// The connections in the order of their first packets, numbered from 1.
    #[must_use]
    pub fn connections(&self) -> Connections<'_> {
        Connections {
            findings: self,
            next: 0,
            room: Vec::new(),
        }
    }

    /// Number of the first packet of the connection at index `at`.
    ///
    /// # Panics
    /// There is no connection at that index.
    #[must_use]
    pub fn first_packet(&self, at: usize) -> u64 {
        self.store.first_packet(at)
    }

    /// The frozen connection at index `at`, for [`Connection::thaw`] and [`crate::part::Writer`]. `room` holds its
    /// bytes if they are in the temporary file.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    ///
    /// # Panics
    /// There is no connection at that index.
    pub fn frozen<'a>(&'a self, at: usize, room: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        self.store.get(at, room).map_err(Error::TemporaryFile)
    }
}

/// The connections of an analysis, in the order of their first packets.
#[derive(Debug)]
pub struct Connections<'a> {
    findings: &'a Findings,
    next: usize,
    room: Vec<u8>,
}

impl Iterator for Connections<'_> {
    type Item = Result<Connection, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next;
        if at >= self.findings.len() {
            return None;
        }
        self.next += 1;
        let frozen = self.findings.frozen(at, &mut self.room);
        Some(frozen.and_then(|octets| {
            let mut connection = Connection::default();
            connection.thaw(octets)?;
            connection.number = at as u64 + 1;
            Ok(connection)
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.findings.len() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Connections<'_> {}
