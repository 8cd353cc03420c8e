//! Reads values.

use super::{Codec, Part, Timeline};

/// Why bytes are no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {fault}")]
pub struct ReadError {
    /// The part that could not be read: [`Part::NAME`].
    pub part: &'static str,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It has a field that this program does not know. [`super::names`] of the program that wrote it has its name.
    #[error("unknown field {0}")]
    Unknown(u8),
    /// Its fields are not in the order of their numbers.
    #[error("field {0} is out of order")]
    Order(u8),
    /// A field has an impossible value.
    #[error("impossible value of field {0}")]
    Value(&'static str),
    /// The bytes end within it.
    #[error("incomplete")]
    Short,
    /// More bytes follow it.
    #[error("octets behind its end")]
    Long,
}

/// Reads what a [`super::Writer`] wrote. Other bytes are refused: bytes that are read are those that would be written.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    timeline: Timeline,
    part: &'static str,
    /// Name of the field that is being read.
    field: &'static str,
    /// Number of the next field, or of the one whose value is being read; 0 at the end of the part.
    next: u8,
    /// The value of that field is being read, or has been.
    is_taken: bool,
    error: Option<ReadError>,
}

impl<'a> Reader<'a> {
    /// Reads a value that all of `octets` are.
    ///
    /// # Errors
    /// They are not.
    pub fn read<P: Part + Default>(octets: &'a [u8], timeline: Timeline) -> Result<P, ReadError> {
        let mut value = P::default();
        let mut reader = Reader::new(octets, timeline);
        reader.next_into(&mut value)?;
        match reader.rest.is_empty() {
            true => Ok(value),
            false => Err(ReadError {
                part: P::NAME,
                fault: Fault::Long,
            }),
        }
    }

    /// Reads values from the start of `octets`.
    #[must_use]
    pub const fn new(octets: &'a [u8], timeline: Timeline) -> Reader<'a> {
        Reader {
            rest: octets,
            timeline,
            part: "",
            field: "",
            next: 0,
            is_taken: false,
            error: None,
        }
    }

    /// Sets a value to the next one. Parts in it that are absent stay as they are, so they must be as new.
    ///
    /// # Errors
    /// The octets are not one. The value is then unspecified, and nothing more can be read.
    pub fn next_into<P: Part>(&mut self, value: &mut P) -> Result<(), ReadError> {
        self.within(value);
        match self.error {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// What has not been read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[cold]
    fn fail(&mut self, fault: Fault) {
        let part = self.part;
        self.error.get_or_insert(ReadError { part, fault });
        (self.rest, self.next, self.is_taken) = (&[], 0, false);
    }

    fn octet(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((first, rest)) => {
                self.rest = rest;
                *first
            }
            None => {
                self.fail(Fault::Short);
                0
            }
        }
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        match self.rest.split_at_checked(count) {
            Some((head, rest)) => {
                self.rest = rest;
                head
            }
            None => {
                self.fail(Fault::Short);
                &[]
            }
        }
    }

    /// The number of the next field, once the value before it has been read.
    #[inline]
    fn advance(&mut self) {
        if self.is_taken {
            let last = self.next;
            self.next = self.octet();
            self.is_taken = false;
            if self.next != 0 && self.next <= last {
                self.fail(Fault::Order(self.next));
            }
        }
    }
}

impl Codec for Reader<'_> {
    const READS: bool = true;

    #[inline]
    fn field(&mut self, number: u8, name: &'static str, _: bool) -> bool {
        self.advance();
        if self.next != 0 && self.next < number {
            self.fail(Fault::Unknown(self.next));
        }
        if self.next != number {
            return false;
        }
        (self.field, self.is_taken) = (name, true);
        true
    }

    #[inline]
    fn wide(&mut self, value: &mut u64) {
        let (mut wide, mut shift) = (0u64, 0);
        loop {
            let octet = self.octet();
            let bits = u64::from(octet & 0x7f);
            // A tenth octet has one bit, and no number has a last octet of 0.
            if shift == 63 && octet > 1 || shift > 0 && octet == 0 {
                return self.refuse();
            }
            wide |= bits << shift;
            if octet & 0x80 == 0 {
                break;
            }
            shift += 7;
        }
        *value = wide;
    }

    #[inline]
    fn octets(&mut self, value: &mut [u8]) {
        let read = self.take(value.len());
        if read.len() == value.len() {
            value.copy_from_slice(read);
        }
    }

    #[inline]
    fn run(&mut self, value: &mut Vec<u8>, max: usize) {
        let mut count = 0;
        self.wide(&mut count);
        if count > max as u64 {
            return self.refuse();
        }
        let octets = self.take(count as usize);
        value.clear();
        value.extend_from_slice(octets);
    }

    #[inline]
    fn within<P: Part>(&mut self, value: &mut P) -> bool {
        if self.error.is_some() {
            return true;
        }
        let outer = (self.part, self.field, self.next);
        (self.part, self.next, self.is_taken) = (P::NAME, 0, true);
        self.advance();
        let has_fields = self.next != 0;
        value.exchange(self);
        self.advance();
        if self.next != 0 {
            self.fail(Fault::Unknown(self.next));
        }
        (self.part, self.field, self.next) = outer;
        // A part is the value of a field, which has been read.
        self.is_taken = true;
        has_fields
    }

    fn refuse(&mut self) {
        self.fail(Fault::Value(self.field));
    }

    fn timeline(&self) -> Timeline {
        self.timeline
    }

    fn undo(&mut self) {}
}
