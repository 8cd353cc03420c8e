//! The names of all fields, for messages about bytes of another version.

use super::{Codec, Part, Timeline};

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// Its part: [`Part::NAME`].
    pub part: &'static str,
    /// Its number.
    pub number: u8,
    /// Its name.
    pub field: &'static str,
}

/// The fields of a part, and of all parts in it. `value` is any value, which may change.
pub fn names<P: Part>(value: &mut P) -> Vec<Name> {
    let mut list = List::default();
    list.within(value);
    list.names
}

/// Notes each field.
#[derive(Debug, Default)]
struct List {
    names: Vec<Name>,
    parts: Vec<&'static str>,
    part: &'static str,
}

impl Codec for List {
    const READS: bool = false;

    fn field(&mut self, number: u8, field: &'static str, _: bool) -> bool {
        self.names.push(Name {
            part: self.part,
            number,
            field,
        });
        true
    }

    fn wide(&mut self, _: &mut u64) {}

    fn octets(&mut self, _: &mut [u8]) {}

    fn run(&mut self, _: &mut Vec<u8>, _: usize) {}

    fn within<P: Part>(&mut self, value: &mut P) -> bool {
        if !self.parts.contains(&P::NAME) {
            self.parts.push(P::NAME);
            let outer = core::mem::replace(&mut self.part, P::NAME);
            value.exchange(self);
            self.part = outer;
        }
        true
    }

    fn refuse(&mut self) {}

    fn timeline(&self) -> Timeline {
        Timeline::default()
    }

    fn undo(&mut self) {}

    /// The part of a list's elements, without one.
    fn list<P: Part + Default>(
        &mut self,
        number: u8,
        name: &'static str,
        _: &mut Vec<P>,
        _: usize,
    ) {
        self.field(number, name, true);
        self.within(&mut P::default());
    }
}
