//! Faults of a file.

use std::fmt;
use std::io;

use crate::format::Format;
use crate::source::Compression;

/// A kind of fault of a capture file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The file ends inside a record.
    Truncated,
    /// The compressed file ends inside its stream.
    CompressionTruncated,
    /// The compressed file does not decompress, its checksum is wrong, or something else follows it.
    CompressionCorrupt,
    /// A record claims to be longer than any packet.
    RecordTooLong,
    /// A record's length contradicts its contents.
    BadRecordLength,
    /// The two lengths of a pcapng block differ.
    BlockLengthMismatch,
    /// A pcapng section is in no byte order or of no version that is known.
    BadSection,
    /// A pcapng block is too short for what it must hold.
    BadBlock,
    /// The options of a pcapng interface reach past their block; those before count.
    BadOptions,
    /// A pcapng packet names an interface that its section has not described.
    UnknownInterface,
    /// A section has more interfaces than are numbered here (65,536).
    TooManyInterfaces,
    /// An ERF record of a type that holds no packet known here.
    UnknownRecordType,
    /// A fraction of a second that is a second or more (the seconds are carried over), or a time that does not fit 64
    /// bits of nanoseconds (the nearest that does is given).
    BadTime,
}

/// The effect of a [`Fault`] on the reading of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The packet is returned nevertheless.
    Kept,
    /// One record is skipped.
    Skipped,
    /// Bytes are skipped up to the next record that can be found: see [`Faults::gaps`].
    Resumed,
    /// The rest of the file is not read.
    Ended,
}

impl Fault {
    /// Every kind, in the order of their declaration.
    pub const ALL: [Fault; 13] = [
        Fault::Truncated,
        Fault::CompressionTruncated,
        Fault::CompressionCorrupt,
        Fault::RecordTooLong,
        Fault::BadRecordLength,
        Fault::BlockLengthMismatch,
        Fault::BadSection,
        Fault::BadBlock,
        Fault::BadOptions,
        Fault::UnknownInterface,
        Fault::TooManyInterfaces,
        Fault::UnknownRecordType,
        Fault::BadTime,
    ];

    /// The effect on the reading of the file, if no later record is found.
    #[must_use]
    pub fn effect(self) -> Effect {
        match self {
            Fault::Truncated
            | Fault::CompressionTruncated
            | Fault::CompressionCorrupt
            | Fault::RecordTooLong
            | Fault::BadRecordLength
            | Fault::BlockLengthMismatch
            | Fault::BadSection => Effect::Ended,
            Fault::BadBlock
            | Fault::UnknownInterface
            | Fault::TooManyInterfaces
            | Fault::UnknownRecordType => Effect::Skipped,
            Fault::BadOptions | Fault::BadTime => Effect::Kept,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Truncated => "the file ends inside a record",
            Fault::CompressionTruncated => "the compressed stream is cut short",
            Fault::CompressionCorrupt => "the compressed stream is corrupt",
            Fault::RecordTooLong => "a record longer than any packet",
            Fault::BadRecordLength => "a record whose lengths contradict each other",
            Fault::BlockLengthMismatch => "a block whose two lengths differ",
            Fault::BadSection => "a section of unknown byte order or version",
            Fault::BadBlock => "a block too short for what it must hold",
            Fault::BadOptions => "options that reach past their block",
            Fault::UnknownInterface => "a packet of an interface not described",
            Fault::TooManyInterfaces => "an interface past the 65,536th",
            Fault::UnknownRecordType => "a record of an unknown type",
            Fault::BadTime => "a time stamp out of range",
        })
    }
}

/// Bytes of a file that were skipped after a fault, because no record begins in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Offset of the faulty record in the file (after decompression).
    pub offset: u64,
    /// The number of bytes up to the next record.
    pub length: u64,
}

/// Gaps that [`Faults`] lists. More are only counted.
const GAPS_MAX: usize = 16;

/// The faults of a file: the first one, its place, and the number of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    first: Option<(u64, Fault)>,
    counts: [u64; Fault::ALL.len()],
    gaps: Vec<Gap>,
    gap_count: u64,
    skipped: u64,
}

impl Faults {
    /// The first fault, and the offset of its record in the file (after decompression). For a corrupt or truncated
    /// stream, it is the offset at which the decompressed data ends.
    #[must_use]
    pub fn first(&self) -> Option<(u64, Fault)> {
        self.first
    }

    /// The number of faults of this kind.
    #[must_use]
    pub fn count(&self, fault: Fault) -> u64 {
        self.counts[fault as usize]
    }

    /// The kinds of faults in the file, and the number of each.
    pub fn iter(&self) -> impl Iterator<Item = (Fault, u64)> + '_ {
        Fault::ALL
            .into_iter()
            .zip(self.counts)
            .filter(|&(_, count)| count > 0)
    }

    /// The number of faults of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The first 16 gaps: places where the reading resumed at a later record.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// How many gaps there are.
    #[must_use]
    pub fn gap_count(&self) -> u64 {
        self.gap_count
    }

    /// The bytes in all gaps together.
    #[must_use]
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped
    }

    /// The effect of faults of this kind in this file: [`Effect::Resumed`] instead of [`Effect::Ended`] if the reading
    /// resumed after each fault that ends it.
    #[must_use]
    pub fn effect(&self, fault: Fault) -> Effect {
        let ending = Fault::ALL
            .into_iter()
            .filter(|fault| fault.effect() == Effect::Ended);
        let ended: u64 = ending.map(|fault| self.count(fault)).sum();
        match fault.effect() {
            Effect::Ended if ended == self.gap_count => Effect::Resumed,
            effect => effect,
        }
    }

    /// Whether nothing was wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Notes a gap.
    pub(crate) fn resumed(&mut self, gap: Gap) {
        self.gap_count += 1;
        self.skipped = self.skipped.saturating_add(gap.length);
        if self.gaps.len() < GAPS_MAX {
            self.gaps.push(gap);
        }
    }

    pub(crate) fn note(&mut self, offset: u64, fault: Fault) {
        self.first.get_or_insert((offset, fault));
        self.counts[fault as usize] += 1;
    }
}

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It could not be read from.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is empty.
    #[error("the file is empty")]
    Empty,
    /// Its format is unknown.
    #[error("not a file of packets of a known format")]
    UnknownFormat,
    /// It ends inside the file header.
    #[error("the {0} file ends inside its header")]
    HeaderTruncated(Format),
    /// A version of the format that is not known here.
    #[error("{format} of version {major}.{minor} is not known")]
    UnsupportedVersion {
        /// The format.
        format: Format,
        /// The version's number.
        major: u32,
        /// The number after the point; 0 for formats that have none.
        minor: u32,
    },
    /// An unsupported compression, by its usual name.
    #[error("compressed with {0}, which is not supported; decompress it first")]
    UnsupportedCompression(&'static str),
    /// It is compressed, but nothing could be decompressed.
    #[error("the {0} stream is corrupt or cut short at its beginning")]
    Corrupt(Compression),
}
