//! gzip (RFC 1952): a sequence of members, each checked against its CRC and length.
//!
//! Unlike readers for whole streams, this returns the data before a fault even if the stream is corrupt. The decoder
//! works in a window of our own, because a decoder with a hidden window drops what is left in it when it finds a fault.

use std::io::{self, Read};
use std::ops::Range;

use flate2::Crc;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use super::Pulled;
use super::input::Input;
use crate::fault::Fault;

/// How far back deflate refers (RFC 1951, section 2).
const WINDOW: usize = 32 << 10;

pub(crate) struct Gzip {
    inflate: Box<DecompressorOxide>,
    /// The octets inflated last; the next ones are written behind them, and at the start again.
    window: Box<[u8]>,
    /// Octets of the window that were not returned yet. Its end is where the next ones are written.
    ready: Range<usize>,
    crc: Crc,
    at: At,
}

/// Where in the file the next octet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    FirstHeader,
    Body,
    Trailer,
    /// Between members, where zeros may pad.
    NextHeader,
    Broken,
}

/// RFC 1952, 2.3.1: the bits of FLG.
mod flag {
    pub(super) const HEADER_CRC: u8 = 1 << 1;
    pub(super) const EXTRA: u8 = 1 << 2;
    pub(super) const NAME: u8 = 1 << 3;
    pub(super) const COMMENT: u8 = 1 << 4;
    pub(super) const RESERVED: u8 = 0xe0;
}

/// How much of a header or trailer there was.
enum Part<T> {
    Whole(T),
    Absent,
    Broken(Fault),
}

impl Gzip {
    pub(crate) fn new() -> Self {
        Gzip {
            inflate: Box::default(),
            window: vec![0; WINDOW].into_boxed_slice(),
            ready: 0..0,
            crc: Crc::new(),
            at: At::FirstHeader,
        }
    }

    pub(crate) fn pull<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
    ) -> io::Result<Pulled> {
        loop {
            if !self.ready.is_empty() {
                return Ok(Pulled::Octets(self.give(out)));
            }
            match self.at {
                At::FirstHeader | At::NextHeader => match self.header(input)? {
                    Part::Whole(()) => self.at = At::Body,
                    Part::Absent => return Ok(Pulled::End),
                    Part::Broken(fault) => return Ok(Pulled::Broken(fault)),
                },
                At::Body => {
                    if let Some(pulled) = self.body(input, out)? {
                        return Ok(pulled);
                    }
                }
                At::Trailer => match self.trailer(input)? {
                    Part::Broken(fault) => return Ok(Pulled::Broken(fault)),
                    Part::Whole(()) | Part::Absent => self.at = At::NextHeader,
                },
                At::Broken => return Ok(Pulled::Broken(Fault::CompressionCorrupt)),
            }
        }
    }

    /// Inflates until `out` is full, or no more input is there; `None` when that gave nothing but there may be more.
    fn body<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
    ) -> io::Result<Option<Pulled>> {
        let mut filled = 0;
        loop {
            let octets = input.fill()?;
            let at_end = octets.is_empty();
            let start = self.ready.end % WINDOW;
            let (status, taken, given) = decompress(
                &mut self.inflate,
                octets,
                &mut self.window,
                start,
                TINFL_FLAG_HAS_MORE_INPUT,
            );
            input.consume(taken);
            self.ready = start..start + given;
            self.crc.update(&self.window[self.ready.clone()]);
            match status {
                TINFLStatus::Done => self.at = At::Trailer,
                TINFLStatus::NeedsMoreInput if given == 0 && at_end => {
                    return Ok(Some(Pulled::Broken(Fault::CompressionTruncated)));
                }
                TINFLStatus::NeedsMoreInput | TINFLStatus::HasMoreOutput => {}
                _ => self.at = At::Broken,
            }
            filled += self.give(&mut out[filled..]);
            let is_over = filled == out.len() || self.at != At::Body;
            if is_over || input.buffered().is_empty() {
                return Ok((filled > 0).then_some(Pulled::Octets(filled)));
            }
        }
    }

    /// Moves octets that are ready to `out`; returns how many.
    fn give(&mut self, out: &mut [u8]) -> usize {
        let count = self.ready.len().min(out.len());
        let from = self.ready.start;
        out[..count].copy_from_slice(&self.window[from..from + count]);
        self.ready.start += count;
        count
    }

    fn header<R: Read>(&mut self, input: &mut Input<R>) -> io::Result<Part<()>> {
        let first = loop {
            match input.octet()? {
                None => return Ok(Part::Absent),
                Some(0) if self.at == At::NextHeader => {}
                Some(octet) => break octet,
            }
        };
        let Some([second, method, flags, _, _, _, _, _, _]) = take::<R, 9>(input)? else {
            return Ok(Part::Broken(if first == 0x1f {
                Fault::CompressionTruncated
            } else {
                Fault::CompressionCorrupt
            }));
        };
        if [first, second, method] != [0x1f, 0x8b, 8] || flags & flag::RESERVED != 0 {
            return Ok(Part::Broken(Fault::CompressionCorrupt));
        }
        if !skip_fields(input, flags)? {
            return Ok(Part::Broken(Fault::CompressionTruncated));
        }
        self.inflate.init();
        self.ready = 0..0;
        self.crc.reset();
        Ok(Part::Whole(()))
    }

    fn trailer<R: Read>(&mut self, input: &mut Input<R>) -> io::Result<Part<()>> {
        let Some([a, b, c, d, e, f, g, h]) = take::<R, 8>(input)? else {
            return Ok(Part::Broken(Fault::CompressionTruncated));
        };
        let right = u32::from_le_bytes([a, b, c, d]) == self.crc.sum()
            && u32::from_le_bytes([e, f, g, h]) == self.crc.amount();
        Ok(if right {
            Part::Whole(())
        } else {
            Part::Broken(Fault::CompressionCorrupt)
        })
    }
}

/// The next `N` octets; `None` if the source ends earlier.
fn take<R: Read, const N: usize>(input: &mut Input<R>) -> io::Result<Option<[u8; N]>> {
    let mut octets = [0; N];
    for octet in &mut octets {
        match input.octet()? {
            Some(taken) => *octet = taken,
            None => return Ok(None),
        }
    }
    Ok(Some(octets))
}

/// Passes over the fields after the fixed ones (RFC 1952, 2.3); false if the source ends earlier.
fn skip_fields<R: Read>(input: &mut Input<R>, flags: u8) -> io::Result<bool> {
    if flags & flag::EXTRA != 0 {
        let Some(length) = take::<R, 2>(input)? else {
            return Ok(false);
        };
        for _ in 0..u16::from_le_bytes(length) {
            if input.octet()?.is_none() {
                return Ok(false);
            }
        }
    }
    for text in [flag::NAME, flag::COMMENT] {
        if flags & text != 0 && !skip_text(input)? {
            return Ok(false);
        }
    }
    Ok(flags & flag::HEADER_CRC == 0 || take::<R, 2>(input)?.is_some())
}

/// Skips bytes up to a zero; false if the source ends earlier.
fn skip_text<R: Read>(input: &mut Input<R>) -> io::Result<bool> {
    loop {
        match input.octet()? {
            None => return Ok(false),
            Some(0) => return Ok(true),
            Some(_) => {}
        }
    }
}
