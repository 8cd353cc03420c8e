//! Decompresses xz (version 1.2.1 of the format): a sequence of streams, with zeros as padding.
//!
//! Left out: streams that need more than `MEMORY_MAX` of memory. Start reading at [`Xz::pull`].

use std::io::{self, Read};

use lzma_rust2::{Action, Status, XzStream};

use super::Pulled;
use super::input::Input;
use crate::fault::Fault;

/// Memory that a stream may ask for, in KiB. `xz -9` asks for 64 MiB.
const MEMORY_MAX: u32 = 160 << 10;

/// Bytes decompressed at a time. Some output before an error within one step is lost, so steps are small. They are
/// equal in whatever portions the file is read, so that the loss is.
const STEP: usize = 512;

/// Streams are padded to a multiple of this length.
const PADDING: u64 = 4;

pub(crate) struct Xz {
    decoder: XzStream,
    /// The bytes of this step, and how many of them are decompressed.
    step: Vec<u8>,
    taken: usize,
    /// The last stream was whole, and nothing of another came yet.
    between: bool,
    /// Zeros after the last stream.
    padding: u64,
    broken: Option<Fault>,
}

impl Xz {
    pub(crate) fn new() -> Self {
        Xz {
            decoder: decoder(),
            step: Vec::with_capacity(STEP),
            taken: 0,
            between: true,
            padding: 0,
            broken: None,
        }
    }

    pub(crate) fn pull<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
    ) -> io::Result<Pulled> {
        while self.broken.is_none() {
            if self.taken == self.step.len() {
                self.next_step(input)?;
            }
            let octets = &self.step[self.taken..];
            let at_end = octets.is_empty();
            if self.between {
                let zeros = octets.iter().take_while(|octet| **octet == 0).count();
                let all = zeros == octets.len();
                self.padding += zeros as u64;
                self.taken += zeros;
                if all && !at_end {
                    continue;
                }
                if !self.padding.is_multiple_of(PADDING) {
                    break;
                }
                if at_end {
                    return Ok(Pulled::End);
                }
                (self.between, self.padding) = (false, 0);
                continue;
            }
            let action = if at_end { Action::Finish } else { Action::Run };
            let before = self.decoder.total_out();
            let done = self.decoder.process(octets, out, action);
            // Also after an error.
            let given = (self.decoder.total_out() - before) as usize;
            match done {
                Ok(done) => {
                    self.taken += done.bytes_consumed;
                    if done.status == Status::StreamEnd {
                        (self.decoder, self.between) = (decoder(), true);
                    } else if done.bytes_consumed == 0 && given == 0 {
                        self.broken = Some(at(at_end));
                    }
                }
                Err(_) => self.broken = Some(at(at_end)),
            }
            if given > 0 {
                return Ok(Pulled::Octets(given));
            }
        }
        Ok(Pulled::Broken(
            self.broken.unwrap_or(Fault::CompressionCorrupt),
        ))
    }

    /// Reads the bytes of the next step, none at the end.
    fn next_step<R: Read>(&mut self, input: &mut Input<R>) -> io::Result<()> {
        self.taken = 0;
        self.step.clear();
        while self.step.len() < STEP {
            let octets = input.fill()?;
            if octets.is_empty() {
                break;
            }
            let count = octets.len().min(STEP - self.step.len());
            self.step.extend_from_slice(&octets[..count]);
            input.consume(count);
        }
        Ok(())
    }
}

fn decoder() -> XzStream {
    XzStream::new_mem_limit(false, MEMORY_MAX)
}

/// What an error at this place is.
fn at(end: bool) -> Fault {
    if end {
        Fault::CompressionTruncated
    } else {
        Fault::CompressionCorrupt
    }
}
