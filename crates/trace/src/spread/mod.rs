//! One capture analysed by several machines, each of which reads only a part of it: map and reduce.
//!
//! With [`crate::part`] alone, each machine reads the whole capture. Here, [`map`] reads a range of a file and sorts its
//! TCP segments into lots, one for each part. [`Reducer`] takes the lots of one part in the order of the capture and
//! writes a part file, which `--merge` joins with the others. The merged report is that of a single run.
//!
//! What a segment's analysis needs from the ranges before its own travels beside the lots, as [`Side`]: the number of
//! packets, the capture's clock, and the counts. [`starts`] adds these up. Two captures need more:
//! - If time stamps leap, the clock in a range depends on the ranges before it: [`starts`] names the range to map again,
//!   with the clock that it begins with.
//! - If TCP segments are fragmented, [`Side::is_fragmented`] is set. Use [`crate::part`] for such a capture.
//!
//! | file | what it does |
//! |---|---|
//! | `lot` | segments as bytes |
//! | `codec` | encapsulations and counts as bytes |
//! | `ranges` | finds the first record of a range |
//!
//! Left out: UDP flows. The caller starts the machines and moves the bytes; the Python package has a driver for Ray.

mod codec;
mod lot;
mod ranges;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};

use capfile::{Block, OpenError, Reader};
use serde::{Deserialize, Serialize};
use wire::packet::Packet;

use crate::analyzer::{Analyzer, Finished, Limits};
use crate::capture::{FileReport, RunCounts};
use crate::clock::Clock;
use crate::columns::Summary;
use crate::part::{Header, Writer};
use crate::records::decoded::Decoded;
use crate::records::decoder::Decoder;
use crate::records::machine::{self, AHEAD};
use crate::records::plan::Plan;
use crate::records::tally::Tally;

use lot::{Lot, Segments};

pub use codec::Damaged;
pub use ranges::{WINDOW, header, next_record};

/// What a range tells the ranges after it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Side {
    /// IP packets of the range.
    pub packets: u64,
    /// Offset of the first record after the range, in the stream that was mapped.
    pub end: u64,
    /// There are fragments of TCP segments.
    pub is_fragmented: bool,
    /// What is wrong with the file, as sentences.
    pub faults: Vec<String>,
    /// Time stamps of the first and the last record.
    times: Option<(i64, i64)>,
    /// The first record has an IP packet.
    begins_with_ip: bool,
    /// The clock after the range: its time, and the time it may leap to.
    clock: (Option<i64>, Option<i64>),
    /// Time stamps leapt within the range.
    leaps: bool,
    /// The range began with the clock that the ranges before it give.
    is_exact: bool,
    tally: Vec<u8>,
}

/// A range's segments, sorted into lots, and its side data.
#[derive(Debug)]
pub struct Mapped {
    /// The lot of each part.
    pub lots: Vec<Vec<u8>>,
    /// The side data.
    pub side: Side,
    /// For pcapng: the header that the range after it needs.
    pub header: Option<Vec<u8>>,
    /// For pcapng: the file has packets without time stamps, so that it cannot be divided.
    pub is_untimed: bool,
}

/// What a range needs from those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// IP packets before it.
    pub before: u64,
    /// The capture's clock before it, which its segments' clocks must not be less than.
    pub now: i64,
    /// Time stamp of the last record before it.
    last: i64,
    clock: (Option<i64>, Option<i64>),
}

/// Reads a range and sorts its segments by flow.
///
/// `source` begins with the header that [`header`] or the range before gave, or with the file; the record at offset `until`
/// of it is the first that is not taken. `start` is needed only if [`starts`] asked for it. `name` is for the sentences
/// about faults.
///
/// # Errors
/// The source cannot be read, or is not a capture.
// long: one pass over a range, and every field of what it gives
pub fn map<R: Read>(
    name: &str,
    source: R,
    until: u64,
    plan: Plan,
    parts: u32,
    start: Option<Start>,
) -> Result<Mapped, OpenError> {
    let mut reader = Reader::new(source)?;
    reader.set_until(until);
    let mut decoder = Decoder::new(plan);
    decoder.fragments = None;
    if let Some(start) = start {
        decoder.clock = Clock::from_parts(start.clock);
        decoder.last = start.last;
    }
    let mut lots: Vec<Lot> = (0..parts.max(1)).map(|_| Lot::default()).collect();
    let mut decoded = [Decoded::default()];
    let mut block = Block::new();
    let mut side = Side {
        packets: 0,
        end: u64::MAX,
        is_fragmented: false,
        faults: Vec::new(),
        times: None,
        begins_with_ip: false,
        clock: (None, None),
        leaps: false,
        is_exact: start.is_some(),
        tally: Vec::new(),
    };
    while side.end == u64::MAX && reader.read_block(&mut block)? {
        let mut packet = Packet::new();
        let all = block.records();
        let own = match all.last() {
            Some(last) if last.offset >= until => {
                &all[..all.partition_point(|record| record.offset < until)]
            }
            _ => all,
        };
        side.end = all.get(own.len()).map_or(u64::MAX, |record| record.offset);
        // A few at a time, so that they are still in the processor's cache when they are added to their lots.
        for records in own.chunks(AHEAD) {
            for record in records {
                decoder.decode(&block, record, &mut packet, &mut decoded);
                side.leaps |= decoder.clock.is_leaping();
                side.begins_with_ip |= side.times.is_none() && decoder.number == 1;
                side.times.get_or_insert((record.time_ns, record.time_ns)).1 = record.time_ns;
            }
            let [decoded] = &mut decoded;
            lot::add(decoded, &mut lots);
            decoded.clear();
        }
    }
    let mut report = FileReport::default();
    name.clone_into(&mut report.name);
    report.set_faults(reader.faults(), false);
    report.statistics = reader.statistics();
    side.faults = report.lines();
    side.packets = decoder.number;
    side.is_fragmented = !decoder.parts.is_empty();
    side.clock = decoder.clock.to_parts();
    side.tally = codec::tally(&decoder.tally);
    let division = reader.division();
    if let Some(end) = division.as_ref().and_then(|division| division.end) {
        side.end = end;
    }
    Ok(Mapped {
        lots: lots.into_iter().map(|lot| lot.octets).collect(),
        side,
        is_untimed: division.as_ref().is_some_and(|own| own.is_untimed),
        header: division.map(|own| own.preamble),
    })
}

/// Adds up the side data of all ranges, in the order of the capture.
///
/// # Errors
/// The range at this index must be mapped again, with this start.
pub fn starts(sides: &[Side]) -> Result<Vec<Start>, (usize, Start)> {
    let mut starts = Vec::new();
    let mut start = Start {
        before: 0,
        now: i64::MIN,
        last: i64::MIN,
        clock: (None, None),
    };
    for (at, side) in sides.iter().enumerate() {
        let clock = Clock::from_parts(start.clock);
        let Some((first, last)) = side.times else {
            starts.push(start);
            continue;
        };
        let begins = start.clock == (None, None);
        if !side.is_exact && !begins && (side.leaps || !clock.reaches(first)) {
            return Err((at, start));
        }
        starts.push(match side.is_exact {
            true => Start {
                now: i64::MIN,
                ..start
            },
            false => start,
        });
        start.clock = match side.is_exact || begins {
            true => side.clock,
            false => (start.clock.0.max(side.clock.0), None),
        };
        start.before += side.packets;
        start.now = Clock::from_parts(start.clock).now();
        start.last = last;
    }
    Ok(starts)
}

/// The counts of all ranges together.
///
/// # Errors
/// The counts of a range are damaged.
fn total(sides: &[Side], starts: &[Start]) -> Result<Tally, Damaged> {
    let mut total = Tally::default();
    for (side, start) in sides.iter().zip(starts) {
        let tally = codec::read_tally(&side.tally)?;
        total.add(&tally);
        if let Some(first) = tally.first_time {
            total.first_time.get_or_insert(first);
            total.last_time = tally.last_time;
        }
        // Only the ranges together show whether the time of a range's first packet runs backwards.
        let backwards = side.begins_with_ip && side.times.is_some_and(|(at, _)| at < start.last);
        total.backwards += u64::from(backwards && !side.is_exact);
    }
    Ok(total)
}

/// Analyses the segments of one part.
pub struct Reducer {
    analyzer: Analyzer,
    decoded: Decoded,
    file: Option<u32>,
    finished: Vec<Finished>,
    segments: u64,
    seed: u64,
    /// Connections of this part, whose finished ones stay in memory.
    limits: Limits,
}

impl Reducer {
    /// Has analysed nothing.
    #[must_use]
    pub fn new(plan: &Plan) -> Reducer {
        Reducer {
            analyzer: Analyzer::new(plan.config),
            decoded: Decoded::default(),
            file: None,
            finished: Vec::new(),
            segments: 0,
            seed: plan.seed(),
            limits: Limits::default(),
        }
    }

    /// Analyses the next lot, of a range of the file with that index.
    ///
    /// # Errors
    /// The lot is damaged.
    pub fn lot(&mut self, file: u32, start: &Start, lot: &[u8]) -> Result<(), Damaged> {
        if self.file.replace(file) != Some(file) {
            self.analyzer.set_file(file);
        }
        let mut segments = Segments::new(lot, start.now, self.seed);
        let decoded = &mut self.decoded;
        while segments.next(decoded, machine::at_once(&self.analyzer))? {
            self.segments += decoded.len() as u64;
            machine::take(&mut self.analyzer, decoded, start.before);
        }
        self.finished.extend(self.analyzer.take_finished());
        Ok(())
    }

    /// Writes the part. `sides` are those of all ranges.
    ///
    /// # Errors
    /// Those of the output, and [`Damaged`] side data.
    pub fn finish<W: Write>(
        mut self,
        (part, parts): (u32, u32),
        files: Vec<String>,
        sides: &[Side],
        out: W,
    ) -> io::Result<W> {
        self.analyzer.finish();
        self.finished.extend(self.analyzer.take_finished());
        self.limits = self.analyzer.limits();
        self.finished
            .sort_unstable_by_key(|connection| connection.first_packet);
        let starts = starts(sides).map_err(|(at, _)| {
            io::Error::other(format!("range {at} was not mapped with its clock"))
        })?;
        let mut tally = total(sides, &starts).map_err(io::Error::other)?;
        tally.tcp = self.segments;
        let counts = RunCounts {
            tally,
            limits: self.limits,
            connections: self.finished.len() as u64,
        };
        let summary: Summary = counts.summary(false);
        let settings = vec![("ranges".to_owned(), sides.len().to_string())];
        let header = Header::new(part, parts, settings, files, summary);
        let mut writer = Writer::new(out, &header)?;
        for connection in &self.finished {
            writer.connection(connection.first_packet, &connection.octets)?;
        }
        writer.finish()
    }
}
