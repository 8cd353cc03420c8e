//! zstd (RFC 8878) without C: a sequence of frames.
//!
//! The decoder keeps a frame's window for references and returns it only after the last block. At a fault, an empty last
//! block therefore ends the frame, so that no data before the fault is lost. Unlike the decoder in C, this one may also
//! return up to 128 KiB of the block that is corrupt.

use std::io::{self, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::Pulled;
use super::input::Input;
use crate::fault::Fault;

/// The largest window a frame may ask for: 128 MiB, as with the C library.
const WINDOW_MAX: u64 = 1 << 27;

/// A last block without data (RFC 8878, 3.1.1.2), and room for a checksum.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// First bytes of a skippable frame, and of its length.
const SKIPPABLE_LEN: usize = 8;

pub(crate) struct Zstd {
    decoder: FrameDecoder,
    /// The last frame was whole, and nothing of another came yet.
    between: bool,
    /// The data of the last frame was not compared with its checksum yet: the sum covers what was returned.
    unchecked: bool,
    fault: Option<Fault>,
}

impl Zstd {
    #[expect(clippy::unnecessary_wraps, reason = "the decoder in C can fail here")]
    pub(crate) fn new() -> io::Result<Self> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_MAX);
        Ok(Zstd {
            decoder,
            between: true,
            unchecked: false,
            fault: None,
        })
    }

    pub(crate) fn pull<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
    ) -> io::Result<Pulled> {
        loop {
            match self.decoder.read(out)? {
                0 => {}
                count => return Ok(Pulled::Octets(count)),
            }
            if std::mem::take(&mut self.unchecked) && self.is_wrong() {
                self.fault = Some(Fault::CompressionCorrupt);
            }
            if let Some(fault) = self.fault {
                return Ok(Pulled::Broken(fault));
            }
            if self.between && input.fill()?.is_empty() {
                return Ok(Pulled::End);
            }
            match self.between {
                true => self.begin(input)?,
                false => self.block(input)?,
            }
        }
    }

    /// Reads a frame's header, or skips a frame without data.
    fn begin<R: Read>(&mut self, input: &mut Input<R>) -> io::Result<()> {
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, rest @ ..] = input.peek(SKIPPABLE_LEN)?
            && let Some(length) = rest.first_chunk()
        {
            let length = u32::from_le_bytes(*length);
            input.consume(SKIPPABLE_LEN);
            if !super::lz4::skip(input, length)? {
                self.fault = Some(Fault::CompressionTruncated);
            }
            return Ok(());
        }
        let mut tap = Tap::new(input);
        let done = self.decoder.reset(&mut tap).is_ok();
        match tap.fault()? {
            _ if done => self.between = false,
            fault => self.fault = Some(fault),
        }
        Ok(())
    }

    /// Decodes a block of the frame.
    fn block<R: Read>(&mut self, input: &mut Input<R>) -> io::Result<()> {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        let mut tap = Tap::new(input);
        let done = self.decoder.decode_blocks(&mut tap, one);
        match (done, tap.fault()?) {
            (Ok(false), _) => {}
            (Ok(true), _) => (self.between, self.unchecked) = (true, true),
            (Err(_), fault) => {
                self.fault = Some(fault);
                let one = BlockDecodingStrategy::UptoBlocks(1);
                // If this fails too, the window is lost.
                let _ = self.decoder.decode_blocks(&LAST_BLOCK[..], one);
            }
        }
        Ok(())
    }

    /// Whether the last frame has a checksum that is not its data's.
    fn is_wrong(&self) -> bool {
        let said = self.decoder.get_checksum_from_data();
        said.is_some() && said != self.decoder.get_calculated_checksum()
    }
}

/// The input, and why it could not fill a read.
struct Tap<'a, R> {
    input: &'a mut Input<R>,
    ended: bool,
    error: Option<io::Error>,
}

impl<'a, R> Tap<'a, R> {
    fn new(input: &'a mut Input<R>) -> Self {
        Tap {
            input,
            ended: false,
            error: None,
        }
    }

    /// The fault, if decoding failed.
    ///
    /// # Errors
    /// The source's own.
    fn fault(self) -> io::Result<Fault> {
        match (self.error, self.ended) {
            (Some(error), _) => Err(error),
            (None, true) => Ok(Fault::CompressionTruncated),
            (None, false) => Ok(Fault::CompressionCorrupt),
        }
    }
}

impl<R: Read> Read for Tap<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.input.read(out) {
            Ok(count) => {
                self.ended |= count == 0 && !out.is_empty();
                Ok(count)
            }
            Err(error) => {
                let kind = error.kind();
                self.error = Some(error);
                Err(kind.into())
            }
        }
    }
}
