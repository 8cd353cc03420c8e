//! Compaction: what is live goes to a new segment, which takes the place of the old one. It is done in steps, and new
//! entries go to both segments meanwhile.
//!
//! The new segment has no name until all of it is on the disk. From then on both segments get each entry and each sync,
//! so it does not matter which of them a crash leaves.

use std::io;

use base::Disk;

use super::Log;
use crate::Moment;
use crate::file::{Begin, Writing, log_name, new_name};
use crate::format::{self, ENTRIES_MAX, Entry, Form, GROUP, Group, HEADER};
use crate::index::{Index, Key};
use crate::segment;

/// A segment above `above` bytes is worth compacting if less than half of it is live.
fn is_worth(octets: u64, live: u64, above: u64) -> bool {
    octets > above && live < octets / 2
}

/// A compaction in progress.
#[derive(Debug)]
pub(super) struct Copying<F> {
    file: Writing<F>,
    index: Index,
    /// What of the old segment is to be copied.
    from: u64,
    until: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// What is live is copied.
    Copies,
    /// All is on the disk, and the new segment gets its name.
    Names,
    /// The name is to be synced.
    SyncsName,
}

impl<F> Copying<F> {
    pub(super) fn held(&self) -> usize {
        self.file.held()
    }

    pub(super) fn both(&mut self) -> (&mut Writing<F>, &mut Index) {
        (&mut self.file, &mut self.index)
    }

    pub(super) fn write<D: Disk<File = F>>(&mut self, disk: &mut D) -> io::Result<()> {
        match self.stage {
            Stage::Copies => self.file.write_through(disk),
            Stage::Names | Stage::SyncsName => self.file.write(disk),
        }
    }

    pub(super) fn sync<D: Disk<File = F>>(&mut self, disk: &mut D) -> io::Result<()> {
        match self.stage {
            Stage::Copies => Ok(()),
            Stage::Names | Stage::SyncsName => self.file.sync(disk),
        }
    }
}

impl<D: Disk> Log<D> {
    /// Whether [`Log::step`] has something to do.
    #[must_use]
    pub fn wants_step(&self) -> bool {
        let is_worth = || is_worth(self.main.end(), self.index.octets(), self.compact_above);
        self.copying.is_some() || (self.main.is_written() && is_worth())
    }

    /// Does the next part of a compaction.
    ///
    /// # Errors
    /// The disk's error. Nothing is lost: the compaction begins again when the segment has grown, or its last part is
    /// tried again at the next step.
    pub fn step(&mut self, now: Moment) -> io::Result<()> {
        if !self.wants_step() {
            return Ok(());
        }
        match &self.copying {
            None => self.begin_copying(now),
            Some(copying) => match copying.stage {
                Stage::Copies => {
                    let copied = self.copy(now);
                    copied.or_else(|error| {
                        let again = io::Error::new(error.kind(), error.to_string());
                        self.give_up_copying(error)?;
                        Err(again)
                    })
                }
                Stage::Names => self.name_copy(),
                Stage::SyncsName => self.switch(),
            },
        }
    }

    fn begin_copying(&mut self, now: Moment) -> io::Result<()> {
        let number = self.main.header.number + 1;
        let created = self.disk.create(&new_name(number));
        let file = created.inspect_err(|_| self.wait_for_growth())?;
        let begin = Begin {
            boot: &self.host.boot,
            names: &self.names,
            now,
            timeline: self.timeline_ns(now.clock),
            first: self.next,
        };
        let machine = self.host.machine;
        self.copying = Some(Copying {
            file: Writing::fresh(file, number, machine, &begin),
            index: Index::default(),
            from: HEADER as u64,
            until: self.main.end(),
            stage: Stage::Copies,
        });
        Ok(())
    }

    /// Copies what is live in the next octets; at their end, completes the new segment.
    fn copy(&mut self, now: Moment) -> io::Result<()> {
        let timeline = self.timeline_ns(now.clock);
        let Some(copying) = &mut self.copying else {
            return Ok(());
        };
        if copying.from == copying.until {
            copying.file.complete(&mut self.disk)?;
            copying.stage = Stage::Names;
            return Ok(());
        }
        let left = copying.until - copying.from;
        let length = left.min(self.limits.step_octets.max(GROUP) as u64);
        let mut octets = vec![0; length as usize];
        self.main.read(&mut self.disk, &mut octets, copying.from)?;
        let first = Group::length(&octets).ok_or_else(damage)?;
        if first > octets.len() {
            if first as u64 > left {
                return Err(damage());
            }
            octets.resize(first, 0);
            self.main.read(&mut self.disk, &mut octets, copying.from)?;
        }
        let seed = format::seed(self.main.header.number, &self.main.header.machine);
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(length) = Group::length(&octets[at..]) {
            let rest = &octets[at..];
            if length > rest.len() {
                break;
            }
            Group::parse(seed, rest).ok_or_else(damage)?;
            let body = at + GROUP..at + length;
            let base = copying.from;
            segment::each(&octets, body, |entry, place| {
                if out.len() + place.len() > ENTRIES_MAX {
                    copying.push(self.next, timeline, now.wall_ns, &mut out);
                }
                let start = base + place.start as u64;
                emit_live(&self.index, entry, &octets, start, base, &mut out);
            });
            at += length;
        }
        if at == 0 {
            return Err(damage());
        }
        copying.push(self.next, timeline, now.wall_ns, &mut out);
        copying.from += at as u64;
        copying.file.write_through(&mut self.disk)
    }

    fn name_copy(&mut self) -> io::Result<()> {
        if let Some(copying) = &mut self.copying {
            copying.file.name(&mut self.disk)?;
            copying.stage = Stage::SyncsName;
        }
        Ok(())
    }

    fn switch(&mut self) -> io::Result<()> {
        self.disk.sync_names()?;
        if let Some(copying) = self.copying.take() {
            let old = core::mem::replace(&mut self.main, copying.file);
            self.index = copying.index;
            self.compact_above = self.limits.compact_octets;
            self.compactions += 1;
            // The next start removes it otherwise.
            let _ = self.disk.remove(&log_name(old.header.number));
        }
        Ok(())
    }

    /// Forgets a compaction whose segment has no name yet; else the error has to be dealt with.
    pub(super) fn give_up_copying(&mut self, error: io::Error) -> io::Result<()> {
        match &self.copying {
            Some(copying) if copying.stage != Stage::Copies => Err(error),
            Some(copying) => {
                // The next compaction or the next start empties or removes it otherwise.
                let _ = self.disk.remove(&new_name(copying.file.header.number));
                self.copying = None;
                self.wait_for_growth();
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn wait_for_growth(&mut self) {
        self.compact_above = self.main.end() + self.limits.compact_octets / 4;
    }
}

impl<F> Copying<F> {
    /// Adds a group of copied entries, and empties `out`.
    fn push(&mut self, next: u64, timeline: u64, wall: u64, out: &mut Vec<u8>) {
        if out.is_empty() {
            return;
        }
        let base = self.file.push(next, 0, timeline, wall, out);
        segment::each(out, 0..out.len(), |entry, place| {
            self.index.apply(entry, out, place, base);
        });
        out.clear();
    }
}

/// Appends the sections of an entry that are live. The entry is at `start` of the segment, and `octets` at `base`.
fn emit_live(
    index: &Index,
    entry: &Entry,
    octets: &[u8],
    start: u64,
    base: u64,
    out: &mut Vec<u8>,
) {
    let key = Key {
        kind: entry.kind,
        key: entry.key,
    };
    let live = match entry.form {
        Form::Whole | Form::Changed => index.get(key),
        Form::Removed | Form::Run => None,
    };
    let Some(places) = live else { return };
    let sections = entry.sections(octets).filter(|(number, place)| {
        !place.is_empty() && places.is_live(start, *number, base + place.start as u64)
    });
    if places.begins(start) || sections.clone().next().is_some() {
        // Sections of it may have changed since, in entries that the new segment has already.
        let sections = sections.map(|(number, place)| (number, &octets[place]));
        format::emit_entry(entry.kind, entry.key, Form::Changed, sections, out);
    }
}

fn damage() -> io::Error {
    let text = "the segment has octets that were not written; it cannot be compacted";
    io::Error::new(io::ErrorKind::InvalidData, text)
}
