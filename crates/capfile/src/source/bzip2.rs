//! bzip2: a sequence of streams, as parallel compressors write them.

use std::io::{self, Read};

use bzip2::{Decompress, Status};

use super::Pulled;
use super::input::Input;
use crate::fault::Fault;

pub(crate) struct Bzip2 {
    decoder: Decompress,
    /// The last stream was whole, and nothing of another came yet.
    between: bool,
    broken: bool,
}

impl Bzip2 {
    pub(crate) fn new() -> Self {
        Bzip2 {
            decoder: Decompress::new(false),
            between: true,
            broken: false,
        }
    }

    pub(crate) fn pull<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut [u8],
    ) -> io::Result<Pulled> {
        while !self.broken {
            let octets = input.fill()?;
            let at_end = octets.is_empty();
            if at_end && self.between {
                return Ok(Pulled::End);
            }
            self.between = false;
            let (before_in, before_out) = (self.decoder.total_in(), self.decoder.total_out());
            let done = self.decoder.decompress(octets, out);
            let taken = (self.decoder.total_in() - before_in) as usize;
            let given = (self.decoder.total_out() - before_out) as usize;
            input.consume(taken);
            match done {
                Ok(Status::StreamEnd) => {
                    self.decoder = Decompress::new(false);
                    self.between = true;
                }
                Ok(_) if given == 0 && at_end => {
                    return Ok(Pulled::Broken(Fault::CompressionTruncated));
                }
                // No progress although there was something to work on and room for it.
                Ok(_) if given == 0 && taken == 0 => self.broken = true,
                Ok(_) => {}
                Err(_) => self.broken = true,
            }
            if given > 0 {
                return Ok(Pulled::Octets(given));
            }
        }
        Ok(Pulled::Broken(Fault::CompressionCorrupt))
    }
}
