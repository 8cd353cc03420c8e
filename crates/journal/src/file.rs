//! A segment that is written: which of its octets are on the disk, which in the file, and which in memory alone.

use std::io;

use base::{Disk, Instant};

use crate::Moment;
use crate::format::{self, Group, HEADER, Header, Run};
use crate::segment;

/// A file and what it is to have. The octets that are not on the disk yet stay in memory: a sync that fails may have
/// dropped them, so they are written again.
#[derive(Debug)]
pub(crate) struct Writing<F> {
    pub(crate) header: Header,
    file: F,
    seed: u32,
    run: u32,
    /// Where the octets in memory begin.
    kept: u64,
    /// Where the next write begins.
    written: u64,
    /// It was on the disk up to here.
    synced: u64,
    octets: Vec<u8>,
}

/// What a run begins with.
pub(crate) struct Begin<'a> {
    pub(crate) boot: &'a [u8; 16],
    pub(crate) names: &'a [u8],
    pub(crate) now: Moment,
    pub(crate) timeline: u64,
    /// The number of the next entry.
    pub(crate) first: u64,
}

impl<F> Writing<F> {
    /// A new file, whose header comes last: see [`Writing::name`].
    pub(crate) fn fresh(file: F, number: u64, machine: [u8; 16], begin: &Begin<'_>) -> Self {
        let header = Header {
            number,
            whole: 0,
            machine,
        };
        let mut new = Self {
            header,
            file,
            seed: format::seed(header.number, &header.machine),
            run: 0,
            kept: HEADER as u64,
            written: HEADER as u64,
            synced: 0,
            octets: Vec::new(),
        };
        new.begin(begin);
        new
    }

    /// A file that goes on at `end`. What is on the disk already is never written again: a power cut could tear it.
    pub(crate) fn go_on(file: F, header: Header, end: u64, synced: u64, begin: &Begin<'_>) -> Self {
        let mut new = Self {
            header,
            file,
            seed: format::seed(header.number, &header.machine),
            run: 0,
            kept: end,
            written: end,
            synced,
            octets: Vec::new(),
        };
        new.begin(begin);
        new
    }

    fn begin(&mut self, begin: &Begin<'_>) {
        let run = Run {
            boot: *begin.boot,
            clock: begin.now.clock,
            start: self.end(),
        };
        let mut entries = Vec::new();
        run.emit(begin.names, &mut entries);
        let group = self.group(begin.first, 0, begin.timeline, begin.now.wall_ns);
        self.run = segment::run_of(group.emit(self.seed, &entries, &mut self.octets));
    }

    fn group(&self, first: u64, count: u32, timeline: u64, wall: u64) -> Group {
        Group {
            run: self.run,
            count,
            first,
            synced: self.synced,
            timeline,
            wall,
        }
    }

    /// Its length, once all is written.
    pub(crate) fn end(&self) -> u64 {
        self.kept + self.octets.len() as u64
    }

    /// The octets in memory.
    pub(crate) fn held(&self) -> usize {
        self.octets.len()
    }

    /// Whether all of it was written.
    pub(crate) fn is_written(&self) -> bool {
        self.written == self.end()
    }

    /// Whether all of it is on the disk.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced == self.end()
    }

    /// Adds a group. Returns where its entries begin.
    pub(crate) fn push(
        &mut self,
        first: u64,
        count: u32,
        timeline: u64,
        wall: u64,
        entries: &[u8],
    ) -> u64 {
        let group = self.group(first, count, timeline, wall);
        group.emit(self.seed, entries, &mut self.octets);
        self.end() - entries.len() as u64
    }

    /// Writes what is not written.
    pub(crate) fn write<D: Disk<File = F>>(&mut self, disk: &mut D) -> io::Result<()> {
        let from = (self.written - self.kept) as usize;
        if from < self.octets.len() {
            disk.write(&self.file, &self.octets[from..], self.written)?;
            self.written = self.end();
        }
        Ok(())
    }

    /// Writes what is not written, and forgets it: the file is removed if its sync fails.
    pub(crate) fn write_through<D: Disk<File = F>>(&mut self, disk: &mut D) -> io::Result<()> {
        self.write(disk)?;
        self.kept = self.written;
        self.octets.clear();
        Ok(())
    }

    /// Waits until all of it is on the disk.
    pub(crate) fn sync<D: Disk<File = F>>(&mut self, disk: &mut D) -> io::Result<()> {
        self.write(disk)?;
        if let Err(error) = disk.sync(&self.file) {
            self.written = self.kept;
            return Err(error);
        }
        self.kept = self.written;
        self.synced = self.written;
        self.octets.clear();
        Ok(())
    }

    /// Writes the rest and the header of a new file, and syncs it. From here on, it is to have its name.
    pub(crate) fn complete<D: Disk<File = F>>(&mut self, disk: &mut D) -> io::Result<()> {
        self.write_through(disk)?;
        self.header.whole = self.end();
        disk.write(&self.file, &self.header.emit(), 0)?;
        self.sync(disk)
    }

    /// Gives a new file its name, which is not synced.
    pub(crate) fn name<D: Disk<File = F>>(&self, disk: &mut D) -> io::Result<()> {
        let number = self.header.number;
        let (from, to) = (new_name(number), log_name(number));
        match disk.rename(&from, &to) {
            // An earlier attempt did it, though it reported an error.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_done = disk.names()?.contains(&to);
                is_done.then_some(()).ok_or(error)
            }
            done => done,
        }
    }

    /// Reads octets that were written.
    pub(crate) fn read<D: Disk<File = F>>(
        &self,
        disk: &mut D,
        into: &mut [u8],
        offset: u64,
    ) -> io::Result<()> {
        disk.read(&self.file, into, offset)
    }
}

/// No journal has as many segments one after the other.
const NUMBER_MAX: u64 = 1 << 62;

/// The name of a segment.
pub(crate) fn log_name(number: u64) -> String {
    format!("{number:06}.log")
}

/// The name of a segment that is being written for the first time.
pub(crate) fn new_name(number: u64) -> String {
    format!("{number:06}.new")
}

/// The number of a segment with this name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let number: u64 = name.strip_suffix(".log")?.parse().ok()?;
    (number < NUMBER_MAX && log_name(number) == name).then_some(number)
}

/// What to add to the process's clock to get nanoseconds of the timeline.
pub(crate) fn shift(timeline: u64, clock: Instant) -> i128 {
    i128::from(timeline) - i128::from(clock.as_nanos())
}
