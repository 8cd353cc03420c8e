//! gzip (RFC 1952): a sequence of members, each checked against its CRC and length.
//!
//! Unlike readers for whole streams, this returns the data before a fault even if the stream is corrupt.

use std::io::{self, Read};

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::Pulled;
use super::input::Input;
use crate::fault::Fault;

pub(crate) struct Gzip {
    inflate: Decompress,
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
            inflate: Decompress::new(false),
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

    /// Inflates once; `None` when that gave nothing but there may be more.
    fn body<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
    ) -> io::Result<Option<Pulled>> {
        let octets = input.fill()?;
        let at_end = octets.is_empty();
        let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(octets, out, FlushDecompress::None);
        let taken = (self.inflate.total_in() - before_in) as usize;
        let given = (self.inflate.total_out() - before_out) as usize;
        input.consume(taken);
        self.crc.update(&out[..given]);
        match status {
            Ok(Status::StreamEnd) => self.at = At::Trailer,
            Ok(_) if given == 0 && at_end => {
                return Ok(Some(Pulled::Broken(Fault::CompressionTruncated)));
            }
            // No progress although there was something to work on and room for it.
            Ok(_) if given == 0 && taken == 0 => self.at = At::Broken,
            Ok(_) => {}
            Err(_) => self.at = At::Broken,
        }
        Ok((given > 0).then_some(Pulled::Octets(given)))
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
        self.inflate.reset(false);
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
