//! A buffer that counts the bytes it takes from a source.

use std::io::{self, Read};

/// Bytes read from the source at a time for decompression.
const BUFFER: usize = 128 << 10;

pub(crate) struct Input<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    taken: u64,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(source: R) -> Self {
        Input {
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            taken: 0,
        }
    }

    /// Bytes read from the source and passed on.
    pub(crate) fn consumed(&self) -> u64 {
        self.taken - (self.end - self.start) as u64
    }

    /// The next `count` bytes, or fewer if the source ends earlier. They stay in the buffer.
    pub(crate) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        self.buffer.resize(self.buffer.len().max(count), 0);
        while self.end - self.start < count {
            let taken = take(&mut self.source, &mut self.buffer[self.end..])?;
            if taken == 0 {
                break;
            }
            self.end += taken;
            self.taken += taken as u64;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// The buffered bytes; if there are none, the result of one read. Empty at the end of the
    /// source.
    pub(crate) fn fill(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            if self.buffer.len() < BUFFER {
                self.buffer = vec![0; BUFFER];
            }
            self.start = 0;
            self.end = take(&mut self.source, &mut self.buffer)?;
            self.taken += self.end as u64;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// The buffered bytes.
    pub(crate) fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Consumes `count` of the bytes from [`fill`](Self::fill).
    pub(crate) fn consume(&mut self, count: usize) {
        self.start += count;
    }

    /// The next byte; `None` at the end of the source.
    pub(crate) fn octet(&mut self) -> io::Result<Option<u8>> {
        let octet = self.fill()?.first().copied();
        if octet.is_some() {
            self.consume(1);
        }
        Ok(octet)
    }

    /// Reads buffered bytes, or directly from the source if there are none.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.start < self.end {
            let count = out.len().min(self.end - self.start);
            out[..count].copy_from_slice(&self.buffer[self.start..self.start + count]);
            self.start += count;
            return Ok(count);
        }
        let count = take(&mut self.source, out)?;
        self.taken += count as u64;
        Ok(count)
    }
}

/// Reads, again when a signal came between.
fn take(source: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(out) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A source must not claim more than there was room for.
            done => return done.map(|count| count.min(out.len())),
        }
    }
}
