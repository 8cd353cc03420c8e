//! The 2005 harness for segment lists: the cost of keeping a connection's segments in a linked list
//! walked from its head, in one walked from its tail, and in `trace`'s data structure.
//!
//! tcptrace 6.6.7 walks from the head; patches of 2005 walk from the tail. Their author published
//! times for four cases with lists of 30,000 segments, and for a capture of 2.87 million packets in
//! a few connections. The account describes each case in a few words; [`Case`] documents our
//! reading.
//!
//! | module | contents |
//! |---|---|
//! | `list` | the trait, the lists, and ours |
//! | `case` | the segments of each case, and the published results |
//! | `measure` | time against the number of segments, within a time limit |
//!
//! Left out: acknowledgements, which no case has, and sequence numbers that wrap.

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
