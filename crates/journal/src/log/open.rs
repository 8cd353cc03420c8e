//! Opening: the newest segment is read, its torn end is cut off, and a damaged one is moved aside.

use std::io;

use base::{Disk, Duration};

use super::{Limits, Log};
use crate::file::{self, Begin, Writing, log_name, new_name};
use crate::index::Index;
use crate::records::Records;
use crate::segment::{self, Outage, Refused, Segment};
use crate::{Host, Moment, RECORD_OCTETS_MAX};

/// A longer segment is refused, as it is read into memory.
const SEGMENT_OCTETS_MAX: u64 = 8 << 30;
/// The most damaged segments that are kept aside under one number.
const ASIDE_MAX: u32 = 100;

/// Why a journal was not opened. Nothing in its directory has changed then, unless the disk failed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A call failed.
    #[error("{file}: {error}")]
    Disk {
        /// The file or the directory.
        file: String,
        /// The disk's error.
        error: io::Error,
    },
    /// A newer program wrote it.
    #[error(
        "{file}: has format {format}; this program reads format {} only",
        crate::format::FORMAT
    )]
    Format {
        /// The segment.
        file: String,
        /// Its format.
        format: u32,
    },
    /// It was copied from another machine.
    #[error(
        "{file}: was written on another machine, as its machine id says; remove it to start without state"
    )]
    Machine {
        /// The segment.
        file: String,
    },
    /// It does not fit into memory.
    #[error("{file}: has {octets} bytes; at most {SEGMENT_OCTETS_MAX} are read")]
    Length {
        /// The segment.
        file: String,
        /// Its length.
        octets: u64,
    },
    /// The caller's own names are too long.
    #[error("the names have {0} bytes; at most {RECORD_OCTETS_MAX} are written")]
    Names(usize),
    /// Another process has the directory.
    #[error("another headend ({who}) uses {directory}")]
    InUse {
        /// What the other process wrote about itself.
        who: String,
        /// The directory.
        directory: String,
    },
    /// Others could read or change the state.
    #[error("{path}: has mode {mode:03o}; others may not read the state: chmod {right:03o} {path}")]
    Mode {
        /// The directory or the file.
        path: String,
        /// Its permissions.
        mode: u32,
        /// Those that it may have.
        right: u32,
    },
}

/// What opening found.
#[derive(Debug)]
pub struct Opened {
    /// The live records.
    pub records: Records,
    /// The time that passed on the timeline since the last process wrote.
    pub elapsed: Duration,
    /// Whether the machine did not start again since.
    pub is_same_boot: bool,
    /// Whether more time passed than [`Limits::age_max`].
    pub is_long: bool,
    /// The number of the last entry.
    pub last: u64,
    /// The bytes of a torn end, which were cut off. No sync had covered them.
    pub cut_octets: u64,
    /// A damaged segment's new name, and where the damage begins. Its records are not believed.
    pub damaged: Option<(String, usize)>,
    /// What the processes that wrote the segment had as [`Log::open`]'s `names`; the newest first, each once.
    pub names: Vec<Vec<u8>>,
}

fn at<T>(file: &str, done: io::Result<T>) -> Result<T, OpenError> {
    done.map_err(|error| OpenError::Disk {
        file: file.to_owned(),
        error,
    })
}

/// What a process opens the journal with.
struct Start<'a> {
    host: Host,
    limits: Limits,
    names: &'a [u8],
    now: Moment,
}

impl Start<'_> {
    /// How its run begins: at this time of the timeline, before the entry of this number.
    fn begin(&self, timeline: u64, first: u64) -> Begin<'_> {
        Begin {
            boot: &self.host.boot,
            names: self.names,
            now: self.now,
            timeline,
            first,
        }
    }

    fn log<D: Disk>(
        self,
        disk: D,
        main: Writing<D::File>,
        index: Index,
        timeline: u64,
        next: u64,
    ) -> Log<D> {
        Log {
            disk,
            host: self.host,
            shift: file::shift(timeline, self.now.clock),
            compact_above: self.limits.compact_octets,
            limits: self.limits,
            names: self.names.to_vec(),
            main,
            index,
            next,
            written: next,
            synced: next,
            copying: None,
            compactions: 0,
        }
    }
}

impl<D: Disk> Log<D> {
    /// Opens the journal in a directory, or creates it. `names` are at most [`RECORD_OCTETS_MAX`] octets that later
    /// processes get as [`Opened::names`], for example to name fields that they do not know.
    ///
    /// # Errors
    /// The disk's, or what is in the directory is not for this program and machine.
    pub fn open(
        mut disk: D,
        host: Host,
        limits: Limits,
        names: &[u8],
        now: Moment,
    ) -> Result<(Self, Opened), OpenError> {
        if names.len() > RECORD_OCTETS_MAX {
            return Err(OpenError::Names(names.len()));
        }
        let start = Start {
            host,
            limits,
            names,
            now,
        };
        let numbers = at(".", numbers(&mut disk))?;
        let Some(&newest) = numbers.last() else {
            return Ok((create(disk, start, 1)?, nothing(None)));
        };
        let name = log_name(newest);
        let file = at(&name, disk.open(&name))?;
        let octets = read(&mut disk, &file, &name)?;
        match segment::parse(&octets, &host.machine) {
            Ok(segment) if segment.header.number == newest => {
                // An older segment goes once the newest one's name is on the disk.
                at(".", disk.sync_names())?;
                for number in &numbers[..numbers.len() - 1] {
                    let name = log_name(*number);
                    at(&name, disk.remove(&name))?;
                }
                let opened = go_on(disk, start, file, octets, segment);
                at(&name, opened)
            }
            Ok(_) => start_anew(disk, start, &numbers, 0),
            Err(Refused::Damaged { at }) => start_anew(disk, start, &numbers, at),
            Err(Refused::Format(format)) => Err(OpenError::Format { file: name, format }),
            Err(Refused::Machine) => Err(OpenError::Machine { file: name }),
        }
    }
}

fn read<D: Disk>(disk: &mut D, file: &D::File, name: &str) -> Result<Vec<u8>, OpenError> {
    let length = at(name, disk.length(file))?;
    if length > SEGMENT_OCTETS_MAX {
        return Err(OpenError::Length {
            file: name.to_owned(),
            octets: length,
        });
    }
    let mut octets = vec![0; length as usize];
    at(name, disk.read(file, &mut octets, 0))?;
    Ok(octets)
}

/// Cuts off a torn end, and begins a run behind the last group.
fn go_on<D: Disk>(
    mut disk: D,
    start: Start<'_>,
    file: D::File,
    octets: Vec<u8>,
    segment: Segment,
) -> io::Result<(Log<D>, Opened)> {
    let end = segment.end as u64;
    if octets.len() > segment.end {
        disk.cut(&file, end)?;
    }
    let longest = start.limits.age_max.as_nanos();
    let outage = segment.outage(start.now, &start.host.boot, longest);
    let begin = start.begin(outage.timeline, segment.next);
    let main = Writing::go_on(file, segment.header, end, segment.synced, &begin);
    let index = segment.index.clone();
    let mut log = start.log(disk, main, index, outage.timeline, segment.next);
    log.sync()?;
    Ok((log, found(octets, segment, &outage)))
}

/// Creates a segment, in which there are no records.
fn create<D: Disk>(mut disk: D, start: Start<'_>, number: u64) -> Result<Log<D>, OpenError> {
    let name = new_name(number);
    let file = at(&name, disk.create(&name))?;
    let mut main = Writing::fresh(file, number, start.host.machine, &start.begin(0, 1));
    at(&name, main.complete(&mut disk))?;
    at(&name, main.name(&mut disk))?;
    at(".", disk.sync_names())?;
    Ok(start.log(disk, main, Index::default(), 0, 1))
}

/// Moves all segments aside and starts without records. A segment older than a damaged one may have records that ended
/// since.
fn start_anew<D: Disk>(
    mut disk: D,
    start: Start<'_>,
    numbers: &[u64],
    damage: usize,
) -> Result<(Log<D>, Opened), OpenError> {
    let mut aside = String::new();
    for number in numbers {
        let name = log_name(*number);
        aside = at(&name, move_aside(&mut disk, &name))?;
    }
    at(".", disk.sync_names())?;
    let number = numbers.last().map_or(1, |newest| newest.saturating_add(1));
    let log = create(disk, start, number)?;
    Ok((log, nothing(Some((aside, damage)))))
}

/// The numbers of all segments, in order. Removes those that never got their names.
fn numbers<D: Disk>(disk: &mut D) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for name in disk.names()? {
        match file::number_of(&name) {
            Some(number) => numbers.push(number),
            None if name.ends_with(".new") => disk.remove(&name)?,
            None => {}
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Moves a damaged segment to the first free name.
fn move_aside<D: Disk>(disk: &mut D, name: &str) -> io::Result<String> {
    let names = disk.names()?;
    let mut asides = (1..=ASIDE_MAX).map(|number| format!("{name}.damaged-{number}"));
    let Some(aside) = asides.find(|aside| !names.contains(aside)) else {
        let text =
            format!("it is damaged, and {ASIDE_MAX} damaged ones are beside it; remove those");
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    };
    disk.rename(name, &aside)?;
    Ok(aside)
}

fn nothing(damaged: Option<(String, usize)>) -> Opened {
    Opened {
        records: Records::default(),
        elapsed: Duration::ZERO,
        is_same_boot: false,
        is_long: false,
        last: 0,
        cut_octets: 0,
        damaged,
        names: Vec::new(),
    }
}

fn found(octets: Vec<u8>, segment: Segment, outage: &Outage) -> Opened {
    let mut names: Vec<Vec<u8>> = Vec::new();
    for process in segment.processes.iter().rev() {
        let own = &octets[process.names.clone()];
        if !own.is_empty() && !names.iter().any(|other| other == own) {
            names.push(own.to_vec());
        }
    }
    Opened {
        elapsed: Duration::from_nanos(outage.passed),
        is_same_boot: outage.is_same_boot,
        is_long: outage.is_long,
        last: segment.next.saturating_sub(1),
        cut_octets: (octets.len() - segment.end) as u64,
        damaged: None,
        names,
        records: Records::new(octets, segment.index),
    }
}
