//! Writes values.

use super::{Codec, Part, Timeline};

/// Writes parts, one after the other.
///
/// ```
/// use base::snapshot::{Codec, Part, Reader, Timeline, Writer};
///
/// #[derive(Default, Debug, PartialEq)]
/// struct Line { speed_bps: u64, name: String }
///
/// impl Part for Line {
///     const NAME: &'static str = "line";
///     fn exchange<C: Codec>(&mut self, codec: &mut C) {
///         codec.number(1, "speed_bps", &mut self.speed_bps);
///         codec.text(2, "name", &mut self.name, 64);
///     }
/// }
///
/// let mut line = Line { speed_bps: 200, name: "a".into() };
/// let mut writer = Writer::new(Vec::new(), Timeline::default());
/// writer.write(&mut line);
/// let octets = writer.into_octets();
/// assert_eq!(octets, [1, 0xc8, 0x01, 2, 1, b'a', 0]);
/// assert_eq!(Reader::read::<Line>(&octets, Timeline::default()), Ok(line));
/// ```
#[derive(Debug)]
pub struct Writer {
    out: Vec<u8>,
    timeline: Timeline,
    /// Where the last field begins.
    field_at: usize,
    last_field: u8,
}

impl Writer {
    /// Appends to `out`.
    #[must_use]
    pub const fn new(out: Vec<u8>, timeline: Timeline) -> Writer {
        Writer {
            out,
            timeline,
            field_at: 0,
            last_field: 0,
        }
    }

    /// Appends a value. It is as before afterwards.
    pub fn write<P: Part>(&mut self, value: &mut P) {
        self.within(value);
    }

    /// What was written.
    #[must_use]
    pub fn into_octets(self) -> Vec<u8> {
        self.out
    }
}

impl Codec for Writer {
    const READS: bool = false;

    #[inline]
    fn field(&mut self, number: u8, name: &'static str, there: bool) -> bool {
        debug_assert!(
            number > self.last_field,
            "field {number} ({name}) does not follow field {}",
            self.last_field
        );
        self.last_field = number;
        if there {
            self.field_at = self.out.len();
            self.out.push(number);
        }
        there
    }

    #[inline]
    fn wide(&mut self, value: &mut u64) {
        let mut rest = *value;
        while rest >= 0x80 {
            self.out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.out.push(rest as u8);
    }

    #[inline]
    fn octets(&mut self, value: &mut [u8]) {
        self.out.extend_from_slice(value);
    }

    #[inline]
    fn run(&mut self, value: &mut Vec<u8>, max: usize) {
        debug_assert!(value.len() <= max, "a limit that its type does not keep");
        self.wide(&mut (value.len() as u64));
        self.out.extend_from_slice(value);
    }

    #[inline]
    fn within<P: Part>(&mut self, value: &mut P) -> bool {
        let (field_at, last_field) = (self.field_at, self.last_field);
        let start = self.out.len();
        self.last_field = 0;
        value.exchange(self);
        (self.field_at, self.last_field) = (field_at, last_field);
        let is_empty = self.out.len() == start;
        self.out.push(0);
        !is_empty
    }

    fn refuse(&mut self) {}

    fn timeline(&self) -> Timeline {
        self.timeline
    }

    fn undo(&mut self) {
        self.out.truncate(self.field_at);
    }
}
