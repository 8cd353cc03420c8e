//! Sorted copies of an open log's records, so that a search need not read the log.
//!
//! A run has [`RUN`] records of a log, those that are carried on left out: first the key of each 128th record, which is
//! 4 KiB, and a checksum of the keys, then the records by external address, first port and time. So a search reads two
//! pages of each run, all of whose bytes are checked, and the records behind the last run. The file of runs is derived from the log: it is deleted with it, and made anew when a log
//! is opened again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::record::{Entry, RECORD, crc};

/// Records of a run.
pub(crate) const RUN: usize = 1 << 16;
/// Records between two keys.
const PAGE: usize = 128;
/// Octets of a key: external address, first port, and the ports of the run's longest block, less one.
const KEY: usize = 8;
const KEYS: usize = RUN / PAGE * KEY;
/// The keys and their checksum.
const HEAD: usize = KEYS + 4;
const LENGTH: u64 = (HEAD + RUN * RECORD) as u64;

pub(crate) fn path(log: &Path) -> PathBuf {
    log.with_extension("runs")
}

/// Writes the runs of a log. A failure costs only time: the search then reads the log.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    file: Option<File>,
    /// Records that are in runs.
    sorted: usize,
    has_failed: bool,
}

impl Writer {
    /// Adds the runs that `own`, the log's records but for those that are carried on, allows.
    pub(crate) fn add(&mut self, log: &Path, own: &[Entry]) {
        while !self.has_failed && own.len() - self.sorted >= RUN {
            let run = &own[self.sorted..self.sorted + RUN];
            match self.write(log, run) {
                Ok(()) => self.sorted += RUN,
                Err(_) => {
                    self.has_failed = true;
                    let _ = fs::remove_file(path(log));
                }
            }
        }
    }

    fn write(&mut self, log: &Path, run: &[Entry]) -> io::Result<()> {
        let mut run = run.to_vec();
        // Stable: of one block at one time the order is that of the log.
        run.sort_by_key(Entry::order);
        let mut octets = Vec::with_capacity(LENGTH as usize);
        let span = run.iter().map(|one| one.last.saturating_sub(one.first));
        let span = span.max().unwrap_or(0);
        for entry in run.iter().step_by(PAGE) {
            octets.extend_from_slice(&entry.external.octets());
            octets.extend_from_slice(&entry.first.to_be_bytes());
            octets.extend_from_slice(&span.to_be_bytes());
        }
        let sum = crc(&octets);
        octets.extend_from_slice(&sum.to_be_bytes());
        for entry in &run {
            octets.extend_from_slice(&entry.encode());
        }
        if self.file.is_none() {
            let mut options = OpenOptions::new();
            let file = options.write(true).create(true).truncate(true);
            self.file = Some(file.open(path(log))?);
        }
        match &mut self.file {
            Some(file) => file.write_all(&octets),
            None => Ok(()),
        }
    }
}

/// The runs of a log, open for reading.
#[derive(Debug)]
pub(crate) struct Reader {
    file: File,
    runs: u64,
}

impl Reader {
    /// The runs of a log with so many own records; `None` if it has none.
    pub(crate) fn open(log: &Path, own: u64) -> Option<Self> {
        let file = File::open(path(log)).ok()?;
        let runs = (file.metadata().ok()?.len() / LENGTH).min(own / RUN as u64);
        (runs > 0).then_some(Self { file, runs })
    }

    /// Own records that are in runs.
    pub(crate) fn records(&self) -> u64 {
        self.runs * RUN as u64
    }

    /// The last record of a port that is not after a time.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub(crate) fn find(
        &self,
        external: Ipv4Addr,
        port: u16,
        at_ms: u64,
    ) -> io::Result<Option<Entry>> {
        for run in (0..self.runs).rev() {
            if let Some(entry) = self.find_in(run * LENGTH, (external, port), at_ms)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Searches in the run at this place of the file.
    fn find_in(
        &self,
        start: u64,
        (external, port): (Ipv4Addr, u16),
        at_ms: u64,
    ) -> io::Result<Option<Entry>> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a damaged run");
        let mut head = [0; HEAD];
        self.file.read_exact_at(&mut head, start)?;
        let (keys, sum) = head.split_at(KEYS);
        if crc(keys).to_be_bytes() != sum {
            return Err(damaged());
        }
        let (keys, _) = keys.as_chunks::<KEY>();
        let wanted = (external.to_bits(), port);
        let pages = keys.partition_point(|key| key_of(key) <= wanted);
        let span = keys
            .first()
            .map_or(0, |key| u16::from_be_bytes([key[6], key[7]]));
        // A block with many records starts pages before.
        for page in (0..pages as u64).rev() {
            let mut octets = [0; PAGE * RECORD];
            let at = start + (HEAD + page as usize * PAGE * RECORD) as u64;
            self.file.read_exact_at(&mut octets, at)?;
            let (records, _) = octets.as_chunks::<RECORD>();
            for record in records.iter().rev() {
                let entry = Entry::decode(record).ok_or_else(damaged)?;
                if (entry.external.to_bits(), entry.first) > wanted {
                    continue;
                }
                if entry.external != external || port - entry.first > span {
                    return Ok(None);
                }
                if entry.at_ms <= at_ms && entry.has(external, port) {
                    return Ok(Some(entry));
                }
            }
        }
        Ok(None)
    }
}

fn key_of(key: &[u8; KEY]) -> (u32, u16) {
    let address = u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
    (address, u16::from_be_bytes([key[4], key[5]]))
}
