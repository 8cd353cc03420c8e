//! lz4: a sequence of frames (version 1.6.4 of the LZ4 frame format), and frames to be skipped.
//!
//! Blocks are decompressed by `lz4_flex`; frames are read here, because a frame that is cut short is a fault to us and
//! other frames may follow. Left out: dictionaries, and the format of the first versions of the lz4 command.

mod xxhash;

use std::io::{self, Read};

use lz4_flex::block::decompress_into_with_dict;

use super::Pulled;
use super::input::Input;
use crate::fault::Fault;
use xxhash::Xxh32;

const MAGIC: u32 = 0x184d_2204;
/// The magic of a frame to be skipped, without its lowest four bits.
const SKIPPED: u32 = 0x184d_2a50;
/// How far back a block may refer to blocks before it.
const HISTORY: usize = 64 << 10;

/// The header of a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// The largest block, in bytes.
    block_max: usize,
    /// Blocks refer to blocks before them.
    is_linked: bool,
    /// Each block has a checksum.
    checks_blocks: bool,
    /// The frame has a checksum.
    checks_content: bool,
    /// The bytes of the frame, decompressed.
    size: Option<u64>,
}

pub(crate) struct Lz4 {
    /// `None` between frames.
    frame: Option<Frame>,
    /// A block as it is in the file.
    block: Vec<u8>,
    /// History, then the last block decompressed, up to `end`.
    window: Vec<u8>,
    end: usize,
    /// The first byte of the window that was not passed on.
    next: usize,
    /// Bytes of the frame so far, and their checksum.
    size: u64,
    content: Xxh32,
    broken: Option<Fault>,
}

/// The result of reading a header or a block.
enum Step {
    More,
    End,
    Broken(Fault),
}

/// Returns if the file ends or does not decompress; else the value.
macro_rules! or_return {
    ($value:expr, $fault:ident) => {
        match $value {
            Some(value) => value,
            None => return Ok(Step::Broken(Fault::$fault)),
        }
    };
}

impl Lz4 {
    pub(crate) fn new() -> Self {
        Lz4 {
            frame: None,
            block: Vec::new(),
            window: Vec::new(),
            end: 0,
            next: 0,
            size: 0,
            content: Xxh32::new(),
            broken: None,
        }
    }

    pub(crate) fn pull<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
    ) -> io::Result<Pulled> {
        loop {
            if self.next < self.end {
                let count = out.len().min(self.end - self.next);
                out[..count].copy_from_slice(&self.window[self.next..self.next + count]);
                self.next += count;
                return Ok(Pulled::Octets(count));
            }
            if let Some(fault) = self.broken {
                return Ok(Pulled::Broken(fault));
            }
            let step = match self.frame {
                None => self.begin(input)?,
                Some(frame) => self.decompress(frame, input)?,
            };
            match step {
                Step::More => {}
                Step::End => return Ok(Pulled::End),
                Step::Broken(fault) => self.broken = Some(fault),
            }
        }
    }

    /// Reads the header of a frame, or skips a frame.
    fn begin<R: Read>(&mut self, input: &mut Input<R>) -> io::Result<Step> {
        if input.fill()?.is_empty() {
            return Ok(Step::End);
        }
        let magic = or_return!(number(input)?, CompressionTruncated);
        if magic & !0xf == SKIPPED {
            let length = or_return!(number(input)?, CompressionTruncated);
            return Ok(match skip(input, length)? {
                true => Step::More,
                false => Step::Broken(Fault::CompressionTruncated),
            });
        }
        if magic != MAGIC {
            return Ok(Step::Broken(Fault::CompressionCorrupt));
        }
        let mut header = [0; 10];
        let [flags, sizes] = or_return!(octets(input)?, CompressionTruncated);
        (header[0], header[1]) = (flags, sizes);
        let mut length = 2;
        let size = match flags & 8 {
            0 => None,
            _ => {
                let size: [u8; 8] = or_return!(octets(input)?, CompressionTruncated);
                header[2..].copy_from_slice(&size);
                length = 10;
                Some(u64::from_le_bytes(size))
            }
        };
        let is_known = flags & 0xc2 == 0x40 && sizes & 0x8f == 0 && sizes >= 0x40;
        let has_dictionary = flags & 1 != 0;
        if !is_known || has_dictionary {
            return Ok(Step::Broken(Fault::CompressionCorrupt));
        }
        let [check] = or_return!(octets(input)?, CompressionTruncated);
        if (Xxh32::of(&header[..length]) >> 8) as u8 != check {
            return Ok(Step::Broken(Fault::CompressionCorrupt));
        }
        self.frame = Some(Frame {
            // 4: 64 KiB, and four times as much with each step.
            block_max: 1 << (8 + 2 * (sizes >> 4)),
            is_linked: flags & 0x20 == 0,
            checks_blocks: flags & 0x10 != 0,
            checks_content: flags & 4 != 0,
            size,
        });
        (self.end, self.next, self.size) = (0, 0, 0);
        self.content = Xxh32::new();
        Ok(Step::More)
    }

    /// Decompresses the next block, or checks the end of the frame.
    fn decompress<R: Read>(&mut self, frame: Frame, input: &mut Input<R>) -> io::Result<Step> {
        let head = or_return!(number(input)?, CompressionTruncated);
        if head == 0 {
            return self.finish(frame, input);
        }
        let (length, is_plain) = ((head & 0x7fff_ffff) as usize, head >> 31 != 0);
        if length > frame.block_max {
            return Ok(Step::Broken(Fault::CompressionCorrupt));
        }
        let is_whole = gather(input, &mut self.block, length)?;
        if !is_whole && !is_plain {
            return Ok(Step::Broken(Fault::CompressionTruncated));
        }
        if is_whole && frame.checks_blocks {
            let check = or_return!(number(input)?, CompressionTruncated);
            if check != Xxh32::of(&self.block) {
                return Ok(Step::Broken(Fault::CompressionCorrupt));
            }
        }
        let start = self.make_room(frame);
        let (history, rest) = self.window.split_at_mut(start);
        let room = &mut rest[..frame.block_max];
        let length = if is_plain {
            room[..self.block.len()].copy_from_slice(&self.block);
            self.block.len()
        } else {
            let done = decompress_into_with_dict(&self.block, room, history);
            or_return!(done.ok(), CompressionCorrupt)
        };
        if frame.checks_content {
            self.content.add(&room[..length]);
        }
        self.size += length as u64;
        self.end = start + length;
        Ok(match is_whole {
            true => Step::More,
            // The bytes that were read count.
            false => Step::Broken(Fault::CompressionTruncated),
        })
    }

    /// Moves the history to the front, and makes room for a block after it. Returns where the room starts.
    fn make_room(&mut self, frame: Frame) -> usize {
        let keep = if frame.is_linked {
            HISTORY.min(self.end)
        } else {
            0
        };
        self.window.copy_within(self.end - keep..self.end, 0);
        let length = HISTORY + frame.block_max;
        if self.window.len() < length {
            self.window.resize(length, 0);
        }
        (self.end, self.next) = (keep, keep);
        keep
    }

    fn finish<R: Read>(&mut self, frame: Frame, input: &mut Input<R>) -> io::Result<Step> {
        if frame.checks_content {
            let check = or_return!(number(input)?, CompressionTruncated);
            if check != self.content.value() {
                return Ok(Step::Broken(Fault::CompressionCorrupt));
            }
        }
        if frame.size.is_some_and(|size| size != self.size) {
            return Ok(Step::Broken(Fault::CompressionCorrupt));
        }
        self.frame = None;
        Ok(Step::More)
    }
}

/// The next `N` bytes; `None` if the file ends before.
fn octets<const N: usize>(input: &mut Input<impl Read>) -> io::Result<Option<[u8; N]>> {
    let mut octets = [0; N];
    for octet in &mut octets {
        match input.octet()? {
            Some(next) => *octet = next,
            None => return Ok(None),
        }
    }
    Ok(Some(octets))
}

fn number(input: &mut Input<impl Read>) -> io::Result<Option<u32>> {
    Ok(octets(input)?.map(u32::from_le_bytes))
}

/// Reads `length` bytes in place of what `into` has. Returns `false` if the file ends before.
fn gather(input: &mut Input<impl Read>, into: &mut Vec<u8>, length: usize) -> io::Result<bool> {
    into.clear();
    while into.len() < length {
        let octets = input.fill()?;
        if octets.is_empty() {
            return Ok(false);
        }
        let count = octets.len().min(length - into.len());
        into.extend_from_slice(&octets[..count]);
        input.consume(count);
    }
    Ok(true)
}

/// Skips `length` bytes. Returns `false` if the file ends before.
pub(super) fn skip(input: &mut Input<impl Read>, length: u32) -> io::Result<bool> {
    let mut left = length as usize;
    while left > 0 {
        let count = input.fill()?.len().min(left);
        if count == 0 {
            return Ok(false);
        }
        input.consume(count);
        left -= count;
    }
    Ok(true)
}
