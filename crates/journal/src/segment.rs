//! Reads a segment: which records it has, up to where it is to be believed, and whether the rest is torn or damaged.

use core::ops::Range;

use crate::Moment;
use crate::format::{self, Entry, Form, GROUP, Group, HEADER, Header, NoHeader, Run};
use crate::index::Index;

/// Octets of possible groups that are summed behind a bad one, beyond four times the length of what is behind it.
const SEARCH_OCTETS: usize = 1 << 20;

/// The numbers that an entry may have. No process adds as many.
const NUMBERS: Range<u64> = 1..1 << 62;

/// The start of a process that wrote to the segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) boot: [u8; 16],
    /// What to add to the process's clock to get nanoseconds of the timeline.
    pub(crate) shift: i128,
    /// The octets of the caller that it began with.
    pub(crate) names: Range<usize>,
}

/// What a segment has.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) header: Header,
    pub(crate) index: Index,
    /// The processes that wrote to it, oldest first; never empty.
    pub(crate) processes: Vec<Process>,
    /// The number of the next entry.
    pub(crate) next: u64,
    /// Where the believed groups end.
    pub(crate) end: usize,
    /// It was on the disk up to here at least.
    pub(crate) synced: u64,
    /// The time of the last group on the timeline, in nanoseconds.
    pub(crate) timeline: u64,
    /// The same by the wall clock, since 1970.
    pub(crate) wall: u64,
}

/// Why a segment is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Damaged { at: usize },
    Format(u32),
    Machine,
}

/// Reads a segment of this machine.
pub(crate) fn parse(octets: &[u8], machine: &[u8; 16]) -> Result<Segment, Refused> {
    let header = Header::parse(octets).map_err(|why| match why {
        NoHeader::Format(format) => Refused::Format(format),
        NoHeader::Damaged => Refused::Damaged { at: 0 },
    })?;
    if header.machine != *machine {
        return Err(Refused::Machine);
    }
    let mut reading = Reading::new(header);
    while reading.group(octets).is_some() {}
    let segment = reading.segment;
    let end = segment.end;
    let was_synced = segment.synced > end as u64;
    if was_synced || segment.processes.is_empty() || is_damage(octets, end, reading.seed) {
        return Err(Refused::Damaged { at: end });
    }
    Ok(segment)
}

/// A segment that is read.
struct Reading {
    segment: Segment,
    seed: u32,
    /// The run of the next groups.
    run: u32,
}

impl Reading {
    fn new(header: Header) -> Self {
        let seed = format::seed(header.number, &header.machine);
        Self {
            segment: Segment {
                header,
                index: Index::default(),
                processes: Vec::new(),
                next: 0,
                end: HEADER,
                synced: header.whole,
                timeline: 0,
                wall: 0,
            },
            seed,
            run: 0,
        }
    }

    /// Reads the next group. `None` if it is not one.
    fn group(&mut self, octets: &[u8]) -> Option<()> {
        let start = self.segment.end;
        let rest = octets.get(start..)?;
        let end = start + Group::length(rest)?;
        let body = start + GROUP..end;
        let (group, crc) = Group::parse(self.seed, rest)?;
        if self.segment.processes.is_empty() {
            self.segment.next = group.first;
        }
        let begins = group.run == 0;
        if !begins && group.run != self.run {
            return None;
        }
        if group.first != self.segment.next {
            return None;
        }
        let count = check(octets, body.clone())?;
        if group.count != 0 && group.count != count {
            return None;
        }
        let next = group.first.checked_add(u64::from(group.count))?;
        if !NUMBERS.contains(&next) {
            return None;
        }
        if begins {
            let run = read_run(octets, body.clone(), &group)?;
            self.segment.processes.push(run);
            self.run = run_of(crc);
        }
        let segment = &mut self.segment;
        each(octets, body, |entry, place| {
            segment.index.apply(entry, octets, place, 0);
        });
        segment.next = next;
        segment.end = end;
        segment.synced = segment.synced.max(group.synced);
        segment.timeline = segment.timeline.max(group.timeline);
        segment.wall = group.wall;
        Some(())
    }
}

/// The run that a group of this CRC begins.
pub(crate) fn run_of(crc: u32) -> u32 {
    crc.max(1)
}

/// Calls `f` with each entry in `body`, and its place. Returns where the entries end.
pub(crate) fn each(
    octets: &[u8],
    body: Range<usize>,
    mut f: impl FnMut(&Entry, Range<usize>),
) -> usize {
    let octets = &octets[..body.end];
    let mut at = body.start;
    while let Some((entry, end)) = Entry::parse(octets, at) {
        f(&entry, at..end);
        at = end;
    }
    at
}

/// The number of entries in `body`. `None` if it has other octets.
fn check(octets: &[u8], body: Range<usize>) -> Option<u32> {
    let mut count = 0;
    let end = each(octets, body.clone(), |_, _| count += 1);
    (end == body.end).then_some(count)
}

fn read_run(octets: &[u8], body: Range<usize>, group: &Group) -> Option<Process> {
    let octets = &octets[..body.end];
    let (entry, _) = Entry::parse(octets, body.start)?;
    if entry.form != Form::Run {
        return None;
    }
    let (run, names) = Run::parse(&entry, octets)?;
    let shift = i128::from(group.timeline) - i128::from(run.clock.as_nanos());
    Some(Process {
        boot: run.boot,
        shift,
        names,
    })
}

/// Whether a good group behind the end says that something there was on the disk. That is true of any group of this
/// segment, whatever its run: nothing that was on the disk is ever cut off.
fn is_damage(octets: &[u8], end: usize, seed: u32) -> bool {
    let mut budget = 4 * (octets.len() - end) + SEARCH_OCTETS;
    let mut at = end;
    while let Some(found) = format::find_magic(&octets[at..]) {
        at += found;
        let rest = &octets[at..];
        let Some(length) = Group::length(rest).filter(|length| *length <= rest.len()) else {
            at += 1;
            continue;
        };
        // Octets made to cost much are none that this program wrote.
        let Some(left) = budget.checked_sub(length) else {
            return true;
        };
        budget = left;
        match Group::parse(seed, rest) {
            Some((group, _)) if group.synced > end as u64 => return true,
            Some(_) => at += length,
            None => at += 1,
        }
    }
    false
}

impl Segment {
    /// The nanoseconds of the timeline and of the outage at `clock` and `wall`, if the last process ran on `boot`.
    pub(crate) fn outage(&self, now: Moment, boot: &[u8; 16], longest: u64) -> Outage {
        let last = self.processes.last();
        let same = last.filter(|run| run.boot == *boot);
        let (passed, is_same_boot) = match same {
            Some(run) => {
                let timeline = i128::from(now.clock.as_nanos()) + run.shift;
                let passed = timeline - i128::from(self.timeline);
                (u64::try_from(passed.max(0)).unwrap_or(u64::MAX), true)
            }
            None => (now.wall_ns.saturating_sub(self.wall), false),
        };
        let counted = match is_same_boot {
            true => passed,
            false => passed.min(longest),
        };
        Outage {
            passed: counted,
            timeline: self.timeline.saturating_add(counted),
            is_same_boot,
            is_long: passed > longest,
        }
    }
}

/// How long no process wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    pub(crate) passed: u64,
    /// The timeline's nanoseconds now.
    pub(crate) timeline: u64,
    pub(crate) is_same_boot: bool,
    pub(crate) is_long: bool,
}
