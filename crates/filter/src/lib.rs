//! A subscriber's packet filter: ordered accept and deny rules per direction, named by Filter-Id (RFC 2865 5.11).
//!
//! | module | what it is |
//! |---|---|
//! | `rule` | one rule and what it matches: the reference for the compiled form |
//! | `text` | rules as operators write them, with faults that say what would be right |
//! | `names` | protocols, services and ICMP types by name, from tables read once |
//! | `compile` | rules compiled into tables that match a packet against all rules at once |
//! | `set` | the filters of a file, replaced atomically, and hits per rule |
//! | `explain` | which rule decides on a packet, and why earlier ones do not match |
//! | `packet` | a packet as text, written and parsed: for log lines and for an operator's questions |
//!
//! Fragments are handled as in RFC 1858 and RFC 3128; docs/filter.md defines what matches what. Left out: state
//! (`established` means TCP with ACK or RST), anything after the transport header, rewriting, rates.
//!
//! This crate does no I/O: the tables of names and the rules are passed as text. Matching builds no text,
//! allocates nothing and has no callbacks; [`describe`] builds log text on request.
//!
//! Start reading at [`Filter::matches`].
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
pub use set::{Carry, Filter, FilterId, FilterSet, Hits, Line, Verdict};
pub use text::{Remark, Remarks};

use std::fmt;

/// A packet's direction, as seen by the subscriber.
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

    /// The direction's name in rule texts: `in` or `out`.
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

/// The most rules of one direction of a filter.
pub const RULES_MAX: usize = 4_096;
/// The most rules of all filters of a file together.
pub const RULES_OF_ALL_MAX: usize = 65_536;
/// The most filters of a file, including removed ones that sessions still use.
pub const FILTERS_MAX: usize = 4_096;
