//! AS_PATH with AS numbers of four octets: RFC 4271, sections 4.3 and 5.1.2; RFC 5065; RFC 6793.

use std::fmt;

/// The type of a path segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SegmentKind {
    /// AS_SET: unordered.
    Set = 1,
    /// AS_SEQUENCE: ordered, the most recently traversed AS first.
    Sequence = 2,
    /// AS_CONFED_SEQUENCE (RFC 5065).
    ConfedSequence = 3,
    /// AS_CONFED_SET (RFC 5065).
    ConfedSet = 4,
}

impl SegmentKind {
    /// The type with that number.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(SegmentKind::Set),
            2 => Some(SegmentKind::Sequence),
            3 => Some(SegmentKind::ConfedSequence),
            4 => Some(SegmentKind::ConfedSet),
            _ => None,
        }
    }

    /// Whether it is a confederation segment.
    #[must_use]
    #[inline]
    pub const fn is_confed(self) -> bool {
        matches!(self, SegmentKind::ConfedSequence | SegmentKind::ConfedSet)
    }
}

/// A path segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// Its type.
    pub kind: SegmentKind,
    asns: &'a [[u8; 4]],
}

impl<'a> Segment<'a> {
    /// Its AS numbers, in order.
    #[inline]
    pub fn asns(
        &self,
    ) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator + Clone + use<'a> {
        self.asns.iter().map(|&asn| u32::from_be_bytes(asn))
    }

    /// What it adds to the path length (RFC 4271, section 9.1.2.2; RFC 5065, section 5.3).
    #[must_use]
    #[inline]
    pub fn length(&self) -> usize {
        match self.kind {
            SegmentKind::Sequence => self.asns.len(),
            SegmentKind::Set => 1,
            SegmentKind::ConfedSequence | SegmentKind::ConfedSet => 0,
        }
    }
}

/// The value of an AS_PATH with four-octet AS numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AsPath<'a> {
    octets: &'a [u8],
}

impl<'a> AsPath<'a> {
    /// Wraps a value; a malformed segment ends the path before it.
    #[must_use]
    #[inline]
    pub const fn new(value: &'a [u8]) -> Self {
        AsPath { octets: value }
    }

    /// The value.
    #[must_use]
    pub const fn octets(self) -> &'a [u8] {
        self.octets
    }

    /// Its segments.
    #[must_use]
    #[inline]
    pub fn segments(self) -> Segments<'a> {
        Segments { rest: self.octets }
    }

    /// All AS numbers, in order.
    pub fn asns(self) -> impl Iterator<Item = u32> + Clone + use<'a> {
        self.segments().flat_map(|segment| segment.asns())
    }

    /// The path length that the decision process uses: a set counts as one, confederation segments as zero.
    #[must_use]
    #[inline]
    pub fn length(self) -> usize {
        self.segments().map(|segment| segment.length()).sum()
    }

    /// Whether it has no segment.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.octets.is_empty()
    }

    /// Whether an AS occurs in a segment of any kind.
    #[must_use]
    pub fn contains(self, asn: u32) -> bool {
        let asn = asn.to_be_bytes();
        self.segments().any(|segment| segment.asns.contains(&asn))
    }

    /// How often an AS occurs.
    #[must_use]
    pub fn count(self, asn: u32) -> usize {
        self.asns().filter(|&other| other == asn).count()
    }

    /// The originating AS: the last one, if the last segment outside confederations is a sequence.
    #[must_use]
    pub fn origin_as(self) -> Option<u32> {
        let last = self
            .segments()
            .filter(|segment| !segment.kind.is_confed())
            .last()?;
        match last.kind {
            SegmentKind::Sequence => last.asns().next_back(),
            SegmentKind::Set | SegmentKind::ConfedSequence | SegmentKind::ConfedSet => None,
        }
    }

    /// The neighbouring AS: the first one, if the first segment outside confederations is a sequence (RFC 5065,
    /// section 5.3).
    #[must_use]
    pub fn neighbour_as(self) -> Option<u32> {
        let first = self.segments().find(|segment| !segment.kind.is_confed())?;
        match first.kind {
            SegmentKind::Sequence => first.asns().next(),
            SegmentKind::Set | SegmentKind::ConfedSequence | SegmentKind::ConfedSet => None,
        }
    }

    /// Appends the value with an AS prepended that many times: to the first segment if it is of `kind` and has
    /// room, otherwise as a new segment (RFC 4271, section 5.1.2; RFC 5065, section 4.1).
    pub fn emit_prepended(self, kind: SegmentKind, asn: u32, times: u8, out: &mut Vec<u8>) {
        if times == 0 {
            out.extend_from_slice(self.octets);
            return;
        }
        let (count, rest) = match self.octets {
            &[first, count, ref rest @ ..]
                if first == kind as u8 && count.checked_add(times).is_some() =>
            {
                (count + times, rest)
            }
            octets => (times, octets),
        };
        out.extend_from_slice(&[kind as u8, count]);
        for _ in 0..times {
            out.extend_from_slice(&asn.to_be_bytes());
        }
        out.extend_from_slice(rest);
    }
}

/// Iterates over a path's segments.
#[derive(Debug, Clone)]
pub struct Segments<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    #[inline]
    fn next(&mut self) -> Option<Segment<'a>> {
        let (&[kind, count], rest) = self.rest.split_first_chunk::<2>()?;
        let kind = SegmentKind::from_number(kind)?;
        let (asns, rest) = rest.split_at_checked(4 * usize::from(count))?;
        self.rest = rest;
        Some(Segment {
            kind,
            asns: asns.as_chunks().0,
        })
    }
}

impl fmt::Display for AsPath<'_> {
    /// `64496 64511 {64502,64503}`; confederation segments as `(64512 64513)` and `[64514,64515]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for segment in self.segments() {
            let (open, between, close) = match segment.kind {
                SegmentKind::Sequence => ("", " ", ""),
                SegmentKind::Set => ("{", ",", "}"),
                SegmentKind::ConfedSequence => ("(", " ", ")"),
                SegmentKind::ConfedSet => ("[", ",", "]"),
            };
            f.write_str(if is_first { "" } else { " " })?;
            f.write_str(open)?;
            for (index, asn) in segment.asns().enumerate() {
                f.write_str(if index == 0 { "" } else { between })?;
                write!(f, "{asn}")?;
            }
            f.write_str(close)?;
            is_first = false;
        }
        Ok(())
    }
}

impl fmt::Debug for AsPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsPath({self})")
    }
}
