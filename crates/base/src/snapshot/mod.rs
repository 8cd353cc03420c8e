//! State as a value: what a session needs to go on, written as bytes and read back.
//!
//! A type lists its fields once, in [`Part::exchange`]; a [`Writer`] writes them and a [`Reader`] reads them, so that both
//! agree. The bytes follow from the values alone: equal values have equal bytes, and what is read is written again with
//! the same bytes.
//!
//! ```text
//! part      field... 0
//! field     number (1 octet, ascending), value
//! value     an unsigned integer: 7 bits an octet, the lowest first, the top bit set if more follow
//!           octets: their number, then they; or they alone if the type gives their number
//!           a list: its length, then its parts
//! ```
//!
//! A field with its default value is absent, and reading gives it that value. So a field can be added with a new number: older bytes lack it. An older
//! program refuses the newer field; [`names`] has the fields' names for its message. A number is never used again for
//! another field.

mod names;
mod read;
mod timeline;
mod write;

pub use names::{Name, names};
pub use read::{Fault, ReadError, Reader};
pub use timeline::Timeline;
pub use write::Writer;

use core::net::IpAddr;

use crate::time::Instant;

/// A value made of numbered fields.
pub trait Part {
    /// Its name in messages.
    const NAME: &'static str;

    /// Passes each field to the codec, in the order of their numbers.
    fn exchange<C: Codec>(&mut self, codec: &mut C);
}

/// An unsigned integer.
pub trait Number: Copy + Default + PartialEq {
    /// As the widest one.
    fn widen(self) -> u64;
    /// From the widest one; `None` if it is too large.
    fn narrow(wide: u64) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Number for $number {
            #[inline(always)]
            fn widen(self) -> u64 {
                u64::from(self)
            }

            #[inline(always)]
            fn narrow(wide: u64) -> Option<Self> {
                wide.try_into().ok()
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64);

impl Number for bool {
    fn widen(self) -> u64 {
        u64::from(self)
    }

    fn narrow(wide: u64) -> Option<bool> {
        match wide {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

/// Reads or writes fields. The first four methods are the codec's own; all others are made of them.
pub trait Codec: Sized {
    /// It reads: values are set.
    const READS: bool;

    /// A field begins. Writing: it is there if `there`. Reading: whether it comes next.
    fn field(&mut self, number: u8, name: &'static str, there: bool) -> bool;
    /// An unsigned integer.
    fn wide(&mut self, value: &mut u64);
    /// Octets whose number is known.
    fn octets(&mut self, value: &mut [u8]);
    /// As many octets as there are, `max` at most.
    fn run(&mut self, value: &mut Vec<u8>, max: usize);
    /// A part begins and ends. False if it had no fields.
    fn within<P: Part>(&mut self, value: &mut P) -> bool;
    /// What was read is not a value of this field.
    fn refuse(&mut self);
    /// How to read and write times.
    fn timeline(&self) -> Timeline;
    /// Writing: takes back the field that began last.
    fn undo(&mut self);

    /// An integer or a flag; absent if it is 0 or false.
    #[inline]
    fn number<N: Number>(&mut self, number: u8, name: &'static str, value: &mut N) {
        if self.field(number, name, *value != N::default()) {
            self.bare(value);
            if Self::READS && *value == N::default() {
                self.refuse();
            }
        } else if Self::READS {
            *value = N::default();
        }
    }

    /// An integer or a flag that may be missing.
    #[inline]
    fn maybe<N: Number>(&mut self, number: u8, name: &'static str, value: &mut Option<N>) {
        if self.field(number, name, value.is_some()) {
            let mut inner = value.unwrap_or_default();
            self.bare(&mut inner);
            *value = Some(inner);
        } else if Self::READS {
            *value = None;
        }
    }

    /// The integer of a field.
    #[inline]
    fn bare<N: Number>(&mut self, value: &mut N) {
        let mut wide = value.widen();
        self.wide(&mut wide);
        if Self::READS {
            match N::narrow(wide) {
                Some(narrow) => *value = narrow,
                None => self.refuse(),
            }
        }
    }

    /// One of several values, each with its code. The first one is absent.
    #[inline]
    fn choice<T: Copy + PartialEq>(
        &mut self,
        number: u8,
        name: &'static str,
        value: &mut T,
        all: &[(u8, T)],
    ) {
        let code = |value: T| all.iter().find(|(_, one)| *one == value);
        let default = all.first().map(|(_, value)| *value);
        if !self.field(number, name, Some(*value) != default) {
            if let (true, Some(default)) = (Self::READS, default) {
                *value = default;
            }
            return;
        }
        let mut wide = code(*value).map_or(0, |(code, _)| u64::from(*code));
        self.wide(&mut wide);
        if Self::READS {
            match all
                .iter()
                .skip(1)
                .find(|(code, _)| u64::from(*code) == wide)
            {
                Some((_, read)) => *value = *read,
                None => self.refuse(),
            }
        }
    }

    /// An array of octets; absent if all are 0.
    #[inline]
    fn array<const N: usize>(&mut self, number: u8, name: &'static str, value: &mut [u8; N]) {
        if self.field(number, name, *value != [0; N]) {
            self.octets(value);
            if Self::READS && *value == [0; N] {
                self.refuse();
            }
        } else if Self::READS {
            *value = [0; N];
        }
    }

    /// As many octets as there are, `max` at most; absent if there are none.
    #[inline]
    fn bytes(&mut self, number: u8, name: &'static str, value: &mut Vec<u8>, max: usize) {
        if self.field(number, name, !value.is_empty()) {
            self.run(value, max);
            if Self::READS && value.is_empty() {
                self.refuse();
            }
        } else if Self::READS {
            value.clear();
        }
    }

    /// The same, of a value that does not grow.
    #[inline]
    fn boxed(&mut self, number: u8, name: &'static str, value: &mut Box<[u8]>, max: usize) {
        let mut octets = core::mem::take(value).into_vec();
        self.bytes(number, name, &mut octets, max);
        *value = octets.into();
    }

    /// The same as [`Codec::bytes`], or missing.
    #[inline]
    fn maybe_bytes(
        &mut self,
        number: u8,
        name: &'static str,
        value: &mut Option<Vec<u8>>,
        max: usize,
    ) {
        if self.field(number, name, value.is_some()) {
            self.run(value.get_or_insert_default(), max);
        } else if Self::READS {
            *value = None;
        }
    }

    /// Text of `max` octets at most; absent if it is empty.
    #[inline]
    fn text(&mut self, number: u8, name: &'static str, value: &mut String, max: usize) {
        let mut octets = core::mem::take(value).into_bytes();
        self.bytes(number, name, &mut octets, max);
        match String::from_utf8(octets) {
            Ok(text) => *value = text,
            Err(_) => self.refuse(),
        }
    }

    /// A point in time, in milliseconds of the [`Timeline`]; absent if it is [`Instant::ZERO`].
    #[inline]
    fn time(&mut self, number: u8, name: &'static str, value: &mut Instant) {
        if self.field(number, name, *value != Instant::ZERO) {
            self.bare_time(value);
            if Self::READS && *value == Instant::ZERO {
                self.refuse();
            }
        } else if Self::READS {
            *value = Instant::ZERO;
        }
    }

    /// The same, or missing.
    #[inline]
    fn maybe_time(&mut self, number: u8, name: &'static str, value: &mut Option<Instant>) {
        if self.field(number, name, value.is_some()) {
            let mut inner = value.unwrap_or(Instant::ZERO);
            self.bare_time(&mut inner);
            *value = Some(inner);
        } else if Self::READS {
            *value = None;
        }
    }

    /// The time of a field.
    #[inline]
    fn bare_time(&mut self, value: &mut Instant) {
        let timeline = self.timeline();
        let mut wide = timeline.of(*value);
        self.wide(&mut wide);
        if Self::READS {
            *value = timeline.at(wide);
            // Another number would be written.
            if timeline.of(*value) != wide {
                self.refuse();
            }
        }
    }

    /// A deadline; absent if there is none, which is [`Instant::FAR_FUTURE`].
    #[inline]
    fn deadline(&mut self, number: u8, name: &'static str, value: &mut Instant) {
        let mut at = (*value != Instant::FAR_FUTURE).then_some(*value);
        self.maybe_time(number, name, &mut at);
        if Self::READS && at == Some(Instant::FAR_FUTURE) {
            self.refuse();
        }
        *value = at.unwrap_or(Instant::FAR_FUTURE);
    }

    /// An address, which may be missing: 4 or 16 octets.
    #[inline]
    fn address(&mut self, number: u8, name: &'static str, value: &mut Option<IpAddr>) {
        let mut octets = match value {
            None => Vec::new(),
            Some(IpAddr::V4(address)) => address.octets().to_vec(),
            Some(IpAddr::V6(address)) => address.octets().to_vec(),
        };
        self.bytes(number, name, &mut octets, 16);
        if Self::READS {
            *value = match octets.len() {
                0 => None,
                4 => <[u8; 4]>::try_from(&octets[..]).ok().map(IpAddr::from),
                16 => <[u8; 16]>::try_from(&octets[..]).ok().map(IpAddr::from),
                _ => {
                    self.refuse();
                    None
                }
            };
        }
    }

    /// A part; absent if it has no fields, and then what it was before.
    #[inline]
    fn part<P: Part>(&mut self, number: u8, name: &'static str, value: &mut P) {
        if self.field(number, name, true) && !self.within(value) {
            match Self::READS {
                true => self.refuse(),
                false => self.undo(),
            }
        }
    }

    /// A part that may be missing. `make` makes the value that is read into.
    #[inline]
    fn maybe_part<P: Part>(
        &mut self,
        number: u8,
        name: &'static str,
        value: &mut Option<P>,
        make: impl FnOnce() -> P,
    ) {
        if self.field(number, name, value.is_some()) {
            self.within(value.get_or_insert_with(make));
        } else if Self::READS {
            *value = None;
        }
    }

    /// Parts, `max` at most; absent if there are none.
    #[inline]
    fn list<P: Part + Default>(
        &mut self,
        number: u8,
        name: &'static str,
        value: &mut Vec<P>,
        max: usize,
    ) {
        if !self.field(number, name, !value.is_empty()) {
            if Self::READS {
                value.clear();
            }
            return;
        }
        let mut count = value.len() as u64;
        self.wide(&mut count);
        if Self::READS {
            if count == 0 || count > max as u64 {
                return self.refuse();
            }
            value.clear();
        }
        for at in 0..count as usize {
            if Self::READS {
                value.push(P::default());
            }
            if let Some(part) = value.get_mut(at) {
                self.within(part);
            }
        }
    }
}

#[cfg(test)]
mod tests;
