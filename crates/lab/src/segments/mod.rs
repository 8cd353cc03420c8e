//! The 2005 harness of segment lists: what it costs to keep a connection's segments, in a linked list walked from its
//! head, in one walked from its tail, and in `trace`'s structure.
//!
//! tcptrace 6.6.7 walks from the head; patches of 2005 walk from the tail. Their account times four cases on lists of
//! 30,000 segments, and a capture of 2.87 million packets in a few connections. What a case is, is told in a few words
//! there; [`Case`] has our reading of each.
//!
//! | module | what it is |
//! |---|---|
//! | `list` | the trait, the lists and ours behind it |
//! | `case` | which segments come in which order, and what was published of it |
//! | `measure` | time against the number of segments, within a budget |
//!
//! Left out: acknowledgements, which none of the cases has, and sequence numbers that wrap.

mod case;
mod list;
mod measure;
#[cfg(test)]
mod tests;

pub use case::{Case, Load, Packet, SEGMENTS_PUBLISHED, Subject};
pub use list::{Array, End, Linked, Ours, Overlap, SegmentList};
pub use measure::{Config, Disagreement, Row, SegmentsReport, agree, run};

/// The name of the bare loop among the lists.
pub const FLOOR: &str = "floor";
