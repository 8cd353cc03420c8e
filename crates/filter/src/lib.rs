//! A subscriber's packet filter: ordered accept and deny rules per direction, named by Filter-Id (RFC 2865 5.11).
//!
//! | module | what it is |
//! |---|---|
//! | `rule` | one rule and what it matches: the plain meaning of everything here |
//! | `text` | rules as operators write them, with faults that say what would be right |
//! | `names` | protocols, services and ICMP types by name, from tables read once |
//! | `compile` | rules as tables: all of them at once for each packet |
//! | `set` | the filters of a file, reloaded without a gap, and hits per rule |
//! | `explain` | which rule decides on a packet, and why the others do not |
//! | `packet` | a packet in words, both ways: for log lines and for questions |
//!
//! Fragments as in RFC 1858 and RFC 3128: docs/filter.md says what matches what. Left out: state (`established` is TCP
//! with ACK or RST), what is behind the transport header, rewriting, rates.
//!
//! Nothing here does I/O: the tables of names and the rules come as text. Matching makes no text, allocates nothing
//! and calls nothing; log text is made by [`describe`] when somebody wants it.
#![forbid(unsafe_code)]

mod compile;
mod explain;
mod names;
mod packet;
mod rule;
mod set;
mod text;

pub use explain::{Explanation, Step};
pub use names::Names;
pub use packet::{PacketError, describe, parse_packet};
pub use rule::Rule;
pub use set::{Filter, FilterId, FilterSet, Hits, Line, Verdict};
pub use text::{Remark, Remarks};

use std::fmt;

/// Which way a packet goes, as the subscriber sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the subscriber.
    In = 0,
    /// To the subscriber.
    Out = 1,
}

impl Direction {
    /// Both.
    pub const ALL: [Direction; 2] = [Direction::In, Direction::Out];

    /// The word in rule texts: `in` or `out`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Rules that one direction of a filter may have.
pub const RULES_MAX: usize = 4_096;
/// Rules that all filters of a file may have together.
pub const RULES_OF_ALL_MAX: usize = 65_536;
/// Filters that a file may have, those included that only sessions still use.
pub const FILTERS_MAX: usize = 4_096;
