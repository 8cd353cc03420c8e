//! The source of a file's bytes, and its decompression.

mod bzip2;
mod gzip;
mod input;
mod lz4;
mod xz;
#[cfg(feature = "zstd-c")]
mod zstd;
#[cfg(not(feature = "zstd-c"))]
#[path = "source/zstd_rust.rs"]
mod zstd;

use std::fmt;
use std::io::{self, Read};

use crate::fault::{Fault, OpenError};
use bzip2::Bzip2;
use gzip::Gzip;
use input::Input;
use lz4::Lz4;
use xz::Xz;
use zstd::Zstd;

/// Compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952), of one member or several.
    Gzip,
    /// zstd (RFC 8878), of one frame or several; windows of up to 128 MiB.
    Zstd,
    /// bzip2, of one stream or several.
    Bzip2,
    /// xz, of one stream or several; dictionaries of up to 128 MiB.
    Xz,
    /// lz4, of one frame or several, without dictionary.
    Lz4,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
            Compression::Xz => "xz",
            Compression::Lz4 => "lz4",
        })
    }
}

/// The result of reading bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pulled {
    /// This number of bytes, at least one. Fewer than there was room for if no more are available now.
    Octets(usize),
    /// The end.
    End,
    /// An unexpected end.
    Broken(Fault),
}

/// A source and its decompression.
pub(crate) struct Source<R> {
    input: Input<R>,
    decoder: Decoder,
}

enum Decoder {
    Plain,
    Gzip(Box<Gzip>),
    Zstd(Zstd),
    Bzip2(Bzip2),
    Xz(Box<Xz>),
    Lz4(Box<Lz4>),
}

/// The first bytes of unsupported compressions.
const UNSUPPORTED: [(&[u8], &str); 3] = [
    (b"\x1f\x9d", "compress"),
    (b"\x02\x21\x4c\x18", "lz4's legacy format"),
    (b"PK\x03\x04", "zip"),
];

impl<R: Read> Source<R> {
    /// Detects the compression by the first bytes.
    pub(crate) fn new(source: R) -> Result<Self, OpenError> {
        let mut input = Input::new(source);
        // Frames to be skipped are those of zstd and of lz4.
        while let [0x50..=0x5f, 0x2a, 0x4d, 0x18, rest @ ..] = input.peek(8)?
            && let Some(length) = rest.first_chunk()
        {
            let length = u32::from_le_bytes(*length);
            input.consume(8);
            if !lz4::skip(&mut input, length)? {
                break;
            }
        }
        let head = input.peek(6)?;
        if let Some((_, name)) = UNSUPPORTED
            .iter()
            .find(|(magic, _)| head.starts_with(magic))
        {
            return Err(OpenError::UnsupportedCompression(name));
        }
        let decoder = match head {
            [0x1f, 0x8b, 8, ..] => Decoder::Gzip(Box::new(Gzip::new())),
            // A frame, or a skippable frame without its length.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Decoder::Zstd(Zstd::new()?)
            }
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Decoder::Bzip2(Bzip2::new()),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Decoder::Xz(Box::new(Xz::new())),
            [0x04, 0x22, 0x4d, 0x18, ..] => Decoder::Lz4(Box::new(Lz4::new())),
            _ => Decoder::Plain,
        };
        Ok(Source { input, decoder })
    }

    pub(crate) fn compression(&self) -> Option<Compression> {
        match self.decoder {
            Decoder::Plain => None,
            Decoder::Gzip(_) => Some(Compression::Gzip),
            Decoder::Zstd(_) => Some(Compression::Zstd),
            Decoder::Bzip2(_) => Some(Compression::Bzip2),
            Decoder::Xz(_) => Some(Compression::Xz),
            Decoder::Lz4(_) => Some(Compression::Lz4),
        }
    }

    /// Bytes read from the source, before decompression.
    pub(crate) fn consumed(&self) -> u64 {
        self.input.consumed()
    }

    /// Reads bytes into `out`, which must not be empty.
    pub(crate) fn pull(&mut self, out: &mut [u8]) -> io::Result<Pulled> {
        match &mut self.decoder {
            Decoder::Plain => Ok(match self.input.read(out)? {
                0 => Pulled::End,
                count => Pulled::Octets(count),
            }),
            Decoder::Gzip(decoder) => decoder.pull(&mut self.input, out),
            Decoder::Zstd(decoder) => decoder.pull(&mut self.input, out),
            Decoder::Bzip2(decoder) => decoder.pull(&mut self.input, out),
            Decoder::Xz(decoder) => decoder.pull(&mut self.input, out),
            Decoder::Lz4(decoder) => decoder.pull(&mut self.input, out),
        }
    }
}
