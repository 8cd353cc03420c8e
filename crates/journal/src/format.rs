//! The bytes of a segment: a header, then groups of entries.
//!
//! ```text
//! header  magic (8 octets), format u32, 0 u32, number u64, whole u64, machine (16), 0 (12), crc u32
//! group   magic u32, length u32, run u32, count u32, first u64, synced u64, timeline u64, wall u64, crc u32; entries
//! entry   kind u8, key, form u8, number of sections u8, sections
//! section number u8, length, octets
//! ```
//!
//! Integers have their lowest octet first. A key and a section's length are written 7 bits an octet, the lowest first,
//! the top bit set if more follow.
//!
//! `whole`: the segment was on the disk up to there before it got its name. `synced`: the same, when the group was
//! written. So a bad group in front of one of these places is damage, and any other one may be a write that a power
//! failure tore. `first` is the number of the group's first entry. `count` is the number of its entries, or 0 if
//! they have no numbers: compaction copied them, or they begin a run.
//!
//! A run is a process that wrote to the segment. Its first group has the run 0; the CRC of that group is the run of all
//! further ones. So groups that an earlier process wrote at the same place are not mistaken for this one's. All CRCs of
//! groups begin with the segment's [`seed`], so that no group of another segment is one here.

use core::ops::Range;

use base::Instant;

/// The newest format that is read, and the only one that is written.
pub(crate) const FORMAT: u32 = 1;
/// The length of a header.
pub(crate) const HEADER: usize = 64;
/// The length of a group without its entries.
pub(crate) const GROUP: usize = 52;
/// The most octets of a group's entries.
pub(crate) const ENTRIES_MAX: usize = 1 << 20;

const MAGIC: [u8; 8] = *b"headend\x0a";
const GROUP_MAGIC: [u8; 4] = *b"\xc7grp";

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) number: u64,
    pub(crate) whole: u64,
    pub(crate) machine: [u8; 16],
}

/// Why a header is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoHeader {
    Format(u32),
    Damaged,
}

/// What the CRCs of a segment's groups begin with.
pub(crate) fn seed(number: u64, machine: &[u8; 16]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&MAGIC);
    crc.update(&number.to_le_bytes());
    crc.update(machine);
    crc.finalize()
}

impl Header {
    pub(crate) fn emit(&self) -> [u8; HEADER] {
        let mut octets = [0; HEADER];
        octets[..8].copy_from_slice(&MAGIC);
        octets[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        octets[16..24].copy_from_slice(&self.number.to_le_bytes());
        octets[24..32].copy_from_slice(&self.whole.to_le_bytes());
        octets[32..48].copy_from_slice(&self.machine);
        let crc = crc32fast::hash(&octets[..HEADER - 4]);
        octets[HEADER - 4..].copy_from_slice(&crc.to_le_bytes());
        octets
    }

    pub(crate) fn parse(octets: &[u8]) -> Result<Self, NoHeader> {
        let octets = octets.first_chunk::<HEADER>().ok_or(NoHeader::Damaged)?;
        let (body, crc) = octets.split_at(HEADER - 4);
        if body[..8] != MAGIC {
            return Err(NoHeader::Damaged);
        }
        // Another format may have its CRC elsewhere.
        match u32::from_le_bytes(array(body, 8)) {
            FORMAT => {}
            other => return Err(NoHeader::Format(other)),
        }
        if crc32fast::hash(body).to_le_bytes() != crc {
            return Err(NoHeader::Damaged);
        }
        Ok(Self {
            number: u64::from_le_bytes(array(body, 16)),
            whole: u64::from_le_bytes(array(body, 24)),
            machine: array(body, 32),
        })
    }
}

/// What a group says before its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) run: u32,
    pub(crate) count: u32,
    pub(crate) first: u64,
    pub(crate) synced: u64,
    pub(crate) timeline: u64,
    pub(crate) wall: u64,
}

impl Group {
    /// Appends it with its entries. Returns its CRC.
    pub(crate) fn emit(&self, seed: u32, entries: &[u8], out: &mut Vec<u8>) -> u32 {
        let start = out.len();
        out.extend_from_slice(&GROUP_MAGIC);
        out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.run.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        for value in [self.first, self.synced, self.timeline, self.wall] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        let crc = crc(seed, &out[start..], entries);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(entries);
        crc
    }

    /// The length of the group that begins here, if one does and its length is a possible one.
    pub(crate) fn length(octets: &[u8]) -> Option<usize> {
        let head = octets.first_chunk::<8>()?;
        let entries = u32::from_le_bytes(array(head, 4)) as usize;
        (head[..4] == GROUP_MAGIC && entries <= ENTRIES_MAX).then_some(GROUP + entries)
    }

    /// The group that begins here and its CRC, if all of it is there and that CRC is right.
    pub(crate) fn parse(seed: u32, octets: &[u8]) -> Option<(Self, u32)> {
        let octets = octets.get(..Self::length(octets)?)?;
        let (head, entries) = octets.split_at(GROUP);
        let crc = crc(seed, &head[..GROUP - 4], entries);
        if crc.to_le_bytes() != head[GROUP - 4..] {
            return None;
        }
        let long = |at| u64::from_le_bytes(array(head, at));
        let group = Self {
            run: u32::from_le_bytes(array(head, 8)),
            count: u32::from_le_bytes(array(head, 12)),
            first: long(16),
            synced: long(24),
            timeline: long(32),
            wall: long(40),
        };
        Some((group, crc))
    }
}

/// Where the next group might begin.
pub(crate) fn find_magic(octets: &[u8]) -> Option<usize> {
    octets.windows(4).position(|four| four == GROUP_MAGIC)
}

fn crc(seed: u32, head: &[u8], entries: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new_with_initial(seed);
    crc.update(head);
    crc.update(entries);
    crc.finalize()
}

/// What an entry does to the record of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// There is none any more.
    Removed,
    /// It has these sections and no others.
    Whole,
    /// Its sections of these numbers are these now.
    Changed,
    /// None: it begins a run.
    Run,
}

/// An entry without its sections' octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: u8,
    pub(crate) key: u64,
    pub(crate) form: Form,
    count: u8,
    /// Where the sections begin.
    sections: usize,
}

impl Entry {
    /// The entry at `at`, and where it ends. `None` if there is none that can be.
    pub(crate) fn parse(octets: &[u8], at: usize) -> Option<(Self, usize)> {
        let kind = *octets.get(at)?;
        let (key, at) = read_number(octets, at + 1)?;
        let form = match octets.get(at)? {
            0 => Form::Removed,
            1 => Form::Whole,
            2 => Form::Changed,
            3 => Form::Run,
            _ => return None,
        };
        let entry = Self {
            kind,
            key,
            form,
            count: *octets.get(at + 1)?,
            sections: at + 2,
        };
        let mut sections = entry.sections(octets);
        sections.by_ref().for_each(drop);
        (sections.left == 0).then_some((entry, sections.at))
    }

    /// The numbers of its sections, and where their octets are.
    pub(crate) fn sections<'a>(&self, octets: &'a [u8]) -> Sections<'a> {
        Sections {
            octets,
            at: self.sections,
            left: self.count,
        }
    }
}

/// The sections of an entry.
#[derive(Clone, Debug)]
pub(crate) struct Sections<'a> {
    octets: &'a [u8],
    at: usize,
    left: u8,
}

impl Iterator for Sections<'_> {
    type Item = (u8, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let number = *self.octets.get(self.at)?;
        let (length, start) = read_number(self.octets, self.at + 1)?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        if end > self.octets.len() {
            return None;
        }
        self.at = end;
        self.left -= 1;
        Some((number, start..end))
    }
}

/// Appends an entry. Of more than 255 sections, it takes the first ones.
pub(crate) fn emit_entry<'a>(
    kind: u8,
    key: u64,
    form: Form,
    sections: impl Iterator<Item = (u8, &'a [u8])>,
    out: &mut Vec<u8>,
) {
    out.push(kind);
    write_number(key, out);
    out.push(match form {
        Form::Removed => 0,
        Form::Whole => 1,
        Form::Changed => 2,
        Form::Run => 3,
    });
    let count_at = out.len();
    out.push(0);
    for (number, octets) in sections.take(255) {
        out[count_at] += 1;
        out.push(number);
        write_number(octets.len() as u64, out);
        out.extend_from_slice(octets);
    }
}

/// The start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) boot: [u8; 16],
    /// The process's clock at the group's time.
    pub(crate) clock: Instant,
    /// Where the group is, so that no two runs have the same seed.
    pub(crate) start: u64,
}

impl Run {
    pub(crate) fn emit(&self, names: &[u8], out: &mut Vec<u8>) {
        let clock = self.clock.as_nanos().to_le_bytes();
        let start = self.start.to_le_bytes();
        let sections = [
            (0, &self.boot[..]),
            (1, &clock[..]),
            (2, &start[..]),
            (3, names),
        ];
        emit_entry(0, 0, Form::Run, sections.into_iter(), out);
    }

    /// The start, and where the caller's names are.
    pub(crate) fn parse(entry: &Entry, octets: &[u8]) -> Option<(Self, Range<usize>)> {
        let mut sections = entry.sections(octets).map(|(_, place)| place);
        let boot = octets[sections.next()?].try_into().ok()?;
        let clock = Instant::from_nanos(long(&octets[sections.next()?])?);
        let start = long(&octets[sections.next()?])?;
        Some((Self { boot, clock, start }, sections.next()?))
    }
}

fn long(octets: &[u8]) -> Option<u64> {
    octets.try_into().ok().map(u64::from_le_bytes)
}

fn write_number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_number(octets: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let octet = *octets.get(at)?;
        at += 1;
        let bits = u64::from(octet & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if octet < 0x80 {
            return Some((value, at));
        }
    }
    None
}

fn array<const N: usize>(octets: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&octets[at..at + N]);
    array
}
