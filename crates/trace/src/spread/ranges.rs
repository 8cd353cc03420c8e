//! Finds the first record of a range. A file is divided at arbitrary bytes, so that nothing has to read it first.
//!
//! Only pcap and pcapng files without compression can be divided. The first record is found by plausibility. Whether it
//! was found exactly shows afterwards: the range before must end where this one starts. A range of a pcapng file needs the
//! interfaces that were described before it. The first ones of the file are a guess, too.

use capfile::{Block, Format, Reader, find_block};

/// Length of the header of a pcap file.
const HEADER_LEN: usize = 24;

/// Bytes to search for the first record: the longest record, and a few after it.
pub const WINDOW: usize = 1 << 20;

/// Records in a row that must be plausible.
const CHAIN: usize = 8;

/// Length of a record's header.
const RECORD_LEN: usize = 16;

/// The longest captured packet.
const CAPTURED_MAX: u32 = 262_144;

/// The largest difference between the times of two records in a row, in seconds: two days.
const GAP_S: u32 = 172_800;

/// How a pcap file writes its numbers.
struct Layout {
    big: bool,
    /// Units of a fraction in a second.
    second: u32,
}

impl Layout {
    /// `None` for other formats, and for pcap files whose records have other headers.
    fn of(header: &[u8]) -> Option<Layout> {
        let big = |at: usize| {
            header
                .get(at..at + 4)?
                .try_into()
                .ok()
                .map(u32::from_be_bytes)
        };
        let magic = big(0)?;
        let (big, second) = match (magic, magic.swap_bytes()) {
            (0xa1b2_c3d4, _) => (true, 1_000_000),
            (0xa1b2_3c4d, _) => (true, 1_000_000_000),
            (_, 0xa1b2_c3d4) => (false, 1_000_000),
            (_, 0xa1b2_3c4d) => (false, 1_000_000_000),
            _ => return None,
        };
        let version = header.get(4..8)?;
        let is_usual = match big {
            true => version == [0, 2, 0, 4],
            false => version == [2, 0, 4, 0],
        };
        (is_usual && header.len() >= HEADER_LEN).then_some(Layout { big, second })
    }

    fn number(&self, octets: &[u8], at: usize) -> Option<u32> {
        let octets = octets.get(at..at + 4)?.try_into().ok()?;
        Some(match self.big {
            true => u32::from_be_bytes(octets),
            false => u32::from_le_bytes(octets),
        })
    }

    /// Seconds of the record at `at`, and where the next record begins; `None` if it is no record. `Some(None)` if the
    /// window ends before its header does.
    fn record(&self, window: &[u8], at: usize) -> Option<Option<(u32, usize)>> {
        if at + RECORD_LEN > window.len() {
            return Some(None);
        }
        let [seconds, fraction, captured, length] =
            [0, 4, 8, 12].map(|offset| self.number(window, at + offset).unwrap_or(u32::MAX));
        let is_plausible = fraction < self.second
            && captured <= CAPTURED_MAX
            && captured <= length
            && captured > 0;
        is_plausible.then_some(Some((seconds, at + RECORD_LEN + captured as usize)))
    }

    /// Whether records follow one another from `at` on, as far as the window goes. `is_whole`: the file ends with it.
    /// No record may be earlier than `earliest_s`.
    fn is_chain(&self, window: &[u8], mut at: usize, is_whole: bool, earliest_s: u32) -> bool {
        let mut before: Option<u32> = None;
        for _ in 0..CHAIN {
            match self.record(window, at) {
                None => return false,
                // A window that is not full ends with the file. There, fewer records have to do, if the last one ends
                // with it.
                Some(None) => {
                    let is_file_end = is_whole && at == window.len();
                    return before.is_some() && is_file_end;
                }
                Some(Some((seconds, next))) => {
                    if seconds < earliest_s {
                        return false;
                    }
                    if before.is_some_and(|before| before.abs_diff(seconds) > GAP_S) {
                        return false;
                    }
                    (before, at) = (Some(seconds), next);
                }
            }
        }
        true
    }
}

/// What the ranges of a file need before their first record, by the window that the file begins with. `None` if the file
/// cannot be divided.
#[must_use]
pub fn header(window: &[u8]) -> Option<Vec<u8>> {
    if let Some(layout) = Layout::of(window) {
        let (header, records) = window.split_at(HEADER_LEN);
        let is_whole = window.len() < WINDOW;
        return layout
            .is_chain(records, 0, is_whole, 0)
            .then(|| header.to_vec());
    }
    let mut reader = Reader::new(window).ok()?;
    if reader.format() != Format::PcapNg || reader.compression().is_some() {
        return None;
    }
    reader.read_block(&mut Block::new()).ok()?;
    reader.division().map(|division| division.preamble)
}

/// Offset in the window of the first record; `None` if there is none. The window begins anywhere in the file. It has
/// [`WINDOW`] bytes, or ends with the file.
#[must_use]
pub fn next_record(header: &[u8], window: &[u8]) -> Option<usize> {
    let Some(layout) = Layout::of(header) else {
        return find_block(header, window);
    };
    let is_whole = window.len() < WINDOW;
    let first = |earliest_s: u32| {
        (0..window.len()).find(|&at| layout.is_chain(window, at, is_whole, earliest_s))
    };
    // Four bytes after the start of each record, lengths and addresses look like records, too, with fractions as seconds.
    // Only captures that count from their own start have such small seconds.
    first(layout.second).or_else(|| first(0))
}
