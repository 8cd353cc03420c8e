//! zstd (RFC 8878): a sequence of frames.

use std::io::{self, Read};

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::Pulled;
use super::input::Input;
use crate::fault::Fault;

/// The largest window a frame may ask for, as a power of two; also the default limit of the zstd
/// command.
const WINDOW_LOG_MAX: u32 = 27;

/// Bytes decompressed at a time. Output before an error within one step is lost, so steps are
/// small.
const STEP: usize = 32 << 10;

pub(crate) struct Zstd {
    decoder: Decoder<'static>,
    /// The last frame was whole, and nothing of another came yet.
    between: bool,
    broken: bool,
}

impl Zstd {
    pub(crate) fn new() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
        Ok(Zstd {
            decoder,
            between: true,
            broken: false,
        })
    }

    pub(crate) fn pull<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
    ) -> io::Result<Pulled> {
        let mut given = 0;
        while !self.broken && given < out.len() {
            // Do not wait for more while there is something to give.
            let octets = if given > 0 {
                input.buffered()
            } else {
                input.fill()?
            };
            let at_end = octets.is_empty();
            if at_end && self.between {
                break;
            }
            let mut from = InBuffer::around(&octets[..octets.len().min(STEP)]);
            let step = (out.len() - given).min(4 * STEP);
            let mut to = OutBuffer::around(&mut out[given..given + step]);
            let done = self.decoder.run(&mut from, &mut to);
            let (taken, more) = (from.pos(), to.pos());
            input.consume(taken);
            given += more;
            match done {
                Ok(hint) => self.between = hint == 0,
                Err(_) => self.broken = true,
            }
            if taken == 0 && more == 0 {
                if at_end && given == 0 {
                    return Ok(Pulled::Broken(Fault::CompressionTruncated));
                }
                self.broken |= !at_end;
                break;
            }
        }
        Ok(match given {
            0 if self.broken => Pulled::Broken(Fault::CompressionCorrupt),
            0 => Pulled::End,
            _ => Pulled::Octets(given),
        })
    }
}
