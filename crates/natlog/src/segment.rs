//! Sorted segments: a header of 64 bytes, then records by external address, first port and time.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::record::{Entry, Order, RECORD, crc};

const MAGIC: &[u8; 8] = b"HNATLOG1";
const HEADER: usize = 64;

/// A sorted segment that is open for reading.
#[derive(Debug)]
pub(crate) struct Segment {
    file: File,
    records: u64,
    pub(crate) first_ms: u64,
    /// Ports of its longest block, less one.
    span: u16,
}

/// A sorted segment on disk.
#[derive(Debug, Clone)]
pub(crate) struct Sealed {
    pub(crate) path: PathBuf,
    pub(crate) records: u64,
    /// The earliest time of its records.
    pub(crate) first_ms: u64,
}

impl Sealed {
    /// A segment by its name, which has the earliest time: nothing is read. Names of older versions have no time.
    ///
    /// # Errors
    /// `InvalidData` if no segment is that long.
    pub(crate) fn find(path: &Path, first_ms: Option<u64>) -> io::Result<Self> {
        let Some(first_ms) = first_ms else {
            let segment = Segment::open(path)?;
            return Ok(Self {
                path: path.to_owned(),
                records: segment.records,
                first_ms: segment.first_ms,
            });
        };
        let length = std::fs::metadata(path)?.len();
        let octets = length.checked_sub(HEADER as u64);
        match octets.filter(|octets| octets % RECORD as u64 == 0) {
            Some(octets) => Ok(Self {
                path: path.to_owned(),
                records: octets / RECORD as u64,
                first_ms,
            }),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a segment of another length",
            )),
        }
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a damaged record")
}

impl Segment {
    /// Sorts records and writes them to `path`, complete and durable or not at all.
    pub(crate) fn write(path: &Path, entries: &mut [Entry]) -> io::Result<Sealed> {
        entries.sort_by_key(Entry::order);
        let first_ms = entries.iter().map(|one| one.at_ms).min().unwrap_or(0);
        let span = entries.iter().map(|one| one.last.saturating_sub(one.first));
        let span = span.max().unwrap_or(0);
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&(entries.len() as u64).to_be_bytes());
        header[16..24].copy_from_slice(&first_ms.to_be_bytes());
        header[24..26].copy_from_slice(&span.to_be_bytes());
        let sum = crc(&header[..60]);
        header[60..].copy_from_slice(&sum.to_be_bytes());
        let new = path.with_extension("new");
        let mut out = BufWriter::new(File::create(&new)?);
        out.write_all(&header)?;
        for entry in entries.iter() {
            out.write_all(&entry.encode())?;
        }
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        if let Some(directory) = path.parent() {
            File::open(directory)?.sync_all()?;
        }
        Ok(Sealed {
            path: path.to_owned(),
            records: entries.len() as u64,
            first_ms,
        })
    }

    /// Opens a segment.
    ///
    /// # Errors
    /// `InvalidData` if the header is not one, or the file's length does not agree with it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let file = File::open(path)?;
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0)
            .map_err(|_| invalid("no header of a segment"))?;
        let long = |at: usize| {
            let mut octets = [0; 8];
            octets.copy_from_slice(&header[at..at + 8]);
            u64::from_be_bytes(octets)
        };
        let sum = (long(56) & 0xffff_ffff) as u32;
        if &header[..8] != MAGIC || crc(&header[..60]) != sum {
            return Err(invalid("no header of a segment"));
        }
        let records = long(8);
        let length = records.checked_mul(RECORD as u64);
        let length = length.and_then(|length| length.checked_add(HEADER as u64));
        if length != Some(file.metadata()?.len()) {
            return Err(invalid("a segment of another length"));
        }
        Ok(Self {
            records,
            first_ms: long(16),
            span: u16::from_be_bytes([header[24], header[25]]),
            file,
        })
    }

    fn read(&self, at: u64) -> io::Result<Entry> {
        let mut octets = [0; RECORD];
        let offset = HEADER as u64 + at * RECORD as u64;
        self.file.read_exact_at(&mut octets, offset)?;
        Entry::decode(&octets).ok_or_else(damaged)
    }

    /// All records in order of time.
    pub(crate) fn in_order_of_time(&self) -> io::Result<Vec<Entry>> {
        let length = self.records as usize * RECORD;
        let mut octets = vec![0; length];
        self.file.read_exact_at(&mut octets, HEADER as u64)?;
        let (records, _) = octets.as_chunks::<RECORD>();
        let entries = records
            .iter()
            .map(Entry::decode)
            .collect::<Option<Vec<_>>>();
        let mut entries = entries.ok_or_else(damaged)?;
        // Stable: of one block at one time the order is that of the log.
        entries.sort_by_key(|entry| entry.at_ms);
        Ok(entries)
    }

    /// The last record that is not after `order`.
    fn last_until(&self, order: Order) -> io::Result<Option<Entry>> {
        let (mut low, mut high) = (0, self.records);
        let mut found = None;
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.read(middle)?;
            if entry.order() <= order {
                found = Some(entry);
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(found)
    }

    /// The latest record of a port that is not after a time.
    pub(crate) fn find(
        &self,
        external: Ipv4Addr,
        port: u16,
        at_ms: u64,
    ) -> io::Result<Option<Entry>> {
        let address = external.to_bits();
        let mut best: Option<Entry> = None;
        let mut start = port;
        // Each step looks at one block. Blocks of one address overlap only if the settings changed within the segment.
        while let Some(near) = self.last_until((address, start, u64::MAX))? {
            if near.external != external || port - near.first > self.span {
                break;
            }
            let until = self.last_until((address, near.first, at_ms))?;
            if let Some(entry) = until
                && entry.has(external, port)
                && best.is_none_or(|best| best.at_ms < entry.at_ms)
            {
                best = Some(entry);
            }
            match near.first.checked_sub(1) {
                Some(before) if best.is_none() => start = before,
                _ => break,
            }
        }
        Ok(best)
    }
}
